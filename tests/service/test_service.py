"""A service: what it decides is in the log, a reward counts once, and processes agree."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.bandit.storage import saving

sa = pytest.importorskip("sqlalchemy")

from bayesbandit.store.group_commit import GroupCommit
from bayesbandit.store.records import NotStored
from bayesbandit.store.settings import settings_of
from bayesbandit.store.versions import rehearse
from tests.cases import all_quick
from tests.store.databases import KINDS, down, fresh

DAY = 86_400.0


class Clock:
    def __init__(self, now=1.7e9):
        self.now = now

    def __call__(self):
        self.now += 1e-3
        return self.now


@pytest.fixture(params=KINDS)
def url(request, tmp_path):
    return fresh(request.param, tmp_path)


@pytest.fixture
def lite(tmp_path):
    return fresh("sqlite", tmp_path)


@pytest.fixture
def service(lite):
    return begun(lite)[0]


def linear(**settings):
    return bb.LinTS(["mail", "call", "wait"], 2, seed=0, **settings)


def begun(url, bandit=None, **settings):
    clock = Clock()
    settings = {"wait": "1d", "default_reward": 0.0, "clock": clock} | settings
    return bb.Service(bandit or linear(), bb.DecisionLog(url), **settings), clock


def same(one, other):
    (text, arrays), (said, others) = saving.checked(one), saving.checked(other)
    return json.loads(text) == json.loads(said) and all(
        np.array_equal(arrays[k], others[k], equal_nan=True) for k in arrays
    )


def live(service, clock, days=3, rate=20, seed=0):
    """Decide, reward two of three, and learn each night."""
    rng = np.random.default_rng(seed)
    for _ in range(days):
        for i in range(rate):
            decision = service.decide(rng.normal(size=2))
            if i % 3:
                service.reward(decision.id, float(rng.random()))
        service.learn()
        clock.now += DAY
    service.learn()
    return service


def rows(service, table):
    with service.log.ledger.database.read() as connection:
        return connection.execute(sa.text(f"SELECT * FROM bandit_{table}")).mappings().all()


def test_a_decision_is_in_the_log_before_it_is_returned(url):
    service, _ = begun(url)
    decision = service.decide([0.5, -1.0])
    with bb.DecisionLog(url) as other:  # by other connections
        [row] = other.frame().itertuples()
    assert row.decision_id == decision.id
    assert (row.arm, row.propensity) == (decision.arm, decision.propensity)
    for name in ("probabilities", "mean", "sd", "x"):
        np.testing.assert_array_equal(getattr(row, name), getattr(decision, name))
    assert json.loads(row.context) == [0.5, -1.0]
    assert np.isnan(row.reward)
    assert row.status == "open"


def test_the_same_id_gives_the_same_decision(url):
    service, _ = begun(url)
    first = service.decide([0.1, 0.2], id="order-1")
    for decider in (service, bb.Service.open(service.log)):
        again = decider.decide([0.1, 0.2], id="order-1")
        assert (again.id, again.arm) == ("order-1", first.arm)
        np.testing.assert_array_equal(again.rows, first.rows)
    with pytest.raises(ValueError, match="'order-1', about another context"):
        service.decide([0.1, 0.3], id="order-1")
    with pytest.raises(ValueError, match="'order-1', about another context or other arms"):
        service.decide([0.1, 0.2], arms=["mail"], id="order-1")
    with pytest.raises(ValueError, match="has 1, and not 'order-2'"):
        service.decide([[0.1, 0.2]] * 2, id=["order-1", "order-2"])
    assert len(service.log.frame()) == 1


FRAME = pd.DataFrame({"age": [20, 30, 40, 50] * 5, "country": ["DE", "US"] * 10})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([1.0, -0.0], [1, 0], True),  # clients in JavaScript write 1 for 1.0
        ([1e20, 2.5], [10**20, 2.5], True),
        ([1.0, 0.0], [1.0, 1e-9], False),
        ([2**53 + 2, 0], [2**53, 0], False),
        # JSON has no order of keys
        ({"age": 33, "country": "US"}, {"country": "US", "age": 33}, True),
        ({"age": np.nan, "country": "US"}, {"country": "US", "age": np.nan}, True),
        ({"age": 33, "country": "US"}, {"country": "US", "age": 34}, False),
    ],
)
@all_quick()
def test_contexts_are_the_same_by_their_values(lite, one, other, same):
    tables = isinstance(one, dict)
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(FRAME), seed=0) if tables else linear()
    service, _ = begun(lite, bandit)
    first = service.decide(one, id="order-1")
    if same:
        again = service.decide(other, id="order-1")
        np.testing.assert_array_equal(again.rows, first.rows)
    else:
        with pytest.raises(ValueError, match="about another context"):
            service.decide(other, id="order-1")


@pytest.mark.parametrize("bad", ["", "x" * 201, "a\nb", "a\0b", 7, b"a"])
def test_ids_that_no_database_would_keep(service, bad):
    for call in (
        lambda: service.decide([0.0, 0.0], id=bad),
        lambda: service.activate(bad),
        lambda: service.reward(bad, 1.0),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()
    assert not rows(service, "decisions")


def test_no_context_is_no_decision(service):
    with pytest.raises(ValueError, match="at least one row; got none"):
        service.decide(np.empty((0, 2)))


@pytest.mark.parametrize(
    "made", [linear, lambda: bb.Bandit(["a"], bb.load_model("beta_bernoulli"), bb.Thompson(),
                               n_features=0),
             lambda: bb.Bandit(["a", "b"], bb.Shared(bb.Ridge()), bb.Thompson(), n_features=2)],
)  # fmt: skip
def test_a_rehearsal_changes_nothing(made):
    bandit = made()
    before = bandit.copy()
    rehearse(bandit)
    assert same(before, bandit)


def test_no_two_processes_have_the_same_random_numbers(url):
    service, _ = begun(url)
    others = [bb.Service.open(service.log) for _ in range(3)]
    drawn = {tuple(one.decide(np.zeros((60, 2))).arm) for one in (service, *others) for _ in "ab"}
    assert len(drawn) == 8
    assert not service.log.frame()["decision_id"].duplicated().any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_has_random_numbers_of_its_own(service):
    service.decide([0.0, 0.0])
    if (child := os.fork()) == 0:
        service.decide(np.zeros((30, 2)))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    service.decide(np.zeros((30, 2)))
    frame = service.log.frame()
    assert len(frame) == 61
    assert len({tuple(frame["arm"][1:31]), tuple(frame["arm"][31:])}) == 2
    assert service.log.verify().empty


@pytest.mark.slow
def test_threads_share_a_service(url):
    service, _ = begun(url)
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(lambda i: service.decide([i / 40, 0.0]).id, range(40)))
        same_id = pool.map(lambda _: service.decide([0.0, 0.0], id="one").arm, range(20))
        assert len({*same_id}) == 1
        said = list(pool.map(lambda one: service.reward(one, 1.0), ids * 2))
        assert sum(pool.map(lambda _: service.learn(), range(4))) == 40
    assert sorted(said) == ["again"] * 40 + ["timely"] * 40
    assert service.log.verify().empty
    assert same(service.log.replay(), service.bandit)


def test_a_decision_whose_thread_was_stopped_is_refused(service, monkeypatch):
    """Its rows were taken, and nobody tells whether they are stored: it does not wait for ever."""
    monkeypatch.setattr(GroupCommit, "_store", lambda self, batch: None)
    with pytest.raises(NotStored, match="another thread was stopped"):
        service.decide([0.0, 0.0])


def test_rounds_are_counted_across_restarts_and_processes(lite):
    """Else the rounds after a restart would be as old as those that were open before it."""
    service, clock = begun(lite, linear(half_life=20.0))
    service.decide(np.zeros((30, 2)))
    other = bb.Service.open(service.log, clock=clock)
    for decider in (other, service):
        clock.now += 1
        decider.sync()
        decider.decide([0.0, 0.0])
    assert sorted(row.t for row in rows(service, "decisions")) == [*range(32)]


@pytest.mark.parametrize("settings", [{}, {"half_life": 20.0}], ids=["all rounds", "fading"])
def test_it_is_what_a_bandit_learns_by_hand(url, settings):
    service, clock = begun(url, linear(**settings))
    live(service, clock)
    bandit, frame = linear(**settings), service.log.frame()
    bandit.update(
        np.stack(frame["x"]), frame["arm"], frame["reward"], propensity=frame["propensity"]
    )
    assert len(frame) == 60
    for arm in bandit.arms:
        own, other = service.bandit.posterior(arm), bandit.posterior(arm)
        for x in np.eye(2):
            assert own.mean(x[None]) == pytest.approx(other.mean(x[None]), rel=1e-10)
            assert own.sd(x[None]) == pytest.approx(other.sd(x[None]), rel=1e-10)


def test_rewards_of_nobody_are_kept(url):
    service, _ = begun(url)
    one = service.decide([0.0, 0.0]).id
    said = service.reward(["nobody", one, one], [1.0, 0.5, 0.7])
    assert said == ["unknown", "timely", "refused"]
    assert service.learn() == 1
    assert {row["status"] for row in rows(service, "rewards")} == {"unknown", "timely"}
    assert service.log.counts()["rewards: unknown"] == 1
    assert service.log.verify().empty


@pytest.mark.slow
def test_a_batch_with_more_ids_than_a_query_takes(service):
    ids = [f"order-{i}" for i in range(40_000)]
    first = service.decide(np.zeros((40_000, 2)), id=ids)
    assert (service.decide(np.zeros((40_000, 2)), id=ids).arm == first.arm).all()


DATED = "a reward cannot be observed "


@pytest.mark.parametrize(
    ("shift", "said"),
    [
        (3600, DATED + "in the future"),  # local time without its zone, to the east
        (1.7e9 * 999, DATED + "in the future"),  # milliseconds
        (61, DATED + "in the future"),
        (-61, DATED + "before its decision"),
        (-1.7e9, DATED + "before its decision"),
        (59, ""),
        (-59, ""),  # the clock of another machine
    ],
)
def test_a_reward_that_is_dated_before_its_decision_or_in_the_future_is_refused(lite, shift, said):
    """And one that counts is no violation later."""
    service, clock = begun(lite)
    one, other = (service.decide([0.0, 0.0]).id for _ in range(2))
    at = clock.now + shift
    if said:
        with pytest.raises(ValueError, match=said):
            service.reward(one, 1.0, at=at)
        assert service.reward([one, other], [1.0, 1.0], at=[at, None]) == ["refused", "timely"]
        assert len(rows(service, "rewards")) == 1
    else:
        assert service.reward([one, other], [1.0, 1.0], at=[at, None]) == ["timely", "timely"]
    assert service.learn() == 2 - bool(said)
    assert service.log.verify().empty


@pytest.mark.slow
def test_a_reward_that_the_model_holds_impossible_stops_nobody_else(lite):
    bandit = bb.Bandit(["a", "b"], bb.load_model("beta_bernoulli"), bb.Thompson(), n_features=0)
    service, _ = begun(lite, bandit)
    ids = [service.decide().id for _ in range(3)]
    service.reward(ids, [1.0, 0.5, 0.0])
    assert service.learn() == 2
    frame = service.log.frame().set_index("decision_id").loc[ids]
    assert frame["status"].tolist() == ["reward", "refused", "reward"]
    assert same(service.log.replay(), service.bandit)
    assert service.log.verify().empty


NO_TIMES = pd.NaT, np.datetime64("NaT", "s"), 1.7e18, -1e14, np.nan, True
NO_DATES = "NaT", "", "soon", "03/04/2026", "now"


@pytest.mark.parametrize("at", [*NO_TIMES, *NO_DATES])
def test_times_that_are_none(lite, at):
    service, clock = begun(lite)
    decision = service.decide([0.0, 0.0])
    for call in (
        lambda: service.reward(decision.id, 1.0, at=at),
        lambda: service.reward([decision.id], [1.0], at=[at]),
        lambda: service.log.frame(since=at),
        lambda: service.log.replay(until=at),
    ):
        with pytest.raises(ValueError, match="must be a date as"):
            call()
    assert not rows(service, "rewards")
    clock.now = 1.7e18  # nanoseconds
    with pytest.raises(ValueError, match="clock must be a date"):
        service.decide([0.0, 0.0])


@pytest.mark.parametrize("value", [np.nan, np.inf, "1", None, 1e60])
def test_values_that_are_no_rewards(service, value):
    decision = service.decide([0.0, 0.0])
    with pytest.raises(ValueError, match="rewards must be"):
        service.reward(decision.id, value)
    assert not rows(service, "rewards")


def test_one_learns_at_a_time(url):
    service, _ = begun(url)
    service.reward(service.decide([0.0, 0.0]).id, 1.0)
    other = bb.Service.open(bb.DecisionLog(url))
    with service.log.ledger.database.learner() as elected:
        assert elected
        assert other.learn() == 0
        assert other.decide([0.0, 0.0]).id  # deciding goes on
    assert other.learn() == 1
    assert service.learn() == 0


@pytest.mark.slow
@pytest.mark.parametrize("closed", [False, True])
def test_the_same_rewards_in_another_order_do_not_deadlock(tmp_path, closed):
    """Sent twice. Of decisions that are closed no row of the queue puts one before the other."""
    service, clock = begun(fresh("postgresql", tmp_path))
    made = [service.decide(np.zeros((200, 2))).id.tolist() for _ in range(4)]
    clock.now += closed * (DAY + 1)
    service.learn()
    with ThreadPoolExecutor(4) as pool:
        for ids in made:
            several = [ids, ids[::-1]] * 2
            calls = [pool.submit(service.reward, some, np.ones(200)) for some in several]
            calls += [pool.submit(service.activate, some) for some in several]
            for call in calls:
                call.result()
    assert service.log.counts()["rewards: late" if closed else "rewards: timely"] == 4 * 200


def test_of_two_that_learn_the_same_the_second_is_too_late(url):
    """Even if nobody had been elected."""
    service, _ = begun(url)
    service.reward(service.decide([0.0, 0.0]).id, 1.0)
    other = bb.Service.open(bb.DecisionLog(url))
    due, _ = service.log.ledger.due(service._now(), 10)
    assert service._learner.step(due) == (1, 1)
    assert other._learner.step(due) == (0, 0)
    assert other.sync() == 1
    assert same(other.bandit, service.bandit)


def test_what_comes_while_the_learner_computes_is_not_lost(url):
    service, clock = begun(url)
    one = service.decide([0.0, 0.0]).id
    clock.now += DAY + 1
    due, _ = service.log.ledger.due(service._now(), 10)
    at = clock.now - DAY
    assert service.reward(one, 3.0, at=at) == "timely"  # after it was read as one without reward
    assert service._learner.step(due) == (0, 0)
    assert service.learn() == 1
    assert service.bandit.history.reward.tolist() == [3.0]


@pytest.mark.slow
def test_a_reward_that_becomes_visible_late_is_neither_skipped_nor_counted_twice(tmp_path):
    """Its transaction began before others that have been learned since."""
    service, _ = begun(fresh("postgresql", tmp_path))
    ids = [service.decide([0.0, 0.0]).id for _ in range(3)]
    ledger, now = service.log.ledger, service._now()
    with ledger.database.write() as connection:
        ledger._rewards(connection, [(ids[0], 1.0, now)], now, service.settings)
        service.reward(ids[1], 2.0)
        service.reward(ids[2], 3.0)
        assert service.learn() == 2
    assert service.learn() == 1
    assert service.bandit.history.reward.tolist() == [2.0, 3.0, 1.0]
    assert service.learn() == 0


def test_a_learner_does_not_try_for_ever(service, monkeypatch):
    service.reward(service.decide([0.0, 0.0]).id, 1.0)
    monkeypatch.setattr("bayesbandit.service.learner.MAX_ATTEMPTS", 3)
    monkeypatch.setattr(service.log.ledger, "commit", lambda *_: None)
    with pytest.raises(TimeoutError, match="refuses a version each time"):
        service.learn()


def test_a_row_that_cannot_be_read_is_set_aside_and_said(service, caplog):
    """The others are learned; it stays in the log, and `verify` lists it."""
    ids = [service.decide([0.0, 0.0]).id for _ in range(4)]
    service.reward(ids, [1.0, 2.0, 3.0, 4.0])
    with service.log.ledger.database.write() as connection:
        forged = "UPDATE bandit_decisions SET {} WHERE id = '{}'"
        connection.exec_driver_sql(forged.format("arm = 'mail'", ids[0]))
        connection.exec_driver_sql(forged.format("row = x'0000000000000000'", ids[2]))
    assert service.learn() == 2
    assert service.bandit.history.reward.tolist() == [2.0, 4.0]
    assert all(one in caplog.text for one in (ids[0], ids[2]))
    aside = {row["decision_id"]: row["outcome"] for row in rows(service, "states")}
    assert [aside[one] for one in ids] == ["unreadable", "reward"] * 2
    assert {ids[0], ids[2]} == set(service.log.verify()["id"])
    assert same(service.log.replay(), service.bandit)


@pytest.mark.slow
def test_a_reward_that_comes_as_its_decision_is_stored_is_not_late(tmp_path, monkeypatch):
    """It came before the decision, or in time."""
    service, clock = begun(fresh("postgresql", tmp_path))
    other, lock = bb.Service.open(service.log, clock=clock), service.log.ledger._lock

    def decided_meanwhile(connection, ids):
        found = lock(connection, ids)
        other.decide([0.0, 0.0], id="order-1")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(service.log.ledger, "_lock", decided_meanwhile)
        assert service.reward("order-1", 1.0) == "unknown"
    assert service.reward("order-1", 1.0) == "timely"
    assert service.learn() == 1
    assert service.log.verify().empty  # clocks may differ


def test_a_setting_that_changes_gets_the_round(lite):
    """The number of the context among all that were decided, alone or in a batch."""
    rounds = []

    def alpha(t):
        rounds.append(t)
        return 1.0 / t

    bandit = bb.Bandit(3, bb.Ridge(), bb.Thompson(alpha=alpha), n_features=2)
    service = bb.Service(bandit, bb.DecisionLog(lite))
    for reward in range(6):
        service.reward(service.decide([1.0, 1.0]).id, float(reward))
    service.learn()
    rounds.clear()
    service.decide([1.0, 1.0])
    service.decide(np.ones((3, 2)))
    assert rounds == [7, 8, 9, 10]
    assert service.log.verify(policy=bandit.policy).empty


def test_limit(service):
    for _ in range(5):
        service.reward(service.decide([0.0, 0.0]).id, 1.0)
    assert [service.learn(limit=2) for _ in range(4)] == [2, 2, 1, 0]
    with pytest.raises(ValueError, match="limit must be an integer ≥ 1"):
        service.learn(limit=0)


@pytest.mark.slow
def test_another_bandit_needs_another_log(lite):
    service, clock = begun(lite)
    live(service, clock)
    others = {
        "arms": bb.LinTS(["mail", "call"], 2),
        "n_features": bb.LinTS(["mail", "call", "wait"], 3),
        "policy": bb.LinUCB(["mail", "call", "wait"], 2),
        "began with rounds": service.bandit,
        "has a bandit with history=10000; got history=0": bb.LinTS(
            ["mail", "call", "wait"], 2, history=0
        ),
    }
    for said, bandit in others.items():
        with pytest.raises(ValueError, match=said):
            begun(lite, bandit)
    with pytest.raises(ValueError, match="began with wait 86400 seconds, not 172800 seconds"):
        begun(lite, wait="2d")
    with pytest.raises(ValueError, match="model"):
        begun(lite, linear(ridge=7.0))
    with pytest.raises(ValueError, match=r"began with policy .*Thompson.*, not .*Greedy"):
        bb.Service.open(service.log, policy=bb.Greedy())


@pytest.mark.parametrize("wait", [2.0, "2", "2s", timedelta(seconds=2), np.timedelta64(2000, "ms")])
def test_wait_is_seconds_or_a_span_in_its_own_unit(lite, wait):
    service, clock = begun(lite, wait=wait)
    first, second = service.decide(np.ones((2, 2))).id
    clock.now += 1.5
    assert service.reward(first, 1.0) == "timely"
    clock.now += 1.0
    assert service.reward(second, 1.0) == "late"


TWO_NUMBERS = (
    [Decimal("0.1"), Fraction(1, 3)],
    [np.float32(0.1), 2],
    range(2),
    memoryview(np.arange(2.0)),
    np.array([0.1, 2.0], np.longdouble),
    np.array([True, False]),
    pd.Index([1, 2]),
    pd.Series([0.1, 0.2], dtype=object),
)


@pytest.mark.parametrize("two", TWO_NUMBERS, ids=lambda two: type(two).__name__)
def test_a_context_is_stored_as_the_numbers_by_which_is_decided(lite, two):
    service, _ = begun(lite)
    decision = service.decide(two, id="one")
    assert service.log.verify().empty
    again = service.decide(np.asarray(two, dtype=np.float64), id="one")
    np.testing.assert_array_equal(again.x, decision.x)


def test_numbers_of_any_type_are_those_of_an_encoder(lite):
    frame = pd.DataFrame({"age": [1.0, 2.5, 4.0, 1.5] * 5, "n": [1, 2, 3, 1] * 5})
    frame["n"] = frame["n"].astype("category")
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(frame), seed=0)
    service, _ = begun(lite, bandit)
    for age, n in (
        (Decimal("2.50"), Decimal("2.0")),
        (Fraction(5, 2), 2),
        (np.longdouble(2.5), "2"),
    ):
        decision = service.decide({"age": age, "n": n})
        np.testing.assert_array_equal(decision.x, np.ravel(bandit.encoded({"age": 2.5, "n": 2})))
    assert service.log.verify().empty


def test_a_zero_has_no_sign(lite):
    service, clock = begun(lite, wait=1.0, default_reward=-0.0)
    decisions = service.decide(np.ones((3, 2)))
    assert service.reward(decisions.id[0], -0.0) == "timely"
    clock.now += 10.0
    assert service.learn() == 3
    assert service.log.verify().empty
    assert not np.signbit(service.log.frame()["reward"]).any()


def test_a_closed_log_says_so(service):
    service.log.close()
    with pytest.raises(ValueError, match="has been closed; open it again"):
        service.decide([0.0, 0.0])
    with pytest.raises(ValueError, match="has been closed"):
        service.log.frame()


@pytest.mark.parametrize("again", [False, True])
def test_a_file_that_was_deleted_takes_no_decisions(service, lite, tmp_path, again):
    """SQLite alone would go on writing into a file that has no name."""
    decision = service.decide([0.0, 0.0])
    for file in tmp_path.glob("*"):
        file.unlink()
    if again:
        bb.DecisionLog(lite)
    for call in (
        lambda: service.decide([0.0, 0.0]),
        lambda: service.reward(decision.id, 1.0),
        service.learn,
        service.log.frame,
    ):
        with pytest.raises(OSError, match="was deleted or replaced"):
            call()


def test_nothing_to_open(lite):
    log = bb.DecisionLog(lite)
    with pytest.raises(ValueError, match=r"has no bandit yet: bb.Service\(bandit, log\) begins"):
        bb.Service.open(log)
    with pytest.raises(ValueError, match="has no bandit yet"):
        log.replay()
    assert log.frame().empty
    assert log.verify().empty


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"wait": "soon"}, "wait must be seconds, or text"),
        ({"wait": -1}, "wait must be a span of time"),
        ({"wait": None}, "default_reward needs wait"),
        ({"default_reward": np.nan}, "default_reward must be a finite number"),
        ({"snapshot_every": 0}, "snapshot_every must be"),
    ],
)
def test_settings_that_make_no_sense(lite, settings, said):
    with pytest.raises(ValueError, match=said):
        begun(lite, **settings)
    with bb.DecisionLog(lite) as log:
        assert log.ledger.beginning() is None


@pytest.mark.parametrize("wait", [3600, 3600.0, "3600", "3600.0", "1h", "60min"])
def test_a_number_is_seconds_as_text_too(wait):
    assert settings_of(wait, None, False).wait == 3_600_000_000
    assert bb.LinTS(2, 1, half_life=wait, clock="time").belief.memory.rate == np.log(2.0) / 3600.0


@pytest.mark.parametrize("given", ["order-1", ["order-1", "order-2"]])
def test_what_is_stored_though_it_failed_is_told_by_its_id(url, given, monkeypatch):
    """The database dies when it has stored the decision, and before it says so."""
    service, _ = begun(url)
    append, x = service.log.ledger.append, [0.0, 0.0] if given == "order-1" else np.zeros((2, 2))

    def stored_and_failed(*given, **named):
        append(*given, **named)
        raise NotStored("the server is gone")

    with monkeypatch.context() as patch:
        patch.setattr(service.log.ledger, "append", stored_and_failed)
        with pytest.raises(OSError, match="gone"):
            service.decide(x, id=given)
    told = service.decide(x, id=given)
    frame = service.log.frame()
    assert frame["decision_id"].tolist() == np.atleast_1d(told.id).tolist()
    assert frame["arm"].tolist() == np.atleast_1d(told.arm).tolist()
    assert service.log.verify().empty


@pytest.mark.slow
def test_while_the_server_is_down_there_is_no_decision(tmp_path):
    """When it is back, the same service goes on, with another connection."""
    service, _ = begun(fresh("postgresql", tmp_path))
    first = service.decide([0.0, 0.0], id="order-1")
    with down():
        pass
    assert service.decide([0.0, 0.0], id="order-1").arm == first.arm  # its connection has died
    with down():
        for call in (service.learn, service.log.frame, lambda: service.decide([0, 0], id="late")):
            with pytest.raises(OSError, match="cannot be read or written now: "):
                call()
    assert service.decide([0.0, 0.0], id="order-1").arm == first.arm
    assert service.reward("late", 1.0) == "unknown"
    assert service.log.verify().empty


SAME_DAY = pd.Timestamp(1.7e9, unit="s").date(), "2023-11-14"
SAME_SECOND = np.datetime64(1_700_000_000, "s"), np.int64(1_700_000_000)


@pytest.mark.parametrize("at", [*SAME_DAY, *SAME_SECOND])
def test_one_time_is_that_of_each_of_several_rewards(lite, at):
    clock = Clock(1_699_920_000)  # 2023-11-14 00:00 UTC, of which a date without a time is
    service, _ = begun(lite, default_reward=None, wait=None, clock=clock)
    ids = [service.decide([0.0, 0.0]).id for _ in range(3)]
    clock.now += DAY
    assert service.reward(ids[0], 1.0, at=at) == "timely"
    assert service.reward(ids[1:], [1.0, 2.0], at=at) == ["timely"] * 2
    assert len({row["observed_at"] for row in rows(service, "rewards")}) == 1


def test_the_longest_ids_fit_into_an_index(url):
    """Of 200 characters that take four bytes each, and do not compress."""
    rng = np.random.default_rng(0)
    longest = "".join(chr(0x20000 + int(i)) for i in rng.integers(0, 40_000, 200))
    service, _ = begun(url)
    one = longest[::-1]
    service.decide([0.0, 0.0], id=one)
    service.activate(one)
    assert service.reward([one, longest], [1.0, 1.0]) == ["timely", "unknown"]
    assert service.learn() == 1
    assert service.log.verify().empty


def test_states_are_locked_in_the_order_in_which_versions_close_them(url):
    """By code points: where the database sorts "a" before "B", learner and rewards deadlocked."""
    service, _ = begun(url)
    ids = ["b", "A", "a", "B", "Zz"]
    for one in ids:
        service.decide(np.zeros(2), id=one)
    ledger = service.log.ledger
    with ledger.database.write() as connection:
        assert list(ledger._lock(connection, ids)) == sorted(ids)


@pytest.mark.slow
def test_bandits_may_share_a_database_by_schemas(tmp_path):
    """Each has a log and a learner of its own."""
    url = fresh("postgresql", tmp_path)
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    services = []
    for name in ("offers", "layout"):
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE SCHEMA {name}")
        service, _ = begun(f"{url}&options=-csearch_path%3D{name}")
        service.reward(service.decide([0.0, 0.0], id="order-1").id, 1.0)
        services.append(service)
    one, other = services
    paths = bb.DecisionLog(f"{url}&options=-csearch_path%3Dnowhere,offers")  # the same tables
    with (
        one.log.ledger.database.learner() as elected,
        paths.ledger.database.learner() as elected_too,
    ):
        assert elected
        assert not elected_too
        assert other.learn() == 1
    assert one.learn() == 1
    assert one.log.verify().empty
    assert other.log.verify().empty
