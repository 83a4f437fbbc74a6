"""The optimisation problem of ILOVETOCONBANDITS, by coordinate descent.

Agarwal, Hsu, Kale, Langford, Li and Schapire (2014), "Taming the monster", (OP) and Algorithm 2.
The history gives contexts and gains R̂(x, a): the reward of the arm that was played times the
inverse of its propensity. Given a minimum probability μ, find weights Q ≥ 0 of policies π with

    Σ_π Q(π) b_π ≤ 2K,    E_x[1 / Q^μ(π(x) | x)] ≤ 2K + b_π   for every π,

Q^μ(a | x) = (1 − Kμ) Σ_{π(x) = a} Q(π) + μ, and b_π = (max R̂ − R̂(π)) / (ψ μ) is the scaled
estimated regret of a policy. The first condition keeps the regret small. The second ensures that
the choices of good policies are explored enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.systems.iltcb.oracle import scores

MAX_POLICIES = 1000  # the most policies; a few dozen are usual
EXCESS_TOLERANCE = 1e-9


class Mixture(NamedTuple):
    """Policies with weights Q ≥ 0, which sum to at most 1; the leader has the remaining weight.

    coef: the policies' coefficients (P + 1, d + 1, K), those of the leader last. weights (P,).
    The leader's scores estimate gains. The other policies' scores include a bonus for arms that
    were little explored.
    """

    coef: Array
    weights: Array

    def votes(self, x: Array, available: Array) -> Array:
        """Return each available arm's share of the policies' votes at x (n, d): (n, A).

        available: booleans (K,), A of them true.
        """
        total = np.zeros((len(x), int(available.sum())))
        row = np.arange(len(x))
        shares = [*self.weights.tolist(), max(1.0 - float(self.weights.sum()), 0.0)]
        for policy, share in zip(self.coef, shares, strict=True):
            total[row, scores(x, policy)[:, available].argmax(axis=1)] += share
        return total


def solve(
    x: Array, gains: Array, mu: float, find: Callable[[Array], Array], psi: float = 100.0
) -> Mixture:
    """Return the mixture for contexts x (n, d), gains (n, K) and minimum probability μ ≤ 1/(2K).

    find: a function from gains to the policy of the largest total gain, as `least_squares(x)`.
    """
    n, K = gains.shape
    row = np.arange(n)
    leader = find(gains)
    best = float(gains[row, scores(x, leader).argmax(axis=1)].mean())
    policies = list[Array]()
    weights = np.zeros(0)
    choices = np.zeros((0, n), np.int64)
    gain = np.zeros(0)
    Q = np.zeros((n, K))
    for _ in range(MAX_POLICIES):
        # Σ Q(π)(2K + b_π) ≤ 2K: else all weights shrink until it holds
        regret = float(weights @ (2.0 * K + (best - gain) / (psi * mu)))
        if regret > 2.0 * K:
            weights *= 2.0 * K / regret
            Q *= 2.0 * K / regret
        inverse = 1.0 / ((1.0 - K * mu) * Q + mu)
        policy = find(gains + psi * mu * inverse)
        choice = scores(x, policy).argmax(axis=1)
        value = float(gains[row, choice].mean())
        if value > best:  # the oracle did not find this policy at first
            leader = policy
            best = value
        v = inverse[row, choice]
        excess = v.mean() - 2.0 * K - (best - value) / (psi * mu)
        if not excess > EXCESS_TOLERANCE * K:
            break
        step = (v.mean() + excess) / (2.0 * (1.0 - K * mu) * float(v @ v) / n)
        Q[row, choice] += step
        same = np.flatnonzero((choices == choice).all(axis=1))
        if same.size:
            weights[same[0]] += step
        else:
            policies.append(policy)
            weights = np.append(weights, step)
            choices = np.vstack([choices, choice])
            gain = np.append(gain, value)
    return Mixture(np.stack([*policies, leader]), weights)
