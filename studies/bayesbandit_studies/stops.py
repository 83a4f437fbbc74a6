"""A bandit that plays a sample and can be inspected after given numbers of rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import bayesbandit as bb
from bayesbandit.checks import Seed, integer
from bayesbandit.environments.base import Environment, Sample
from bayesbandit_studies import Factory


def stops(
    factory: Factory,
    environment: Environment,
    sample: Sample,
    rounds: Sequence[int],
    seed: Seed,
) -> Iterator[bb.Bandit]:
    """Yield the same bandit after each of these numbers of rounds of the sample.

    rounds: increasing numbers; the warm start comes before them and does not count. Between stops
    only ask the bandit for predictions: do not play it.
    """
    T = len(sample.x)
    ends = [0, *(integer(t, "each of the rounds", least=1) for t in rounds)]
    if ends != sorted(set(ends)) or ends[-1] > T:
        raise ValueError(f"rounds must grow, and be at most {T}; got {list(rounds)}")
    bandit = factory(environment.arms, environment.n_features, seed=seed)
    if len(sample.warm_arm):
        names = [environment.arms[k] for k in sample.warm_arm]
        bandit.update(sample.warm_x, names, sample.warm_reward, sample.warm_propensity)
    for start, end in pairwise(ends):
        bandit.play(sample.x[start:end], sample.reward[start:end], every=end - start)
        yield bandit
