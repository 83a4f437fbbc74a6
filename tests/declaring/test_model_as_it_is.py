"""What a model of someone else's has in it is taken as it is, or refused in one true sentence."""

import pickle

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import ordered

import bayesbandit as bb
from bayesbandit.inference.plan import plan
from bayesbandit.model import RewardModel
from tests.declarations import normal_rewards

N = 60
THETA = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
EFFECT = bb.Prior("Normal", mu=0, sigma=1, dims="row")


def rows(d=2):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, d))
    return x, x.sum(axis=1) + rng.normal(size=N)


def masked(x, reward, theta):
    mu = x @ theta
    high = x[:, 0] > 0
    pm.Normal("low", mu[~high], 1, observed=reward[~high])
    pm.Potential("high", pm.logp(pm.Normal.dist(mu[high], 2), reward[high]))
    return mu


def test_rows_taken_by_a_mask_have_the_likelihood_that_is_written():
    x, r = rows()
    model = RewardModel(masked, {"theta": THETA})
    fit = bb.fit(model, x, r, seed=0)
    weight = np.where(x[:, 0] > 0, 0.25, 1.0)
    precision = x.T @ (weight[:, None] * x) + np.eye(2)
    mean, covariance = fit.coefficients["theta"]
    assert fit.engine == "exact_gaussian"
    np.testing.assert_allclose(mean, np.linalg.solve(precision, x.T @ (weight * r)))
    np.testing.assert_allclose(covariance, np.linalg.inv(precision))


def rated(start):
    def declared(x, reward, theta):
        cut = pm.Normal("cut", 0, 2, shape=2, transform=ordered, initval=np.array(start))
        eta = x @ theta
        pm.OrderedLogistic("y", eta=eta, cutpoints=cut, observed=pt.cast(reward, "int64"))
        return 2 - pm.math.sigmoid(cut[None, :] - eta[:, None]).sum(axis=1)

    return RewardModel(declared, {"theta": THETA})


def test_initial_values_are_the_start_of_the_engine():
    x, _ = rows()
    for start in ([-1.0, 1.0], [-2.0, 0.5]):
        model = rated(start)
        chosen = plan(model, 2)
        assert chosen.engine == "nuts"
        value = chosen.method.model.initial_point()["cut_ordered__"]
        np.testing.assert_allclose(value, [start[0], np.log(start[1] - start[0])])
    with pytest.raises(ValueError, match="without the order that its transform"):
        model.check(x)


def mixture(x, reward, theta):
    p = pm.Beta("p", 2, 2)
    z = pm.Bernoulli("z", p, shape=x.shape[0])
    mu = x @ theta
    pm.Normal("y", mu + 3 * z, 1, observed=reward)
    return mu + 3 * p


def test_discrete_variables_are_summed_out():
    x, r = rows()
    model = RewardModel(mixture, {"theta": THETA})
    built = model.build(x, r)
    assert [v.name for v in built.free_RVs] == ["theta", "p"]
    at = {"theta": np.array([0.5, -0.2]), "p_logodds__": np.array(0.3)}
    p = 1 / (1 + np.exp(-0.3))
    mu = x @ at["theta"]
    low, high = (np.exp(-0.5 * (r - mu - s) ** 2) / np.sqrt(2 * np.pi) for s in (0, 3))
    values = built.compile_logp(vars=[built["y"]], mode="FAST_COMPILE")(at)
    np.testing.assert_allclose(values, np.log(p * high + (1 - p) * low).sum())


def test_a_mean_of_discrete_variables_is_refused_with_what_to_return():
    def declared(x, reward, theta):
        z = pm.Bernoulli("z", 0.5)
        pm.Normal("y", x @ theta + 3 * z, 1, observed=reward)
        return x @ theta + 3 * z

    with pytest.raises(ValueError, match="return the mean over its values"):
        RewardModel(declared, {"theta": THETA}).explain(2)


def test_no_bandit_compiles_at_every_refit():
    def declared(x, reward, theta, effect):
        mu = x @ theta
        pm.Poisson("y", pm.math.exp(mu + effect), observed=reward)
        return pm.math.exp(mu + 0.5)

    model = RewardModel(declared, {"theta": THETA, "effect": EFFECT})
    assert "no bandit plays it" in model.explain(2, bandit=True)
    with pytest.raises(ValueError, match="nuts would compile at every refit"):
        bb.Bandit(["a", "b"], model, bb.Thompson(), n_features=2)


AGE, INCOME = 0, 1


@bb.reward_model(
    coords={"region": ["north", "south"]},
    slope=bb.Prior("Normal", mu=0, sigma=1),
    level=bb.Prior("Normal", mu=0, sigma=1, dims="region"),
)
def by_number(x, reward, slope, level):
    return normal_rewards(x[:, AGE] * slope + level[pt.cast(x[:, INCOME] > 0, "int64")], 1, reward)


def test_columns_by_number_and_labels_of_dimensions():
    x, r = rows()
    posterior = bb.fit(by_number, pd.DataFrame(x, columns=["age", "income"]), r, seed=0)
    assert posterior.engine == "exact_gaussian"
    high = (x[:, 1] > 0).astype(float)
    design = np.column_stack([x[:, 0], 1 - high, high])
    mean = np.linalg.solve(design.T @ design + np.eye(3), design.T @ r)
    np.testing.assert_allclose(posterior.coefficients["slope"][0], mean[0])
    np.testing.assert_allclose(posterior.coefficients["level"][0], mean[1:])
    assert pickle.loads(pickle.dumps(by_number)) == by_number
    bandit = bb.Bandit(["a", "b"], by_number, bb.Thompson(), n_features=2)
    bandit.observe(bandit.choose(x[0]), 1.0)
