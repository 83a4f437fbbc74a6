"""The belief of ILOVETOCONBANDITS: a distribution over policies."""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from bayesbandit.checks import Array, number, one_of
from bayesbandit.extend import (
    ByDraws,
    Prediction,
    Schedule,
    one_thread,
    savable,
    settings_repr,
)
from bayesbandit.forms import Form, Numbers, Real, State, Whole, picked
from bayesbandit.systems.iltcb.optimisation import Mixture, solve
from bayesbandit.systems.iltcb.oracle import least_squares, penalised, scores


@savable
@dataclass(frozen=True)
class PolicyMixture:
    """A model of ILOVETOCONBANDITS (Agarwal et al. 2014).

    With the policy `Thompson` and inverse propensities as weights it is the algorithm. The method
    `best` of its predictions gives the algorithm's probabilities.

    exploration: c in the minimum probability after n rounds,
        μ = min(1/(2K), c √(ln(16 n² |Π| / δ) / (K n))).
    delta: δ in (0, 1).
    log_policies: ln |Π|; None: (d + 1) ln K.
    psi: ψ, by which a policy's estimated regret is divided. See `optimisation.py`.
    gains: how the reward of each arm at each past context is estimated. "ips", as in the theory:
        the reward times the inverse propensity for the arm that was played, 0 for the others.
        "dr", doubly robust: a ridge regression's prediction for each arm, plus the "ips" estimate
        of its residual. It has a smaller variance.
    ridge: λ of the regressions that find policies of large gain.
    refit_every: the length of the epochs; with 1.0 the rounds double from one to the next.
    rewards: the smallest and the largest possible reward; the theory assumes 0 and 1.
    """

    __repr__ = settings_repr

    compares_arms: ClassVar[bool] = True  # it compares the arms at a context; `Shared` refuses it

    exploration: float = 0.1
    delta: float = 0.05
    log_policies: float | None = None
    psi: float = 100.0
    gains: Literal["dr", "ips"] = "dr"
    ridge: float = 1.0
    refit_every: float | int = 1.0
    rewards: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        number(self.exploration, "exploration", above=0)
        number(self.delta, "delta", above=0, below=1)
        number(self.psi, "psi", above=0)
        one_of(self.gains, "gains", ("dr", "ips"))
        if self.log_policies is not None:
            number(self.log_policies, "log_policies", least=0)
        number(self.ridge, "ridge", above=0)
        Schedule(self.refit_every)
        low, high = self.rewards
        if not number(low, "the least reward") < number(high, "the largest reward"):
            raise ValueError(f"rewards must be (least, largest); got {self.rewards!r}")

    def least_probability(self, n: int, n_arms: int, n_features: int) -> float:
        """Return the minimum probability μ after n rounds."""
        K = n_arms
        largest = 0.5 / n_arms
        if n == 0 or K == 1:
            return largest
        log_policies = self.log_policies
        if log_policies is None:
            log_policies = (n_features + 1) * math.log(K)
        log = math.log(16.0 * n**2 / self.delta) + log_policies
        return min(largest, self.exploration * math.sqrt(log / (K * n)))

    def belief(
        self,
        n_arms: int,
        n_features: int,
        normalize: bool = False,
        seed: np.random.SeedSequence | None = None,
    ) -> PolicyBelief:
        """Return the belief before any rounds. The seed is not used.

        Raise ValueError with `normalize`.
        """
        if normalize:
            raise ValueError("gains are weighted by inverse propensities, not of mean 1")
        return PolicyBelief(self, n_arms, n_features)


def estimated_gains(
    x: Array, arm: Array, reward: Array, weight: Array, n_arms: int, how: str
) -> Array:
    """Return estimated gains (n, K) of all arms at contexts x (n, d).

    arm, reward, weight (n,): the arms that were played, their rewards and inverse propensities.
    how: "ips" or "dr", as in `PolicyMixture`.
    """
    n = len(x)
    gains = np.zeros((len(x), n_arms))
    if how == "dr":
        z = np.column_stack([x, np.ones(n)])
        for k in np.unique(arm):
            rows = z[arm == k]
            w = weight[arm == k]
            G = penalised((rows.T * w) @ rows, 1.0)
            gains[:, k] = z @ np.linalg.solve(G, rows.T @ (w * reward[arm == k]))
    row = np.arange(n)
    gains[row, arm] += weight * (reward - gains[row, arm])
    return gains


class PolicyBelief(ByDraws):
    """Policies and their weights, which are fitted again at the end of each epoch.

    mixture: the policies and their weights; None before the first fit.
    fitted: how many rounds the mixture was fitted to.
    mu: the minimum probability μ of the epoch.
    """

    def __init__(self, spec: PolicyMixture, n_arms: int, n_features: int) -> None:
        super().__init__(n_arms, n_features)
        self.spec = spec
        self.schedule = Schedule(spec.refit_every)
        self.fit(0)

    def __repr__(self) -> str:
        policies = 0 if self.mixture is None else len(self.mixture.weights)
        return f"PolicyBelief({policies} policies, least probability {self.mu:.3g})"

    def values(self, x: Array) -> Array:
        """Return the scores of all policies, (n, K, P)."""
        if self.mixture is None:
            return np.full((len(x), len(self.n), 1), np.nan)
        return np.moveaxis(scores(x, self.mixture.coef), 0, 2)

    def max_batch(self, x: Array) -> int:
        return len(x)  # votes are counted policy by policy

    def predict(self, x: Array) -> Votes:
        all_arms = np.ones(len(self.n), np.bool_)
        return Votes(self.mixture, self.mu, self.spec.rewards, x, all_arms)

    # ---- rewards ---------------------------------------------------------------------------------

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Learn from rounds: contexts x (n, d), and arm numbers, rewards and weights (n,).

        weight: inverse propensities; None: 1. Raise ValueError for a reward out of range.
        """
        low, high = self.spec.rewards
        if not ((reward >= low) & (reward <= high)).all():
            wrong = reward[(reward < low) | (reward > high)][0]
            raise ValueError(
                f"rewards must be from {low:g} to {high:g}; got {wrong:g}: PolicyMixture(rewards=…)"
            )
        super().update(x, arm, reward, weight)

    def learn(self, arms: Iterable[int]) -> None:
        n = len(self.rounds)
        due = self.schedule.latest(0 if n < self.fitted else self.fitted, n, 1)
        if due != self.fitted:
            self.fit(due)

    def fit(self, n: int) -> None:
        """Fit the mixture to the first n rounds."""
        K = len(self.n)
        self.fitted = n
        self.mu = self.spec.least_probability(n, K, self.n_features)
        self.mixture: Mixture | None = None
        if n == 0:
            return
        rounds = picked(self.rounds.of(), slice(n))
        x = rounds["x"]
        low, high = self.spec.rewards
        reward = (rounds["reward"] - low) / (high - low)
        with one_thread():
            gains = estimated_gains(x, rounds["arm"], reward, rounds["weight"], K, self.spec.gains)
            find = least_squares(x, self.spec.ridge)
            self.mixture = solve(x, gains, self.mu, find, self.spec.psi)

    def recount(self, n_arms: int) -> None:
        super().recount(n_arms)
        self.fit(len(self.rounds))

    def fork(self) -> Self:
        twin = copy(self)  # mixtures and counts are replaced, never changed in place
        twin.rounds = self.rounds.fork()
        return twin

    # ---- state -----------------------------------------------------------------------------------

    def state(self) -> State:
        """Return rounds, policies and weights."""
        mixture = {} if self.mixture is None else self.mixture._asdict()
        return super().state() | {"fitted": self.fitted, "mu": self.mu, **mixture}

    def form(self, state: State, total: int) -> Form:
        form = super().form(state, total)
        form |= {"fitted": Whole(0, total), "mu": Real(5e-324, 0.5)}
        if "coef" in state:
            P = len(state["weights"])
            form["coef"] = Numbers((P + 1, self.n_features + 1, len(self.n)))
            form["weights"] = Numbers((P,), 0.0, 1.0 + 1e-9)
        return form

    def restore(self, state: State) -> None:
        self.restore_rounds(state)
        self.fitted = state["fitted"]
        self.mu = state["mu"]
        self.mixture = None
        if "coef" in state:
            self.mixture = Mixture(state["coef"], state["weights"])


class Votes(Prediction):
    """The policies' votes at contexts x (n, d) for some of the arms.

    which: booleans (K,), the arms in question.
    mean: the leader's scores, which are least-squares estimates of rewards.
    sd: 0, because the uncertainty of the scores is not known.
    """

    def __init__(
        self, mixture: Mixture | None, mu: float, rewards: tuple[float, float], x: Array,
        which: Array,
    ) -> None:  # fmt: skip
        self.mixture = mixture
        self.mu = mu
        self.rewards = rewards
        self.x = x
        self.which = which

    @property
    def mean(self) -> Array:
        if self.mixture is None:
            return np.zeros((len(self.x), int(self.which.sum())))
        low, high = self.rewards
        return low + (high - low) * scores(self.x, self.mixture.coef[-1])[:, self.which]

    @property
    def sd(self) -> Array:
        return np.zeros((len(self.x), int(self.which.sum())))

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        return np.stack([self.mean] * size)

    def best(self, alpha: float | Array = 1.0) -> Array:
        """Return Q^μ: each arm's share of the policies' votes, with minimum probability μ."""
        K = int(self.which.sum())
        if self.mixture is None:
            return np.full((len(self.x), K), 1.0 / K)
        mu = min(self.mu, 0.5 / K)
        return mu + (1.0 - K * mu) * self.mixture.votes(self.x, self.which)

    def among(self, arms: Array) -> Votes:
        which = np.zeros_like(self.which)
        which[np.flatnonzero(self.which)[arms]] = True
        return Votes(self.mixture, self.mu, self.rewards, self.x, which)
