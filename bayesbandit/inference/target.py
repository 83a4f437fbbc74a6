"""The arguments and the result of an engine that is a function: `Target`, `Run` and `Normal`.

`Target` is the posterior in an unconstrained space, where a positive variable is its logarithm. The
engine returns draws (chains, draws, D) in that space, or a `Normal`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import minimize

from bayesbandit.checks import FLOAT_EPSILON, Array
from bayesbandit.inference.base import COMPILE, Refusal, check_start
from bayesbandit.inference.draws import Rows, SampledDraws
from bayesbandit.inference.graph_analysis.density import shapes_of
from bayesbandit.inference.graph_analysis.eligibility import discrete
from bayesbandit.inference.graph_analysis.transforms import support
from bayesbandit.inference.pymc_model.of_draws import OfDraws, with_known_lengths
from bayesbandit.inference.pymc_model.template import set_rows
from bayesbandit.inference.uncompiled import UNCOMPILED_MODE

if TYPE_CHECKING:
    import pymc as pm

    from bayesbandit.inference.plan import Plan

DIFFERENCE_STEP = FLOAT_EPSILON ** (1 / 3)  # of central differences
MAX_NEWTON_STEPS = 100
MAX_HALVINGS = 40
LAST_STEP_SIZE = 1e-10  # the squared size of a step, in posterior sds, from which it is the last
RELATIVE_ROUNDING = 1e-12  # of a log density, relative
NORMAL_POINTS = 2000  # that stand for a normal, beside their mirror images
DRAWS_ADVICE = '; posterior draws need no mode: engine="auto"'


@dataclass(frozen=True)
class Run:
    """The numbers of draws and chains that an engine must return, and its seed.

    tune: sweeps, or steps, before the draws; None: the engine chooses.
    """

    draws: int
    chains: int
    seed: int
    tune: int | None = None

    def rng(self, chain: int) -> np.random.Generator:
        """Return the random generator of a chain."""
        return np.random.default_rng([self.seed, chain])


@dataclass(frozen=True)
class Normal:
    """A normal posterior, or an approximation by one: mean (D,), precision (D, D)."""

    mean: Array
    precision: Array

    @cached_property
    def cholesky(self) -> Array:
        """L, lower, with precision LL'."""
        return np.asarray(cholesky(self.precision, lower=True))

    @property
    def covariance(self) -> Array:
        """The inverse of the precision (D, D)."""
        # Λ = LL', so that Λ⁻¹ = (L⁻¹)'L⁻¹
        root = solve_triangular(self.cholesky, np.eye(len(self.mean)), lower=True)
        return np.asarray(root.T @ root)

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Return independent draws (size, D)."""
        return self._of(rng.standard_normal((len(self.mean), size)))

    def points(self) -> Array:
        """Return points (P, D), always the same, that have the mean and covariance of the normal.

        So functions of them have the right moments where they are affine.
        """
        D = len(self.mean)
        # points and their mirror images have the mean 0; dividing by the root of their covariance
        # makes that I
        half = np.random.default_rng(0).standard_normal((D, max(NORMAL_POINTS, 2 * D)))
        noise = np.concatenate([half, -half], axis=1)
        root = cholesky(noise @ noise.T / (noise.shape[1] - 1), lower=True)
        return self._of(solve_triangular(root, noise, lower=True))

    def _of(self, noise: Array) -> Array:
        # L'⁻¹ε has the covariance L'⁻¹L⁻¹ = Λ⁻¹
        return self.mean + solve_triangular(self.cholesky, noise, lower=True, trans=1).T


@dataclass(frozen=True)
class NormalDraws(SampledDraws):
    """Draws from a normal; moments are those of the normal, and not of its draws.

    normal: the distribution of z (D,), the declared variables of a `Target`.
    """

    normal: Normal = field(kw_only=True, repr=False)

    def for_moments(self, plan: Plan) -> dict[str, Array]:
        values = plan.method.target.constrain(self.normal.points())
        return {k: values[k] for k in plan.outcomes.names}


class Target:
    """The posterior of a model of continuous variables, given rows.

    dim: D, the dimension of the unconstrained space. start: a point (D,) to start from. shapes: the
    shapes of the declared variables, by name. constraints: the bounds of each variable, by name.
    rows: x (n, d), reward, weight, arm (n,), by role. model: the PyMC model.
    """

    def __init__(self, model: pm.Model) -> None:
        self.model = model
        self.constraints = {
            str(v.name): support(v, model.rvs_to_transforms[v]) for v in model.free_RVs
        }
        self.shapes = shapes_of(model)
        self.start = self._begin()
        self.dim = len(self.start)
        self.rows: Rows = {}

    def on(self, rows: Rows) -> Target:
        """Replace the rows, and return the target itself."""
        set_rows(self.model, rows)
        self.rows = rows
        self.start = self._begin()
        if len(self.start) != self.dim:  # of a variable with a value for each row
            self.shapes = shapes_of(self.model)
            self.dim = len(self.start)
            for compiled in ("_declared", "_density"):
                vars(self).pop(compiled, None)
        return self

    def _begin(self) -> Array:
        point = self.model.initial_point()
        values = [self.model.rvs_to_values[v] for v in self.model.free_RVs]
        return np.concatenate([np.zeros(0), *(np.ravel(point[v.name]) for v in values)])

    def log_density(self, z: Array) -> float:
        """Return the log density at z (D,), up to a constant."""
        return float(self._density(z)[0])

    def gradient(self, z: Array) -> Array:
        """Return the gradient (D,) of the log density at z (D,)."""
        return np.array(self._density(z)[1])

    def constrain(self, z: Array) -> dict[str, Array]:
        """Return the declared variables at unconstrained points z (S, D): by name, (S, *shape)."""
        found = zip(self.shapes.items(), self._declared({"z": z}), strict=True)
        return {k: np.broadcast_to(v, (len(z), *shape)) for (k, shape), v in found}

    @cached_property
    def _declared(self) -> OfDraws:
        """The declared variables as functions of z, which has all their values in a row."""
        model = self.model
        point = model.initial_point()
        z = pt.vector("z")
        # z has the values of all variables in a row, in the order of their declaration
        parts = {}
        stop = 0
        for v in model.free_RVs:
            value = model.rvs_to_values[v]
            shape = np.shape(point[value.name])
            begin = stop
            stop = stop + math.prod(shape)
            flat = z[begin:stop].reshape(shape)
            parts[value] = value.type.filter_variable(flat, allow_convert=True)
        with COMPILE:
            declared = model.replace_rvs_by_values(list(model.free_RVs))
            graphs = clone_replace(declared, parts, rebuild_strict=False)
            return OfDraws(with_known_lengths(graphs), {"z": z})

    def laplace(self) -> Normal:
        """Return the normal about the mode that has the curvature of the log density there."""
        return peak(self._density, self.start)

    @cached_property
    def _density(self) -> Callable[[Array], tuple[Any, Array]]:
        density = self.model.logp_dlogp_function(ravel_inputs=True, mode=UNCOMPILED_MODE)
        density.set_extra_values({})
        return density


Draw = Callable[[Target, Run], Any]  # draws (chains, draws, D), or a Normal
Fits = Callable[[Target], str | None]  # why an engine does not fit a model, if it does not


@dataclass(frozen=True, eq=False)
class OnTarget:
    """The sampler of an engine that is a function of a `Target`.

    engine: its name. draw: the function. independent: whether its draws are independent.
    """

    engine: str
    draw: Draw
    target: Target
    independent: bool

    def sample(
        self,
        data: Rows,
        draws: int = 1000,
        chains: int = 4,
        tune: int | None = None,
        seed: int = 0,
        start: Any = None,
    ) -> SampledDraws:
        """Return draws given rows, by role ("x", "reward", …).

        `start` is not used: runs start at `Target.start`. Raise ValueError for draws of another
        number.
        """
        run = Run(draws, chains, seed, tune)
        with COMPILE:
            target = self.target.on(data)
            check_start(self.engine, target.log_density(target.start))
            found = z = self.draw(target, run)
            if isinstance(found, Normal):
                z = found.draw(chains * draws, np.random.default_rng(seed))
            z = np.asarray(z, dtype=np.float64)
            wanted = (chains, draws, target.dim)
            if z.size != np.prod(wanted):
                raise ValueError(f"{self.engine}: draws must be {wanted}; got {z.shape}")
            values = target.constrain(z.reshape(-1, target.dim))
        by_chain = {k: v.reshape(chains, draws, *v.shape[1:]) for k, v in values.items()}
        if isinstance(found, Normal):
            return NormalDraws(by_chain, independent=True, normal=found)
        return SampledDraws(by_chain, independent=self.independent)


def match(
    engine: str, draw: Draw, fits: Fits | None, independent: bool, model: pm.Model
) -> OnTarget | Refusal:
    """Return the sampler of a built model, or a refusal."""
    if refusal := discrete(model, engine):
        return refusal
    target = Target(model)
    why = fits(target) if fits else None
    return Refusal(engine, why) if why else OnTarget(engine, draw, target, independent)


def peak(density: Callable[[Array], tuple[Any, Array]], start: Array) -> Normal:
    """Return Laplace's approximation: the mode of a log density, with minus the Hessian there.

    density: returns the log density at z (D,), and its gradient (D,). Raise RuntimeError if the
    mode is not found.
    """

    def down(z: Array) -> tuple[float, Array]:
        value, gradient = density(z)
        value = -float(value)
        # where the density is 0 or overflows a line search must turn back: there the loss is ∞
        return (value, -np.asarray(gradient)) if np.isfinite(value) else (np.inf, np.zeros_like(z))

    def step(z: Array) -> tuple[Array, float]:
        try:
            # H = LL': the step H⁻¹g, and ‖L⁻¹g‖ its length in posterior sds
            L = Normal(z, curvature(density, z)).cholesky
        except (LinAlgError, ValueError) as error:
            raise RuntimeError(
                f"laplace: the posterior has no curvature at its mode{DRAWS_ADVICE}"
            ) from error
        half = solve_triangular(L, -down(z)[1], lower=True)
        return solve_triangular(L, half, lower=True, trans=1), float(half @ half)

    # L-BFGS comes near from anywhere, and Newton's steps find the last digits
    near = minimize(down, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000}).x
    mode = ascend(lambda z: -down(z)[0], step, np.asarray(near))
    if mode is None:
        raise RuntimeError(f"laplace: the mode was not found{DRAWS_ADVICE}")
    return Normal(mode, curvature(density, mode))


def ascend(
    log_density: Callable[[Array], float],
    newton_step: Callable[[Array], tuple[Array, float]],
    z: Array,
) -> Array | None:
    """Return the mode of a log density from z (D,) on, by Newton's method; None if it is not found.

    newton_step: returns the step at a point, and its squared size in posterior sds. Steps are
    halved until the log density does not fall.
    """
    height = log_density(z)
    for _ in range(MAX_NEWTON_STEPS):
        step, size = newton_step(z)
        # a concave function rises along some part of each Newton step
        tries = (z + 0.5**k * step for k in range(MAX_HALVINGS))
        # at the mode a step changes the log density by less than its rounding, up or down
        least = height - RELATIVE_ROUNDING * abs(height)
        better = next((at for at in tries if log_density(at) >= least), None)
        if better is None or not size < np.inf:
            return None
        z = better
        height = log_density(z)
        # a step of 1e-5 sds errs by the square of that
        if size <= LAST_STEP_SIZE:
            return z
    return None


def curvature(density: Callable[[Array], tuple[Any, Array]], z: Array) -> Array:
    """Return −Hessian (D, D) by central differences of the gradient: exact where that is affine."""
    H = np.empty((len(z), len(z)))
    for j in range(len(z)):
        h = np.zeros(len(z))
        # ε^⅓ balances the rounding ε/h of a central difference with its error h²
        h[j] = DIFFERENCE_STEP * max(1.0, abs(z[j]))
        up = np.array(density(z + h)[1])
        low = np.array(density(z - h)[1])
        H[j] = (low - up) / (2.0 * h[j])
    return np.asarray(0.5 * (H + H.T))
