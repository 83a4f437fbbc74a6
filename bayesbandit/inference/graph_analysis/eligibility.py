"""What every engine must be able to assume of a model, and the closed forms of its variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.traversal import ancestors

from bayesbandit.inference.base import NotThisEngine, Refusal
from bayesbandit.inference.graph_analysis.density import (
    containers,
    distribution,
    is_zero_sum,
    row_dimension,
)
from bayesbandit.inference.graph_analysis.dependence import Influence
from bayesbandit.inference.graph_analysis.rewrites import lowered

if TYPE_CHECKING:
    import pymc as pm


def check_mean(built: pm.Model, asked: str) -> None:
    """Refuses a mean reward that depends on rewards or weights, whatever the engine."""
    mean, names = lowered([built["mean_reward"]])[0], dict.fromkeys(built.free_RVs, ())
    found = Influence([mean], names | {v: (role,) for role, v in containers(built).items()}).of(
        mean
    )
    if why := found & {"reward", "weight"}:
        said = " and ".join(sorted(f"{role}s" for role in why))
        reason = f"'mean_reward': depends on the {said}, which no future row has"
        raise NotThisEngine(Refusal(asked, reason))


def check_random(built: pm.Model, asked: str) -> None:
    """Refuses a log density that draws random numbers, as of a minibatch."""
    from pymc.data import MinibatchOp

    observed = [built.rvs_to_values[v] for v in built.observed_RVs]
    for v in ancestors([*built.basic_RVs, *built.potentials, *observed]):
        if v.owner is not None and isinstance(v.owner.op, MinibatchOp):
            reason = "the log density is of a random minibatch: declare it on the rows themselves"
            raise NotThisEngine(Refusal(asked, reason))


def on_own_rows(engine: Any) -> None:
    """Refuses an engine whose posterior of the model's own rows, if it has any, is improper or not
    that of its log density. Template rows may be such as the model has no density for."""
    own = engine.quadratic.density.own
    if not len(own["x"]):
        return
    try:
        engine.posterior(own["x"], *(own.get(k) for k in ("reward", "weight", "arm")))
    except NotThisEngine:
        raise
    except ValueError as error:
        if "finite" not in str(error):
            raise engine.quadratic.refusal(str(error).splitlines()[0], of_rows=True) from error


def eligible(model: pm.Model, engine: str, positive: str = "") -> None:
    """Refuses variables that are discrete, imputed, transformed or one for each row.

    positive: a variable that may be positive by a log transform.
    """

    def refuse(variable: Any, why: str) -> NotThisEngine:
        return NotThisEngine(
            Refusal(engine, f"'{variable.name}' ~ {distribution(variable)}: {why}")
        )

    if not model.free_RVs:
        raise NotThisEngine(Refusal(engine, "the model has no free variable"))
    observed = {v.name for v in model.observed_RVs}
    for v in model.free_RVs:
        transform = model.rvs_to_transforms[v]
        if (
            v.name.endswith("_unobserved")
            and v.name.replace("_unobserved", "_observed") in observed
        ):
            raise refuse(v, "missing rewards are imputed")
        if not str(v.dtype).startswith("float"):
            raise refuse(v, "discrete")
        if row_dimension(model) in (model.named_vars_to_dims.get(v.name) or ()):
            raise refuse(v, "one value for each row")
        if not (transform is None or v.name == positive or is_zero_sum(transform)):
            raise refuse(v, f"{transform.name} transform")
    reward = containers(model).get("reward")
    if reward is not None and np.isnan(reward.get_value(borrow=True)).any():
        raise NotThisEngine(Refusal(engine, f"'{reward.name}': missing rewards"))
