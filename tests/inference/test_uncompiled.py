"""A log density of many terms is a sum of more arrays than NumPy's functions take."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import bayesbandit as bb
from bayesbandit.inference.uncompiled import UNCOMPILED_MODE
from tests.cases import few


@pytest.mark.parametrize("op", [pt.add, pt.mul])
@pytest.mark.parametrize("n", [31, 32, 70, 1100])
def test_sums_and_products_of_any_length(op, n):
    numbers = np.random.default_rng(0).uniform(0.9, 1.1, size=n)
    terms = [pt.dscalar() for _ in range(n)]
    found = pytensor.function(terms, op(*terms), mode=UNCOMPILED_MODE)(*numbers)
    assert found == pytest.approx(numbers.sum() if op is pt.add else numbers.prod(), rel=1e-12)


@few("auto")
@pytest.mark.parametrize("engine", ["auto", "laplace"])
def test_a_model_of_many_variables(engine):
    @bb.reward_model(sigma=0.5)
    def many(x, reward, sigma):
        mu = sum(pm.Normal(f"b{j}", 0.0, 1.0) for j in range(40)) * x[:, 0]
        pm.Normal("reward", mu, sigma, observed=reward)
        return mu

    x = np.random.default_rng(0).normal(size=(30, 1))
    posterior = bb.fit(many, x, 2.0 * x[:, 0], seed=0, engine=engine)
    precision = 1.0 / 40.0 + (x**2).sum() / 0.25  # of the sum of the coefficients
    mean = (x[:, 0] @ (2.0 * x[:, 0])) / 0.25 / precision
    assert posterior.mean([[1.0]])[0] == pytest.approx(mean, abs=4 / np.sqrt(4000 * precision))
    assert posterior.sd([[1.0]])[0] == pytest.approx(1 / np.sqrt(precision), rel=0.1)
