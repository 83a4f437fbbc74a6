"""The posterior of a declared reward model: its mean rewards, variables and ArviZ tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit import checks
from bayesbandit.checks import Array, Contexts
from bayesbandit.inference.draws import MOMENT_DRAWS, Diagnostics, Known, Moments, Rows
from bayesbandit.inference.plan import Plan
from bayesbandit.inference.predictive import of_all_chains, responses
from bayesbandit.runtime.shown import html_table
from bayesbandit.tables.encoder import Encoder, contexts_of
from bayesbandit.tables.inputs import in_order

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of a declared model's variables, given rows of data.

    rows: x (n, d), reward, weight, arm (n,), by role.
    known: the distribution, if it has a closed form, or draws from it.
    features: the names of the columns of x.
    encoder: the `bb.Encoder` that made x from a table; it also encodes new rows.
    """

    plan: Plan
    rows: Rows = field(repr=False)
    known: Known = field(repr=False)
    seed: int
    features: tuple[Any, ...] | None = field(default=None, repr=False)
    encoder: Encoder | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        n = len(self.rows["x"])
        return f"Posterior({self.plan.model!r}, engine={self.engine!r}, rows={n})"

    def _repr_html_(self) -> str:
        rows = [
            ("model", self.plan.model),
            ("engine", self.engine),
            ("rows", len(self.rows["x"])),
            ("variables", ", ".join(self.coefficients)),
        ]
        return html_table("Posterior", (), rows)

    @property
    def engine(self) -> str:
        """Return the name of the engine that computed the posterior."""
        return self.plan.engine

    @property
    def diagnostics(self) -> Diagnostics:
        """Return the sampler's diagnostics; they are empty for a closed form."""
        return self.known.diagnostics

    @property
    def log_evidence(self) -> float | None:
        """Return the log marginal likelihood of what the model observes: of the rewards, or of
        what it computes of them, such as their logarithms.

        It is None unless the posterior has a closed form and was not streamed.
        """
        return self.known.evidence

    # ---- mean rewards ----------------------------------------------------------------------------

    def mean(self, x: Contexts) -> Array:
        """Return posterior means of the mean reward at contexts x (n, d): (n,), or (n, K) by arm.

        If the model was fitted to a data frame, columns are found by name, in any order.
        """
        return self._moments(x)[0]

    def sd(self, x: Contexts) -> Array:
        """Return posterior standard deviations of the mean reward, in the shape of `mean`."""
        return self._moments(x)[1]

    def draw(self, x: Contexts, size: int, rng: np.random.Generator | int) -> Array:
        """Return mean rewards at contexts x under `size` posterior draws, (size, n) or (size, n,
        K).

        One draw of the variables is used for all contexts and arms. A sampled posterior picks among
        its draws at random. A draw is picked again only if `size` is larger than their number.
        rng: a generator, or a seed.
        """
        x = self._contexts(x)
        rng = np.random.default_rng(rng)
        return self.known.rewards(self.plan, x, checks.integer(size, "size", 1), rng)

    def predict(self, x: Contexts, kind: str = "mean", size: int = 1000) -> Array:
        """Return draws of the mean reward at contexts x (n, d), or of new rewards there.

        kind: "mean" or "response". The shape is (size, n), or (size, n, K) for a model over arms.
        The same draws at every call.
        """
        checks.one_of(kind, "kind", ("mean", "response"))
        if kind == "mean":
            return self.draw(x, size, self._rng())
        draws = self.samples(checks.integer(size, "size", 1), self._rng())
        return responses(self.plan, draws, self._contexts(x), self.seed)

    def _moments(self, x: Contexts) -> tuple[Array, Array]:
        return self.known.moments(self.plan, self._contexts(x), self._rng())

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def _contexts(self, x: Contexts) -> Array:
        if self.encoder is None and self.features is not None:
            x = in_order(x, self.features)
        x = contexts_of(x, self.encoder, self.plan.n_features)
        if (why := self.plan.row_mixing) and not np.array_equal(x, self.rows["x"]):
            raise ValueError(
                f"{self.plan.model.name}: the mean reward of a context depends on other rows "
                f"({why}), so that it is known at the fitted rows alone"
            )
        return x

    # ---- variables -------------------------------------------------------------------------------

    @cached_property
    def coefficients(self) -> dict[str, Moments]:
        """Return the moments of each variable and deterministic quantity, by name.

        For a scalar they are (mean, sd); for an array, its mean and the covariance (k, k) of its k
        elements in order.
        """
        return self.known.coefficients(self.plan, self._rng())

    @cached_property
    def marginals(self) -> dict[str, Any]:
        """Return each variable's marginal distributions (*shape), from scipy.stats, by name.

        Variables without a closed form are left out.
        """
        return self.known.marginals(self.plan)

    def quantiles(self, name: str, p: ArrayLike) -> Array:
        """Return quantiles of a variable or deterministic quantity, (m, *shape).

        p (m,): probabilities. Without a closed form, the quantiles are those of `draws`.
        """
        p = checks.probabilities(p)
        if (exact := self.marginals.get(name)) is not None:
            return np.stack([np.asarray(exact.ppf(q)) for q in p])
        draws = self.draws
        if name not in draws:
            raise ValueError(f"no variable {name!r}; there are {', '.join(draws)}")
        return np.quantile(draws[name], p, axis=0)

    @cached_property
    def draws(self) -> dict[str, Array]:
        """Return draws of variables and deterministic quantities by name, (S, *shape).

        They are all draws of a sampled posterior, or 4,000 draws from a closed form.
        """
        values, deterministics = self._chains(4, MOMENT_DRAWS // 4)
        return of_all_chains(values | deterministics)

    def _chains(self, chains: int, draws: int) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return draws (chains, draws, *shape) of the variables, and of what follows from them."""
        values = self.known.chains(self.plan, chains, draws, self._rng())
        shape = next(iter(values.values())).shape[:2]
        deterministics = self.plan.outcomes.rest(of_all_chains(values))
        return values, {k: v.reshape(*shape, *v.shape[1:]) for k, v in deterministics.items()}

    def samples(self, size: int, rng: np.random.Generator) -> dict[str, Array]:
        """Return draws of the free variables by name, (size, *shape).

        A closed form gives independent draws. A sampled posterior chooses among its draws at
        random.
        """
        return self.known.samples(self.plan, size, rng)

    def summary(self, **settings: Any) -> pd.DataFrame:
        """Return ArviZ's table of the variables and deterministic quantities.

        settings: those of `arviz.summary`. Draws from a closed form are independent: their
        diagnostics are those of 4,000 draws.
        """
        import arviz as az

        values, deterministics = self._chains(4, MOMENT_DRAWS // 4)
        return az.summary(az.from_dict({"posterior": values | deterministics}), **settings)

    def explain(self) -> str:
        """Return the engine that computed it, and why each faster one does not fit."""
        return self.plan.explain()

    # ---- ArviZ -----------------------------------------------------------------------------------

    def to_datatree(
        self,
        chains: int = 4,
        draws: int = 1000,
        features: Sequence[Any] | None = None,
        arms: Sequence[Any] | None = None,
    ) -> xr.DataTree:
        """Return the posterior as ArviZ's DataTree.

        Its groups are posterior (with each row's mean reward, and what else is computed of rows),
        prior, prior_predictive, posterior_predictive, log_likelihood (pointwise, every weight 1;
        one value a row if there are potentials of rows, and none if these are no sum over rows),
        log_prior, sample_stats (at least `lp`), observed_data and constant_data. The engine and its
        diagnostics are attributes.

        chains, draws: how many independent draws to take from a closed form. A sampled posterior
        ignores them and has its own chains.
        features, arms: their names.
        """
        from bayesbandit.posteriors.datatree import datatree

        checks.integer(chains, "chains", 1)
        checks.integer(draws, "draws", 1)
        values, deterministics = self._chains(chains, draws)
        fitted = self.features if self.encoder is None else self.encoder.features
        names = {"feature": fitted if features is None else features, "arm": arms}
        return datatree(
            self._built(self.rows.get("weight")),
            self._built(None),
            values,
            deterministics,
            self.seed,
            self._attributes(),
            self.known.stats,
            checks.without_none(names),
            self.plan.row_likelihood.refused,
        )

    def _built(self, weight: Array | None) -> pm.Model:
        """Return the fitted PyMC model on the same rows with these weights (None: 1)."""
        return self.plan.on({**self.rows, "weight": weight})

    def _attributes(self) -> dict[str, Any]:
        """Return engine and diagnostics as plain numbers and texts, which files can hold."""
        d = self.diagnostics
        attributes = {
            "model": self.plan.model.name,
            "engine": self.engine,
            "ess": min(d.ess.values(), default=None),
            "rhat": max(d.rhat.values(), default=None),
            "divergences": d.divergences,
            "acceptance": d.acceptance,
            "log_evidence": self.log_evidence,
        }
        return checks.without_none(attributes)
