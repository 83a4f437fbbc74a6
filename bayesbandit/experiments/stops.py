"""A bandit looked at on its way: after so many rounds, and so many more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.checks import Seed, integer
from bayesbandit.environments.base import Environment, Sample


def stops(
    factory: Callable[..., Bandit],
    environment: Environment,
    sample: Sample,
    rounds: Sequence[int],
    seed: Seed,
) -> Iterator[Bandit]:
    """Yield a bandit, warm start included, after each of these numbers of rounds of the sample.

    rounds: they grow. The bandit is to be asked between stops, not played.
    """
    T, ends = len(sample.x), [0, *(integer(t, "each of the rounds", least=1) for t in rounds)]
    if ends != sorted(set(ends)) or ends[-1] > T:
        raise ValueError(f"rounds must grow, and be at most {T}; got {list(rounds)}")
    bandit = factory(environment.arms, environment.n_features, seed=seed)
    if len(sample.warm_arm):
        names = [environment.arms[k] for k in sample.warm_arm]
        bandit.update(sample.warm_x, names, sample.warm_reward, sample.warm_propensity)
    for start, end in pairwise(ends):
        bandit.play(sample.x[start:end], sample.reward[start:end], every=end - start)
        yield bandit
