"""Hands models of scalar noise and a diagonal scale mixture to the compiled Gibbs kernel.

    r | θ, σ² ~ N(Aθ + b, σ²/w),   θ_j | τ_j², σ² ~ N(0, s_j τ_j²),  s_j = σ² or 1

σ² and the prior's precisions are monomials of the declared variables, which `scale_mixtures` finds:
the kernel's draws are theirs after a change of variables. What a half-Cauchy scale was mixed by is
drawn given the rest, which leaves the joint distribution as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesbandit.engines.quadratic import Data, Quadratic
from bayesbandit.kernels import gibbs


@dataclass(frozen=True)
class Monomial:
    """κ Π u^e of declared variables u: κ and e are numbers, or arrays (D,)."""

    factor: Any
    powers: Mapping[str, Any]

    def __call__(self, values: Mapping[str, np.ndarray], but: str = "") -> np.ndarray:
        """Its value, (…, D) where there is a vector; `but`: a variable that counts as 1."""
        product = np.asarray(self.factor, dtype=np.float64)
        for name, e in self.powers.items():
            if name != but:
                product = product * np.asarray(values[name]) ** e
        return product


@dataclass(frozen=True)
class HalfCauchy:
    """A variable l mixed by `name` = n: l^o, n^f have density √(l^o) n^f exp(−n^f (c₁l^o + c₂)),
    so that √(l^o) is half-Cauchy of scale √(c₂/c₁)."""

    name: str
    o: int
    f: int
    c1: float
    c2: float

    def draw(self, level: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """n given l."""
        rate = self.c1 * level**self.o + self.c2
        return np.asarray((rng.standard_exponential(level.shape) / rate) ** (1.0 / self.f))

    @property
    def square(self) -> float:
        """The square of the scale of √l."""
        return (self.c2 / self.c1) ** self.o


@dataclass(frozen=True)
class Shrinkage:
    """How the declared variables are those of the kernel.

    sigma2, precision: σ² and the prior's precisions (D,). local, common: the variables of the
    moving coordinates' own scales and of λ² = lambda2_factor · u^common_power; "" where none.
    """

    prior: gibbs.Prior
    sigma2: Monomial
    noise: str
    precision: Monomial
    local: str
    local_mixed: HalfCauchy | None
    common: str
    common_power: float
    lambda2_factor: float
    common_mixed: HalfCauchy | None

    def sample(
        self, engine: Any, data: Data, state: Mapping[str, np.ndarray], draws: int, tune: int,
        rng: np.random.Generator,
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:  # fmt: skip
        """A chain of the declared variables (draws, *shape), and where it ends."""
        quadratic: Quadratic = engine.quadratic
        given: Any = [state[v.name] for v in quadratic.given]
        A, b = quadratic.linear_map(data)
        slope, curvature, _ = quadratic.curvature(b, data, given)
        problem = gibbs.problem(A, -slope / curvature, -curvature * float(self.sigma2(state)))
        if not self.prior.noise_known:
            gibbs.check_noise(problem, self.prior)
        chain = self._begin(quadratic, state, rng)
        gibbs.sample(problem, self.prior, chain, rng, 1, max(tune, 1))
        values = self._declared(
            quadratic, gibbs.sample(problem, self.prior, chain, rng, draws), rng
        )
        last = {k: np.array(v[-1]) for k, v in values.items()} if draws else dict(state)
        return {k: values[k] for k in engine.names}, last

    def _begin(
        self, quadratic: Quadratic, state: Mapping[str, np.ndarray], rng: np.random.Generator
    ) -> gibbs.State:
        """The kernel's state; auxiliaries are drawn given the rest."""
        prior, sigma2 = self.prior, float(self.sigma2(state))
        flat = {k: np.ravel(v) for k, v in state.items()}
        theta = np.concatenate([flat[k] for k in quadratic.names])
        wide = {k: self._wide(quadratic, k, v) for k, v in flat.items()}
        inv_tau2 = self.precision(wide) * np.where(prior.scaled, sigma2, 1.0)
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
        return gibbs.State(theta, inv_tau2, inv_nu, lambda2 * one, rate * one, sigma2 * one)

    def _wide(self, quadratic: Quadratic, name: str, value: np.ndarray) -> np.ndarray:
        """A local variable's values (…, m) in the place of its coordinates (…, D)."""
        if name != self.local:
            return value
        wide = np.ones((*value.shape[:-1], quadratic.dim))
        wide[..., self.prior.moving] = value
        return wide

    def _declared(
        self, quadratic: Quadratic, drawn: gibbs.Draws, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """The kernel's draws as draws of the declared variables."""
        values = dict(quadratic.split(drawn.theta))
        moving = self.prior.moving
        if self.noise:
            power = self.sigma2.powers[self.noise]
            values[self.noise] = (drawn.sigma2 / self.sigma2.factor) ** (1.0 / power)
        if self.common:
            level = drawn.lambda2 / self.lambda2_factor
            values[self.common] = level ** (1.0 / self.common_power)
            if self.common_mixed is not None:
                values[self.common_mixed.name] = self.common_mixed.draw(level, rng)
        if self.local:
            s = np.where(self.prior.scaled, drawn.sigma2[:, None], 1.0)
            column = {k: v[:, None] for k, v in values.items() if v.ndim == 1}
            level = (drawn.inv_tau2 / s / self.precision(column, but=self.local))[:, moving]
            power = np.broadcast_to(self.precision.powers[self.local], moving.shape)[moving]
            [v] = [v for v in quadratic.given if v.name == self.local]
            values[self.local] = (level ** (1.0 / power)).reshape(-1, *v.type.shape)
            if self.local_mixed is not None:
                n = self.local_mixed.draw(level, rng)
                values[self.local_mixed.name] = n.reshape(-1, *v.type.shape)
        return values
