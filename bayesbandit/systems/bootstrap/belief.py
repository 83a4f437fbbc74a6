"""Bootstrap LASSO and ridge (paper, sections 2.2 and 4.1) as a belief by draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesbandit.checks import MAX_DRAWS, SETTING_BOUNDS, Array, integer, number, one_of
from bayesbandit.extend import (
    ByFits,
    LocationScale,
    Prediction,
    Schedule,
    one_thread,
    savable,
    settings_repr,
)
from bayesbandit.forms import Form, Numbers, State
from bayesbandit.systems.bootstrap.replicates import (
    Penalty,
    along,
    chosen,
    moments,
    penalties,
    standardised,
)


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
        return BootstrapBelief(self, n_arms, n_features, seed)


@dataclass(frozen=True, eq=False)
class Replicates:
    """The replicates of one arm: coefficients (B, p + 1), the constant last; NaN before any.

    lam: λ, on the standardised scale. n: how many rounds they were fitted to.
    """

    coef: Array
    lam: float = 0.0
    n: int = 0


class BootstrapBelief(ByFits[Replicates]):
    """A belief given by each arm's B replicates."""

    def __init__(
        self, spec: Bootstrap, n_arms: int, n_features: int, seed: np.random.SeedSequence | None
    ) -> None:
        super().__init__(n_arms, n_features, False, seed)
        self.spec = spec
        self.schedule = Schedule(spec.refit_every)
        self.least = spec.least
        p = self.features(np.zeros((1, n_features))).shape[1]
        self.blank = Replicates(np.full((spec.replicates, p + 1), np.nan))
        self.fits = (self.blank,) * n_arms

    def features(self, x: Array) -> Array:
        """Return the regressors (n, p) of contexts x (n, d)."""
        if self.spec.degree == 1:
            return x
        first, second = np.triu_indices(self.n_features)
        return np.column_stack([x, x[:, first] * x[:, second]])

    @property
    def coef(self) -> Array:
        """The coefficients (K, B, p + 1) of all replicates, the constant last."""
        return np.stack([fit.coef for fit in self.fits])

    def values(self, x: Array) -> Array:
        coef = self.coef
        slope = coef[:, :, :-1]
        constant = coef[:, :, -1]
        return np.asarray(np.einsum("np,kbp->nkb", self.features(x), slope) + constant)

    def predict(self, x: Array) -> Prediction:
        draws = super().predict(x)
        return LocationScale(draws.mean, draws.sd) if self.spec.draw == "normal" else draws

    # ---- rewards ---------------------------------------------------------------------------------

    def fit(self, rounds: dict[str, Array], rng: np.random.Generator) -> Replicates:
        spec = self.spec
        n = len(rounds["reward"])
        with one_thread():
            rows = standardised(self.features(rounds["x"]), rounds["reward"], rounds["weight"])
            lam = spec.lam
            if isinstance(lam, str):
                [q] = moments(rows, rows.weight[None])[1]
                lams = penalties(q, n, spec.n_lams, spec.penalty)
                lam = chosen(rows, lams, min(spec.folds, n), spec.penalty)
            counts = rng.multinomial(n, np.full(n, 1.0 / n), size=spec.replicates)
            G, q, centre = moments(rows, counts * rows.weight)
            theta = along(G, q, np.array([lam]), spec.penalty)[:, 0]
        return Replicates(rows.declared(theta, centre), lam, n)

    # ---- state -----------------------------------------------------------------------------------

    def state(self) -> State:
        lam = np.array([fit.lam for fit in self.fits])
        return super().state() | {"coef": self.coef, "lam": lam, "fitted": self.fitted}

    def form(self, state: State, total: int) -> Form:
        shape = len(self.n), *self.blank.coef.shape
        lam = Numbers(shape[:1], nan=True)
        fitted = Numbers(shape[:1], 0, total, whole=True)
        arrays = {"coef": Numbers(shape, nan=True), "lam": lam, "fitted": fitted}
        return super().form(state, total) | arrays

    def restore(self, state: State) -> None:
        self.restore_rounds(state)
        fits = zip(state["coef"], state["lam"].tolist(), state["fitted"].astype(int), strict=True)
        self.fits = tuple(Replicates(coef, lam, int(n)) for coef, lam, n in fits)
