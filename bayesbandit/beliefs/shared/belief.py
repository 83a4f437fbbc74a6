"""`Shared`: one model for all arms, whose features tell them apart; and its belief."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bayesbandit.beliefs.base import Belief, below, moments_of, nbytes, shared
from bayesbandit.beliefs.shared.comparison import Comparison
from bayesbandit.checks import declares, integer, shown
from bayesbandit.kernels.prob_best.quadrature import best_of_location_scale
from bayesbandit.kernels.rules import HUGE, put_moments
from bayesbandit.runtime.savable import savable
from bayesbandit.runtime.schema import demand


@savable
@dataclass(frozen=True)
class Shared:
    """One model for all arms: a context has a row of features for each arm, (K, d).

    What is learned of one arm is learned of all (Li et al. 2010, section 3, with one θ; Agrawal &
    Goyal 2013), so that thousands of arms, and arms that come and go, can be told apart by what
    they are. Thompson sampling draws one θ for all arms.

    model: of the reward of a row: `Ridge()`, a declared `RewardModel` that does not take `arm`, or
        one's own with a method `belief`. One that `compares_arms` is refused.
    """

    model: Any

    def __post_init__(self) -> None:
        if isinstance(self.model, Shared):
            raise TypeError(f"the arms share one model; got {shown(self.model)}")
        if getattr(self.model, "compares_arms", False):
            raise TypeError(
                f"{shown(self.model)} says which arm is best in a context, and not what a row of "
                "features is worth: bb.Shared takes models of rewards, as bb.Ridge()"
            )
        if getattr(getattr(self.model, "declared", self.model), "takes_arm", False):
            raise TypeError(
                f"{shown(self.model)} takes `arm`, and is of all arms by itself: without bb.Shared "
                "its contexts are (d,)"
            )

    def refuses_weights(self, n_arms: int, n_features: int) -> str:
        """Why observations of the model cannot be weighted; "" if they can."""
        refuses: Any = getattr(self.model, "refuses_weights", lambda n_arms, n_features: "")
        return str(refuses(1, n_features))

    def fingerprint(self, n_arms: int, n_features: int) -> str:
        """What tells its declaration, where it has one, from another of the same name."""
        own: Any = getattr(self.model, "fingerprint", lambda n_arms, n_features: "")
        return str(own(1, n_features))

    def nbytes(self, n_arms: int, n_features: int) -> int:
        """Return the bytes that the belief takes before any data."""
        return nbytes(self.model, 1, n_features)

    def belief(
        self, n_arms: int, n_features: int, normalize: bool, seed: np.random.SeedSequence
    ) -> SharedBelief:
        """The belief before any data."""
        integer(n_features, "n_features, of each arm,", least=1)
        refuses: Any = getattr(self.model, "refuses_sharing", lambda n_features: "")
        if why := refuses(n_features):
            raise ValueError(f"{why}: to bb.Shared all arms would be alike")
        return SharedBelief(self.model.belief(1, n_features, normalize, seed), n_arms)


class SharedBelief(Belief):
    """What is known of all arms by what is known of any row: `common` is the belief of one arm.

    Contexts are (n, K, d); rounds have the features (n, d) of the arms that were chosen. n (K,):
    rounds of each arm. No arm is new as soon as anything has been learned.
    """

    of_arms = True

    def __init__(self, common: Any, n_arms: int) -> None:
        self.common, self.n_features, self.n = common, common.n_features, np.zeros(n_arms)

    def __repr__(self) -> str:
        return f"SharedBelief({shown(self.common)}, n_arms={len(self.n)})"

    @property
    def new(self) -> np.ndarray:
        return np.full(len(self.n), bool(np.all(self.common.new)))

    @property
    def computes_when_asked(self) -> bool:
        """Whether it changes as it is asked."""
        return getattr(self.common, "computes_when_asked", False)

    # ---- mean rewards ----------------------------------------------------------------------------

    def moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, sd = moments_of(self.common, self._rows(x))
        return mean.reshape(x.shape[:2]), sd.reshape(x.shape[:2])

    def mean(self, x: np.ndarray) -> np.ndarray:
        return np.reshape(self.common.mean(self._rows(x)), x.shape[:2])

    def _rows(self, x: np.ndarray) -> np.ndarray:
        """All rows of contexts (n, K, d), which a balance of one's own may ask of: (n K, d)."""
        if x.ndim != 3 or x.shape[2] != self.n_features:
            d = self.n_features
            raise ValueError(
                f"where arms have features, a belief is asked at (n, K, {d}), as x[:, None] of "
                f"those that were chosen; got {x.shape}"
            )
        return x.reshape(-1, self.n_features)

    def draw(
        self, x: np.ndarray, size: int, rng: np.random.Generator, available: Any = None
    ) -> np.ndarray:
        x = x if available is None else x[:, available]
        if self._are_independent():
            mean, sd = self.moments(x)
            return mean + np.minimum(sd, HUGE) * rng.standard_normal((size, 1, x.shape[1]))
        drawn = self.common.draw(self._rows(x), size, rng)
        return np.reshape(drawn, (size, *x.shape[:2]))

    def best(self, x: np.ndarray, alpha: Any = 1.0, available: Any = None) -> np.ndarray:
        which = np.ones(len(self.n), np.bool_) if available is None else np.asarray(available)
        if self._are_independent():
            mean, sd = self.moments(x[:, which])
            scale = np.reshape(alpha, (-1, 1)) * np.minimum(sd, HUGE)
            return best_of_location_scale(mean, scale, np.full_like(scale, np.inf))
        params = np.column_stack([np.ravel(alpha), np.zeros(np.size(alpha))])
        if (comparison := self._compared(x, which, params)) is None:
            return super().best(x, alpha, available)
        return comparison.probabilities()

    def _are_independent(self) -> bool:
        """Whether a row's mean reward is drawn by itself, of a mean and a standard deviation: one
        normal for all rows would never tell them apart."""
        return declares(self.common, "independent", ("draw", "best")) is True

    def compare(
        self, rows: np.ndarray, x: np.ndarray, available: np.ndarray, params: np.ndarray
    ) -> Comparison | None:
        """Thompson sampling with these α and least probabilities, whose probabilities are computed
        when they are asked for: the moments go into rows (n, width). None: not by this belief."""
        comparison = None if self.new.any() else self._compared(x, available, params)
        if comparison is not None:
            put_moments(rows, self.n_features, available, *self.moments(x), np.nan)
        return comparison

    def _compared(
        self, x: np.ndarray, available: np.ndarray, params: np.ndarray
    ) -> Comparison | None:
        """The arms in coordinates whose posterior is normal or Student-t, if there are some."""
        asked = ("moments", "draw", "best", "coordinates")
        if declares(self.common, "orders_by_coordinates", asked) is not True:
            return None
        arms = np.flatnonzero(available)
        z, offset, known = self.common.coordinates(x[:, arms].reshape(-1, self.n_features))
        return Comparison(arms, z, offset, known, params)

    def describe_arms(
        self, rows: np.ndarray, x: np.ndarray, available: np.ndarray, alpha: np.ndarray | None
    ) -> None:
        """Fill the moments of the available arms at x (n, K, d) into rows (n, width), and for
        Thompson sampling with spreads α (1,) or (n,) their probabilities."""
        mean, sd = self.moments(x)
        last: Any = np.where(self.new, -np.inf, np.inf)
        if alpha is not None:
            last = shared(self.new, available, lambda old: self.best(x, alpha, old))
        put_moments(rows, self.n_features, available, mean, sd, last)

    def decided(self, n: int) -> None:
        self.common.decided(n)

    # ---- rewards ---------------------------------------------------------------------------------

    def update(
        self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: Any = None
    ) -> None:
        """Rounds by the features x (n, d) of the chosen arms: see `Belief.update`."""
        known = np.array(self.common.n)
        self.common.update(x, np.zeros_like(arm), reward, weight)
        if not np.array_equal(self.common.n, known + len(arm)):
            raise ValueError(
                f"{type(self.common).__name__}.update must leave n = {known + len(arm)}, its "
                f"rounds; got {self.common.n}"
            )
        self.n = self.n + np.bincount(arm, minlength=len(self.n))

    def reweigh(
        self, due: Iterable[int], x: np.ndarray, arm: np.ndarray, reward: np.ndarray,
        weight: np.ndarray,
    ) -> None:  # fmt: skip
        """All of them: those of arms that are gone are of the common posterior, too."""
        self.common.reweigh((0,), x, np.zeros_like(arm), reward, weight)

    def add_arm(self) -> None:
        self.n = np.append(self.n, 0.0)

    def remove_arm(self, k: int) -> None:
        """Forget arm k; what its rounds said of all arms stays."""
        self.n = np.delete(self.n, k)

    def posterior(self, k: int, rows: dict[str, np.ndarray]) -> Any:
        """What is known of all arms. rows: all that the history keeps."""
        return self.common.posterior(0, rows)

    def reseed(self, seed: np.random.SeedSequence) -> None:
        self.common.reseed(seed)

    def fork(self) -> Self:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self), common=self.common.fork(), n=self.n.copy())
        return twin

    def state(self) -> dict[str, Any]:
        return {"n": self.n} | {f"common.{k}": v for k, v in self.common.state().items()}

    def restore(self, state: dict[str, Any]) -> None:
        if state["n"].shape != self.n.shape or not (state["n"] >= 0.0).all():
            raise ValueError(f"n must be counts {self.n.shape}; got {state['n']}")
        self.n = state["n"].astype(np.float64)
        self.common.restore(below(state, "common."))

    def verify(self, total: int) -> None:
        known = np.asarray(self.common.n)
        demand(known.tolist() == [total], f"its posterior has {known} of {total} rounds")
        self.common.verify(total)
