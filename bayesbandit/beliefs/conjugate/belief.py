"""The exact belief of a declared probability or rate for each arm, which ignores contexts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np

from bayesbandit.beliefs.base import Belief, Kernel
from bayesbandit.beliefs.memory import FOR_EVER, GONE, Memory
from bayesbandit.checks import COUNT
from bayesbandit.inference.exact.beta_gamma import Beta
from bayesbandit.inference.exact.conjugate import ConjugateEngine
from bayesbandit.inference.plan import Plan
from bayesbandit.inference.pymc_model.allowed_rewards import allowed
from bayesbandit.kernels.conjugate import arms as kernel
from bayesbandit.kernels.conjugate import fading
from bayesbandit.kernels.conjugate.fading import CLOCK
from bayesbandit.kernels.rounds import NUMBERS, Kernels
from bayesbandit.kernels.row_layout import BETA, GAMMA, THOMPSON
from bayesbandit.posteriors.posterior import Posterior
from bayesbandit.predictions import Conjugate

Array = np.ndarray
SUMS = slice(kernel.N, kernel.REST + 1)
FADING = slice(kernel.HITS, kernel.REST + 1)


class ConjugateBelief(Belief, Kernel):
    """K independent arms, each Beta(a, b) or Gamma(a, b), as arrays.

    `arms` (K, …) has one row of numbers for each arm, which the kernels update in place
    (`kernels/conjugate/arms.py`).
    """

    functions: ClassVar[Kernels] = NUMBERS

    def __init__(
        self, plan: Plan, n_arms: int, normalize: bool = False, memory: Memory = FOR_EVER
    ) -> None:
        method: ConjugateEngine = plan.method
        prior = method.proper_prior
        assert method.reward_support is not None
        assert prior is not None
        self.plan, self.n_features, self.normalize = plan, plan.n_features, normalize
        self.memory, self.clock, self.computes_when_asked = memory, memory.ticks, memory.fades
        self.family = BETA if isinstance(prior, Beta) else GAMMA
        parts = [plan.n_features, self.family, prior.a, prior.b]
        parts += [normalize, method.reward_support.binary, method.reward_support.whole]
        self.settings = np.array(parts, dtype=np.float64)
        self.arms = np.zeros((n_arms, kernel.WIDTH))
        kernel.renew_all(self.arms, self.settings)

    def __repr__(self) -> str:
        return f"ConjugateBelief({self.plan.model.name}, n_arms={len(self.arms)})"

    @property
    def n(self) -> Array:
        """Observations of each arm (K,)."""
        return self.arms[:, kernel.N]

    @property
    def kernel(self) -> Kernel:
        return self

    def kind(self, rule: int, param: tuple[float, float] | None) -> int | None:
        """Return the KIND of rows; None for Thompson sampling with α ≠ 1, which Python decides."""
        if rule != THOMPSON:
            return rule
        return self.family if param is not None and param[0] == 1.0 else None

    def predict(self, x: Array) -> Conjugate:
        shape = len(x), len(self.arms)
        a, b = (np.broadcast_to(self.arms[:, at], shape) for at in (kernel.FIRST, kernel.SECOND))
        return Conjugate("beta" if self.family == BETA else "gamma", a, b)

    # ---- learning --------------------------------------------------------------------------------

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Learn rounds x (n, d), arm numbers, rewards, weights (n,; None: 1)."""
        self.check_rewards(x, reward)
        weight = np.ones(len(x)) if weight is None else weight
        x, arm, reward, weight = map(np.ascontiguousarray, (x, arm, reward, weight))
        NUMBERS.update_many(self.arms, x, arm, reward, weight, self.settings)

    def advance(self, tick: float) -> None:
        if not self.clock:
            return
        arms = self.arms.copy()
        fading.advance(arms, tick, self.memory.rate, self.settings)
        self.arms[:] = arms  # in one step

    def _left(self, arms: Array) -> Array:
        """Return the sum of the weights of each arm's rounds, (K,)."""
        return arms[:, kernel.REST] + (arms[:, kernel.HITS] if self.family == BETA else 0.0)

    def update_at(
        self, tick: Array, x: Array, arm: Array, reward: Array, weight: Array | None = None
    ) -> None:
        """Learn rounds that were decided at ticks (n,), by the share of them that is left."""
        self.advance(tick.max(initial=-np.inf))
        share = np.exp(self.memory.rate * (tick - self.arms[arm, CLOCK]))
        weight = share if weight is None else share * weight
        left = share >= GONE
        self.update(x[left], arm[left], reward[left], weight[left])

    def learned(self, x: Array, arm: Array, reward: Array, weight: Array) -> tuple[Array, Array]:
        self.check_rewards(x, reward)
        return x, np.ascontiguousarray(reward)

    def check_rewards(self, x: Array, reward: Array) -> None:
        """Raise ValueError if a reward (n,) has likelihood 0; contexts x (n, d) are only shown."""
        support = self.plan.method.reward_support
        impossible = np.flatnonzero(support.excludes(np.asarray(reward)))
        if len(impossible):
            i = int(impossible[0])
            raise ValueError(
                f"{self.plan.model.name} gives a reward of {reward[i]:g} the likelihood 0, "
                f"whatever its variables are: row {i}, the context "
                f"{np.array2string(x[i], threshold=6)}{allowed(lambda r: ~support.excludes(r))}"
            )

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
            isinstance(other, ConjugateBelief)
            and len(self.arms) == len(other.arms)
            and np.array_equal(self.settings, other.settings)
            and self.memory == other.memory
        ):
            raise ValueError(f"{self!r} absorbs a belief of the same model; got {other!r}")
        arms = self.arms.copy()
        arms[:, kernel.N] += other.arms[:, kernel.N]
        arms[:, CLOCK] = np.maximum(arms[:, CLOCK], other.arms[:, CLOCK])
        arms[:, FADING] = 0.0
        for part in (self.arms, other.arms):
            share = np.exp(self.memory.rate * (part[:, CLOCK] - arms[:, CLOCK]))
            arms[:, FADING] += share[:, None] * part[:, FADING]
        if self.clock:
            arms[self._left(arms) < GONE, SUMS] = 0.0
        self._set_arms(arms)

    def postpone(self, ticks: float) -> None:
        self.arms[:, CLOCK] += ticks

    # ---- what is known ---------------------------------------------------------------------------

    def known(self, k: int) -> Any:
        """Return the posterior distribution of arm k's mean reward."""
        method: ConjugateEngine = self.plan.method
        return method.family(method.name, *kernel.parameters(self.arms[k], self.settings))

    def posterior(self, k: int, rows: dict[str, Array] | None = None) -> Posterior:
        """Return the posterior of arm k. rows: its rounds in the history, by role."""
        return Posterior(self.plan, rows or {}, self.known(k), 0)

    def fork(self) -> Self:
        return self._with_arms(self.arms.copy())

    def _with_arms(self, arms: Array) -> Self:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self), arms=arms)
        return twin

    def state(self) -> dict[str, Any]:
        """Return the whole state as arrays, for `restore`."""
        ticks = {"clock": self.arms[:, CLOCK].copy()} if self.clock else {}
        return {"sums": self.arms[:, SUMS].copy(), **ticks}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned; raise ValueError if the sums are not valid."""
        sums = state["sums"]
        if sums.shape != (len(self.arms), 3) or not (np.isfinite(sums).all() and (sums >= 0).all()):
            raise ValueError(f"sums must be {(len(self.arms), 3)}, ≥ 0; got {sums.shape}")
        self.arms[:] = 0.0
        self.arms[:, SUMS] = sums
        if self.clock:
            clock = state["clock"]
            if clock.shape != (len(self.arms),) or not ((clock >= 0) & (clock <= COUNT)).all():
                raise ValueError(f"clock must be {(len(self.arms),)}, 0 to {COUNT}; got {clock}")
            self.arms[:, CLOCK] = clock
        kernel.renew_all(self.arms, self.settings)

    def add_arm(self) -> None:
        """Add an arm about which nothing is known."""
        self._set_arms(np.vstack([self.arms, np.zeros((1, kernel.WIDTH))]))

    def remove_arm(self, k: int) -> None:
        """Remove arm k; later arms move up by one."""
        self._set_arms(np.delete(self.arms, k, axis=0))

    def _set_arms(self, arms: Array) -> None:
        kernel.renew_all(arms, self.settings)
        self.arms = arms
