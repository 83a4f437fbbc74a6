"""The optimisation problem of ILOVETOCONBANDITS, by coordinate descent.

Agarwal, Hsu, Kale, Langford, Li and Schapire (2014), "Taming the monster", (OP) and Algorithm 2.
Of a history of contexts and gains R̂(x, a) (rewards of the arms that were played, by the inverse of
their propensities) and a least probability μ, find weights Q ≥ 0 of policies π with

    Σ_π Q(π) b_π ≤ 2K,    E_x[1 / Q^μ(π(x) | x)] ≤ 2K + b_π   for every π,

Q^μ(a | x) = (1 − Kμ) Σ_{π(x) = a} Q(π) + μ, and b_π = (max R̂ − R̂(π)) / (ψ μ) the estimated regret
of a policy: little of it is chosen often, and whatever is chosen seldom is explored enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bayesbandit.systems.iltcb.oracle import Oracle, Scorer

Array = np.ndarray
STEPS = 1000  # policies at most; a few dozen are usual
ROUNDING = 1e-9


@dataclass
class Mixture:
    """Policies with their weights Q ≥ 0, which sum to 1 at most; what is left is the leader's.

    Scores are gains, of other policies than the leader with a bonus where little was explored.
    """

    leader: Scorer
    policies: list[Scorer] = field(default_factory=list)
    weights: Array = field(default_factory=lambda: np.zeros(0))

    def votes(self, x: Array, available: Array) -> Array:
        """The share of the policies that choose each of the available arms at x (n, d): (n, A)."""
        total, row = np.zeros((len(x), int(available.sum()))), np.arange(len(x))
        shares = [*self.weights.tolist(), max(1.0 - float(self.weights.sum()), 0.0)]
        for policy, share in zip(self.everyone, shares, strict=True):
            total[row, policy.scores(x)[:, available].argmax(axis=1)] += share
        return total

    @property
    def everyone(self) -> list[Scorer]:
        """The policies, the leader last."""
        return [*self.policies, self.leader]


def solve(x: Array, gains: Array, mu: float, oracle: Oracle, psi: float = 100.0) -> Mixture:
    """The mixture for contexts x (n, d) and gains (n, K), given a least probability μ ≤ 1/(2K)."""
    n, K = gains.shape
    find, row = oracle.on(x), np.arange(n)
    leader = find(gains)
    best = float(gains[row, leader.scores(x).argmax(axis=1)].mean())
    found, mine, gain = Mixture(leader), np.zeros((0, n), np.int64), np.zeros(0)
    Q = np.zeros((n, K))
    for _ in range(STEPS):
        spent = float(found.weights @ (2.0 * K + (best - gain) / (psi * mu)))
        if spent > 2.0 * K:
            found.weights *= 2.0 * K / spent
            Q *= 2.0 * K / spent
        inverse = 1.0 / ((1.0 - K * mu) * Q + mu)
        policy = find(gains + psi * mu * inverse)
        chosen = policy.scores(x).argmax(axis=1)
        own = float(gains[row, chosen].mean())
        if own > best:  # the oracle had missed it
            found.leader, best = policy, own
        one = inverse[row, chosen]
        excess = one.mean() - 2.0 * K - (best - own) / (psi * mu)
        if not excess > ROUNDING * K:
            break
        more = (one.mean() + excess) / (2.0 * (1.0 - K * mu) * float(one @ one) / n)
        Q[row, chosen] += more
        known = np.flatnonzero((mine == chosen).all(axis=1))
        if known.size:
            found.weights[known[0]] += more
        else:
            found.policies.append(policy)
            found.weights = np.append(found.weights, more)
            mine, gain = np.vstack([mine, chosen]), np.append(gain, own)
    return found
