"""Negative binomial rewards, whose dispersion is learned or known: draws against quadrature,
calibration, and what is left to NUTS."""

import math
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import bayesbandit as bb
from bayesbandit.inference.base import Improper, NotThisEngine
from bayesbandit.inference.glm import scale_mixture
from bayesbandit.inference.glm.scale_mixture import ScaleMixture, match
from bayesbandit.inference.plan import plan
from bayesbandit.inference.pymc_model.template import template
from bayesbandit.kernels.glm import dispersion
from tests.cases import long_but

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
simulation = import_module("simulation")

EACH = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
GAMMA = bb.Prior("Gamma", alpha=2, beta=0.1)
HALF = bb.Prior("HalfNormal", sigma=1)


def observed(eta, reward, alpha, weight=None):
    mu = pm.math.exp(eta)
    if weight is None:
        pm.NegativeBinomial("reward", mu=mu, alpha=alpha, observed=reward, dims="row")
    else:
        pm.Potential("r", weight * pm.logp(pm.NegativeBinomial.dist(mu=mu, alpha=alpha), reward))
    return mu


@bb.reward_model(theta=EACH, alpha=GAMMA)
def counts(x, reward, theta, alpha):
    return observed(x @ theta, reward, alpha)


@bb.reward_model(theta=EACH, alpha=GAMMA)
def weighted(x, reward, weight, theta, alpha):
    return observed(0.4 + x @ theta, reward, alpha, weight)


@bb.reward_model(theta=EACH, phi=HALF)
def inverse(x, reward, weight, theta, phi):
    return observed(x @ theta, reward, 1 / phi, weight)


@bb.reward_model(theta=EACH, phi=HALF)
def inverse_square(x, reward, weight, theta, phi):
    return observed(x @ theta, reward, 3 / phi**2, weight)


@bb.reward_model(alpha=GAMMA)
def spread_by_alpha(x, reward, weight, alpha):
    theta = pm.Normal("theta", 0, alpha, dims="feature")
    return observed(x @ theta, reward, alpha, weight)


@bb.reward_model(mu0=EACH, tau=HALF, alpha=GAMMA)
def hierarchy(x, reward, arm, mu0, tau, alpha):
    theta = pm.Normal("theta", mu0, tau, dims=("arm", "feature"))
    return observed((x * theta[arm]).sum(axis=-1), reward, alpha)


@bb.reward_model(z=bb.Prior("Normal", mu=0, sigma=1, dims=("arm", "feature")), tau=HALF)
def noncentred_counts(x, reward, arm, z, tau):
    return observed((x * (tau * z)[arm]).sum(axis=-1), reward, pm.HalfNormal("alpha", 5))


@bb.reward_model(theta=EACH, rate=bb.Prior("Gamma", alpha=3, beta=3))
def learned_rate(x, reward, theta, rate):
    return observed(x @ theta, reward, pm.Gamma("alpha", 2, rate))


@bb.reward_model(theta=EACH)
def known_alpha(x, reward, theta):
    return observed(x @ theta, reward, 2.0)


@bb.reward_model(tau=HALF)
def known_beside_scale(x, reward, tau):
    return observed(x @ pm.Normal("theta", 0, 3 * tau, dims="feature"), reward, 2.0)


ALPHAS = {  # priors of α, as declared and of scipy
    "Gamma": (GAMMA, stats.gamma(2, scale=10)),
    "HalfNormal": (bb.Prior("HalfNormal", sigma=5), stats.halfnorm(scale=5)),
    "Exponential": (bb.Prior("Exponential", lam=0.3), stats.expon(scale=1 / 0.3)),
    "LogNormal": (bb.Prior("LogNormal", mu=0.5, sigma=1), stats.lognorm(1, scale=np.exp(0.5))),
    "InverseGamma": (bb.Prior("InverseGamma", alpha=2, beta=3), stats.invgamma(2, scale=3)),
    "HalfCauchy": (bb.Prior("HalfCauchy", beta=2), stats.halfcauchy(scale=2)),
    "Uniform": (bb.Prior("Uniform", lower=0.5, upper=6), stats.uniform(0.5, 5.5)),
}
X, REWARD = np.array([1.2, -0.7, 0.3, 2.0, -1.5]), np.array([4.0, 0.0, 1.0, 9.0, 2.0])
WEIGHT = np.array([1.0, 0.3, 2.5, 0.7, 0.0])
ROWS = {"x": X[:, None], "reward": REWARD, "weight": WEIGHT}
NONE = {"x": np.zeros((0, 1)), "reward": np.zeros(0), "weight": np.zeros(0)}
HUGE = {"x": np.ones((3, 1)), "reward": np.array([0.0, 40.0, 3000.0]), "weight": np.ones(3)}
HALF_PRIOR = stats.halfnorm()
CASES = {  # a model; of its v: the name, the prior, and α and the constant of η; rows
    **{k: (weighted.with_priors(alpha=p), "alpha", q, lambda v: v, 0.4, ROWS)
       for k, (p, q) in ALPHAS.items()},
    "1/φ": (inverse, "phi", HALF_PRIOR, lambda v: 1 / v, 0.0, ROWS),
    "3/φ²": (inverse_square, "phi", HALF_PRIOR, lambda v: 3 / v**2, 0.0, ROWS),
    "no rows": (weighted, "alpha", ALPHAS["Gamma"][1], lambda v: v, 0.4, NONE),
    "large counts": (weighted, "alpha", ALPHAS["Gamma"][1], lambda v: v, 0.4, HUGE),
    "scale of θ": (spread_by_alpha, "alpha", ALPHAS["Gamma"][1], lambda v: v, 0.0, ROWS),
}  # fmt: skip


def exact(case):
    """Means and covariance (2,), (2, 2) of θ and log v, on a grid."""
    model, _, prior, alpha, constant, rows = case
    low, high = np.log(prior.ppf([1e-12, 1 - 1e-9]))
    theta, u = np.linspace(-6, 14, 2001)[:, None], np.linspace(low, high, 1201)[1:-1]
    v = np.exp(u)
    log_p = prior.logpdf(v) + u
    log_p = log_p + stats.norm.logpdf(theta, 0, v if model is spread_by_alpha else 1.0)
    for x, r, w in zip(rows["x"][:, 0], rows["reward"], rows["weight"], strict=True):
        a, mu = np.minimum(alpha(v), 1e5), np.exp(constant + x * theta)  # beyond, scipy's are lost
        log_p = log_p + (w * stats.nbinom.logpmf(r, a, a / (a + mu)) if w else 0.0)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    at = np.stack([np.broadcast_to(theta, p.shape), np.broadcast_to(u, p.shape)])
    mean = (p * at).sum(axis=(1, 2))
    gap = at - mean[:, None, None]
    return mean, np.einsum("ikl,jkl,kl->ij", gap, gap, p)


@pytest.mark.slow
@pytest.mark.parametrize("name", long_but(("HalfCauchy", "Uniform", "3/φ²", "no rows"), CASES))
def test_a_coefficient_and_the_dispersion_against_quadrature(name):
    """Means, variances and the covariance within 4.5 standard errors, of batches' means; chains
    start at random, and the weights are any."""
    case = CASES[name]
    found = match(template(case[0], 1, None))
    assert isinstance(found, ScaleMixture), found
    values = found.sample(case[-1], 40_000, 4, 1000).values
    mean, covariance = exact(case)
    draws = np.stack([values["theta"][..., 0], np.log(values[case[1]])]) - mean[:, None, None]
    for i, j in ((0, 0), (0, 1), (1, 1)):
        within(draws[i] * draws[j], covariance[i, j])
    for each in draws:
        within(each, 0.0)


def within(values, exact):
    """Hold the mean of values (chains, draws) against the exact one."""
    batches = values.reshape(-1, 1000).mean(axis=1)
    assert abs(batches.mean() - exact) < 4.5 * batches.std() / np.sqrt(batches.size)


BESIDE = {m.name: m for m in (hierarchy, noncentred_counts, learned_rate)}


@pytest.mark.slow
@pytest.mark.parametrize("name", long_but(("hierarchy",), BESIDE))
def test_scales_and_rates_beside_it_against_nuts(name, rng):
    model = BESIDE[name]
    x, arm = rng.normal(size=(60, 2)), np.arange(60) % 3
    reward = rng.negative_binomial(2, 2 / (2 + np.exp(0.5 + x[:, 0] - (arm == 1))))
    data = {"x": x, "reward": reward.astype(float), "weight": np.ones(60)}
    data |= {"arm": arm} if model.takes_arm else {}
    K = 3 if model.takes_arm else None
    ours = plan(model, 2, K, "gibbs").sample(data, 20_000, 4, 0)
    theirs = plan(model, 2, K, "nuts").sample(data, 4000, 4, 1, target_accept=0.99)
    for k, v in theirs.values.items():
        flat, other = (w.reshape(-1, *w.shape[2:]) for w in (ours.values[k], v))
        n = 1 / (1 / ours.diagnostics.ess[k] + 1 / theirs.diagnostics.ess[k])
        assert (abs(flat.mean(0) - other.mean(0)) < 5 * other.std(0) / np.sqrt(n)).all(), k


SIMULATED = {
    "counts": simulation.Case("gibbs", counts, False, d=2, thin=20, tune=200),
    "known": simulation.Case("gibbs", known_alpha, False, d=2, thin=20, tune=200),
    "hierarchy": simulation.Case("gibbs", hierarchy, False, n=15, d=2, n_arms=3, thin=60, tune=500),
}


def least(found, p_values):
    """The smallest p-value times the number of quantities."""
    return len(found.names) * p_values.min()


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
@pytest.mark.parametrize("datasets", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_calibrated(name, datasets):
    """The truth's ranks are uniform. Those by draws that are too narrow are not, if there are many
    data sets."""
    found = simulation.calibrate(SIMULATED[name], datasets)
    assert least(found, found.p_values) > 1e-3
    assert found.correlation < 0.1
    assert datasets < 1000 or least(found, found.control_p_values) < 1e-6


@pytest.mark.slow
def test_a_wrong_sampler_is_not_calibrated(monkeypatch):
    """The control: the ratios of gamma functions count for less. The identity test refuses it; the
    truth's ranks find it out."""

    def fewer(reward, weight):
        counts = dispersion.counted(reward, weight)
        return counts._replace(often=0.5 * counts.often)

    other = ModuleType("other")
    vars(other).update(vars(dispersion) | {"counted": fewer})
    monkeypatch.setattr(scale_mixture, "dispersion", other)
    found = simulation.calibrate(SIMULATED["counts"], 100)
    assert least(found, found.p_values) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("reward", [[0.0, 0.0], [3.0, 0.0]])
def test_a_posterior_that_does_not_exist_is_told(reward):
    """α^−1.5 dα about 0, times α for each count above 0."""

    @bb.reward_model(theta=EACH, alpha=bb.Prior("Exponential", lam=1))
    def improper(x, reward, theta, alpha):
        pm.Potential("wall", -1.5 * pm.math.log(alpha))
        return observed(x @ theta, reward, alpha)

    found = match(template(improper, 1, None))
    data = {"x": np.ones((2, 1)), "reward": np.array(reward)}
    if any(reward):
        assert found.sample(data, 50, 1).values["alpha"].min() > 1e-9
    else:
        with pytest.raises(Improper, match="'alpha' ~ Exponential: improper given the other"):
            found.sample(data, 50, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [counts, known_alpha, known_beside_scale], ids=lambda model: model.name
)
@pytest.mark.parametrize("mean", [0.1, 4.0, 500.0])
def test_draws_move_freely_whatever_the_counts(mean, model, rng):
    """Given Pólya–Gamma variables alone they hardly do where counts are large, or next to none; and
    a chain is there at once."""
    x = rng.normal(size=(200, 2))
    x[:, 0], mu = 1.0, mean * np.exp(0.3 * x[:, 1])
    data = {"x": x, "reward": rng.negative_binomial(2, 2 / (2 + mu)).astype(float)}
    drawn = plan(model, 2, None, "gibbs").method.sample(data, 500, 4, 100)
    assert min(drawn.diagnostics.ess.values()) > 150
    assert max(drawn.diagnostics.rhat.values()) < 1.05


@pytest.mark.slow
def test_a_weight_is_how_often_a_row_was_seen(rng):
    weight = np.array([3.0, 1.0, 2.0, 1.0, 0.0])
    often = np.repeat(np.arange(5), weight.astype(int))
    found = match(template(weighted, 1, None))
    one = found.sample(ROWS | {"weight": weight}, 40_000, 4)
    rows = {k: v[often] for k, v in ROWS.items()} | {"weight": np.ones(len(often))}
    other = found.sample(rows, 40_000, 4, seed=1)
    for k in ("theta", "alpha"):
        a, b = (np.log(abs(v.values[k])).reshape(-1, 1000).mean(axis=1) for v in (one, other))
        assert abs(a.mean() - b.mean()) < 4.5 * np.hypot(a.std(), b.std()) / np.sqrt(len(a))


@pytest.mark.parametrize("alpha", [1e-30, 1e-6, 0.3, 9.99, 10.01, 1e3, 1e6, 1e12])
def test_the_likelihood_of_alpha_has_all_its_digits(alpha):
    """log Γ(r + α)/Γ(α)α^r is Σ log(1 + j/α), j < r, of small and large counts."""
    reward = np.array([0.0, 1.0, 2.0, 17.0, 4000.0, 1e5])
    mean = np.array([1e-9, 0.4, 30.0, 12.0, 3500.0, 1e6])
    weight = np.array([1.0, 0.3, 2.5, 1.0, 1.0, 1e-3])
    found = dispersion.log_likelihood(np.log(alpha), mean, dispersion.counted(reward, weight))
    rising = np.array([math.fsum(np.log1p(np.arange(r) / alpha)) for r in reward])
    each = weight * (rising - (reward + alpha) * np.log1p(mean / alpha))
    assert found == pytest.approx(math.fsum(each), rel=1e-11, abs=1e-8)


def test_it_is_that_of_scipy(rng):
    reward, mean, alpha = rng.poisson(4.0, 50).astype(float), rng.gamma(2.0, 2.0, 50), 1.7
    counts = dispersion.counted(reward, np.ones(50))

    def ours(a):
        return dispersion.log_likelihood(np.log(a), mean, counts)

    def theirs(a):
        return stats.nbinom.logpmf(reward, a, a / (a + mean)).sum()

    assert ours(alpha) - ours(0.2) == pytest.approx(theirs(alpha) - theirs(0.2), rel=1e-10)


def beside(alpha):
    """A declaration of α, by a function of a positive variable and the contexts."""

    @bb.reward_model(theta=EACH, phi=HALF)
    def declared(x, reward, theta, phi):
        return observed(x @ theta, reward, alpha(phi, x))

    return declared


@bb.reward_model(theta=EACH, alpha=GAMMA)
def mean_too(x, reward, theta, alpha):
    return observed(x @ theta, reward, alpha) * alpha


@bb.reward_model(theta=EACH, alpha=GAMMA)
def without_constants(x, reward, theta, alpha):
    """The likelihood but for the gamma functions."""
    mu = pm.math.exp(x @ theta)
    log_p = reward * pm.math.log(mu) - (reward + alpha) * pm.math.log1p(mu / alpha)
    pm.Potential("reward", log_p)
    return mu


OTHERS = {
    "1 + φ": (beside(lambda phi, x: 1 + phi), "depends on 'phi'"),
    "kept from 0": (beside(lambda phi, x: pm.math.maximum(phi, 1e-3)), "depends on 'phi'"),
    "bounded": (beside(lambda phi, x: pm.math.clip(phi, 0.01, 50)), "depends on 'phi'"),
    "by row": (beside(lambda phi, x: phi * pm.math.exp(x[:, 0])), "depends on 'phi'"),
    "in the mean": (mean_too, "'mean_reward'"),
    "without constants": (without_constants, "depends on 'alpha'"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_dispersion_is_left_to_nuts_with_a_reason(name):
    model, why = OTHERS[name]
    said = model.explain(2)
    assert said.splitlines()[0].endswith(": nuts")
    assert why in said


@pytest.mark.slow
def test_rows_where_the_likelihood_is_another_are_refused(rng):
    """The declaration is another between the α at which it was compared before there were rows."""

    @bb.reward_model(theta=EACH, alpha=bb.Prior("Uniform", lower=4.4, upper=4.6))
    def elsewhere(x, reward, theta, alpha):
        return observed(x @ theta, reward, alpha + pm.math.exp(-9 * (alpha - 4.5) ** 2))

    found = match(template(elsewhere, 1, None))
    assert isinstance(found, ScaleMixture), found
    with pytest.raises(NotThisEngine, match="the likelihood is not negative binomial"):
        found.sample({"x": np.ones((9, 1)), "reward": rng.poisson(3.0, 9).astype(float)}, 50, 2)


@pytest.mark.slow
def test_a_bandit_refits_by_it_and_goes_on_from_a_file(rng, tmp_path):
    model = weighted
    assert model.explain(2).startswith("weighted: gibbs")
    bandit = bb.Bandit(3, model, bb.Thompson(), n_features=2, seed=1)
    for _ in range(40):
        choice = bandit.choose(rng.normal(size=2))
        bandit.observe(choice, float(rng.negative_binomial(2, 0.4)))
    bandit.save(tmp_path / "bandit")
    again = bb.Bandit.load(tmp_path / "bandit", model=model)
    x = rng.normal(size=2)
    np.testing.assert_array_equal(bandit.probabilities(x), again.probabilities(x))
    assert bandit.belief.plan.engine == "gibbs"


@pytest.mark.slow
def test_a_state_goes_on(rng):
    found, data = match(template(counts, 1, None)), {k: ROWS[k] for k in ("x", "reward")}
    one, two = (found.sample(data, 5, 2, 10, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.values["alpha"], two.values["alpha"])
    more = {"x": np.ones((9, 1)), "reward": np.arange(9.0)}
    assert found.sample(more, 5, 3, 0, start=one.state).values["alpha"].shape == (3, 5)


@pytest.mark.slow
@pytest.mark.parametrize("model", [counts, known_alpha], ids=lambda model: model.name)
def test_a_state_of_few_rows_may_be_far_from_the_posterior_of_many(model, rng):
    """Of large counts, and of contexts that are larger than before."""
    found = plan(model, 3, None, "gibbs").method
    x = rng.normal(size=(100, 3))
    x[:, 0], mu = 1.0, 1e4 * np.exp(x[:, 1:] @ [0.4, -0.3])
    reward = rng.negative_binomial(2, 2 / (2 + mu)).astype(float)
    few = found.sample({"x": x[:3], "reward": reward[:3]}, 50, 4)
    for scale in (1.0, 1e4):
        data = {"x": x * [1.0, scale, scale], "reward": reward}
        cold, warm = found.sample(data, 500, 4), found.sample(data, 500, 4, seed=1, start=few.state)
        a, b = (v.values["theta"].reshape(-1, 3) for v in (cold, warm))
        assert (abs(a.mean(axis=0) - b.mean(axis=0)) < 0.3 * a.std(axis=0)).all()
        assert max(warm.diagnostics.rhat.values()) < 1.05


@pytest.mark.slow
@pytest.mark.parametrize("model", [counts, known_alpha], ids=lambda model: model.name)
def test_a_state_of_the_same_rows_is_where_a_chain_goes_on(model, rng):
    x = rng.normal(size=(100, 2))
    data = {"x": x, "reward": rng.negative_binomial(2, 0.01, 100).astype(float)}
    found = plan(model, 2, None, "gibbs").method
    whole = scale_mixture.worked(found.block.reading, found.block.data(**data))
    rows = found.block.data(**data)
    A, b = found.block.mean_map(rows)
    observations = scale_mixture.observed(whole, A, b, found.link, rows)
    for state in found.sample(data, 50, 20).state:
        assert observations.begin(whole, state) is state
