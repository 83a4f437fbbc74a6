"""A bandit that learns from the decisions of the system that is in production now."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.decision import Decision
from bayesbandit.checks import ROUNDING, Name, arm_name, number, shown
from bayesbandit.kernels.row_layout import TABULATED
from bayesbandit.runtime.identifiers import id_text, new_ids
from bayesbandit.service.inputs import arms_listed, encoded, ids_of
from bayesbandit.service.service import Service
from bayesbandit.store.records import SYSTEM, Conflict, Stored
from bayesbandit.store.rows import context_texts, decision_of, layout_of, text_of
from bayesbandit.store.versions import decided, digests


@dataclass(frozen=True)
class Followed:
    """A decision of the present system, with the bandit's advice.

    arm: the arm that the bandit would have chosen. probability: the bandit's probability of the arm
    that was shown. stored: the decision as the log has it.
    """

    decision: Decision
    arm: Name
    probability: float
    stored: Stored

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
        version = self._version
        bandit = self._version.bandit
        names = arms_listed(arms)
        try:
            x, among = _encoded(bandit, context, names)
            p = _distribution(probabilities, arm, bandit.arms, among)
        except ValueError:
            if not (stored := self._before(context, names, id)):
                raise
            return self._followed(stored[0], arm, probabilities, names)
        texts = context_texts(context, 1, True)
        now = self._now()
        ids = [id_text(new_ids(1)[0])] if id is None else ids_of(id, 1, True)
        t = self._count(1)
        k = bandit.number(arm)
        advice = decided(bandit, x, among, digests(self._secret, ids), [t], [now])
        chosen = np.asarray(advice.arm).tolist()[0]
        probability = float(advice.probabilities[0, k])
        made = Stored(
            ids[0], now, SYSTEM, version.number, t, arm, float(p[k]), bandit.arms,
            _of_system(advice, k, p).rows[0], p, x[0] if x.ndim > 2 else None, texts[0],
            text_of({"arm": chosen, "probability": probability}),
        )  # fmt: skip
        if not self._append([made]):
            [made] = self._again(ids, texts, among)
        return self._followed(made, arm, probabilities, among)

    def _followed(
        self,
        stored: Stored,
        arm: Name,
        probabilities: Mapping[Name, float],
        among: tuple[Name, ...] | None,
    ) -> Followed:
        """Return a stored decision; raise Conflict if the system's arm or probabilities differ."""
        p = _distribution(probabilities, arm, stored.arms, among)
        if stored.arm != arm or not np.array_equal(stored.probabilities, p):
            raise Conflict(f"the log has a decision {stored.id!r}, of another arm or probabilities")
        if stored.advice is None:
            raise Conflict(f"the log has a decision {stored.id!r}, and the bandit made it")
        told = json.loads(stored.advice)
        decision = decision_of(layout_of(self._version.bandit, stored.arms), [stored], True)
        return Followed(decision, told["arm"], told["probability"], stored)

    def check(
        self,
        context: object,
        arm: Name,
        probabilities: Mapping[Name, float],
        arms: Iterable[Name] | None = None,
    ) -> None:
        """Raise ValueError if `follow` would refuse a new decision; store nothing."""
        bandit = self._version.bandit
        _, among = _encoded(bandit, context, arms_listed(arms))
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
    layout = advice.layout
    rows = advice.rows.copy()
    log = layout.records(rows)
    log["scale"], log["last"] = advice.sd, p
    log["arm"], log["rule"], log["propensity"] = k, TABULATED, p[k]
    log["number"] = log["min_probability"] = 0.0
    return Decision(layout, rows)
