"""Draws of the prior and of rewards given it, and the check of a mean reward by them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from pytensor.graph.traversal import ancestors

from bayesbandit import checks
from bayesbandit.checks import Array, Contexts
from bayesbandit.declaring.declaration import DATA_NAMES, Declaration
from bayesbandit.forms import picked
from bayesbandit.inference.approximate import silenced
from bayesbandit.inference.base import COMPILE
from bayesbandit.inference.draws import Draws
from bayesbandit.inference.graph_analysis.density import containers, row_dimension
from bayesbandit.inference.graph_analysis.operations import bare, elementwise_name, operation
from bayesbandit.inference.graph_analysis.transforms import transform_name
from bayesbandit.inference.uncompiled import UNCOMPILED_MODE

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm
    import xarray as xr

    from bayesbandit.inference.plan import Plan

UNCOMPILED = {"mode": UNCOMPILED_MODE}  # compiling with numba takes longer than it saves here
QUIET_SAMPLING = {"progressbar": False, "compile_kwargs": UNCOMPILED}
CHECK_DRAWS = 2000
LARGEST_Z = 5.0  # of a difference between rewards and the mean reward that is no chance


def prior_predictive(
    model: Declaration,
    x: Contexts,
    arm: ArrayLike | None,
    n_arms: int | None,
    draws: int,
    seed: int | None,
) -> xr.DataTree:
    """Return draws of the prior and of rewards given it: see `RewardModel.prior_predictive`."""
    import pymc as pm
    import xarray as xr

    checks.integer(draws, "draws", 1)
    if x is None:
        raise ValueError(
            f"{model.name}: x must be contexts (n, d), with a row for each reward; got None"
        )
    built = model.build(x, np.zeros(len(np.asarray(x))), None, arm, n_arms)
    rewards = rewards_of(built, model.name)
    for v in built.free_RVs:
        if transform_name(built.rvs_to_transforms[v]) == "ordered":
            raise ValueError(
                f"{model.name}: PyMC draws the prior of {v.name!r} without the order that its "
                'transform gives it: fit the model, and use posterior.predict(x, kind="response")'
            )
    built.named_vars_to_dims[rewards] = (row_dimension(built),)
    names = [*(v.name for v in [*built.free_RVs, *built.deterministics]), "mean_reward", rewards]
    with COMPILE, silenced():
        tree = pm.sample_prior_predictive(
            draws, model=built, var_names=list(dict.fromkeys(names)), random_seed=seed,
            compile_kwargs=UNCOMPILED,
        )  # fmt: skip
    # nothing was observed, and the rewards among the data are placeholders
    given = tree["constant_data"].to_dataset().drop_vars(DATA_NAMES["reward"])
    return tree.drop_nodes("observed_data").assign(constant_data=xr.DataTree(given))


def rewards_of(built: pm.Model, name: str) -> str:
    """Return the observed variable of the rewards; raise ValueError if they cannot be drawn."""
    by_row = along_rows(built)
    if len(by_row) != 1 or built.potentials:
        what = ", ".join(repr(v) for v in [*by_row, *(p.name for p in built.potentials)]) or "none"
        raise ValueError(
            f"{name}: rewards can be drawn where one observed variable has them, without "
            f"potentials; the likelihood is {what}"
        )
    check_observes_rewards(built, by_row[0], name)
    return by_row[0]


def check_observes_rewards(built: pm.Model, observed: str, name: str) -> None:
    """Raise ValueError if an observed variable's values are computed of the rewards.

    Draws of logarithms are no rewards, nor is their density one of rewards.
    """
    value = built.rvs_to_values[built[observed]]
    while value.owner is not None and (
        elementwise_name(value) == "Cast"
        or bare(value) is not value
        or operation(value.owner)[1] in ("XTensorFromTensor", "TensorFromXTensor")
    ):
        value = value.owner.inputs[0]
    if value is not containers(built)["reward"]:
        raise ValueError(
            f"{name}: {observed!r} observes what is computed of the rewards, on another scale than "
            "theirs: declare the distribution of the rewards themselves, as pm.LogNormal for "
            "rewards with normal logarithms"
        )


def check(
    model: Declaration, x: Contexts, arm: ArrayLike | None, n_arms: int | None, seed: int
) -> pd.DataFrame:
    """Compare rewards with the mean reward that a model returns: see `RewardModel.check`.

    r − m has mean 0 given m. So have its means over the rows of a draw of the prior, times 1 and
    times the sign of m less its median. Draws are independent, and give the standard errors.
    """
    import pandas as pd

    tree = prior_predictive(model, x, arm, n_arms, CHECK_DRAWS, seed)
    mean = tree["prior"]["mean_reward"].to_numpy().reshape(CHECK_DRAWS, -1)
    [drawn] = tree["prior_predictive"].dataset.data_vars.values()
    gap = drawn.to_numpy().reshape(CHECK_DRAWS, -1) - mean
    rows: list[dict[str, Any]] = []
    for what, sign in (("level", np.ones_like(mean)), ("slope", np.sign(mean - np.median(mean)))):
        # E (r − m) s(m) = 0 for any s, since E[r | m] = m: here s = 1, and the sign of m less its
        # median
        each = (gap * sign).mean(axis=1)
        # rows of one draw depend on each other, draws do not: the se is that of their means
        se = float(each.std() / np.sqrt(len(each)))
        difference = float(each.mean())
        with np.errstate(all="ignore"):  # rewards without noise: 0 or beyond all limits
            z = float(np.nan_to_num(np.divide(difference, se)))
        rows.append({"of": what, "difference": difference, "se": se, "z": z})
    table = pd.DataFrame(rows).set_index("of")
    if not (table["z"].abs() <= LARGEST_Z).all():
        distances = ", ".join(f"{k} {v:.1f} SE" for k, v in table["z"].items())
        warnings.warn(
            f"{model.name} returns another mean than its rewards have ({distances}): return the "
            "mean reward on its own scale, such as the probability and not the logit",
            stacklevel=3,
        )
    return table


def responses(plan: Plan, draws: Draws, x: Array, seed: int) -> Array:
    """Return new rewards at contexts x (n, d) under draws of the variables, (S, n), or (S, n, K)
    for a model over K arms."""
    import arviz as az
    import pymc as pm

    n = len(x)
    K = plan.n_arms or 1
    rows = {"x": np.repeat(x, K, axis=0), "reward": np.zeros(n * K)}
    if plan.n_arms is not None:
        rows["arm"] = np.tile(np.arange(K), n)
    if plan.of_each_row:
        raise ValueError(
            f"{plan.model.name}: {plan.of_each_row!r} has a value for each fitted row, and none "
            "for new ones"
        )
    built = plan.on(rows)
    name = rewards_of(built, plan.model.name)
    posterior = az.convert_to_dataset(picked(draws, None))
    with COMPILE, silenced():
        tree = pm.sample_posterior_predictive(
            posterior,
            model=built,
            var_names=[name],
            freeze_vars=list(draws),
            random_seed=seed,
            **QUIET_SAMPLING,
        )
    drawn = tree["posterior_predictive"][name].to_numpy()[0]
    return drawn if plan.n_arms is None else drawn.reshape(-1, n, K)


def of_all_chains(draws: Draws) -> dict[str, Array]:
    """Return draws (chains, draws, *shape) by name as those of all chains, (S, *shape)."""
    return {k: v.reshape(-1, *v.shape[2:]) for k, v in draws.items()}


def along_rows(model: pm.Model) -> list[str]:
    """Return the observed variables that have one value for each row.

    Others, such as constant earlier measurements, have other dimensions.
    """
    data = set(containers(model).values())
    return [
        str(v.name)
        for v in model.observed_RVs
        if v.ndim == 1 and not data.isdisjoint(ancestors([model.rvs_to_values[v]]))
    ]
