"""How a preset is made: a function that names a model, a policy and a balance."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import wraps
from typing import Any

from bayesbandit.bandit.bandit import Bandit

Parts = tuple[Any, Any, Any]  # a model, a policy, and a balance or None
OWN = ("history", "encoder", "min_probability")  # every preset's, of `Bandit` and its policy


def preset[**P](
    *models: type, but: str | None = None
) -> Callable[[Callable[P, Parts]], Callable[P, Bandit]]:
    """Decorate a function that returns a model, a policy and a balance: it becomes a bandit's
    maker.

    The function takes arms, n_features and seed, which go to the bandit, and **settings. There,
    settings of `OWN` go to the bandit and its policy, and those of these models are passed on. Any
    other is refused, with the names that there are. but: a setting of the model's that the
    preset's name decides.
    """

    def of(parts: Callable[P, Parts]) -> Callable[P, Bandit]:
        signature = inspect.signature(parts)
        named = [name for name in signature.parameters if name != "settings"]
        theirs = [field.name for model in models for field in fields(model) if field.name != but]
        fine = [*dict.fromkeys([*named, *theirs, *OWN])]

        @wraps(parts)
        def make(*args: P.args, **settings: P.kwargs) -> Bandit:
            for name in settings:
                if name not in fine:
                    close = get_close_matches(name, fine, n=1)
                    hint = f"did you mean {close[0]!r}? " if close else ""
                    raise TypeError(
                        f"{parts.__name__} has no setting {name!r}; {hint}there are "
                        f"{', '.join(fine)}"
                    )
            own: dict[str, Any] = {n: settings.pop(n) for n in OWN if n in settings}
            model, policy, balance = parts(*args, **settings)
            if "min_probability" in own:
                policy = replace(policy, min_probability=own.pop("min_probability"))
            given = signature.bind(*args, **settings)
            given.apply_defaults()
            asked: dict[str, Any] = {name: given.arguments[name] for name in ("n_features", "seed")}
            return Bandit(given.arguments["arms"], model, policy, balance, **asked, **own)

        vars(make)["__signature__"] = signature.replace(return_annotation="Bandit")
        return make

    return of
