"""A custom engine: independence Metropolis–Hastings around the mode.

Proposals are Student-t with the curvature at the mode, in the unconstrained space. They are
accepted so that the draws come from the posterior itself (Tierney, 1994, section 2.3.3).
"""

import numpy as np
from scipy import stats

import bayesbandit as bb

DF, MOST = 5, 20  # degrees of freedom of the proposals; largest dimension


def fits(target):
    """Return why a model is not for this engine; "" where it is."""
    few = f"{target.dim} numbers to draw; good proposals need at most {MOST}"
    return few if target.dim > MOST else ""


@bb.engines.sampler("independence", "one evaluation of the density a draw", fits=fits)
def independence(target, run):
    """Return draws (chains, draws, D)."""
    normal = target.laplace()
    proposal = stats.multivariate_t(normal.mean, normal.covariance, DF, allow_singular=True)
    return [chain(target, proposal, run.draws, run.rng(c)) for c in range(run.chains)]


def chain(target, proposal, draws, rng):
    """Return draws (draws, D), after a tenth as many that are thrown away."""
    tried = proposal.rvs(draws + draws // 10 + 1, random_state=rng).reshape(-1, target.dim)
    weight = [target.log_density(z) - proposal.logpdf(z) for z in tried]
    at, path = 0, []
    for i, w in enumerate(weight):
        at = i if np.log(rng.random()) < w - weight[at] else at
        path.append(at)
    return tried[path[-draws:]]
