"""Refits in the background: decisions and rewards go on, and the draws are those of any refit."""

import os
import pickle
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

import bayesbandit as bb
from bayesbandit.beliefs.sampled.refits import SWITCH_INTERVAL
from bayesbandit.inference import plan
from bayesbandit.inference.base import NotThisEngine, Refusal
from bayesbandit.inference.gibbs.sampler import Gibbs
from bayesbandit.inference.nuts import Nuts
from bayesbandit.inference.plan import Plan
from bayesbandit.runtime.recent import Cache
from tests import declarations as declared
from tests.bandit.kinds import D, probe
from tests.players import world

SETTINGS = {"n_features": D, "draws": 40, "refit_below": 0.2}


class Gate:
    """Refits in other threads wait here while it is closed; then they fail, if they are to."""

    def __init__(self):
        self.opened, self.error = threading.Event(), None
        self.opened.set()

    def sample(self, plan, *args, **settings):
        if threading.current_thread() is not threading.main_thread():
            assert self.opened.wait(60)
            if self.error:
                raise self.error
        return SAMPLE(plan, *args, **settings)


SAMPLE = Plan.sample


@pytest.fixture
def gate(monkeypatch):
    gate = Gate()
    monkeypatch.setattr(Plan, "sample", lambda plan, *args, **own: gate.sample(plan, *args, **own))
    yield gate
    gate.error = None
    gate.opened.set()


def rounds(n, seed=0, arms=2):
    x, reward = world(np.random.default_rng(seed), n)
    arm = np.arange(n) % arms
    return x, arm, reward[np.arange(n), arm]


def bandit_of(background=True, arms=2, model=declared.lasso, n=20, **settings):
    """A bandit whose draws know n rounds."""
    settings = SETTINGS | settings
    settings = settings | {"background": background}
    bandit = declared.bandit(arms, model, bb.Thompson(), **settings)
    bandit.update(*rounds(n, arms=arms))
    bandit.greedy(probe())
    finish(bandit)
    return bandit


def surprise(bandit, n=40, seed=1):
    """Rounds that leave few draws with weight."""
    x, arm, reward = rounds(n, seed, len(bandit.arms))
    bandit.update(x, arm, 5.0 + reward)


def finish(bandit):
    """Wait for the refits that run, and let the bandit take their draws."""
    for chain in belief_of(bandit).clouds:
        if (refit := chain.slot.refit) is not None:
            for _ in range(6000):
                if not refit.runs:
                    break
                time.sleep(0.01)
    bandit.greedy(probe())


def belief_of(bandit):
    return getattr(bandit.belief, "common", bandit.belief)


def runs(bandit):
    return [chain.runs for chain in belief_of(bandit).clouds]


def refits(bandit):
    found = [chain.slot.refit for chain in belief_of(bandit).clouds]
    return [refit is not None and refit.runs for refit in found]


@pytest.mark.slow
def test_old_draws_go_on_until_the_new_ones_are_there(gate):
    """The new draws are those of a refit at the rounds that there were when it began, to the bit;
    the rounds that came meanwhile weight them."""
    bandit, other = bandit_of(), bandit_of(background=False)
    gate.opened.clear()
    old = [chain.values for chain in bandit.belief.clouds]
    surprise(bandit), surprise(other)
    assert bandit.choose(probe()).propensity.min() > 0.0
    assert refits(bandit) == [True, True]
    other.greedy(probe())
    x, arm, reward = rounds(2, 2)
    bandit.update(x, arm, 5.0 + reward), other.update(x, arm, 5.0 + reward)
    other.greedy(probe())
    bandit.probabilities(probe()), bandit.choose(probe())
    assert all(c.values is v for c, v in zip(bandit.belief.clouds, old, strict=True))
    gate.opened.set()
    finish(bandit)
    assert runs(bandit) == runs(other) == [3, 3]
    for ours, theirs in zip(bandit.belief.clouds, other.belief.clouds, strict=True):
        assert ours.fitted == theirs.fitted == 30
        assert ours.seen == 31
        for name, values in theirs.values.items():
            np.testing.assert_array_equal(ours.values[name], values)
    np.testing.assert_array_equal(bandit.probabilities(probe()), other.probabilities(probe()))


@pytest.mark.slow
def test_a_refit_that_fails_is_said_once(gate):
    """The old draws go on; with more rounds it is tried again."""
    bandit = bandit_of()
    gate.error = RuntimeError("no draws today")
    gate.opened.clear()
    surprise(bandit)
    before = bandit.probabilities(probe())
    gate.opened.set()
    with pytest.warns(RuntimeWarning, match="no draws today. The old draws go on") as said:
        finish(bandit)
    assert len(said) == 1
    np.testing.assert_array_equal(bandit.probabilities(probe()), before)
    assert refits(bandit) == [False, False]
    gate.error = None
    surprise(bandit, 20, seed=3)
    bandit.greedy(probe())
    finish(bandit)
    assert [chain.fitted for chain in bandit.belief.clouds] == [40, 40]


@pytest.mark.slow
def test_saved_copied_and_pickled_in_the_middle(gate, tmp_path):
    """It goes on with the old draws, and begins a refit of its own."""
    bandit = bandit_of()
    gate.opened.clear()
    surprise(bandit)
    bandit.greedy(probe())
    assert refits(bandit) == [True, True]
    bandit.save(tmp_path / "b")
    others = bandit.copy(), pickle.loads(pickle.dumps(bandit)), bb.Bandit.load(tmp_path / "b")
    for other in others:
        assert refits(other) == [False, False]
        np.testing.assert_array_equal(other.probabilities(probe()), bandit.probabilities(probe()))
        assert refits(other) == [True, True]
    gate.opened.set()
    for one in (bandit, *others):
        finish(one)
        assert runs(one) == [3, 3]
    for other in others:
        np.testing.assert_array_equal(other.probabilities(probe()), bandit.probabilities(probe()))


def test_arms_that_come_and_go_in_the_middle(gate):
    """Each arm takes the draws of its own rounds."""
    bandit, other = bandit_of(arms=3, n=30), bandit_of(background=False, arms=3, n=30)
    gate.opened.clear()
    surprise(bandit, 60), surprise(other, 60)
    bandit.greedy(probe()), other.greedy(probe())
    assert refits(bandit) == [True] * 3
    for one in (bandit, other):
        one.remove_arm(0)
        one.add_arm("new")
    assert bandit.greedy(probe()).shape == (4,)
    gate.opened.set()
    finish(bandit)
    assert runs(bandit) == [3, 3, 1]
    np.testing.assert_array_equal(bandit.probabilities(probe()), other.probabilities(probe()))


def test_draws_of_rounds_that_have_changed_are_dropped(gate):
    bandit = bandit_of()
    gate.opened.clear()
    surprise(bandit)
    bandit.greedy(probe())
    rows = bandit.belief.rounds.of()
    weight = 2.0 * rows["weight"]
    bandit.belief.reweigh([0, 1], rows["x"], rows["arm"], rows["reward"], weight)
    gate.opened.set()
    finish(bandit)
    assert [chain.fitted for chain in bandit.belief.clouds] == [-1, -1]
    finish(bandit)
    assert [chain.fitted for chain in bandit.belief.clouds] == [30, 30]
    assert runs(bandit) == [4, 4]


@pytest.mark.slow
def test_threads_take_turns_quickly_while_a_refit_runs(gate):
    """Also one that fails; then the interval is as before, or as somebody has set it meanwhile."""
    usual = sys.getswitchinterval()

    def during():
        for _ in range(6000):
            if sys.getswitchinterval() != usual:
                break
            time.sleep(0.01)
        return sys.getswitchinterval()

    try:
        for error, other in ((ValueError("no draws"), None), (None, None), (None, 0.002)):
            gate.error = None
            bandit = bandit_of(arms=1, n=10)
            gate.error = error
            gate.opened.clear()
            surprise(bandit, 20)
            bandit.greedy(probe())
            assert usual > SWITCH_INTERVAL
            assert during() == pytest.approx(SWITCH_INTERVAL)
            if other:
                sys.setswitchinterval(other)
            gate.opened.set()
            if error:
                with pytest.warns(RuntimeWarning, match="no draws"):
                    finish(bandit)
            else:
                finish(bandit)
            assert sys.getswitchinterval() == pytest.approx(other or usual)
    finally:
        sys.setswitchinterval(usual)


def test_settings():
    with pytest.raises(ValueError, match="background must be one of False, True; got 'yes'"):
        bandit_of(background="yes")
    with pytest.raises(ValueError, match="refit_below must be a finite number ≥ 0 and ≤ 1; got 2"):
        bandit_of(refit_below=2)


@pytest.mark.slow
def test_eight_threads():
    """Each reward is learned once, and decisions are proper while refits come and go."""
    bandit, wrong = bandit_of(), []

    def live(seed):
        x, _, reward = rounds(40, seed)
        for i in range(40):
            decision = bandit.choose(x[i])
            if not 0.0 < decision.propensity <= 1.0:
                wrong.append(decision)
            bandit.observe(decision, float(reward[i]))

    threads = [threading.Thread(target=live, args=(seed,)) for seed in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for _ in range(40):  # a decision weights at most eight of the rounds that are left
        finish(bandit)
    assert not wrong
    assert bandit.belief.n.sum() == 340
    assert max(runs(bandit)) > 1
    assert [chain.seen for chain in bandit.belief.clouds] == bandit.belief.n.tolist()


SCRIPT = """
import threading, time
from tests.bandit.test_background import SAMPLE, Plan, bandit_of, probe, refits, surprise

def slow(plan, *args, **settings):
    print("begun", flush=True)
    time.sleep(1.0)
    return SAMPLE(plan, *args, **settings)

bandit = bandit_of()
Plan.sample = slow
surprise(bandit)
bandit.greedy(probe())
assert refits(bandit) == [True, True]
"""


@pytest.mark.slow
def test_a_process_that_ends_in_the_middle():
    """It waits for the refit that runs, and does not begin the next."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.split() == ["begun"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_process_that_is_forked_in_the_middle_refits_by_itself(gate):
    bandit = bandit_of()
    gate.opened.clear()
    surprise(bandit)
    bandit.greedy(probe())
    assert refits(bandit) == [True, True]
    child = os.fork()
    if child == 0:
        gate.opened.set()
        bandit.greedy(probe())
        finish(bandit)
        os._exit(0 if [c.fitted for c in bandit.belief.clouds] == [30, 30] else 1)
    assert os.waitpid(child, 0)[1] == 0
    gate.opened.set()
    finish(bandit)
    assert runs(bandit) == [3, 3]


@pytest.mark.slow
def test_a_service_replays_a_bandit_of_refits_in_the_background(tmp_path):
    """Its versions refit when they learn."""
    log = bb.DecisionLog(f"sqlite:///{tmp_path}/log.db")
    service = bb.Service(bandit_of(), log)
    for i in range(30):
        decision = service.decide(probe(30)[i])
        service.reward(decision.id, 5.0 + i % 3)
        if i % 5 == 4:
            service.learn()
    assert not any(refits(service.bandit))
    replayed = log.replay()
    np.testing.assert_array_equal(
        replayed.probabilities(probe()), service.bandit.probabilities(probe())
    )
    assert not len(log.verify())


def test_gibbs_is_compiled_before_the_first_decision(monkeypatch):
    """Else the first refit would compile in the background, while decisions wait for its draws."""
    runs, sample = [], Gibbs.sample

    def counted(self, data, *args, **settings):
        runs.append(len(data["x"]))
        return sample(self, data, *args, **settings)

    monkeypatch.setattr(Gibbs, "sample", counted)
    monkeypatch.setattr(plan, "_built", Cache(8, plan.KEPT_BYTES, lambda _: 0))
    for background, many in ((False, 0), (True, 1), (True, 1)):  # once for a model
        settings = SETTINGS | {"background": background}
        declared.bandit(2, declared.lasso, bb.Thompson(), **settings)
        assert len(runs) == many


@pytest.fixture
def picky(monkeypatch):
    """Gibbs refuses rewards above 4, and a quick sampler has the name of NUTS."""
    sample, gibbs = Gibbs.sample, plan.plan(declared.lasso, D).method

    def refuses(self, data, *args, **settings):
        if (data["reward"] > 4.0).any():
            raise NotThisEngine(Refusal("gibbs", "large rewards", of_rows=True))
        return sample(self, data, *args, **settings)

    def draws(self, data, draws, chains, tune, seed, start):
        assert start is None or isinstance(start, np.ndarray)
        drawn = sample(gibbs, data, draws, chains, tune, seed)
        return replace(drawn, state=np.zeros((draws, 1)))

    monkeypatch.setattr(Gibbs, "sample", refuses)
    monkeypatch.setattr(Nuts, "prepare", lambda self, name: None)
    monkeypatch.setattr(Nuts, "sample", draws)


@pytest.mark.slow
@pytest.mark.usefixtures("picky")
@pytest.mark.parametrize("background", [False, True])
def test_an_engine_that_has_refused_rows_is_not_tried_again(background, tmp_path):
    """Neither by a refit that began before, nor when arms come and go."""
    bandit = bandit_of(background=background, n=30, arms=3)
    x, arm, reward = rounds(30, arms=3)
    bandit.update(x, arm, reward + 9.0 * (arm == 0) - 9.0 * (arm == 1))
    bandit.greedy(probe()), finish(bandit)
    assert bandit.belief.plan.engine == "nuts"
    bandit.add_arm("new"), bandit.remove_arm(2)
    assert bandit.belief.plan.engine == "nuts"
    bandit.update(x, arm % 2, reward - 50.0 * arm)
    bandit.greedy(probe()), finish(bandit)
    bandit.save(tmp_path / "b")
    loaded = bb.Bandit.load(tmp_path / "b")
    np.testing.assert_array_equal(loaded.probabilities(probe()), bandit.probabilities(probe()))
    assert [r.engine for r in loaded.belief.refused] == ["gibbs"]


@bb.reward_model(
    theta=bb.Prior("Laplace", mu=0, b=1, dims=("arm", "feature")),
    sigma2=bb.Prior("InverseGamma", alpha=2, beta=1),
)
def of_arms(x, reward, arm, theta, sigma2):
    mean = (x * theta[arm]).sum(axis=-1)
    pm.Normal("reward", mean, pm.math.sqrt(sigma2), observed=reward)
    return mean


@bb.reward_model(
    theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    sigma=bb.Prior("HalfCauchy", beta=1),
)
def of_shares(x, reward, theta, sigma):
    pm.Normal("logit", x @ theta, sigma, observed=pm.math.log(reward / (1 - reward)))
    return x @ theta


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_made_up_rewards_that_a_model_excludes(monkeypatch):
    """They give way to others, and nothing is said of their logarithms."""
    runs, sample = [], Gibbs.sample

    def noted(self, data, *args, **settings):
        drawn = sample(self, data, *args, **settings)
        runs.append(data["reward"])
        return drawn

    monkeypatch.setattr(Gibbs, "sample", noted)
    declared.bandit(2, of_shares, bb.Thompson(), background=True, **SETTINGS)
    assert len(runs) > 0
    assert all(((reward > 0.0) & (reward < 1.0)).all() for reward in runs)


REFITS = """
import gc, sys
import numpy as np
import pymc as pm
import bayesbandit as bb
from bayesbandit.runtime.compiling import Kernel

@bb.reward_model(theta=bb.Prior("Normal", dims="feature"), sigma=bb.Prior("HalfCauchy", beta=1))
def log_normal(x, reward, theta, sigma):
    pm.LogNormal("reward", x @ theta, sigma, observed=reward)
    return x @ theta

def compiled():
    kernels = [k for k in gc.get_objects() if type(k) is Kernel and "prob_best" not in k.__module__]
    return {(k.__module__, k.__qualname__, str(types)) for k in kernels for types in k.overloads}

x, own = np.random.default_rng(0).normal(size=(20, 3)), set()
for name in sys.argv[1:]:
    model = log_normal if name == "log_normal" else bb.load_model(name)
    bandit = bb.Bandit(2, bb.Sampled(model, background=True), bb.Thompson(), n_features=3)
    before = compiled()
    for n in (1, 19):
        reward = 1.0 * (x[:n, 0] > 0.0) + (name == "log_normal")
        bandit.update(x[:n], [0] * n, reward, np.full(n, 0.5))
        bandit.posterior(0)
    print(name, sorted({kernel for _, kernel, _ in compiled() - before}), len(before - own))
    own |= before
"""


@pytest.mark.slow
def test_what_a_refit_by_gibbs_runs_is_compiled_when_the_bandit_is_made():
    """In a process of its own, by one model of each of the samplers; with few rows, too."""
    names = ["log_normal", "hierarchical_logistic", "logistic", "probit"]
    run = subprocess.run([sys.executable, "-c", REFITS, *names], capture_output=True, text=True)
    found = [line.rsplit(" ", 1) for line in run.stdout.splitlines()]
    assert [said for said, _ in found] == [f"{name} []" for name in names], run.stdout + run.stderr
    assert all(int(kernels) > 0 for _, kernels in found[:2])  # the second sampler has its own
