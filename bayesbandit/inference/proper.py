"""Rows that have no posterior, whichever engine is asked to draw from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from bayesbandit.inference.base import one_thread
from bayesbandit.inference.gibbs import sampler as gibbs
from bayesbandit.inference.plan import Plan
from bayesbandit.inference.pymc_model.impossible_rewards import blamed

_conditionals: WeakKeyDictionary[Plan, Any] = WeakKeyDictionary()


def check_possible(
    plan: Plan, rows: Mapping[str, np.ndarray], draws: Sequence[Mapping[str, np.ndarray]] = ()
) -> None:
    """Refuses rows, by role, of rewards that have likelihood 0 whatever the variables are; `draws`
    of these are more points to try. Of a Gaussian closed form none have."""
    if not plan.closed_form or getattr(plan.method, "judges", False):
        plan.likelihood.check(plan.model.name, rows, draws)


def in_closed_form(plan: Plan, rows: Mapping[str, np.ndarray]) -> Any:
    """What is `Known` given rows, by role."""
    with one_thread(), blamed(plan, rows):
        return plan.method.posterior(**rows)


def check_proper(plan: Plan, rows: Mapping[str, np.ndarray]) -> None:
    """Refuses rows, by role, of which it is proved that they have no posterior, where the engine
    was asked for by name: else the Gibbs sampler has seen them, which proves it."""
    if plan.closed_form or not plan.asked == plan.engine != gibbs.ENGINE:
        return
    if plan not in _conditionals:
        _conditionals[plan] = gibbs.match(plan.built)
    if isinstance(found := _conditionals[plan], gibbs.Gibbs):
        found.check_proper(rows)
