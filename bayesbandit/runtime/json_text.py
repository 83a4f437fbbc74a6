"""Values as JSON text, those of NumPy and pandas too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np


def json_text(value: object) -> str:
    """Return values as JSON; a row with names is an object, and dates are as `str` shows them."""
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping) or hasattr(value, "items"):  # a Series
        return dict(value.items())
    return str(value)
