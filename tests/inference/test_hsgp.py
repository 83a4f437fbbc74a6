"""Gaussian processes by PyMC's HSGP with a fixed centre: near the dense one, and in bandits."""

import warnings

import numpy as np
import pymc as pm
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern

import bayesbandit as bb
from bayesbandit.beliefs.regressions import Regressions
from bayesbandit.model import RewardModel
from tests.declarations import normal_rewards

pytestmark = pytest.mark.slow  # a declaration of a process is built in a second
SD, LENGTH, CORNERS = 0.3, 1.2, np.array([[-3.0, -3.0], [3.0, 3.0]])


def by_basis(x, reward, weight):
    gp = pm.gp.HSGP(m=[20, 20], L=[6.0, 6.0], cov_func=pm.gp.cov.Matern52(2, ls=LENGTH))
    gp.prior_linearized(CORNERS)
    phi, root = gp.prior_linearized(x)
    mu = phi @ (pm.Normal("beta", 0, 1, shape=gp.n_basis_vectors) * root)
    return normal_rewards(mu, SD / pm.math.sqrt(weight), reward)


def of_a_prior(m, c, length=lambda: LENGTH, centred=True):
    """A process by its prior, with a length scale, and about the corners or the rows."""

    def process(x, reward):
        gp = pm.gp.HSGP(m=[m], c=c, cov_func=pm.gp.cov.ExpQuad(1, ls=length()))
        if centred:
            gp.prior_linearized(CORNERS[:, :1])
        return normal_rewards(gp.prior("f", X=x[:, :1]), SD, reward)

    return process


by_prior = of_a_prior(30, 2.0)
CASES = {by_prior: RBF(LENGTH, "fixed"), by_basis: Matern(LENGTH, "fixed", nu=2.5)}


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_a_bandit_streams_the_gaussian_process(function, rng):
    """In closed form, reward by reward, whatever contexts come first."""
    model, columns = RewardModel(function, {}), slice(1 if function is by_prior else 2)
    with warnings.catch_warnings(action="error", category=UserWarning):  # of internal copies
        bandit = bb.Bandit(2, model, bb.Thompson(), n_features=2)
    assert type(bandit.belief) is Regressions
    x = rng.uniform(-2.5, 2.5, size=(40, 2))
    reward = np.sin(2 * x[:, 0]) + SD * rng.normal(size=40)
    for i in range(40):
        bandit.update(x[i], [0], [reward[i]])
    dense = GaussianProcessRegressor(CASES[function], alpha=SD**2, optimizer=None)
    mean, sd = dense.fit(x[:, columns], reward).predict(x[:, columns], return_std=True)
    found = bandit.belief.predict(x)
    np.testing.assert_allclose(found.mean[:, 0], mean, atol=0.01)
    np.testing.assert_allclose(found.sd[:, 0], sd, atol=0.01)


def test_a_length_scale_that_is_learned_leaves_rows_independent():
    found = bb.inference.plan.plan(
        RewardModel(of_a_prior(8, 1.5, lambda: pm.InverseGamma("ell", 3, 3)), {}), 2
    )
    assert found.engine == "nuts"
    assert found.row_likelihood.refused == ""


def test_a_centre_that_is_taken_from_the_rows_is_refused_with_the_way_out():
    uncentred = of_a_prior(8, 1.5, centred=False)
    with pytest.raises(ValueError, match=r"HSGP takes its centre.*call gp\.prior_linearized\(corn"):
        bb.Bandit(2, RewardModel(uncentred, {}), bb.Thompson(), n_features=2)
