"""What presets take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bayesbandit.checks import Name

Arms = int | Iterable[Name]
Seed = int | np.random.SeedSequence


def kept(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What of the settings is `Bandit`'s (history), and the others, the model's."""
    own = {name: value for name, value in settings.items() if name == "history"}
    return own, {name: value for name, value in settings.items() if name not in own}
