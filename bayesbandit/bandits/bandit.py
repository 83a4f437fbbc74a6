"""A model, a policy and a balance, playing: context → arm with its propensity → reward → update."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit import checks
from bayesbandit.balance.base import Balance, weight_source
from bayesbandit.balance.propensity import Unweighted
from bayesbandit.balance.reweighting import begin
from bayesbandit.bandits import account, deciding, door, forks, lessons, of_arms, playing
from bayesbandit.bandits.deciding import NOTHING
from bayesbandit.bandits.decision import Decision
from bayesbandit.bandits.state import BanditState
from bayesbandit.beliefs.base import BeliefModel, is_compiled, is_streamed
from bayesbandit.checks import LARGEST, Name
from bayesbandit.history import History
from bayesbandit.kernels import rules
from bayesbandit.kernels.rounds import DONE
from bayesbandit.model import RewardModel
from bayesbandit.policies import Policy, numbers
from bayesbandit.tables.encoder import Encoder

if TYPE_CHECKING:
    import pandas as pd

    from bayesbandit.beliefs.linear_posterior import LinearPosterior
    from bayesbandit.posteriors.posterior import Posterior

BLOCK = 4096  # normals drawn at a time
DECISIONS = 0  # key of a stream of random numbers
FLOAT64, ADJACENT = np.dtype(np.float64), (8,)  # of a context that needs no conversion
NUMBERS = frozenset({float, int, bool, np.float64, np.int64, np.bool_})  # rewards that are quick


class Bandit(BanditState):
    """A contextual bandit over named arms.

    arms: their names (strings or integers), or a number K for 0 … K − 1.
    model: what is believed about the arms' rewards: `Ridge()`, a declared `RewardModel`, or one's
        own with a method `belief`. With `Shared(…)` of one of them, each arm has features of its
        own: a context is (K, d), a row an arm, and several are (n, K, d), in every method.
    policy: `Thompson`, `UCB`, `Greedy` or `EpsilonGreedy`.
    balance: `Unweighted()` or `InversePropensity(…)`.
    n_features: d, the length of a context; 0 where there are none, and `choose()` needs none. An
        encoder knows it.
    encoder: a `bb.Encoder`, with which contexts are tables or rows (a dict, a pandas Series) and
        not arrays, in every method; features have its names.
    seed: an int, or a `SeedSequence`, which is used as it is; same seed, same decisions.
    history: how many of the latest observed rounds `bandit.history` keeps: a number (0: none) or
        None for all of them, which a balance that revisits past weights needs and sets by itself.
    engine, refit_every, draws: of a declared model (`beliefs.declared.Declared`). One that is
        linear-Gaussian streams row by row, and one that is a ridge regression becomes `Ridge`; so
        many draws of the others (400) are computed anew each time an arm's rounds have grown by a
        share (a float, 0.1) or every m of its rounds (an int).

    An arm without a reward is new. Of U new ones among K available arms each is drawn with
    probability 1/K, and the policy shares (K − U)/K among the others.

    All state is in plain attributes: `belief`, `history`, `rng`, `stream` (a block of its normals,
    with the number of contexts decided so far), and `reweighting` where past weights change.

    Threads may share a bandit. Whatever goes wrong, an interrupt or a lack of memory included, a
    call changes all that it should or nothing: see `bandits/forks.py`.
    """

    def __init__(
        self,
        arms: int | Iterable[Name],
        model: RewardModel | BeliefModel,
        policy: Policy,
        balance: Balance | None = None,
        *,
        n_features: int | None = None,
        encoder: Encoder | None = None,
        seed: int | np.random.SeedSequence = 0,
        history: int | None = 10_000,
        engine: str | None = None,
        refit_every: int | float | None = None,
        draws: int | None = None,
    ) -> None:
        names = checks.arm_names(arms)
        settings = {"engine": engine, "refit_every": refit_every, "draws": draws}
        n_features, self.encoder = door.length(n_features, encoder), encoder
        spec = door.spec(model, len(names), n_features, settings)
        balance = Unweighted() if balance is None else balance
        if not isinstance(seed, np.random.SeedSequence):
            # not the stream of default_rng(seed), from which a user may draw the very contexts
            seed = np.random.SeedSequence(checks.integer(seed, "seed"), spawn_key=(DECISIONS,))
        door.check(spec, policy, balance, len(names), n_features)
        if history is not None:
            checks.integer(history, "history", most=checks.COUNT)
        self.spec, self.balance, self.seed = spec, balance, seed
        own, normalize = forks.samplers(seed), bool(getattr(balance, "normalize", False))
        self.belief = spec.belief(len(names), n_features, normalize, own)
        door.check_belief(self.belief, spec, balance, len(names), n_features)
        self.compiled, self.streamed = is_compiled(self.belief), is_streamed(self.belief)
        self.source, self.clip = weight_source(balance)
        forks.set_arms(self, names)
        self.reweighting = begin(balance)
        self.history = History(self.layout, None if self.reweighting is not None else history)
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.stream = np.zeros(2 + BLOCK)
        numbers(policy, 1, len(names))
        forks.obey(self, policy)
        forks.guard(self)
        self.deciding = self.learning = None
        forks.refill(self)
        forks.publish(self)

    def __copy__(self) -> Bandit:
        return self.copy()

    @forks.alone
    def __getstate__(self) -> dict[str, Any]:
        state = vars(forks.fork(self))
        return {k: v for k, v in state.items() if k not in ("lock", *forks.PUBLISHED)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        forks.guard(self)
        forks.publish(self)

    @forks.alone
    def posterior(self, arm: Name) -> LinearPosterior | Posterior:
        """What is known now about one arm's coefficients and mean reward; where the arms share a
        declared model, about all of them. Its ArviZ tree has the rounds that `history` kept."""
        k = self.number(arm)
        rows = self.history.ordered() if self.of_arms else self.history.of_arm(k)
        layout, tail = self.layout, rows[:, self.layout.tail :]
        kept = {"reward": tail[:, rules.REWARD], "weight": tail[:, rules.WEIGHT]}
        known = self.belief.posterior(k, {"x": rows[:, : layout.n_features], **kept})
        if self.encoder is not None and hasattr(known, "encoder"):
            known = replace(known, encoder=self.encoder)
        return known

    def greedy(self, x: Any = None) -> np.ndarray:
        """Names of the arms with the largest posterior means at x (n, d): (n,)."""
        with self.lock:  # no arm comes or goes meanwhile
            mean = deciding.means(self, of_arms.of_all(self, x))
            return self.layout.names[mean.argmax(axis=1)]

    def probabilities(self, x: Any = None) -> np.ndarray:
        """Every arm's probability (n, K) of being chosen in the next round, at contexts x (n, d);
        nothing is drawn, and no round is counted."""
        with self.lock:  # no arm comes or goes meanwhile
            return deciding.probabilities(self, of_arms.of_all(self, x))

    def summary(self) -> pd.DataFrame:
        """What the rounds that `history` keeps say of each arm, a row by name.

        rounds of it and their share of all kept; mean_reward; ipw_value, its mean reward had it
        been chosen everywhere, Σ r/p / Σ 1/p (Hájek 1971), with a standard error that takes the
        rounds for independent; smallest_propensity p; and how many even rounds the weights 1/p
        are worth (effective, Kish 1965). NaN where there are too few rounds.
        """
        return account.summary(self.history)

    def choose(self, x: Any = NOTHING, arms: Iterable[Name] | None = None) -> Decision:
        """Decide for one context (d,) or a batch (n, d), one independent draw a row.

        x: none is needed where n_features=0. arms: those that may be chosen, where not all may; the
        rows of features that arms have are then of these, unless a table's index names them.
        """
        live = self.deciding
        if x is None:
            x = NOTHING
        if live is not None and arms is None and type(x) is np.ndarray and x.dtype is FLOAT64:
            choose_one, layout, stats, all_arms, settings, kind, param, floor, stream = live
            if x.shape == layout.shape and (x.strides == ADJACENT or not x.size):
                row = np.empty(layout.width)
                if choose_one(row, x, stats, all_arms, settings, kind, param, floor, stream) >= 0:
                    return Decision(layout, row)
        return deciding.choose(self, x, arms)

    def observe(self, decision: Decision, reward: Any) -> None:
        """The reward of an own decision, or the rewards (n,) of a batch; late and in any order.

        A decision that is observed twice counts twice.
        """
        live = self.learning
        if live is not None and type(decision) is Decision and type(reward) in NUMBERS:
            observe_one, layout, stats, settings, source, clip, history, count = live
            row = decision.rows
            if decision.layout is layout and row.ndim == 1 and -LARGEST <= reward <= LARGEST:
                own = float(reward)
                done = observe_one(row, own, stats, settings, source, clip, history, count)
                if done == DONE:
                    return
        lessons.observe(self, decision, reward)

    def update(self, x: Any, arm: Any, reward: Any, propensity: Any = None) -> None:
        """Rounds logged elsewhere: contexts (d,) or (n, d), arms, rewards and their propensities.

        Without propensities, today's policy and belief supply them. Where arms have features, those
        of the chosen ones, (n, d), are enough with propensities.
        """
        lessons.update(self, x, arm, reward, propensity)

    @forks.alone
    def play(self, x: Any, reward: Any, every: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Choose and observe through contexts x (T, d), given every arm's reward (T, K).

        Bit for bit what `choose` and `observe` do round by round, in one compiled loop where the
        balance allows. Returns the numbers of the chosen arms (T,) and their propensities (T,),
        computed in every `every`-th round at least, else NaN.
        """
        reward = checks.finite(checks.floats(reward, "rewards"), "rewards", checks.LARGEST)
        x = of_arms.of_all(self, x, len(np.atleast_1d(reward)))
        checks.integer(every, "every", least=1)
        shape = len(x), len(self.arms)
        if reward.shape != shape:
            raise ValueError(f"rewards must be {shape}; got {reward.shape}")
        twin = forks.fork(self)
        twin.encoder = None  # x is numbers by now
        played = playing.by(self)(twin, x, reward, every)
        twin.encoder = self.encoder
        forks.become(self, twin)
        return played

    @forks.alone
    def add_arm(self, arm: Name) -> None:
        """One more arm, drawn with probability 1/K until it has a reward."""
        names, twin = checks.arm_names((*self.arms, arm)), forks.fork(self)
        twin.belief.add_arm()
        forks.relay(twin, names)
        forks.become(self, twin)

    @forks.alone
    def remove_arm(self, arm: Name) -> None:
        """Drop an arm and what was learned of it; its rounds stay in the history."""
        k = self.number(arm)
        if len(self.arms) == 1:
            raise ValueError(f"cannot remove {arm!r}: a bandit needs at least one arm")
        gone, twin = self.arms[k], forks.fork(self)
        twin.belief.remove_arm(k)
        forks.relay(twin, tuple(a for a in self.arms if a != gone))
        if twin.reweighting is not None:
            twin.reweighting.forget(gone)
        forks.become(self, twin)

    @forks.alone
    def reseed(self, key: Name) -> Bandit:
        """Other random numbers from here on, told apart by `key`: for a copy, a second load of one
        file or a forked worker, which would else make the same decisions. Returns the bandit."""
        twin = forks.fork(self)
        twin.seed = forks.another(self.seed, checks.arm_name(key))
        twin.rng = np.random.Generator(np.random.PCG64(twin.seed))
        twin.belief.reseed(forks.samplers(twin.seed))
        forks.refill(twin)
        forks.become(self, twin)
        return self

    def copy(self) -> Bandit:
        """An independent bandit in the same state: the same decisions from here on."""
        parts = (self.spec, self.policy, self.balance)
        return deepcopy(self, {id(part): part for part in parts})

    @forks.alone
    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole state, arrays copied."""
        from bayesbandit.bandits.saved import storage  # knows all models

        meta, arrays = storage.state(self)
        return meta, {name: array.copy() for name, array in arrays.items()}

    def save(self, path: str | Path) -> None:
        """Write the whole state to one file, replacing what was there in one step."""
        from bayesbandit.bandits.saved import storage

        storage.write(path, *self._state())

    @staticmethod
    def load(
        path: str | Path,
        policy: Policy | None = None,
        model: Any = None,
        balance: Balance | None = None,
    ) -> Bandit:
        """A saved bandit, going on bit for bit as if it had not been. What is not in the file must
        be given again: a policy whose α is a function, a model, policy or balance of one's own that
        is not `savable`, and a declared model that is neither in the running program nor in the
        gallery."""
        from bayesbandit.bandits.saved import storage

        return storage.load(Bandit, path, policy, model, balance)
