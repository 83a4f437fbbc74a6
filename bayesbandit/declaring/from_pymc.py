"""A PyMC model that exists, as the declaration of a reward model.

Its variables are declared again, in the model of the declaration: data containers, and arrays that
are constants in it, are replaced by expressions of contexts and arms, and the observed rewards by
those of the rows. Coordinates, dimensions, transforms, initial values and potentials stay.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Array, integer, one_of
from bayesbandit.declaring.distribution_means import mean_of
from bayesbandit.declaring.observed import DATA_NAMES, check_trees

if TYPE_CHECKING:
    import pymc as pm
    from pytensor.graph.basic import Variable
    from pytensor.tensor.variable import TensorVariable

Rows = Mapping[Any, Any] | Iterable[tuple[Any, Any]]
RESERVED_NAMES = {
    "feature",
    "row",
    "arm",
    "mean_reward",
    *DATA_NAMES.values(),
}  # names that a declaration has


class Handover:
    """A PyMC model and what its parts are: the body of a declaration (`declare`).

    swaps: what is replaced, a data container or a constant array of the model, and by what: a
    function of x, arm, weight and reward that returns a tensor. In the place of the reward's
    variable stand its values, where these are only a part of the rewards. constants: the values of
    the other data containers. row_dims: the dimensions of the rows.
    weighted: whether the likelihood is raised to the power of the weight.
    """

    def __init__(
        self,
        model: pm.Model,
        mean: str | None,
        reward: str | None,
        rows: Rows,
        arm_dim: str | None,
        columns: Sequence[str] | None,
        weighted: bool,
    ) -> None:
        check_trees(model, model.name or "the model")
        _check_plain(model)
        self.model = model
        self.arm_dim = arm_dim
        self.reward = _observed(model, reward)
        self.mean = self._variable(mean)
        if arm_dim is not None and arm_dim not in model.coords:
            listed = ", ".join(map(repr, model.coords)) or "none"
            raise ValueError(
                f"arm_dim must be a dimension of the model ({listed}); got {arm_dim!r}"
            )
        shape = np.shape(_value(model.rvs_to_values[self.reward]))
        if len(shape) != 1:
            raise ValueError(
                f"{self.reward.name!r} must observe a vector of rewards (n,); got the shape {shape}"
            )
        [self.n] = shape
        self.swaps: dict[Variable, Callable[..., Any]] = {}
        for what, by in rows.items() if isinstance(rows, Mapping) else rows:
            taken = _function(by, columns)
            for variable in self._found(what):
                if variable in self.swaps:
                    raise ValueError(
                        "two entries of rows replace the same data: equal arrays cannot be told "
                        f"apart, build the model with pm.Data; got {what!r:.80}"
                    )
                self.swaps[variable] = taken
        kept = (v for v in model.data_vars if v not in self.swaps)
        self.constants = {v: _value(v).copy() for v in kept}  # whatever `pm.set_data` does later
        self.row_dims = self._row_dims()
        self.takes = {role for f in self.swaps.values() for role in _roles(f)}
        if arm_dim is not None:
            self.takes.add("arm")
        self.weighted = one_of(weighted, "weighted", (False, True))
        if weighted and self.reward in self.swaps:
            raise ValueError(
                f"weights of a part of the rewards are not known: take them in rows; got "
                f"weighted=True and {self.reward.name!r} in rows"
            )
        if weighted and "weight" in self.takes:
            raise ValueError(
                "the model takes the weight itself, by a function in rows; got weighted=True"
            )
        if weighted:
            self.takes.add("weight")
        self._check_followed()

    def _variable(self, mean: str | None) -> Variable:
        """Return the mean reward: the variable of this name; None: the mean of the distribution."""
        if mean is None:
            return mean_of(self.reward)
        if mean not in self.model.named_vars:
            raise ValueError(f"mean must name a variable of the model; got {mean!r}")
        return self.model[mean]

    def _found(self, what: Any) -> list[Variable]:
        """Return the data container of this name, or the constants that are this array."""
        if isinstance(what, str):
            if what not in self.model.named_vars:
                listed = ", ".join(repr(str(v.name)) for v in self.model.data_vars) or "none"
                raise ValueError(f"rows must name data of the model ({listed}); got {what!r}")
            return [self.model[what]]
        array = np.asarray(what)
        matches = [v for v in self._constants() if np.array_equal(v.data, array)]
        if not matches:
            raise ValueError(f"the model has no constant array that equals {_beginning(array)}")
        return matches

    def _constants(self) -> list[Any]:
        """Return the constant arrays behind the variables of the model."""
        from pytensor.graph.basic import Constant
        from pytensor.graph.traversal import ancestors

        graphs = [*self.model.basic_RVs, *self.model.potentials, self.mean]
        return [v for v in ancestors(graphs) if isinstance(v, Constant) and np.ndim(v.data)]

    def _row_dims(self) -> set[str]:
        """Return the dimensions of the rows: the first of the rewards, and of what is swapped."""
        dims = self.model.named_vars_to_dims
        named = [self.reward.name, *(v.name for v in self.swaps)]
        return {of[0] for name in named if (of := dims.get(name)) and of[0] is not None}

    def _check_followed(self) -> None:
        """Raise ValueError for data with a value for each row that nothing replaces."""
        dims = self.model.named_vars_to_dims
        value = self.model.rvs_to_values[self.reward]
        for v in self.model.data_vars:
            # where names do not tell, data are of the rows if they are as many as the rewards
            told = bool(self.row_dims) and (dims.get(v.name) or (None,))[0] is not None
            of_rows = self._is_as_long(_value(v))
            if told:
                of_rows = not self.row_dims.isdisjoint(dims[v.name])
            if of_rows and v not in self.swaps and v is not value:
                other = "" if told else ", or give them and the rewards dims that tell them apart"
                raise ValueError(
                    f"the data {v.name!r} have a value for each row: say what they are of a "
                    f'context and an arm, as rows={{"{v.name}": lambda x, arm: x[:, 0]}}{other}'
                )
        for v in self._constants():
            if self._is_as_long(v.data) and v not in self.swaps and v is not value:
                raise ValueError(
                    f"the model has an array of {self.n} constants, {_beginning(v.data)}, as many "
                    "as there are rewards: say what they are of a context and an arm, as "
                    "rows=[(array, lambda x, arm: x[:, 0])], or build the model with pm.Data"
                )

    def _is_as_long(self, values: Array) -> bool:
        """Return whether an axis of values is as long as the rewards, which are more than one."""
        return self.n > 1 and self.n in values.shape

    def declare(self, x: Any, reward: Any, arm: Any = None, weight: Any = None) -> Any:
        """Declare the variables in the current model, and return the mean reward."""
        import pymc as pm
        import pytensor.tensor as pt
        from pymc.distributions.shape_utils import change_dist_size
        from pytensor.graph.traversal import ancestors

        model = self.model
        built = pm.modelcontext(None)
        roles = {"x": x, "arm": arm, "weight": weight, "reward": reward}
        n = reward.shape[0]
        done = self._lengths(built, n)
        replaced: dict[Variable, Any] = {}
        for v, of in self.swaps.items():
            new = of(**{role: roles[role] for role in _roles(of)})
            replaced[v] = self._as_data(pt.as_tensor_variable(new), v)
        part = replaced.pop(self.reward, None)  # of the rewards, where the model observes no more
        done |= replaced
        done |= {v: pt.constant(value) for v, value in self.constants.items()}
        for rv in model.basic_RVs:
            new = _rebuilt(rv, done)
            if new is rv:
                new = rv.owner.clone().outputs[rv.owner.outputs.index(rv)]
            new.name = None
            name = _renamed(str(rv.name))
            dims = self._dims(str(rv.name))
            if rv in model.free_RVs:
                done[rv] = built.register_rv(
                    new,
                    name,
                    dims=dims,
                    transform=model.rvs_to_transforms[rv],
                    default_transform=None,
                    initval=model.rvs_to_initial_values.get(rv),
                )
                continue
            value = model.rvs_to_values[rv]
            observed = _rebuilt(value, done)
            if rv is self.reward:
                # what is computed of data that `rows` replaces stays so, as a logarithm of them
                if self.swaps.keys().isdisjoint(ancestors([value])):
                    observed = reward
                observed = observed if part is None else part
                dims = dims if part is None else None
                if new.owner.op.ndim_supp == 0:
                    new = change_dist_size(new, (observed.shape[0],))
            if rv is self.reward and self.weighted:
                done[rv] = pm.Potential(name, weight * pm.logp(new, observed), dims="row")
            else:
                done[rv] = built.register_rv(new, name, observed=observed, dims=dims)
        for potential in model.potentials:
            name = str(potential.name)
            new = _rebuilt(potential, done)
            done[potential] = pm.Potential(_renamed(name), new, dims=self._dims(name))
        for v in model.deterministics:
            done[v] = _rebuilt(v, done)
            if v is not self.mean:
                pm.Deterministic(_renamed(v.name), done[v], dims=self._dims(v.name))
        mean = _rebuilt(self.mean, done)
        return mean[0] if mean.type.shape == (1,) else mean  # one number for all rows

    def _as_data(self, new: TensorVariable, v: Variable) -> Variable:
        """Return what replaces data v in their type; numbers in the place of whole ones stay so,
        but for indices."""
        import pytensor.tensor as pt

        if new.type.ndim != v.type.ndim:
            raise ValueError(
                f"rows must give {v.name or 'the array'!r} as many axes as it has, {v.type.ndim}; "
                f"got {new.type.ndim}"
            )
        are_numbers = new.type.dtype.startswith("float") and not v.type.dtype.startswith("float")
        if v is self.reward or not are_numbers:
            return pt.cast(new, v.type.dtype)
        model = self.model
        graphs = [*model.basic_RVs, *model.potentials, *model.deterministics, self.mean]
        try:
            for graph in graphs:
                _rebuilt(graph, {v: new})
        except (IndexError, TypeError):  # an index takes no floats
            return pt.cast(new, v.type.dtype)
        return new

    def _lengths(self, built: pm.Model, n: Variable) -> dict[Variable, Any]:
        """Return the lengths of the dimensions; add those that the current model lacks."""
        lengths: dict[Variable, Any] = {}
        for dim, length in self.model.dim_lengths.items():
            if dim in self.row_dims:
                lengths[length] = n
            elif dim == self.arm_dim:
                lengths[length] = built.dim_lengths["arm"]
            elif (name := _renamed(dim)) not in built.coords:
                built.add_coord(name, self.model.coords[dim], length=int(_value(length)))
        return lengths

    def _dims(self, name: str) -> tuple[str | None, ...] | None:
        """Return the dimensions of a variable in the current model."""
        dims = self.model.named_vars_to_dims.get(name)
        if dims is None:
            return None
        renamed = {self.arm_dim: "arm"} | dict.fromkeys(self.row_dims, "row")
        return tuple(None if d is None else renamed.get(d, _renamed(d)) for d in dims)


def declaration(handover: Handover, name: str) -> Callable[..., Any]:
    """Return the function of a declaration: its arguments are the roles that the model takes."""

    def of_rows(x: Any, reward: Any, **given: Any) -> Any:
        return handover.declare(x, reward, **given)

    roles = ["x", "reward", *(role for role in ("weight", "arm") if role in handover.takes)]
    named = [inspect.Parameter(role, inspect.Parameter.POSITIONAL_OR_KEYWORD) for role in roles]
    vars(of_rows).update(__signature__=inspect.Signature(named))
    of_rows.__name__ = of_rows.__qualname__ = name
    return of_rows


def _rebuilt(graph: Variable, done: Mapping[Variable, Any]) -> Any:
    """Return a graph with replacements. All nodes are built again, as their shapes may change."""
    from pytensor.graph.traversal import toposort
    from pytensor.tensor.shape import SpecifyShape

    new = dict(done)
    for node in toposort([graph], blockers=list(done)):
        inputs = [new.get(v, v) for v in node.inputs]
        if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            continue
        if isinstance(node.op, SpecifyShape):  # it would want as many rows as the model had
            new[node.outputs[0]] = inputs[0]
            continue
        copied = node.op.make_node(*inputs)
        new.update(zip(node.outputs, copied.outputs, strict=True))
    return new.get(graph, graph)


def _check_plain(model: pm.Model) -> None:
    """Raise TypeError for variables and data of `pymc.dims`."""
    from pytensor.xtensor.type import XTensorType

    variables = [*model.basic_RVs, *model.data_vars]
    named = [v for v in variables if isinstance(v.type, XTensorType)]
    if named:
        raise TypeError(
            f"{named[0].name!r} is of pymc.dims, which from_pymc does not take: declare the model "
            "by @bb.reward_model, which does"
        )


def _observed(model: pm.Model, reward: str | None) -> Variable:
    """Return the observed variable of the rewards."""
    names = [str(v.name) for v in model.observed_RVs]
    if reward is None and len(names) == 1:
        [reward] = names
    if reward not in names:
        listed = ", ".join(map(repr, names)) or "none"
        raise ValueError(f"reward must name an observed variable ({listed}); got {reward!r}")
    imputed = reward.replace("_observed", "_unobserved")
    if imputed != reward and imputed in model.named_vars:
        raise ValueError(f"missing rewards are imputed ({imputed!r}): leave these rows out")
    return model[reward]


def _function(by: Any, columns: Sequence[str] | None) -> Callable[..., Any]:
    """Return what replaces data as a function: a function as it is, or the column of a name or a
    number."""
    if callable(by):
        unknown = [role for role in _roles(by) if role not in ("x", "arm", "weight", "reward")]
        if unknown:
            raise TypeError(
                f"a function in rows takes x, arm, weight and reward; got {unknown[0]!r}"
            )
        return by
    if isinstance(by, str):
        if columns is None or by not in columns:
            listed = "none: give encoder=" if columns is None else ", ".join(map(repr, columns))
            raise ValueError(f"a column must be one of the encoder's ({listed}); got {by!r}")
        by = list(columns).index(by)
    at = integer(by, "a column in rows", least=0)
    return lambda x: x[:, at]


def _beginning(array: Array) -> str:
    return np.array2string(array, threshold=6, edgeitems=2)


def _roles(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _renamed(name: str) -> str:
    return f"{name} of the model" if name in RESERVED_NAMES else name


def _value(variable: Variable) -> Array:
    """Return the value of a data container, of a constant or of what is computed of these."""
    return np.asarray(variable.eval(mode="FAST_COMPILE"))
