"""Threads, signals and forked processes at one bandit: every acknowledged round is there, once."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import bayesbandit as bb
from tests.attack.machine import known
from tests.attack.strikes import Struck
from tests.bandit.kinds import KINDS, contexts
from tests.cases import moments_of

RACED = "unknown arm", "contexts must have a row of", "rewards must be"  # of arms that have gone


@contextmanager
def unless_raced():
    """What is refused because an arm has come or gone meanwhile is refused."""
    try:
        yield
    except ValueError as error:
        if not any(said in str(error) for said in RACED):
            raise


def warm(bandit, name, rng):
    """All that is compiled has been; Numba's compiler does not bear an interrupt."""
    twin = bandit.copy()
    for n in (1, 3, 12):
        twin.observe(twin.choose(contexts(twin, rng, n)), KINDS[name].drawn(rng, n))
        twin.observe(twin.choose(contexts(twin, rng, 1)[0]), float(KINDS[name].drawn(rng, 1)[0]))
    twin.play(contexts(twin, rng, 2), KINDS[name].drawn(rng, (2, len(twin.arms))))
    twin.history.to_frame()


def share(folder, seed, name, rounds=60):
    """Writers, readers, one who saves, and one who changes the arms."""
    kind, bandit = KINDS[name], KINDS[name](seed)
    warm(bandit, name, np.random.default_rng(seed))
    told, errors, ends = [], [], threading.Event()
    pooled = (kind.naive or {}).get("balance") == "pooled"
    slow = rounds if kind.changes and not pooled else rounds // 6

    def writer(number):
        own = np.random.default_rng([seed, number])
        for i in range(slow):
            n = int(own.integers(0, 4))
            x, r = contexts(bandit, own, max(n, 1)), KINDS[name].drawn(own, max(n, 1))
            with unless_raced():
                decision = bandit.choose(x if n else x[0])
                if i % 5 == 4 and n:
                    bandit.update(
                        decision.x, np.atleast_1d(decision.arm).tolist(), r, np.full(n, 0.5)
                    )
                else:
                    bandit.observe(decision, r if n else float(r[0]))
                told.extend(r.tolist())  # one call of a list: whole

    def reader():
        while not ends.is_set():
            frame = bandit.history.to_frame()
            history = bandit.history
            assert len(frame) <= history.total
            assert len(history.arm) <= bandit.history.total
            bandit.posterior(bandit.arms[0]) if kind.changes else None
            x = contexts(bandit, np.random.default_rng(seed), 2)
            moments_of(bandit.belief, x) if kind.changes else None
            with unless_raced():
                p = bandit.probabilities(x)
                assert p.shape[0] == len(bandit.greedy(x)) == 2
                np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)
                assert p.shape[1:] == x.shape[1:-1] or not bandit.of_arms
            time.sleep(1e-3)

    def saver():
        path = folder / "shared"
        while not ends.is_set():
            bandit.save(path)
            other = bb.Bandit.load(path, model=bandit.model)
            assert known(other) == other.belief.n.sum()
            time.sleep(5e-3)

    def changer():
        own = np.random.default_rng(seed)
        for i in range(6 if kind.changes else 0):
            bandit.add_arm(f"new {i}")
            bandit.choose(contexts(bandit, own, 1)[0])
            bandit.remove_arm(f"new {i}")

    def guarded(work, *args):
        try:
            work(*args)
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=guarded, args=(writer, i)) for i in range(3)]
    writers.append(threading.Thread(target=guarded, args=(changer,)))
    others = [threading.Thread(target=guarded, args=(work,)) for work in (reader, saver)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in (*writers, *others):
            thread.start()
        for thread in writers:
            thread.join(timeout=300)
        ends.set()
        for thread in others:
            thread.join(timeout=300)
        assert not any(t.is_alive() for t in (*writers, *others)), f"{name}: threads hang"
    finally:
        ends.set()
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]
    assert bandit.history.total == len(told), (name, bandit.history.total, len(told))
    kept = sorted(bandit.history.reward.tolist())
    assert kept == sorted(told) if len(kept) == len(told) else set(kept) <= set(told)
    assert known(bandit) == bandit.belief.n.sum()


def interrupt(folder, seed, name, times=60):
    """Signals at random moments of batches: all of a batch or nothing, and the bandit goes on."""

    def stop(*_):
        raise Struck

    rng, bandit = np.random.default_rng(seed), KINDS[name](seed)
    warm(bandit, name, rng)
    start = time.perf_counter()
    bandit.observe(bandit.choose(contexts(bandit, rng, 8)), KINDS[name].drawn(rng, 8))
    took = max(time.perf_counter() - start, 1e-4)
    before, interval = signal.signal(signal.SIGALRM, stop), sys.getswitchinterval()
    total = bandit.history.total
    try:
        for i in range(times):
            n = 1 + i % 8
            decision = bandit.choose(contexts(bandit, rng, n))
            said = KINDS[name].drawn(rng, n)
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-6, took)))
                bandit.observe(decision, said)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Struck:
                pass
            found = bandit.history.total
            assert found in (total, total + n), (name, total, found, n)
            assert found == len(bandit.history.reward) or bandit.history.limit is not None
            assert known(bandit) == bandit.belief.n.sum(), (name, seed, i)
            total = found
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.setswitchinterval(interval)


def fork(folder, seed, name, times=6):
    """A process that is forked while another thread is at the bandit can use it, too."""
    rng, bandit = np.random.default_rng(seed), KINDS[name](seed)
    warm(bandit, name, rng)
    ends, errors = threading.Event(), []

    def work():
        own = np.random.default_rng(seed + 1)
        try:
            while not ends.is_set():
                bandit.observe(bandit.choose(contexts(bandit, own, 20)), KINDS[name].drawn(own, 20))
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(times):
            time.sleep(float(rng.uniform(0, 0.02)))
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    signal.alarm(20)
                    bandit.observe(
                        bandit.choose(contexts(bandit, rng, 2)), KINDS[name].drawn(rng, 2)
                    )
                    with tempfile.TemporaryDirectory() as own:
                        bandit.save(os.path.join(own, "b"))
                    code = 0 if known(bandit) == bandit.belief.n.sum() else 2
                finally:
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            assert status == 0, f"{name}: a forked process ended with {status}"
    finally:
        ends.set()
        worker.join()
    if errors:
        raise errors[0]


SAVES = """
import sys
import numpy as np
from tests.bandit.kinds import KINDS
bandit = KINDS[sys.argv[2]].make(3, 2, seed=int(sys.argv[3]))
while True:
    bandit.observe(bandit.choose(np.ones((2, 2))), np.ones(2))
    bandit.save(sys.argv[1])
    print(bandit.history.total, flush=True)
"""


def kill(folder, seed, name):
    """A save that was acknowledged is in the file, and at most a hidden one lies beside it."""
    path, rng = folder / "b", np.random.default_rng(seed)
    process = subprocess.Popen(
        [sys.executable, "-c", SAVES, path, name, str(seed)], text=True,
        stdout=subprocess.PIPE, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    first = process.stdout.readline()
    time.sleep(float(rng.uniform(0, 0.2)))
    process.send_signal(signal.SIGKILL)
    said = [first, *process.stdout.read().splitlines(keepends=True)]
    process.wait()
    acknowledged = [int(line) for line in said if line.endswith("\n")]
    found = bb.Bandit.load(path)
    assert found.history.total >= acknowledged[-1]
    found.save(path)
    beside = [file.name for file in folder.iterdir() if file != path]
    assert all(name.startswith(".b.") and name.endswith(".tmp") for name in beside), beside
