"""A custom player: an algorithm that is not built from a model, a policy and a balance."""

import numpy as np

import bayesbandit as bb


class Neighbours:
    """Nearest neighbours: for each arm, the mean reward of its k rounds that are nearest to x.

    The arm with the largest mean is chosen. At first each arm is chosen twice; later one round in
    twenty takes any arm, all equally likely.
    """

    def __init__(self, arms, n_features, seed=0, k=5):
        self.arms = tuple(range(arms)) if isinstance(arms, int) else tuple(arms)
        self.n_features, self.k, self.rng = n_features, k, np.random.default_rng(seed)
        self.x, self.rewards = ([[] for _ in self.arms] for _ in range(2))

    def __repr__(self):
        return f"Neighbours(k={self.k})"

    def choose(self, x):
        K, best = len(self.arms), self.greedy(x[None])[0]
        few = [a for a, seen in zip(self.arms, self.rewards, strict=True) if len(seen) < 2]
        p = np.array([a in few for a in self.arms]) / max(len(few), 1)
        if not few:
            p = 0.05 / K + 0.95 * np.array([a == best for a in self.arms])
        a = self.rng.choice(K, p=p)
        self.x[a].append(x)
        return bb.extend.Choice(self.arms[a], p[a])

    def observe(self, choice, reward):
        self.rewards[self.arms.index(choice.arm)].append(reward)

    def greedy(self, x):
        rounds = zip(self.x, self.rewards, strict=True)
        means = [self.near(x, seen[: len(r)], np.array(r)) for seen, r in rounds]
        return np.array(self.arms)[np.argmax(means, axis=0)]

    def near(self, x, seen, rewards):
        if not seen:
            return np.zeros(len(x))
        distance = ((x[:, None] - np.array(seen)) ** 2).sum(axis=2)
        return rewards[np.argsort(distance, axis=1)[:, : self.k]].mean(axis=1)
