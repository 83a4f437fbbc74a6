"""Regret of policy trees beside that of the bandit whose outcome model they use.

    uv run benchmarks/policy_tree.py [--replications 20] [--jobs 2]

Designs of the paper (2,000 rounds) and the bundled data sets (once through), all bandits facing the
same rounds; the tree's regret, and by how much it is above LinTS's (of UCB: LinUCB's), paired, each
with its standard error over replications.
"""

import argparse
from functools import partial

import pandas as pd

import bayesbandit as bb

DESIGNS = [
    bb.environments.NonLinear(2000),
    bb.environments.SyntheticExample("mis", horizon=2000, n_test=1),
    bb.environments.SparseLinear(d=12, q=6, horizon=2000),
    *map(bb.environments.bundled, bb.environments.BUNDLED),
]
BASE = {"LinTS": bb.LinTS, "LinUCB": bb.LinUCB, "BLTS": bb.BLTS}
TREES = {
    "PolicyTreeTS": (bb.PolicyTreeTS, "LinTS"),
    "depth 1": (partial(bb.PolicyTreeTS, depth=1), "LinTS"),
    "depth 4": (partial(bb.PolicyTreeTS, depth=4), "LinTS"),
    "balanced": (partial(bb.PolicyTreeTS, balanced=True), "LinTS"),
    "plain variance": (partial(bb.PolicyTreeTS, prior_rows=0.0), "LinTS"),
    "classification": (partial(bb.PolicyTreeTS, by="classification"), "LinTS"),
    "PolicyTreeUCB": (bb.PolicyTreeUCB, "LinUCB"),
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    print(table(asked.replications, asked.jobs).to_string(index=False))
