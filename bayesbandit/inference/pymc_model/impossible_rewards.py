"""Which rewards are to blame where an engine cannot start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from bayesbandit.inference.base import NotFinite

SAID = 5  # rewards


@contextmanager
def blamed(plan: Any, rows: Mapping[str, np.ndarray]) -> Iterator[None]:
    """Name the rewards whose log density is not finite, where an engine raises `NotFinite`."""
    try:
        yield
    except NotFinite as error:
        at = plan.likelihood.lost(rows)
        told = [f"{rows['reward'][i]:g} (row {i})" for i in at[:SAID].tolist()]
        told += [f"{len(at) - SAID} more"] if len(at) > SAID else []
        by = f", by the rewards {', '.join(told)}" if told else ""
        raise ValueError(f"{plan.model.name}: {error}{by}") from error
