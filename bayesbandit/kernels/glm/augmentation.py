"""Auxiliary variables of all rows at once, given their linear predictors."""

from bayesbandit.kernels.glm.polya_gamma import draw
from bayesbandit.runtime.compiling import njit

kernel = njit(cache=True, error_model="numpy", nogil=True)


@kernel
def polya_gammas(shape, psi, omega, rng):
    """Fill in ω ~ PG(shape, ψ), arrays (n,)."""
    for i in range(omega.size):
        omega[i] = draw(shape[i], psi[i], rng)
