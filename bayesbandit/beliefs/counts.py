"""The exact belief of a declared probability or rate for each arm, which ignores contexts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from bayesbandit.beliefs.base import Belief, CompiledArms
from bayesbandit.beliefs.half_lives import HalfLives
from bayesbandit.beliefs.memory import FOR_EVER, MIN_SHARE, Memory
from bayesbandit.checks import Array
from bayesbandit.forms import AT_LEAST_ZERO, Arrays, Records, State
from bayesbandit.inference.exact.beta_gamma import OneNumber
from bayesbandit.inference.exact.conjugate import ConjugateEngine
from bayesbandit.inference.plan import Plan
from bayesbandit.inference.pymc_model.possible_rewards import EXAMPLE_REWARDS, impossible_reward
from bayesbandit.kernels.conjugate import arms as conjugate_arms
from bayesbandit.kernels.conjugate import fading
from bayesbandit.kernels.conjugate.fading import CLOCK
from bayesbandit.kernels.rounds import NUMBERS, Kernels
from bayesbandit.kernels.row_layout import BETA, GAMMA, THOMPSON
from bayesbandit.posteriors.posterior import Posterior
from bayesbandit.predictions import Conjugate

SUM_COLUMNS = slice(conjugate_arms.N, conjugate_arms.REST + 1)


class Counts(HalfLives):
    """K independent arms, each Beta(a, b) or Gamma(a, b), by one half-life or several.

    `kernels/conjugate/arms.py` says what stands in an arm's numbers.
    """

    settings: Array
    functions: ClassVar[Kernels] = NUMBERS
    n_at = conjugate_arms.N
    clock_at = CLOCK

    def __init__(
        self, plan: Plan, n_arms: int, normalize: bool = False, memory: Memory = FOR_EVER
    ) -> None:
        method: ConjugateEngine = plan.method
        prior = method.proper_prior
        assert prior is not None
        self.plan = plan
        self.n_features = plan.n_features
        self.family = BETA if method.is_beta else GAMMA
        parts = [plan.n_features, self.family, prior.a, prior.b]
        parts += [normalize, method.is_beta, method.whole]
        self.settings = np.array(parts, dtype=np.float64)
        self.rates = np.array([each.rate for each in memory.each()])
        arms = np.zeros((n_arms, conjugate_arms.WIDTH))
        conjugate_arms.renew_all(arms, self.settings)
        self._begin(memory, [arms] * len(self.rates))

    def __repr__(self) -> str:
        return f"Counts({self.plan.model.name}, n_arms={len(self.n)})"

    @property
    def kernel(self) -> CompiledArms:
        return self

    def kind(self, rule: int, param: tuple[float, float] | None) -> int | None:
        """Return the KIND of rows; None for Thompson sampling with α ≠ 1, which Python decides."""
        if rule != THOMPSON:
            return rule
        return self.family if param is not None and param[0] == 1.0 else None

    def predict(self, x: Array) -> Conjugate:
        arms = self.arms
        shape = (len(x), len(self.n))
        a, b = (
            np.broadcast_to(arms[:, at], shape)
            for at in (conjugate_arms.FIRST, conjugate_arms.SECOND)
        )
        return Conjugate("beta" if self.family == BETA else "gamma", a, b)

    # ---- learning --------------------------------------------------------------------------------

    def update(
        self, x: Array, arm: Array, reward: Array, weight: Array | None = None,
        tick: Array | None = None,
    ) -> None:  # fmt: skip
        self.check_rewards(x, reward)
        tick = self.ticks(len(x), tick)
        rows = x, arm, reward, np.ones(len(x)) if weight is None else weight
        if tick is not None and len(self.blocks) > 1:
            tick, _, arm, reward, weight = map(np.ascontiguousarray, (tick, *rows))
            scores = np.empty((len(self.blocks), len(tick)))
            for arms, rate, score in zip(self.blocks, self.rates, scores, strict=True):
                fading.learn_scored(
                    arms, rate, tick, arm, reward, weight, self.settings, MIN_SHARE, score
                )
            self._weigh(list(scores))
            return
        if tick is not None:
            self.advance(tick.max(initial=-np.inf))
            share = np.exp(self.rates[0] * (tick - self.arms[arm, CLOCK]))
            rows = *rows[:3], share * rows[3]
            rows = tuple(values[share >= MIN_SHARE] for values in rows)
        x, arm, reward, weight = map(np.ascontiguousarray, rows)
        NUMBERS.update_many(self.arms, x, arm, reward, weight, self.settings)

    def advance(self, tick: float) -> None:
        if not self.clock:
            return
        blocks = self.blocks.copy()
        for arms, rate in zip(blocks, self.rates, strict=True):
            fading.advance(arms, tick, rate, self.settings)
        self.blocks[:] = blocks  # in one step

    def check_rewards(self, x: Array, reward: Array) -> None:
        """Raise ValueError if a reward (n,) has likelihood 0; contexts x (n, d) are only shown."""
        excludes = self.plan.method.excludes
        impossible = np.flatnonzero(excludes(np.asarray(reward)))
        if len(impossible):
            rows = {"x": x, "reward": reward}
            allowed = EXAMPLE_REWARDS[~excludes(EXAMPLE_REWARDS)].tolist()
            raise impossible_reward(self.plan.model.name, rows, int(impossible[0]), allowed)

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        """Refit the arms that are due, from all rounds: see `update`."""
        for k in due:
            mine = arm == k
            self.arms[k] = 0.0
            self.update(x[mine], arm[mine], reward[mine], weight[mine])

    def absorb(self, other: Belief) -> None:
        """Learn the rounds that another belief of the same model has learned.

        Where rounds fade, the result is as of the later clock.
        """
        if not (
            isinstance(other, Counts)
            and self.blocks.shape == other.blocks.shape
            and np.array_equal(self.settings, other.settings)
            and self.memory == other.memory
        ):
            raise ValueError(f"{self!r} absorbs a belief with the same settings; got {other!r}")
        latest = max(self.latest, other.latest)
        other = other.fork()
        for belief in (self, other):
            belief.advance(latest)
        self.blocks[..., SUM_COLUMNS] += other.blocks[..., SUM_COLUMNS]
        self.renew()
        self._absorb_probabilities(other)

    # ---- what is known ---------------------------------------------------------------------------

    def known(self, k: int) -> Any:
        """Return the posterior distribution of arm k's mean reward."""
        method: ConjugateEngine = self.plan.method
        a, b = conjugate_arms.parameters(self.arms[k], self.settings)
        return OneNumber(method.name, method.is_beta, a, b)

    def posterior(self, k: int, rows: Arrays | None = None) -> Posterior:
        """Return the posterior of arm k. rows: its rounds in the history, by role."""
        return Posterior(self.plan, rows or {}, self.known(k), 0)

    def blank(self) -> Array:
        return np.zeros((len(self.blocks), 1, conjugate_arms.WIDTH))

    def renew(self) -> None:
        for arms in self.blocks:
            conjugate_arms.renew_all(arms, self.settings)

    def arms_form(self, n: int) -> Records:
        return Records(conjugate_arms.HEAD, n, dict.fromkeys(("hits", "rest"), AT_LEAST_ZERO))

    def restore(self, state: State) -> None:
        super().restore(state)
        self.renew()
