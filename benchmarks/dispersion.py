"""Negative binomial rewards whose dispersion α is learned: Gibbs beside NUTS.

    uv run benchmarks/dispersion.py [--data-sets N]

θ ~ N(0, 1) and α ~ Gamma(2, 0.1), without arms; the true α is 2, and the mean count about 4. An
engine's number is the least bulk effective sample size of log α and of the coefficients, over the
CPU time of a run from scratch of 4 chains of 1,000 draws: tuning is included, compilation is not.
Shown are means ± standard errors over data sets, and of ratios on the same data. Then the CPU
seconds of a first fit in a process, with kernels in the cache; NUTS is compiled.
"""

import argparse
import subprocess
import sys
import time

import numpy as np
import pymc as pm
from arviz_stats.base import array_stats
from threadpoolctl import threadpool_limits

import bayesbandit as bb
from bayesbandit.inference.draws import SampledDraws
from bayesbandit.inference.plan import plan

ENGINES = ("gibbs", "nuts")
SIZES = ((3, 200), (3, 1000), (10, 200), (30, 200))
SPREAD = 0.6  # the sd of log means


@bb.reward_model()
def counts(x, reward):
    theta = pm.Normal("theta", 0, 1, dims="feature")
    alpha = pm.Gamma("alpha", 2, 0.1)
    mu = pm.math.exp(x @ theta)
    pm.NegativeBinomial("reward", mu=mu, alpha=alpha, observed=reward)
    return mu


def rows(d: int, n: int, seed: int) -> dict[str, np.ndarray]:
    """Contexts with a column of ones, and counts."""
    rng = np.random.default_rng([d, n, seed])
    x, theta = rng.normal(size=(n, d)), rng.normal(size=d)
    x[:, 0], theta[0] = 1.0, np.log(4.0) - 0.5 * SPREAD**2
    theta[1:] *= SPREAD / np.linalg.norm(theta[1:])
    mu = np.exp(x @ theta)
    reward = rng.negative_binomial(2.0, 2.0 / (2.0 + mu)).astype(float)
    return {"x": x, "reward": reward, "weight": np.ones(n)}


def effective(draws: SampledDraws) -> float:
    """The least bulk effective sample size of log α and the coefficients."""
    values = np.concatenate([draws.values["theta"], np.log(draws.values["alpha"])[..., None]], -1)
    return float(array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk").min())


def rates(d: int, n: int, data_sets: int) -> np.ndarray:
    """Effective draws a CPU second by engine and data set, (2, data sets)."""
    ready, found = [plan(counts, d, None, engine) for engine in ENGINES], []
    for each in ready:
        each.sample(rows(d, n, 10**6), 50, 1, 0)
    for seed in range(data_sets):
        for each in ready:
            began = time.process_time()
            draws = each.sample(rows(d, n, seed), 1000, 4, seed)
            found.append(effective(draws) / (time.process_time() - began))
    return np.array(found).reshape(data_sets, 2).T


def first(engine: str) -> float:
    """CPU seconds of a first fit, in this process."""
    data = rows(3, 200, 0)
    began = time.process_time()
    bb.fit(counts, data["x"], data["reward"], engine=engine, seed=0)
    return time.process_time() - began


def within(values: np.ndarray, digits: int) -> str:
    """A mean and its standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():,.{digits}f} ± {error:,.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=5)
    parser.add_argument("--first", choices=ENGINES, help="a first fit alone")
    arguments = parser.parse_args()
    if arguments.first:
        print(first(arguments.first))
        return
    print("| d, rows | Gibbs | NUTS | ratio |\n|---|---|---|---|")
    for d, n in SIZES:
        with threadpool_limits(1):
            ours, theirs = rates(d, n, arguments.data_sets)
        cells = within(ours, 0), within(theirs, 0), within(ours / theirs, 2)
        print(f"| d = {d}, {n:,} |", " | ".join(cells), "|", flush=True)
    for engine in ENGINES:
        command = [sys.executable, __file__, "--first", engine]
        seconds = [float(subprocess.check_output(command)) for _ in range(3)]
        print(f"first fit, {engine}: {np.median(seconds):.1f} s")


if __name__ == "__main__":
    main()
