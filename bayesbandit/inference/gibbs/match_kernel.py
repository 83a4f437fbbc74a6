"""Recognises a diagonal scale mixture with scalar noise, by numbers, for the compiled Gibbs kernel.

σ² and the prior's precisions are monomials of the declared positive variables if they are at random
points. The log density of these variables, in their logarithms, is then regressed on the functions
that the kernel's prior is made of. The functions are analytic: where nothing is left over at random
points, the model is the kernel's, however it was declared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesbandit.inference.gibbs.shrinkage import HalfCauchy, Monomial, Shrinkage
from bayesbandit.inference.graph_analysis.quadratic import Data, Quadratic
from bayesbandit.inference.graph_analysis.recognise import close, part
from bayesbandit.kernels.gibbs import mixture as gibbs

POINTS = 24  # at which a model is compared with the kernel's prior; it has at most 11 functions
LEFT_OVER = 1e-8  # what a regression may leave, relative to the largest number
ROUNDING = 1e-13  # what has a smaller part, relative to the largest number, is 0
FAR, FAR_OFF = 100.0, 1e-6  # how far logarithms go where the prior is tried, and its error there

Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class Roles:
    """Which variable is which, "" for none: of the noise σ², of local and common scales, and what
    these are mixed by. scaled (D,): where s_j = σ²."""

    noise: str
    local: str
    local_mixing: str
    common: str
    common_mixing: str
    scaled: np.ndarray
    power: float = 1.0  # of the common variable in λ²
    local_signs: tuple[int, int] = (1, 1)  # o and f of `HalfCauchy`
    common_signs: tuple[int, int] = (1, 1)


def recognised(
    quadratic: Quadratic, sigma2: Monomial, rows: Data, rng: np.random.Generator
) -> Shrinkage | None:
    """Return the kernel's form of a model whose rewards are N(mean reward, σ²/weight), or None."""
    search = Search(quadratic, sigma2, rows)
    if not search.monomial():
        return None
    widths = [1.0] * POINTS + [FAR] * POINTS
    points = [{k: np.exp(rng.uniform(-w, w, s)) for k, s in search.shapes.items()} for w in widths]
    logs = [search.log_density(point) for point in points]
    if any(log is None for log in logs):
        return None
    for roles in search.roles():
        if (found := search.fitted(roles, points, np.array(logs, dtype=np.float64))) is not None:
            return found
    return None


class Search:
    """A model's σ² and prior precisions as monomials, and its prior by regression."""

    def __init__(self, quadratic: Quadratic, sigma2: Monomial, rows: Data) -> None:
        self.quadratic, self.sigma2 = quadratic, sigma2
        self.shapes = {str(v.name): tuple(v.type.shape) for v in quadratic.given}
        self.row = part(rows, slice(0, 1))
        self.location: np.ndarray | None = None

    def diagonal(self, values: Mapping[str, np.ndarray]) -> tuple[np.ndarray, float] | None:
        """Return prior precisions (D,), and the log density at the prior's mean, `location`, which
        the first call finds; None where they are not diagonal, or the mean is another."""
        given: Any = tuple(values[k] for k in self.shapes)
        prior = self.quadratic.natural(self.row, given)[0]
        P, shift = np.diag(prior.precision), prior.shift
        if np.any(prior.precision - np.diag(P)) or (P < 0.0).any() or shift[P == 0.0].any():
            return None
        if self.location is None:
            self.location = np.divide(shift, P, out=np.zeros_like(P), where=P > 0.0)
        if not close(P * self.location, shift):
            return None
        return P, prior.constant + 0.5 * float(shift @ self.location)

    def monomial(self) -> bool:
        """Find how the precisions depend on each variable, and which coordinates move."""
        base = {k: np.ones(s) for k, s in self.shapes.items()}
        at = self.diagonal(base)
        if at is None:
            return False
        of_sigma2, of_precision = self.sigma2.powers, {}
        for k in self.shapes:
            doubled = base | {k: 2.0 * base[k]}
            p = self.diagonal(doubled)
            if p is None or not np.array_equal(p[0] == 0.0, at[0] == 0.0):
                return False
            ratio = np.divide(p[0], at[0], out=np.ones_like(at[0]), where=at[0] > 0.0)
            f = np.round(np.log2(ratio), 9)
            if f.any():
                of_precision[k] = f
        self.precision = Monomial(at[0], of_precision)
        self.noise = next(iter(of_sigma2), "")
        moves = [f != 0.0 for k, f in of_precision.items() if k != self.noise]
        self.moving = np.any(moves, axis=0) if moves else np.zeros(self.quadratic.dim, bool)
        self.vectors = [k for k, s in self.shapes.items() if s]
        sizes = {math.prod(self.shapes[k]) for k in self.vectors}
        scalar = not (self.noise and self.shapes[self.noise])
        return len(of_sigma2) < 2 and scalar and sizes <= {int(self.moving.sum())}

    def wide(self, values: Mapping[str, np.ndarray]) -> Values:
        """Return values in which a vector is spread over the moving coordinates, (D,)."""
        out = {}
        for k, v in values.items():
            out[k] = v
            if self.shapes[k]:
                out[k] = np.ones(self.quadratic.dim)
                out[k][self.moving] = v.ravel()
        return out

    def log_density(self, point: Values) -> float | None:
        """Return that of the variables' logarithms; None where the monomials do not hold."""
        at = self.diagonal(point)
        if at is None:
            return None
        P, constant = at
        if not close(self.precision(self.wide(point)), P):
            return None
        jacobian = sum(float(np.log(v).sum()) for v in point.values())
        return constant - 0.5 * float(np.log(P[P > 0.0]).sum()) + jacobian

    def cancelled(self, point: Values) -> float:
        """Return what cancels in the log density where the prior's mean is not 0."""
        assert self.location is not None
        return float(self.precision(self.wide(point)) @ self.location**2)

    def roles(self) -> Iterator[Roles]:
        """Yield all assignments of roles to the variables that the precisions allow."""
        D, follows = self.quadratic.dim, self.precision.powers
        local = [k for k in self.vectors if k in follows]
        mixing = [k for k in self.vectors if k not in follows]
        scalars = [k for k, s in self.shapes.items() if not s and k != self.noise]
        if len(local) > 1 or len(mixing) > len(local) or len(scalars) > 2:
            return
        own = np.broadcast_to(follows.get(self.noise, 0.0), D)
        if not ((own == 0.0) | (own == -self.sigma2.powers.get(self.noise, 0.0))).all():
            return
        choices = [own != 0.0] + ([(own != 0.0) | self.moving] if self.noise and local else [])
        signs = list(itertools.product((1, -1), (1, -1)))
        for order in itertools.permutations(scalars):
            common, common_mixing = (*order, "", "")[:2]
            if common_mixing in follows:
                continue
            if common in follows:
                power = follows[common][self.moving]
                powers = {float(power[0])} if (power == power[0]).all() else set()
            else:
                powers = {1.0, -1.0, 2.0, -2.0} if common else {1.0}
            if common not in follows and common and (mixing or not local):
                continue  # only the Laplace's rate is apart from the precisions
            names = self.noise, (*local, "")[0], (*mixing, "")[0], common, common_mixing
            of_local = signs if mixing else signs[:1]
            of_common = signs if common_mixing else signs[:1]
            for rest in itertools.product(choices, sorted(powers), of_local, of_common):
                yield Roles(*names, *rest)

    def fitted(self, roles: Roles, points: list[Values], logs: np.ndarray) -> Shrinkage | None:
        """Return the kernel's prior for these roles, or None where the regression on the first
        points leaves something, or is wrong about the others: those find numbers that are too large
        or too small next to the rest to be read off."""
        rows = [self.functions(roles, point) for point in points]
        both = np.array([list(row.values()) for row in rows])
        X, y, far, there = both[:POINTS], logs[:POINTS], both[POINTS:], logs[POINTS:]
        scale, largest = np.abs(X).max(axis=0), max(1.0, np.abs(y).max())
        c, *_ = np.linalg.lstsq(X / scale, y)
        if not np.abs(X / scale @ c - y).max() <= LEFT_OVER * largest:
            return None
        c = np.where(np.abs(c) < ROUNDING * largest, 0.0, c) / scale
        most = np.maximum(1.0, np.abs(far * c).max(axis=1))
        cancelled = np.array([self.cancelled(point) for point in points[POINTS:]])
        if not (np.abs(far @ c - there) <= FAR_OFF * most + ROUNDING * cancelled).all():
            return None
        return self.prior(roles, dict(zip(rows[0], c, strict=True)))

    def levels(self, roles: Roles, point: Values) -> tuple[np.ndarray, np.ndarray, float]:
        """Return P_j s_j and l_j of the moving coordinates, and ℓ."""
        wide, sigma2 = self.wide(point), float(self.sigma2(point))
        P = (self.precision(wide) * np.where(roles.scaled, sigma2, 1.0))[self.moving]
        level = np.ones(0)
        if roles.local:
            e = self.precision.powers[roles.local][self.moving]
            level = point[roles.local].ravel() ** e
        return P, level, float(point[roles.common]) ** roles.power if roles.common else 1.0

    def functions(self, roles: Roles, point: Values) -> dict[str, float]:
        """Return what the log density is a sum of, at a point."""
        f, sigma2 = {"1": 1.0}, float(self.sigma2(point))
        if roles.noise:
            f |= {"shape": -math.log(sigma2), "scale": -1.0 / sigma2}
        P, level, common = self.levels(roles, point)
        if roles.local_mixing:
            o, e = roles.local_signs
            n = point[roles.local_mixing].ravel() ** e
            f |= {"log l": np.log(level**o).sum(), "log n": np.log(n).sum()}
            f |= {"ln": -(level**o @ n), "n": -n.sum()}
        elif roles.local:
            f |= {"log T": -np.log(P).sum(), "T": -0.5 * common * (1.0 / P).sum()}
        if roles.common:
            f["log common"] = math.log(common)
            if roles.common_mixing:
                o, e = roles.common_signs
                m = float(point[roles.common_mixing]) ** e
                f |= {"log m": math.log(m), "lm": -(common**o) * m, "m": -m}
            else:
                f["common"] = -common
        return f

    def prior(self, roles: Roles, c: dict[str, float]) -> Shrinkage | None:
        """Return the kernel's prior of these coefficients, or None where it has none like that."""

        def is_(name: str, value: float) -> bool:
            return abs(c[name] - value) < 1e-6

        factor = self.precision.factor[self.moving]
        kappa, p = float(factor[0]) if factor.size else 1.0, int(self.moving.sum())
        kind, local_mixed, common_mixed, lambda2 = gibbs.FIXED, None, None, kappa
        if (roles.local_mixing or (p and not roles.local)) and not (factor == kappa).all():
            return None
        if roles.local_mixing:
            kind = gibbs.HORSESHOE
            local_mixed = HalfCauchy(roles.local_mixing, *roles.local_signs, c["ln"], c["n"])
            if not (is_("log l", 0.5) and is_("log n", 1.0) and c["ln"] > 0.0 < c["n"]):
                return None
            lambda2 = kappa * local_mixed.square
        elif roles.local:
            kind, lambda2 = gibbs.LAPLACE, c["T"]
            if not (is_("log T", 1.0) and lambda2 > 0.0):
                return None
        elif p:
            kind = gibbs.RIDGE
        gamma = half_cauchy = None
        if roles.common:
            shape = c["log common"] - (p if kind == gibbs.LAPLACE else 0)
            if roles.common_mixing:
                o, e = roles.common_signs
                common_mixed = HalfCauchy(roles.common_mixing, o, e, c["lm"], c["m"])
                if not (abs(shape - 0.5 * o) < 1e-6 and is_("log m", 1.0)):
                    return None
                if not c["lm"] > 0.0 < c["m"]:
                    return None
                half_cauchy = (common_mixed.square * lambda2) ** -0.5
            else:
                gamma = shape, c["common"] / lambda2
                if not (shape > 0.0 and c["common"] > 0.0):
                    return None
        inverse_gamma = None
        if roles.noise:
            inverse_gamma = max(c["shape"], 0.0), max(c["scale"], 0.0)
            if min(c["shape"], c["scale"]) < -1e-6:
                return None
        fixed = np.where(self.moving, np.nan, self.precision.factor)
        made = gibbs.declare(
            self.quadratic.dim,
            kind,
            fixed=fixed,
            scaled=roles.scaled,
            gamma=gamma,
            half_cauchy=half_cauchy,
            noise=inverse_gamma,
        )
        assert self.location is not None
        return Shrinkage(
            self.quadratic,
            made,
            self.location,
            self.sigma2,
            roles.noise,
            self.precision,
            roles.local,
            local_mixed,
            roles.common,
            roles.power,
            lambda2,
            common_mixed,
        )
