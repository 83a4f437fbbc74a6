"""Other rows for a built model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import pymc as pm
from pymc.exceptions import ShapeWarning

from bayesbandit.declaring.declaration import DATA
from bayesbandit.inference.graph_analysis.quadratic import PYTHON


def set_rows(model: pm.Model, data: Mapping[str, Any]) -> None:
    """Give a built model other rows, by role; all of its data together, so that PyMC's advice to
    resize the others as well is followed."""
    known = {DATA[role]: v for role, v in data.items() if DATA[role] in model.named_vars}
    with model, warnings.catch_warnings(action="ignore", category=ShapeWarning):
        pm.set_data(known)


def at_start(model: pm.Model) -> float:
    """The log density at the variables' initial point."""
    return float(model.compile_logp(mode=PYTHON)(model.initial_point()))
