"""Counts, with many zeros or without, and choices among categories."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import ordered

import bayesbandit as bb
from published import Handed, published


def roaches() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return roach1, treatment and senior (n, 3), the exposure, and counts of 150 flats."""
    rng = np.random.default_rng(4)
    x = np.column_stack([rng.exponential(0.5, 150), rng.integers(0, 2, (150, 2))]).astype(float)
    exposure = rng.uniform(0.5, 2.0, 150)
    rate = exposure * np.exp(1.0 + x @ [0.6, -0.5, -0.3]) * rng.gamma(2.0, 0.5, 150)
    return x, exposure, rng.poisson(rate)


@published("Gelman and Hill 2007, ch. 8 (roaches, an offset)")
def poisson_offset() -> Handed:
    x, exposure, count = roaches()
    with pm.Model(coords={"predictor": ["roach1", "treatment", "senior"]}) as model:
        X = pm.Data("X", x, dims=("flat", "predictor"))
        log_exposure = pm.Data("log_exposure", np.log(exposure), dims="flat")
        intercept = pm.Normal("intercept", 0, 5)
        beta = pm.Normal("beta", 0, 2.5, dims="predictor")
        mu = pm.math.exp(intercept + X @ beta + log_exposure)
        pm.Poisson("y", mu=mu, observed=count, dims="flat")
    rows = {"X": lambda x: x[:, :3], "log_exposure": 3}
    handed = bb.RewardModel.from_pymc(model, rows=rows)
    return Handed(model, handed, np.column_stack([x, np.log(exposure)]), count)


def visits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a predictor and counts of 200 visits; many visitors buy nothing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=200)
    return x, rng.poisson(np.exp(0.8 + 0.4 * x)) * (rng.random(200) < 0.65)


@published("Mullahy 1986; PyMC: HurdlePoisson")
def hurdle_poisson() -> Handed:
    x, count = visits(5)
    with pm.Model() as model:
        x_data = pm.Data("x", x, dims="obs")
        a = pm.Normal("a", 0, 1.5)
        b = pm.Normal("b", 0, 1)
        psi = pm.Beta("psi", 1, 1)
        mu = pm.Deterministic("mu", pm.math.exp(a + b * x_data), dims="obs")
        pm.HurdlePoisson("y", psi=psi, mu=mu, observed=count, dims="obs")
    handed = bb.RewardModel.from_pymc(model, rows={"x": 0})
    return Handed(model, handed, x[:, None], count)


@published("Lambert 1992; McElreath 2020, ch. 12 (monks); PyMC: ZeroInflatedPoisson")
def zero_inflated_poisson() -> Handed:
    x, count = visits(7)
    with pm.Model() as model:
        x_data = pm.Data("x", x, dims="obs")
        al = pm.Normal("al", 0, 1)
        bl = pm.Normal("bl", 0, 1)
        ap = pm.Normal("ap", 0, 1.5)
        p = pm.math.invlogit(ap)
        lam = pm.math.exp(al + bl * x_data)
        pm.ZeroInflatedPoisson("y", psi=1 - p, mu=lam, observed=count, dims="obs")
    handed = bb.RewardModel.from_pymc(model, rows={"x": 0})
    return Handed(model, handed, x[:, None], count)


@published("McElreath 2020, ch. 12 (trolley); PyMC: regression models with ordered categories")
def ordered_logit() -> Handed:
    rng = np.random.default_rng(9)
    x = rng.integers(0, 2, (240, 3)).astype(float)
    latent = x @ [-0.7, -0.4, -0.8] + rng.logistic(size=240)
    rating = np.digitize(latent, [-2.0, -1.0, 0.3, 1.2])
    with pm.Model(coords={"predictor": ["action", "intention", "contact"]}) as model:
        X = pm.Data("X", x, dims=("obs", "predictor"))
        beta = pm.Normal("beta", 0, 0.5, dims="predictor")
        cutpoints = pm.Normal(
            "cutpoints", 0, 1.5, shape=4, transform=ordered, initval=np.arange(4) - 2.5
        )
        phi = X @ beta
        pm.OrderedLogistic("y", eta=phi, cutpoints=cutpoints, observed=rating, dims="obs")
    handed = bb.RewardModel.from_pymc(model, rows={"X": lambda x: x})
    return Handed(model, handed, x, rating)


def answers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return person, item and whether the answer is right, of 12 persons and 10 items, twice."""
    rng = np.random.default_rng(11)
    person, item = np.divmod(np.arange(240) % 120, 10)
    logit = rng.normal(size=12)[person] - rng.normal(size=10)[item]
    return person, item, (rng.random(240) < 1 / (1 + np.exp(-logit))).astype(int)


@published("Birnbaum 1968; Stan: IRT 2PL")
def irt_2pl() -> Handed:
    person, item, right = answers()
    coords = {"person": np.arange(12), "item": np.arange(10)}
    with pm.Model(coords=coords) as model:
        person_idx = pm.Data("person_idx", person, dims="answer")
        item_idx = pm.Data("item_idx", item, dims="answer")
        theta = pm.Normal("theta", 0, 1, dims="person")
        b = pm.Normal("b", 0, 1, dims="item")
        a = pm.LogNormal("a", 0.5, 0.5, dims="item")
        logit = a[item_idx] * (theta[person_idx] - b[item_idx])
        p = pm.Deterministic("p", pm.math.invlogit(logit), dims="answer")
        pm.Bernoulli("y", p=p, observed=right, dims="answer")
    rows = {"person_idx": 0, "item_idx": lambda arm: arm}
    handed = bb.RewardModel.from_pymc(model, "p", rows=rows, arm_dim="item")
    return Handed(model, handed, person[:, None].astype(float), right, item)


@published("McElreath 2020, ch. 12 (UCB admissions, beta-binomial)")
def beta_binomial() -> Handed:
    rng = np.random.default_rng(12)
    gender = np.arange(60) % 2
    applications = rng.integers(5, 30, 60)
    admit = rng.binomial(applications, rng.beta(2.0, 3.0, 60))
    with pm.Model(coords={"gender": ["female", "male"]}) as model:
        gid = pm.Data("gid", gender, dims="dept")
        N = pm.Data("N", applications, dims="dept")
        a = pm.Normal("a", 0.0, 1.5, dims="gender")
        phi = pm.Exponential("phi", 1.0)
        theta = pm.Deterministic("theta", phi + 2.0)
        pbar = pm.Deterministic("pbar", pm.math.invlogit(a), dims="gender")
        pm.BetaBinomial(
            "A", pbar[gid] * theta, (1.0 - pbar[gid]) * theta, N, observed=admit, dims="dept"
        )
    rows = {"gid": lambda arm: arm, "N": 0}
    handed = bb.RewardModel.from_pymc(model, rows=rows, arm_dim="gender")
    return Handed(model, handed, applications[:, None].astype(float), admit, gender)


@published("McElreath 2020, ch. 13 (reed frogs, a multilevel binomial)")
def binomial_tanks() -> Handed:
    rng = np.random.default_rng(13)
    tank = np.arange(48) % 12
    density = rng.choice([10, 25, 35], 48)
    survived = rng.binomial(density, 1 / (1 + np.exp(-1.0 - rng.normal(size=12)[tank])))
    with pm.Model(coords={"tank": np.arange(12)}) as model:
        tank_idx = pm.Data("tank_idx", tank, dims="obs")
        N = pm.Data("N", density, dims="obs")
        a_bar = pm.Normal("a_bar", 0.0, 1.5)
        sigma = pm.Exponential("sigma", 1.0)
        a = pm.Normal("a", a_bar, sigma, dims="tank")
        p = pm.math.invlogit(a[tank_idx])
        pm.Binomial("S", n=N, p=p, observed=survived, dims="obs")
    rows = {"tank_idx": lambda arm: arm, "N": 0}
    handed = bb.RewardModel.from_pymc(model, rows=rows, arm_dim="tank")
    return Handed(model, handed, density[:, None].astype(float), survived, tank)


@published("McElreath 2020, ch. 11 (chimpanzees)")
def chimpanzees() -> Handed:
    rng = np.random.default_rng(14)
    actor = np.arange(210) % 7
    treatment = rng.integers(0, 4, 210)
    logit = rng.normal(size=7)[actor] + 0.5 * rng.normal(size=4)[treatment]
    pulled = (rng.random(210) < 1 / (1 + np.exp(-logit))).astype(int)
    with pm.Model(coords={"actor": np.arange(7), "treatment": np.arange(4)}) as model:
        actor_idx = pm.Data("actor_idx", actor, dims="obs")
        treatment_idx = pm.Data("treatment_idx", treatment, dims="obs")
        a = pm.Normal("a", 0.0, 1.5, dims="actor")
        b = pm.Normal("b", 0.0, 0.5, dims="treatment")
        p = pm.Deterministic("p", pt.sigmoid(a[actor_idx] + b[treatment_idx]), dims="obs")
        pm.Binomial("pulled_left", 1, p, observed=pulled, dims="obs")
    rows = {"actor_idx": 0, "treatment_idx": lambda arm: arm}
    handed = bb.RewardModel.from_pymc(model, "p", rows=rows, arm_dim="treatment")
    return Handed(model, handed, actor[:, None].astype(float), pulled, treatment)
