"""What presets take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import wraps
from typing import Any

import numpy as np

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.checks import Name

Arms = int | Iterable[Name]
Seed = int | np.random.SeedSequence
OWN = ("history", "encoder", "min_probability")  # every preset's, of `Bandit` and its policy


def kept(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What of the settings every preset takes (`OWN`), and the others, the model's."""
    own = {name: value for name, value in settings.items() if name in OWN}
    return own, {name: value for name, value in settings.items() if name not in own}


def made(
    arms: Arms, model: Any, policy: Any, balance: Any, n_features: int | None, seed: Seed,
    own: dict[str, Any],
) -> Bandit:  # fmt: skip
    """A preset's bandit. own: what it was given of `OWN`."""
    settings = dict(own)
    if "min_probability" in settings:
        policy = replace(policy, min_probability=settings.pop("min_probability"))
    return Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)


def takes[**P](
    *models: type, but: str | None = None
) -> Callable[[Callable[P, Bandit]], Callable[P, Bandit]]:
    """A preset refuses settings that are neither its own, nor of these models, nor `OWN`, and
    says which it has. but: one of the model's that the preset's name decides."""

    def of(preset: Callable[P, Bandit]) -> Callable[P, Bandit]:
        own = [name for name in inspect.signature(preset).parameters if name != "settings"]
        theirs = [field.name for model in models for field in fields(model) if field.name != but]
        fine = [*dict.fromkeys([*own, *theirs, *OWN])]

        @wraps(preset)
        def checked(*args: P.args, **settings: P.kwargs) -> Bandit:
            for name in settings:
                if name not in fine:
                    close = get_close_matches(name, fine, n=1)
                    hint = f"did you mean {close[0]!r}? " if close else ""
                    raise TypeError(
                        f"{checked.__name__} has no setting {name!r}; {hint}there are "
                        f"{', '.join(fine)}"
                    )
            return preset(*args, **settings)

        return checked

    return of
