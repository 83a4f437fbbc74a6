"""The presets, ways to play bandits, and everything there is to know about one."""

import pickle
from functools import partial

import numpy as np

import bayesbandit as bb
from bayesbandit.bandit.storage import saving

PRESETS = {
    "LinTS": bb.LinTS,
    "LinUCB": bb.LinUCB,
    "BLTS": bb.BLTS,
    "BLUCB": bb.BLUCB,
    "LinGreedy": bb.LinGreedy,
    "BLTS pooled": partial(bb.BLTS, propensity="pooled"),
}


class Constant:
    """Always the k-th arm; its `repr` says nothing."""

    def __init__(self, arms, n_features, seed=0, k=0):
        self.arms, self.n_features, self.k = arms, n_features, k

    def choose(self, x):
        return bb.Choice(self.arms[self.k], 1.0)

    def observe(self, choice, reward):
        pass

    def update(self, *logged):
        pass


def world(rng, T, d=3, K=3, noise=0.5):
    """Contexts (T, d) and every arm's reward (T, K) of a linear world."""
    x = rng.normal(size=(T, d))
    theta = rng.normal(size=(d, K))
    return x, x @ theta + rng.normal(size=K) + noise * rng.normal(size=(T, K))


def play(bandit, x, reward):
    """Round by round through the public API: numbers of the arms and their propensities."""
    arms, propensity = [], []
    for context, rewards in zip(x, reward, strict=True):
        decision = bandit.choose(context)
        arms.append(bandit.arms.index(decision.arm))
        propensity.append(decision.propensity)
        bandit.observe(decision, rewards[arms[-1]])
    return np.array(arms), np.array(propensity)


def anatomy(bandit):
    """A bandit's whole state as text and the bytes of its arrays: equal if it is so bit for bit."""
    meta, arrays = saving.state(bandit)
    return repr(meta), {name: (a.shape, a.tobytes()) for name, a in arrays.items()}


def public(bandit):
    """What a bandit's public face shows: counts, belief and history, every bit of them."""
    history = bandit.history
    columns = (history.x, history.arm, history.reward, history.propensity, history.weight)
    state = bandit.belief.state().values()
    belief = [v.tobytes() if isinstance(v, np.ndarray) else repr(v) for v in state]
    return (
        bandit.t, history.total, *belief, bandit.stream.tobytes(),
        *(repr(column.tolist()) for column in columns),
    )  # fmt: skip


def pickled(thing):
    """What another process gets of it."""
    return pickle.loads(pickle.dumps(thing))


def lent(thing):
    """What another process gets of it in memory that it may only read, as joblib lends arrays."""
    parts = []
    data = pickle.dumps(thing, protocol=5, buffer_callback=parts.append)
    return pickle.loads(data, buffers=[bytes(part.raw()) for part in parts])
