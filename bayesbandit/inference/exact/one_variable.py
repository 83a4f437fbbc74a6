"""Which models have one variable, a probability or a rate, that is the mean reward itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.inference.base import Compiled, NotThisEngine, Refusal
from bayesbandit.inference.graph_analysis.degrees import Degrees
from bayesbandit.inference.graph_analysis.density import Density, containers, distribution
from bayesbandit.inference.graph_analysis.dependence import Influence
from bayesbandit.inference.graph_analysis.operations import number
from bayesbandit.inference.graph_analysis.quadratic import PYTHON

if TYPE_CHECKING:
    import pymc as pm

ENGINE = "conjugate"


def refused(reason: str, of_rows: bool = False) -> NotThisEngine:
    """A model is not conjugate, and why."""
    return NotThisEngine(Refusal(ENGINE, reason, of_rows))


def one_variable(model: pm.Model) -> tuple[Any, float]:
    """The one free variable, a number, and the upper bound of its support, whose lower one is 0."""
    if not model.free_RVs:
        raise refused("the model has no free variable")
    if len(model.free_RVs) > 1:
        two = " and ".join(f"'{v.name}' ~ {distribution(v)}" for v in model.free_RVs[:2])
        raise refused(f"{two}: more than one variable")
    [v] = model.free_RVs
    if "arm" in containers(model):
        raise refused(f"'{v.name}' ~ {distribution(v)}: the arms share the model")
    label = f"'{v.name}' ~ {distribution(v)}"
    if model.potentials:
        raise refused(f"potential '{model.potentials[0].name}' beside the likelihood")
    if not str(v.dtype).startswith("float"):
        raise refused(f"{label}: discrete")
    if v.type.ndim:
        raise refused(f"{label}: not a scalar")
    if np.isnan(containers(model)["reward"].get_value(borrow=True)).any():
        raise refused("missing rewards")
    transform = model.rvs_to_transforms[v]
    name = getattr(transform, "name", "")
    if name == "log":
        return v, math.inf
    if name == "logodds":
        return v, 1.0
    if name == "interval":
        lower, upper = transform.args_fn(*v.owner.inputs)
        if number(lower) == 0.0 and upper is None:
            return v, math.inf
        if number(lower) == 0.0 and number(upper) == 1.0:
            return v, 1.0
    raise refused(f"{label}: its support is not (0, 1) or (0, ∞)")


def check_mean_is(density: Density, value: Any) -> None:
    """Refuses a mean reward that is not the variable itself, whatever the row."""
    names = {v: (role,) for role, v in density.inputs.items()}
    if data := Influence([density.mean], names).of(density.mean):
        raise refused(f"'mean_reward': depends on the {' and the '.join(sorted(data))}")
    degrees = Degrees([density.mean], {value: 1.0})
    if why := degrees.fault(density.mean, most=1):
        raise refused(f"'mean_reward': {why}")
    found = Compiled([value, *density.inputs.values()], [density.mean], PYTHON)
    rows = [np.ones((2, density.n_features)) if role == "x" else np.ones(2) if role != "arm"
            else np.zeros(2, dtype=np.int64) for role in density.inputs]  # fmt: skip
    for v in (0.0, 1.0):
        if not (found(np.array(v), *rows)[0] == v).all():
            raise refused(f"'mean_reward': is not '{value.name}' itself")
