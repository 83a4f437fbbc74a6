"""A bandit's random numbers: a block of normals, and the seeds from which they are drawn."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.bandit import transactions
from bayesbandit.beliefs.base import Seeded
from bayesbandit.checks import Name

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

SAMPLERS, RESEEDED = 1, 2  # keys of random streams
PER_ARM = 16  # least normals of a block for each arm


class Unseeded(np.random.bit_generator.ISeedSequence):
    """A seed of zeros for a generator whose state is set at once.

    Mixing a real seed takes longer than drawing 100 normals.
    """

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        return np.zeros(n_words, dtype)


UNSEEDED: Any = Unseeded()


def refill(bandit: Bandit) -> None:
    """Draw a new block of normals that is long enough for the current arms.

    `rng` and `stream` change in one step.
    """
    bits: np.random.BitGenerator = np.random.PCG64(UNSEEDED)
    bits.state = bandit.rng.bit_generator.state
    rng = np.random.Generator(bits)
    old = bandit.stream
    stream = np.empty(2 + max(len(old) - 2, PER_ARM * len(bandit.arms)))
    rng.standard_normal(out=stream[1:-1])
    stream[0], stream[-1] = 0.0, old[-1]
    live = bandit.deciding
    live = None if live is None else live._replace(stream=stream)
    vars(bandit).update(rng=rng, stream=stream, deciding=live)


def restart(bandit: Bandit, digest: bytes) -> None:
    """Use the random numbers of 32 bytes that are uniform, as those of a keyed hash."""
    bits = np.random.PCG64(UNSEEDED)
    state = int.from_bytes(digest[:16])
    stream = int.from_bytes(digest[16:])
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": stream | 1},  # PCG needs an odd increment
        "has_uint32": 0,
        "uinteger": 0,
    }
    bandit.rng = np.random.Generator(bits)
    bandit.stream = np.zeros(2 + PER_ARM * len(bandit.arms))
    refill(bandit)


def reseed(bandit: Bandit, seed: np.random.SeedSequence) -> None:
    """Use new random numbers from now on, for decisions and for a belief that samples."""
    draft = transactions.fork(bandit)
    draft.seed = seed
    draft.rng = np.random.Generator(np.random.PCG64(seed))
    if isinstance(draft.belief, Seeded):
        draft.belief.reseed(sampler_seed(seed))
    refill(draft)
    transactions.commit(bandit, draft)


def sampler_seed(seed: np.random.SeedSequence) -> np.random.SeedSequence:
    """Return the seed of a belief that samples."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, SAMPLERS))


def derived_seed(seed: np.random.SeedSequence, key: Name) -> np.random.SeedSequence:
    """Return a seed derived from this one and a key; it is the same in every process."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, RESEEDED, *words))
