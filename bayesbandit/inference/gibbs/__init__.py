"""Gibbs sampling of conditionally Gaussian models, by compiled kernels.

From a declared model to draws, each step made from the one before:

    rewrites   products τ z become τ times a variable of its own scale (`rewrite_products`), and
               half-Cauchy and other mixtures become gammas (`rewrite_mixtures`)
    Blocks     (`blocks`)   real variables, Gaussian given the rest; positive ones beside them
    Reading    (`reading`)  the log density's terms as numbers, whose forms are read at rows
    Form       (`form`)     squares of the reals × monomials of the positives, and logarithms
    Layout     (`layout`)   the same as arrays of the kernel: `Terms`
    Problem    (`problem`)  the layout with its joint moves (`moves`), and the rows
    draws                   by `kernels/gibbs/sweeps`: δ, each u = log v, and the moves in turn
"""
