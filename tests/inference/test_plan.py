"""Which engine a declaration gets, why not a faster one, and when a plan is the same plan."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import numpy as np
import pymc as pm
import pytest

from bayesbandit.declaring.priors import Prior
from bayesbandit.inference.base import NotThisEngine, Refusal
from bayesbandit.inference.plan import explain, plan
from bayesbandit.model import reward_model
from bayesbandit.posteriors.fitting import fit
from tests import declarations as declared
from tests.cases import few
from tests.inference import linear


@reward_model()
def wide_laplace(x, reward):
    """PyTensor keeps 20 in eight bits, where its square is -112."""
    theta = pm.Laplace("theta", 0, 20, dims="feature")
    return declared.normal_rewards(x @ theta, 1, reward)


@few("[model0-exact_gaussian-0]")
@pytest.mark.parametrize(
    ("model", "engine", "reasons"),
    [
        (declared.known, "exact_gaussian", 0),
        (declared.noncentred, "exact_gaussian", 0),
        (declared.potential, "exact_gaussian", 0),
        (declared.conjugate, "normal_inverse_gamma", 1),
        (declared.lasso, "gibbs", 3),
        (wide_laplace, "gibbs", 3),
        (declared.binary, "gibbs", 3),
        (declared.heavy, "nuts", 4),
    ],
)
def test_the_fastest_engine_that_fits_with_a_reason_for_each_faster_one(model, engine, reasons):
    found = plan(model, 3)
    assert found.engine == engine
    assert len(found.refusals) == reasons
    first, cost, *rest = explain(model, 3).splitlines()
    assert first == f"{model.name}: {engine}"
    assert ("closed form" in cost) == found.closed_form
    assert rest == [f"  not {refusal}" for refusal in found.refusals]
    assert found.explain() == explain(model, 3)


@pytest.mark.slow
def test_a_model_over_arms_has_a_plan_for_each_number_of_arms():
    assert plan(declared.pooled, 3, 4).engine == "exact_gaussian"
    assert plan(declared.pooled, 3, 4) is not plan(declared.pooled, 3, 5)
    assert explain(declared.pooled, 3) == explain(declared.pooled, 3, 4)
    with pytest.raises(ValueError, match="give n_arms"):
        plan(declared.pooled, 3)
    with pytest.raises(ValueError, match="does not take `arm`"):
        plan(declared.known, 3, 2)


def test_an_engine_that_does_not_fit_is_refused_with_its_reason():
    with pytest.raises(NotThisEngine, match="abs of 'theta'"):
        plan(declared.lasso, 3, engine="exact_gaussian")
    with pytest.raises(NotThisEngine, match=r"exact: no closed form.*normal_inverse_gamma: ") as e:
        plan(declared.lasso, 3, engine="exact")
    assert e.value.refusal.engine == "exact"
    with pytest.raises(ValueError, match=r"engine must be one of 'auto', 'exact'.*got 'stan'"):
        plan(declared.known, 3, engine="stan")


def test_a_discrete_variable_has_no_engine():
    with pytest.raises(NotThisEngine, match=r"no engine fits.*nuts: 'k' ~ Poisson: discrete"):
        plan(declared.counted, 3)


@pytest.mark.slow
def test_a_plan_is_kept_by_declaration_priors_and_shape():
    first = plan(declared.known, 3)
    wide = Prior("Normal", mu=0, sigma=9, dims="feature")
    assert plan(declared.known, 3).method is first.method
    same = declared.known.with_priors(theta=Prior("Normal", mu=0, sigma=2, dims="feature"))
    assert plan(same, 3).method is first.method
    assert plan(declared.known.with_priors(theta=wide), 3).method is not first.method
    assert plan(declared.known, 4).method is not first.method


@pytest.mark.slow
def test_rows_that_an_engine_refuses_change_no_later_plan():
    """From then on all fits of the model went to the next engine."""
    found = plan(declared.lasso, 3)
    other = found.without(Refusal("gibbs", "lost digits on these rows"))
    assert (found.engine, other.engine) == ("gibbs", "nuts")
    assert plan(declared.lasso, 3).engine == "gibbs"


@pytest.mark.slow
def test_plans_are_copied_stored_and_shared_by_threads():
    first = plan(declared.known, 3)
    assert copy.deepcopy(first) is first
    assert pickle.loads(cloudpickle.dumps(first)).method is first.method  # the function by value
    fresh = declared.known.with_priors(theta=Prior("Normal", mu=0, sigma=3, dims="feature"))
    with ThreadPoolExecutor(4) as pool:
        plans = list(pool.map(lambda _: plan(fresh, 2), range(4)))
    assert all(p.method is plans[0].method for p in plans)


@pytest.mark.slow
def test_a_prior_made_of_the_design_mixes_no_rows_of_the_mean():
    """Given θ, the mean reward of a row is its own; predictions were refused."""

    design, centred = map(reward_model(), (linear.zellner, linear.centred_contexts))
    assert plan(design, linear.D).row_mixing == ""
    assert plan(centred, linear.D).row_mixing == "mean over rows"
    x, reward, _ = declared.rows()
    found = fit(design, x, reward)
    np.testing.assert_allclose(found.mean(x), x @ found.coefficients["theta"][0])
