"""What single steps of the other systems take: balances of an arm, ILTCB's optimisation, rounds of
probabilities and rates.

    uv run benchmarks/systems.py [--repeats N]

CPU time of one thread, median over repeats. Residual balancing: an arm's 1,000 rounds of 20
features, against SLSQP on the primal problem at 100 rounds. Kernel balancing: its 1,000 rounds
among 3,000. ILTCB: the policies of 1,000 rounds of 10 features and 3 arms. Conjugate models: one
decision and one update a step, K = 3, no context, with and without the decision's exact propensity;
and whole runs in the compiled loop, with that of every round; beside LinTS with 10 features.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

import bayesbandit as bb
from bayesbandit.systems.iltcb.optimisation import solve
from bayesbandit.systems.iltcb.oracle import LinearOracle
from bayesbandit.weighting.residual import residual_weights

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1000, 20)) + 0.4
CONTEXTS, TRUTH = RNG.normal(size=(1000, 10)), RNG.normal(size=(10, 3))
ARM = RNG.integers(3, size=1000)
GAINS = np.zeros((1000, 3))
GAINS[np.arange(1000), ARM] = 3.0 * (
    RNG.random(1000) < 1.0 / (1.0 + np.exp(-(CONTEXTS @ TRUTH)[np.arange(1000), ARM]))
)


def residual(n: int) -> np.ndarray:
    return residual_weights(X[:n], np.zeros(20))


def primal(n: int) -> np.ndarray:
    """The same problem by sequential quadratic programming, in (w, largest imbalance)."""
    x, most = X[:n], n ** (-2 / 3)
    slack = [
        {"type": "eq", "fun": lambda v: v[:-1].sum() - 1.0},
        {"type": "ineq", "fun": lambda v: v[-1] - x.T @ v[:-1]},
        {"type": "ineq", "fun": lambda v: v[-1] + x.T @ v[:-1]},
    ]
    begin = np.append(np.full(n, 1.0 / n), np.abs(x.mean(axis=0)).max())
    found = minimize(
        lambda v: 0.5 * (v[:-1] @ v[:-1]) + 0.5 * v[-1] ** 2, begin, method="SLSQP",
        bounds=[(0.0, most)] * n + [(0.0, None)], constraints=slack,
        options={"maxiter": 500, "ftol": 1e-14},
    )  # fmt: skip
    return n * found.x[:-1]


def kernel() -> np.ndarray:
    arm = np.arange(3000) % 3
    bandit = bb.LinTS(3, 20)
    bandit.update(RNG.normal(size=(3000, 20)), arm, RNG.normal(size=3000), np.full(3000, 1 / 3))
    return bb.KernelBalance().of_arm(np.flatnonzero(arm == 0), bandit.history)


def stepping(
    bandit: bb.Bandit, x: np.ndarray | None, asked: bool = False, steps: int = 5_000
) -> Callable[[], object]:
    """Decisions and updates one by one. asked: for each decision's propensity."""
    rewards = RNG.binomial(1, 0.5, steps).astype(float).tolist()

    def step() -> float:
        total = 0.0
        for reward in rewards:
            decision = bandit.choose(x)
            total += decision.propensity if asked else 0.0
            bandit.observe(decision, reward)
        return total

    return step


def running(name: str, rounds: int = 50_000) -> Callable[[], object]:
    """A run in the compiled loop."""
    model, x = bb.load_model(name), np.empty((rounds, 0))
    rewards = RNG.binomial(1, [0.3, 0.5, 0.6], (rounds, 3)).astype(float)
    return lambda: bb.Bandit(3, model, bb.Thompson(), n_features=0).play(x, rewards)


def rates(repeats: int) -> None:
    """Thousands of steps a second."""
    works = {"LinTS, 10 features": (stepping(bb.LinTS(3, 10), RNG.normal(size=10)), 5)}
    for name in ("beta_bernoulli", "gamma_poisson"):
        bandit = bb.Bandit(3, bb.load_model(name), bb.Thompson(), n_features=0)
        works[f"{name} (target 100)"] = stepping(bandit, None), 5
        works[f"{name}, with propensities"] = stepping(bandit, None, asked=True), 5
        works[f"{name}, compiled loop"] = running(name), 50
    for name, (work, thousands) in works.items():
        work()
        rate = thousands / median(taken(work) for _ in range(repeats))
        print(f"{name:52} {rate:9.0f} thousand steps/s")


def taken(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main(repeats: int) -> None:
    gap = np.abs(residual(100) - primal(100)).max()
    print(f"weights of 100 rounds differ from those of the primal problem by {gap:.1g} at most")
    steps = {
        "residual balance, n = 1,000, d = 20 (target 15 ms)": lambda: residual(1000),
        "residual balance, n = 100": lambda: residual(100),
        "the same by SLSQP": lambda: primal(100),
        "kernel balance, an arm of 3": kernel,
        "ILTCB, t = 1,000, K = 3 (target 15 ms)": lambda: solve(
            CONTEXTS, GAINS, 0.03, LinearOracle()
        ),
    }
    for name, work in steps.items():
        work()
        print(f"{name:52} {1e3 * median(taken(work) for _ in range(repeats)):9.1f} ms")
    rates(repeats)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    with threadpool_limits(1):
        main(repeats)
