"""Refits in the background: decisions and rewards go on, and the draws are those of any refit."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.inference import plan
from bayesbandit.inference.base import NotThisEngine, Refusal
from bayesbandit.inference.gibbs.sampler import Gibbs
from bayesbandit.inference.nuts import Nuts
from bayesbandit.inference.plan import Plan
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


def bandit_of(background=True, arms=2, n=20, **others):
    """A bandit whose draws know n rounds."""
    settings = SETTINGS | {"background": background} | others
    bandit = declared.bandit(arms, declared.lasso, bb.Thompson(), **settings)
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
    for chain in bandit.belief.clouds:
        for _ in range(6000):
            if not chain.refit.runs:
                break
            time.sleep(0.01)
    bandit.greedy(probe())


def runs(bandit):
    return [chain.runs for chain in bandit.belief.clouds]


def refits(bandit):
    return [chain.refit.runs for chain in bandit.belief.clouds]


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


class Growing:
    """A balance that gives all earlier rounds new weights at each reward."""

    def weights(self, history, belief):
        return np.linspace(0.5, 1.0, len(history))


@pytest.mark.slow
def test_draws_are_taken_although_the_past_weighs_otherwise_by_now(gate):
    """Else a balance that reweighs at every reward would keep the first draws for ever."""
    bandit = bandit_of(balance=Growing())
    old = [chain.values for chain in bandit.belief.clouds]
    gate.opened.clear()
    surprise(bandit)
    bandit.greedy(probe())
    assert refits(bandit) == [True, True]
    surprise(bandit, 2, seed=2)
    gate.opened.set()
    finish(bandit)
    assert all(c.values is not v for c, v in zip(bandit.belief.clouds, old, strict=True))
    assert all(chain.fitted == -1 for chain in bandit.belief.clouds)  # due again
    finish(bandit)
    assert [chain.fitted for chain in bandit.belief.clouds] == [31, 31]


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


def test_gibbs_is_compiled_before_the_first_decision(monkeypatch):
    """Else the first refit would compile in the background, while decisions wait for its draws."""
    runs, sample = [], Gibbs.sample

    def counted(self, data, *args, **settings):
        runs.append(len(data["x"]))
        return sample(self, data, *args, **settings)

    monkeypatch.setattr(Gibbs, "sample", counted)
    monkeypatch.setattr(plan, "_built", {})
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
