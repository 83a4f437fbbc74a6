"""A bandit that learns from the decisions of the system that is in production now."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.decision import Decision
from bayesbandit.checks import ROUNDING, Name, arm_name, number, shown
from bayesbandit.kernels.row_layout import TABULATED
from bayesbandit.runtime.identifiers import id_text, new_ids
from bayesbandit.service.inputs import encoded, ids_of, listed
from bayesbandit.service.service import Service, Stamp, stamps
from bayesbandit.store.records import SYSTEM, Conflict, Stored
from bayesbandit.store.rows import context_texts, decision_of, layout_of, text_of, to_bytes
from bayesbandit.store.versions import decided, digests


@dataclass(frozen=True)
class Followed:
    """A decision of the present system, with the bandit's advice.

    arm: the arm that the bandit would have chosen. probability: the bandit's probability of the arm
    that was shown. stamp: what the log says beside.
    """

    decision: Decision
    arm: Name
    probability: float
    stamp: Stamp

    @property
    def agrees(self) -> bool:
        """Whether the bandit would have chosen the same arm."""
        return self.arm == self.decision.arm


class Apprentice(Service):
    """A service whose bandit learns while another system decides by its own probabilities."""

    def rehearse(self) -> Decision:
        """Compile what decides here and follows a learner, and what reads another's decisions."""
        advice = super().rehearse()
        decision = _of_system(advice, 0, np.eye(len(self.arms))[0])
        _ = decision[0].probabilities
        return decision

    def follow(
        self,
        context: Any,
        arm: Name,
        probabilities: Mapping[Name, float],
        arms: Iterable[Name] | None = None,
        id: str | None = None,
    ) -> Followed:
        """Store a decision of the present system, with the arm that the bandit would have chosen.

        The bandit learns from the system's arm with the system's propensity.

        probabilities: the system's, by arm; other arms have 0. They must sum to 1, and the chosen
        arm's must be positive. The same id again returns what is stored.
        """
        version, bandit = self._version, self._version.bandit
        names = None if arms is None else tuple(dict.fromkeys(listed(arms)))
        try:
            x, among = _encoded(bandit, context, names)
            p = _distribution(probabilities, arm, bandit.arms, among)
        except ValueError:
            if not (stored := self._before(context, names, id)):
                raise
            return self._followed(stored, arm, probabilities, names)
        texts = context_texts(context, 1, True)
        ids = [id_text(new_ids(1)[0])] if id is None else ids_of(id, 1, True)
        t, now = self._count(1), self._now()
        advice = decided(bandit, x, among, digests(self._secret, ids), [t], [now])
        own = _of_system(advice, bandit.number(arm), p)
        own.ids = np.array(ids)
        chosen = np.asarray(advice.arm).tolist()[0]
        probability = float(advice.probabilities[0, bandit.number(arm)])
        [row] = self._rows(own, version.number, now)
        row |= {
            "t": t, "mode": SYSTEM, "context": texts[0],
            "x": to_bytes(x[0]) if x.ndim > 2 else None,
            "advice": text_of({"arm": chosen, "probability": probability}),
        }  # fmt: skip
        if self._append([row]):
            return Followed(own[0], chosen, probability, Stamp(now, version.number, SYSTEM))
        return self._followed(self._again(ids, texts, among), arm, probabilities, among)

    def _followed(
        self,
        stored: Sequence[Stored],
        arm: Name,
        probabilities: Mapping[Name, float],
        among: tuple[Name, ...] | None,
    ) -> Followed:
        """Return a stored decision; raise Conflict if the system's arm or probabilities differ."""
        layout = layout_of(self._version.bandit, stored[0].arms)  # the bandit may have others
        p, id = _distribution(probabilities, arm, layout.arms, among), stored[0].id
        if stored[0].arm != arm or not np.array_equal(stored[0].probabilities, p):
            raise Conflict(f"the log has a decision {id!r}, of another arm or probabilities")
        if (text := stored[0].advice) is None:
            raise Conflict(f"the log has a decision {id!r}, and the bandit made it")
        told = json.loads(text)
        decision = decision_of(layout, stored, True)
        return Followed(decision, told["arm"], told["probability"], stamps(stored)[0])

    def check(
        self,
        context: object,
        arm: Name,
        probabilities: Mapping[Name, float],
        arms: Iterable[Name] | None = None,
    ) -> None:
        """Raise ValueError if `follow` would refuse a new decision; store nothing."""
        bandit = self._version.bandit
        names = None if arms is None else tuple(dict.fromkeys(listed(arms)))
        _, among = _encoded(bandit, context, names)
        _distribution(probabilities, arm, bandit.arms, among)


def _encoded(
    bandit: Bandit, context: object, names: tuple[Name, ...] | None
) -> tuple[np.ndarray, tuple[Name, ...] | None]:
    """Return one encoded context (1, …), and the available arms: see `encoded`."""
    x, among, one = encoded(bandit, context, names)
    if not one:
        raise ValueError(f"a system decides about one context at a time; got {len(x)}")
    return x, among


def _distribution(
    probabilities: Mapping[Name, float],
    arm: Name,
    arms: tuple[Name, ...],
    among: tuple[Name, ...] | None,
) -> np.ndarray:
    """Return the system's probabilities (K,) of `arms`.

    Raise ValueError unless they sum to 1, the chosen `arm` has a positive one, and only arms
    `among` those available have (None: all). Raise TypeError unless they are by arm.
    """
    try:
        told = dict(probabilities)
    except (TypeError, ValueError):
        raise TypeError(
            f"probabilities must be a dict of numbers by arm; got {shown(probabilities)}"
        ) from None
    given = {
        arm_name(name): number(
            value, f"the probability of {name!r}", least=0.0, most=1.0 + ROUNDING
        )
        for name, value in told.items()
    }
    if unknown := [name for name in (*given, arm_name(arm)) if name not in arms]:
        raise ValueError(f"unknown arm {unknown[0]!r}; the arms are {list(arms)!r}")
    for name, value in given.items():
        if value > 0 and among is not None and name not in among:
            raise ValueError(f"{name!r} has the probability {value:g} and is not available")
    p = np.array([given.get(name, 0.0) for name in arms])
    if abs(p.sum() - 1) > ROUNDING:
        raise ValueError(f"probabilities must sum to 1; they sum to {p.sum():.10g}")
    if not given.get(arm, 0.0) > 0:
        raise ValueError(f"the chosen arm, {arm!r}, must have a probability > 0")
    return p / p.sum()


def _of_system(advice: Decision, k: int, p: np.ndarray) -> Decision:
    """Return the system's decision for arm number k, with probabilities p (K,).

    Its moments are those of the bandit's `advice`.
    """
    layout, rows = advice.layout, advice.rows.copy()
    log = layout.records(rows)
    log["scale"], log["last"] = advice.sd, p
    log["arm"], log["rule"], log["propensity"] = k, TABULATED, p[k]
    log["number"] = log["min_probability"] = 0.0
    return Decision(layout, rows)
