"""The declaration of a reward model: a function of data and priors, which builds a PyMC model.

PyMC is imported when a model is declared, not with this file.
"""

from __future__ import annotations

import inspect
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bayesbandit import checks
from bayesbandit.checks import Array
from bayesbandit.declaring.observed import DATA_NAMES as DATA_NAMES
from bayesbandit.declaring.observed import (
    check_not_random,
    check_observed,
    check_trees,
    tell_apart,
)
from bayesbandit.runtime.pytensor_lock import COMPILE

if TYPE_CHECKING:
    import pymc as pm

# the attribute of a data container's tag with its role, also in copies
ROLE_ATTRIBUTE = "role_of_rows"

WITHOUT_NAMES = (
    "in a declaration contexts are numbers (n, d) without names; take a column by its number, as "
    "x[:, 0]"
)
_OF_A_VALUE = re.compile(  # PyTensor's errors
    "converted to Python|has no len|support iteration|Length of .* cannot be determined"
)
_NAMES = (*DATA_NAMES.values(), "mean_reward", "feature", "row")
_TAKEN = tuple(dict.fromkeys((*DATA_NAMES, *_NAMES)))  # names that a prior must not have
_CLASH = re.compile(r"[Nn]ame '?(\w+)'? (?:already exists|conflicts)")  # PyMC's error messages


@dataclass(frozen=True, eq=False, repr=False)
class Declaration:
    """A declared function with its priors and their dimensions.

    The subclass for users is `bayesbandit.model.RewardModel`.
    """

    function: Callable[..., Any]
    priors: Mapping[str, Any]
    dims: Mapping[str, tuple[str, ...]] | None = None
    coords: Mapping[str, Sequence[Any]] | None = None

    def __post_init__(self) -> None:
        from bayesbandit.declaring.priors import checked, dims_of

        _check_declaration(self.function, self.priors)
        coords = {str(dim): tuple(labels) for dim, labels in (self.coords or {}).items()}
        if taken := [dim for dim in coords if dim in (*_NAMES, "arm")]:
            raise ValueError(f"coords of {self.name}: {_reserved(taken[0])}")
        object.__setattr__(self, "coords", MappingProxyType(coords))
        allowed = ("feature", "arm", "row") if self.takes_arm else ("feature", "row")
        allowed = (*allowed, *coords)
        dims = {name: dims_of(prior) for name, prior in self.priors.items()} | dict(self.dims or {})
        priors = {
            name: checked(prior, f"prior {name!r} of {self.name}", dims[name], allowed)
            for name, prior in self.priors.items()
        }
        object.__setattr__(self, "priors", MappingProxyType(priors))
        object.__setattr__(self, "dims", MappingProxyType(dict(dims)))

    # ---- what it is -----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Return the name of the declared function."""
        return self.function.__name__

    @property
    def takes_arm(self) -> bool:
        """Return whether the declaration takes `arm`, so that all arms share the model."""
        return "arm" in inspect.signature(self.function).parameters

    @property
    def takes_weight(self) -> bool:
        """Return whether the declaration takes `weight`, so that observations have weights."""
        return "weight" in inspect.signature(self.function).parameters

    def __repr__(self) -> str:
        from bayesbandit.declaring.priors import text

        parts = [repr(self.name), *(f"{name}={text(p)}" for name, p in self.priors.items())]
        return f"{type(self).__name__}({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        from bayesbandit.declaring.priors import same

        if not isinstance(other, Declaration) or self.function is not other.function:
            return False
        if self.priors.keys() != other.priors.keys():
            return False
        if self.coords != other.coords:
            return False
        return all(same(prior, other.priors[name]) for name, prior in self.priors.items())

    def __hash__(self) -> int:
        return hash(self.function)

    # ---- another model --------------------------------------------------------------------------

    def with_priors(self, **priors: object) -> Self:
        """Return a new model with some priors replaced.

        A number or an array fixes a variable. A prior without dims gets the declared ones. An
        argument of the function that has a default may get a prior in its place. Raise ValueError
        for another name.
        """
        self.check_names(priors)
        return replace(self, priors={**self.priors, **priors})

    def to_yaml(self) -> str:
        """Return name and priors as YAML; `from_yaml` reads them back exactly."""
        from bayesbandit.declaring.texts import dump

        return dump(self.name, self.priors)

    def arguments(self) -> list[str]:
        """Return the names that may have a prior: those that have one, or a default instead."""
        arguments = inspect.signature(self.function).parameters.values()
        default = [a.name for a in arguments if a.default is not a.empty]
        return list(dict.fromkeys([*self.priors, *default]))

    def check_names(self, names: Iterable[str]) -> None:
        """Raise ValueError for a name that may not have a prior."""
        for name in names:
            if name not in (allowed := self.arguments()):
                listed = ", ".join(allowed) or "none"
                raise ValueError(f"{self.name} has no prior {name!r}; its priors: {listed}")

    # ---- what to do with it ---------------------------------------------------------------------

    def build(
        self,
        x: object,
        reward: object,
        weight: object = None,
        arm: object = None,
        n_arms: int | None = None,
    ) -> pm.Model:
        """Return the PyMC model of rewards (n,) at contexts x (n, d), with weights > 0 (n,).

        x may be (n, 0), or None, if no variable has the dimension "feature".
        arm (n,): numbers 0 … K − 1, for a declaration that takes `arm`.
        n_arms: K; None: one more than the largest arm.
        The data are in the containers that `DATA_NAMES` names. `pm.set_data` may change n. The mean
        reward (n,) is the deterministic "mean_reward".
        """
        import pymc as pm

        from bayesbandit.declaring.priors import Prior, dims_of

        rows, n_arms = self._rows(x, reward, weight, arm, n_arms)
        coords: dict[str, Sequence[Any]] = {"feature": range(rows["x"].shape[1])}
        if self.takes_arm:
            coords["arm"] = range(n_arms)
        with COMPILE, pm.Model(coords=coords, model=None) as model:
            inputs = {
                role: pm.Data(
                    DATA_NAMES[role], v, dims=("row", "feature")[: v.ndim], shape=_known(v)
                )
                for role, v in rows.items()
            }
            for role, v in inputs.items():
                setattr(v.tag, ROLE_ATTRIBUTE, role)
            try:
                mean = self.declare(inputs, coords)
                if isinstance(mean, numbers.Real):
                    mean = pm.math.constant(float(mean))
            except Exception as error:
                if (clash := _CLASH.search(str(error))) and clash[1] in _NAMES:
                    raise ValueError(f"{self.name}: {_reserved(clash[1])}") from error
                of_x = isinstance(error, AttributeError) and error.obj is inputs["x"]
                # in x["age"] PyTensor looks for booleans in the text without end
                if of_x or isinstance(error, RecursionError):
                    raise TypeError(f"{self.name}: {WITHOUT_NAMES}") from None
                if _OF_A_VALUE.search(str(error)):
                    why = str(error).splitlines()[0].partition(". ")[0].rstrip(".")
                    raise TypeError(
                        f"{self.name}: in a declaration, x, the rewards and the variables have no "
                        f"values yet ({why}): write pm.math.switch(x[:, 0] > 0, a, b) for `if`, "
                        "x.shape[0] for `len(x)`, x @ theta for a loop"
                    ) from error
                error.add_note(f"in the declaration of the reward model {self.name!r}")
                if plain := [
                    k for k, p in self.priors.items() if isinstance(p, Prior) and not dims_of(p)
                ]:
                    error.add_note(
                        f"priors without dims are one number each: {', '.join(plain)}; "
                        'bb.Prior(…, dims="feature") has one for each feature'
                    )
                raise
            self._check_outcome(model, mean, rows)
            tell_apart(model)
            mean = getattr(mean, "values", mean)  # the tensor of a pymc.dims variable
            if mean.ndim == 0:
                mean = pm.math.zeros_like(inputs["reward"]) + mean
            if "mean_reward" in model.named_vars:
                raise ValueError(f"{self.name}: {_reserved('mean_reward')}")
            pm.Deterministic("mean_reward", mean, dims="row")
        return _without_discrete(model)

    def declare(self, data: Mapping[str, Any], coords: Mapping[str, Sequence[Any]]) -> Any:
        """Declare the priors' variables and call the function in the current PyMC model.

        Return the mean reward. data: by role. coords: of all dimensions except "row".
        """
        import pymc as pm
        import pytensor

        from bayesbandit.declaring.priors import variable

        declared = self.coords or {}
        pm.modelcontext(None).add_coords(declared)
        coords = {**coords, **declared}
        inputs = {role: v for role, v in data.items() if role != "weight" or self.takes_weight}
        lengths = {d: len(c) for d, c in coords.items()} | {"row": inputs["x"].shape[0]}
        for name, prior in self.priors.items():
            inputs[name] = variable(name, prior, (self.dims or {})[name], lengths)
        with pytensor.config.change_flags(mode="FAST_COMPILE"):  # of what it evaluates, once
            return self.function(**inputs)

    def _rows(
        self, x: object, reward: object, weight: object, arm: object, n_arms: int | None
    ) -> tuple[dict[str, Array], int]:
        """Return the data by role, checked, and the number of arms."""
        if x is None:
            x = np.empty((checks.floats(reward, "rewards").size, 0))
        x = checks.finite(checks.floats(x, "contexts"), "contexts", checks.MAX_ABS_VALUE)
        if x.ndim != 2:
            raise ValueError(f"contexts must have shape (n, d), d ≥ 1; got {x.shape}")
        n = len(x)
        rows = {"x": x, "reward": checks.column(reward, n, "rewards")}
        w = np.ones(n) if weight is None else checks.column(weight, n, "weights")
        if not (w > 0).all():
            raise ValueError(f"weights must be > 0; got {w[~(w > 0)][0]}")
        if not (self.takes_weight or (w == 1).all()):
            raise ValueError(f"{self.name} does not take `weight`; weights must be 1 or None")
        rows["weight"] = w
        if not self.takes_arm:
            for what, value in (("arm", arm), ("n_arms", n_arms)):
                if value is not None:
                    raise ValueError(f"{self.name} does not take `arm`; {what} must be None")
            return rows, 1
        if arm is None:
            raise ValueError(f"{self.name} takes `arm`: give the arm of each of {n} rows")
        k = checks.column(arm, n, "arms")
        seen = int(k.max(initial=0)) + 1
        n_arms = checks.integer(max(seen, 1) if n_arms is None else n_arms, "n_arms", 1)
        bad = ~((k == np.floor(k)) & (k >= 0) & (k < n_arms))
        if bad.any():
            raise ValueError(f"arms must be integers 0 … {n_arms - 1}; got {k[bad][0]:g}")
        rows["arm"] = k.astype(np.int32)  # as PyMC stores integers
        return rows, n_arms

    def _check_outcome(self, model: pm.Model, mean: Any, rows: Mapping[str, Array]) -> None:
        """Raise ValueError unless the model has a likelihood of the rewards and a mean reward."""
        n = len(rows["reward"])
        check_trees(model, self.name)
        check_observed(model, self.name, rows["reward"])
        if not len(model.coords["feature"] or ()):
            for v in model.free_RVs:
                if "feature" in (model.named_vars_to_dims.get(v.name) or ()):
                    raise ValueError(
                        f"contexts must have shape (n, d), d ≥ 1: {self.name} has a value of "
                        f"{v.name!r} for each feature; got d = 0"
                    )
        shape = getattr(getattr(mean, "type", None), "shape", "not a PyMC expression")
        if shape not in ((), (None,), (n,)):
            raise ValueError(
                f"{self.name} must return the mean reward of each of {n} rows; "
                f"got {mean!r} ({shape=})".replace("None", "?" if mean is not None else "None")
            )
        check_not_random(mean, model, self.name)


def _without_discrete(model: pm.Model) -> pm.Model:
    """Return the model with its discrete variables summed out; the model itself if it cannot be.

    It cannot be if the mean reward depends on them, or if they have no finite set of values. The
    engines refuse the model then.
    """
    names = [str(v.name) for v in model.free_RVs if not str(v.dtype).startswith("float")]
    if not names or any(v is not None for v in model.rvs_to_initial_values.values()):
        return model
    from pymc_extras import marginalize

    order = [v.name for v in model.free_RVs]
    try:
        model = marginalize(model, names)
    except (NotImplementedError, ValueError):
        return model
    model.free_RVs.sort(key=lambda v: order.index(v.name))
    return model


def _known(rows: Array) -> tuple[int | None, ...]:
    """Return a container's static shape, without the number of rows.

    The width must be known, or x[:, :1] times a vector is an error. A width of 1 is left open,
    because PyTensor would otherwise rewrite x @ theta as another product.
    """
    return None, *(k if k > 1 else None for k in rows.shape[1:])


def _reserved(name: str) -> str:
    return (
        f"a variable cannot be called {name!r}: {', '.join(_NAMES)} are names of the data, their "
        "dimensions and the mean reward"
    )


def _check_declaration(function: object, priors: Mapping[str, Any]) -> None:
    """Raise TypeError unless every argument is data or has a prior, and vice versa."""
    if not inspect.isfunction(function):
        raise TypeError(f"a reward model is declared by a function; got {function!r}")
    arguments = inspect.signature(function).parameters
    name = f"{function.__name__}({', '.join(arguments)})"
    if any(p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in arguments.values()):
        raise TypeError(f"{name} must take named arguments only, without * or /")
    for needed in ("x", "reward"):
        if needed not in arguments:
            raise TypeError(f"{name} must take {needed!r}: declare it as (x, reward, weight, …)")
    for prior in priors:
        if prior in _TAKEN or prior not in arguments:
            why = "is a name of the data" if prior in _TAKEN else "is not an argument"
            taken = f"; taken are {', '.join(_TAKEN)}" if prior in _TAKEN else ""
            raise TypeError(f"prior {prior!r} {why} of {name}{taken}")
    for argument, p in arguments.items():
        if argument not in (*DATA_NAMES, *priors) and p.default is p.empty:
            raise TypeError(f"{name} has no prior for {argument!r}: reward_model({argument}=…)")
