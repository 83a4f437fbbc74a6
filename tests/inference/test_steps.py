"""A graph's steps give what PyTensor gives, and are taken only where it has plain operations."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import vectorize_graph

from bayesbandit.inference.base import Compiled
from bayesbandit.inference.steps import steps
from bayesbandit.inference.uncompiled import UNCOMPILED_MODE


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
