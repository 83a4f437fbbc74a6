"""The whole public API against a naive model, recomputed from a log."""

import copy
import os
import pickle
import tempfile

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import bayesbandit as bb
from tests import oracle
from tests.bandits.test_nothing_lost import whole
from tests.players import STATEFUL

CLOSED = ("LinTS", "LinUCB", "BLTS", "LinGreedy", "normalised", "known noise", "no history")
KINDS = (*CLOSED, "BLTS pooled", "BLUCB", "pooled, every row", "cv", "nig", "unpenalised")
D = 2
numbers = st.integers(-5, 5)
counted = {"operations": 0, "refusals": 0}


class Fails(BaseException):
    """An injected error."""


class Machine(RuleBasedStateMachine):
    """Arms come and go, rounds arrive late and in batches, errors strike; nothing is lost."""

    @initialize(kind=st.sampled_from(KINDS), seed=st.integers(0, 99))
    def begin(self, kind, seed):
        self.kind, self.rng = kind, np.random.default_rng(seed)
        self.bandit = STATEFUL[kind](["a", "b", "c"], D, seed=seed)
        self.log, self.decisions, self.next, self.t = [], [], 0, 0

    def contexts(self, n):
        return self.rng.integers(-2, 3, size=(n, D)).astype(float)

    def note(self, x, arms, rewards):
        self.log += list(zip(x.tolist(), arms, rewards, strict=True))

    @rule(n=st.integers(0, 5))
    def choose(self, n):
        counted["operations"] += 1
        x = self.contexts(max(n, 1))
        decision = self.bandit.choose(x if n else x[0])
        self.t += max(n, 1)
        self.decisions.append(decision)

    @rule(late=st.integers(0, 9), reward=numbers)
    def observe(self, late, reward):
        if self.decisions:
            counted["operations"] += 1
            decision = self.decisions.pop(late % len(self.decisions))
            arms = np.atleast_1d(np.asarray(decision.arm, dtype=object)).tolist()
            if not set(arms) <= set(self.bandit.arms):
                self.refused(lambda b: b.observe(decision, np.ones(len(arms))))
                return
            rewards = [float(reward + i) for i in range(len(arms))]
            one = decision.rows.ndim == 1
            self.bandit.observe(decision, rewards[0] if one else rewards)
            self.note(np.atleast_2d(decision.x), arms, rewards)

    @rule(n=st.integers(1, 6), reward=numbers)
    def update(self, n, reward):
        counted["operations"] += 1
        x = self.contexts(n)
        arms = [self.bandit.arms[i] for i in self.rng.integers(len(self.bandit.arms), size=n)]
        rewards = [float(reward - i) for i in range(n)]
        self.bandit.update(x, arms, rewards, self.rng.uniform(0.1, 1, n))
        self.note(x, arms, rewards)

    @rule(n=st.integers(1, 8))
    def play(self, n):
        counted["operations"] += 1
        x = self.contexts(n)
        reward = self.rng.integers(-3, 4, size=(n, len(self.bandit.arms))).astype(float)
        chosen, _ = self.bandit.play(x, reward)
        self.t += n
        arms = [self.bandit.arms[k] for k in chosen]
        self.note(x, arms, reward[np.arange(n), chosen].tolist())

    @rule(back=st.booleans())
    def add_arm(self, back):
        counted["operations"] += 1
        gone = [a for a in ("a", "b", "c") if a not in self.bandit.arms]
        self.next += 1
        name = gone[0] if back and gone else self.next
        if len(self.bandit.arms) < 6:
            self.bandit.add_arm(name)
            self.log = [(x, (a, "gone") if a == name else a, r) for x, a, r in self.log]

    @rule(k=st.integers(0, 9))
    def remove_arm(self, k):
        counted["operations"] += 1
        arms = self.bandit.arms
        if len(arms) > 1:
            self.bandit.remove_arm(arms[k % len(arms)])

    @rule(how=st.sampled_from(["copy", "deep", "pickle", "file"]))
    def another(self, how):
        """In the same state, bit for bit; it goes on in the place of the first."""
        counted["operations"] += 1
        before = whole(self.bandit)
        if how == "file":
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "b")
                self.bandit.save(path)
                other = bb.Bandit.load(path)
        elif how == "pickle":
            other = pickle.loads(pickle.dumps(self.bandit))
        else:
            other = self.bandit.copy() if how == "copy" else copy.deepcopy(self.bandit)
        assert whole(other) == whole(self.bandit) == before
        self.bandit = other

    @rule(which=st.integers(0, 6))
    def bad_input(self, which):
        x, arm = self.contexts(2), self.bandit.arms[0]
        bad = (
            lambda b: b.choose([np.nan] * D),
            lambda b: b.choose(x[:, :1]),
            lambda b: b.update(x, [arm, "nobody"], [0.0, 1.0]),
            lambda b: b.update(x, [arm, arm], [0.0, np.inf]),
            lambda b: b.update(x, [arm, arm], [0.0, 1.0], [0.5, 0.0]),
            lambda b: b.add_arm(arm),
            lambda b: b.remove_arm("nobody"),
        )
        self.refused(bad[which])

    def refused(self, act):
        counted["refusals"] += 1
        before = whole(self.bandit)
        try:
            act(self.bandit)
        except ValueError:
            assert whole(self.bandit) == before
        else:
            raise AssertionError("bad input was let in")

    @invariant()
    def nothing_is_lost(self):
        if not hasattr(self, "bandit"):
            return
        bandit, history = self.bandit, self.bandit.history
        assert bandit.t == self.t
        assert history.total == len(self.log)
        kept = self.log[len(self.log) - len(history) :]
        assert history.x.tolist() == [x for x, _, _ in kept]
        assert history.reward.tolist() == [r for *_, r in kept]
        assert [str(a) for a in history.arm.tolist()] == [
            str(a[0] if isinstance(a, tuple) else a) for _, a, _ in kept
        ]

    def teardown(self):
        """The coefficients, from the log and the history's own weights."""
        if not hasattr(self, "bandit") or self.kind not in (*CLOSED, "BLTS pooled", "BLUCB"):
            return
        history = self.bandit.history
        if len(history) < len(self.log):
            return
        alive = self.alive()
        for arm in self.bandit.arms:
            mine = np.array([a == arm for a in alive], dtype=bool)
            if mine.any():
                x = np.array([x for x, _, _ in self.log])[mine]
                r, w = np.array([r for *_, r in self.log])[mine], history.weight[mine]
                w = w / w.mean() if self.kind == "normalised" else w
                theta = oracle.sklearn_ridge(x, r, w, 1.0, True)
                found = self.bandit.posterior(arm).location
                np.testing.assert_allclose(found, theta, atol=1e-6)

    def alive(self):
        """Names of the rounds' arms; of an arm that went and came back only since it came."""
        return [a for _, a, _ in self.log]
