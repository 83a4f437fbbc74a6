"""What Python does in the place of a kernel is what the kernel does; and it compiles nothing."""

import numpy as np
import pytest
from numba import njit

import bayesbandit as bb
from bayesbandit.kernels import linear
from bayesbandit.runtime.compiling import interpreted

VARIANCES = ["empirical_bayes", "rss/n", "rss", "nig", 0.5]


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("intercept", [True, False, "unpenalised"])
def test_an_arm_begins_alike(variance, intercept):
    belief = bb.Ridge(variance=variance, intercept=intercept).belief(2, 3)
    compiled = np.empty(belief.arms.shape[1])
    linear.initialise(compiled, belief.settings)
    np.testing.assert_array_equal(belief.arms[0], compiled)


@njit
def inner(x):
    return x + 1.0


@njit
def outer(x):
    return 2.0 * inner(x)


def test_it_compiles_nothing():
    assert interpreted(outer)(3.0) == 8.0
    assert not outer.signatures
    assert not inner.signatures
    assert outer(3.0) == 8.0
