"""Tests of a log's probabilities against the arms that were chosen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from bayesbandit.checks import Array
from bayesbandit.history import name_array
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
    """

    log_e: float
    refuted: bool
    at: int | None
    path: Array
    log: Log

    def __repr__(self) -> str:
        verdict = f"refuted in round {self.at}" if self.refuted else "not refuted"
        if self.untested:
            verdict = f"not tested: {self.untested}"
        log_e = round(self.log_e, 3) + 0.0  # no rounding errors about 0, nor −0
        return f"Check(log_e={log_e:.3g}, {verdict}, {len(self.log)} rounds)"

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
        p = np.empty((0, 0)) if self.log.probabilities is None else self.log.probabilities
        t, k = np.nonzero(p.T > 0)[::-1]
        e = p[t, k]
        b = np.digitize(np.minimum(e, 1.0), CALIBRATION_EDGES, right=True) - 1
        one = {"arm": k, "from": b, "rounds": 1, "chosen": self.log.played[t] == k, "expected": e}
        table = pd.DataFrame(one | {"z": e * (1 - e)}).groupby(["arm", "from"]).sum().reset_index()
        table["arm"] = name_array(self.log.arms)[table["arm"]]
        table.insert(2, "to", CALIBRATION_EDGES[table["from"] + 1])
        table["from"] = CALIBRATION_EDGES[table["from"]]
        sd = np.sqrt(table["z"])
        table["z"] = ((table["chosen"] - table["expected"]) / sd).where(sd > 0, 0.0)
        return table.astype({"chosen": float})

    @cached_property
    def overlap(self) -> pd.DataFrame:
        """Return how much the log says about each arm.

        Columns: the `rounds` in which it was chosen; its `smallest` probability; `never` and
        `below_01`, the shares of rounds in which its probability was 0 and below .01; and
        `largest_weight`, the largest share of one round in Σw. If only the chosen arms'
        probabilities are known, these are taken over the arm's own rounds.
        """
        return self._of_arms[["rounds", "smallest", "never", "below_01", "largest_weight"]]

    @property
    def ess(self) -> pd.DataFrame:
        """By arm, the `realised` and the `expected` effective sample size of "always this arm"."""
        return self._of_arms[["realised", "expected"]]

    @cached_property
    def _of_arms(self) -> pd.DataFrame:
        rows = {}
        log = self.log
        for k, arm in enumerate(log.arms):
            chosen = log.played == k
            e = log.propensity[chosen] if log.probabilities is None else log.probabilities[:, k]
            w = 1 / log.propensity[chosen]
            on = e[e > 0]
            expected = on.size**2 / (1 / on).sum() if on.size else 0.0
            rows[arm] = {
                "rounds": int(chosen.sum()),
                "smallest": e.min() if e.size else np.nan,
                "never": (e == 0).mean() if e.size else np.nan,
                "below_01": (e < 0.01).mean() if e.size else np.nan,
                "largest_weight": w.max() / w.sum() if w.size else np.nan,
                "realised": ess(w),
                "expected": np.nan if log.probabilities is None else expected,
            }
        return pd.DataFrame.from_dict(rows, orient="index")


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
    result: Check | None = vars(data).get("checked")
    if result is None:  # a log does not change
        path = e_process(data)
        reached = np.flatnonzero(path >= REFUTED_LOG_E)
        at = int(reached[0]) if reached.size else None
        most = float(path.max()) if path.size else np.nan
        result = vars(data)["checked"] = Check(most, at is not None, at, path, data)
    return result


def refuted(log: Log) -> str:
    """Return a sentence if the log's propensities are refuted, else ""."""
    doubt = check(log)
    if not doubt.refuted:
        return ""
    return (
        f"the propensities are refuted (log E = {doubt.log_e:.1f}; E ≥ 100 since round "
        f"{doubt.at}): see check(log)"
    )


def e_process(log: Log) -> Array:
    """Return log E after each round (n,).

    Empty without probabilities (n, K): the chosen arms' probabilities alone cannot be tested.
    """
    e = log.probabilities
    a = log.played
    if e is None:
        return np.empty(0)
    K = (e > 0).sum(axis=1)
    p = log.propensity
    # q(A)/e(A) = e_A^{β−1}/Σ_k e_k^β; then half e, half uniform; then the tilts
    ratios = [
        np.log(p ** (beta - 1) / np.where(e > 0, e**beta, 0.0).sum(axis=1))
        for beta in CALIBRATION_POWERS
    ]
    ratios.append(np.log((1 + 1 / (K * p)) / 2))
    paths = [np.cumsum(ratio) for ratio in ratios]
    paths += [tilted(e, a, log.x[:, :0]), tilted(e, a, log.x)]
    return np.logaddexp.reduce(paths, axis=0) - np.log(len(paths))


@njit(cache=True)
def tilted(e: Array, arm: Array, x: Array) -> Array:
    """Return log Π_{s≤t} q_s(A_s)/e_s(A_s), (n,), of q ∝ e exp(θ_k'z) with θ by Adagrad on log
    q(A).

    e (n, K), arm (n,), x (n, d). z is 1 and the contexts, standardised by earlier rounds and within
    ±5; 0 in the first ten rounds. θ_t uses earlier rounds alone.
    """
    n, K = e.shape
    d = x.shape[1]
    theta = np.zeros((K, 1 + d))
    squares = np.zeros_like(theta)
    score = np.empty(K)
    q = np.empty(K)
    z = np.zeros(1 + d)
    z[0] = 1.0
    sums = np.zeros((2, d))  # of x − x_0 and its squares
    out = np.empty(n)
    total = 0.0
    for t in range(n):
        for j in range(d):
            c = x[t, j] - x[0, j]
            if t >= ROUNDS_WITHOUT_CONTEXTS:
                mean = sums[0, j] / t
                sd = np.sqrt(max(sums[1, j] / t - mean**2, 0.0))
                standard = (c - mean) / sd if sd > 0.0 else 0.0
                z[1 + j] = min(max(standard, -MAX_STANDARDISED), MAX_STANDARDISED)
            sums[0, j] += c
            sums[1, j] += c**2
        for k in range(K):
            score[k] = 0.0 if e[t, k] > 0.0 else -np.inf
            for j in range(1 + d):
                score[k] += theta[k, j] * z[j]
        most = score.max()
        norm = 0.0
        for k in range(K):
            q[k] = e[t, k] * np.exp(score[k] - most)
            norm += q[k]
        total += np.log(q[arm[t]] / norm / e[t, arm[t]])
        out[t] = total
        for k in range(K):
            gap = (k == arm[t]) - q[k] / norm
            for j in range(1 + d):
                g = gap * z[j]
                squares[k, j] += g**2
                if squares[k, j] > 0.0:
                    # the gradient of log q(A) by θ_k is (1{A = k} − q_k) z
                    theta[k, j] += TILT_STEP * g / np.sqrt(squares[k, j])
    return out
