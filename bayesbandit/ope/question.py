"""What is asked of a log, which rounds count, and why there may be no interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bayesbandit.checks import Array, is_real, number
from bayesbandit.ope.check import check, refuted
from bayesbandit.ope.estimators import ESTIMATORS
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.tally import ess
from bayesbandit.ope.targets import Target, Unsupported, supported, target_of
from bayesbandit.ope.weights import spread

# effective sample sizes: refused below MIN_ESS, with a warning below WARN_BELOW_ESS
MIN_ESS = 5.0
WARN_BELOW_ESS = 50.0
# realised/expected effective sample size from which too much luck is suspected
SUSPICIOUS_ESS_RATIO = 3.0
FEW_CARRY = 1.9  # refused below about two `carrying` rewards: from there on 95 % cover 93 %
RAISED_SE_RATIO = 1.25  # a warning above this factor of the standard error
MISSING = (None, "open", "random")
NOT_KNOWN_AVAILABLE = "are not known to have been available"

Bounds = tuple[float, float]  # of rewards, lo < hi


@dataclass(frozen=True)
class Question:
    """The question that a log answers: the value of a target, or of one minus another."""

    log: Log
    reward: Array  # (n,), numbers where `on`
    targets: tuple[Target, ...]
    on: Array  # rounds that count

    @cached_property
    def ratios(self) -> tuple[Array, ...]:
        """w (n,) of each target."""
        return tuple(target.weights(self.log) for target in self.targets)

    @cached_property
    def w(self) -> Array:
        """The weight of Y (n,): w, or w₁ − w₂."""
        return self.ratios[0] if len(self.ratios) == 1 else self.ratios[0] - self.ratios[1]

    @cached_property
    def delta(self) -> Array:
        """π, or π₁ − π₂ (n, K); without the logged policy's if only chosen arms' are known."""
        targets = [
            t for t in self.targets if t.pi is not None or self.log.probabilities is not None
        ]
        first, *rest = (target.density(self.log) for target in targets)
        return first - rest[0] if rest else first

    @property
    def logged_alone(self) -> bool:
        """Whether the logged policy's value is asked for, so that Γ = Y."""
        return len(self.targets) == 1 and self.targets[0].pi is None

    @property
    def follows_the_log(self) -> bool:
        """Whether a target is the logged policy, which changes. Then weights must be equal."""
        return any(target.pi is None for target in self.targets)


def bounds_of(bounds: Bounds | None) -> Bounds | None:
    """Return declared bounds (lo, hi) of the rewards, checked."""
    if bounds is None:
        return None
    if np.shape(bounds) != (2,) or not all(map(is_real, bounds)) or not bounds[0] < bounds[1]:
        raise ValueError(f"bounds must be two finite numbers lo < hi; got {bounds!r}")
    lo, hi = (number(end, "bounds") for end in bounds)
    return lo, hi


def within_bounds(reward: Array, limits: Bounds | None) -> None:
    """Raise ValueError where a reward is outside the declared bounds."""
    if limits is None:
        return
    outside = np.flatnonzero((reward < limits[0]) | (reward > limits[1]))
    if outside.size:
        raise ValueError(
            f"rewards must lie within the declared bounds [{limits[0]:g}, {limits[1]:g}]; got "
            f"{reward[outside[0]]:g} in round {outside[0]}"
        )


def first_rounds(value: Any, n: int, first: int) -> Any:
    """Return the part before round `first` of an array of n rounds, of a target with such
    probabilities, or of a pair of these."""
    if isinstance(value, tuple):
        return tuple(first_rounds(one, n, first) for one in value)
    if isinstance(value, Target):
        return replace(value, pi=first_rounds(value.pi, n, first))
    return value[:first] if np.ndim(value) and len(value) == n else value


def group_of(subgroup: Any, n: int) -> Array:
    """Return a subgroup as a mask (n,); raise ValueError if it is none."""
    g = np.asarray(subgroup)
    if g.shape != (n,) or g.dtype != bool:
        raise ValueError(
            f"subgroup must be true or false for each of {n} rounds; got {g.dtype} {g.shape}"
        )
    return g


def targets_of(log: Log, target: Any) -> tuple[Target, ...]:
    """Return one target, or the two of a pair."""
    pair = isinstance(target, tuple) and len(target) == 2
    return tuple(target_of(log, t) for t in (target if pair else (target,)))


def supported_by(
    log: Log, targets: Sequence[Target], on: Array, while_available: bool
) -> tuple[Array, list[str]]:
    """Return the rounds that count, and warnings."""
    could = on.copy()
    for target in targets:
        if target.pi is not None:
            could &= supported(log, target.pi, on)
    lost = int((on & ~could).sum())
    if not lost:
        return on, []
    by_probability = log.probabilities is not None or log.available is None
    had = "had probability 0" if by_probability else NOT_KNOWN_AVAILABLE
    if not while_available:
        raise Unsupported(
            f"the target wants arms that {had} in {lost} of {int(on.sum())} rounds "
            f"({lost / on.sum():.1%}); in Python, while_available=True leaves these rounds out"
        )
    if not could.any():
        raise Unsupported(f"the target wants arms that {had} in every round")
    share = could.sum() / on.sum()
    return could, [f"the value is that of the {share:.1%} of rounds where it could act"]


class Sizes(NamedTuple):
    """Sizes of a sample: the effective sample size (Σw)²/Σw², the one that the probabilities
    predict, and the largest share of one round in Σw."""

    ess: float
    expected: float
    largest: float


def sizes_of(question: Question) -> Sizes:
    """Return the sizes of the target with the smallest effective sample size."""
    log = question.log
    on = question.on
    n = int(on.sum())
    sizes = list[Sizes]()
    for target, ratio in zip(question.targets, question.ratios, strict=True):
        w = ratio[on]
        total = w.sum()
        expected = np.nan
        if target.pi is None:
            expected = float(n)
        elif log.probabilities is not None:
            expected = float(n**2 / spread(target.pi[on], log.probabilities[on]).sum())
        largest = float(w.max() / total) if total > 0 else np.nan
        sizes.append(Sizes(ess(w), expected, largest))
    return min(sizes, key=lambda one: one.ess)


def why_invalid(question: Question, estimator: str, *, force: bool, predictable: bool) -> str:
    """Return why an interval of any kind would be invalid; "" if one may be valid."""
    log = question.log
    trained = max(target.trained for target in question.targets)
    if ESTIMATORS[estimator].biased:
        return f"{estimator!r} is biased: a number without an interval"
    if not predictable:
        return "the target or the means were learned from the rounds that judge it"
    if trained:
        return f"the target was trained on {trained} of these {len(log)} rounds"
    return "" if force else refuted(log) or chosen_by_arm(log, question.on)


def chosen_by_arm(log: Log, on: Array) -> str:
    """Return why rounds that count cannot be a choice that knew nothing of the arm; "" if they may.

    Where which rewards are missing, or which rounds are in a subgroup, does not depend on the arm,
    the rounds that count have the log's probabilities, too.
    """
    if on.all() or on.sum() < 2 or not (doubt := check(log[on])).refuted:
        return ""
    return (
        "which rewards are missing, or which rounds are in the subgroup, depends on the arm that "
        "was chosen: of the rounds that count the propensities are refuted (log E = "
        f"{doubt.log_e:.1f})"
    )


def too_little(
    steady: float, raised: float, size: float, expected: float, *, fragile: bool
) -> tuple[str, list[str]]:
    """Return why there is too little data for a normal interval or a sequence, or "", and warnings.

    steady, raised: see `Tally`. size, expected: effective sample sizes, seen and expected. fragile:
    whether much luck refuses an interval; else it warns.
    """
    warned = list[str]()
    lucky = size >= SUSPICIOUS_ESS_RATIO * expected
    if size < MIN_ESS:
        return f"the effective sample size is {size:.1f}, below {MIN_ESS:g}", warned
    if steady == 0:
        return "all rewards are the same within each arm: how much they vary is not known", warned
    luck = (
        f"the effective sample size is {size:.0f}, {expected:.3g} were expected: rounds that carry "
        "much weight are still to come"
    )
    if lucky and fragile:
        return luck, warned
    if raised > RAISED_SE_RATIO:
        warned.append(
            f"the scores vary less than the probabilities and rewards promise: the standard error "
            f"is {raised:.1f} times as large for it"
        )
    if lucky:
        warned.append(f"{luck}, and the interval may be too narrow")
    if size < WARN_BELOW_ESS:
        warned.append(f"the effective sample size is {size:.0f}, below {WARN_BELOW_ESS:g}")
    return "", warned


def too_few(carrying: float) -> str:
    """Return why too few rewards vary for a normal interval, or ""."""
    if carrying >= FEW_CARRY:
        return ""
    return (
        f"about {carrying:.1f} rewards make up the variance, fewer than 2: too few clicks, or "
        "other rare rewards, have come"
    )
