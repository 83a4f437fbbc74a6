"""Data sets with matched controls: what the floor under σ² decides, and what a larger grid does.

LinTS, LinUCB and BLTS over the paper's grids of α and γ, as in the study `openml`, with λ = 1 and
BLTS's propensities of the moment of decision. Three things differ:

- every cell of every grid has its own random numbers;
- σ² = RSS/n has a floor of 10⁻⁶ or of 10⁻², beside σ² = RSS;
- the null has as many draws as BLTS has settings: LinTS with four draws of its three settings, all
  with their own random numbers. So BLTS (12 settings) against this null (12 draws) is a matched
  comparison, and the null against LinTS (3 draws) is what a larger grid does by itself.

There are three protocols: the best of the grid on the set itself, as in the paper; a setting chosen
on the other half of the sets; and α = 1 (γ = 0.1) for all.
"""

from __future__ import annotations

import hashlib
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import bayesbandit as bb
from bayesbandit import evaluation
from bayesbandit_studies import Factory, openml, pictures
from bayesbandit_studies.openml import BEST, FIXED, PAPER
from bayesbandit_studies.table1 import ALPHAS, CLIPS
from bayesbandit_studies.tables import mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

READINGS: dict[str, dict[str, Any]] = {
    "RSS/n, floor 1e-6": {"variance": "rss/n", "min_variance": 1e-6},
    "RSS/n, floor 1e-2": {"variance": "rss/n", "min_variance": 1e-2},
    "RSS": {"variance": "rss"},
}
SAME = "α = 1"
PROTOCOLS = BEST, FIXED, SAME
DRAWS = len(CLIPS)  # of each of LinTS's settings in the null: as many as BLTS has values of γ
NULL = f"LinTS, {DRAWS * len(ALPHAS['TS'])} draws"
SMALL, GREEDY = "LinTS, α = 0.1", "greedy"
PAIRS = [
    ("BLTS", "LinTS"), (NULL, "LinTS"), ("BLTS", NULL), ("BLTS", SMALL), ("BLTS", GREEDY),
    ("LinTS", "LinUCB"), ("BLTS", "LinUCB"), (NULL, "LinUCB"), ("LinTS", GREEDY),
    ("LinUCB", GREEDY),
]  # fmt: skip


def labelled(make: Factory, label: str, **given: Any) -> Factory:
    """Return a factory of bandits whose random numbers also depend on their label."""
    words = np.frombuffer(hashlib.blake2b(label.encode(), digest_size=16).digest(), np.uint32)
    return partial(openml.reseeded, make, tuple(words.tolist()), **given)


def settings(reading: str) -> dict[str, dict[str, Factory]]:
    """Return each algorithm's settings under a reading of the noise scale, by their names."""
    rows: dict[str, list[tuple[str, Factory, dict[str, float]]]] = {
        "LinTS": [(f"α = {a:g}", bb.LinTS, {"alpha": a}) for a in ALPHAS["TS"]],
        "LinUCB": [(f"α = {a:g}", bb.LinUCB, {"alpha": a}) for a in ALPHAS["UCB"]],
        "BLTS": [
            (f"α = {a:g}, γ = {clip:g}", bb.BLTS, {"alpha": a, "clip": clip})
            for a, clip in product(ALPHAS["TS"], CLIPS)
        ],
        NULL: [
            (f"α = {a:g}, draw {draw}", bb.LinTS, {"alpha": a})
            for a, draw in product(ALPHAS["TS"], range(1, 1 + DRAWS))
        ],
        SMALL: [("", bb.LinTS, {"alpha": 0.1})],
    }
    found: dict[str, dict[str, Factory]] = {}
    for name, cells in rows.items():
        found[name] = {}
        for text, make, values in cells:
            label = ", ".join(part for part in (name, text, reading) if part)
            given: dict[str, Any] = values | READINGS[reading] | {"ridge": 1.0}
            found[name][label] = labelled(make, label, **given)
    return found | {GREEDY: {GREEDY: labelled(bb.LinGreedy, GREEDY)}}


def players() -> dict[str, Factory]:
    """Return all settings of all algorithms under all readings."""
    return {
        label: factory
        for reading in READINGS
        for cells in settings(reading).values()
        for label, factory in cells.items()
    }


def members(reading: str, protocol: str) -> dict[str, list[str]]:
    """Return the names of each algorithm's settings among which a protocol chooses."""
    found = {name: list(cells) for name, cells in settings(reading).items()}
    if protocol != SAME:
        return found
    return {
        name: [label for label in cells if f"{SAME}, " in label and "γ" not in label]
        or [label for label in cells if f"{SAME}, γ = 0.1" in label]
        for name, cells in found.items()
        if name in ("LinTS", "LinUCB", "BLTS")
    } | {GREEDY: found[GREEDY]}


def chosen(results: pd.DataFrame, reading: str, protocol: str) -> pd.DataFrame:
    """Return the runs of each algorithm at the setting that a protocol chooses."""
    return openml.chosen(results, members(reading, protocol), protocol)


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Return `openml.counts` for each reading and protocol."""
    found = {key: openml.counts(chosen(results, *key)) for key in product(READINGS, PROTOCOLS)}
    return pd.concat(found, names=["reading", "protocol"]).droplevel(2).reset_index()


def printed(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each pair, protocol and reading the sets with less and more regret, in brackets
    those that are significant, and the difference in points of normalised regret ± SE."""
    wins = table["smaller"].astype(str)
    gaps, errors = (100 * table[name].to_numpy(np.float64) for name in ("difference", "se"))
    table = table.assign(
        cell=wins + "–" + table["larger"].astype(str)
        + " (" + table["wins"].astype(str) + "–" + table["losses"].astype(str) + "), "
        + [evaluation.within(*pair, 2, sign=True) for pair in zip(gaps, errors, strict=True)],
        reading=table["reading"] + " (of " + table["sets"].astype(str) + ")",
    )  # fmt: skip
    cells = table.pivot(index=["row", "column", "protocol"], columns="reading", values="cell")
    rows = []
    for (one, other), protocol in product(PAIRS, PROTOCOLS):
        if (one, other, protocol) in cells.index:
            known = "–".join(map(str, PAPER.get((one, other), ()))) if protocol == BEST else ""
            row = {"pair": f"{one} – {other}", "setting": protocol, "paper (of 300)": known}
            found = cells.loc[(one, other, protocol), pd.unique(table["reading"]).tolist()]
            rows.append(row | found.to_dict())
    return pd.DataFrame(rows)


def details(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return normalised regrets, and the gain of choosing the best of more draws."""
    frames = []
    for reading, protocol in product(READINGS, PROTOCOLS):
        ranks = evaluation.ranking(chosen(results, reading, protocol))
        values = ranks.set_index("bandit")["normalised_regret"].map("{:.4f}".format)
        frames.append(pd.DataFrame([{"reading": reading, "setting": protocol} | dict(values)]))
    regrets = pd.concat(frames, ignore_index=True).fillna("")
    return {
        "Normalised regret, mean over data sets": regrets,
        "Gain from selection: mean of the settings' regrets less the least one": gains(results),
    }


def gains(results: pd.DataFrame) -> pd.DataFrame:
    """Return by how much the best draw of a grid is below the best setting's mean over its draws.

    For each data set: the regret of the best α, averaged over draws or values of γ, less the regret
    of the best cell; the mean over data sets ± SE.
    """
    regret = openml.rates(results)
    rows = []
    for reading in READINGS:
        row = {"reading": reading}
        for name in ("BLTS", NULL):
            cells = list(settings(reading)[name])
            alphas = [label.split(", α = ")[1].split(",")[0] for label in cells]
            by_alpha = regret[cells].T.groupby(alphas).mean().T
            row[name] = mean(by_alpha.min(axis=1) - regret[cells].min(axis=1), 4)
        rows.append(row)
    return pd.DataFrame(rows)


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Draw the differences of regret: what weights do, and Thompson sampling against UCB."""
    size = results["environment"].nunique(), results["replication"].nunique()
    among = {"differences": False, "ucb": True}
    return {
        name: differences(
            table(results), [pair for pair in PAIRS if ("LinUCB" in pair) is ucb], *size
        )
        for name, ucb in among.items()
    }


def differences(found: pd.DataFrame, shown: list[tuple[str, str]], n: int, shuffles: int) -> Figure:
    """Draw the differences of some pairs of `table`, a panel a reading, with 95 % intervals over n
    data sets."""
    pairs = found["row"] + " − " + found["column"]
    names = [f"{one} − {other}" for one, other in shown]
    rows = found.assign(
        pair=pairs,
        value=100 * found["difference"],
        value_se=100 * found["se"],
        panel=found["reading"] + ", " + found["protocol"],
    )
    rows = rows[pairs.isin(names) & (rows["protocol"] != SAME)]
    rows = rows.sort_values("pair", key=lambda c: c.map(names.index), kind="stable")
    title = f"Differences of normalised regret: mean and 95 % interval over {n} data sets"
    return pictures.interval_rows(
        rows,
        "pair",
        "value",
        "panel",
        "difference (points; < 0: the first is better)",
        f"{title}, {shuffles} shuffles of at most {openml.LONGEST:,} rounds",
        nominal=0.0,
    )


STUDY = bb.extend.Study(
    title="Data sets on which the first has less regret than the second – more (p < .05)",
    environments=openml.environments,
    players=players(),
    table=table,
    printed=printed,
    details=details,
    figures=figures,
    replications=2,
    points=2,
    quick={"horizon": 100, "environments": openml.bundled_sets},
)
