"""Which rows reach which numbers: what the graph says holds when other rows are changed. Forms that
are read off values: known numbers, in any units."""

import math

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytensor.compile.builders import OpFromGraph

from bayesbandit.inference.graph_analysis.degrees import depends_on
from bayesbandit.inference.graph_analysis.form import NoForm, Variables
from bayesbandit.inference.graph_analysis.form_reader import Reader
from bayesbandit.inference.graph_analysis.rewrites import unfolded
from bayesbandit.inference.graph_analysis.rows import ALONG, CONSTANT, MIXED, SUM, Reach, RowWalk
from bayesbandit.inference.graph_analysis.summands import Part, added, summands
from tests.inference.declared import FAST

x, r, w = pt.matrix("x", shape=(None, 3)), pt.vector("r"), pt.vector("w")
k = pt.lvector("k")
theta = pt.vector("theta", shape=(3,))
table = pt.constant(np.arange(12.0).reshape(4, 3))
SEEDS = dict.fromkeys([x, r, w, k], Reach(ALONG, 0))


def reach(graph):
    [whole] = unfolded([graph])
    return RowWalk([whole], SEEDS).of(whole).kind


@pytest.mark.parametrize(
    ("graph", "kind"),
    [
        (theta * 2, CONSTANT),
        (x @ theta, ALONG),
        (pt.zeros_like(r) + theta[0], ALONG),
        (r - (x * table[k]).sum(axis=1), ALONG),
        ((x @ table.T)[pt.arange(x.shape[0]), k], ALONG),
        (pt.concatenate([x, x**2, pt.ones((x.shape[0], 1))], axis=1), ALONG),
        (pt.exp(-(r**2)).sum(), SUM),
        (x.T @ r, SUM),
        (2 * r.sum() - w.sum(), SUM),
        (r.sum() + 1.0, MIXED),
        (r.sum() ** 2, MIXED),
        (r.mean(), MIXED),
        (x - x.mean(axis=0), MIXED),
        (pt.concatenate([[0.0], r[:-1]]), MIXED),
        (r[::-1], MIXED),
        (pt.sort(r), MIXED),
        (pt.cumsum(r), MIXED),
        (pt.arange(x.shape[0]) * r, MIXED),
        (r * pt.minimum(1.0, 20.0 / x.shape[0]), MIXED),
        (r[:, None] - r[None, :], MIXED),
        (pt.eq(x[:, 0][:, None], x[:, 0]), MIXED),
        (pt.diag(w), MIXED),
        (r - np.arange(7.0), MIXED),  # numbers that stand beside the rows one for one
        (x.reshape((-1, 1)), MIXED),
        (pt.max(r), MIXED),
        (theta[0] * x.shape[0], MIXED),
        (pytensor.scan(lambda a: 2 * a, sequences=[r], return_updates=False), MIXED),
        (pt.einsum("ij,j->i", x, theta), ALONG),
        (pt.einsum("ij,ij->i", x, table[k]), ALONG),
        (pt.einsum("ij,ij,j->i", x, x - x.mean(axis=0), theta), MIXED),
        (pt.einsum("ij,kj,k->i", x, x, w), MIXED),
    ],
)
def test_what_is_said_of_rows(graph, kind):
    assert reach(graph) == kind


STEPS = [
    *(pt.exp, pt.abs, lambda a: a**2, lambda a: a * theta[0], lambda a: a - r, lambda a: a * w),
    *(lambda a: a + (x @ theta), lambda a: a - a.mean(), lambda a: a[::-1], pt.cumsum, pt.sort),
    *(lambda a: pt.switch(x[:, 0] > 0, a, r), lambda a: a * table[k, 0], lambda a: a / a.shape[0]),
    *(lambda a: pt.concatenate([a[:1], a[:-1]]), lambda a: a[:, None][:, 0]),
    lambda a: pt.maximum(a, 0),
    *(lambda a: (a[:, None] * x).sum(axis=1), lambda a: a * pt.arange(a.shape[0])),
]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=4))
def test_no_row_of_what_is_said_to_be_along_the_rows_depends_on_another(steps):
    graph = r
    for step in steps:
        graph = step(graph)
    if reach(graph) != ALONG:
        return
    rng = np.random.default_rng(0)
    data = rng.normal(size=(6, 3)), rng.normal(size=6), rng.uniform(1, 2, 6), rng.integers(0, 4, 6)
    of = pytensor.function([x, r, w, k, theta], graph, mode=FAST, on_unused_input="ignore")
    whole = of(*data, np.array([0.3, -1.0, 2.0]))
    for i in range(6):
        alone = of(*(v[i : i + 1] for v in data), np.array([0.3, -1.0, 2.0]))
        np.testing.assert_allclose(alone[0], whole[i], rtol=1e-12)


@pytest.mark.parametrize(
    ("graph", "names"),
    [
        (pt.zeros_like(r) + x[:, 0], {"x"}),
        (r.shape[0] * theta, set()),
        (x @ theta + 0.8 * r, {"x", "r"}),
        (pt.switch(w > 1, 1.0, 2.0), {"w"}),
    ],
)
def test_values_depend_on_no_more_than_is_said(graph, names):
    assert depends_on([graph], {"x": x, "r": r, "w": w}) == names


FOLDED = pt.matrix("folded", shape=(None, 3))
CENTRED = OpFromGraph([FOLDED], [FOLDED - FOLDED.mean(axis=0)])


@pytest.mark.parametrize("graph", [x - x.mean(axis=0), CENTRED(x), (r - r.mean()) ** 2])
def test_a_mean_over_rows_is_called_so(graph):
    [whole] = unfolded([graph])
    assert RowWalk([whole], SEEDS).mixed(whole) == "mean over rows"


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
