"""Policy-tree smoothing (paper, section 4.3): a shallow tree with one rule in each leaf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np

from bayesbandit import Ridge
from bayesbandit.checks import (
    MAX_ABS_VALUE,
    Array,
    finite,
    integer,
    number,
    one_of,
    shown,
)
from bayesbandit.extend import (
    Belief,
    LocationScale,
    Rounds,
    Schedule,
    savable,
    settings_repr,
)
from bayesbandit.forms import Form, State, Whole, nodes_form, prefixed, unprefixed
from bayesbandit.systems.policy_tree.leaves import Leaves
from bayesbandit.systems.policy_tree.tree import Tree, grown

TREE_PREFIX, INNER_PREFIX = "tree.", "inner."  # prefixes of array names in a saved state
MAX_DEPTH = 16


@savable
@dataclass(frozen=True)
class PolicyTree:
    """A model of policy-tree smoothing.

    With inverse propensities as weights, and the policy `Thompson` or `UCB`, it is the paper's
    system. Round i, with arm a_i and weight w_i = 1/p̂, gives every arm an efficient score
    Γ_i(a) = μ̂_a(x_i) + 1{a = a_i} w_i (r_i − μ̂_a(x_i)). A tree splits the contexts. In a leaf, an
    arm's mean reward is N(mean of its scores, their variance / n); see `Leaves.moments`. Each
    round's scores go to its leaf at once. The tree is grown again from all rounds on a schedule. At
    first it has one leaf.

    base: the outcome model μ̂, a `Ridge`. A round's μ̂ is predicted from earlier rounds and then
        kept, so its own reward does not bias its scores. An arm that was added later has no score
        in that round.
        It must not forget, as the tree does not.
    depth: levels of splits.
    by: "value" finds the tree whose leaves' best arms have the largest sum of scores. It is exact
        up to depth 2 (see `tree.grown`). "classification" is the paper's wording: a classification
        tree of the arms that were played, weighted by |Γ_i(a_i)|. It can mistake an arm with bad
        rewards for a good one. The leaves' values are computed in the same way for both.
    cuts: the most quantiles of each feature at which it may be split; None: between all values.
    least: the fewest rounds in a leaf.
    refit_every: when the tree is grown again. A float is a share by which the rounds must grow
        (.25 = 25 %), an int a number of rounds.
    prior_rows: ν in `Leaves.moments`, which adds the noise variance of ν rounds where a leaf has
        not played an arm. With 0 the variance of such an arm's scores can be 0.
    balanced: whether the outcome model also uses the weights.

    Our choices where the paper does not say: a leaf's moments use the scores of all its rounds, not
    only of those that played the arm. The same rounds grow the tree and fill its leaves, so the
    best arm's mean is slightly too large after growing. The propensity is exact, from the moment of
    decision, and clipped by the balance. All weights are treated as inverse propensities, also
    those of other balances. docs/policy_tree.md shows when it pays.
    """

    __repr__ = settings_repr

    compares_arms: ClassVar[bool] = True  # it compares the arms at a context; `Shared` refuses it

    base: Ridge = field(default_factory=Ridge)
    depth: int = 2
    by: Literal["value", "classification"] = "value"
    cuts: int | None = 32
    least: int = 5
    refit_every: int | float = 0.25
    prior_rows: float = 2.0
    balanced: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.base, Ridge):
            raise TypeError(f"base must be Ridge(…); got {shown(self.base)}")
        integer(self.depth, "depth", least=1)
        number(self.depth, "depth", most=MAX_DEPTH)
        one_of(self.by, "by", ("value", "classification"))
        if self.cuts is not None:
            integer(self.cuts, "cuts, where it is not None,", least=1)
        integer(self.least, "least", least=1)
        Schedule(self.refit_every)
        number(self.prior_rows, "prior_rows", least=0, largest=MAX_ABS_VALUE)
        one_of(self.balanced, "balanced", (True, False))

    def belief(
        self,
        n_arms: int,
        n_features: int,
        normalize: bool = False,
        seed: np.random.SeedSequence | None = None,
    ) -> TreeBelief:
        """Return the belief before any rounds. The seed is not used.

        Raise ValueError with `normalize`.
        """
        if normalize:
            raise ValueError("scores are weighted by inverse propensities, not of mean 1")
        inner = self.base.belief(n_arms, n_features)
        if inner.clock is not None:
            raise ValueError(f"a tree does not forget, and its base does: {shown(self.base)}")
        return TreeBelief(self, inner, n_arms, n_features)


class TreeBelief(Belief):
    """A tree, its leaves, and the outcome model `inner`.

    log: the rounds. A row has the context and then the outcome model's means at that time (d + K
        columns), NaN for arms added later. A removed arm is −1; its rounds still give the other
        arms' scores.
    fitted: how many rounds the tree was grown on.
    """

    n: Array

    def __init__(self, spec: PolicyTree, inner: Any, n_arms: int, n_features: int) -> None:
        self.spec = spec
        self.inner = inner
        self.n_features = n_features
        self.n = np.zeros(n_arms)
        self.log = Rounds(n_features + n_arms)
        self.tree = Tree.root()
        self.fitted = 0
        self.leaves = Leaves(1, n_arms)

    def __repr__(self) -> str:
        leaves = self.tree.n_leaves
        return f"TreeBelief({leaves} leaves, {len(self.n)} arms, {self.n_features} features)"

    def __str__(self) -> str:
        return self.text()

    def text(self, arms: Sequence[Any] | None = None, features: Sequence[Any] | None = None) -> str:
        """Return the tree as text, one line for each node.

        A leaf lists its arms, the best first: mean ± sd (plays). arms, features: their names.
        """
        names = range(len(self.n)) if arms is None else arms
        mean, sd = self.of_leaves()
        plays = self.leaves.plays
        lines = []
        for leaf in range(self.tree.n_leaves):
            parts = [
                f"{names[k]} {mean[leaf, k]:.3g} ± {sd[leaf, k]:.2g} ({int(plays[leaf, k])})"
                for k in np.argsort(-mean[leaf], kind="stable")
            ]
            lines.append(", ".join(parts))
        return self.tree.text(lines, features)

    # ---- mean rewards ----------------------------------------------------------------------------

    def of_leaves(self) -> tuple[Array, Array]:
        """Return means and standard deviations by leaf and arm (L, K); a new arm's sd is ∞."""
        mean, variance = self.leaves.moments(self.spec.prior_rows)
        return mean, np.where(self.new, np.inf, np.sqrt(variance))

    def predict(self, x: Array) -> LocationScale:
        mean, sd = self.of_leaves()
        leaf = self.tree.leaf(x)
        return LocationScale(mean[leaf], sd[leaf])

    # ---- rewards ---------------------------------------------------------------------------------

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Learn from rounds one by one: contexts x (n, d), and arm numbers and rewards (n,).

        weight: inverse propensities (n,); None: 1.
        """
        weight = np.ones(len(x)) if weight is None else weight
        inner_weight = weight if self.spec.balanced else np.ones(len(x))
        leaf = self.tree.leaf(x)
        due = Schedule(self.spec.refit_every).next_due(self.fitted)
        for i in range(len(x)):
            row = slice(i, i + 1)
            means = finite(self.inner.predict(x[row]).mean, "the outcome model's means")
            rest = arm[row], reward[row], weight[row]
            self.log.append(np.hstack([x[row], means]), *rest)
            self.leaves.learn(leaf[row], means, *rest)
            self.inner.update(x[row], arm[row], reward[row], inner_weight[row])
            self.n = self.n + np.bincount(arm[row], minlength=len(self.n))
            if len(self.log) >= due:
                self._grow()
                due = Schedule(self.spec.refit_every).next_due(self.fitted)
                leaf = self.tree.leaf(x)

    def _rounds(self) -> tuple[Array, Array, Array, Array, Array]:
        """Return the log: x (n, d), means (n, K), and arm, reward, weight (n,)."""
        rows = self.log.of()
        x, means = np.split(rows["x"], [self.n_features], axis=1)
        x = np.ascontiguousarray(x)
        means = np.ascontiguousarray(means)
        return x, means, rows["arm"], rows["reward"], rows["weight"]

    def _grow(self) -> None:
        """Grow the tree on all rounds.

        In a round from before an arm was added, the arm's score is its current predicted mean.
        """
        x, means, arm, reward, weight = self._rounds()
        score = means.copy()
        if np.isnan(score).any():
            score = np.where(np.isnan(score), self.inner.predict(x).mean, score)
        played = np.flatnonzero(arm >= 0)
        cell = played, arm[played]
        score[cell] += weight[played] * (reward[played] - score[cell])
        spec = self.spec
        self.fitted = len(x)
        self.tree = grown(x, score, arm, spec.depth, spec.least, spec.cuts, spec.by)
        self._fill()

    def _fill(self) -> None:
        """Compute the leaves' moments from all rounds."""
        x, means, arm, reward, weight = self._rounds()
        self.leaves = Leaves(self.tree.n_leaves, len(self.n))
        self.leaves.learn(self.tree.leaf(x), means, arm, reward, weight)

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        """Reweight the rounds. The tree does not change until its next refit."""
        due = list(due)
        logged = self.log.of()["x"]
        self._relog(logged, np.maximum(arm, -1), reward, weight)
        if self.spec.balanced:
            self.inner.reweigh(due, x, arm, reward, weight)
        self._fill()

    def _relog(self, x: Array, arm: Array, reward: Array, weight: Array) -> None:
        """Replace all rounds; x (n, d + K) has contexts and means."""
        self.log = Rounds(x.shape[1])
        self.log.append(x, arm, reward, weight)
        self._count(x.shape[1] - self.n_features)

    def _count(self, n_arms: int) -> None:
        arm = self.log.arm
        self.n = np.bincount(arm[arm >= 0], minlength=n_arms).astype(float)

    def add_arm(self) -> None:
        x, means, arm, reward, weight = self._rounds()
        self.inner.add_arm()
        wider = np.column_stack([x, means, np.full(len(x), np.nan)])
        self._relog(wider, arm, reward, weight)
        self._fill()

    def remove_arm(self, k: int) -> None:
        x, means, arm, reward, weight = self._rounds()
        self.inner.remove_arm(k)
        arm = np.where(arm == k, -1, arm - (arm > k))
        rest = np.column_stack([x, np.delete(means, k, axis=1)])
        self._relog(rest, arm, reward, weight)
        self._fill()

    # ---- state -----------------------------------------------------------------------------------

    def fork(self) -> Self:
        twin = copy(self)
        twin.log = self.log.fork()
        twin.inner = self.inner.fork()
        twin.leaves = deepcopy(self.leaves)
        return twin

    def state(self) -> State:
        """Return the rounds, the tree and the outcome model. `restore` computes the leaves."""
        parts = prefixed(TREE_PREFIX, vars(self.tree)), prefixed(INNER_PREFIX, self.inner.state())
        return {"log": self.log.state(), "fitted": self.fitted, **parts[0], **parts[1]}

    def form(self, state: State, total: int) -> Form:
        # Contexts, and the outcome model's means of each arm.
        log = self.log.form(len(self.n), least=-1, nan=True)
        form: dict[Any, Any] = {"log": log, "fitted": Whole(0, total)}
        tree = unprefixed(state, TREE_PREFIX)
        M = len(tree["feature"])
        nodes = nodes_form(tree, self.n_features - 1, lambda: np.full(M, M))
        form |= prefixed(TREE_PREFIX, nodes)
        inner = self.inner.form(unprefixed(state, INNER_PREFIX), total)
        return form | prefixed(INNER_PREFIX, inner)

    def restore(self, state: State) -> None:
        self.log.restore(state["log"])
        self._count(len(self.n))
        self.inner.restore(unprefixed(state, INNER_PREFIX))
        self.tree = Tree(**unprefixed(state, TREE_PREFIX))
        self.fitted = state["fitted"]
        self._fill()
