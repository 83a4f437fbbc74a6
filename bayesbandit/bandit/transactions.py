"""How a bandit changes: all of it or nothing, also where threads share it or a signal interrupts.

One round of a compiled belief is one compiled call: no signal and no other thread comes in between,
and it allocates before it writes. It takes what it needs from one tuple of the bandit, `deciding`
or `learning`, without a lock.

What takes longer holds the bandit's lock, and `hold`s the arrays, which then refuse: those who call
wait for the lock. It is done to a fork, whose attributes become the bandit's by one `dict.update`:
Python handles signals between two of its own instructions, and this is one.

A process that is forked while a thread holds a lock has the lock without the thread: it gets new
ones, and the bandit as it was before the call that held the lock, whose result is lost.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any
from weakref import WeakSet

import numpy as np

from bayesbandit.bandit.state import BanditState
from bayesbandit.beliefs.base import Kernel
from bayesbandit.checks import Name
from bayesbandit.history import Layout, unheld
from bayesbandit.kernels.propensities import ruled_out
from bayesbandit.kernels.rounds import DECISION
from bayesbandit.kernels.row_layout import TABULATED
from bayesbandit.policies import is_constant, numbers, rule
from bayesbandit.runtime.compiling import without

SAMPLERS, RESEEDED = 1, 2  # keys of streams of random numbers
PUBLISHED = ("deciding", "learning")
PER_ARM = 16  # normals that a block has at least for each arm
_locked: WeakSet[BanditState] = WeakSet()  # that have a lock of their own


def guard(bandit: BanditState) -> None:
    """A lock of its own."""
    bandit.lock = RLock()
    _locked.add(bandit)


def _guard_again() -> None:
    for bandit in list(_locked):
        bandit.lock = RLock()
        release(bandit)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_guard_again)


class Unseeded(np.random.bit_generator.ISeedSequence):
    """For a generator whose state is set next: mixing a seed takes longer than 100 normals."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        return np.zeros(n_words, dtype)


UNSEEDED: Any = Unseeded()


def alone[**P, T](change: Callable[P, T]) -> Callable[P, T]:
    """Of a function whose first argument is a bandit: while it runs, others wait."""

    @wraps(change)
    def alone(*args: P.args, **settings: P.kwargs) -> T:
        bandit: Any = args[0]
        with bandit.lock:
            try:
                hold(bandit)
                return change(*args, **settings)
            finally:
                release(bandit)

    return alone


def hold(bandit: BanditState) -> None:
    """Let the arrays refuse to be changed: their counts become negative."""
    for count in (bandit.stream, bandit.history.count):
        if count[0] >= 0:
            count[0] = -1 - count[0]


def release(bandit: BanditState) -> None:
    """Undo `hold`, where that is needed."""
    for count in (bandit.stream, bandit.history.count):
        if count[0] < 0:
            count[0] = unheld(count[0])


def fork[B: BanditState](bandit: B) -> B:
    """A bandit in the same state, which may change while the other stays as it is."""
    twin, reweighting = asked(bandit), bandit.reweighting
    twin.belief = bandit.belief.fork()
    twin.history = bandit.history.fork()
    twin.reweighting = None if reweighting is None else reweighting.fork()
    return twin


def asked[B: BanditState](bandit: B) -> B:
    """A bandit in the same state, which may decide while the other stays as it is."""
    twin, belief, stream = object.__new__(type(bandit)), bandit.belief, bandit.stream.copy()
    stream[0] = unheld(stream[0])
    asked = belief.fork() if belief.computes_when_asked else belief
    vars(twin).update(vars(bandit), stream=stream, belief=asked, deciding=None, learning=None)
    return twin


def become(bandit: BanditState, twin: BanditState) -> None:
    """Take over all that has changed."""
    vars(bandit).update(vars(twin) | published(twin))


def publish(bandit: BanditState) -> None:
    """What the compiled calls take is now this."""
    vars(bandit).update(published(bandit))


def published(bandit: BanditState) -> dict[str, tuple[Any, ...] | None]:
    """What the compiled calls take; None where they do not apply."""
    layout, kernel = bandit.layout, bandit.kernel
    deciding = learning = None
    if kernel is not None and kernel.plain:
        arms, settings, history = kernel.arms, kernel.settings, bandit.history
        param = bandit.param if bandit.encoder is None else None  # tables are no arrays
        if param is not None and (kind := kind_played(bandit)) is not None:
            rule, choose_one = (kind, *param), kernel.functions.choose_one
            deciding = choose_one, layout, arms, bandit.all_arms, settings, *rule, bandit.stream
        if bandit.reweighting is None:
            source, kept = (bandit.source, bandit.clip), (history.rows, history.count)
            learning = observer(bandit, kernel), layout, arms, settings, *source, *kept
    return dict(zip(PUBLISHED, (deciding, learning), strict=True))


def observer(bandit: BanditState, kernel: Kernel) -> Any:
    """The compiled function by which a belief takes in one reward."""
    functions = kernel.functions
    unreached = functions.unreached(kernel.settings)
    if bandit.source != DECISION:
        return without(functions.observe_given, *unreached)
    kind = kind_played(bandit)
    rules = ruled_out(TABULATED if kind is None else kind)
    return without(functions.observe_one, *unreached, *rules)


def kind_played(bandit: BanditState) -> int | None:
    """The KIND of the rows in which the kernels decide a round by the belief and the policy of now;
    None: they do not."""
    if bandit.rule is None or (kernel := bandit.kernel) is None:
        return None
    return kernel.kind(bandit.rule, bandit.param)


def reserve(bandit: BanditState, n: int) -> None:
    """Room for n more rounds in the history."""
    history, learning = bandit.history, bandit.learning
    if not history.has_room(n):
        try:
            hold(bandit)
            history.reserve(n)
        finally:
            release(bandit)
    if learning is not None and learning[-1] is not bandit.history.count:
        publish(bandit)


def obey(bandit: BanditState, policy: Any) -> None:
    """The policy, and its numbers where they are the same in every round."""
    first = numbers(policy, bandit.t + 1, len(bandit.arms)) if is_constant(policy) else None
    vars(bandit).update(policy=policy, rule=rule(policy), param=first)


def set_arms(bandit: BanditState, names: tuple[Name, ...]) -> None:
    """Names for the arms that the belief knows of."""
    features = None if bandit.encoder is None else bandit.encoder.features
    sizes = bandit.belief.n_features, bandit.belief.n_columns
    bandit.layout = Layout(names, *sizes, features, bandit.of_arms)
    bandit.all_arms = np.ones(len(names), dtype=np.bool_)


def relay(twin: BanditState, names: tuple[Name, ...]) -> None:
    """`set_arms`, where there is a past."""
    set_arms(twin, names)
    twin.history = twin.history.relaid(twin.layout)
    numbers(twin.policy, twin.t + 1, len(names))  # least probabilities leave room for all arms


def refill(bandit: BanditState) -> None:
    """A new block of normals, long enough for the arms of now: `rng` and `stream` together."""
    bits: np.random.BitGenerator = np.random.PCG64(UNSEEDED)
    bits.state = bandit.rng.bit_generator.state
    rng, old = np.random.Generator(bits), bandit.stream
    stream = np.empty(2 + max(len(old) - 2, PER_ARM * len(bandit.arms)))
    rng.standard_normal(out=stream[1:-1])
    stream[0], stream[-1] = 0.0, old[-1]
    vars(bandit).update(rng=rng, stream=stream)
    if bandit.deciding is not None:
        publish(bandit)


def reseed(bandit: BanditState, seed: np.random.SeedSequence) -> None:
    """Other random numbers from here on: those of decisions, and those of a belief that samples."""
    twin = fork(bandit)
    twin.seed, twin.rng = seed, np.random.Generator(np.random.PCG64(seed))
    twin.belief.reseed(samplers(seed))
    refill(twin)
    become(bandit, twin)


def params(bandit: BanditState, n: int) -> np.ndarray:
    """The number and the least probability of the policy at the next n rounds (n, 2); (1, 2) where
    they are always the same."""
    if bandit.param is not None:
        return np.array([bandit.param])
    return np.array([numbers(bandit.policy, bandit.t + 1 + i, len(bandit.arms)) for i in range(n)])


def samplers(seed: np.random.SeedSequence) -> np.random.SeedSequence:
    """The seed of a belief that samples."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, SAMPLERS))


def another(seed: np.random.SeedSequence, key: Name) -> np.random.SeedSequence:
    """A seed apart from this one by a key, the same in every process."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, RESEEDED, *words))
