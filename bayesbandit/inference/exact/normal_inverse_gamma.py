"""The exact engine for an unknown noise scale that the coefficients' prior shares.

With q the noise precision (σ² = 1/q, in whichever form it is declared: a variance, a standard
deviation or a precision), the log density of a normal-inverse-gamma model is

    log p(θ, q) = c + h log q − β q + q (η'θ − ½ θ'Λθ),

so that given the data σ² ~ InverseGamma(h + 1 − D/2, β − ½ η'Λ⁻¹η), and θ is Student-t. A prior
on θ that is not scaled by σ leaves a model that is only conditionally Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.inference.base import NotThisEngine, improper, matching, refuse
from bayesbandit.inference.exact.distributions import StudentT
from bayesbandit.inference.exact.gaussian import ExactGaussian
from bayesbandit.inference.graph_analysis.degrees import Analytic, depends_on
from bayesbandit.inference.graph_analysis.density import Density, distribution, read
from bayesbandit.inference.graph_analysis.eligibility import eligible, on_own_rows
from bayesbandit.inference.graph_analysis.form import quartered
from bayesbandit.inference.graph_analysis.quadratic import Data, Given
from bayesbandit.inference.graph_analysis.row_noise import close, random_rows
from bayesbandit.inference.graph_analysis.transforms import transform_name

if TYPE_CHECKING:
    import pymc as pm

Array = np.ndarray
ENGINE = "normal_inverse_gamma"
CONDITIONALLY_GAUSSIAN = "so the posterior is only conditionally Gaussian"
TESTED_PRECISIONS = np.array([0.3, 2.7, 11.0])  # q at which what is read at others must hold
# q where βq outweighs h log q, whatever the unit of the rewards, and two where it does not
FAR_PRECISIONS = np.array([2.0**300, 2.0**-200, 2.0**-250])
POWER_ROUNDING = 1e-13  # of h, which is often a quarter of a whole number
ROUNDINGS = 1e-14  # of a log density, relative
RESIDUAL_ROUNDING = 1e-13  # of the rewards' distances from their means, relative to the rewards
TESTED_ROWS = 5  # rows on which a density is compared with its closed form, where rows are apart


def not_conjugate(reason: str) -> NotThisEngine:
    """Return the refusal of a model that is not normal-inverse-gamma."""
    return refuse(ENGINE, reason)


def noise_scale(model: pm.Model) -> str:
    """Return the name of the one positive variable."""
    transforms = {v: transform_name(model.rvs_to_transforms[v]) for v in model.free_RVs}
    positive = [v for v, name in transforms.items() if name == "log"]
    if not positive:
        eligible(model, ENGINE)
        raise not_conjugate("no positive variable that could be the noise scale")
    if len(positive) > 1:
        two = " and ".join(f"'{v.name}' ~ {distribution(v)}" for v in positive[:2])
        raise not_conjugate(f"{two} are both positive, {CONDITIONALLY_GAUSSIAN}")
    return str(positive[0].name)


def exponent(block: ExactGaussian, data: Data, name: str) -> float:
    """Return k, where the precision that rows give is proportional to s^k."""
    # Λ(s) = s^k Λ(1): k is the logarithm of Λ(2)/Λ(1)
    one, two = (np.abs(block.natural(data, (s,))[0]).max() for s in (1.0, 2.0))
    ratio = two / (one or math.inf)
    if not 0.0 < ratio < math.inf:
        raise unscaled(rewards(block), name)
    k = round(math.log2(ratio), 6)
    if k == 0.0:
        reason = f"its precision does not depend on '{name}', {CONDITIONALLY_GAUSSIAN}"
        raise not_conjugate(f"{rewards(block)}: {reason}")
    return k


def rewards(block: ExactGaussian) -> str:
    """Return what a refusal calls the likelihood."""
    return next((t.label for t in block.density.terms if t.on_data), "the likelihood")


def unscaled(label: str, name: str) -> NotThisEngine:
    """Return the refusal of a term whose precision is not proportional to that of the noise."""
    scaled = f"its precision is not scaled by the noise '{name}'"
    return not_conjugate(f"{label}: {scaled}, {CONDITIONALLY_GAUSSIAN}")


def trial(block: ExactGaussian) -> Data:
    """Return some of the model's own rows, or all of them where they are not apart; random ones
    where it has none, or where these have no density."""
    density = block.density
    some = slice(TESTED_ROWS if block.row_wise else None)
    data = block.data(**{k: v[some] for k, v in density.own.items()})
    at_0 = block.part(np.zeros((1, block.dim)), data, (1.0,))[1]
    useful = len(data[0]) and np.isfinite(at_0)
    return data if useful or not block.row_wise else random_rows(density, seed=0)


def check_identity(engine: NormalInverseGamma, data: Data) -> None:
    """Run the identity test on the likelihood of rows and on the prior, at random θ and some q.

    Each is c + h log q − βq + q (η'θ − ½ θ'Λθ), and its gradient in θ is q (η − Λθ).
    """
    name = engine.scale_name
    points = np.random.default_rng(0).normal(size=(len(TESTED_PRECISIONS), engine.dim))
    # the prior on its own, too: its refusal names the variable that is not scaled
    for part in (data, None):
        precision, shift = engine.natural(part, engine.scale_at(1.0))
        power, rate, constant = engine.scalars(np.zeros(engine.dim), part)
        closed, values = [], []
        for q, theta in zip(TESTED_PRECISIONS.tolist(), points, strict=True):
            slope = engine.part(theta[None], part, engine.scale_at(q))[0][0] / q
            expected = shift - precision @ theta
            if not close(slope, expected):
                owner = engine.owner(int(np.abs(slope - expected).argmax()))
                raise unscaled(owner if part is None else rewards(engine), name)
            square = float(theta @ (shift + expected)) / 2.0  # η'θ − ½ θ'Λθ
            closed.append(constant + power * math.log(q) + q * (square - rate))
            values.append(engine.log_density(theta, q, part))
        if not close(np.array(closed), np.array(values)):
            label = engine.density.label(name)
            raise not_conjugate(f"{label}: not inverse gamma, {CONDITIONALLY_GAUSSIAN}")


class NormalInverseGamma(ExactGaussian):
    """A model whose posterior is normal-inverse-gamma, and how to compute it.

    scale_name: the variable s of the noise; exponent: k, with s^k = q the noise precision (−1 where
    s is a variance, −2 a standard deviation, 1 a precision). unit_powers: whether a row adds
    ½ log q, whatever its weight: rewards are N(mean reward, noise / (weight q)), and not powers of
    it with weights.
    """

    learns_noise = True

    def __init__(self, density: Density, scale_name: str) -> None:
        super().__init__(density, ENGINE, (scale_name,))
        self.scale_name = scale_name
        data = trial(self)
        self.exponent = exponent(self, data, scale_name)
        check_identity(self, data)
        self.unit_powers = self.rows.by_weight and self.rows.normal

    @property
    def streams(self) -> bool:
        return super().streams and self.unit_powers

    @property
    def noise(self) -> float | None:
        return super().noise if self.unit_powers else None

    @property
    def noise_prior(self) -> tuple[float, float] | None:
        """Shape and scale of the rewards' variance at weight 1: an inverse gamma; else None."""
        if self.noise is None:
            return None
        return self.prior.power + 1.0 - self.dim / 2, self.prior.rate * self.noise

    def scale(self, sigma2: Array) -> Array:
        """Return the declared scale variable where σ² = 1/q is given."""
        return sigma2 ** (-1.0 / self.exponent)

    def noise_drawn(self, sigma2: Array) -> dict[str, Array]:
        return {self.scale_name: self.scale(sigma2)}

    def scale_at(self, q: float) -> Given:
        return (q ** (1.0 / self.exponent),)

    def log_jacobian(self, q: float) -> float:
        return (1.0 / self.exponent - 1.0) * math.log(q) - math.log(abs(self.exponent))

    def scalars(self, theta: Array, *parts: Data | None) -> tuple[float, float, float]:
        return read_off(lambda q: self.log_density(theta, q, *parts))

    def about(
        self, mean: Array, precision: Array, L: Array, power: float, rate: float, constant: float
    ) -> StudentT:
        """Return the distribution about a mean (D,), where η is 0; refused where it is improper.

        So it is where rewards are fitted to all their digits, unless the prior bounds the noise.
        """
        # ∫ over θ leaves q^{h − D/2} e^{−βq}: a gamma of shape h − D/2 + 1
        a = power + 1.0 - self.dim / 2
        # β is ½ Σ w (r − m)² and more: below this, it is the rounding of r and m
        rounding = RESIDUAL_ROUNDING**2 * 0.5 * float(mean @ precision @ mean)
        b = 0.0 if rate <= rounding and self.prior.rate < 0.5 * rate else rate
        if a <= 0.0 or b <= 0.0:
            label = self.density.label(self.scale_name)
            raise improper(ENGINE, f"{label}: improper, inverse gamma of ({a:g}, {b:g})")
        known = StudentT(mean, precision, L, a, b, 0.0)
        return replace(known, log_evidence=constant + known.log_volume)


@matching
def match(model: pm.Model) -> NormalInverseGamma:
    """Return the normal-inverse-gamma engine of a built model."""
    name = noise_scale(model)
    eligible(model, ENGINE, positive=name)
    density = read(model)
    s = density.values[name]
    if s.type.ndim:
        raise not_conjugate(f"{density.label(name)}: not a scalar, {CONDITIONALLY_GAUSSIAN}")
    for term in density.terms:
        if why := Analytic([term.graph], {s: 1.0}).fault(term.graph, most=1):
            raise not_conjugate(f"{term.label}: {why}")
    if depends_on([density.mean], {name: s}):
        raise not_conjugate(f"'mean_reward': depends on '{name}'")
    engine = NormalInverseGamma(density, name)
    on_own_rows(engine, density, ENGINE)
    return engine


def read_off(f: Callable[[float], float]) -> tuple[float, float, float]:
    """Return h, β and c of f(q) = c + h log q − βq, from values at three q far apart.

    β is 0 where it is lost in rounding.
    """
    q = FAR_PRECISIONS
    # q₁ = 2^300: β = (c + h log q₁ − f(q₁)) / q₁ has all its digits, for −βq₁ is nearly all of f
    at = np.array([f(one) for one in q])
    rate = 0.0
    for _ in range(2):  # β hardly matters to h and c; the second time, not at all
        # f(q₁) − f(q₂) = h log(q₁/q₂) − β (q₁ − q₂); then c, and β from the large q
        power = (at[1] + rate * q[1] - at[2] - rate * q[2]) / math.log(q[1] / q[2])
        power = float(quartered(power, POWER_ROUNDING * (1.0 + abs(power))))
        constant = at[2] + rate * q[2] - power * math.log(q[2])
        rate = (constant + power * math.log(q[0]) - at[0]) / q[0]
    if abs(rate) * q[0] <= ROUNDINGS * np.abs(at).max():
        rate = 0.0
    return power, float(rate), float(constant)
