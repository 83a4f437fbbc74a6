"""The regressors of declared linear-Gaussian models.

A model has mean reward A(x, arm)θ + b, rewards N(mean, σ²/w) and prior θ ~ N(m₀, (LL')⁻¹), or the
normal-inverse-gamma prior. With θ = m₀ + Wφ and W = L⁻ᵀ, the reward minus A m₀ + b is z'φ plus
noise, with z = W'A' and φ ~ N(0, I). Where θ walks, φ = θ − m₀, so that the steps of φ are those
of θ, and φ has the prior of θ. Where each coordinate of θ multiplies one column of [x 1], φ is θ in
the order of the columns, and kernels learn the contexts as they are.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from bayesbandit.beliefs.linear import Ridge
from bayesbandit.beliefs.memory import FOR_EVER, Memory
from bayesbandit.beliefs.regressions import FeatureMap, Regressions
from bayesbandit.beliefs.ridge_arms import RidgeArms
from bayesbandit.inference.base import NotFinite
from bayesbandit.inference.exact.distributions import Gaussian, StudentT
from bayesbandit.inference.plan import Plan
from bayesbandit.posteriors.posterior import Posterior

Array = np.ndarray


def regressions(
    plan: Plan, n_arms: int, normalize: bool = False, memory: Memory = FOR_EVER
) -> Regressions:
    """Return the belief about arms with a declared model that streams, before any data."""
    place = columns(plan)
    features = Mapped(plan, memory) if place is None else InColumns(plan, memory, place)
    joint = plan.model.takes_arm
    return Regressions(features, n_arms, plan.n_features, normalize, joint=joint)


class DeclaredFeatures(FeatureMap):
    """Regressors of a declared model with θ = m₀ + Wφ.

    centre m₀ (D,), basis W (D, D), and its inverse transposed, `root` (D, D): the precision B of φ
    is root B root' of θ.
    """

    plan: Plan
    centre: Array
    basis: Array
    root: Array

    def coordinates(self) -> list[Array]:
        return [self.basis, self.centre]

    def distribution(self, ridges: RidgeArms, k: int) -> Gaussian | StudentT:
        """Return the posterior distribution of θ for arm k.

        Where the noise is unknown, its precision is that at a noise scale of 1.
        """
        noise, head = self.plan.method.noise or 1.0, ridges.head[k]
        mean = self.centre + self.basis @ ridges.coefficients(k)
        precision = self.root @ (ridges.precision(k) / noise) @ self.root.T
        try:
            L = cholesky(precision, lower=True)
        except LinAlgError as error:
            raise ValueError(
                f"{self.plan.model.name}: the precision of the coefficients' posterior must have "
                "directions that float64 tells apart; got a diagonal from "
                f"{np.diag(precision).min():.3g} to {np.diag(precision).max():.3g}. "
                "bandit.belief.predict(x) tells of mean rewards"
            ) from error
        if not self.plan.method.learns_noise:
            return Gaussian(mean, precision, L, np.nan)
        shape = 0.5 * float(head.df)
        return StudentT(mean, precision, L, shape, shape * float(head.sigma2) / noise, np.nan)

    def posterior(
        self, ridges: RidgeArms, k: int, rows: dict[str, Array] | None, fades: bool
    ) -> Posterior:
        return Posterior(self.plan, rows or {}, self.distribution(ridges, k), 0)


class InColumns(DeclaredFeatures):
    """Contexts as they are. place (D,): the column of [x 1] that each coordinate of θ multiplies.

    The model is a `Ridge` with the prior of θ, or the one with the same posterior if there is one.
    """

    def __init__(self, plan: Plan, memory: Memory, place: Array) -> None:
        self.plan = plan
        model, self.known = ridge(plan), None
        if model is None:
            model, prior = regression(plan, plan.n_features < len(place))
            column = np.argsort(place)
            precision = plan.method.noise * prior.precision[np.ix_(column, column)]
            self.known = prior.mean[column], precision
        super().__init__(model.remembering(memory), plan.n_features)
        self.centre = np.zeros(len(place))
        self.basis = self.root = np.eye(len(place))[place]


class Mapped(DeclaredFeatures):
    """Features in the coordinates in which φ ~ N(0, I), or in which it walks as θ does."""

    plain = False

    def __init__(self, plan: Plan, memory: Memory) -> None:
        self.plan, engine = plan, plan.method
        model, prior = regression(plan, False)
        super().__init__(model.remembering(memory), engine.dim)
        self.centre = prior.mean
        self.root = prior.cholesky
        if memory.drift:
            self.root = np.eye(engine.dim)
            self.known = np.zeros(engine.dim), (engine.noise or 1.0) * prior.precision
        self.basis = solve_triangular(self.root, np.eye(engine.dim), lower=True).T
        features = engine.form.features
        self.map = features and features.of(self.centre, self.basis)

    def of_arms(self, n_arms: int) -> Mapped:
        return Mapped(self.plan.of_arms(n_arms), self.model.memory)

    def coordinates(self) -> list[Array]:
        map = self.map
        parts = () if map is None else (map.C, map.a, map.c, map.e)
        return [*super().coordinates(), *parts]

    def __call__(self, x: Array, arm: Array | None = None) -> tuple[Array, Array]:
        if self.map is not None:
            return self.map(x, arm)
        A, b = self.plan.method.linear_map(x, arm)
        return A @ self.basis, A @ self.centre + b

    def observed(
        self, x: Array, arm: Array, reward: Array, weight: Array | None
    ) -> tuple[Array, Array]:
        """Return rows z (n, D) and rewards (n,) of the regression of φ.

        A row with its own precision πw becomes a row √π z, √π y of variance 1/w.
        """
        own = arm if self.plan.model.takes_arm else None
        z, offset = self(x, own)
        if self.plan.method.noise is not None:
            return z, reward - offset
        one = np.ones(len(x)) if weight is None else weight
        data = {"x": x, "reward": reward, "weight": one, "arm": arm}
        try:
            y, precision = self.plan.method.observations(x, reward, weight, own)
        except NotFinite:
            self.plan.check_possible(data)
            raise
        self.plan.check_possible(data, possible=True)  # PyMC would cut off the fraction of a count
        root = np.sqrt(precision / one)
        return z * root[:, None], (y - offset) * root


def columns(plan: Plan) -> Array | None:
    """Return the column of [x 1] that each coordinate of θ multiplies, (D,).

    None if the mean reward is not a sum of columns with one coordinate each.
    """
    features = plan.method.form.features
    if plan.model.takes_arm or features is None or features.has_offset:
        return None
    if plan.method.noise is None:
        return None
    C, D = features.C, len(features.a)
    map = np.vstack([C, features.a])
    used = map.sum(axis=1) if np.isin(map, (0.0, 1.0)).all() else np.zeros(len(map))
    one_each = (map.sum(axis=0) == 1.0).all() and (used[:D] == 1.0).all() and len(C) <= D
    return map.argmax(axis=0) if one_each else None


def ridge(plan: Plan) -> Ridge | None:
    """Return the `Ridge` with the same posterior as a declared model; None if there is none.

    There is one if the mean reward is x'θ and the prior θ ~ N(0, (σ²/λ) I). The noise variance is
    known, or has the inverse-gamma prior.
    """
    engine = plan.method
    if plan.model.takes_arm or plan.model.takes_weight != plan.uses_weight:
        return None
    if not (engine.identity_map and engine.ridge):
        return None
    if engine.learns_noise:
        return Ridge(engine.ridge, "nig", intercept=False, prior=engine.noise_prior)
    return Ridge(engine.ridge, engine.noise, intercept=False)


def regression(plan: Plan, intercept: bool) -> tuple[Ridge, Gaussian | StudentT]:
    """Return a `Ridge` with a declared model's noise, and the model's prior of θ.

    The noise variance is 1 if each row has its own.
    """
    engine, noise = plan.method, plan.method.noise or 1.0
    prior = engine.distribution(engine.prior())
    if not engine.learns_noise:
        return Ridge(noise, noise, intercept), prior
    return Ridge(noise, "nig", intercept, prior=(prior.shape, prior.scale * noise)), prior
