"""The posterior of a declared reward model: its mean rewards, variables and ArviZ tree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln

from bayesbandit import checks
from bayesbandit.engines.draws import Diagnostics, SampledDraws
from bayesbandit.engines.exact.distributions import Gaussian, StudentT
from bayesbandit.engines.plan import Plan
from bayesbandit.engines.reading.quadratic import affine

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

DRAWS = 4000  # for moments that have no closed form, of a posterior that has one

Moments = tuple[Any, Any]  # of a number, mean and sd; of an array, mean and covariance (k, k)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What rows of data say about a declared model's variables.

    rows: x (n, d), reward, weight, arm (n,), by role. known: the distribution, where it has a
    closed form, or draws of it. features: the names of the columns of x.
    """

    plan: Plan
    rows: Mapping[str, np.ndarray] = field(repr=False)
    known: Gaussian | StudentT | SampledDraws = field(repr=False)
    seed: int
    features: tuple[Any, ...] | None = field(default=None, repr=False)

    @property
    def engine(self) -> str:
        """The engine that computed it."""
        return self.plan.engine

    @property
    def diagnostics(self) -> Diagnostics:
        """How far the draws can be trusted; of a closed form there is nothing to say."""
        if isinstance(self.known, SampledDraws):
            return self.known.diagnostics
        return Diagnostics({}, {})

    @property
    def log_evidence(self) -> float | None:
        """Log marginal likelihood of the rewards, where the posterior has a closed form and was not
        streamed."""
        if isinstance(self.known, SampledDraws) or math.isnan(self.known.log_evidence):
            return None
        return self.known.log_evidence

    # ---- mean rewards ----------------------------------------------------------------------------

    def mean(self, x: Any) -> np.ndarray:
        """Posterior means of the mean reward at contexts x (n, d): (n,), or (n, K) over arms.

        A data frame's columns are found by name, in any order, where the fit was on a data frame.
        """
        return self._moments(x)[0]

    def sd(self, x: Any) -> np.ndarray:
        """Posterior standard deviations of the mean reward, as `mean`."""
        return self._moments(x)[1]

    def draw(self, x: Any, size: int, rng: np.random.Generator) -> np.ndarray:
        """Mean rewards under `size` draws, (size, n) or (size, n, K); one spans all contexts, arms.

        Of a sampled posterior: its draws, picked at random, without repetition up to their number.
        """
        x = self._contexts(x)
        checks.integer(size, "size", 1)
        if isinstance(self.known, SampledDraws):
            S = self._flat[self.plan.outcomes.names[0]].shape[0]
            chosen = rng.choice(S, size, replace=size > S)
            return self._rewards(x, {k: v[chosen] for k, v in self._flat.items()})
        method, theta = self.plan.method, self.known.draw(size, rng)
        theta = theta if isinstance(theta, np.ndarray) else theta[0]
        if not method.affine:
            return np.asarray(method.mean_reward(theta, x))
        A, b = method.linear_map(x)
        return np.asarray(np.tensordot(theta, A, axes=(1, -1)) + b)

    def _moments(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        x = self._contexts(x)
        if isinstance(self.known, SampledDraws):
            means = self._rewards(x, self._flat)
        elif self.plan.method.affine:
            A, b = self.plan.method.linear_map(x)
            half = solve_triangular(self.known.cholesky, A.reshape(-1, A.shape[-1]).T, lower=True)
            sd = np.sqrt((half**2).sum(axis=0)) * _scale(self.known)
            return A @ self.known.mean + b, sd.reshape(b.shape)
        else:
            means = self.draw(x, DRAWS, np.random.default_rng(self.seed))
        return means.mean(axis=0), means.std(axis=0, ddof=1)

    def _rewards(self, x: np.ndarray, draws: Mapping[str, np.ndarray]) -> np.ndarray:
        return self.plan.outcomes.mean_reward(draws, x)

    def _contexts(self, x: Any) -> np.ndarray:
        x = checks.contexts(checks.aligned(x, self.features), self.plan.n_features)
        if (why := self.plan.row_mixing) and not np.array_equal(x, self.rows["x"]):
            raise ValueError(
                f"{self.plan.model.name}: the mean reward of a context depends on other rows "
                f"({why}), so that it is known at the fitted rows alone"
            )
        return x

    # ---- variables -------------------------------------------------------------------------------

    @cached_property
    def coefficients(self) -> dict[str, Moments]:
        """Moments of each variable by name: of a number (mean, sd), of an array its mean and the
        covariance (k, k) of its k elements in order. Deterministic quantities are among them."""
        if isinstance(self.known, SampledDraws):
            found = {**self._flat, **self.plan.outcomes.rest(self._flat)}
            return {k: moments(v) for k, v in found.items()}
        method, known, rest = self.plan.method, self.known, self.plan.outcomes.rest
        coefficients = {
            k: described(mean, covariance)
            for k, (mean, covariance) in method.moments(known.mean, known.covariance).items()
        }
        if isinstance(known, StudentT):
            coefficients[method.scale_name] = power_of_gamma(known, 1.0 / method.exponent)
        elif self.plan.outcomes.deterministic:
            coefficients |= self._affine(known)
        if set(self.plan.outcomes.deterministic) - set(coefficients):
            draws = rest(self.samples(DRAWS, np.random.default_rng(self.seed)))
            coefficients |= {k: moments(v) for k, v in draws.items() if k not in coefficients}
        order = [*self.plan.outcomes.names, *self.plan.outcomes.deterministic]
        return {k: coefficients[k] for k in order}

    def _affine(self, known: Gaussian) -> dict[str, Moments]:
        """Moments of those deterministic quantities that are affine in a Gaussian θ."""
        method, found = self.plan.method, {}
        trial = np.random.default_rng(0).normal(size=(3, method.dim))
        at_trial = self.plan.outcomes.rest(method.split(trial))
        for name, shape in self.plan.outcomes.deterministic.items():

            def value(Z: np.ndarray, name: str = name) -> np.ndarray:
                return self.plan.outcomes.rest(method.split(Z))[name].reshape(len(Z), -1)

            T, b = affine(value, method.dim)
            if np.allclose(trial @ T + b, at_trial[name].reshape(3, -1), rtol=1e-9, atol=1e-9):
                mean = (known.mean @ T + b).reshape(shape)
                found[name] = described(mean, T.T @ known.covariance @ T)
        return found

    def samples(self, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Independent draws of the free variables from a closed form, by name, (size, *shape)."""
        if isinstance(self.known, SampledDraws):
            chosen = rng.choice(len(next(iter(self._flat.values()))), size)
            return {k: v[chosen] for k, v in self._flat.items()}
        method = self.plan.method
        if isinstance(self.known, StudentT):
            theta, sigma2 = self.known.draw(size, rng)
            found = method.split(theta) | {method.scale_name: method.scale(sigma2)}
        else:
            found = method.split(self.known.draw(size, rng))
        return {k: found[k] for k in self.plan.outcomes.names}

    @cached_property
    def _flat(self) -> dict[str, np.ndarray]:
        """Sampled draws of all chains, by name, (S, *shape)."""
        assert isinstance(self.known, SampledDraws)
        values = self.known.values
        return {k: values[k].reshape(-1, *values[k].shape[2:]) for k in self.plan.outcomes.names}

    # ---- ArviZ -----------------------------------------------------------------------------------

    def to_datatree(
        self, chains: int = 4, draws: int = 1000,
        features: Sequence[Any] | None = None, arms: Sequence[Any] | None = None,
    ) -> xr.DataTree:  # fmt: skip
        """The posterior for ArviZ: groups posterior, prior, posterior_predictive, log_likelihood
        (pointwise, every weight 1), log_prior, sample_stats (at least `lp`), observed_data and
        constant_data.

        chains, draws: of a closed form, from which draws are independent; a sampled posterior has
        its own. features, arms: their names. The engine and its diagnostics are attributes.
        """
        from bayesbandit.posteriors.datatree import datatree, renamed

        if isinstance(self.known, SampledDraws):
            values = {k: self.known.values[k] for k in self.plan.outcomes.names}
        else:
            checks.integer(chains, "chains", 1)
            checks.integer(draws, "draws", 1)
            flat = self.samples(chains * draws, np.random.default_rng(self.seed))
            values = {k: v.reshape(chains, draws, *v.shape[1:]) for k, v in flat.items()}
        chains, draws = next(iter(values.values())).shape[:2]
        flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in values.items()}
        rest = {
            k: v.reshape(chains, draws, *v.shape[1:])
            for k, v in self.plan.outcomes.rest(flat).items()
        }
        names = list(values)
        weighted, plain = self._built(self.rows.get("weight")), self._built(None)
        stats = self.known.stats if isinstance(self.known, SampledDraws) else {}
        tree = datatree(weighted, plain, values | rest, names, self.seed, self._attributes(), stats)
        features = self.features if features is None else features
        coords = {"feature": features, "arm": arms}
        return renamed(tree, {k: v for k, v in coords.items() if v is not None})

    def _built(self, weight: np.ndarray | None) -> pm.Model:
        """The model on these rows, as it was built when they were fitted."""
        return self.plan.on({**self.rows, "weight": weight})

    def _attributes(self) -> dict[str, Any]:
        """Engine and diagnostics as plain numbers and texts, which files can hold."""
        found = self.diagnostics
        least, most = min(found.ess.values(), default=None), max(found.rhat.values(), default=None)
        said = {
            "model": self.plan.model.name,
            "engine": self.engine,
            "ess": least,
            "rhat": most,
            "divergences": found.divergences,
            "acceptance": found.acceptance,
            "log_evidence": self.log_evidence,
        }
        return {k: v for k, v in said.items() if v is not None}


def moments(draws: np.ndarray) -> Moments:
    """Moments of draws (S, *shape)."""
    flat = draws.reshape(len(draws), -1)
    return described(draws.mean(axis=0), np.atleast_2d(np.cov(flat, rowvar=False)))


def described(mean: np.ndarray, covariance: np.ndarray) -> Moments:
    """A number's mean and sd; an array's mean and covariance."""
    if np.ndim(mean) == 0:
        return float(mean), float(math.sqrt(covariance[0, 0]))
    return mean, covariance


def power_of_gamma(known: StudentT, p: float) -> Moments:
    """Mean and sd of q^p, with q = 1/σ² ~ Gamma(shape, scale) a posteriori; ∞ where they are."""

    def moment(k: float) -> float:
        if known.shape + k <= 0.0:
            return math.inf
        log = gammaln(known.shape + k) - gammaln(known.shape) - k * math.log(known.scale)
        return float(math.exp(log))

    mean, square = moment(p), moment(2.0 * p)
    return mean, math.sqrt(max(square - mean**2, 0.0)) if math.isfinite(square) else math.inf


def _scale(known: Gaussian | StudentT) -> float:
    """What the sds of a standard precision Λ⁻¹ are multiplied by."""
    if isinstance(known, Gaussian):
        return 1.0
    if known.df <= 2.0:
        return math.inf
    return math.sqrt(known.scale / known.shape * known.df / (known.df - 2.0))
