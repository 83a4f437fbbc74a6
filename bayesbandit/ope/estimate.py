"""The value of one policy from a log, with an interval that holds under adaptive assignment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from scipy.special import ndtr, ndtri

from bayesbandit.checks import Array, integer, number, one_of, same_rows
from bayesbandit.ope import sequences
from bayesbandit.ope.estimators import ESTIMATORS, Tuning
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.means import predicted_means
from bayesbandit.ope.question import (
    MISSING,
    Bounds,
    Question,
    bounds_of,
    first_rounds,
    group_of,
    sizes_of,
    supported_by,
    targets_of,
    too_few,
    too_little,
    why_invalid,
    within_bounds,
)
from bayesbandit.ope.scores import scored
from bayesbandit.ope.sequences import Sequence
from bayesbandit.ope.tally import Tally, tallied
from bayesbandit.ope.targets import Target, Unsupported
from bayesbandit.ope.weights import (
    DEFAULT_WEIGHTS,
    WEIGHT_BEFORE,
    WEIGHT_POWERS,
    WEIGHTS,
    by_batch,
    contextual,
    informed,
    phi,
)


@dataclass(frozen=True, repr=False)
class Estimate:
    """The value of a policy, or the difference of two.

    value, se: the estimate Σ hΓ/Σ h and its standard error √V/Σh. V is Σh²(Γ − v)², or more if the
        log is short: see `Tally`.
    low, high: the interval. NaN if there is none; `refused` then says why, else it is "".
    ess, expected_ess: the effective sample size (Σw)²/Σw², and what the probabilities
        predict for it. For a difference, the smaller ones.
    largest_weight: the largest share of one round in Σw.
    n: the number of rounds that count. warnings: sentences.
    scores, h: the scores Γ and the weights of rounds (n,). m: the predicted means (n, K), or None.
    sequence: intervals that hold at all rounds simultaneously, if asked for. If an exact one
        rejects every mean, the interval is refused, too.
    sums: running sums, for tests that hold at all rounds. None if scores or weights use later
        rounds.
    carrying: how many rewards make up the variance V, each by its share in it. If rewards are
        rarely other than 0, about the number of those in the rounds that carry the weight.
    """

    value: float
    se: float
    low: float
    high: float
    ess: float
    expected_ess: float
    scores: Array
    h: Array
    m: Array | None
    largest_weight: float
    n: int
    level: float
    weights: str
    refused: str = ""
    warnings: tuple[str, ...] = ()
    sequence: Sequence | None = None
    sums: Tally | None = None
    carrying: float = np.nan

    @property
    def z(self) -> float:
        """By how many standard errors the value is away from 0."""
        return abs(self.value) / self.se if self.se > 0 else 0.0

    @property
    def p(self) -> float:
        """The two-sided p-value of "the value is 0", for a difference; NaN without an interval."""
        return np.nan if np.isnan(self.low) else float(2 * ndtr(-self.z))

    def __repr__(self) -> str:
        refusal = f", refused: {self.refused}" if self.refused else ""
        return (
            f"Estimate({self.value:.4g} ± {self.se:.2g}, [{self.low:.4g}, {self.high:.4g}], "
            f"ess={self.ess:.0f}{refusal})"
        )


class Rest(TypedDict, total=False):
    """Further settings of `estimate`, which `evaluate` passes on."""

    clip: float
    tau: float
    lam: float
    force: bool
    predictable: bool
    missing: str | None
    while_available: bool
    subgroup: Any


def estimate(
    data: Log,
    target: Any,
    estimator: str = "dr",
    mean: Any = "chosen",
    weights: str = DEFAULT_WEIGHTS,
    *,
    clip: float = 10.0,
    tau: float = 10.0,
    lam: float = 100.0,
    level: float = 0.95,
    sequence: str | Bounds | None = None,
    force: bool = False,
    predictable: bool = True,
    missing: str | None = None,
    while_available: bool = False,
    subgroup: Any = None,
    planned: int | None = None,
) -> Estimate:
    """Estimate the mean reward per round of a policy from the log of another policy: Σ hΓ/Σ h.

    target: an arm's name; probabilities (n, K) of a fixed policy; a bandit in its current state; a
        function of contexts such as `bandit.greedy`; or None for the logged policy. A pair (a, b)
        asks for the difference a − b, from paired scores.
    estimator: "dr" (doubly robust), "ips" or "snips". "clipped" (at `clip`), "dm", "switch" (at
        `tau`) and "shrunk" (by `lam`) are biased and give no interval.
    mean: how rewards are predicted, from earlier rounds: "running", "arm", "ridge" or "quadratic";
        "chosen", the best of these so far; "logged", the means in the log; or numbers (n, K).
    weights: the weights of rounds: "stablevar", "minvar", "equal", or "contextual", which needs
        snapshots. Weights are equal if the log has only the chosen arms' probabilities, and for the
        logged policy, which changes. Where means are learned, rounds before most of the target's
        arms have a reward have next to no weight (of the first 50), whatever `weights` is.
    sequence: "asymptotic" for intervals that hold at all rounds simultaneously; or bounds (lo, hi)
        of the rewards for exact ones. The bounds must be known in advance.
    force: give an interval even if the log's probabilities are refuted.
    predictable: False if the given target or means were learned from these rounds.
    missing: what a NaN reward means. "open": it may still come, and only rounds before the first
        one count. "random": it is lost, whatever it was and whatever the arm.
    while_available: leave out the rounds in which the target wants an arm that was not available.
    subgroup: a mask (n,) of the rounds to use. It must be known before the arm is chosen.
    planned: the number of rounds for which a sequence is tuned; default: those of the log.

    Hadad et al. (2021); Zhan et al. (2021); Waudby-Smith et al. (2024).
    """
    if not isinstance(data, Log):
        raise TypeError(f"estimate takes a bb.ope.Log; got {data!r}")
    one_of(estimator, "estimator", tuple(ESTIMATORS))
    one_of(weights, "weights", WEIGHTS)
    number(level, "level", above=0, below=1)
    for value, what in ((clip, "clip"), (tau, "tau"), (lam, "lam")):
        number(value, what, above=0)
    if sequence is None or isinstance(sequence, str):
        what = "sequence, where it is not declared bounds (lo, hi),"
        one_of(sequence, what, (None, "asymptotic"))
        limits = None
    else:
        limits = bounds_of(sequence)
    one_of(missing, "missing", MISSING)
    uses_later_rounds = estimator == "snips" or weights == "contextual"
    if uses_later_rounds and sequence is not None:
        raise ValueError(
            "a sequence takes neither estimator='snips' nor weights='contextual': their scores use "
            "later rounds"
        )
    if planned is not None:
        integer(planned, "planned", least=1)
    within_bounds(data.reward, limits)
    same_rows(data.index, mean=mean, subgroup=subgroup)
    warnings: list[str] = []
    if missing == "open" and np.isnan(data.reward).any():
        n = len(data)
        first = int(np.isnan(data.reward).argmax())
        if first < 2:
            raise ValueError(f"the reward of round {first} is open: too few stand before it")
        target, mean, subgroup = (first_rounds(v, n, first) for v in (target, mean, subgroup))
        data = data[:first]
        warnings.append(f"rounds from the first open reward on are left out: {first} of {n} count")
    on = np.ones(len(data), dtype=bool) if subgroup is None else group_of(subgroup, len(data))
    observed = ~np.isnan(data.reward)
    if missing is None and not observed.all():
        raise ValueError(
            f"{int((~observed).sum())} of {len(data)} rewards are missing (NaN): say what they are "
            'by missing="open" or "random" (a command: --missing)'
        )
    on = on & observed
    if not on.any():
        raise Unsupported("the subgroup must have a round that counts; got none")
    targets = targets_of(data, target)
    on, left_out = supported_by(data, targets, on, while_available)
    warnings += left_out + [target.forgot for target in targets if target.forgot]
    reward = np.where(observed, data.reward, 0.0)
    question = Question(data, reward, targets, on)
    weights, more = _settled(question, weights)
    warnings += more
    learned = np.where(observed & on, data.reward, np.nan)
    needs_m = ESTIMATORS[estimator].modelled and not question.logged_alone
    m = predicted_means(data, learned, question.w, mean) if needs_m else None
    if weights in ("equal", "contextual"):
        h = on.astype(np.float64)
    else:
        h = by_batch(data, phi(data, question.delta, on) ** WEIGHT_POWERS[weights]) * on
    if needs_m and isinstance(mean, str) and mean != "logged":  # they are learned
        h = h * np.where(informed(data, question.delta, on, learned), 1.0, WEIGHT_BEFORE)
    scores = scored(question, estimator, Tuning(clip, tau, lam), m, h, learned)
    tally = tallied(scores, h)
    last = tally.last()
    value = float((h * scores.scores).sum() / h.sum())
    se = float(last.se)
    raised = float(last.raised)
    if weights == "contextual":
        h, value, variance = contextual(data, question.delta, scores.scores)
        se = float(np.sqrt(variance))
        raised = 1.0

    sizes = sizes_of(question)
    invalid = why_invalid(question, estimator, force=force, predictable=predictable)
    refused = invalid
    more = list[str]()
    if not invalid:
        refused, more = too_little(
            float(last.steady), raised, sizes.ess,
            np.inf if question.follows_the_log else sizes.expected,
            fragile=estimator in ("ips", "snips") or weights == "equal",
        )  # fmt: skip
    at_rounds = None
    if limits is None and sequence is not None:
        rounds = np.flatnonzero(h > 0)
        at_rounds = sequences.asymptotic(tally, rounds, 1 - level, planned).unless(refused)
    elif limits is not None:
        at_rounds = _exact(question, m, limits, level).unless(invalid)
    refused = refused or too_few(last.carrying) or (at_rounds.refused if at_rounds else "")
    half = ndtri((1 + level) / 2) * se if not refused else np.nan
    return Estimate(
        value, se, value - half, value + half, sizes.ess, sizes.expected, scores.scores, h, m,
        sizes.largest, int(on.sum()), level, weights, refused,
        tuple(warnings + more), at_rounds, None if uses_later_rounds else tally,
        carrying=last.carrying,
    )  # fmt: skip


def _settled(question: Question, weights: str) -> tuple[str, list[str]]:
    """Return the weights that the log allows, and warnings. Raise ValueError for impossible
    ones."""
    log = question.log
    if weights == "contextual" and log.snapshots is None:
        raise ValueError("weights='contextual' need a log with snapshots=")
    if weights == "contextual" and question.follows_the_log:
        raise ValueError("weights='contextual' are not for the logged policy, which changes")
    if weights == "contextual" and not question.on.all():
        raise ValueError("weights='contextual' need every round")
    if weights == "equal" or question.follows_the_log:
        return "equal", []
    if log.probabilities is None:
        if weights != DEFAULT_WEIGHTS:
            raise ValueError(f"weights={weights!r} need the probabilities (n, K)")
        return "equal", ["only chosen arms' probabilities are logged: rounds weigh the same"]
    return weights, []


EMPTY = (
    "the exact sequence rejects every mean, as it may with probability 1 − level, or because the "
    "probabilities or the bounds are wrong: from round"
)


def _exact(question: Question, m: Array | None, limits: Bounds, level: float) -> Sequence:
    """Return the exact confidence sequence of a value, or of a difference, from rewards in [lo,
    hi]."""
    log = question.log
    lo, hi = limits
    r = (question.reward - lo) / (hi - lo)
    m01 = np.zeros((1, 1)) if m is None else np.clip((m - lo) / (hi - lo), 0, 1)
    k = 0.0 if log.probabilities is None or m is None else 1.0
    rounds = np.flatnonzero(question.on)

    def bets(target: Target, r: Array, m: Array) -> Array:
        if target.pi is None:
            return r
        e = log.probabilities
        return sequences.bet_scores(target.pi, e, log.propensity, log.played, r, m, k)

    above = [bets(target, r, m01) for target in question.targets]
    below = [bets(target, 1 - r, 1 - m01) for target in question.targets]
    if len(question.targets) == 2:  # (φ₁(r) + φ₂(1 − r))/2 has mean (1 + Δ)/2
        above, below = [(above[0] + below[1]) / 2], [(below[0] + above[1]) / 2]
    low, high = sequences.exact(above[0], below[0], k, 1 - level, rounds, question.follows_the_log)
    base, scale = (lo - hi, 2 * (hi - lo)) if len(question.targets) == 2 else (lo, hi - lo)
    empty = np.flatnonzero(np.isnan(low))
    refused = f"{EMPTY} {rounds[empty[0]]}" if len(empty) else ""
    return Sequence(rounds, base + scale * low, base + scale * high, "exact", level, refused)
