"""One arithmetic at every speed: the compiled loop, single rounds, batches, copies: bit for bit."""

import numpy as np

import bayesbandit as bb
from tests.players import world


def test_same_seed_same_run_other_seed_other_run(rng):
    x, reward = world(rng, 100)
    runs = [bb.LinTS(3, 3, seed=seed).play(x, reward)[0].tolist() for seed in (0, 0, 1, 2**70)]
    assert runs[0] == runs[1]
    assert len({tuple(run) for run in runs}) == 3
    sequence = [np.random.SeedSequence(0, spawn_key=key) for key in ((0,), (0,), ())]
    again = [bb.LinTS(3, 3, seed=s).play(x, reward)[0].tolist() for s in sequence]
    assert again[0] == again[1] == runs[0] != again[2]
    assert bb.LinTS(3, 3, seed=np.int64(0)).play(x, reward)[0].tolist() == runs[0]
    child = np.random.SeedSequence(0).spawn(2)[1]
    assert bb.LinTS(3, 3, seed=child).play(x, reward)[0].tolist() not in runs


def test_decisions_know_nothing_of_contexts_from_the_same_seed():
    """A user draws contexts from `default_rng(seed)` and gives the bandit this seed, too: the arm
    of a fresh bandit, which is uniform, and the contexts are not from the same numbers."""
    for seed in range(3):
        normals = np.random.default_rng(seed).standard_normal(200)
        assert not np.isin(bb.LinTS(3, 3, seed=seed).stream, normals).any()
