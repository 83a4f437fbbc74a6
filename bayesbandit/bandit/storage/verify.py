"""The one check of a saved bandit: every part is of the form that its class declares.

A form says types, shapes and ranges (`forms.py`). It is checked before a part is restored,
and before it is saved: so what is saved can be loaded, and no number that a kernel uses as an
index, a size or the end of a loop is out of its range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit import forms
from bayesbandit.bandit.storage.settings import PART_FORM
from bayesbandit.beliefs.base import Described
from bayesbandit.checks import LARGEST_INTEGER, MAX_COUNT, Array
from bayesbandit.forms import (
    ARM_NAME,
    Arrays,
    Numbers,
    Real,
    Records,
    Row,
    State,
    Whole,
    demand,
    unprefixed,
)
from bayesbandit.history import UNLOGGED, Layout
from bayesbandit.kernels.row_layout import KINDS

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

STATEFUL_PARTS = ("belief", "reweighting")  # parts with a state
SEED_FORM = Whole(0, LARGEST_INTEGER)
HEADER_FORM = {
    "format": str,
    "version": int,
    "names": [ARM_NAME],
    "retired": [ARM_NAME],
    "n_features": Whole(),
    "encoder": (None, dict),
    **dict.fromkeys(("model", "policy", "balance"), PART_FORM),
    "seed": Row((SEED_FORM, [SEED_FORM]), [SEED_FORM]),
    "t": Whole(),
    "ahead?": Real(-MAX_COUNT, MAX_COUNT),
    "rng": {
        "bit_generator": "PCG64",
        "state": {"state": Whole(0, 2**128 - 1), "inc": Whole(0, 2**128 - 1)},
        "has_uint32": Whole(0, 1),
        "uinteger": Whole(0, 2**32 - 1),
    },
    "limit": (None, Whole()),
    "total": Whole(),
    **dict.fromkeys(STATEFUL_PARTS, dict),
    "digest?": (None, str),
    "arrays": [str],
}
FORMS_OF_ARRAYS = {"stream": Numbers((None,)), "history": np.ndarray, ...: np.ndarray}


def check(meta: State, arrays: Arrays) -> None:
    """Raise `Broken` unless a file holds what every bandit has, before one is made from it."""
    forms.check(meta, HEADER_FORM)
    forms.check(arrays, FORMS_OF_ARRAYS)
    demand(meta["names"], "its arms have no names")
    stream = arrays["stream"]
    demand(len(stream) >= 3, "it has no random numbers")
    used = stream[0]
    demand(0 <= used <= len(stream) - 2 and used == int(used), f"stream[0] is {used}")
    demand(stream[-1] == meta["t"], f"t is {stream[-1]} and {meta['t']}")


def check_history(layout: Layout, meta: State, rows: Array) -> None:
    """Raise `Broken` if a row has a number that a kernel cannot use, as an index or a scale."""
    total = meta["total"]
    limit = meta["limit"]
    parts = {
        "mean": Numbers(least=-np.inf),
        "scale": Numbers(least=0.0, most=np.inf),
        "last": Numbers(least=-np.inf, most=np.inf),
        "arm": Numbers(least=-len(meta["retired"]), most=len(layout.arms) - 1, whole=True),
        "rule": Numbers(least=min(KINDS), most=max(KINDS), whole=True),
        "propensity": Numbers(least=0.0, most=UNLOGGED, nan=True),
    }
    n_kept = total if limit is None else min(total, limit)
    forms.check(rows, Records(layout.row_type, n_kept, parts), "history")


def states(meta: State, arrays: Arrays) -> dict[str, State]:
    """Return the states of the parts that a file holds."""
    return {part: {**meta[part], **unprefixed(arrays, f"{part}.")} for part in STATEFUL_PARTS}


def check_state(bandit: Bandit, part: str, state: State) -> None:
    """Raise `Broken` unless the state of a part of this bandit is of the form that it declares."""
    belief = bandit.belief
    total = bandit.history.total
    form: Mapping[Any, Any] = {...: object}  # a user's class checks its own state
    if part == "belief":
        if isinstance(belief, Described):
            form = belief.form(state, total)
        if not type(belief).__module__.startswith("bayesbandit."):  # it may hold other things, too
            form = {f"{k}?": one for k, one in form.items() if k is not ...} | {...: object}
    elif bandit.reweighting is None:
        form = {}
    else:
        form = bandit.reweighting.form(state, bandit.layout, belief, total)
    forms.check(state, form, f"its {part}")


def check_counts(bandit: Bandit) -> None:
    """Raise `Broken` if a belief's counts do not fit its bandit."""
    n = np.asarray(bandit.belief.n)
    K = len(bandit.arms)
    total = bandit.history.total
    forms.check(n.astype(np.float64), Numbers((K,), 0, whole=True), "the rounds of its arms")
    if type(bandit.belief).__module__.startswith("bayesbandit."):
        demand(n.sum() <= total, f"its arms have {n} of {total} rounds")
