"""A model, a policy and a balance, playing: context → arm with its propensity → reward → update."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit import checks
from bayesbandit.balance.propensity import InversePropensity, Unweighted
from bayesbandit.bandits import door, forks, learning, playing, storage
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
DECISIONS = 0  # key of a stream of random numbers
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

    All state is in plain attributes: `belief`, `history`, `rng`, `stream` (a block of its normals,
    with the number of contexts decided so far), and `reweighting` where past weights change.

    Threads may share a bandit. Whatever goes wrong, an interrupt or a lack of memory included, a
    call changes all that it should or nothing: it is one compiled call that cannot fail half-way,
    or it is tried on a fork, whose attributes then become the bandit's in one step.
    """

    layout: Layout
    every: np.ndarray  # (K,) True: all arms are available

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
        own = forks.samplers(seed)
        self.belief: Any = model.belief(len(names), n_features, balance.normalize, own)
        self.compiled = isinstance(self.belief, LinearBelief)
        forks.set_arms(self, names)
        self.reweighting = balance.reweighting()
        self.history = History(self.layout, None if self.reweighting is not None else history)
        constant = not any(callable(value) for value in vars(policy).values())
        self.param = policy.param(1) if constant else None
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.stream = np.zeros(2 + BLOCK)
        self._lock = RLock()
        forks.refill(self)

    def __repr__(self) -> str:
        return (
            f"Bandit({len(self.arms)} arms, {self.model}, {self.policy}, {self.balance}, "
            f"n_features={self.n_features})"
        )

    def __copy__(self) -> Bandit:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {k: v for k, v in vars(forks.fork(self)).items() if k != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())

    @property
    def t(self) -> int:
        """Contexts decided so far."""
        return int(self.stream[-1])

    @t.setter
    def t(self, t: int) -> None:
        self.stream[-1] = t

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
        with self._lock:
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
        with self._lock:
            layout, belief = self.layout, self.belief
            available = self.every if arms is None else self._subset(arms)
            ready = type(x) is np.ndarray and x.dtype is FLOAT64 and x.strides == ADJACENT
            if not (ready and x.shape == layout.shape and self.compiled):
                x = checks.floats(x, "contexts")
                if x.shape != layout.shape or not self.compiled:
                    rows = self._decide(checks.contexts(x, layout.n_features), available)
                    return Decision(layout, rows[0] if x.ndim == 1 else rows)
            param = self.policy.param(self.t + 1) if self.param is None else self.param
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
                    forks.refill(self)
            return Decision(layout, row)

    def _decide(self, x: np.ndarray, available: np.ndarray) -> np.ndarray:
        """Decided rows (n, width) for contexts x (n, d)."""
        if len(x) == 0:
            raise ValueError("contexts must have at least one row; got none")
        params, done, layout = forks.params(self, len(x)), 0, self.layout
        trial = forks.asked(self)
        rows, ready, kind = trial._describe(x, available, params)
        while done < len(rows):
            done = rounds.choose_many(
                rows, ready, done, layout.n_columns, len(layout.arms), kind, params, trial.stream
            )
            if done < len(rows):
                forks.refill(trial)
        forks.become(self, trial)
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
        with self._lock:
            rows, layout, history = decision.rows, self.layout, self.history
            if decision.layout is not layout and decision.layout != layout:
                x, p = np.atleast_2d(decision.x), np.atleast_1d(decision.propensity)
                self.update(x, np.atleast_1d(decision.arm), reward, p)
            elif rows.ndim == 1 and self.reweighting is None and self.compiled:
                if not (isinstance(reward, float) and abs(reward) <= checks.LARGEST):
                    reward = float(checks.column(reward, 1, "reward")[0])
                belief, balance = self.belief, self.balance
                while rounds.observe_one(
                    rows, reward, belief.arms, belief.settings, balance.source, balance.clip,
                    history.rows, history.count,
                ) == rounds.FULL:  # fmt: skip
                    history.reserve(1)
            else:
                rows = np.atleast_2d(rows).copy()
                rows[:, layout.tail + rules.REWARD] = checks.column(reward, len(rows), "rewards")
                learning.learn(self, rows)

    def update(self, x: Any, arm: Any, reward: Any, propensity: Any = None) -> None:
        """Rounds logged elsewhere: contexts (d,) or (n, d), arms, rewards and their propensities.

        Without propensities, today's policy and belief supply them.
        """
        with self._lock:
            x = checks.contexts(x, self.n_features)
            n, layout = len(x), self.layout
            if n == 0:
                raise ValueError("an update needs at least one round; got none")
            arm = np.atleast_1d(checks.unmasked(arm, "arm"))
            if arm.shape != (n,):
                raise ValueError(f"arm must have one name for each of {n} rows; got {arm.shape}")
            index = [self._index(a) for a in arm]
            reward = checks.column(reward, n, "rewards")
            p = np.nan if propensity is None else checks.propensities(propensity, n)
            param, tail = self.policy.param(self.t + 1), layout.tail
            trial = forks.asked(self)
            rows, ready, kind = trial._describe(x, self.every, np.array([param]))
            rows[:, tail + rules.ARM] = index
            rows[:, tail + rules.KIND] = kind if ready else rules.UNIFORM
            rows[:, tail + rules.PARAM] = param
            rows[:, tail + rules.PROPENSITY] = p
            rows[:, tail + rules.REWARD] = reward
            rows[:, tail + rules.WEIGHT] = np.nan
            learning.learn(trial, rows)
            forks.become(self, trial)

    def play(self, x: Any, reward: Any, every: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Choose and observe through contexts x (T, d), given every arm's reward (T, K).

        Bit for bit what `choose` and `observe` do round by round, in one compiled loop where the
        balance allows. Returns the numbers of the chosen arms (T,) and their propensities (T,),
        computed in every `every`-th round at least, else NaN.
        """
        x = checks.contexts(x, self.n_features)
        reward = checks.finite(checks.floats(reward, "rewards"), "rewards", checks.LARGEST)
        checks.integer(every, "every", least=1)
        with self._lock:
            if reward.shape != (len(x), len(self.arms)):
                shape = len(x), len(self.arms)
                raise ValueError(f"rewards must be {shape}; got {reward.shape}")
            trial = forks.fork(self)
            compiled = self.reweighting is None and self.compiled
            played = (playing.loop if compiled else playing.step)(trial, x, reward, every)
            forks.become(self, trial)
        return played

    def add_arm(self, arm: Name) -> None:
        """One more arm; draws are uniform until it has been pulled once."""
        with self._lock:
            names = checks.arm_names((*self.arms, arm))
            trial = forks.fork(self)
            trial.belief.add_arm()
            forks.relay(trial, names)
            forks.become(self, trial)

    def remove_arm(self, arm: Name) -> None:
        """Drop an arm and what was learned of it; its rounds stay in the history."""
        with self._lock:
            k = self._index(arm)
            if len(self.arms) == 1:
                raise ValueError(f"cannot remove {arm!r}: a bandit needs at least one arm")
            gone, trial = self.arms[k], forks.fork(self)
            trial.belief.remove_arm(k)
            forks.relay(trial, tuple(a for a in self.arms if a != gone))
            if trial.reweighting is not None:
                trial.reweighting.forget(gone)
            forks.become(self, trial)

    def reseed(self, key: Name) -> Bandit:
        """Other random numbers from here on, told apart by `key`: for a copy, a second load of one
        file or a forked worker, which would else make the same decisions. Returns the bandit."""
        with self._lock:
            trial = forks.fork(self)
            trial.seed = forks.another(self.seed, checks.arm_name(key))
            trial.rng = np.random.Generator(np.random.PCG64(trial.seed))
            if hasattr(trial.belief, "seed"):
                trial.belief.seed = forks.samplers(trial.seed)
            forks.refill(trial)
            forks.become(self, trial)
        return self

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

    def copy(self) -> Bandit:
        """An independent bandit in the same state: the same decisions from here on."""
        with self._lock:
            meta, arrays = storage.state(self)
            copies = {k: a.copy() for k, a in arrays.items()}
        return storage.restore(Bandit, meta, copies, self.policy, self.model)

    def save(self, path: str | Path) -> None:
        """Write the whole state to one file, replacing what was there in one step."""
        with self._lock:
            meta, arrays = storage.state(self)
            arrays = {k: a.copy() for k, a in arrays.items()}
        storage.write(path, meta, arrays)

    @staticmethod
    def load(
        path: str | Path, policy: Policy | None = None, model: RewardModel | None = None
    ) -> Bandit:
        """A saved bandit, going on bit for bit as if it had not been. A policy whose α is a
        function is not in the file and must be given again, and a declared model that is neither
        in the running program nor in the gallery."""
        return storage.restore(Bandit, *storage.read(path), policy, model)
