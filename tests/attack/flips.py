"""Bytes flipped, and files cut short: refused, or the same bandit, or one that plays."""

import numpy as np

import bayesbandit as bb
from tests.players import STATEFUL, anatomy, world


def flip(folder, seed, name="BLTS", times=50):
    """How many broken files of a bandit were refused, and how many said the same."""
    rng, path = np.random.default_rng(seed), folder / "b"
    bandit = STATEFUL[name](["a", "b"], 2, seed=seed)
    bandit.play(*world(rng, 40, d=2, K=2))
    bandit.save(path)
    whole, refused, same = path.read_bytes(), 0, 0
    for _ in range(times):
        broken, at = bytearray(whole), rng.integers(len(whole))
        if rng.random() < 0.2:
            broken = broken[:at]
        else:
            broken[at] ^= int(rng.integers(1, 256))
        path.write_bytes(broken)
        try:
            other = bb.Bandit.load(path)
        except ValueError:
            refused += 1
        else:
            assert anatomy(other) == anatomy(bandit), f"byte {at} of seed {seed}"
            same += 1
    return refused, same
