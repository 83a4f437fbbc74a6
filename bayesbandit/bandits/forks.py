"""How a bandit changes: all of it or nothing.

What may fail half-way is done to a fork, whose attributes then become the bandit's by one
`dict.update`. Nothing comes in between: Python handles signals between two of its own instructions,
and this is one. The caller holds the bandit's lock.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.history import Layout

if TYPE_CHECKING:
    from bayesbandit.bandits.bandit import Bandit

SAMPLERS, RESEEDED = 1, 2  # keys of streams of random numbers
PER_ARM = 16  # normals that a block has at least for each arm


def fork(bandit: Bandit) -> Bandit:
    """A bandit in the same state, which may change while the other stays as it is."""
    twin, reweighting = asked(bandit), bandit.reweighting
    twin.belief = bandit.belief.fork()
    twin.history = bandit.history.fork()
    twin.reweighting = None if reweighting is None else reweighting.fork()
    return twin


def asked(bandit: Bandit) -> Bandit:
    """A bandit in the same state, which may decide while the other stays as it is."""
    twin, belief = object.__new__(type(bandit)), bandit.belief
    asked = belief.fork() if getattr(belief, "computes_when_asked", False) else belief
    vars(twin).update(vars(bandit), stream=bandit.stream.copy(), belief=asked)
    return twin


def become(bandit: Bandit, trial: Bandit) -> None:
    """Take over all that has changed."""
    vars(bandit).update(vars(trial))


def set_arms(bandit: Bandit, names: tuple[Name, ...]) -> None:
    """Names for the arms that the belief knows of."""
    bandit.layout = Layout(names, bandit.belief.n_features, bandit.belief.n_columns)
    bandit.every = np.ones(len(names), dtype=np.bool_)


def relay(trial: Bandit, names: tuple[Name, ...]) -> None:
    """`set_arms`, where there is a past."""
    set_arms(trial, names)
    trial.history = trial.history.relaid(trial.layout)


def refill(bandit: Bandit) -> None:
    """A new block of normals, long enough for the arms of now: `rng` and `stream` together."""
    bits: np.random.BitGenerator = np.random.PCG64(0)
    bits.state = bandit.rng.bit_generator.state
    rng, old = np.random.Generator(bits), bandit.stream
    stream = np.zeros(2 + max(len(old) - 2, PER_ARM * len(bandit.arms)))
    stream[1:-1] = rng.standard_normal(len(stream) - 2)
    stream[-1] = old[-1]
    vars(bandit).update(rng=rng, stream=stream)


def params(bandit: Bandit, n: int) -> np.ndarray:
    """The policy's number at the next n rounds; one number where it is the same at all."""
    if bandit.param is not None:
        return np.array([bandit.param])
    return np.array([bandit.policy.param(bandit.t + 1 + i) for i in range(n)])


def samplers(seed: np.random.SeedSequence) -> np.random.SeedSequence:
    """The seed of a belief that samples."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, SAMPLERS))


def another(seed: np.random.SeedSequence, key: Name) -> np.random.SeedSequence:
    """A seed apart from this one by a key, the same in every process."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, RESEEDED, *words))
