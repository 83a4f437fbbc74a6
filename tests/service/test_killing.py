"""Whoever is killed, whenever: what was returned is in the log, and counts once."""

import os

import numpy as np
import pytest

import bayesbandit as bb

pytest.importorskip("sqlalchemy")

from tests.service.killing import FORK, killed
from tests.store.databases import fresh

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="forks and kills")]


@pytest.mark.parametrize(
    ("database", "times", "server"),
    [("sqlite", 12, False), ("postgresql", 12, False), ("postgresql", 3, True)],
)
def test_nothing_is_lost_and_nothing_counts_twice(database, times, server, tmp_path):
    """Who decides, rewards and learns hears in sentences that the server died, and goes on."""
    found, counts = killed(database, tmp_path, times, server=server)
    assert not found
    assert counts["told"]["decision"] > (30 if server else 50)
    assert counts["told"]["reward"] > (0 if server else 20)
    assert counts["versions"] > 3
    assert counts["errors"] > 0 or not server


def begin(url, together, said):
    together.wait()
    service = bb.Service(bb.LinTS(["a", "b"], 2, seed=0), bb.DecisionLog(url), wait="1d")
    said.put(service.decide(np.zeros(2)).id)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_processes_that_begin_a_log_at_once(database, tmp_path):
    url, together, said = fresh(database, tmp_path), FORK.Barrier(5), FORK.Queue()
    bb.LinTS(["a", "b"], 2).choose(np.zeros(2)).probabilities.sum()  # compiled
    processes = [FORK.Process(target=begin, args=(url, together, said)) for _ in range(5)]
    for process in processes:
        process.start()
    ids = {said.get(timeout=60) for _ in processes}
    for process in processes:
        process.join()
    with bb.DecisionLog(url) as log:
        assert set(log.frame()["decision_id"]) == ids
        assert log.counts()["versions"] == 1
        assert log.verify().empty
