"""Do intervals from adaptive logs hold? Beyond the paper: coverage, peeking, false propensities.

Logs are made by linear Thompson sampling with a floor, three arms, 1,000 rounds in batches of 40.
All arms have the same value, in four designs: the linear model is right ("well": slopes −.5, 0, .5)
or wrong ("mis": squares), the floor is constant (1/30) or decays (t^−.7/3). In three more, with the
right model and the constant floor, values differ by 1, 10 and 100 standard deviations of the noise.

- Coverage: 95 % intervals of each arm's value and of two differences. Clipped IPS, the direct
  method, SWITCH and shrunk DR give a number without an interval. The sample mean is the control.
- A peeking analyst looks every 40 rounds from round 120 on, at arms without contexts that pay 1 in
  30 % of cases: does an interval ever miss, and is one of the equal arms declared the best?
- False propensities: the e-process of logs of 500 rounds whose probabilities are said to be 1/K,
  those of two arms swapped, or each arm's mean; and the true ones, the control.
- A real log, where the environment variable BAYESBANDIT_OBD names its folder: the Open Bandit data,
  uniform choice judged by the log of Thompson sampling, and the other way round, beside what each
  earned on its own log.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import bayesbandit as bb
from bayesbandit import checks, evaluation
from bayesbandit.experiments.experiment import stream
from bayesbandit.experiments.results_on_disk import Cache, key, write_results
from bayesbandit.runtime.progress import bar
from bayesbandit_studies import pictures
from bayesbandit_studies.evidence import measured, open_bandit
from bayesbandit_studies.evidence.designs import APART, DESIGNS
from bayesbandit_studies.evidence.measured import (
    BEST,
    CLAIMS,
    DEFAULT,
    ESTIMATORS,
    LOOKS,
    SHORT,
)
from bayesbandit_studies.tables import mean, share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLOCK = 25  # replications that are drawn at once
PEEKED = "no contexts"
PARTS: dict[str, tuple[str, ...]] = {
    "coverage": (*DESIGNS, *APART),
    "peeking": (PEEKED,),
    "detection": tuple(DESIGNS),
}
SEQUENCES = (measured.FIXED, measured.ASYMPTOTIC, measured.EXACT)
CELL = ["environment", "target", "method"]


@dataclass(frozen=True)
class Simulations:
    """Replications of each part and design. A replication's numbers depend on the seed alone."""

    replications: int
    seed: int

    def run(self, jobs: int = 1, out: str | Path | None = None) -> pd.DataFrame:
        """Return a row for each part, design, target, method and replication.

        out: a folder that keeps the results, each block as it comes. An interrupted run continues
        from there.
        """
        begun = time.monotonic()
        blocks = range(-(-self.replications // BLOCK))
        units = [(p, d, b) for p, designs in PARTS.items() for d, b in product(designs, blocks)]
        cache = Cache(None if out is None else Path(out) / "runs")
        keys = {unit: key(unit=unit, size=BLOCK, seed=self.seed) for unit in units}
        left = [unit for unit in units if keys[unit] not in cache]
        done = len(units) - len(left)
        for unit, frame in zip(left, _measured(left, self.seed, jobs, done), strict=True):
            cache[keys[unit]] = frame
        table = self._whole(cache[keys[unit]] for unit in units)
        if out is not None:
            seconds = time.monotonic() - begun if left else 0.0
            write_results(Path(out), table, asdict(self), seconds)
        return table

    def _whole(self, frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
        table = pd.concat(frames, ignore_index=True)
        return table[table["replication"] < self.replications].reset_index(drop=True)


def _measured(
    units: Sequence[tuple[str, str, int]], seed: int, jobs: int, done: int = 0
) -> Iterator[pd.DataFrame]:
    """Yield what is measured of each block, beside a bar."""
    from joblib import Parallel, delayed

    with bar("blocks of simulations", len(units) + done, done) as advance:
        work = (delayed(block)(*unit, seed) for unit in units)
        for frame in Parallel(n_jobs=jobs, return_as="generator")(work):
            yield frame
            advance(1)


def block(part: str, design: str, number: int, seed: int) -> pd.DataFrame:
    """Measure one block of replications."""
    from threadpoolctl import threadpool_limits

    measure = {
        "coverage": measured.coverage,
        "peeking": measured.peeking,
        "detection": measured.detection,
    }[part]
    with threadpool_limits(limits=1):
        rows = measure(design, BLOCK, stream(seed, "evidence", part, design, number))
        frame = pd.DataFrame(rows)
    frame["replication"] += number * BLOCK
    frame.insert(0, "part", part)
    return frame


def simulations(replications: int, seed: int = 0) -> Simulations:
    """Return all parts in all designs."""
    checks.integer(replications, "replications", least=1)
    return Simulations(replications, checks.integer(seed, "seed"))


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each design, target and estimator.

    The columns are coverage, width, bias and root mean squared error, in units of the reward, with
    standard errors; `se over sd`, the mean standard error over the standard deviation of the
    values that have one; and `refused`, the share of logs without an interval.
    """
    rows = _of(results, "coverage")
    given = rows["low"].notna()
    cells = rows.assign(
        coverage=((rows["low"] <= 0) & (rows["high"] >= 0)).astype(float).where(given),
        width=rows["high"] - rows["low"],
        refused=(~given).astype(float),
        squared=rows["value"] ** 2,
        error=(rows["high"] - rows["low"]) / (2 * measured.Z),
    ).groupby(CELL, sort=False)
    sd = rows.assign(value=rows["value"].where(given)).groupby(CELL, sort=False)["value"].std()
    found = pd.DataFrame({
        "coverage": cells["coverage"].mean(), "coverage_se": cells["coverage"].sem(),
        "width": cells["width"].mean(), "width_se": cells["width"].sem(),
        "bias": cells["value"].mean(), "bias_se": cells["value"].sem(),
        "rmse": np.sqrt(cells["squared"].mean()), "se over sd": cells["error"].mean() / sd,
        "refused": cells["refused"].mean(),
    })  # fmt: skip
    return found.reset_index()


def printed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the default's coverage in % ± SE: a row for each target, a column for each design."""
    mine = table[table["method"] == DEFAULT]
    shares = mine.assign(coverage=100 * mine["coverage"], coverage_se=100 * mine["coverage_se"])
    return evaluation.wide(shares, 1, "target", "environment", "coverage")


def details(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return tables of all estimators, of peeking, of false propensities, and of the real log."""
    found = table(results)
    frames = {}
    for target in ("arm 0", "0 − 1"):
        here = found[found["target"] == target]
        shares = here.assign(coverage=100 * here["coverage"], coverage_se=100 * here["coverage_se"])
        for name, column, frame, digits in (
            ("coverage in %", "coverage", shares, 1),
            ("width of the interval", "width", here, 3),
            ("bias", "bias", here, 3),
        ):
            frames[f"{target}: {name}, ± SE"] = evaluation.wide(
                frame.dropna(subset=[column]), digits, "method", "environment", column
            )
        for name, column, scale in (
            ("root mean squared error", "rmse", 1),
            ("mean standard error over standard deviation", "se over sd", 1),
            ("logs without an interval, in %", "refused", 100),
        ):
            cells = here.pivot(index="method", columns="environment", values=column) * scale
            frames[f"{target}: {name}"] = cells.loc[
                list(ESTIMATORS), list(PARTS["coverage"])
            ].reset_index()
    frames |= {
        f"A peeking analyst, {len(LOOKS)} looks": peeked(results),
        "Three equal arms: one is declared the best, in %": declared(results),
        f"Propensities refuted within {SHORT} rounds, in %": refuted(results),
        "Propensities: the median round in which they are refuted": refuted(results, "round"),
    }
    if (real := open_bandit.sample()) is not None:
        frames["Open Bandit data, clicks per 1,000 rounds ± SE"] = open_bandit.table(real)
    return frames


def peeked(results: pd.DataFrame) -> pd.DataFrame:
    """Return how often an interval misses the value at some look, and its width at the end."""
    rows = _of(results, "peeking")
    rows = rows[rows["target"] == "arm 0"]
    found = []
    for name in SEQUENCES:
        here = rows[rows["method"] == name]
        missed = int(here["round"].notna().sum())
        ever = ((here["low"] > measured.P) | (here["high"] < measured.P)).sum()
        found.append(
            {
                "method": name,
                "misses at some look, in %": share(missed, len(here), 1),
                "misses at the end, in %": share(int(ever), len(here), 1),
                "width at the end": mean(here["high"] - here["low"], 3),
            }
        )
    return pd.DataFrame(found)


def declared(results: pd.DataFrame) -> pd.DataFrame:
    """Return how often one of three equal arms is declared the best at some look."""
    rows = _of(results, "peeking")
    counts = [rows[rows["method"] == name]["round"].notna() for name in BEST]
    said = [share(int(c.sum()), len(c), 1) for c in counts]
    return pd.DataFrame({"test": BEST, "declared": said})


def refuted(results: pd.DataFrame, what: str = "share") -> pd.DataFrame:
    """Return for each design and claim how often propensities are refuted.

    what: "share", or "round" for the median round in which they are.
    """
    rows = _of(results, "detection")
    found = []
    for design in DESIGNS:
        row: dict[str, Any] = {"design": design}
        for claim in CLAIMS:
            at = rows[(rows["environment"] == design) & (rows["method"] == claim)]["round"]
            known = int(at.notna().sum())
            if what == "share":
                row[claim] = share(known, len(at), 1)
            else:
                row[claim] = at.median() if known else np.nan
        found.append(row)
    return pd.DataFrame(found)


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Draw coverage and width by estimator, misses and refutations by round, and the real log."""
    found = table(results)
    found = found[found["target"] == "arm 0"].dropna(subset=["coverage"])
    n = results["replication"].nunique()
    drawn = {}
    for column, label, nominal, least, most in (
        ("coverage", "coverage of 95 % intervals", 0.95, 0.8, 1.0),
        ("width", "width of the interval", None, None, None),
    ):
        drawn[column] = pictures.interval_rows(
            found, "method", column, "environment", label,
            f"Value of an arm: {label}, mean and 95 % interval over {n} logs", nominal, least, most,
        )  # fmt: skip
    rows = _of(results, "peeking")
    missed = by_round(rows[rows["target"] == "arm 0"], LOOKS)
    drawn["peeking"] = pictures.learning_curves(
        missed, "t", "so far", "method", "environment", "round", "logs with a miss so far",
        "Looking every 40 rounds, an interval has missed the value", nominal=0.05,
    )  # fmt: skip
    drawn["detection"] = pictures.learning_curves(
        by_round(_of(results, "detection"), range(20, SHORT + 1, 20)), "t", "so far", "method",
        "environment", "round", "logs refuted so far", "The propensities of a log are refuted",
        alike=True,
    )  # fmt: skip
    if (real := open_bandit.sample()) is not None:
        drawn["open_bandit"] = pictures.interval_rows(
            real.assign(value=1000 * real["value"], low=1000 * real["low"],
                        high=1000 * real["high"]),
            "estimator", "value", "policy", "clicks per 1,000 rounds",
            "Open Bandit data: a policy judged by the log of the other, and by its own",
        )  # fmt: skip
    return drawn


def by_round(rows: pd.DataFrame, rounds: Iterable[int]) -> pd.DataFrame:
    """Return a row for each run and round: whether the event of the run has happened by then."""
    parts = [
        rows[["environment", "method", "replication"]].assign(
            t=t, **{"so far": (rows["round"] <= t).astype(float)}
        )
        for t in rounds
    ]
    return pd.concat(parts, ignore_index=True)


def _of(results: pd.DataFrame, part: str) -> pd.DataFrame:
    return results[results["part"] == part]


STUDY = bb.extend.Study(
    title="Coverage of 95 % intervals from adaptive logs",
    simulations=simulations,
    table=table,
    printed=printed,
    details=details,
    figures=figures,
    replications=1000,
    quick={"replications": 20},
)
