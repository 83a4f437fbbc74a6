"""Positive, bounded, heavy-tailed and mixed rewards; many predictors."""

import numpy as np
import pymc as pm
import pymc_extras as pmx
import pytensor.tensor as pt

import bayesbandit as bb
from published import Handed, published


def lifetimes(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two predictors (n, 2) and Weibull lifetimes of 150 persons."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(0, 2, 150), rng.normal(size=150)]).astype(float)
    return x, np.exp(1.0 + x @ [0.5, -0.3]) * rng.weibull(1.5, 150)


@published("PyMC: parametric survival regression (Weibull), all events seen")
def weibull_aft() -> Handed:
    x, time = lifetimes(15)
    with pm.Model(coords={"predictor": ["treated", "age"]}) as model:
        X = pm.Data("X", x, dims=("person", "predictor"))
        alpha = pm.Exponential("alpha", 1)
        intercept = pm.Normal("intercept", 0, 2)
        beta = pm.Normal("beta", 0, 1, dims="predictor")
        eta = pm.math.exp(intercept + pm.math.dot(X, beta))
        pm.Weibull("time", alpha=alpha, beta=eta, observed=time, dims="person")
    handed = bb.RewardModel.from_pymc(model, rows={"X": lambda x: x})
    return Handed(model, handed, x, time)


@published(
    "PyMC: Bayesian survival (Weibull AFT) with pm.Censored, a limit for each row",
    "more: a pm.Deterministic of the mean time, which is not that of the censored one",
)
def weibull_aft_censored() -> Handed:
    x, time = lifetimes(16)
    limit = np.random.default_rng(17).uniform(2.0, 8.0, 150)
    with pm.Model(coords={"predictor": ["treated", "age"]}) as model:
        X = pm.Data("X", x, dims=("person", "predictor"))
        followed = pm.Data("followed", limit, dims="person")
        alpha = pm.Exponential("alpha", 1)
        intercept = pm.Normal("intercept", 0, 2)
        beta = pm.Normal("beta", 0, 1, dims="predictor")
        eta = pm.math.exp(intercept + pm.math.dot(X, beta))
        pm.Deterministic("mean_time", eta * pm.math.exp(pt.gammaln(1 + 1 / alpha)), dims="person")
        latent = pm.Weibull.dist(alpha=alpha, beta=eta)
        pm.Censored(
            "time", latent, lower=None, upper=followed, observed=np.minimum(time, limit),
            dims="person",
        )  # fmt: skip
    rows = {"X": lambda x: x[:, :2], "followed": 2}
    handed = bb.RewardModel.from_pymc(model, "mean_time", rows=rows)
    return Handed(model, handed, np.column_stack([x, limit]), np.minimum(time, limit))


@published(
    "PyMC: Bayesian parametric survival analysis (Gumbel of log times, masks)",
    "arguments: which rewards are observed, and which are in the potential",
)
def weibull_aft_masked() -> Handed:
    x, time = lifetimes(18)
    limit = np.random.default_rng(19).uniform(2.0, 8.0, 150)
    seen = time < limit
    y = np.log(np.minimum(time, limit))
    with pm.Model(coords={"predictor": ["treated", "age"]}) as model:
        s = pm.HalfNormal("s", 5.0)
        intercept = pm.Normal("intercept", 0, 5)
        beta = pm.Normal("beta", mu=0.0, sigma=5, dims="predictor")
        eta = pm.Deterministic("eta", intercept + beta.dot(x.T))
        pm.Gumbel("events", eta[seen], s, observed=y[seen])
        pm.Potential("censored", pt.log1mexp(-pt.exp(-(y[~seen] - eta[~seen]) / s)))
    rows = [
        (x.T, lambda x: x[:, :2].T),
        (seen, lambda x: x[:, 2] > 0),
        (~seen, lambda x: x[:, 2] <= 0),
        ("events", lambda x, reward: reward[x[:, 2] > 0]),
        (y[~seen], lambda x, reward: reward[x[:, 2] <= 0]),
    ]
    handed = bb.RewardModel.from_pymc(model, "eta", "events", rows=rows)
    return Handed(model, handed, np.column_stack([x, seen]), y)


@published("McCullagh and Nelder 1989, ch. 8 (gamma claims), with a log link")
def gamma_claims() -> Handed:
    rng = np.random.default_rng(20)
    age = rng.normal(size=150)
    region = np.arange(150) % 4
    mean = np.exp(1.0 + 0.3 * age + np.array([0.0, 0.2, -0.3, 0.4])[region])
    claim = rng.gamma(2.0, mean / 2.0)
    with pm.Model(coords={"region": list("NSEW")}) as model:
        age_data = pm.Data("age", age, dims="claim")
        region_idx = pm.Data("region_idx", region, dims="claim")
        level = pm.Normal("level", 0, 2, dims="region")
        slope = pm.Normal("slope", 0, 1)
        shape = pm.Exponential("shape", 0.5)
        mu = pm.Deterministic("mu", pm.math.exp(level[region_idx] + slope * age_data), dims="claim")
        pm.Gamma("amount", alpha=shape, beta=shape / mu, observed=claim, dims="claim")
    rows = {"age": 0, "region_idx": lambda arm: arm}
    handed = bb.RewardModel.from_pymc(model, "mu", rows=rows, arm_dim="region")
    return Handed(model, handed, age[:, None], claim, region)


@published("Actuarial text books: log-normal severities by region")
def lognormal_claims() -> Handed:
    rng = np.random.default_rng(21)
    age = rng.normal(size=150)
    region = np.arange(150) % 4
    claim = np.exp(1.0 + 0.3 * age + np.array([0, 0.2, -0.3, 0.4])[region] + rng.normal(size=150))
    with pm.Model(coords={"region": list("NSEW")}) as model:
        age_data = pm.Data("age", age, dims="claim")
        region_idx = pm.Data("region_idx", region, dims="claim")
        tau = pm.HalfNormal("tau", 1)
        level = pm.Normal("level", 0, tau, dims="region")
        slope = pm.Normal("slope", 0, 1)
        sigma = pm.HalfNormal("sigma", 1)
        mu = level[region_idx] + slope * age_data
        pm.LogNormal("amount", mu=mu, sigma=sigma, observed=claim, dims="claim")
    rows = {"age": 0, "region_idx": lambda arm: arm}
    handed = bb.RewardModel.from_pymc(model, rows=rows, arm_dim="region")
    return Handed(model, handed, age[:, None], claim, region)


@published("Ferrari and Cribari-Neto 2004; bambi: beta regression")
def beta_regression() -> Handed:
    rng = np.random.default_rng(22)
    temperature = rng.normal(size=120)
    mean = 1 / (1 + np.exp(1.0 - 0.6 * temperature))
    share = rng.beta(mean * 12, (1 - mean) * 12)
    with pm.Model() as model:
        temp = pm.Data("temp", temperature, dims="obs")
        a = pm.Normal("a", 0, 1.5)
        b = pm.Normal("b", 0, 1)
        kappa = pm.Gamma("kappa", 2, 0.1)
        mu = pm.Deterministic("mu", pm.math.invlogit(a + b * temp), dims="obs")
        pm.Beta("y", alpha=mu * kappa, beta=(1 - mu) * kappa, observed=share, dims="obs")
    handed = bb.RewardModel.from_pymc(model, "mu", rows={"temp": 0})
    return Handed(model, handed, temperature[:, None], share)


@published("PyMC: GLM, robust linear regression (Student t)")
def robust_regression() -> Handed:
    rng = np.random.default_rng(23)
    x = rng.uniform(0, 1, 120)
    y = 1 + 2 * x + 0.5 * rng.standard_t(2, 120)
    with pm.Model() as model:
        xdata = pm.Data("x", x, dims="obs_id")
        intercept = pm.Normal("intercept", mu=0, sigma=1)
        slope = pm.Normal("slope", mu=0, sigma=1)
        mu = pm.Deterministic("mu", intercept + slope * xdata, dims="obs_id")
        sigma = pm.HalfCauchy("sigma", beta=10)
        nu = pm.Gamma("nu", 2, 0.1)
        pm.StudentT("likelihood", mu=mu, sigma=sigma, nu=nu, observed=y, dims="obs_id")
    handed = bb.RewardModel.from_pymc(model, "mu", rows={"x": 0})
    return Handed(model, handed, x[:, None], y)


@published("Hogg, Bovy and Lang 2010; PyMC: outliers as a mixture of two normals")
def outlier_mixture() -> Handed:
    rng = np.random.default_rng(24)
    x = rng.normal(size=120)
    outlier = rng.random(120) < 0.15
    y = 1 + 2 * x + np.where(outlier, 4.0, 0.5) * rng.normal(size=120)
    with pm.Model() as model:
        xdata = pm.Data("x", x, dims="obs_id")
        beta0 = pm.Normal("beta0", 0, 5)
        beta1 = pm.Normal("beta1", 0, 5)
        w = pm.Dirichlet("w", np.array([8.0, 2.0]))
        narrow = pm.HalfNormal("narrow", 1)
        mu = beta0 + beta1 * xdata
        parts = [pm.Normal.dist(mu, narrow), pm.Normal.dist(mu, 5.0)]
        pm.Mixture("y", w=w, comp_dists=parts, observed=y, dims="obs_id")
    handed = bb.RewardModel.from_pymc(model, rows={"x": 0})
    return Handed(model, handed, x[:, None], y)


def sparse() -> tuple[np.ndarray, np.ndarray]:
    """Return 12 predictors and the outcome. Two predictors matter."""
    rng = np.random.default_rng(25)
    x = rng.normal(size=(120, 12))
    return x, 1 + 2 * x[:, 0] - x[:, 1] + rng.normal(size=120)


@published("Carvalho, Polson and Scott 2010; PyMC examples: horseshoe (non-centred)")
def horseshoe() -> Handed:
    x, y = sparse()
    with pm.Model(coords={"predictors": [f"x{k}" for k in range(12)]}) as model:
        X = pm.Data("X", x, dims=("obs_id", "predictors"))
        tau = pm.HalfCauchy("tau", 0.1)
        lam = pm.HalfCauchy("lam", 1, dims="predictors")
        z = pm.Normal("z", 0, 1, dims="predictors")
        beta = pm.Deterministic("beta", tau * lam * z, dims="predictors")
        intercept = pm.Normal("intercept", 0, 5)
        sigma = pm.HalfNormal("sigma", 2)
        mu = pm.Deterministic("mu", intercept + X @ beta, dims="obs_id")
        pm.Normal("y", mu, sigma, observed=y, dims="obs_id")
    handed = bb.RewardModel.from_pymc(model, "mu", rows={"X": lambda x: x})
    return Handed(model, handed, x, y)


@published("Aguilar and Bürkner 2023; pymc-extras: R2D2M2CP")
def r2d2() -> Handed:
    x, y = sparse()
    with pm.Model(coords={"predictors": [f"x{k}" for k in range(12)]}) as model:
        X = pm.Data("X", x, dims=("obs_id", "predictors"))
        output_sigma = pm.HalfNormal("output_sigma", 2)
        _, beta = pmx.R2D2M2CP(
            "beta", output_sigma, np.ones(12), dims="predictors", r2=0.6, r2_std=0.2
        )
        intercept = pm.Normal("intercept", 0, 5)
        mu = intercept + X @ beta
        pm.Normal("y", mu, output_sigma, observed=y, dims="obs_id")
    handed = bb.RewardModel.from_pymc(model, rows={"X": lambda x: x})
    return Handed(model, handed, x, y)


@published(
    "Little and Rubin 2002; PyMC: missing predictors that are imputed",
    "more: refused, since imputed values belong to rows of the data",
)
def missing_predictor() -> Handed:
    x, y = sparse()
    seen = np.ma.masked_array(x[:, 0], np.arange(120) % 10 == 0)
    with pm.Model() as model:
        other = pm.Data("other", x[:, 1], dims="obs_id")
        mean_x = pm.Normal("mean_x", 0, 1)
        first = pm.Normal("first", mean_x, 1, observed=seen)
        b = pm.Normal("b", 0, 2, shape=3)
        mu = pm.Deterministic("mu", b[0] + b[1] * first + b[2] * other)
        pm.Normal("y", mu, pm.HalfNormal("sigma", 2), observed=y, dims="obs_id")
    handed = bb.RewardModel.from_pymc(model, "mu", "y", rows={"other": 1})
    return Handed(model, handed, x[:, :2], y)
