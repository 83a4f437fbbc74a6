"""Full conditionals of positive variables that are generalised inverse Gaussian (GIG), elementwise.

A positive variable s has a GIG power t = s^k, given everything else, where

    s ∂/∂s log p = c₀ + c₁ t + c₂/t:    t ~ GIG(p, a, b) ∝ t^(p−1) exp(−(a t + b/t)/2)

with p = (c₀ + 1)/k, a = −2c₁/k, b = 2c₂/k. Gamma (b = 0) and inverse gamma (a = 0) are cases; k = 2
is a standard deviation, such as a half-normal one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors

from bayesbandit.engines.base import Compiled, NotThisEngine, Refusal
from bayesbandit.engines.density import Density
from bayesbandit.engines.quadratic import PYTHON, Data
from bayesbandit.engines.recognise import close
from bayesbandit.model import DATA

Values = Mapping[str, np.ndarray]  # free variables by name

MEAN = "mean_reward"  # among values: the mean rewards (n,) under the others
POWERS = (1, 2)  # k
STEP = 2.0**12  # t is multiplied and divided by it to tell c₁t, c₀ and c₂/t apart
NOTHING = 1e-14  # a term smaller than this share of the others is rounding
TINY, HUGE = 1e-100, 1e100  # what a draw of t is kept within


class Conditional:
    """A variable's full conditional, from the gradient of the log density.

    power: k. Found at `values` and `data`, or refused. Where `values` have the mean rewards, the
    likelihood is taken as a function of these.
    """

    def __init__(
        self, density: Density, name: str, engine: str, values: Values, data: Data
    ) -> None:
        self.name, self.engine, self.label = name, engine, density.label(name)
        s = density.values[name]
        through, among = MEAN in values, [t for t in density.terms if s in ancestors([t.graph])]
        terms = [(t.given_mean if through and t.on_data else t.graph).sum() for t in among]
        slope: Any = pt.grad(pt.add(pt.constant(0.0), *terms), s)
        S = pt.tensor("S", shape=(None, *s.type.shape))
        given = density.values | ({MEAN: density.given_mean} if through else {})
        self._others = tuple(k for k in given if k != name)
        self._roles = tuple(k in density.inputs for k in DATA)
        inputs = [given[k] for k in self._others]
        inputs += [density.inputs[k] for k in DATA if k in density.inputs]
        self._slopes = Compiled([S, *inputs], [vectorize_graph(slope, {s: S})], PYTHON)
        for self.power in POWERS:
            if self.holds(values, data):
                return
        raise NotThisEngine(Refusal(engine, f"{self.label}: {self._complaint(values, data)}"))

    def relative_slopes(self, S: np.ndarray, values: Values, data: Data) -> np.ndarray:
        """s ∂/∂s log p at S (m, *shape), everything else as in `values`."""
        present = [a for a, has in zip(data, self._roles, strict=True) if has]
        [slopes] = self._slopes(S, *(np.asarray(values[k]) for k in self._others), *present)
        return np.asarray(S * np.broadcast_to(slopes, S.shape))

    def terms(self, values: Values, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """c₀, c₁t and c₂/t at the present value, each of the variable's shape."""
        step = STEP ** (1.0 / self.power)
        s = np.asarray(values[self.name], dtype=np.float64)
        low, here, high = self.relative_slopes(np.stack([s / step, s, s * step]), values, data)
        up, down = high - here, low - here  # of u(T − 1) − v(1 − 1/T), and with u and v exchanged
        p, q = STEP - 1.0, 1.0 - 1.0 / STEP
        u = (p * up + q * down) / (p * p - q * q)
        v = (p * down + q * up) / (p * p - q * q)
        return here - u - v, u, v

    def holds(self, values: Values, data: Data) -> bool:
        """The identity test: other values of all elements, each on its own, fit the same terms."""
        c0, u, v = self.terms(values, data)
        s = np.asarray(values[self.name])
        jitter = np.random.default_rng(0).uniform(-1.0, 1.0, (3, *s.shape))
        ratio = np.exp(jitter)
        closed = c0 + u * ratio**self.power + v / ratio**self.power
        return close(closed, self.relative_slopes(s * ratio, values, data), 1e-8)

    def absent(self, values: Values, data: Data) -> tuple[bool, bool]:
        """Whether there is no term in t, and none in 1/t: an inverse gamma, a gamma."""
        c0, u, v = (np.abs(c) for c in self.terms(values, data))
        return bool((u <= NOTHING * (c0 + v)).all()), bool((v <= NOTHING * (c0 + u)).all())

    def draw(
        self, values: Values, data: Data, absent: tuple[bool, bool], rng: np.random.Generator
    ) -> np.ndarray:
        """A draw given everything else."""
        c0, u, v = self.terms(values, data)
        t = np.asarray(values[self.name]) ** self.power
        rounding = np.finfo(np.float64).eps * np.abs(c0) / STEP
        least = 0.0 if any(absent) else rounding
        u = np.zeros_like(u) if absent[0] else np.minimum(u, -least)
        v = np.zeros_like(v) if absent[1] else np.maximum(v, least)
        order = (c0 + 1.0) / self.power
        proper = ((u < 0.0) | (order < 0.0)) & ((v > 0.0) | (order > 0.0))
        if not proper.all():
            reason = f"{self.label}: improper given the other variables"
            raise NotThisEngine(Refusal(self.engine, reason))
        a, b = -2.0 * u / (self.power * t), 2.0 * v * t / self.power
        drawn = np.clip(inverse_gaussian(order, a, b, rng), TINY, HUGE)
        return np.asarray(drawn ** (1.0 / self.power))

    def _complaint(self, values: Values, data: Data) -> str:
        """Which it is: elements that depend on each other, or another distribution."""
        s = np.asarray(values[self.name])
        if s.size > 1:
            first = np.ones(s.size)
            first[0] = 2.0
            moved = np.stack([s, s * first.reshape(s.shape)])
            slopes = self.relative_slopes(moved, values, data).reshape(2, -1)[:, 1:]
            if not close(slopes[0], slopes[1], 1e-8):
                return "its elements depend on each other given the rest"
        return "not gamma, inverse gamma or generalised inverse Gaussian given the rest"


def inverse_gaussian(
    order: np.ndarray, a: np.ndarray, b: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draws from GIG(order, a, b) ∝ t^(order−1) exp(−(a t + b/t)/2), elementwise.

    a ≥ 0, and a > 0 where order ≥ 0; b ≥ 0, and b > 0 where order ≤ 0.
    """
    order, a, b = (np.asarray(v, dtype=np.float64) for v in (order, a, b))
    shape = order.shape
    order, a, b = order.ravel(), a.ravel(), b.ravel()
    out = np.empty(order.size)
    no_b = b == 0.0
    no_a = (a == 0.0) & ~no_b
    half = (np.abs(np.abs(order) - 0.5) < 1e-12) & ~no_a & ~no_b
    rest = ~(no_a | no_b | half)
    if no_b.any():
        out[no_b] = 2.0 * rng.standard_gamma(order[no_b]) / a[no_b]
    if no_a.any():
        out[no_a] = 0.5 * b[no_a] / rng.standard_gamma(-order[no_a])
    if half.any():
        up = order[half] > 0.0
        shape_, other = np.where(up, a[half], b[half]), np.where(up, b[half], a[half])
        t = _half(shape_, other, rng)
        out[half] = np.where(up, t, 1.0 / t)
    if rest.any():
        out[rest] = _devroye(order[rest], a[rest], b[rest], rng)
    return out.reshape(shape)


def _half(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """GIG(½, a, b), the inverse of an inverse Gaussian: Michael, Schucany and Haas (1976)."""
    m, q = np.sqrt(b / a), 0.5 * rng.standard_normal(a.size) ** 2 / a
    root = m + q + np.sqrt(q) * np.sqrt(q + 2.0 * m)
    return np.asarray(np.where(rng.random(a.size) * (root + m) <= root, root, m * (m / root)))


def _devroye(
    order: np.ndarray, a: np.ndarray, b: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """GIG by rejection, efficient for all parameters: Devroye (2014), Statistics and Computing 24.

    X = log(t/mode-like scale) has log density ψ(x) = −α(cosh x − 1) − λ(eˣ − x − 1), bounded by an
    exponential on the left of −s', by a constant, and by an exponential on the right of t'.
    """
    lam, omega = np.abs(order), np.maximum(np.sqrt(a) * np.sqrt(b), TINY)
    alpha = omega**2 / (np.hypot(omega, lam) + lam)

    one = np.ones_like(lam)
    with np.errstate(over="ignore", divide="ignore"):
        at = -_psi(one, alpha, lam)
        t = np.where(at > 2.0, np.sqrt(2.0 / (alpha + lam)), np.log(4.0 / (alpha + 2.0 * lam)))
        t = np.where((at >= 0.5) & (at <= 2.0), 1.0, t)
        at = -_psi(-one, alpha, lam)
        near = np.sqrt(4.0 / (alpha * np.cosh(1.0) + lam))
        far = np.log1p(1.0 / alpha + np.sqrt(1.0 / alpha**2 + 2.0 / alpha))
        s = np.where(at > 2.0, near, np.minimum(1.0 / lam, far))
        s = np.where((at >= 0.5) & (at <= 2.0), 1.0, s)
    eta, theta = -_psi(t, alpha, lam), -_psi(-s, alpha, lam)
    zeta, xi = alpha * np.sinh(t) + lam * np.expm1(t), alpha * np.sinh(s) - lam * np.expm1(-s)
    p, r = 1.0 / xi, 1.0 / zeta
    right, left = t - r * eta, s - p * theta
    q = right + left
    x, todo = np.empty(lam.size), np.arange(lam.size)
    while todo.size:
        where, along, height = rng.random((3, todo.size))
        log_along, i = np.log1p(-along), todo
        part = where * (p + q + r)[i]
        inside, above = part < q[i], part < (q + r)[i]
        flat = -left[i] + q[i] * along
        proposal = np.where(
            inside, flat,
            np.where(above, right[i] - r[i] * log_along, -left[i] + p[i] * log_along),
        )  # fmt: skip
        log_bound = np.where(
            inside, 0.0,
            np.where(above, -eta[i] - zeta[i] * (proposal - t[i]),
                     -theta[i] + xi[i] * (proposal + s[i])),
        )  # fmt: skip
        density = _psi(proposal, alpha[i], lam[i])
        accepted = np.log1p(-height) + log_bound <= density
        x[i[accepted]] = proposal[accepted]
        todo = i[~accepted]
    log_t = x + np.log(lam + np.hypot(lam, omega)) - np.log(omega)
    scale = 0.5 * (np.log(b) - np.log(a))
    return np.asarray(np.exp(np.where(order < 0.0, scale - log_t, scale + log_t)))


def _psi(x: np.ndarray, alpha: np.ndarray, lam: np.ndarray) -> np.ndarray:
    return np.asarray(-2.0 * alpha * np.sinh(0.5 * x) ** 2 - lam * (np.expm1(x) - x))


def trial(
    shapes: Mapping[str, tuple[int, ...]], names: Sequence[str], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Random values: positive ones for `names`, real ones for the others."""
    return {
        k: rng.uniform(0.5, 2.0, shape) if k in names else rng.normal(size=shape)
        for k, shape in shapes.items()
    }
