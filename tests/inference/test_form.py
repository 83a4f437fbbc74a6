"""Forms that are read off values: known numbers, in any units."""

import math

import numpy as np
import pytensor.tensor as pt
import pytest

from bayesbandit.inference.graph_analysis.form import (
    NoForm,
    Part,
    Reader,
    Variables,
    added,
    summands,
)

Z, V, W = pt.vector("z", shape=(3,)), pt.vector("v", shape=(3,)), pt.scalar("w")


def monomials(found):
    """The monomials of v and w alone: coefficients and powers."""
    squares = found.squares
    alone = np.diff(squares.forms.indptr) == 0
    assert (squares.offset[alone] == 1.0).all()
    return squares.coef[alone], squares.powers[alone]


def form(graph, between=(0.0, math.inf)):
    """The form of numbers in z (3,), v (3,) and w."""
    [(inside, sign)] = summands(graph)
    places = {"z": np.arange(3), "v": np.arange(3), "w": np.array(3)}
    variables = Variables(places, {"v": (0.0, math.inf), "w": between}, (), 3, 4)
    return Reader(Part(inside, sign, {"z": Z, "v": V, "w": W}, []), [], variables).read()


@pytest.mark.parametrize("unit", [1.0, 1e-8, 1e10])
def test_a_normal_density_in_any_units(unit):
    """About a mean far from 0, with scales of each and of all."""
    mu = unit * np.array([1.0, -2.0, 1e3])
    found = form((-0.5 * ((Z - mu) / (unit * V * W**0.5)) ** 2 - pt.log(V) - 0.5 * pt.log(W)).sum())
    s, a = found.squares, found.squares.forms.diagonal()
    powers = np.column_stack([-2.0 * np.eye(3), -np.ones(3)])
    np.testing.assert_array_equal(s.powers.toarray(), powers)
    np.testing.assert_allclose(s.coef * a**2, [-0.5 / unit**2] * 3, rtol=1e-12)
    np.testing.assert_allclose(s.offset / a, mu, rtol=1e-12)
    np.testing.assert_array_equal(found.linear, [-1.0, -1.0, -1.0, -1.5])
    assert not found.square.any()
    assert not monomials(found)[0].size


@pytest.mark.parametrize("unit", [1.0, 1e-20, 1e20])
def test_an_inverse_gamma_in_any_units(unit):
    found = form(-3.7 * pt.log(W) - 2.0 * unit / W)
    np.testing.assert_allclose(found.linear, [0, 0, 0, -3.7], rtol=1e-9)
    coef, powers = monomials(found)
    np.testing.assert_array_equal(powers.toarray(), [[0.0, 0.0, 0.0, -1.0]])
    np.testing.assert_allclose(coef, [-2.0 * unit], rtol=1e-9)


OTHERS = {
    "no monomial": (-(Z[0] ** 2) * (V[0] + W), "its precision is no monomial of 'v' and 'w'"),
    "not squared": (Z[0] * W, "'z' enters, but not squared"),
    "a logarithm times a power": (pt.log(W) * W, "'w'"),
    "the logarithm of a sum": (pt.log(V[0] + W), "'v'"),
    "a product of logarithms": (pt.log(V[0]) * pt.log(W), "no sum of squares, logarithms and mon"),
    "not finite": (W + np.inf, "not finite on these rows"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_numbers_of_another_form_are_refused(name):
    graph, words = OTHERS[name]
    with pytest.raises(NoForm, match=words):
        form(graph)


def test_a_sum_of_squares_of_different_scales_is_one_of_two_graphs():
    whole = -(Z**2) / V - (Z - 1) ** 2 / W
    with pytest.raises(NoForm, match="no monomial"):
        form(whole)
    assert [form(sign * g).squares.coef.size for g, sign in added(whole, 1.0)] == [3, 3]
