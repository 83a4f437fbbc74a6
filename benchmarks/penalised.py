"""Bootstrap LASSO: 100 weighted paths beside scikit-learn's, and runs of the sparse design.

    uv run benchmarks/penalised.py [--repeats N] [--replications R]

Paths: 100 replicates × 20 λ of n = 300 rounds of the sparse design (d = 102) under weights, CPU
time of one thread. scikit-learn's `lasso_path` is given the Gram matrices that are part of our
time, and the largest tolerance at which its subgradients are as near to 0 as ours; python-glmnet
takes part where it is installed. Runs: σ = .1, T = 1000, a refit every 20 rounds of an arm.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import median

import numpy as np
from rich.progress import track
from sklearn.linear_model import lasso_path
from threadpoolctl import threadpool_limits

import bayesbandit as bb
from bayesbandit.systems.bootstrap import replicates
from bayesbandit.systems.bootstrap.kernels import violation

DESIGN = bb.environments.SparseLinear(sigma=0.1)
N, B, L, T = 300, 100, 20, 1000
DRAWN = DESIGN.sample(N, np.random.default_rng(0))
ROWS = replicates.standardised(
    DRAWN.x, DRAWN.reward[:, 0], np.random.default_rng(1).uniform(1.0, 10.0, N)
)
COUNTS = np.random.default_rng(2).multinomial(N, np.full(N, 1 / N), size=B) * ROWS.weight
WHOLE = replicates.moments(ROWS, ROWS.weight[None])[1][0]
LAMS = replicates.penalties(WHOLE, N, L, "lasso")


def ours() -> np.ndarray:
    G, q, _ = replicates.moments(ROWS, COUNTS)
    return replicates.along(G, q, LAMS, "lasso")


def scikit_learn(tolerance: float) -> np.ndarray:
    G, q, centre = replicates.moments(ROWS, COUNTS)
    out = np.empty((B, L, q.shape[1]))
    for b in range(B):
        root = np.sqrt(COUNTS[b] / COUNTS[b].sum())[:, None]
        Z, r = root * (ROWS.Z - centre[b, :-1]), root[:, 0] * (ROWS.r - centre[b, -1])
        found = lasso_path(
            Z, r, alphas=LAMS / N, precompute=G[b], Xy=q[b], tol=tolerance, max_iter=100_000
        )
        out[b] = found[1].T
    return out


def glmnet() -> Callable[[], object] | None:
    try:
        from glmnet import ElasticNet
    except ImportError:
        return None

    def fit() -> None:
        for b in range(B):
            path = ElasticNet(alpha=1, n_splits=0, lambda_path=LAMS, standardize=False, tol=1e-10)
            path.fit(ROWS.Z, ROWS.r, sample_weight=COUNTS[b])

    return fit


def miss(theta: np.ndarray) -> float:
    """By how much the worst subgradient misses 0."""
    G, q, _ = replicates.moments(ROWS, COUNTS)
    return max(
        violation(q[b] - G[b] @ theta[b, i], theta[b, i], LAMS[i])
        for b in range(B)
        for i in range(L)
    )


def taken(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def paths(repeats: int) -> None:
    off = miss(ours())
    tolerance = next(t for t in 10.0 ** -np.arange(3, 16) if miss(scikit_learn(t)) <= off)
    print(f"subgradients within {off:.0e} of 0; scikit-learn's at tol={tolerance:g}")
    peers = {"scikit-learn": lambda: scikit_learn(tolerance), "python-glmnet": glmnet()}
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        for name, work in {"ours": ours, **peers}.items():
            if work is not None:
                found.setdefault(name, []).append(taken(work))
    for name, seconds in found.items():
        ratio = median(a / b for a, b in zip(seconds, found["ours"], strict=True))
        print(f"{name:14} {median(seconds):7.3f} s   {ratio:.2f} × ours")


def runs(replications: int) -> None:
    regret: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    for seed in track(range(replications), "runs of the sparse design"):
        drawn = DESIGN.sample(T, np.random.default_rng(seed))
        for preset in (bb.BootstrapLassoTS, bb.BootstrapRidgeTS):
            bandit = preset(3, DESIGN.n_features, refit_every=20, seed=seed)
            begin = time.process_time()
            arm, _ = bandit.play(drawn.x, drawn.reward, T)
            cpu.setdefault(preset.__name__, []).append(time.process_time() - begin)
            lost = drawn.mean.max(axis=1) - drawn.mean[np.arange(T), arm]
            regret.setdefault(preset.__name__, []).append(float(lost.sum()))
    for name, lost in regret.items():
        print(f"{name:18} regret {said(np.array(lost))}   {median(cpu[name]):.1f} s a run")
    print(
        "ridge − lasso", said(np.subtract(regret["BootstrapRidgeTS"], regret["BootstrapLassoTS"]))
    )


def said(values: np.ndarray) -> str:
    return f"{values.mean():.0f} ± {values.std(ddof=1) / len(values) ** 0.5:.0f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--replications", type=int, default=20)
    given = parser.parse_args()
    warnings.simplefilter("error")
    with threadpool_limits(1):
        paths(given.repeats)
        runs(given.replications)
