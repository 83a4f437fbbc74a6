"""Bootstrap LASSO and ridge (paper, sections 2.2 and 4.1) as a belief by draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from bayesbandit.checks import MAX_DRAWS, SETTING_BOUNDS, integer, number, one_of
from bayesbandit.extend import ByDraws, ByNormal, Schedule, one_thread, savable, settings_repr
from bayesbandit.forms import Numbers
from bayesbandit.systems.bootstrap.replicates import (
    Penalty,
    along,
    chosen,
    constants,
    moments,
    penalties,
    standardised,
)

Array = np.ndarray


@savable
@dataclass(frozen=True)
class Bootstrap:
    """A model: each arm's LASSO or ridge regression on `replicates` resamples of its rounds.

    penalty: "lasso" minimises ½ mean squared error + λ‖θ‖₁, "ridge" + ½λ‖θ‖². Features and rewards
    are first divided by their standard deviations. Constants are not penalised.
    replicates: how many resamples each arm has.
    lam: λ. With "cv", each refit chooses λ by cross-validation on the rounds without resampling.
    n_lams, folds: how many values of λ, and how many folds, the cross-validation has.
    draw: with "replicate" Thompson sampling draws one of the replicates. With "normal" it draws
    from N(mean, sd²) of the replicates. The paper has both.
    degree: 2 adds squares and products of the features.
    refit_every: when an arm's replicates are drawn again. A float is a share by which its rounds
    must grow (.1 = 10 %), an int a number of its rounds.
    least: the rounds that an arm needs before its first replicates.
    half_life, clock: as of `Ridge`, but only the rounds of the last half_life / ln 2 ticks count,
    and these count whole: as many as fading would leave. None: all rounds count.
    """

    __repr__ = settings_repr

    penalty: Penalty = "lasso"
    replicates: int = 100
    lam: float | Literal["cv"] = "cv"
    draw: Literal["replicate", "normal"] = "replicate"
    degree: int = 1
    n_lams: int = 20
    folds: int = 5
    refit_every: float | int = 0.1
    least: int = 3
    half_life: float | str | None = None
    clock: Literal["rounds", "time"] = "rounds"

    def __post_init__(self) -> None:
        one_of(self.penalty, "penalty", ("lasso", "ridge"))
        integer(self.replicates, "replicates", least=2, most=MAX_DRAWS)
        if isinstance(self.lam, str):
            one_of(self.lam, "lam, where it is not a number > 0,", ("cv",))
        else:
            number(self.lam, "lam", above=0, **SETTING_BOUNDS)
        one_of(self.draw, "draw", ("replicate", "normal"))
        one_of(self.degree, "degree", (1, 2))
        integer(self.n_lams, "n_lams", least=2, most=MAX_DRAWS)
        integer(self.folds, "folds", least=2, most=MAX_DRAWS)
        Schedule(self.refit_every)
        integer(self.least, "least", least=2)

    def belief(
        self,
        n_arms: int,
        n_features: int,
        normalize: bool = False,
        seed: np.random.SeedSequence | None = None,
    ) -> BootstrapBelief:
        """Return the belief before any rounds.

        `normalize` changes nothing: a replicate depends on the relative weights of an arm's rows.
        """
        kind = NormalBootstrap if self.draw == "normal" else BootstrapBelief
        return kind(self, n_arms, n_features, seed)


class BootstrapBelief(ByDraws):
    """A belief given by each arm's B replicates.

    coef (K, B, p + 1): coefficients, the constant last; NaN before the first fit.
    lam (K,): each arm's λ, on the standardised scale.
    fitted (K,): how many rounds each arm's replicates were fitted to.
    Arrays are replaced and never changed in place, so forks can share them.
    """

    def __init__(
        self, spec: Bootstrap, n_arms: int, n_features: int, seed: np.random.SeedSequence | None
    ) -> None:
        super().__init__(n_arms, n_features, False, seed, spec.half_life, spec.clock)
        self.spec = spec
        self.p = self.features(np.zeros((1, n_features))).shape[1]
        self.coef, self.lam, self.fitted = self._blank(n_arms)

    def _blank(self, K: int) -> tuple[Array, Array, Array]:
        return np.full((K, self.spec.replicates, self.p + 1), np.nan), np.zeros(K), np.zeros(K)

    def features(self, x: Array) -> Array:
        """Return the regressors (n, p) of contexts x (n, d)."""
        if self.spec.degree == 1:
            return x
        first, second = np.triu_indices(self.n_features)
        return np.column_stack([x, x[:, first] * x[:, second]])

    def values(self, x: Array) -> Array:
        slope = self.coef[:, :, :-1]
        constant = self.coef[:, :, -1]
        return np.asarray(np.einsum("np,kbp->nkb", self.features(x), slope) + constant)

    @property
    def new(self) -> Array:
        """Return which arms have no replicates yet, booleans (K,)."""
        return np.isnan(self.coef[:, 0, -1])

    # ---- rewards ---------------------------------------------------------------------------------

    def learn(self, arms: Iterable[int]) -> None:
        schedule = Schedule(self.spec.refit_every)
        for k in arms:
            due = self.due(k, int(self.fitted[k]), schedule, self.spec.least)
            if due is not None:
                self._refit(k, due)

    def _refit(self, k: int, n: int) -> None:
        """Draw arm k's replicates again, from its first n rounds."""
        rounds = {role: v[:n] for role, v in self.rows(k).items()}
        coef = np.full(self.coef.shape[1:], np.nan)
        lam = 0.0
        if n >= self.spec.least:
            with one_thread():
                coef, lam = self._replicates(rounds, self.rng(k, n))
        arrays = [array.copy() for array in self._held()]
        for array, value in zip(arrays, (coef, lam, n), strict=True):
            array[k] = value
        self._replace(arrays)
        self.count_fit([k])

    def _replicates(
        self, rounds: dict[str, Array], rng: np.random.Generator
    ) -> tuple[Array, float]:
        """Return coefficients (B, p + 1) fitted to resampled rounds, and λ."""
        spec = self.spec
        n = len(rounds["reward"])
        rows = standardised(self.features(rounds["x"]), rounds["reward"], rounds["weight"])
        lam = spec.lam
        if isinstance(lam, str):
            [q] = moments(rows, rows.weight[None])[1]
            lams = penalties(q, n, spec.n_lams, spec.penalty)
            lam = chosen(rows, lams, min(spec.folds, n), spec.penalty)
        counts = rng.multinomial(n, np.full(n, 1.0 / n), size=spec.replicates)
        G, q, centre = moments(rows, counts * rows.weight)
        theta = along(G, q, np.array([lam]), spec.penalty)[:, 0]
        return rows.declared(constants(theta, centre)), lam

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        super().reweigh((), x, arm, reward, weight)
        for k in due:
            self._refit(k, int(self.n[k]))

    def add_arm(self) -> None:
        self._replace(
            [np.concatenate(pair) for pair in zip(self._held(), self._blank(1), strict=True)]
        )
        super().add_arm()

    def remove_arm(self, k: int) -> None:
        self._replace([np.delete(array, k, axis=0) for array in self._held()])
        super().remove_arm(k)

    def _held(self) -> tuple[Array, Array, Array]:
        return self.coef, self.lam, self.fitted

    def _replace(self, arrays: Iterable[Array]) -> None:
        self.coef, self.lam, self.fitted = arrays

    # ---- state -----------------------------------------------------------------------------------

    def posterior(self, k: int, rows: dict[str, Array]) -> Any:
        raise TypeError(
            "an ensemble has no posterior of coefficients: bandit.belief.predict(x) tells of mean "
            "rewards, and bandit.belief.coef has the replicates"
        )

    def fork(self) -> Self:
        twin = copy(self)
        twin.rounds, twin.n = self.rounds.fork(), self.n.copy()
        return twin

    def state(self) -> dict[str, Any]:
        return super().state() | {"coef": self.coef, "lam": self.lam, "fitted": self.fitted}

    def form(self, state: Mapping[str, Any], total: int) -> dict[Any, Any]:
        coef = Numbers(self.coef.shape, nan=True)
        lam = Numbers(self.lam.shape, nan=True)
        fitted = Numbers(self.fitted.shape, 0, total, whole=True)
        return super().form(state, total) | {"coef": coef, "lam": lam, "fitted": fitted}

    def restore(self, state: dict[str, Any]) -> None:
        self._replace([state[name] for name in ("coef", "lam", "fitted")])
        self.restore_rounds(state)


class NormalBootstrap(ByNormal, BootstrapBelief):
    """A bootstrap from which Thompson sampling draws N(mean, sd²) of the replicates."""
