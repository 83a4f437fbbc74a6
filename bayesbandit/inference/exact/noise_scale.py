"""Whether the coefficients' prior shares the noise scale of the rewards, and how the scale enters.

What `normal_inverse_gamma` asks of a model: one positive variable s, of which a power s^k = q
scales every precision, and whose own density is an inverse gamma's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.inference.base import Compiled, NotThisEngine, Refusal
from bayesbandit.inference.graph_analysis.density import distribution
from bayesbandit.inference.graph_analysis.eligibility import eligible
from bayesbandit.inference.graph_analysis.quadratic import PYTHON, Data, Natural, Quadratic
from bayesbandit.inference.graph_analysis.recognise import (
    close,
    level_slope,
    part,
)

if TYPE_CHECKING:
    import pymc as pm

ENGINE = "normal_inverse_gamma"
CONDITIONAL = "so the posterior is only conditionally Gaussian"
PRIOR, LIKELIHOOD = 0, 1
AGAIN = (0.3, 2.7, 11.0)  # values of the scale at which what holds at 1 must hold again


def not_conjugate(reason: str) -> NotThisEngine:
    """A model is not normal-inverse-gamma, and why."""
    return NotThisEngine(Refusal(ENGINE, reason))


def noise_scale(model: pm.Model) -> str:
    """The name of the one positive variable."""
    positive = [v for v in model.free_RVs
                if getattr(model.rvs_to_transforms[v], "name", "") == "log"]  # fmt: skip
    if not positive:
        eligible(model, ENGINE)
        raise not_conjugate("no positive variable that could be the noise scale")
    if len(positive) > 1:
        two = " and ".join(f"'{v.name}' ~ {distribution(v)}" for v in positive[:2])
        raise not_conjugate(f"{two} are both positive, {CONDITIONAL}")
    return str(positive[0].name)


def exponent(quadratic: Quadratic, data: Data, name: str) -> float:
    """k, where all natural parameters are proportional to s^k."""
    prior, likelihood = quadratic.prior((1.0,)), quadratic.natural(data, (1.0,))[LIKELIHOOD]
    at_2 = quadratic.natural(data, (2.0,))[LIKELIHOOD].precision
    largest = np.abs(likelihood.precision).argmax()
    ratio = at_2.flat[largest] / (likelihood.precision.flat[largest] or math.inf)
    k = round(math.log2(ratio), 6) if ratio > 0.0 else 0.0
    rewards = next((t.label for t in quadratic.density.terms if t.on_data), "the likelihood")
    if k == 0.0:
        raise not_conjugate(f"{rewards}: its precision does not depend on '{name}', {CONDITIONAL}")
    for s in AGAIN:
        prior_at_s = quadratic.prior((s,))
        likelihood_at_s = quadratic.natural(data, (s,))[LIKELIHOOD]
        for base, now in ((likelihood, likelihood_at_s), (prior, prior_at_s)):
            precision, shift = now.precision / s**k, now.shift / s**k
            if not (close(precision, base.precision) and close(shift, base.shift)):
                off = np.abs(precision - base.precision).max(axis=1) + np.abs(shift - base.shift)
                owner = quadratic.density.label(quadratic.owner(int(off.argmax())))
                label = owner if base is prior else rewards
                why = f"its precision is not scaled by the noise '{name}', {CONDITIONAL}"
                raise not_conjugate(f"{label}: {why}")
    return k


def unit_powers(engine: Any, s: Any) -> bool:
    """Whether rewards are N(mean reward, noise / (weight q)), not powers of it with weights: a row
    adds ½ log q, whatever its weight."""
    if not engine.row_wise or not engine.form.by_weight:
        return False
    slope = level_slope(engine.quadratic, s)
    if slope is None:
        return False
    density = engine.quadratic.density
    rows = density.arguments(part(engine.form.trial, slice(0, 1)))
    [a] = Compiled([s, *density.inputs.values()], [slope], PYTHON)(np.array(1.0), *rows)
    return close(np.array([float(a)]), np.array([0.5 * engine.exponent]))


def conjugate(engine: Any, rng: np.random.Generator) -> None:
    """The identity test: the density is what its statistics say, at random θ and s."""
    theta, data, k = rng.normal(size=(3, engine.dim)), engine.form.trial, engine.exponent
    for which, stats in ((PRIOR, engine.prior()), (LIKELIHOOD, engine.statistics(data))):
        shape = Natural(stats.precision, stats.shift)(theta)
        for s in (*AGAIN, 1.0):
            q = s**k
            value = engine.quadratic.log_densities(theta, data, (s,))[which]
            if which == PRIOR:
                value = value + (1.0 / k - 1.0) * math.log(q) - math.log(abs(k))
            closed = stats.constant + stats.power * math.log(q) - stats.rate * q + q * shape
            if not close(closed, value):
                label = engine.quadratic.density.label(engine.scale_name)
                raise not_conjugate(f"{label}: not inverse gamma, {CONDITIONAL}")
