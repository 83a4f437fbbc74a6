"""Groups that learn of each other."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import bayesbandit as bb
from published import Handed, published

COUNTIES = [f"county {k}" for k in range(8)]


def radon() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return floor, county and log radon of 240 homes."""
    rng = np.random.default_rng(1)
    county = np.arange(240) % len(COUNTIES)
    floor = rng.integers(0, 2, 240).astype(float)
    level = 1.3 + 0.4 * rng.normal(size=len(COUNTIES))
    slope = -0.7 + 0.3 * rng.normal(size=len(COUNTIES))
    return floor, county, level[county] + slope[county] * floor + 0.7 * rng.normal(size=240)


@published("Gelman and Hill 2007, ch. 13; PyMC: multilevel modeling (varying slopes)")
def radon_slopes_centred() -> Handed:
    floor, county, log_radon = radon()
    with pm.Model(coords={"county": COUNTIES, "obs_id": np.arange(240)}) as model:
        floor_idx = pm.Data("floor_idx", floor, dims="obs_id")
        county_idx = pm.Data("county_idx", county, dims="obs_id")
        mu_a = pm.Normal("mu_a", mu=0.0, sigma=10.0)
        sigma_a = pm.Exponential("sigma_a", 1)
        mu_b = pm.Normal("mu_b", mu=0.0, sigma=10.0)
        sigma_b = pm.Exponential("sigma_b", 1)
        alpha = pm.Normal("alpha", mu=mu_a, sigma=sigma_a, dims="county")
        beta = pm.Normal("beta", mu=mu_b, sigma=sigma_b, dims="county")
        y_hat = alpha[county_idx] + beta[county_idx] * floor_idx
        sigma_y = pm.Exponential("sigma_y", 1)
        pm.Normal("y_like", mu=y_hat, sigma=sigma_y, observed=log_radon, dims="obs_id")
    rows = {"floor_idx": 0, "county_idx": lambda arm: arm}
    handed = bb.RewardModel.from_pymc(model, rows=rows, arm_dim="county")
    return Handed(model, handed, floor[:, None], log_radon, county)


@published("PyMC: multilevel modeling (varying slopes, non-centred)")
def radon_slopes_non_centred() -> Handed:
    floor, county, log_radon = radon()
    with pm.Model(coords={"county": COUNTIES, "obs_id": np.arange(240)}) as model:
        floor_idx = pm.Data("floor_idx", floor, dims="obs_id")
        county_idx = pm.Data("county_idx", county, dims="obs_id")
        mu_a = pm.Normal("mu_a", mu=0.0, sigma=10.0)
        sigma_a = pm.Exponential("sigma_a", 1)
        z_a = pm.Normal("z_a", mu=0, sigma=1, dims="county")
        alpha = pm.Deterministic("alpha", mu_a + z_a * sigma_a, dims="county")
        mu_b = pm.Normal("mu_b", mu=0.0, sigma=10.0)
        sigma_b = pm.Exponential("sigma_b", 1)
        z_b = pm.Normal("z_b", mu=0, sigma=1, dims="county")
        beta = pm.Deterministic("beta", mu_b + z_b * sigma_b, dims="county")
        y_hat = alpha[county_idx] + beta[county_idx] * floor_idx
        sigma = pm.Exponential("sigma", 1)
        pm.Normal("y", mu=y_hat, sigma=sigma, observed=log_radon, dims="obs_id")
    rows = {"floor_idx": 0, "county_idx": lambda arm: arm}
    handed = bb.RewardModel.from_pymc(model, rows=rows, arm_dim="county")
    return Handed(model, handed, floor[:, None], log_radon, county)


@published("McElreath 2020, ch. 14; PyMC: multilevel modeling (covariation, LKJ)")
def lkj_correlated_slopes() -> Handed:
    floor, county, log_radon = radon()
    coords = {"county": COUNTIES, "param": ["alpha", "beta"], "obs_id": np.arange(240)}
    with pm.Model(coords=coords) as model:
        floor_idx = pm.Data("floor_idx", floor, dims="obs_id")
        county_idx = pm.Data("county_idx", county, dims="obs_id")
        sd_dist = pm.Exponential.dist(0.5, shape=2)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=sd_dist, compute_corr=True)
        mu_alpha_beta = pm.Normal("mu_alpha_beta", mu=0.0, sigma=5.0, dims="param")
        z = pm.Normal("z", 0.0, 1.0, dims=("param", "county"))
        alpha_beta = pm.Deterministic("alpha_beta", pt.dot(chol, z).T, dims=("county", "param"))
        mu = (
            mu_alpha_beta[0]
            + alpha_beta[county_idx, 0]
            + (mu_alpha_beta[1] + alpha_beta[county_idx, 1]) * floor_idx
        )
        sigma = pm.Exponential("sigma", 1.0)
        pm.Normal("y", mu, sigma=sigma, observed=log_radon, dims="obs_id")
    rows = {"floor_idx": 0, "county_idx": lambda arm: arm}
    handed = bb.RewardModel.from_pymc(model, rows=rows, arm_dim="county")
    return Handed(model, handed, floor[:, None], log_radon, county)


@published("Baio and Blangiardo 2010; PyMC: a hierarchical model for rugby prediction")
def rugby() -> Handed:
    rng = np.random.default_rng(2)
    teams = ["Wales", "France", "Ireland", "Scotland", "Italy", "England"]
    home, away = (of.ravel() for of in np.divmod(np.arange(36), 6))
    home, away = (np.tile(of[home != away], 3) for of in (home, away))
    attack, defence = 0.3 * rng.normal(size=(2, 6))
    points = rng.poisson(np.exp(2.8 + 0.2 + attack[home] + defence[away]))
    with pm.Model(coords={"team": teams}) as model:
        home_team = pm.Data("home_team", home, dims="match")
        away_team = pm.Data("away_team", away, dims="match")
        home_advantage = pm.Normal("home", mu=0, sigma=1)
        sd_att = pm.HalfStudentT("sd_att", nu=3, sigma=2.5)
        sd_def = pm.HalfStudentT("sd_def", nu=3, sigma=2.5)
        intercept = pm.Normal("intercept", mu=3, sigma=1)
        atts_star = pm.Normal("atts_star", mu=0, sigma=sd_att, dims="team")
        defs_star = pm.Normal("defs_star", mu=0, sigma=sd_def, dims="team")
        atts = pm.Deterministic("atts", atts_star - pt.mean(atts_star), dims="team")
        defs = pm.Deterministic("defs", defs_star - pt.mean(defs_star), dims="team")
        home_theta = pt.exp(intercept + home_advantage + atts[home_team] + defs[away_team])
        pm.Poisson("home_points", mu=home_theta, observed=points, dims="match")
    rows = {"home_team": lambda arm: arm, "away_team": 0}
    handed = bb.RewardModel.from_pymc(model, rows=rows, arm_dim=None)
    return Handed(model, handed, away[:, None].astype(float), points, home)


@published(
    "Rubin 1981; Gelman et al. 2013, ch. 5",
    "more: its rows are its arms; pm.Data for the school and the standard error of each row",
)
def eight_schools() -> Handed:
    effect = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    error = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
        school = pm.Data("school_idx", np.arange(8), dims="row_of_school")
        sigma = pm.Data("sigma", error, dims="row_of_school")
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        z = pm.Normal("z", 0, 1, dims="school")
        theta = pm.Deterministic("theta", mu + tau * z, dims="school")
        pm.Normal("y", theta[school], sigma, observed=effect, dims="row_of_school")
    rows = {"school_idx": lambda arm: arm, "sigma": 0}
    handed = bb.RewardModel.from_pymc(model, rows=rows, arm_dim="school")
    return Handed(model, handed, error[:, None], effect, np.arange(8))


@published("PyMC-Marketing and PyMC Labs: hierarchical price elasticity")
def price_elasticity() -> Handed:
    rng = np.random.default_rng(3)
    product = np.arange(200) % 5
    log_price = rng.normal(0, 0.3, 200)
    elasticity = -1.5 + 0.4 * rng.normal(size=5)
    log_sales = 3 + 0.5 * rng.normal(size=5)[product] + elasticity[product] * log_price
    log_sales = log_sales + 0.3 * rng.normal(size=200)
    with pm.Model(coords={"product": list("abcde")}) as model:
        price = pm.Data("log_price", log_price, dims="obs")
        product_idx = pm.Data("product_idx", product, dims="obs")
        mu_intercept = pm.Normal("mu_intercept", 3, 1)
        sigma_intercept = pm.HalfNormal("sigma_intercept", 1)
        mu_slope = pm.Normal("mu_slope", -1, 1)
        sigma_slope = pm.HalfNormal("sigma_slope", 0.5)
        offset_intercept = pm.Normal("offset_intercept", 0, 1, dims="product")
        offset_slope = pm.Normal("offset_slope", 0, 1, dims="product")
        intercept = mu_intercept + sigma_intercept * offset_intercept
        slope = mu_slope + sigma_slope * offset_slope
        mu = pm.Deterministic("mu", intercept[product_idx] + slope[product_idx] * price, dims="obs")
        pm.Normal("log_sales", mu, pm.HalfNormal("sigma", 0.5), observed=log_sales, dims="obs")
    rows = {"log_price": 0, "product_idx": lambda arm: arm}
    handed = bb.RewardModel.from_pymc(model, "mu", rows=rows, arm_dim="product")
    return Handed(model, handed, log_price[:, None], log_sales, product)
