"""A study of one's own: does a floor under the propensities cost much?

bayesbandit reproduce floors        # once the package that holds it has the entry point
"""

from functools import partial

import bayesbandit as bb
from bayesbandit import evaluation, plots

TITLE = "Regret of Thompson sampling under a floor γ"
QUICK = {"replications": 2, "horizon": 200}
FLOORS = (0.0, 0.01, 0.05)


def floored(arms, n_features, seed=0, floor=0.0):
    policy = bb.Thompson(min_probability=floor)
    return bb.Bandit(arms, bb.Ridge(), policy, n_features=n_features, seed=seed)


def experiment(replications=20, horizon=2000, seed=0):
    players = {f"γ = {floor}": partial(floored, floor=floor) for floor in FLOORS}
    world = bb.environments.SparseLinear(d=12, q=6)
    return bb.Experiment([world], players, horizon, replications, seed)


def table(results):
    return evaluation.summary(results)


def beside(table):
    """What stands beside the paper's numbers, of which there are none here."""
    return table[["bandit", "normalised_regret", "normalised_regret_se"]]


def figures(results):
    return {"regret": plots.regret_curves(results)}
