"""Coverage of the intervals of forests and policy trees in two of the paper's designs (4.1, 4.2).

    uv run benchmarks/coverage.py [--design non-linear|sparse] [--replications N] [--trees]

How often the 95 % intervals of a forest on uniformly assigned rounds hold the true mean reward of
an arm, at contexts of their own, beside econml's `RegressionForest` of as many trees. With --trees,
those of a policy tree: the mean reward at the context, and its average over the context's leaf,
which is what a leaf estimates.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

import bayesbandit as bb
from bayesbandit.systems.forest.belief import Forest

DESIGNS: dict[str, bb.environments.Environment] = {
    "non-linear": bb.environments.NonLinear(),
    "sparse": bb.environments.SparseLinear(d=12, q=6),  # linear in twelve features
}
ASKED = 2000  # contexts at which intervals are looked at
FOREST = Forest(refit_every=1)

# Of rows x (n, d), rewards (n,), contexts that are asked about (m, d) and a seed: means, sds (m,).
Predictor = Callable[[np.ndarray, np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray]]


def coverage(world: bb.environments.Environment, replications: int) -> None:
    """Of each arm, by n: error and sd of the mean (root mean squares), share of intervals right."""
    print(f"95 % intervals at {ASKED} contexts, {replications} replications (standard errors)")
    print("arm    n  forest             error     sd  right")
    for arm in range(len(world.arms)):
        for n in (250, 1000):
            for name, make in PREDICTORS.items():
                found = [_covered(world, make, arm, n, seed) for seed in range(replications)]
                error, sd, right = np.transpose(found)
                print(f"{arm:3} {n:4}  {name:15} {_rms(error):8.3f} {_rms(sd):6.3f}", end="  ")
                print(f"{right.mean():.3f} ± {right.std(ddof=1) / np.sqrt(replications):.3f}")


def trees(world: bb.environments.Environment, replications: int) -> None:
    """Of each arm, by n: share of a policy tree's intervals that hold either truth."""
    print(f"95 % intervals at {ASKED} contexts, {replications} replications ± standard errors")
    print("   n  arm  the leaf's average  the context's own")
    for n in (250, 1000):
        found = np.array([_covered_by_leaves(world, n, seed) for seed in range(replications)])
        means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(replications)
        for arm in range(len(world.arms)):
            cells = [f"{means[arm, i]:.3f} ± {errors[arm, i]:.3f}" for i in (0, 1)]
            print(f"{n:4} {arm:4}  {cells[0]:20}{cells[1]}", flush=True)


def _covered_by_leaves(world: bb.environments.Environment, n: int, seed: int) -> np.ndarray:
    """Return shares (K, 2) of intervals with the leaf's average and with the context's own mean."""
    rng, K = np.random.default_rng(seed), len(world.arms)
    drawn = world.sample(n + ASKED, rng)
    arm, rounds, asked = rng.integers(K, size=n), np.arange(n), drawn.x[n:]
    belief = bb.systems.PolicyTree().belief(K, drawn.x.shape[1])
    belief.update(drawn.x[:n], arm, drawn.reward[rounds, arm], np.full(n, float(K)))
    found, truth, leaf = belief.predict(asked), drawn.mean[n:], belief.tree.leaf(asked)
    by_leaf = {one: truth[leaf == one].mean(axis=0) for one in np.unique(leaf).tolist()}
    average = np.stack([by_leaf[one] for one in leaf.tolist()])
    inside = [np.abs(found.mean - mean) < 1.96 * found.sd for mean in (average, truth)]
    return np.stack([right.mean(axis=0) for right in inside], axis=1)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _covered(
    world: bb.environments.Environment, make: Predictor, arm: int, n: int, seed: int
) -> tuple[float, float, float]:
    drawn = world.sample(n + ASKED, np.random.default_rng(seed))
    mean, sd = make(drawn.x[:n], drawn.reward[:n, arm], drawn.x[n:], seed)
    error = np.abs(mean - drawn.mean[n:, arm])
    return _rms(error), _rms(sd), float(np.mean(error < 1.96 * sd))


def ours(
    x: np.ndarray, reward: np.ndarray, asked: np.ndarray, seed: int, spec: Forest = FOREST
) -> tuple[np.ndarray, np.ndarray]:
    belief = spec.belief(1, x.shape[1], seed=np.random.SeedSequence(seed))
    belief.update(x, np.zeros(len(x), np.int64), reward)
    found = belief.predict(asked)
    mean, sd = found.mean, found.sd
    return mean[:, 0], sd[:, 0]


def theirs(
    x: np.ndarray, reward: np.ndarray, asked: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    from econml.grf import RegressionForest

    forest = RegressionForest(n_estimators=200, n_jobs=1, random_state=seed).fit(x, reward)
    mean, variance = forest.predict_and_var(asked)
    return mean[:, 0], np.sqrt(variance[:, 0, 0])


PREDICTORS: dict[str, Predictor] = {
    "ours": ours,
    "ours, variance_floor=0": partial(ours, spec=replace(FOREST, variance_floor=0.0)),
    "econml": theirs,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--design", choices=DESIGNS, default="non-linear")
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--trees", action="store_true")
    asked = parser.parse_args()
    (trees if asked.trees else coverage)(DESIGNS[asked.design], asked.replications)
