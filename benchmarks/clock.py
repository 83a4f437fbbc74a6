"""The stream that everyone plays, the clock that times them, and a worker's end of the line.

A contestant is a function `(x, reward) -> play`: it sees the whole stream, (T, d) and (T, K),
builds its bandit, puts the stream into the form it takes, and returns `play(start, stop)`, which
plays those rounds. Only `play` is on the clock. Nothing is imported but NumPy, so that it runs in
every peer's environment.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

K = 3
LINE = 8  # doubles in a cache line
BATCH = 10_000  # rows in one call where many contexts are served at once
Play = Callable[[int, int], object]
Contestant = Callable[[np.ndarray, np.ndarray], Play]


def aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Zeros that begin on a cache line; left to luck, that moves d = 100 by a tenth."""
    size, line = int(np.prod(shape)), LINE * 8
    room = np.zeros(size + LINE)
    first = -room.ctypes.data % line // 8
    return room[first : first + size].reshape(shape)


@lru_cache
def stream(d: int, rounds: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Standard-normal contexts (T, d) and every arm's linear reward (T, K) with noise sd 1."""
    rng = np.random.default_rng(seed)
    x = aligned((rounds, d))
    rng.standard_normal(out=x)
    theta = rng.standard_normal((K, d)) / np.sqrt(d)
    return x, x @ theta.T + rng.standard_normal((rounds, K))


def rate(play: Play, rounds: int, budget: float, chunk: int) -> float:
    """Rounds a CPU second: one chunk to warm up, then ever longer ones until `budget` is spent."""
    play(0, chunk)
    played, spent, start, size = 0, 0.0, 0, chunk
    while spent < budget:
        stop = min(start + size, rounds)
        began = time.process_time()
        play(start, stop)
        spent += time.process_time() - began
        played += stop - start
        start, size = stop % rounds, 2 * size
    return played / spent


def in_batches(choose: Callable[[np.ndarray], object], x: np.ndarray) -> Play:
    """Decisions only, `BATCH` contexts a call."""

    def play(start: int, stop: int) -> None:
        for low in range(start, stop, BATCH):
            choose(x[low : low + BATCH])

    return play


def serve(version: str, contestants: Mapping[str, Contestant]) -> None:
    """Say who is here, then measure on request: one line of JSON in, one line of JSON out."""
    out, sys.stdout = sys.stdout, sys.stderr  # what a library prints must not mix with the answers
    print(json.dumps({"version": version, "contestants": list(contestants)}), file=out, flush=True)
    for line in sys.stdin:
        ask = json.loads(line)
        x, reward = stream(ask["d"], ask["rounds"])
        try:
            play = contestants[ask["name"]](x, reward)
            answer: dict[str, object] = {"rate": rate(play, len(x), ask["budget"], ask["chunk"])}
        except Exception as error:  # the table names it in the place of the number
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=out, flush=True)
