"""Models over arms, and the moments of their mean rewards in closed form, by NumPy alone."""

import numpy as np
import pymc as pm
from scipy import stats

import bayesbandit as bb
from bayesbandit.model import RewardModel


def effects(x, reward, weight, arm):
    """Coefficients that all arms share, and an effect of each arm about 1/2."""
    theta = pm.Normal("theta", 1, 2, dims="feature")
    effect = pm.Normal("effect", 0.5, 0.4, dims="arm")
    mu = x @ theta + effect[arm]
    pm.Normal("reward", mu, 0.7 / pm.math.sqrt(weight), observed=reward)
    return mu


def noisy_effects(x, reward, weight, arm):
    """The same with noise that is unknown: normal-inverse-gamma."""
    variance = pm.InverseGamma("variance", 2.0, 1.5)
    theta = pm.Normal("theta", 1, 2 * pm.math.sqrt(variance), dims="feature")
    effect = pm.Normal("effect", 0.5, 0.4 * pm.math.sqrt(variance), dims="arm")
    mu = x @ theta + effect[arm]
    pm.Normal("reward", mu, pm.math.sqrt(variance / weight), observed=reward)
    return mu


def hierarchical(tau2):
    return bb.load_model("hierarchical_ridge").with_priors(tau2=tau2, sigma2=0.5, intercept=0)


MODELS = {
    "hierarchical, close": hierarchical(0.01),
    "hierarchical": hierarchical(0.5),
    "hierarchical, apart": hierarchical(25.0),
    "effects": RewardModel(effects, {}),
    "effects, unknown noise": RewardModel(noisy_effects, {}),
}


def prior(name, K, d):
    """Mean m and covariance S of the coefficients, noise variance, and σ²'s shape and scale.

    Under unknown noise the covariance and the noise are in units of σ².
    """
    if name.startswith("hierarchical"):
        tau2 = float(MODELS[name].priors["tau2"])
        S = np.kron(1.0 + tau2 * np.eye(K), np.eye(d))  # of θ, with its mean integrated out
        return np.zeros(K * d), S, 0.5, None
    m, S = np.repeat([1.0, 0.5], [d, K]), np.diag(np.repeat([4.0, 0.16], [d, K]))
    return (m, S, 1.0, (2.0, 1.5)) if "unknown" in name else (m, S, 0.49, None)


def columns(name, x, arm, K):
    """A (n, D), with mean rewards A θ."""
    if name.startswith("hierarchical"):
        return np.einsum("nk,nd->nkd", np.eye(K)[arm], x).reshape(len(x), K * x.shape[1])
    return np.hstack([x, np.eye(K)[arm]])


def mean_rewards(name, rows, K, x):
    """Given rows: means (n, K) of all arms' mean rewards at x (n, d), their scale matrices
    (n, K, K), and degrees of freedom (∞: normal)."""
    m, S, noise, gamma = prior(name, K, x.shape[1])
    A, w = columns(name, rows["x"], rows["arm"], K), rows["weight"] / noise
    precision = np.linalg.inv(S) + (A.T * w) @ A
    covariance = np.linalg.inv(precision)
    residual = rows["reward"] - A @ m
    theta = m + covariance @ (A.T @ (w * residual))
    df, unit = np.inf, 1.0
    if gamma is not None:
        shape, scale = gamma[0] + len(A) / 2, gamma[1] + 0.5 * w @ residual**2
        scale -= 0.5 * (theta - m) @ precision @ (theta - m)
        df, unit = 2 * shape, scale / shape
    Z = np.stack([columns(name, x, np.full(len(x), k), K) for k in range(K)], axis=1)
    return Z @ theta, unit * Z @ covariance @ Z.transpose(0, 2, 1), df


def variance(spread, df):
    """Covariances of a normal or Student-t of these scale matrices."""
    return spread * (df / (df - 2) if np.isfinite(df) else 1.0)


def orthants(mean, spread, df, alpha=1.0):
    """P(arm is best) (K,) of a normal or Student-t by SciPy's orthant probabilities."""
    K, out = len(mean), np.empty(len(mean))
    for a in range(K):
        contrast = np.delete(np.eye(K) - np.eye(K)[a], a, axis=0)  # the others less arm a
        centre, shape = contrast @ mean, alpha**2 * contrast @ spread @ contrast.T
        if np.isfinite(df):
            kind = stats.multivariate_t(centre, shape, df=df, seed=0)
        else:
            kind = stats.multivariate_normal(centre, shape, seed=0)
        out[a] = kind.cdf(np.zeros(K - 1))
    return out


def data(seed=0, n=50, d=3, K=3):
    """Rows by role."""
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=(n, d)),
        "arm": rng.integers(0, K, n),
        "reward": rng.normal(1.0, 1.0, n),
        "weight": rng.uniform(0.5, 4.0, n),
    }


def learn(belief, rows, batches=None):
    """Rows into a belief: one by one, or in batches of these sizes; the belief."""
    n = len(rows["reward"])
    batches = np.ones(n, dtype=int) if batches is None else batches
    start = 0
    for size in batches:
        part = {role: v[start : start + size] for role, v in rows.items()}
        belief.update(part["x"], part["arm"], part["reward"], part["weight"])
        start += size
    assert start == n
    return belief
