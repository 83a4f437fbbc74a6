"""The decorator of presets, functions that return a model, a policy and a balance."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import wraps
from typing import Any

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.runtime.savable import refuse_old_names

Parts = tuple[Any, Any, Any]  # a model, a policy, and a balance or None
OWN = ("history", "encoder", "min_probability")  # settings of every preset's bandit and policy


def preset[**P](
    *models: type, but: str | None = None
) -> Callable[[Callable[P, Parts]], Callable[P, Bandit]]:
    """Decorate a function that returns a model, a policy and a balance, to return their bandit.

    The function takes arms, n_features and seed, which go to the bandit, and **settings. Settings
    in `OWN` go to the bandit and its policy; the function gets the fields of `models`. Any other
    raises TypeError with the allowed names. but: a field that is no setting, because the preset's
    name decides it.
    """

    def decorator(parts: Callable[P, Parts]) -> Callable[P, Bandit]:
        signature = inspect.signature(parts)
        named = [name for name in signature.parameters if name != "settings"]
        of_models = [field.name for model in models for field in fields(model) if field.name != but]
        allowed = [*dict.fromkeys([*named, *of_models, *OWN])]

        @wraps(parts)
        def make(*args: P.args, **settings: P.kwargs) -> Bandit:
            for model in models:
                refuse_old_names(model, settings, parts.__name__)
            for name in settings:
                if name not in allowed:
                    close = get_close_matches(name, allowed, n=1)
                    hint = f"did you mean {close[0]!r}? " if close else ""
                    raise TypeError(
                        f"{parts.__name__} has no setting {name!r}; {hint}there are "
                        f"{', '.join(allowed)}"
                    )
            common: dict[str, Any] = {n: settings.pop(n) for n in OWN if n in settings}
            made, policy, balance = parts(*args, **settings)
            if "min_probability" in common:
                policy = replace(policy, min_probability=common.pop("min_probability"))
            bound = signature.bind(*args, **settings)
            bound.apply_defaults()
            for name in ("n_features", "seed"):
                common[name] = bound.arguments[name]
            return Bandit(bound.arguments["arms"], made, policy, balance, **common)

        vars(make)["__signature__"] = signature.replace(return_annotation="Bandit")
        return make

    return decorator
