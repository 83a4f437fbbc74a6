"""A study: does a minimum probability cost much?

bayesbandit reproduce floors        # once a package offers it as an entry point, "floors = …:STUDY"
"""

from functools import partial

import bayesbandit as bb
from bayesbandit import evaluation, plots

FLOORS = (0.0, 0.01, 0.05)


def floored(arms, n_features, seed=0, floor=0.0):
    policy = bb.Thompson(min_probability=floor)
    return bb.Bandit(arms, bb.Ridge(), policy, n_features=n_features, seed=seed)


def figures(results):
    return {"regret": plots.regret_curves(results)}


STUDY = bb.extend.Study(
    title="Regret of Thompson sampling with a minimum probability γ",
    environments=[bb.environments.SparseLinear(d=12, q=6)],
    players={f"γ = {floor}": partial(floored, floor=floor) for floor in FLOORS},
    table=evaluation.regrets,
    figures=figures,
    horizon=2000,
    quick={"replications": 2, "horizon": 200},
)
