"""The posterior of a declared reward model: its mean rewards, variables and ArviZ tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit import checks
from bayesbandit.checks import Contexts
from bayesbandit.inference.draws import DRAWS, Diagnostics, Known, Moments
from bayesbandit.inference.plan import Plan
from bayesbandit.tables.encoder import Encoder, contexts_of

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Posterior:
    """What rows of data say about a declared model's variables.

    rows: x (n, d), reward, weight, arm (n,), by role. known: the distribution, where it has a
    closed form, or draws of it. features: the names of the columns of x. encoder: what made x of
    the rows of a table, as it does of other rows.
    """

    plan: Plan
    rows: Mapping[str, np.ndarray] = field(repr=False)
    known: Known = field(repr=False)
    seed: int
    features: tuple[Any, ...] | None = field(default=None, repr=False)
    encoder: Encoder | None = field(default=None, repr=False)

    @property
    def engine(self) -> str:
        """The engine that computed it."""
        return self.plan.engine

    @property
    def diagnostics(self) -> Diagnostics:
        """How far the draws can be trusted; of a closed form there is nothing to say."""
        return self.known.diagnostics

    @property
    def log_evidence(self) -> float | None:
        """Log marginal likelihood of the rewards, where the posterior has a closed form and was not
        streamed."""
        return self.known.evidence

    # ---- mean rewards ----------------------------------------------------------------------------

    def mean(self, x: Contexts) -> np.ndarray:
        """Return posterior means of the mean reward at contexts x (n, d): (n,), or (n, K) over
        arms.

        A data frame's columns are found by name, in any order, where the fit was on a data frame.
        """
        return self._moments(x)[0]

    def sd(self, x: Contexts) -> np.ndarray:
        """Return posterior standard deviations of the mean reward, as `mean`."""
        return self._moments(x)[1]

    def draw(self, x: Contexts, size: int, rng: np.random.Generator) -> np.ndarray:
        """Return mean rewards under `size` draws, (size, n) or (size, n, K); one spans all
        contexts, arms.

        Of a sampled posterior: its draws, picked at random, without repetition up to their number.
        """
        x = self._contexts(x)
        return self.known.rewards(self.plan, x, checks.integer(size, "size", 1), rng)

    def _moments(self, x: Contexts) -> tuple[np.ndarray, np.ndarray]:
        return self.known.moments(self.plan, self._contexts(x), self._rng())

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def _contexts(self, x: Contexts) -> np.ndarray:
        if self.encoder is None:
            x = checks.aligned(x, self.features)
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
        """Moments of each variable by name: of a number (mean, sd), of an array its mean and the
        covariance (k, k) of its k elements in order. Deterministic quantities are among them."""
        return self.known.coefficients(self.plan, self._rng())

    @cached_property
    def marginals(self) -> dict[str, Any]:
        """The distribution of each variable's elements (*shape), each by itself, by name: of
        scipy.stats, where it is known in closed form."""
        return self.known.marginals(self.plan)

    def quantiles(self, name: str, p: ArrayLike) -> np.ndarray:
        """Return quantiles at probabilities p (m,) of each element of a variable or deterministic
        quantity: (m, *shape); of all draws, or 4,000, where there is no closed form."""
        p = checks.floats(p, "probabilities")
        if p.ndim != 1 or not ((p > 0.0) & (p < 1.0)).all():
            raise ValueError(f"probabilities must be (m,), each between 0 and 1; got {p!r}")
        if (exact := self.marginals.get(name)) is not None:
            return np.stack([np.asarray(exact.ppf(one)) for one in p])
        draws = self.draws
        if name not in draws:
            raise ValueError(f"no variable {name!r}; there are {', '.join(draws)}")
        return np.quantile(draws[name], p, axis=0)

    @cached_property
    def draws(self) -> dict[str, np.ndarray]:
        """Draws of variables and deterministic quantities by name, (S, *shape): all that there are,
        or 4,000 of a closed form."""
        values = self.known.chains(self.plan, 4, DRAWS // 4, self._rng())
        flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in values.items()}
        return flat | self.plan.outcomes.rest(flat)

    def samples(self, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return draws of the free variables by name, (size, *shape); of a closed form independent
        ones, of a sampled posterior its own, picked at random."""
        return self.known.samples(self.plan, size, rng)

    # ---- ArviZ -----------------------------------------------------------------------------------

    def to_datatree(
        self, chains: int = 4, draws: int = 1000,
        features: Sequence[Any] | None = None, arms: Sequence[Any] | None = None,
    ) -> xr.DataTree:  # fmt: skip
        """Return the posterior for ArviZ: groups posterior, prior, posterior_predictive,
        log_likelihood (pointwise, every weight 1), log_prior, sample_stats (at least `lp`),
        observed_data and constant_data.

        chains, draws: of a closed form, from which draws are independent; a sampled posterior has
        its own. features, arms: their names. The engine and its diagnostics are attributes.
        """
        from bayesbandit.posteriors.datatree import datatree, renamed

        checks.integer(chains, "chains", 1)
        checks.integer(draws, "draws", 1)
        values = self.known.chains(self.plan, chains, draws, self._rng())
        chains, draws = next(iter(values.values())).shape[:2]
        flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in values.items()}
        rest = {
            k: v.reshape(chains, draws, *v.shape[1:])
            for k, v in self.plan.outcomes.rest(flat).items()
        }
        names = list(values)
        weighted, plain = self._built(self.rows.get("weight")), self._built(None)
        stats = self.known.stats
        tree = datatree(weighted, plain, values | rest, names, self.seed, self._attributes(), stats)
        own = self.features if self.encoder is None else self.encoder.features
        features = own if features is None else features
        coords = {"feature": features, "arm": arms}
        return renamed(tree, {k: v for k, v in coords.items() if v is not None})

    def _built(self, weight: np.ndarray | None) -> pm.Model:
        """Return the model on these rows, as it was built when they were fitted."""
        return self.plan.on({**self.rows, "weight": weight})

    def _attributes(self) -> dict[str, Any]:
        """Return engine and diagnostics as plain numbers and texts, which files can hold."""
        found = self.diagnostics
        least, most = min(found.ess.values(), default=None), max(found.rhat.values(), default=None)
        said = {
            "model": self.plan.model.name,
            "engine": self.engine,
            "ess": least,
            "rhat": most,
            "divergences": found.divergences,
            "acceptance": found.acceptance,
            "log_evidence": self.log_evidence,
        }
        return {k: v for k, v in said.items() if v is not None}
