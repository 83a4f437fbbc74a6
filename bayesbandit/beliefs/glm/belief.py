"""The belief of a declared generalised linear model, by Laplace's approximation.

The log posterior of θ is approximated by a quadratic at its mode. A reward moves the mode to that
of the quadratic plus the reward's log likelihood, and adds the likelihood's curvature there: this
is Newton's method online. On a schedule the mode is computed again from all rows, which gives the
approximation of `bb.fit`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from bayesbandit.beliefs.affine import AffineBelief
from bayesbandit.beliefs.base import Belief
from bayesbandit.beliefs.glm.prediction import Increasing
from bayesbandit.beliefs.joint import JointBelief
from bayesbandit.beliefs.memory import Memory
from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.inference.base import NotThisEngine
from bayesbandit.inference.glm.regression import Linearized, Regression, mode
from bayesbandit.inference.plan import Plan
from bayesbandit.kernels.glm import newton
from bayesbandit.posteriors.posterior import Posterior
from bayesbandit.predictions import Prediction
from bayesbandit.schedule import Schedule

Array = np.ndarray


class LinearizedBelief(Belief):
    """K arms with a generalised linear model each, or one that they share.

    `inner` is the belief about the linear predictor η; its rows are observations of η. A group g is
    an arm, or all arms if they share the model; each group has a posterior. total (G, 2): a group's
    sum of weights and number of rows. due (G,): the number of rows at which its mode is next
    computed from all rows.
    """

    n: Array

    def __init__(
        self, plan: Plan, glm: Regression, n_arms: int, normalize: bool, memory: Memory,
        schedule: Schedule,
    ) -> None:  # fmt: skip
        self.plan = plan
        self.glm = glm
        self.normalize = normalize
        self.schedule = schedule
        self.n_features, self.joint = plan.n_features, plan.model.takes_arm
        self.memory, self.clock, self.computes_when_asked = memory, memory.ticks, memory.fades
        self.rounds, self.n = Rounds(plan.n_features, timed=memory.fades), np.zeros(n_arms)
        self._begin()

    def _begin(self) -> None:
        """Set the prior, without any data."""
        working = replace(self.plan, method=self.glm.block)
        kind = JointBelief if self.joint else AffineBelief
        self.inner: AffineBelief = kind(working, len(self.n), memory=self.memory)
        G = self.inner.n_posteriors
        self.total, self.due = np.zeros((G, 2)), np.ones(G)

    def __repr__(self) -> str:
        return f"LinearizedBelief({self.plan.model.name}, n_arms={len(self.n)})"

    # ---- mean rewards ----------------------------------------------------------------------------

    def predict(self, x: Array) -> Prediction:
        return Increasing(self.inner.predict(x), self.glm.family)

    def predict_together(self, x: Array) -> Prediction:
        return Increasing(self.inner.predict_together(x), self.glm.family)

    # ---- rewards ---------------------------------------------------------------------------------

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Learn rounds x (n, d), arm numbers, rewards, powers of likelihoods (n,; None: 1).

        Raise ValueError and learn nothing if a reward has likelihood 0 for all variables.
        """
        self._learn(self.inner.now(len(x)), x, arm, reward, weight)

    def advance(self, tick: float) -> None:
        self.inner.advance(tick)
        if self.clock and self.rounds.forget(tick - self.memory.lasting):
            self.n = self.rounds.counts(len(self.n))
            gone = (self.n.sum(keepdims=True) if self.joint else self.n) == 0
            self.total[gone], self.due[gone] = 0.0, 1.0

    def update_at(
        self, tick: Array, x: Array, arm: Array, reward: Array, weight: Array | None = None
    ) -> None:
        self.advance(tick.max(initial=-np.inf))
        self._learn(tick, x, arm, reward, weight)

    def _learn(
        self, tick: Array | None, x: Array, arm: Array, reward: Array, weight: Array | None
    ) -> None:
        """Learn rounds: see `update`. tick: when they were decided, if they fade."""
        weight = np.ones(len(x)) if weight is None else np.ascontiguousarray(weight)
        data = x, reward, weight, arm
        try:
            self.glm.check(data)
        except NotThisEngine:
            rows = {"x": x, "reward": reward, "weight": weight, "arm": arm}
            self.plan.likelihood.check(self.plan.model.name, rows, [])
            raise
        z, offset = self.inner.features(x, arm if self.joint else None)
        group = np.zeros_like(arm) if self.joint else np.ascontiguousarray(arm)
        z, reward, done = np.ascontiguousarray(z), np.ascontiguousarray(reward), 0
        power = self.glm.weights(data)
        inner, family = self.inner.inner.best, self.glm.family
        share = np.zeros(len(x))
        if tick is not None:
            share = inner.share_of(tick, group)
            power = power * share
        while done < len(x):
            first, done = done, newton.observe(
                inner.arms, inner.settings, z, offset, group, reward, power, family.kind,
                family.number, self.normalize, self.total, self.due, done,
            )  # fmt: skip
            part = slice(first, done)
            inner.head["left"] += np.bincount(group[part], share[part], len(self.due))
            at = None if tick is None else tick[part]
            self.rounds.append(x[part], arm[part], reward[part], weight[part], at)
            self.n = self.n + np.bincount(arm[part], minlength=len(self.n))
            if self.total[g := group[done - 1], 1] >= self.due[g]:
                self._settle([g])

    def _settle(self, groups: Iterable[int]) -> None:
        """Compute the modes of these groups from all of their rows."""
        inner, family = self.inner.inner.best, self.glm.family
        for g in groups:
            rows = self.rounds.of(None if self.joint else g)
            data = self.glm.block.data(**rows)
            reward, power, n = data[1], self.glm.weights(data), len(data[1])
            share = None
            if (tick := self.rounds.tick) is not None:
                tick = tick if self.joint else tick[self.rounds.arm == g]
                share = inner.share_of(tick, np.full(n, g))
            self.total[g] = power.sum(), n
            self.due[g] = self.schedule.next_due(n)
            if self.normalize and n:
                power = power * (n / power.sum())
            z, offset = self.inner.features(rows["x"], rows.get("arm"))
            z = np.ascontiguousarray(z)
            last = inner.coefficients(g)
            left = power if share is None else share * power
            phi = mode(family, z, offset, reward, left, start=last)
            y, v = family.pseudo_rows(z @ phi + offset, reward, power)
            inner.rebuild(g, z, y - offset, v, share)

    def absorb(self, other: Belief) -> None:
        """Learn the rounds that another belief of the same model has learned, from their rows.

        Where rounds fade, the result is as of the later clock.
        """
        if not (
            isinstance(other, LinearizedBelief)
            and (self.plan.model, self.memory) == (other.plan.model, other.memory)
            and (len(self.n), self.n_features) == (len(other.n), other.n_features)
        ):
            raise ValueError(f"{self!r} absorbs a belief of the same model; got {other!r}")
        if self.clock:
            self.advance(other.inner.latest)
        self._learn(other.rounds.tick, **other.rounds.of())

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        self.rounds.replace(x, arm, reward, weight)
        self._settle([0] if self.joint else due)

    def add_arm(self) -> None:
        self.n = np.append(self.n, 0.0)
        if self.joint:
            self._refit()
        else:
            self.inner.add_arm()
            self.total = np.vstack([self.total, [0.0, 0.0]])
            self.due = np.append(self.due, 1.0)

    def remove_arm(self, k: int) -> None:
        self.n = np.delete(self.n, k)
        self.rounds.drop(k)
        if self.joint:
            self._refit()
        else:
            self.inner.remove_arm(k)
            self.total = np.delete(self.total, k, axis=0)
            self.due = np.delete(self.due, k)

    def _refit(self) -> None:
        """Plan the shared model for the current number of arms, and fit it to all rounds."""
        self.plan = self.plan.of_arms(len(self.n))
        self.glm, now = self.plan.functions.regression, self.inner.now(1)
        self._begin()
        if now is not None:
            self.inner.advance(now[0])
        self._settle([0] if len(self.rounds) else [])

    def fork(self) -> Self:
        """Return a copy that may change while this belief stays as it is."""
        twin = object.__new__(type(self))
        counts = {"total": self.total.copy(), "due": self.due.copy()}
        vars(twin).update(vars(self), inner=self.inner.fork(), rounds=self.rounds.fork(), **counts)
        return twin

    # ---- all that is known -----------------------------------------------------------------------

    def posterior(self, k: int, rows: dict[str, Array]) -> Posterior:
        """Return the posterior of arm k's variables, or of all arms' if they share the model."""
        known = Linearized(self.inner.known(0 if self.joint else k), self.glm)
        return Posterior(self.plan, self.rounds.of(None if self.joint else k), known, 0)

    def state(self) -> dict[str, Any]:
        """Return the whole state as arrays and plain values, for `restore`."""
        return {
            "arms": self.inner.inner.arms,
            "rounds": self.rounds.state(),
            "total": self.total,
            "due": self.due,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned; raise ValueError if counts are not valid."""
        self.inner.inner.restore({"arms": state["arms"]})
        self.rounds.restore(state["rounds"], len(self.n))
        self.n = self.rounds.counts(len(self.n))
        for name, counts in {"total": self.total, "due": self.due}.items():
            saved = state[name]
            if saved.shape != counts.shape or not (np.isfinite(saved) & (saved >= 0.0)).all():
                raise ValueError(f"{name} must be {counts.shape}, ≥ 0; got {saved}")
            counts[:] = saved

    def verify(self, total: int) -> None:
        self.inner.verify(total)
        self.rounds.verify(len(self.n))
