"""Advice for a declaration that fails."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

WITHOUT_NAMES = (
    "in a declaration contexts are numbers (n, d) without names; take a column by its number, as "
    "x[:, 0]"
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
    of_x = isinstance(error, AttributeError) and error.obj is x
    return WITHOUT_NAMES if of_x or isinstance(error, RecursionError) else None


def dims_wanted(priors: Mapping[str, Any]) -> str | None:
    """Return a sentence about priors without dims; None if there are none."""
    from bayesbandit.declaring.priors import Prior, dims_of

    plain = [name for name, p in priors.items() if isinstance(p, Prior) and not dims_of(p)]
    if not plain:
        return None
    return (
        f"priors without dims are one number each: {', '.join(plain)}; "
        'bb.Prior(…, dims="feature") has one for each feature'
    )
