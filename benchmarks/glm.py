"""Generalised linear models: what a decision and a reward take, and a sweep of their samplers.

    uv run benchmarks/glm.py [--repeats N]

CPU time of one thread, median over repeats, compiled beforehand. A step is `choose` and `observe`
of one context, d = 10, K = 3, by Laplace's approximation, the modes settled each time that an arm's
rounds have grown by a tenth; from round 1,000 on. A sweep is of n = 500 rows of d = 10.
"""

import argparse
import time
from collections.abc import Iterator
from statistics import median

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

import bayesbandit as bb
from bayesbandit.inference.plan import plan

D, K, WARM, STEPS = 10, 3, 1000, 3000
RNG = np.random.default_rng(0)
TRUTH = RNG.normal(size=(K, D))
X = RNG.normal(size=(WARM + STEPS, D))
LOG_ODDS = X @ TRUTH.T
REWARD = {
    "logistic": (RNG.random(LOG_ODDS.shape) < expit(LOG_ODDS)).astype(float),
    "probit": (RNG.normal(size=LOG_ODDS.shape) < LOG_ODDS).astype(float),
    "poisson": RNG.poisson(np.exp(0.3 * LOG_ODDS)).astype(float),
}


def steps(name: str, repeats: int) -> Iterator[float]:
    """Steps a second."""
    for seed in range(repeats):
        bandit = bb.Bandit(
            K,
            bb.Laplace(bb.load_model(name).with_priors(intercept=0)),
            bb.Thompson(),
            n_features=D,
            seed=seed,
        )
        for i, (x, reward) in enumerate(zip(X, REWARD[name], strict=True)):
            if i == WARM:
                began = time.process_time()
            decision = bandit.choose(x)
            bandit.observe(decision, reward[decision.arm])
        yield STEPS / (time.process_time() - began)


def sweeps(name: str, weights: np.ndarray, repeats: int) -> Iterator[float]:
    """Sweeps a second."""
    found, n, draws = (
        plan(bb.load_model(name).with_priors(intercept=0), D, engine="gibbs"),
        len(weights),
        4000,
    )
    data = {"x": X[:n], "reward": REWARD[name][:n, 0], "weight": weights}
    last = found.sample(data, 100, 1, 0)
    for seed in range(repeats):
        began = time.process_time()
        last = found.sample(data, draws, 1, seed, tune=0, start=last.state)
        yield draws / (time.process_time() - began)


def main(repeats: int) -> None:
    one, any_weight = np.ones(500), RNG.uniform(0.5, 3.0, 500)
    found = {
        "logistic, Laplace, steps/s (target 5,000)": steps("logistic", repeats),
        "probit, Laplace, steps/s": steps("probit", repeats),
        "Poisson, Laplace, steps/s": steps("poisson", repeats),
        "logistic, Pólya–Gamma, sweeps/s (target 6,000)": sweeps("logistic", one, repeats),
        "the same, weights 0.5 … 3": sweeps("logistic", any_weight, repeats),
        "probit, Albert–Chib, sweeps/s": sweeps("probit", one, repeats),
    }
    for name, rates in found.items():
        print(f"{name:48} {median(rates):10,.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with threadpool_limits(1):
        main(repeats)
