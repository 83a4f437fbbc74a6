"""Decisions for any contexts, where `Bandit.choose` cannot make one compiled call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import RLock
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import DTypeLike

from bayesbandit import checks
from bayesbandit.bandit import arm_features, fast_path, ticks, transactions
from bayesbandit.bandit.decision import Decision
from bayesbandit.bandit.fast_path import Deciding
from bayesbandit.beliefs.base import (
    Belief,
    CompiledArms,
    Forgets,
    Refits,
)
from bayesbandit.checks import FLOAT64, MAX_ABS_VALUE, Array, Contexts, Name
from bayesbandit.kernels import rounds
from bayesbandit.kernels.propensities import put_own
from bayesbandit.kernels.row_layout import TABULATED, THOMPSON
from bayesbandit.many_arms import Comparison
from bayesbandit.policies import chosen
from bayesbandit.predictions import (
    Conjugate,
    Draws,
    Joint,
    JointRows,
    LocationScale,
    Prediction,
    probabilities_in,
)

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

EMPTY_CONTEXT = np.empty(0)  # the context of a bandit without features
PER_ARM = 16  # least normals of a block for each arm


def choose(bandit: Bandit, x: Contexts, arms: Iterable[Name] | None) -> Decision:
    """Choose an arm for one context (d,) or a batch (n, d), among `arms` (None: all).

    If arms have features, contexts are as in `arm_features.contexts`.
    """
    with bandit.lock:
        x, available, one = contexts(bandit, x, arms)
        live = bandit.deciding
        if live is None and bandit.rule is not None and bandit.kernel is not None:
            live = fast_path.deciding(bandit)  # of a fork, or of a bandit that forgets
        tick = None if bandit.belief.clock is None else ticks.next_ticks(bandit, len(x))
        if tick is not None and one:
            tick = tick[0]
        if one and live is not None:
            advance(bandit)
            row = _decide_one(bandit, live, x[0], available)
            return Decision(bandit.layout, row, tick=tick)
        if len(x) == 0:
            raise ValueError("contexts must have at least one row; got none")
        # one decision is one compiled call, and needs no fork
        needs_fork = len(x) > 1 or bandit.belief.predict_may_refit
        decide = _decide_on_fork if needs_fork else _decide
        decision = decide(bandit, x, available, bandit.rule_parameters(len(x)))
        rows = decision.rows[0] if one else decision.rows
        return Decision(bandit.layout, rows, decision.lazy, tick=tick)


def choose_by_seeds(
    bandit: Bandit, x: Array, arms: Sequence[Name] | None, seeds: Sequence[bytes],
    t: Sequence[int], at: Sequence[int],
) -> Decision:  # fmt: skip
    """Return the decision of a bandit at contexts (n, d), or (n, A, d) for A arms with features.

    Each row depends on the bandit and on its own context, seed, t and time alone, and nothing is
    changed. arms: the available ones; None: all. seeds: 32 bytes for each context. t: how many
    contexts were decided before. at: microseconds since 1970.
    """
    belief = bandit.belief
    changes = belief.clock is not None or belief.predict_may_refit
    if len(x) > 1 and (changes or bandit.param is None):  # no two contexts are decided alike
        one = (slice(i, i + 1) for i in range(len(x)))
        rows = [choose_by_seeds(bandit, x[i], arms, seeds[i], t[i], at[i]).rows for i in one]
        return Decision(bandit.layout, np.concatenate(rows))
    available = bandit.all_arms
    if arms is not None:
        available = np.array([arm in arms for arm in bandit.arms])
    if bandit.of_arms:
        x, shared = np.zeros((len(x), len(bandit.arms), x.shape[-1])), x
        x[:, available] = shared
    draft = object.__new__(type(bandit))
    vars(draft).update(vars(bandit), lock=RLock(), deciding=None, learning=None)
    vars(draft).update(
        stream=np.array([0.0, t[0]]), now=at[0] / 1e6, belief=belief.fork() if changes else belief
    )
    live = (bandit.deciding or fast_path.deciding(draft)) if len(x) == 1 else None
    if live is None:
        decision = _decide(draft, x, available, draft.rule_parameters(len(x)), seeds)
        decision.settle()
        bandit.layout.fill_propensities(decision.rows)
        return decision
    advance(draft)
    restart(draft, seeds[0])
    row = _decide_one(draft, live._replace(stream=draft.stream), x[0], available)
    put_own(row, live.layout.n_columns, len(bandit.arms))
    return Decision(bandit.layout, row[None])


def contexts(bandit: Bandit, x: Contexts, arms: Iterable[Name] | None) -> tuple[Array, Array, bool]:
    """Return contexts (n, …), a mask (K,) of the available arms, and whether x is one context."""
    d = bandit.n_features
    if (
        arms is None
        and type(x) is np.ndarray
        and x.dtype is FLOAT64
        and x.shape == bandit.layout.shape
        # compiled calls look for themselves; a sum of squares reads once, and is not exact
        and (bandit.deciding is not None or np.vdot(x, x) <= MAX_ABS_VALUE)
    ):
        return np.ascontiguousarray(x)[None], bandit.all_arms, True
    if bandit.of_arms:
        return arm_features.contexts(bandit, x, arms)
    if x is EMPTY_CONTEXT and d > 0:
        raise ValueError(f"contexts must have {d} features; got none")
    x = checks.floats(x if bandit.encoder is not None else bandit.encoded(x), "contexts")
    available = bandit.all_arms if arms is None else bandit.among(arms)
    return checks.contexts(x, d), available, x.ndim == 1


def _decide_one(bandit: Bandit, live: Deciding, x: Array, available: Array) -> Array:
    """Return a decided row (width,) for a context x (d,), by a compiled call (see `fast_path`)."""
    [[number, floor]] = bandit.rule_parameters(1)
    row = np.empty(live.layout.width)
    arm = live.choose_one(
        row, x, live.arms, available, live.settings, live.kind, number, floor, live.stream
    )
    if arm == rounds.NOT_FINITE:
        checks.contexts(x, bandit.n_features)
    if arm == rounds.STREAM_EMPTY:
        refill(bandit)
        return _decide_one(bandit, live._replace(stream=bandit.stream), x, available)
    return row


class Unseeded(np.random.bit_generator.ISeedSequence):
    """A seed of zeros for a generator whose state is set at once.

    Mixing a real seed takes longer than drawing 100 normals.
    """

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> Array:
        return np.zeros(n_words, dtype)


SEED_OF_ZEROS = cast(np.random.SeedSequence, Unseeded())  # NumPy's stubs know no other seeds


def refill(bandit: Bandit) -> None:
    """Draw a new block of normals that is long enough for the current arms."""
    bits: np.random.BitGenerator = np.random.PCG64(SEED_OF_ZEROS)
    bits.state = bandit.rng.bit_generator.state
    size = max(len(bandit.stream) - 2, PER_ARM * len(bandit.arms))
    _draw(bandit, bits, size)


def restart(bandit: Bandit, digest: bytes) -> None:
    """Use the random numbers of 32 bytes that are uniform, as those of a keyed hash."""
    bits = np.random.PCG64(SEED_OF_ZEROS)
    state = int.from_bytes(digest[:16])
    stream = int.from_bytes(digest[16:])
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": stream | 1},  # PCG needs an odd increment
        "has_uint32": 0,
        "uinteger": 0,
    }
    _draw(bandit, bits, PER_ARM * len(bandit.arms))


def _draw(bandit: Bandit, bits: np.random.BitGenerator, size: int) -> None:
    """Draw a block of normals. `rng` and `stream` change in one step."""
    rng = np.random.Generator(bits)
    stream = np.empty(2 + size)
    rng.standard_normal(out=stream[1:-1])
    stream[0] = 0.0
    stream[-1] = bandit.stream[-1]  # contexts decided so far
    live = bandit.deciding
    live = None if live is None else live._replace(stream=stream)
    vars(bandit).update(rng=rng, stream=stream, deciding=live)


@transactions.exclusive
def _decide_on_fork(bandit: Bandit, x: Array, available: Array, params: Array) -> Decision:
    """Decide on a fork; the bandit takes its state over if nothing fails."""
    draft = transactions.fork_to_decide(bandit)
    decision = _decide(draft, x, available, params)
    transactions.commit(bandit, draft)
    return decision


def _decide(
    bandit: Bandit, x: Array, available: Array, params: Array,
    digests: Sequence[bytes] = (),
) -> Decision:  # fmt: skip
    """Return decisions about contexts x (n, …).

    digests: 32 bytes for each context, if each has random numbers of its own.
    """
    layout = bandit.layout
    arms = np.flatnonzero(available)
    done = 0
    kind = TABULATED
    lazy: Comparison | None = None
    D = layout.n_columns
    K = len(layout.arms)
    if (dependent := _dependent(bandit, x, arms, params)) is None:
        rows, kind = describe(bandit, x, available, params)
    else:
        prediction, lazy = dependent
        rows = np.empty((len(x), layout.width))
    choose_many = (bandit.kernel or CompiledArms).functions.choose_many
    for end in range(1, len(rows) + 1) if digests else [len(rows)]:
        if digests:
            restart(bandit, digests[end - 1])
        while done < end:
            if lazy is None:
                done = choose_many(rows[:end], done, D, K, kind, params, bandit.stream)
            else:
                done = lazy.choose(rows[:end], done, D, K, arms, bandit.stream)
            if done < end:
                refill(bandit)
    if dependent is not None:
        by_rows = prediction if isinstance(prediction, JointRows) else None
        sd = prediction.sd if by_rows is None else np.nan
        put_moments(rows, D, available, prediction.mean, sd, np.nan)
    if bandit.of_arms:
        k = layout.records(rows)["arm"].astype(np.int64)
        rows[:, : bandit.n_features] = x[np.arange(len(x)), k]
    return Decision(layout, rows, None if lazy is None else (lazy, arms, by_rows))


def _dependent(
    bandit: Bandit, x: Array, arms: Array, params: Array
) -> tuple[Prediction, Comparison] | None:
    """Return the prediction at x (n, K, d), and Thompson sampling among arms that are dependent.

    Probabilities of such decisions are computed when first needed. None unless arms have features,
    dependent normals or Student-t order the arms, and no arm is new. Those of another scale than
    that of mean rewards do so with α = 1, and not if α multiplies distances of mean rewards.
    """
    if not bandit.of_arms or bandit.rule != THOMPSON:
        return None
    advance(bandit)
    if bandit.belief.new.any():
        return None
    prediction = predicted(bandit.belief, x)
    ranking = prediction.ranking()
    if ranking is None or (ranking is not prediction and (params[:, 0] != 1.0).any()):
        return None
    return prediction, ranking.compared(arms, *params.T)


def predicted(belief: Belief, x: Array) -> Prediction:
    """Return a belief's prediction at contexts x (n, …); raise if it is not valid."""
    prediction = belief.predict(x.copy())
    what = f"{type(belief).__name__}.predict"
    if not isinstance(prediction, LocationScale | Joint | Draws | Conjugate | Prediction):
        raise TypeError(
            f"{what} must give a prediction, as bb.extend.LocationScale(mean, scale); "
            f"got {checks.shown(prediction)}"
        )
    if isinstance(prediction, JointRows):
        return prediction  # its sds are computed when they are needed
    shape, mean, sd = (len(x), len(belief.n)), *map(np.asarray, (prediction.mean, prediction.sd))
    if not mean.shape == sd.shape == shape:
        raise ValueError(f"{what} must be of {shape}; got means {mean.shape} and sds {sd.shape}")
    if not (sd >= 0.0).all():  # NaN is refused, infinity is not
        raise ValueError(f"{what} must give standard deviations ≥ 0; got {sd[~(sd >= 0.0)][0]}")
    if not np.isfinite(mean).all():
        checks.finite(mean, f"the means of {what}")
    return prediction


def parts(belief: Belief, x: Array) -> Iterator[slice]:
    """Yield slices of contexts x (n, …) whose predictions fit into memory."""
    step = max(1, belief.max_batch(x)) if len(x) > 1 else 1
    return (slice(i, i + step) for i in range(0, len(x), step))


def put_moments(
    rows: Array, D: int, available: Array, mean: Array, scale: Array | float,
    last: Array | float,
) -> None:  # fmt: skip
    """Write every available arm's mean, scale and last number (n, K) into rows (n, width).

    The last numbers are degrees of freedom or probabilities (`kernels/row_layout.py`).
    """
    K = available.size
    all_ = available.all()
    for at, values, absent in ((D, mean, -np.inf), (D + K, scale, 0.0), (D + 2 * K, last, 0.0)):
        rows[:, at : at + K] = values if all_ else np.where(available, values, absent)


def describe(
    bandit: Bandit,
    x: Array,
    available: Array,
    params: Array,
    held: bool = False,
    tick: float | None = None,
) -> tuple[Array, int]:
    """Return rows (n, width) with contexts x (n, d) and the arms' moments, and the rows' KIND.

    params: the rule's number and minimum probability, (n, 2) or (1, 2). held: treat all rows as the
    next round. tick: to when a belief forgets first; None: to the next round.
    """
    belief = bandit.belief
    layout = bandit.layout
    kind = TABULATED
    advance(bandit, tick)
    rows = np.empty((len(x), layout.width))
    t = np.arange(len(x)) * (not held) + bandit.t + 1
    if not bandit.of_arms:  # with arm features, the chosen arm's are written later
        rows[:, : bandit.n_features] = x
    rows[:, bandit.n_features : layout.n_columns] = 1.0
    played = None if bandit.rule is None else fast_path.kind_played(bandit)
    if played is not None and (kernel := bandit.kernel):
        kernel.functions.describe_many(rows, kernel.arms, available, kernel.settings, played)
        return rows, played
    for part in parts(belief, x):
        param = params if len(params) == 1 else params[part]
        new = belief.new
        prediction = predicted(belief, x[part])
        kind, scale, last = _entries(bandit, prediction, available, new, param, t[part])
        if kind == TABULATED:
            floor = param[:, 1:]
            last = floor + (1.0 - available.sum() * floor) * last  # (5) of mathematics.md
        put_moments(rows[part], layout.n_columns, available, prediction.mean, scale, last)
        if isinstance(belief, Refits):
            belief.count_decisions(len(t[part]))
    return rows, kind


def advance(bandit: Bandit, tick: float | None = None) -> None:
    """Let the belief forget until this tick; None: until the next round."""
    belief = bandit.belief
    if isinstance(belief, Forgets) and belief.clock is not None:
        belief.advance(ticks.tick(bandit, 1) if tick is None else tick)


def _entries(
    bandit: Bandit, prediction: Prediction, available: Array, new: Array,
    params: Array, t: Array,
) -> tuple[int, Array, Array]:  # fmt: skip
    """Return the KIND of rows, and two arrays (n, K) that they keep beside the means.

    These are scales and degrees of freedom for a compiled rule, else sds and probabilities.
    """
    rule = bandit.rule
    if rule is not None and (entries := prediction.entries(rule)) is not None:
        scale, last = entries
        return rule, scale, np.where(new, -last, last)

    def among(old: Array) -> Array:
        if bandit.rule is None:
            return chosen(bandit.policy, prediction.among(old), t)  # a copy: policies may change it
        them = prediction if old.all() else prediction.among(old)
        K = int(old.sum())
        what = f"{type(them).__name__}.best"
        return probabilities_in(them.best(params[:, 0]), them.mean.shape, what, slack=1e-6 * K)

    return TABULATED, prediction.sd, shared(new, available, among)


def shared(new: Array, available: Array, among: Callable[[Array], Array]) -> Array:
    """Return probabilities (n, K) that give each available new arm 1/K and the others the rest.

    new, available: masks (K,). among(old): the probabilities (n, A) of the other arms among
    themselves, rows that sum to 1.
    """
    if not new.any() and available.all():
        return among(available)
    count = int(available.sum())
    new = available & new
    old = available & ~new
    p = among(old) * (old.sum() / count) if old.any() else np.zeros((1, 0))
    out = np.zeros((len(p), new.size))
    out[:, new] = 1.0 / count
    out[:, old] = p
    return out
