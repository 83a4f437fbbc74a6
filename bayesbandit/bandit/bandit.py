"""The bandit: a model, a policy and a balance that choose arms and learn their rewards."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit import checks
from bayesbandit.bandit import (
    arm_features,
    choosing,
    fast_path,
    learning,
    merging,
    random_streams,
    simulation,
    ticks,
    transactions,
    validation,
)
from bayesbandit.bandit.choosing import EMPTY_CONTEXT
from bayesbandit.bandit.decision import Decision
from bayesbandit.bandit.fast_path import Deciding, Learning
from bayesbandit.bandit.logged import Logged
from bayesbandit.bandit.observed import Observed
from bayesbandit.beliefs.base import (
    Belief,
    BeliefModel,
    CompiledArms,
    Declaring,
    Forgets,
    Resizable,
    TakesTables,
    WithPosterior,
    kernel_of,
    needed,
)
from bayesbandit.beliefs.drift_test import DriftTest, e_process
from bayesbandit.checks import FLOAT64, MAX_ABS_VALUE, Array, Contexts, Name
from bayesbandit.forms import State
from bayesbandit.history import History, Layout
from bayesbandit.kernels.rounds import DONE
from bayesbandit.model import RewardModel
from bayesbandit.policies import Policy, rule_parameters
from bayesbandit.predictions import Prediction
from bayesbandit.runtime.files import replacing
from bayesbandit.runtime.shown import MAX_ROWS, html_table, shows_all
from bayesbandit.tables.encoder import Encoder, numbers_only
from bayesbandit.tables.inputs import is_row
from bayesbandit.weighting.base import Balance, is_normalized, weight_source
from bayesbandit.weighting.propensity import Unweighted
from bayesbandit.weighting.reweighting import Reweighting, begin
from bayesbandit.weighting.summary import summary

if TYPE_CHECKING:
    import pandas as pd

    from bayesbandit.beliefs.linear_posterior import LinearPosterior
    from bayesbandit.posteriors.posterior import Posterior

NORMALS_PER_BLOCK = 4096  # normals drawn at a time
DECISION_STREAM = 0  # key of the random stream of decisions
CONTIGUOUS_STRIDES = (8,)  # strides that need no conversion
INTERNAL_NAMES = {  # public names that this package alone reads, which completion leaves out
    *("ahead", "all_arms", "among", "clip", "deciding", "encoded", "has_kernel", "kernel"),
    *("layout", "learning", "listed", "lock", "looked", "now", "number", "observed", "of_arms"),
    *("param", "reweighting", "rng", "rule", "rule_parameters", "source", "stream", "surprise"),
}
REWARD_TYPES = (float, int, np.int64, np.bool_)  # types of rewards for the compiled call


class Bandit:
    """A contextual bandit over named arms.

    arms: their names (strings or integers), or a number K for 0 … K − 1.
    model: the model of the arms' rewards: `Ridge()`, a declared `RewardModel`, or your own class
        with a method `belief`. A declared model learns as its closed form allows, or else by
        posterior draws; `Sampled`, `Laplace` and `Declared` have settings for that. With
        `Shared(model)` each arm has features. In every method, a context is then (K, d) with a row
        for each arm. Several are (n, K, d).
    policy: `Thompson`, `UCB`, `Greedy`, `EpsilonGreedy`, `Boltzmann` or `TopTwo`.
    balance: how observations are weighted: `Unweighted()` (the default), `InversePropensity(…)`,
        `ResidualBalance(…)` or `KernelBalance(…)`.
    n_features: d, the length of a context. With 0 there are no contexts: call `choose()`. An
        encoder sets it.
    encoder: a `bb.Encoder`. Contexts are then tables or rows (a dict, a pandas Series) in every
        method, and features have the encoder's names.
    seed: an int or a `SeedSequence`. The same seed gives the same decisions. None: one from the
        operating system, which is kept in `bandit.seed` and in files.
    history: how many of the latest observed rounds `bandit.history` keeps: a number (0: none), or
        None for all. A balance that reweights past rounds always keeps all.

    An arm without a reward is new. With U new arms among K available arms, each new arm is chosen
    with probability 1/K. The policy shares (K − U)/K among the others.

    All state is in plain attributes, which are listed below.

    Threads may share a bandit. A call either changes everything or, after an error, an interrupt or
    a lack of memory, nothing: see `bandit/transactions.py`.
    """

    encoder: Encoder | None  # turns tables into contexts
    spec: BeliefModel  # makes the belief
    belief: Belief
    has_kernel: bool  # whether the belief has kernels, and no subclass overrides what they compute
    policy: Policy
    rule: int | None  # the policy's compiled rule
    param: tuple[float, float] | None  # its number and minimum probability, where they never change
    balance: Balance
    source: int  # where the kernels find an observation's weight
    clip: float
    reweighting: Reweighting | None  # changes past weights
    layout: Layout
    all_arms: Array  # (K,) True: all are available
    history: History
    ahead: float  # ticks that the clock of a bandit that forgets is ahead of its decisions
    now: float | None  # the time in seconds since 1970, for decisions made again; None: the clock's
    looked: int  # rounds when contexts were last looked at: see `context_warnings.py`
    seed: np.random.SeedSequence
    rng: np.random.Generator
    stream: Array  # a block of normals of `rng`, with the number of contexts decided so far
    deciding: Deciding | None  # arguments of the compiled calls: see `fast_path.py`
    learning: Learning | None
    lock: RLock
    observed: Observed

    def __init__(
        self,
        arms: int | Iterable[Name],
        model: RewardModel | BeliefModel,
        policy: Policy,
        balance: Balance | None = None,
        *,
        n_features: int | None = None,
        encoder: Encoder | None = None,
        seed: checks.Seed = 0,
        history: int | None = 10_000,
        **settings: object,
    ) -> None:
        validation.refuse_settings(settings)
        names = checks.arm_names(arms)
        n_features = validation.length(n_features, encoder)
        self.encoder = encoder
        spec = validation.spec(model)
        validation.check_arms(spec, names)
        balance = Unweighted() if balance is None else balance
        if seed is None:
            seed = np.random.SeedSequence(spawn_key=(DECISION_STREAM,))
        elif not isinstance(seed, np.random.SeedSequence):
            # another stream than default_rng(seed), with which a user may draw the contexts
            seed = np.random.SeedSequence(
                checks.integer(seed, "seed"), spawn_key=(DECISION_STREAM,)
            )
        validation.check(spec, policy, balance, len(names), n_features)
        if history is not None:
            checks.integer(history, "history", most=checks.MAX_COUNT)
        self.spec = spec
        self.balance = balance
        self.seed = seed
        self.ahead = 0.0
        self.now = None
        self.looked = 0
        belief_seed = random_streams.sampler_seed(seed)
        normalize = is_normalized(balance)
        self.belief = spec.belief(len(names), n_features, normalize, belief_seed)
        validation.check_belief(self.belief, spec, balance, len(names), n_features)
        self.has_kernel = kernel_of(self.belief) is not None
        self.source, self.clip = weight_source(balance)
        self._name_arms(names)
        self.reweighting = begin(balance)
        self.history = History(self.layout, None if self.reweighting is not None else history)
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.stream = np.zeros(2 + NORMALS_PER_BLOCK)
        fast_path.set_policy(self, policy)
        self.rule_parameters(1)
        transactions.guard(self)
        self.deciding = self.learning = None
        choosing.refill(self)
        fast_path.publish(self)

    def __repr__(self) -> str:
        parts = [self.spec, self.policy]
        if shows_all() or self.balance != Unweighted():
            parts.append(self.balance)
        listed = ", ".join(map(repr, parts))
        by = "" if self.encoder is None else f", {self.encoder}"
        return f"Bandit({len(self.arms)} arms, {listed}, n_features={self.n_features}{by})"

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) - INTERNAL_NAMES)

    def _repr_html_(self) -> str:
        names = ", ".join(map(str, self.arms[:MAX_ROWS]))
        more = "" if len(self.arms) <= MAX_ROWS else f", … ({len(self.arms)})"
        rows = [
            ("arms", names + more),
            ("model", self.spec),
            ("policy", self.policy),
            ("balance", self.balance),
            ("features", self.n_features),
            ("contexts decided", self.t),
            ("rewards learned", self.history.total),
        ]
        return html_table("Bandit", (), rows)

    def __copy__(self) -> Bandit:
        return self.copy()

    @transactions.exclusive
    def __getstate__(self) -> State:
        state = vars(transactions.fork(self))
        return {k: v for k, v in state.items() if k not in ("lock", *fast_path.COMPILED_CALLS)}

    def __setstate__(self, state: State) -> None:
        vars(self).update(state)
        vars(self).update(vars(transactions.fork(self)))  # another process may lend arrays to read
        transactions.guard(self)
        fast_path.publish(self)

    @property
    def t(self) -> int:
        """The number of contexts decided so far."""
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
    def kernel(self) -> CompiledArms | None:
        """The belief's kernels; None if it has none."""
        return self.belief.kernel if self.has_kernel else None

    @property
    def of_arms(self) -> bool:
        """Whether a context has a row of features for each arm, (K, d)."""
        return self.belief.of_arms

    def encoded(self, x: Contexts) -> Any:
        """Return contexts as numbers: an encoder gives (d,) for a row and (n, d) for a table.

        A list of dicts is a table. Without an encoder contexts must be numbers already.
        """
        if self.encoder is None:
            return x if type(x) in (np.ndarray, list) else numbers_only(x)
        features = self.encoder.transform(x)
        return features[0] if is_row(x) else features

    def rule_parameters(self, n: int) -> Array:
        """Return α (of ε-greedy ε) and the minimum probability in the next n rounds, (n, 2).

        (1, 2) where they never change.
        """
        if self.param is not None:
            return np.array([self.param])
        now = self.t + 1
        K = len(self.arms)
        return np.array([rule_parameters(self.policy, self.rule, now + i, K) for i in range(n)])

    def number(self, arm: ArrayLike) -> int:
        """Return the number of the arm of this name."""
        k = self.layout.number(arm)
        if k is None:
            raise ValueError(f"unknown arm {arm!r}; the arms are {reprlib.repr(list(self.arms))}")
        return k

    def listed(self, arms: Iterable[Name]) -> list[int]:
        """Return the numbers of the arms with these names; raise ValueError if there are none."""
        names = [arms] if isinstance(arms, str | Integral) else list(arms)
        if not names:
            raise ValueError(f"no arm to choose from; the arms are {reprlib.repr(list(self.arms))}")
        return [self.number(arm) for arm in names]

    def among(self, arms: Iterable[Name]) -> Array:
        """Return a mask (K,) of the arms with these names."""
        available = np.zeros(len(self.arms), dtype=np.bool_)
        available[self.listed(arms)] = True
        return available

    def _name_arms(self, names: tuple[Name, ...]) -> None:
        """Set the layout for the belief's arms, which get these names."""
        features = None if self.encoder is None else self.encoder.features
        sizes = self.belief.n_features, self.belief.n_columns
        self.layout = Layout(names, *sizes, features, self.of_arms)
        self.all_arms = np.ones(len(names), dtype=np.bool_)

    def _change_arms(self, names: tuple[Name, ...]) -> None:
        """Set names and history after the belief's arms have changed; rounds are kept."""
        self._name_arms(names)
        self.history = self.history.relaid(self.layout)
        rule_parameters(self.policy, self.rule, self.t + 1, len(names))  # raises if K f > 1

    @transactions.exclusive
    def posterior(self, arm: Name) -> LinearPosterior | Posterior:
        """Return the posterior of one arm's coefficients and mean reward.

        It is fitted to all of the arm's rounds so far, with the weights in `history`. If the arms
        share a declared model, it is the posterior of all arms. It is kept until the next reward.

        Decisions do not change. The draws behind them are refitted on a schedule (`refit_every`)
        and may not know the latest rounds. Forests and other ensembles have no posterior. The ArviZ
        tree of a closed-form posterior has the rounds that `history` kept.
        """
        k = self.number(arm)
        history = self.history
        belief = self.belief
        if isinstance(belief, Forgets) and belief.clock is not None:
            belief = belief.fork()
            belief.advance(ticks.tick(self))
        rows = history.ordered() if self.of_arms else history.of_arm(k)
        log = self.layout.records(rows)
        roles = {"x": rows[:, : self.n_features], "reward": log["reward"], "weight": log["weight"]}
        capable = needed(belief, WithPosterior, "the posterior of an arm is asked for")
        posterior: LinearPosterior | Posterior = capable.posterior(k, roles)
        if self.encoder is not None and isinstance(posterior, TakesTables):
            return replace(posterior, encoder=self.encoder)
        return posterior

    @transactions.exclusive
    def greedy(self, x: Contexts = None) -> Array:
        """Return the names (n,) of the arms with the largest posterior means at x (n, d)."""
        z = arm_features.of_all(self, x)
        draft = transactions.fork_to_decide(self)
        choosing.advance(draft)
        parts = choosing.parts(draft.belief, z)
        blocks = [choosing.predicted(draft.belief, z[part]).mean for part in parts]
        if self.belief.clock is None:  # else the bandit would forget by a look
            transactions.commit(self, draft)
        mean = np.concatenate(blocks) if blocks else np.empty((0, len(self.arms)))
        return self.layout.names[mean.argmax(axis=1)]

    @transactions.exclusive
    def probabilities(self, x: Contexts = None) -> Array:
        """Return each arm's probability (n, K) of being chosen in the next round, at x (n, d).

        Nothing is drawn, and no round is counted.
        """
        draft = transactions.fork(self)
        now = self.rule_parameters(1)
        z = arm_features.of_all(self, x)
        rows, kind = choosing.describe(draft, z, self.all_arms, now, held=True)
        log = self.layout.records(rows)
        log["rule"] = kind
        log["number"], log["min_probability"] = now.T
        return Decision(self.layout, rows).probabilities

    @transactions.exclusive
    def predict(self, x: Contexts = None) -> Prediction:
        """Return what the bandit believes of all arms' mean rewards at x, as in `choose`.

        It has `mean` and `sd` (n, K), `draw(size, rng)` (size, n, K) and `best()` (n, K), the
        probability that an arm has the largest mean reward. x (d,) counts as n = 1. It is the
        prediction of the next round: nothing is drawn, and no round is counted. As long as a
        posterior is not proper its sd is infinite, and `draw` raises ValueError.
        """
        draft = transactions.fork(self)
        choosing.advance(draft)
        return choosing.predicted(draft.belief, arm_features.of_all(self, x))

    def summary(self) -> pd.DataFrame:
        """Return a table that summarises the rounds in `history` by arm, with removed arms.

        Its columns are `rounds` and their `share` of all kept rounds, `mean_reward`, `ipw_value`,
        `smallest_propensity`, `effective`, `removed` and `note`. `ipw_value` is Σ r/p / Σ 1/p over
        rounds with a propensity p (Hájek 1971): the estimated mean reward of always choosing the
        arm when available. `effective` is the effective number of rounds of the weights 1/p (Kish
        1965). `note` tells of rounds that are not kept and of missing propensities. `attrs` counts
        the rounds "kept" and "observed". `bb.ope.evaluate` gives intervals.
        """
        return summary(self.history)

    def drift_test(self, level: float = 0.01) -> DriftTest:
        """Return an e-process: evidence that the rewards in `history` have changed over time.

        Regressions of what has changed, which forget, bet against those without changes: on whether
        a reward is the usual one, as 0 is, and if not, whether it is above some level. If nothing
        changes and the regressions are right, what they win ever reaches 1/level with probability
        `level` at most, however often you look. The first 50 rounds of each arm are no evidence.
        Mean rewards that are far from linear in the contexts may alarm, too: what a bandit learns
        changes the contexts of its arms. Arms with features have one regression together. Rounds
        come in the order of `history`.
        """
        history = self.history.fork()
        arm = np.zeros(len(history)) if self.of_arms else history.arm
        return e_process(history.x, arm, history.reward, level)

    surprise = drift_test  # its old name

    def choose(self, x: Contexts = EMPTY_CONTEXT, arms: Iterable[Name] | None = None) -> Decision:
        """Choose an arm for one context (d,) or for each of a batch (n, d), drawn independently.

        x: not needed if n_features=0. arms: the arms that are available; None: all. If arms have
        features, x has the rows of the available arms, in their order or named by a table's index.
        """
        live = self.deciding
        x = EMPTY_CONTEXT if x is None else x
        if self.encoder is not None and x is not EMPTY_CONTEXT and not self.of_arms:
            x = self.encoded(x)
        if live is not None and arms is None and type(x) is np.ndarray and x.dtype is FLOAT64:
            choose_one, layout, stats, all_arms, settings, kind, param, floor, stream = live
            if x.shape == layout.shape and (x.strides == CONTIGUOUS_STRIDES or not x.size):
                row = np.empty(layout.width)
                if param is not None and (
                    choose_one(row, x, stats, all_arms, settings, kind, param, floor, stream) >= 0
                ):
                    return Decision(layout, row)
        return choosing.choose(self, x, arms)

    def observe(self, decision: Decision, reward: ArrayLike) -> None:
        """Learn the reward of a decision, or the rewards (n,) of a batch; late and in any order.

        All rows of a batch are learned, or none: raise ValueError if one cannot be learned, as a
        row of a removed arm. A reward counts once: a decision that this bandit has learned is
        refused, by its id, also as a copy (`Decision.from_dict`). A bandit remembers its last
        10,000 ids, and its file none.
        """
        live = self.learning
        if live is not None and type(decision) is Decision and isinstance(reward, REWARD_TYPES):
            observe_one, layout, stats, settings, source, clip, history, count = live
            row = decision.rows
            if (
                decision.layout is layout
                and decision.ids is None
                and decision.learned_by is None
                and row.ndim == 1
                and -MAX_ABS_VALUE <= reward <= MAX_ABS_VALUE
            ):
                r = reward if type(reward) is float else float(reward)
                done = observe_one(row, r, stats, settings, source, clip, history, count)
                if done == DONE:
                    decision.learned_by = self.observed
                    return
        learning.observe(self, decision, reward)

    def update(
        self, x: Contexts | Logged, arm: ArrayLike | None = None, reward: ArrayLike | None = None,
        propensity: ArrayLike | None = None, time: object = None,
    ) -> None:  # fmt: skip
        """Learn rounds logged elsewhere: contexts (d,) or (n, d), arms, rewards and propensities.

        `update(log)` learns a `bb.ope.Log` with its propensities and, if the model forgets with
        clock="time", its times. The log must have the bandit's encoder or the bandit's features,
        and all rewards: `log[~np.isnan(log.reward)]` leaves others out.

        propensity: the probabilities (n,) with which the arms were chosen, or one for all rows.
            None: the log has none, and `history` and `summary` show NaN. A bandit without weights
            needs none. `InversePropensity` then uses the bandit's current probabilities, which is
            wrong for another system's log. It replaces them by pooled or estimated propensities as
            soon as these are known.
        time: when the rows were decided, if the model forgets with clock="time": dates or seconds
            since 1970, (n,) or one for all rows, in any order, none later than now. A date without
            a time zone is taken as UTC.
        If arms have features, those of the chosen arms, (n, d), are enough.

        All rows are learned, or none: raise ValueError if an arm is unknown, a context or reward is
        not finite, a reward is impossible under the model, or a propensity is not in (0, 1].

        A call with many rows is quicker than many calls: an arm with 1,000 or more of them learns
        from matrix products, if its model is linear. The result is that of row after row, to
        rounding, with these exceptions. Weights without propensities come from the belief before
        the call. λ by cross-validation, and the average of normalised weights, are settled when the
        call ends.

        Where the model forgets, rows are the next rounds, in their order. With clock="time" they
        are all of now, unless `time` is given.
        """
        learning.update(self, x, arm, reward, propensity, time)

    @transactions.exclusive
    def play(self, x: Contexts, reward: ArrayLike, every: int = 1) -> tuple[Array, Array]:
        """Play T rounds: choose at contexts x (T, d) and observe, given all arms' rewards (T, K).

        A table has them by the arms' names. The result equals that of `choose` and `observe` in
        every bit. It is one compiled loop if the belief, policy and balance allow. Returns the
        numbers of the chosen arms (T,) and their propensities (T,). Propensities may be NaN except
        in every `every`-th round.
        """
        return simulation.play(self, x, reward, every)

    @transactions.exclusive
    def add_arm(self, arm: Name) -> None:
        """Add an arm, which is chosen with probability 1/K until it has a reward.

        With `Shared`, its features rank it at once if any arm has a reward.
        """
        names = checks.arm_names((*self.arms, arm))
        validation.check_change(self.spec, len(self.arms), self.n_features, removes=False)
        draft = transactions.fork(self)
        needed(draft.belief, Resizable, "an arm is added").add_arm()
        draft._change_arms(names)
        transactions.commit(self, draft)

    @transactions.exclusive
    def remove_arm(self, arm: Name) -> None:
        """Remove an arm and what was learned about it; its rounds stay in the history.

        Raise ValueError if the arms share a declared model that tells them apart by their places,
        as by a constant for each: others would take the place of the removed one.
        """
        k = self.number(arm)
        if len(self.arms) == 1:
            raise ValueError(f"cannot remove {arm!r}: a bandit needs at least one arm")
        validation.check_change(self.spec, len(self.arms), self.n_features, removes=True)
        removed = self.arms[k]
        draft = transactions.fork(self)
        needed(draft.belief, Resizable, "an arm is removed").remove_arm(k)
        draft._change_arms(tuple(a for a in self.arms if a != removed))
        if draft.reweighting is not None:
            draft.reweighting.forget(removed)
        transactions.commit(self, draft)

    @transactions.exclusive
    def reseed(self, key: Name) -> Bandit:
        """Use new random numbers from now on, derived from the bandit's seed and `key`.

        Without it, a copy or a forked worker makes the same decisions. The same seed and key give
        the same numbers, even in another process. Returns the bandit.
        """
        seed = random_streams.derived_seed(self.seed, checks.arm_name(key))
        random_streams.reseed(self, seed)
        return self

    def merge(self, other: Bandit) -> None:
        """Learn what another bandit has learned, as if its rounds had come next.

        It is exact, to rounding, for beliefs that are sums over rounds: `Ridge` (with the folds of
        its cross-validation), declared models that learn row by row in closed form, and those of
        `bb.Laplace` that do not forget. The other bandit stays as it is, and this one keeps its
        policy and random numbers. Its rounds are counted in `t` and put behind those of `history`.

        Raise ValueError, and change nothing, if arms, models, priors, encoders, balances or clocks
        differ, if the model or the balance needs the rounds themselves, or if kept rounds are in
        both. So shards begin without data: a common past would count twice. It is found from 10
        common decisions on; rounds learned by `update` are not compared.
        """
        if not isinstance(other, Bandit):
            raise TypeError(f"merge takes a Bandit; got {checks.shown(other)}")
        if other is self:
            raise ValueError("a bandit does not merge with itself: its rounds would count twice")
        merging.merge(self, transactions.exclusive(transactions.fork)(other))

    @transactions.exclusive
    def forget(self, steps: float = 1) -> None:
        """Put the clock of forgetting forward by so many ticks: rounds, or seconds.

        Raise ValueError if the bandit does not forget: see `half_life` and `drift` of `Ridge`.
        """
        checks.number(steps, "steps", least=0, largest=checks.MAX_TICK)
        if self.belief.clock is None:
            raise ValueError(f"{self.model} does not forget: give it a half_life or a drift")
        checks.number(ticks.tick(self) + steps, "the clock, after steps,", most=checks.MAX_TICK)
        self.ahead += float(steps)

    def copy(self) -> Bandit:
        """Return an independent bandit in the same state, which makes the same decisions.

        A decision's reward counts once. A copy, like a saved bandit that is loaded, knows this only
        of decisions whose id was asked for: it would learn the rewards of others again.
        """
        parts = (self.spec, self.policy, self.balance)
        return deepcopy(self, {id(part): part for part in parts})

    def save(self, path: str | Path) -> None:
        """Write the whole state to one file, which replaces an old one in one step.

        Raise ValueError if `load` would refuse the bandit. The old file then stays.
        """
        from bayesbandit.bandit.storage import saving

        content = saving.checked(self)
        with replacing(path) as beside, beside.open("wb") as file:
            saving.write(file, *content)

    @staticmethod
    def load(
        path: str | Path,
        policy: Policy | None = None,
        model: Any = None,
        balance: Balance | None = None,
        *,
        fresh: bool | np.random.SeedSequence = False,
    ) -> Bandit:
        """Return a saved bandit, which continues as if it had not been saved.

        Results are equal in every bit on the same machine, and to 1e-12 on another. Weights that an
        optimiser finds are equal to 1e-7.

        policy, model, balance: give again what the file does not hold. A file does not hold a
        policy whose α is a function, nor your class that is not `savable`. A declared model is
        needed if neither the running program nor the gallery has it.
        fresh: True takes new random numbers from the operating system, for a worker that loads the
        file of another process. Pass `bandit.seed` as `fresh` to get the same numbers again.
        """
        from bayesbandit.bandit.storage import saving

        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"there is no saved bandit at {path}")
        with path.open("rb") as file:
            return saving.load(Bandit, file, str(path), policy, model, balance, fresh)
