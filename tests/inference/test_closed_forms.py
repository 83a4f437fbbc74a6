"""Laws of closed forms of θ and a noise scale, known or unknown, on many declarations of each; laws
of the exact Gaussian engine, and of the normal-inverse-gamma one.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import invgamma, multivariate_normal

from bayesbandit.inference.base import Improper, NotThisEngine, Refusal
from bayesbandit.inference.exact import gaussian, normal_inverse_gamma
from bayesbandit.inference.exact import gaussian as exact
from bayesbandit.inference.exact.distributions import StudentT
from bayesbandit.inference.exact.gaussian import ExactGaussian
from bayesbandit.inference.graph_analysis.rows import not_additive
from bayesbandit.inference.pymc_model.outcomes import Outcomes
from tests.cases import few, in_gate, quick_but, slow_but
from tests.inference import linear, unknown_noise
from tests.inference.declared import built, constant, log_densities, rows

KNOWN = [*linear.STREAMED, *linear.IN_BATCH]
UNKNOWN = [*unknown_noise.STREAMED, *unknown_noise.IN_BATCH]
_matched: dict = {}


def matched(declare):
    """The engine of a declaration, its data and its model, each made once."""
    if declare not in _matched:
        known = declare in KNOWN
        arms = linear.K if declare is unknown_noise.arms else None
        data = linear.data_of(declare) if known else rows(n=linear.N, d=linear.D, arms=arms)
        model = built(declare, data)
        engine = (gaussian if known else normal_inverse_gamma).match(model)
        assert engine.learns_noise == (not known), str(engine)
        _matched[declare] = engine, data, model
    return _matched[declare]


@pytest.mark.slow
@pytest.mark.parametrize("declare", [*KNOWN, *UNKNOWN], ids=lambda f: f.__name__)
@in_gate(12)
def test_closed_form_is_the_log_density_but_for_the_log_evidence(declare):
    engine, data, model = matched(declare)
    posterior = engine.posterior(**data)
    theta, sigma2 = posterior.draw(8, np.random.default_rng(1))
    if engine.learns_noise:
        sigma2 = sigma2 * np.linspace(0.5, 2, 8)
    theta = posterior.mean + 3 * (theta - posterior.mean)
    covariance = np.linalg.inv(posterior.precision)
    normal = multivariate_normal(np.zeros(engine.dim), covariance, allow_singular=True)
    closed = normal.logpdf((theta - posterior.mean) / np.sqrt(sigma2)[:, None])
    closed -= 0.5 * engine.dim * np.log(sigma2)
    points = [{k: v[i] for k, v in engine.split(theta).items()} for i in range(8)]
    if engine.learns_noise:
        s = engine.scale(sigma2)
        closed += invgamma(posterior.shape, scale=posterior.scale).logpdf(sigma2)
        closed += np.log(abs(engine.exponent) * sigma2 / s)  # a density in σ² as one in s
        points = [p | {f"{engine.scale_name}_log__": np.log(s[i])} for i, p in enumerate(points)]
    logp = log_densities(model, points)
    assert constant(logp - closed, logp)
    assert np.allclose(logp - closed, posterior.log_evidence, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("declare", [linear.mv_cov, unknown_noise.variance])
def test_draws_have_the_posteriors_moments(declare):
    engine, data, _ = matched(declare)
    posterior = engine.posterior(**data)
    theta, sigma2 = posterior.draw(20_000, np.random.default_rng(4))
    sd = np.sqrt(np.diag(posterior.covariance))
    assert np.abs((theta.mean(axis=0) - posterior.mean) / sd).max() < 4 / np.sqrt(20_000)
    assert np.allclose(np.cov(theta.T), posterior.covariance, atol=0.06 * (sd**2).max())
    assert np.isclose(sigma2.mean(), posterior.variance, rtol=0.03)


@pytest.mark.parametrize("shape", [30.0, 1e5, 1e10])
def test_the_spread_of_a_noise_sd_keeps_its_digits_after_many_rows(shape):
    """σ/E[σ] − 1 of an inverse gamma σ² has the variance 1/(4a) + O(1/a²)."""
    one = np.eye(1)
    known = StudentT(np.zeros(1), one, one, 0.0, shape, 2.0 * shape)
    mean, sd = known.power(-0.5)
    assert np.isclose(mean, np.sqrt(2.0), rtol=1.0 / shape)
    assert np.isclose(sd / mean, 0.5 / np.sqrt(shape), rtol=1.0 / shape + 1e-5)


@pytest.mark.parametrize("shape", [1e-3, 1e-6])
def test_without_rows_a_vague_prior_is_the_posterior(shape):
    """Although quantiles of the noise precision are below all floats: the log evidence is 0."""

    def vague(x, reward, weight):
        q = pm.Gamma("q", shape, shape)
        theta = pm.Normal("theta", 0, tau=q, dims="feature")
        return unknown_noise.observe(x @ theta, 1 / q, reward, weight)

    data = rows(n=0)
    posterior = normal_inverse_gamma.match(built(vague, data)).posterior(**data)
    np.testing.assert_allclose([posterior.shape, posterior.scale], shape, rtol=1e-9)
    np.testing.assert_allclose(posterior.log_evidence, 0.0, atol=1e-9)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
@pytest.mark.slow
def test_an_intercept_takes_up_any_offset_of_the_rewards(offset):
    def wide(x, reward, weight):
        s2 = pm.InverseGamma("s2", 2.0, 1.0)
        level = pm.Normal("level", 0.0, 1e12 * pm.math.sqrt(s2))
        mu = level + x @ pm.Normal("theta", 0.0, pm.math.sqrt(s2), shape=unknown_noise.D)
        pm.Normal("r", mu, pm.math.sqrt(s2 / weight), observed=reward)
        return mu

    data = rows(n=unknown_noise.N, d=unknown_noise.D)
    engine = normal_inverse_gamma.match(built(wide, data))
    near = engine.posterior(**data)
    far = engine.posterior(**data | {"reward": data["reward"] + offset})
    apart = np.zeros(engine.dim)
    apart[engine.slices["level"]] = offset
    lost = 1e-9 + 1e-13 * offset  # digits of the rewards themselves
    assert np.isclose(far.scale, near.scale, rtol=lost)
    assert np.isclose(far.log_evidence, near.log_evidence, rtol=lost)
    assert np.allclose(far.mean - apart, near.mean, atol=100 * lost)


KERNEL = {  # the exponent of the scale in the precision, and the noise at scale 1
    unknown_noise.variance: (-1, 1),
    unknown_noise.precision: (1, 1),
    unknown_noise.standard_deviation: (-2, 1),
    unknown_noise.double_noise: (-1, 4),
}
NO_KERNEL = [
    *(unknown_noise.off_centre, unknown_noise.correlated, unknown_noise.non_centred),
    *(unknown_noise.powers, unknown_noise.arms, *unknown_noise.IN_BATCH),
]


@pytest.mark.slow
@pytest.mark.parametrize("declare", [*KERNEL, *NO_KERNEL], ids=lambda f: f.__name__)
def test_what_the_compiled_kernel_can_take_is_recognised(declare):
    """N(mean reward, noise/weight) with a noise that is inverse gamma, under a ridge."""
    engine, _, _ = matched(declare)
    if declare not in KERNEL:
        not_of_every_variance = declare in (unknown_noise.powers, *unknown_noise.IN_BATCH)
        assert (engine.noise is None) == (not engine.streams) == not_of_every_variance
        return
    exponent, noise = KERNEL[declare]
    assert engine.exponent == exponent
    prior = engine.prior_distribution
    a, b = unknown_noise.PRIOR
    assert np.allclose([prior.shape, prior.scale * engine.noise], [a, noise * b])


def test_tiny_and_huge_rewards_keep_their_digits():
    engine, data, _ = matched(unknown_noise.variance)
    for scale in (1e-7, 1e7):
        one = engine.data(data["x"][:1], scale * data["reward"][:1], data["weight"][:1])
        power, rate, _ = engine.scalars(np.zeros(engine.dim), one)
        assert np.isclose(power, 0.5, rtol=1e-12)
        assert np.isclose(
            rate, 0.5 * data["weight"][0] * (scale * data["reward"][0]) ** 2, rtol=1e-12
        )


LIKE_OTHERS = "known noise", "noise plus one", "two scales", "log-normal", "scaled by the variance"


@few("[no scale]")
@pytest.mark.parametrize("name", quick_but(LIKE_OTHERS, unknown_noise.REFUSED))
@in_gate(5)
def test_what_is_not_normal_inverse_gamma_is_refused_and_says_why(name):
    declare, words = unknown_noise.REFUSED[name]
    refusal = normal_inverse_gamma.match(built(declare, rows(n=unknown_noise.N, d=unknown_noise.D)))
    assert isinstance(refusal, Refusal), "accepted"
    assert refusal.engine == "normal_inverse_gamma"
    assert words in refusal.reason


QUICK = (  # unlike each other
    *(linear.ridge, linear.intercept, linear.offset, linear.mv_cov, linear.arms),
    *(linear.weights_by_potential, linear.two_likelihoods, linear.improper, linear.logarithms),
    linear.joint_noise,
)


def each(declarations):
    return pytest.mark.parametrize(
        "declare", slow_but(QUICK, declarations), ids=lambda f: f.__name__
    )


streamed = each(linear.STREAMED)


def part(data, index):
    return {role: values[index] for role, values in data.items()}


@each(linear.IN_BATCH)
def test_what_does_not_add_up_is_exact_in_batch_only(declare):
    engine, _, _ = matched(declare)
    apart = declare is linear.centred_contexts
    words = "mean reward of a row depends on" if apart else "rows together is not the product of"
    assert words in not_additive(engine.density)
    assert not engine.row_wise


@pytest.mark.slow
@streamed
def test_the_linear_map_predicts_the_mean_reward(declare):
    engine, _, model = matched(declare)
    x, rng = np.exp(rows(seed=5, n=6, d=linear.D)["x"]), np.random.default_rng(3)
    theta = rng.normal(size=(2, engine.dim))
    means = Outcomes(model).mean_reward(engine.split(theta), x)
    if declare is linear.logarithms:
        assert not engine.affine
        with pytest.raises(NotThisEngine, match="'mean_reward': non-polynomial function exp"):
            engine.linear_map(x)
        assert np.allclose(means, np.exp(theta @ np.log(x).T + linear.SIGMA**2 / 2))
        return
    A, b = engine.linear_map(x)
    assert np.allclose(means, np.einsum("n...d,sd->sn...", A, theta) + b)
    if engine.n_arms:
        assert A.shape == (6, linear.K, engine.dim)
        arm = np.array([0, 3, 2, 1, 0, 0])
        one, offset_ = engine.linear_map(x, arm)
        assert np.array_equal(one, A[np.arange(6), arm])
        assert np.array_equal(offset_, b[np.arange(6), arm])
    else:
        assert A.shape == (6, engine.dim)


@streamed
def test_the_variance_of_every_row_is_recognised(declare):
    engine, _, _ = matched(declare)
    if declare in (linear.logarithms, linear.noise_by_context):
        assert engine.noise is None
    else:
        assert np.isclose(engine.noise, linear.SIGMA**2)


NOT_AT_HAND = {  # an sd, and what is seen of the reward
    "a clipped reward": (lambda x, r, w: w**-0.5, lambda r: pt.clip(r, -5, 5)),
    "a far context": (lambda x, r, w: pt.switch(x[:, 0] > 100, 4.0, 1.0) * w**-0.5, None),
    "a large reward": (lambda x, r, w: pt.switch(abs(r) > 1000, 4.0, 1.0) * w**-0.5, None),
    "a large weight": (lambda x, r, w: pt.switch(w > 50, 1.0, w**-0.5), None),
    "a power by context": (lambda x, r, w: w ** -pt.switch(x[:, 0] > 100, 1.0, 0.5), None),
}


@pytest.mark.parametrize("name", NOT_AT_HAND)
def test_rows_that_are_not_at_hand_may_have_another_noise(name):
    sd, seen = NOT_AT_HAND[name]

    def declare(x, reward, weight):
        mu = x @ pm.Normal("theta", 0, 1, dims="feature")
        observed = reward if seen is None else seen(reward)
        pm.Normal("reward", mu, sd(x, reward, weight), observed=observed)
        return mu

    engine = exact.match(built(declare, rows(n=linear.N, d=linear.D)))
    assert engine.noise is None
    assert engine.row_wise
    assert not engine.row_noise.by_weight


@pytest.mark.parametrize("role", ["x", "reward"])
def test_a_noise_that_rises_smoothly_far_from_the_rows_at_hand_is_not_that_of_all(role):
    def declare(x, reward, weight):
        mu = x @ pm.Normal("theta", 0, 1, dims="feature")
        far = x[:, 0] if role == "x" else reward
        pm.Normal("reward", mu, (1 + pm.math.sigmoid(far - 60)) * weight**-0.5, observed=reward)
        return mu

    engine = exact.match(built(declare, rows(n=linear.N, d=linear.D)))
    assert engine.noise is None
    assert engine.row_wise


@pytest.mark.slow
def test_large_rewards_do_not_swamp_small_features():
    engine, data, _ = matched(linear.joint_noise)  # which takes the way of the gradients
    large = data | {"reward": 1e8 + data["reward"], "x": 1e-3 * data["x"]}
    precision, _ = engine.of_rows(engine.data(**large))
    noise = np.linalg.inv(0.3 + np.diag(linear.SIGMA**2 / data["weight"]))
    assert np.allclose(precision, large["x"].T @ noise @ large["x"], rtol=1e-9)


@pytest.mark.slow
def test_an_improper_prior_needs_rows():
    engine, data, _ = matched(linear.improper)
    with pytest.raises(Improper, match=r"'theta' ~ Flat: improper.*singular"):
        engine.posterior(**part(data, slice(0, 2)))
    for n in (0, 2):
        assert isinstance(
            exact.match(built(linear.improper, part(data, slice(0, n)))), ExactGaussian
        )


def test_a_model_of_arms_needs_the_arm_of_each_row():
    engine, data, _ = matched(linear.arms)
    with pytest.raises(ValueError, match="depends on the arm"):
        engine.posterior(data["x"], data["reward"])
