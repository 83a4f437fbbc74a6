"""Policy-tree smoothing (paper, section 4.3): one rule for each of few regions of contexts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np

from bayesbandit import Belief, BeliefModel, LocationScale, Ridge, Rounds, Schedule, savable
from bayesbandit.checks import LARGEST, finite, integer, number, one_of, shown
from bayesbandit.systems.policy_tree.leaves import Leaves
from bayesbandit.systems.policy_tree.tree import Tree, grown

Array = np.ndarray
TREE, INNER = "tree.", "inner."  # begin the names of their arrays in a file
DEEPEST = 16


@savable
@dataclass(frozen=True)
class PolicyTree:
    """A model of policy-tree smoothing: with inverse propensities as weights, and Thompson sampling
    or UCB, it is the paper's system.

    Round i, of arm a_i and weight w_i = 1/p̂, gives every arm an efficient score
    Γ_i(a) = μ̂_a(x_i) + 1{a = a_i} w_i (r_i − μ̂_a(x_i)). A tree parts the contexts; in a leaf, an
    arm's mean reward is N(mean of its scores, their variance / n), which is what a policy is asked
    with (`Leaves.moments`). Scores go to their leaves round by round, the tree is grown anew on a
    schedule, on all rounds. One leaf is all there is at first.

    base: the outcome model μ̂: `Ridge()`, or another that has `belief`. A round's μ̂ is that of the
        rounds before it, and stays, so that scores have no bias from a model that knew the reward;
        an arm that came later has no score there.
    depth: levels of splits. by: "value", the tree whose best arms have the largest sum of scores,
        exactly so up to depth 2 (`tree.grown`); "classification", the paper's words: a
        classification tree of the arms that were played, weighed by |Γ_i(a_i)|, which takes an arm
        that does badly for one that is wanted. Leaves are filled alike.
    cuts: quantiles of each feature at which it may be split, at most; None: between all values.
    least: rounds of a leaf, at least.
    refit_every: when the tree is grown anew: each time rounds have grown by a share (a float, .25 =
        25 %), or every m rounds (an int).
    prior_rows: ν, how many rounds' noise the variance of an arm that a leaf has not played is worth
        at first; 0: the plain variance of the scores, by which such an arm may be certain.
    balanced: whether the outcome model, too, learns by the weights.

    Where the paper is silent: a leaf's moments are those of all its rounds' scores, not of the
    rounds that played the arm; the same rounds grow the tree and fill its leaves, so that the best
    arm's mean is a little too large just after; the propensity is that of the decision, exact, and
    clipped by the balance. Weights of a balance that are no inverse propensities are taken as if
    they were. When it pays: docs/policy_tree.md.
    """

    compares_arms: ClassVar[bool] = True  # it has nothing to say of a row of features alone

    base: BeliefModel = field(default_factory=Ridge)
    depth: int = 2
    by: Literal["value", "classification"] = "value"
    cuts: int | None = 32
    least: int = 5
    refit_every: int | float = 0.25
    prior_rows: float = 2.0
    balanced: bool = False

    def __post_init__(self) -> None:
        model = self.base
        if isinstance(model, type) or not isinstance(model, BeliefModel):
            raise TypeError(
                "base must be Ridge(), Bootstrap(…), Declared(model) or have a method "
                f"belief(n_arms, n_features, normalize, seed); got {shown(model)}"
            )
        integer(self.depth, "depth", least=1)
        number(self.depth, "depth", most=DEEPEST)
        one_of(self.by, "by", ("value", "classification"))
        if self.cuts is not None:
            integer(self.cuts, "cuts, where it is not None,", least=1)
        integer(self.least, "least", least=1)
        Schedule(self.refit_every)
        number(self.prior_rows, "prior_rows", least=0, largest=LARGEST)
        one_of(self.balanced, "balanced", (True, False))

    def refuses_weights(self, n_arms: int, n_features: int) -> str:
        """Why the outcome model cannot learn by weights, where it has to."""
        refuses = getattr(self.base, "refuses_weights", None) if self.balanced else None
        return str(refuses(n_arms, n_features)) if refuses else ""

    def nbytes(self, n_arms: int, n_features: int) -> int:
        """Return the bytes that the outcome model takes before any data."""
        told = getattr(self.base, "nbytes", None)
        return int(told(n_arms, n_features)) if told else 0

    def belief(
        self,
        n_arms: int,
        n_features: int,
        normalize: bool = False,
        seed: np.random.SeedSequence | None = None,
    ) -> TreeBelief:
        """The belief before any rounds. seed: of the outcome model."""
        if normalize:
            raise ValueError("scores are weighed by inverse propensities, not of mean 1")
        seed = np.random.SeedSequence(0) if seed is None else seed
        inner = self.base.belief(n_arms, n_features, False, seed)
        if not isinstance(inner, Belief):
            raise TypeError(f"{shown(self.base)}.belief(…) must give a Belief; got {shown(inner)}")
        return TreeBelief(self, inner, n_arms, n_features)


class TreeBelief(Belief):
    """A tree, its leaves, and the outcome model `inner`.

    log: rounds as they were learned, contexts and, behind them, the means of then (d + K columns),
    NaN of arms that came later; arm −1 of arms that are gone, whose rounds still show the others'
    scores. fitted: rounds that the tree was grown on.
    """

    def __init__(self, spec: PolicyTree, inner: Belief, n_arms: int, n_features: int) -> None:
        self.spec, self.inner = spec, inner
        self.n_features, self.n = n_features, np.zeros(n_arms)
        self.log = Rounds(n_features + n_arms)
        self.tree, self.fitted = Tree.root(), 0
        self.leaves = Leaves(1, n_arms)

    def __repr__(self) -> str:
        leaves = self.tree.n_leaves
        return f"TreeBelief({leaves} leaves, {len(self.n)} arms, {self.n_features} features)"

    def __str__(self) -> str:
        return self.text()

    def text(self, arms: Sequence[Any] | None = None, features: Sequence[Any] | None = None) -> str:
        """The tree, one line a node, with each leaf's arms from the best down: mean ± sd (plays).
        arms, features: their names."""
        names = range(len(self.n)) if arms is None else arms
        mean, sd = self.of_leaves()
        plays, lines = self.leaves.plays, []
        for leaf in range(self.tree.n_leaves):
            parts = [
                f"{names[k]} {mean[leaf, k]:.3g} ± {sd[leaf, k]:.2g} ({int(plays[leaf, k])})"
                for k in np.argsort(-mean[leaf], kind="stable")
            ]
            lines.append(", ".join(parts))
        return self.tree.text(lines, features)

    # ---- mean rewards ----------------------------------------------------------------------------

    def of_leaves(self) -> tuple[Array, Array]:
        """Means and standard deviations by leaf and arm (L, K); ∞ of a new arm."""
        mean, variance = self.leaves.moments(self.spec.prior_rows)
        return mean, np.where(self.new, np.inf, np.sqrt(variance))

    def predict(self, x: Array) -> LocationScale:
        (mean, sd), leaf = self.of_leaves(), self.tree.leaf(x)
        return LocationScale(mean[leaf], sd[leaf])

    # ---- rewards ---------------------------------------------------------------------------------

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Rounds x (n, d), arm numbers (n,), rewards (n,), inverse propensities (n,; None: 1), one
        by one."""
        weight = np.ones(len(x)) if weight is None else weight
        own = weight if self.spec.balanced else np.ones(len(x))
        schedule = Schedule(self.spec.refit_every)
        leaf, due = self.tree.leaf(x), schedule.next_due(self.fitted)
        for i in range(len(x)):
            one = slice(i, i + 1)
            means = finite(self.inner.predict(x[one]).mean, "the outcome model's means")
            self.log.append(np.hstack([x[one], means]), arm[one], reward[one], weight[one])
            self.leaves.learn(leaf[one], means, arm[one], reward[one], weight[one])
            self.inner.update(x[one], arm[one], reward[one], own[one])
            self.n = self.n + np.bincount(arm[one], minlength=len(self.n))
            if len(self.log) >= due:
                self._grow()
                leaf, due = self.tree.leaf(x), schedule.next_due(self.fitted)

    def _rounds(self) -> tuple[Array, Array, Array, Array, Array]:
        """What the log has: x (n, d), means (n, K), and arm, reward, weight (n,)."""
        rows = self.log.of()
        x, means = np.split(rows["x"], [self.n_features], axis=1)
        x, means = np.ascontiguousarray(x), np.ascontiguousarray(means)
        return x, means, rows["arm"], rows["reward"], rows["weight"]

    def _grow(self) -> None:
        """The tree of all rounds. An arm's score in a round before it came is what is now its
        mean."""
        x, means, arm, reward, weight = self._rounds()
        score = means.copy()
        if np.isnan(score).any():
            score = np.where(np.isnan(score), self.inner.predict(x).mean, score)
        played = np.flatnonzero(arm >= 0)
        at = played, arm[played]
        score[at] += weight[played] * (reward[played] - score[at])
        spec, self.fitted = self.spec, len(x)
        self.tree = grown(x, score, arm, spec.depth, spec.least, spec.cuts, spec.by)
        self._fill()

    def _fill(self) -> None:
        """The leaves, from all rounds."""
        x, means, arm, reward, weight = self._rounds()
        self.leaves = Leaves(self.tree.n_leaves, len(self.n))
        self.leaves.learn(self.tree.leaf(x), means, arm, reward, weight)

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        """The tree stays until it is due."""
        due, known = list(due), self.log.of()["x"]
        self._relog(known, np.maximum(arm, -1), reward, weight)
        if self.spec.balanced:
            self.inner.reweigh(due, x, arm, reward, weight)
        self._fill()

    def _relog(self, x: Array, arm: Array, reward: Array, weight: Array) -> None:
        """Rounds, with contexts and means x (n, d + K), in the place of those that there were."""
        self.log = Rounds(x.shape[1])
        self.log.append(x, arm, reward, weight)
        self.n = np.bincount(arm[arm >= 0], minlength=x.shape[1] - self.n_features).astype(float)

    def add_arm(self) -> None:
        x, means, arm, reward, weight = self._rounds()
        self.inner.add_arm()
        self._relog(np.column_stack([x, means, np.full(len(x), np.nan)]), arm, reward, weight)
        self._fill()

    def remove_arm(self, k: int) -> None:
        x, means, arm, reward, weight = self._rounds()
        self.inner.remove_arm(k)
        arm = np.where(arm == k, -1, arm - (arm > k))
        self._relog(np.column_stack([x, np.delete(means, k, axis=1)]), arm, reward, weight)
        self._fill()

    # ---- all that is known -----------------------------------------------------------------------

    def posterior(self, k: int, rows: dict[str, Array]) -> Any:
        raise TypeError(
            "a policy tree has no posterior: belief.text() shows what its leaves know, and "
            "belief.inner is its outcome model"
        )

    def reseed(self, seed: np.random.SeedSequence) -> None:
        self.inner.reseed(seed)

    def fork(self) -> Self:
        twin = copy(self)
        twin.log, twin.inner, twin.leaves = self.log.fork(), self.inner.fork(), self.leaves.fork()
        return twin

    def state(self) -> dict[str, Any]:
        """The rounds, the tree and the outcome model; leaves are filled anew."""
        tree = {TREE + name: array for name, array in self.tree.state().items()}
        inner = {INNER + name: value for name, value in self.inner.state().items()}
        return {"log": self.log.state(), "fitted": self.fitted, **tree, **inner}

    def restore(self, state: dict[str, Any]) -> None:
        rows, d, K = state["log"], self.n_features, len(self.n)
        x, means, arm, told = np.split(rows, [d, d + K, d + K + 1], axis=1)
        whole = rows.shape[1] == d + K + 3 and not np.isinf(means).any()
        whole = whole and bool((np.abs(np.hstack([x, told])) <= LARGEST).all())
        if not (whole and np.isin(arm, np.arange(-1, K)).all() and (told[:, 1] > 0.0).all()):
            raise ValueError(f"rounds of {d} features and {K} arms must be finite; got {rows}")
        fitted = integer(state["fitted"], "fitted", most=len(rows))
        self.inner.restore(below(state, INNER))
        self.tree, self.fitted = Tree.restored(below(state, TREE), d), fitted
        self._relog(rows[:, : d + K], arm[:, 0].astype(np.int64), told[:, 0], told[:, 1])
        if not np.array_equal(self.n, self.inner.n):
            raise ValueError(f"the outcome model has {self.inner.n} rounds, not {self.n}")
        self._fill()

    def verify(self, total: int) -> None:
        self.inner.verify(total)


def below(state: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the entries whose keys begin so, by the rest of the key."""
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
