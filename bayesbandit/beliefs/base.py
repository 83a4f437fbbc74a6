"""What is known now about the mean rewards of all arms at once.

To add one, write a subclass of `Belief` with `predict` and `update`, or of `ByDraws` with `values`
alone, and a model whose `belief(n_arms, n_features, normalize, seed)` makes it. All other methods
have a default here, or raise an error that names the method to write.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from bayesbandit.checks import finite, shown
from bayesbandit.kernels import rounds
from bayesbandit.model import RewardModel
from bayesbandit.predictions import Conjugate, Draws, Joint, LocationScale, Prediction
from bayesbandit.runtime.capabilities import declares

Array = np.ndarray


class Kernel(Protocol):
    """The compiled way of a belief: arrays by which compiled functions learn rounds, and decide
    them where `kind` says how. An extra: `Belief.kernel` is None where there is none.

    functions: `REGRESSIONS` or `NUMBERS` of `kernels.rounds`. plain: whether they learn by contexts
    as they are.
    """

    arms: Array
    settings: Array
    functions: ClassVar[rounds.Kernels] = rounds.REGRESSIONS
    plain: ClassVar[bool] = True

    def kind(self, rule: int, param: tuple[float, float] | None) -> int | None:
        """Return the KIND of the rows (`kernels/row_layout.py`) in which the kernels play a rule of
        this number and least probability (None where they change), or None if they do not."""
        return rule

    @abstractmethod
    def learned(self, x: Array, arm: Array, reward: Array, weight: Array) -> tuple[Array, Array]:
        """Return the regressors (n, D) and rewards (n,) that the kernels learn of these rounds."""

    def check_rewards(self, x: Array, reward: Array) -> None:
        """Raise ValueError where rewards (n,) at contexts x (n, d) are impossible."""
        return


@runtime_checkable
class Belief(Protocol):
    """What a bandit asks of a belief about K arms and contexts of d features.

    n (K,): rounds that each arm has learned of. of_arms: whether contexts are (n, K, d), a row of
    features an arm."""

    n: Array
    n_features: int
    of_arms: ClassVar[bool] = False

    @property
    def n_columns(self) -> int:
        """Columns of the design, in which a round keeps its context: d, or one more for a
        constant."""
        return self.n_features

    @property
    def new(self) -> Array:
        """Arms of which nothing is known, (K,) true and false: each is chosen with probability
        1/K."""
        return self.n == 0

    @property
    def kernel(self) -> Kernel | None:
        """The compiled way of this belief, where it has one."""
        return None

    @property
    def computes_when_asked(self) -> bool:
        """Whether a question may change it, as new draws do."""
        return False

    @abstractmethod
    def predict(self, x: Array) -> Prediction:
        """Return what is believed of the mean rewards at contexts x (n, d)."""

    @abstractmethod
    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Learn rounds x (n, d), arm numbers, rewards, precision weights (n,; None: 1)."""

    def predict_together(self, x: Array) -> Prediction:
        """Return what a belief about one arm says of m rows of features at once, x (n, m, d), as of
        m arms: for `Shared`."""
        n, m, d = x.shape
        found = self.predict(x.reshape(-1, d))
        return LocationScale(found.mean.reshape(n, m), found.sd.reshape(n, m))

    def at_once(self, x: Array) -> int:
        """Return of how many of these contexts (n, …) a prediction has room in memory."""
        return len(x)

    def decided(self, n: int) -> None:
        """Count n more decisions that are made by what is known now."""
        return

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        """Compute the arms that are due again, from all rows; those of arms that are gone have a
        number below 0: see `update`."""
        raise _missing(self, "reweigh", "the weights of its past change")

    def add_arm(self) -> None:
        """One more arm, about which nothing is known."""
        raise _missing(self, "add_arm", "an arm is added")

    def remove_arm(self, k: int) -> None:
        """Forget arm k; those behind it move up."""
        raise _missing(self, "remove_arm", "an arm is removed")

    def posterior(self, k: int, rows: dict[str, Array]) -> Any:
        """What is known of arm k. rows: those of it that the history keeps, by role."""
        raise _missing(self, "posterior", "the posterior of an arm is asked for")

    def snapshot(self) -> Snapshot:
        """What is known now, to be asked for predictions later."""
        raise _missing(self, "snapshot", "past policies are asked again")

    def recall(self, state: dict[str, Array]) -> Snapshot:
        """The snapshot of this `Snapshot.state`."""
        raise _missing(self, "recall", "past policies are asked again")

    def reseed(self, seed: np.random.SeedSequence) -> None:
        """Other random numbers from here on, where the belief has any."""
        return

    def fork(self) -> Self:
        """What is known now, to be gone on with while this stays as it is."""
        return deepcopy(self)

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as arrays and plain values."""
        raise _missing(self, "state", "the bandit is saved")

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`; raise ValueError where its arrays have not the shapes of this."""
        raise _missing(self, "restore", "a saved bandit is loaded")

    def verify(self, total: int) -> None:
        """Raise ValueError where this cannot be what is known of so many rounds: it is asked of
        what a file holds, and before a file is written."""
        return


@runtime_checkable
class BeliefModel(Protocol):
    """What makes the belief of a bandit: `Ridge`, or a class of yours.

    It may have `nbytes(n_arms, n_features)`, the bytes that its belief takes before any data: a
    file that is small out of all proportion to them is refused.
    """

    def belief(
        self, n_arms: int, n_features: int, normalize: bool, seed: np.random.SeedSequence
    ) -> Belief:
        """The belief about K arms before any data; `normalize`: scale each arm's weights to mean
        1."""
        ...


@runtime_checkable
class Refusing(Protocol):
    """A model that may not be weighted."""

    def refuses_weights(self, n_arms: int, n_features: int) -> str:
        """Return why observations cannot be weighted; "" if they can."""
        ...


@runtime_checkable
class Sized(Protocol):
    """A model that says what memory its belief takes."""

    def nbytes(self, n_arms: int, n_features: int) -> int:
        """Return the bytes of the belief before any data."""
        ...


@runtime_checkable
class Declaring(Protocol):
    """A declared reward model with its settings, as `beliefs.declared.Declared`, which loads
    PyMC."""

    @property
    def declared(self) -> RewardModel: ...

    def fingerprint(self, n_arms: int, n_features: int) -> str:
        """Return what tells the declaration from another of the same name."""
        ...

    def refuses_sharing(self, n_features: int) -> str:
        """Return why arms that share the model could not be told apart; "" if they can."""
        ...


@runtime_checkable
class ComparingArms(Protocol):
    """A model that says which arm is best, and nothing of a row of features alone."""

    compares_arms: ClassVar[bool]


class Snapshot(Protocol):
    """A belief of the past, asked for the predictions of then."""

    @property
    def new(self) -> Array:
        """Arms that had no rewards (K,)."""
        ...

    def predict(self, x: Array) -> Prediction:
        """Return what was believed of the mean rewards at x (n, d)."""
        ...

    def state(self) -> dict[str, Array]:
        """All of it, as arrays."""
        ...


def refuses_weights(model: object, n_arms: int, n_features: int) -> str:
    """Return why observations of a model cannot be weighted; "" if they can."""
    return model.refuses_weights(n_arms, n_features) if isinstance(model, Refusing) else ""


def nbytes(model: object, n_arms: int, n_features: int) -> int:
    """Return the bytes that a model's belief takes before any data; 0 where it does not say."""
    return model.nbytes(n_arms, n_features) if isinstance(model, Sized) else 0


def check(belief: Belief, maker: str) -> None:
    """Raise TypeError unless a belief has what a bandit calls."""
    for name in ("n", "n_features", *(k for k in vars(Belief) if k[0] != "_")):
        if not hasattr(belief, name):
            raise TypeError(
                f"{maker}.belief(…) must give a belief; {shown(belief)} lacks `{name}`: a subclass "
                "of `bayesbandit.Belief` or `bayesbandit.ByDraws` needs little"
            )
    if not isinstance(belief.n, np.ndarray) or belief.n.ndim != 1:
        raise TypeError(
            f"{_kind(belief)}.n must be an array (K,), an arm's rounds; got {belief.n!r}"
        )


def predicted(belief: Belief, x: Array) -> Prediction:
    """Return the prediction of a belief at contexts x (n, …), checked."""
    found, what = belief.predict(x.copy()), f"{_kind(belief)}.predict"
    if not isinstance(found, LocationScale | Joint | Draws | Conjugate | Prediction):
        raise TypeError(
            f"{what} must give a prediction, as bb.LocationScale(mean, scale); got {shown(found)}"
        )
    shape, mean, sd = (len(x), len(belief.n)), np.asarray(found.mean), np.asarray(found.sd)
    if not mean.shape == sd.shape == shape:
        raise ValueError(f"{what} must be of {shape}; got means {mean.shape} and sds {sd.shape}")
    if not (sd >= 0.0).all():  # NaN: neither; infinite where next to nothing is known
        raise ValueError(f"{what} must give standard deviations ≥ 0; got {sd[~(sd >= 0.0)][0]}")
    finite(mean, f"the means of {what}")
    return found


def parts(belief: Belief, x: Array) -> Iterator[slice]:
    """Yield contexts x (n, …) in parts whose predictions have room in memory."""
    step = max(1, belief.at_once(x)) if len(x) else 1
    return (slice(i, i + step) for i in range(0, len(x), step))


def kernel_of(belief: Belief) -> Kernel | None:
    """Return the compiled way of a belief: as its class says, where no subclass answers
    otherwise."""
    known = declares(belief, "kernel", ("predict", "update", "new", "n"))
    return None if known is None else belief.kernel


def can_recall(belief: Belief) -> bool:
    """Whether a belief has snapshots."""
    return type(belief).snapshot is not Belief.snapshot


def below(state: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The entries whose keys begin so, by the rest of the key."""
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def _missing(belief: object, method: str, when: str) -> TypeError:
    return TypeError(f"{_kind(belief)} needs a method `{method}`, where {when}")


def _kind(belief: object) -> str:
    return type(belief).__name__
