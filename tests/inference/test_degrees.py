"""The degree analysis: sound on random expressions; refusals name variable and operation."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymc.distributions.transforms import ordered
from pytensor.compile.builders import OpFromGraph
from pytensor.gradient import disconnected_grad
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.traversal import toposort
from pytensor.tensor.math import Dot

from bayesbandit.inference.base import Refusal
from bayesbandit.inference.exact import gaussian as exact
from bayesbandit.inference.graph_analysis import degrees
from bayesbandit.inference.graph_analysis.degrees import Analytic, Degrees
from bayesbandit.inference.graph_analysis.operations import number
from bayesbandit.inference.graph_analysis.rewrites import unfolded
from tests.inference.declared import FAST, built, rows
from tests.inference.linear import regression


def prior(distribution, *parameters, **settings):
    """A declaration with a prior of its own on the coefficients."""
    make = getattr(pm, distribution)
    return regression("refused", lambda: make("theta", *parameters, dims="feature", **settings))


def mean(f):
    """A declaration whose mean reward is `f(x, θ)`, with a normal prior."""
    return regression("refused", mean=f)


def likelihood(f):
    """A declaration whose rewards are distributed as `f(mean, reward)` says."""
    return regression("refused", likelihood=lambda mu, reward, weight: f(mu, reward))


def imputed(mu, reward):
    seen = rows()["reward"].copy()
    seen[[3, 7]] = np.nan
    pm.Normal("r", mu, 1.0, observed=seen)


def two_coefficients(x, theta):
    return x[:, 0] * pm.Normal("a") * pm.Normal("b")


def each_row(x, theta):
    return x @ theta + pm.Normal("u", 0, 1, dims="row")


def potential(f):
    """A declaration with a potential `f(θ)`."""

    def mean(x, theta):
        pm.Potential("penalty", f(theta))
        return x @ theta

    return regression("refused", mean=mean)


REFUSED = {
    "laplace": (
        prior("Laplace", 0, 1),
        "'theta' ~ Laplace: non-polynomial function abs of 'theta'",
    ),
    "mixture": (
        prior("NormalMixture", w=[0.5, 0.5], mu=[0, 1], sigma=[1, 1]),
        "'theta' ~ Mixture: non-polynomial reduction max of 'theta'",
    ),
    "truncated": (prior("TruncatedNormal", 0, 1, lower=0), "~ TruncatedNormal: interval transform"),
    "ordered": (
        prior("Normal", np.arange(3), 1, transform=ordered),
        "'theta' ~ Normal: ordered transform",
    ),
    "poisson prior": (prior("Poisson", 3), "'theta' ~ Poisson: discrete"),
    "censored": (
        likelihood(
            lambda mu, r: pm.Censored("r", pm.Normal.dist(mu, 1), lower=-1, upper=None, observed=r)
        ),
        "'r' ~ Censored: non-polynomial function erfc of 'theta'",
    ),
    "free noise": (
        likelihood(lambda mu, r: pm.Normal("r", mu, pm.HalfNormal("sigma", 1), observed=r)),
        "'sigma' ~ HalfNormal: log transform",
    ),
    "interaction": (mean(two_coefficients), "'reward' ~ Normal: product of 'a' and 'b' (degree 4)"),
    "sort": (mean(lambda x, t: x @ pt.sort(t)), "unrecognised operation SortOp of 'theta'"),
    "integer": (
        mean(lambda x, t: x @ t.astype("int64")),
        "'reward' ~ Normal: cast to int64 of 'theta'",
    ),
    "division": (mean(lambda x, t: x[:, 0] / t[0]), "'reward' ~ Normal: division by 'theta'"),
    "product": (
        mean(lambda x, t: x @ pt.cumprod(t)),
        "'reward' ~ Normal: cumulative product of 'theta'",
    ),
    "potential": (
        potential(lambda t: -pt.abs(t).sum()),
        "potential 'penalty': non-polynomial function abs of 'theta'",
    ),
    "a wall and more": (potential(lambda t: pt.switch(t[0] > 50, -np.inf, 0.0) + 1.0), "gt of"),
    "a shape": (potential(lambda t: -3.0 * t[t > 0].shape[0]), "of 'theta'"),
    "missing rewards": (
        likelihood(imputed),
        "'r_unobserved' ~ Normal: missing rewards are imputed",
    ),
    "one for each row": (mean(each_row), "'u' ~ Normal: one value for each row"),
    "nothing free": (
        regression("refused", lambda: 1.0, lambda x, t: x.sum(axis=1)),
        "the model has no free variable",
    ),
}


v = pt.vector("v", shape=(3,))
c = pt.constant(np.array([1.0, -2.0, 0.5]))
A = pt.constant(np.random.default_rng(0).normal(size=(3, 3)))


def degree(graph, variable=v):
    [graph] = unfolded([graph])
    return Degrees([graph], {variable: 1.0}).of(graph)


class Disguised(Op):
    """The sine, under a name that the tables know."""

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.sin(inputs[0])


Disguised.__name__ = Dot.__name__
squares = OpFromGraph([v], [v**2 + 1])


@pytest.mark.parametrize(
    ("graph", "k"),
    [
        (c * 2, 0),
        (v.shape[0] + c, 0),
        (pt.dot(A, v).sum(), 1),
        (pt.concatenate([v, c])[1:4].reshape((3, 1)), 1),
        (pt.zeros(5)[1:4].inc(v), 1),
        (pt.zeros(5)[1:4].set(v), 1),
        (pt.cumsum(v), 1),
        (pt.linalg.solve(A, v), 1),
        (pt.switch(c > 0, v, -v), 1),
        (v.mean(), 1),
        (v**0, 0),
        (v**2, 2),
        (pt.outer(v, v), 2),
        (pt.einsum("i,i->", v, v), 2),
        (squares(v), 2),
        (v**3 * v, 4),
        (pt.exp(c) * v, 1),
        (pt.exp(v), np.inf),
        (v**0.5, np.inf),
        (v**-1, np.inf),
        (c / v, np.inf),
        (pt.abs(v), np.inf),
        (pt.switch(v > 0, v, -v), np.inf),
        (pt.cumprod(v), np.inf),
        (pt.max(v), np.inf),
        (pt.sort(v), np.inf),
        (v.astype("int64").astype("float64"), np.inf),
        (v.astype("float32").astype("float64"), np.inf),
        (c[pt.argmax(v)], np.inf),
        (pt.linalg.inv(pt.diag(v)), np.inf),
        (pt.linalg.solve(A + pt.diag(v), c), np.inf),
        (disconnected_grad(v), np.inf),
        (Disguised()(v), np.inf),
        (squares(pt.exp(v)), np.inf),
        (pytensor.scan(lambda a: 2 * a, sequences=[v], return_updates=False), np.inf),
    ],
)
def test_degrees(graph, k):
    assert degree(graph) == k


UNARY = [
    *(lambda a: -a, pt.sqr, pt.cumsum, pt.exp, pt.abs, lambda a: a**3, lambda a: pt.dot(A, a)),
    *(lambda a: a[::-1], lambda a: a.sum() * c, lambda a: a / c, lambda a: c / (2 + pt.sqr(a))),
    *(lambda a: squares(a), pt.sort, lambda a: pt.zeros(3)[:2].inc(a[1:]), pt.cumprod),
]
BINARY = [
    *(lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, pt.maximum),
    *(lambda a, b: pt.dot(a, b) * c, lambda a, b: pt.einsum("i,i->i", a, b), lambda a, b: a / b),
    *(lambda a, b: pt.stack([a, b]).sum(axis=0), lambda a, b: pt.switch(a > 0, a, b)),
]
expressions = st.recursive(
    st.sampled_from([v, c, v + c]),
    lambda inner: (
        st.builds(lambda f, a: f(a), st.sampled_from(UNARY), inner)
        | st.builds(lambda f, a, b: f(a, b), st.sampled_from(BINARY), inner, inner)
    ),
    max_leaves=5,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(expressions)
def test_no_expression_is_of_a_higher_degree_than_it_is_said_to_be(graph):
    k = degree(graph)
    if k > 6:
        return
    a, b = np.random.default_rng(1).normal(size=(2, 3))
    function = pytensor.function([v], graph, mode=FAST, on_unused_input="ignore")
    steps = np.arange(k + 2)  # a polynomial of degree k has no difference of order k + 1
    values = np.array([function(a + t * b) for t in steps])
    gaps = np.diff(values, n=int(k) + 1, axis=0)
    assert np.abs(gaps).max() <= 1e-9 * (1 + np.abs(values).max()) * 2.0**k


s = pt.scalar("s")


@pytest.mark.parametrize(
    ("graph", "fault"),
    [
        (pt.log(s) - 1 / s + s**-2.5, None),
        (pt.switch(s >= 0, pt.log(s), -np.inf), None),
        (pt.switch(pt.eq(pt.log(s), -np.inf), -np.inf, s), None),
        (pm.logp(pm.InverseGamma.dist(2.0, 1.0), s), None),
        (pm.logp(pm.Gamma.dist(2.0, 1.0), s), None),
        (pm.logp(pm.HalfNormal.dist(1.0), s), None),
        (pt.switch(pt.eq(-2.0 * s, 0.0), -np.inf, s), None),
        (pt.switch(pt.eq(s, s), pt.gammaln(s), -np.inf), None),
        (pt.switch(s >= 1, pt.log(s), -np.inf), "non-polynomial function ge of 's'"),
        (pt.switch(s - 1 >= 0, 0.0, s), "non-polynomial function ge of 's'"),
        (pt.switch(pt.eq(pt.log(s - 1), -np.inf), 0.0, s), "non-polynomial function eq of 's'"),
        (pt.abs(s - 1), "non-polynomial function abs of 's'"),
        (pt.minimum(s, 5.0), "non-polynomial function minimum of 's'"),
        (pt.floor(s) + 0.5, "non-polynomial function floor of 's'"),
        (pt.round(s) + 0.5, "non-polynomial function roundhalftoeven of 's'"),
        (pt.clip(s, -5, 5), "non-polynomial function clip of 's'"),
        (pt.switch(s > 100, 4.0, 1.0), "non-polynomial function gt of 's'"),
        (pt.sqrt((s - 9) ** 2), "function sqrt of what may be 0, of 's'"),
        (pt.sqrt((s + 9) ** 2) + pt.exp(s / 100), None),
        (pt.abs(1 - pt.sigmoid(s)), None),
        (pt.abs(pt.cast(1, "int8") + 0.5 - pt.sigmoid(s)), None),
        (pt.abs(0.5 - pt.sigmoid(s)), "non-polynomial function abs of 's'"),
        (pt.abs(s - pt.sigmoid(s)), "non-polynomial function abs of 's'"),
    ],
)
@pytest.mark.parametrize("folded", [False, True])
def test_analytic_on_the_positive_numbers(graph, fault, folded):
    if folded:
        graph = OpFromGraph([s], [graph])(s)
    [graph] = unfolded([graph])
    assert Analytic([graph], {s: 1.0}).fault(graph, most=1) == fault


def test_the_guards_of_a_uniform_are_beyond_its_bounds():
    graph = pm.logp(pm.Uniform.dist(0.5, 10.0), s) + pt.log(s)
    assert Analytic([graph], {s: 1.0}).fault(graph, most=1)
    assert Analytic([graph], {s: 1.0}, between={s: (0.5, 10.0)}).fault(graph, most=1) is None
    assert Analytic([graph], {s: 1.0}, between={s: (0.5, 11.0)}).fault(graph, most=1)
    rest = pt.switch(pt.eq(1.0 - s, 0.0), -np.inf, pt.log(1.0 - s))
    assert Analytic([rest], {s: 1.0}, between={s: (0.0, 1.0)}).fault(rest, most=1) is None
    assert Analytic([rest], {s: 1.0}).fault(rest, most=1)


def test_the_numbers_of_a_vector_are_not_one_number():
    graph = pt.switch(v[:, None] > v, 1.0, 2.0).sum()
    assert "gt" in (Analytic([graph], {v: 1.0}).fault(graph, most=1) or "")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        (pt.constant(2.5), 2.5),
        (pt.cast(pt.constant(3, dtype="int8"), "float64").dimshuffle("x", "x"), 3.0),
        (pt.full((4,), 2.0) + 1, 3.0),
        (pt.constant([7.0, 7.0]), 7.0),
        (c, None),
        (s, None),
        (0 * s, None),
        (None, None),
    ],
)
def test_one_number_is_seen_however_it_is_written(variable, value):
    assert number(variable) == value


@pytest.mark.parametrize("function", [pt.abs, pt.sign])
def test_within_a_function_only_what_is_positive_has_a_sign(function):
    u = pt.scalar("u")
    [graph] = unfolded([OpFromGraph([u], [function(u) + 1])(pt.log(s))])
    assert "of 's'" in Analytic([graph], {s: 1.0}).fault(graph, most=1)


def test_a_graph_unfolded_is_the_same_function():
    twice = OpFromGraph([v], [squares(2 * v) - 1])
    rows = pt.matrix("rows", shape=(None, 3))
    for x, graph in ((v, twice(v)), (rows, pt.vectorize(twice, signature="(k)->(k)")(rows))):
        [plain] = unfolded([graph])
        assert not any(isinstance(node.op, OpFromGraph) for node in toposort([plain]))
        assert not any(isinstance(getattr(n.op, "core_op", None), OpFromGraph)
                       for n in toposort([plain]))  # fmt: skip
        values = np.random.default_rng(2).normal(size=[3] if x is v else [4, 3])
        np.testing.assert_allclose(graph.eval({x: values}), plain.eval({x: values}), rtol=1e-14)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
def test_what_is_not_gaussian_is_refused_and_says_why(name):
    declare, words = REFUSED[name]
    refusal = exact.match(built(declare, rows()))
    assert isinstance(refusal, Refusal), "accepted"
    assert refusal.engine == "exact_gaussian"
    assert words in refusal.reason
    assert str(refusal) == f"exact_gaussian: {refusal.reason}"


@pytest.mark.slow
def test_an_error_in_the_tables_is_caught_on_the_rows_at_hand(monkeypatch):
    """The identity test stands behind the proof."""
    monkeypatch.setattr(degrees, "ELEMENTWISE", {*degrees.ELEMENTWISE, "Abs"})
    refusal = exact.match(built(mean(lambda x, t: pt.abs(x @ t)), rows()))
    assert "on these rows the log density differs from its closed form" in refusal.reason


@pytest.mark.slow
def test_what_counts_is_the_density_and_not_a_gradient_given_by_hand():
    a, g = pt.vector(), pt.vector()
    wrong = OpFromGraph([a], [2 * a], lop_overrides=OpFromGraph([a, a.type(), g], [3 * g]))
    data = rows()
    found, expected = (
        exact.match(built(mean(lambda x, t, twice=twice: x @ twice(t)), data))
        for twice in (wrong, lambda t: 2 * t)
    )
    known, right = (engine.posterior(**data) for engine in (found, expected))
    np.testing.assert_allclose(known.mean, right.mean, rtol=1e-10)
    np.testing.assert_allclose(known.precision, right.precision, rtol=1e-10)
