"""Gibbs sampling of conditionally Gaussian models, by compiled kernels.

From a declared model to draws, each step made from the one before:

    Blocks     (`blocks`)   real variables, Gaussian given the rest; positive ones beside them
    Reading    (`reading`)  the log density's terms as numbers, whose forms are read at rows
    Form       (`form`)     squares of the reals × monomials of the positives, and logarithms
    Layout     (`layout`)   the same as arrays of the kernel: `Terms`
    Problem    (`problem`)  the layout with its joint moves (`moves`), and the rows
    draws                   by `kernels/gibbs`: a sweep of δ, of each u = log v, and of the moves
"""
