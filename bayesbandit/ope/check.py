"""May a log be believed? Its probabilities against the arms that were taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from bayesbandit.kernels.tilts import tilted
from bayesbandit.ope.estimators import ess
from bayesbandit.ope.logs.log import Log

POWERS = (0.0, 0.5, 0.8, 1.25, 2.0)  # β of q ∝ e^β
REFUTED = np.log(100.0)  # a true log reaches E = 100 with probability .01 at most
CALM = 10  # rounds before contexts enter a tilt
FURTHEST = 5.0  # of a standardised context
BINS = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])


@dataclass(frozen=True, repr=False)
class Check:
    """What a log says of its own probabilities.

    log_e: log of the largest E of the propensity e-process; NaN without probabilities (n, K).
    refuted: whether E reached 100. A log with true probabilities does so with probability .01 at
        most, however long it is.
    path: log E after each round (n,); at: the round in which E reached 100, or None.
    ess: of "always this arm", realised and expected, by arm.
    """

    log_e: float
    refuted: bool
    at: int | None
    path: np.ndarray
    ess: pd.DataFrame
    log: Log = field(repr=False)

    def __repr__(self) -> str:
        said = f"refuted in round {self.at}" if self.refuted else "not refuted"
        return f"Check(log_e={self.log_e:.3g}, {said}, {len(self.log)} rounds)"

    @cached_property
    def calibration(self) -> pd.DataFrame:
        """Return, by arm and bin of its probability, how often it was taken and how often that was
        expected, with z = (taken − expected)/√Σe(1 − e). Empty without probabilities (n, K)."""
        rows = []
        for k, arm in enumerate(self.log.arms if self.log.probabilities is not None else ()):
            e, taken = self._of(k)
            place = np.clip(np.searchsorted(BINS, e, side="left") - 1, 0, len(BINS) - 2)
            for b in np.unique(place[e > 0]):
                mine = (place == b) & (e > 0)
                sd = np.sqrt((e[mine] * (1 - e[mine])).sum())
                gap = taken[mine].sum() - e[mine].sum()
                rows.append(
                    (arm, BINS[b], BINS[b + 1], mine.sum(), taken[mine].sum(), e[mine].sum(),
                     gap / sd if sd > 0 else 0.0)
                )  # fmt: skip
        names = ["arm", "from", "to", "rounds", "taken", "expected", "z"]
        return pd.DataFrame(rows, columns=names)

    @cached_property
    def placebo(self) -> pd.DataFrame:
        """Return z = Σ(w − Σπ)g/√Σ(·)² of "always this arm", by arm and g: 1 and each feature.
        About N(0, 1) where the probabilities are true: what was decided before cannot be changed by
        the arm. Empty without probabilities (n, K)."""
        g = np.column_stack([np.ones(len(self.log)), self.log.x])
        rows = {}
        for k, arm in enumerate(self.log.arms if self.log.probabilities is not None else ()):
            e, taken = self._of(k)
            terms = ((taken / self.log.propensity) - (e > 0))[:, None] * g
            size = np.sqrt((terms**2).sum(axis=0))
            rows[arm] = np.where(size > 0, terms.sum(axis=0) / np.where(size > 0, size, 1.0), 0.0)
        columns = ["1", *self.log.features]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)

    @cached_property
    def overlap(self) -> pd.DataFrame:
        """Return, by arm, the rounds it was taken in, its smallest probability, the shares of
        rounds in which that was 0 and below .01 (of the rounds it was taken in, where only their
        probabilities are known), and the largest share of one round in Σw."""
        rows, log = {}, self.log
        for k, arm in enumerate(log.arms):
            taken = log.played == k
            e = log.propensity[taken] if log.probabilities is None else log.probabilities[:, k]
            w = 1 / log.propensity[taken]
            rows[arm] = (
                int(taken.sum()),
                e.min(initial=1.0),
                (e == 0).mean() if e.size else np.nan,
                (e < 0.01).mean() if e.size else np.nan,
                w.max() / w.sum() if w.size else np.nan,
            )
        names = ["rounds", "smallest", "never", "below_01", "largest_weight"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=names)

    def _of(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return arm number k's probabilities (n,), and whether it was taken (n,)."""
        assert self.log.probabilities is not None
        return self.log.probabilities[:, k], (self.log.played == k).astype(np.float64)


def check(data: Log) -> Check:
    """Test a log's probabilities against the arms that were taken.

    The propensity e-process is the mean of Π_t q_t(A_t)/e_t(A_t) over alternatives q. It is a test
    martingale where e is true. The alternatives are q ∝ e^β; half e, half uniform; and
    q ∝ e exp(θ_k'z) with z = 1 and z = (1, x), where θ is learned from earlier rounds. The realised
    effective sample sizes stand beside those that the probabilities promise.
    """
    if not isinstance(data, Log):
        raise TypeError(f"check takes a bb.ope.Log; got {data!r}")
    known = vars(data).get("checked")
    if known is None:
        known = vars(data)["checked"] = _check(data)  # a log does not change
    return known


def refuted(log: Log) -> str:
    """Return that the propensities of a log are refuted; "" where they are not."""
    doubt = check(log)
    if not doubt.refuted:
        return ""
    return (
        f"the propensities are refuted (log E = {doubt.log_e:.1f}; E ≥ 100 since round "
        f"{doubt.at}): see check(log)"
    )


def _check(log: Log) -> Check:
    path = e_process(log)
    reached = np.flatnonzero(path >= REFUTED)
    at = int(reached[0]) if reached.size else None
    most = float(path.max()) if path.size else np.nan
    return Check(most, at is not None, at, path, _sizes(log), log)


def e_process(log: Log) -> np.ndarray:
    """Return log E after each round (n,); empty where only the taken arms' probabilities are known:
    those cannot be tested."""
    e, a = log.probabilities, log.played
    if e is None:
        return np.empty(0)
    K, p = (e > 0).sum(axis=1), log.propensity
    ratios = [np.log(p ** (beta - 1) / powers(e, beta)) for beta in POWERS]
    ratios.append(np.log((1 + 1 / (K * p)) / 2))
    paths = [np.cumsum(ratio) for ratio in ratios]
    one = np.ones((len(e), 1))
    paths += [tilted(e, a, one), tilted(e, a, np.hstack([one, standardised(log.x)]))]
    return np.asarray(logsumexp(paths, axis=0) - np.log(len(paths)))


def powers(e: np.ndarray, beta: float) -> np.ndarray:
    """Return Σ_k e_k^β over arms with e > 0, (n,)."""
    return np.where(e > 0, e**beta, 0.0).sum(axis=1)


def standardised(x: np.ndarray) -> np.ndarray:
    """Return contexts standardised by earlier rounds, within ±5; 0 in the first ten rounds."""
    if not x.size:
        return x
    c = x - x[0]
    t = np.arange(1, len(x) + 1)[:, None]
    mean = np.cumsum(c, axis=0) / t
    spread = np.sqrt(np.maximum(np.cumsum(c**2, axis=0) / t - mean**2, 0.0))
    z = np.zeros_like(x)
    sd = spread[CALM - 1 : -1]
    z[CALM:] = np.where(sd > 0, (c[CALM:] - mean[CALM - 1 : -1]) / np.where(sd > 0, sd, 1.0), 0.0)
    return np.clip(z, -FURTHEST, FURTHEST)


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
