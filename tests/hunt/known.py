"""Declarations that were once answered wrongly, and others of their kinds, with rows that show it.

Each must be answered rightly or refused with a reason. `REPORTED` are the former, `FURTHER` the
latter; kinds: "fault" (an operation that clears another's fault), "rows" (structure that a few
template rows do not show), "template" (values read while the graph is built), "stale" (surroundings
that change), "mean" (means that depend on rewards or weights), "idiom" (what PyMC allows).
"""

from __future__ import annotations

from tests.hunt.case import Case
from tests.hunt.further import FURTHER
from tests.hunt.reported import REPORTED

KNOWN: list[Case] = [*REPORTED, *FURTHER]
SOON = [case for case in REPORTED if not case.slow]
QUICK: list[Case] = [  # the first of each kind
    case for i, case in enumerate(SOON) if case.kind not in {earlier.kind for earlier in SOON[:i]}
]
