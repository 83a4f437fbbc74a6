"""Approximations, on request only: Laplace's at the mode, and mean-field variational inference.

Both are Gaussian in the unconstrained space, where a positive variable is its logarithm:

    laplace   z ~ N(ẑ, H⁻¹), with ẑ the mode and H the Hessian there of −log p
    advi      z ~ N(m, diag(s²)), with m and s closest to the posterior in KL(q ‖ p)

Tierney and Kadane (1986); Kucukelbir, Tran, Ranganath, Gelman and Blei (2017).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace, vectorize_graph
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import minimize

from bayesbandit.inference.base import COMPILE, Compiled, Refusal, check_start
from bayesbandit.inference.draws import SampledDraws
from bayesbandit.inference.graph_analysis.density import distribution, lengths
from bayesbandit.inference.graph_analysis.quadratic import PYTHON
from bayesbandit.inference.pymc_model.data import at_start, set_rows

if TYPE_CHECKING:
    import pymc as pm

STEP = np.finfo(np.float64).eps ** (1 / 3)  # of central differences
STEPS = 50  # of Newton's method, once near the mode
CLOSE = 1e-5  # the size of Newton's next step, in posterior sds, where the mode counts as found
ADVI_STEPS, ADVI_RATE = 30_000, 0.02


@dataclass(frozen=True)
class Approximation:
    """z ~ N(mode, H⁻¹) in the unconstrained space.

    mode (D,), cholesky L (D, D) lower with H = LL'. own: unconstrained values (S, D) to the
    declared variables by name, each (S, *shape).
    """

    mode: np.ndarray
    cholesky: np.ndarray
    own: Callable[[np.ndarray], dict[str, np.ndarray]]

    @property
    def covariance(self) -> np.ndarray:
        """H⁻¹ (D, D)."""
        root = solve_triangular(self.cholesky, np.eye(len(self.mode)), lower=True)
        return np.asarray(root.T @ root)

    def draw(self, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draws of the declared variables, each (S, *shape)."""
        noise = rng.standard_normal((len(self.mode), size))
        z = self.mode + solve_triangular(self.cholesky, noise, lower=True, trans=1).T
        return self.own(z)


class Laplace:
    """Laplace's approximation of a model of continuous variables."""

    engine = "laplace"

    def __init__(self, model: pm.Model) -> None:
        self.model = model
        self.names = tuple(str(v.name) for v in model.free_RVs)
        self._own: Any = None
        self._density: Any = None

    def approximate(self, data: Mapping[str, np.ndarray]) -> Approximation:
        """The approximation given rows x (n, d), reward, weight, arm (n,), by role."""
        with COMPILE:
            set_rows(self.model, data)
            if self._density is None:
                self._density = self.model.logp_dlogp_function(ravel_inputs=True, mode=PYTHON)
                self._density.set_extra_values({})
                self._own = constrain(self.model)
            point = self.model.initial_point()
            start = np.concatenate([np.ravel(point[v.name]) for v in self._values()])
            mode, L = peak(self._density, start)
        return Approximation(mode, L, self._own)

    def sample(
        self, data: Mapping[str, np.ndarray], draws: int = 1000, chains: int = 4,
        tune: int | None = None, seed: int = 0, start: Any = None,
    ) -> SampledDraws:  # fmt: skip
        """Independent draws; there is nothing to tune or to start from."""
        found = self.approximate(data).draw(chains * draws, np.random.default_rng(seed))
        return _chains(found, chains)

    def _values(self) -> list[Any]:
        return [self.model.rvs_to_values[v] for v in self.model.free_RVs]


class Advi:
    """Mean-field variational inference for a model of continuous variables."""

    engine = "advi"

    def __init__(self, model: pm.Model) -> None:
        self.model = model
        self.names = tuple(str(v.name) for v in model.free_RVs)

    def sample(
        self, data: Mapping[str, np.ndarray], draws: int = 1000, chains: int = 4,
        tune: int | None = None, seed: int = 0, start: Any = None,
    ) -> SampledDraws:  # fmt: skip
        """Independent draws; `tune` is the number of optimisation steps."""
        import pymc as pm

        fit, sample = (int(s) for s in np.random.SeedSequence(seed).generate_state(2))
        with COMPILE, silenced():
            set_rows(self.model, data)
            check_start(self.engine, at_start(self.model))
            n = ADVI_STEPS if tune is None else tune
            rate = pytensor.shared(ADVI_RATE)

            def slower(_approximation: Any, _losses: Any, i: int) -> None:
                rate.set_value(ADVI_RATE * max(0.0, 1.0 - i / n))  # else m would keep wandering

            approximation = pm.fit(
                n, method="advi", model=self.model, random_seed=fit, progressbar=False,
                obj_optimizer=pm.adam(learning_rate=rate), callbacks=[slower],
            )  # fmt: skip
            if not np.isfinite(approximation.hist[-100:]).all():
                raise RuntimeError("advi: the evidence lower bound is not finite")
            m, s = approximation.mean.eval(), approximation.std.eval()
            own, order = constrain(self.model), approximation.groups[0].ordering
        z = m + s * np.random.default_rng(sample).standard_normal((chains * draws, len(m)))
        flat = [z[:, order[self.model.rvs_to_values[v].name][1]] for v in self.model.free_RVs]
        return _chains(own(np.concatenate(flat, axis=1)), chains)


def match_laplace(model: pm.Model) -> Laplace | Refusal:
    """Laplace's approximation for a built model, or why there is none."""
    return _discrete(model, "laplace") or Laplace(model)


def match_advi(model: pm.Model) -> Advi | Refusal:
    """Variational inference for a built model, or why there is none."""
    return _discrete(model, "advi") or Advi(model)


def _discrete(model: pm.Model, engine: str) -> Refusal | None:
    if not model.free_RVs:
        return Refusal(engine, "the model has no free variable")
    for v in model.free_RVs:
        if not str(v.dtype).startswith("float"):
            return Refusal(engine, f"'{v.name}' ~ {distribution(v)}: discrete, without a gradient")
    return None


def peak(
    density: Callable[[np.ndarray], tuple[Any, np.ndarray]], start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The mode (D,) of a log density given with its gradient, and L with LL' = −Hessian there."""

    def down(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = density(z)
        value = -float(value)
        return (value, -np.asarray(gradient)) if np.isfinite(value) else (np.inf, np.zeros_like(z))

    check_start("laplace", density(start)[0])
    z = np.asarray(minimize(down, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000}).x)
    for _ in range(STEPS):
        try:
            L = cholesky(curvature(density, z), lower=True)
        except (LinAlgError, ValueError) as error:
            raise RuntimeError("laplace: the posterior has no curvature at its mode") from error
        value, gradient = down(z)
        half = solve_triangular(L, -gradient, lower=True)
        step = solve_triangular(L, half, lower=True, trans=1)
        if np.linalg.norm(half) <= CLOSE:
            z = z + step
            return z, cholesky(curvature(density, z), lower=True)
        size = next((s for s in 0.5 ** np.arange(30) if down(z + s * step)[0] <= value), 0.0)
        if size == 0.0:
            break
        z = z + size * step
    raise RuntimeError(f"laplace: the mode was not found: {np.linalg.norm(half):.2g} sds away")


def curvature(density: Callable[[np.ndarray], tuple[Any, np.ndarray]], z: np.ndarray) -> np.ndarray:
    """−Hessian (D, D) by central differences of the gradient: exact where that is affine."""
    H = np.empty((len(z), len(z)))
    for j in range(len(z)):
        h = np.zeros(len(z))
        h[j] = STEP * max(1.0, abs(z[j]))
        up, low = np.array(density(z + h)[1]), np.array(density(z - h)[1])
        H[j] = (low - up) / (2.0 * h[j])
    return np.asarray(0.5 * (H + H.T))


def constrain(model: pm.Model) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
    """From unconstrained values (S, D) to the declared variables, each (S, *shape)."""
    values = [model.rvs_to_values[v] for v in model.free_RVs]
    point = model.initial_point()
    z, parts, stop = pt.vector("z"), {}, 0
    for v in values:
        shape = point[v.name].shape
        size = int(np.prod(shape))
        flat = z[stop : stop + size].reshape(shape)
        parts[v], stop = v.type.filter_variable(flat, allow_convert=True), stop + size
    own = clone_replace(
        model.replace_rvs_by_values(list(model.free_RVs)), parts, rebuild_strict=False
    )
    Z = pt.matrix("Z")
    function = Compiled([Z], list(vectorize_graph(own, {z: Z})), PYTHON)
    shapes = lengths(model)

    def of(values: np.ndarray) -> dict[str, np.ndarray]:
        found = dict(zip(shapes, function(values), strict=True))
        return {k: np.broadcast_to(v, (len(values), *shapes[k])) for k, v in found.items()}

    return of


@contextmanager
def silenced() -> Iterator[None]:
    """PyMC without its reports of progress."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _chains(draws: dict[str, np.ndarray], chains: int) -> SampledDraws:
    values = {k: v.reshape(chains, -1, *v.shape[1:]) for k, v in draws.items()}
    return SampledDraws(values, independent=True)
