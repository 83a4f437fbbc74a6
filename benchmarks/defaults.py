"""How the settings that `bayesbandit compare` plays by default were chosen.

    uv run benchmarks/defaults.py FOLDER [--jobs N] [--out DIR]

plays a grid of exploration α and floor under σ² on every classification data set of FOLDER (Parquet
files with a manifest) and on the four bundled ones, one shuffle of at most 20,000 rows each, and
prints for each setting the mean normalised regret and its paired difference from the best setting
of the same algorithm, ± the standard error over data sets.
"""

import argparse
from functools import partial

import numpy as np
import pandas as pd

import bayesbandit as bb
from bayesbandit import environments, evaluation

ALPHAS = (0.1, 0.25, 0.5, 1.0)
FLOORS = (1e-6, 1e-3, 1e-2, 3e-2)
ALGORITHMS = {"LinTS": bb.LinTS, "LinUCB": bb.LinUCB, "BLTS": bb.BLTS, "BLUCB": bb.BLUCB}


def grid() -> dict[str, partial[bb.Bandit]]:
    """Every algorithm at every α and floor, and greedy ridge regression, which has neither.

    BLUCB, whose logistic regressions take most of the time, at the floor that is best for the rest.
    """
    settings = {
        f"{name}(alpha={alpha:g}, floor={floor:g})": partial(make, alpha=alpha, floor=floor)
        for name, make in ALGORITHMS.items()
        for floor in (FLOORS if name != "BLUCB" else [0.01])
        for alpha in ALPHAS
    }
    return {"LinGreedy()": partial(bb.LinGreedy), **settings}


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Settings by algorithm, the best first."""
    regret = evaluation.summary(results).pivot(
        index="environment", columns="bandit", values="normalised_regret"
    )
    rows = []
    for name in ["LinGreedy", *ALGORITHMS]:
        own = regret[[column for column in regret if column.startswith(f"{name}(")]]
        best = own[own.mean().idxmin()]
        for setting in own.mean().sort_values().index:
            gap = own[setting] - best
            rows.append(
                {
                    "setting": setting,
                    "normalised regret": own[setting].mean(),
                    "above the best": gap.mean(),
                    "± SE": gap.std(ddof=1) / np.sqrt(len(gap)),
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", default="runs/defaults")
    args = parser.parse_args()
    sets = environments.folder(args.folder)
    names = {environment.name for environment in sets}
    sets += [environments.bundled(name) for name in environments.BUNDLED if name not in names]
    experiment = bb.Experiment(sets, grid(), horizon=20_000, replications=1, points=4)
    print(evaluation.markdown(table(experiment.run(args.jobs, args.out))))


if __name__ == "__main__":
    main()
