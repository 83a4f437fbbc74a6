"""`bandit.posterior(arm)` is of all rounds, and asking for it changes no decision."""

import pickle

import numpy as np
import pytest

import bayesbandit as bb
from tests.cases import few


def lasso(**settings):
    return bb.BayesianLassoTS(2, 3, refit_every=50, seed=1, **settings)


def estimated():
    balance = bb.InversePropensity(propensity="estimated")
    model = bb.load_model("bayesian_lasso")
    return bb.Bandit(
        2, bb.Sampled(model, refit_every=50, draws=50), bb.Thompson(), balance, n_features=3, seed=1
    )


def played(bandit, n, seed=0):
    rng = np.random.default_rng(seed)
    for x in rng.normal(size=(n, 3)):
        decision = bandit.choose(x)
        bandit.observe(decision, x[0] * (1 - 2 * decision.arm) + 0.1 * rng.normal())
    return bandit


KINDS = pytest.mark.parametrize("make", [lasso, estimated])


@few("[lasso]")
@KINDS
def test_it_is_fitted_once_for_the_same_rounds(make):
    bandit, x = played(make(), 90), np.ones((1, 3))
    assert bandit.posterior(0) is bandit.posterior(0)
    known = bandit.posterior(0).mean(x)
    assert pickle.loads(pickle.dumps(bandit)).posterior(0).mean(x) == known
    assert bandit.copy().posterior(0).mean(x) == known
    played(bandit, 30)
    assert bandit.posterior(0).mean(x) != known
