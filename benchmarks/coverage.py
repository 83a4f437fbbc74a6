"""Coverage of a forest's intervals in the paper's designs (sections 4.1 and 4.2).

    uv run benchmarks/coverage.py [--design non-linear|sparse] [--replications N]

How often the 95 % intervals of a forest on uniformly assigned rounds hold the true mean reward of
an arm, at contexts of their own, beside econml's `RegressionForest` of as many trees.
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
    "ours, floor=0": partial(ours, spec=replace(FOREST, floor=0.0)),
    "econml": theirs,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--design", choices=DESIGNS, default="non-linear")
    parser.add_argument("--replications", type=int, default=10)
    asked = parser.parse_args()
    coverage(DESIGNS[asked.design], asked.replications)
