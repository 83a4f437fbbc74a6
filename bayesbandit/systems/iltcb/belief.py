"""What ILOVETOCONBANDITS believes: which policies are good, as a distribution over them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np

from bayesbandit import Belief, Prediction, Rounds, Schedule, one_thread, savable
from bayesbandit.checks import integer, number, one_of
from bayesbandit.systems.iltcb.optimisation import Mixture, solve
from bayesbandit.systems.iltcb.oracle import Linear, LinearOracle, Oracle, penalised

Array = np.ndarray


@savable
@dataclass(frozen=True)
class PolicyMixture:
    """A model of ILOVETOCONBANDITS (Agarwal et al. 2014): with Thompson sampling and inverse
    propensities as weights it is the algorithm, and `best` its probabilities.

    exploration: c of the least probability, with n rounds in all,
        μ = min(1/(2K), c √(ln(16 n² |Π| / δ) / (K n))).
    delta: δ in (0, 1). log_policies: ln |Π|; None: (d + 1) ln K. psi: ψ, by how much less than its
    estimate a policy's regret counts.
    gains: of every arm at every past context. "ips": rewards of the arms that were played by the
        inverse of their propensities, 0 elsewhere, as the theory has it; "dr", doubly robust: the
        same of what a ridge regression for each arm leaves, beside what it says, which varies less.
    oracle: finds policies of large gain; `LinearOracle()` or a class of yours.
    refit_every: the epochs; 1.0 doubles the rounds from one to the next.
    rewards: least and largest reward that there can be; the theory is of rewards from 0 to 1.
    """

    compares_arms: ClassVar[bool] = True  # it has nothing to say of a row of features alone

    exploration: float = 0.1
    delta: float = 0.05
    log_policies: float | None = None
    psi: float = 100.0
    gains: Literal["dr", "ips"] = "dr"
    oracle: Oracle = field(default_factory=LinearOracle)
    refit_every: float | int = 1.0
    rewards: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        number(self.exploration, "exploration", above=0)
        number(self.delta, "delta", above=0, below=1)
        number(self.psi, "psi", above=0)
        one_of(self.gains, "gains", ("dr", "ips"))
        if self.log_policies is not None:
            number(self.log_policies, "log_policies", least=0)
        if not callable(getattr(self.oracle, "on", None)):
            raise TypeError(f"oracle must have a method on(x); got {self.oracle!r}")
        Schedule(self.refit_every)
        low, high = self.rewards
        if not number(low, "the least reward") < number(high, "the largest reward"):
            raise ValueError(f"rewards must be (least, largest); got {self.rewards!r}")

    def least_probability(self, n: int, n_arms: int, n_features: int) -> float:
        """μ after n rounds."""
        K, most = n_arms, 0.5 / n_arms
        if n == 0 or K == 1:
            return most
        log_policies = self.log_policies
        if log_policies is None:
            log_policies = (n_features + 1) * math.log(K)
        log = math.log(16.0 * n**2 / self.delta) + log_policies
        return min(most, self.exploration * math.sqrt(log / (K * n)))

    def belief(
        self,
        n_arms: int,
        n_features: int,
        normalize: bool = False,
        seed: np.random.SeedSequence | None = None,
    ) -> PolicyBelief:
        """The belief before any rounds. It has no use for a seed."""
        if normalize:
            raise ValueError("gains are weighed by inverse propensities, not of mean 1")
        return PolicyBelief(self, n_arms, n_features)


def estimated_gains(
    x: Array, arm: Array, reward: Array, weight: Array, n_arms: int, how: str
) -> Array:
    """Gains (n, K) of all arms at contexts x (n, d), of which the arms (n,) had these rewards and
    inverse propensities (n,)."""
    n, gains = len(x), np.zeros((len(x), n_arms))
    if how == "dr":
        z = np.column_stack([x, np.ones(n)])
        for k in np.unique(arm):
            mine, w = z[arm == k], weight[arm == k]
            G = penalised((mine.T * w) @ mine, 1.0)
            gains[:, k] = z @ np.linalg.solve(G, mine.T @ (w * reward[arm == k]))
    row = np.arange(n)
    gains[row, arm] += weight * (reward - gains[row, arm])
    return gains


class PolicyBelief(Belief):
    """Policies and their weights, found anew at the beginning of each epoch.

    mixture: the policies and their weights; None before the first epoch. mu: μ of the epoch.
    """

    def __init__(self, spec: PolicyMixture, n_arms: int, n_features: int) -> None:
        self.spec, self.n_features, self.n = spec, n_features, np.zeros(n_arms)
        self.rounds = Rounds(n_features)
        self.mixture: Mixture | None = None
        self.fitted = 0  # rounds that the mixture is of
        self.mu = spec.least_probability(0, n_arms, n_features)

    def __repr__(self) -> str:
        policies = 0 if self.mixture is None else len(self.mixture.policies)
        return f"PolicyBelief({policies} policies, least probability {self.mu:.3g})"

    def predict(self, x: Array) -> Votes:
        every = np.ones(len(self.n), np.bool_)
        return Votes(self.mixture, self.mu, self.spec.rewards, x, every)

    # ---- rewards ---------------------------------------------------------------------------------

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Rounds x (n, d), arm numbers (n,), rewards (n,), inverse propensities (n,; None: 1)."""
        low, high = self.spec.rewards
        if not ((reward >= low) & (reward <= high)).all():
            wrong = reward[(reward < low) | (reward > high)][0]
            raise ValueError(
                f"rewards must be from {low:g} to {high:g}; got {wrong:g}: PolicyMixture(rewards=…)"
            )
        due = Schedule(self.spec.refit_every).next_due(self.fitted)
        for i in range(len(x)):  # epochs end where they would if rounds came one by one
            one = slice(i, i + 1)
            self.rounds.append(
                x[one], arm[one], reward[one], None if weight is None else weight[one]
            )
            self.n = self.n + np.bincount(arm[one], minlength=len(self.n))
            if len(self.rounds) >= due:
                self._settle()
                due = Schedule(self.spec.refit_every).next_due(self.fitted)

    def _settle(self) -> None:
        """The mixture of all rounds."""
        rounds, K = self.rounds.of(), len(self.n)
        n, (low, high) = len(rounds["arm"]), self.spec.rewards
        self.fitted, self.mu = n, self.spec.least_probability(n, K, self.n_features)
        if n == 0:
            self.mixture = None
            return
        reward = (rounds["reward"] - low) / (high - low)
        with one_thread():
            gains = estimated_gains(
                rounds["x"], rounds["arm"], reward, rounds["weight"], K, self.spec.gains
            )
            self.mixture = solve(rounds["x"], gains, self.mu, self.spec.oracle, self.spec.psi)

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        self.rounds.replace(x, arm, reward, weight)

    def add_arm(self) -> None:
        self.n = np.append(self.n, 0.0)
        self._settle()

    def remove_arm(self, k: int) -> None:
        self.rounds.drop(k)
        self.n = np.delete(self.n, k)
        self._settle()

    def fork(self) -> Self:
        twin = copy(self)
        twin.rounds = self.rounds.fork()
        return twin

    # ---- all that is known -----------------------------------------------------------------------

    def posterior(self, k: int, rows: dict[str, Array]) -> Any:
        raise TypeError("ILOVETOCONBANDITS has no posterior; its policies are in belief.mixture")

    def state(self) -> dict[str, Any]:
        """Rounds, policies and weights, of the `LinearOracle` alone."""
        state: dict[str, Any] = {
            "rounds": self.rounds.state(),
            "fitted": self.fitted,
            "mu": self.mu,
        }
        if (mixture := self.mixture) is not None:
            linear = [policy for policy in mixture.everyone if isinstance(policy, Linear)]
            if len(linear) < len(mixture.everyone):
                raise TypeError("only policies of the LinearOracle can be saved")
            state["coef"] = np.stack([policy.coef for policy in linear])
            state["weights"] = mixture.weights
        return state

    def restore(self, state: dict[str, Any]) -> None:
        self.rounds.restore(state["rounds"], len(self.n))
        self.n = np.bincount(self.rounds.arm, minlength=len(self.n)).astype(np.float64)
        self.fitted = integer(state["fitted"], "fitted")
        self.mu, self.mixture = number(state["mu"], "mu", above=0, most=0.5), None
        if "coef" in state:
            coef, weights = state["coef"], state["weights"]
            P, wanted = len(weights), (len(weights) + 1, self.n_features + 1, len(self.n))
            if coef.shape != wanted or weights.shape != (P,) or not np.isfinite(coef).all():
                raise ValueError(f"policies must be finite, {wanted}; got {coef.shape}")
            if not ((weights >= 0.0).all() and weights.sum() <= 1.0 + 1e-9):
                raise ValueError(f"weights must be ≥ 0 with a sum ≤ 1; got {weights}")
            *policies, leader = (Linear(one) for one in coef)
            self.mixture = Mixture(leader, list(policies), weights)

    def verify(self, total: int) -> None:
        self.rounds.verify(len(self.n))


class Votes(Prediction):
    """What the policies say at contexts x (n, d) of the arms that are `among` all (K,).

    mean: the leader's scores, which are rewards by least squares with the `LinearOracle`; nothing
    is known of how uncertain they are.
    """

    def __init__(
        self, mixture: Mixture | None, mu: float, rewards: tuple[float, float], x: Array,
        which: Array,
    ) -> None:  # fmt: skip
        self.mixture, self.mu, self.rewards, self.x, self.which = mixture, mu, rewards, x, which

    @property
    def mean(self) -> Array:
        if self.mixture is None:
            return np.zeros((len(self.x), int(self.which.sum())))
        low, high = self.rewards
        return low + (high - low) * self.mixture.leader.scores(self.x)[:, self.which]

    @property
    def sd(self) -> Array:
        return np.zeros((len(self.x), int(self.which.sum())))

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        return np.stack([self.mean] * size)

    def best(self, alpha: float | Array = 1.0) -> Array:
        """Q^μ: the policies' votes among these arms, none of which gets less than μ."""
        K = int(self.which.sum())
        if self.mixture is None:
            return np.full((len(self.x), K), 1.0 / K)
        mu = min(self.mu, 0.5 / K)
        return mu + (1.0 - K * mu) * self.mixture.votes(self.x, self.which)

    def among(self, arms: Array) -> Votes:
        which = np.zeros_like(self.which)
        which[np.flatnonzero(self.which)[arms]] = True
        return Votes(self.mixture, self.mu, self.rewards, self.x, which)
