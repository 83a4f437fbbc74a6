"""Where a chain begins.

A sweep draws the block first, given positive variables of about 1, or, where a chain goes on, given
those of new rows: under noise with heavy tails, means then fit as many rewards as they can,
whatever the prior says, and those rewards hold them there. So a few sweeps are tried in the other
order, too: positive variables first.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayesbandit.inference.gibbs.generic import Problem
from bayesbandit.kernels.gibbs import monomials as kernel
from bayesbandit.kernels.gibbs import orbits

SWEEPS = 5
FAR = 50.0  # by so much, and ten sds of a log density, the other beginning must be better


def better(
    problem: Problem, state: Mapping[str, np.ndarray], seed: int = 0
) -> Mapping[str, np.ndarray]:
    """The state, or one that is reached from the same place in the other order, where its density
    is so much larger that a chain would not come from here to there."""
    theta, u = problem.flat(state)
    ends = []
    for positive_first in (False, True):
        held = kernel.MonomialState(theta - problem.layout.centre, problem.inside(u))
        rng = np.random.default_rng(seed)
        ends.append((_after(problem, held, positive_first, rng), held))
    (here, _), (there, held) = ends
    if np.isfinite(there) and there > here + FAR + 10.0 * np.sqrt(len(theta) + len(u)):
        return problem.named(held.delta + problem.layout.centre, held.u)
    return state


def _after(
    problem: Problem, held: kernel.MonomialState, positive_first: bool, rng: np.random.Generator
) -> float:
    """The log density of θ and log v after a few sweeps; −∞ if one fails."""
    terms, D = problem.layout.terms, problem.layout.dim
    work, none = kernel.workspace(terms, D), np.zeros(0, dtype=np.int64)
    if positive_first:
        kernel.weigh(terms, held.u, work.phi)
        kernel.evaluate(terms, held.delta, work)
        if kernel.draw_elements(terms, held.u, work, rng) >= 0:
            return -np.inf
    delta, logs = np.empty((1, D)), np.empty((1, 0))
    if orbits.sweep(terms, problem.moves, held, work, delta, logs, none, SWEEPS, rng) >= 0:
        return -np.inf
    theta = held.delta + problem.layout.centre
    return problem.layout.log_density(theta, held.u) + float(held.u.sum())
