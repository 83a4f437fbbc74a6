"""Decisions among many arms: with features and one model for all, and with a model each.

    uv run benchmarks/arms.py [--repeats N]

Wall time of one thread, median over decisions. `Shared`: contexts (K, 20); a decision, the reward
with and without a history, which keeps every probability, and `Decision.probabilities`, at the
first rewards and after 500. `LinTS`: a context of 20 features; a decision, and its probabilities.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

import bayesbandit as bb

D, WARM = 20, 500
THETA = np.random.default_rng(0).normal(size=D) / np.sqrt(D)


def clocked[T](call: Callable[[], T]) -> tuple[float, T]:
    """Milliseconds of a call, and what it gave."""
    start = time.perf_counter()
    result = call()
    return 1e3 * (time.perf_counter() - start), result


def shared(
    K: int, policy: bb.extend.Policy, history: int, rounds: int, after: int
) -> dict[str, float]:
    """Milliseconds of a decision, its reward and its probabilities, after so many rewards."""
    rng = np.random.default_rng(1)
    bandit = bb.Bandit(K, bb.Shared(bb.Ridge()), policy, n_features=D, history=history)
    spent: dict[str, list[float]] = {"choose": [], "observe": [], "probabilities": []}
    for t in range(after + rounds):
        x = rng.normal(size=(K, D))
        chosen, decision = clocked(partial(bandit.choose, x))
        reward = float(decision.x @ THETA + 0.3 * rng.normal())
        learned, _ = clocked(partial(bandit.observe, decision, reward))
        if t >= after:
            asked, _ = clocked(partial(getattr, bandit.choose(x), "probabilities"))
            for name, spend in zip(spent, (chosen, learned, asked), strict=True):
                spent[name].append(spend)
    return {name: median(values) for name, values in spent.items()}


def many(K: int, d: int, after: int, rounds: int) -> tuple[float, float, float]:
    """Milliseconds of CPU of a decision, and of its propensity; the mean propensity."""
    rng = np.random.default_rng(1)
    theta = rng.normal(size=d) / np.sqrt(d)
    bandit = bb.Bandit(K, bb.Shared(bb.Ridge()), bb.Thompson(), n_features=d, history=0)
    z = rng.normal(size=(after, d))
    bandit.update(z, np.arange(after) % K, z @ theta + 0.3 * rng.normal(size=after))
    x, chosen, asked, p = rng.normal(size=(K, d)), [], [], []
    for _ in range(rounds):
        start = time.process_time()
        decision = bandit.choose(x)
        middle = time.process_time()
        p.append(decision.propensity)
        chosen.append(1e3 * (middle - start))
        asked.append(1e3 * (time.process_time() - middle))
    return median(chosen), median(asked), float(np.mean(p))


def separate(K: int, rounds: int) -> dict[str, float]:
    """Milliseconds of a decision of LinTS, and of its probabilities."""
    rng = np.random.default_rng(1)
    bandit = bb.LinTS(K, D, history=0)
    x = rng.normal(size=(5 * K, D))
    bandit.update(x, np.arange(5 * K) % K, rng.normal(size=5 * K), np.full(5 * K, 1 / K))
    chosen, asked = [], []
    for context in rng.normal(size=(rounds, D)):
        spend, decision = clocked(partial(bandit.choose, context))
        chosen.append(spend)
        asked.append(clocked(partial(getattr, decision, "probabilities"))[0])
    return {"choose": median(chosen), "probabilities": median(asked)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=50)
    repeats = parser.parse_args().repeats
    print("milliseconds, d = 20      K   choose  observe  probabilities")
    with threadpool_limits(limits=1):
        for K in (10, 100, 1000):
            for label, policy, history, after in (
                ("Shared, at first", bb.Thompson(), 100, 5),
                ("Shared, later", bb.Thompson(), 100, WARM),
                ("  without a history", bb.Thompson(), 0, WARM),
                ("Shared, UCB", bb.UCB(), 100, WARM),
            ):
                show(label, K, shared(K, policy, history, repeats, after))
            show("LinTS, a model each", K, separate(K, repeats))
        print("Shared, d = 50, K = 100,000, CPU of a decision, and of its propensity")
        for after in (3, 10, 30, 100, 300, 1000, 3000):
            chosen, asked, p = many(100_000, 50, after, max(5, repeats // 3))
            print(f"after {after:6d} rewards {chosen:8.1f} {asked:8.1f}; mean propensity {p:.4f}")


def show(label: str, K: int, found: dict[str, float]) -> None:
    observe = f"{found['observe']:8.3f}" if "observe" in found else " " * 8
    print(f"{label:22s} {K:5d} {found['choose']:8.3f} {observe} {found['probabilities']:14.3f}")


if __name__ == "__main__":
    main()
