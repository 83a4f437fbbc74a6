"""The laws of a bandit, for every kind in the registry (`kinds.py`).

A batch is its rows. What is saved, copied or pickled goes on as if it had not been. Arms come and
go. Bad input and interrupts change nothing. A run is its rounds. Asking changes nothing. Arms come
as often as their probabilities say. The seed decides. `tests/attack/machine.py` says the same of
random scripts; `test_merging.py`, `test_units.py` and `tests/nouns` have further laws.
"""

import itertools
import json
import sys
from contextlib import suppress
from copy import copy, deepcopy
from functools import partial

import numpy as np
import pytest
from scipy import stats

import bayesbandit as bb
from bayesbandit.bandit import transactions
from tests import oracle
from tests.attack.bad_input import wrong
from tests.attack.naive import Naive, Round
from tests.attack.strikes import PACKAGE, strike
from tests.bandit.kinds import (
    KINDS,
    KINDS_OF_SUMS,
    ONE_BY_ONE,
    RIDGES,
    WITHOUT_A_CLOCK,
    agree,
    contexts,
    given_again,
    lived,
    of_kinds,
)
from tests.cases import few, in_gate, moments_of, slow_but
from tests.players import anatomy, lent, pickled, world


def rows(x):
    """Contexts one by one, as numbers or as rows of a table."""
    return list(x) if isinstance(x, np.ndarray) else [x.iloc[i] for i in range(len(x))]


def rounds(name, bandit, n, seed=1):
    """Contexts, and the rewards of all arms."""
    rng = np.random.default_rng(seed)
    return contexts(bandit, rng, n), KINDS[name].drawn(rng, (n, len(bandit.arms)))


def played(bandit, x, reward):
    """Numbers of the arms, and propensities, round by round."""
    index, found = {arm: k for k, arm in enumerate(bandit.arms)}, []
    for context, rewards in zip(rows(x), reward, strict=True):
        decision = bandit.choose(context)
        k = index[decision.arm]
        found.append((k, decision.propensity))
        bandit.observe(decision, float(rewards[k]))
    return tuple(np.array(part) for part in zip(*found, strict=True))


def same(one, other):
    """Bit for bit in the same state, and in the same after what comes next."""
    assert anatomy(one) == anatomy(other)
    assert repr(one) == repr(other)
    x = contexts(one, np.random.default_rng(8), 6)
    np.testing.assert_array_equal(one.choose(x).rows, other.choose(x).rows)
    for bandit in (one, other):
        bandit.observe(bandit.choose(x), np.ones(6))
    assert anatomy(one) == anatomy(other)


def alike(one, other, tolerance=1e-8):
    """To rounding, they believe the same."""
    x = contexts(one, np.random.default_rng(8), 4)
    x = x if one.encoder is None else one.encoder.transform(x)
    ours, theirs = (moments_of(bandit.belief, x) for bandit in (one, other))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(one.belief.n, other.belief.n)


@of_kinds(WITHOUT_A_CLOCK)
def test_a_batch_is_as_many_single_choices(name):
    """Each row has a draw of its own, from one stream; no more rows than a belief has draws."""
    batch, single = lived(name), lived(name)
    x = contexts(batch, np.random.default_rng(2), 12)
    together = batch.choose(x)
    for i, context in enumerate(rows(x)):
        decision = single.choose(context)
        assert decision.arm == together.arm[i]
        np.testing.assert_allclose(decision.mean, together.mean[i], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(decision.sd, together.sd[i], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(decision.probabilities, together.probabilities[i], atol=2e-3)
        if batch.kernel is not None and not batch.of_arms:
            assert decision.rows.tobytes() == together.rows[i].tobytes()
    assert batch.t == single.t
    np.testing.assert_array_equal(batch.stream, single.stream)


@of_kinds(KINDS_OF_SUMS)
def test_rewards_come_late_in_batches_and_in_any_order(name):
    at_once, rng = lived(name), np.random.default_rng(3)
    one_by_one, shuffled = at_once.copy(), at_once.copy()
    decision = at_once.choose(contexts(at_once, rng, 12))
    reward, order = KINDS[name].drawn(rng, 12), rng.permutation(12)
    at_once.observe(decision, reward)
    for i in range(12):
        one_by_one.observe(decision[i], float(reward[i]))
    if getattr(getattr(at_once.spec, "model", at_once.spec), "ridge", None) == "cv":
        order = np.arange(12)  # rows go to the folds in turn
    shuffled.observe(decision[order], reward[order])
    for other in (one_by_one, shuffled):
        for bandit in (at_once, other):
            bandit.belief.advance(99.0) if bandit.belief.clock else None
        alike(at_once, other)


@of_kinds(ONE_BY_ONE)
@in_gate(10)
def test_a_log_is_learned_in_one_call_or_in_many(name):
    whole, parts, rng = KINDS[name](), KINDS[name](), np.random.default_rng(4)
    arm, p = np.array(whole.arms)[rng.integers(3, size=30)], rng.uniform(0.1, 1, 30)
    x, reward = contexts(whole, rng, 30), KINDS[name].drawn(rng, 30)
    whole.update(x, arm, reward, p)
    for part in np.split(np.arange(30), [1, 9]):
        parts.update(x[part] if isinstance(x, np.ndarray) else x.iloc[part], arm[part],
                     reward[part], p[part])  # fmt: skip
    alike(whole, parts)
    for part in ("x", "arm", "reward", "propensity", "weight"):
        one, other = (getattr(bandit.history, part) for bandit in (whole, parts))
        np.testing.assert_array_equal(one, other)


@few("LinTS", "BLTS pooled", "[by Gibbs]", "[shared]", "[tables]")
@of_kinds()
def test_copies_and_files_go_on_as_if_they_had_not_been(name, tmp_path):
    bandit, path = lived(name), tmp_path / "b"
    before = anatomy(bandit)
    bandit.save(path)
    loaded = bb.Bandit.load(str(path), **given_again(bandit))
    loaded.save(path)
    others = [loaded, bb.Bandit.load(path, **given_again(bandit))]
    others += [how(bandit) for how in (copy, deepcopy, pickled, lent)]
    assert anatomy(bandit) == before
    for other in others:
        same(other, bandit.copy())
    assert anatomy(bandit) == before


def sent(decision):
    """A decision after its way through JSON."""
    return bb.Decision.from_dict(json.loads(json.dumps(decision.to_dict(), allow_nan=False)))


@few("LinTS", "BLTS pooled", "[joint]", "[shared]", "[a floor]")
@of_kinds()
@in_gate(8)
def test_a_decision_is_good_for_copies_and_after_what_came_later(name):
    """Its numbers are those of the moment of decision. A copy of it is the same decision, and
    teaches the same."""
    bandit = lived(name)
    twin, x = bandit.copy(), contexts(bandit, np.random.default_rng(5), 5)
    decision, asked = bandit.choose(x), twin.choose(x)
    p, mean = asked.probabilities, asked.mean
    bandit.observe(bandit.choose(x), KINDS[name].drawn(np.random.default_rng(6), 5))
    reward, taught = KINDS[name].drawn(np.random.default_rng(9), 5), []
    for one in (decision, pickled(decision), lent(decision), decision[:], sent(decision)):
        np.testing.assert_array_equal(one.probabilities, p)
        np.testing.assert_array_equal(one.mean, mean)
        index = [decision.arms.index(arm) for arm in one.arm.tolist()]
        np.testing.assert_allclose(one.propensity, p[np.arange(5), index], rtol=1e-12)
        other = bandit.copy()
        other.observe(one, reward)
        taught.append(other)
    first, *others, by_values = taught  # rows that were sent say the probabilities, and no rule
    assert all(anatomy(one) == anatomy(first) for one in others)
    np.testing.assert_array_equal(by_values.probabilities(x), first.probabilities(x))


@few("LinTS", "[joint]", "[forest]")
@of_kinds(name for name in WITHOUT_A_CLOCK if KINDS[name].most > 3)
def test_a_new_arm_has_its_share_and_the_past_stays(name):
    bandit = lived(name)
    x = contexts(bandit, np.random.default_rng(7), 9)
    late = bandit.choose(x[:, :1] if bandit.of_arms else x, arms=["a"])
    gone = bandit.choose(contexts(bandit, np.random.default_rng(7), 1), arms=None)
    arms, p = bandit.history.arm.tolist(), bandit.history.propensity
    bandit.add_arm("new")
    assert bandit.arms == ("a", "b", "c", "new")
    x = contexts(bandit, np.random.default_rng(8), 1)
    found = bandit.probabilities(x)[0]
    assert found.sum() == pytest.approx(1.0, abs=1e-6)
    if not bandit.of_arms:
        assert found[3] == pytest.approx(0.25)
        alone = bandit.choose(x, arms=["a", "b", "c"]).probabilities[0, :3]
        floor = bandit.rule_parameters(1)[0, 1]
        share = 0.75 * (alone - floor) / (1 - 3 * floor)
        np.testing.assert_allclose(found[:3], floor + (1 - 4 * floor) * share, atol=2e-3)
    bandit.remove_arm("b")
    bandit.observe(late, KINDS[name].drawn(np.random.default_rng(9), 9))
    if gone.arm[0] == "b":
        with pytest.raises(ValueError, match=r"unknown arm 'b'; the arms are \['a', 'c', 'new'\]"):
            bandit.observe(gone, [1.0])
    if bandit.history.limit is None:
        assert bandit.history.arm.tolist() == [*arms, *["a"] * 9]
        np.testing.assert_array_equal(bandit.history.propensity, [*p, *late.propensity])
    assert bandit.belief.n[-1] == 0
    assert bandit.probabilities(contexts(bandit, np.random.default_rng(8), 3)).shape == (3, 3)


@of_kinds(RIDGES)
def test_an_arm_without_a_reward_leaves_no_trace(name):
    """Apart from the draws that it took."""
    kind, (x, reward) = KINDS[name], world(np.random.default_rng(0), 40, d=2)
    with_it, without = kind.make(["a", "b", "c"], 2), kind.make(["a", "c"], 2)
    for bandit in (with_it, without):
        bandit.update(x, np.array(["a", "c"])[np.arange(40) % 2], reward[:, 0], np.full(40, 0.5))
    with_it.remove_arm("b")
    assert with_it.layout == without.layout
    if getattr(with_it.balance, "propensity", "") != "pooled":  # past policies had a third arm
        for found, right in zip(
            *(b.play(x, reward[:, :2]) for b in (with_it, without)), strict=True
        ):
            np.testing.assert_array_equal(found, right)


@few("LinTS", "BLUCB", "[by Gibbs]", "[shared]")
@of_kinds(name for name, kind in KINDS.items() if kind.d > 0 and name != "tables")
@in_gate(8)
def test_bad_input_changes_nothing(name):
    bandit = lived(name)
    pending = [(bandit.choose(contexts(bandit, np.random.default_rng(1), n)), 0) for n in (1, 3)]
    before, x = anatomy(bandit), contexts(bandit, np.random.default_rng(2), 2)
    for call in wrong(x, bandit, pending):
        with pytest.raises((ValueError, TypeError)):
            call(bandit)
        assert anatomy(bandit) == before


def lines_of(act):
    """The lines of the package that `act` runs, in turn."""
    lines = []

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            lines.append((frame.f_code, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(None)
    return lines


def after_lines(bandit, act):
    """Interrupt at each line of the package that is run in `act`, when it comes first and when it
    comes last, each time on a copy; yields the copy after the call, and whether it got through."""
    trial = bandit.copy()
    lines = lines_of(lambda: act(trial))
    first = {line: i for i, line in reversed(list(enumerate(lines)))}
    last = {line: i for i, line in enumerate(lines)}
    for stop in sorted({*first.values(), *last.values(), len(lines)}):
        trial = bandit.copy()
        yield trial, strike(lambda trial=trial: act(trial), stop + 1)


CALLS = {
    "observe": lambda b, decision, r: b.observe(decision, r),
    "update": lambda b, decision, r: b.update(decision.x, [b.arms[0]] * len(r), r),
    "add arm": lambda b, decision, r: b.add_arm("new"),
    "remove arm": lambda b, decision, r: b.remove_arm(b.arms[0]),
    "choose": lambda b, decision, r: b.choose(decision.x),
}
STRUCK = [
    *itertools.product(("LinTS", "BLTS pooled", "BLUCB"), CALLS),
    ("affine", "observe"),
    ("by draws", "observe"),
]


@few("[LinTS-observe]")
@pytest.mark.parametrize(("name", "call"), STRUCK)
@in_gate(7)
def test_interrupted_at_any_line_it_is_all_or_nothing(name, call):
    bandit = lived(name)
    decision, r = bandit.choose(contexts(bandit, np.random.default_rng(1), 7)), np.ones(7)
    act = partial(CALLS[call], decision=decision, r=r)

    def whole(b):
        return anatomy(b), b.t, b.history.total, np.asarray(b.belief.n).sum()

    finished = bandit.copy()
    act(finished)
    before, after, stops = whole(bandit), whole(finished), 0
    for trial, through in after_lines(bandit, act):
        transactions.unlock_counts(trial)
        assert whole(trial) == after if through else whole(trial) in (before, after)
        stops += not through
        trial.observe(trial.choose(np.ones(trial.n_features)), 1.0)
        assert trial.belief.n.sum() == (trial.history.played() >= 0).sum()
    assert stops > 20


@few("LinTS", "BLTS pooled", "[shared]", "[fading]")
@of_kinds()
def test_a_run_is_its_rounds_to_the_last_bit(name):
    """In pieces of any length; propensities may be asked for now and then."""
    whole, parts, rarely, live = (lived(name) for _ in range(4))
    x, reward = rounds(name, whole, 60)
    chosen, p = whole.play(x, reward)
    arms, propensity = played(live, x, reward)
    np.testing.assert_array_equal(chosen, arms)
    np.testing.assert_array_equal(p, propensity)
    assert ((p > 0) & (p <= 1)).all()
    for part in np.split(np.arange(60), [1, 17]):
        parts.play(x[part] if isinstance(x, np.ndarray) else x.iloc[part], reward[part])
    q = rarely.play(x, reward, every=7)[1]
    np.testing.assert_array_equal(q[::7], p[::7])
    known = ~np.isnan(q)
    np.testing.assert_array_equal(q[known], p[known])
    for other in (parts, live, rarely):
        np.testing.assert_array_equal(other.history.propensity, whole.history.propensity)
        assert anatomy(other) == anatomy(whole)


@few("[LinTS]")
@pytest.mark.parametrize("name", slow_but(["LinTS", "BLTS"], RIDGES))
def test_a_run_goes_on_over_blocks_of_random_numbers(name):
    x, reward = world(np.random.default_rng(0), 1500 if KINDS[name]().reweighting else 5000, d=2)
    whole, parts = KINDS[name](), KINDS[name]()
    chosen, p = whole.play(x, reward)
    first, middle, last = np.split(np.arange(len(x)), [1001, 1301])
    found = [parts.play(x[first], reward[first]), played(parts, x[middle], reward[middle]),
             parts.play(x[last], reward[last])]  # fmt: skip
    np.testing.assert_array_equal(chosen, np.concatenate([arms for arms, _ in found]))
    np.testing.assert_array_equal(p, np.concatenate([q for _, q in found]))


@few("LinTS", "BLTS pooled", "[by draws]", "[walking]", "[forest]")
@of_kinds()
def test_asking_changes_nothing(name):
    """Neither what is decided next, nor what is learned from a reward that is open."""
    asked, other, rng = lived(name), lived(name), np.random.default_rng(2)
    x = contexts(asked, rng, 5)
    late = [bandit.choose(x) for bandit in (asked, other)]
    p, prediction = asked.probabilities(x), asked.predict(x)
    if asked.belief.clock is None:
        decision = asked.copy().choose(x)
        np.testing.assert_allclose(prediction.mean, decision.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(prediction.sd, decision.sd, rtol=1e-9)
    if asked.belief.clock is None and asked.param is not None:
        # Arms that share coefficients are compared at random points, which are new for each
        # decision. So a probability has a standard error of .0013.
        np.testing.assert_allclose(decision.probabilities, p, atol=5e-3)
    if asked.belief.clock is None and not asked.of_arms:
        right = asked.policy.probabilities(prediction, np.full(5, asked.t + 1))
        floor = asked.rule_parameters(1)[0, 1]
        np.testing.assert_allclose(p, floor + (1 - 3 * floor) * right, atol=2e-3)
    np.testing.assert_array_equal(asked.probabilities(x), p)
    assert prediction.best().shape == prediction.draw(3, rng)[0].shape == p.shape
    assert asked.greedy(x).shape == (5,)
    assert len(asked.summary()) == 3
    assert len(asked.history.to_frame()) == len(asked.history)
    with suppress(TypeError):  # some beliefs have none
        asked.posterior("a")
    for bandit, decision in zip((asked, other), late, strict=True):
        bandit.observe(decision, KINDS[name].drawn(np.random.default_rng(3), 5))
    np.testing.assert_array_equal(asked.choose(x).rows, other.choose(x).rows)


@few("[LinTS]", "[nig UCB]", "[BLTS]")
@of_kinds(RIDGES)
@in_gate(8)
def test_it_decides_and_learns_as_a_naive_bandit(name):
    """Rounds of elsewhere, with propensities and without, and its own: moments by scikit-learn,
    probabilities by quadrature, weights of the moment of decision."""
    bandit, rng = KINDS[name](), np.random.default_rng(7)
    naive = Naive(bandit.arms, **KINDS[name].naive)
    near = 5e-3 if naive.balance == "estimated" else 1e-5  # solved to 1e-4
    for t in range(27):
        x, k, reward = rng.normal(size=2), t % 3, float(rng.normal())
        p = naive.chances(x)
        if t < 9:
            p[k] = 0.02 + rng.random() / 2
            bandit.update(x, bandit.arms[k], reward, p[k])
        elif t < 18:
            bandit.update(x, bandit.arms[k], reward)
        else:
            decision, (mean, scale, df) = bandit.choose(x), naive.moments(x)
            np.testing.assert_allclose(decision.probabilities, p, atol=near)
            np.testing.assert_allclose(decision.mean, mean, atol=near)
            np.testing.assert_allclose(decision.sd, oracle.deviation(scale, df), atol=near)
            k = bandit.arms.index(decision.arm)
            assert decision.propensity == decision.probabilities[k]
            bandit.observe(decision, reward)
        naive.learn([Round(x.tolist(), bandit.arms[k], reward, p[k])])
        kept = naive.rounds[t + 1 - len(bandit.history) :]
        np.testing.assert_allclose(bandit.history.weight, [r.weight for r in kept], rtol=near)


@of_kinds(name for name, kind in KINDS.items() if kind.exact)
def test_what_is_played_is_what_fit_finds_in_the_history(name):
    """With the weights that the balance gave."""
    bandit = lived(name)
    bandit.play(*rounds(name, bandit, 30))
    agree(bandit)


@few("LinTS", "[ε-greedy]", "[joint]", "[residual]")
@of_kinds()
@pytest.mark.parametrize("among", [None, ("a", "c")], ids=["all", "some"])
def test_arms_come_as_often_as_their_probabilities_say(name, among):
    """4,000 choices for one context, a χ² test at 10⁻⁴ of a fixed seed."""
    bandit = lived(name)
    one = contexts(bandit, np.random.default_rng(6), 1)
    if among is not None and bandit.of_arms:
        one = one[:, [0, 2]]
    x = one.iloc[[0] * 4000] if bandit.encoder else np.repeat(one, 4000, axis=0)
    decision = bandit.choose(x, among)
    expected = decision.probabilities.sum(axis=0)
    counts = np.array([(decision.arm == arm).sum() for arm in bandit.arms])
    likely = expected > 1e-6
    assert not counts[~likely].any()
    if likely.sum() > 1:
        p = expected[likely] / expected[likely].sum()
        assert stats.chisquare(counts[likely], 4000 * p).pvalue > 1e-4
    np.testing.assert_allclose(decision.probabilities.sum(axis=1), 1.0, atol=1e-6)
    index = [bandit.arms.index(arm) for arm in decision.arm]
    np.testing.assert_allclose(decision.propensity, decision.probabilities[range(4000), index])
    if among is not None:
        assert (decision.probabilities[:, 1] == 0).all()
        assert (decision.mean[:, 1] == -np.inf).all()


@few("LinTS", "[by Gibbs]")
@of_kinds(name for name, kind in KINDS.items() if not kind.slow)
def test_the_seed_decides(name):
    """Seed 0 is a seed, others give other draws, and NumPy's global state has no say."""
    runs = []
    for seed in (0, 0, 1):
        np.random.seed(len(runs))  # noqa: NPY002
        bandit = KINDS[name](seed)
        runs.append(bandit.choose(contexts(bandit, np.random.default_rng(0), 200)).arm.tolist())
    assert runs[0] == runs[1] != runs[2]


def test_a_seed_is_a_number_or_a_sequence(rng):
    x, reward = world(rng, 100)
    root, child = (np.random.SeedSequence(0, spawn_key=key) for key in ((), (0,)))
    one, other = ((0, np.int64(0), child), (1, 2**70, root, np.random.SeedSequence(0).spawn(2)[1]))
    runs = [bb.LinTS(3, 3, seed=seed).play(x, reward)[0].tolist() for seed in (*one, *other)]
    assert runs[0] == runs[1] == runs[2]
    assert len({tuple(run) for run in runs}) == 1 + len(other)


def test_decisions_know_nothing_of_contexts_from_the_same_seed():
    """A user draws contexts from `default_rng(seed)` and gives the bandit this seed, too: the arm
    of a fresh bandit, which is uniform, and the contexts are not from the same numbers."""
    for seed in range(3):
        normals = np.random.default_rng(seed).standard_normal(200)
        assert not np.isin(bb.LinTS(3, 3, seed=seed).stream, normals).any()


@pytest.mark.parametrize("kind", ["LinTS", "BLTS", "BLTS pooled"])
def test_no_memory_at_any_moment(kind, rng):
    """Python's own allocator refuses the first request, or the second, … PyTensor's compiled graphs
    do not ask whether they were given any, so not of declared models."""
    memory = pytest.importorskip("_testcapi")
    x = rng.normal(size=(5, 3))
    bandit = KINDS[kind].make(["a", "b", 3], 3)
    bandit.update(np.tile(x, (3, 1)), ["a", "b", 3] * 5, rng.normal(size=15))
    decision, r, refused = bandit.choose(x), rng.normal(size=5), 0
    bandit.copy().observe(decision, r)
    for first in range(150):
        trial = bandit.copy()
        memory.set_nomemory(first, first + 1)
        try:
            trial.observe(decision, r)
        except (MemoryError, SystemError, ValueError):  # NumPy's and numba's ways to say so
            memory.remove_mem_hooks()
            refused += 1
        finally:
            memory.remove_mem_hooks()
        n, total = trial.belief.n.sum(), trial.history.total
        assert n == total == (15 if trial.history.total == 15 else 20)
    assert refused > 10


def test_a_copy_may_be_given_decisions_of_its_own(rng):
    x, reward = world(rng, 200)
    bandit = bb.LinTS(3, 3, seed=4)
    bandit.play(x, reward)
    twin, other, again = bandit.copy(), bandit.copy(), bandit.copy()
    assert other.reseed("worker 1") is other
    again.reseed("worker 1")
    arms = [b.choose(x).arm.tolist() for b in (bandit, twin, other, again)]
    assert arms[0] == arms[1] != arms[2] == arms[3]
    assert other.t == bandit.t
    assert (
        bandit.copy().reseed(1).choose(x).arm.tolist()
        != bandit.copy().reseed(2).choose(x).arm.tolist()
    )
