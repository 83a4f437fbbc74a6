"""Smooth functions, trends and media."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from formulaic import model_matrix

import bayesbandit as bb
from published import Handed, published


@published("Solin and Särkkä 2020; PyMC: Gaussian processes, HSGP basics")
def hsgp() -> Handed:
    rng = np.random.default_rng(26)
    x = np.sort(rng.uniform(0, 10, 120))
    y = np.sin(x) + 0.3 * rng.normal(size=120)
    with pm.Model() as model:
        X = pm.Data("X", x[:, None], dims=("obs_id", "column"))
        ell = pm.InverseGamma("ell", 4, 5)
        eta = pm.Exponential("eta", 1)
        cov_func = eta**2 * pm.gp.cov.Matern52(input_dim=1, ls=ell)
        gp = pm.gp.HSGP(m=[20], L=[8.0], cov_func=cov_func)
        f = gp.prior("f", X=X, dims="obs_id")
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", mu=f, sigma=sigma, observed=y, dims="obs_id")
    handed = bb.RewardModel.from_pymc(model, "f", rows={"X": lambda x: x})
    return Handed(model, handed, x[:, None], y)


@published("McElreath 2020, ch. 4 (cherry blossoms); PyMC: splines")
def splines() -> Handed:
    rng = np.random.default_rng(27)
    year = np.sort(rng.uniform(0, 1, 150))
    day = 100 + 5 * np.sin(6 * year) + 2 * rng.normal(size=150)
    B = np.asarray(model_matrix("bs(year, df=8) - 1", pd.DataFrame({"year": year})))
    with pm.Model(coords={"splines": np.arange(8)}) as model:
        a = pm.Normal("a", 100, 5)
        w = pm.Normal("w", mu=0, sigma=3, size=8, dims="splines")
        mu = pm.Deterministic("mu", a + pm.math.dot(B, w.T))
        sigma = pm.Exponential("sigma", 1)
        pm.Normal("D", mu=mu, sigma=sigma, observed=day)
    handed = bb.RewardModel.from_pymc(model, "mu", rows=[(B, lambda x: x)])
    return Handed(model, handed, B, day)


@published("Taylor and Letham 2018 (Prophet); PyMC: change of slope")
def change_of_slope() -> Handed:
    rng = np.random.default_rng(28)
    t = np.linspace(0, 1, 120)
    s = np.linspace(0, 1, 7)[1:-1]
    y = 1 + 2 * t - 3 * np.maximum(t - 0.5, 0) + 0.2 * rng.normal(size=120)
    A = (t[:, None] > s) * 1.0
    with pm.Model(coords={"changepoint": np.arange(5)}) as model:
        time = pm.Data("t", t, dims="time")
        changes = pm.Data("A", A, dims=("time", "changepoint"))
        k = pm.Normal("k", 0, 2)
        m = pm.Normal("m", 0, 2)
        delta = pm.Laplace("delta", 0, 0.5, dims="changepoint")
        growth = k + pm.math.dot(changes, delta)
        offset = m + pm.math.dot(changes, -s * delta)
        trend = pm.Deterministic("trend", growth * time + offset, dims="time")
        pm.Normal("y", trend, pm.HalfNormal("sigma", 0.5), observed=y, dims="time")
    rows = {"t": 0, "A": lambda x: pt.cast(x[:, 0, None] > s, "float64")}
    handed = bb.RewardModel.from_pymc(model, "trend", rows=rows)
    return Handed(model, handed, t[:, None], y)


@published("PyMC: Gaussian random walk (a trend over weeks)")
def random_walk_trend() -> Handed:
    rng = np.random.default_rng(29)
    week = np.arange(150) % 15
    y = np.cumsum(0.3 * rng.normal(size=15))[week] + 0.5 * rng.normal(size=150)
    with pm.Model(coords={"week": np.arange(15)}) as model:
        week_idx = pm.Data("week_idx", week, dims="obs")
        step = pm.HalfNormal("step", 0.5)
        init = pm.Normal.dist(0, 1)
        level = pm.GaussianRandomWalk("level", mu=0, sigma=step, init_dist=init, dims="week")
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", level[week_idx], sigma, observed=y, dims="obs")
    handed = bb.RewardModel.from_pymc(model, rows={"week_idx": 0})
    return Handed(model, handed, week[:, None].astype(float), y)


def media() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return spend (n, 2), a control and sales of 130 weeks."""
    rng = np.random.default_rng(30)
    spend = rng.gamma(2.0, 0.25, (130, 2))
    control = rng.normal(size=130)
    saturated = np.tanh(np.array([1.5, 2.5]) * spend) @ [2.0, 1.0]
    return spend, control, 3 + saturated + 0.4 * control + 0.3 * rng.normal(size=130)


LAGS = 4


@published(
    "Jin et al. 2017; PyMC-Marketing: MMM, geometric adstock and saturation",
    "more: its weeks follow each other; the spend of the last weeks is in the context",
)
def mmm_adstock() -> Handed:
    spend, _, sales = media()
    lagged = np.stack([np.roll(spend[:, 0], lag) for lag in range(LAGS)], axis=1)
    lagged[np.arange(130)[:, None] < np.arange(LAGS)] = 0.0
    with pm.Model(coords={"lag": np.arange(LAGS)}) as model:
        spent = pm.Data("spent", lagged, dims=("date", "lag"))
        intercept = pm.Normal("intercept", mu=3, sigma=2)
        alpha = pm.Beta("alpha", 1, 3)
        lam = pm.Gamma("lam", alpha=3, beta=1)
        beta = pm.HalfNormal("beta", sigma=2)
        weights = alpha ** np.arange(LAGS)
        adstock = pm.math.dot(spent, weights / weights.sum())
        mu = intercept + beta * pm.math.tanh(lam * adstock / 2)
        pm.Normal("y", mu, pm.HalfNormal("sigma", 1), observed=sales, dims="date")
    handed = bb.RewardModel.from_pymc(model, rows={"spent": lambda x: x})
    return Handed(model, handed, lagged, sales)
