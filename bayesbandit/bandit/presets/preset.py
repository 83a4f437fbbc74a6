"""The decorator of presets, functions that return a bandit: their settings, told and checked."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from functools import wraps
from typing import Any

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.policies import EpsilonGreedy, Floored, Scaled
from bayesbandit.weighting.propensity import InversePropensity

# What explains settings, after the model.
EXPLAINED_BY = (InversePropensity, EpsilonGreedy, Scaled, Floored, Bandit)
OF_BANDITS = inspect.signature(Bandit).parameters
OLD_NAMES = {"floor": ("min_variance", "variance_floor")}  # and those that they have now
SETTING_EXPLANATION = re.compile(r"([a-z]\w*(?:, [a-z]\w*)*): ")


def preset[**P](
    model: type | None = None, but: str = "", like: Callable[..., Bandit] | None = None
) -> Callable[[Callable[P, Bandit]], Callable[P, Bandit]]:
    """Decorate a function that returns a bandit and takes settings by **settings.

    The signature names all of them, with types and defaults: the function's own parameters, the
    other fields of `model`, a dataclass, and the bandit's encoder and history. The docstring gets
    the explanations that the model, the policies, the balance and `Bandit` have for settings that
    it does not explain itself. An unknown setting raises TypeError with the nearest name.

    but: a field of the model that is no setting, because the preset decides it.
    like: a preset that explains the same settings.
    """

    def decorator(make: Callable[P, Bandit]) -> Callable[P, Bandit]:
        signature = inspect.signature(make)
        keywords = {n: p for n, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
        for field in () if model is None else fields(model):
            if field.name != but:
                keywords.setdefault(field.name, _keyword(field))
        keywords |= {name: OF_BANDITS[name] for name in ("encoder", "history")}
        sources = [source for source in (like, model, *EXPLAINED_BY) if source is not None]

        @wraps(make)
        def checked(*args: P.args, **settings: P.kwargs) -> Bandit:
            for setting in settings:
                if setting not in keywords:
                    close = get_close_matches(setting, keywords, n=1)
                    hint = f"did you mean {close[0]!r}? " if close else ""
                    for name in keywords.keys() & OLD_NAMES.get(setting, ()):
                        hint = f"it is now {name!r}; "
                    raise TypeError(
                        f"{make.__name__} has no setting {setting!r}; {hint}there are "
                        f"{', '.join(keywords)}"
                    )
            return make(*args, **settings)

        checked.__doc__ = _documented(make.__doc__, keywords, sources)
        vars(checked)["__signature__"] = signature.replace(parameters=[*keywords.values()])
        return checked

    return decorator


def pop_fields(model: type, settings: dict[str, Any]) -> dict[str, Any]:
    """Return those of the settings that are fields of a dataclass, and remove them."""
    return {f.name: settings.pop(f.name) for f in fields(model) if f.name in settings}


def _keyword(field: Field[Any]) -> inspect.Parameter:
    """Return a field of a dataclass as a parameter that is given by name."""
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=field.type
    )


def _documented(doc: str | None, keywords: Iterable[str], sources: Iterable[object]) -> str:
    """Return a docstring that explains all keywords; sources explain what it does not."""
    text = inspect.cleandoc(doc or "")
    explained = explanations(text)
    for source in sources:
        explained = explanations(inspect.getdoc(source) or "") | explained
    items = dict.fromkeys(explained[name] for name in keywords if name in explained)
    return "\n".join([text, "", *(item for item in items if item not in text)])


def explanations(doc: str) -> dict[str, str]:
    """Return the lines of a docstring that explain each setting: "name: what it is", or "a, b: …".

    An explanation begins a line, and ends before the next one or a blank line.
    """
    by_name: dict[str, str] = {}
    names: list[str] = []
    for line in doc.splitlines():
        if item := SETTING_EXPLANATION.match(line):
            names = item[1].split(", ")
            by_name |= dict.fromkeys(names, line)
        elif not line.strip():
            names = []
        else:
            more = f"\n    {line.strip()}"
            by_name |= {name: by_name[name] + more for name in names}
    return by_name
