"""Checks of a declaration's observed variables and of its mean reward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Array

if TYPE_CHECKING:
    import pymc as pm
    from pytensor.graph.basic import Variable

DATA_NAMES = {"x": "x", "reward": "observed_reward", "weight": "weight", "arm": "arm_index"}
"""The names of the built model's data containers, by role.

Names in a PyMC model are unique. "reward" is left for the declaration's observed variable, and
"arm" for the dimension.
"""


def check_observed(model: pm.Model, declared: str, reward: Array) -> None:
    """Raise ValueError unless the model's likelihood uses the rewards (n,) as they are.

    They must enter the likelihood. Each observed variable must have n values, and must not cut off
    the fractions of rewards. declared: the declaration's name.
    """
    from pytensor.graph.basic import Constant
    from pytensor.graph.traversal import ancestors

    n = len(reward)
    values = [model.rvs_to_values[v] for v in model.observed_RVs]
    likelihood = [*model.observed_RVs, *values, *model.potentials]
    if model[DATA_NAMES["reward"]] not in ancestors(likelihood):
        raise ValueError(
            f"{declared} declares no likelihood of the rewards: observe them by "
            "observed=reward, or by a potential of them"
        )
    rows = {model[name] for name in DATA_NAMES.values() if name in model.named_vars}
    for v, value in zip(model.observed_RVs, values, strict=True):
        of_rows = isinstance(value, Constant) and not rows.isdisjoint(ancestors([v]))
        if of_rows and value.type.ndim and len(value.data) != n:
            raise ValueError(
                f"{declared}: {v.name!r} has {len(value.data)} observed values of its own, "
                f"and there are {n} rows: compute what is observed from the rows, as 0 * reward"
            )
    for name, cast in made_whole(model):
        plain = cast is model[DATA_NAMES["reward"]]
        rounded = reward if plain else cast.eval(mode="FAST_COMPILE")
        check_whole(repr(name), reward, np.asarray(rounded))


def check_trees(model: pm.Model, declared: str) -> None:
    """Raise ValueError for variables of pymc_bart: their density in PyMC is a constant."""
    for v in model.free_RVs:
        if any(c.__module__.startswith("pymc_bart") for c in type(v.owner.op).__mro__):
            raise ValueError(
                f"{declared}: {v.name!r} is a sum of trees, which only a sampler of its own draws "
                "(pymc_bart.PGBART), and no engine here has it: use bb.ForestTS, or pm.gp.HSGP"
            )


def check_not_random(mean: Variable[Any, Any], model: pm.Model, declared: str) -> None:
    """Raise ValueError if the mean reward depends on observed or other random draws.

    declared: the declaration's name.
    """
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.random.type import RandomType

    behind = set(ancestors([mean], blockers=model.basic_RVs))
    if seen := [v.name for v in model.observed_RVs if v in behind]:
        raise ValueError(
            f"{declared} must return the mean reward; what it returns depends on {seen[0]!r}, "
            "which is observed: return the mean of its distribution, or use the values themselves"
        )
    if any(isinstance(v.type, RandomType) for v in behind.difference(model.free_RVs)):
        raise ValueError(
            f"{declared} must return the mean reward; what it returns draws random numbers that "
            "are no variable of the model"
        )


def made_whole(model: pm.Model) -> Iterator[tuple[str, Any]]:
    """Yield observed integer variables by name, with the floats that PyMC casts to integers.

    Only casts of the rewards, or of values computed from them, are given.
    """
    from pytensor.graph.traversal import ancestors
    from pytensor.scalar import Cast
    from pytensor.tensor.elemwise import Elemwise

    reward = model[DATA_NAMES["reward"]]
    for v in model.observed_RVs:
        for u in ancestors([model.rvs_to_values[v]]):
            node = u.owner
            if node is None or not isinstance(node.op, Elemwise):
                continue
            if isinstance(node.op.scalar_op, Cast) and np.dtype(u.type.dtype).kind in "iu":
                [source] = node.inputs
                if np.dtype(source.type.dtype).kind == "f" and reward in ancestors([source]):
                    yield str(v.name), source


def check_whole(name: str, reward: Array, rounded: Array) -> None:
    """Raise ValueError if values made from rewards (n,) are not whole numbers.

    A cast to integers would silently cut off their fractions.
    """
    rounded = np.broadcast_to(rounded, reward.shape)
    broken = np.flatnonzero(rounded != np.floor(rounded))
    if not broken.size:
        return
    r = reward[broken[0]]
    value = rounded[broken[0]]
    if r == value:
        raise ValueError(f"{name} takes whole numbers; got a reward of {r:g}")
    advice = ": observed=pm.math.round(…)" if abs(value - np.round(value)) < 1e-6 else ""
    raise ValueError(f"{name} takes whole numbers; a reward of {r:g} makes it {value!s}{advice}")


def tell_apart(model: pm.Model) -> None:
    """Give each observed variable its own value variable.

    Two observed variables of the same data would otherwise share one, and PyMC needs different
    names.
    """
    import pytensor.tensor as pt
    from pytensor.graph.basic import equal_computations

    seen: list[Variable[Any, Any]] = []
    for v in model.observed_RVs:
        value: Any = model.rvs_to_values[v]  # a copy is typed as one variable or several
        while any(equal_computations([value], [other]) for other in seen):  # PyMC would merge them
            value = pt.tensor_copy(value)
        model.rvs_to_values[v] = value
        seen.append(value)
    for v in model.observed_RVs:
        model.values_to_rvs[model.rvs_to_values[v]] = v
