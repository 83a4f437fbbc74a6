"""When does balancing pay? Beyond the paper: weights of every kind, in four worlds.

Thompson sampling by ridge regression, λ = 1, σ² = RSS/n, α = 1, without weights and with inverse
propensities (of the decision, pooled, estimated; γ = .1), residual and kernel balancing; each with
and without a floor of .05 under the probabilities. All weights have mean 1, so that their scale
against λ is not what is compared, but for "decision, raw", the paper's.

The worlds are those of section 3.1, two by two: features with which the linear model is right or
wrong (x, x² or x alone), and the 50 logged rounds from one corner of the contexts, which is
covariate shift, or none. Beside regret stand each arm's estimated mean rewards at the end, at
contexts that are the same for all: the root of their mean squared error, its bias and variance over
replications, and how often mean ± 1.96 sd has the truth, with the sd of the bandit's own posterior
and with that of the sandwich covariance (`posterior.robust()`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import bayesbandit as bb
from bayesbandit import evaluation, plots
from bayesbandit.beliefs.linear_posterior import LinearPosterior
from bayesbandit.checks import Arms, Name, Seed
from bayesbandit.environments import SyntheticExample
from bayesbandit.environments.base import Sample
from bayesbandit.experiments.experiment import stream
from bayesbandit_studies import Factory, pictures
from bayesbandit_studies.accuracy import accuracy, replayed, replays, root
from bayesbandit_studies.stops import stops
from bayesbandit_studies.tables import by_pair, differences

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RIDGE_OF_PAPER = bb.Ridge(ridge=1.0, variance="rss/n")
ALPHA, FLOOR, CLIP = 1.0, 0.05, 0.1
NONE, RAW, FLOORED = "none", "decision, raw", ", floor"
BALANCES: dict[str, bb.extend.Balance] = {
    NONE: bb.Unweighted(),
    "decision": bb.InversePropensity(CLIP, "decision", normalize=True),
    "pooled": bb.InversePropensity(CLIP, "pooled", normalize=True),
    "estimated": bb.InversePropensity(CLIP, "estimated", normalize=True),
    "residual": bb.ResidualBalance(),
    "kernel": bb.KernelBalance(),
    RAW: bb.InversePropensity(CLIP, "decision"),
}
WEIGHTED = [name for name in BALANCES if name != NONE]
PAIRS = [
    *((name, NONE) for name in WEIGHTED),
    *((name + FLOORED, NONE + FLOORED) for name in WEIGHTED),
    *((name + FLOORED, name) for name in BALANCES),
    (RAW, "decision"),
]
ASKED = 500  # contexts at which estimates are judged
REPLAYED = 40  # replications of it, at most: unlike the runs, these are not kept
FEWER = {"pooled": 20, "estimated": 20}  # of balances whose weights take long to compute
JUDGED = [name for name in BALANCES if name not in ("residual", "kernel")]  # they take longer
SHOWN = (100, 200, 500, 1000)  # rounds after which estimates are drawn, with the last
ACCURACY = [("squared_error", "error"), ("coverage", "posterior"), ("robust", "sandwich")]
PARTS = [("squared_bias", "bias"), ("variance", "variance")]  # of the mean squared error


@dataclass(frozen=True)
class Cold(SyntheticExample):
    """The synthetic example without a warm start: a bandit begins with no logged rounds."""

    @property
    def name(self) -> str:
        return f"{super().name}, no warm start"

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        drawn = super().sample(horizon, rng)
        return replace(
            drawn,
            warm_x=drawn.warm_x[:0],
            warm_arm=drawn.warm_arm[:0],
            warm_reward=drawn.warm_reward[:0],
            warm_propensity=drawn.warm_propensity[:0],
        )


WORLDS = tuple(
    kind(specification, n_test=1000)
    for specification in ("well", "mis")
    for kind in (SyntheticExample, Cold)
)


def weighted(
    arms: Arms, n_features: int, seed: Seed, balance: bb.extend.Balance, floor: float
) -> bb.Bandit:
    """Return linear Thompson sampling with a balance and a floor."""
    policy = bb.Thompson(ALPHA, min_probability=floor)
    return bb.Bandit(arms, RIDGE_OF_PAPER, policy, balance, n_features=n_features, seed=seed)


def players() -> dict[str, Factory]:
    """Return each balance, without and with the floor."""
    return {
        name + suffix: partial(weighted, balance=balance, floor=floor)
        for suffix, floor in (("", 0.0), (FLOORED, FLOOR))
        for name, balance in BALANCES.items()
    }


def details(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return medians of regret; its differences, replication by replication; and of the estimates
    at the end error, coverage, bias and variance, ± SE, and differences of their mean squared
    error."""
    found, by = at_the_end(results)
    medians = evaluation.regrets(results).pivot(
        index="bandit", columns="environment", values="median"
    )
    names = [world.name for world in WORLDS]
    frames = {
        "Medians of regret": medians.loc[list(players()), names].round().reset_index(),
        "Regret: differences ± SE, replication by replication": differences(results, PAIRS),
        f"Mean squared error of estimates, means of all arms: differences {by}": errors(found),
    }
    for name in names:
        here = found[found["environment"] == name]
        heading = f"{name}: estimates at the end, root mean squared error and coverage (%)"
        frames[f"{heading}, {by}"] = quality(here, ACCURACY)
        frames[f"{name}: estimates at the end, bias and variance, {by}"] = quality(here, PARTS)
    return frames


def at_the_end(results: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the estimates at the horizon, and a caption: "± SE, n replications"."""
    replications, horizon, seed = replayed(results, REPLAYED)
    found = estimates(replications, horizon, seed)
    fewer = "".join(f" ({name}: {n})" for name, n in FEWER.items() if n < replications)
    return found[found["t"] == horizon], f"± SE, {replications} replications{fewer}"


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Draw regret above that without weights, without the floor and with it, and the estimates."""
    drawn: dict[str, Figure] = {}
    for suffix, tag in (("", ""), (FLOORED, "-floor")):
        runs = results[results["bandit"].isin([name + suffix for name in BALANCES])]
        drawn[f"regret{tag}"] = plots.paired_differences(runs, NONE + suffix)
    return drawn | estimate_figures(estimates(*replayed(results, REPLAYED)))


def estimate_figures(found: pd.DataFrame) -> dict[str, Figure]:
    """Draw the estimates: errors and coverage at the end; over rounds coverage, and squared bias
    and variance above those without weights, means of all arms, without the floor and with it."""
    end = found[found["t"] == found["t"].max()]
    drawn = {"errors": error_rows(end), "intervals": coverage_rows(end)}
    key = ["environment", "replication", "t"]
    rows = found.groupby([*key, "bandit"], sort=False)
    means = rows[["squared_bias", "variance", "coverage"]].mean().reset_index("bandit")
    for suffix, tag in (("", ""), (FLOORED, "-floor")):
        here = means[means["bandit"].isin([name + suffix for name in BALANCES])]
        here = here.assign(bandit=here["bandit"].str.removesuffix(suffix))
        floor = f", minimum probability {FLOOR}" * bool(suffix)
        for column in ("squared_bias", "variance", "coverage"):
            name = column.replace("_", " ")
            shown = here
            title = f"{column.capitalize()}"
            if column != "coverage":
                base = here.loc[here["bandit"] == NONE, column]
                shown = here[here["bandit"] != NONE]
                shown = shown.assign(**{column: shown[column] - base.reindex(shown.index)})
                name, title = f"difference of {name}", f"{name.capitalize()} above that of {NONE}"
            drawn[f"{column}{tag}"] = pictures.learning_curves(
                shown.reset_index(),
                "t",
                column,
                "bandit",
                "environment",
                "round t",
                name,
                f"{title}, means of all arms{floor}",
                alike=column == "coverage",
                nominal=0.95 if column == "coverage" else None,
            )
    return drawn


def error_rows(found: pd.DataFrame) -> Figure:
    """Draw by how much balancing changes the mean squared error of estimates, with a floor."""
    balances = [name + FLOORED for name in JUDGED if name != NONE]
    rows = error_gaps(found, [(name, NONE + FLOORED) for name in balances])
    return pictures.interval_rows(
        rows,
        "one",
        "error",
        "environment",
        "mean squared error above that without weights",
        f"Error of estimates with a minimum probability of {FLOOR}: mean and 95 % interval",
        nominal=0.0,
    )


def coverage_rows(found: pd.DataFrame) -> Figure:
    """Draw the coverage of both intervals with a floor, where the linear model is right."""
    names = [name + FLOORED for name in JUDGED]
    here = found[(found["environment"] == WORLDS[0].name) & found["bandit"].isin(names)]
    both = {"coverage": "posterior", "robust": "sandwich"}
    long = here.rename(columns=both).melt(["bandit", "arm"], [*both.values()], "kind", "coverage")
    cells = long.groupby(["bandit", "kind", "arm"], sort=False)["coverage"]
    order = [*names, *both.values()].index
    rows = cells.agg(coverage="mean", coverage_se="sem").reset_index()
    rows = rows.sort_values(["bandit", "kind"], key=lambda column: column.map(order))
    labels = rows["bandit"].str.removesuffix(FLOORED) + ", " + rows["kind"]
    return pictures.interval_rows(
        rows.assign(row=labels, panel="arm " + rows["arm"].astype(str)),
        "row",
        "coverage",
        "panel",
        "share of contexts with the truth inside",
        f"Coverage of 95 % intervals, well-specified, minimum probability {FLOOR}",
        nominal=0.95,
        most=1.0,
    )


@cache
def estimates(replications: int, horizon: int, seed: int = 0) -> pd.DataFrame:
    """Return `accuracy` of each world, bandit and number of rounds t, for each
    replication and arm; `robust` is the coverage with the sandwich covariance. All worlds have the
    same rounds."""
    rounds = sorted({t for t in SHOWN if t < horizon} | {horizon})
    frames = []
    for world in WORLDS:
        asked = world.sample(ASKED, np.random.default_rng(stream(seed, "contexts")))
        keys = [stream(seed, "balancing", i) for i in range(replications)]
        samples = [world.sample(horizon, np.random.default_rng(key)) for key in keys]
        for name, factory in players().items():
            balance = name.removesuffix(FLOORED)
            if balance not in JUDGED:
                continue
            fewer = FEWER.get(balance, replications)
            R = replays(replications, fewer)
            mean, sd, robust = np.empty((3, len(rounds), R, *asked.mean.shape))
            for i, sample in enumerate(samples[:R]):
                own = stream(seed, "balanced", i)
                stopped = stops(factory, world, sample, rounds, own)
                for when, bandit in enumerate(stopped):
                    found = bandit.belief.predict(asked.x)
                    mean[when, i], sd[when, i] = found.mean, found.sd
                    robust[when, i] = np.stack(
                        [sandwich(bandit, arm, asked.x) for arm in bandit.arms], axis=1
                    )
            for when, t in enumerate(rounds):
                judged = accuracy(mean[when], asked.mean, sd[when])
                other = accuracy(mean[when], asked.mean, robust[when])["coverage"]
                frames.append(judged.assign(robust=other, environment=world.name, bandit=name, t=t))
    return pd.concat(frames, ignore_index=True)


def sandwich(bandit: bb.Bandit, arm: Name, x: np.ndarray) -> np.ndarray:
    """Return sds (n,) of an arm's mean reward at x (n, d) by the sandwich covariance; ∞ before its
    first round."""
    posterior = bandit.posterior(arm)
    assert isinstance(posterior, LinearPosterior)
    played = posterior.weighted is not None and posterior.weighted.seen > 0
    return (posterior.robust() if played else posterior).sd(x)


def quality(found: pd.DataFrame, shown: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return the estimates of one world: a row for each bandit, and for each of the columns shown,
    with its name, a column for each arm. Squares are shown by their roots, coverage in %."""
    cells = found.groupby(["bandit", "arm"], sort=False)
    parts = []
    for column, name in shown:
        rows = cells[column].agg(value="mean", value_se="sem").reset_index()
        rows["column"] = [f"{name}, arm {arm}" for arm in rows["arm"]]
        if column.startswith("squared"):
            pairs = zip(rows["value"], rows["value_se"], strict=True)
            rows[["value", "value_se"]] = [root(square, se) for square, se in pairs]
        share = column in ("coverage", "robust")
        rows[["value", "value_se"]] *= 100 if share else 1
        digits = 0 if share else 4
        parts.append(evaluation.wide(rows, digits, "bandit", "column", "value").set_index("bandit"))
    return pd.concat(parts, axis=1).reset_index()


def errors(found: pd.DataFrame) -> pd.DataFrame:
    """Return by how much the mean squared error of one bandit is above another's: a row for each
    pair, a column for each world."""
    gaps = error_gaps(found, [pair for pair in PAIRS if set(pair) <= set(found["bandit"])])
    return by_pair(gaps, 5, value="error")


def error_gaps(found: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return for each pair and world by how much the mean squared error of the one is above that
    of the other, and its standard error, over the replications that both have."""
    means = found.pivot_table("squared_error", ["environment", "replication"], "bandit", sort=False)
    rows = []
    for one, other in pairs:
        for world, gap in (means[one] - means[other]).groupby(level="environment", sort=False):
            row = {"one": one, "other": other, "environment": world}
            rows.append(row | {"error": gap.mean(), "error_se": gap.sem()})
    return pd.DataFrame(rows)


STUDY = bb.extend.Study(
    title="Regret with and without balancing",
    environments=WORLDS,
    players=players(),
    table=evaluation.regrets,
    printed=partial(evaluation.wide, index="bandit", column="environment"),
    details=details,
    figures=figures,
    replications=40,
    horizon=2000,
    points=50,
    quick={"replications": 2, "horizon": 300},
)
