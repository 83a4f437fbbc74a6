"""Regret of policy trees beside that of the bandit whose outcome model they use.

    uv run benchmarks/policy_tree.py [--replications 20] [--jobs 2]
    uv run benchmarks/policy_tree.py --growth

Designs of the paper (2,000 rounds) and the bundled data sets (once through), all bandits facing the
same rounds; the tree's regret, and by how much it is above LinTS's (of UCB: LinUCB's), paired, each
with its standard error over replications.
"""

import argparse
import time
from functools import partial

import numpy as np
import pandas as pd

import bayesbandit as bb
from bayesbandit.systems.policy_tree.tree import grown

DESIGNS = [
    bb.environments.NonLinear(2000),
    bb.environments.SyntheticExample("mis", horizon=2000, n_test=1),
    bb.environments.SparseLinear(d=12, q=6, horizon=2000),
    *map(bb.environments.bundled, bb.environments.BUNDLED),
]
BASE = {"LinTS": bb.LinTS, "LinUCB": bb.LinUCB, "BLTS": bb.BLTS}
TREES = {
    "PolicyTreeTS": (bb.systems.PolicyTreeTS, "LinTS"),
    "depth 1": (partial(bb.systems.PolicyTreeTS, depth=1), "LinTS"),
    "depth 4": (partial(bb.systems.PolicyTreeTS, depth=4), "LinTS"),
    "balanced": (partial(bb.systems.PolicyTreeTS, balanced=True), "LinTS"),
    "plain variance": (partial(bb.systems.PolicyTreeTS, prior_rows=0.0), "LinTS"),
    "classification": (partial(bb.systems.PolicyTreeTS, by="classification"), "LinTS"),
    "PolicyTreeUCB": (bb.systems.PolicyTreeUCB, "LinUCB"),
}


def table(replications: int, jobs: int) -> pd.DataFrame:
    """Regret ± SE at the end by environment and bandit, and the difference from the base ± SE."""
    players = BASE | {name: factory for name, (factory, _) in TREES.items()}
    runs = bb.Experiment(DESIGNS, players, replications=replications, points=2).run(jobs)
    last = runs.loc[runs.groupby(["environment", "bandit", "replication"])["t"].idxmax()]
    regret = last.pivot_table(index=["environment", "replication"], columns="bandit",
                              values="regret", sort=False, observed=True)  # fmt: skip
    rows = []
    for environment, here in regret.groupby(level=0, sort=False):
        for name in players:
            row = {"environment": environment, "bandit": name}
            row["regret"] = f"{here[name].mean():.1f} ± {here[name].sem():.1f}"
            if name in TREES:
                above = here[name] - here[TREES[name][1]]
                row["above its base"] = f"{above.mean():+.1f} ± {above.sem():.1f}"
            rows.append(row)
    return pd.DataFrame(rows).fillna("")


SIZES = [  # rounds, features, arms, depth, cut points
    (1000, 10, 3, 2, 32), (5000, 10, 3, 2, 32), (5000, 10, 3, 4, 32), (1797, 64, 10, 2, 32),
    (1000, 10, 3, 2, None),
]  # fmt: skip


def growth(repeats: int = 5) -> pd.DataFrame:
    """Milliseconds of CPU time for one tree of noise, the median of repeats."""
    rows, rng = [], np.random.default_rng(0)
    for n, d, K, depth, cuts in SIZES:
        x, score, taken = rng.normal(size=(n, d)), rng.normal(size=(n, K)), []
        grown(x[:50], score[:50], np.zeros(50, np.int64), depth, 5, cuts)
        for _ in range(repeats):
            start = time.process_time()
            grown(x, score, np.zeros(n, np.int64), depth, 5, cuts)
            taken.append(time.process_time() - start)
        row = {"rounds": n, "features": d, "arms": K, "depth": depth, "cuts": cuts or "all"}
        rows.append({**row, "ms": round(1000 * float(np.median(taken)), 1)})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--growth", action="store_true")
    asked = parser.parse_args()
    shown = growth() if asked.growth else table(asked.replications, asked.jobs)
    print(shown.to_string(index=False))
