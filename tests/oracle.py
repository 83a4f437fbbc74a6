"""The mathematics a second time, by other means: scikit-learn, scipy, dense inverses, loops."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy import integrate
from scipy.special import gammaln, ndtr, stdtr
from sklearn.linear_model import Ridge as SklearnRidge


def solved(A, b):
    """The solution of A y = b, by Gauss and Jordan's elimination in fractions."""
    A = [[*row, value] for row, value in zip(A, b, strict=True)]
    for i in range(len(A)):
        pivot = next(j for j in range(i, len(A)) if A[j][i])
        A[i], A[pivot] = A[pivot], A[i]
        A[i] = [value / A[i][i] for value in A[i]]
        for j in range(len(A)):
            if j != i and A[j][i]:
                A[j] = [a - A[j][i] * c for a, c in zip(A[j], A[i], strict=True)]
    return [row[-1] for row in A]


def exact_ridge(z, r, w, lam, at):
    """Means and variances at each row of `at` (m, D), σ² = 1, and the penalised loss, in fractions.

    lam: the penalty of all columns, or of each.
    """
    z, r, w, at, lam = (
        np.vectorize(Fraction, otypes=[object])(np.asarray(part, float))
        for part in (z, r, w, at, np.broadcast_to(lam, np.shape(z)[1]))
    )
    B, b = z.T @ (w[:, None] * z) + np.diag(lam), z.T @ (w * r)
    theta = np.array(solved(B.tolist(), b.tolist()))
    variance = np.array([sum(point * np.array(solved(B.tolist(), point.tolist()))) for point in at])
    return at @ theta, variance, w @ (r * r) - b @ theta


def exact_moments(z, r, w, lam, at):
    """Means and standard deviations (m,) of `exact_ridge`, rounded once at the end."""
    mean, variance, _ = exact_ridge(z, r, w, lam, at)
    return mean.astype(float), np.sqrt(variance.astype(float))


def design(x, intercept=True):
    """Contexts (n, d) with a constant column behind them, where asked for."""
    x = np.atleast_2d(x)
    return np.column_stack([x, np.ones(len(x))]) if intercept else x


def sklearn_ridge(x, r, w, lam, intercept=True):
    """θ (D,) by scikit-learn, the intercept last."""
    if intercept == "unpenalised":
        fit = SklearnRidge(alpha=lam, fit_intercept=True, solver="cholesky")
        fit.fit(x, r, sample_weight=w)
        return np.append(fit.coef_, fit.intercept_)
    fit = SklearnRidge(alpha=lam, fit_intercept=False, solver="cholesky")
    return fit.fit(design(x, intercept), r, sample_weight=w).coef_


def precision(x, w, lam, intercept=True):
    """B = X'WX + λI, the constant's own entry without λ where it is not penalised."""
    z = design(x, intercept)
    penalty = np.full(z.shape[1], float(lam))
    if intercept == "unpenalised":
        penalty[-1] = 0.0
    return z.T @ (w[:, None] * z) + np.diag(penalty)


def noise(x, r, w, lam, variance, intercept=True, floor=1e-6, prior=(1.0, 1.0)):
    """(σ², degrees of freedom) as the docstring of `Ridge` defines them, from the residuals."""
    theta = sklearn_ridge(x, r, w, lam, intercept)
    rss = float(w @ (r - design(x, intercept) @ theta) ** 2)
    if variance == "rss/n":
        return max(rss / len(r), floor), np.inf
    if variance == "rss":
        return max(rss, floor), np.inf
    if variance == "nig":
        shape, scale = prior
        penalised = theta[:-1] if intercept == "unpenalised" else theta
        loss = rss + lam * penalised @ penalised
        return (scale + loss / 2) / (shape + len(r) / 2), 2 * shape + len(r)
    if variance == "empirical_bayes":
        return pooled_noise([(x, r, w, lam)], 2.0, intercept)[0], np.inf
    return variance, np.inf


def pooled_noise(arms, prior_rows, intercept=True):
    """σ² of each arm (K,) by empirical Bayes, from its x, r, w and λ; ∞ of those without rows.

    s² is the mean penalised squared residual of all rows; an arm's is that of its own n rows and
    of `prior_rows` · κ · min(1, s²/v) more, each of its rows' mean weight and with s² as squared
    residual, over n. κ and v are the kurtosis and the variance of all rewards."""
    rss, loss, total = np.zeros(len(arms)), 0.0, 0.0
    for k, (x, r, w, lam) in enumerate(arms):
        if len(r):
            theta = sklearn_ridge(x, r, w, lam, intercept)
            rss[k] = w @ (r - design(x, intercept) @ theta) ** 2
            penalised = theta[:-1] if intercept == "unpenalised" else theta
            loss += rss[k] + lam * penalised @ penalised
            total += w.sum()
    if total == 0:
        return np.full(len(arms), np.inf)
    rewards, weights = (np.concatenate([rows[i] for rows in arms]) for i in (1, 2))
    s2, far = loss / total, (rewards - np.average(rewards, weights=weights)) ** 2
    if (v := np.average(far, weights=weights)) > 0:
        prior_rows = prior_rows * np.average(far**2, weights=weights) / v**2 * min(1, s2 / v)
    return np.array([
        (rss[k] + prior_rows * w.mean() * s2) / len(r) if len(r) else np.inf
        for k, (_, r, w, _) in enumerate(arms)
    ])  # fmt: skip


def moments(z, theta, covariance):
    """Means and scales of z'θ at the rows of z (n, D)."""
    return z @ theta, np.sqrt(np.einsum("ni,ij,nj->n", z, covariance, z))


def cross_validated(x, r, w, grid, folds, intercept=True):
    """The λ with the least weighted squared error over explicit folds, rows taken in turn; the
    larger one of a tie. A fold that holds everything, or nothing, is left out."""
    fold = np.arange(len(r)) % folds
    errors = []
    for lam in sorted(grid, reverse=True):
        error = 0.0
        for f in range(folds):
            test, train = fold == f, fold != f
            if test.any() and train.any():
                theta = sklearn_ridge(x[train], r[train], w[train], lam, intercept)
                residual = r[test] - design(x[test], intercept) @ theta
                error += w[test] @ residual**2
        errors.append(error)
    least = np.min(errors) + 1e-11 * (w @ r**2)
    return next(
        lam for lam, e in zip(sorted(grid, reverse=True), errors, strict=True) if e <= least
    )


def best_arm(mean, scale, df=np.inf):
    """P(arm k is best) (K,) of independent normals or Student-t, by adaptive quadrature."""
    mean, scale = np.asarray(mean, float), np.asarray(scale, float)
    df = np.broadcast_to(np.asarray(df, float), mean.shape)
    normal, others = np.isinf(df), ~np.eye(len(mean), dtype=bool)
    nu = np.where(normal, 1.0, df)
    peak = np.exp(gammaln((nu + 1) / 2) - gammaln(nu / 2)) / np.sqrt(np.pi * nu)

    def integrand(y):
        z = (y - mean) / scale
        student = peak * (1 + z * z / nu) ** (-(nu + 1) / 2)
        pdf = np.where(normal, np.exp(-z * z / 2) / np.sqrt(2 * np.pi), student) / scale
        cdf = np.where(normal, ndtr(z), stdtr(nu, z))
        return pdf * np.prod(np.where(others, cdf, 1.0), axis=1)

    steps = np.array([0.0, 1.0, 2.5, 5.0, 9.0])
    breaks = np.unique(mean[:, None] + np.outer(scale, np.append(-steps, steps)))
    edges = [-np.inf, *breaks, np.inf] if not normal.all() else breaks
    return sum(integrate.quad_vec(integrand, *piece, epsabs=1e-9)[0] for piece in pairwise(edges))


def deviation(scale, df):
    """The standard deviations of normals or Student-t of these scales."""
    with np.errstate(all="ignore"):
        sd = np.where(np.isinf(df), scale, scale * np.sqrt(df / (df - 2)))
    return np.where(df <= 2, np.inf, sd)


def winners(score):
    """The arms with the largest score, sharing evenly."""
    best = np.asarray(score) == np.max(score)
    return best / best.sum()


def policy_probabilities(kind, number, mean, scale, df=np.inf):
    """A policy's chance of each arm (K,) at one context."""
    mean, scale = np.asarray(mean, float), np.asarray(scale, float)
    df = np.broadcast_to(df, mean.shape)
    if kind == "Thompson":
        return best_arm(mean, number * scale, df)
    if kind == "Greedy" or (kind == "UCB" and number == 0.0):
        return winners(mean)
    if kind == "UCB":
        return winners(mean + number * deviation(scale, df))
    return number / len(mean) + (1 - number) * winners(mean)
