"""The regression of arm on context behind estimated propensities, against scikit-learn's."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from bayesbandit.weighting.estimated import logistic
from tests.cases import few


def problem(rng, n, d, A, kind):
    x = rng.normal(size=(n, d))
    if kind == "correlated":
        x = x @ rng.normal(size=(d, d))
    score = 2 * x @ rng.normal(size=(d, A))
    label = (score if kind == "separable" else score + rng.gumbel(size=(n, A))).argmax(axis=1)
    label[:A] = np.arange(A)
    if kind == "constant":
        x[:, 0] = 7.0
    x = x - x.mean(axis=0)
    return x / np.where(x.std(axis=0) > 1e-9, x.std(axis=0), np.inf), label


def probabilities(x, logits):
    return softmax(np.column_stack([x, np.ones(len(x))]) @ logits.T, axis=1)


@pytest.mark.parametrize("kind", ["independent", "correlated", "separable", "constant"])
@pytest.mark.parametrize(
    ("n", "d", "A"), [(2, 3, 2), (30, 1, 2), (400, 5, 3), (300, 12, 7), (40, 150, 3)]
)
@few("2-3-2", "30-1-2")
def test_it_is_scikit_learns_at_its_tightest(n, d, A, kind, rng):
    x, label = problem(rng, n, d, A, kind)
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=10_000).fit(x, label)
    p = probabilities(x, logistic(x, label))
    np.testing.assert_allclose(p, theirs.predict_proba(x), rtol=1e-3, atol=1e-4)


def test_without_features_it_is_the_shares_of_the_labels():
    label = np.repeat([0, 1, 2], [5, 3, 2])
    p = probabilities(np.empty((10, 0)), logistic(np.empty((10, 0)), label))
    np.testing.assert_allclose(p[0], [0.5, 0.3, 0.2], rtol=1e-4)


def test_neither_the_order_of_rows_nor_the_labels_numbers_matter(rng):
    x, label = problem(rng, 200, 4, 3, "correlated")
    p, order = probabilities(x, logistic(x, label)), rng.permutation(200)
    again = probabilities(x, logistic(x[order], label[order]))
    renumbered = probabilities(x, logistic(x, 2 - label))[:, ::-1]
    np.testing.assert_allclose(again, p, rtol=1e-3)
    np.testing.assert_allclose(renumbered, p, rtol=1e-3)
