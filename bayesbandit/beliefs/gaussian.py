"""Exact beliefs of declared models with mean reward x'θ or x'θ + c and any Gaussian prior.

The kernels of the linear belief learn the contexts as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from bayesbandit.beliefs.linear import Ridge
from bayesbandit.beliefs.linear_belief import LinearBelief
from bayesbandit.beliefs.memory import FOR_EVER, Memory
from bayesbandit.inference.exact.distributions import Gaussian, StudentT
from bayesbandit.inference.plan import Plan
from bayesbandit.posteriors.posterior import Posterior


class GaussianBelief(LinearBelief):
    """K arms of a declared model in which each coordinate of θ multiplies one column of [x 1].

    place (D,): the column that each coordinate of the declared θ multiplies.
    """

    plan: Plan

    def __init__(
        self, plan: Plan, n_arms: int, normalize: bool = False, memory: Memory = FOR_EVER
    ) -> None:
        place = columns(plan)
        assert place is not None
        self.plan = plan
        self.place = place
        if (model := ridge(plan)) is not None:
            super().__init__(model.remembering(memory), n_arms, plan.n_features, normalize)
            return
        model, prior = regression(plan, plan.n_features < len(place))
        column = np.argsort(place)
        noise, order = plan.method.noise, np.ix_(column, column)
        known = prior.mean[column], noise * prior.precision[order]
        super().__init__(model.remembering(memory), n_arms, plan.n_features, normalize, known)

    def known(self, k: int) -> Gaussian | StudentT:
        """Return the posterior distribution of θ for arm k."""
        noise, place = self.plan.method.noise, self.place
        precision = self.precision(k)[np.ix_(place, place)] / noise
        return distribution(self.coefficients(k)[place], precision, self.head[k], noise, self.plan)

    def posterior(self, k: int, rows: dict[str, np.ndarray] | None = None) -> Posterior:
        """Return the posterior of arm k's variables. rows: its rounds in the history, by role."""
        return Posterior(self.plan, rows or {}, self.known(k), 0)


def columns(plan: Plan) -> np.ndarray | None:
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


def distribution(
    mean: np.ndarray, precision: np.ndarray, head: Any, noise: float, plan: Plan
) -> Gaussian | StudentT:
    """Return the distribution of θ with this mean and precision, and the noise in an arm's head.

    Where the noise is unknown, the precision is that at a noise scale of 1.
    """
    try:
        root = cholesky(precision, lower=True)
    except LinAlgError as error:
        raise ValueError(
            f"{plan.model.name}: the precision of the coefficients' posterior must have directions "
            f"that float64 tells apart; got a diagonal from {np.diag(precision).min():.3g} to "
            f"{np.diag(precision).max():.3g}. bandit.belief.predict(x) tells of mean rewards"
        ) from error
    if not plan.method.learns_noise:
        return Gaussian(mean, precision, root, np.nan)
    shape = 0.5 * float(head.df)
    scale = shape * float(head.sigma2) / noise
    return StudentT(mean, precision, root, shape, scale, np.nan)
