"""A model, a policy and a balance, playing: context → arm with its propensity → reward → update."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from bayesbandit import checks
from bayesbandit.balance.propensity import InversePropensity, Unweighted
from bayesbandit.bandits import storage
from bayesbandit.bandits.decision import Decision
from bayesbandit.beliefs.linear import LinearPosterior, Ridge
from bayesbandit.checks import Name
from bayesbandit.history import History, Layout
from bayesbandit.kernels import rounds, rules
from bayesbandit.model import RewardModel
from bayesbandit.policies import UCB, EpsilonGreedy, Greedy, Policy, Thompson

BLOCK = 4096  # normals drawn at a time
FLOAT64, ADJACENT = np.dtype(np.float64), (8,)  # of a context that needs no conversion


class Bandit:
    """A contextual bandit over named arms.

    arms: their names (strings or integers), or a number K for 0 … K − 1.
    model: what is believed about an arm's rewards: `Ridge()`, or a declared `RewardModel` whose
        posterior is that of a ridge regression (`beliefs/declared.py`), which it then becomes.
    policy: `Thompson`, `UCB`, `Greedy` or `EpsilonGreedy`.
    balance: `Unweighted()` or `InversePropensity(…)`.
    n_features: d, the length of a context.
    seed: an int or a `SeedSequence`; same seed, same decisions.
    history: how many of the latest observed rounds `bandit.history` keeps: a number (0: none) or
        None for all of them, which a balance that revisits past weights needs and sets by itself.

    Until every available arm has been pulled at least once, arms are drawn uniformly.

    All state is in plain attributes: `belief`, `history`, `t` (contexts decided so far), `rng` and
    `stream` (a block of its normals), and `reweighting` where past weights change.
    """

    def __init__(
        self,
        arms: int | Iterable[Name],
        model: Ridge | RewardModel,
        policy: Policy,
        balance: Unweighted | InversePropensity | None = None,
        *,
        n_features: int,
        seed: int | np.random.SeedSequence = 0,
        history: int | None = 10_000,
    ) -> None:
        names = checks.arm_names(arms)
        if isinstance(model, RewardModel):
            from bayesbandit.beliefs.declared import streaming  # loads PyMC

            model = streaming(model, checks.integer(n_features, "n_features", least=1))
        if not isinstance(model, Ridge):
            raise TypeError(f"model must be a reward model such as Ridge(); got {model!r}")
        if not isinstance(policy, Thompson | UCB | Greedy | EpsilonGreedy):
            raise TypeError(
                f"policy must be Thompson, UCB, Greedy or EpsilonGreedy; got {policy!r}"
            )
        balance = Unweighted() if balance is None else balance
        if not isinstance(balance, Unweighted | InversePropensity):
            raise TypeError(f"balance must be Unweighted or InversePropensity; got {balance!r}")
        if not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence(checks.integer(seed, "seed"))
        n_features = checks.integer(n_features, "n_features", least=0 if model.intercept else 1)
        if history is not None:
            checks.integer(history, "history")
        self.model, self.policy, self.balance = model, policy, balance
        self.belief = model.belief(len(names), n_features, balance.normalize)
        self._set_arms(names)
        self.reweighting = balance.reweighting()
        self.history = History(self.layout, None if self.reweighting is not None else history)
        constant = not any(callable(value) for value in vars(policy).values())
        self._param = policy.param(1) if constant else None
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.stream = np.zeros(1 + max(BLOCK, 16 * len(names)))
        self.t = 0
        self._refill()

    def __repr__(self) -> str:
        return (
            f"Bandit({len(self.arms)} arms, {self.model}, {self.policy}, {self.balance}, "
            f"n_features={self.n_features})"
        )

    @property
    def arms(self) -> tuple[Name, ...]:
        """The arms' names."""
        return self.layout.arms

    @property
    def n_features(self) -> int:
        """The length d of a context."""
        return self.layout.n_features

    def posterior(self, arm: Name) -> LinearPosterior:
        """What is known now about one arm's coefficients and mean reward."""
        return self.belief.posterior(self._index(arm))

    def choose(self, x: Any, arms: Iterable[Name] | None = None) -> Decision:
        """Decide for one context (d,) or a batch (n, d), one independent draw a row.

        arms: those that may be chosen, where not all may.
        """
        layout, belief = self.layout, self.belief
        available = self._every if arms is None else self._subset(arms)
        ready = type(x) is np.ndarray and x.dtype is FLOAT64 and x.strides == ADJACENT
        if not (ready and x.shape == layout.shape):
            x = checks.floats(x, "contexts")
            if x.shape != layout.shape:
                return self._choose_batch(checks.contexts(x, layout.n_features), available)
        param = self.policy.param(self.t + 1) if self._param is None else self._param
        row = np.empty(layout.width)
        arm = rounds.STREAM_EMPTY
        while arm < 0:
            arm = rounds.choose_one(
                row, x, belief.arms, available, belief.settings, self.policy.kind, param,
                self.stream,
            )  # fmt: skip
            if arm == rounds.NOT_FINITE:
                checks.contexts(x, layout.n_features)
            if arm == rounds.STREAM_EMPTY:
                self._refill()
        self.t += 1
        return Decision(layout, row)

    def _choose_batch(self, x: np.ndarray, available: np.ndarray) -> Decision:
        belief, n, done = self.belief, len(x), 0
        if n == 0:
            raise ValueError("contexts must have at least one row; got none")
        layout, params = self.layout, self._params(n)
        rows = np.empty((n, layout.width))
        D, K = layout.n_columns, len(layout.arms)
        rounds.put_many(rows, x, D)
        ready = rounds.describe_many(rows, belief.arms, available, belief.settings)
        while done < n:
            done = rounds.choose_many(
                rows, ready, done, D, K, self.policy.kind, params, self.stream
            )
            if done < n:
                self._refill()
        self.t += n
        return Decision(self.layout, rows)

    def observe(self, decision: Decision, reward: Any) -> None:
        """The reward of an own decision, or the rewards (n,) of a batch; late and in any order.

        A decision that is observed twice counts twice.
        """
        if type(decision) is not Decision:
            raise TypeError(f"observe takes a Decision of this bandit; got {decision!r}")
        rows, layout, history = decision.rows, self.layout, self.history
        if decision.layout is not layout and decision.layout != layout:
            x, p = np.atleast_2d(decision.x), np.atleast_1d(decision.propensity)
            self.update(x, np.atleast_1d(decision.arm), reward, p)
        elif rows.ndim == 1 and self.reweighting is None:
            if not (isinstance(reward, float) and abs(reward) <= checks.LARGEST):
                reward = float(checks.column(reward, 1, "reward")[0])
            belief, balance = self.belief, self.balance
            at = history.slot()  # before its rows are asked for: they may have to grow
            rounds.observe_one(
                rows, reward, belief.arms, belief.settings, balance.source, balance.clip,
                history.rows, at,
            )  # fmt: skip
        else:
            rows = np.atleast_2d(rows).copy()
            rows[:, layout.tail + rules.REWARD] = checks.column(reward, len(rows), "rewards")
            self._log(rows)

    def update(self, x: Any, arm: Any, reward: Any, propensity: Any = None) -> None:
        """Rounds logged elsewhere: contexts (d,) or (n, d), arms, rewards and their propensities.

        Without propensities, today's policy and belief supply them.
        """
        x = checks.contexts(x, self.n_features)
        n, layout = len(x), self.layout
        if n == 0:
            raise ValueError("an update needs at least one round; got none")
        arm = np.atleast_1d(np.asarray(arm, dtype=object))
        if arm.shape != (n,):
            raise ValueError(f"arm must have one name for each of {n} rows; got {arm.shape}")
        index = [self._index(a) for a in arm]
        reward = checks.column(reward, n, "rewards")
        p = np.nan if propensity is None else checks.propensities(propensity, n)
        rows, tail = np.empty((n, layout.width)), layout.tail
        rows[:, : layout.n_columns] = self.belief.design(x)
        ready = rounds.describe_many(rows, self.belief.arms, self._every, self.belief.settings)
        rows[:, tail + rules.ARM] = index
        rows[:, tail + rules.KIND] = self.policy.kind if ready else rules.UNIFORM
        rows[:, tail + rules.PARAM] = self.policy.param(self.t + 1)
        rows[:, tail + rules.PROPENSITY] = p
        rows[:, tail + rules.REWARD] = reward
        rows[:, tail + rules.WEIGHT] = np.nan
        self._log(rows)

    def _log(self, rows: np.ndarray) -> None:
        """Weigh rows (n, width) that carry their rewards, update the belief, keep them."""
        belief, balance, reweighting = self.belief, self.balance, self.reweighting
        if reweighting is not None:
            reweighting.weigh(rows, belief, self.policy, self.layout, max(self.t, 1))
        rounds.observe_many(rows, belief.arms, belief.settings, balance.source, balance.clip)
        self.history.extend(rows)
        if reweighting is not None:
            reweighting.settle(rows, belief, self.history)

    def play(self, x: Any, reward: Any, every: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Choose and observe through contexts x (T, d), given every arm's reward (T, K).

        Bit for bit what `choose` and `observe` do round by round, in one compiled loop where the
        balance allows. Returns the numbers of the chosen arms (T,) and their propensities (T,),
        computed in every `every`-th round at least, else NaN.
        """
        x = checks.contexts(x, self.n_features)
        reward = checks.finite(checks.floats(reward, "rewards"), "rewards", checks.LARGEST)
        T, history = len(x), self.history
        if reward.shape != (T, len(self.arms)):
            raise ValueError(f"rewards must be {(T, len(self.arms))}; got {reward.shape}")
        checks.integer(every, "every", least=1)
        chosen, propensity = np.empty(T, dtype=np.int64), np.full(T, np.nan)
        if self.reweighting is not None:
            for t in range(T):
                decision = self.choose(x[t])
                chosen[t] = k = self.layout.index[decision.arm]
                if t % every == 0:
                    propensity[t] = decision.propensity
                self.observe(decision, reward[t, k])
            return chosen, propensity
        params, done = self._params(T), 0
        history.reserve(T)
        while done < T:
            done = rounds.play(
                x, reward, done, every, self.belief.arms, self._every, self.belief.settings,
                self.policy.kind, params, self.balance.source, self.balance.clip, self.stream,
                chosen, propensity, history.rows, history.total,
            )  # fmt: skip
            if done < T:
                self._refill()
        self.t += T
        history.total += T
        return chosen, propensity

    def add_arm(self, arm: Name) -> None:
        """One more arm; draws are uniform until it has been pulled once."""
        names = checks.arm_names((*self.arms, arm))
        self.belief.add_arm()
        self._set_arms(names)
        self.history.relayout(self.layout)

    def remove_arm(self, arm: Name) -> None:
        """Drop an arm and what was learned of it; its rounds stay in the history."""
        k = self._index(arm)
        if len(self.arms) == 1:
            raise ValueError(f"cannot remove {arm!r}: a bandit needs at least one arm")
        self.belief.remove_arm(k)
        self._set_arms(tuple(a for a in self.arms if a != arm))
        self.history.relayout(self.layout)
        if self.reweighting is not None:
            self.reweighting.forget(arm)

    def _set_arms(self, names: tuple[Name, ...]) -> None:
        self.layout = Layout(names, self.belief.n_features, self.belief.n_columns)
        self._every = np.ones(len(names), dtype=np.bool_)

    def _index(self, arm: Any) -> int:
        try:
            k = self.layout.index.get(checks.arm_name(arm))
        except TypeError:
            k = None
        if k is None:
            raise ValueError(f"unknown arm {arm!r}; the arms are {list(self.arms)!r}")
        return k

    def _subset(self, arms: Iterable[Name]) -> np.ndarray:
        available = np.zeros(len(self.arms), dtype=np.bool_)
        names = [arms] if isinstance(arms, str | Integral) else list(arms)
        available[[self._index(arm) for arm in names]] = True
        if not names:
            raise ValueError(f"no arm to choose from; the arms are {list(self.arms)!r}")
        return available

    def _params(self, n: int) -> np.ndarray:
        """The policy's number at the next n rounds; one number where it is the same at all."""
        if self._param is not None:
            return np.array([self._param])
        return np.array([self.policy.param(self.t + 1 + i) for i in range(n)])

    def _refill(self) -> None:
        needed = 16 * len(self.arms)
        if len(self.stream) <= needed:
            self.stream = np.zeros(1 + needed)
        self.stream[1:] = self.rng.standard_normal(len(self.stream) - 1)
        self.stream[0] = 0

    def copy(self) -> Bandit:
        """An independent bandit in the same state: the same decisions from here on."""
        meta, arrays = storage.state(self)
        return storage.restore(Bandit, meta, {k: a.copy() for k, a in arrays.items()}, self.policy)

    def save(self, path: str | Path) -> None:
        """Write the whole state to one file, replacing what was there in one step."""
        storage.write(path, *storage.state(self))

    @staticmethod
    def load(path: str | Path, policy: Policy | None = None) -> Bandit:
        """A saved bandit, going on bit for bit as if it had not been. A policy whose α is a
        function is not in the file and must be given again."""
        return storage.restore(Bandit, *storage.read(path), policy)
