"""Laws of the exact Gaussian engine, on many ways of declaring a linear-Gaussian model."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytensor.tensor as pt
import pytest
from pytensor.xtensor import as_xtensor
from scipy.stats import multivariate_normal

from bayesbandit.engines import exact
from bayesbandit.engines.base import NotThisEngine, Refusal
from bayesbandit.engines.exact import ExactGaussian
from tests.engines.declared import built, constant, log_densities, rows

D, K, N, SIGMA = 3, 4, 30, 0.7
RHO = 0.5 ** np.abs(np.subtract.outer(range(D), range(D)))  # a covariance that is not diagonal
BASIS = np.random.default_rng(7).normal(size=(D, 5))


def observe(mu, reward, weight, name="reward"):
    pm.Normal(name, mu, SIGMA / pm.math.sqrt(weight), observed=reward)
    return mu


def ridge(x, reward, weight):
    return observe(x @ pm.Normal("theta", 0, 2, dims="feature"), reward, weight)


def intercept(x, reward, weight):
    theta = pm.Normal("theta", 0, 1, dims="feature")
    return observe(pm.Normal("alpha", 1, 3) + x @ theta, reward, weight)


def no_weights(x, reward, weight):
    mu = pt.dot(x, pm.Normal("theta", 0, 1, dims="feature"))
    pm.Normal("reward", mu, SIGMA, observed=reward)
    return mu


def precision_form(x, reward, weight):
    theta = pm.Normal("theta", 0, tau=4, dims="feature")
    mu = x @ theta
    pm.Normal("reward", mu, tau=weight / SIGMA**2, observed=reward)
    return mu


def centred_elsewhere(x, reward, weight):
    return observe(x @ pm.Normal("theta", np.arange(D), 1, dims="feature"), reward, weight)


def scaled_features(x, reward, weight):
    theta = pm.Normal("theta", 0, 1, dims="feature")
    return observe((x * np.array([1.0, 10.0, 0.1])) @ theta, reward, weight)


def squares_of_features(x, reward, weight):
    z = pt.concatenate([x, x**2, pt.abs(x[:, :1])], axis=1)
    return observe(z @ pm.Normal("theta", 0, 1, shape=2 * D + 1), reward, weight)


def fixed_design(x, reward, weight):
    basis = pm.Data("basis", BASIS)
    return observe(x @ basis @ pm.Normal("theta", 0, 1, shape=5), reward, weight)


def offset(x, reward, weight):
    return observe(5.0 + x @ pm.Normal("theta", 0, 1, dims="feature"), reward, weight)


def mv_cov(x, reward, weight):
    theta = pm.MvNormal("theta", np.ones(D), cov=RHO, dims="feature")
    return observe(x @ theta, reward, weight)


def mv_chol(x, reward, weight):
    theta = pm.MvNormal("theta", np.zeros(D), chol=np.linalg.cholesky(RHO), dims="feature")
    return observe(x @ theta, reward, weight)


def mv_tau(x, reward, weight):
    theta = pm.MvNormal("theta", np.zeros(D), tau=np.linalg.inv(RHO), dims="feature")
    return observe(x @ theta, reward, weight)


def matrix_normal(x, reward, weight):
    B = pm.MatrixNormal("B", mu=np.zeros((D, 2)), rowcov=RHO, colcov=np.eye(2), shape=(D, 2))
    return observe((x @ B).sum(axis=1), reward, weight)


def random_walk(x, reward, weight):
    theta = pm.GaussianRandomWalk(
        "theta", mu=0.1, sigma=0.3, init_dist=pm.Normal.dist(0, 1), shape=D
    )
    return observe(x @ theta, reward, weight)


def autoregression(x, reward, weight):
    theta = pm.AR("theta", rho=[0.5], sigma=1.0, init_dist=pm.Normal.dist(0, 1), shape=D)
    return observe(x @ theta, reward, weight)


def gaussian_process(x, reward, weight):
    knots = np.linspace(-2, 2, 5)
    K_uu = np.exp(-0.5 * np.subtract.outer(knots, knots) ** 2)
    value = pm.MvNormal("value", np.zeros(5), cov=K_uu)
    kernel = pt.exp(-0.5 * (x[:, 0][:, None] - knots) ** 2)
    return observe(kernel @ pt.linalg.solve(pt.as_tensor(K_uu), value), reward, weight)


def hierarchical_mean(x, reward, weight):
    centre = pm.Normal("centre", 0, 1)
    return observe(x @ pm.Normal("theta", centre, 0.5, dims="feature"), reward, weight)


def non_centred(x, reward, weight):
    centre, z = pm.Normal("centre", 1, 1), pm.Normal("z", 0, 1, dims="feature")
    theta = pm.Deterministic("theta", centre + 0.5 * z, dims="feature")
    return observe(x @ theta, reward, weight)


def stacked_scalars(x, reward, weight):
    theta = pt.stack([pm.Normal(f"theta{j}", j, 1 + j) for j in range(D)])
    return observe(x @ theta, reward, weight)


def joined(x, reward, weight):
    theta = pt.concatenate([pm.Normal("a", 0, 1, shape=1), pm.Normal("b", 0, 3, shape=2)])
    return observe(x @ theta, reward, weight)


def set_subtensor(x, reward, weight):
    theta = pt.zeros(D)[:2].set(pm.Normal("theta", 0, 1, shape=2))
    return observe(x @ theta, reward, weight)


def tensordot(x, reward, weight):
    return observe(pt.tensordot(x, pm.Normal("theta", 0, 1, shape=D), 1), reward, weight)


def einsum(x, reward, weight):
    theta = pm.Normal("theta", 0, 1, shape=D)
    return observe(pt.einsum("nd,d->n", x, theta), reward, weight)


def cumulative(x, reward, weight):
    return observe(x @ pt.cumsum(pm.Normal("step", 0, 1, dims="feature")), reward, weight)


def power_two(x, reward, weight):
    theta = pm.Normal("theta", 0, 1, dims="feature")
    mu = x @ theta
    pm.Potential("likelihood", -0.5 * (weight * (reward - mu) ** 2 / SIGMA**2).sum())
    return mu


def weights_by_potential(x, reward, weight):
    mu = x @ pm.Normal("theta", 0, 1, dims="feature")
    pm.Potential("likelihood", weight * pm.logp(pm.Normal.dist(mu, SIGMA), reward))
    return mu


def weights_by_custom(x, reward, weight):
    mu = x @ pm.Normal("theta", 0, 1, dims="feature")

    def logp(value, mu, weight):
        return weight * pm.logp(pm.Normal.dist(mu, SIGMA), value)

    pm.CustomDist("reward", mu, weight, logp=logp, observed=reward)
    return mu


def custom_by_draws(x, reward, weight):
    mu = x @ pm.Normal("theta", 0, 1, dims="feature")
    pm.CustomDist(
        "reward",
        mu,
        dist=lambda mu, size: mu + pm.Normal.dist(0, SIGMA, size=size),
        observed=reward,
    )
    return mu


def two_likelihoods(x, reward, weight):
    theta = pm.Normal("theta", 0, 1, dims="feature")
    pm.Normal("pilot", BASIS.T @ theta, 2.0, observed=np.arange(5.0))
    return observe(x @ theta, reward, weight)


def noise_by_context(x, reward, weight):
    mu = x @ pm.Normal("theta", 0, 1, dims="feature")
    pm.Normal("reward", mu, pt.exp(0.5 * x[:, 0]) / pt.sqrt(weight), observed=reward)
    return mu


def joint_noise(x, reward, weight):
    mu = x @ pm.Normal("theta", 0, 1, dims="feature")
    cov = 0.3 + pt.diag(SIGMA**2 / weight)
    pm.MvNormal("reward", mu, cov=cov, observed=reward)
    return mu


def improper(x, reward, weight):
    return observe(pm.Flat("alpha") + x @ pm.Flat("theta", dims="feature"), reward, weight)


def zellner(x, reward, weight):
    theta = pm.MvNormal("theta", np.zeros(D), tau=x.T @ x / 10, dims="feature")
    return observe(x @ theta, reward, weight)


def averaged(x, reward, weight):
    mu = x @ pm.Normal("theta", 0, 1, dims="feature")
    pm.Potential("likelihood", pt.mean(pm.logp(pm.Normal.dist(mu, SIGMA), reward)))
    return mu


def centred_contexts(x, reward, weight):
    theta = pm.Normal("theta", 0, 1, dims="feature")
    return observe((x - x.mean(axis=0)) @ theta, reward, weight)


def logarithms(x, reward, weight):
    theta = pm.Normal("theta", 0, 1, dims="feature")
    mu = pt.log(x) @ theta
    pm.Normal("reward", mu, SIGMA, observed=pt.log(reward))
    return pt.exp(mu + SIGMA**2 / 2)


def named_dimensions(x, reward, weight):
    x, reward = as_xtensor(x, dims=("row", "feature")), as_xtensor(reward, dims=("row",))
    mu = x.dot(pmd.Normal("theta", 0, 1, dims="feature"), dim="feature")
    sigma = SIGMA / pmd.math.sqrt(as_xtensor(weight, dims=("row",)))
    pmd.Normal("reward", mu, sigma, observed=reward)
    return mu


def arms(x, reward, weight, arm):
    theta = pm.Normal("theta", 0, 1, dims=("arm", "feature"))
    return observe((x * theta[arm]).sum(axis=1), reward, weight)


def arms_share_a_mean(x, reward, weight, arm):
    centre = pm.Normal("centre", 0, 1, dims="feature")
    theta = pm.Normal("theta", centre, 0.4, dims=("arm", "feature"))
    return observe((x * theta[arm]).sum(axis=1), reward, weight)


def arms_off_centre(x, reward, weight, arm):
    theta = pm.Normal("theta", 0, 1, dims="feature")
    alpha, z = pm.Normal("alpha", 0, 2), pm.Normal("z", 0, 1, dims="arm")
    return observe(alpha + 0.3 * z[arm] + x @ theta, reward, weight)


def features(f):
    """Prior mean and covariance, and columns A(x, arm), of a declaration with noise SIGMA²/w."""
    m, S = {
        ridge: (np.zeros(D), 4 * np.eye(D)),
        intercept: (np.array([0, 0, 0, 1]), np.diag([1, 1, 1, 9])),
        no_weights: (np.zeros(D), np.eye(D)),
        precision_form: (np.zeros(D), np.eye(D) / 4),
        centred_elsewhere: (np.arange(D), np.eye(D)),
        scaled_features: (np.zeros(D), np.eye(D)),
        fixed_design: (np.zeros(5), np.eye(5)),
        mv_cov: (np.ones(D), RHO),
        mv_chol: (np.zeros(D), RHO),
        mv_tau: (np.zeros(D), RHO),
        hierarchical_mean: (np.zeros(4), np.eye(4)),
        arms: (np.zeros(K * D), np.eye(K * D)),
        arms_share_a_mean: (np.zeros(D + K * D), np.eye(D + K * D)),
    }[f]
    columns = {
        intercept: lambda x, a: np.column_stack([x, np.ones(len(x))]),
        scaled_features: lambda x, a: x * [1, 10, 0.1],
        fixed_design: lambda x, a: x @ BASIS,
        hierarchical_mean: lambda x, a: np.column_stack([np.zeros(len(x)), x]),
        arms: lambda x, a: np.einsum("nk,nd->nkd", np.eye(K)[a], x).reshape(len(x), -1),
    }
    columns[arms_share_a_mean] = lambda x, a: np.hstack([np.zeros_like(x), columns[arms](x, a)])
    if f is hierarchical_mean:
        S = np.block([[np.ones((1, 1)), np.ones((1, D))], [np.ones((D, 1)), 1 + np.eye(D) / 4]])
    if f is arms_share_a_mean:
        S = np.kron(np.block([[1, np.ones((1, K))], [np.ones((K, 1)), 1 + 0.16 * np.eye(K)]]),
                    np.eye(D))  # fmt: skip
    return m, S, columns.get(f, lambda x, a: x)


STREAMED = [
    *(ridge, intercept, no_weights, precision_form, centred_elsewhere, scaled_features),
    *(squares_of_features, fixed_design, offset, mv_cov, mv_chol, mv_tau, matrix_normal),
    *(random_walk, autoregression, gaussian_process, hierarchical_mean, non_centred),
    *(stacked_scalars, joined, set_subtensor, tensordot, einsum, cumulative, power_two),
    *(weights_by_potential, weights_by_custom, custom_by_draws, two_likelihoods),
    *(noise_by_context, improper, logarithms, named_dimensions),
    *(arms, arms_share_a_mean, arms_off_centre),
]
IN_BATCH = [joint_noise, zellner, averaged, centred_contexts]
INDEPENDENT = [
    *(ridge, intercept, no_weights, precision_form, centred_elsewhere, scaled_features),
    *(fixed_design, mv_cov, mv_chol, mv_tau, hierarchical_mean, arms, arms_share_a_mean),
]
_matched: dict = {}


def data_of(declare):
    data = rows(n=N, d=D, arms=K if "arm" in declare.__name__ else None)
    if declare is logarithms:
        data = data | {"x": np.exp(data["x"]), "reward": np.exp(data["reward"])}
    return data


def matched(declare) -> tuple[ExactGaussian, dict, pm.Model]:
    """The engine of a declaration, its data and its model, each made once."""
    if declare not in _matched:
        data = data_of(declare)
        model = built(declare, data)
        engine = exact.match(model)
        assert isinstance(engine, ExactGaussian), str(engine)
        _matched[declare] = engine, data, model
    return _matched[declare]


def part(data, index):
    return {role: values[index] for role, values in data.items()}


@pytest.mark.parametrize("declare", STREAMED + IN_BATCH, ids=lambda f: f.__name__)
def test_closed_form_minus_log_density_is_constant(declare):
    engine, data, model = matched(declare)
    posterior = engine.posterior(**data)
    rng = np.random.default_rng(1)
    theta = posterior.mean + 3 * (posterior.draw(8, rng) - posterior.mean)
    points = [{k: v[i] for k, v in engine.split(theta).items()} for i in range(len(theta))]
    logp = log_densities(model, points)
    gap = theta - posterior.mean
    closed = -0.5 * np.einsum("si,ij,sj->s", gap, posterior.precision, gap)
    assert constant(logp - closed, logp)
    normal = multivariate_normal(posterior.mean, posterior.covariance, allow_singular=True)
    assert np.allclose(logp - normal.logpdf(theta), posterior.log_evidence, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("declare", STREAMED, ids=lambda f: f.__name__)
def test_streaming_is_batch_in_any_order(declare):
    engine, data, _ = matched(declare)
    assert engine.additive, engine.form.not_additive
    batch, natural = engine.posterior(**data), engine.prior()
    for i in np.random.default_rng(2).permutation(N):
        natural = natural + engine.likelihood(**part(data, [i]))
    one_by_one = engine.gaussian(natural)
    scale = np.abs(batch.precision).max()
    assert np.allclose(one_by_one.precision, batch.precision, rtol=1e-10, atol=1e-10 * scale)
    assert np.allclose(one_by_one.mean, batch.mean, rtol=1e-10, atol=1e-10)
    assert np.isclose(one_by_one.log_evidence, batch.log_evidence, rtol=1e-10)
    none = engine.likelihood(**part(data, slice(0, 0)))
    assert not none.precision.any()
    assert not none.shift.any()


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (joint_noise, "the likelihood of rows together is not the product of theirs apart"),
        (averaged, "the likelihood of rows together is not the product of theirs apart"),
        (zellner, "other numbers of rows fail: posdef precision"),
        (centred_contexts, "the mean reward of a row depends on other rows"),
    ],
)
def test_what_does_not_add_up_is_exact_in_batch_only(declare, words):
    engine, _, _ = matched(declare)
    assert not engine.additive
    assert engine.form.not_additive == words


@pytest.mark.parametrize("declare", INDEPENDENT, ids=lambda f: f.__name__)
def test_posterior_is_the_textbooks(declare):
    engine, data, _ = matched(declare)
    if declare is intercept:
        assert engine.names == ("theta", "alpha")
    m, S, columns = features(declare)
    Z = columns(data["x"], data.get("arm"))
    w = np.ones(N) if declare is no_weights else data["weight"]
    gain = S @ Z.T @ np.linalg.inv(Z @ S @ Z.T + np.diag(SIGMA**2 / w))
    posterior = engine.posterior(**data)
    assert np.allclose(posterior.mean, m + gain @ (data["reward"] - Z @ m), atol=1e-10)
    assert np.allclose(posterior.covariance, S - gain @ Z @ S, atol=1e-10)
    evidence = multivariate_normal(Z @ m, Z @ S @ Z.T + np.diag(SIGMA**2 / w))
    assert np.isclose(posterior.log_evidence, evidence.logpdf(data["reward"]))


@pytest.mark.parametrize("declare", STREAMED, ids=lambda f: f.__name__)
def test_the_linear_map_predicts_the_mean_reward(declare):
    engine, _, _ = matched(declare)
    x, rng = np.exp(rows(seed=5, n=6, d=D)["x"]), np.random.default_rng(3)
    theta = rng.normal(size=(2, engine.dim))
    if declare is logarithms:
        assert not engine.affine
        with pytest.raises(NotThisEngine, match="'mean_reward': non-polynomial function exp"):
            engine.linear_map(x)
        means = engine.mean_reward(theta, x)
        assert np.allclose(means, np.exp(theta @ np.log(x).T + SIGMA**2 / 2))
        return
    A, b = engine.linear_map(x)
    assert np.allclose(engine.mean_reward(theta, x), np.einsum("n...d,sd->sn...", A, theta) + b)
    if engine.n_arms:
        assert A.shape == (6, K, engine.dim)
        arm = np.array([0, 3, 2, 1, 0, 0])
        one, offset_ = engine.linear_map(x, arm)
        assert np.array_equal(one, A[np.arange(6), arm])
        assert np.array_equal(offset_, b[np.arange(6), arm])
    else:
        assert A.shape == (6, engine.dim)
    if declare in INDEPENDENT and not engine.n_arms:
        assert np.allclose(A, features(declare)[2](x, None), atol=1e-12)


@pytest.mark.parametrize("declare", STREAMED, ids=lambda f: f.__name__)
def test_rows_say_what_the_gradients_say(declare):
    engine, data, _ = matched(declare)
    by_gradient = engine.quadratic.natural(engine.data(**data))[1]
    if declare is logarithms:  # whose mean reward is not affine
        assert not engine.row_wise
        return
    together = engine.rows(**data).natural()
    assert np.allclose(together.precision, by_gradient.precision, rtol=1e-10, atol=1e-10)
    assert np.allclose(together.shift, by_gradient.shift, rtol=1e-10, atol=1e-10)
    assert np.isclose(together.constant, by_gradient.constant, rtol=1e-10)


def test_what_the_compiled_kernel_can_take_is_recognised():
    known = [f for f in STREAMED if matched(f)[0].noise is not None]
    assert set(STREAMED) - set(known) == {logarithms, noise_by_context}
    assert all(np.isclose(matched(f)[0].noise, SIGMA**2) for f in known)
    identity = [f for f in STREAMED if matched(f)[0].identity_map]
    assert set(identity) == {
        *(ridge, no_weights, precision_form, centred_elsewhere, mv_cov, mv_chol, mv_tau),
        *(random_walk, autoregression, stacked_scalars, joined, tensordot, einsum, power_two),
        *(weights_by_potential, weights_by_custom, custom_by_draws, two_likelihoods),
        *(noise_by_context, named_dimensions),
    }
    lam = {f: matched(f)[0].ridge for f in identity}
    assert np.isclose(lam[ridge], SIGMA**2 / 4)
    assert np.isclose(lam[precision_form], SIGMA**2 * 4)
    assert np.isclose(lam[no_weights], SIGMA**2)
    for declare in (centred_elsewhere, mv_cov, random_walk, stacked_scalars, noise_by_context):
        assert lam[declare] is None
    C, a = matched(scaled_features)[0].form.features
    assert np.allclose(C, np.diag([1, 10, 0.1]))
    assert not a.any()
    C, a = matched(intercept)[0].form.features
    assert np.array_equal(C, np.eye(D, D + 1))
    assert np.array_equal(a, [0, 0, 0, 1])


def test_an_engine_keeps_nothing_of_the_model_and_changes_nothing():
    data = data_of(ridge)
    model = built(ridge, data)
    engine = exact.match(model)
    before = engine.posterior(**data)
    with model:
        pm.set_data({"x": np.zeros((2, D)), "observed_reward": np.ones(2), "weight": np.ones(2)})
    after = engine.posterior(**data)
    assert np.array_equal(before.mean, after.mean)
    assert len(model["x"].get_value()) == 2


def test_copies_and_pickles_agree():
    engine, data, _ = matched(arms)
    mean = engine.posterior(**data).mean
    for other in (copy.deepcopy(engine), pickle.loads(pickle.dumps(engine))):
        assert np.array_equal(other.posterior(**data).mean, mean)


def test_threads_agree():
    engine, data, _ = matched(arms_share_a_mean)
    batches = [part(data, slice(i, i + 5)) for i in range(N - 5)] * 4
    alone = [engine.likelihood(**batch) for batch in batches]
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(lambda batch: engine.likelihood(**batch), batches))
    for a, b in zip(alone, at_once, strict=True):
        assert np.array_equal(a.precision, b.precision)
        assert np.array_equal(a.shift, b.shift)


def test_large_rewards_do_not_swamp_small_features():
    engine, data, _ = matched(joint_noise)  # which takes the way of the gradients
    large = data | {"reward": 1e8 + data["reward"], "x": 1e-3 * data["x"]}
    precision = engine.likelihood(**large).precision
    noise = np.linalg.inv(0.3 + np.diag(SIGMA**2 / data["weight"]))
    assert np.allclose(precision, large["x"].T @ noise @ large["x"], rtol=1e-9)


def test_draws_have_the_posteriors_moments():
    engine, data, _ = matched(mv_cov)
    posterior = engine.posterior(**data)
    theta = posterior.draw(20_000, np.random.default_rng(4))
    sd = np.sqrt(np.diag(posterior.covariance))
    assert np.abs((theta.mean(axis=0) - posterior.mean) / sd).max() < 4 / np.sqrt(20_000)
    assert np.allclose(np.cov(theta.T), posterior.covariance, atol=0.05 * (sd**2).max())


def test_an_improper_prior_needs_rows():
    engine, data, _ = matched(improper)
    with pytest.raises(NotThisEngine, match=r"'theta' ~ Flat: improper.*singular"):
        engine.posterior(**part(data, slice(0, 2)))
    refusal = exact.match(built(improper, part(data, slice(0, 2))))
    assert isinstance(refusal, Refusal)
    assert "improper" in refusal.reason
    assert isinstance(exact.match(built(improper, part(data, slice(0, 0)))), ExactGaussian)


def test_the_door():
    engine, data, _ = matched(arms)
    with pytest.raises(ValueError, match="takes the arm"):
        engine.likelihood(data["x"], data["reward"])
    nan = data | {"reward": np.full(N, np.nan)}
    with pytest.raises(ValueError, match="must be finite"):
        engine.posterior(**nan)
