"""What single steps take: sweeps, generalised linear models, balances, trees, penalised paths.

    uv run benchmarks/steps.py [--repeats N] [PART …]

CPU time of one thread, median over repeats, compiled beforehand. The parts are

- gibbs: sweeps of n rows and d features, five coefficients of 2. A warm call continues one chain;
  its overhead is what a call of one sweep takes more than that sweep;
- glm: steps (`choose` and `observe`, d = 10, K = 3) of bandits by Laplace's approximation, from
  round 1,000 on, and sweeps of Gibbs samplers with 500 rows of 10 features;
- rates: steps of conjugate models, K = 3, no context, with and without the decision's exact
  propensity, and whole runs in the compiled loop with that of every round, beside LinTS;
- systems: residual balancing of an arm's 1,000 rounds of 20 features, beside SLSQP on the primal
  problem at 100 rounds; kernel balancing of 1,000 rounds among 3,000; the policies of ILTCB of
  1,000 rounds of 10 features and 3 arms; policy trees of noise;
- paths: bootstrap LASSO, 100 replicates × 20 λ of 300 rounds of the sparse design (d = 102) under
  weights. scikit-learn's `lasso_path` is given the Gram matrices that are part of our time, and the
  largest tolerance at which its subgradients are as near to 0 as ours.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import lasso_path
from threadpoolctl import threadpool_limits

import bayesbandit as bb
from bayesbandit.inference.plan import plan
from bayesbandit.systems.bootstrap import replicates
from bayesbandit.systems.bootstrap.kernels import violation
from bayesbandit.systems.iltcb.optimisation import solve
from bayesbandit.systems.iltcb.oracle import least_squares
from bayesbandit.systems.policy_tree.tree import grown
from bayesbandit.weighting.residual import residual_weights

RNG = np.random.default_rng(0)


def seconds(work: Callable[[], object], repeats: int) -> float:
    """CPU seconds of some work: the median of repeats, after a first one."""
    spent = []
    for _ in range(repeats + 1):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return median(spent[1:])


def show(name: str, number: float, unit: str) -> None:
    print(f"{name:60} {number:12,.1f} {unit}", flush=True)


IG = bb.Prior("InverseGamma", alpha=2, beta=2)
SWEPT = [
    *(("bayesian_lasso", n, d, None, {}) for n, d in ((50, 100), (500, 100), (500, 10))),
    *(("horseshoe", n, d, None, {}) for n, d in ((50, 100), (500, 100), (500, 10))),
    ("hierarchical_ridge", 1000, 100, 3, {"sigma2": IG, "tau2": IG}),
    ("student_t_mixture", 1000, 100, None, {}),
    ("ridge_known_noise", 1000, 100, None, {"sigma": bb.Prior("HalfNormal", sigma=1)}),
]


def gibbs(repeats: int) -> None:
    for name, n, d, arms, priors in SWEPT:
        x = RNG.normal(size=(n, d))
        data = {"x": x, "reward": 2.0 * x[:, :5].sum(axis=1) + RNG.normal(size=n)}
        if arms is not None:
            data["arm"] = np.arange(n) % arms
        ready = plan(bb.load_model(name).with_priors(intercept=0, **priors), d, arms)
        state = ready.sample(data, 100, 1, 0).state
        one, many = (
            1e6 * seconds(partial(ready.sample, data, m, 1, 1, tune=0, start=state), repeats)
            for m in (1, 201)
        )
        sweep = (many - one) / 200
        show(f"{name}, n = {n}, d = {d}, a sweep", sweep, "µs")
        show("  its call", one - sweep, "µs")


D, K, WARM, STEPS = 10, 3, 1000, 3000
X, TRUTH = RNG.normal(size=(WARM + STEPS, D)), RNG.normal(size=(K, D))
LOG_ODDS = X @ TRUTH.T
REWARD = {
    "logistic": (RNG.random(LOG_ODDS.shape) < expit(LOG_ODDS)).astype(float),
    "probit": (RNG.normal(size=LOG_ODDS.shape) < LOG_ODDS).astype(float),
    "poisson": RNG.poisson(np.exp(0.3 * LOG_ODDS)).astype(float),
}


def glm(repeats: int) -> None:
    for name, rewards in REWARD.items():
        model = bb.Laplace(bb.load_model(name).with_priors(intercept=0))
        rates = []
        for seed in range(repeats):
            bandit = bb.Bandit(K, model, bb.Thompson(), n_features=D, seed=seed)
            for i, (x, reward) in enumerate(zip(X, rewards, strict=True)):
                if i == WARM:
                    began = time.process_time()
                decision = bandit.choose(x)
                bandit.observe(decision, reward[decision.arm])
            rates.append(STEPS / (time.process_time() - began))
        show(f"{name}, Laplace", median(rates), "steps/s")
    weighted = RNG.uniform(0.5, 3.0, 500)
    for label, name, weight in (
        ("logistic, Pólya–Gamma (target 6,000)", "logistic", np.ones(500)),
        ("  the same, weights 0.5 … 3", "logistic", weighted),
        ("probit, Albert–Chib", "probit", np.ones(500)),
    ):
        ready = plan(bb.load_model(name).with_priors(intercept=0), D, engine="gibbs")
        data = {"x": X[:500], "reward": REWARD[name][:500, 0], "weight": weight}
        state = ready.sample(data, 100, 1, 0).state
        taken = seconds(partial(ready.sample, data, 4000, 1, 1, tune=0, start=state), repeats)
        show(label, 4000 / taken, "sweeps/s")


def step(bandit: bb.Bandit, x: np.ndarray | None, rewards: list[float], asked: bool) -> float:
    """Decide and learn one by one. asked: for each decision's propensity."""
    total = 0.0
    for reward in rewards:
        decision = bandit.choose(x)
        total += decision.propensity if asked else 0.0
        bandit.observe(decision, reward)
    return total


def rates(repeats: int) -> None:
    rewards = RNG.binomial(1, 0.5, 5_000).astype(float).tolist()
    own = RNG.binomial(1, [0.3, 0.5, 0.6], (50_000, 3)).astype(float)
    linear = partial(step, bb.LinTS(3, D), X[0], rewards, False)
    show("LinTS, 10 features", 5 / seconds(linear, repeats), "thousand steps/s")
    for name in ("beta_bernoulli", "gamma_poisson"):
        model = bb.load_model(name)

        def run(model: bb.RewardModel = model) -> object:
            bandit = bb.Bandit(3, model, bb.Thompson(), n_features=0)
            return bandit.play(np.empty((len(own), 0)), own)

        for asked in (False, True):
            bandit = bb.Bandit(3, model, bb.Thompson(), n_features=0)
            taken = seconds(partial(step, bandit, None, rewards, asked), repeats)
            show(name + ", with propensities" * asked, 5 / taken, "thousand steps/s")
        show(f"{name}, compiled loop", 50 / seconds(run, repeats), "thousand steps/s")


BALANCED = RNG.normal(size=(1000, 20)) + 0.4


def primal(n: int) -> np.ndarray:
    """Solve the problem of residual balancing by sequential quadratic programming, in (w, largest
    imbalance)."""
    x, most = BALANCED[:n], n ** (-2 / 3)
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


TREES = [  # rounds, features, arms, depth, cut points
    (1000, 10, 3, 2, 32), (5000, 10, 3, 2, 32), (5000, 10, 3, 4, 32), (1797, 64, 10, 2, 32),
    (1000, 10, 3, 2, None),
]  # fmt: skip


def systems(repeats: int) -> None:
    def residual(n: int) -> np.ndarray:
        return residual_weights(BALANCED[:n], np.zeros(20))

    arm = np.arange(3000) % 3
    bandit = bb.LinTS(3, 20)
    bandit.update(RNG.normal(size=(3000, 20)), arm, RNG.normal(size=3000), np.full(3000, 1 / 3))
    kernel = partial(bb.KernelBalance().of_arm, np.flatnonzero(arm == 0), bandit.history)
    gains = np.zeros((1000, 3))
    gains[np.arange(1000), arm[:1000]] = REWARD["logistic"][np.arange(1000), arm[:1000]] / 3.0
    gap = np.abs(residual(100) - primal(100)).max()
    print(f"weights of 100 rounds differ from those of the primal problem by {gap:.1g} at most")
    works = {
        "residual balance, n = 1,000, d = 20 (target 15 ms)": lambda: residual(1000),
        "residual balance, n = 100": lambda: residual(100),
        "  the same by SLSQP": lambda: primal(100),
        "kernel balance, an arm of 3": kernel,
        "ILTCB, t = 1,000, K = 3": lambda: solve(X[:1000], gains, 0.03, least_squares(X[:1000])),
    }
    for n, d, arms, depth, cuts in TREES:
        x, score = RNG.normal(size=(n, d)), RNG.normal(size=(n, arms))
        grow = partial(grown, x, score, np.zeros(n, np.int64), depth, 5, cuts)
        works[f"tree of {n} rounds, d = {d}, K = {arms}, depth {depth}, {cuts} cuts"] = grow
    for name, work in works.items():
        show(name, 1e3 * seconds(work, repeats), "ms")


def penalised() -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """Yield what finds the paths (100, 20, d): ours, and scikit-learn as precise as ours."""
    drawn = bb.environments.SparseLinear(sigma=0.1).sample(300, np.random.default_rng(0))
    weights = np.random.default_rng(1).uniform(1.0, 10.0, 300)
    rows = replicates.standardised(drawn.x, drawn.reward[:, 0], weights)
    counts = np.random.default_rng(2).multinomial(300, np.full(300, 1 / 300), size=100)
    counts = counts * rows.weight
    lams = replicates.penalties(replicates.moments(rows, rows.weight[None])[1][0], 300, 20, "lasso")

    def ours() -> np.ndarray:
        G, q, _ = replicates.moments(rows, counts)
        return replicates.along(G, q, lams, "lasso")

    def scikit_learn(tolerance: float) -> np.ndarray:
        G, q, centre = replicates.moments(rows, counts)
        paths = []
        for b in range(100):
            root = np.sqrt(counts[b] / counts[b].sum())[:, None]
            Z, r = root * (rows.Z - centre[b, :-1]), root[:, 0] * (rows.r - centre[b, -1])
            settings = {"precompute": G[b], "Xy": q[b], "tol": tolerance, "max_iter": 100_000}
            paths.append(lasso_path(Z, r, alphas=lams / 300, **settings)[1].T)
        return np.stack(paths)

    def miss(theta: np.ndarray) -> float:
        """Return by how much the worst subgradient misses 0."""
        G, q, _ = replicates.moments(rows, counts)
        return max(
            violation(q[b] - G[b] @ theta[b, i], theta[b, i], lams[i])
            for b, i in np.ndindex(100, 20)
        )

    off = miss(ours())
    tolerance = next(t for t in 10.0 ** -np.arange(3, 16) if miss(scikit_learn(t)) <= off)
    yield "bootstrap LASSO, 100 paths", ours
    yield f"  scikit-learn's, tol = {tolerance:g}", partial(scikit_learn, tolerance)


def paths(repeats: int) -> None:
    with warnings.catch_warnings(action="error"):  # a path that has not converged
        for name, work in penalised():
            show(name, 1e3 * seconds(work, repeats), "ms")


PARTS = {part.__name__: part for part in (gibbs, glm, rates, systems, paths)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--repeats", type=int, default=7)
    asked = parser.parse_args()
    with threadpool_limits(1):
        for name in asked.parts or PARTS:
            PARTS[name](asked.repeats)
