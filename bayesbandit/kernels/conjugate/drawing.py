"""How an arm is picked by draws from beta and gamma posteriors."""

import numpy as np

from bayesbandit.kernels.conjugate.families import log_odds, log_rate, seeded
from bayesbandit.kernels.rules import (
    BETA,
    DRAWN,
    below,
    decide,
    df_at,
    explored,
    new_in,
    normal,
    scale_at,
)
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def decide_drawn(row, D, K, kind, param, floor, stream):
    """`decide`, of any rule."""
    if kind not in DRAWN:
        return decide(row, D, K, kind, param, floor, stream)
    new = new_in(row, D, K)
    if new > 0 or floor > 0.0:
        arm = explored(row, D, K, new, floor, stream)
        if arm >= 0:
            return arm
    state = seeded(normal(stream))
    best, best_score, ties = -1, -np.inf, 0
    for k in range(K):
        a, b = row[df_at(D, K) + k], row[scale_at(D, K) + k]
        if row[D + k] == -np.inf or a < 0.0:
            continue
        if kind == BETA:
            score, state = log_odds(a, b, state)
        else:
            score, state = log_rate(a, b, state)
        if score > best_score or best < 0:
            best, best_score, ties = k, score, 1
        elif score == best_score:
            ties += 1
            if below(ties, stream) == 0:
                best = k
    return best
