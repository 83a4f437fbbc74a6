"""Predictions: the posterior of the mean rewards of K arms at n contexts, with moments and draws.

There are four kinds. `LocationScale` has independent normals or Student-t, `Joint` dependent ones,
`Draws` posterior draws, `Conjugate` betas or gammas. For another distribution, write a class with
the methods of `Prediction`; a subclass of it inherits `entries` and `ranking`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, Self, runtime_checkable

import numpy as np
from scipy.special import betaincinv, gammaincinv, log_ndtr, softmax

from bayesbandit.checks import FLOAT64, Array, floats, one_of
from bayesbandit.kernels.conjugate.families import beta_moments, gamma_moments
from bayesbandit.kernels.prob_best import by_draws, points
from bayesbandit.kernels.prob_best.located import best_of_location_scale
from bayesbandit.kernels.prob_best.walk import best
from bayesbandit.kernels.row_layout import BETA, GAMMA, INFINITE_SD, TABULATED, THOMPSON
from bayesbandit.many_arms import MIN_ARMS_TO_BOUND, Comparison
from bayesbandit.runtime.compiling import interpreted

Alpha = float | Array  # the factor of posterior sds: a number, or one for each context
FAMILIES = {"beta": BETA, "gamma": GAMMA}
IMPROPER_POSTERIOR = "the posterior is not proper before there are more rewards"
MAX_SQUARABLE = 1e150  # the largest number whose square fits into float64
SMALLEST_PROBABILITY = 1e-10  # that integrals tell from 0


@runtime_checkable
class Prediction(Protocol):
    """The posterior of the mean rewards of K arms at n contexts."""

    @property
    def mean(self) -> Array:
        """Means (n, K)."""
        ...

    @property
    def sd(self) -> Array:
        """Standard deviations (n, K); infinite where the posterior has no finite variance."""
        ...

    @abstractmethod
    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Return draws (size, n, K) of the mean rewards.

        Draws at different contexts need not have the dependence of the posterior.
        """

    @abstractmethod
    def best(self, alpha: Alpha = 1.0) -> Array:
        """Return P(arm has the largest mean reward), (n, K).

        Each draw's distance from the mean is multiplied by α, a number or (n,).
        """

    @abstractmethod
    def among(self, arms: Array) -> Prediction:
        """Return the prediction for some arms: a mask (K,), or their numbers."""

    def entries(self, kind: int) -> tuple[Array, Array] | None:
        """Return scales and degrees of freedom, (n, K) each, for a logged row of this KIND.

        A compiled rule decides from these and the means (`kernels/row_layout.py`). None: a compiled
        rule cannot decide, and `best` is called instead.
        """
        return None if kind == THOMPSON else (self.sd, np.full_like(self.sd, np.inf))

    def ranking(self) -> Dependent | None:
        """Return dependent normals or Student-t whose draws order the arms as draws of the mean
        rewards do, with α = 1; None: there are none."""
        return None


@dataclass(frozen=True, eq=False)
class LocationScale:
    """Independent arms with mean reward mean + scale · t, t Student-t with df degrees of freedom.

    mean, scale (n, K), df (n, K) or a number, infinite for normal arms.
    """

    mean: Array
    scale: Array
    df: Array | float = np.inf

    def __post_init__(self) -> None:
        _set(self, mean=self.mean, scale=self.scale)
        if self.mean.ndim != 2 or self.mean.shape != self.scale.shape:
            raise ValueError(
                f"mean and scale must be (n, K); got {self.mean.shape} and {self.scale.shape}"
            )

    @cached_property
    def degrees(self) -> Array:
        """Degrees of freedom (n, K)."""
        return np.broadcast_to(self.df, self.mean.shape)

    @cached_property
    def sd(self) -> Array:
        return spread(self.scale, self.df)

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        if not np.isfinite(self.scale).all():
            raise ValueError(IMPROPER_POSTERIOR)
        z = rng.standard_normal((size, *self.mean.shape))
        if (finite := np.isfinite(self.degrees)).any():
            df = np.where(finite, self.degrees, 1.0)
            z = np.where(finite, z * np.sqrt(df / rng.chisquare(df, z.shape)), z)
        return self.mean + self.scale * z

    def best(self, alpha: Alpha = 1.0) -> Array:
        scale = np.reshape(alpha, (-1, 1)) * np.minimum(self.scale, INFINITE_SD)
        return best_of_location_scale(self.mean, scale, self.degrees)

    def among(self, arms: Array) -> LocationScale:
        return LocationScale(self.mean[:, arms], self.scale[:, arms], self.degrees[:, arms])

    def entries(self, kind: int) -> tuple[Array, Array]:
        return self.scale, self.degrees

    def ranking(self) -> None:
        return None


class Dependent:
    """Dependent arms with mean rewards mean + width · Rε; ε is standard normal in P dimensions.

    All arms share ε and the width, which is 1 for normal arms and √(df/χ²) for Student-t.
    mean (n, K), root R (n, K, P), df a number, infinite for normal arms.
    """

    if TYPE_CHECKING:  # an attribute or a property serves

        @property
        def mean(self) -> Array: ...

        @property
        def root(self) -> Array: ...

        @property
        def df(self) -> float: ...

    @abstractmethod
    def compared(self, arms: Array, alpha: Array, floor: Array) -> Comparison:
        """Return Thompson sampling of some arms.

        arms: their numbers, in order. alpha, floor: see `Comparison`.
        """

    @cached_property
    def scale(self) -> Array:
        """Scales (n, K)."""
        return np.sqrt((self.root**2).sum(axis=2))

    @property
    def sd(self) -> Array:
        return spread(self.scale, self.df)

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        noise = rng.standard_normal((size, len(self.root), self.root.shape[2], 1))
        if np.isfinite(self.df):
            chi2 = rng.chisquare(self.df, (size, len(self.root), 1, 1))
            noise *= np.sqrt(self.df / chi2)
        return self.mean + (self.root @ noise)[..., 0]

    def best(self, alpha: Alpha = 1.0) -> Array:
        """Return shares of 4,096 quasi-random joint draws, the same draws at every call."""
        every = np.arange(self.mean.shape[1])
        return self.compared(every, np.ravel(alpha), np.zeros(1)).probabilities()

    def entries(self, kind: int) -> tuple[Array, Array] | None:
        return None if kind == THOMPSON else (self.scale, np.full(self.mean.shape, self.df))

    def ranking(self) -> Self:
        return self


@dataclass(frozen=True, eq=False)
class Joint(Dependent):
    """Dependent arms (`Dependent`) by their means and roots."""

    mean: Array
    root: Array
    df: float = np.inf

    def __post_init__(self) -> None:
        _set(self, mean=self.mean, root=self.root)
        if self.root.ndim != 3 or self.mean.shape != self.root.shape[:2]:
            raise ValueError(
                f"mean must be (n, K) and root (n, K, P); got {self.mean.shape} and "
                f"{self.root.shape}"
            )

    def compared(self, arms: Array, alpha: Array, floor: Array) -> Comparison:
        """Return Thompson sampling of rows (m, f) with θ = (1, ε), by `principal` axes."""
        part = self.among(arms)
        factor = principal(part.root).transpose(0, 2, 1)
        x = np.concatenate([part.mean[:, :, None], factor], axis=2)
        identity = np.eye(x.shape[2])  # the location and the axes of (1, ε), ε standard normal
        return Comparison(x, identity[0], identity[1:], self.df, alpha, floor)

    def among(self, arms: Array) -> Joint:
        return Joint(self.mean[:, arms], self.root[:, arms], self.df)


@dataclass(frozen=True, eq=False)
class JointRows(Dependent):
    """Dependent arms with mean rewards z'θ of rows z of features, θ ~ N(location, R_θR_θ') or t.

    x (n, K, d), location (D,), of_theta R_θ (D, P), and df, a number. D = d + 1: z ends with a
    constant 1. Means and roots are computed when they are needed.
    """

    x: Array
    location: Array
    of_theta: Array
    df: float

    @cached_property
    def slopes(self) -> Array:
        """The location of the coefficients of x, (d,)."""
        return np.ascontiguousarray(self.location[: self.x.shape[2]])

    @property
    def axes(self) -> Array:
        """The principal axes (d, d) of the spread of θ without its constant, the widest first."""
        axes, scale, _ = np.linalg.svd(self.of_theta[: self.x.shape[2]], full_matrices=False)
        return np.ascontiguousarray((axes * scale).T)

    @cached_property
    def mean(self) -> Array:
        mean = np.einsum("nkd,d->nk", self.x, self.slopes)  # equal rows tie: see `product`
        return mean + self.location[self.x.shape[2] :].sum()

    @cached_property
    def root(self) -> Array:
        return self._root(self.x)

    def _root(self, x: Array) -> Array:
        n, K, d = x.shape
        roots = product(x.reshape(-1, d), self.of_theta[:d])
        if len(self.of_theta) > d:
            roots += self.of_theta[d]
        return roots.reshape(n, K, -1)

    def compared(self, arms: Array, alpha: Array, floor: Array) -> Comparison:
        """Return Thompson sampling of some arms; of many, by the principal axes of the slopes."""
        if len(arms) < MIN_ARMS_TO_BOUND:
            return self.among(arms).compared(np.arange(len(arms)), alpha, floor)
        x = self.x if len(arms) == self.x.shape[1] else self.x[:, arms]
        return Comparison(x, self.slopes, self.axes, self.df, alpha, floor, bounded=True)

    def among(self, arms: Array) -> Joint:
        return Joint(self.mean[:, arms], self._root(self.x[:, arms]), self.df)


@dataclass(frozen=True, eq=False)
class Draws(Prediction):
    """Posterior draws of the mean rewards: values (n, K, S), NaN for an arm without draws.

    weights (S,): the draws' weights ≥ 0, or (K, S) of each arm if arms are independent; None: all
    equal. joint: whether the s-th draws of all arms form one joint draw; else arms are independent.
    Probabilities are exact for these draws.
    """

    values: Array
    weights: Array | None = None
    joint: bool = False

    def __post_init__(self) -> None:
        _set(self, values=self.values)
        shape = self.values.shape
        if self.values.ndim != 3 or shape[2] == 0:
            raise ValueError(f"values must be (n, K, S), S ≥ 1; got {shape}")
        if self.weights is not None:
            _set(self, weights=self.weights)
            w = self.weights
            sizes = [shape[2:]] + [shape[1:]] * (not self.joint)
            total = w.sum(axis=-1)
            if w.shape not in sizes or not (
                (w >= 0.0).all() and (total > 0.0).all() and (total < np.inf).all()
            ):
                raise ValueError(
                    f"weights must be {' or '.join(map(str, sizes))}, ≥ 0, not all 0; got {w}"
                )

    @cached_property
    def known(self) -> Array:
        """Whether each arm has draws (n, K)."""
        return ~np.isnan(self.values[:, :, 0])

    @cached_property
    def mean(self) -> Array:
        return np.where(self.known, self._average(self.values), 0.0)

    @cached_property
    def sd(self) -> Array:
        with np.errstate(over="ignore"):  # of draws beyond 1e154 it is ∞
            if self.weights is None:
                sd = self.values.std(axis=2)
            else:
                gap = self.values - self._average(self.values)[:, :, None]
                sd = np.sqrt(self._average(gap**2))
        return np.where(self.known, sd, np.inf)

    def _average(self, values: Array) -> Array:
        """Return weighted means (n, K) over the draws (n, K, S)."""
        if self.weights is None:
            return np.asarray(values.mean(axis=2))
        if self.weights.ndim == 1:
            return values @ self._shares
        return np.einsum("nks,ks->nk", values, self._shares)

    @cached_property
    def _shares(self) -> Array:
        """Weights (K, S) or (S,) that sum to 1."""
        assert self.weights is not None
        return np.asarray(self.weights / self.weights.sum(axis=-1, keepdims=True))

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        if not self.known.all():
            raise ValueError(IMPROPER_POSTERIOR)
        _, K, S = self.values.shape
        if self.weights is not None and self.weights.ndim == 2:
            s = np.stack([rng.choice(S, size, p=p) for p in self._shares], axis=1)
        else:
            p = None if self.weights is None else self._shares
            s = np.broadcast_to(rng.choice(S, (size, 1 if self.joint else K), p=p), (size, K))
        return np.stack([self.values[:, k, s[:, k]].T for k in range(K)], axis=2)

    def best(self, alpha: Alpha = 1.0) -> Array:
        """Return 1/K for all arms as long as any arm has no draws."""
        if not self.known.all():
            return np.full(self.known.shape, 1.0 / self.known.shape[1])
        mean = self._average(self.values)[:, :, None]
        a = np.reshape(alpha, (-1, 1, 1))
        values = mean + a * (self.values - mean)
        if self.joint:
            return by_draws.joint(values.transpose(0, 2, 1), self.weights)
        return by_draws.independent(values, self.weights)

    def among(self, arms: Array) -> Draws:
        w = self.weights
        return Draws(self.values[:, arms], w if w is None or w.ndim == 1 else w[arms], self.joint)


class ByMoments(Prediction):
    """A prediction whose means and standard deviations are computed together, and whose `best` is
    exact for α = 1."""

    @property
    @abstractmethod
    def moments(self) -> tuple[Array, Array]:
        """Means and standard deviations (n, K)."""

    @property
    def mean(self) -> Array:
        return self.moments[0]

    @property
    def sd(self) -> Array:
        return self.moments[1]

    @abstractmethod
    def exact(self) -> Array:
        """Return P(arm has the largest mean reward), (n, K)."""

    @abstractmethod
    def best_scaled(self, i: int, alpha: float) -> Array:
        """Return `best` (K,) at context i for one α."""

    def best(self, alpha: Alpha = 1.0) -> Array:
        alphas = np.broadcast_to(np.ravel(alpha), len(self.mean))
        out = self.exact() if (alphas == 1.0).any() else np.empty(self.mean.shape)
        for i in np.flatnonzero(alphas != 1.0).tolist():
            out[i] = self.best_scaled(i, float(alphas[i]))
        return out


@dataclass(frozen=True, eq=False)
class Conjugate(ByMoments):
    """Independent arms with mean reward Beta(a, b) ("beta") or Gamma(a, rate b) ("gamma").

    a, b (n, K), > 0.
    """

    family: Literal["beta", "gamma"]
    a: Array
    b: Array

    def __post_init__(self) -> None:
        one_of(self.family, "family", tuple(FAMILIES))
        _set(self, a=self.a, b=self.b)
        if self.a.ndim != 2 or self.a.shape != self.b.shape:
            raise ValueError(f"a and b must be (n, K); got {self.a.shape} and {self.b.shape}")
        if not ((self.a > 0.0) & (self.b > 0.0)).all():
            raise ValueError(f"a and b must be > 0; got {self.a.min()} and {self.b.min()}")

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        family = beta_moments if self.family == "beta" else gamma_moments
        mean, sd = interpreted(family)(self.a, self.b)
        return mean, sd

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        shape = size, *self.a.shape
        if self.family == "beta":
            return rng.beta(self.a, self.b, shape)
        return rng.gamma(self.a, 1.0 / self.b, shape)

    def exact(self) -> Array:
        K = self.a.shape[1]
        parameters = np.hstack([self.a, self.b])
        # arms do not depend on contexts: rows are often equal
        cases, which = np.unique(parameters, axis=0, return_inverse=True)
        p = np.empty((len(cases), K))
        for case, out in zip(cases, p, strict=True):
            best(case[:K], case[K:], np.ones(K, np.bool_), FAMILIES[self.family], out)
        return p[which.ravel()]

    def best_scaled(self, i: int, alpha: float) -> Array:
        a = self.a[i]
        b = self.b[i]
        if self.family == "beta":
            return by_draws.scaled(a / (a + b), alpha, betaincinv(a, b, by_draws.LEVELS))
        return by_draws.scaled(a / b, alpha, gammaincinv(a, by_draws.LEVELS) / b)

    def among(self, arms: Array) -> Conjugate:
        return Conjugate(self.family, self.a[:, arms], self.b[:, arms])


def spread(scale: Array | float, df: Array | float) -> Array:
    """Return standard deviations of location-scale normals (df = ∞) or Student-t.

    The bits are those of `row_layout.spread_of`, without a kernel.
    """
    df = np.maximum(np.abs(df), 2.0)  # Var t = ν/(ν − 2), without end for ν ≤ 2
    wide = scale / np.sqrt(np.maximum(1.0 - 2.0 / df, 1e-300))
    return np.where(df > 2.0, wide, np.where(np.greater(scale, 0.0), np.inf, 0.0))


def scaled(matrix: Array, factor: float) -> Array:
    """Return a matrix (D, D) times a factor that may be ∞; what is 0 stays 0."""
    return np.multiply(matrix, factor, where=matrix != 0.0, out=np.zeros_like(matrix))


def deviation(kind: Array, scale: Array, last: Array) -> Array:
    """Return arms' standard deviations (…, K) from logged rows of these KINDs (…, 1).

    scale, last (…, K): see `kernels/row_layout.py`. The result is 0 for an arm with scale 0.
    """
    kind, scale, last = map(np.asarray, (kind, scale, last))
    sd = np.where(kind == TABULATED, scale, spread(scale, last))
    for family, moments in ((BETA, beta_moments), (GAMMA, gamma_moments)):
        chosen = (kind == family) & (scale != 0.0)
        sd[chosen] = interpreted(moments)(np.abs(last[chosen]), scale[chosen])[1]
    return np.where(scale == 0.0, 0.0, sd)


def symmetric_root(matrix: Array) -> Array:
    """Return R with RR' = S of symmetric matrices S (…, D, D) ≥ 0, which may be singular."""
    variance, axes = np.linalg.eigh(matrix)
    return np.asarray(axes * np.sqrt(np.maximum(variance, 0.0))[..., None, :])


def principal(root: Array) -> Array:
    """Return factors (n, P, A), P < A, of arms with roots (n, A, D), for quasi-random points.

    They are the arms' differences along their principal axes. The widest axis comes first, since
    the first coordinates of a Sobol sequence are its best.
    """
    apart = root - root.mean(axis=1, keepdims=True)
    n, A, D = apart.shape
    if A > D:
        axes = np.linalg.eigh(apart.transpose(0, 2, 1) @ apart)[1][:, :, ::-1]
    else:  # fewer than D axes tell all: squares would lose narrow ones beside wide ones
        tall = np.linalg.svd(apart, full_matrices=False)[2].transpose(0, 2, 1)
        axes = tall[:, :, : max(1, A - 1)]
    out = np.empty((n, axes.shape[2], A))
    for i in range(n):
        out[i] = product(apart[i], axes[i]).T
    return out


def product(a: Array, b: Array) -> Array:
    """Return the matrix product of a (n, D) and b (D, P), in which equal rows give equal bits.

    So equal arms tie. BLAS does not promise this; `einsum` sums each row's terms in one order.
    """
    return np.einsum("nd,dp->np", np.ascontiguousarray(a), np.ascontiguousarray(b))


def resolution(prediction: Prediction) -> float:
    """Return the smallest probability that `best` can tell from 0."""
    if isinstance(prediction, Draws):
        return 1.0 / prediction.values.shape[2]
    return 1.0 / points.JOINT_DRAWS if isinstance(prediction, Dependent) else SMALLEST_PROBABILITY


def challengers(prediction: Prediction, leader: Array) -> Array:
    """Return shares (n, K) of the other arms, by P(arm is better than the leader) of normals.

    leader (n,): the arm at each context, whose share is 0. One arm alone has 0.
    """
    rows = np.arange(len(leader))
    gap = prediction.mean[rows, leader][:, None] - prediction.mean
    if isinstance(prediction, Dependent):
        root = prediction.root - prediction.root[rows, leader][:, None]
        sd = np.sqrt((root**2).sum(axis=2))
    elif isinstance(prediction, Draws) and prediction.joint:
        values = prediction.values - prediction.values[rows, leader][:, None]
        sd = Draws(values, prediction.weights, joint=True).sd
    else:
        sd = np.hypot(prediction.sd, prediction.sd[rows, leader][:, None])
    with np.errstate(all="ignore"):
        z = np.clip(np.nan_to_num(gap / sd, nan=0.0), 0.0, MAX_SQUARABLE)
    log = log_ndtr(-z)
    log[rows, leader] = -np.inf
    if log.shape[1] == 1:
        return np.zeros_like(log)
    return softmax(log, axis=1)


def probabilities_in(
    probabilities: object, shape: tuple[int, ...], what: str, slack: float = 1e-6
) -> Array:
    """Return the probabilities (n, A) that an object gave, as an array.

    Raise ValueError unless the shape is right, p ≥ 0 and each sum is within `slack` of 1.
    """
    p = _floats(probabilities, what)
    if p.shape != shape:
        new = "; arms without a reward so far are left out" if p.shape[1:] > shape[1:] else ""
        raise ValueError(f"{what} must give probabilities {shape}; got {p.shape}{new}")
    total = p.sum(axis=1)
    if not ((p >= 0.0).all() and (np.abs(total - 1.0) <= slack).all()):
        worst = int(np.argmax(np.where(np.isnan(total), np.inf, np.abs(total - 1.0))))
        raise ValueError(f"{what} must give probabilities ≥ 0 that sum to 1; got {p[worst]}")
    return p


def _floats(values: object, what: str) -> Array:
    """Return values as a contiguous float64 array, as `checks.floats` does; arrays need less."""
    if type(values) is np.ndarray and values.dtype is FLOAT64:
        return np.ascontiguousarray(values)
    return floats(values, what)


def _set(value: object, **fields: Array | float) -> None:
    """Set these fields of a frozen dataclass, as float64 arrays."""
    for name, array in fields.items():
        object.__setattr__(value, name, _floats(array, name))
