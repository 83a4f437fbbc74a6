"""What is known now about the mean rewards of all arms at once.

To add one, write a subclass of `Belief` with `moments`, `draw` and `update`, and a model of which
`belief(n_arms, n_features, normalize, seed)` makes it; or of `ByDraws`, with `values` alone. What
else a bandit may ask has a default here, or says which method is missing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from bayesbandit.checks import LARGEST, declares, finite, floats, shown, sums
from bayesbandit.kernels import rounds
from bayesbandit.kernels.prob_best import by_draws
from bayesbandit.kernels.rules import put_moments
from bayesbandit.runtime.memory import AT_ONCE

JOINT = 4096  # draws by which arms are compared, where nothing better is known


class Asked(Protocol):
    """What a policy asks of a belief."""

    def moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posterior means and standard deviations of the mean rewards at x (n, d): (n, K) each."""
        ...

    def draw(
        self, x: np.ndarray, size: int, rng: np.random.Generator, available: Any = None
    ) -> np.ndarray:
        """Mean rewards under `size` posterior draws (size, n, K); one draw spans all contexts.
        available: only these arms, (K,) true and false: (size, n, A)."""
        ...

    def best(self, x: np.ndarray, alpha: Any = 1.0, available: Any = None) -> np.ndarray:
        """P(arm has the largest mean reward) at x (n, d) under a draw α times as far from its mean,
        α a number or (n,): (n, K). available: only these arms, (K,) true and false: (n, A)."""
        ...


@runtime_checkable
class Belief(Asked, Protocol):
    """What a bandit asks of a belief about K arms and contexts of d features.

    n (K,): rounds that each arm has learned of. tabulates: whether `describe` gives Thompson
    sampling's probabilities, and not only moments of independent normals or Student-t.
    """

    n: np.ndarray
    n_features: int
    tabulates: ClassVar[bool] = True
    streams: ClassVar[bool] = False  # whether `regression` says what the kernels learn of a round
    of_arms: ClassVar[bool] = False  # whether contexts are (n, K, d), a row of features an arm

    @property
    def n_columns(self) -> int:
        """Columns of the design, in which a round keeps its context: d, or one more for a
        constant."""
        return self.n_features

    @property
    def new(self) -> np.ndarray:
        """Arms of which nothing is known, (K,) true and false: each is chosen with probability
        1/K."""
        return self.n == 0

    @abstractmethod
    def update(
        self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: Any = None
    ) -> None:
        """Rounds x (n, d), arm numbers (n,), rewards (n,), precision weights (n,; None: 1)."""

    def mean(self, x: np.ndarray) -> np.ndarray:
        """Means of the mean rewards at x (n, d): (n, K)."""
        return moments_of(self, x)[0]

    def best(self, x: np.ndarray, alpha: Any = 1.0, available: Any = None) -> np.ndarray:
        """By the shares of 4,096 draws, the same ones every time."""
        K = len(self.n)
        which = np.ones(K, np.bool_) if available is None else np.asarray(available)
        a, step = np.broadcast_to(np.ravel(alpha), len(x)), max(1, AT_ONCE // (JOINT * K))
        out = np.empty((len(x), int(which.sum())))
        for i in range(0, len(x), step):
            part = slice(i, i + step)
            values = self._drawn(x[part])[:, :, which].transpose(1, 0, 2)
            out[part] = by_draws.joint(widened(values, a[part], axis=1))
        return out

    def _drawn(self, x: np.ndarray) -> np.ndarray:
        """Draws (4096, n, K) at contexts x (n, d), checked."""
        name, shape = f"{_kind(self)}.draw", (JOINT, len(x), len(self.n))
        values = floats(self.draw(x.copy(), JOINT, np.random.default_rng(0)), name)
        if values.shape != shape:
            raise ValueError(f"{name} must give {shape}; got {values.shape}")
        return finite(values, name, LARGEST**3)  # contexts times coefficients

    def describe(
        self, rows: np.ndarray, available: np.ndarray, alpha: np.ndarray | None = None
    ) -> None:
        """Fill the moments of the available arms into rows (n, width) of contexts, and for Thompson
        sampling with spreads α (1,) or (n,) their probabilities (`kernels/rules.py`)."""
        x, new = rows[:, : self.n_features], self.new
        mean, sd = moments_of(self, x)
        last = np.where(new, -np.inf, np.inf)
        if alpha is not None:
            last = shared(new, available, lambda old: best_of(self, x, alpha, old))
        put_moments(rows, self.n_columns, available, mean, sd, last)

    def decided(self, n: int) -> None:
        """So many more decisions are made by what is known now; `describe` tells it itself."""
        return

    def reweigh(
        self, due: Iterable[int], x: np.ndarray, arm: np.ndarray, reward: np.ndarray,
        weight: np.ndarray,
    ) -> None:  # fmt: skip
        """The arms that are due afresh, from all rows, of which those of arms that are gone have a
        number below 0: see `update`."""
        raise _missing(self, "reweigh", "the weights of its past change")

    def add_arm(self) -> None:
        """One more arm, about which nothing is known."""
        raise _missing(self, "add_arm", "an arm is added")

    def remove_arm(self, k: int) -> None:
        """Forget arm k; those behind it move up."""
        raise _missing(self, "remove_arm", "an arm is removed")

    def posterior(self, k: int, rows: dict[str, np.ndarray]) -> Any:
        """What is known of arm k. rows: those of it that the history keeps, by role."""
        raise _missing(self, "posterior", "the posterior of an arm is asked for")

    def snapshot(self) -> Snapshot:
        """What is known now, to be asked for probabilities later."""
        raise _missing(self, "snapshot", "past policies are asked again")

    def recall(self, state: dict[str, np.ndarray]) -> Snapshot:
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


class BeliefModel(Protocol):
    """What makes the belief of a bandit: `Ridge`, or one's own.

    It may have `nbytes(n_arms, n_features)`, the bytes that its belief takes before any data: a
    file that is small out of all proportion to them is refused.
    """

    def belief(
        self, n_arms: int, n_features: int, normalize: bool, seed: np.random.SeedSequence
    ) -> Any:
        """The belief about K arms before any data; `normalize`: scale each arm's weights to mean
        1."""
        ...


class Snapshot(Protocol):
    """A belief of the past and the arms of then, asked for the probabilities of then."""

    def chances(self, x: np.ndarray, k: int, kind: int, param: float, floor: float) -> np.ndarray:
        """P(arm k) at contexts x (n, d) under a rule with this number and floor: (n,)."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """All of it, as arrays."""
        ...


def nbytes(model: Any, n_arms: int, n_features: int) -> int:
    """Return the bytes that a model's belief takes before any data; 0 where it does not say."""
    told: Any = getattr(model, "nbytes", lambda n_arms, n_features: 0)
    return int(told(n_arms, n_features))


def check(belief: Any, maker: str) -> None:
    """That a belief has what a bandit calls."""
    for name in ("n", "n_features", "n_columns", "new", *(k for k in vars(Asked) if k[0] != "_")):
        _demand(belief, name, maker)
    for name in (k for k in vars(Belief) if k[0] != "_"):
        _demand(belief, name, maker)
    if not isinstance(belief.n, np.ndarray) or belief.n.ndim != 1:
        raise TypeError(
            f"{_kind(belief)}.n must be an array (K,), an arm's rounds; got {belief.n!r}"
        )


def _demand(belief: Any, name: str, maker: str) -> None:
    if not hasattr(belief, name):
        raise TypeError(
            f"{maker}.belief(…) must give a belief; {shown(belief)} lacks `{name}`: a subclass of "
            "`bayesbandit.Belief` or `bayesbandit.ByDraws` needs little"
        )


def moments_of(belief: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The moments of a belief at x (n, d), checked: means and standard deviations (n, K)."""
    found, what = belief.moments(x.copy()), f"{_kind(belief)}.moments"
    if not isinstance(found, tuple | list | np.ndarray) or len(found) != 2:
        raise TypeError(f"{what} must give means and standard deviations; got {found!r}")
    mean, sd = (floats(values, what) for values in found)
    shape = len(x), len(belief.n)
    if not mean.shape == sd.shape == shape:
        raise ValueError(f"{what} must give {shape} twice; got {mean.shape} and {sd.shape}")
    if not (sd >= 0.0).all():  # NaN: neither; infinite where next to nothing is known
        raise ValueError(f"{what} must give standard deviations ≥ 0; got {sd[~(sd >= 0.0)][0]}")
    return finite(mean, f"the means of {what}"), sd


def shared(new: np.ndarray, available: np.ndarray, among: Callable[..., np.ndarray]) -> np.ndarray:
    """Probabilities (n, K) where some arms are new, (K,) true and false; among(old) gives those of
    the others (n, A) among themselves."""
    if not new.any() and available.all():
        return among(available)
    count, fresh = int(available.sum()), available & new
    old = available & ~new
    p = among(old) * (old.sum() / count) if old.any() else np.zeros((1, 0))
    out = np.zeros((len(p), new.size))
    out[:, fresh], out[:, old] = 1.0 / count, p
    return out


def best_of(belief: Any, x: np.ndarray, alpha: Any, available: np.ndarray) -> np.ndarray:
    """The probabilities of a belief at x (n, d) of A available arms, checked: (n, A)."""
    what, shape = f"{_kind(belief)}.best", (len(x), int(available.sum()))
    p = floats(belief.best(x.copy(), alpha, available.copy()), what).copy()
    if p.shape != shape:
        raise ValueError(f"{what} must give {shape}; got {p.shape}")
    sums(p, what, slack=1e-6 * max(1, shape[1]))
    return p


def is_streamed(belief: Any) -> bool:
    """Whether the kernels learn a round for a belief, as its `regression` says."""
    return declares(belief, "streams", ("update", "regression", "observed")) is True


def can_recall(belief: Any) -> bool:
    """Whether a belief has snapshots."""
    return getattr(type(belief), "snapshot", Belief.snapshot) is not Belief.snapshot


def below(state: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The entries whose keys begin so, by the rest of the key."""
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def _missing(belief: Any, method: str, when: str) -> TypeError:
    return TypeError(f"{_kind(belief)} needs a method `{method}`, where {when}")


def _kind(belief: Any) -> str:
    return type(belief).__name__


def is_compiled(belief: Any) -> bool:
    """Whether the kernels play a belief by its arrays `arms` and `settings`: its class says so, and
    no subclass answers otherwise."""
    asked = ("moments", "mean", "best", "draw", "describe", "update", "new", "n")
    return declares(belief, "compiled", asked) is True


def kernels_of(belief: Any) -> Any:
    """The compiled functions that play and learn rounds by a belief's arrays."""
    return getattr(belief, "kernels", rounds.REGRESSIONS)


def played(belief: Any, rule: int, param: tuple[float, float] | None) -> int | None:
    """The KIND of the rows (`kernels/rules.py`) in which the kernels of a compiled belief play a
    rule of this number and least probability, None where they change; None: they do not."""
    own = getattr(belief, "played", None)
    return rule if own is None else own(rule, param)


def widened(values: np.ndarray, alpha: Any, axis: int) -> np.ndarray:
    """Draws of mean rewards, along an axis of (n, …), α times as far from their mean; α a number or
    (n,)."""
    a = np.reshape(alpha, (-1, *(1,) * (values.ndim - 1)))
    mean = values.mean(axis=axis, keepdims=True)
    return mean + a * (values - mean)
