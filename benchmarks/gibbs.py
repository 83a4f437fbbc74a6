"""Sweeps of the Gibbs sampler, and what a warm call costs beside its sweeps.

    uv run benchmarks/gibbs.py [--repeats N]

n rows and d features, five coefficients of 2. CPU time on one thread; medians over repeats. A warm
call continues one chain; its overhead is what a call of one sweep takes more than that sweep.
"""

import argparse
import time
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

from bayesbandit.declaring.priors import Prior
from bayesbandit.inference.plan import Plan, plan
from bayesbandit.model import load_model

IG = Prior("InverseGamma", alpha=2, beta=2)
CASES = [
    *(("bayesian_lasso", n, d, None, {}) for n, d in ((50, 100), (500, 100), (500, 10))),
    *(("horseshoe", n, d, None, {}) for n, d in ((50, 100), (500, 100), (500, 10))),
    ("hierarchical_ridge", 1000, 100, 3, {"sigma2": IG, "tau2": IG}),
    ("student_t_mixture", 1000, 100, None, {}),
    ("ridge_known_noise", 1000, 100, None, {"sigma": Prior("HalfNormal", sigma=1)}),
]


def warm(ready: Plan, data: dict[str, np.ndarray], state: list, draws: int, repeats: int) -> float:
    """Microseconds of a warm call of so many sweeps."""
    spent = []
    for seed in range(repeats + 1):
        began = time.process_time()
        ready.sample(data, draws, 1, seed, tune=0, start=state)
        spent.append(1e6 * (time.process_time() - began))
    return median(spent[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    threadpool_limits(1)
    print("| model | n | d | µs a sweep | µs of overhead |\n|---|---|---|---|---|")
    for name, n, d, arms, priors in CASES:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(n, d))
        data = {"x": x, "reward": 2.0 * x[:, :5].sum(axis=1) + rng.normal(size=n)}
        if arms is not None:
            data["arm"] = np.arange(n) % arms
        ready = plan(load_model(name).with_priors(intercept=0, **priors), d, arms)
        state = ready.sample(data, 100, 1, 0).state
        one, many = (warm(ready, data, state, draws, repeats) for draws in (1, 201))
        sweep = (many - one) / 200
        print(f"| {name} | {n} | {d} | {sweep:.1f} | {one - sweep:.0f} |", flush=True)


if __name__ == "__main__":
    main()
