"""What it costs to store every decision before it is returned, and memory of a log of a million.

    uv run --group dev benchmarks/service.py [--seconds 10] [--processes 8]
    uv run --group dev benchmarks/service.py --http 500             # CPU of a request
    uv run --group dev benchmarks/service.py --decisions 1000000    # 10 minutes, 1.5 GB on disk

Durable decisions a second in SQLite, beside what `fsync` alone allows on this disk; then processes
that decide on a PostgreSQL server of their own, beside the same calls without a log. With
--http: CPU time of a server for each of so many decisions, beside that of a bare endpoint of
FastAPI that stores a row with SQLAlchemy, in turn. With --decisions: CPU time and largest memory of
`frames`, `replay`, `verify` and others.
"""

import argparse
import json
import multiprocessing
import os
import resource
import secrets
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayesbandit as bb
from bayesbandit.cli.report import watch
from tests.ports import free_port
from tests.store.databases import fresh

KEY = "a key of this benchmark"
NAMES = ("POST /decide", "bare FastAPI and INSERT", "service.decide, without HTTP")
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


def ours(url, port):
    """A server of `bayesbandit serve` for a log that has begun."""
    import uvicorn

    from bayesbandit.service.server import application

    service = bb.Service.open(bb.DecisionLog(url))
    app = application(service, KEY, deadline=10.0)
    uvicorn.run(app, port=port, log_level="error", access_log=False)


def bare(url, port):
    """A server that stores the context of each request with one INSERT, and does no more."""
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel
    from sqlalchemy import Column, MetaData, String, Table, Text, create_engine, event, insert

    class Asked(BaseModel):
        context: list[float]
        id: str

    engine, metadata = create_engine(url), MetaData()
    if engine.dialect.name == "sqlite":
        event.listen(
            engine, "connect", lambda one, _: one.execute("PRAGMA synchronous=FULL").close()
        )
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    contexts = Table(
        "contexts", metadata, Column("id", String(200), primary_key=True), Column("context", Text)
    )
    metadata.create_all(engine)
    app = FastAPI()

    @app.post("/decide")
    def store(asked: Asked) -> Asked:
        with engine.begin() as connection:
            row = {"id": asked.id, "context": json.dumps(asked.context)}
            connection.execute(insert(contexts), row)
        return asked

    uvicorn.run(app, port=port, log_level="error", access_log=False)


class Running:
    """A server in a process of its own, and the CPU time of each of its requests."""

    def __init__(self, work, url):
        self.port, self.n = free_port(), 0
        self.process = PROCESSES.Process(target=work, args=(url, self.port), daemon=True)
        self.process.start()
        end = time.monotonic() + 300
        while time.monotonic() < end:
            try:
                self.ask(1, 1)
                return
            except ConnectionError:
                time.sleep(0.1)
        raise TimeoutError("no server")

    def ask(self, requests, clients):
        """CPU seconds of the server for each of so many requests, of clients at a time."""
        process = psutil.Process(self.process.pid)
        before = sum(process.cpu_times()[:2])
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(self._ask, [requests // clients] * clients))
        return (sum(process.cpu_times()[:2]) - before) / requests

    def _ask(self, requests):
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        connection = HTTPConnection("127.0.0.1", self.port)
        for _ in range(requests):
            asked = {"context": [0.3, -1.2, 0.5, 1.0, 0.1], "id": secrets.token_hex(16)}
            connection.request("POST", "/decide", json.dumps(asked), headers)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
        connection.close()


def within(service, requests):
    """CPU seconds of each of so many decisions in one process, without HTTP."""
    x, start = np.array([0.3, -1.2, 0.5, 1.0, 0.1]), time.process_time()
    for _ in range(requests):
        service.decide(x)
    return (time.process_time() - start) / requests


def http(requests, turns):
    """CPU time of a decision over HTTP beside a bare endpoint, in turn."""
    with room() as folder:
        for kind in ("sqlite", "postgresql"):
            url = fresh(kind, folder)
            begin(url).log.close()
            servers = Running(ours, url), Running(bare, fresh(kind, folder))
            service = bb.Service.open(bb.DecisionLog(url))
            for clients in (1, 8):
                for one in servers:
                    one.ask(requests, clients)
                took = []
                for _ in range(turns):
                    took.append([one.ask(requests, clients) for one in servers])
                    took[-1].append(within(service, requests))
                took = np.array(took) * 1e3
                mean, error = took.mean(axis=0), took.std(axis=0, ddof=1) / np.sqrt(turns)
                ratio = took[:, 1] / took[:, 0]
                print(f"{kind}, {clients} clients: CPU of a request")
                for name, m, e in zip(NAMES, mean, error, strict=True):
                    print(f"  {name:32} {m:6.3f} ± {e:.3f} ms")
                print(f"  bare / decide {ratio.mean():.2f} ± "
                      f"{ratio.std(ddof=1) / np.sqrt(turns):.2f}", flush=True)  # fmt: skip
            service.log.close()
            for one in servers:
                one.process.terminate()
                one.process.join()


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
            "report": lambda log: watch(log)[2],
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
    parser.add_argument("--http", type=int, default=0)
    parser.add_argument("--turns", type=int, default=10)
    asked = parser.parse_args()
    if asked.http:
        http(asked.http, asked.turns)
    elif asked.decisions:
        large(asked.decisions)
    else:
        speed(asked.seconds, asked.processes)
