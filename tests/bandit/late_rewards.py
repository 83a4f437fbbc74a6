"""Rounds of bandits that forget, and the beliefs of a moment."""

import numpy as np

import bayesbandit as bb
from tests import declarations as declared

D, ARMS = 3, ("a", "b", "c")


def bandit_of(model, **more):
    """A bandit of three arms that chooses each of them now and then."""
    policy = bb.Thompson(min_probability=0.05)
    return declared.bandit(ARMS, model, policy, n_features=D, seed=3, **more)


def now(bandit):
    """The belief of this moment."""
    belief = bandit.belief.fork()
    belief.advance(bandit.t + bandit.ahead)
    return belief


def late_rounds(bandit, rng, T, drawn, most=1):
    """Play T times: rewards come late, in any order, with `forget` and `update` in between.

    Yield the tick of each decision with None, and that of each row that is learned with its
    context, arm, and reward; at last the tick of the end.
    """
    tick, waiting = 0.0, []
    for _ in range(T):
        if rng.random() < 0.2:
            n = int(rng.integers(1, most + 1))
            x, k, reward = rng.normal(size=(n, D)), rng.integers(0, 3, n), drawn(rng, n)
            bandit.update(x, np.array(ARMS)[k], reward)
            for row in zip(x, k, reward, strict=True):
                tick += 1.0
                yield tick, row
            continue
        x = rng.normal(size=D)
        tick += 1.0
        yield tick, None
        decision = bandit.choose(x)
        waiting.append((tick, decision, x))
        if rng.random() < 0.15:
            steps = int(rng.integers(1, 9))
            bandit.forget(steps)
            tick += steps
        while waiting and rng.random() < 0.5:
            at, decision, x = waiting.pop(rng.integers(len(waiting)))
            [reward] = drawn(rng, 1)
            bandit.observe(decision, float(reward))
            yield at, (x, ARMS.index(decision.arm), reward)
    yield tick, None


def ages(rounds):
    """Contexts, arms, rewards and ages of the rows that were learned."""
    ticks, rows = zip(*rounds, strict=True)
    learned = [(*row, ticks[-1] - at) for at, row in zip(ticks, rows, strict=True) if row]
    return tuple(np.array(column) for column in zip(*learned, strict=True))
