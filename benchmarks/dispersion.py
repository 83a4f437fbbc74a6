"""Negative binomial rewards: Gibbs beside NUTS.

    uv run benchmarks/dispersion.py [--data-sets N] [--only TEXT]

θ ~ N(0, 1), and α ~ Gamma(2, 0.1) unless a case says otherwise, without arms; the true α is 2, and
the mean count about 4. An engine's number is the least bulk effective sample size of log α and of
the coefficients, over the CPU time of a run from scratch of 4 chains of 1,000 draws: tuning is
included, compilation is not. Shown are means ± standard errors over data sets, and of ratios on the
same data. Where α is known, Gibbs is also measured without its Metropolis step of θ. Then the CPU
seconds of a first fit in a process, with kernels in the cache; NUTS is compiled.
"""

import argparse
import subprocess
import sys
import time
from typing import NamedTuple

import numpy as np
import pymc as pm
from arviz_stats.base import array_stats
from threadpoolctl import threadpool_limits

import bayesbandit as bb
from bayesbandit.inference.draws import SampledDraws
from bayesbandit.inference.glm import augmented
from bayesbandit.inference.plan import plan
from bayesbandit.inference.pymc_model.template import template

ENGINES = ("gibbs", "nuts")
SPREAD = 0.6  # the sd of log means


def observed(x, reward, theta, alpha):
    """Observe counts of log means x θ; return the means."""
    mu = pm.math.exp(x @ theta)
    pm.NegativeBinomial("reward", mu=mu, alpha=alpha, observed=reward)
    return mu


THETA = bb.Prior("Normal", mu=0, sigma=1, dims="feature")


@bb.reward_model(theta=THETA, alpha=bb.Prior("Gamma", alpha=2, beta=0.1))
def counts(x, reward, theta, alpha):
    return observed(x, reward, theta, alpha)


@bb.reward_model(theta=THETA)
def known(x, reward, theta):
    return observed(x, reward, theta, 2.0)


class Case(NamedTuple):
    """A model, and the rows it is given."""

    model: bb.RewardModel = counts
    d: int = 3
    n: int = 200
    mean: float = 4.0
    poisson: bool = False


CASES = {
    "d = 3, 200": Case(),
    "d = 3, 1,000": Case(n=1000),
    "d = 10, 200": Case(d=10),
    "d = 30, 200": Case(d=30),
    "mean 0.1": Case(mean=0.1),
    "mean 500": Case(mean=500.0),
    "Poisson counts": Case(poisson=True),
    "Poisson counts, α ~ HalfCauchy(5)": Case(
        counts.with_priors(alpha=bb.Prior("HalfCauchy", beta=5)), poisson=True
    ),
    "α known, mean 0.1": Case(known, mean=0.1),
    "α known, mean 4": Case(known),
    "α known, mean 500": Case(known, mean=500.0),
}


def rows(case: Case, seed: int) -> dict[str, np.ndarray]:
    """Contexts with a column of ones, and counts."""
    _, d, n, mean, poisson = case
    rng = np.random.default_rng([d, n, seed])
    x, theta = rng.normal(size=(n, d)), rng.normal(size=d)
    x[:, 0], theta[0] = 1.0, np.log(mean) - 0.5 * SPREAD**2
    theta[1:] *= SPREAD / np.linalg.norm(theta[1:])
    mu = np.exp(x @ theta)
    reward = rng.poisson(mu) if poisson else rng.negative_binomial(2.0, 2.0 / (2.0 + mu))
    return {"x": x, "reward": reward.astype(float), "weight": np.ones(n)}


def effective(draws: SampledDraws) -> float:
    """The least bulk effective sample size of log α and the coefficients."""
    values = draws.values["theta"]
    if "alpha" in draws.values:
        values = np.concatenate([values, np.log(draws.values["alpha"])[..., None]], -1)
    return float(array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk").min())


def rates(case: Case, data_sets: int) -> np.ndarray:
    """Effective draws a CPU second by sampler and data set, (3, data sets): of `ENGINES`, and of
    Gibbs without its step of θ, where α is known."""
    ready = [plan(case.model, case.d, None, engine) for engine in ENGINES]
    if case.model is known:
        ready.append(augmented.match(template(known, case.d, None)))
    found = np.full((3, data_sets), np.nan)
    for each in ready:
        each.sample(rows(case, 10**6), 50, 1, seed=0)
    for seed in range(data_sets):
        for k, each in enumerate(ready):
            began = time.process_time()
            draws = each.sample(rows(case, seed), 1000, 4, seed=seed)
            found[k, seed] = effective(draws) / (time.process_time() - began)
    return found


def first(engine: str) -> float:
    """CPU seconds of a first fit, in this process."""
    data = rows(Case(), 0)
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
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--first", choices=ENGINES, help="a first fit alone")
    arguments = parser.parse_args()
    if arguments.first:
        print(first(arguments.first))
        return
    print("| | Gibbs | NUTS | ratio | Gibbs without the step |\n|---|---|---|---|---|")
    for name, case in CASES.items():
        if arguments.only not in name:
            continue
        with threadpool_limits(1):
            ours, theirs, without = rates(case, arguments.data_sets)
        cells = within(ours, 0), within(theirs, 0), within(ours / theirs, 2)
        last = within(without, 0) if case.model is known else ""
        print(f"| {name} |", " | ".join(cells), "|", last, "|", flush=True)
    if arguments.only:
        return
    for engine in ENGINES:
        command = [sys.executable, __file__, "--first", engine]
        seconds = [float(subprocess.check_output(command)) for _ in range(3)]
        print(f"first fit, {engine}: {np.median(seconds):.1f} s")


if __name__ == "__main__":
    main()
