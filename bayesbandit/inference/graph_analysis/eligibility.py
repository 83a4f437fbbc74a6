"""What every engine must be able to assume of a model, and the closed forms of its variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from bayesbandit.inference.base import Improper, NotFinite, NotThisEngine, Refusal, refuse
from bayesbandit.inference.graph_analysis.degrees import Degrees
from bayesbandit.inference.graph_analysis.density import (
    containers,
    distribution,
    row_axes,
)
from bayesbandit.inference.graph_analysis.rewrites import lowered
from bayesbandit.inference.graph_analysis.row_noise import positive
from bayesbandit.inference.graph_analysis.transforms import transform_name

if TYPE_CHECKING:
    import pymc as pm
    from pymc.logprob.transforms import Transform

    from bayesbandit.inference.base import ClosedForm
    from bayesbandit.inference.graph_analysis.density import Density


SUM_OUT = (
    "; a discrete variable of few values is summed out (pymc_extras.marginalize) if the mean "
    "reward does not depend on it: return the mean over its values, as mu + p * shift for mu + z * "
    "shift"
)


def check_mean(built: pm.Model, asked: str) -> None:
    """Raise `NotThisEngine`, for every engine, if the mean reward depends on rewards or weights."""
    # a seed of degree 1 tells whether its value enters; its length alone, as in
    # zeros_like(reward), does not count
    [mean] = lowered([built["mean_reward"]])
    fixed = dict.fromkeys(built.free_RVs, 0.0)  # whatever their priors are made of
    why = [
        f"{role}s"
        for role, v in containers(built).items()
        if role in ("reward", "weight") and Degrees([mean], {**fixed, v: 1.0}).of(mean)
    ]
    if why:
        said = " and ".join(why)
        raise refuse(asked, f"'mean_reward': depends on the {said}, which no future row has")


def check_random(built: pm.Model, asked: str) -> None:
    """Raise `NotThisEngine` if the log density draws random numbers, as that of a minibatch
    does."""
    from pymc.data import MinibatchOp

    observed = [built.rvs_to_values[v] for v in built.observed_RVs]
    for v in ancestors([*built.basic_RVs, *built.potentials, *observed]):
        if v.owner is not None and isinstance(v.owner.op, MinibatchOp):
            reason = "the log density is of a random minibatch: declare it on the rows themselves"
            raise refuse(asked, reason)


def discrete(model: pm.Model, engine: str) -> Refusal | None:
    """Return the refusal of a model that has no variables, or a variable without a gradient."""
    if not model.free_RVs:
        return Refusal(engine, "the model has no free variable")
    for v in model.free_RVs:
        if not str(v.dtype).startswith("float"):
            reason = f"'{v.name}' ~ {distribution(v)}: discrete, without a gradient{SUM_OUT}"
            return Refusal(engine, reason)
    return None


def check_on_own_rows(engine: ClosedForm, density: Density, name: str) -> None:
    """Raise `NotThisEngine` if the engine's posterior of the model's own rows is wrong.

    Template rows may have no density under the model, or leave the posterior improper; then nothing
    is refused. Raise PyMC's error for a parameter that is out of its bounds on positive rows, too,
    as a fixed scale of 0 is.
    """
    own = density.own
    n = len(own["x"])
    if not n:
        return
    # rewards that have logarithms, and contexts that may be exposures or sds
    other = own | positive(density, n)
    try:
        try:
            engine.posterior(**own)
        except ValueError as error:
            if not is_out_of_bounds(error):
                raise
            engine.posterior(**other)
    except (Improper, NotFinite):
        return
    except NotThisEngine:
        raise
    except ValueError as error:
        if is_out_of_bounds(error):
            raise
        if "finite" not in str(error):
            raise refuse(name, str(error).splitlines()[0], of_rows=True) from error


def is_out_of_bounds(error: ValueError) -> bool:
    """Return whether PyMC says by this error that a parameter is out of its bounds."""
    return type(error).__name__ == "ParameterValueError"


# of a variable, its transform, and whether it has a value for each row
Unsuited = Callable[[Variable, "Transform | None", bool], str]


def check_eligible(
    model: pm.Model, engine: str, positive: str = "", unsuited: Unsuited | None = None
) -> None:
    """Raise `NotThisEngine` for variables that are discrete, imputed, transformed or one for each
    row.

    positive: a variable that may be positive by a log transform. unsuited: returns why an engine
    does not take a transformed variable, or one with a value for each row; "" if it does.
    """

    def plain(variable: Variable, transform: Transform | None, by_row: bool) -> str:
        if by_row:
            return "one value for each row"
        known = transform is None or variable.name == positive
        return "" if known else f"{transform_name(transform)} transform"

    if not model.free_RVs:
        raise refuse(engine, "the model has no free variable")
    observed = {v.name for v in model.observed_RVs}
    by_row = row_axes(model)
    for v in model.free_RVs:
        if v.name.replace("_unobserved", "_observed") in observed:
            why = "missing rewards are imputed"
        elif not str(v.dtype).startswith("float"):
            why = "discrete"
        else:
            why = (unsuited or plain)(v, model.rvs_to_transforms[v], v.name in by_row)
        if why:
            raise refuse(engine, f"'{v.name}' ~ {distribution(v)}: {why}")
    reward = containers(model)["reward"]
    if np.isnan(reward.get_value(borrow=True)).any():
        raise refuse(engine, f"'{reward.name}': missing rewards")
