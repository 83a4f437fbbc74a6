"""How well the arms taken agree with the probabilities logged: online tilts of these."""

import numpy as np

from bayesbandit.runtime.compiling import njit

STEP = 0.5


@njit(cache=True)
def tilted(e, arm, z):
    """Return log Π_{s≤t} q_s(A_s)/e_s(A_s), (n,), of q ∝ e exp(θ_k'z) with θ by Adagrad on log
    q(A).

    e (n, K), arm (n,), z (n, D). θ_t uses earlier rounds alone.
    """
    n, K, D = e.shape[0], e.shape[1], z.shape[1]
    theta, squares = np.zeros((K, D)), np.zeros((K, D))
    q, out, total = np.empty(K), np.empty(n), 0.0
    for t in range(n):
        most = -np.inf
        for k in range(K):
            q[k] = -np.inf
            if e[t, k] > 0.0:
                q[k] = 0.0
                for j in range(D):
                    q[k] += theta[k, j] * z[t, j]
                most = max(most, q[k])
        norm = 0.0
        for k in range(K):
            q[k] = e[t, k] * np.exp(q[k] - most) if e[t, k] > 0.0 else 0.0
            norm += q[k]
        a = arm[t]
        total += np.log(q[a] / norm / e[t, a])
        out[t] = total
        for k in range(K):
            if e[t, k] > 0.0:
                gap = (1.0 if k == a else 0.0) - q[k] / norm
                for j in range(D):
                    g = gap * z[t, j]
                    squares[k, j] += g * g
                    if squares[k, j] > 0.0:
                        theta[k, j] += STEP * g / np.sqrt(squares[k, j])
    return out
