"""Predicted mean rewards m_t(x, k), learned batch by batch from earlier rounds only.

Means that are fitted to all rounds would bias the estimate under adaptive assignment: they and the
choice of the arm would depend on the same rewards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit.checks import finite, floats, shown
from bayesbandit.ope.logs.log import Log

OUTCOME_MODELS = ("chosen", "running", "arm", "ridge", "quadratic", "logged")
CHOSEN_AMONG = ("arm", "ridge", "quadratic")  # for "chosen"
MIN_REWARDS_OF_ARM = 5  # rewards of an arm to which a regressor is fitted
RIDGE_PENALTY = 1.0  # of coefficients of standardised features


@runtime_checkable
class Regressor(Protocol):
    """A regressor as in scikit-learn."""

    def fit(self, x: np.ndarray, y: np.ndarray) -> object: ...

    def predict(self, x: np.ndarray) -> ArrayLike: ...


class Means(Protocol):
    """Predicted mean rewards. For each batch, `predict` is called first, then `learn`."""

    def predict(self, rows: slice) -> np.ndarray:
        """Return every arm's mean reward at the contexts of `rows`, a slice of the log.

        (m, K), or (m, 1) if it is the same for all arms.
        """
        ...

    def learn(self, rows: slice) -> None:
        """Learn the rewards of `rows`, a slice of the log; NaN rewards are skipped."""
        ...


def shrunk(count: np.ndarray, total: np.ndarray, squares: Any) -> np.ndarray:
    """Return each arm's mean reward (…, K), shrunk to the mean r̄ of all rewards.

    count, total: of each arm's rewards (…, K). squares: the sum of all squared rewards (…). With
    the variances σ² within arms and τ² between them, by the method of moments (one-way random
    effects): m_k = r̄ + (r̄_k − r̄) n_kτ²/(n_kτ² + σ²). It is r̄ where an arm has no rewards.
    """
    n = count.sum(axis=-1)
    k = (count > 0).sum(axis=-1)
    mean = (total.sum(axis=-1) / np.maximum(n, 1))[..., None]
    own = np.where(count > 0, total / np.maximum(count, 1), mean)
    between = (count * (own - mean) ** 2).sum(axis=-1)
    sigma2 = np.maximum(squares - (count * own**2).sum(axis=-1), 0.0) / np.maximum(n - k, 1)
    free = n - (count**2).sum(axis=-1) / np.maximum(n, 1)
    tau2 = np.maximum(between - (k - 1) * sigma2, 0.0) / np.maximum(free, 1)
    signal = count * tau2[..., None]
    noise = sigma2[..., None]
    share = np.divide(signal, signal + noise, out=np.zeros_like(own), where=signal > 0)
    return mean + share * (own - mean)


class Arm:
    """Each arm's mean reward so far, also in the batch, shrunk as in `shrunk`; 0 before the first.

    Of one arm it is the mean of all rewards so far.
    count, sum (K,), squares: numbers and sums of rewards less `origin`, and the sum of squares.
    """

    def __init__(self, played: np.ndarray, reward: np.ndarray, K: int) -> None:
        self.played, self.reward, self.K = played, reward, K
        self.observed = ~np.isnan(reward)
        self.origin = reward[self.observed][0] if self.observed.any() else 0.0  # for less rounding
        self.count, self.sum, self.squares = np.zeros(K), np.zeros(K), 0.0
        self.least, self.most = np.inf, -np.inf

    @property
    def n(self) -> float:
        return float(self.count.sum())

    def predict(self, rows: slice) -> np.ndarray:
        n, total, squares = self._sums(rows)
        m = self.origin + shrunk(n, total, squares)
        return np.where(n.sum(axis=1, keepdims=True) > 0, m, 0.0)

    def learn(self, rows: slice) -> None:
        took, y = self._rewards(rows)
        self.count += took.sum(axis=0)
        self.sum += y.sum(axis=0)
        self.squares += (y**2).sum()
        seen = self.reward[rows][self.observed[rows]]
        self.least, self.most = seen.min(initial=self.least), seen.max(initial=self.most)

    @property
    def arm_means(self) -> np.ndarray:
        """The means (K,) after the batches that are learned."""
        return self.origin + shrunk(self.count, self.sum, np.float64(self.squares))

    def clipped(self, m: np.ndarray) -> np.ndarray:
        """Return means limited to the range of the rewards so far."""
        return np.clip(m, self.least, self.most) if self.n else m

    def _sums(self, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return count (m, K), sum (m, K) and squares (m,) before each round."""
        took, y = self._rewards(rows)
        y2 = (y**2).sum(axis=1)
        return (
            self.count + np.cumsum(took, axis=0) - took,
            self.sum + np.cumsum(y, axis=0) - y,
            self.squares + np.cumsum(y2) - y2,
        )

    def _rewards(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return 1 (m, K) where an arm's reward is known, and there the reward less the origin."""
        took = (self.played[rows][:, None] == np.arange(self.K)) & self.observed[rows][:, None]
        y = np.where(took, self.reward[rows][:, None] - self.origin, 0.0)
        return took.astype(np.float64), y


class ForwardRidge(Arm):
    """A ridge regression for each arm, of reward minus the arm's mean m̄_k, on features f (n, D).

    The first feature is 1. Features are standardised by earlier rounds, f̃. Then (Σ f̃f̃' + λI) θ_k
    = Σ f̃ (Y − m̄_k), and m = m̄_k + f̃'θ_k is clipped to the range of the rewards so far.
    """

    def __init__(self, f: np.ndarray, played: np.ndarray, reward: np.ndarray, K: int) -> None:
        super().__init__(played, reward, K)
        self.f, D = f, f.shape[1]
        self.G, self.c = np.zeros((K, D, D)), np.zeros((K, D))

    def predict(self, rows: slice) -> np.ndarray:
        if not self.n:
            return super().predict(rows)
        total = self.G.sum(axis=0)
        centre = total[0] / self.n
        spread = np.maximum(np.diag(total) / self.n - centre**2, 0.0)
        spread[0], centre[0] = 1.0, 0.0
        spread[spread <= 1e-12] = 1.0  # a constant: centred it is 0, and learns nothing
        T = np.diag(1 / np.sqrt(spread))  # f̃ = T f
        T[:, 0] -= centre / np.sqrt(spread)
        means = self.arm_means
        b = np.einsum("ij,kj->ki", T, self.c - means[:, None] * self.G[:, 0])
        penalised = T @ self.G @ T.T + RIDGE_PENALTY * np.eye(len(T))
        theta = np.linalg.solve(penalised, b[..., None])[..., 0]
        return self.clipped(means + self.f[rows] @ (theta @ T).T)

    def learn(self, rows: slice) -> None:
        super().learn(rows)
        for k in np.unique(self.played[rows]):
            mine = (self.played[rows] == k) & self.observed[rows]
            f = self.f[rows][mine]
            self.G[k] += f.T @ f
            self.c[k] += f.T @ self.reward[rows][mine]


class Forward(Arm):
    """A scikit-learn regressor for each arm, fitted to its rounds in earlier batches.

    An arm with fewer than 5 such rounds gets its mean, as in `Arm`.
    """

    def __init__(
        self, regressor: Regressor, x: np.ndarray, played: np.ndarray, reward: np.ndarray, K: int
    ) -> None:
        super().__init__(played, reward, K)
        self.regressor, self.x = regressor, x if x.shape[1] else np.zeros((len(x), 1))
        self.seen = 0

    def predict(self, rows: slice) -> np.ndarray:
        from sklearn.base import clone

        m = super().predict(rows)
        past = self.observed[: self.seen]
        for k in range(self.K):
            mine = np.flatnonzero(past & (self.played[: self.seen] == k))
            if mine.size >= MIN_REWARDS_OF_ARM:
                fitted = clone(self.regressor).fit(self.x[mine], self.reward[mine])
                m[:, k] = fitted.predict(self.x[rows])
        return self.clipped(m)

    def learn(self, rows: slice) -> None:
        super().learn(rows)
        self.seen = rows.stop


def features(x: np.ndarray) -> np.ndarray:
    """Return (1, x) with standardised x, (n, 1 + d).

    Standardising over all rounds only avoids rounding errors: `ForwardRidge` standardises again.
    """
    sd = x.std(axis=0)
    z = (x - x.mean(axis=0)) / np.where(sd > 0, sd, 1.0)
    return np.hstack([np.ones((len(x), 1)), z])


def learns(mean: Any) -> bool:
    """Return whether `predictable` learns these means from the log."""
    return isinstance(mean, Regressor) or (isinstance(mean, str) and mean != "logged")


def predictable(log: Log, reward: np.ndarray, w: np.ndarray, mean: Any) -> np.ndarray:
    """Return predicted means m (n, K).

    reward: (n,), NaN if not known. w: the weights (n,) of the policy. mean: one of MEANS, a
    scikit-learn regressor, or numbers (n, K). "chosen" uses, in each batch, "arm", "ridge" or
    "quadratic", whichever has the smallest Σ w²(Y − m)² over earlier batches.
    """
    K = len(log.arms)
    given = (log.played, reward, K)
    if isinstance(mean, str):
        if mean not in OUTCOME_MODELS:
            raise ValueError(
                f"mean must be one of {OUTCOME_MODELS}, a regressor or (n, K); got {mean!r}"
            )
        if mean == "logged":
            if log.mean is None:
                raise ValueError("mean='logged' needs a log with mean=")
            return log.mean
        f = features(log.x) if mean not in ("running", "arm") else np.empty((len(log), 0))
        makers = {
            "running": lambda: Arm(np.zeros_like(log.played), reward, 1),  # as if of one arm
            "arm": lambda: Arm(*given),
            "ridge": lambda: ForwardRidge(f, *given),
            "quadratic": lambda: ForwardRidge(np.hstack([f, f[:, 1:] ** 2]), *given),
        }
        if mean != "chosen":
            return forward(log, [makers[mean]()], reward, w)
        names = CHOSEN_AMONG if log.x.shape[1] else ("arm",)
        return forward(log, [makers[name]() for name in names], reward, w)
    if isinstance(mean, Regressor):
        return forward(log, [Forward(mean, log.x, *given)], reward, w)
    m = floats(mean, f"mean ({shown(mean)[:60]})" if np.isscalar(mean) else "mean")
    if m.shape != (len(log), K):
        raise ValueError(f"mean must be {(len(log), K)}; got {m.shape}")
    return finite(m, "mean")


def forward(log: Log, candidates: Sequence[Means], reward: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the means (n, K), in each batch by the candidate with the smallest loss so far.

    Batches 0 and 1 use the first candidate. The choice depends on earlier rounds only, so the
    estimate stays unbiased.
    """
    m = np.empty((len(log), len(log.arms)))
    loss = np.zeros(len(candidates))
    for b, rows in enumerate(log.batches):
        pick = int(loss.argmin()) if b >= 2 else 0
        own = log.played[rows][:, None]
        y = reward[rows]
        w2 = w[rows] ** 2
        for i, candidate in enumerate(candidates):
            if i == pick or len(candidates) > 1:
                found = np.broadcast_to(candidate.predict(rows), m[rows].shape)
                if i == pick:
                    m[rows] = found
                residual = y - np.take_along_axis(found, own, axis=1)[:, 0]
                loss[i] += np.nansum(w2 * residual**2)
            candidate.learn(rows)
    return m
