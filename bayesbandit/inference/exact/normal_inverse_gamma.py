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

from bayesbandit.checks import Array
from bayesbandit.forms import picked
from bayesbandit.inference.base import NotThisEngine, improper, matching, refuse
from bayesbandit.inference.draws import Rows
from bayesbandit.inference.exact.distributions import StudentT
from bayesbandit.inference.exact.gaussian import ExactGaussian
from bayesbandit.inference.graph_analysis.degrees import Analytic, depends_on
from bayesbandit.inference.graph_analysis.density import Density, distribution, read
from bayesbandit.inference.graph_analysis.eligibility import check_eligible, check_on_own_rows
from bayesbandit.inference.graph_analysis.form import quartered
from bayesbandit.inference.graph_analysis.quadratic import Given
from bayesbandit.inference.graph_analysis.row_noise import close, random_rows
from bayesbandit.inference.graph_analysis.transforms import transform_name

if TYPE_CHECKING:
    import pymc as pm

ENGINE = "normal_inverse_gamma"
CONDITIONALLY_GAUSSIAN = "so the posterior is only conditionally Gaussian"
TESTED_SCALES = (0.3, 2.7, 11.0)  # values of a scale at which what holds at 1 must hold again
# q beside which h log q is nothing, and two at which βq is, whatever the unit of rewards ≤ 1e50 is
TESTED_PRECISIONS = np.array([2.0**400, 2.0**-400, 2.0**-500])
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
        check_eligible(model, ENGINE)
        raise not_conjugate("no positive variable that could be the noise scale")
    if len(positive) > 1:
        two = " and ".join(f"'{v.name}' ~ {distribution(v)}" for v in positive[:2])
        raise not_conjugate(f"{two} are both positive, {CONDITIONALLY_GAUSSIAN}")
    return str(positive[0].name)


def exponent(block: ExactGaussian, data: Rows, name: str) -> float:
    """Return k, where the natural parameters of prior and likelihood are proportional to s^k."""
    rewards = next((t.label for t in block.density.terms if t.on_data), "the likelihood")
    unscaled = f"its precision is not scaled by the noise '{name}', {CONDITIONALLY_GAUSSIAN}"
    # Λ(s) = s^k Λ(1): k is the logarithm of Λ(2)/Λ(1)
    one, two = (np.abs(block.natural(data, (s,))[0]).max() for s in (1.0, 2.0))
    ratio = two / (one or math.inf)
    if not 0.0 < ratio < math.inf:
        raise not_conjugate(f"{rewards}: {unscaled}")
    # declared powers have few digits: what is rounded off is the rounding of Λ
    k = round(math.log2(ratio), 6)
    if k == 0.0:
        raise not_conjugate(
            f"{rewards}: its precision does not depend on '{name}', {CONDITIONALLY_GAUSSIAN}"
        )
    for part in (data, None):
        base, base_shift = block.natural(part, (1.0,))
        for s in TESTED_SCALES:
            precision, shift = (v / s**k for v in block.natural(part, (s,)))
            if not (close(precision, base) and close(shift, base_shift)):
                off = np.abs(precision - base).max(axis=1) + np.abs(shift - base_shift)
                owner = block.owner(int(off.argmax()))
                raise not_conjugate(f"{owner if part is None else rewards}: {unscaled}")
    return k


def trial(block: ExactGaussian) -> Rows:
    """Return some of the model's own rows, or all of them where they are not apart; random ones
    where it has none, or where these have no density."""
    density = block.density
    some = slice(TESTED_ROWS if block.row_wise else None)
    data = block.data(**picked(density.own, some))
    at_0 = block.part(np.zeros((1, block.dim)), data, (1.0,))[1]
    useful = len(data["x"]) and np.isfinite(at_0)
    return data if useful or not block.row_wise else random_rows(density, seed=0)


def check_inverse_gamma(engine: NormalInverseGamma, data: Rows) -> None:
    """Run the identity test: at θ = 0, prior and likelihood are c + h log q − βq."""
    zero = np.zeros(engine.dim)
    # q = s^k at each of these scales
    precisions = np.array([*TESTED_SCALES, 1.0]) ** engine.exponent
    for part in (None, data):
        power, rate, constant = engine.scalars(zero, part)
        # three numbers are read at three q, and must give the values at these four
        closed = constant + power * np.log(precisions) - rate * precisions
        values = np.array([engine.log_density(zero, q, part) for q in precisions])
        if not close(closed, values):
            label = engine.density.label(engine.scale_name)
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
        check_inverse_gamma(self, data)
        self.unit_powers = self.row_noise.by_weight and self.row_noise.normal

    @property
    def streams(self) -> bool:
        return super().streams and self.unit_powers

    @property
    def noise(self) -> float | None:
        return super().noise if self.unit_powers else None

    def scale(self, sigma2: Array) -> Array:
        """Return the declared scale variable where σ² = 1/q is given."""
        # s^k = q = 1/σ²
        return sigma2 ** (-1.0 / self.exponent)

    def noise_drawn(self, sigma2: Array) -> dict[str, Array]:
        return {self.scale_name: self.scale(sigma2)}

    def scale_at(self, q: float) -> Given:
        return (q ** (1.0 / self.exponent),)

    def log_jacobian(self, q: float) -> float:
        # s = q^{1/k}: |ds/dq| = q^{1/k − 1} / |k|
        return (1.0 / self.exponent - 1.0) * math.log(q) - math.log(abs(self.exponent))

    def scalars(self, theta: Array, *parts: Rows | None) -> tuple[float, float, float]:
        return read_off(lambda q: self.log_density(theta, q, *parts))

    def about(
        self, mean: Array, precision: Array, L: Array, power: float, rate: float, constant: float
    ) -> StudentT:
        """Return the distribution about a mean (D,), where η is 0; refused where it is improper.

        So it is where rewards are fitted to all their digits, unless the prior bounds the noise.
        """
        # ∫ over θ leaves q^{h − D/2} e^{−βq}: a gamma of shape h − D/2 + 1
        a = power + 1.0 - self.dim / 2
        # Here β is the prior's rate and half the residual sum of squares, and ½ mean'Λmean is half
        # the sum of squares of the fit: a ratio of rounding says that all digits are fitted
        rounding = RESIDUAL_ROUNDING**2 * 0.5 * float(mean @ precision @ mean)
        b = 0.0 if rate <= rounding and self.prior.rate < 0.5 * rate else rate
        if a <= 0.0 or b <= 0.0:
            label = self.density.label(self.scale_name)
            raise improper(ENGINE, f"{label}: improper, inverse gamma of ({a:g}, {b:g})")
        known = StudentT(mean, precision, L, 0.0, a, b)
        return replace(known, log_evidence=constant + known.log_volume)


@matching
def match(model: pm.Model) -> NormalInverseGamma:
    """Return the normal-inverse-gamma engine of a built model."""
    name = noise_scale(model)
    check_eligible(model, ENGINE, positive=name)
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
    check_on_own_rows(engine, density, ENGINE)
    return engine


def read_off(f: Callable[[float], float]) -> tuple[float, float, float]:
    """Return h, β and c of f(q) = c + h log q − βq.

    h and c are read where βq is less than rounding, and β where only βq counts; it is 0 where it is
    rounding even there.
    """
    large, small, smallest = TESTED_PRECISIONS.tolist()
    at = np.array([f(q) for q in (large, small, smallest)])
    with np.errstate(all="ignore"):
        power = (at[1] - at[2]) / math.log(small / smallest)
        power = float(quartered(power, POWER_ROUNDING * (1.0 + abs(power))))
        constant = float(at[1] - power * math.log(small))
        left = float(constant + power * math.log(large) - at[0])  # βq
        rate = left / large if abs(left) > ROUNDINGS * np.abs(at).max() else 0.0
    return power, rate, constant
