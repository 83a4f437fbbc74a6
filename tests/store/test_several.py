"""Several bandits in one database: what is said of one does not depend on the others."""

import json

import numpy as np
import pytest

import bayesbandit as bb

sa = pytest.importorskip("sqlalchemy")

from bayesbandit.store.reading import waiting
from tests.service.test_service import DAY, begun, live, same
from tests.store.databases import KINDS, fresh

ANSWERS = ["mail", "call", "wait"]


@pytest.fixture(params=KINDS)
def url(request, tmp_path):
    return fresh(request.param, tmp_path)


def said(service):
    """All that a log says of its bandit."""
    log = service.log
    return (
        log.frame().to_json(), log.verify().to_json(), log.counts(), log.ledger.newest(),
        waiting(log.ledger), log.ledger.beginning(), log.ledger.removed(99),
        bb.Service.open(log).arms, log.replay().probabilities(np.eye(2)).tolist(),
    )  # fmt: skip


def lived(service, clock, ids):
    """A life with all kinds of decisions, rewards and changes, by these ids."""
    for i, one in enumerate(ids):
        service.decide([0.1 * i, 1.0], id=one)
    service.reward(ids[:8], np.arange(8.0))
    service.activate(ids[:12])
    service.learn(limit=5)
    service.reward([*ids[4:10], "nobody"], np.arange(4.0, 11.0))
    service.add_arm("fax")
    service.decide(np.zeros((3, 2)), arms=["fax"])
    service.remove_arm("call")
    service.snapshot()
    clock.now += DAY + 1
    service.reward(ids[10], 1.0)


@pytest.mark.slow
def test_one_does_not_depend_on_the_other(url):
    ids = [f"order-{i}" for i in range(20)]
    one, clock = begun(url, name="one", activation=True)
    lived(one, clock, ids)
    before = said(one)
    other, late = begun(url, name="other", default_reward=7.0, bandit=bb.LinUCB(ANSWERS, 2))
    lived(other, late, [*ids, "more"])
    other.learn()
    assert said(one) == before
    after = said(other)
    assert one.learn() > 0
    assert said(other) == after
    assert one.log.names() == ["one", "other"]
    for service in (one, other):
        assert service.log.verify().empty
        assert same(service.log.replay(), service.bandit)


def test_an_id_is_a_decision_of_each(url):
    """With other contexts and rewards."""
    one, _ = begun(url, name="one")
    other, _ = begun(url, bb.LinTS(["x", "y"], 1, seed=0), name="other")
    first = one.decide([0.5, 0.5], id="order-1")
    assert other.decide([2.0], id="order-1").arm in ("x", "y")
    assert one.decide([0.5, 0.5], id="order-1").arm == first.arm
    assert one.reward("order-1", 1.0) == other.reward("order-1", 2.0) == "timely"
    assert (one.learn(), other.learn()) == (1, 1)
    assert one.bandit.history.reward.tolist() == [1.0]
    assert other.bandit.history.reward.tolist() == [2.0]
    assert one.reward("order-1", 1.0) == "again"
    with pytest.raises(ValueError, match=r"has the reward 2.0, and is told 1.0"):
        other.reward("order-1", 1.0)


def test_each_has_a_learner_of_its_own(url):
    services = [begun(url, name=name)[0] for name in ("one", "other")]
    for service in services:
        service.reward(service.decide([0.0, 0.0]).id, 1.0)
    one, other = services
    with one.log.ledger.learner() as elected:
        assert elected
        assert bb.Service.open(bb.DecisionLog(url, "one")).learn() == 0
        assert other.learn() == 1
    assert one.learn() == 1


def test_what_is_forged_of_one_is_found_in_its_log_alone(url):
    services = [begun(url, name=name)[0] for name in ("one", "other")]
    for service in services:
        service.decide([0.0, 0.0], id="order-1")
        service.decide([0.0, 0.0], id="order-2")
    with services[0].log.ledger.database.write() as connection:
        connection.execute(
            sa.text("DELETE FROM bandit_decisions WHERE bandit = 'other' AND id = 'order-1'")
        )
    one, other = services
    assert one.log.verify().empty
    assert other.log.verify()["kind"].tolist() == ["state without decision"]


HOSTILE = [
    "'; DROP TABLE bandit_decisions; --", '"><script>alert(1)</script>', "a/../../b", "𝓊nicode ünd",
    "%s%(x)s{0}", "x" * 200, " ",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name, tmp_path):
    url = fresh("sqlite", tmp_path)
    service, clock = begun(url, name=name)
    live(service, clock, days=1)
    assert service.log.verify().empty
    assert bb.DecisionLog(url).names() == [name]
    assert bb.Service.open(bb.DecisionLog(url, name)).version == service.version
    assert all(str(file).startswith(url.partition("///")[2]) for file in tmp_path.iterdir())


def test_the_longest_names_ids_and_keys_fit_into_an_index(url):
    """Of 200 characters that take four bytes each, and do not compress."""
    rng = np.random.default_rng(0)
    longest = "".join(chr(0x20000 + int(i)) for i in rng.integers(0, 40_000, 200))
    service, _ = begun(url, name=longest)
    one = longest[::-1]
    service.decide([0.0, 0.0], id=one)
    service.activate(one)
    assert service.reward([one, longest], [1.0, 1.0], key=longest) == ["timely", "unknown"]
    assert service.learn() == 1
    assert service.log.verify().empty


@pytest.mark.parametrize(
    "name", ["", "x" * 10_000, "a\0b", "a\nb", "\ud800", "‮", 7, None, b"a", ["a"]]
)
def test_names_that_are_none(name, tmp_path):
    with pytest.raises((ValueError, TypeError), match="name must") as error:
        bb.DecisionLog(fresh("sqlite", tmp_path), name)
    assert len(str(error.value)) < 200
    assert not list(tmp_path.iterdir())


def test_a_wrong_name_is_told_the_right_ones(tmp_path):
    url = fresh("sqlite", tmp_path)
    begun(url, name="offers")
    for call in (bb.Service.open, bb.DecisionLog.replay):
        with pytest.raises(ValueError, match=r"name='ofers'\) has no bandit yet.*it has 'offers'"):
            call(bb.DecisionLog(url, "ofers"))
    with pytest.raises(ValueError, match=r"\.db'\) has no bandit yet"):
        bb.Service.open(bb.DecisionLog(url))


@pytest.mark.slow
def test_commands_take_a_name(tmp_path, monkeypatch):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from bayesbandit.cli.app import app

    url, bad = fresh("sqlite", tmp_path), '<script>alert("1")</script>'
    service, _ = begun(url, name=bad)
    begun(url, name="other")[0].decide([0.0, 0.0])
    service.reward(service.decide([0.0, 0.0], id="order-1").id, 1.0)
    command = CliRunner()
    found = command.invoke(app, ["learn", "--log", url, "--name", bad, "--once"])
    assert "1 reward learned" in found.output, found.output
    out = tmp_path / "page.html"
    found = command.invoke(app, ["report", "--log", url, "--name", bad, "--out", str(out)])
    assert found.exit_code == 0, found.output
    assert "1 decision on" in found.output.replace("\n", " ")
    assert bad not in out.read_text()
    assert json.loads('"order-1"') in service.log.frame()["decision_id"].tolist()
    found = command.invoke(app, ["learn", "--log", url, "--once"])
    assert found.exit_code == 2
    assert "has no bandit yet" in " ".join(found.output.split())


@pytest.mark.parametrize("kind", KINDS)
def test_states_are_locked_in_the_order_in_which_versions_close_them(kind, tmp_path):
    """By code points: where the database sorts "a" before "B", learner and rewards deadlocked."""
    service, _ = begun(fresh(kind, tmp_path))
    ids = ["b", "A", "a", "B", "Zz"]
    for one in ids:
        service.decide(np.zeros(2), id=one)
    ledger = service.log.ledger
    with ledger.database.write() as connection:
        assert list(ledger._lock(connection, ids)) == sorted(ids)
