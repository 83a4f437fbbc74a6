"""Any order of calls of two services on one log, beside a model of what it must hold."""

import tempfile
import time
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import bayesbandit as bb

pytest.importorskip("sqlalchemy")

from tests.store.databases import fresh

WAIT = 100  # seconds
NAMES = [f"order-{i}" for i in range(8)]
VALUES = st.sampled_from([0.0, 0.5, 1.0])


@dataclass
class Made:
    """A decision, as the log must have it. every: the arms of its version. due: None, when a
    reward comes."""

    at: float
    context: float
    arms: set
    arm: str
    version: int
    due: float | None
    every: set
    shown: bool = False
    came: list = field(default_factory=list)
    outcome: str = "open"
    closed_by: int = 0
    erased: bool = False


class Life(RuleBasedStateMachine):
    """Services decide, reward, learn, restart, forget; the clock may go back."""

    kind = "sqlite"

    @initialize(activation=st.booleans(), default=st.sampled_from([None, -1.0]))
    def begin(self, activation, default):
        self.folder = tempfile.TemporaryDirectory()
        self.url = fresh(self.kind, self.folder.name)
        self.now = float(int(time.time())) - 10**6
        self.activation, self.default = activation, default
        bandit = bb.LinTS(["mail", "call"], 1, seed=0)
        self.services = [
            bb.Service(
                bandit, bb.DecisionLog(self.url), WAIT, default, activation=activation,
                clock=self.clock,
            )
            for _ in range(2)
        ]  # fmt: skip
        self.made, self.rewards, self.unknown, self.removed = {}, {}, {}, {}
        self.version = self.verified = self.learned = self.closed = self.checkpoint = 0
        self.arms = {"mail", "call"}
        self.decide_a_batch(0, 3)  # so that most examples have something to reward and to learn

    def clock(self):
        return self.now

    def of(self, which):
        return self.services[which]

    @rule(which=st.integers(0, 1), name=st.sampled_from(NAMES), x=st.integers(0, 2),
          some=st.booleans())  # fmt: skip
    def decide(self, which, name, x, some):
        service = self.of(which)
        arms = sorted(service.arms)[:1] if some else None
        old = self.made.get(name)
        could = set(service.arms if arms is None else arms)
        changed = old and arms is None and set(service.arms) != old.every
        if changed and not old.erased and old.context == x:
            return  # the arms have changed since; which ones were meant nobody says
        if old and (old.erased or (old.context, old.arms) != (x, could)):
            with pytest.raises(ValueError, match="another context or other arms"):
                service.decide([float(x)], arms, name)
            return
        decision = service.decide([float(x)], arms, name)
        if old:
            assert decision.arm == old.arm
        else:
            self.note(service, [name], [x], could, [decision.arm])

    @rule(which=st.integers(0, 1), n=st.integers(1, 3))
    def decide_a_batch(self, which, n):
        service, x = self.of(which), np.arange(n) % 3
        batch = service.decide(x[:, None].astype(float))
        self.note(service, batch.id.tolist(), x.tolist(), set(service.arms), batch.arm.tolist())

    def note(self, service, ids, contexts, arms, chosen):
        due = self.now + WAIT
        for name, x, arm in zip(ids, contexts, chosen, strict=True):
            assert name not in self.made
            assert arm in arms
            every = set(service.arms)
            self.made[name] = Made(self.now, x, arms, arm, service.version, due, every)

    def named(self, data):
        """A decision; now and then one that nobody has made."""
        names = [*self.made] * 3 + NAMES
        return data.draw(st.sampled_from(names))

    @rule(which=st.integers(0, 1), data=st.data(), value=VALUES)
    def reward(self, which, data, value):
        name = self.named(data)
        service, one = self.of(which), self.made.get(name)
        if one is None:
            if self.unknown.setdefault(name, value) == value:
                assert service.reward(name, value) == "unknown"
            else:
                with pytest.raises(ValueError, match="a reward is told once"):
                    service.reward(name, value)
            return
        if name in self.rewards:
            if self.rewards[name] == value:
                assert service.reward(name, value) == "again"
            else:
                with pytest.raises(ValueError, match="a reward is told once"):
                    service.reward(name, value)
            return
        late = one.outcome != "open" or max(self.now, one.at) > one.at + WAIT
        assert service.reward(name, value) == ("late" if late else "timely")
        self.rewards[name] = value
        if not late:
            one.came.append(value)
            self.ready(one)

    @rule(which=st.integers(0, 1), data=st.data())
    def activate(self, which, data):
        name = self.named(data)
        if name not in self.made:
            with pytest.raises(ValueError, match="has no decision"):
                self.of(which).activate(name)
            return
        self.of(which).activate(name)
        if not self.made[name].shown:
            self.made[name].shown = True
            self.ready(self.made[name])

    def ready(self, one):
        """Let the learner have a decision whose first reward has come."""
        shown = one.shown or not self.activation
        if one.came and shown and one.outcome == "open":
            one.due = min(one.due, self.now)

    @rule(seconds=st.sampled_from([1, 10, 200, 1000, -5, -300]))
    def pass_time(self, seconds):
        self.now += seconds

    @rule(which=st.integers(0, 1))
    def learn(self, which):
        due = [one for one in self.made.values() if one.outcome == "open" and one.due <= self.now]
        learned = 0
        for one in due:
            one.outcome = self.closed_as(one)
            one.closed_by = self.version + 1
            learned += one.outcome in ("reward", "default")
        assert self.of(which).learn() == learned
        self.version += bool(due)
        self.learned += learned
        self.closed += len(due)

    @rule(which=st.integers(0, 1), data=st.data(), value=VALUES, seconds=st.sampled_from([10, 200]))
    def live_a_day(self, which, data, value, seconds):
        """One rule, since an example has only some of the rules."""
        self.reward(which, data, value)
        self.activate(which, data)
        self.pass_time(seconds)
        self.learn(which)

    def closed_as(self, one):
        if self.activation and not one.shown:
            return "inactive"
        if one.erased or (not one.came and self.default is None):
            return "expired"
        if self.removed.get(one.arm, -1) > one.version:
            return "retired"
        return "reward" if one.came else "default"

    @rule(which=st.integers(0, 1), add=st.booleans(), arm=st.sampled_from(["mail", "fax"]))
    def change_arms(self, which, add, arm):
        if (arm in self.arms) == add or self.arms == {arm}:
            with pytest.raises(ValueError, match="arm"):
                (self.of(which).add_arm if add else self.of(which).remove_arm)(arm)
            return
        self.version += 1
        if add:
            self.of(which).add_arm(arm)
            self.arms |= {arm}
        else:
            self.of(which).remove_arm(arm)
            self.arms -= {arm}
            self.removed[arm] = self.version

    @rule(which=st.integers(0, 1))
    def another_arm_of_the_same_name(self, which):
        self.change_arms(which, False, "mail")
        self.change_arms(which, True, "mail")

    @rule(which=st.integers(0, 1))
    def snapshot(self, which):
        assert self.of(which).snapshot() <= self.version

    @rule(which=st.integers(0, 1))
    def sync(self, which):
        assert self.of(which).sync() == self.version
        assert set(self.of(which).arms) == self.arms

    @rule(which=st.integers(0, 1))
    def restart(self, which):
        self.of(which).log.close()
        self.services[which] = bb.Service.open(bb.DecisionLog(self.url), clock=self.clock)
        assert self.of(which).version == self.version

    @rule(which=st.integers(0, 1))
    def make_a_checkpoint(self, which):
        self.version += 1
        assert self.of(which).log.checkpoint() == self.version
        self.checkpoint = self.version

    @rule(which=st.integers(0, 1))
    def prune(self, which):
        if not self.checkpoint:
            with pytest.raises(ValueError, match="has no checkpoint"):
                self.of(which).log.prune()
            return
        gone = {
            name for name, one in self.made.items()
            if one.outcome != "open" and one.closed_by < self.checkpoint
        }  # fmt: skip
        assert self.of(which).log.prune() == len(gone)
        for name in gone:
            del self.made[name]
            self.unknown.pop(name, None)
        self.rewards = {key: one for key, one in self.rewards.items() if key not in gone}

    @rule(which=st.integers(0, 1), name=st.sampled_from(NAMES))
    def erase(self, which, name):
        self.version += 1
        self.checkpoint = self.version
        assert self.of(which).log.erase(name) == (name in self.made)
        if name in self.made:
            self.made[name].erased = True

    @invariant()
    def the_log_is_what_was_done(self):
        if not hasattr(self, "made"):
            return
        frame = self.of(0).log.frame().set_index("decision_id")
        assert set(frame.index) == set(self.made)
        for name, one in self.made.items():
            row = frame.loc[name]
            assert (row["status"], row["arm"], row["version"]) == (
                one.outcome, one.arm, one.version
            )  # fmt: skip
            if one.outcome == "default":
                assert row["reward"] == self.default
            elif one.outcome != "inactive" and one.came:
                assert [row["reward"]] == one.came
        if self.version != self.verified:
            self.verify()

    def verify(self):
        self.verified = self.version
        found = self.of(1).log.verify()
        assert found.empty, found.to_dict("records")

    def teardown(self):
        if not hasattr(self, "made"):
            return
        self.of(0).sync()
        self.now += 20 * WAIT  # all that is open is closed
        self.learn(0)
        self.the_log_is_what_was_done()
        self.verify()
        bandit, replayed, x = self.of(0).bandit, self.of(1).log.replay(), np.array([[0.0], [1.0]])
        assert (replayed.t, replayed.history.total) == (self.closed, self.learned)
        assert replayed.arms == bandit.arms
        np.testing.assert_array_equal(replayed.probabilities(x), bandit.probabilities(x))
        for one in self.services:
            one.log.close()
        self.folder.cleanup()


class LifeInPostgreSQL(Life):
    kind = "postgresql"


FEW = settings(max_examples=30, stateful_step_count=25, phases=[Phase.generate])
TestLife = pytest.mark.slow(Life.TestCase)
TestLife.settings = FEW
TestLifeInPostgreSQL = pytest.mark.slow(LifeInPostgreSQL.TestCase)
TestLifeInPostgreSQL.settings = settings(FEW, max_examples=10)
