"""A model, a policy and a balance, playing: context → arm with its propensity → reward → update."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit import checks
from bayesbandit.balance.propensity import InversePropensity, Unweighted
from bayesbandit.bandits import door, storage
from bayesbandit.bandits.decision import Decision
from bayesbandit.beliefs.linear import LinearBelief, LinearPosterior, Ridge
from bayesbandit.checks import Name
from bayesbandit.history import History, Layout
from bayesbandit.kernels import rounds, rules
from bayesbandit.model import RewardModel
from bayesbandit.policies import Policy

if TYPE_CHECKING:
    from bayesbandit.beliefs.declared import Declared
    from bayesbandit.posterior import Posterior

BLOCK = 4096  # normals drawn at a time
DECISIONS, SAMPLERS = 0, 1  # keys of streams of random numbers
FLOAT64, ADJACENT = np.dtype(np.float64), (8,)  # of a context that needs no conversion


class Bandit:
    """A contextual bandit over named arms.

    arms: their names (strings or integers), or a number K for 0 … K − 1.
    model: what is believed about an arm's rewards: `Ridge()`, or a declared `RewardModel`.
    policy: `Thompson`, `UCB`, `Greedy` or `EpsilonGreedy`.
    balance: `Unweighted()` or `InversePropensity(…)`.
    n_features: d, the length of a context.
    seed: an int, or a `SeedSequence`, which is used as it is; same seed, same decisions.
    history: how many of the latest observed rounds `bandit.history` keeps: a number (0: none) or
        None for all of them, which a balance that revisits past weights needs and sets by itself.
    engine, refit_every, draws: of a declared model (`beliefs.declared.Declared`). One that is
        linear-Gaussian streams row by row, and one that is a ridge regression becomes `Ridge`; so
        many draws of the others (400) are computed anew each time an arm's rounds have grown by a
        share (a float, 0.1) or every m of its rounds (an int).

    Until every available arm has been pulled at least once, arms are drawn uniformly.

    All state is in plain attributes: `belief`, `history`, `t` (contexts decided so far), `rng` and
    `stream` (a block of its normals), and `reweighting` where past weights change.
    """

    def __init__(
        self,
        arms: int | Iterable[Name],
        model: Ridge | RewardModel | Declared,
        policy: Policy,
        balance: Unweighted | InversePropensity | None = None,
        *,
        n_features: int,
        seed: int | np.random.SeedSequence = 0,
        history: int | None = 10_000,
        engine: str | None = None,
        refit_every: int | float | None = None,
        draws: int | None = None,
    ) -> None:
        names = checks.arm_names(arms)
        settings = {"engine": engine, "refit_every": refit_every, "draws": draws}
        model = door.model(model, len(names), n_features, settings)
        balance = Unweighted() if balance is None else balance
        if not isinstance(seed, np.random.SeedSequence):
            # not the stream of default_rng(seed), from which a user may draw the very contexts
            seed = np.random.SeedSequence(checks.integer(seed, "seed"), spawn_key=(DECISIONS,))
        n_features = checks.integer(n_features, "n_features", least=0 if model.intercept else 1)
        door.check(model, policy, balance, len(names), n_features)
        if history is not None:
            checks.integer(history, "history")
        self.model, self.policy, self.balance, self.seed = model, policy, balance, seed
        own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, SAMPLERS))
        self.belief: Any = model.belief(len(names), n_features, balance.normalize, own)
        self._compiled = isinstance(self.belief, LinearBelief)
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

    def posterior(self, arm: Name) -> LinearPosterior | Posterior:
        """What is known now about one arm's coefficients and mean reward; where the arms share a
        declared model, about all of them. Its ArviZ tree has the rounds that `history` kept."""
        k = self._index(arm)
        if isinstance(self.model, Ridge):
            return self.belief.posterior(k)
        rows, layout = self.history.of_arm(k), self.layout
        tail = rows[:, layout.tail :]
        kept = {"reward": tail[:, rules.REWARD], "weight": tail[:, rules.WEIGHT]}
        return self.belief.posterior_of(k, {"x": rows[:, : layout.n_features], **kept})

    def choose(self, x: Any, arms: Iterable[Name] | None = None) -> Decision:
        """Decide for one context (d,) or a batch (n, d), one independent draw a row.

        arms: those that may be chosen, where not all may.
        """
        layout, belief = self.layout, self.belief
        available = self._every if arms is None else self._subset(arms)
        ready = type(x) is np.ndarray and x.dtype is FLOAT64 and x.strides == ADJACENT
        if not (ready and x.shape == layout.shape and self._compiled):
            x = checks.floats(x, "contexts")
            if x.shape != layout.shape or not self._compiled:
                rows = self._decide(checks.contexts(x, layout.n_features), available)
                return Decision(layout, rows[0] if x.ndim == 1 else rows)
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

    def _decide(self, x: np.ndarray, available: np.ndarray) -> np.ndarray:
        """Decided rows (n, width) for contexts x (n, d)."""
        if len(x) == 0:
            raise ValueError("contexts must have at least one row; got none")
        params, done, layout = self._params(len(x)), 0, self.layout
        rows, ready, kind = self._describe(x, available, params)
        while done < len(rows):
            done = rounds.choose_many(
                rows, ready, done, layout.n_columns, len(layout.arms), kind, params, self.stream
            )
            if done < len(rows):
                self._refill()
        self.t += len(x)
        return rows

    def _describe(
        self, x: np.ndarray, available: np.ndarray, params: np.ndarray
    ) -> tuple[np.ndarray, bool, int]:
        """Rows (n, width) with contexts x (n, d) and all arms' moments, whether all available arms
        have been pulled, and the rule that then decides."""
        rows, kind = np.empty((len(x), self.layout.width)), self.policy.kind
        rows[:, : self.n_features] = x
        alpha = params if kind == rules.THOMPSON else None
        ready = self.belief.describe(rows, available, alpha)
        tabulated = kind == rules.THOMPSON and self.belief.tabulates
        return rows, ready, rules.TABULATED if tabulated else kind

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
        elif rows.ndim == 1 and self.reweighting is None and self._compiled:
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
        if hasattr(self.belief, "admit"):  # before draws are renewed for the propensities
            self.belief.admit(x, np.array(index), reward)
        p = np.nan if propensity is None else checks.propensities(propensity, n)
        param, tail = self.policy.param(self.t + 1), layout.tail
        rows, ready, kind = self._describe(x, self._every, np.array([param]))
        rows[:, tail + rules.ARM] = index
        rows[:, tail + rules.KIND] = kind if ready else rules.UNIFORM
        rows[:, tail + rules.PARAM] = param
        rows[:, tail + rules.PROPENSITY] = p
        rows[:, tail + rules.REWARD] = reward
        rows[:, tail + rules.WEIGHT] = np.nan
        self._log(rows)

    def _log(self, rows: np.ndarray) -> None:
        """Weigh rows (n, width) that carry their rewards, update the belief, keep them."""
        belief, balance, reweighting = self.belief, self.balance, self.reweighting
        if reweighting is not None:
            reweighting.weigh(rows, belief, self.policy, self.layout, max(self.t, 1))
        layout, tail = self.layout, rows[:, self.layout.tail :]
        K = len(layout.arms)
        rounds.weigh_many(rows, layout.n_columns, K, balance.source, balance.clip)
        x, arm = rows[:, : layout.n_features], tail[:, rules.ARM].astype(np.int64)
        belief.update(x, arm, tail[:, rules.REWARD], tail[:, rules.WEIGHT])
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
        if self.reweighting is not None or not self._compiled:
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
        copies = {k: a.copy() for k, a in arrays.items()}
        return storage.restore(Bandit, meta, copies, self.policy, self.model)

    def save(self, path: str | Path) -> None:
        """Write the whole state to one file, replacing what was there in one step."""
        storage.write(path, *storage.state(self))

    @staticmethod
    def load(
        path: str | Path, policy: Policy | None = None, model: RewardModel | None = None
    ) -> Bandit:
        """A saved bandit, going on bit for bit as if it had not been. A policy whose α is a
        function is not in the file and must be given again, and a declared model that is neither
        in the running program nor in the gallery."""
        return storage.restore(Bandit, *storage.read(path), policy, model)
