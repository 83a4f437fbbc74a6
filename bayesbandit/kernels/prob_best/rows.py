"""Means and lengths of many rows of features, as quickly as memory gives them."""

import numpy as np

from bayesbandit.kernels.algebra.dense import dot
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def means_and_lengths(x, theta, constant, mean, length):
    """Fill in the mean rewards x'θ + constant and the lengths |x| of rows x (n, d): (n,) each."""
    for i in range(x.shape[0]):
        row = x[i]
        mean[i] = dot(row, theta) + constant
        length[i] = np.sqrt(dot(row, row))
