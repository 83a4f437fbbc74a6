"""`Shared`, one model for all arms, which differ by their features; and its belief."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bayesbandit.beliefs.base import (
    Belief,
    ComparingArms,
    Declaring,
    Described,
    Forgets,
    Mergeable,
    Postponable,
    PredictsTogether,
    Refits,
    Reweighable,
    Seeded,
    Storable,
    WithPosterior,
    check_counted,
    needed,
    refuses_weights,
)
from bayesbandit.checks import Array, integer, shown
from bayesbandit.forms import Arrays, Form, Numbers, State, prefixed, unprefixed
from bayesbandit.model import RewardModel
from bayesbandit.predictions import LocationScale, Prediction
from bayesbandit.runtime.capabilities import declares
from bayesbandit.runtime.savable import savable
from bayesbandit.runtime.shown import settings_repr

MERGING, SAVING = "bandits are merged", "the bandit is saved and loaded"


@savable
@dataclass(frozen=True)
class Shared:
    """One model for all arms: a context has a row of features for each arm, (K, d).

    A reward of one arm is learned for all arms (Li et al. 2010, section 3, with one θ; Agrawal &
    Goyal 2013). So there may be thousands of arms, and arms may be added and removed. Thompson
    sampling draws one θ for all arms.

    model: the model of a row's reward: `Ridge()`, a declared `RewardModel` that does not take
        `arm`, or your own class with a method `belief`. A model that `compares_arms` is refused.
    """

    __repr__ = settings_repr

    model: Any

    def __post_init__(self) -> None:
        if isinstance(self.model, Shared):
            raise TypeError(f"the arms share one model; got {shown(self.model)}")
        if isinstance(self.model, ComparingArms) and self.model.compares_arms:
            raise TypeError(
                f"{shown(self.model)} says which arm is best in a context, and not what a row of "
                "features is worth: bb.Shared takes models of rewards, as bb.Ridge()"
            )
        model = self.model.declared if isinstance(self.model, Declaring) else self.model
        if isinstance(model, RewardModel) and model.takes_arm:
            raise TypeError(
                f"{shown(self.model)} takes `arm`, and is of all arms by itself: without bb.Shared "
                "its contexts are (d,)"
            )

    def refuses_weights(self, n_arms: int, n_features: int) -> str:
        """Return why observations of the model cannot be weighted; "" if they can."""
        return refuses_weights(self.model, 1, n_features)

    def belief(
        self, n_arms: int, n_features: int, normalize: bool, seed: np.random.SeedSequence
    ) -> SharedBelief:
        """Return the belief before any data."""
        integer(n_features, "n_features, of each arm,", least=1)
        why = self.model.refuses_sharing(n_features) if isinstance(self.model, Declaring) else ""
        if why:
            raise ValueError(f"{why}: to bb.Shared all arms would be alike")
        return SharedBelief(self.model.belief(1, n_features, normalize, seed), n_arms)


class SharedBelief(Belief):
    """A belief about all arms from the common belief about any row of features.

    `common` is the belief of one arm, which learns all rounds. Contexts are (n, K, d), and rounds
    have the features (n, d) of the chosen arms. n (K,): rounds of each arm. After the first reward
    no arm is new.
    """

    n: Array
    of_arms = True

    def __init__(self, common: Belief, n_arms: int) -> None:
        self.common = common
        self.n_features = common.n_features
        self.n = np.zeros(n_arms)
        self.predict_may_refit = common.predict_may_refit
        self.clock = common.clock
        self.is_joint = declares(common, "predict_together", ("predict",)) is not None

    def __repr__(self) -> str:
        return f"SharedBelief({shown(self.common)}, n_arms={len(self.n)})"

    @property
    def new(self) -> Array:
        return np.full(len(self.n), bool(np.all(self.common.new)))

    # ---- mean rewards ----------------------------------------------------------------------------

    def predict(self, x: Array) -> Prediction:
        """Return the prediction at contexts x (n, K, d), or at (n, m, d) for any m rows.

        It is joint where the common belief has `predict_together(x)`, which takes m rows of
        features (n, m, d) as if they were m arms.
        """
        if x.ndim != 3 or x.shape[2] != self.n_features:
            d = self.n_features
            raise ValueError(
                f"where arms have features, a belief is asked at (n, K, {d}), as x[:, None] of "
                f"those that were chosen; got {x.shape}"
            )
        common = self.common
        if self.is_joint and isinstance(common, PredictsTogether) and not self.new.any():
            return common.predict_together(x)
        n, m, d = x.shape
        apart = common.predict(x.reshape(-1, d))
        return LocationScale(apart.mean.reshape(n, m), apart.sd.reshape(n, m))

    def max_batch(self, x: Array) -> int:
        return self.common.max_batch(x.reshape(-1, x.shape[2])) // x.shape[1]

    # ---- rewards ---------------------------------------------------------------------------------

    def update(
        self, x: Array, arm: Array, reward: Array, weight: Array | None = None,
        tick: Array | None = None,
    ) -> None:  # fmt: skip
        """Learn rounds with the features x (n, d) of the chosen arms: see `Belief.update`."""
        before = np.array(self.common.n)
        same = np.zeros_like(arm)
        if tick is None:
            self.common.update(x, same, reward, weight)
        else:
            forgets = needed(self.common, Forgets, "time passes")
            forgets.update(x, same, reward, weight, tick=tick)
        check_counted(self.common, before, same)
        self.n = self.n + np.bincount(arm, minlength=len(self.n))

    def advance(self, tick: float) -> None:
        needed(self.common, Forgets, "time passes").advance(tick)

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        """Refit the common posterior from all rounds, including those of removed arms."""
        common = needed(self.common, Reweighable, "the weights of its past change")
        common.reweigh((0,), x, np.zeros_like(arm), reward, weight)

    def absorb(self, other: Belief) -> None:
        if not (isinstance(other, SharedBelief) and len(self.n) == len(other.n)):
            raise ValueError(f"{self!r} absorbs a belief of the same model; got {other!r}")
        needed(self.common, Mergeable, MERGING).absorb(other.common)
        self.n = self.n + other.n

    def postpone(self, ticks: float) -> None:
        needed(self.common, Postponable, MERGING).postpone(ticks)

    def add_arm(self) -> None:
        self.n = np.append(self.n, 0.0)

    def remove_arm(self, k: int) -> None:
        """Remove arm k; the common posterior keeps what its rounds taught."""
        self.n = np.delete(self.n, k)

    # ---- refits, and the state -------------------------------------------------------------------

    def refit_if_due(self) -> bool:
        return isinstance(self.common, Refits) and self.common.refit_if_due()

    def count_decisions(self, n: int) -> None:
        if isinstance(self.common, Refits):
            self.common.count_decisions(n)

    def refit_when_asked(self) -> None:
        if isinstance(self.common, Refits):
            self.common.refit_when_asked()

    def reseed(self, seed: np.random.SeedSequence) -> None:
        if isinstance(self.common, Seeded):
            self.common.reseed(seed)

    def posterior(self, k: int, rows: Arrays) -> Any:
        """Return the posterior of all arms. rows: all rounds in the history, by role."""
        return needed(self.common, WithPosterior, "a posterior is asked for").posterior(0, rows)

    def fork(self) -> Self:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self), common=self.common.fork(), n=self.n.copy())
        return twin

    def state(self) -> State:
        common = needed(self.common, Storable, SAVING).state()
        return {"n": self.n} | {f"common.{k}": v for k, v in common.items()}

    def form(self, state: State, total: int) -> Form:
        arrays = {"n": Numbers(self.n.shape, 0, total, whole=True)}
        if not isinstance(self.common, Described):
            return {**arrays, ...: object}
        common = self.common.form(unprefixed(state, "common."), total)
        return arrays | prefixed("common.", common)

    def restore(self, state: State) -> None:
        self.n = state["n"].copy()
        needed(self.common, Storable, SAVING).restore(unprefixed(state, "common."))
