"""Honest forests (Wager and Athey 2018; Athey, Tibshirani and Wager 2019; paper, section 2.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from bayesbandit.checks import MAX_DRAWS, Array, integer, number, one_of
from bayesbandit.extend import ByFits, LocationScale, Schedule, savable, settings_repr
from bayesbandit.forms import Form, Numbers, State, prefixed, unprefixed
from bayesbandit.systems.forest.arm import ArmForest
from bayesbandit.systems.forest.trees import Growth, Trees, Weighing, joined, trees_form


@savable
@dataclass(frozen=True)
class Forest:
    """A model: a generalized random regression forest for each arm, fitted to the arm's rounds.

    trees, bag: the number of trees, and how many of them are in a bag. The trees of a bag share a
    random half of the arm's rounds.
    share: a tree's subsample of its bag's half, as a share of all the arm's rounds; ½ at most. One
    half of the subsample grows the tree, the other half fills its leaves.
    min_node: a node with at most this many growing rounds is not split.
    min_leaf: the fewest growing rounds on each side of a split. A leaf filled by fewer rounds takes
    the average of the nearest node above it that has enough.
    tried: how many features are tried at each split; None: min(d, ⌈√d + 20⌉), as in grf.
    weights: what a balance's weights w do. "sample_weight": they weight rounds when trees are
    grown and filled. "replicate": a round counts w times, rounded, in its half (paper, section
    2.3), so its copies never grow and fill the same tree. "covariate": 1/w, the propensity, is one
    more feature, and predictions average over it.
    variance_floor: the variance is at least variance_floor s² / n: about one in `variance_floor` of
    the arm's n rounds is near a context. s² is the variance of the arm's rewards or of all rewards,
    the larger. With 0, an arm whose first rewards are equal, or whose first trees have no splits,
    is locked out.
    refit_every: when an arm's forest is grown again. A float is a share by which its rounds must
    grow (.1 = 10 %), an int a number of its rounds.
    least: the rounds that an arm needs before its first forest.

    The paper has 200 trees and grf's defaults. We differ in four points. Trees are fully grown
    (grf's min_node=5 allows no split before 24 rounds), and the variance has a floor. A child may
    have any share of its parent's rounds (grf: at least 5 %), and bags have 4 trees (grf: 2).
    """

    __repr__ = settings_repr

    trees: int = 200
    bag: int = 4
    share: float = 0.5
    min_node: int = 1
    min_leaf: int = 1
    tried: int | None = None
    weights: Weighing = "sample_weight"
    variance_floor: float = 8.0
    refit_every: float | int = 0.1
    least: int = 10

    def __post_init__(self) -> None:
        integer(self.bag, "bag", least=2)
        if integer(self.trees, "trees", least=2 * self.bag, most=MAX_DRAWS) % self.bag:
            raise ValueError(f"trees must be in whole bags of {self.bag}; got {self.trees}")
        number(self.share, "share", above=0, most=0.5)
        integer(self.min_node, "min_node", least=1)
        integer(self.min_leaf, "min_leaf", least=1)
        if self.tried is not None:
            integer(self.tried, "tried", least=1)
        one_of(self.weights, "weights", ("sample_weight", "replicate", "covariate"))
        number(self.variance_floor, "variance_floor", least=0)
        Schedule(self.refit_every)
        integer(self.least, "least", least=4)

    def belief(
        self,
        n_arms: int,
        n_features: int,
        normalize: bool = False,
        seed: np.random.SeedSequence | None = None,
    ) -> ForestBelief:
        """Return the belief before any rounds; `normalize`: scale each arm's weights to mean 1."""
        return ForestBelief(self, n_arms, n_features, normalize, seed)

    def grown(self, x: Array, reward: Array, weight: Array, rng: np.random.Generator) -> ArmForest:
        """Return the forest fitted to rounds x (n, d), rewards and weights (n,)."""
        from sklearn import config_context  # takes a second to load

        n = len(x)
        level = float(np.average(reward, weights=weight))
        sd = float(np.sqrt(np.average((reward - level) ** 2, weights=weight)))
        sd = 0.0 if sd <= 1e-12 * float(np.abs(reward).max()) else sd  # all rewards are equal
        columns = np.column_stack([x, 1.0 / weight]) if self.weights == "covariate" else x
        columns = columns if columns.size else np.zeros((n, 1))  # scikit-learn needs a column
        p = columns.shape[1]
        growth = Growth(
            columns, (reward - level) / (sd or 1.0), weight, self.weights, self.min_node,
            self.min_leaf, min(p, self.tried or math.ceil(math.sqrt(p) + 20)),
        )  # fmt: skip
        size = max(2, math.floor(self.share * n))
        trees = []
        with config_context(skip_parameter_validation=True):
            for _ in range(self.trees // self.bag):
                half = rng.permutation(n)[: n // 2]
                for _ in range(self.bag):
                    grow, fill = np.array_split(rng.permutation(half)[:size], 2)
                    trees.append(growth.tree(grow, fill, int(rng.integers(2**31))))
        return ArmForest(self.bag, n, level, sd, joined(trees))


class ForestBelief(ByFits[ArmForest]):
    """A forest for each arm. Thompson sampling draws from N(mean, variance by little bags)."""

    def __init__(
        self, spec: Forest, n_arms: int, n_features: int, normalize: bool,
        seed: np.random.SeedSequence | None,
    ) -> None:  # fmt: skip
        super().__init__(n_arms, n_features, normalize, seed)
        self.spec = spec
        self.schedule = Schedule(spec.refit_every)
        self.least = spec.least
        self.blank = ArmForest(spec.bag)
        self.fits = (self.blank,) * n_arms

    # ---- mean rewards ----------------------------------------------------------------------------

    def predict(self, x: Array) -> LocationScale:
        moments = [forest.moments(x) for forest in self.fits]
        mean, variance = (np.stack(columns, axis=1) for columns in zip(*moments, strict=True))
        return LocationScale(mean, np.sqrt(np.maximum(variance, self._least_variance())))

    def _least_variance(self) -> Array:
        """Return the least variance of each arm's prediction (K,)."""
        n, level, sd = np.array([(f.n, f.level, f.sd) for f in self.fits], np.float64).T
        share = n / max(n.sum(), 1.0)
        spread = share @ (sd**2 + (level - share @ level) ** 2)
        return np.asarray(self.spec.variance_floor * np.maximum(spread, sd**2) / np.maximum(n, 1.0))

    def values(self, x: Array) -> Array:
        """Return the bags' means (n, K, S), from which the variance is computed."""
        out = np.full((len(x), len(self.n), self.spec.trees // self.spec.bag), np.nan)
        for k in np.flatnonzero(~self.new):
            out[:, k] = self.fits[k].bags(x)
        return out

    # ---- rewards ---------------------------------------------------------------------------------

    def fit(self, rounds: dict[str, Array], rng: np.random.Generator) -> ArmForest:
        weight = rounds["weight"]
        weight = weight / weight.mean() if self.normalize else weight
        return self.spec.grown(rounds["x"], rounds["reward"], weight, rng)

    def unfitted(self, rounds: dict[str, Array]) -> ArmForest:
        reward = rounds["reward"]
        level = float(np.average(reward, weights=rounds["weight"])) if reward.size else 0.0
        return replace(self.blank, level=level)

    # ---- all that is known -----------------------------------------------------------------------

    def state(self) -> State:
        """Return rounds and trees as arrays. The names of arm k's trees begin with `k.`."""
        level, sd = np.array([(forest.level, forest.sd) for forest in self.fits]).T
        state = super().state() | {"level": level, "sd": sd, "fitted": self.fitted}
        for k, forest in enumerate(self.fits):
            if forest.trees is not None:
                state |= prefixed(f"{k}.", vars(forest.trees))
        return state

    def form(self, state: State, total: int) -> Form:
        K = len(self.n)
        form = super().form(state, total)
        form["level"] = Numbers((K,))
        form["sd"] = Numbers((K,))
        form["fitted"] = Numbers((K,), 0, total, whole=True)
        for k in np.flatnonzero(state["fitted"]):
            trees = trees_form(unprefixed(state, f"{k}."), self.spec.trees, self.n_features)
            form |= prefixed(f"{k}.", trees)
        return form

    def restore(self, state: State) -> None:
        self.restore_rounds(state)
        numbers = (state[name].tolist() for name in ("fitted", "level", "sd"))
        self.fits = tuple(
            ArmForest(
                self.spec.bag, int(n), level, sd,
                Trees(**unprefixed(state, f"{k}.")) if n else None,
            )
            for k, (n, level, sd) in enumerate(zip(*numbers, strict=True))
        )  # fmt: skip
