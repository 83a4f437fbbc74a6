"""What Python does in the place of a kernel is what the kernel does; and it compiles nothing."""

from numba import njit

from bayesbandit.runtime.compiling import interpreted


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
