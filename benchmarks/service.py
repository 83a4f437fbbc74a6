"""What it costs to store every decision before it is returned, and memory of a log of a million.

    uv run --group dev benchmarks/service.py [--seconds 10] [--processes 8]
    uv run --group dev benchmarks/service.py --decisions 1000000    # 10 minutes, 1.5 GB on disk

Durable decisions a second in SQLite, beside what `fsync` alone allows on this disk; then processes
that decide on a PostgreSQL server of their own, beside the same calls without a log. With
--decisions: CPU time and largest memory of `frames`, `replay`, `verify` and others.
"""

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayesbandit as bb
from bayesbandit.cli.report import watch
from tests.store.databases import fresh

ARMS, D = ["mail", "call", "wait"], 5
PROCESSES = multiprocessing.get_context("fork")


def room():
    """A folder on this disk: that of temporary files may be in memory."""
    Path("runs").mkdir(exist_ok=True)
    return tempfile.TemporaryDirectory(dir="runs")


def begin(url):
    """A service whose kernels are compiled, and whose arms are not new."""
    bandit = bb.LinTS(ARMS, D, seed=0)
    rng = np.random.default_rng(0)
    bandit.update(rng.normal(size=(90, D)), ARMS * 30, rng.normal(size=90), np.full(90, 1 / 3))
    for x in (np.zeros(D), np.zeros((10, D))):
        plain(bandit.copy(), x)
    return bb.Service(bandit, bb.DecisionLog(url), wait="1d", default_reward=0.0)


def plain(bandit, x):
    """Decide without a log."""
    return bandit.choose(x).probabilities


def calls(decide, batch, seconds, seed=0):
    """How long each call took, for so many seconds."""
    rng, took = np.random.default_rng(seed), []
    x = rng.normal(size=(1000, D) if batch == 1 else (1000, batch, D))
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        decide(x[len(took) % 1000])
        took.append(time.perf_counter() - start)
    return np.array(took)


def said(name, took, batch, seconds, processes=1):
    rate = batch * len(took) / seconds
    error = rate / np.sqrt(len(took)) * took.std() / took.mean()
    p50, p99 = np.percentile(took, [50, 99]) * 1e3
    print(f"{name:42} {rate:9.0f} ± {error:4.0f} decisions/s   p50 {p50:7.2f} ms   "
          f"p99 {p99:7.2f} ms", flush=True)  # fmt: skip


def fsyncs(folder, seconds, size):
    """How long it takes to append so many bytes and wait for the disk."""
    block, took = os.urandom(size), []
    with open(os.path.join(folder, "block"), "wb", buffering=0) as file:
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            file.write(block)
            os.fsync(file.fileno())
            took.append(time.perf_counter() - start)
    return np.array(took)


def worker(url, logged, batch, seconds, seed, ready, results):
    service = bb.Service.open(bb.DecisionLog(url))
    decide = service.decide if logged else partial(plain, service.bandit)
    decide(np.zeros(D) if batch == 1 else np.zeros((batch, D)))
    ready.wait()
    results.put(calls(decide, batch, seconds, seed))


def together(url, logged, batch, seconds, processes):
    """The calls of several processes."""
    ready, results = PROCESSES.Barrier(processes), PROCESSES.Queue()
    started = [
        PROCESSES.Process(target=worker, args=(url, logged, batch, seconds, i, ready, results))
        for i in range(processes)
    ]
    for process in started:
        process.start()
    took = np.concatenate([results.get() for _ in started])
    for process in started:
        process.join()
    return took


def speed(seconds, processes):
    with room() as folder:
        print(f"SQLite on this disk, one process, {seconds:g} s each")
        service = begin(fresh("sqlite", folder))
        for batch in (1, 10, 100):
            size = 4096 * (1 + batch // 6)  # about what a commit appends
            took = fsyncs(folder, seconds, size)
            said(f"fsync of {size // 1024} kB alone, as {batch}", took, batch, seconds)
            said(
                f"decide, batches of {batch}", calls(service.decide, batch, seconds), batch, seconds
            )
            bandit = service.bandit
            took = calls(partial(plain, bandit), batch, min(seconds, 2))
            said(f"without a log, batches of {batch}", took, batch, min(seconds, 2))
        print(f"\nPostgreSQL, {processes} processes on {os.cpu_count()} cores")
        url = fresh("postgresql", folder)
        begin(url).log.close()
        for batch in (1, 10):
            for logged in (True, False):
                took = together(url, logged, batch, seconds, processes)
                name = f"{'decide' if logged else 'without a log'}, batches of {batch}"
                said(name, took, batch, seconds, processes)


def measured(name, work, url, results):
    """CPU time and largest memory of some work, in a process of its own."""
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = work(bb.DecisionLog(url))
    took, after = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results.put(
        f"{name:8} {took:7.1f} s   {after / 1024:6.0f} MB at most, {before / 1024:.0f} before   "
        f"{found}"
    )


def large(decisions):
    """A log of many decisions, single ones and batches, all of them rewarded."""
    with room() as folder:
        url, rng = fresh("sqlite", folder), np.random.default_rng(0)
        service, start = begin(url), time.process_time()
        for _ in range(decisions // 1000):
            batch = service.decide(rng.normal(size=(1000, D)))
            service.reward(batch.id, rng.normal(size=1000))
            service.learn()
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        print(
            f"{decisions} decided, rewarded and learned in {time.process_time() - start:.0f} s, "
            f"{size / 1e6:.0f} MB on disk",
            flush=True,
        )
        service.log.close()
        works = {
            "frames": lambda log: sum(map(len, log.frames())),
            "replay": lambda log: log.replay().t,
            "verify": lambda log: len(log.verify()),
            "frame": lambda log: log.frame().shape,
            "Log.of": lambda log: len(bb.ope.Log.of(log)),
            "report": lambda log: watch(log, None, None)[2],
        }
        for name, work in works.items():
            results = PROCESSES.Queue()
            process = PROCESSES.Process(target=measured, args=(name, work, url, results))
            process.start()
            print(results.get(), flush=True)
            process.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--decisions", type=int, default=0)
    asked = parser.parse_args()
    large(asked.decisions) if asked.decisions else speed(asked.seconds, asked.processes)
