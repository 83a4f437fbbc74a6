"""Are ranks uniform? The ECDF with simultaneous bands, exactly.

Säilynoja, Bürkner and Vehtari (2022), Graphical test for discrete uniformity and its applications
in goodness-of-fit evaluation and multiple sample comparison, Statistics and Computing 32.
"""

from functools import lru_cache

import numpy as np
from scipy import stats

DRAWS = 63  # kept of each posterior, so that a rank is one of 64
CELLS = DRAWS + 1


@lru_cache
def tails(n: int) -> np.ndarray:
    """2 min(P(R ≤ r), P(R ≥ r)) of R ~ Binomial(n, k/CELLS), for k = 1 … DRAWS and r = 0 … n."""
    share, r = np.arange(1, CELLS)[:, None] / CELLS, np.arange(n + 1)
    return 2.0 * np.minimum(stats.binom.cdf(r, n, share), stats.binom.sf(r - 1, n, share))


def leaving(n: int, gamma: float) -> float:
    """P(the ECDF of n uniform ranks is somewhere as far out as `gamma`), exactly.

    Counts in the cells are independent Poisson given their sum, so that the ECDF's path is a
    convolution that loses, at every cell, what lies outside the band.
    """
    inside = tails(n) > gamma * (1.0 + 1e-9)
    jump = stats.poisson.pmf(np.arange(n + 1), n / CELLS)
    path = np.eye(1, n + 1)[0]
    for within in inside:
        path = np.convolve(path, jump)[: n + 1] * within
    return max(0.0, 1.0 - float(path @ jump[::-1]) / float(stats.poisson.pmf(n, n)))


def below(ranks: np.ndarray) -> np.ndarray:
    """How many ranks are < k, for k = 1 … DRAWS."""
    return np.cumsum(np.bincount(ranks, minlength=CELLS))[:-1]


def uniformity(ranks: np.ndarray) -> float:
    """The p-value of ranks (N,) against uniform ones."""
    n = len(ranks)
    return leaving(n, tails(n)[np.arange(DRAWS), below(ranks)].min())


def band(n: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest counts < k, k = 1 … DRAWS, that the test at that level lets pass."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if leaving(n, middle) <= level else (low, middle)
    inside = tails(n) > low
    return inside.argmax(axis=1), n - inside[:, ::-1].argmax(axis=1)
