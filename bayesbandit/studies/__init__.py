"""The studies of the paper, and those that installed packages offer: found by name."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from bayesbandit.experiments.study import Study
from bayesbandit.runtime.plugins import Failed, hides, plugin, plugins, refused, said
from bayesbandit.runtime.user_modules import place

SETTINGS = Failed, ValueError, TypeError, OSError, ImportError


def ours() -> list[str]:
    """Return the names of the studies of the package."""
    return [module.name for module in pkgutil.iter_modules(__path__)]


def names() -> list[str]:
    """Return the names of all studies, those of the package first."""
    return [*dict.fromkeys([*ours(), *plugins("studies")])]


def load(name: str) -> Study:
    """Return the study of this name."""
    if name in ours():
        hides("studies", name, "the study of bayesbandit")
        study: Study = import_module(f"bayesbandit.studies.{name}").STUDY
        return study
    if name not in plugins("studies"):
        raise ValueError(f"unknown study {name!r}; there are {', '.join(names())}")
    offered = plugin("studies", name)
    if not isinstance(offered, Study):
        raise refused("studies", name, offered, "a bb.Study")
    return offered


@contextmanager
def blamed(study: str, part: str, kept: str = "") -> Iterator[None]:
    """Raise `Failed`, with the study and its part, for an error in the `with` block.

    part: the field of the `Study` whose code runs in the block. Errors of settings, from its
    environments, are raised as they are. kept: text for the end of the message, which says where
    the results are.
    """
    try:
        yield
    except Exception as error:  # a study's own code raises what it likes
        if part == "environments" and isinstance(error, SETTINGS):
            raise
        raise Failed(
            f"`{part}` of the study {study!r} failed: {said(error)}{place(error)}{kept}"
        ) from error
