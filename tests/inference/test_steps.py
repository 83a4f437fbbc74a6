"""A graph's steps give what PyTensor gives, and are taken only where it has plain operations;
sums are of more arrays than NumPy's functions take."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import vectorize_graph

import bayesbandit as bb
from bayesbandit.inference.base import Compiled
from bayesbandit.inference.steps import steps
from bayesbandit.inference.uncompiled import UNCOMPILED_MODE
from tests.cases import few


def graphs():
    """Inputs, and a graph of each class of operations."""
    x, k, v = pt.matrix("x"), pt.lvector("k"), pt.vector("v")
    rows = pt.arange(x.shape[0])
    return [x, k, v], [
        pt.softplus(x) + pt.log1mexp(-pt.abs(x)) + pt.sigmoid(x),
        pt.second(x, pt.constant(2.0)),
        pt.sqrt(k) / k + k[:, None] ** 2,
        pt.switch(pt.lt(x, 0.0), -np.inf, pt.log(pt.abs(x))) + pt.clip(x, -1.0, 0.5),
        x[rows, k] + x[:, 1:].sum(axis=1) + pt.max(x, axis=1),
        x.dimshuffle(1, "x", 0)[:, 0, :] @ x,
        pt.concatenate([x, v[:, None], pt.zeros_like(x)], axis=1).reshape((-1,)),
        pt.cast(x > 0, "int8") + k[:, None],
        pt.logsumexp(x, axis=1),
        pt.all(x > -1.0, axis=(0, 1)) & pt.any(x[:, :2] > 1.0, axis=1),
        x[:, :, None].sum(axis=(0, 2)) + x[0, -1],
        pt.full((x.shape[0], 2), v[0]),
        vectorize_graph(pt.concatenate([v, v[:1]]), {v: x}),
        pt.cumsum(x, axis=1) + pt.set_subtensor(pt.empty(x.shape)[:], x),
    ]


def given(n, rng):
    return rng.normal(size=(n, 3)), np.arange(n) % 3, rng.normal(size=n)


@pytest.mark.slow
def test_steps_are_the_graph(rng):
    inputs, outputs = graphs()
    function = pytensor.function(inputs, outputs, mode=UNCOMPILED_MODE)
    ours = Compiled(inputs, outputs, trusted=True)
    assert ours._steps is not None
    for n in (1, 6, 12):
        arguments = given(n, rng)
        for a, b in zip(ours(*arguments), function(*arguments), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-14)


def test_what_loops_in_python_is_left_to_pytensor():
    x, v = pt.tensor3("x"), pt.vector("v")
    left = pytensor.function([x], [pt.linalg.cholesky(x)], mode=UNCOMPILED_MODE)
    parts = pytensor.function([v], pt.split(v, splits_size=[1, 2]), mode=UNCOMPILED_MODE)
    assert steps(left.maker.fgraph) is None
    assert steps(parts.maker.fgraph) is None


def test_shared_variables_have_the_values_of_the_moment():
    x, scale = pt.vector("x"), pytensor.shared(np.array(2.0))
    scaled = Compiled([x], [x * scale + 1.0], trusted=True)
    assert scaled._steps is not None
    for value in (2.0, 5.0):
        scale.set_value(np.array(value))
        np.testing.assert_array_equal(scaled(np.arange(3.0))[0], np.arange(3.0) * value + 1.0)


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
