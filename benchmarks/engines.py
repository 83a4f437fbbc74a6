"""Gibbs beside NUTS, and what `auto` chose: effective draws a second of CPU time.

    uv run benchmarks/engines.py [--repeats N] [NAME …]

n = 200 rows, d = 5 features (3 arms, where a model is over arms), one thread, one chain after the
other. An engine's number is the least bulk or tail effective sample size among the elements of the
declared scalars and coefficients, over the CPU time of a warm run that continues earlier chains:
compilation is left out, tuning is not. Shown are medians over repeats. `first` is what the plan and
the first run took, compilation included; `set up` what a warm run of Gibbs takes before its sweeps.
"""

import argparse
import time
from statistics import median
from typing import Any

import numpy as np
import pymc as pm
from threadpoolctl import threadpool_limits

import bayesbandit as bb
from bayesbandit.inference.base import NotThisEngine
from bayesbandit.inference.draws import SampledDraws
from bayesbandit.inference.plan import plan

N, D, K = 200, 5, 3
DRAWS = {"gibbs": 20_000, "nuts": 2000}
EACH = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
LAPLACE = bb.Prior("Laplace", mu=0, b=1, dims="feature")
INVERSE_GAMMA = bb.Prior("InverseGamma", alpha=3, beta=2)
HALF_NORMAL = bb.Prior("HalfNormal", sigma=1)


@bb.reward_model(theta=EACH, sigma=HALF_NORMAL)
def deviation(x, reward, weight, theta, sigma):
    mu = x @ theta
    pm.Normal("reward", mu, sigma / pm.math.sqrt(weight), observed=reward, dims="row")
    return mu


@bb.reward_model(mu0=EACH, tau=HALF_NORMAL, sigma=HALF_NORMAL)
def hierarchy(x, reward, weight, arm, mu0, tau, sigma):
    theta = pm.Normal("theta", mu0, tau, dims=("arm", "feature"))
    mu = (x * theta[arm]).sum(axis=-1)
    pm.Normal("reward", mu, sigma / pm.math.sqrt(weight), observed=reward, dims="row")
    return mu


def offsets(x, arm, mu0, tau):
    """The predictor of a hierarchy in its non-centred form."""
    z = pm.Normal("z", 0, 1, dims=("arm", "feature"))
    return (x * (mu0 + tau * z)[arm]).sum(axis=-1)


@bb.reward_model(mu0=EACH, tau=HALF_NORMAL, sigma=HALF_NORMAL)
def noncentred(x, reward, weight, arm, mu0, tau, sigma):
    mu = offsets(x, arm, mu0, tau)
    pm.Normal("reward", mu, sigma / pm.math.sqrt(weight), observed=reward, dims="row")
    return mu


@bb.reward_model(mu0=EACH, tau=HALF_NORMAL)
def noncentred_logistic(x, reward, arm, mu0, tau):
    p = pm.math.sigmoid(offsets(x, arm, mu0, tau))
    pm.Bernoulli("reward", p, observed=reward, dims="row")
    return p


@bb.reward_model(mu0=EACH, tau=HALF_NORMAL)
def noncentred_counts(x, reward, arm, mu0, tau):
    mu = pm.math.exp(offsets(x, arm, mu0, tau))
    pm.NegativeBinomial("reward", mu=mu, alpha=2.0, observed=reward, dims="row")
    return mu


@bb.reward_model(theta=EACH, sigma=bb.Prior("HalfNormal", sigma=1, dims="arm"))
def groupwise(x, reward, weight, arm, theta, sigma):
    mu = x @ theta
    pm.Normal("reward", mu, sigma[arm] / pm.math.sqrt(weight), observed=reward, dims="row")
    return mu


WON = ("logistic", "probit", "hierarchical_logistic", "noncentred_logistic")  # of rewards 0 and 1
COUNTS = ("noncentred_counts",)


def models() -> dict[str, bb.RewardModel]:
    """By name: the gallery's that Gibbs samples, without intercepts, and what users declare."""

    def load(name: str) -> bb.RewardModel:
        return bb.load_model(name).with_priors(intercept=0)

    sds = {
        "HalfCauchy": {"beta": 1}, "Exponential": {"lam": 1}, "Gamma": {"alpha": 2, "beta": 2},
        "LogNormal": {"mu": 0, "sigma": 1}, "Uniform": {"lower": 0, "upper": 5},
        "InverseGamma": {"alpha": 2, "beta": 1},
    }  # fmt: skip
    found = {name: load(name) for name in ("laplace", "bayesian_lasso", "student_t")}
    found |= {name: load(name) for name in ("student_t_mixture", "horseshoe")}
    found["bayesian_lasso, λ² learnt"] = load("bayesian_lasso").with_priors(
        lambda2=bb.Prior("Gamma", alpha=1, beta=1.78)
    )
    found["hierarchical_ridge, learnt"] = load("hierarchical_ridge").with_priors(
        sigma2=INVERSE_GAMMA, tau2=INVERSE_GAMMA
    )
    found |= {"hierarchy, half-normal": hierarchy, "noise by arm": groupwise}
    found["sd ~ HalfNormal"] = deviation
    found["Laplace prior, sd ~ HalfNormal"] = deviation.with_priors(theta=LAPLACE)
    for name, settings in sds.items():
        found[f"sd ~ {name}"] = deviation.with_priors(sigma=bb.Prior(name, **settings))
    scale = bb.Prior("Normal", mu=0, sigma=HALF_NORMAL, dims="feature")
    found["prior scale ~ HalfNormal"] = deviation.with_priors(theta=scale)
    found |= {name: load(name) for name in WON[:3]}
    lasso = bb.Prior("Laplace", mu=0, b=1, dims="feature")
    found["logistic, Laplace prior"] = load("logistic").with_priors(theta=lasso)
    found["hierarchy, non-centred"] = noncentred
    found |= {m.name: m for m in (noncentred_logistic, noncentred_counts)}
    return found


def rows(model: bb.RewardModel) -> dict[str, np.ndarray]:
    """Linear rewards with some noise of heavy tails."""
    rng = np.random.default_rng(0)
    x, beta = rng.normal(size=(N, D)), rng.normal(size=(K, D)) / 2 + 0.5
    arm = rng.integers(0, K, N)
    reward = (x * beta[arm]).sum(axis=1) + rng.standard_t(5, size=N)
    if model.name in WON:
        reward = (reward > 0.0).astype(float)
    elif model.name in COUNTS:
        reward = rng.poisson(np.exp(np.clip(reward, -5.0, 3.0))).astype(float)
    data = {"x": x, "reward": reward, "weight": np.ones(N)}
    return data | ({"arm": arm.astype(np.int32)} if model.takes_arm else {})


def effective(draws: SampledDraws) -> float:
    """The least effective sample size."""
    from arviz_stats.base import array_stats

    least = []
    for v in draws.values.values():
        flat = v.reshape(*v.shape[:2], -1)[..., : K * D]
        bulk, tail = (array_stats.ess(flat, chain_axis=0, draw_axis=1, method=m, prob=p).min()
                      for m, p in (("bulk", None), ("tail", (0.05, 0.95))))  # fmt: skip
        least += [bulk, tail]
    return float(min(least))


def measure(model: bb.RewardModel, engine: str, repeats: int) -> dict[str, Any]:
    """ESS a CPU second, and seconds of the first and of an empty run; or why there is none."""
    began, data = time.process_time(), rows(model)
    try:
        ready = plan(model, D, K if model.takes_arm else None, engine)
        last = ready.sample(data, 200, 2, 0)
    except NotThisEngine as error:
        return {"reason": error.refusal.reason}
    first, rates, empty = time.process_time() - began, [], []
    for seed in range(repeats):
        began = time.process_time()
        draws = ready.sample(data, DRAWS[engine], 2, seed, start=last.state)
        rates.append(effective(draws) / (time.process_time() - began))
        began = time.process_time()
        if engine == "gibbs":
            ready.sample(data, 4, 1, seed, tune=0, start=last.state)
        empty.append(time.process_time() - began)
        last = draws
    return {"rate": median(rates), "first": first, "empty": median(empty)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print("| model | Gibbs | NUTS | ratio | auto | best ÷ auto | first, s | set up, ms |")
    print("|---|---|---|---|---|---|---|---|")
    for name, model in models().items():
        if arguments.names and name not in arguments.names:
            continue
        with threadpool_limits(1):
            found = {e: measure(model, e, arguments.repeats) for e in ("gibbs", "nuts")}
            auto = plan(model, D, K if model.takes_arm else None).engine
        rate = {e: m.get("rate", 0.0) for e, m in found.items()}
        said = {e: f"{r:,.0f}" if r else found[e]["reason"] for e, r in rate.items()}
        ratio, behind = (
            f"{a / b:.2f}" if b else "–"
            for a, b in ((rate["gibbs"], rate["nuts"]), (max(rate.values()), rate.get(auto, 0.0)))
        )
        first = " / ".join(f"{m.get('first', 0.0):.1f}" for m in found.values())
        print(
            f"| {name} | {said['gibbs']} | {said['nuts']} | {ratio} | {auto} | {behind} | {first} "
            f"| {1000 * found['gibbs'].get('empty', 0.0):.1f} |", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
