"""Whatever fails, a bandit is bit for bit what it was: refused arms, interrupts, no memory."""

import functools
import itertools
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.bandit import transactions
from bayesbandit.beliefs import declared
from bayesbandit.inference import plan
from tests.bandit.kinds import trained
from tests.cases import few, in_gate, moments_of, slow_but
from tests.players import PRESETS, STATEFUL, anatomy, public, world

PACKAGE = str(Path(bb.__file__).parent)


def test_more_arms_retire_than_stay():
    bandit = bb.LinTS(3, 1)
    for arm in range(3):
        bandit.update([1.0], arm, float(arm))
    bandit.remove_arm(0)
    bandit.remove_arm(1)
    bandit.add_arm(9)
    bandit.observe(bandit.choose([1.0]), 0.5)
    assert bandit.history.arm.tolist()[:3] == [0, 1, 2]
    assert bandit.history.reward.tolist() == [0.0, 1.0, 2.0, 0.5]


@pytest.mark.parametrize("name", slow_but(["LinTS", "BLTS pooled"], PRESETS))
def test_all_arms_change_one_at_a_time(name, tmp_path, rng):
    """Many times over: the history keeps every name, and the bandit can be saved."""
    bandit, told = STATEFUL[name](5, 2), []
    for new in range(5, 40):
        x, reward = world(rng, 6, d=2, K=5)
        for context, rewards in zip(x, reward, strict=True):
            decision = bandit.choose(context)
            bandit.observe(decision, rewards[0])
            told.append(decision.arm)
        bandit.remove_arm(new - 5)
        bandit.add_arm(new)
    assert bandit.history.arm.tolist() == told
    bandit.save(tmp_path / "b")
    assert public(bb.Bandit.load(tmp_path / "b")) == public(bandit)


@bb.reward_model(theta=bb.Prior("Normal", mu=[0.0, 0.5, 1.0], sigma=1, dims="arm"))
def three_arms(x, reward, weight, arm, theta):
    import pymc as pm

    mu = theta[arm]
    pm.Normal("reward", mu, 1 / pm.math.sqrt(weight), observed=reward)
    return mu


@pytest.mark.slow
@pytest.mark.parametrize("change", ["remove", "add"])
@few("add")
def test_a_refused_change_of_arms_changes_nothing(change, rng):
    """A prior with a number for each arm is of so many arms."""
    bandit = bb.Bandit(["a", "b", "c"], three_arms, bb.Thompson(), n_features=1)
    bandit.update(rng.normal(size=(9, 1)), list("abc") * 3, rng.normal(size=9))
    before, x = anatomy(bandit), rng.normal(size=(4, 1))
    moments = moments_of(bandit.belief, x)
    with pytest.raises(ValueError, match=r"."):
        bandit.remove_arm("a") if change == "remove" else bandit.add_arm("d")
    assert anatomy(bandit) == before
    np.testing.assert_array_equal(moments_of(bandit.belief, x), moments)
    bandit.update(x, list("abca"), np.ones(4))
    assert bandit.belief.n.tolist() == [5, 4, 4]


CALLS = {
    "observe": lambda b, x, r: b.observe(b.choose(x), r),
    "update": lambda b, x, r: b.update(x, [b.arms[i % len(b.arms)] for i in range(len(x))], r),
    "play": lambda b, x, r: b.play(x, np.outer(r, np.ones(len(b.arms)))),
    "add arm": lambda b, x, r: b.add_arm("new"),
    "remove arm": lambda b, x, r: b.remove_arm(b.arms[0]),
    "choose": lambda b, x, r: b.choose(x),
}


class Stop(BaseException):
    """As KeyboardInterrupt, but nobody else's."""


def whole(bandit):
    """Everything, also that which the compiled calls take."""
    shown = bandit.t, bandit.history.total, np.asarray(bandit.belief.n).sum()
    return anatomy(bandit), shown


def consistent(bandit):
    """Belief and history have seen the same rounds."""
    known = sum(a in bandit.arms for a in bandit.history.arm.tolist())
    assert bandit.belief.n.sum() == known, (bandit.belief.n, known)
    transactions.release(bandit)


def traced(act, at_line):
    """`act` with `at_line(frame)` called before each line of the package."""

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            at_line(frame)
        return trace

    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(None)


def after_lines(bandit, act):
    """Interrupt at each line of the package that is run in `act`, when it comes first and when it
    comes last, each time on a copy; yields the copy after the call, and whether it got through."""
    lines, trial = [], bandit.copy()
    traced(lambda: act(trial), lambda frame: lines.append((frame.f_code, frame.f_lineno)))
    first = {line: i for i, line in reversed(list(enumerate(lines)))}
    last = {line: i for i, line in enumerate(lines)}
    for stop in sorted({*first.values(), *last.values(), len(lines)}):
        trial, moment = bandit.copy(), itertools.count()

        def interrupt(frame, moment=moment, stop=stop):
            if next(moment) == stop:
                raise Stop

        try:
            traced(lambda trial=trial: act(trial), interrupt)
        except Stop:
            yield trial, False
        else:
            yield trial, True


INTERRUPTED = ("observe", "update", "add arm", "remove arm", "choose")
QUICK = [
    *(("LinTS", call) for call in INTERRUPTED),
    ("BLTS pooled", "observe"),
    ("BLUCB", "add arm"),
]


@few("[LinTS-observe]")
@pytest.mark.parametrize(
    ("name", "call"),
    [
        pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)
        for case in itertools.product(("LinTS", "BLTS pooled", "BLUCB"), INTERRUPTED)
    ],
)
@in_gate(6)
def test_interrupted_at_any_line(name, call, rng):
    """All of it or nothing: the state is the one before, or the one after."""
    x, reward = world(rng, 40)
    bandit = STATEFUL[name](["a", "b", "c"], 3)
    bandit.play(x, reward)
    decision, batch, r = bandit.choose(x[:7]), x[:7], reward[:7, 0]

    def act(b):
        if call == "observe":
            b.observe(decision, r)
        else:
            CALLS[call](b, batch, r)

    finished = bandit.copy()
    act(finished)
    before, after, stops = whole(bandit), whole(finished), 0
    for trial, through in after_lines(bandit, act):
        transactions.release(trial)
        assert whole(trial) == after if through else whole(trial) in (before, after)
        stops += not through
        trial.observe(trial.choose(x[0]), 1.0)
        consistent(trial)
    assert stops > 20


@pytest.fixture
def one_template(monkeypatch):
    """Each copy would build the same template anew, several times."""
    kept = functools.cache(plan.template)
    for module in (plan, declared):
        monkeypatch.setattr(module, "template", kept)


@pytest.mark.usefixtures("one_template")
@pytest.mark.parametrize("kind", slow_but(["affine"], ["affine", "joint", "by draws"]))
@pytest.mark.slow
def test_declared_models_interrupted_at_any_line(kind, rng):
    x = rng.normal(size=(3, 3))
    bandit = trained(kind)
    decision, r = bandit.choose(x), rng.normal(size=3)
    finished = bandit.copy()
    finished.observe(decision, r)
    before, after = whole(bandit), whole(finished)
    for trial, through in after_lines(bandit, lambda b: b.observe(decision, r)):
        transactions.release(trial)
        assert whole(trial) == after if through else whole(trial) in (before, after)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("name", ["LinTS", "BLTS", "BLTS pooled", "BLUCB"])
def test_signals_at_random_moments(name, rng):
    """Of 300 interrupts during batches, none leaves a belief that knows more than the history."""

    def stop(*_):
        raise Stop

    x, reward = world(rng, 60)
    bandit = STATEFUL[name](3, 3, history=None) if "pooled" not in name else STATEFUL[name](3, 3)
    bandit.play(x, reward)
    for n in (1, 30):  # numba's compiler does not bear an interrupt
        bandit.observe(bandit.choose(x[:n]), reward[:n, 0])
    before, stopped = signal.signal(signal.SIGALRM, stop), 0
    try:
        for i in range(300):
            decision = bandit.choose(x[: 1 + i % 30])
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-6, 3e-4)))
                bandit.observe(decision, reward[: len(decision), 0])
                time.sleep(1e-2)
            except Stop:
                stopped += 1
            assert bandit.belief.n.sum() == bandit.history.total
            assert len(bandit.history.arm) == bandit.history.total
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stopped > 100


@pytest.mark.parametrize("kind", ["LinTS", "BLTS", "BLTS pooled"])
def test_no_memory_at_any_moment(kind, rng):
    """Python's own allocator refuses the first request, or the second, … PyTensor's compiled graphs
    do not ask whether they were given any, so not of declared models."""
    memory = pytest.importorskip("_testcapi")
    x = rng.normal(size=(5, 3))
    bandit = STATEFUL[kind](["a", "b", 3], 3)
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


def at_once(*acts):
    """What these raised (None: nothing), each in a thread, which take turns as often as may be."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(acts)) as pool:
            return [future.exception() for future in [pool.submit(act) for act in acts]]
    finally:
        sys.setswitchinterval(interval)


@few("[BLUCB]")
@pytest.mark.parametrize("name", ["LinTS", "BLTS", "BLTS pooled", "BLUCB"])
def test_threads_share_a_bandit(name, rng):
    """No round is lost, whoever comes and goes meanwhile."""
    settings = {} if name in ("BLTS pooled", "BLUCB") else {"history": None}
    bandit, T, n = STATEFUL[name](["a", "b"], 2, **settings), 4, 30 if settings == {} else 1500

    def work(seed):
        own = np.random.default_rng(seed)
        for i in range(n):
            decision = bandit.choose(own.normal(size=2))
            bandit.observe(decision, float(own.normal()))
            if i % 10 == 0:
                bandit.observe(bandit.choose(own.normal(size=(3, 2))), own.normal(size=3))

    def change():
        for i in range(20):
            bandit.add_arm(f"new {i}")
            bandit.choose(np.zeros(2))
            bandit.remove_arm(f"new {i}")
            bandit.copy()

    *worked, changed = at_once(*(partial(work, seed) for seed in range(T)), change)
    assert changed is None, changed
    errors = [error for error in worked if error is not None]
    # a decision for an arm that has gone meanwhile is refused by name, and that is all
    assert all("unknown arm 'new" in str(error) for error in errors)
    if not errors:
        rounds = T * (n + 3 * len(range(0, n, 10)))
        assert bandit.history.total == rounds
        assert bandit.t == rounds + 20
    assert len(bandit.history.arm) == bandit.history.total
    consistent(bandit)


def test_a_history_is_read_while_others_write(rng):
    """What is read is of one moment: as many rounds of each column, and never fewer than before."""
    bandit, ends = bb.LinTS(2, 1, history=None), []

    def write():
        try:
            for i in range(8000):
                bandit.observe(bandit.choose(np.full(1, float(i))), float(i))
        finally:
            ends.append(True)

    def read():
        most = 0
        while not ends:
            x, frame = bandit.history.x[:, 0], bandit.history.to_frame()
            assert most <= len(x) <= len(frame)
            most = len(frame)
            np.testing.assert_array_equal(x, np.arange(len(x)))
            np.testing.assert_array_equal(frame["x0"], frame["reward"])

    assert at_once(write, read, read) == [None] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("name", ["LinTS", "BLTS pooled"])
def test_a_process_forked_while_a_thread_is_at_it_can_use_a_bandit(name, rng):
    """The thread, which holds the lock and the arrays, is not in the other process."""
    x, reward = world(rng, 9)
    bandit = STATEFUL[name](3, 3)
    bandit.play(x, reward)
    bandit.observe(bandit.choose(x), reward[:, 0])
    held, over = threading.Event(), threading.Event()

    @transactions.exclusive
    def hold(bandit):
        held.set()
        over.wait(60)

    thread = threading.Thread(target=hold, args=(bandit,))
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            bandit.observe(bandit.choose(x), reward[:, 0])
            bandit.observe(bandit.choose(x[0]), 1.0)
            os._exit(0 if bandit.belief.n.sum() == bandit.history.total == 28 else 2)
        finally:
            os._exit(1)
    over.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert bandit.history.total == 18


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


@pytest.mark.slow
def test_a_reseeded_bandit_goes_on_from_its_file(tmp_path, rng):
    bandit = trained("by draws").reseed(7)
    bandit.save(tmp_path / "b")
    x = rng.normal(size=(50, 3))
    np.testing.assert_array_equal(
        bb.Bandit.load(tmp_path / "b").choose(x).rows, bandit.choose(x).rows
    )


@few("[LinUCB]")
@pytest.mark.parametrize("name", ["LinTS", "nig", "LinUCB"])
def test_all_probabilities_are_those_of_each(name, rng):
    """Sooner, but to the bit; of many arms too."""
    bandit = STATEFUL[name](40, 3)
    bandit.play(rng.normal(size=(300, 3)), rng.normal(size=(300, 40)))
    decision = bandit.choose(rng.normal(size=(20, 3)))
    index = decision.arm.astype(int)
    own = decision.probabilities[np.arange(20), index]
    np.testing.assert_array_equal(own, decision.propensity)
    np.testing.assert_allclose(decision.probabilities.sum(axis=1), 1.0, atol=1e-7)
