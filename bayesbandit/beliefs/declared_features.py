"""The regressors of declared linear-Gaussian models.

A model has mean reward A(x, arm)θ + b, rewards N(mean, σ²/w) and prior θ ~ N(m₀, Λ⁻¹), or the
normal-inverse-gamma prior. So the reward minus A m₀ + b is A φ plus noise, of φ = θ − m₀. Where
each coordinate of θ multiplies one column of [x 1], φ is θ in the order of the columns, and kernels
learn the contexts as they are.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from bayesbandit.beliefs.linear import Ridge
from bayesbandit.beliefs.memory import FOR_EVER, Memory
from bayesbandit.beliefs.regressions import FeatureMap, Regressions
from bayesbandit.checks import Array
from bayesbandit.forms import Arrays
from bayesbandit.inference.base import NotFinite
from bayesbandit.inference.exact.distributions import Gaussian, StudentT
from bayesbandit.inference.exact.gaussian import ExactGaussian
from bayesbandit.inference.plan import Plan
from bayesbandit.posteriors.posterior import Posterior


def regressions(
    plan: Plan, n_arms: int, normalize: bool = False, memory: Memory = FOR_EVER
) -> Regressions:
    """Return the belief about arms with a declared model that streams, before any data."""
    place = None if plan.likelihood.of_whole else columns(plan)
    features = Mapped(plan, plan.method) if place is None else DeclaredFeatures(plan, place)
    joint = plan.model.takes_arm
    return Regressions(features, n_arms, plan.n_features, normalize, memory=memory, joint=joint)


class DeclaredFeatures(FeatureMap):
    """Regressors of a declared model: contexts as they are, or of a subclass.

    method: the linear-Gaussian closed form: the plan's, or that of a linear predictor. place (D,):
    where each coordinate of θ stands in φ. centre (D,): θ where φ is 0. known: the mean and the
    precision, in units of 1/σ², of φ before any data; None where a `Ridge` says it.
    """

    plan: Plan
    method: ExactGaussian
    place: Array
    centre: Array

    def __init__(self, plan: Plan, place: Array) -> None:
        self.plan = plan
        self.method = plan.method
        self.place = place
        self.centre = np.zeros(len(place))
        model, prior = regression(plan.method, plan.n_features < len(place))
        column = np.argsort(place)
        precision = plan.method.noise * prior.precision[np.ix_(column, column)]
        self.known = prior.mean[column], precision
        super().__init__(model, plan.n_features)

    def distribution(self, of: Regressions, k: int) -> Gaussian:
        """Return the posterior distribution of θ for arm k.

        Where the noise is unknown, its precision is that at a noise scale of 1.
        """
        noise = self.method.noise or 1.0
        head = of.head[k]
        mean = self.centre + of.coefficients(k)[self.place]
        precision = of.precision(k)[np.ix_(self.place, self.place)] / noise
        try:
            root = cholesky(precision, lower=True)
        except LinAlgError as error:
            raise ValueError(
                f"{self.plan.model.name}: the precision of the coefficients' posterior must have "
                "directions that float64 tells apart; got a diagonal from "
                f"{np.diag(precision).min():.3g} to {np.diag(precision).max():.3g}. "
                "bandit.belief.predict(x) tells of mean rewards"
            ) from error
        if not self.method.learns_noise:
            return Gaussian(mean, precision, root, np.nan)
        shape = 0.5 * float(head.df)
        return StudentT(mean, precision, root, np.nan, shape, shape * float(head.sigma2) / noise)

    def posterior(self, of: Regressions, k: int, rows: Arrays | None) -> Posterior:
        coefficients = self.distribution(of, k)
        known = coefficients if of.link is None else of.link.known(coefficients)
        return Posterior(self.plan, rows or {}, known, 0)


class Mapped(DeclaredFeatures):
    """Features A(x, arm)."""

    plain = False

    def __init__(self, plan: Plan, engine: ExactGaussian) -> None:
        self.plan = plan
        self.method = engine
        model, prior = regression(engine, False)
        FeatureMap.__init__(self, model, engine.dim)
        self.place = np.arange(engine.dim)
        self.centre = prior.mean
        self.known = np.zeros(engine.dim), (engine.noise or 1.0) * prior.precision

    def of_arms(self, n_arms: int) -> Mapped:
        plan = self.plan.of_arms(n_arms)
        return Mapped(plan, plan.method)

    def coordinates(self) -> list[Array]:
        map = self.method.features
        return [self.centre, *(() if map is None else (map.C, map.a, map.c, map.e))]

    def __call__(self, x: Array, arm: Array | None = None) -> tuple[Array, Array]:
        A, b = self.method.linear_map(x, arm)
        return A, A @ self.centre + b

    def observed(self, x: Array, arm: Array, reward: Array, weight: Array) -> tuple[Array, Array]:
        """Return rows z (n, D) and rewards (n,) of the regression of φ.

        A row with its own precision πw becomes a row √π z, √π y of variance 1/w.
        """
        z, offset = self(x, arm if self.plan.model.takes_arm else None)
        data = {"x": x, "reward": reward, "weight": weight, "arm": arm}
        if self.method.noise is not None:
            if self.plan.likelihood.of_whole:
                self.plan.check_possible(data)
            return z, reward - offset
        try:
            y, precision = self.method.observations(data)
        except NotFinite:
            self.plan.check_possible(data)
            raise
        self.plan.check_possible(data, possible=True)  # PyMC would cut off the fraction of a count
        root = np.sqrt(precision / weight)
        return z * root[:, None], (y - offset) * root


def columns(plan: Plan) -> Array | None:
    """Return the column of [x 1] that each coordinate of θ multiplies, (D,).

    None if the mean reward is not a sum of columns with one coordinate each.
    """
    features = plan.method.features
    if plan.model.takes_arm or features is None or features.has_offset:
        return None
    if plan.method.noise is None:
        return None
    C = features.C
    D = len(features.a)
    map = np.vstack([C, features.a])
    used = map.sum(axis=1) if np.isin(map, (0.0, 1.0)).all() else np.zeros(len(map))
    one_each = (map.sum(axis=0) == 1.0).all() and (used[:D] == 1.0).all() and len(C) <= D
    return map.argmax(axis=0) if one_each else None


def regression(engine: ExactGaussian, intercept: bool) -> tuple[Ridge, Gaussian]:
    """Return a `Ridge` with the noise of a closed form, and its prior of θ.

    The noise variance is 1 if each row has its own.
    """
    noise = engine.noise or 1.0
    prior = engine.prior_distribution
    if isinstance(prior, StudentT):
        return Ridge(noise, "nig", intercept, prior=(prior.shape, prior.scale * noise)), prior
    return Ridge(noise, noise, intercept), prior
