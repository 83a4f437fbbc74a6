"""Tests of a log's probabilities against the arms that were chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from bayesbandit.kernels import njit
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.tally import ess

CALIBRATION_POWERS = (0.0, 0.5, 0.8, 1.25, 2.0)  # β of q ∝ e^β
REFUTED_LOG_E = np.log(100.0)  # if the probabilities are true, P(E ever ≥ 100) ≤ .01
ROUNDS_WITHOUT_CONTEXTS = 10  # first rounds, in which contexts are not used
MAX_STANDARDISED = 5.0  # largest absolute value of a standardised context
TILT_STEP = 0.5  # of Adagrad, by which the probabilities are tilted
CALIBRATION_EDGES = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])  # edges of `calibration`


@dataclass(frozen=True, repr=False)
class Check:
    """How well a log's probabilities agree with the arms that were chosen.

    log_e: the log of the largest E of the propensity e-process; NaN without probabilities (n, K).
    refuted: whether E reached 100. If the probabilities are true, this happens with probability .01
    at most, however long the log is.
    path: log E after each round (n,). at: the round in which E first reached 100, or None.
    ess: by arm, the realised and the expected effective sample size of "always this arm".
    """

    log_e: float
    refuted: bool
    at: int | None
    path: np.ndarray
    ess: pd.DataFrame
    log: Log = field(repr=False)

    def __repr__(self) -> str:
        said = f"refuted in round {self.at}" if self.refuted else "not refuted"
        if self.untested:
            said = f"not tested: {self.untested}"
        return f"Check(log_e={self.log_e:.3g}, {said}, {len(self.log)} rounds)"

    @property
    def untested(self) -> str:
        """Why the probabilities could not be tested; "" if they were."""
        if self.log.probabilities is None:
            return "only the chosen arms' probabilities are logged"
        return "" if (self.log.propensity < 1).any() else "every choice had probability 1"

    @cached_property
    def calibration(self) -> pd.DataFrame:
        """Return a table that compares how often an arm was chosen with its probabilities.

        A row for each arm and bin of its probability e (`from`, `to`]: the number of rounds, how
        often the arm was `chosen`, how often that was `expected` (Σe), and
        z = (chosen − expected)/√Σe(1 − e). Empty without probabilities (n, K).
        """
        rows = []
        p = self.log.probabilities
        for k, arm in enumerate(self.log.arms if p is not None else ()):
            assert p is not None
            e, chosen = p[:, k], (self.log.played == k).astype(np.float64)
            place = np.clip(
                np.searchsorted(CALIBRATION_EDGES, e, side="left") - 1,
                0,
                len(CALIBRATION_EDGES) - 2,
            )
            for b in np.unique(place[e > 0]):
                mine = (place == b) & (e > 0)
                sd = np.sqrt((e[mine] * (1 - e[mine])).sum())
                gap = chosen[mine].sum() - e[mine].sum()
                rows.append(
                    (arm, *CALIBRATION_EDGES[b : b + 2], mine.sum(), chosen[mine].sum(),
                     e[mine].sum(), gap / sd if sd > 0 else 0.0)
                )  # fmt: skip
        names = ["arm", "from", "to", "rounds", "chosen", "expected", "z"]
        return pd.DataFrame(rows, columns=names)

    @cached_property
    def overlap(self) -> pd.DataFrame:
        """Return how much the log says about each arm.

        Columns: the `rounds` in which it was chosen; its `smallest` probability; `never` and
        `below_01`, the shares of rounds in which its probability was 0 and below .01; and
        `largest_weight`, the largest share of one round in Σw. If only the chosen arms'
        probabilities are known, these are taken over the arm's own rounds.
        """
        rows = {}
        log = self.log
        for k, arm in enumerate(log.arms):
            chosen = log.played == k
            e = log.propensity[chosen] if log.probabilities is None else log.probabilities[:, k]
            w = 1 / log.propensity[chosen]
            rows[arm] = (
                int(chosen.sum()),
                e.min() if e.size else np.nan,
                (e == 0).mean() if e.size else np.nan,
                (e < 0.01).mean() if e.size else np.nan,
                w.max() / w.sum() if w.size else np.nan,
            )
        names = ["rounds", "smallest", "never", "below_01", "largest_weight"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=names)


def check(data: Log) -> Check:
    """Test a log's probabilities against the arms that were chosen.

    The propensity e-process is the mean of Π_t q_t(A_t)/e_t(A_t) over alternatives q. It is a test
    martingale if e is true. The alternatives are q ∝ e^β; half e, half uniform; and
    q ∝ e exp(θ_k'z) with z = 1 and z = (1, x), where θ is learned from earlier rounds. `Check.ess`
    compares the realised effective sample sizes with the expected ones. A log is tested once, and
    the result is kept.
    """
    if not isinstance(data, Log):
        raise TypeError(f"check takes a bb.ope.Log; got {data!r}")
    known = vars(data).get("checked")
    if known is None:
        known = vars(data)["checked"] = _check(data)  # a log does not change
    return known


def refuted(log: Log) -> str:
    """Return a sentence if the log's propensities are refuted, else ""."""
    doubt = check(log)
    if not doubt.refuted:
        return ""
    return (
        f"the propensities are refuted (log E = {doubt.log_e:.1f}; E ≥ 100 since round "
        f"{doubt.at}): see check(log)"
    )


def _check(log: Log) -> Check:
    path = e_process(log)
    reached = np.flatnonzero(path >= REFUTED_LOG_E)
    at = int(reached[0]) if reached.size else None
    most = float(path.max()) if path.size else np.nan
    return Check(most, at is not None, at, path, _sizes(log), log)


def e_process(log: Log) -> np.ndarray:
    """Return log E after each round (n,).

    Empty without probabilities (n, K): the chosen arms' probabilities alone cannot be tested.
    """
    e, a = log.probabilities, log.played
    if e is None:
        return np.empty(0)
    K = (e > 0).sum(axis=1)
    p = log.propensity
    ratios = [np.log(p ** (beta - 1) / powers(e, beta)) for beta in CALIBRATION_POWERS]
    ratios.append(np.log((1 + 1 / (K * p)) / 2))
    paths = [np.cumsum(ratio) for ratio in ratios]
    one = np.ones((len(e), 1))
    paths += [tilted(e, a, one), tilted(e, a, np.hstack([one, standardised(log.x)]))]
    return np.asarray(logsumexp(paths, axis=0) - np.log(len(paths)))


def powers(e: np.ndarray, beta: float) -> np.ndarray:
    """Return Σ_k e_k^β over arms with e > 0, (n,)."""
    return np.where(e > 0, e**beta, 0.0).sum(axis=1)


def standardised(x: np.ndarray) -> np.ndarray:
    """Return contexts (n, d) standardised by earlier rounds, within ±5; 0 in the first ten."""
    if not x.size:
        return x
    c = x - x[0]
    t = np.arange(1, len(x) + 1)[:, None]
    mean = np.cumsum(c, axis=0) / t
    spread = np.sqrt(np.maximum(np.cumsum(c**2, axis=0) / t - mean**2, 0.0))
    z = np.zeros_like(x)
    sd = spread[ROUNDS_WITHOUT_CONTEXTS - 1 : -1]
    z[ROUNDS_WITHOUT_CONTEXTS:] = np.where(
        sd > 0,
        (c[ROUNDS_WITHOUT_CONTEXTS:] - mean[ROUNDS_WITHOUT_CONTEXTS - 1 : -1])
        / np.where(sd > 0, sd, 1.0),
        0.0,
    )
    return np.clip(z, -MAX_STANDARDISED, MAX_STANDARDISED)


def _sizes(log: Log) -> pd.DataFrame:
    """Return by arm the realised and expected effective sample sizes of "always this arm"."""
    rows = {}
    for k, arm in enumerate(log.arms):
        expected = np.nan
        if log.probabilities is not None:
            e = log.probabilities[:, k]
            on = e > 0
            expected = on.sum() ** 2 / (1 / e[on]).sum() if on.any() else 0.0
        rows[arm] = ess((log.played == k) / log.propensity), expected
    return pd.DataFrame.from_dict(rows, orient="index", columns=["realised", "expected"])


@njit(cache=True)
def tilted(e: np.ndarray, arm: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return log Π_{s≤t} q_s(A_s)/e_s(A_s), (n,), of q ∝ e exp(θ_k'z) with θ by Adagrad on log
    q(A).

    e (n, K), arm (n,), z (n, D). θ_t uses earlier rounds alone.
    """
    n, K, D = e.shape[0], e.shape[1], z.shape[1]
    theta, squares = np.zeros((K, D)), np.zeros((K, D))
    q = np.empty(K)
    out = np.empty(n)
    total = 0.0
    for t in range(n):
        most = -np.inf
        for k in range(K):
            q[k] = -np.inf
            if e[t, k] > 0.0:
                q[k] = 0.0
                for j in range(D):
                    q[k] += theta[k, j] * z[t, j]
                most = max(most, q[k])
        norm = 0.0
        for k in range(K):
            q[k] = e[t, k] * np.exp(q[k] - most) if e[t, k] > 0.0 else 0.0
            norm += q[k]
        a = arm[t]
        total += np.log(q[a] / norm / e[t, a])
        out[t] = total
        for k in range(K):
            if e[t, k] > 0.0:
                gap = (1.0 if k == a else 0.0) - q[k] / norm
                for j in range(D):
                    g = gap * z[t, j]
                    squares[k, j] += g * g
                    if squares[k, j] > 0.0:
                        theta[k, j] += TILT_STEP * g / np.sqrt(squares[k, j])
    return out
