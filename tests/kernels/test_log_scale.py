"""Draws of logarithms of scales against the densities that they claim."""

import numpy as np
import pytest
from numba import njit
from scipy import stats

from bayesbandit.kernels.gibbs import log_scale

INF = np.inf


@njit
def chain(a, q, e, S, low, high, size, stays, rng):
    """Draws, each given the one before: g about s is again such a sum."""
    out, s = np.empty(size), 0.0
    for i in range(size):
        s = stays * s
        moved = S * np.exp(e * s)
        s += log_scale.draw(a + 2.0 * q * s, q, e, moved, low - s, high - s, rng)
        out[i] = s
    return out


def law(draws, a, q, e, S, low, high):
    """The Kolmogorov–Smirnov p-value of draws against g, by quadrature."""
    span = 0.3 * np.ptp(draws)
    grid = np.linspace(max(draws.min() - span, low), min(draws.max() + span, high), 200_001)
    with np.errstate(over="ignore"):
        g = (a + q * grid) * grid + S @ np.exp(np.outer(e, grid))
    p = np.exp(g - g.max())
    cdf = np.append(0.0, np.cumsum(0.5 * (p[1:] + p[:-1])))
    return stats.kstest(draws, lambda s: np.interp(s, grid, cdf / cdf[-1])).pvalue


EXACT = {
    "gamma": (2.0, 0.0, [1.0], [-3.0], -INF, INF),
    "inverse gamma": (-1.5, 0.0, [-1.0], [-30.0], -INF, INF),
    "inverse of an inverse Gaussian": (0.5, 0.0, [1.0, -1.0], [-0.3, -2.0], -INF, INF),
    "inverse Gaussian": (-1.0, 0.0, [-2.0, 2.0], [-30.0, -0.5], -INF, INF),
    "far out": (0.5, 0.0, [1.0, -1.0], [-1e8, -1e-8], -INF, INF),
}
BY_SLICES = {
    "half-normal sd": (-200.0, 0.0, [-2.0, 2.0], [-100.0, -0.5], -INF, INF),
    "far": (-200.0, 0.0, [-2.0, 1.0], [-1e22, -0.5], -INF, INF),
    "log-normal": (-20.0, -0.5, [-2.0], [-40.0], -INF, INF),
    "uniform": (-20.0, 0.0, [-2.0], [-40.0], -INF, 0.3),
    "pressed to its wall": (-200.0, 0.0, [-2.0], [-1000.0], -INF, 0.3),
    "pressed to the lower one": (-200.0, 0.0, [-2.0], [-10.0], -0.1, 0.3),
    "flat between walls": (0.0, 0.0, [1.0], [0.0], -2.0, 0.5),
    "generalised inverse Gaussian": (-3.0, 0.0, [1.0, -1.0], [-0.005, -0.005], -INF, INF),
    "three powers": (3.0, -0.1, [1.0, 2.0, -3.0], [-1.0, -0.2, -0.7], -INF, INF),
    "not concave": (3.0, -0.1, [1.0, 2.0], [2.0, -1.0], -INF, INF),
    "heavy": (2.0, 0.0, [1.0, 2.0, -1.0], [4.0, -1.0, -0.1], -INF, INF),
    "hundreds wide": (0.02, 0.0, [1.0, -0.7], [-1.0, -1e-60], -INF, INF),
    "heavy, with a wall": (2.0, 0.0, [1.0, 2.0, -1.0], [4.0, -1.0, -0.1], -0.2, INF),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT | BY_SLICES)
def test_draws_have_the_density(name, rng):
    """Exact draws are independent; of slices, one of 20 is taken once they have come in."""
    a, q, e, S, low, high = (EXACT | BY_SLICES)[name]
    e, S = np.array(e), np.array(S)
    if name in EXACT:
        draws = chain(a, q, e, S, low, high, 20_000, 0.0, rng)
    else:
        draws = chain(a, q, e, S, low, high, 201_000, 1.0, rng)[1000::20]
    assert law(draws, a, q, e, S, low, high) > 1e-3
    assert (draws >= low).all()
    assert (draws <= high).all()


@pytest.mark.parametrize(
    ("a", "e", "S", "low", "high"),
    [
        (-1.0, [1.0], [-1.0], -INF, INF),  # nothing holds it below
        (1.0, [-1.0], [-1.0], -INF, INF),
        (0.0, [1.0], [0.0], -1.0, INF),
    ],
)
def test_improper_densities_have_no_draw(a, e, S, low, high, rng):
    assert np.isnan(log_scale.draw(a, 0.0, np.array(e), np.array(S), low, high, rng))
