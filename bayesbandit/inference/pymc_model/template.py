"""A declaration before there are rows: built on some that mean nothing, and on some without values.

One that reads its data while it is built (`x.get_value()`, `.eval()`, a GP whose range is that of
the contexts) fails without values. On given rows it is a model like any other; of a stream it is
none.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from traceback import walk_tb
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.exceptions import ShapeWarning

from bayesbandit.declaring.declaration import DATA_NAMES, Declaration
from bayesbandit.inference.graph_analysis.density import rows_of as rows_of

HSGP_ADVICE = (
    "; pm.gp.HSGP takes its centre, and by `c` its bounds, from the first contexts that it is given"
    ": call gp.prior_linearized(corners) before, with the least and the greatest context, (2, d)"
)


def set_rows(model: pm.Model, data: Mapping[str, Any]) -> None:
    """Give a built model other rows, by role; all of its data together, so that PyMC's advice to
    resize the others as well is followed."""
    values = {
        DATA_NAMES[role]: v for role, v in data.items() if DATA_NAMES[role] in model.named_vars
    }
    with model, warnings.catch_warnings(action="ignore", category=ShapeWarning):
        pm.set_data(values)


def reads_rows(model: Declaration, n_features: int, n_arms: int | None) -> str:
    """Return how a declaration fails on rows without values; "" where it does not."""
    coords = {"feature": range(n_features)}
    if n_arms is not None:
        coords["arm"] = range(n_arms)
    with pm.Model(coords=coords, model=None) as built:
        inputs = {
            "x": pt.tensor(DATA_NAMES["x"], shape=(None, n_features)),
            "reward": pt.tensor(DATA_NAMES["reward"], shape=(None,)),
        }
        if model.takes_weight:
            inputs["weight"] = pt.tensor(DATA_NAMES["weight"], shape=(None,))
        if n_arms is not None:
            inputs["arm"] = pt.tensor(DATA_NAMES["arm"], shape=(None,), dtype="int32")
        built.add_coord("row", length=inputs["x"].shape[0])
        for v in inputs.values():
            built.register_data_var(v, dims=("row", "feature")[: v.type.ndim])
        try:
            model.declare(inputs, coords)
        except Exception as error:  # whatever a declaration does without values, which is its own
            text = str(error).strip().splitlines() or [""]
            modules = {f.f_globals.get("__name__") for f, _ in walk_tb(error.__traceback__)}
            advice = HSGP_ADVICE if "pymc.gp.hsgp_approx" in modules else ""
            return f"{type(error).__name__}: {text[0]}{advice}"
    return ""


def template(model: Declaration, n_features: int, n_arms: int | None) -> pm.Model:
    """Return the model on rows that mean nothing: rewards of 0 and 1, which most likelihoods allow,
    and as many rows as make a posterior under a flat prior proper."""
    rng = np.random.default_rng(0)
    # more rows than coefficients of each arm, so that a flat prior leaves a proper posterior
    n = (n_features + 8) * (n_arms or 1)
    x = rng.normal(size=(n, n_features))
    reward = rng.integers(0, 2, n).astype(np.float64)
    weight = rng.uniform(0.5, 2.0, n) if model.takes_weight else None
    arm = None if n_arms is None else np.arange(n) % n_arms
    return model.build(x, reward, weight, arm, n_arms)
