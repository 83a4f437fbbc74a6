"""The belief of a declared generalised linear model by Laplace's approximation, streamed.

The log posterior of θ is taken for quadratic about its mode. A reward adds the curvature that its
own likelihood has at the mode of the two together, so that the mode moves there: Newton's method
online. On a schedule the mode of all rows is found, and with it the approximation that `bb.fit`
gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from bayesbandit.beliefs.affine import AffineBelief
from bayesbandit.beliefs.base import Belief
from bayesbandit.beliefs.joint import JointBelief
from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.beliefs.sampled.settings import Sampling
from bayesbandit.inference.base import NotThisEngine
from bayesbandit.inference.draws import SampledDraws
from bayesbandit.inference.glm.families import Family
from bayesbandit.inference.glm.regression import Regression
from bayesbandit.inference.plan import Plan
from bayesbandit.kernels import linear, ridge_state
from bayesbandit.kernels.glm import newton
from bayesbandit.posteriors.posterior import Posterior
from bayesbandit.predictions import Alpha, Joint, Prediction

Array = np.ndarray


class Increasing(Prediction):
    """Mean rewards that increase with η, which is predicted: arms are ordered as their η are."""

    def __init__(self, eta: Prediction, family: Family) -> None:
        self.eta, self.family = eta, family

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Means and standard deviations (n, K), η being normal."""
        return self.family.moments(self.eta.mean, self.eta.sd)

    @property
    def mean(self) -> Array:
        return self.moments[0]

    @property
    def sd(self) -> Array:
        return self.moments[1]

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        return self.family.mean(self.eta.draw(size, rng))

    def best(self, alpha: Alpha = 1.0) -> Array:
        """Of η, α times as far from its mean."""
        return self.eta.best(alpha)

    def among(self, arms: Array) -> Increasing:
        return Increasing(self.eta.among(arms), self.family)

    def ranking(self) -> Joint | None:
        return self.eta.ranking()


class LinearizedBelief(Belief):
    """K arms of a generalised linear model, or one that they share.

    `inner` is the belief about the linear predictor η, in which rows are observations of η. Each
    group g has a posterior: an arm, or all arms together. total (G, 2): the weights and rows of a
    group; due (G,): the number of rows at which its mode is settled next.
    """

    def __init__(
        self, spec: Sampling, plan: Plan, glm: Regression, n_arms: int, normalize: bool
    ) -> None:
        self.spec, self.plan, self.glm, self.normalize = spec, plan, glm, normalize
        self.n_features, self.joint = plan.n_features, plan.model.takes_arm
        self.rounds, self.n = Rounds(plan.n_features), np.zeros(n_arms)
        self._begin()

    def _begin(self) -> None:
        """The prior, and nothing learned."""
        working = replace(self.plan, method=self.glm.block)
        kind = JointBelief if self.joint else AffineBelief
        self.inner: AffineBelief = kind(working, len(self.n))
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
        """Rounds x (n, d), arm numbers (n,), rewards (n,), powers of their likelihoods (n,; None:
        1); nothing of them where a reward has likelihood 0, whatever the variables are."""
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
        inner, family = self.inner.inner, self.glm.family
        while done < len(x):
            first, done = done, newton.observe(
                inner.arms, inner.settings, z, offset, group, reward, power, family.kind,
                family.number, self.normalize, self.total, self.due, done,
            )  # fmt: skip
            part = slice(first, done)
            self.rounds.append(x[part], arm[part], reward[part], weight[part])
            self.n = self.n + np.bincount(arm[part], minlength=len(self.n))
            if self.total[g := group[done - 1], 1] >= self.due[g]:
                self._settle([g])

    def _settle(self, groups: Iterable[int]) -> None:
        """The modes of these groups, from all of their rows."""
        inner = self.inner.inner
        for g in groups:
            rows = self.rounds.of(None if self.joint else g)
            data = self.glm.block.data(**rows)
            reward, power, n = data[1], self.glm.weights(data), len(data[1])
            self.total[g] = power.sum(), n
            self.due[g] = self.spec.schedule.next_due(n)
            if self.normalize and n:
                power = power * (n / power.sum())
            z, offset = self.inner.features(rows["x"], rows.get("arm"))
            z = np.ascontiguousarray(z)
            last = ridge_state.theta_of(inner.arms[g], inner.n_columns)
            phi = self.glm.mode(z, offset, reward, power, start=last)
            y, v = self.glm.pseudo_rows(z @ phi + offset, reward, power)
            linear.rebuild(inner.arms[g], z, y - offset, v, inner.settings)

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        self.rounds.replace(x, arm, reward, weight)
        self._settle([0] if self.joint else due)

    def add_arm(self) -> None:
        self.n = np.append(self.n, 0.0)
        if self.joint:
            self._anew()
        else:
            self.inner.add_arm()
            self.total = np.vstack([self.total, [0.0, 0.0]])
            self.due = np.append(self.due, 1.0)

    def remove_arm(self, k: int) -> None:
        self.n = np.delete(self.n, k)
        self.rounds.drop(k)
        if self.joint:
            self._anew()
        else:
            self.inner.remove_arm(k)
            self.total = np.delete(self.total, k, axis=0)
            self.due = np.delete(self.due, k)

    def _anew(self) -> None:
        """The model of so many arms, from the rounds."""
        self.plan = self.plan.of_arms(len(self.n))
        self.glm = self.plan.functions.regression
        self._begin()
        self._settle([0] if len(self.rounds) else [])

    def fork(self) -> Self:
        """What is known now, to be gone on with while this stays as it is."""
        twin = object.__new__(type(self))
        own = {"total": self.total.copy(), "due": self.due.copy()}
        vars(twin).update(vars(self), inner=self.inner.fork(), rounds=self.rounds.fork(), **own)
        return twin

    # ---- all that is known -----------------------------------------------------------------------

    def posterior(self, k: int, rows: dict[str, Array]) -> Posterior:
        """Draws of arm k's variables; of arms that share the model, of all of them."""
        g, rng = 0 if self.joint else k, np.random.default_rng(0)
        _, values = self.inner.known(g).drawn(self.glm.block, self.spec.draws, rng)
        drawn = SampledDraws({name: v[None] for name, v in values.items()}, independent=True)
        return Posterior(self.plan, self.rounds.of(None if self.joint else k), drawn, 0)

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as arrays and plain values."""
        return {
            "arms": self.inner.inner.arms, "rounds": self.rounds.state(),
            "total": self.total, "due": self.due,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.inner.inner.restore({"arms": state["arms"]})
        self.rounds.restore(state["rounds"], len(self.n))
        self.n = np.bincount(self.rounds.arm, minlength=len(self.n)).astype(np.float64)
        for name, own in {"total": self.total, "due": self.due}.items():
            found = state[name]
            if found.shape != own.shape or not (np.isfinite(found) & (found >= 0.0)).all():
                raise ValueError(f"{name} must be {own.shape}, ≥ 0; got {found}")
            own[:] = found

    def verify(self, total: int) -> None:
        self.inner.verify(total)
        self.rounds.verify(len(self.n))
