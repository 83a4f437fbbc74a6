"""Names of a package that load when they are first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

# what to do instead of names that older versions had
REPLACEMENTS = {
    "bayesbandit.score": "bandit.copy().choose(table), and map_partitions of Dask, decide a table",
    "bayesbandit.ope.power": "docs/howto/experiment.md simulates an experiment in a few lines",
    "bayesbandit.ope.replay": "docs/howto/logs.md replays a bandit that learns in a few lines",
    "bayesbandit.evaluation.drift": 'half_life="auto" chooses one: bandit.belief.half_life',
    "bayesbandit.plots.calibration": "its numbers are bb.ope.check(log).calibration",
    "bayesbandit.plots.propensities": "the package of the paper's studies draws it",
    "bayesbandit.plots.value_sequences": "its numbers are bb.ope.evaluate(…).sequence",
}


def missing(package: str, name: str) -> AttributeError:
    """Return the error for a name that a package does not have."""
    hint = REPLACEMENTS.get(f"{package}.{name}", "")
    said = f"module {package!r} has no attribute {name!r}"
    return AttributeError(f"{said}: {hint}" if hint else said)


def load(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Return the object of this name; raise AttributeError if the package has none.

    homes: the module of each name, relative to bayesbandit. A module that has the name itself
    stands for the module.
    """
    if name not in homes:
        raise missing(package, name)
    module = import_module(f".{homes[name]}", "bayesbandit")
    return module if homes[name] == name else getattr(module, name)
