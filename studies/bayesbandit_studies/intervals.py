"""Coverage of bandits' intervals: estimates and standard deviations against the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayesbandit.checks import integer, number
from bayesbandit.environments.base import Environment
from bayesbandit_studies import Factory

LEVELS = (0.5, 0.8, 0.95)


@dataclass(frozen=True)
class Beliefs:
    """A bandit's estimates after each of R runs.

    mean, sd (R, m, K): posterior means and standard deviations of mean rewards at m contexts.
    truth (R, m, K): NaN where it is not known.
    pulls (R, K): how many rounds each arm had.
    """

    mean: np.ndarray
    sd: np.ndarray
    truth: np.ndarray
    pulls: np.ndarray

    def at(self, contexts: np.ndarray) -> Beliefs:
        """Return the beliefs at some of the m contexts. contexts: their numbers, or a mask (m,)."""
        mean, sd, truth = (part[:, contexts] for part in (self.mean, self.sd, self.truth))
        return Beliefs(mean, sd, truth, self.pulls)

    def of_arm(self, k: np.ndarray) -> Beliefs:
        """Return the beliefs about one arm of each run; k (R,): the arms' numbers."""
        runs = np.arange(len(self.mean))
        k = np.asarray(k)
        mean, sd, truth = (part[runs, :, k, None] for part in (self.mean, self.sd, self.truth))
        return Beliefs(mean, sd, truth, self.pulls[runs, k, None])


def after_runs(
    bandits: Mapping[str, Factory],
    environment: Environment,
    runs: int,
    horizon: int | None = None,
    x: np.ndarray | None = None,
    log_of: Factory | None = None,
    seed: int = 0,
) -> dict[str, Beliefs]:
    """Return each bandit's beliefs after `runs` runs of an environment, with a new sample each.

    x: contexts (m, d) to predict at; the truth is then not known. The default is the environment's
    test contexts. log_of: a bandit that plays instead; the others then learn from its log, with its
    propensities. The warm-start rounds of the environment are not used.
    """
    integer(runs, "runs", least=1)
    parts: dict[str, list[tuple[np.ndarray, ...]]] = {name: [] for name in bandits}
    for i in range(runs):
        sample = environment.sample(horizon, np.random.default_rng([seed, i]))
        asked, truth = (sample.test_x, sample.test_mean) if x is None else (np.asarray(x), None)
        if asked is None:
            raise ValueError(f"{environment.name} has no test contexts: give x, contexts to ask at")
        truth = np.full((len(asked), len(environment.arms)), np.nan) if truth is None else truth
        setting = environment.arms, environment.n_features
        stream = np.random.SeedSequence([seed, i, 1])
        log = None
        if log_of is not None:
            (logging := log_of(*setting, seed=stream)).play(sample.x, sample.reward)
            log = logging.history
        for name, factory in bandits.items():
            bandit = factory(*setting, seed=stream)
            if log is None:
                bandit.play(sample.x, sample.reward, every=len(sample.x))
            else:
                bandit.update(log.x, log.arm, log.reward, log.propensity)
            pulls = [np.sum(bandit.history.arm == arm) for arm in environment.arms]
            prediction = bandit.belief.predict(asked)
            parts[name].append((prediction.mean, prediction.sd, truth, np.array(pulls)))
    return {name: Beliefs(*map(np.stack, zip(*runs, strict=True))) for name, runs in parts.items()}


def intervals(
    beliefs: Beliefs,
    truth: np.ndarray | None = None,
    arms: Sequence[object] | None = None,
    levels: Sequence[float] = LEVELS,
    beside: Beliefs | None = None,
) -> pd.DataFrame:
    """Return actual errors of estimates beside the errors that their sds claim, by arm.

    truth: (m, K), where `beliefs` have none.
    arms: the rows' names; if it is empty, one row is for all arms together.
    Columns, each a mean over contexts: `pulls`, `bias`, the errors' `actual_sd` over runs, the
    `claimed_sd`, the `rmse`, and for each level the per cent of normal intervals that contain the
    truth. Biases and coverages have standard errors over runs, `…_se`.
    beside: other beliefs about the same runs; `mse_above` is the mean squared error beyond theirs,
    with a paired standard error.
    Raise ValueError for fewer than 2 runs, or without the truth.
    """
    from scipy.stats import norm

    error = beliefs.mean - (beliefs.truth if truth is None else truth)
    if (R := len(error)) < 2:
        raise ValueError(f"intervals need at least 2 runs; got {R}")
    if np.isnan(error).any():
        raise ValueError("the truth is not known at your contexts: give truth (m, K)")
    other = None
    if beside is not None:
        other = beside.mean - (beside.truth if truth is None else truth)
        if other.shape != error.shape:
            raise ValueError(f"beside must be of {error.shape}; got {other.shape}")
    K = error.shape[2]
    names = list(range(K) if arms is None else arms)
    if len(names) not in (0, K) or len(set(names)) < len(names):
        raise ValueError(f"arms must be {K} different names, or none; got {names}")
    for level in levels:
        number(level, "each of levels", above=0, below=1)
    rows = {}
    for name, some in {n: [k] for k, n in enumerate(names)}.items() or [("all", [*range(K)])]:
        e = error[:, :, some]
        sd = beliefs.sd[:, :, some]
        row = {"pulls": beliefs.pulls[:, some].mean(), **_over_runs("bias", e)}
        row |= {"actual_sd": float(np.sqrt(e.var(axis=0, ddof=1).mean())), "claimed_sd": sd.mean()}
        row["rmse"] = float(np.sqrt((e**2).mean()))
        if other is not None:
            row |= _over_runs("mse_above", e**2 - other[:, :, some] ** 2)
        for level in levels:
            inside = np.abs(e) <= norm.ppf(0.5 + level / 2) * sd
            row |= _over_runs(f"{100 * level:g}%", 100.0 * inside)
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(index="arm")


def _over_runs(name: str, values: np.ndarray) -> dict[str, float]:
    """Return the mean of values (R, m, k), and its standard error over the R runs."""
    runs = values.mean(axis=(1, 2))
    return {name: float(runs.mean()), f"{name}_se": float(runs.std(ddof=1) / np.sqrt(len(runs)))}
