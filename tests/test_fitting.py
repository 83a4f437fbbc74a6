"""`fit`: what it takes, what it refuses, and that it is right where the answer is known,
in double precision whatever `pytensor.config.floatX` is."""

import pickle

import numpy as np
import pandas as pd
import pytensor
import pytest

import bayesbandit as bb
from bayesbandit.inference import plan
from bayesbandit.inference.plan import Cache
from bayesbandit.posteriors.fitting import fit
from bayesbandit.runtime.pytensor_lock import COMPILE
from tests import declarations as declared


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
        ({"weight": -np.ones(40)}, "weights must be > 0"),
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
        ([[0.3, "1"]] * 40, "column 1 has '1'"),
    ],
)
def test_what_is_no_number_is_named_with_its_column(x, complaint):
    with pytest.raises(ValueError, match=f"contexts must be numbers: .*{complaint}"):
        fit(declared.known, x, declared.rows()[1])


def test_only_a_reward_model_is_fitted():
    with pytest.raises(TypeError, match="must be a RewardModel"):
        fit(declared.known.function, np.ones((2, 2)), np.ones(2))


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


def fitted(model, floatx, monkeypatch, **how):
    """Mean, sd, coefficients and log likelihood by plans made from scratch."""
    x, reward, weight = declared.rows()
    arm = {"arm": np.arange(40) % 2} if model.takes_arm else {}
    monkeypatch.setattr(plan, "_built", Cache(64, plan.KEPT_BYTES, lambda _: 0))
    with pytensor.config.change_flags(floatX=floatx):
        posterior = bb.fit(model, x, reward, weight, seed=1, draws=20, chains=2, **arm, **how)
        coefficients = [np.concatenate([np.ravel(v) for v in m])
                        for m in posterior.coefficients.values()]  # fmt: skip
        tree = posterior.to_datatree(2, 20)
        groups = [v.values for k in ("prior", "log_likelihood") if k in tree.children
                  for v in tree[k].data_vars.values()]  # fmt: skip
        found = [posterior.mean(x), posterior.sd(x), *coefficients, *groups]
    assert pytensor.config.floatX == "float64"
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "how"),
    [
        (declared.known, {}),
        (declared.lasso, {}),
        (declared.heavy, {}),
        (declared.known, {"engine": "laplace"}),
    ],
    ids=lambda v: getattr(v, "name", v),
)
def test_a_fit_is_bit_for_bit_that_of_double_precision(model, how, monkeypatch):
    double = fitted(model, "float64", monkeypatch, **how)
    single = fitted(model, "float32", monkeypatch, **how)
    for a, b in zip(double, single, strict=True):
        assert b.dtype == np.float64
        np.testing.assert_array_equal(a, b)


def test_the_setting_comes_back_also_after_an_error():
    with pytensor.config.change_flags(floatX="float32"):
        with COMPILE, COMPILE:
            assert pytensor.config.floatX == "float64"
        with pytest.raises(ZeroDivisionError), COMPILE:
            raise ZeroDivisionError
        assert pytensor.config.floatX == "float32"
