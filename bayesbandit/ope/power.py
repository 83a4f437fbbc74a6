"""Simulations that show how long an adaptive experiment should be and how much it must explore."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.player import names_of
from bayesbandit.bandit.presets.linear import LinTS
from bayesbandit.checks import Name, integer, name_array, number, one_of, processes
from bayesbandit.environments.base import Environment, Sample
from bayesbandit.ope.estimate import estimate
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.sequences import always_valid_p
from bayesbandit.ope.targets import Unsupported
from bayesbandit.runtime.progress import bar

MAX_BATCHES = 50  # number of batches of the longest horizon, if `batch` is not given
TRUTH_ROUNDS = 10_000  # simulated rounds from which the true values are computed
DIFFERENT_TRUTH_SE = 6.0  # standard errors beyond which two samples have other true values


@dataclass(frozen=True)
class Arms:
    """An environment of arms without contexts, with these mean rewards.

    noise: the rewards' standard deviation; None: rewards are 0 or 1.
    """

    means: Mapping[Name, float]
    noise: float | None = None
    name: str = "arms"

    @property
    def arms(self) -> tuple[Name, ...]:
        return tuple(self.means)

    @property
    def n_features(self) -> int:
        return 0

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        """Draw `horizon` rounds."""
        T = integer(horizon, "horizon", least=1)
        mu = np.array(list(self.means.values()))
        mean = np.tile(mu, (T, 1))
        if self.noise is None:
            reward = (rng.random(mean.shape) < mean).astype(np.float64)
        else:
            reward = mean + self.noise * rng.normal(size=mean.shape)
        return Sample(np.empty((T, 0)), mean, reward)


@dataclass(frozen=True, repr=False)
class Power:
    """What an adaptive experiment would show and cost; made by `power`.

    table: a row for each minimum probability and horizon, with standard errors in columns `_se`.
        `power`: how often the interval of `one` minus `other` excludes 0 on the right side;
        `wrong`: on the wrong side, or on any side if the arms are equal. `always`: how often the
        always-valid test finds the difference in some round, where you may stop. `refused`: how
        often there is no interval, which counts as nothing found. `width` of the interval, and its
        `coverage` of the true difference. `lost`: the regret, the sum of mean rewards by which the
        bandit falls short of each round's best arm.
    runs: a row for each run, minimum probability and horizon. difference: the true one, `one`
        minus `other`.
    """

    table: pd.DataFrame
    runs: pd.DataFrame
    one: Name
    other: Name
    difference: float

    def __repr__(self) -> str:
        n = self.runs["replication"].nunique()
        head = f"Power({self.one!r} − {self.other!r} = {self.difference:.4g}, {n} replications)"
        return f"{head}\n{self.table.round(3).to_string(index=False)}"


def power(
    world: Environment | Mapping[Name, float],
    bandit: Callable[..., Bandit] = LinTS,
    *,
    min_probabilities: Iterable[float] = (0.01, 0.05, 0.1),
    horizons: Iterable[int] = (500, 1_000, 2_000),
    against: Name | tuple[Name, Name] | None = None,
    noise: float | None = None,
    batch: int | None = None,
    level: float = 0.95,
    replications: int = 200,
    seed: int = 0,
    jobs: int = 1,
    progress: bool = True,
) -> Power:
    """Simulate adaptive experiments: what they would show, and what they would cost.

    world: an environment, the same in all samples, or the arms' mean rewards by name, without
        contexts.
    bandit: a preset, with settings if needed: `partial(bb.LinTS, alpha=0.5)`.
    min_probabilities: of an arm. horizons: numbers of rounds.
    against: the arm to compare the best arm with; or a pair of arms. Default: the second best.
    noise: the rewards' standard deviation, if means are given; None: rewards are 0 or 1.
    batch: rounds between two updates. Default: a fiftieth of the longest horizon.
    level: of intervals and tests. jobs: processes (−1: all cores); they change no number.
    progress: show a progress bar on stderr.

    A replication has the same contexts and rewards for all minimum probabilities. A shorter
    horizon is the beginning of a longer one.
    """
    from joblib import Parallel, delayed

    world = _world(world, noise)
    integer(seed, "seed")
    floors = _several(min_probabilities, "min_probabilities")
    ends = sorted(_several(horizons, "horizons"))
    for floor in floors:
        number(floor, "each of min_probabilities", least=0, most=1 / len(world.arms))
    for end in ends:
        integer(end, "a horizon", least=2)
    number(level, "level", above=0, below=1)
    integer(replications, "replications", least=2)
    processes(jobs)
    size = -(-ends[-1] // MAX_BATCHES) if batch is None else integer(batch, "batch", least=1)
    example = bandit(world.arms, world.n_features, seed=0, min_probability=floors[0])
    if not isinstance(example, Bandit):
        raise TypeError(f"bandit must be a preset, which makes a bandit; it made {example!r}")
    mean, again = (
        world.sample(TRUTH_ROUNDS, np.random.default_rng(_stream(seed, *key))).mean
        for key in (("truth",), ("truth", "again"))
    )
    pair = _pair(world.arms, mean.mean(axis=0), against)
    truth = _truth(world, pair, mean, again)

    run = partial(_run, world, bandit, floors, ends, pair, truth, size, level, seed)
    rows = list[dict[str, Any]]()
    work = (delayed(run)(i) for i in range(replications))
    with bar("replications", replications, shown=progress) as advance:
        for results in Parallel(n_jobs=jobs, return_as="generator")(work):
            rows += results
            advance(1)
    runs = pd.DataFrame(rows)
    return Power(_summary(runs), runs, *pair, truth)


def _world(world: Any, noise: float | None) -> Environment:
    """Return an environment: the given one, or arms with the given mean rewards."""
    if not isinstance(world, Mapping):
        if not isinstance(world, Environment):
            raise TypeError(f"power takes an environment, or mean rewards by arm; got {world!r}")
        if noise is not None:
            raise ValueError("noise is for mean rewards by arm: an environment has its own")
        return world
    if len(world) < 2:
        raise ValueError(f"there must be two arms or more; got {list(world)!r}")
    if noise is not None:
        number(noise, "noise", above=0)
    limits = {"least": 0, "most": 1} if noise is None else {}
    for arm, mean in world.items():
        number(mean, f"the mean reward of {arm!r}", **limits)
    return Arms(dict(world), noise)


def _several(values: Iterable[Any], what: str) -> list[Any]:
    """Return numbers as a list; raise ValueError if there are none, or two are equal."""
    numbers = list(values)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"{what} must be one or more different numbers; got {numbers!r}")
    return numbers


def _pair(arms: Sequence[Name], value: np.ndarray, against: Any) -> tuple[Name, Name]:
    """Return the two arms whose difference is asked for."""
    best, second, *_ = (arms[k] for k in np.argsort(-value, kind="stable"))
    pair = against if isinstance(against, tuple) else (best, second if against is None else against)
    if len(pair) != 2:
        raise ValueError(f"against must be an arm or two of {list(arms)!r}; got {against!r}")
    one, other = (one_of(arm, "against", tuple(arms)) for arm in pair)
    if one == other:
        raise ValueError(f"against must be another arm than the best, {best!r}; got {against!r}")
    return one, other


def _truth(
    world: Environment, pair: tuple[Name, Name], mean: np.ndarray, again: np.ndarray
) -> float:
    """Return the true difference of a pair. Raise ValueError if two samples' means have others."""
    one, other = (world.arms.index(arm) for arm in pair)
    gaps = [part[:, one] - part[:, other] for part in (mean, again)]
    truth, second = (float(gap.mean()) for gap in gaps)
    se = np.sqrt(sum(gap.var() / len(gap) for gap in gaps))
    if abs(truth - second) > DIFFERENT_TRUTH_SE * se + 1e-9 * abs(truth):
        raise ValueError(
            f"{world.name} has other mean rewards in every sample, so there is no true difference "
            f"of {pair[0]!r} and {pair[1]!r}: it is {truth:.4g} in one and {second:.4g} in another"
        )
    return truth


def _stream(seed: int, *key: Any) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed, *(b for part in key for b in str(part).encode())])


def _run(
    world: Environment, bandit: Callable[..., Bandit], floors: Sequence[float],
    horizons: Sequence[int], pair: tuple[Name, Name], truth: float, batch: int, level: float,
    seed: int, i: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the results of one replication, a row for each floor and horizon."""
    from threadpoolctl import threadpool_limits

    rows = []
    with threadpool_limits(limits=1):
        sample = world.sample(horizons[-1], np.random.default_rng(_stream(seed, "world", i)))
        if len(sample.x) < horizons[-1]:
            raise ValueError(
                f"{world.name} has {len(sample.x)} rounds; the longest horizon is {horizons[-1]}"
            )
        for floor in floors:
            player = bandit(
                world.arms, world.n_features, seed=_stream(seed, "bandit", i), min_probability=floor
            )
            log = simulated(player, sample, batch)
            loss = sample.mean.max(axis=1) - sample.mean[np.arange(len(log)), log.played]
            for end in horizons:
                keys = {"min_probability": floor, "horizon": end, "replication": i}
                result = _found(log[:end], pair, truth, level)
                rows.append(keys | result | {"lost": float(loss[:end].sum())})
    return rows


def simulated(bandit: Bandit, sample: Sample, batch: int) -> Log:
    """Return the log of a bandit that plays a sample and learns after each batch."""
    arms = list(bandit.arms)
    if len(sample.warm_arm):
        names = [arms[k] for k in sample.warm_arm]
        bandit.update(sample.warm_x, names, sample.warm_reward, sample.warm_propensity)
    chosen, earned, e = [], [], []
    for start in range(0, len(sample.x), batch):
        rows = slice(start, start + batch)
        decision = bandit.choose(sample.x[rows])
        k = names_of(bandit, decision.arm, arms, len(sample.x[rows]))
        reward = sample.reward[rows][np.arange(len(k)), k]
        e.append(decision.probabilities)
        bandit.observe(decision, reward)
        chosen.append(k)
        earned.append(reward)
    k, reward, p = map(np.concatenate, (chosen, earned, e))
    label = np.arange(len(k)) // batch
    return Log(sample.x, name_array(tuple(arms))[k], reward, p, arms=arms, batch=label)


def _found(log: Log, pair: tuple[Name, Name], truth: float, level: float) -> dict[str, Any]:
    """Return what an analysis of the log shows of the difference of a pair."""
    nothing = {"power": 0.0, "wrong": 0.0, "always": 0.0, "refused": 1.0}
    nothing |= dict.fromkeys(("estimate", "width", "coverage"), np.nan)
    try:
        result = estimate(log, pair, level=level, force=True)
    except Unsupported:
        return nothing
    if result.refused or result.sums is None:
        return nothing
    above = result.low > 0
    below = result.high < 0
    p_above, p_below = always_valid_p(result.sums, 1 - level)
    right, wrong, p = (above, below, p_above) if truth > 0 else (below, above, p_below)
    return {
        "power": float(right and truth != 0),
        "wrong": float(wrong or (right and truth == 0)),
        "always": float(p < 1 - level and truth != 0),
        "refused": 0.0,
        "estimate": result.value,
        "width": result.high - result.low,
        "coverage": float(result.low <= truth <= result.high),
    }


def _summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the means of runs, and their standard errors, by minimum probability and horizon."""
    cells = runs.groupby(["min_probability", "horizon"], sort=False)
    columns = {}
    for name in ("power", "wrong", "always", "refused", "width", "coverage", "lost"):
        columns[name] = cells[name].mean()
        if name != "refused":
            columns[f"{name}_se"] = cells[name].sem()
    return pd.DataFrame(columns).reset_index()
