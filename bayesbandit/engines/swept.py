"""A Gibbs sweep in Python, for conditionally Gaussian models that have no kernel of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from bayesbandit.engines.conditionals import MEAN, trial
from bayesbandit.engines.quadratic import Data, along
from bayesbandit.engines.recognise import close, part

if TYPE_CHECKING:
    from bayesbandit.engines.gibbs import Gibbs, State


class Sweep:
    """A draw of every variable in turn given these data, once they have passed the tests.

    map: A (n, D) and b (n,), where the likelihood knows of θ through mean rewards A θ + b alone.
    row_wise: whether it is, besides, a product over rows. unit: A'WA and A'W(r − b) where, besides,
    rewards are N(mean reward, σ²/w) with one σ² for all: the natural parameters, times σ².
    """

    def __init__(self, engine: Gibbs, data: Data) -> None:
        self.engine, self.quadratic, self.data = engine, engine.quadratic, data
        shapes, rest = engine.shapes_at(len(data[0])), [c.name for c in engine.conditionals]
        values = trial(shapes, rest, np.random.default_rng(0))
        self.map = None
        if self.quadratic.through_mean is not None:
            self.map = engine.mean_map(data)
        self.row_wise = self._product_over_rows(values)
        self.unit = self._unit() if self.row_wise and engine.scalar_noise and len(data[0]) else None
        values = self.with_mean(values)
        for conditional in engine.conditionals:
            if not conditional.holds(values, data):
                raise self.quadratic.refusal(
                    f"{conditional.label}: not generalised inverse Gaussian on these data"
                )
        self.absent = {c.name: c.absent(values, data) for c in engine.conditionals}

    def sample(
        self, state: State, draws: int, tune: int, rng: np.random.Generator,
        progress: Callable[[int], None],
    ) -> tuple[State, State]:  # fmt: skip
        """A chain of the declared variables (draws, *shape), and where it ends."""
        out = {k: np.empty((draws, *state[k].shape)) for k in self.engine.names}
        for sweep in range(-tune, draws):
            state = self(state, rng)
            if sweep >= 0:
                for k, values in out.items():
                    values[sweep] = state[k]
            progress(1)
        return out, state

    def __call__(self, state: State, rng: np.random.Generator) -> State:
        """The state after one sweep."""
        state = state | self._draw_block(state, rng)
        values = self.with_mean(state)
        for conditional in self.engine.conditionals:
            name = conditional.name
            drawn = conditional.draw(values, self.data, self.absent[name], rng)
            values[name] = state[name] = drawn
        return state

    def with_mean(self, state: State) -> State:
        """The state and, where there is a map, the mean rewards (n,) under it."""
        if self.map is None:
            return dict(state)
        A, b = self.map
        return state | {MEAN: A @ self._theta(state) + b}

    def _theta(self, state: State) -> np.ndarray:
        """The block, flat (D,)."""
        return np.concatenate([np.ravel(state[k]) for k in self.quadratic.names])

    def _rows(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """What each row says of its mean reward: the log density's slope at b, and a precision."""
        assert self.map is not None
        given = self.engine.given(state)
        slope, curvature, _ = self.quadratic.curvature(self.map[1], self.data, given)
        return slope, -curvature

    def _product_over_rows(self, state: State) -> bool:
        """`row_wise`: what rows say apart is what the gradient says along a random direction."""
        if self.map is None:
            return False
        A, (slope, precision), theta = self.map[0], self._rows(state), self._theta(state)
        given = self.engine.given(state)
        [there], at_zero = along(
            lambda Z: self.quadratic.likelihood_slopes(Z, self.data, given), theta[None]
        )
        return close(A.T @ slope, at_zero) and close(-A.T @ (precision * (A @ theta)), there)

    def _unit(self) -> tuple[np.ndarray, np.ndarray]:
        assert self.map is not None
        (A, b), (_, reward, weight, _) = self.map, self.data
        if self.quadratic.takes_weight:
            root = np.sqrt(weight)
            A, b, reward = A * root[:, None], b * root, reward * root
        return A.T @ A, A.T @ (reward - b)

    def _inv_sigma2(self, state: State) -> float:
        """1/σ², from the first row."""
        assert self.map is not None
        one = slice(0, 1)
        first, given = part(self.data, one), self.engine.given(state, one)
        _, curvature, _ = self.quadratic.curvature(self.map[1][one], first, given)
        return float(-curvature[0]) / (first[2][0] if self.quadratic.takes_weight else 1.0)

    def block(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Natural parameters of the Gaussian block given the rest: Λ (D, D), η (D,)."""
        given = self.engine.given(state)
        precision, shift = self.engine.prior_given(given)
        if self.unit is not None:
            inv_sigma2, (G, h) = self._inv_sigma2(state), self.unit
            return precision + inv_sigma2 * G, shift + inv_sigma2 * h
        if self.row_wise and self.map is not None:
            A, (slope, rows) = self.map[0], self._rows(state)
            return precision + (A.T * rows) @ A, shift + A.T @ slope
        likelihood = self.quadratic.natural(self.data, given)[1]
        return precision + likelihood.precision, shift + likelihood.shift

    def _draw_block(self, state: State, rng: np.random.Generator) -> State:
        L, _, mean = self.engine.solve(*self.block(state))
        noise = solve_triangular(L, rng.standard_normal(len(mean)), lower=True, trans=1)
        return self.quadratic.split(mean + noise)
