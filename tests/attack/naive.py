"""A bandit of ridge regressions without any of its machinery: a list of rounds, all computed anew.

What arrives late, in batches, of arms that come and go; weights of the moment of decision, pooled
over snapshots, or estimated; everything by `tests.oracle`, that is by other means.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesbandit.beliefs.linear import RIDGE_CANDIDATES
from tests import oracle

NODES, SHARES = np.polynomial.legendre.leggauss(24)


NOTHING = np.empty((0, 1)), np.empty(0), np.empty(0), 1.0  # an arm's rows, weights and λ


@dataclass
class Round:
    x: list[float]
    arm: Any
    reward: float
    p: float  # at the moment of decision
    weight: float = 1.0
    gone: bool = False  # its arm has been removed since, and may have come back


class Naive:
    """`learn` takes rounds in; `moments` and `chances` say what is known."""

    def __init__(
        self, arms, rule, balance=None, clip=1.0, refresh=0.25, snapshots=32, intercept=True,
        variance="empirical_bayes", prior_rows=2.0, prior=(1.0, 1.0), grid=None, folds=5,
        normalize=False,
    ):  # fmt: skip
        self.arms, self.rule, self.balance, self.clip = list(arms), rule, balance, clip
        self.refresh, self.snapshots, self.intercept = refresh, snapshots, intercept
        self.variance, self.prior, self.normalize = variance, prior, normalize
        self.prior_rows = prior_rows
        self.grid, self.folds = RIDGE_CANDIDATES if grid == "default" else grid, folds
        self.rounds, self.due, self.stale = [], {}, True
        self.past = []  # [periods, arms, posteriors, chances by context] of each snapshot
        self.fit, self.known = None, {}

    def of(self, arm):
        return [r for r in self.rounds if r.arm == arm and not r.gone]

    def posterior(self, arm):
        """θ, its spread matrix and degrees of freedom; None before the first reward."""
        if not (mine := self.of(arm)):
            return None
        (theta, inverse, sigma2, df), _ = self._fit(mine)
        if self.variance == "empirical_bayes":
            sigma2 = self._pooled()[self.arms.index(arm)]
        return theta, sigma2 * inverse, df

    def _pooled(self):
        """σ² of all arms, where each depends on all."""
        rows = [self.of(arm) for arm in self.arms]
        return self._once(tuple(map(_key, rows)), lambda: oracle.pooled_noise(
            [self._fit(r)[1] if r else NOTHING for r in rows], self.prior_rows, self.intercept
        ))  # fmt: skip

    def _fit(self, mine):
        """θ, B⁻¹, σ² and degrees of freedom, and x, rewards, weights and λ, of an arm alone."""
        return self._once(_key(mine), lambda: self._fitted(mine))

    def _once(self, key, compute):
        if key not in self.known:
            self.known[key] = compute()
        return self.known[key]

    def _fitted(self, mine):
        x, reward, w = (np.array([getattr(r, k) for r in mine]) for k in ("x", "reward", "weight"))
        w, own, lam = w / w.mean() if self.normalize else w, self.intercept, 1.0
        if self.grid is not None:
            lam = oracle.cross_validated(x, reward, w, self.grid, self.folds, own)
        sigma2, df = oracle.noise(x, reward, w, lam, self.variance, own, prior=self.prior)
        theta = oracle.sklearn_ridge(x, reward, w, lam, own)
        inverse = np.linalg.inv(oracle.precision(x, w, lam, own))
        return (theta, inverse, sigma2, df), (x, reward, w, lam)

    def moments(self, x):
        """Means and scales (K,) and degrees of freedom at x; None while an arm has no reward."""
        return self._at(x, [self.posterior(arm) for arm in self.arms])

    def _at(self, x, posteriors):
        if None in [p and p[2] for p in posteriors]:
            return None
        z = oracle.design(x, self.intercept)[0]
        mean = np.array([z @ theta for theta, _, _ in posteriors])
        scale = np.array([np.sqrt(z @ spread @ z) for _, spread, _ in posteriors])
        return mean, scale, np.array([df for *_, df in posteriors])

    def chances(self, x, among=None, posteriors=None):
        """P(arm) (K,) at x by today's posteriors or these, among all arms or some."""
        posteriors = [self.posterior(a) for a in self.arms] if posteriors is None else posteriors
        among = np.ones(len(posteriors), bool) if among is None else among
        new = np.array([self._at(x, [p]) is None for p in posteriors])
        old, out, count = among & ~new, np.zeros(len(posteriors)), among.sum()
        out[among & new] = 1 / count
        if not old.any():
            return out
        found = self._at(x, [p for p, here in zip(posteriors, old, strict=True) if here])
        if self.rule[0] == "Thompson" and np.isinf(found[2]).all():
            p = best_arm(found[0], self.rule[1] * found[1])
        else:
            p = oracle.policy_probabilities(*self.rule, *found)
        out[old] = p * old.sum() / count
        return out

    def learn(self, rounds):
        """Of one call: weighed by what is known before it, and all of them then known."""
        if self.balance == "decision":
            for r in rounds:
                r.weight = 1 / max(self.clip, r.p)
        elif self.balance is not None:
            self._count(len(rounds))
            chances = [self._estimate(r) for r in rounds]
            for r, p in zip(rounds, chances, strict=True):
                r.weight = 1 / max(self.clip, r.p if p is None else p)
        self.rounds += rounds
        if self.balance in ("pooled", "estimated"):
            self._settle({r.arm for r in rounds})

    def _count(self, n):
        if self.balance == "pooled":
            if self.stale or self.past[-1][1] != self.arms:
                if len(self.past) == self.snapshots:
                    pairs = [self.past[i : i + 2] for i in range(0, len(self.past), 2)]
                    self.past = [[sum(p[0] for p in pair), *pair[0][1:]] for pair in pairs]
                posteriors = [self.posterior(a) for a in self.arms]
                self.past.append([0, list(self.arms), posteriors, {}])
                self.stale = False
            self.past[-1][0] += n

    def _estimate(self, r):
        if self.balance == "pooled":
            total = sum(periods for periods, *_ in self.past)
            there = [snapshot for snapshot in self.past if r.arm in snapshot[1]]
            for _, _, posteriors, chances in there:
                if tuple(r.x) not in chances:
                    chances[tuple(r.x)] = self.chances(r.x, None, posteriors)
            return sum(
                periods / total * chances[tuple(r.x)][arms.index(r.arm)]
                for periods, arms, _, chances in there
            )
        names, fit = self.fit or ((), None)
        if r.arm not in names:
            return None
        return fit.predict_proba([r.x])[0][names.index(r.arm)]

    def _settle(self, pulled):
        due = [a for a in self.arms if a in pulled and len(self.of(a)) >= self.due.get(a, 1)]
        if not due:
            return
        self.stale = True
        names = sorted({r.arm for r in self.rounds}, key=str)
        if self.balance == "estimated" and len(names) > 1:
            fit = make_pipeline(
                StandardScaler(), LogisticRegression(solver="newton-cholesky", tol=1e-10)
            )
            code = [names.index(r.arm) for r in self.rounds]
            self.fit = names, fit.fit([r.x for r in self.rounds], code)
        for arm in due:
            mine = self.of(arm)
            for r in mine:
                p = self._estimate(r)
                r.weight = r.weight if p is None else 1 / max(self.clip, p)
            n, share = len(mine), self.refresh
            self.due[arm] = (
                n + share if type(share) is int else max(n + 1, math.ceil(n + n * share))
            )

    def add(self, arm):
        self.arms.append(arm)

    def remove(self, arm):
        self.arms.remove(arm)
        self.due.pop(arm, None)
        for r in self.of(arm):
            r.gone = True


def _key(mine):
    return tuple((*r.x, r.reward, r.weight) for r in mine)


def best_arm(mean, scale):
    """P(arm k is best) (K,) of independent normals: as `oracle.best_arm`, sooner."""
    if not scale.any():  # a constant that fits one reward of each arm exactly
        best = mean == mean.max()
        return best / best.sum()
    edges = np.unique(mean[:, None] + np.outer(scale, [-8.5, -6, -4, -2, -1, 0, 1, 2, 4, 6, 8.5]))
    half = np.diff(edges) / 2
    y = ((edges[:-1] + half)[:, None] + half[:, None] * NODES).ravel()
    z = (y[:, None] - mean) / scale
    below = ndtr(z)
    return np.array([
        (half[:, None] * SHARES).ravel()
        @ (np.exp(-z[:, k] ** 2 / 2) / np.sqrt(2 * np.pi) / scale[k]
           * np.delete(below, k, axis=1).prod(axis=1))
        for k in range(len(mean))
    ])  # fmt: skip
