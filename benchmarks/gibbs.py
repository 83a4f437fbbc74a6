"""Sweeps of the Gibbs sampler beside the LAPACK factorisations that they would otherwise cost.

    uv run benchmarks/gibbs.py [--repeats N]

n = 1000 rows as sufficient statistics, unless the table says otherwise; CPU time on one thread,
everybody measured once in each repeat, one after the other. Shown are medians over repeats, and
for the ratio to dpotrf, which is taken within a repeat, the smallest and the largest too. dpotrf is
called from a compiled loop; the copy that gives it a fresh triangle is timed alone and subtracted.

"Through the engine" is `plan(model, d).sample(...)` of models of the gallery: everything from rows
to draws of the declared variables. A warm call continues one chain by 100 sweeps; its overhead is
what a call of one sweep takes more than that sweep.
"""

import argparse
import ctypes
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from numba import njit
from numba.extending import get_cython_function_address
from threadpoolctl import threadpool_limits

from bayesbandit.declaring.priors import Prior
from bayesbandit.inference.plan import plan
from bayesbandit.kernels.algebra import cholesky, dense
from bayesbandit.kernels.gibbs import mixture as gibbs
from bayesbandit.model import load_model

dpotrf = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(
    get_cython_function_address("scipy.linalg.cython_lapack", "dpotrf")
)
Loop = Callable[[int], object]
PRIORS = {
    "LASSO, λ and σ known": {"kind": gibbs.LAPLACE},
    "LASSO, λ known": {"kind": gibbs.LAPLACE, "noise": (1.0, 1.0)},
    "LASSO, λ² and σ² drawn": {"kind": gibbs.LAPLACE, "gamma": (1.0, 1.0), "noise": (1.0, 1.0)},
    "horseshoe": {"kind": gibbs.HORSESHOE, "half_cauchy": 1.0, "noise": (1.0, 1.0)},
}


@njit
def copy_triangle(A, B):
    for i in range(A.shape[0]):
        a, b = A[i], B[i]
        for j in range(i, a.size):
            b[j] = a[j]


@njit
def copies(A, B, times):
    for _ in range(times):
        copy_triangle(A, B)


@njit
def lapack(A, B, times):
    """The lower triangle of a Fortran array is the upper one of ours, and quicker for OpenBLAS."""
    n, info = np.array([A.shape[0]], np.int32), np.zeros(1, np.int32)
    lower = np.array([ord("L")], np.int8)
    for _ in range(times):
        copy_triangle(A, B)
        dpotrf(lower.ctypes, n.ctypes, B.ctypes, n.ctypes, info.ctypes)


@njit
def numpy_in_numba(A, times):
    total = 0.0
    for _ in range(times):
        total += np.linalg.cholesky(A)[0, 0]
    return total


@njit
def axpy(A, B, times):
    for _ in range(times):
        copy_triangle(A, B)
        dense.factor(B)


@njit
def tiles(A, shift, W, times):
    for _ in range(times):
        cholesky.factor(A, shift, W)


def sampler(x: np.ndarray, r: np.ndarray, options: dict, from_rows: bool) -> Loop:
    """So many sweeps of a warm chain, from rows or statistics."""
    rng = np.random.default_rng(1)
    data = gibbs.rows(x, r) if from_rows else gibbs.statistics(x.T @ x, x.T @ r, r @ r, len(r))
    prior = gibbs.declare(x.shape[1], **options)
    d, one = x.shape[1], np.ones(1)
    state = gibbs.ScaleState(np.zeros(d), np.ones(d), np.ones(d), one.copy(), one.copy(), one)
    gibbs.sample(data, prior, state, rng, 1)
    return lambda times: gibbs.sample(data, prior, state, rng, 1, thin=times)


def sparse(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """n standard-normal rows, five coefficients of 2."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    return x, 2.0 * x[:, :5].sum(axis=1) + rng.normal(size=n)


def measure(contestants: dict[str, Loop], repeats: int, budget: float) -> dict[str, list[float]]:
    """Microseconds a time, by contestant and repeat."""
    times, spent = {}, {name: [] for name in contestants}
    for name, loop in contestants.items():
        loop(1)
        began = time.process_time()
        loop(5)
        times[name] = max(5, int(5 * budget / (time.process_time() - began + 1e-6)))
    for _ in range(repeats):
        for name, loop in contestants.items():
            began = time.process_time()
            loop(times[name])
            spent[name].append((time.process_time() - began) / times[name] * 1e6)
    return spent


def against_lapack(d: int, repeats: int) -> None:
    x, r = sparse(1000, d)
    A, B, W = x.T @ x + np.eye(d), np.empty((d, d)), np.zeros(cholesky.room(d))
    data, shift = gibbs.statistics(x.T @ x, x.T @ r, r @ r, 1000), np.ones(len(W))
    contestants: dict[str, Loop] = {
        "copy": lambda times: copies(A, B, times),
        "dpotrf": lambda times: lapack(A, B, times),
        "np.linalg.cholesky in numba": lambda times: numpy_in_numba(A, times),
        "kernels.dense.factor": lambda times: axpy(A, B, times),
        "kernels.cholesky.factor": lambda times: tiles(data.A, shift, W, times),
    } | {f"sweep: {name}": sampler(x, r, options, False) for name, options in PRIORS.items()}
    spent = measure(contestants, repeats, 0.05)
    copy = spent.pop("copy")
    spent["dpotrf"] = [a - b for a, b in zip(spent["dpotrf"], copy, strict=True)]
    for name, us in spent.items():
        ratio = [a / b for a, b in zip(us, spent["dpotrf"], strict=True)]
        print(
            f"| {d} | {name} | {median(us):.2f} | {1e6 / median(us):,.0f} "
            f"| {median(ratio):.2f} ({min(ratio):.2f}–{max(ratio):.2f}) |"
        )


def few_rows(n: int, d: int, repeats: int) -> None:
    x, r = sparse(n, d)
    options = PRIORS["horseshoe"]
    both = {"rows": sampler(x, r, options, True), "statistics": sampler(x, r, options, False)}
    spent = {name: median(us) for name, us in measure(both, repeats, 0.05).items()}
    chosen = "rows" if gibbs.prefers_rows(n, d) else "statistics"
    print(f"| {n} | {d} | {spent['rows']:.0f} | {spent['statistics']:.0f} | {chosen} |")


def calls(name: str, n: int, d: int, draws: int, warm: bool = False) -> Loop:
    """So many calls of the engine for one chain."""
    ready, (x, r) = plan(load_model(name).with_priors(intercept=0), d), sparse(n, d)
    data = {"x": x, "reward": r}
    start = ready.sample(data, 100, 1, 0).state
    tune, start = (0, start) if warm else (100, None)

    def loop(times: int) -> None:
        for seed in range(times):
            ready.sample(data, draws, 1, seed, tune=tune, start=start)

    return loop


def through_the_engine(d: int, repeats: int) -> None:
    x, r = sparse(1000, d)
    both = {
        "engine": calls("bayesian_lasso", 1000, d, 4000),
        "kernel": sampler(x, r, PRIORS["LASSO, λ known"], False),
    }
    us = {name: median(us) for name, us in measure(both, repeats, 0.1).items()}
    engine, kernel = 4100e6 / us["engine"], 1e6 / us["kernel"]
    print(f"| {d} | {engine:,.0f} | {kernel:,.0f} | {engine / kernel:.2f} |")


def warm_calls(name: str, n: int, d: int, repeats: int) -> None:
    lengths = {str(k): calls(name, n, d, k, warm=True) for k in (1, 100, 1100)}
    one, many, most = (median(us) for us in measure(lengths, repeats, 0.05).values())
    sweep = (most - many) / 1000
    print(f"| {name} | {n} | {many:.0f} | {sweep:.1f} | {one - sweep:.0f} |")


def swept(name: str, d: int, arms: int | None, repeats: int, **priors: Prior) -> None:
    """A model without a kernel of its own, n = 1000, by the generic sweep."""
    ready = plan(load_model(name).with_priors(intercept=0, **priors), d, arms)
    x, r = sparse(1000, d)
    data = {"x": x, "reward": r} | ({"arm": np.arange(1000) % arms} if arms else {})
    start = ready.sample(data, 1, 1, 0, tune=0).state

    def calls(draws: int) -> Loop:
        return lambda times: [
            ready.sample(data, draws, 1, seed, tune=0, start=start) for seed in range(times)
        ]

    spent = measure({"few": calls(1), "many": calls(201)}, repeats, 0.05)
    few, many = median(spent["few"]), median(spent["many"])
    print(f"| {name} | {ready.method.dim} | {2e8 / (many - few):,.0f} | {few / 1000:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    threadpool_limits(1)
    print("| d | what | µs | a second | times dpotrf |\n|---|---|---|---|---|")
    for d in (10, 20, 50, 100, 102, 200):
        against_lapack(d, repeats)
    print("\nHorseshoe, n < d\n")
    print("| n | d | µs a sweep from rows | from statistics | chosen |\n|---|---|---|---|---|")
    for n, d in ((20, 50), (40, 100), (50, 100), (80, 200), (50, 1000), (400, 1000)):
        few_rows(n, d, repeats)
    print("\nThrough the engine, `bayesian_lasso`, one chain of 4100 sweeps\n")
    print("| d | sweeps a second | of the kernel alone | share |\n|---|---|---|---|")
    for d in (50, 100):
        through_the_engine(d, repeats)
    print("\nWarm calls of 100 sweeps through the engine, d = 102\n")
    print("| model | n | µs a call | µs a sweep | µs of overhead |\n|---|---|---|---|---|")
    for name in ("bayesian_lasso", "horseshoe"):
        for n in (1, 41, 100, 400, 1000):
            warm_calls(name, n, 102, repeats)
    print("\nGeneric sweeps, d = 100\n")
    print("| model | coefficients | sweeps a second | ms a call of one |\n|---|---|---|---|")
    ig = Prior("InverseGamma", alpha=2, beta=2)
    swept("hierarchical_ridge", 100, 3, repeats, sigma2=ig, tau2=ig)
    swept("student_t_mixture", 100, None, repeats)
    swept("ridge_known_noise", 100, None, repeats, sigma=Prior("HalfNormal", sigma=1))


if __name__ == "__main__":
    main()
