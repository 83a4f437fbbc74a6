"""Advice for a declaration that fails."""

from __future__ import annotations

import re
from collections.abc import Mapping
from traceback import walk_tb
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bayesbandit.declaring.declaration import Declaration

WITHOUT_NAMES = (
    "in a declaration contexts are numbers (n, d) without names; take a column by its number, as "
    "x[:, 0], or name the columns: bb.reward_model(features=[…])"
)
_OF_A_VALUE = re.compile(  # PyTensor's errors
    "converted to Python|has no len|support iteration|Length of .* cannot be determined"
)


def values_wanted(error: Exception) -> str | None:
    """Return a sentence about a value that is taken from x, the rewards or a variable.

    None: the error has another reason.
    """
    if not _OF_A_VALUE.search(str(error)):
        return None
    return (
        "in a declaration, x, the rewards and the variables have no values yet "
        f"({str(error).splitlines()[0].partition('. ')[0].rstrip('.')}): write "
        "pm.math.switch(x[:, 0] > 0, a, b) for `if`, x.shape[0] for `len(x)`, x @ theta for a loop"
    )


def index_wanted(error: Exception, x: object) -> str | None:
    """Return a sentence about a column of x that was taken by its name, as x["age"] or x.age.

    PyTensor looks for booleans in the text without end. None: the error has another reason.
    """
    if isinstance(error, AttributeError) and error.obj is x:
        return f".{error.name} is no column: {WITHOUT_NAMES}"
    if not isinstance(error, RecursionError):
        return None
    for frame, _ in walk_tb(error.__traceback__):
        index = frame.f_locals.get("args") if frame.f_code.co_name == "__getitem__" else None
        if texts := _texts(index):
            return f"[{texts[0]!r}] takes no column: {WITHOUT_NAMES}"
    return None


def _texts(index: object) -> list[str]:
    """Return the texts in an index, or in its tuples and lists."""
    if isinstance(index, str):
        return [index]
    if isinstance(index, tuple | list):
        return [text for part in index for text in _texts(part)]
    return []


def dims_wanted(model: Declaration, rows: Mapping[str, np.ndarray], n_arms: int) -> str | None:
    """Return a sentence naming a prior that needs dims; None if no single change makes it work.

    It tries dims for each prior without dimensions, and declares the model again.
    rows: x (n, d), reward, weight, arm (n,), by role.
    """
    import pymc as pm

    from bayesbandit.declaring.priors import Prior, dims_of, with_dims

    coords: dict[str, range] = {"feature": range(rows["x"].shape[1])}
    vectors: list[tuple[str, ...]] = [("feature",)]
    if model.takes_arm:
        coords["arm"] = range(n_arms)
        vectors = [("arm", "feature"), ("arm",), ("feature",)]
    plain = [k for k, p in model.priors.items() if isinstance(p, Prior) and not dims_of(p)]
    for name, dims in ((k, v) for k in plain for v in vectors):
        tried = model.with_priors(**{name: with_dims(model.priors[name], dims)})
        with pm.Model(coords=coords, model=None):
            try:
                mean = tried.declare({k: pm.Data(f"given_{k}", v) for k, v in rows.items()}, coords)
                drawn = pm.draw(mean, random_seed=0, mode="FAST_COMPILE")
            except Exception:  # a user's declaration may raise anything; try the next dims
                continue
        if np.shape(drawn) in ((), rows["reward"].shape):
            wanted = repr(dims[0]) if len(dims) == 1 else repr(dims)
            return (
                f"prior {name!r} of {model.name} has no dims and is one number, where the "
                f"declaration takes a vector: bb.Prior(…, dims={wanted})"
            )
    return None
