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

from dataclasses import dataclass, field

import numpy as np

from bayesbandit.systems.iltcb.oracle import Oracle, Scorer

Array = np.ndarray
MAX_POLICIES = 1000  # the most policies; a few dozen are usual
EXCESS_TOLERANCE = 1e-9


@dataclass
class Mixture:
    """Policies with weights Q ≥ 0, which sum to at most 1; the leader has the remaining weight.

    The leader's scores estimate gains. The other policies' scores include a bonus for arms that
    were little explored.
    """

    leader: Scorer
    policies: list[Scorer] = field(default_factory=list)
    weights: Array = field(default_factory=lambda: np.zeros(0))

    def votes(self, x: Array, available: Array) -> Array:
        """Return each available arm's share of the policies' votes at x (n, d): (n, A).

        available: booleans (K,), A of them true.
        """
        total = np.zeros((len(x), int(available.sum())))
        row = np.arange(len(x))
        shares = [*self.weights.tolist(), max(1.0 - float(self.weights.sum()), 0.0)]
        for policy, share in zip(self.everyone, shares, strict=True):
            total[row, policy.scores(x)[:, available].argmax(axis=1)] += share
        return total

    @property
    def everyone(self) -> list[Scorer]:
        """Return all policies, the leader last."""
        return [*self.policies, self.leader]


def solve(x: Array, gains: Array, mu: float, oracle: Oracle, psi: float = 100.0) -> Mixture:
    """Return the mixture for contexts x (n, d), gains (n, K) and minimum probability μ ≤ 1/(2K)."""
    n, K = gains.shape
    find, row = oracle.on(x), np.arange(n)
    leader = find(gains)
    best = float(gains[row, leader.scores(x).argmax(axis=1)].mean())
    mixture = Mixture(leader)
    choices = np.zeros((0, n), np.int64)
    gain = np.zeros(0)
    Q = np.zeros((n, K))
    for _ in range(MAX_POLICIES):
        # Σ Q(π)(2K + b_π) ≤ 2K: else all weights shrink until it holds
        regret = float(mixture.weights @ (2.0 * K + (best - gain) / (psi * mu)))
        if regret > 2.0 * K:
            mixture.weights *= 2.0 * K / regret
            Q *= 2.0 * K / regret
        inverse = 1.0 / ((1.0 - K * mu) * Q + mu)
        policy = find(gains + psi * mu * inverse)
        choice = policy.scores(x).argmax(axis=1)
        value = float(gains[row, choice].mean())
        if value > best:  # the oracle did not find this policy at first
            mixture.leader, best = policy, value
        v = inverse[row, choice]
        excess = v.mean() - 2.0 * K - (best - value) / (psi * mu)
        if not excess > EXCESS_TOLERANCE * K:
            break
        step = (v.mean() + excess) / (2.0 * (1.0 - K * mu) * float(v @ v) / n)
        Q[row, choice] += step
        same = np.flatnonzero((choices == choice).all(axis=1))
        if same.size:
            mixture.weights[same[0]] += step
        else:
            mixture.policies.append(policy)
            mixture.weights = np.append(mixture.weights, step)
            choices = np.vstack([choices, choice])
            gain = np.append(gain, value)
    return mixture
