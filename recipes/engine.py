"""A custom engine: independence Metropolis–Hastings around the mode.

Proposals are Student-t with the curvature at the mode, in the unconstrained space. They are
accepted so that the draws come from the posterior itself (Tierney, 1994, section 2.3.3).
"""

import numpy as np
from scipy import stats

from bayesbandit.inference.approximate import constrain, peak, set_rows
from bayesbandit.inference.base import COMPILE, Engine, Refusal
from bayesbandit.inference.draws import SampledDraws
from bayesbandit.inference.registry import register

DF, MOST = 5, 20  # degrees of freedom of the proposals; largest dimension


def match(built):
    """Return a sampler for a built PyMC model, or a refusal with its reason."""
    for v in built.free_RVs:
        if not str(v.dtype).startswith("float"):
            return Refusal("independence", f"{v.name!r} is discrete, and has no mode to climb")
    size = sum(np.size(v) for v in built.initial_point().values())
    if not 0 < size <= MOST:
        return Refusal("independence", f"{size} numbers to draw; good proposals need 1 to {MOST}")
    return Independence(built)


class Independence:
    def __init__(self, built):
        self.built = built
        with COMPILE:
            self.density = built.logp_dlogp_function(ravel_inputs=True)
            self.density.set_extra_values({})
            self.constrain = constrain(built)

    def sample(self, data, *, draws, chains, tune, seed, start):
        with COMPILE:
            set_rows(self.built, data)
            first = self.built.initial_point()
            mode, L = peak(self.density, np.concatenate([np.ravel(v) for v in first.values()]))
            proposal = stats.multivariate_t(mode, np.linalg.inv(L @ L.T), DF, allow_singular=True)
            kept = [self.chain(draws, proposal, mode, seed, c) for c in range(chains)]
        values = self.constrain(np.concatenate(kept))
        return SampledDraws({k: v.reshape(chains, draws, *v.shape[1:]) for k, v in values.items()})

    def chain(self, draws, proposal, mode, seed, number):
        """Return draws (draws, D); before them a tenth as many are discarded."""
        rng = np.random.default_rng([seed, number])
        tried = proposal.rvs(draws + draws // 10 + 1, random_state=rng).reshape(-1, len(mode))
        weight = [float(self.density(z)[0]) - proposal.logpdf(z) for z in tried]
        at, path = 0, []
        for i in range(len(tried)):
            if np.log(rng.random()) < weight[i] - weight[at]:
                at = i
            path.append(tried[at])
        return np.array(path[-draws:])


register(Engine("independence", match, "one evaluation of the density a draw, at a few variables"))
