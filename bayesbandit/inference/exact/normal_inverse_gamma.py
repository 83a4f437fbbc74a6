"""The exact engine for an unknown noise scale that the coefficients' prior shares.

With q the noise precision (σ² = 1/q, in whichever form it is declared: a variance, a standard
deviation or a precision), the log density of a normal-inverse-gamma model is

    log p(θ, q) = c + h log q − β q + q (η'θ − ½ θ'Λθ),

so that given the data σ² ~ InverseGamma(h + 1 − D/2, β − ½ η'Λ⁻¹η), and θ is Student-t. A prior
on θ that is not scaled by σ leaves a model that is only conditionally Gaussian.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular
from scipy.stats import gamma

from bayesbandit.inference.base import NotThisEngine, improper, matching, refuse
from bayesbandit.inference.exact.distributions import HALF_LOG_2PI, NaturalGamma, StudentT
from bayesbandit.inference.exact.gaussian import GaussianBlock, ridge, tried
from bayesbandit.inference.graph_analysis.degrees import Analytic, depends_on
from bayesbandit.inference.graph_analysis.density import distribution, read
from bayesbandit.inference.graph_analysis.eligibility import eligible, on_own_rows
from bayesbandit.inference.graph_analysis.quadratic import Data, Natural, Quadratic
from bayesbandit.inference.graph_analysis.recognise import Form, differs, recognise
from bayesbandit.inference.graph_analysis.row_noise import close, random_rows
from bayesbandit.inference.graph_analysis.transforms import transform_name

if TYPE_CHECKING:
    import pymc as pm

Array = np.ndarray
ENGINE = "normal_inverse_gamma"
CONDITIONALLY_GAUSSIAN = "so the posterior is only conditionally Gaussian"
TESTED_SCALES = (0.3, 2.7, 11.0)  # values of a scale at which what holds at 1 must hold again
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


def exponent(quadratic: Quadratic, data: Data, name: str) -> float:
    """Return k, where the natural parameters of prior and likelihood are proportional to s^k."""
    rewards = next((t.label for t in quadratic.density.terms if t.on_data), "the likelihood")
    unscaled = f"its precision is not scaled by the noise '{name}', {CONDITIONALLY_GAUSSIAN}"
    one, two = (quadratic.likelihood(data, (s,)).precision for s in (1.0, 2.0))
    largest = np.abs(one).argmax()
    ratio = two.flat[largest] / (one.flat[largest] or math.inf)
    if not 0.0 < ratio < math.inf:
        raise not_conjugate(f"{rewards}: {unscaled}")
    k = round(math.log2(ratio), 6)
    if k == 0.0:
        raise not_conjugate(
            f"{rewards}: its precision does not depend on '{name}', {CONDITIONALLY_GAUSSIAN}"
        )
    parts = (lambda s: quadratic.likelihood(data, (s,))), (lambda s: quadratic.prior((s,)))
    for part, label in zip(parts, (rewards, ""), strict=True):
        base = part(1.0)
        for s in TESTED_SCALES:
            now = part(s)
            precision = now.precision / s**k
            shift = now.shift / s**k
            if not (close(precision, base.precision) and close(shift, base.shift)):
                off = np.abs(precision - base.precision).max(axis=1) + np.abs(shift - base.shift)
                owner = quadratic.density.label(quadratic.owner(int(off.argmax())))
                raise not_conjugate(f"{label or owner}: {unscaled}")
    return k


def trial(quadratic: Quadratic, apart: bool) -> Data:
    """Return some of the model's own rows, or all of them where they are not `apart`; random ones
    where it has none, or where these have no density."""
    density = quadratic.density
    own = density.own
    n = len(density.own["x"])
    all_roles = {"weight": np.ones(n), "arm": np.zeros(n)} | own
    x, reward, weight = (
        all_roles[k][: TESTED_ROWS if apart else n].astype(float) for k in FLOAT_ROLES
    )
    data = x, reward, weight, all_roles["arm"][: len(x)].astype(np.int64)
    at_0 = quadratic.log_likelihood(np.zeros((1, quadratic.dim)), data, (1.0,))
    return random_rows(density, seed=0) if apart and not (n and np.isfinite(at_0)) else data


def conjugate(engine: NormalInverseGamma, data: Data) -> None:
    """Run the identity test: the density is what its statistics say, at random θ and s."""
    theta = np.random.default_rng(0).normal(size=(3, engine.dim))
    k = engine.exponent
    for prior, stats in ((True, engine.prior()), (False, engine.statistics(data))):
        shape = Natural(stats.precision, stats.shift)(theta)
        for s in (*TESTED_SCALES, 1.0):
            q = s**k
            if prior:
                value = engine.quadratic.log_prior(theta, (s,))
                value = value + (1.0 / k - 1.0) * math.log(q) - math.log(abs(k))
            else:
                value = engine.quadratic.log_likelihood(theta, data, (s,))
            closed = stats.constant + stats.power * math.log(q) - stats.rate * q + q * shape
            if not close(closed, value):
                label = engine.quadratic.density.label(engine.scale_name)
                raise not_conjugate(f"{label}: not inverse gamma, {CONDITIONALLY_GAUSSIAN}")


FLOAT_ROLES = "x", "reward", "weight"
TESTED_PRECISIONS = (2.0**20, 2.0**-40, 2.0**-80)  # q where βq outweighs h log q, and two where not


class NormalInverseGamma(GaussianBlock):
    """A model whose posterior is normal-inverse-gamma, and how to compute it.

    scale_name: the variable s of the noise; exponent: k, with s^k = q the noise precision (−1 where
    s is a variance, −2 a standard deviation, 1 a precision). unit_powers: whether a row adds
    ½ log q, whatever its weight: rewards are N(mean reward, noise / (weight q)), and not powers of
    it with weights.
    """

    engine = ENGINE
    learns_noise = True

    def __init__(
        self,
        quadratic: Quadratic,
        form: Form,
        scale_name: str,
        exponent: float,
    ) -> None:
        super().__init__(quadratic, form)
        self.scale_name = scale_name
        self.exponent = exponent
        self.unit_powers = form.rows.by_weight and form.rows.normal
        self._prior = self._prior_statistics()

    @property
    def streams(self) -> bool:
        return super().streams and self.unit_powers

    @property
    def ridge(self) -> float | None:
        """λ where rewards are N(mean reward, σ²/weight) and θ | σ² ~ N(0, σ²/λ I), else None."""
        lam = ridge(Natural(self._prior.precision, self._prior.shift))
        noise = self.noise
        return None if lam is None or noise is None else noise * lam

    @property
    def noise_prior(self) -> tuple[float, float] | None:
        """Shape and scale of the rewards' variance at weight 1: an inverse gamma; else None."""
        if self.noise is None:
            return None
        return self._prior.power + 1.0 - self.dim / 2, self._prior.rate * self.noise

    @property
    def noise(self) -> float | None:
        """σ² q where rewards are N(mean reward, σ²/weight), whatever their context, else None."""
        return self.form.rows.factor if self.unit_powers else None

    def scale(self, sigma2: Array) -> Array:
        """Return the declared scale variable where σ² = 1/q is given."""
        return sigma2 ** (-1.0 / self.exponent)

    def noise_drawn(self, sigma2: Array) -> dict[str, Array]:
        """Return the declared noise scale by name, where σ² = 1/q (S,) is drawn."""
        return {self.scale_name: self.scale(sigma2)}

    def prior(self) -> NaturalGamma:
        """Return statistics of the prior, as a density in θ and q."""
        return self._prior

    def likelihood(
        self, x: Array, reward: Array, weight: Array | None = None, arm: Array | None = None
    ) -> NaturalGamma:
        """Return the statistics of rows x (n, d), reward, weight, arm (n,). The statistics of
        batches add up if `form.not_additive` is empty."""
        return self.statistics(self.data(x, reward, weight, arm))

    def statistics(self, data: Data) -> NaturalGamma:
        """Return statistics of the likelihood of rows."""
        zero = np.zeros((1, self.dim))
        natural = self.of_rows(data, (1.0,))
        if self.row_wise:
            means = self.quadratic.mean_reward(zero, data)[0]
            at = [self.quadratic.curvature(means, data, (s,))[2] for s in self._scales]
        else:
            at = [float(self.quadratic.log_likelihood(zero, data, (s,))[0]) for s in self._scales]
        return NaturalGamma(natural.precision, natural.shift, *read_off(at))

    def _prior_statistics(self) -> NaturalGamma:
        """Return statistics of the prior: a density in s becomes one in q."""
        zero = np.zeros((1, self.dim))
        natural = self.quadratic.prior((1.0,))
        at = [float(self.quadratic.log_prior(zero, (s,))[0]) for s in self._scales]
        return NaturalGamma(natural.precision, natural.shift, *self._as_of_q(*read_off(at)))

    @property
    def _scales(self) -> list[float]:
        """s at `PRECISIONS`."""
        return [q ** (1.0 / self.exponent) for q in TESTED_PRECISIONS]

    def posterior(
        self, x: Array, reward: Array, weight: Array | None = None, arm: Array | None = None
    ) -> StudentT:
        """Return the posterior given rows x (n, d), reward, weight, arm (n,), if it is
        `checked`."""
        data = self.data(x, reward, weight, arm)
        known = self.distribution(*self.centred(data))
        self.checked(known, data)
        return known

    def centred(self, data: Data) -> tuple[NaturalGamma, Array]:
        """Return statistics about the mean of θ, where the shift is 0, and that mean (D,).

        They are of prior and rows together. About 0 the rate would be lost to rounding if rewards
        are far from 0.
        """
        prior = self._prior
        rows = self.of_rows(data, (1.0,))
        precision = prior.precision + rows.precision
        _, _, mean = self.solve(precision, prior.shift + rows.shift)
        means = np.tile(mean, (len(TESTED_PRECISIONS), 1))
        at = self.quadratic.values(means, data, [np.array(self._scales)]).tolist()
        return NaturalGamma(precision, np.zeros_like(mean), *self._as_of_q(*read_off(at))), mean

    def _as_of_q(self, power: float, rate: float, constant: float) -> tuple[float, float, float]:
        """Return h, β and c of a density in s as those of one in q."""
        k = self.exponent
        return power + 1.0 / k - 1.0, rate, constant - math.log(abs(k))

    def checked(self, known: StudentT, data: Data) -> None:
        """Run the identity test: at some θ and s from the middle and the tails of the posterior,
        the model's log density is that of `known`, to rounding or to 1e-5."""
        quantiles = np.array([0.5, 1e-4, 1.0 - 1e-4])
        q = gamma.ppf(quantiles, known.shape) / known.scale
        z = tried(self.dim)
        half = solve_triangular(known.cholesky, z.T, lower=True, trans=1)
        theta = known.mean + (half / np.sqrt(q)).T
        k = self.exponent
        values = self.quadratic.values(theta, data, [q ** (1.0 / k)])
        if not np.isfinite(values[0]):
            raise self.quadratic.not_finite(values[0])
        power = known.shape - 1.0 + self.dim / 2 + 1.0 - 1.0 / k
        closed = power * np.log(q) - q * known.scale - 0.5 * (z**2).sum(axis=1)
        if why := differs(values, closed):
            raise self.quadratic.refusal(why, of_rows=True)

    def distribution(self, natural: NaturalGamma, about: Array | float = 0.0) -> StudentT:
        """Return the distribution that has these statistics about a point (D,).

        Raise `Improper` if there is none.
        """
        L, half, step = self.solve(natural.precision, natural.shift)
        a = natural.power + 1.0 - self.dim / 2
        b = natural.rate - 0.5 * float(half @ half)
        if a <= 0.0 or b <= 0.0:
            label = self.quadratic.density.label(self.scale_name)
            reason = f"{label}: improper, inverse gamma of ({a:g}, {b:g})"
            raise improper(ENGINE, reason)
        log_root = np.log(np.diag(L)).sum()  # of Λ's determinant
        evidence = natural.constant + self.dim * HALF_LOG_2PI - log_root
        evidence += math.lgamma(a) - a * math.log(b)
        return StudentT(about + step, natural.precision, L, a, b, float(evidence))


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
    quadratic = Quadratic(density, ENGINE, given=(name,))
    form = recognise(quadratic)
    data = trial(quadratic, form.row_wise)
    k = exponent(quadratic, data, name)
    engine = NormalInverseGamma(quadratic, form, name, k)
    conjugate(engine, data)
    on_own_rows(engine)
    return engine


def read_off(values: list[float]) -> tuple[float, float, float]:
    """Return h, β and c of f(q) = c + h log q − βq, from its values at `PRECISIONS`."""
    (many, few, fewest), rate = TESTED_PRECISIONS, 0.0
    at_many, at_few, at_fewest = values
    for _ in range(2):  # β hardly matters to h and c; the second time, not at all
        power = (at_few + rate * few - at_fewest - rate * fewest) / math.log(few / fewest)
        constant = at_fewest + rate * fewest - power * math.log(fewest)
        rate = (constant + power * math.log(many) - at_many) / many
    return power, rate, constant
