"""The Gibbs engine: what it covers, what it refuses, and that it draws from the posterior."""

import numpy as np
import pymc as pm
import pytest
from arviz_stats.base import array_stats
from scipy import stats
from sklearn.datasets import load_diabetes

import bayesbandit as bb
from bayesbandit.declaring.priors import Prior
from bayesbandit.inference.gibbs.sampler import Gibbs, match
from bayesbandit.inference.plan import plan
from bayesbandit.model import RewardModel, reward_model
from tests.declarations import EACH, HALF, normal_rewards
from tests.inference.declared import rows

IG = Prior("InverseGamma", alpha=2, beta=2)


@reward_model(theta=EACH, sigma2=IG)
def plain(x, reward, weight, theta, sigma2):
    return normal_rewards(x @ theta, pm.math.sqrt(sigma2 / weight), reward)


@reward_model(theta=EACH, sigma=Prior("HalfNormal", sigma=1))
def deviation(x, reward, weight, theta, sigma):
    return normal_rewards(x @ theta, sigma / pm.math.sqrt(weight), reward)


@reward_model(lam=Prior("Gamma", alpha=2, beta=1), sigma2=IG)
def scaled_laplace(x, reward, weight, lam, sigma2):
    theta = pm.Laplace("theta", 0, pm.math.sqrt(sigma2 / lam), dims="feature")
    return normal_rewards(x @ theta, pm.math.sqrt(sigma2 / weight), reward)


def gallery(name, **priors):
    """A model of the gallery without its intercept."""
    return bb.load_model(name).with_priors(intercept=0, sigma2=IG, **priors)


conjugate_ridge = gallery("ridge", lam=2.0)
park_casella = gallery("bayesian_lasso", lambda2=2.0)
horseshoe, student = gallery("horseshoe"), gallery("student_t", theta=EACH)
hierarchical = gallery("hierarchical_ridge", tau2=IG)


def coefficients(name, **parameters):
    """Coefficients about 0, of this distribution."""
    return Prior(name, mu=0, **parameters, dims="feature")


HALF_EACH = Prior("HalfNormal", sigma=1, dims="feature")
CAUCHY, GAMMA = Prior("HalfCauchy", beta=1), Prior("Gamma", alpha=2, beta=1.8)
CAUCHY_EACH = Prior("HalfCauchy", beta=0.7, dims="feature")
CAUCHY_OF_CAUCHY = Prior("HalfCauchy", beta=CAUCHY, dims="feature")
LAPLACE = coefficients("Laplace", b=1)
OF_AN_SD = {
    "Exponential": {"lam": 1},
    "Gamma": {"alpha": 2, "beta": 1},
    "InverseGamma": {"alpha": 2, "beta": 1},
    "LogNormal": {"mu": 0, "sigma": 1},
    "Uniform": {"lower": 0, "upper": 2},
    "TruncatedNormal": {"mu": 1, "lower": 0},
}
MODELS = {
    "known noise": plain.with_priors(sigma2=1.0),
    "noise apart": plain,
    "ridge": conjugate_ridge,
    "laplace": plain.with_priors(theta=LAPLACE),
    "laplace, known noise": plain.with_priors(theta=LAPLACE, sigma2=0.7),
    "laplace, learnt scale": plain.with_priors(theta=coefficients("Laplace", b=CAUCHY)),
    "scaled laplace": scaled_laplace.with_priors(lam=2.0),
    "park casella": park_casella,
    "park casella, gamma": park_casella.with_priors(lambda2=GAMMA),
    "horseshoe": horseshoe,
    "horseshoe, half-Cauchy": plain.with_priors(theta=coefficients("Normal", sigma=CAUCHY_EACH)),
    "half-normal": deviation,
    "half-Cauchy": deviation.with_priors(sigma=CAUCHY),
    "half-Student": deviation.with_priors(sigma=Prior("HalfStudentT", nu=4, sigma=1)),
    "student": student,
    "student mixture": gallery("student_t_mixture", theta=EACH),
    "student prior": plain.with_priors(theta=coefficients("StudentT", nu=4, sigma=1)),
    "precision": plain.with_priors(sigma2=Prior("Gamma", alpha=2, beta=2)),
    "half-normal scale": plain.with_priors(sigma2=1.0, theta=coefficients("Normal", sigma=HALF)),
    "half-normal scales": plain.with_priors(theta=coefficients("Normal", sigma=HALF_EACH)),
    "laplace, half-normal scale": plain.with_priors(theta=coefficients("Laplace", b=HALF)),
    "half-Cauchy of half-Cauchy": deviation.with_priors(
        theta=coefficients("Normal", sigma=CAUCHY_OF_CAUCHY)
    ),
    "log-normal": plain.with_priors(sigma2=Prior("LogNormal", mu=0, sigma=1)),
    "half-Cauchy variance": plain.with_priors(sigma2=CAUCHY),
    "half-normal variance": plain.with_priors(sigma2=HALF),
    "bounded variance": plain.with_priors(sigma2=Prior("Uniform", lower=0.5, upper=2)),
    **{f"{k} sd": deviation.with_priors(sigma=Prior(k, **v)) for k, v in OF_AN_SD.items()},
}


def engine(model: RewardModel, data) -> Gibbs:
    """The model's engine, which it must have."""
    found = match(model.build(**data))
    assert isinstance(found, Gibbs), found
    return found


@reward_model(tau2=IG)
def offset(x, reward, tau2):
    """Neither weights nor the identity map."""
    theta = pm.Normal("theta", 0, pm.math.sqrt(tau2), dims="feature")
    return normal_rewards(1.0 + 0.5 * (x @ theta), 0.7, reward)


@reward_model(theta=EACH, sigma2=IG)
def averaged(x, reward, theta, sigma2):
    """A likelihood that is not a product over rows."""
    mu = x @ theta
    pm.Normal("reward", mu, 1, observed=reward, dims="row")
    pm.Potential("mean", -0.5 * pm.math.log(sigma2) - (reward - mu).sum() ** 2 / (2 * sigma2))
    return mu


@reward_model(tau2=IG)
def walk(x, reward, tau2):
    theta = pm.GaussianRandomWalk(
        "theta", sigma=pm.math.sqrt(tau2), init_dist=pm.Normal.dist(0, 1), dims="feature"
    )
    return normal_rewards(x @ theta, 1, reward)


@reward_model(tau2=IG)
def dense(x, reward, tau2):
    theta = pm.Normal("theta", 0, pm.math.sqrt(tau2), dims="feature")
    pm.Potential("sum", -0.5 * (theta.sum() - 1) ** 2)
    return normal_rewards(x @ theta, 1, reward)


BLOCKS = MODELS | {"hierarchical": hierarchical, "averaged": averaged, "offset": offset}
BLOCKS |= {"walk": walk, "dense": dense}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["park casella", "half-normal"])
def test_same_seed_same_draws(name):
    """Whatever the number of chains; more chains go on from fewer states, on more rows."""
    data = rows()
    found = engine(MODELS[name], data)
    runs = [found.sample(data, 20, chains, 10, seed=8).values for chains in (1, 2)]
    np.testing.assert_array_equal(runs[0]["theta"], runs[1]["theta"][:1])
    assert runs[1]["theta"].shape == (2, 20, 3)
    assert (runs[1]["theta"][0] != runs[1]["theta"][1]).all()
    state = found.sample(data, 5, 2, 20, seed=9).state
    again = found.sample(rows(n=50), 5, 3, seed=10, start=state)
    assert again.values["theta"].shape == (3, 5, 3)


@pytest.mark.slow
def test_diabetes():
    """Park and Casella (2008), diabetes: posterior medians at λ = .237; λ under Gamma(1, 1.78)."""
    X, y = load_diabetes(return_X_y=True)
    data = {"x": X - X.mean(axis=0), "reward": y - y.mean()}
    medians = [-3.3, -214.4, 523.9, 307.6, -171, -3.0, -154, 92, 520.7, 62.8]
    flat = Prior("InverseGamma", alpha=1e-6, beta=1e-6)
    fixed = park_casella.with_priors(lambda2=0.237**2, sigma2=flat)
    draws = engine(fixed, data).sample(data, 30_000, 2, 1000, seed=12).values
    np.testing.assert_allclose(np.median(draws["theta"], axis=(0, 1)), medians, atol=4)
    learnt = fixed.with_priors(lambda2=Prior("Gamma", alpha=1, beta=1.78))
    lam = np.sqrt(engine(learnt, data).sample(data, 30_000, 2, 1000, seed=13).values["lambda2"])
    np.testing.assert_allclose(
        np.quantile(lam, [0.5, 0.025, 0.975]), [0.278, 0.142, 0.486], atol=0.02
    )


@reward_model(theta=EACH, sigma=Prior("HalfNormal", sigma=1))
def log_normal(x, reward, weight, theta, sigma):
    pm.LogNormal("reward", x @ theta, sigma / pm.math.sqrt(weight), observed=reward, dims="row")
    return pm.math.exp(x @ theta + 0.5 * sigma**2)


@pytest.mark.slow
def test_log_normal_rewards_are_normal_ones_by_their_logarithms(rng):
    """The mean reward depends on σ and is no part of the likelihood: the same draws, to rounding,
    and mean rewards that are computed of them."""
    x, weight = rng.normal(size=(30, 3)), rng.uniform(0.5, 2.0, 30)
    logs = x @ np.array([0.5, -1.0, 0.2]) + 0.4 * rng.normal(size=30)
    ours = match(log_normal.build(x, np.exp(logs), weight))
    theirs = match(deviation.build(x, logs, weight))
    assert isinstance(ours, Gibbs)
    assert not ours.affine
    data = {"x": x, "weight": weight}
    one = ours.sample(data | {"reward": np.exp(logs)}, 100, 2, 50)
    two = theirs.sample(data | {"reward": logs}, 100, 2, 50)
    for name in ("theta", "sigma"):
        np.testing.assert_allclose(one.values[name], two.values[name], rtol=1e-6)
    fitted = bb.fit(log_normal, x, np.exp(logs), weight, draws=300, chains=4, seed=0)
    theta, sigma = fitted.draws["theta"], fitted.draws["sigma"]
    means = np.exp(theta @ x[:2].T + 0.5 * sigma[:, None] ** 2)
    np.testing.assert_allclose(fitted.mean(x[:2]), means.mean(axis=0), rtol=1e-9)


@pytest.mark.slow
def test_the_common_scale_of_a_horseshoe_mixes(rng):
    """It moves together with those of each coefficient: without, 130 draws of 4000 count."""
    d, n = 20, 500
    found = plan(horseshoe, d, None, "gibbs").method
    x = rng.normal(size=(n, d))
    data = {"x": x, "reward": x[:, :3] @ [2.0, -1.0, 1.0] + rng.normal(size=n)}
    whole, _ = found.target(found.data(**data))
    of = np.zeros(whole.size)
    of[whole.places["tau2"]], of[whole.places["lambda2"]] = 1.0, -1.0
    assert (whole.moves.speed == of).all(axis=1).any()
    draws = np.log(found.sample(data, 4000, 2, seed=1).values["tau2"])
    assert array_stats.ess(draws, chain_axis=0, draw_axis=1) > 400


@pytest.mark.parametrize("known", [True, False])
def test_coefficients_of_many_sds_of_the_noise_have_the_sds_of_least_squares(known, rng):
    """Coefficients are near 1, and the noise is 1e-9. A joint step multiplies all of them."""
    noise = 1e-9

    @bb.reward_model(tau2=IG)
    def precise(x, reward, tau2):
        theta = pm.Normal("theta", 0, pm.math.sqrt(tau2), dims="feature")
        sigma2 = noise**2 if known else pm.InverseGamma("sigma2", 20, 19 * noise**2)
        return normal_rewards(x @ theta, pm.math.sqrt(sigma2), reward)

    x = rng.normal(size=(40, 3))
    reward = x @ np.array([1.0, -0.5, 0.3]) + noise * rng.normal(size=40)
    draws = engine(precise, {"x": x, "reward": reward}).sample(
        {"x": x, "reward": reward}, 2000, 1, seed=0
    )
    sds = noise * np.sqrt(np.diag(np.linalg.inv(x.T @ x)))
    np.testing.assert_allclose(draws.values["theta"][0].std(axis=0), sds, rtol=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.3, 0.01])
def test_the_scale_of_a_random_walk_mixes(scale, rng):
    """The scale's mean against quadrature, with the walk integrated out."""
    D, n = 10, 100

    @bb.reward_model(tau=bb.Prior("HalfNormal", sigma=1.0))
    def walk(x, reward, tau):
        first = pm.Normal.dist(0, 1)
        theta = pm.GaussianRandomWalk("theta", 0, tau, init_dist=first, steps=D - 1)
        return normal_rewards(x @ theta, 1.0, reward)

    x = rng.normal(size=(n, D))
    reward = x @ np.cumsum(scale * rng.normal(size=D)) + rng.normal(size=n)
    drawn = plan(walk, D, None, "gibbs").sample({"x": x, "reward": reward}, 4000, 4, 1)
    root = (np.arange(600) + 0.5) / 600
    tau = 3.0 * root**2
    step = np.tril(np.ones((D, D)))
    first, others = x @ step[:, :1], x @ step[:, 1:]
    log_p = [
        stats.multivariate_normal.logpdf(
            reward, np.zeros(n), np.eye(n) + first @ first.T + t * t * others @ others.T
        )
        for t in tau
    ]
    p = root * np.exp(np.array(log_p) - max(log_p) - 0.5 * tau**2)
    p /= p.sum()
    mean = tau @ p
    sd = np.sqrt((tau - mean) ** 2 @ p)
    assert drawn.diagnostics.rhat["tau"] < 1.01
    assert drawn.diagnostics.ess["tau"] > 1000
    ours = drawn.values["tau"].mean()
    assert abs(ours - mean) < 4.5 * sd / np.sqrt(drawn.diagnostics.ess["tau"])


@reward_model(sigma2=IG)
def common(x, reward, weight, sigma2):
    """The noise scales all coefficients but the intercept; `level` comes after it."""
    sd = pm.math.sqrt(sigma2)
    intercept = pm.Normal("intercept", 2, 0.5)
    level = pm.Normal("level", 0, 2 * sd)
    theta = pm.Normal("theta", 1, sd, dims="feature")
    mean = intercept + 0.5 * level + x @ theta
    return normal_rewards(mean, sd / pm.math.sqrt(weight), reward)


@pytest.mark.parametrize(
    ("prior", "far"),
    [("InverseGamma", 0.0), ("InverseGamma", 1e4), ("LogNormal", 0.0), ("Uniform", 0.0)],
)
def test_a_common_scale_is_drawn_without_coefficients(prior, far):
    """Quadrature over log σ² has its moments, and most draws count.

    far: of rewards from the intercept's prior, by which they are moved.
    """
    data = rows(n=6)
    data["reward"] += far
    declared = common.with_priors(sigma2=Prior(prior, **OF_AN_SD[prior]))
    drawn = engine(declared, data).sample(data, 20_000, 1, seed=0)

    x = data["x"]
    reward = data["reward"]
    weight = data["weight"]
    u = np.linspace(-7.0, 7.0, 4001) + 2.0 * np.log1p(far)
    sigma2 = np.exp(u)
    of_scale = {
        "InverseGamma": stats.invgamma(2, scale=1),
        "LogNormal": stats.lognorm(1),
        "Uniform": stats.uniform(0, 2),
    }
    log_p = of_scale[prior].logpdf(sigma2) + u
    scaled = x @ x.T + 0.5**2 * 2**2 + np.diag(1 / weight)
    for i, s in enumerate(sigma2):
        law = stats.multivariate_normal(2 + x.sum(axis=1), s * scaled + 0.5**2)
        log_p[i] += law.logpdf(reward)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ u
    sd = np.sqrt(p @ (u - mean) ** 2)
    logs = np.log(drawn.values["sigma2"])
    count = array_stats.ess(logs, chain_axis=0, draw_axis=1)
    assert count > 10_000
    assert abs(logs.mean() - mean) < 4.5 * sd / np.sqrt(count)
    np.testing.assert_allclose(logs.std(), sd, rtol=0.04)
    off = reward - 2 - x.sum(axis=1)
    gains = [0.5**2 * np.linalg.solve(s * scaled + 0.5**2, off).sum() for s in sigma2]
    intercept = drawn.values["intercept"]
    assert abs(intercept.mean() - 2 - p @ gains) < 0.02


@reward_model(sigma=Prior("HalfNormal", sigma=5))
def partly_common(x, reward, weight, sigma):
    """The noise scales `slope` and, behind `curve`, which it does not, most coefficients."""
    slope = pm.Normal("slope", 0, sigma, shape=2)
    curve = pm.Normal("curve", 0, 1, shape=3)
    theta = pm.Normal("theta", 0, sigma, dims="feature")
    mean = x[:, :2] @ slope + x[:, :3] ** 2 @ curve + x @ theta
    return normal_rewards(mean, sigma / pm.math.sqrt(weight), reward)


def test_a_common_scale_moves_with_the_other_coefficients_that_it_scales():
    """With `slope` integrated out, but `theta` as it is, 40 to 90 of these draws are effective."""
    data = rows(n=2, d=40)
    drawn = engine(partly_common, data).sample(data, 5000, 2, seed=0)
    assert drawn.diagnostics.ess["sigma"] > 150


def test_a_noise_that_scales_a_laplace_prior_is_drawn_without_coefficients():
    """As a scale of the mixing variances alone, 10 % of its draws count."""
    data = rows(n=40, d=50)
    drawn = engine(scaled_laplace.with_priors(lam=1.0), data).sample(data, 4000, 2, seed=0)
    assert drawn.diagnostics.ess["sigma2"] > 0.3 * 8000


@reward_model(s=Prior("Exponential", lam=1), t=IG)
def two_factors(x, reward, weight, s, t):
    """Rewards and coefficients know the product of `s` and `t` alone."""
    sd = s * pm.math.sqrt(t)
    theta = pm.Normal("theta", 0, sd, dims="feature")
    return normal_rewards(x @ theta, sd / pm.math.sqrt(weight), reward)


def test_factors_of_the_noise_move_so_that_their_product_stays():
    """Quadrature has the moments of their ratio. One at a time, 2 % of these draws count."""
    data = rows(n=100)
    drawn = engine(two_factors, data).sample(data, 5000, 2, seed=0)
    count = drawn.diagnostics.ess["s"]
    assert count > 5000

    # s²t = σ², given which rewards are N(0, σ²(xx' + 1/w))
    law = data["x"] @ data["x"].T + np.diag(1 / data["weight"])
    far = data["reward"] @ np.linalg.solve(law, data["reward"])
    log_s, log_t = np.meshgrid(np.linspace(-4, 3, 701), np.linspace(-5, 8, 1301), indexing="ij")
    u = 2 * log_s + log_t
    log_p = -np.exp(log_s) + log_s - 2 * log_t - 2 * np.exp(-log_t)
    log_p += -0.5 * 100 * u - 0.5 * far * np.exp(-u)
    p = np.exp(log_p - log_p.max()).sum(axis=1)
    p /= p.sum()
    mean = p @ log_s[:, 0]
    sd = np.sqrt(p @ (log_s[:, 0] - mean) ** 2)
    assert abs(np.log(drawn.values["s"]).mean() - mean) < 4.5 * sd / np.sqrt(count)


def in_units(c):
    """A hierarchy for rewards that are c times as large: all its scales are multiplied by c."""

    @reward_model(
        mu=Prior("Normal", mu=0, sigma=10 * c),
        tau=Prior("HalfNormal", sigma=c),
        sigma=Prior("HalfNormal", sigma=2 * c),
    )
    def hierarchy(x, reward, weight, mu, tau, sigma):
        theta = pm.Normal("theta", mu, tau, dims="feature")
        return normal_rewards(x @ theta, sigma / pm.math.sqrt(weight), reward)

    return hierarchy


@pytest.mark.parametrize("c", [1e-6, 1e8])
def test_a_hierarchy_is_the_same_in_other_units(c):
    """In one chain of six, which began far away, the scale was 0 to rounding before the draws."""
    data = rows(n=60, d=4)
    there = data | {"reward": c * data["reward"]}
    drawn = engine(in_units(1.0), data).sample(data, 4000, 2, seed=0).values
    scaled = engine(in_units(c), there)
    chains = [scaled.sample(there, 1000, 1, seed=seed).values for seed in range(12)]
    for name in ("mu", "tau", "sigma"):
        one = np.quantile(drawn[name], [0.25, 0.5, 0.75])
        other = np.quantile([chain[name] for chain in chains], [0.25, 0.5, 0.75])
        np.testing.assert_allclose(other / c, one, rtol=0.0, atol=0.15 * np.ptp(one))


def test_rounding_is_not_taken_for_a_density_that_grows():
    """Means fit three rewards of 1e9, and the noise's prior is 0 below e^-6."""
    data = rows(n=3, d=4)
    data["reward"] = 1e9 + 1e4 * data["reward"]
    far = bb.load_model("horseshoe")
    drawn = engine(far, data).sample(data, 20_000, 1, seed=0)
    assert np.log(drawn.values["sigma2"]).min() > -6.0
