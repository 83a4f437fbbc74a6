"""Processes that decide, reward and learn on one log, and are killed at random moments: what one
was told is written to a file, line by line, and must be in the log, once."""

import os
import signal
import time
from collections import Counter
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest

import bayesbandit as bb

pytest.importorskip("sqlalchemy")

from tests.store.databases import down, fresh

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="forks and kills")]
FORK = get_context("fork")  # what the parent has loaded is there
WAIT = 3600.0


def decide(url, said, seed):
    """Decide, alone and in batches, and reward two of three."""
    rng = np.random.default_rng(seed)
    service = insist(said, lambda: bb.Service.open(bb.DecisionLog(url)))
    while True:
        n = int(rng.integers(1, 6))
        x, ids = rng.normal(size=(n, 2)), [f"{seed}-{rng.integers(2**62)}" for _ in range(n)]
        given = ids if rng.random() < 0.5 else None
        batch = insist(said, partial(service.decide, x, id=given))
        for one in batch:
            write(said, "decision", one.id, one.arm, one.propensity)
        for one in batch[rng.random(n) < 0.67] if n > 1 else []:
            value = float(rng.random())
            insist(said, partial(service.reward, one.id, value))
            write(said, "reward", one.id, value)
            if rng.random() < 0.3:
                insist(said, partial(service.reward, one.id, value))  # sent again
        if rng.random() < 0.2:
            insist(said, service.sync)


def learn(url, said, seed):
    """Learn, and store snapshots."""
    rng = np.random.default_rng(seed)
    service = insist(said, lambda: bb.Service.open(bb.DecisionLog(url), snapshot_every=50))
    while True:
        insist(said, partial(service.learn, limit=int(rng.integers(1, 30))))
        if rng.random() < 0.1:
            insist(said, service.snapshot)


def insist(said, call):
    """Return what a call gives, as soon as the log answers."""
    while True:
        try:
            return call()
        except OSError as error:
            write(said, "error", *str(error).split())
            time.sleep(0.05)


def write(said, *words):
    """Add a line, in one call: it is there whole or not at all."""
    os.write(said, (" ".join(map(str, words)) + "\n").encode())


def killed(database, folder, times, seed=0, server=False):
    """Kill processes of a life `times` times; return what was wrong at the end, and counts.

    server: kill the server of PostgreSQL each time, too.
    """
    rng, url = np.random.default_rng(seed), fresh(database, folder)
    bandit = bb.LinTS(["a", "b", "c"], 2, history=None, seed=0)  # all rounds are compared
    first = bb.Service(bandit, bb.DecisionLog(url), wait=WAIT, default_reward=0.0)
    first.reward(first.decide(np.zeros(2)).id, 0.5)
    first.decide(np.zeros((2, 2)))
    first.learn()  # all is compiled: none of the others lives long enough for that
    first.log.close()
    path = os.path.join(folder, "said.txt")
    said, alive = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), {}
    works = {"decider": decide, "client": decide, "learner": learn, "second learner": learn}
    for turn in range(times):
        for name, work in works.items():
            if name not in alive:
                own = int(rng.integers(2**31))
                process = FORK.Process(target=work, args=(url, said, own), daemon=True)
                process.start()
                alive[name] = process
        time.sleep(rng.uniform(0.3, 1.0) if server else rng.uniform(0.02, 0.5))
        if server:
            with down():
                time.sleep(rng.uniform(0.0, 0.3))
        for name in rng.permutation(list(works))[: turn % 2 + (not server)]:
            process = alive.pop(str(name))
            os.kill(process.pid, signal.SIGKILL)
            process.join()
    for process in alive.values():
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    os.close(said)
    with open(path) as lines:
        return wrong(url, [line.split() for line in lines])


def wrong(url, told):
    """Return sentences about what is missing, counted twice, or not what was told; and counts."""
    errors = [line for kind, *line in told if kind == "error"]
    found = [" ".join(line) for line in errors if not is_sentence(line)]
    told = [line for line in told if line[0] != "error"]
    survivor = bb.Service.open(bb.DecisionLog(url), clock=lambda: time.time() + 2 * WAIT)
    survivor.learn()
    frame = survivor.log.frame().set_index("decision_id")
    for kind, one, *rest in told:
        if one not in frame.index:
            found.append(f"{kind} {one} is missing")
        elif kind == "decision":
            row = frame.loc[one]
            if (row["arm"], row["propensity"]) != (rest[0], float(rest[1])):
                found.append(f"decision {one} is another one")
        elif (frame.loc[one, "status"], frame.loc[one, "reward"]) != ("reward", float(rest[0])):
            found.append(f"reward of {one} is {frame.loc[one, 'reward']}, not {rest[0]}")
    bandit, replayed = survivor.bandit, survivor.log.replay()
    learned = frame["status"].isin(["reward", "default"])
    if bandit.history.total != learned.sum() or bandit.t != len(frame):
        found.append(f"{bandit.history.total} learned, not {learned.sum()}")
    if Counter(bandit.history.reward) != Counter(frame["reward"][learned]):
        found.append("other rewards were learned than came")
    x = np.random.default_rng(0).normal(size=(50, 2))
    if not np.array_equal(bandit.probabilities(x), replayed.probabilities(x)):
        found.append("the replay is another bandit")
    if len(violations := survivor.log.verify()):
        found.append(violations.to_string())
    kinds = Counter(kind for kind, *_ in told)
    counts = {
        "decisions": len(frame), "told": dict(kinds), "versions": survivor.version,
        "errors": len(errors),
    }  # fmt: skip
    survivor.log.close()
    return found, counts


def is_sentence(words):
    """Whether an error is about the log, and not about how that is asked."""
    text = " ".join(words)
    return " log " in text and not {"SQL", "psycopg", "Background"} & set(words) and len(text) < 500


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
