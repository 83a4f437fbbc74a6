"""Exact beliefs of declared linear-Gaussian models, streamed row by row.

A model has mean reward A(x, arm)θ + b, rewards N(mean, σ²/w) and prior θ ~ N(m₀, (LL')⁻¹), or the
normal-inverse-gamma prior. In other coordinates it is a ridge regression. With θ = m₀ + L⁻ᵀφ, the
reward minus A m₀ + b is z'φ plus noise, with z = L⁻¹A' and φ ~ N(0, I). The linear belief learns φ.
Where θ walks, φ = θ − m₀, so that the steps of φ are those of θ, and φ has the prior of θ.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular

from bayesbandit.beliefs.base import Belief, Kernel
from bayesbandit.beliefs.gaussian import distribution, regression
from bayesbandit.beliefs.half_lives import LinearHalfLives, remembered
from bayesbandit.beliefs.linear_belief import LinearBelief, together
from bayesbandit.beliefs.memory import FOR_EVER, Memory
from bayesbandit.inference.base import NotFinite
from bayesbandit.inference.exact.distributions import Gaussian, StudentT
from bayesbandit.inference.plan import Plan
from bayesbandit.kernels.arm import heads
from bayesbandit.posteriors.posterior import Posterior
from bayesbandit.predictions import Joint, LocationScale

ROOM = 2**24  # numbers of the rows that the inner belief learns at once

Array = np.ndarray


class AffineBelief(Belief):
    """K independent arms of one declared model; `inner` is the linear belief about each arm's φ.

    n (K,): observations of each arm.
    """

    n: Array
    inner: LinearBelief | LinearHalfLives
    separate = True  # each arm has its own posterior, which counts its observations

    def __init__(
        self, plan: Plan, n_arms: int, normalize: bool = False, memory: Memory = FOR_EVER
    ) -> None:
        self.plan, self.normalize, self.memory = plan, normalize, memory
        self.clock, self.computes_when_asked = memory.ticks, memory.ticks is not None
        self.n_features = plan.n_features
        self.n = np.zeros(n_arms)
        self._begin()

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.separate:  # a view, which a copy does not keep
            self.n = self.inner.n

    def _begin(self) -> None:
        """Set the prior, its coordinates, and an inner belief without data."""
        engine = self.plan.method
        ridge, self.prior = regression(self.plan, False)
        self.root = self.prior.cholesky
        known = None
        if self.memory.drift:
            self.root = np.eye(engine.dim)
            known = np.zeros(engine.dim), (engine.noise or 1.0) * self.prior.precision
        self.whiten = solve_triangular(self.root, np.eye(engine.dim), lower=True).T
        features = engine.form.features
        self.map = features and features.of(self.prior.mean, self.whiten)

        def made(memory: Memory) -> LinearBelief:
            model, size = ridge.remembering(memory), (self.n_posteriors, engine.dim)
            return LinearBelief(model, *size, self.normalize, known)

        self.inner = remembered(made, self.memory)
        if self.separate:
            self.n = self.inner.n

    @property
    def n_posteriors(self) -> int:
        """The number of posteriors: one for each arm."""
        return len(self.n)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.plan.model.name}, n_arms={len(self.n)})"

    def features(self, x: Array, arm: Array | None = None) -> tuple[Array, Array]:
        """Return z (n, D) and offsets A m₀ + b (n,) of rows.

        If arms share the model and `arm` is None, return those of all arms: (n, K, D) and (n, K).
        """
        if self.map is not None:
            return self.map(x, arm)
        A, b = self.plan.method.linear_map(x, arm)
        return A @ self.whiten, A @ self.prior.mean + b

    @property
    def kernel(self) -> Kernel | None:
        return Inner(self)

    # ---- mean rewards ----------------------------------------------------------------------------

    def predict(self, x: Array) -> LocationScale | Joint:
        z, offset = self.features(x)
        inner = self.inner.best.predict(z)
        return LocationScale(inner.mean + offset[:, None], inner.scale, inner.df)

    def predict_together(self, x: Array) -> Joint:
        n, m, d = x.shape
        return together(*self.features(x.reshape(-1, d)), self.inner.posterior(0), n, m)

    def observed(
        self,
        x: Array,
        arm: Array,
        reward: Array,
        weight: Array | None,
        own: Array | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return rows z (n, D), numbers of posteriors and rewards (n,) of the inner regression.

        arm: the rows' posteriors. own: the rows' arms, if arms share a model. A row with its own
        precision πw becomes a row √π z, √π y of variance 1/w.
        """
        z, offset = self.features(x, own)
        if self.plan.method.noise is not None:
            return z, arm, reward - offset
        one = np.ones(len(x)) if weight is None else weight
        data = {"x": x, "reward": reward, "weight": one, "arm": arm if own is None else own}
        try:
            y, precision = self.plan.method.observations(x, reward, weight, own)
        except NotFinite:
            self.plan.check_possible(data)
            raise
        self.plan.check_possible(data, possible=True)  # PyMC would cut off the fraction of a count
        root = np.sqrt(precision if weight is None else precision / weight)
        return z * root[:, None], arm, (y - offset) * root

    # ---- rewards ---------------------------------------------------------------------------------

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Learn rounds x (n, d), arm numbers, rewards, precision weights (n,; None: 1)."""
        self._learn(self.now(len(x)), x, arm, reward, weight)

    @property
    def latest(self) -> float:
        """The latest tick of the clock."""
        return float(heads(self.inner.arms)["clock"].max())

    def now(self, n: int) -> Array | None:
        """Return the latest tick n times; None if time changes nothing."""
        return np.full(n, self.latest) if self.clock else None

    def advance(self, tick: float) -> None:
        self.inner.advance(tick)

    def update_at(
        self, tick: Array, x: Array, arm: Array, reward: Array, weight: Array | None = None
    ) -> None:
        self._learn(tick, x, arm, reward, weight)

    def _learn(
        self, tick: Array | None, x: Array, arm: Array, reward: Array, weight: Array | None,
        own: Array | None = None,
    ) -> None:  # fmt: skip
        """Update the inner belief, with as many rows at once as fit into memory: see `observed`.

        tick: when the rows were decided, if they fade.
        """
        step = max(1, ROOM // max(1, self.inner.n_columns))
        for part in (slice(i, i + step) for i in range(0, len(x), step)):
            w, arms = (None if values is None else values[part] for values in (weight, own))
            rows = self.observed(x[part], arm[part], reward[part], w, arms)
            if tick is None:
                self.inner.update(*rows, w)
            else:
                self.inner.update_at(tick[part], *rows, w)

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        """Refit the arms that are due, from all rounds: see `update`."""
        z, _, y = self.observed(x, arm, reward, weight)
        self.inner.reweigh(due, z, arm, y, weight)

    def absorb(self, other: Belief) -> None:
        """Learn what another belief has learned: see `LinearBelief.absorb`."""
        if not (
            isinstance(other, AffineBelief)
            and type(other) is type(self)
            and len(self.n) == len(other.n)
            and all(map(np.array_equal, self._coordinates(), other._coordinates()))
        ):
            raise ValueError(f"{self!r} absorbs a belief of the same model; got {other!r}")
        self.inner.absorb(other.inner)

    def postpone(self, ticks: float) -> None:
        self.inner.postpone(ticks)

    def _coordinates(self) -> list[Array]:
        """Return what the rows of the inner regression depend on."""
        map = self.map
        parts = () if map is None else (map.C, map.a, map.c, map.e)
        return [self.whiten, self.prior.mean, *parts]

    def add_arm(self) -> None:
        """Add an arm about which nothing is known."""
        self.inner.add_arm()
        self.n = self.inner.n

    def remove_arm(self, k: int) -> None:
        """Remove arm k; later arms move up by one."""
        self.inner.remove_arm(k)
        self.n = self.inner.n

    def fork(self) -> Self:
        """Return a copy that may change while this belief stays as it is."""
        twin, inner = object.__new__(type(self)), self.inner.fork()
        vars(twin).update(vars(self), inner=inner, n=inner.n if self.separate else self.n.copy())
        return twin

    # ---- all that is known -----------------------------------------------------------------------

    def known(self, k: int) -> Gaussian | StudentT:
        """Return the posterior distribution of θ for arm k."""
        inner, noise = self.inner.best, self.plan.method.noise or 1.0
        precision = inner.precision(k) / noise
        mean = self.prior.mean + self.whiten @ inner.coefficients(k)
        own = inner.head[k]
        return distribution(mean, self.root @ precision @ self.root.T, own, noise, self.plan)

    def posterior(self, k: int, rows: dict[str, Array]) -> Posterior:
        """Return the posterior of arm k's variables. rows: its rounds in the history, by role."""
        return Posterior(self.plan, rows, self.known(k), 0)

    def state(self) -> dict[str, Any]:
        """Return the whole state as arrays and plain values, for `restore`."""
        return self.inner.state() | {"n": self.n}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.inner.restore(state)
        self.n[:] = state["n"]

    def verify(self, total: int) -> None:
        self.inner.verify(total)


class Inner(Kernel):
    """The kernels of the regression inside an affine belief.

    It learns the transformed features z, and Python decides the rounds.
    """

    plain = False

    def __init__(self, belief: AffineBelief) -> None:
        self.belief, self.arms, self.settings = belief, belief.inner.arms, belief.inner.settings

    def kind(self, rule: int, param: tuple[float, float] | None) -> None:
        return None

    def learned(self, x: Array, arm: Array, reward: Array, weight: Array) -> tuple[Array, Array]:
        z, _, y = self.belief.observed(x, arm, reward, weight)
        return np.ascontiguousarray(z), y
