"""Laws of the exact Gaussian engine, on many ways of declaring a linear-Gaussian model."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from bayesbandit.inference.base import Improper, NotThisEngine
from bayesbandit.inference.exact import gaussian as exact
from bayesbandit.inference.exact.gaussian import ExactGaussian
from bayesbandit.inference.graph_analysis.rows import not_additive
from bayesbandit.inference.pymc_model.outcomes import Outcomes
from tests.cases import slow_but
from tests.inference import linear
from tests.inference.declared import built, rows
from tests.inference.test_closed_forms import matched

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


NOT_AT_HAND = {  # an sd, what is seen of the reward, and whether weights are the rows' precisions
    "a clipped reward": (lambda x, r, w: w**-0.5, lambda r: pt.clip(r, -5, 5), True),
    "a far context": (lambda x, r, w: pt.switch(x[:, 0] > 100, 4.0, 1.0) * w**-0.5, None, True),
    "a large reward": (lambda x, r, w: pt.switch(abs(r) > 1000, 4.0, 1.0) * w**-0.5, None, True),
    "a large weight": (lambda x, r, w: pt.switch(w > 50, 1.0, w**-0.5), None, False),
    "a power by context": (lambda x, r, w: w ** -pt.switch(x[:, 0] > 100, 1.0, 0.5), None, False),
}


@pytest.mark.parametrize("name", NOT_AT_HAND)
def test_rows_that_are_not_at_hand_may_have_another_noise(name):
    sd, seen, by_weight = NOT_AT_HAND[name]

    def declare(x, reward, weight):
        mu = x @ pm.Normal("theta", 0, 1, dims="feature")
        observed = reward if seen is None else seen(reward)
        pm.Normal("reward", mu, sd(x, reward, weight), observed=observed)
        return mu

    engine = exact.match(built(declare, rows(n=linear.N, d=linear.D)))
    assert engine.noise is None
    assert engine.row_wise
    assert engine.row_noise.by_weight == by_weight


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
