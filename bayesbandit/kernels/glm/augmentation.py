"""Sweeps of `gibbs.orbits` with new Pólya–Gamma variables before each."""

from bayesbandit.kernels.algebra.cholesky import add_gram
from bayesbandit.kernels.algebra.dense import dot
from bayesbandit.kernels.gibbs import orbits
from bayesbandit.kernels.glm.polya_gamma import draw
from bayesbandit.runtime.compiling import njit

kernel = njit(cache=True, error_model="numpy", nogil=True)


@kernel
def sweep(rows, scaled, shape, base, terms, moves, state, work, delta, u, kept, tune, rng):
    """Sweep as `orbits.sweep`, of terms whose one group is of observations of ψ = A δ + b.

    rows (n, M): A, and −b behind as many columns as a group has rows. scaled (n, M): room. shape
    (n,): of ω ~ PG(shape, ψ). base: the group without ω: zeros, and −A'κ/2 behind.
    """
    D, P, group = state.delta.size, base.shape[0], terms.groups[0]
    for s in range(-tune, delta.shape[0]):
        group[:] = base
        for i in range(shape.size):
            row, left = rows[i], scaled[i]
            omega = draw(shape[i], dot(row[:D], state.delta) - row[P], rng)
            for j in range(D):
                left[j] = 0.5 * omega * row[j]
        if shape.size > 0:
            add_gram(base, scaled, rows, group)
        for i in range(D):
            for j in range(i):
                group[i, j] = group[j, i]
        at = max(s, 0)
        one, logs = delta[at : at + 1], u[at : at + 1]
        wrong = orbits.sweep(terms, moves, state, work, one, logs, kept, 0, rng)
        if wrong >= 0:
            return wrong
    return -1
