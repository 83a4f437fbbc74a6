"""Results of engines: the distribution of a declared model's variables, or draws from it."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.forms import picked

if TYPE_CHECKING:
    import pymc as pm

    from bayesbandit.inference.plan import Plan

Rows = Mapping[str, Array]  # x (n, d), reward, weight, arm (n,), by role
Draws = Mapping[str, Array]  # of variables, or of what a sampler tells, by name

MIN_DRAWS_TO_JUDGE = 64  # of the one chain of a bandit
MIN_ESS_SHARE = 0.05  # the least ESS/S
MAX_RHAT = 1.01  # Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021)
MIN_ESS = 400.0  # the same


Moments = tuple[Any, Any]  # of a number, mean and sd; of an array, mean and covariance (k, k)


MOMENT_DRAWS = 4000  # for moments that have no closed form, of a posterior that has one


class PoorDiagnostics(UserWarning):
    """Draws whose diagnostics are poor, so that they may not represent the posterior."""


@dataclass(frozen=True)
class Diagnostics:
    """How far draws can be trusted.

    ess, rhat: the worst of each variable's elements: bulk or tail effective sample size, whichever
    is smaller, and rank-normalised R̂. divergences, acceptance: of a Hamiltonian sampler's
    trajectories, else None.
    """

    ess: Mapping[str, float]
    rhat: Mapping[str, float]
    divergences: int | None = None
    acceptance: float | None = None

    def complaints(self) -> list[str]:
        """Return what is wrong, one sentence each."""
        complaints = []
        if unmixed := {k: v for k, v in self.rhat.items() if not (v <= MAX_RHAT or math.isnan(v))}:
            name = max(unmixed, key=lambda k: unmixed[k])
            complaints.append(f"R-hat of '{name}' is {unmixed[name]:.3f} (> {MAX_RHAT})")
        if few := {k: v for k, v in self.ess.items() if not v >= MIN_ESS}:
            name = min(few, key=lambda k: few[k])
            complaints.append(
                f"the effective sample size of '{name}' is {few[name]:.0f} (< {MIN_ESS:.0f})"
            )
        if self.divergences:
            complaints.append(f"{self.divergences} trajectories diverged")
        return complaints

    def warn(self, what: str, stacklevel: int = 2) -> None:
        """Warn once of all that is wrong, if anything is."""
        if complaints := self.complaints():
            advice = "draw more, or reparametrise the model"
            message = f"{what}: {'; '.join(complaints)}: {advice}"
            warnings.warn(message, PoorDiagnostics, stacklevel=stacklevel + 1)


class Known(ABC):
    """A posterior of a model's free variables, in closed form or as draws.

    Its methods take the plan that found it, for what the model computes from the variables
    (`outcomes`), and for how an exact engine arranges them (`method`). evidence: the log marginal
    likelihood of the rewards; None if it is not known. diagnostics: empty for a closed form. stats:
    the sampler's statistics of each draw, (chain, draw).
    """

    stats: Draws = MappingProxyType({})

    @property
    def evidence(self) -> float | None:
        return None

    @property
    def diagnostics(self) -> Diagnostics:
        return Diagnostics({}, {})

    @abstractmethod
    def samples(self, plan: Plan, size: int, rng: np.random.Generator) -> dict[str, Array]:
        """Return draws of the free variables by name, (size, *shape)."""

    def chains(
        self, plan: Plan, chains: int, draws: int, rng: np.random.Generator
    ) -> dict[str, Array]:
        """Return draws by name, (chains, draws, *shape); a sampler returns its own."""
        flat = self.samples(plan, chains * draws, rng)
        return {k: v.reshape(chains, draws, *v.shape[1:]) for k, v in flat.items()}

    @abstractmethod
    def rewards(self, plan: Plan, x: Array, size: int, rng: np.random.Generator) -> Array:
        """Return mean rewards at x (n, d) under draws: (size, n), or (size, n, K) over arms."""

    @abstractmethod
    def moments(self, plan: Plan, x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return means and sds of the mean rewards at x (n, d): (n,) each, or (n, K)."""

    @abstractmethod
    def coefficients(self, plan: Plan, rng: np.random.Generator) -> dict[str, Moments]:
        """Return the moments of variables and deterministic quantities by name."""

    def marginals(self, plan: Plan) -> dict[str, Any]:
        """Return marginal distributions of scipy.stats, by name, of variables that have them.

        The parameters of a distribution have the variable's shape.
        """
        return {}


@dataclass(frozen=True)
class SampledDraws(Known):
    """Draws of the free variables.

    values: by name, (chain, draw, *shape). state: where the engine's next run may start.
    independent: whether the draws are independent, as those of an approximation are. stats: the
    sampler's statistics of each draw (chain, draw), by ArviZ's names.
    """

    values: Draws
    state: object = field(default=None, repr=False)
    divergences: int | None = None
    acceptance: float | None = None
    independent: bool = False
    stats: Draws = field(default_factory=dict, repr=False)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """ESS and R̂ of each variable, and the sampler's divergences and acceptance."""
        total = float(math.prod(next(iter(self.values.values())).shape[:2]))
        if self.independent:
            return Diagnostics(dict.fromkeys(self.values, total), dict.fromkeys(self.values, 1.0))
        worst = {k: _worst(v) for k, v in self.values.items()}
        return Diagnostics(
            {k: ess for k, (ess, _) in worst.items()},
            {k: rhat for k, (_, rhat) in worst.items()},
            self.divergences,
            self.acceptance,
        )

    def flat(self, plan: Plan) -> dict[str, Array]:
        """Return the draws of all chains, by name, (S, *shape)."""
        draws = {k: self.values[k] for k in plan.outcomes.names}
        return {k: v.reshape(-1, *v.shape[2:]) for k, v in draws.items()}

    def for_moments(self, plan: Plan) -> dict[str, Array]:
        """Return the values by name, (S, *shape), whose moments are the posterior's."""
        return self.flat(plan)

    def samples(self, plan: Plan, size: int, rng: np.random.Generator) -> dict[str, Array]:
        """Pick draws at random."""
        flat = self.flat(plan)
        chosen = rng.choice(len(next(iter(flat.values()))), size)
        return picked(flat, chosen)

    def chains(
        self, plan: Plan, chains: int, draws: int, rng: np.random.Generator
    ) -> dict[str, Array]:
        """Return its own draws: copies, which may be changed."""
        return {k: self.values[k].copy() for k in plan.outcomes.names}

    def rewards(self, plan: Plan, x: Array, size: int, rng: np.random.Generator) -> Array:
        """Pick draws at random, without repetition up to their number."""
        flat = self.flat(plan)
        S = len(next(iter(flat.values())))
        chosen = rng.choice(S, size, replace=size > S)
        return plan.outcomes.mean_reward(picked(flat, chosen), x)

    def moments(self, plan: Plan, x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        means = plan.outcomes.mean_reward(self.for_moments(plan), x)
        return means.mean(axis=0), means.std(axis=0, ddof=1)

    def coefficients(self, plan: Plan, rng: np.random.Generator) -> dict[str, Any]:
        flat = self.for_moments(plan)
        return {k: moments(v) for k, v in (flat | plan.outcomes.rest(flat)).items()}


def mixed_badly(values: Array) -> str | None:
    """Return what is wrong with one chain's draws (S, m) of m numbers; None if nothing is.

    The effective sample size is that of the two halves of the chain: it is small, too, if these
    differ, as they do where a chain has not settled.
    """
    from arviz_stats.base import array_stats

    S = len(values)
    values = values[:, np.ptp(values, axis=0) > 0.0]
    if S < MIN_DRAWS_TO_JUDGE or not values.size:
        return None
    halves = values[: S - S % 2].reshape(2, S // 2, -1)
    ess = float(array_stats.ess(halves, method="bulk", chain_axis=0, draw_axis=1).min())
    if ess < MIN_ESS_SHARE * S:
        return f"the effective sample size of a mean reward is {ess:.0f} of {S} draws"
    return None


def _worst(values: Array) -> tuple[float, float]:
    """Return the smallest effective sample size and the largest R̂ of the elements of draws (chain,
    draw, …).

    Elements that do not vary are left out. NaN: not defined.
    """
    from arviz_stats.base import array_stats

    flat = values.reshape(*values.shape[:2], -1)
    flat = flat[..., np.ptp(flat, axis=(0, 1)) > 0.0]
    if flat.shape[-1] == 0 or flat.shape[1] < 4:  # the least that they are defined for
        return math.nan, math.nan
    kwargs = {"chain_axis": 0, "draw_axis": 1}
    # of ranks, and of the 5 % and 95 % quantiles: the smaller of the two, as the paper advises
    tails = {"bulk": None, "tail": (0.05, 0.95)}
    ess = [array_stats.ess(flat, method=m, prob=p, **kwargs).min() for m, p in tails.items()]
    rhat = array_stats.rhat(flat, **kwargs).max() if len(flat) > 1 else math.nan
    return float(min(ess)), float(rhat)


def moments(draws: Array) -> Moments:
    """Return mean and sd of draws (S,); of draws (S, *shape) the mean, and the covariance of all
    elements."""
    flat = draws.reshape(len(draws), -1)
    return described(draws.mean(axis=0), np.atleast_2d(np.cov(flat, rowvar=False)))


def described(mean: Array, covariance: Array) -> Moments:
    """Return a number's mean and sd; an array's mean and covariance."""
    if np.ndim(mean) == 0:
        return float(mean), float(math.sqrt(covariance[0, 0]))
    return mean, covariance


def check_draws(drawn: object, built: pm.Model, engine: str, shape: tuple[int, int]) -> None:
    """Check what an engine gave: draws of every free variable of a model, in the right shape.

    shape: the numbers of chains and of draws. Raise TypeError unless `drawn` is `SampledDraws`, and
    ValueError for a variable whose draws are missing, of another shape or NaN.
    """
    if not isinstance(drawn, SampledDraws):
        raise TypeError(f"{engine}: sample must give SampledDraws; got {drawn!r}")
    for v in built.free_RVs:
        if v.name not in drawn.values:
            raise ValueError(f"{engine}: no draws of {v.name!r}; there are {list(drawn.values)}")
        values = np.asarray(drawn.values[v.name])
        wanted = *shape, *v.type.shape
        fits = len(values.shape) == len(wanted) and all(
            w in (None, s) for s, w in zip(values.shape, wanted, strict=True)
        )
        if not fits:
            raise ValueError(f"{engine}: draws of {v.name!r} must be {wanted}; got {values.shape}")
        if np.isnan(values).any():
            raise ValueError(f"{engine}: draws of {v.name!r} are not numbers")
