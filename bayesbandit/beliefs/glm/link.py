"""The link of a declared generalised linear model, by Laplace's approximation.

The log posterior of θ is approximated by a quadratic at its mode. A reward moves the mode to that
of the quadratic plus the reward's log likelihood, and adds the likelihood's curvature there: this
is Newton's method online. On a schedule the mode is computed again from all rows, which gives the
approximation of `bb.fit`.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.linalg import solve_triangular

from bayesbandit.beliefs.declared_features import Mapped
from bayesbandit.beliefs.glm.prediction import Increasing
from bayesbandit.beliefs.memory import Memory
from bayesbandit.beliefs.regressions import Regressions
from bayesbandit.checks import Array
from bayesbandit.forms import Numbers, State
from bayesbandit.inference.base import NotThisEngine
from bayesbandit.inference.exact.distributions import Gaussian
from bayesbandit.inference.glm.regression import Linearized, Regression, mode
from bayesbandit.inference.plan import Plan
from bayesbandit.kernels.glm import newton
from bayesbandit.schedule import Schedule

if TYPE_CHECKING:
    from bayesbandit.predictions import Joint, LocationScale


def linearized(
    plan: Plan, glm: Regression, n_arms: int, normalize: bool, memory: Memory, schedule: Schedule
) -> Regressions:
    """Return the belief about arms with a generalised linear model each, or one that they share."""
    joint = plan.model.takes_arm
    link = Link(plan, glm, 1 if joint else n_arms, normalize, schedule)
    features = link.features()
    return Regressions(features, n_arms, plan.n_features, memory=memory, joint=joint, link=link)


class Link:
    """What rewards say of the linear predictor η: rows of `Regressions`, near the mode.

    total (G, 2): each regression's sum of weights and number of rows. due (G,): the number of rows
    at which its mode is next computed from all rows.
    """

    def __init__(
        self, plan: Plan, glm: Regression, n_regressions: int, normalize: bool, schedule: Schedule
    ) -> None:
        self.plan = plan
        self.glm = glm
        self.normalize = normalize
        self.schedule = schedule
        self.total = np.zeros((n_regressions, 2))
        self.due = np.ones(n_regressions)

    def features(self) -> Mapped:
        """Return the regressors of η."""
        return Mapped(self.plan, self.glm.block)

    def of_arms(self, n_arms: int) -> Link:
        """Return the link of a model that arms share, for another number of them."""
        plan = self.plan.of_arms(n_arms)
        return Link(plan, plan.functions.regression, 1, self.normalize, self.schedule)

    # ---- mean rewards ----------------------------------------------------------------------------

    def prediction(self, eta: LocationScale | Joint) -> Increasing:
        """Return the prediction of mean rewards from that of η."""
        return Increasing(eta, self.glm.family)

    def known(self, of: Gaussian) -> Linearized:
        """Return the distribution of the variables from that of the coefficients."""
        return Linearized(of.mean, of.precision, of.cholesky, np.nan, self.glm)

    # ---- rewards ---------------------------------------------------------------------------------

    def learn(
        self, of: Regressions, tick: Array | None, x: Array, arm: Array, reward: Array,
        weight: Array,
    ) -> None:  # fmt: skip
        """Learn rounds x (n, d), arm numbers, rewards, powers of likelihoods (n,).

        tick: when they were decided, if they fade. Raise ValueError and learn nothing if a reward
        has likelihood 0 for all variables.
        """
        rows = {"x": x, "reward": reward, "weight": weight, "arm": arm}
        try:
            self.glm.check(rows)
        except NotThisEngine:
            self.plan.check_possible(rows)
            raise
        z, offset = of.features(x, arm if of.joint else None)
        z = np.ascontiguousarray(z)
        reward = np.ascontiguousarray(reward)
        group = np.zeros_like(arm) if of.joint else np.ascontiguousarray(arm)
        ridges = of.ridges
        family = self.glm.family
        power = np.ascontiguousarray(self.glm.weights(rows))
        share = np.zeros(len(x))
        if tick is not None:
            share = ridges.share_of(tick, group)
            power = power * share
        done = 0
        while done < len(x):
            first = done
            done = newton.observe(
                ridges.arms, ridges.settings, z, offset, group, reward, power, family.kind,
                family.number, self.normalize, self.total, self.due, done,
            )  # fmt: skip
            part = slice(first, done)
            ridges.count_left(group[part], share[part])
            of.keep(None if tick is None else tick[part], x[part], arm[part], reward[part],
                    weight[part])  # fmt: skip
            g = int(group[done - 1])
            if self.total[g, 1] >= self.due[g]:
                self.settle(of, [g])

    def settle(self, of: Regressions, groups: Iterable[int]) -> None:
        """Compute the modes of these regressions from all of their rows."""
        ridges = of.ridges
        rounds = of.rounds
        assert rounds is not None
        for g in groups:
            rows = rounds.of(None if of.joint else g)
            reward = rows["reward"]
            power = self.glm.weights(rows)
            n = len(reward)
            tick = rounds.tick
            if tick is not None and not of.joint:
                tick = tick[rounds.arm == g]
            self.total[g] = power.sum(), n
            self.due[g] = self.schedule.next_due(n)
            if self.normalize and n:
                power = power * (n / power.sum())
            z, offset = of.features(rows["x"], rows.get("arm"))
            left = power if tick is None else ridges.share_of(tick, np.full(n, g)) * power
            _, R = self.glm.whitening  # φ = Ru with u ~ N(0, I) before any data
            last = solve_triangular(R, of.coefficients(g))
            u = mode(self.glm.family, z @ R, offset, reward, left, start=last)
            # at the mode the log likelihood is, to second order, that of rewards y of precision v:
            # iteratively reweighted least squares (McCullagh & Nelder 1989, section 2.5)
            y, v = self.glm.family.pseudo_rows(z @ (R @ u) + offset, reward, power)
            ridges.rebuild(g, z, y - offset, v, tick)

    def forget(self, n: Array) -> None:
        """Start again the regressions without rows; n (G,): how many each has."""
        self.total[n == 0] = 0.0
        self.due[n == 0] = 1.0

    # ---- arms that come and go, and files --------------------------------------------------------

    def add_arm(self) -> None:
        """Add a regression without rows."""
        self.total = np.vstack([self.total, [0.0, 0.0]])
        self.due = np.append(self.due, 1.0)

    def remove_arm(self, k: int) -> None:
        """Remove regression k; later ones move up by one."""
        self.total = np.delete(self.total, k, axis=0)
        self.due = np.delete(self.due, k)

    def fork(self) -> Self:
        """Return a copy that may change while this one stays as it is."""
        twin = copy(self)
        twin.total = self.total.copy()
        twin.due = self.due.copy()
        return twin

    def state(self) -> State:
        """Return what changes as arrays, for `restore`."""
        return {"total": self.total, "due": self.due}

    def form(self) -> dict[str, Numbers]:
        """Return the form of each part of a state."""
        return {name: Numbers(v.shape, least=0.0) for name, v in self.state().items()}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        self.total[:] = state["total"]
        self.due[:] = state["due"]
