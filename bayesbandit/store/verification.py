"""Whether a log is whole: every version computed again, and every decision decided again by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from bayesbandit.store.ledger import Ledger
from bayesbandit.store.rows import Parts


def violations(ledger: Ledger, parts: Parts) -> pd.DataFrame:
    raise ValueError("to come")
