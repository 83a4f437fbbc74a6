"""Honest forests side by side with econml's `RegressionForest`, in one process and in turns.

    uv run benchmarks/forest.py [--repeats N]

n = 1000 rounds of the paper's non-linear design (d = 10, its third arm), 200 trees, CPU time, one
thread. econml is asked twice: for the mean alone, and for mean and variance, as a bandit must. A
decision is a bandit's `choose` among three arms, which are three forests.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from econml.grf import RegressionForest
from threadpoolctl import threadpool_limits

import bayesbandit as bb
from bayesbandit.systems.forest.belief import Forest, ForestBelief

N, D, TREES = 1000, 10, 200
DRAWN = bb.environments.NonLinear().sample(3 * N, np.random.default_rng(0))
X, REWARD, ASKED = DRAWN.x[:N], DRAWN.reward[:N, 2], DRAWN.x[N:]


def ours() -> ForestBelief:
    belief = Forest(TREES, refit_every=1).belief(1, D)
    belief.update(X, np.zeros(N, np.int64), REWARD)
    return belief


def theirs() -> RegressionForest:
    return RegressionForest(n_estimators=TREES, n_jobs=1, random_state=0).fit(X, REWARD)


def played() -> bb.Bandit:
    bandit = bb.ForestTS(3, D, trees=TREES, refit_every=1.0)
    arm = np.arange(N) % 3
    bandit.update(X, arm, DRAWN.reward[np.arange(N), arm], np.full(N, 1 / 3))
    return bandit


def each(ask: Callable[[np.ndarray], object], times: int) -> float:
    """CPU seconds of one row."""
    begin = time.process_time()
    for i in range(times):
        ask(ASKED[i : i + 1])
    return (time.process_time() - begin) / times


def taken(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main(repeats: int) -> None:
    belief, peer, bandit = ours(), theirs(), played()  # and what is compiled once
    belief.predict(ASKED)
    bandit.choose(ASKED[0])
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        for name, seconds in {
            "fit": taken(ours),
            "fit, econml": taken(theirs),
            "row, mean and variance": each(belief.predict, 500),
            "row, mean, econml": each(peer.predict, 20),
            "row, mean and variance, econml": each(peer.predict_and_var, 20),
            "2,000 rows": taken(lambda: belief.predict(ASKED)),
            "2,000 rows, econml": taken(lambda: peer.predict_and_var(ASKED)),
            "decision among 3 arms": each(lambda x: bandit.choose(x[0]), 200),
        }.items():
            found.setdefault(name, []).append(seconds)
    for name, seconds in found.items():
        low, high = min(seconds), max(seconds)
        print(f"{name:32} {1e3 * median(seconds):9.3f} ms   {1e3 * low:.3f}–{1e3 * high:.3f}")

    def ratio(one: str, other: str) -> float:
        return median(a / b for a, b in zip(found[one], found[other], strict=True))

    fit, row = ratio("fit", "fit, econml"), ratio("row, mean, econml", "row, mean and variance")
    decision = found["decision among 3 arms"]
    for what, met in {
        f"fit: {fit:.2f} × econml's, at most 1.6": fit <= 1.6,
        f"a row: {row:.1f} × faster than econml's mean alone, at least 10": row >= 10.0,
        f"a decision: {1e3 * median(decision):.2f} ms, at most 3": median(decision) <= 3e-3,
    }.items():
        print("met    " if met else "NOT MET", what)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with threadpool_limits(1):
        main(repeats)
