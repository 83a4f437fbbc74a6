"""A small world in which every noun plays."""

import numpy as np

import bayesbandit as bb
from tests import declarations as declared

D, ARMS = 3, ("a", "b", "c")
THETA = np.array([[1.0, 0.0, -0.5], [0.0, 1.0, 0.0], [-1.0, 0.3, 0.5]])


def world(n, seed=0):
    """Contexts (n, D) and every arm's reward (n, K)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, D))
    return x, x @ THETA.T + 0.3 * rng.normal(size=(n, len(ARMS)))


def bandit(model=None, policy=None, balance=None, **settings):
    model, policy = model or bb.Ridge(), policy or bb.Thompson()
    return declared.bandit(ARMS, model, policy, balance, n_features=D, seed=3, **settings)


def played(made, n, seed=0):
    """The bandit after n rounds, one by one."""
    x, reward = world(n, seed)
    for context, rewards in zip(x, reward, strict=True):
        decision = made.choose(context)
        made.observe(decision, float(rewards[made.arms.index(decision.arm)]))
    return made


def decisions(made, n=12, seed=9):
    """What a bandit decides next: names and probabilities."""
    decision = made.choose(world(n, seed)[0])
    return decision.arm.tolist(), decision.probabilities


def same(one, other):
    """Whether two bandits go on alike, bit for bit."""
    for _ in range(2):
        a, b = decisions(one), decisions(other)
        assert a[0] == b[0]
        np.testing.assert_array_equal(a[1], b[1])
        played(one, 3, seed=5)
        played(other, 3, seed=5)
