"""Classification as a bandit (section 3.2, Appendix B): who wins on how many data sets.

Linear Thompson sampling and UCB and their balanced versions over the paper's grids of α and γ,
ILTCB over its grid of μ, and beside them a greedy bandit, a LinTS of smaller α and one with learned
noise. λ is 1, where the paper cross-validates it at every update; BLTS takes propensities of the
moment of decision, and BLUCB reweights all arms when it reweights one. Both readings of the noise
scale are run, "rss/n" and the listing's "rss", since the conclusion turns on them; and three
protocols:

- best of the grid, each algorithm at the setting that did best on the data set itself, as in the
  paper: twelve settings of BLTS against three of LinTS;
- fixed settings, one for each algorithm, chosen on the other half of the data sets (of one set
  alone, on itself); versions of a set by name are in one half, the few tasks that occur under two
  names may not be;
- the selection null: LinTS at the best of nine more draws of its three settings, against LinTS at
  the best of three: the same bandit, with more to choose from.

The data are the folder that the environment variable BAYESBANDIT_DATA names, or else the sets that
come with scikit-learn. Long sets are cut: see `Cut`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import bayesbandit as bb
from bayesbandit import evaluation
from bayesbandit.checks import Arms, Seed
from bayesbandit.environments import BUNDLED, Classification, Sample, bundled
from bayesbandit_studies import Factory
from bayesbandit_studies.data_sets import FOLDER_VARIABLE, ParquetSet, folder
from bayesbandit_studies.pictures import pairwise_scatter
from bayesbandit_studies.table1 import ALPHAS, CLIPS
from bayesbandit_studies.tables import mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST, SHORTEST, WORK = 2_000, 500, 100_000_000  # rounds, rounds, and K D² a run
NOISE = ("rss/n", "rss")
MUS = (0.01, 0.1, 1.0)
DRAWS = 3  # more of each of LinTS's settings, in the selection null
NULL = "LinTS, 9 draws"
BEST, FIXED = PROTOCOLS = "best of the grid", "fixed settings"

# Appendix B: data sets of 300 that the row wins from the column.
PAPER = {
    ("BLTS", "LinTS"): (233, 58), ("BLTS", "LinUCB"): (232, 55), ("BLTS", "BLUCB"): (191, 92),
    ("BLTS", "ILTCB"): (222, 60), ("BLUCB", "LinUCB"): (185, 56), ("BLUCB", "LinTS"): (130, 149),
    ("BLUCB", "ILTCB"): (153, 129), ("LinTS", "LinUCB"): (180, 96), ("LinTS", "ILTCB"): (191, 95),
    ("LinUCB", "ILTCB"): (135, 153),
}  # fmt: skip
CONTROLS = [
    (NULL, "LinTS"), ("BLTS", "LinTS, α = 0.1"), ("BLTS", "greedy"), ("BLTS", "LinTS, nig"),
    ("LinUCB", "greedy"), ("LinTS", "greedy"),
]  # fmt: skip


@dataclass(frozen=True)
class Cut:
    """A data set's first rounds: at most 2,000, and fewer, but 500, where an arm's update is dear:
    as many as make 10⁸ of K D² each, of K classes and D = d + 1 columns."""

    environment: Classification | ParquetSet

    @property
    def name(self) -> str:
        return self.environment.name

    @property
    def arms(self) -> tuple[str | int, ...]:
        return self.environment.arms

    @property
    def n_features(self) -> int:
        return self.environment.n_features

    @property
    def fingerprint(self) -> str:
        return f"{self.environment.fingerprint}, cut at {LONGEST}, {SHORTEST}, {WORK:g}"

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        dear = WORK // (len(self.arms) * (self.n_features + 1) ** 2)
        most = min(LONGEST, max(SHORTEST, dear))
        return self.environment.sample(most if horizon is None else min(horizon, most), rng)


def reseeded(
    make: Factory, key: tuple[int, ...], arms: Arms, n_features: int, seed: Seed = 0, **given: Any
) -> bb.Bandit:
    """Return a bandit whose random numbers also depend on a key. given: its settings."""
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(seed)
    other = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))
    return make(arms, n_features, seed=other, **given)


def settings(noise: str) -> dict[str, dict[str, Factory]]:
    """Return each algorithm's settings under a noise scale, by their names."""
    given: dict[str, Any] = {"variance": noise, "ridge": 1.0}
    found: dict[str, dict[str, Factory]] = {}
    for name, make, alphas in (
        ("LinTS", bb.LinTS, ALPHAS["TS"]),
        ("LinUCB", bb.LinUCB, ALPHAS["UCB"]),
    ):
        found[name] = {
            f"{name}, α = {alpha:g}, {noise}": partial(make, alpha=alpha, **given)
            for alpha in alphas
        }
    for name, balanced, alphas in (
        ("BLTS", bb.BLTS, ALPHAS["TS"]),
        ("BLUCB", partial(bb.BLUCB, refresh="all"), ALPHAS["UCB"]),
    ):
        found[name] = {
            f"{name}, α = {alpha:g}, γ = {clip:g}, {noise}": partial(
                balanced, alpha=alpha, clip=clip, **given
            )
            for alpha, clip in product(alphas, CLIPS)
        }
    found[NULL] = {
        f"LinTS, α = {alpha:g}, {noise}, draw {draw}": partial(
            reseeded, bb.LinTS, (draw,), alpha=alpha, **given
        )
        for alpha, draw in product(ALPHAS["TS"], range(1, 1 + DRAWS))
    }
    found["LinTS, α = 0.1"] = {f"LinTS, α = 0.1, {noise}": partial(bb.LinTS, alpha=0.1, **given)}
    return found


def beside_them() -> dict[str, dict[str, Factory]]:
    """Return the algorithms whose settings do not include the noise scale."""
    return {
        "ILTCB": {f"ILTCB, μ = {mu:g}": partial(bb.systems.ILTCB, exploration=mu) for mu in MUS},
        "greedy": {"greedy": bb.LinGreedy},
        "LinTS, nig": {"LinTS, nig": partial(bb.LinTS, variance="nig")},
    }


def members(noise: str) -> dict[str, list[str]]:
    """Return the names of each algorithm's settings under a noise scale."""
    return {name: list(cells) for name, cells in (settings(noise) | beside_them()).items()}


def players() -> dict[str, Factory]:
    """Return all settings of all algorithms."""
    found: dict[str, Factory] = {}
    for cells in [*settings("rss/n").values(), *settings("rss").values(), *beside_them().values()]:
        found |= cells
    return found


def environments() -> list[Cut]:
    """Return the data sets, cut."""
    return [Cut(e) for e in data_sets()]


def bundled_sets() -> list[Cut]:
    """Return the data sets that come with scikit-learn, cut."""
    return [Cut(bundled(name)) for name in BUNDLED]


def data_sets() -> Sequence[Classification | ParquetSet]:
    """Return the folder that the environment variable names, or else the bundled sets."""
    return folder() if os.environ.get(FOLDER_VARIABLE) else [*map(bundled, BUNDLED)]


def rates(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean normalised regret at the end: a row a data set, a column a setting."""
    ends = evaluation.last(results)
    return ends.assign(rate=ends["regret"] / ends["t"]).pivot_table(
        index="environment", columns="bandit", values="rate"
    )


def chosen(
    results: pd.DataFrame, members: Mapping[str, list[str]], protocol: str = BEST
) -> pd.DataFrame:
    """Return the runs of each algorithm at the setting that a protocol chooses, under its own
    name. members: the names of each algorithm's settings."""
    ends = evaluation.last(results)
    regret = rates(results)
    stems = regret.index.str.split(" (", regex=False).str[0]  # versions of one set stay together
    half = pd.Series(pd.factorize(stems)[0] % 2, index=regret.index)
    parts = []
    for name, cells in members.items():
        mine = regret[cells]
        if protocol == BEST:
            best = mine.idxmin(axis=1)
        else:
            means = mine.groupby(half).mean()
            other = {h: means.loc[1 - h if len(means) > 1 else h].idxmin() for h in means.index}
            best = half.map(other)
        picked = best.rename("bandit").reset_index()
        parts.append(ends.merge(picked, on=["environment", "bandit"]).assign(bandit=name))
    return pd.concat(parts, ignore_index=True)


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Return `counts` for each noise scale and protocol."""
    found = {
        (noise, protocol): counts(chosen(results, members(noise), protocol))
        for noise, protocol in product(NOISE, PROTOCOLS)
    }
    return pd.concat(found, names=["noise", "protocol"]).droplevel(2).reset_index()


def counts(runs: pd.DataFrame) -> pd.DataFrame:
    """Return for each ordered pair of algorithms: data sets on which the first has smaller and
    larger regret than the second, as the paper counts wins and losses; those that it wins and loses
    by the paired t-test over shuffles (p < .05); and the mean difference of normalised regret over
    data sets with its standard error."""
    rows = []
    for (one, other), met in evaluation.pairwise(runs).groupby(["row", "column"], sort=False):
        count = met["outcome"].value_counts()
        rows.append(
            {
                "row": one,
                "column": other,
                "wins": int(count.get("win", 0)),
                "losses": int(count.get("loss", 0)),
                "sets": len(met),
                "smaller": int((met["difference"] < 0).sum()),
                "larger": int((met["difference"] > 0).sum()),
                "difference": met["difference"].mean(),
                "se": met["difference"].sem(),
            }
        )
    return pd.DataFrame(rows)


def printed(table: pd.DataFrame) -> pd.DataFrame:
    """Return wins–losses of the pairs of the paper's Appendix B and of our controls; in brackets
    those that are significant."""
    rows = []
    for one, other in [*PAPER, *CONTROLS]:
        here = table[(table["row"] == one) & (table["column"] == other)]
        row = {"pair": f"{one} – {other}"}
        wins, losses = PAPER.get((one, other), (None, None))
        row["paper (of 300)"] = "" if wins is None else f"{wins}–{losses}"
        for cell in here.to_dict("records"):
            heading = f"{cell['protocol']}, {cell['noise']} (of {cell['sets']})"
            counts = f"{cell['smaller']}–{cell['larger']} ({cell['wins']}–{cell['losses']})"
            row[heading] = counts
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


def details(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the regret of each algorithm, differences over data sets, where balancing pays, and
    the sets."""
    found = {}
    for noise, protocol in product(NOISE, PROTOCOLS):
        runs = chosen(results, members(noise), protocol)
        found[f"Ranking: {protocol}, {noise}"] = evaluation.ranking(runs)
    sets = characteristics(results["environment"].unique())
    found["BLTS − LinTS at fixed settings, by the data"] = breakdown(results, sets)
    found["Data sets"] = _counted(sets)
    return found


def characteristics(names: Iterable[str]) -> pd.DataFrame:
    """Return rows, classes and columns of the data sets of these names."""
    wanted = set(names)
    rows = []
    for e in map(bundled, BUNDLED) if wanted <= set(BUNDLED) else data_sets():
        if e.name in wanted:
            n, d = (e.data if isinstance(e, ParquetSet) else e).x.shape
            rows.append({"environment": e.name, "rows": n, "classes": len(e.arms), "columns": d})
    return pd.DataFrame(rows)


BANDS = {"rows": (0, 100, 1000, 10**9), "classes": (0, 2, 10, 10**9), "columns": (0, 10, 30, 10**9)}


def _banded(sets: pd.DataFrame, what: str) -> pd.Series:
    edges = BANDS[what]
    labels = [f"≤ {edges[1]:,}", f"{edges[1] + 1:,}–{edges[2]:,}", f"> {edges[2]:,}"]
    return pd.cut(sets[what], edges, labels=labels)


def _counted(sets: pd.DataFrame) -> pd.DataFrame:
    """Return how many data sets have which size, as in the paper's table of characteristics."""
    rows = [
        {"what": what, "band": band, "sets": int(count)}
        for what in BANDS
        for band, count in _banded(sets, what).value_counts(sort=False).items()
    ]
    return pd.DataFrame(rows)


def breakdown(results: pd.DataFrame, sets: pd.DataFrame) -> pd.DataFrame:
    """Return BLTS − LinTS of normalised regret at fixed settings, by rows, classes and columns."""
    rows = []
    for noise in NOISE:
        pairs = evaluation.pairwise(chosen(results, members(noise), FIXED))
        met = pairs[(pairs["row"] == "BLTS") & (pairs["column"] == "LinTS")].merge(sets)
        for what in BANDS:
            for band, here in met.groupby(_banded(met, what), observed=True):
                rows.append(
                    {
                        "noise": noise,
                        "what": what,
                        "band": band,
                        "sets": len(here),
                        "difference": mean(here["difference"], 4, sign=True),
                    }
                )
    return pd.DataFrame(rows)


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Return the pairwise scatter of the paper, by noise scale, at its protocol and at fixed
    settings."""
    five = ["LinTS", "BLTS", "LinUCB", "BLUCB", "ILTCB"]
    drawn = {}
    for noise, protocol in product(NOISE, PROTOCOLS):
        runs = chosen(results, members(noise), protocol)
        key = f"pairwise-{noise.replace('/', '-')}-{protocol.replace(' ', '-')}"
        drawn[key] = pairwise_scatter(runs[runs["bandit"].isin(five)])
    return drawn


STUDY = bb.extend.Study(
    title="Data sets on which the first has less regret than the second – more (p < .05)",
    environments=environments,
    players=players(),
    table=table,
    printed=printed,
    details=details,
    figures=figures,
    replications=5,
    points=2,
    quick={"replications": 2, "horizon": 100, "environments": bundled_sets},
)
