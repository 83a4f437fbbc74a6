"""Recognises a diagonal scale mixture with scalar noise, for the compiled Gibbs kernel.

The algebra has the log density of the prior (`generic.Reading`): squares of single coordinates of θ
with monomials of the positive variables before them, logarithms of these variables, and monomials.
The squares are the prior's precisions. The rest is compared, coefficient by coefficient, with the
functions that the kernel's prior is made of: the model is the kernel's, however it was declared.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bayesbandit.inference.gibbs.layout import Block, Layout
from bayesbandit.inference.gibbs.shrinkage import HalfCauchy, Monomial, Shrinkage
from bayesbandit.inference.graph_analysis.quadratic import Quadratic
from bayesbandit.kernels.gibbs import mixture as gibbs

LEFT_OVER = 1e-8  # what a comparison may leave of a coefficient, relative to its size
ROUNDING = 1e-13  # what is smaller, relative to a coefficient's size, is 0

Powers = dict[int, float]  # the exponent of each element of the positive variables
Key = int | frozenset[tuple[int, float]]  # log v_i by i, a monomial by its powers
Coefficients = dict[Key, float]


@dataclass(frozen=True)
class Roles:
    """The role of each variable; "" if a role has none.

    The roles are the noise σ², the local and common scales, and what these are mixed by. scaled
    (D,): where s_j = σ².
    """

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
    quadratic: Quadratic, sigma2: Monomial, prior: Layout, places: Mapping[str, np.ndarray]
) -> Shrinkage | None:
    """Return the kernel's form of a model whose rewards are N(mean reward, σ²/weight), or None.

    prior: the log density without that of the rewards. places: of the variables' elements.
    """
    shapes = {str(v.name): tuple(v.type.shape) for v in quadratic.given}
    if any(shapes[name] for name in sigma2.powers):
        return None
    search = Search.of(quadratic, sigma2, prior, {k: places[k].ravel() for k in shapes}, shapes)
    forms = () if search is None else map(search.fitted, search.roles())
    return next((form for form in forms if form is not None), None)


def powers_of(block: Block) -> list[Powers]:
    """Return the powers of each term of a block."""
    return [
        {int(i): float(e) for i, e in zip(elements, exponents, strict=True) if e}
        for elements, exponents in zip(block.element.T, block.exponent.T, strict=True)
    ]


def product(*factors: Powers) -> Powers:
    """Return the powers of a product."""
    total: Powers = {}
    for i, e in itertools.chain(*(one.items() for one in factors)):
        total[i] = total.get(i, 0.0) + e
    return {i: e for i, e in total.items() if e}


def logarithm(powers: Powers, c: float = 1.0) -> Coefficients:
    """Return c times the logarithm of a monomial."""
    return {i: c * e for i, e in powers.items()}


def monomial(powers: Powers, c: float) -> Coefficients:
    """Return c times a monomial; {} for a constant."""
    return {frozenset(powers.items()): c} if powers else {}


def power(powers: Powers, e: float) -> Powers:
    return {i: e * f for i, f in powers.items()}


def added(parts: Iterator[Coefficients]) -> Coefficients:
    """Return the sum of functions."""
    total: Counter[Key] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


@dataclass(frozen=True)
class Search:
    """A model's σ² and prior precisions as monomials, and the rest of its prior.

    at: elements of each variable. precisions: the powers of each coordinate's precision (D,).
    moving (D,): whether a variable other than the noise is in the precision. location: the prior's
    mean (D,). rest: the log density of the variables' logarithms.
    """

    quadratic: Quadratic
    sigma2: Monomial
    at: Mapping[str, np.ndarray]
    shapes: Mapping[str, tuple[int, ...]]
    precision: Monomial
    precisions: list[Powers]
    moving: np.ndarray
    location: np.ndarray
    rest: Coefficients

    @classmethod
    def of(
        cls,
        quadratic: Quadratic,
        sigma2: Monomial,
        prior: Layout,
        at: Mapping[str, np.ndarray],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> Search | None:
        """Return the search in a model's monomials; None if a square has several coordinates, or a
        coordinate is in several squares."""
        terms, D, (*_, squares, pure) = prior.terms, prior.dim, prior.powers
        j = terms.form
        alone = (np.diff(terms.form_at) == 1).all() and len(np.unique(j)) == len(j)
        if len(prior.dense.offsets) or not alone or terms.square.any():
            return None
        factor, location = np.zeros(D), np.zeros(D)
        factor[j] = -2.0 * squares.coef * terms.form_coef**2
        location[j] = terms.offset / terms.form_coef
        location += prior.centre
        precisions: list[Powers] = [{} for _ in range(D)]
        for coordinate, powers in zip(j.tolist(), powers_of(squares), strict=True):
            precisions[coordinate] = powers
        follows = {
            k: np.array([sum(e for i, e in one.items() if i in at[k]) for one in precisions])
            for k in shapes
        }
        follows = {k: e for k, e in follows.items() if e.any()}
        noise = next(iter(sigma2.powers), "")
        moves = [e != 0.0 for k, e in follows.items() if k != noise]
        moving = np.any(moves, axis=0) if moves else np.zeros(D, bool)
        wanted = [precisions[k] for k in np.flatnonzero(moving)]
        for elements in (at[k] for k, shape in shapes.items() if shape):
            if len(elements) != len(wanted):
                return None
            pairs = zip(wanted, elements.tolist(), strict=True)
            if any({i for i in one if i in elements} - {mine} for one, mine in pairs):
                return None
        logs = (logarithm({i: a}) for i, a in enumerate(terms.linear.tolist()))
        roots = (logarithm(powers, -0.5) for powers in precisions)
        monomials = map(monomial, powers_of(pure), pure.coef.tolist())
        rest = added(itertools.chain(logs, roots, monomials))
        precision = Monomial(factor, follows)
        return cls(quadratic, sigma2, at, shapes, precision, precisions, moving, location, rest)

    @property
    def noise(self) -> str:
        return next(iter(self.sigma2.powers), "")

    def element(self, name: str, e: float) -> Powers:
        """Return a power of a scalar variable; 1 if there is none."""
        return {int(self.at[name][0]): e} if name else {}

    def roles(self) -> Iterator[Roles]:
        """Yield all assignments of roles to the variables that the precisions allow."""
        D, follows = self.quadratic.dim, self.precision.powers
        vectors = [k for k, shape in self.shapes.items() if shape]
        local = [k for k in vectors if k in follows]
        mixing = [k for k in vectors if k not in follows]
        scalars = [k for k, s in self.shapes.items() if not s and k != self.noise]
        if len(local) > 1 or len(mixing) > len(local) or len(scalars) > 2:
            return
        by_noise = np.broadcast_to(follows.get(self.noise, 0.0), D)
        if not ((by_noise == 0.0) | (by_noise == -self.sigma2.powers.get(self.noise, 0.0))).all():
            return
        choices = [by_noise != 0.0]
        if self.noise and local:
            choices.append((by_noise != 0.0) | self.moving)
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

    def fitted(self, roles: Roles) -> Shrinkage | None:
        """Return the kernel's prior for these roles; None if the comparison leaves something
        over."""
        functions = self.functions(roles)
        keys = list(dict.fromkeys(itertools.chain(self.rest, *functions.values())))
        X = np.zeros((len(keys), len(functions)))
        X[:] = [[f.get(key, 0.0) for f in functions.values()] for key in keys]
        y = np.array([self.rest.get(key, 0.0) for key in keys])
        row = np.where(y != 0.0, np.abs(y), np.abs(X).max(axis=1, initial=0.0))
        row[row == 0.0] = 1.0  # each coefficient is compared in its own units
        X, y = X / row[:, None], y / row
        column = np.abs(X).max(axis=0, initial=0.0)
        column[column == 0.0] = 1.0
        c = np.linalg.lstsq(X / column, y)[0]
        if not (np.abs(X / column @ c - y) <= LEFT_OVER).all():
            return None
        c = np.where(np.abs(c) < ROUNDING, 0.0, c) / column
        return self.prior(roles, dict(zip(functions, c.tolist(), strict=True)))

    def functions(self, roles: Roles) -> dict[str, Coefficients]:
        """Return the functions whose sum is the log density."""
        kappa, f = float(self.sigma2.factor), dict[str, Coefficients]()
        sigma2 = self.element(roles.noise, self.sigma2.powers.get(roles.noise, 0.0))
        if roles.noise:
            f["shape"] = logarithm(sigma2, -1.0)
            f["scale"] = monomial(power(sigma2, -1.0), -1.0 / kappa)
        where = np.flatnonzero(self.moving)
        common = self.element(roles.common, roles.power)
        if roles.local:
            e = self.precision.powers[roles.local][where].tolist()
            level = [{i: k} for i, k in zip(self.at[roles.local].tolist(), e, strict=True)]
        if roles.local_mixing:
            o, sign = roles.local_signs
            n: list[Powers] = [{i: float(sign)} for i in self.at[roles.local_mixing].tolist()]
            f["log l"] = added(logarithm(one, o) for one in level)
            f["log n"] = added(map(logarithm, n))
            pairs = zip(level, n, strict=True)
            f["ln"] = added(monomial(product(power(a, o), b), -1.0) for a, b in pairs)
            f["n"] = added(monomial(one, -1.0) for one in n)
        elif roles.local:
            s = [sigma2 if scaled else {} for scaled in roles.scaled[where]]
            P = [product(self.precisions[j], one) for j, one in zip(where, s, strict=True)]
            size = self.precision.factor[where] * np.where(roles.scaled[where], kappa, 1.0)
            tau2 = (product(common, power(one, -1.0)) for one in P)
            f["log T"] = added(logarithm(one, -1.0) for one in P)
            f["T"] = added(map(monomial, tau2, (-0.5 / size).tolist()))
        if roles.common:
            f["log common"] = logarithm(common)
            if roles.common_mixing:
                o, sign = roles.common_signs
                m = self.element(roles.common_mixing, float(sign))
                f["log m"] = logarithm(m)
                f["lm"] = monomial(product(power(common, o), m), -1.0)
                f["m"] = monomial(m, -1.0)
            else:
                f["common"] = monomial(common, -1.0)
        return f

    def prior(self, roles: Roles, c: dict[str, float]) -> Shrinkage | None:
        """Return the kernel's prior in which each of `functions`, by name, has the coefficient c.

        None if the kernel has no such prior: some coefficients are 1 or ½ in all of its priors, and
        others must be positive.
        """

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
            if c["shape"] < -1e-6 or c["scale"] < 0.0:
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
