"""The decisions whose rewards a bandit has learned: a reward counts once.

A decision without an id is marked by the record itself, so that a round makes no id; when its id
is asked for later, it is recorded then. Other decisions are recorded by their ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.runtime.identifiers import BYTES, id_text

if TYPE_CHECKING:
    from bayesbandit.bandit.decision import Decision

MOST_IDS = 10_000  # that are remembered: a message that comes twice does so soon


class Observed(dict[str, None]):
    """The ids of the latest decisions that were learned."""

    def __deepcopy__(self, memo: object) -> Observed:
        """Return a copy in one step: another thread may record ids meanwhile."""
        return Observed(self)

    def record(self, keys: Sequence[str]) -> None:
        """Remember ids, and forget the oldest beyond `MOST_IDS`."""
        self.update(dict.fromkeys(keys[-MOST_IDS:]))
        for key in list(islice(self, max(0, len(self) - MOST_IDS))):
            del self[key]

    def repeated(self, decision: Decision) -> int | None:
        """Return the first row of a decision that was learned, or comes twice; None: no row."""
        if decision.ids is None and decision.learned_by is None:
            return None
        seen = set[str]()
        for i, key in enumerate(keys_of(decision)):
            if decision.learned_by is self or key in self or key in seen:
                return i
            seen.add(key)
        return None

    def learned(self, decision: Decision) -> None:
        """Remember that a decision was learned."""
        if decision.ids is None:
            decision.learned_by = self
        else:
            self.record(keys_of(decision))


def keys_of(decision: Decision) -> list[str]:
    """Return the ids of a decision's rows."""
    ids = decision.identify()
    if ids.dtype == np.uint8:
        return [id_text(one) for one in ids.reshape(-1, BYTES)]
    texts: list[str] = np.atleast_1d(ids).tolist()
    return texts
