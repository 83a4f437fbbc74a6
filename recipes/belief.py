"""A custom belief by draws: regression trees on bootstrap samples of an arm's rounds."""

from dataclasses import dataclass

import numpy as np
from sklearn.tree import DecisionTreeRegressor

import bayesbandit as bb


@bb.extend.savable
@dataclass(frozen=True)
class Trees:
    """`draws` trees for each arm, each fitted to one bootstrap sample."""

    draws: int = 20
    depth: int = 4

    def belief(self, n_arms, n_features, normalize, seed):
        return Bagged(self, n_arms, n_features, normalize, seed)


class Bagged(bb.extend.ByDraws):
    def __init__(self, settings, *shape):
        super().__init__(*shape)
        self.settings, self.trees = settings, {}

    def learn(self, arms):
        for k in arms:
            rngs = self.rng(k).spawn(self.settings.draws)
            self.trees[k] = [self.tree(self.rows(k), rng) for rng in rngs]

    def tree(self, rows, rng):
        if not (n := len(rows["reward"])):
            return None
        tree = DecisionTreeRegressor(
            max_depth=self.settings.depth, random_state=rng.integers(2**31)
        )
        i = rng.integers(n, size=n)
        return tree.fit(rows["x"][i], rows["reward"][i], rows["weight"][i])

    def values(self, x):
        none = [None] * self.settings.draws
        arms = [self.trees.get(k, none) for k in range(len(self.n))]
        unknown = np.full(len(x), np.nan)
        draws = [[unknown if t is None else t.predict(x) for t in trees] for trees in arms]
        return np.moveaxis(draws, 2, 0)
