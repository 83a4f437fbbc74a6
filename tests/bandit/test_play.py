"""One arithmetic at every speed: the compiled loop, single rounds, batches, copies: bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesbandit as bb
from tests.cases import few, quick_but
from tests.players import ALL, PRESETS, anatomy, play, public, world

every = pytest.mark.parametrize("name", ALL)


def pair(name, seed=3, K=3, d=3):
    return ALL[name](K, d, seed=seed), ALL[name](K, d, seed=seed)


@every
def test_the_compiled_loop_is_the_public_api(name, rng):
    x, reward = world(rng, 200)
    api, loop = pair(name)
    arms, propensity = play(api, x, reward)
    chosen, p = loop.play(x, reward)
    np.testing.assert_array_equal(chosen, arms)
    np.testing.assert_array_equal(p, propensity)
    assert public(loop) == public(api)
    np.testing.assert_array_equal(loop.choose(x).arm, api.choose(x).arm)


@few("[LinTS]")
@pytest.mark.parametrize("name", quick_but(["BLUCB"], [*PRESETS, "α of t"]))
def test_the_loop_goes_on_over_blocks_of_the_stream(name, rng):
    """Long enough for the stream to run out within; in three pieces, one of them by hand."""
    x, reward = world(rng, 1700 if "pooled" in name or name == "BLUCB" else 6000)
    whole, parts = pair(name)
    chosen, p = whole.play(x, reward)
    cut = 1001
    first = parts.play(x[:cut], reward[:cut])
    middle = play(parts, x[cut : cut + 300], reward[cut : cut + 300])
    last = parts.play(x[cut + 300 :], reward[cut + 300 :])
    np.testing.assert_array_equal(chosen, np.concatenate([first[0], middle[0], last[0]]))
    np.testing.assert_array_equal(p, np.concatenate([first[1], middle[1], last[1]]))
    assert public(whole) == public(parts)


@pytest.mark.parametrize("name", PRESETS)
def test_propensities_only_now_and_then(name, rng):
    x, reward = world(rng, 60)
    always, rarely = pair(name)
    p, q = always.play(x, reward)[1], rarely.play(x, reward, every=7)[1]
    np.testing.assert_array_equal(q[::7], p[::7])
    known = ~np.isnan(q)
    np.testing.assert_array_equal(q[known], p[known])
    assert known.all() == (name == "BLTS")
    assert public(always) == public(rarely)


@every
def test_a_batch_is_as_many_single_choices(name, rng):
    """From one belief and one stream, each row with a draw of its own; also far beyond a block."""
    x, reward = world(rng, 60)
    batch, single = pair(name)
    for bandit in (batch, single):
        bandit.play(x, reward)
    contexts = rng.normal(size=(2500, 3))
    together = batch.choose(contexts)
    for row, context in enumerate(contexts):
        decision = single.choose(context)
        assert decision.arm == together.arm[row]
        assert decision.rows.tobytes() == together.rows[row].tobytes()
    assert anatomy(batch) == anatomy(single)


@pytest.mark.parametrize("name", [name for name in ALL if ALL[name](2, 1).reweighting is None])
def test_a_batch_of_rewards_is_as_many_single_ones(name, rng):
    x, reward = world(rng, 90)
    batch, single = pair(name)
    for rows in np.split(np.arange(90), 3):
        a, b = batch.choose(x[rows]), single.choose(x[rows])
        rewards = reward[rows, a.arm]
        batch.observe(a, rewards)
        for decision, r in zip(b, rewards, strict=True):
            single.observe(decision, r)
    assert public(batch) == public(single)


@every
def test_a_copy_goes_its_own_way(name, rng):
    x, reward = world(rng, 80)
    bandit, _ = pair(name)
    bandit.play(x[:50], reward[:50])
    before, twin = anatomy(bandit), bandit.copy()
    assert anatomy(twin) == before
    ahead = twin.play(x[50:], reward[50:])
    twin.remove_arm(0)
    assert anatomy(bandit) == before
    np.testing.assert_array_equal(bandit.play(x[50:], reward[50:]), ahead)


@given(
    st.sampled_from(sorted(ALL)),
    st.integers(1, 6),
    st.integers(1, 10),
    st.integers(0, 25),
    st.integers(0, 2**32 - 1),
)
def test_any_size(name, K, d, T, seed):
    x, reward = world(np.random.default_rng(seed), T, d, K)
    api, loop = pair(name, seed, K, d)
    arms, propensity = play(api, x, reward)
    chosen, p = loop.play(x, reward)
    assert (chosen.tolist(), p.tolist()) == (arms.tolist(), propensity.tolist())
    assert public(loop) == public(api)
    assert ((p > 0) & (p <= 1)).all()


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


def test_memory_of_a_round_does_not_grow(rng):
    x, reward = world(rng, 300)
    bandit = bb.BLTS(3, 3, history=50)
    bandit.play(x, reward)
    sizes = {name: shape for name, (shape, _) in anatomy(bandit)[1].items()}
    bandit.play(x, reward)
    assert sizes == {name: shape for name, (shape, _) in anatomy(bandit)[1].items()}
    np.testing.assert_array_equal(bandit.history.x, x[-50:])
