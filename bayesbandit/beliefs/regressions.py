"""Regressions of rewards: each arm's, or one of all arms, updated one row at a time.

A reward is z'φ + offset and noise, of regressors z that are a `FeatureMap` of the context: the
context itself for `Ridge`, those of the variables of a declared model in other coordinates. All
else is the same: φ has a Gaussian posterior, or a Student-t, in closed form. With a link, rewards
become rows of such a regression by Newton's method.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular

from bayesbandit.beliefs import ridge_arms
from bayesbandit.beliefs.base import Belief, CompiledArms
from bayesbandit.beliefs.half_lives import HalfLives
from bayesbandit.beliefs.linear_posterior import LinearPosterior, WeightedRows
from bayesbandit.beliefs.memory import FOR_EVER, Memory
from bayesbandit.beliefs.ridge_arms import RidgeArms, new_arms, with_prior
from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.checks import Array, integer
from bayesbandit.forms import Arrays, Form, Records, State
from bayesbandit.kernels import arm as arm_numbers
from bayesbandit.kernels import scoring
from bayesbandit.kernels.arm import HEAD_FIELDS
from bayesbandit.kernels.linear import pool_noise
from bayesbandit.kernels.root import MAX_VARIANCE
from bayesbandit.kernels.rounds import describe_many
from bayesbandit.kernels.row_layout import UCB, row_type
from bayesbandit.predictions import (
    Joint,
    JointRows,
    LocationScale,
    Prediction,
    product,
    scaled,
    symmetric_root,
)
from bayesbandit.runtime.compiling import interpreted
from bayesbandit.runtime.one_thread import one_thread

if TYPE_CHECKING:
    from bayesbandit.beliefs.glm.link import Link
    from bayesbandit.beliefs.linear import Ridge
    from bayesbandit.inference.plan import Plan

MAX_NUMBERS = 2**24  # numbers of the rows that are mapped at once


class FeatureMap:
    """Contexts as they are: the regressors of `Ridge`, which adds a constant if there is one.

    model: the settings of the regressions. width: how many features there are, without the
    constant. plain: whether they are the contexts, so that kernels may learn and decide. plan: that
    of a declared model. known: the mean m (D,) and the precision Λ (D, D) of φ ~ N(m, σ²Λ⁻¹), if
    the penalty λ does not say it.
    """

    plain: bool = True
    plan: Plan | None = None
    known: tuple[Array, Array] | None = None

    def __init__(self, model: Ridge, width: int) -> None:
        self.model = model
        self.width = width

    @property
    def columns(self) -> int:
        """The number D of regressors, with the constant if there is one."""
        return self.width + bool(self.model.intercept)

    def of_arms(self, n_arms: int) -> FeatureMap:
        """Return the map of a model that arms share, for another number of them."""
        return self

    def __call__(self, x: Array, arm: Array | None = None) -> tuple[Array, Array]:
        """Return z (n, D) and offsets (n,) of rows.

        If arms share the model and `arm` is None, return those of all arms: (n, K, D) and (n, K).
        """
        z = np.column_stack([x, np.ones(len(x))]) if self.model.intercept else x
        return z, np.zeros(len(x))

    def observed(self, x: Array, arm: Array, reward: Array, weight: Array) -> tuple[Array, Array]:
        """Return rows z (n, D) and rewards (n,) of the regression of φ."""
        return x, reward

    def posterior(self, of: Regressions, k: int, rows: Arrays | None) -> Any:
        """Return the posterior that users see. rows: its rounds in the history, by role."""
        return of.linear_posterior(k, None if of.clock else rows)

    def coordinates(self) -> list[Array]:
        """Return what the rows depend on, beside the contexts."""
        return []


class Regressions(HalfLives):
    """The exact posterior of regressions, by one half-life or several (`HalfLives`).

    features: what z and the offset of a context are. joint: whether one regression is of all arms,
    whose mean rewards then depend on each other. link: of a generalised linear model.
    rounds: all rounds, where a change of the arms or of the mode needs a refit from them. n (K,):
    observations of each arm.
    """

    n_at = HEAD_FIELDS.index("n")
    clock_at = HEAD_FIELDS.index("clock")

    def __init__(
        self, features: FeatureMap, n_arms: int, n_features: int, normalize: bool = False, *,
        memory: Memory = FOR_EVER, joint: bool = False, link: Link | None = None,
    ) -> None:  # fmt: skip
        least = 0 if features.columns else 1
        self.n_features = integer(n_features, "n_features", least=least)
        self.normalize = normalize
        self.joint = joint
        self.link = link
        self.features = features
        self.plain = features.plain
        self._begin_from_prior(memory, 1 if joint else n_arms)
        self.rounds: Rounds | None = None
        if joint or link is not None:
            self.rounds = Rounds(n_features, timed=self.clock is not None)
            self.counts = np.zeros(n_arms)

    def _begin_from_prior(self, memory: Memory, n_regressions: int) -> None:
        """Set the prior of so many regressions, without any data."""
        features = self.features
        rule = partial(features.model.settings, features.width, self.normalize)
        self.rules = np.array(list(map(rule, memory.each())))
        if features.known is not None:
            self.rules = np.array([with_prior(rule, *features.known) for rule in self.rules])
        self._begin(memory, [new_arms(n_regressions, rule) for rule in self.rules])

    def __repr__(self) -> str:
        of = self.features.model if self.plan is None else self.plan.model.name
        return f"Regressions({of}, n_arms={len(self.n)}, n_features={self.n_features})"

    # ---- parts of the arrays ---------------------------------------------------------------------

    @property
    def ridges(self) -> RidgeArms:
        """The regressions that decide."""
        return RidgeArms(self.arms, self.settings)

    @property
    def each(self) -> list[RidgeArms]:
        """The regressions by each half-life. They use `blocks` without a copy."""
        return list(map(RidgeArms, self.blocks, self.rules))

    @property
    def settings(self) -> Array:
        return self.rules[self.log_weight.argmax()]

    @property
    def head(self) -> Any:
        """The heads of the arms that decide, by name (`kernels/arm.py`): a view."""
        return arm_numbers.heads(self.arms)

    @property
    def sigma2(self) -> Array:
        """Noise variance σ² of each arm (K,); ∞ where it is estimated and there are no data."""
        return self.head["sigma2"]

    @property
    def lam(self) -> Array:
        """The penalty λ of each arm (K,)."""
        return self.head["lam"]

    @property
    def n(self) -> Array:
        return super().n if self.rounds is None else self.counts

    @property
    def new(self) -> Array:
        return super().new if self.rounds is None else self.counts == 0

    @property
    def n_columns(self) -> int:
        return self.features.columns if self.plain else self.n_features

    @property
    def plan(self) -> Plan | None:
        """The plan of a declared model."""
        return self.features.plan

    # ---- kernels ---------------------------------------------------------------------------------

    @property
    def kernel(self) -> CompiledArms | None:
        """The kernels; None where Python computes regressors, or rounds are kept for refits."""
        return self if self.plain and self.rounds is None else None

    # ---- mean rewards ----------------------------------------------------------------------------

    def predict(self, x: Array) -> Prediction:
        z, offset = self.features(x)
        if self.joint:
            with one_thread():
                posterior = self.linear_posterior(0)
                # ZΣZ' of K mean rewards, singular if arms are equal
                root = symmetric_root(z @ posterior.spread @ z.transpose(0, 2, 1))
            return self._linked(Joint(z @ posterior.location + offset, root, posterior.df))
        K = len(self.n)
        D = z.shape[1]
        kind = row_type(D, K)
        rows = np.empty((len(x), kind.itemsize // 8))
        log = rows.view(kind)[:, 0]
        log["x"] = z
        describe_many(rows, self.arms, np.ones(K, dtype=np.bool_), self.settings, UCB)
        mean = log["mean"] if self.plain else log["mean"] + offset[:, None]
        return self._linked(LocationScale(mean, log["scale"], np.abs(log["last"])))

    def predict_together(self, x: Array) -> Prediction:
        posterior = self.linear_posterior(0)
        if self.plain:
            x = x if posterior.origin is None else x - posterior.origin
            return JointRows(x, posterior.near, root_of(posterior.near_spread), posterior.df)
        n, m, d = x.shape
        z, offset = self.features(x.reshape(-1, d))
        mean = product(z, posterior.location[:, None])[:, 0] + offset
        root = product(z, root_of(posterior.spread))
        return self._linked(Joint(mean.reshape(n, m), root.reshape(n, m, -1), posterior.df))

    def _linked(self, eta: LocationScale | Joint) -> Prediction:
        """Return the prediction of mean rewards from that of the linear predictor."""
        return eta if self.link is None else self.link.prediction(eta)

    # ---- rewards ---------------------------------------------------------------------------------

    def update(
        self, x: Array, arm: Array, reward: Array, weight: Array | None = None,
        tick: Array | None = None,
    ) -> None:  # fmt: skip
        tick = self.ticks(len(x), tick)
        weight = np.ones(len(x)) if weight is None else weight
        if self.link is not None:
            if tick is not None:
                self.advance(tick.max(initial=-np.inf))
            self.link.learn(self, tick, x, arm, reward, weight)
            return
        if self.joint and self.memory.drift and tick is not None:
            tick = np.maximum(tick, self.latest)  # late rounds are learned as of now, and kept so
        self._learn_rows(tick, x, arm, reward, weight)
        if self.rounds is not None:
            self.keep(tick, x, arm, reward, weight)

    def _learn_rows(
        self, tick: Array | None, x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        """Update the regressions, with as many rows at once as fit into memory."""
        step = max(1, len(x) if self.plain else MAX_NUMBERS // max(1, self.features.width))
        for part in (slice(i, i + step) for i in range(0, len(x), step)):
            z, y = self.features.observed(x[part], arm[part], reward[part], weight[part])
            rows = z, np.zeros_like(arm[part]) if self.joint else arm[part], y, weight[part]
            if tick is None:
                self.ridges.learn(*rows)
            elif len(self.blocks) == 1:
                self.ridges.learn_at(tick[part], *rows)
            else:
                self._weigh([ridges.learn_scored(tick[part], *rows) for ridges in self.each])

    def keep(self, tick: Array | None, x: Array, arm: Array, reward: Array, weight: Array) -> None:
        """Keep rounds that the regressions have learned, for refits."""
        assert self.rounds is not None
        self.rounds.append(x, arm, reward, weight, tick)
        self.counts = self.counts + np.bincount(arm, minlength=len(self.counts))

    def advance(self, tick: float) -> None:
        scoring.advance_all(self.blocks, self.rules, tick)
        if self.rounds is None or not self.memory.fades:
            return
        if self.rounds.forget(tick - self.memory.lasting):
            self.counts = self.rounds.counts(len(self.counts))
            if self.link is not None:
                self.link.forget(self.counts.sum(keepdims=True) if self.joint else self.counts)

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        """Refit the arms that are due, from all rounds; all arms, if they share a regression."""
        if self.rounds is None:
            z, y = self.features.observed(x, arm, reward, weight)
            self.ridges.reweigh(due, z, arm, y, weight)
            return
        self.rounds.replace(x, arm, reward, weight)
        if self.link is None:
            self._refit()
        else:
            self.link.settle(self, [0] if self.joint else due)

    def absorb(self, other: Belief) -> None:
        """Learn the rounds that another belief has learned, as if they had come next.

        The sums of its rounds are added, and never its prior: see `RidgeArms.absorb`. Without a
        link, no round is learned again. Half-lives get their probabilities by the rewards of both.

        Raise ValueError unless both have the same settings and number of arms.
        """
        if not (isinstance(other, Regressions) and self._is_like(other)):
            raise ValueError(f"{self!r} absorbs a belief with the same settings; got {other!r}")
        if self.link is not None:
            assert other.rounds is not None
            if self.clock:
                self.advance(other.latest)
            self.update(**other.rounds.of(), tick=other.rounds.tick)
            return
        if self.memory.drift:
            raise ValueError(
                "coefficients that walk do not depend on sums of rounds, which merge: let one "
                "bandit learn all rounds, in their order, by bandit.update"
            )
        for mine, its in zip(self.each, other.each, strict=True):
            mine.absorb(its)
        self._absorb_probabilities(other)
        if self.rounds is not None and other.rounds is not None:
            self.keep(other.rounds.tick, **other.rounds.of())

    def _is_like(self, other: Regressions) -> bool:
        """Return whether another belief has the same settings and number of arms."""
        mine, its = (
            (one.blocks.shape, one.n.shape, one.joint, one.link and one.plan and one.plan.model)
            for one in (self, other)
        )
        ours = self.features.coordinates()
        theirs = other.features.coordinates()
        return (
            mine == its
            and np.array_equal(self.rules, other.rules, equal_nan=True)
            and len(ours) == len(theirs)
            and all(map(np.array_equal, ours, theirs))
        )

    def postpone(self, ticks: float) -> None:
        super().postpone(ticks)
        if self.rounds is not None:
            self.rounds.records["tick"] += ticks

    # ---- arms that come and go -------------------------------------------------------------------

    def add_arm(self) -> None:
        if self.rounds is not None:
            self.counts = np.append(self.counts, 0.0)
        if self.joint:
            self._plan_again()
            return
        super().add_arm()
        if self.link is not None:
            self.link.add_arm()

    def remove_arm(self, k: int) -> None:
        """Remove arm k; later arms move up by one."""
        if self.rounds is not None:
            self.counts = np.delete(self.counts, k)
            self.rounds.drop(k)
        if self.joint:
            self._plan_again()
            return
        super().remove_arm(k)
        if self.link is not None:
            self.link.remove_arm(k)

    def blank(self) -> Array:
        return np.stack([new_arms(1, rule) for rule in self.rules])

    def renew(self) -> None:
        for arms, rule in zip(self.blocks, self.rules, strict=True):
            pool_noise(arms, rule)

    def _plan_again(self) -> None:
        """Plan a model that arms share for the current number of them, and refit it."""
        K = len(self.counts)
        if self.link is None:
            self.features = self.features.of_arms(K)
        else:
            self.link = self.link.of_arms(K)
            self.features = self.link.features()
        self._refit()

    def _refit(self) -> None:
        """Start the one regression of all arms from the prior, and learn all rounds again."""
        rounds = self.rounds
        now = self.ticks(1)
        assert rounds is not None
        self.counts = rounds.counts(len(self.counts))
        self._begin_from_prior(self.memory, 1)
        if self.link is None:
            self._learn_rows(rounds.tick, **rounds.of())
        if now is not None:
            scoring.advance_all(self.blocks, self.rules, now[0])
        if self.link is not None:
            self.link.settle(self, [0] if len(rounds) else [])

    # ---- all that is known -----------------------------------------------------------------------

    def _arm(self, k: int) -> arm_numbers.Arm:
        """Return the numbers of arm k by name."""
        return arm_numbers.view(self.arms[k], self.features.columns)

    def coefficients(self, k: int) -> Array:
        """Return the posterior mean (D,) of arm k's coefficients, about its origin."""
        arm = self._arm(k)
        theta = solve_triangular(arm.U, arm.t, unit_diagonal=True)  # Bθ = b is Uθ = t
        theta[-1] += arm.head.shift
        return np.asarray(theta)

    def inverse(self, k: int) -> Array:
        """Return B⁻¹ (D, D) of arm k, about its origin; ∞ where nothing is known."""
        arm = self._arm(k)
        # B = U'DU, and so B⁻¹ = HH' with H = U⁻¹ D^(−1/2)
        half = solve_triangular(arm.U, np.eye(len(arm.d)), unit_diagonal=True) / np.sqrt(arm.d)
        P = half @ half.T
        return np.asarray(np.where(P > MAX_VARIANCE, np.inf, P))

    def precision(self, k: int) -> Array:
        """Return B (D, D) of arm k, about its origin."""
        arm = self._arm(k)
        return np.asarray(arm.U.T @ (arm.d[:, None] * arm.U))

    def linear_posterior(self, k: int, rows: Arrays | None = None) -> LinearPosterior:
        """Return the posterior of arm k's coefficients. rows: its rounds, by role, if kept."""
        arm = self._arm(k)
        P = self.inverse(k)
        is_shifted = interpreted(arm_numbers.is_shifted)(self.settings)  # from an origin of its own
        d = self.features.width
        origin = None
        weighted = None
        if is_shifted and arm.head.n:
            origin = arm.origin[:d].copy()
        if rows is not None:
            weight = rows["weight"] / arm.head.weight_divisor
            z, _ = self.features(rows["x"] if origin is None else rows["x"] - origin)
            weighted = WeightedRows(z, rows["reward"], weight, P, int(arm.head.n))
        spread = scaled(P, arm.head.sigma2)
        df = float(arm.head.df)
        return LinearPosterior(self.coefficients(k), spread, df, d, origin, weighted=weighted)

    def posterior(self, k: int, rows: Arrays | None = None) -> Any:
        """Return the posterior of arm k, or of all arms that share a regression.

        rows: the arm's rounds in the history, by role.
        """
        g = 0 if self.joint else k
        if self.rounds is not None:
            rows = self.rounds.of(None if self.joint else k)
        return self.features.posterior(self, g, rows)

    def __setstate__(self, state: State) -> None:
        super().__setstate__(state)
        if self.rounds is not None:
            self.rounds = self.rounds.fork()
        if self.link is not None:
            self.link = self.link.fork()

    def state(self) -> State:
        rounds = {} if self.rounds is None else {"rounds": self.rounds.state()}
        return super().state() | rounds | ({} if self.link is None else self.link.state())

    def arms_form(self, n: int) -> Records:
        return ridge_arms.form(n, self.blocks.shape[2])

    def form(self, state: State, total: int) -> Form:
        rounds = {} if self.rounds is None else {"rounds": self.rounds.form(len(self.counts))}
        return super().form(state, total) | rounds | ({} if self.link is None else self.link.form())

    def restore(self, state: State) -> None:
        super().restore(state)
        if self.rounds is not None:
            self.rounds.restore(state["rounds"])
            self.counts = self.rounds.counts(len(self.counts))
        if self.link is not None:
            self.link.restore(state)


def root_of(spread: Array) -> Array:
    """Return R with RR' = spread (D, D), which may be singular."""
    try:
        return np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        return symmetric_root(spread)
