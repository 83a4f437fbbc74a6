"""A log that is whole has no violations; whatever is forged is one, and all are found. Snapshots
go, and nothing that a log promises goes with them."""

import json

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb

sa = pytest.importorskip("sqlalchemy")

from bayesbandit.kernels.row_layout import TAIL
from bayesbandit.store.ledger import chained
from bayesbandit.store.records import Outcome, Stored
from tests.bandit import kinds
from tests.cases import all_quick, in_gate
from tests.service.test_killing import FORK
from tests.service.test_service import DAY, FRAME, begun, linear, live, same
from tests.store.databases import KINDS, fresh


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The file of a log with several versions, batches, subsets of arms and open decisions."""
    folder = tmp_path_factory.mktemp("whole")
    service, clock = begun(fresh("sqlite", folder), snapshot_every=25)
    live(service, clock)
    service.decide(np.ones((4, 2)), arms=["call", "wait"])
    service.reward(service.decide([0.0, 0.0]).id, 1.0)
    service.learn()
    service.decide([0.0, 1.0])
    assert service.log.verify().empty
    service.log.close()
    [path] = folder.glob("log*.db")
    return path


@pytest.fixture
def forge(whole, tmp_path):
    """Change a copy of the log by SQL, and return what is found."""

    def forged(*changes):
        path = tmp_path / "forged.db"
        path.write_bytes(whole.read_bytes())
        with bb.DecisionLog(f"sqlite:///{path}") as log:
            with log.ledger.database.write() as connection:
                for change in changes:
                    assert connection.exec_driver_sql(change).rowcount
            return log.verify()

    return forged


FIRST = "(SELECT max(decision_id) FROM bandit_states WHERE outcome = 'reward')"
DECISION = f"UPDATE bandit_decisions SET {{}} WHERE id = {FIRST}"
REWARD = f"UPDATE bandit_rewards SET {{}} WHERE decision_id = {FIRST}"
STATE = f"UPDATE bandit_states SET {{}} WHERE decision_id = {FIRST}"
BEGINNING = "UPDATE bandit_versions SET {} WHERE number = 0"
THIRDS = f"probabilities = x'{np.full(3, 1 / 3).tobytes().hex()}', propensity = {1 / 3!r}"
FORGERIES = [  # what is found, and the change
    ({"propensity"}, DECISION.format("propensity = 0.987")),
    ({"arm"}, DECISION.format("arm = '\"fax\"'")),
    ({"context"}, DECISION.format("context = '[1.0, 2.0]'")),
    ({"version"}, DECISION.format("version = 99")),
    ({"digest"}, DECISION.format("t = t + 1")),
    ({"reward without decision"}, f"DELETE FROM bandit_decisions WHERE id = {FIRST}"),
    ({"state without decision"}, f"DELETE FROM bandit_decisions WHERE id = {FIRST}"),
    ({"state"}, f"DELETE FROM bandit_states WHERE decision_id = {FIRST}"),
    ({"outcome"}, REWARD.format("value = value + 1")),
    ({"reward"}, REWARD.format("observed_at = 9e15")),
    ({"clock"}, "UPDATE bandit_versions SET at = 1 WHERE number = 2"),
    ({"gap"}, "DELETE FROM bandit_versions WHERE number = 1"),
    (
        {"snapshot"},
        "UPDATE bandit_versions SET snapshot = (SELECT snapshot FROM bandit_versions "
        "WHERE number = 0) WHERE number > 0 AND snapshot IS NOT NULL",
    ),
    # consistent in itself, and not what the version gives
    ({"propensity"}, DECISION.format(THIRDS)),
    ({"arm"}, BEGINNING.format('detail = replace(detail, \'"secret": "\', \'"secret": "ab\')')),
    # closed by what did not come for it
    ({"digest"}, "UPDATE bandit_states SET version = 0 WHERE version = 1 AND place = 0"),
    ({"digest"}, STATE.format("outcome = 'refused'")),
    ({"digest", "outcome"}, STATE.format("outcome = 'expired', reward = NULL")),
    ({"digest", "outcome"}, STATE.format("outcome = 'inactive', reward = NULL")),
    ({"digest", "outcome"}, STATE.format("outcome = 'retired'")),
    ({"digest", "outcome"}, STATE.format("outcome = 'default'")),
]


@pytest.mark.parametrize(("kinds", "change"), FORGERIES)
@all_quick()
def test_each_forgery_is_found(forge, kinds, change):
    found = forge(change)
    assert {*kinds} <= {*found["kind"]}, found
    assert (found["said"].str.len() > 10).all()


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("version", "DELETE FROM bandit_versions WHERE number = 0"),
        ("version", BEGINNING.format("detail = '{}'")),
        ("snapshot", BEGINNING.format("snapshot = NULL")),
        ("snapshot", BEGINNING.format("snapshot = x'00'")),
    ],
)
def test_a_log_without_its_beginning_is_not_whole(forge, kind, change):
    found = forge(change)
    assert found[["kind", "id"]].to_numpy().tolist() == [[kind, "0"]]


def test_a_digest_covers_all_that_a_decision_was_made_from():
    """The first six of an arm's means and scales were left out."""
    K, D = 3, 2
    row = np.arange(D + 3.0 * K + TAIL)
    given = ("id", 0, 0, 0, "a", 0.5, ("a", "b", "c"))

    def digest(row):
        stored = Stored(*given, row=row, probabilities=np.full(K, 1 / 3), x=None, context=None)
        return chained(b"", 0, "learned", "", [Outcome(stored, "reward", 1.0)])

    whole = digest(row)
    for i in range(D, len(row)):
        changed = row.copy()
        changed[i] += 1.0
        assert digest(changed) != whole, i
    row[:D] = 0.0  # the context may be erased
    assert digest(row) == whole


def test_all_are_listed(forge):
    """Not only the first."""
    p = np.array([0.5, 0.2, 0.2]).tobytes().hex()
    found = forge(f"UPDATE bandit_decisions SET probabilities = x'{p}' WHERE arms != ''")
    assert len(found[found["kind"] == "propensity"]) == 66
    found = forge(
        f"DELETE FROM bandit_states WHERE decision_id = {FIRST}",
        "UPDATE bandit_decisions SET propensity = 0.9 WHERE version = 2",
        "INSERT INTO bandit_rewards VALUES ('nobody', 1, 1, 2, 3, 'timely')",
    )
    assert {"state", "digest", "propensity", "reward without decision"} <= set(found["kind"])


OTHERS = "SELECT id FROM bandit_decisions WHERE version = 1 ORDER BY id LIMIT 1 OFFSET"


@pytest.mark.slow
def test_rows_that_cannot_be_read_are_listed_and_the_rest_is_checked(forge):
    found = forge(
        f"UPDATE bandit_decisions SET arm = 'mail' WHERE id = ({OTHERS} 0)",
        f"UPDATE bandit_decisions SET probabilities = x'00' WHERE id = ({OTHERS} 1)",
        f"UPDATE bandit_decisions SET context = 'x' WHERE id = ({OTHERS} 2)",
        f"UPDATE bandit_decisions SET context = NULL WHERE id = ({OTHERS} 3)",
        "UPDATE bandit_versions SET detail = '{}' WHERE number = 2",
        "UPDATE bandit_versions SET snapshot = x'00' WHERE number > 1 AND snapshot IS NOT NULL",
    )  # fmt: skip
    assert {"decision", "version", "snapshot", "digest"} <= {*found["kind"]}
    assert found.loc[found["kind"].isin(["decision", "context"]), "id"].nunique() == 4
    assert not found["said"].str.contains("tmp").any()


@pytest.mark.slow
@kinds.of_kinds()
@in_gate(8)
def test_the_log_alone_rebuilds_any_bandit(name, tmp_path):
    kind, rng = kinds.KINDS[name], np.random.default_rng(0)
    bandit = kind()
    parts = {"policy": bandit.policy, "model": bandit.spec, "balance": bandit.balance}
    service, clock = begun(fresh("sqlite", tmp_path), bandit, snapshot_every=20)
    worker = bb.Service.open(service.log, clock=clock, **parts)
    for day in range(4):
        for who in (service, worker):
            arms = [None, ["a", "b"]][day % 2]
            x = kinds.contexts(bandit, rng, 10)
            if bandit.of_arms and arms:
                x = x[:, :2]
            one_by_one = x[:6].to_dict("records") if bandit.encoder else x[:6]
            ids = [who.decide(row if kind.d else None, arms=arms).id for row in one_by_one]
            if kind.d:
                ids += who.decide(x[6:], arms=arms).id.tolist()
            service.reward(ids[1:], kind.drawn(rng, len(ids) - 1).tolist())
        service.learn()
        if day == 1:
            worker.sync()
        clock.now += DAY + 1
    service.learn()
    assert service.log.verify(**parts).empty
    replayed = service.log.replay(**parts)
    assert same(replayed, service.bandit)
    opened, worker_version = bb.Service.open(service.log, **parts), worker.sync()
    assert opened.version == worker_version == service.version
    for other in (opened.bandit, worker.bandit):
        assert same(other, replayed)


def test_contexts_from_tables(tmp_path):
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(FRAME))
    service, _ = begun(fresh("sqlite", tmp_path), bandit)
    one = service.decide({"age": 33, "country": "DE"})
    several = service.decide(FRAME.head(3))
    service.reward([one.id, *several.id], [1.0] * 4)
    service.learn()
    found = service.log.frame()
    assert json.loads(found["context"][0]) == {"age": 33, "country": "DE"}
    assert json.loads(found["context"][3]) == {"age": 40, "country": "DE"}
    with service.log.ledger.database.write() as connection:
        text = json.dumps({"age": 34, "country": "DE"})
        forged = f"UPDATE bandit_decisions SET context = '{text}' WHERE id = '{one.id}'"
        connection.exec_driver_sql(forged)
    assert service.log.verify()["kind"].tolist() == ["context"]
    assert bb.ope.Log.of(service.log).features == bandit.encoder.features
    begun(service.log.ledger.database.url.render_as_string(), bandit)


def test_contexts_with_dates_and_without_are_read_again(tmp_path):
    """In nanoseconds, whole hours, and missing by any of pandas' values."""
    day = np.datetime64("2026-11-01", "h") + np.arange(20)
    frame = FRAME.assign(day=day, paid=pd.array([True, False, None, True] * 5, dtype="boolean"))
    frame.loc[::7, "day"] = pd.NaT
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(frame, keep=["day"]))
    service, _ = begun(fresh("sqlite", tmp_path), bandit)
    service.decide(frame.assign(day=frame["day"].astype("datetime64[ns]")))
    row = {"age": 33, "country": pd.NA, "paid": pd.NA}
    for moment in (day[1], day[1].astype("datetime64[ns]"), np.datetime64("NaT", "s"), pd.NaT):
        service.decide(row | {"day": moment})
    assert service.log.verify().empty
    texts = service.log.frame()["context"].tail(4)
    assert [json.loads(text)["country"] for text in texts] == [None] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_replay_until(kind, tmp_path):
    service, _ = begun(fresh(kind, tmp_path))
    rng, states = np.random.default_rng(0), []
    for _ in range(4):
        states.append(service.bandit)
        service.reward(service.decide(rng.normal(size=2)).id, 1.0)
        service.learn()
    for version, state in enumerate(states):
        assert same(service.log.replay(version=version), state)
    assert same(service.log.replay(until="2999-01-01"), service.bandit)
    with pytest.raises(ValueError, match="no bandit before"):
        service.log.replay(until="1999-01-01")
    with pytest.raises(ValueError, match="version must be 0 … 4; got 9"):
        service.log.replay(version=9)


def test_a_frame_of_a_time(tmp_path):
    service, clock = begun(fresh("sqlite", tmp_path))
    for _ in range(10):
        service.decide(np.zeros((3, 2)))
        clock.now += 60
    whole = service.log.frame()
    assert whole["decided_at"].is_monotonic_increasing
    since, until = whole["decided_at"][6], whole["decided_at"][15]
    some = service.log.frame(since, until)
    assert some["decision_id"].tolist() == whole["decision_id"][6:15].tolist()
    later = service.log.frame(since + pd.Timedelta(microseconds=1))  # the least later time
    assert later["decision_id"].tolist() == whole["decision_id"][9:].tolist()
    parts = list(service.log.frames(size=4))
    assert [len(part) for part in parts] == [4] * 7 + [2]
    assert [one for part in parts for one in part["decision_id"]] == whole["decision_id"].tolist()
    with pytest.raises(ValueError, match="since must be a date"):
        service.log.frame(since="yesterday or so")


def test_a_reward_of_an_open_decision_is_evidence(tmp_path):
    service, clock = begun(fresh("sqlite", tmp_path))
    service.decide([0.0, 1.0])
    clock.now += DAY
    service.learn()
    late = service.decide([0.0, 1.0]).id
    service.reward(late, 1.0)
    np.testing.assert_array_equal(bb.ope.Log.of(service.log).reward, [0.0, 1.0])
    clock.now += DAY
    service.learn()
    np.testing.assert_array_equal(bb.ope.Log.of(service.log).reward, [0.0, 1.0])


def test_a_reward_that_is_dated_before_its_decision_is_evidence(tmp_path):
    """Clocks may differ by a minute: the reward counts as if it had come at once."""
    service, clock = begun(fresh("sqlite", tmp_path))
    for _ in range(3):
        one = service.decide([0.0, 1.0]).id
    service.reward(one, 1.0, at=clock.now - 30)
    log = bb.ope.Log.of(service.log)
    np.testing.assert_array_equal(log.reward_time - log.time, [np.nan, np.nan, 0.0])


@pytest.mark.slow
def test_a_log_of_decisions_is_a_log(tmp_path):
    bandit = linear()
    service, clock = begun(fresh("sqlite", tmp_path), bandit)
    live(service, clock, days=3)
    log, frame = bb.ope.Log.of(service.log), service.log.frame()
    np.testing.assert_array_equal(log.x, np.stack(frame["x"]))
    np.testing.assert_array_equal(log.probabilities, np.stack(frame["probabilities"]))
    np.testing.assert_array_equal(log.mean, np.stack(frame["mean"]))
    assert log.arm.tolist() == frame["arm"].tolist()
    assert log.batch.tolist() == frame["version"].tolist()
    assert (log.reward_time[1] > log.time[1]) or np.isnan(log.reward_time[1])
    service.add_arm("fax")
    service.decide([0.0, 0.0])
    wider = bb.ope.Log.of(service.log)
    assert wider.arms == ("mail", "call", "wait", "fax")
    assert wider.available[:, 3].tolist() == [False] * 60 + [True]
    assert np.isnan(wider.reward[-1])
    assert len(bb.ope.Log.of(service.log, until=frame["decided_at"][30])) == 30


SECONDS = r"timeout must be seconds > 0, as \?timeout=10; got"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("offers.db", "url must be as"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        ("mysql://a/b", "url must be as|SQLite or PostgreSQL"),
        ("sqlite:////nowhere/at/all.db", "there is no folder"),
        (7, "url must be text"),
        *((f"sqlite:///log.db?timeout={bad}", SECONDS) for bad in ("0", "soon", "-1", "inf")),
    ],
)
def test_addresses_that_are_none(url, said):
    with pytest.raises((ValueError, TypeError, OSError), match=said):
        bb.DecisionLog(url)


@pytest.mark.parametrize(
    "change", ["DROP TABLE bandit_versions", "ALTER TABLE bandit_states ADD COLUMN other INTEGER"]
)
def test_a_log_of_another_release_is_left_alone(tmp_path, change):
    url = fresh("sqlite", tmp_path)
    bb.DecisionLog(url).close()
    with sa.create_engine(url).begin() as connection:
        connection.exec_driver_sql(change)
    with pytest.raises(ValueError, match=r"tables of another release than this one .*log export"):
        bb.DecisionLog(url)


def test_sqlite_is_durable(tmp_path):
    with bb.DecisionLog(fresh("sqlite", tmp_path)) as log, log.ledger.database.read() as connection:
        said = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in
                ("journal_mode", "synchronous")]  # fmt: skip
    assert said == ["wal", 2]


@pytest.mark.slow
def test_nothing_stays_in_a_session(tmp_path):
    """No prepared statement, no lock and no setting: behind a pooler, as PgBouncer, the next
    transaction has another session."""
    service = bb.Service(
        bb.LinTS(["mail", "call"], 2, seed=0), bb.DecisionLog(fresh("postgresql", tmp_path))
    )
    for _ in range(20):
        service.reward(service.decide([0.0, 1.0]).id, 1.0)
    with (
        service.log.ledger.database.learner() as elected,
        service.log.ledger.database.read() as connection,
    ):
        assert elected
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND virtualtransaction "
        assert connection.exec_driver_sql(held + "!~ '/0$'").scalar() == 1  # in a transaction
        assert connection.exec_driver_sql(held + "~ '/0$'").scalar() == 0
    service.learn()
    with service.log.ledger.database.read(patient=True) as connection:
        for query in (
            "SELECT count(*) FROM pg_prepared_statements",
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
            "SELECT count(*) FROM pg_settings WHERE source = 'session' AND name ~ 'timeout'",
        ):
            assert connection.exec_driver_sql(query).scalar() == 0, query


def lived(url, n):
    service, clock = begun(url, snapshot_every=1)
    rng = np.random.default_rng(0)
    for _ in range(n):
        service.reward(service.decide(rng.normal(size=2)).id, float(rng.random()))
        service.learn()
    return service, clock


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_log_promises_what_it_promised(kind, tmp_path):
    service, clock = lived(fresh(kind, tmp_path), 40)
    log = service.log
    behind = bb.Service.open(log, clock=clock)
    assert log.counts()["snapshots"] == 2  # the first and the newest
    assert log.verify().empty
    for version in (0, 7, 23, 40):
        assert log.replay(version=version).t == version
    assert same(log.replay(), service.bandit)
    assert same(behind.bandit, service.bandit)


def replayed(url, together, said):
    """Follow, replay and verify while another process learns and removes snapshots."""
    with bb.DecisionLog(url) as log:
        service = bb.Service.open(log)
        together.wait()
        for _ in range(4):
            version = service.sync()
            t = log.replay(version=version).t, service.bandit.t
            said.put((version, t, len(log.verify()), bb.Service.open(log).version >= version))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_who_reads_meanwhile_misses_nothing(kind, tmp_path):
    url = fresh(kind, tmp_path)
    begun(url)[0].decide([0.0, 0.0])
    together, said = FORK.Barrier(3), FORK.Queue()
    readers = [FORK.Process(target=replayed, args=(url, together, said)) for _ in range(2)]
    for reader in readers:
        reader.start()
    together.wait()
    service, _ = lived(url, 60)
    for _ in range(8):
        version, (replay, own), violations, newer = said.get(timeout=120)
        assert replay == own == version
        assert violations == 0
        assert newer
    for reader in readers:
        reader.join()
    assert service.version == 60


SETTINGS = {
    "Declared": {"engine": "laplace", "half_life": 30.0},
    "Sampled": {"engine": "gibbs", "draws": 60, "refit_below": 0.4},
    "Laplace": {"refit_every": 5},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SETTINGS)
def test_a_log_holds_how_a_declared_model_learns(kind, tmp_path):
    """Who opens it needs not say it again, and learns the same."""
    model = getattr(bb, kind)(bb.load_model("logistic"), **SETTINGS[kind])
    bandit = bb.Bandit(["a", "b"], model, bb.Thompson(), n_features=2, seed=0)
    service, clock = begun(fresh("sqlite", tmp_path), bandit)
    follower = bb.Service.open(service.log, clock=clock)
    for seed in range(2):
        ids = service.decide(np.random.default_rng(seed).normal(size=(8, 2))).id.tolist()
        service.reward(ids, [0.0, 1.0] * 4)
        service.learn()
    service.snapshot()
    follower.sync()
    for other in (follower, bb.Service.open(service.log, clock=clock)):
        assert other.bandit.spec == model
        assert same(other.bandit, service.bandit)
    assert service.log.verify().empty
