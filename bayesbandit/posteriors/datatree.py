"""A posterior as ArviZ's DataTree: draws with named coordinates, predictions, log likelihoods."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.traversal import ancestors

from bayesbandit.declaring.declaration import DATA
from bayesbandit.inference.approximate import silenced
from bayesbandit.inference.base import COMPILE
from bayesbandit.inference.graph_analysis.density import containers, row_dimension
from bayesbandit.inference.pymc_model.likelihood import Likelihood

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

    from bayesbandit.inference.pymc_model.row_likelihood import RowLikelihood

PYTHON = {"mode": "FAST_COMPILE"}  # compiling with numba takes longer than it saves here
PRIOR_DRAWS = 1000


OF_ROWS = ("prior_predictive", "posterior_predictive", "log_likelihood")  # of observed variables


def datatree(
    model: pm.Model,
    unweighted: pm.Model,
    draws: Mapping[str, np.ndarray],
    names: Sequence[str],
    seed: int,
    attributes: Mapping[str, Any],
    stats: Mapping[str, np.ndarray],
    by_rows: RowLikelihood,
) -> xr.DataTree:
    """Return the posterior as a DataTree.

    Its groups are posterior, prior, their predictives, pointwise log likelihood, log prior, sample
    stats, observed data and constant data. A warning names a group that cannot be computed.

    draws: free variables and deterministic quantities by name, (chain, draw, *shape).
    names: the free variables.
    unweighted: the same model with every weight 1, for the log likelihood. A row's weight does not
    change how well it is predicted.
    stats: by ArviZ's names, (chain, draw). Without "lp", the log density of the declared variables
    is added.
    by_rows: says why the log likelihood is no sum over rows. Potentials of rows are a part of the
    pointwise log likelihood, so they are in it or there is none.
    """
    import arviz as az
    import pymc as pm

    row = str(row_dimension(model))
    dims = {k: list(v) for k, v in model.named_vars_to_dims.items()}
    data = {role: np.asarray(v.get_value()) for role, v in containers(model).items()}
    coords = {k: np.asarray(v) for k, v in model.coords.items() if v is not None}
    coords[row] = np.arange(len(data["x"]))
    observed = [str(v.name) for v in model.observed_RVs]
    if "lp" not in stats:
        flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in draws.items()}
        lp = Likelihood(model).log_density({k: flat[k] for k in names}, data)
        stats = {**stats, "lp": lp.reshape(draws[names[0]].shape[:2])}
    rows = along_rows(model)
    dims |= {name: [row] for name in rows}
    tree = az.from_dict(
        {
            "posterior": dict(draws),
            "sample_stats": dict(stats),
            "observed_data": {
                str(v.name): np.asarray(model.rvs_to_values[v].eval()) for v in model.observed_RVs
            },
            "constant_data": {DATA[role]: v for role, v in data.items() if role != "reward"},
        },
        coords=coords,
        dims=dims,
        attrs={"/": dict(attributes), "posterior": dict(attributes)},
    )
    quiet = {"progressbar": False, "compile_kwargs": PYTHON}
    order = np.random.SeedSequence(seed).generate_state(2)
    groups: dict[str, Any] = {}
    with COMPILE, silenced():
        for wanted in ([*draws, *observed], [*draws]):  # perhaps only rewards cannot be drawn
            try:
                before = pm.sample_prior_predictive(
                    PRIOR_DRAWS, model=model, var_names=wanted, random_seed=int(order[0]),
                    idata_kwargs={"coords": coords}, compile_kwargs=PYTHON,
                )  # fmt: skip
                groups["prior"] = before["prior"]
                if observed and wanted != [*draws]:
                    groups["prior_predictive"] = before["prior_predictive"]
                break
            except NotImplementedError as error:
                missing = error
        else:
            _without("prior", missing)
        groups["log_prior"] = pm.stats.compute_log_prior(
            tree, model=model, extend_inferencedata=False, **quiet
        )
        if not observed:
            _without("posterior_predictive", "no variable is observed")
        else:
            try:
                after = pm.sample_posterior_predictive(
                    tree, model=model, var_names=observed, freeze_vars=list(names),
                    random_seed=int(order[1]), idata_kwargs={"coords": coords}, **quiet,
                )  # fmt: skip
                groups["posterior_predictive"] = after["posterior_predictive"]
            except NotImplementedError as error:
                _without("posterior_predictive", error)
        potentials = _on_rows(unweighted)
        if potentials and (why := by_rows.refused):
            named = ", ".join(map(repr, potentials))
            _without("log_likelihood", f"the potential {named} is no sum over rows: {why}")
        elif potentials:
            free = {k: v.reshape(-1, *v.shape[2:]) for k, v in draws.items() if k in names}
            groups["log_likelihood"] = _of_rows(Likelihood(model), free, data, row, coords, tree)
        elif observed:
            groups["log_likelihood"] = pm.compute_log_likelihood(
                tree, model=unweighted, extend_inferencedata=False, **quiet
            )
    return _joined(tree, groups, coords, {f"{name}_dim_0": row for name in rows})


def _on_rows(model: pm.Model) -> list[str]:
    """Return the potentials that depend on the rows."""
    data = set(containers(model).values())
    return [str(v.name) for v in model.potentials if not data.isdisjoint(ancestors([v]))]


def _of_rows(
    likelihood: Likelihood, draws: Mapping[str, np.ndarray], data: Mapping[str, np.ndarray],
    row: str, coords: Mapping[str, np.ndarray], tree: xr.DataTree,
) -> xr.Dataset:  # fmt: skip
    """Return the log likelihood of each row, all of its terms together, with a weight of 1."""
    import xarray as xr

    data = {**data, "weight": np.ones(len(data["x"]))}
    posterior = tree["posterior"]
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    each = [
        likelihood.log_density(draws, {k: v[[i]] for k, v in data.items()}, True).reshape(shape)
        for i in range(len(data["x"]))
    ]
    return xr.Dataset(
        {"row_likelihood": (("chain", "draw", row), np.stack(each, axis=-1))},
        coords={k: posterior[k] for k in ("chain", "draw")} | {row: coords[row]},
    )


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


def renamed(tree: xr.DataTree, coords: Mapping[str, Sequence[Any]]) -> xr.DataTree:
    """Return the tree with new coordinate values along some dimensions."""

    def rename(data: xr.Dataset) -> xr.Dataset:
        return data.assign_coords({k: list(v) for k, v in coords.items() if k in data.dims})

    return tree.map_over_datasets(rename)


def _joined(
    tree: xr.DataTree,
    groups: Mapping[str, Any],
    coords: Mapping[str, np.ndarray],
    names: Mapping[str, str],
) -> xr.DataTree:
    """Return the tree with more groups. names: new names of the observed variables' dimensions."""
    import xarray as xr

    for group, data in groups.items():
        data = getattr(data, "dataset", data)  # a node's dataset
        rows = set(names.values())
        new_names = {k: v for k, v in names.items() if group in OF_ROWS}
        parts = {
            str(k): v.rename({d: new_names[d] for d in v.dims if d in new_names})
            for k, v in data.data_vars.items()
        }
        data = xr.Dataset(
            {k: v.drop_vars(rows, errors="ignore") for k, v in parts.items()}, attrs=data.attrs
        )
        missing = {k: v for k, v in coords.items() if k in data.dims and k not in data.coords}
        tree[group] = xr.DataTree(data.assign_coords(missing))
    return tree


def _without(groups: str, why: Any) -> None:
    warnings.warn(f"the tree is without {groups}: {why}", UserWarning, stacklevel=4)
