"""The seeds of a bandit's random numbers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.bandit import choosing, transactions
from bayesbandit.beliefs.base import Seeded
from bayesbandit.checks import Name

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

SAMPLERS, RESEEDED = 1, 2  # keys of random streams


def reseed(bandit: Bandit, seed: np.random.SeedSequence) -> None:
    """Use new random numbers from now on, for decisions and for a belief that samples."""
    draft = transactions.fork(bandit)
    draft.seed = seed
    draft.rng = np.random.Generator(np.random.PCG64(seed))
    if isinstance(draft.belief, Seeded):
        draft.belief.reseed(sampler_seed(seed))
    choosing.refill(draft)
    transactions.commit(bandit, draft)


def sampler_seed(seed: np.random.SeedSequence) -> np.random.SeedSequence:
    """Return the seed of a belief that samples."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, SAMPLERS))


def derived_seed(seed: np.random.SeedSequence, key: Name) -> np.random.SeedSequence:
    """Return a seed derived from this one and a key; it is the same in every process."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, RESEEDED, *words))
