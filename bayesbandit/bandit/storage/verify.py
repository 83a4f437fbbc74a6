"""Checks of a saved bandit, so that no loaded file can run code or crash the process.

First, `check` compares a file with one schema of plain types and sizes, `HEADER` and `ARRAYS`. Then
it checks the values, before a kernel uses one as an index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.bandit.storage.settings import PART
from bayesbandit.beliefs.base import Storable, Verifiable, nbytes
from bayesbandit.checks import COUNT, LARGEST, LONGEST
from bayesbandit.history import UNLOGGED
from bayesbandit.kernels.row_layout import (
    DRAWN,
    EPSILON_GREEDY,
    KINDS,
    TABULATED,
    TAIL,
    THOMPSON,
    UCB,
    row_type,
)
from bayesbandit.runtime import schema
from bayesbandit.runtime.schema import NAME, Array, Broken, OneOf, Row, Whole, demand

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit
    from bayesbandit.weighting.reweighting import Reweighting

FAR = 1e75  # a and b lie between 1/FAR and FAR, so that kernels end
ROOM, TIMES = 2**25, 16  # bytes that a model may need, and more for each byte of the file's arrays
PARTS = ("belief", "reweighting")  # parts with a state
SEED = Whole(0, LONGEST)
HEADER = {
    "format": str,
    "version": int,
    "names": [NAME],
    "retired": [NAME],
    "n_features": Whole(),
    "encoder": OneOf(None, dict),
    **dict.fromkeys(("model", "policy", "balance"), PART),
    "seed": Row(OneOf(SEED, [SEED]), [SEED]),
    "t": Whole(),
    "ahead?": float,
    "rng": {
        "bit_generator": "PCG64",
        "state": {"state": Whole(0, 2**128 - 1), "inc": Whole(0, 2**128 - 1)},
        "has_uint32": Whole(0, 1),
        "uinteger": Whole(0, 2**32 - 1),
    },
    "limit": OneOf(None, Whole()),
    "total": Whole(),
    **dict.fromkeys(PARTS, dict),
    "digest?": OneOf(None, str),
    "arrays": [str],
}
ARRAYS = {"stream": Array("<f8", 1), "history": Array("<f8", 2), ...: np.ndarray}


def check_form(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Raise `Broken` if the types, sizes or names in a file are wrong."""
    schema.check_plain(meta)
    schema.check(meta, HEADER)
    schema.check(arrays, ARRAYS)
    demand(meta["names"], "its arms have no names")
    for name in arrays.keys() - {"stream", "history"}:
        part, _, key = name.partition(".")
        demand(part in PARTS and key not in meta[part], f"it has an unknown array {name!r}")


def check(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Raise `Broken` if anything in a file is wrong, before a bandit is made from it."""
    check_form(meta, arrays)
    demand(meta["n_features"] <= held(arrays), f"n_features is {meta['n_features']!r}")
    demand(abs(meta.get("ahead", 0.0)) <= COUNT, f"ahead is {meta.get('ahead')}")
    stream = arrays["stream"]
    demand(len(stream) >= 3 and np.isfinite(stream).all(), "its random numbers are not finite")
    used = stream[0]
    demand(0 <= used <= len(stream) - 2 and used == int(used), f"stream[0] is {used}")
    demand(stream[-1] == meta["t"], f"t is {stream[-1]} and {meta['t']}")
    _check_history(meta, arrays["history"])


def _check_history(meta: dict[str, Any], rows: np.ndarray) -> None:
    """Raise `Broken` if a row has a number that a kernel cannot use, as an index or a scale."""
    K, total, limit = len(meta["names"]), meta["total"], meta["limit"]
    kept = total if limit is None else min(total, limit)
    demand(rows.ndim == 2 and rows.dtype == np.float64, "history is not a table")
    demand(len(rows) == kept, f"history has {len(rows)} rows, not {kept}")
    D = rows.shape[1] - TAIL - 3 * K
    demand(
        D in (meta["n_features"], meta["n_features"] + 1), f"history has {rows.shape[1]} columns"
    )
    log = rows.view(row_type(D, K))[:, 0]
    x, mean, scale, last = log["x"], log["mean"], log["scale"], log["last"]
    arm, kind, p = log["arm"], log["rule"], log["propensity"]
    reward, weight = log["reward"], log["weight"]
    demand((np.abs(x) <= LARGEST).all(), "its contexts are not finite")
    demand((np.abs(reward) <= LARGEST).all(), "its rewards are not finite")
    demand(((weight > 0) & (weight < np.inf)).all(), "its weights are not > 0")
    demand(np.isin(arm, np.arange(-len(meta["retired"]), K)).all(), "its history has unknown arms")
    demand(np.isin(kind, KINDS).all(), "its history has unknown rules")
    number, most = log["number"], np.where(kind == EPSILON_GREEDY, 1.0, LARGEST)
    demand(((number >= 0) & (number <= most)).all(), "its history has a rule without its number")
    chance = (p >= 0) & (p <= 1 + 1e-9)
    demand((np.isnan(p) | (p == UNLOGGED) | chance).all(), "its propensities are no chances")
    demand(not np.isnan(mean).any() and (mean < np.inf).all(), "its moments are not numbers")
    demand((scale >= 0).all() and not np.isnan(last).any(), "its moments are not numbers")
    available, normal = mean > -np.inf, np.isin(kind, (THOMPSON, UCB))[:, None]
    demand((last[available & normal] != 0).all(), "its moments have no degrees of freedom")
    tabulated = last[available & (kind == TABULATED)[:, None]]
    demand(((tabulated >= 0) & (tabulated <= 1 + 1e-9)).all(), "its probabilities are none")
    drawn = available & np.isin(kind, DRAWN)[:, None]
    for part in (np.abs(last[drawn]), scale[drawn]):
        demand(((part >= 1 / FAR) & (part <= FAR)).all(), "its arms have no parameters")
    count = np.maximum(available.sum(axis=1), 1)  # 0 available: arms have changed since
    floor = log["min_probability"] * count
    demand(((floor >= 0) & (floor <= 1 + 1e-9)).all(), "its least probabilities are none")
    unknown = np.isnan(p) & ~((arm >= 0) & available.any(axis=1))
    demand(not unknown.any(), "its history has rounds whose propensities cannot be computed")


def check_types(own: Storable | Reweighting, state: dict[str, Any]) -> None:
    """Raise `Broken` if a state's types differ from those of `own`, a new object's."""
    if not _is_ours(own):
        return  # a user's class checks its own state
    for name, value in own.state().items():
        array = isinstance(value, np.ndarray)
        form = Array(value.dtype.str, value.ndim) if array else type(value)
        absent = "?" if ".values." in name else ""  # draws: none of a posterior that is improper
        schema.check(state, {name + absent: form, ...: object})


def check_names(own: Storable | Reweighting, state: dict[str, Any]) -> None:
    """Raise `Broken` if a state has a name that `own`, the restored object, does not use."""
    if _is_ours(own) and (unknown := state.keys() - own.state().keys()):
        raise Broken(f"it has {min(unknown)!r}, which is unknown")


def _is_ours(part: object) -> bool:
    return type(part).__module__.startswith("bayesbandit.")


def held(arrays: dict[str, np.ndarray]) -> int:
    """Return the bytes of a file's arrays."""
    return sum(array.nbytes for array in arrays.values())


def check_size(model: object, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Raise `Broken` if the model's belief would need far more memory than its file."""
    needed = nbytes(model, len(meta["names"]), meta["n_features"])
    most = ROOM + TIMES * held(arrays)
    demand(needed <= most, f"its model is too large for it: {needed:,} bytes, at most {most:,}")


def check_whole(bandit: Bandit) -> None:
    """Raise `Broken` if belief and weights do not fit the bandit made from a file."""
    belief, K = bandit.belief, len(bandit.arms)
    n = np.asarray(belief.n)
    demand(n.shape == (K,) and np.isfinite(n).all(), "its belief has other arms")
    demand(((n >= 0) & (n == np.floor(n))).all(), f"its arms have {n} rounds")
    if not _is_ours(belief):
        return
    total, width = bandit.history.total, bandit.history.rows.shape[1]
    demand(n.sum() <= total, f"its arms have {n} of {total} rounds")
    demand(width == bandit.layout.width, f"its history has {width} columns")
    if isinstance(belief, Verifiable):
        belief.verify(total)
    if bandit.reweighting is not None:
        bandit.reweighting.verify(bandit.layout, total)
