"""Whether a saved bandit is whole: no file that is loaded may run code or crash the process.

First, `check` holds all of a file against one schema, `HEADER` and `ARRAYS`, which says plain types
and sizes. Then it checks what the numbers mean, before a kernel takes one for an index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from bayesbandit.bandit.state import BanditState
from bayesbandit.bandit.storage import schema
from bayesbandit.bandit.storage.schema import NAME, Array, Broken, OneOf, Row, Whole
from bayesbandit.bandit.storage.settings import PART
from bayesbandit.beliefs.base import nbytes
from bayesbandit.beliefs.linear_belief import LinearBelief
from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.beliefs.shared.belief import SharedBelief
from bayesbandit.checks import LARGEST, LONGEST
from bayesbandit.history import UNLOGGED
from bayesbandit.kernels import ridge_state, rules
from bayesbandit.weighting.reweighting import Reweighting

Shapes = Mapping[str, tuple[int | None, ...]]
ENDLESS = 1e300  # of a belief's numbers: sums of a few stay finite
FAR = 1e75  # a and b between 1/FAR and FAR: products of rewards, weights and rounds; kernels end
ROOM, TIMES = 2**25, 16  # bytes that a model may need, and how many for each byte of its arrays
PARTS = ("belief", "reweighting")  # which have a state of their own
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
REWEIGHTING = {
    "due": [Row(NAME, Whole())],
    "periods?": [Whole()],
    "rules?": [Row(Whole(0, rules.TABULATED - 1), float, float)],
    "arms?": [OneOf(NAME, [NAME])],
    ...: object,
}
CHAIN = Row(Whole(-1), Whole(), Whole())  # its rounds (−1: none), decisions from it, and runs
ARRAYS = {"stream": Array("<f8", 1), "history": Array("<f8", 2), ...: np.ndarray}


def demand(truth: Any, what: str) -> None:
    if not truth:
        raise Broken(what)


def check_form(meta: Any, arrays: dict[str, np.ndarray]) -> None:
    """All of a file, by its form alone."""
    schema.check_plain(meta)
    schema.check(meta, HEADER)
    schema.check(arrays, ARRAYS)
    demand(meta["names"], "its arms have no names")
    for name in arrays.keys() - {"stream", "history"}:
        part, _, key = name.partition(".")
        demand(part in PARTS and key not in meta[part], f"it has an unknown array {name!r}")


def check(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """All of a file, before anything is made of it."""
    check_form(meta, arrays)
    demand(meta["n_features"] <= held(arrays), f"n_features is {meta['n_features']!r}")
    stream = arrays["stream"]
    demand(len(stream) >= 3 and np.isfinite(stream).all(), "its random numbers are not finite")
    used = stream[0]
    demand(0 <= used <= len(stream) - 2 and used == int(used), f"stream[0] is {used}")
    demand(stream[-1] == meta["t"], f"t is {stream[-1]} and {meta['t']}")
    _check_history(meta, arrays["history"])


def _check_history(meta: dict[str, Any], rows: np.ndarray) -> None:
    """Every number that a kernel may take for an index or a scale."""
    K, total, limit = len(meta["names"]), meta["total"], meta["limit"]
    kept = total if limit is None else min(total, limit)
    demand(rows.ndim == 2 and rows.dtype == np.float64, "history is not a table")
    demand(len(rows) == kept, f"history has {len(rows)} rows, not {kept}")
    D = rows.shape[1] - rules.row_width(0, K)
    demand(
        D in (meta["n_features"], meta["n_features"] + 1), f"history has {rows.shape[1]} columns"
    )
    x, moments, tail = np.split(rows, [D, rules.tail_at(D, K)], axis=1)
    mean, scale, last = np.split(moments, 3, axis=1)
    arm, kind, p = tail[:, rules.ARM], tail[:, rules.KIND], tail[:, rules.PROPENSITY]
    reward, weight = tail[:, rules.REWARD], tail[:, rules.WEIGHT]
    demand((np.abs(x) <= LARGEST).all(), "its contexts are not finite")
    demand((np.abs(reward) <= LARGEST).all(), "its rewards are not finite")
    demand(((weight > 0) & (weight < np.inf)).all(), "its weights are not > 0")
    demand(np.isin(arm, np.arange(-len(meta["retired"]), K)).all(), "its history has unknown arms")
    demand(np.isin(kind, rules.KINDS).all(), "its history has unknown rules")
    param, most = tail[:, rules.PARAM], np.where(kind == rules.EPSILON_GREEDY, 1.0, LARGEST)
    demand(((param >= 0) & (param <= most)).all(), "its history has a rule without its number")
    chance = (p >= 0) & (p <= 1 + 1e-9)
    demand((np.isnan(p) | (p == UNLOGGED) | chance).all(), "its propensities are no chances")
    demand(not np.isnan(mean).any() and (mean < np.inf).all(), "its moments are not numbers")
    demand((scale >= 0).all() and not np.isnan(last).any(), "its moments are not numbers")
    there, drawn = mean > -np.inf, np.isin(kind, (rules.THOMPSON, rules.UCB))[:, None]
    demand((last[there & drawn] != 0).all(), "its moments have no degrees of freedom")
    chances = last[there & (kind == rules.TABULATED)[:, None]]
    demand(((chances >= 0) & (chances <= 1 + 1e-9)).all(), "its probabilities are none")
    drawn = there & np.isin(kind, rules.DRAWN)[:, None]
    for part in (np.abs(last[drawn]), scale[drawn]):
        demand(((part >= 1 / FAR) & (part <= FAR)).all(), "its arms have no parameters")
    floor = tail[:, rules.FLOOR] * np.maximum(there.sum(axis=1), 1)  # none: arms have changed since
    demand(((floor >= 0) & (floor <= 1 + 1e-9)).all(), "its least probabilities are none")
    lost = np.isnan(p) & ~((arm >= 0) & there.any(axis=1))
    demand(not lost.any(), "its history has rounds of which no propensity can be known")


def check_types(own: Any, state: dict[str, Any]) -> None:
    """That a state has the types that a new belief's state has, or a new balance's."""
    if not _is_ours(own):
        return  # what a class of the user's consists of is its own affair
    schema.check(state, REWEIGHTING if isinstance(own, Reweighting) else {...: object})
    for name, value in own.state().items():
        array = isinstance(value, np.ndarray)
        form = Array(value.dtype.str, value.ndim) if array else type(value)
        absent = "?" if ".values." in name else ""  # draws: none of a posterior that is improper
        schema.check(state, {name + absent: form, ...: object})


def check_names(own: Any, state: dict[str, Any]) -> None:
    """That all of a state has been taken up."""
    if _is_ours(own) and (unknown := state.keys() - own.state().keys()):
        raise Broken(f"it has {min(unknown)!r}, which is unknown")


def _is_ours(part: Any) -> bool:
    return type(part).__module__.startswith("bayesbandit.")


def held(arrays: dict[str, np.ndarray]) -> int:
    """The bytes of a file's arrays."""
    return sum(array.nbytes for array in arrays.values())


def check_size(model: Any, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """That the belief of a model is not out of all proportion to its file."""
    needed = nbytes(model, len(meta["names"]), meta["n_features"])
    most = ROOM + TIMES * held(arrays)
    demand(needed <= most, f"its model is too large for it: {needed:,} bytes, at most {most:,}")


def check_whole(bandit: BanditState) -> None:
    """That belief and weights are those of the bandit that was made."""
    belief, K = bandit.belief, len(bandit.arms)
    n = np.asarray(belief.n)
    demand(n.shape == (K,) and np.isfinite(n).all(), "its belief has other arms")
    demand(((n >= 0) & (n == np.floor(n))).all(), f"its arms have {n} rounds")
    if not _is_ours(belief):
        return
    total, width = bandit.history.total, bandit.history.rows.shape[1]
    demand(n.sum() <= total, f"its arms have {n} of {total} rounds")
    demand(width == bandit.layout.width, f"its history has {width} columns")
    if isinstance(belief, SharedBelief):
        belief, K = belief.common, 1
        known = np.asarray(belief.n)
        demand(known.tolist() == [total], f"its posterior has {known} of {total} rounds")
    inner: Any = belief
    while inner is not None:
        if isinstance(inner, LinearBelief):
            _check_arms(inner.arms, inner.n_columns)
        inner = getattr(inner, "inner", None)
    if isinstance(rounds := getattr(belief, "rounds", None), Rounds):
        _check_rounds(rounds.of(), K)
    if (drawn := getattr(belief, "drawn", None)) is not None:  # a sampler's
        for chain in cast(Any, belief).chains:
            _check_chain(chain, drawn(), cast(Any, belief).held)
    if bandit.reweighting is not None:
        _check_estimator(bandit)


def _check_chain(chain: Any, drawn: Shapes, held: Callable[[Any], Shapes]) -> None:
    """Draws of a posterior, and the state that its sampler goes on from; by variable, the shape of
    its draws, and in such a state, None where a length is the rows' affair."""
    schema.check([chain.fitted, chain.served, chain.runs], CHAIN, "its chains' counts")
    states = chain.state if isinstance(chain.state, list) else []
    drawings = [(chain.values, drawn)] if chain.values else []
    for values, shapes in (*drawings, *((state, held(state)) for state in states)):
        demand(values.keys() == shapes.keys(), "its draws' variables")
        for name, shape in shapes.items():
            found = np.asarray(values[name])
            fits = len(found.shape) == len(shape) and all(
                n in (m, None) for n, m in zip(shape, found.shape, strict=True)
            )
            demand(fits, f"its draws of {name!r} have the shape {found.shape}")
            numbers = found.dtype.kind in "iuf" and np.isfinite(found).all()
            demand(numbers, f"its draws of {name!r} are not finite")
    if isinstance(chain.state, np.ndarray):
        demand(chain.state.ndim == 2 and np.isfinite(chain.state).all(), "its sampler's state")


def _check_arms(arms: np.ndarray, D: int) -> None:
    head = arms[:, : ridge_state.HEAD]
    n = head[:, ridge_state.N]
    demand((n == np.floor(n)).all(), "its arms' rounds are no counts")
    for part in (
        arms[:, : ridge_state.DF],
        arms[:, ridge_state.DF + 1 :],
    ):  # without a copy of all of it
        ends = np.array([part.min(axis=1, initial=0.0), part.max(axis=1, initial=0.0)])
        demand(not np.isnan(ends).any(), "its belief has NaN")
        demand((np.abs(ends[:, n > 0]) <= ENDLESS).all(), "its belief is not finite")
    theta = arms[n > 0, ridge_state.HEAD : ridge_state.HEAD + D]
    demand((np.abs(theta) <= FAR**2).all(), "its coefficients are too large")
    sums = (
        ridge_state.N,
        ridge_state.SUM_W,
        ridge_state.SUM_WRR,
        ridge_state.LOSS,
        ridge_state.SIGMA2,
        ridge_state.RESIDUAL,
    )
    for at in sums:
        demand((head[:, at] >= 0).all(), "its belief has a negative sum")
    for at in (ridge_state.DF, ridge_state.LAM, ridge_state.W_BAR):
        demand((head[:, at] > 0).all(), "its belief has a divisor of 0")


def _check_rounds(rows: dict[str, np.ndarray], K: int) -> None:
    x, reward, weight, arm = (rows[role] for role in ("x", "reward", "weight", "arm"))
    demand((np.abs(x) <= LARGEST).all() and (np.abs(reward) <= LARGEST).all(), "its rounds")
    demand(((weight > 0) & (weight < np.inf)).all(), "its rounds' weights are not > 0")
    demand(((arm >= 0) & (arm < K)).all(), "its rounds have unknown arms")


def _check_estimator(bandit: BanditState) -> None:
    assert bandit.reweighting is not None
    known = bandit.reweighting.weigher.state()
    if "coef" in known:
        shape = len(known["arms"]), bandit.n_features + 1
        coef = known["coef"]
        demand(coef.shape == shape or not known["arms"], f"its propensities have {coef.shape}")
        demand(np.isfinite(coef).all(), "its propensities are not finite")
    if "periods" in known:
        _check_pool(bandit, known)


def _check_pool(bandit: BanditState, known: dict[str, Any]) -> None:
    """Snapshots of a linear belief."""
    lengths = {len(known[key]) for key in ("periods", "rules", "arms")}
    demand(len(lengths) == 1, "its snapshots are not all there")
    width = ridge_state.core_width(bandit.layout.n_columns)
    for i, (arms, (kind, param, floor)) in enumerate(
        zip(known["arms"], known["rules"], strict=True)
    ):
        found = known[f"{i}.arms"]
        demand(found.shape == (len(arms), width), f"snapshot {i} is not whole")
        demand(not np.isnan(found).any(), f"snapshot {i} has NaN")
        demand(kind in range(rules.TABULATED) and 0 <= param < np.inf, f"snapshot {i} has no rule")
        demand(0 <= floor * len(arms) <= 1 + 1e-9, f"snapshot {i} has no least probability")
