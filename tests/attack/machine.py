"""The whole public API against a log, and against a naive model that is computed from it."""

import copy
import os
import pickle
import tempfile

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import bayesbandit as bb
from tests.attack.bad_input import wrong
from tests.attack.naive import Naive, Round
from tests.attack.strikes import strike
from tests.bandit.kinds import DECLARED, RIDGES, SHARED, agree, contexts
from tests.players import anatomy

LINES = 400  # of the package, in one of which an error strikes
KINDS = RIDGES | DECLARED | SHARED


def whole(bandit):
    """All that there is to know, also what the compiled calls take."""
    return anatomy(bandit), bandit.t, bandit.history.total, np.asarray(bandit.belief.n).sum()


class Machine(RuleBasedStateMachine):
    """Arms come and go, rounds arrive late and in batches, errors strike; nothing is lost."""

    kinds = tuple(KINDS)

    @initialize(data=st.data(), seed=st.integers(0, 9999))
    def begin(self, data, seed):
        self.kind = data.draw(st.sampled_from(self.kinds))
        self.of, self.rng = KINDS[self.kind], np.random.default_rng(seed)
        self.bandit = self.of(seed)
        self.naive = self.of.naive and Naive(self.bandit.arms, **self.of.naive)
        self.common = self.of.common and Naive(["all"], **self.of.common)
        self.log, self.pending, self.next, self.t = [], [], 0, 0

    def contexts(self, n):
        return contexts(self.bandit, self.rng, n)

    def of_chosen(self, x, arms):
        """The context (n, d) of each round, where x (n, K, d) has those of all arms."""
        if x.ndim == 2:
            return x
        return x[np.arange(len(x)), [self.bandit.arms.index(a) for a in arms]]

    def rewards(self, *shape):
        return self.of.drawn(self.rng, shape)

    def names(self, n):
        return [self.bandit.arms[i] for i in self.rng.integers(len(self.bandit.arms), size=n)]

    def note(self, x, arms, rewards, p):
        self.log += [
            (list(c), a, r)
            for c, a, r in zip(np.atleast_2d(x).tolist(), arms, rewards, strict=True)
        ]
        if naive := self.naive or self.common:
            arms = ["all"] * len(arms) if self.common else arms
            rows = zip(np.atleast_2d(x).tolist(), arms, rewards, p, strict=True)
            naive.learn([Round(*row) for row in rows])

    @rule(n=st.integers(0, 4), some=st.booleans())
    def choose(self, n, some):
        """For one context (n = 0) or n, among all arms or some: by the naive model's moments."""
        x, arms = self.contexts(max(n, 1)), self.bandit.arms
        among = self.rng.random(len(arms)) < (0.5 if some else 2.0)
        among[self.rng.integers(len(arms))] = True
        names = [a for a, here in zip(arms, among, strict=True) if here]
        x = x[:, among] if x.ndim == 3 and some else x
        decision = self.bandit.choose(x if n else x[0], names if some else None)
        self.t += len(x)
        self.pending.append((decision, self.judged(decision, among)))

    def judged(self, decision, among):
        """The propensities of a decision's arms, as they should be."""
        arms = np.atleast_1d(np.asarray(decision.arm, dtype=object)).tolist()
        index = [decision.arms.index(a) for a in arms]
        assert among[index].all()
        p, own = np.atleast_2d(decision.probabilities), np.atleast_1d(decision.propensity)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)
        if not self.naive:
            np.testing.assert_allclose(own, p[np.arange(len(p)), index], rtol=1e-12)
            return own
        x, right = np.atleast_2d(decision.x), []
        for i, k in enumerate(index):
            right.append(self.naive.chances(x[i], among))
            np.testing.assert_allclose(p[i], right[i], atol=self.near(1e-5))
            if among.all() and (found := self.naive.moments(x[i])) is not None:
                mean = np.atleast_2d(decision.mean)[i]
                np.testing.assert_allclose(mean, found[0], atol=self.near(1e-6))
            right[i] = right[i][k]
        np.testing.assert_allclose(own, right, atol=self.near(1e-5))
        return right

    @rule(late=st.integers(0, 9), part=st.booleans())
    def observe(self, late, part):
        """A decision of long ago, or a part of one."""
        if not self.pending:
            return
        decision, p = self.pending.pop(late % len(self.pending))
        if part and decision.rows.ndim > 1:
            decision, p = decision[::2], p[::2]
        arms = np.atleast_1d(np.asarray(decision.arm, dtype=object)).tolist()
        rewards = self.rewards(len(arms)).tolist()
        said = rewards[0] if decision.rows.ndim == 1 else rewards
        if not set(arms) <= set(self.bandit.arms):
            self.refused(lambda b: b.observe(decision, said))
            return
        self.bandit.observe(decision, said)
        self.note(decision.x, arms, rewards, p)

    @rule(n=st.integers(1, 5), known=st.booleans())
    def update(self, n, known):
        """Rounds of elsewhere, with their propensities or without."""
        x, arms, rewards = self.contexts(n), self.names(n), self.rewards(n).tolist()
        p = self.rng.uniform(0.02, 1, n).tolist() if known else None
        mine = self.of_chosen(x, arms)
        right = p
        if p is None and self.naive:
            index = [self.bandit.arms.index(a) for a in arms]
            right = [self.naive.chances(c)[k] for c, k in zip(x, index, strict=True)]
        elif p is None:
            at = np.arange(n), [self.bandit.arms.index(a) for a in arms]
            right = self.bandit.probabilities(x)[at].tolist()
        self.bandit.update(mine if known else x, arms, rewards, p)
        self.note(mine, arms, rewards, right)

    @rule(n=st.integers(1, 6))
    def play(self, n):
        """As `choose` and `observe` round by round, of which a copy is the witness."""
        x, reward = self.contexts(n), self.rewards(n, len(self.bandit.arms))
        twin = self.bandit.copy()
        for context, row in zip(x, reward, strict=True):
            decision = twin.choose(context)
            k = twin.arms.index(decision.arm)
            p = self.judged(decision, np.ones(len(row), bool))
            twin.observe(decision, float(row[k]))
            self.note(decision.x, [decision.arm], [float(row[k])], p)
        self.bandit.play(x, reward)
        assert whole(self.bandit) == whole(twin)
        self.t += n

    @rule(back=st.booleans())
    def add_arm(self, back):
        gone = [a for a in ("a", "b", "c") if a not in self.bandit.arms]
        self.next += 1
        name = gone[0] if back and gone else [self.next, f"new {self.next}"][self.next % 2]
        if len(self.bandit.arms) < self.of.most:
            self.bandit.add_arm(name)
            if self.naive:
                self.naive.add(name)
        elif self.kind == "one prior an arm":
            self.refused(lambda b: b.add_arm(name))

    @rule(k=st.integers(0, 9))
    def remove_arm(self, k):
        arms = self.bandit.arms
        name = arms[k % len(arms)]
        if len(arms) == 1 or self.kind == "one prior an arm":
            self.refused(lambda b: b.remove_arm(name))
        elif len(arms) > 4 - self.of.most % 2:
            self.bandit.remove_arm(name)
            if self.naive:
                self.naive.remove(name)

    @rule(key=st.sampled_from(["worker", 7]))
    def reseed(self, key):
        before = self.bandit.history.total, np.asarray(self.bandit.belief.n).tolist()
        self.bandit.reseed(key)
        assert (self.bandit.history.total, np.asarray(self.bandit.belief.n).tolist()) == before

    @rule(how=st.sampled_from(["copy", "deep", "pickle", "file", "file twice"]))
    def another(self, how):
        """In the same state, bit for bit; it goes on in the place of the first."""
        before = whole(self.bandit)
        if how.startswith("file"):
            other = self.bandit
            for _ in how.split():
                other = through_a_file(other)
        elif how == "pickle":
            other = pickle.loads(pickle.dumps(self.bandit))
        else:
            other = self.bandit.copy() if how == "copy" else copy.deepcopy(self.bandit)
        assert whole(other) == whole(self.bandit) == before
        self.bandit = other

    @rule(call=st.sampled_from(
        ["choose", "one", "observe", "update", "play", "add", "remove", "copy", "save", "reseed"]
    ), at=st.integers(1, LINES))  # fmt: skip
    def struck(self, call, at):
        """An error at some line of the package: the state is the one before, or the one after."""
        n = int(self.rng.integers(1, 4))
        x, reward, arms = self.contexts(n), self.rewards(n, 9), self.names(n)
        decision = self.bandit.copy().choose(x)
        acts = {
            "choose": lambda b: b.choose(x),
            "one": lambda b: b.observe(b.choose(x[0]), float(reward[0, 0])),
            "observe": lambda b: b.observe(decision, reward[:, 0]),
            "update": lambda b: b.update(x, arms, reward[:, 0]),
            "play": lambda b: b.play(x, reward[:, : len(b.arms)]),
            "add": lambda b: b.add_arm("struck"),
            "remove": lambda b: b.remove_arm(b.arms[0]),
            "copy": lambda b: b.copy(),
            "save": through_a_file,
            "reseed": lambda b: b.reseed(1),
        }
        fixed = self.kind == "one prior an arm" or (call == "remove" and len(self.bandit.arms) == 1)
        if call in ("add", "remove") and (fixed or not self.of.changes):
            return  # of a declared model that takes seconds: it is compiled anew
        act, trial, finished = acts[call], self.bandit.copy(), self.bandit.copy()
        before = whole(trial)
        through = strike(lambda: act(trial), at)
        if call == "one":  # two calls: only that nothing is half done
            assert known(trial) == trial.belief.n.sum()
        else:
            act(finished)
            after = whole(finished)
            found = whole(trial)
            assert found == after if through else found in (before, after), (self.kind, call, at)
        trial.observe(trial.choose(contexts(trial, self.rng, 1)[0]), float(reward[0, 0]))
        assert known(trial) == trial.belief.n.sum()

    @rule(which=st.integers(0, 99))
    def bad_input(self, which):
        bad = tuple(wrong(self.contexts(2), self.bandit, self.pending))
        self.refused(bad[which % len(bad)])

    def refused(self, act):
        before = whole(self.bandit)
        try:
            act(self.bandit)
        except (ValueError, TypeError):
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
        assert history.arm.tolist() == [a for _, a, _ in kept]
        assert history.reward.tolist() == [r for *_, r in kept]
        if naive := self.naive or self.common:
            right = [r.weight for r in naive.rounds[len(self.log) - len(history) :]]
            np.testing.assert_allclose(history.weight, right, rtol=self.near(1e-4))

    def teardown(self):
        """What is known of every arm, from the log alone."""
        if not hasattr(self, "bandit"):
            return
        if self.of.exact and len(self.bandit.history) == len(self.log) and len(self.log):
            alive = set(self.bandit.arms)
            there = {a for _, a, _ in self.log}
            if self.next == 0 and there == alive:  # none of whose rounds an arm has forgotten
                agree(self.bandit)
        if not (naive := self.naive or self.common):
            return
        for arm in self.bandit.arms:
            if (found := naive.posterior("all" if self.common else arm)) is not None:
                ours = self.bandit.posterior(arm)
                np.testing.assert_allclose(ours.location, found[0], atol=self.near(1e-6))
                off = max(1e-8, self.near(0.0) * np.abs(found[1]).max())
                np.testing.assert_allclose(ours.spread, found[1], rtol=self.near(1e-4), atol=off)

    def near(self, tolerance):
        """How near to the naive model: a regression of the arms is solved to 1e-4."""
        return 5e-3 if self.naive and self.naive.balance == "estimated" else tolerance


def through_a_file(bandit):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "b")
        bandit.save(path)
        return bb.Bandit.load(path, model=bandit.model)


def known(bandit):
    """The rounds that belief and history should both have, where the history has all."""
    if len(bandit.history) < bandit.history.total:
        return bandit.belief.n.sum()
    return (bandit.history.played() >= 0).sum()
