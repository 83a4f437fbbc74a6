"""Approximations, used only on request: Laplace's, and mean-field variational inference (ADVI).

Both are normal in the unconstrained space, where a positive variable is its logarithm:

    laplace   z ~ N(ẑ, H⁻¹), with ẑ the mode and H the Hessian there of −log p
    advi      z ~ N(m, diag(s²)), with m and s closest to the posterior in KL(q ‖ p)

Tierney and Kadane (1986); Kucukelbir, Tran, Ranganath, Gelman and Blei (2017).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytensor
from pytensor.graph.traversal import ancestors

from bayesbandit.checks import Array
from bayesbandit.inference.target import Normal, Run, Target
from bayesbandit.inference.uncompiled import UNCOMPILED_MODE

ADVI_STEPS = 30_000
ADVI_RATE = 0.02
MAX_LOG_SCALE = 100.0  # on the logarithm of a scale


def has_mode(target: Target) -> str | None:
    """Return why a model has no mode; None if that is not proved.

    The density of a hierarchy rises without end while its scale falls to 0: N(θ; μ, τ²) is 1/τ at
    θ = μ. So the prior is tried at the initial point, far along the scales that the likelihood does
    not depend on, given the other variables: along each of them, and along all together.
    """
    model = target.model
    likelihood = [*model.observed_RVs, *model.potentials]
    direct = set(ancestors(likelihood, blockers=model.free_RVs))
    scales = [v for v in model.free_RVs if model.rvs_to_transforms[v] and v not in direct]
    if not scales:
        return None
    log_prior = model.compile_logp(vars=model.free_RVs, mode=UNCOMPILED_MODE)
    at = model.initial_point()
    # θ ~ N(0, τ²) at θ = 0 has the log density −D log τ, which has no upper bound
    for moved in (*([v] for v in scales), scales):
        values = [model.rvs_to_values[v].name for v in moved]
        for step, to in ((-MAX_LOG_SCALE, "0"), (MAX_LOG_SCALE, "infinity")):
            # still rising from e^−100 to e^−200: without end
            near, far = (log_prior(at | {k: at[k] + n * step for k in values}) for n in (1, 2))
            if far - near > 1.0:
                return (
                    "there is no mode: the density rises without end while "
                    f"{', '.join(str(v.name) for v in moved)} goes to {to}. Learn by draws, as "
                    'bb.Sampled(model) or engine="auto"; or declare what has that scale as a mean '
                    "plus the scale times a standard normal (centered=False)"
                )
    return None


def laplace(target: Target, run: Run) -> Normal:
    """Return Laplace's approximation."""
    return target.laplace()


def advi(target: Target, run: Run) -> Array:
    """Return draws of the mean-field approximation; `tune` is the number of optimisation steps."""
    import pymc as pm

    fit, sample = (int(s) for s in np.random.SeedSequence(run.seed).generate_state(2))
    n = ADVI_STEPS if run.tune is None else run.tune
    rate = pytensor.shared(ADVI_RATE)

    def slower(_approximation: Any, _losses: Any, i: int) -> None:
        rate.set_value(ADVI_RATE * max(0.0, 1.0 - i / n))  # else m would keep wandering

    with silenced():
        fitted = pm.fit(
            n,
            method="advi",
            model=target.model,
            random_seed=fit,
            progressbar=False,
            obj_optimizer=pm.adam(learning_rate=rate),
            callbacks=[slower],
        )
    if not np.isfinite(fitted.hist[-100:]).all():
        raise RuntimeError("advi: the evidence lower bound is not finite")
    noise = np.random.default_rng(sample).standard_normal((run.chains * run.draws, target.dim))
    # z = m + s ε: the coordinates are independent under q
    z = fitted.mean.eval() + fitted.std.eval() * noise
    places = fitted.groups[0].ordering
    values = [target.model.rvs_to_values[v].name for v in target.model.free_RVs]
    return np.concatenate([z[:, places[name][1]] for name in values], axis=1)


@contextmanager
def silenced() -> Iterator[None]:
    """Keep PyMC from reporting its progress."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
