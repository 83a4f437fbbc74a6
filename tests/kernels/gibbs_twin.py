"""The Gibbs sampler a second time, in dense textbook algebra, and its posterior by quadrature.

The twin takes its random numbers in the order of the kernels, so the same generator gives the same
chain.
"""

import numpy as np
from scipy import stats
from scipy.special import exp1

from bayesbandit.kernels.gibbs import mixture as gibbs
from bayesbandit.kernels.gibbs.scales import GAMMA, HALF_CAUCHY, KNOWN

VARIANTS = {
    "normal": {"kind": gibbs.FIXED},
    "normal, flat column": {"kind": gibbs.FIXED, "flat": True},
    "normal-inverse-gamma": {"kind": gibbs.FIXED, "noise": (2.0, 1.5)},
    "normal-inverse-gamma, flat column": {"kind": gibbs.FIXED, "noise": (2.0, 1.5), "flat": True},
    "normal, free noise": {"kind": gibbs.FIXED, "noise": (2.0, 1.5), "scaled": False},
    "ridge, gamma": {"kind": gibbs.RIDGE, "noise": (2.0, 1.5), "gamma": (2.0, 1.0)},
    "ridge, half-Cauchy": {"kind": gibbs.RIDGE, "scaled": False, "half_cauchy": 0.7},
    "laplace, known noise": {"kind": gibbs.LAPLACE, "scaled": False},
    "laplace": {"kind": gibbs.LAPLACE, "scaled": False, "noise": (2.0, 1.5)},
    "laplace, gamma": {
        "kind": gibbs.LAPLACE, "scaled": False, "noise": (2.0, 1.5), "gamma": (2.0, 1.0)
    },
    "laplace, half-Cauchy": {
        "kind": gibbs.LAPLACE, "scaled": False, "noise": (2.0, 1.5), "half_cauchy": 0.7
    },
    "park-casella": {"kind": gibbs.LAPLACE, "noise": (2.0, 1.5)},
    "park-casella, gamma": {"kind": gibbs.LAPLACE, "noise": (2.0, 1.5), "gamma": (2.0, 1.0)},
    "park-casella, 1/σ²": {"kind": gibbs.LAPLACE, "noise": (0.0, 0.0), "gamma": (2.0, 1.0)},
    "park-casella, flat column": {
        "kind": gibbs.LAPLACE, "noise": (2.0, 1.5), "gamma": (2.0, 1.0), "flat": True
    },
    "horseshoe": {"kind": gibbs.HORSESHOE, "noise": (2.0, 1.5), "half_cauchy": 1.0},
    "horseshoe, known": {"kind": gibbs.HORSESHOE},
    "horseshoe, free noise": {
        "kind": gibbs.HORSESHOE, "scaled": False, "noise": (2.0, 1.5), "half_cauchy": 1.0
    },
    "horseshoe, flat column": {
        "kind": gibbs.HORSESHOE, "noise": (2.0, 1.5), "half_cauchy": 1.0, "flat": True
    },
}  # fmt: skip


def start(data, prior, lambda2=1.0, sigma2=None):
    """A state from which to sweep: λ² and σ² as given, the scales as under the prior, any θ
    without a 0.

    An unknown σ² begins at the mean square of the rewards unless it is given.
    """
    if not prior.noise_known:
        gibbs.check_noise(data, prior)
    if sigma2 is None:
        n = data.r.size if isinstance(data, gibbs.Rows) else data.n
        sigma2 = data.rr / n
    d, scale = prior.fixed.size, 0.5 if prior.kind == gibbs.LAPLACE else 1.0  # E τ² = 2/λ²
    inv_tau2 = np.where(prior.moving, scale * lambda2, prior.fixed)
    numbers = (np.array([float(v)]) for v in (lambda2, prior.rate, sigma2))
    return gibbs.ScaleState(np.linspace(-1.0, 1.7, d), inv_tau2, np.ones(d), *numbers)


def prior_of(name, d, mixed=False):
    """The variant's prior of d coefficients; `mixed`: the last has a known scale, without σ²."""
    options = dict(VARIANTS[name])
    flat, kind = options.pop("flat", False), options.pop("kind")
    fixed = np.linspace(0.5, 2.0, d) if kind == gibbs.FIXED else np.full(d, np.nan)
    scaled = np.full(d, options.pop("scaled", True))
    if flat:
        fixed[0] = 0.0
    if mixed:
        fixed[-1], scaled[-1] = 0.4, False
    return gibbs.declare(d, kind, fixed=fixed, scaled=scaled, **options)


class Twin:
    """One chain; `from_rows` says in which of the two orders the random numbers of θ are taken."""

    def __init__(self, x, r, w, prior, state, from_rows):
        self.x, self.r, self.w, self.prior, self.from_rows = x, r, w, prior, from_rows
        self.theta, self.inv_tau2, self.inv_nu = (a.copy() for a in state[:3])
        self.lambda2, self.rate, self.sigma2 = (float(a[0]) for a in state[3:])

    def sweep(self, rng):
        self.draw_scales(rng)
        self.draw_theta(rng)

    def draw_scales(self, rng):
        p, move = self.prior, self.prior.moving
        if p.kind == gibbs.FIXED:
            return
        q = self.theta**2 / np.where(p.scaled, self.sigma2, 1.0)
        if p.hyper != KNOWN:
            rate = self.rate if p.hyper == HALF_CAUCHY else p.rate
            if p.kind == gibbs.LAPLACE:
                a, b = p.shape + move.sum(), rate + np.sum(1.0 / self.inv_tau2[move]) / 2
            else:
                local = self.inv_tau2[move] / self.lambda2
                a, b = p.shape + move.sum() / 2, rate + np.sum(q[move] * local) / 2
            self.lambda2 = rng.gamma(a) / b
            if p.hyper == HALF_CAUCHY:
                self.rate = rng.exponential() / (p.rate + self.lambda2)
        if p.kind == gibbs.RIDGE:
            drawn = np.full(len(q), self.lambda2)
        elif p.kind == gibbs.LAPLACE:
            y, u = rng.standard_normal(len(q)) ** 2, rng.random(len(q))
            mean, shape = np.sqrt(self.lambda2 / q), self.lambda2
            root = np.sqrt(4 * mean * shape * y + mean**2 * y**2)
            small = mean + mean * (mean * y - root) / (2 * shape)
            drawn = np.where(u <= mean / (mean + small), small, mean**2 / small)
        else:
            e, other = rng.exponential(size=len(q)), rng.exponential(size=len(q))
            omega2 = (self.inv_nu + q * self.lambda2 / 2) / e
            self.inv_nu = other / (1 + 1 / omega2)
            drawn = self.lambda2 / omega2
        self.inv_tau2[move] = drawn[move]

    def draw_theta(self, rng):
        p, x, r, w, n = self.prior, self.x, self.r, self.w, len(self.r)
        flat = self.inv_tau2 == 0.0
        free = not (p.scaled | flat).all()
        if not p.noise_known and not free:
            F, y = (np.sqrt(w) * x[:, flat].T).T, np.sqrt(w) * r
            M = np.eye(n) + (x[:, ~flat] / self.inv_tau2[~flat]) @ x[:, ~flat].T * np.sqrt(
                np.outer(w, w)
            )
            e = y - F @ np.linalg.solve(F.T @ np.linalg.solve(M, F), F.T @ np.linalg.solve(M, y))
            self.draw_sigma2((n - flat.sum()) / 2, e @ np.linalg.solve(M, e), rng)
        precision = self.inv_tau2 / np.where(p.scaled, self.sigma2, 1.0)
        x, r = x * np.sqrt(w / self.sigma2)[:, None], r * np.sqrt(w / self.sigma2)
        z = rng.standard_normal(len(precision))
        if self.from_rows:
            delta, F, X = rng.standard_normal(n), x[:, flat], x[:, ~flat]
            D = np.diag(1.0 / precision[~flat])
            M = np.eye(n) + X @ D @ X.T
            H = F.T @ np.linalg.solve(M, F)
            theta_F = np.linalg.solve(H, F.T @ np.linalg.solve(M, r))
            theta_F += np.linalg.solve(np.linalg.cholesky(H).T, z[flat])
            u = np.sqrt(D) @ z[~flat]
            self.theta[flat] = theta_F
            self.theta[~flat] = u + D @ X.T @ np.linalg.solve(M, r - F @ theta_F - X @ u - delta)
        else:
            A = x.T @ x + np.diag(precision)
            self.theta = np.linalg.solve(A, x.T @ r)
            self.theta += np.linalg.solve(np.linalg.cholesky(A).T, z)
        if not p.noise_known and free:
            rss = self.w @ (self.r - self.x @ self.theta) ** 2
            penalty = (self.theta**2 * self.inv_tau2)[p.scaled & ~flat]
            self.draw_sigma2((n + len(penalty)) / 2, rss + penalty.sum(), rng)

    def draw_sigma2(self, half_count, loss, rng):
        shape = self.prior.noise_shape + half_count
        self.sigma2 = (self.prior.noise_scale + loss / 2) / rng.gamma(shape)


def log_coefficient(theta, prior, lambda2, sigma2):
    """log p(θ | λ², σ²) of one coefficient, its own scale integrated out."""
    s = sigma2 if prior.scaled[0] else 1.0
    if prior.kind == gibbs.FIXED:
        return stats.norm.logpdf(theta, scale=np.sqrt(s / prior.fixed[0]))
    b = np.sqrt(s / lambda2)
    if prior.kind == gibbs.RIDGE:
        return stats.norm.logpdf(theta, scale=b)
    if prior.kind == gibbs.LAPLACE:
        return stats.laplace.logpdf(theta, scale=b)
    t = 0.5 * (theta / b) ** 2
    near = np.minimum(t, 500.0)
    return np.where(t < 500.0, near + np.log(exp1(near)), -np.log(t + 1.0)) - np.log(b)


def quadrature(x, r, prior, lambda2, sigma2):
    """Means and sds of θ, log λ² and log σ² for one coefficient, on a grid."""
    centre, spread = x @ r / (x @ x), 1.0 / np.sqrt(x @ x)
    fine = spread * np.geomspace(1e-6, 1.0, 80)  # the prior may peak at 0
    grid = np.sort(np.concatenate([centre + spread * np.linspace(-20, 20, 201), -fine, fine]))
    theta = grid[:, None, None]
    log_lambda2, log_sigma2 = (
        np.full((1, 1, 1), np.log(lambda2)),
        np.full((1, 1, 1), np.log(sigma2)),
    )
    if prior.hyper != KNOWN:
        log_lambda2 = np.linspace(-16.0, 20.0, 120)[None, :, None]
    if not prior.noise_known:
        log_sigma2 = np.linspace(-4.0, 6.0, 60)[None, None, :]
    l2, s2 = np.exp(log_lambda2), np.exp(log_sigma2)
    loss = np.sum((r[:, None] - x[:, None] * grid) ** 2, axis=0)[:, None, None]
    log_p = -0.5 * loss / s2 - 0.5 * len(r) * log_sigma2 + log_coefficient(theta, prior, l2, s2)
    if prior.hyper == GAMMA:
        log_p = log_p + stats.gamma.logpdf(l2, prior.shape, scale=1.0 / prior.rate) + log_lambda2
    elif prior.hyper == HALF_CAUCHY:
        log_p = log_p - np.log1p(prior.rate / l2) - 0.5 * log_lambda2
    if not prior.noise_known:
        log_p = log_p - prior.noise_shape * log_sigma2 - prior.noise_scale / s2
    p = np.exp(log_p - log_p.max()) * np.gradient(grid)[:, None, None]
    p /= p.sum()
    moments = []
    for v in (theta, log_lambda2, log_sigma2):
        mean = np.sum(p * v)
        moments.append((mean, np.sqrt(np.sum(p * (v - mean) ** 2))))
    return moments
