"""A posterior as ArviZ's DataTree: draws with named coordinates, predictions, log likelihoods."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pymc.exceptions import TruncationError
from pytensor.graph.traversal import ancestors

from bayesbandit.checks import Array
from bayesbandit.declaring.declaration import DATA_NAMES
from bayesbandit.forms import picked
from bayesbandit.inference.approximate import silenced
from bayesbandit.inference.base import COMPILE
from bayesbandit.inference.draws import Draws, Rows
from bayesbandit.inference.graph_analysis.density import (
    containers,
    read,
    row_dimension,
    rows_of,
)
from bayesbandit.inference.predictive import (
    QUIET_SAMPLING,
    UNCOMPILED,
    along_rows,
    of_all_chains,
)
from bayesbandit.inference.pymc_model.log_density import LogDensity

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

PRIOR_DRAWS = 1000
# What PyMC and NumPy raise where a distribution cannot be drawn from, or not at such parameters: a
# wide prior of a count's log mean has means beyond any count.
DRAWING_ERRORS = NotImplementedError, ValueError, TruncationError


def datatree(
    model: pm.Model,
    unweighted: pm.Model,
    free: Draws,
    deterministics: Draws,
    seed: int,
    attributes: Mapping[str, Any],
    stats: Draws,
    names: Mapping[str, Sequence[Any]],
    no_sum: str,
) -> xr.DataTree:
    """Return the posterior as a DataTree.

    Its groups are posterior, prior, their predictives, pointwise log likelihood, log prior, sample
    stats, observed data and constant data. A warning names a group that cannot be computed.

    model: the fitted one; it changes. unweighted: the same with every weight 1, for the log
    likelihood: a row's weight does not change how well it is predicted.
    free, deterministics: free variables, and deterministic quantities.
    stats: by ArviZ's names, (chain, draw). Without "lp", the log density of the declared variables
    is added.
    names: coordinates along dimensions, instead of numbers.
    no_sum: why the log likelihood is no sum over rows; "" if it is. Potentials of rows are a part
    of the pointwise log likelihood, so they are in it or there is none.
    """
    import arviz as az
    import pymc as pm
    import xarray as xr

    row = str(row_dimension(model))
    data = rows_of(model)
    observed = {str(v.name): np.asarray(model.rvs_to_values[v].eval()) for v in model.observed_RVs}
    complete = [k for k in along_rows(model) if len(observed[k]) == len(data["x"])]
    for one in (model, unweighted):
        one.named_vars_to_dims.update(dict.fromkeys(complete, (row,)))
    coords = {k: np.asarray(v) for k, v in model.coords.items() if v is not None}
    coords |= {row: np.arange(len(data["x"])), **{k: np.asarray(v) for k, v in names.items()}}
    chains = next(iter(free.values())).shape[:2]
    flat = of_all_chains(free)
    if "lp" not in stats:
        stats = {**stats, "lp": LogDensity(read(model)).joint(flat, data).reshape(chains)}
    tree = az.from_dict(
        {
            "posterior": {**free, **deterministics},
            "sample_stats": dict(stats),
            "observed_data": observed,
            "constant_data": {DATA_NAMES[role]: v for role, v in data.items() if role != "reward"},
        },
        coords=coords,
        dims={k: list(v) for k, v in model.named_vars_to_dims.items()},
        attrs={"/": dict(attributes), "posterior": dict(attributes)},
    )
    before, after = np.random.SeedSequence(seed).generate_state(2).tolist()
    groups: dict[str, Any] = {}
    of_rows = [str(v.name) for v in model.deterministics if v.name not in deterministics]
    with COMPILE, silenced():
        drawn = tree["posterior"].dataset
        computed = pm.compute_deterministics(
            drawn, model=model, var_names=of_rows, **QUIET_SAMPLING
        )
        groups["posterior"] = drawn.assign(computed.data_vars)
        groups |= _prior(model, [*free, *deterministics], list(observed), before)
        groups["log_prior"] = pm.stats.compute_log_prior(
            tree, model=model, extend_inferencedata=False, **QUIET_SAMPLING
        )
        if observed:
            try:
                predicted = pm.sample_posterior_predictive(
                    tree, model=model, var_names=list(observed), freeze_vars=list(free),
                    random_seed=after, **QUIET_SAMPLING,
                )  # fmt: skip
                groups["posterior_predictive"] = predicted["posterior_predictive"]
            except DRAWING_ERRORS as error:
                _without("posterior_predictive", str(error).splitlines()[0])
        else:
            _without("posterior_predictive", "no variable is observed")
        rows = set(containers(unweighted).values())
        potentials = [
            str(v.name) for v in unweighted.potentials if not rows.isdisjoint(ancestors([v]))
        ]
        if potentials and no_sum:
            listed = ", ".join(map(repr, potentials))
            _without("log_likelihood", f"the potential {listed} is no sum over rows: {no_sum}")
        elif potentials:
            each = _of_rows(LogDensity(read(model)), flat, data).reshape(*chains, -1)
            groups["log_likelihood"] = az.convert_to_dataset(
                {"row_likelihood": each}, dims={"row_likelihood": [row]}
            )
        elif observed:
            groups["log_likelihood"] = pm.compute_log_likelihood(
                tree, model=unweighted, extend_inferencedata=False, **QUIET_SAMPLING
            )
    for group, variables in groups.items():
        values = getattr(variables, "dataset", variables)  # a node's dataset
        along = {k: v for k, v in coords.items() if k in values.dims}
        tree[group] = xr.DataTree(values.assign_coords(along))
    return tree


def _prior(model: pm.Model, names: list[str], observed: list[str], seed: int) -> dict[str, Any]:
    """Return draws of the prior and its predictive, as far as they can be drawn, by group."""
    import pymc as pm

    for predicted in (observed, []) if observed else ([],):  # perhaps only rewards cannot be drawn
        groups = ["prior", *["prior_predictive"] * bool(predicted)]
        try:
            drawn = pm.sample_prior_predictive(
                PRIOR_DRAWS, model=model, var_names=[*names, *predicted], random_seed=seed,
                compile_kwargs=UNCOMPILED,
            )  # fmt: skip
        except DRAWING_ERRORS as error:
            _without(groups[-1], str(error).splitlines()[0])
        else:
            return {group: drawn[group] for group in groups}
    return {}


def _of_rows(log_density: LogDensity, draws: Draws, data: Rows) -> Array:
    """Return the log likelihood (S, n) of each row, all of its terms together, with a weight of
    1."""
    data = {**data, "weight": np.ones(len(data["x"]))}
    n = len(data["x"])
    each = [log_density(draws, picked(data, [i])) for i in range(n)]
    return np.array(each).reshape(n, len(next(iter(draws.values())))).T


def _without(groups: str, why: Any) -> None:
    warnings.warn(f"the tree is without {groups}: {why}", UserWarning, stacklevel=4)
