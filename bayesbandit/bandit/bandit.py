"""A model, a policy and a balance, playing: context → arm with its propensity → reward → update."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from numbers import Integral
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit import checks
from bayesbandit.bandit import (
    arm_features,
    choosing,
    fast_path,
    learning,
    random_streams,
    simulation,
    transactions,
    validation,
)
from bayesbandit.bandit.choosing import NOTHING
from bayesbandit.bandit.decision import Decision
from bayesbandit.bandit.fast_path import Deciding
from bayesbandit.bandit.refusals import Refused
from bayesbandit.beliefs.base import Belief, BeliefModel, Declaring, Kernel, kernel_of
from bayesbandit.checks import LARGEST, Contexts, Name
from bayesbandit.history import History, Layout
from bayesbandit.kernels.rounds import DONE
from bayesbandit.model import RewardModel
from bayesbandit.policies import Policy, numbers
from bayesbandit.tables.encoder import Encoder, numbers_only
from bayesbandit.tables.inputs import is_row, table_of
from bayesbandit.weighting.base import Balance, is_normalized, weight_source
from bayesbandit.weighting.propensity import Unweighted
from bayesbandit.weighting.reweighting import Reweighting, begin
from bayesbandit.weighting.summary import summary

if TYPE_CHECKING:
    import pandas as pd

    from bayesbandit.beliefs.linear_posterior import LinearPosterior
    from bayesbandit.posteriors.posterior import Posterior

BLOCK = 4096  # normals drawn at a time
DECISIONS = 0  # key of a stream of random numbers
FLOAT64, ADJACENT = np.dtype(np.float64), (8,)  # of a context that needs no conversion
NUMBERS = (float, int, np.int64, np.bool_)  # rewards that are quick


class Bandit:
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

    All state is in plain attributes, which are listed below.

    Threads may share a bandit. Whatever goes wrong, an interrupt or a lack of memory included, a
    call changes all that it should or nothing: see `bandit/transactions.py`.
    """

    encoder: Encoder | None  # of tables' rows
    spec: BeliefModel  # what makes the belief
    belief: Belief
    has_kernel: bool  # whether the belief has a compiled way, which no subclass changed
    policy: Policy
    rule: int | None  # the policy's compiled rule
    param: tuple[float, float] | None  # its number and minimum probability, where they never change
    balance: Balance
    source: int  # where the kernels find an observation's weight
    clip: float
    reweighting: Reweighting | None  # what changes past weights
    layout: Layout
    all_arms: np.ndarray  # (K,) True: all are available
    history: History
    seed: np.random.SeedSequence
    rng: np.random.Generator
    stream: np.ndarray  # a block of normals of `rng`, with the number of contexts decided so far
    deciding: Deciding | None  # what the compiled calls take: see `fast_path.py`
    learning: tuple[Any, ...] | None
    lock: RLock

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
        n_features, self.encoder = validation.length(n_features, encoder), encoder
        spec = validation.spec(model, len(names), n_features, settings)
        balance = Unweighted() if balance is None else balance
        if not isinstance(seed, np.random.SeedSequence):
            # not the stream of default_rng(seed), from which a user may draw the very contexts
            seed = np.random.SeedSequence(checks.integer(seed, "seed"), spawn_key=(DECISIONS,))
        validation.check(spec, policy, balance, len(names), n_features)
        if history is not None:
            checks.integer(history, "history", most=checks.COUNT)
        self.spec, self.balance, self.seed = spec, balance, seed
        own, normalize = random_streams.sampler_seed(seed), is_normalized(balance)
        self.belief = spec.belief(len(names), n_features, normalize, own)
        validation.check_belief(self.belief, spec, balance, len(names), n_features)
        self.has_kernel = kernel_of(self.belief) is not None
        self.source, self.clip = weight_source(balance)
        self._name_arms(names)
        self.reweighting = begin(balance)
        self.history = History(self.layout, None if self.reweighting is not None else history)
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.stream = np.zeros(2 + BLOCK)
        fast_path.set_policy(self, policy)
        self.numbers(1)
        transactions.guard(self)
        self.deciding = self.learning = None
        random_streams.refill(self)
        fast_path.publish(self)

    def __repr__(self) -> str:
        return (
            f"Bandit({len(self.arms)} arms, {self.spec}, {self.policy}, {self.balance}, "
            f"n_features={self.n_features}{'' if self.encoder is None else f', {self.encoder}'})"
        )

    def __copy__(self) -> Bandit:
        return self.copy()

    @transactions.alone
    def __getstate__(self) -> dict[str, Any]:
        state = vars(transactions.fork(self))
        return {k: v for k, v in state.items() if k not in ("lock", *fast_path.CALLS)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        transactions.guard(self)
        fast_path.publish(self)

    @property
    def t(self) -> int:
        """Contexts decided so far."""
        return int(self.stream[-1])

    @t.setter
    def t(self, t: int) -> None:
        self.stream[-1] = t

    @property
    def model(self) -> Any:
        """The reward model: `Ridge`, a declared `RewardModel`, or a model of yours."""
        return self.spec.declared if isinstance(self.spec, Declaring) else self.spec

    @property
    def arms(self) -> tuple[Name, ...]:
        """The arms' names."""
        return self.layout.arms

    @property
    def n_features(self) -> int:
        """The length d of a context."""
        return self.layout.n_features

    @property
    def kernel(self) -> Kernel | None:
        """The compiled way of the belief, where it has one."""
        return self.belief.kernel if self.has_kernel else None

    @property
    def compiled(self) -> bool:
        """Whether kernels learn the rows of rounds as they are."""
        return (kernel := self.kernel) is not None and kernel.plain

    @property
    def of_arms(self) -> bool:
        """Whether a context has a row of features for each arm, (K, d)."""
        return self.belief.of_arms

    def encoded(self, x: Contexts) -> Any:
        """Return contexts as numbers: by the encoder (d,) of a row, (n, d) of a table or of a list
        of dicts; without one as they are."""
        if self.encoder is None:
            return x if type(x) is np.ndarray else numbers_only(x)
        features = self.encoder.transform(table_of(x))
        return features[0] if is_row(x) else features

    def numbers(self, n: int) -> np.ndarray:
        """Return the policy's number and minimum probability in the next n rounds (n, 2); (1, 2)
        where they never change."""
        if self.param is not None:
            return np.array([self.param])
        now, K = self.t + 1, len(self.arms)
        return np.array([numbers(self.policy, self.rule, now + i, K) for i in range(n)])

    def number(self, arm: ArrayLike) -> int:
        """Return the number of the arm of this name."""
        try:
            k = self.layout.index.get(checks.arm_name(arm))
        except TypeError:
            k = None
        if k is None:
            raise ValueError(f"unknown arm {arm!r}; the arms are {list(self.arms)!r}")
        return k

    def among(self, arms: Iterable[Name]) -> np.ndarray:
        """Return which of all arms these are (K,)."""
        available = np.zeros(len(self.arms), dtype=np.bool_)
        names = [arms] if isinstance(arms, str | Integral) else list(arms)
        available[[self.number(arm) for arm in names]] = True
        if not names:
            raise ValueError(f"no arm to choose from; the arms are {list(self.arms)!r}")
        return available

    def _name_arms(self, names: tuple[Name, ...]) -> None:
        """Name the arms of the belief."""
        features = None if self.encoder is None else self.encoder.features
        sizes = self.belief.n_features, self.belief.n_columns
        self.layout = Layout(names, *sizes, features, self.of_arms)
        self.all_arms = np.ones(len(names), dtype=np.bool_)

    def _change_arms(self, names: tuple[Name, ...]) -> None:
        """Name the arms of the belief after a change; the history keeps its rounds."""
        self._name_arms(names)
        self.history = self.history.relaid(self.layout)
        numbers(self.policy, self.rule, self.t + 1, len(names))  # minimum probabilities leave room

    @transactions.alone
    def posterior(self, arm: Name) -> LinearPosterior | Posterior:
        """Return the posterior of one arm's coefficients and mean reward, of all of its rounds so
        far, weighted as in `history`; where the arms share a declared model, of all arms.

        Draws and forests that decide are refitted on a schedule (`refit_every`), and may be of
        fewer rounds. This posterior is fitted to all of them when it is asked for, and kept until
        the next reward; decisions stay as they are. Where it has a closed form, its ArviZ tree has
        the rounds that `history` kept.
        """
        return choosing.posterior(self, self.number(arm))

    def greedy(self, x: Contexts = None) -> np.ndarray:
        """Names of the arms with the largest posterior means at x (n, d): (n,)."""
        with self.lock:  # no arm comes or goes meanwhile
            mean = choosing.means(self, arm_features.of_all(self, x))
            return self.layout.names[mean.argmax(axis=1)]

    def probabilities(self, x: Contexts = None) -> np.ndarray:
        """Every arm's probability (n, K) of being chosen in the next round, at contexts x (n, d);
        nothing is drawn, and no round is counted."""
        with self.lock:  # no arm comes or goes meanwhile
            return choosing.probabilities(self, arm_features.of_all(self, x))

    def summary(self, min_probability: float | None = None) -> pd.DataFrame:
        """Return what the rounds that `history` keeps say of each arm, removed ones too, by name.

        rounds, and their share of all kept; mean_reward; ipw_value, the mean reward had the arm
        been chosen whenever it could be, Σ r/p / Σ 1/p (Hájek 1971), by the rounds with a
        propensity p, and its ipw_se; smallest_propensity; effective, how many even rounds the
        weights 1/p are worth (Kish 1965); removed; note: older rounds that are not kept, missing
        propensities, and why there is no ipw_se. `attrs` counts the rounds "kept" and "observed".

        There is no ipw_se below 5 effective rounds, nor without a floor: 1/p then has no bound, and
        intervals miss. The floor is the `min_probability` (or ε/K) with which each round was
        decided. It may not be lower in the later half of the rounds than before, as one that decays
        is, and must give an arm 5 rounds by itself. min_probability: the floor of rounds that were
        told by `update`, which only you can know.
        """
        return summary(self.history, min_probability)

    def choose(self, x: Contexts = NOTHING, arms: Iterable[Name] | None = None) -> Decision:
        """Decide for one context (d,) or a batch (n, d), one independent draw a row.

        x: none is needed where n_features=0. arms: those that may be chosen, where not all may; the
        rows of features that arms have are then of these, unless a table's index names them.
        """
        live, x = self.deciding, NOTHING if x is None else x
        if self.encoder is not None and x is not NOTHING and not self.of_arms:
            x = self.encoded(x)
        if live is not None and arms is None and type(x) is np.ndarray and x.dtype is FLOAT64:
            choose_one, layout, stats, all_arms, settings, kind, param, floor, stream = live
            if x.shape == layout.shape and (x.strides == ADJACENT or not x.size):
                row = np.empty(layout.width)
                if param is not None and (
                    choose_one(row, x, stats, all_arms, settings, kind, param, floor, stream) >= 0
                ):
                    return Decision(layout, row)
        return choosing.choose(self, x, arms)

    def observe(
        self, decision: Decision, reward: ArrayLike, errors: Literal["raise", "skip"] = "raise"
    ) -> list[Refused] | None:
        """Learn the reward of a decision, or the rewards (n,) of a batch; late and in any order.

        errors: see `update`; also a row of an arm that was removed is one that cannot be learned.
        A decision that is observed twice counts twice.
        """
        live = self.learning if errors == "raise" else None
        if live is not None and type(decision) is Decision and isinstance(reward, NUMBERS):
            observe_one, layout, stats, settings, source, clip, history, count = live
            row = decision.rows
            if decision.layout is layout and row.ndim == 1 and -LARGEST <= reward <= LARGEST:
                own = float(reward)
                done = observe_one(row, own, stats, settings, source, clip, history, count)
                if done == DONE:
                    return None
        return learning.observe(self, decision, reward, errors)

    def update(
        self, x: Contexts, arm: ArrayLike, reward: ArrayLike, propensity: ArrayLike | None = None,
        errors: Literal["raise", "skip"] = "raise",
    ) -> list[Refused] | None:  # fmt: skip
        """Learn rounds logged elsewhere: contexts (d,) or (n, d), arms, rewards and propensities.

        propensity: the probabilities (n,) with which the arms were chosen, or one for all rows.
            None: the log has none. None is then logged (NaN in `history` and `summary`), and a
            bandit without weights needs none. `InversePropensity` weights such rounds by the
            bandit's current probabilities, which is wrong for another system's log; where
            propensities are pooled or estimated, by these as soon as they are known.
        errors: "raise", where one row that cannot be learned refuses them all, or "skip", which
            learns the others and returns those left out, as (row, reason): unknown arms, contexts
            that are not finite or cannot be encoded, rewards that are not finite or impossible
            under the model, and propensities outside (0, 1].
        Where arms have features, those of the chosen ones, (n, d), are enough.
        """
        return learning.update(self, x, arm, reward, propensity, errors)

    @transactions.alone
    def play(self, x: Contexts, reward: ArrayLike, every: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Choose and observe through contexts x (T, d), given every arm's reward (T, K).

        Bit for bit what `choose` and `observe` do round by round, in one compiled loop where the
        balance allows. Returns the numbers of the chosen arms (T,) and their propensities (T,),
        computed in every `every`-th round at least, else NaN.
        """
        return simulation.play(self, x, reward, every)

    @transactions.alone
    def add_arm(self, arm: Name) -> None:
        """One more arm, drawn with probability 1/K until it has a reward."""
        names, twin = checks.arm_names((*self.arms, arm)), transactions.fork(self)
        twin.belief.add_arm()
        twin._change_arms(names)
        transactions.become(self, twin)

    @transactions.alone
    def remove_arm(self, arm: Name) -> None:
        """Drop an arm and what was learned of it; its rounds stay in the history."""
        k = self.number(arm)
        if len(self.arms) == 1:
            raise ValueError(f"cannot remove {arm!r}: a bandit needs at least one arm")
        gone, twin = self.arms[k], transactions.fork(self)
        twin.belief.remove_arm(k)
        twin._change_arms(tuple(a for a in self.arms if a != gone))
        if twin.reweighting is not None:
            twin.reweighting.forget(gone)
        transactions.become(self, twin)

    @transactions.alone
    def reseed(self, key: Name) -> Bandit:
        """Take other random numbers from here on, which follow from the bandit's seed and `key`; a
        copy or a forked worker would else make the same decisions. The same key gives the same
        numbers again, also after another load of the file. Returns the bandit."""
        seed = random_streams.derived_seed(self.seed, checks.arm_name(key))
        random_streams.reseed(self, seed)
        return self

    def copy(self) -> Bandit:
        """An independent bandit in the same state: the same decisions from here on."""
        parts = (self.spec, self.policy, self.balance)
        return deepcopy(self, {id(part): part for part in parts})

    def save(self, path: str | Path) -> None:
        """Write the whole state to one file, replacing what was there in one step. A bandit that
        `load` would refuse is refused here, and the old file stays."""
        from bayesbandit.bandit.storage import saving

        saving.write(path, *saving.checked(self))

    @staticmethod
    def load(
        path: str | Path,
        policy: Policy | None = None,
        model: Any = None,
        balance: Balance | None = None,
        *,
        fresh: bool | np.random.SeedSequence = False,
    ) -> Bandit:
        """Return a saved bandit, which goes on as if it had not been saved: bit for bit on the
        machine that saved it, on another to 1e-12 (weights that an optimiser finds: 1e-7).

        policy, model, balance: what the file does not hold must be given again: a policy whose α is
        a function, a class of yours that is not `savable`, and a declared model that is neither in
        the running program nor in the gallery.
        fresh: True: with new random numbers, from the operating system, for a worker that takes the
        file of another process. `bandit.seed` records them, and `fresh=` of that seed gives them
        again.
        """
        from bayesbandit.bandit.storage import saving

        return saving.load(Bandit, path, policy, model, balance, fresh)
