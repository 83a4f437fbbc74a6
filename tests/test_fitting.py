"""`fit`: what it takes, what it refuses, and that it is right where the answer is known."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from bayesbandit.inference.base import NotThisEngine
from bayesbandit.posteriors.fitting import fit
from tests import declarations as declared


@pytest.mark.slow
def test_a_linear_gaussian_model_gets_its_closed_form():
    x, reward, weight = declared.rows()
    mean, covariance = declared.ridge(x, reward, weight)
    posterior = fit(declared.known, x, reward, weight)
    assert posterior.engine == "exact_gaussian"
    np.testing.assert_allclose(posterior.coefficients["theta"][0], mean, rtol=1e-10)
    np.testing.assert_allclose(posterior.coefficients["theta"][1], covariance, rtol=1e-10)
    np.testing.assert_allclose(posterior.mean(x), x @ mean, rtol=1e-10)
    sd = np.sqrt(np.einsum("ni,ij,nj->n", x, covariance, x))
    np.testing.assert_allclose(posterior.sd(x), sd, rtol=1e-10)


@pytest.mark.slow
def test_without_weights_every_weight_is_one():
    x, reward, _ = declared.rows()
    a, b = fit(declared.known, x, reward), fit(declared.known, x, reward, np.ones(40))
    np.testing.assert_array_equal(a.mean(x), b.mean(x))


@pytest.mark.slow
def test_without_rows_the_posterior_is_the_prior():
    posterior = fit(declared.known, np.zeros((0, 2)), [])
    mean, covariance = posterior.coefficients["theta"]
    np.testing.assert_allclose(mean, 0.0)
    np.testing.assert_allclose(covariance, 4.0 * np.eye(2), rtol=1e-12)
    variance, sd = fit(declared.conjugate, np.zeros((0, 2)), []).coefficients["variance"]
    assert variance == pytest.approx(1.0)  # of InverseGamma(3, 2)
    assert sd == pytest.approx(1.0)


@pytest.mark.slow
def test_arms_that_share_a_model():
    x, reward, weight = declared.rows()
    arm = np.arange(40) % 2
    posterior = fit(declared.pooled, x, reward, weight, arm=arm, n_arms=3)
    assert posterior.mean(x).shape == posterior.sd(x).shape == (40, 3)
    assert posterior.draw(x, 5, np.random.default_rng(0)).shape == (5, 40, 3)
    centre = posterior.coefficients["centre"][0]
    np.testing.assert_allclose(posterior.mean(x)[:, 2], x @ centre)  # of the arm without rows
    assert (posterior.sd(x)[:, 2] > posterior.sd(x)[:, 0]).all()
    assert fit(declared.pooled, x, reward, weight, arm=arm).mean(x).shape == (40, 2)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["laplace", "gibbs"])
def test_the_same_seed_gives_the_same_posterior(engine):
    x, reward, weight = declared.rows()
    fits = [fit(declared.lasso if engine == "gibbs" else declared.known, x, reward, weight,
                engine=engine, draws=400, seed=seed)
            for seed in (7, np.random.SeedSequence(7), 8)]  # fmt: skip
    a, b, c = (f.draws["theta"] for f in fits)
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_an_engine_that_does_not_fit_is_refused():
    x, reward, weight = declared.rows()
    with pytest.raises(NotThisEngine, match="non-polynomial function abs of 'theta'"):
        fit(declared.lasso, x, reward, weight, engine="exact")
    with pytest.raises(NotThisEngine, match="gibbs: "):
        fit(declared.heavy, x, reward, weight, engine="gibbs")


def test_laplace_is_an_approximation_on_request_without_noise():
    x, reward, weight = declared.rows()
    exact = fit(declared.known, x, reward, weight)
    approximate = fit(declared.known, x, reward, weight, engine="laplace", draws=100, seed=0)
    assert approximate.engine == "laplace"
    for of in ("mean", "sd"):
        a, b = getattr(approximate, of)(x), getattr(exact, of)(x)
        np.testing.assert_allclose(a, b, rtol=1e-8)
    for a, b in zip(approximate.coefficients["theta"], exact.coefficients["theta"], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_moments_of_laplaces_approximation_are_those_of_mode_and_curvature():
    """Of a logistic regression by hand: Newton's method, and integrals in one dimension."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    reward = (rng.uniform(size=60) < expit(x[:, 0])).astype(float)
    posterior = fit(declared.binary, x, reward, engine="laplace")
    mode = np.zeros(2)
    for _ in range(30):
        p = expit(x @ mode)
        H = (x.T * p * (1 - p)) @ x + np.eye(2) / 4
        mode = mode + np.linalg.solve(H, x.T @ (reward - p) - mode / 4)
    covariance = np.linalg.inv(H)
    found = posterior.coefficients["theta"]
    np.testing.assert_allclose(found[0], mode, rtol=1e-7)
    np.testing.assert_allclose(found[1], covariance, rtol=1e-6)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    eta, sd = x @ mode, np.sqrt(np.einsum("ni,ij,nj->n", x, covariance, x))
    p = expit(eta[:, None] + sd[:, None] * nodes)
    mean, square = (v @ weights / weights.sum() for v in (p, p**2))
    np.testing.assert_allclose(posterior.mean(x), mean, rtol=1e-6)
    np.testing.assert_allclose(posterior.sd(x), np.sqrt(square - mean**2), rtol=1e-5)


@pytest.mark.slow
def test_moments_of_laplaces_approximation_do_not_depend_on_draws():
    """Of a model that is no generalised linear one, with a scale that is learned."""
    x, reward, weight = declared.rows()
    one, other = (
        fit(declared.heavy, x, reward, weight, engine="laplace", draws=d, seed=d)
        for d in (100, 150)
    )
    np.testing.assert_array_equal(one.mean(x), other.mean(x))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).mean(x), one.mean(x))
    normal = one.plan.method.target.on(one.rows).laplace()
    assert one.plan.outcomes.names == ("scale", "theta")
    theta, scale = one.coefficients["theta"], one.coefficients["scale"]
    np.testing.assert_allclose(theta[0], normal.mean[1:], rtol=1e-9)
    np.testing.assert_allclose(theta[1], normal.covariance[1:, 1:], rtol=1e-9)
    m, v = normal.mean[0], normal.covariance[0, 0]  # of the logarithm
    np.testing.assert_allclose(scale[0], np.exp(m + v / 2), rtol=1e-3)
    np.testing.assert_allclose(scale[1], scale[0] * np.sqrt(np.expm1(v)), rtol=0.02)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"weight": np.r_[0.0, np.ones(39)]}, "weights must be > 0"),
        ({"weight": -np.ones(40)}, "weights must be > 0"),
        ({"reward": np.ones(39)}, "rewards must have one value for each of 40 rows"),
        ({"reward": np.r_[np.nan, np.ones(39)]}, "rewards must be finite"),
        ({"x": np.ones(40)}, "contexts must have shape"),
        ({"x": np.full((40, 3), np.inf)}, "contexts must be finite"),
        ({"arm": np.zeros(40)}, "does not take `arm`"),
        ({"n_arms": 2}, "does not take `arm`; n_arms must be None"),
        ({"engine": "fast"}, "engine must be one of"),
        ({"draws": 0}, "draws must be an integer ≥ 4"),
        ({"chains": 0}, "chains must be an integer ≥ 1"),
        ({"seed": -1}, "seed must be an integer ≥ 0"),
        ({"seed": 0.5}, "seed must be an integer ≥ 0"),
        ({"tune": -1}, "tune must be an integer ≥ 0; got -1"),
        ({"cores": 0}, "cores must be an integer ≥ 1; got 0"),
        ({"target_accept": 1.0}, "target_accept must be a finite number > 0 and < 1; got 1.0"),
        ({"tune": 5}, "tune is a knob of 'gibbs' and 'nuts'; the engine of known is 'exact_gau"),
        ({"cores": 2, "engine": "laplace"}, "cores is a knob of 'nuts'.* known is 'laplace'"),
        ({"tune": 0, "engine": "nuts"}, "tune, of 'nuts', must be an integer ≥ 1; got 0"),
    ],
)
def test_what_is_wrong_is_said_at_the_door(change, complaint):
    x, reward, weight = declared.rows()
    with pytest.raises(ValueError, match=complaint):
        fit(declared.known, **{"x": x, "reward": reward, "weight": weight} | change)


X = declared.rows()[0]


@pytest.mark.parametrize(
    ("x", "complaint"),
    [
        (pd.DataFrame(X, columns=["age", "dose", "size"]).assign(dose="red"), "'dose' has 'red'"),
        (pd.DataFrame(X).assign(day=pd.Timestamp("2020-01-01")), "column 'day' has Timestamp"),
        (pd.DataFrame(X).assign(n=pd.array([1, None] * 20, dtype="Int64")), "column 'n' has <NA>"),
        (np.c_[X.astype(object), ["a"] * 40], "column 3 has 'a'"),
        (np.c_[X, ["a"] * 40], "column 3 has 'a'"),
        (X.astype(str), "column 0 has '0.12573"),
    ],
)
def test_what_is_no_number_is_named_with_its_column(x, complaint):
    with pytest.raises(ValueError, match=f"contexts must be numbers: .*{complaint}"):
        fit(declared.known, x, declared.rows()[1])


def test_only_a_reward_model_is_fitted():
    with pytest.raises(TypeError, match="must be a RewardModel"):
        fit(declared.known.function, np.ones((2, 2)), np.ones(2))


@pytest.mark.slow
def test_a_data_frame_names_the_features():
    x, reward, weight = declared.rows()
    frame = pd.DataFrame(x, columns=["age", "dose", "weight"])
    posterior = fit(declared.known, frame, pd.Series(reward), weight)
    assert posterior.features == ("age", "dose", "weight")
    np.testing.assert_array_equal(posterior.mean(frame), posterior.mean(x))


@pytest.mark.slow
@pytest.mark.parametrize("knob", [{"target_accept": 0.9}, {"cores": 1}])
def test_a_knob_of_another_sampler_is_refused(knob):
    with pytest.raises(ValueError, match="is a knob of 'nuts'; the engine of lasso is 'gibbs'"):
        fit(declared.lasso, *declared.rows(), **knob)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesbandit.inference.draws.PoorDiagnostics")
def test_sweeps_before_the_draws_are_thrown_away():
    """With one seed, 10 sweeps before 20 draws are the first 10 of 30."""
    rows = declared.rows()
    late = fit(declared.lasso, *rows, seed=1, draws=20, chains=1, tune=10)
    early = fit(declared.lasso, *rows, seed=1, draws=30, chains=1, tune=0)
    np.testing.assert_array_equal(late.known.values["theta"], early.known.values["theta"][:, 10:])


@pytest.mark.slow
def test_a_logistic_model_is_sampled_and_predicts_probabilities():
    x, _, _ = declared.rows(200)
    reward = (x[:, 0] + np.random.default_rng(1).logistic(size=200) > 0).astype(float)
    posterior = fit(declared.binary, x, reward, seed=0)
    assert posterior.engine == "gibbs"
    draws = posterior.draw(x, 100, np.random.default_rng(0))
    assert draws.shape == (100, 200)
    assert ((draws > 0) & (draws < 1)).all()
    close = fit(declared.binary, x, reward, engine="laplace", seed=0)
    np.testing.assert_allclose(posterior.mean(x), close.mean(x), atol=0.03)
    by_nuts = fit(declared.binary, x, reward, engine="nuts", seed=0)
    np.testing.assert_allclose(posterior.mean(x), by_nuts.mean(x), atol=0.02)
    assert by_nuts.diagnostics.divergences == 0
