"""Beliefs: what is known now about the mean rewards of all arms.

To add one, write a subclass of `Belief` with `predict` and `update`, or of `ByDraws` with only
`values`. Write a model whose `belief(n_arms, n_features, normalize, seed)` makes it.

What else a belief may do is a small Protocol each: that it forgets, is reweighted, merged, stored.
A class has its methods, and need not name it. `needed` asks for one, and names what is missing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np

from bayesbandit.checks import Array, shown
from bayesbandit.forms import Arrays, Form, State
from bayesbandit.kernels import rounds
from bayesbandit.model import RewardModel
from bayesbandit.predictions import Prediction
from bayesbandit.runtime.capabilities import declares
from bayesbandit.tables.encoder import Encoder

Clock = Literal["rounds", "time"]


class CompiledArms(Protocol):
    """The arrays and compiled functions with which a belief learns rounds, and may decide them.

    It is optional: `Belief.kernel` is None without it.

    functions: `REGRESSIONS` or `NUMBERS` of `kernels.rounds`.
    """

    if TYPE_CHECKING:  # an attribute or a property serves

        @property
        def arms(self) -> Array: ...

        @property
        def settings(self) -> Array: ...

    functions: ClassVar[rounds.Kernels] = rounds.REGRESSIONS

    def kind(self, rule: int, param: tuple[float, float] | None) -> int | None:
        """Return the KIND of the rows (`kernels/row_layout.py`) with which the kernels play a rule.

        param: the rule's number and minimum probability; None if they change. Return None if the
        kernels cannot play the rule.
        """
        return rule

    def check_rewards(self, x: Array, reward: Array) -> None:
        """Raise ValueError where rewards (n,) at contexts x (n, d) are impossible."""
        return


@runtime_checkable
class Belief(Protocol):
    """What is known now about K arms, given contexts of d features.

    n (K,): how many rounds each arm has learned. of_arms: whether contexts are (n, K, d), with a
    row of features for each arm. clock: what ticks, if the belief `Forgets`; None: time changes
    nothing. predict_may_refit: whether a prediction may change the belief.
    """

    if TYPE_CHECKING:  # an attribute or a property serves

        @property
        def n(self) -> Array: ...

    n_features: int
    of_arms: ClassVar[bool] = False
    clock: Clock | None = None
    predict_may_refit: bool = False

    @abstractmethod
    def predict(self, x: Array) -> Prediction:
        """Return the prediction of the mean rewards at contexts x (n, d)."""

    @abstractmethod
    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Learn rounds x (n, d), arm numbers, rewards, precision weights (n,; None: 1)."""

    @property
    def n_columns(self) -> int:
        """The number of columns of a stored context: d, or d + 1 with a constant."""
        return self.n_features

    @property
    def new(self) -> Array:
        """A mask (K,) of the new arms, about which nothing is known."""
        return self.n == 0

    @property
    def kernel(self) -> CompiledArms | None:
        """The kernels of this belief; None if it has none."""
        return None

    def max_batch(self, x: Array) -> int:
        """Return for how many of these contexts (n, …) a prediction fits into memory."""
        return len(x)

    def fork(self) -> Self:
        """Return a copy that may change while this belief stays as it is."""
        return deepcopy(self)


# ---- what a belief may do beside -----------------------------------------------------------------


@runtime_checkable
class Forgets(Protocol):
    """What changes as time passes."""

    def advance(self, tick: float) -> None:
        """Forget until this tick; a tick of the past changes nothing."""

    def update(
        self, x: Array, arm: Array, reward: Array, weight: Array | None = None,
        tick: Array | None = None,
    ) -> None:  # fmt: skip
        """Learn rounds as `Belief.update`; tick (n,): when they were decided (None: now)."""


@runtime_checkable
class Reweighable(Protocol):
    """What learns all rounds again with other weights, as a balance asks."""

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        """Refit the arms that are due, from all rounds; arguments are as in `update`.

        The rounds of removed arms have an arm number below 0.
        """


@runtime_checkable
class Mergeable(Protocol):
    """What puts together what parts of a log teach."""

    def absorb(self, other: Belief) -> None:
        """Learn the rounds that another belief of the same kind has learned, as if they came next.

        Raise ValueError unless both have the same settings and number of arms.
        """


@runtime_checkable
class Postponable(Protocol):
    """What may have learned rounds that follow others, before these are known."""

    def postpone(self, ticks: float) -> None:
        """Put all rounds so many ticks later, and the clock with them: they follow other rounds.

        Raise ValueError unless what is left of rounds depends on their ages alone.
        """


@runtime_checkable
class Resizable(Protocol):
    """What has arms that come and go."""

    def add_arm(self) -> None:
        """Add an arm about which nothing is known."""

    def remove_arm(self, k: int) -> None:
        """Remove arm k; later arms move up by one."""


@runtime_checkable
class Storable(Protocol):
    """What is saved in files."""

    def state(self) -> State:
        """Return the whole state as arrays and plain values, for `restore`."""

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""


@runtime_checkable
class Described(Protocol):
    """What says what a state looks like: it is checked when saved, and before it is restored."""

    def form(self, state: State, total: int) -> Form:
        """Return the form (`forms.py`) of each part of a state, after `total` rounds.

        The sizes of some parts may depend on others of this state, which are not checked yet.
        """


@runtime_checkable
class Refits(Protocol):
    """What computes when it is asked, as new draws that are due."""

    def refit_if_due(self) -> bool:
        """Compute now what a prediction would compute first. Return whether there was any."""

    def count_decisions(self, n: int) -> None:
        """Count n more decisions made with the current belief."""

    def refit_when_asked(self) -> None:
        """Compute what is due when it is asked for from now on, and nothing in the background."""


@runtime_checkable
class Seeded(Protocol):
    """What uses random numbers."""

    def reseed(self, seed: np.random.SeedSequence) -> None:
        """Use new random numbers from now on."""


@runtime_checkable
class WithPosterior(Protocol):
    """What has a posterior that users see."""

    def posterior(self, k: int, rows: Arrays) -> Any:
        """Return the posterior of arm k. rows: its rounds, by role: "x", "reward", "weight"."""


@runtime_checkable
class TakesTables(Protocol):
    """A posterior that reads contexts from tables, by an encoder if it has one; a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def encoder(self) -> Encoder | None: ...


@runtime_checkable
class PredictsTogether(Protocol):
    """What predicts rows of features together, as if each were an arm."""

    def predict_together(self, x: Array) -> Prediction:
        """Return the joint prediction at m rows of features for each context, (n, m, d)."""
        ...


# ---- models --------------------------------------------------------------------------------------


@runtime_checkable
class BeliefModel(Protocol):
    """A model that makes a bandit's belief: `Ridge`, or your own class."""

    def belief(
        self, n_arms: int, n_features: int, normalize: bool, seed: np.random.SeedSequence
    ) -> Belief:
        """Return the belief about K arms before any data.

        normalize: rescale each arm's weights to average 1.
        """


@runtime_checkable
class Refusing(Protocol):
    """A model that may refuse weights."""

    def refuses_weights(self, n_arms: int, n_features: int) -> str:
        """Return why observations cannot be weighted; "" if they can."""


@runtime_checkable
class PenalisesConstant(Protocol):
    """A regression with a constant whose penalty λ, or the least that it can be, is known."""

    @property
    def constant_penalty(self) -> float: ...


@runtime_checkable
class Declaring(Protocol):
    """A declared reward model with its settings.

    That is `beliefs.declared.Declared`, whose module loads PyMC: this one tells it without.
    """

    @property
    def declared(self) -> RewardModel: ...

    def digest(self, n_arms: int, n_features: int) -> str | None:
        """Return a digest of the built model; None if it has none."""

    def refuses_sharing(self, n_features: int) -> str:
        """Return why the model would give all arms that share it the same reward; "" if not."""

    def refuses_removal(self, n_arms: int, n_features: int) -> str:
        """Return why no arm can be removed, so that others take its place; "" if one can."""


@runtime_checkable
class ComparingArms(Protocol):
    """A model that compares arms in a context, and cannot predict for one row of features."""

    compares_arms: ClassVar[bool]


def refuses_weights(model: object, n_arms: int, n_features: int) -> str:
    """Return why observations of a model cannot be weighted; "" if they can."""
    return model.refuses_weights(n_arms, n_features) if isinstance(model, Refusing) else ""


def check(belief: Belief, maker: str) -> None:
    """Raise TypeError unless a belief has what a bandit calls."""
    for name in ("n", "n_features", *(k for k in dir(Belief) if k[0] != "_")):
        if not hasattr(belief, name):
            raise TypeError(
                f"{maker}.belief(…) must give a belief; {shown(belief)} lacks `{name}`: a subclass "
                "of `bayesbandit.Belief` or `bayesbandit.ByDraws` needs little"
            )
    if not isinstance(belief.n, np.ndarray) or belief.n.ndim != 1:
        raise TypeError(
            f"{_kind(belief)}.n must be an array (K,), an arm's rounds; got {belief.n!r}"
        )


def kernel_of(belief: Belief) -> CompiledArms | None:
    """Return a belief's kernels; None if a subclass overrides what the kernels compute."""
    known = declares(belief, "kernel", ("predict", "update", "new", "n"))
    return None if known is None else belief.kernel


def needed[Ability](belief: object, ability: type[Ability], when: str) -> Ability:
    """Return a belief that has an ability, one of the Protocols above; raise TypeError if not."""
    if isinstance(belief, ability):
        return belief
    names = [k for k in vars(ability) if k[0] != "_" and not hasattr(belief, k)]
    methods = " and ".join(f"`{name}`" for name in names)
    raise TypeError(f"{_kind(belief)} needs a method {methods}, where {when}")


def check_counted(belief: Belief, before: Array, arm: Array) -> None:
    """Raise ValueError unless an update by rounds of these arms (n,) has counted them in `n`.

    before (K,): the counts before. A belief that forgets may drop rounds that are too old.
    """
    counted = before + np.bincount(arm, minlength=len(before))
    n = belief.n
    old = belief.clock is not None and ((n >= 0) & (n <= counted)).all()
    if not (old or np.array_equal(n, counted)):
        raise ValueError(
            f"{_kind(belief)}.update must leave n = {counted}, its rounds of each arm; got {n}"
        )


def _kind(belief: object) -> str:
    return type(belief).__name__
