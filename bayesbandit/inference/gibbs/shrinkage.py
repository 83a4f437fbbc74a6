"""Hands models of scalar noise and a diagonal scale mixture to the compiled Gibbs kernel.

    r | θ, σ² ~ N(Aθ + b, σ²/w),   θ_j | τ_j², σ² ~ N(m_j, s_j τ_j²),  s_j = σ² or 1

σ² and the prior's precisions are monomials of the declared variables, which `match_kernel` finds:
the kernel's draws are theirs after a change of variables. What a half-Cauchy scale was mixed by is
drawn given the rest, which leaves the joint distribution as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bayesbandit.inference.base import improper
from bayesbandit.inference.gibbs.propriety import fits
from bayesbandit.inference.graph_analysis.quadratic import Data, Quadratic
from bayesbandit.kernels.algebra.cholesky import padded
from bayesbandit.kernels.gibbs import mixture as gibbs

SAME = 1e-12  # an sd below this share of the mean is rounding: rewards are all the same
LEAST = 1e-5  # below this share, sums of squares have lost six digits or more

Problem = gibbs.Statistics | gibbs.Rows
Values = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Monomial:
    """κ Π u^e of declared variables u: κ and e are numbers, or arrays (D,)."""

    factor: Any
    powers: Mapping[str, Any]

    def __call__(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the value, (…, D) if there is a vector."""
        product = np.asarray(self.factor, dtype=np.float64)
        for name, e in self.powers.items():
            product = product * np.asarray(values[name]) ** e
        return product

    def at(self, which: np.ndarray, but: str) -> Monomial:
        """Return the monomial at some coordinates, (D,) of booleans, without the variable `but`.

        It is one number if all are the same, with which NumPy is quicker.
        """

        def some(value: Any) -> Any:
            value = np.broadcast_to(value, which.shape)[which]
            return float(value[0]) if value.size and (value == value[0]).all() else value

        powers = {name: some(e) for name, e in self.powers.items() if name != but}
        return Monomial(some(self.factor), {name: e for name, e in powers.items() if np.any(e)})


@dataclass(frozen=True)
class HalfCauchy:
    """A variable l whose square root is half-Cauchy, as it is mixed by a variable n = `name`.

    log l and log n have the density √(l^o) n^f exp(−n^f (c₁ l^o + c₂)), where o and f are 1 or −1.
    So √(l^o) is half-Cauchy with scale √(c₂/c₁).
    """

    name: str
    o: int
    f: int
    c1: float
    c2: float

    def draw(self, level: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a draw of n given l."""
        rate = self.c1 * level**self.o + self.c2
        return np.asarray((rng.standard_exponential(level.shape) / rate) ** (1.0 / self.f))

    @property
    def square(self) -> float:
        """The square of the scale of √l."""
        return (self.c2 / self.c1) ** self.o


@dataclass(frozen=True)
class Shrinkage:
    """How the declared variables are those of the kernel.

    location: the prior's mean m₀ (D,); the kernel's θ is the declared one less m₀. sigma2,
    precision: σ² and the prior's precisions (D,). local, common: the variables of the
    moving coordinates' own scales and of λ² = lambda2_factor · u^common_power; "" where none.
    """

    quadratic: Quadratic = field(repr=False)
    prior: gibbs.Prior
    location: np.ndarray
    sigma2: Monomial
    noise: str
    precision: Monomial
    local: str
    local_mixed: HalfCauchy | None
    common: str
    common_power: float
    lambda2_factor: float
    common_mixed: HalfCauchy | None

    def loses_digits(self, A: np.ndarray, b: np.ndarray, data: Data) -> bool:
        """Return whether rewards are so far from their means under the prior that sums of squares
        lose digits."""
        reward = data[1] - b - A @ self.location
        level, spread = abs(reward.mean()) if len(reward) else 0.0, float(np.std(reward))
        return bool(SAME * level < spread < LEAST * level)

    def problem(self, A: np.ndarray, b: np.ndarray, data: Data) -> Problem:
        """Return the rows' information, for any number of chains: rewards are N(Aθ + b, σ²/w)."""
        _, reward, weight, _ = data
        reward = reward - b - A @ self.location
        problem = gibbs.problem(A, reward, weight if self.quadratic.takes_weight else None)
        if not self.prior.noise_known:
            gibbs.check_noise(problem, self.prior)
            self._check_fit(A, reward)
        return problem

    def _check_fit(self, A: np.ndarray, reward: np.ndarray) -> None:
        """Raise an error for rewards that some means fit exactly, if the noise may vanish."""
        free = A[:, ~self.prior.scaled]  # what is scaled with the noise is 0 where it vanishes
        if self.prior.noise_scale == 0.0 and fits(free, reward, np.zeros(free.shape[1])):
            label = self.quadratic.density.label(self.noise)
            reason = f"{label}: no proper posterior, {len(reward)} rows that fit perfectly"
            raise improper(self.quadratic.engine, reason)

    def natural(self, problem: Problem, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """Return precision (D, D) and shift (D,) of θ given the rest, as in the kernel."""
        d, sigma2 = len(self.location), float(self.sigma2(values))
        if isinstance(problem, gibbs.Rows):
            x = problem.xt[:, : problem.r.size]
            G, b = x @ x.T, x @ problem.r
        else:
            upper = np.triu(problem.A[:d, :d])
            G, b = upper + np.triu(upper, 1).T, problem.A[:d, padded(d)]
        precision = G / sigma2 + np.diag(self._precisions(values))
        return precision, b / sigma2 + precision @ self.location

    def _precisions(self, values: Values) -> np.ndarray:
        """Return the prior's precisions (D,) at values of the variables."""
        wide = dict(values)
        if self.local:
            wide[self.local] = np.ones(len(self.location))
            wide[self.local][self.prior.moving] = np.ravel(values[self.local])
        return np.broadcast_to(self.precision(wide), len(self.location))

    def sample(
        self,
        problem: Problem,
        state: Values,
        draws: int,
        tune: int,
        rng: np.random.Generator,
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return a chain of all variables (draws, *shape), and its last state."""
        chain = self._begin(state, rng)
        if tune:
            gibbs.sample(problem, self.prior, chain, rng, 1, tune)
        values = self._declared(gibbs.sample(problem, self.prior, chain, rng, draws), rng)
        return values, {k: np.array(v[-1]) for k, v in values.items()} if draws else dict(state)

    def _begin(self, state: Values, rng: np.random.Generator) -> gibbs.ScaleState:
        """Return the kernel's state. Auxiliary variables are drawn given the rest."""
        prior, sigma2 = self.prior, float(self.sigma2(state))
        theta = np.concatenate([np.ravel(state[k]) for k in self.quadratic.names]) - self.location
        inv_tau2 = self._precisions(state) * np.where(prior.scaled, sigma2, 1.0)
        inv_tau2 = np.where(prior.moving, inv_tau2, prior.fixed)
        lambda2 = self.lambda2_factor
        if self.common:
            lambda2 *= float(state[self.common]) ** self.common_power
        local = inv_tau2 / lambda2
        inv_nu = rng.standard_exponential(theta.size) / (1.0 + local)
        rate = prior.rate
        if self.common_mixed is not None:
            rate = rng.standard_exponential() / (prior.rate + lambda2)
        one = np.array([1.0])
        return gibbs.ScaleState(theta, inv_tau2, inv_nu, lambda2 * one, rate * one, sigma2 * one)

    def _declared(self, drawn: gibbs.Draws, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return the kernel's draws as draws of the declared variables."""
        values = dict(self.quadratic.split(drawn.theta + self.location))
        if self.noise:
            power = self.sigma2.powers[self.noise]
            values[self.noise] = (drawn.sigma2 / self.sigma2.factor) ** (1.0 / power)
        if self.common:
            level = drawn.lambda2 / self.lambda2_factor
            values[self.common] = level ** (1.0 / self.common_power)
            if self.common_mixed is not None:
                values[self.common_mixed.name] = self.common_mixed.draw(level, rng)
        if self.local:
            where, apart, inverse, shape = self._local
            column = {k: v[:, None] for k, v in values.items() if v.ndim == 1}
            s = np.where(self.prior.scaled[where], drawn.sigma2[:, None], 1.0)
            level = drawn.inv_tau2[:, where] / (s * apart(column))
            values[self.local] = (level**inverse).reshape(shape)
            if self.local_mixed is not None:
                values[self.local_mixed.name] = self.local_mixed.draw(level, rng).reshape(shape)
        return values

    @cached_property
    def _local(self) -> tuple[np.ndarray | slice, Monomial, Any, tuple[int, ...]]:
        """The moving coordinates; their precisions but for the local variable's part; its inverse
        power, and the shape of its draws."""
        moving, one = self.prior.moving, Monomial(self.precision.powers[self.local], {})
        [v] = [v for v in self.quadratic.given if v.name == self.local]
        where = slice(None) if moving.all() else moving
        inverse = 1.0 / one.at(moving, "").factor
        return where, self.precision.at(moving, self.local), inverse, (-1, *v.type.shape)
