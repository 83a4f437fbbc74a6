"""Which arm is best by draws: by every tuple of draws, NumPy twins, and the normal integral."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit.kernels.prob_best import by_draws
from tests import oracle

SEEDS = st.integers(0, 2**32 - 1)
few, one_context = st.integers(1, 4), st.integers(1, 3)


def draws(seed, n, K, S, levels):
    """Draws (n, K, S): continuous, or of few levels, so that many are equal."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, K, S)) if levels == 0 else rng.integers(levels, size=(n, K, S)) / 7.0


def every_tuple(values):
    """P(arm is best) (n, K) of independent arms: each of the S^K tuples of draws (n, K, S) alike, a
    tie shared evenly."""
    n, K, S = values.shape
    out = np.zeros((n, K))
    for tuple_ in product(range(S), repeat=K):
        out += [oracle.winners(row) for row in values[:, np.arange(K), tuple_]]
    return out / S**K


def together(values):
    """P(arm is best) (n, K) from joint draws (n, S, K)."""
    best = values == values.max(axis=2, keepdims=True)
    return (best / best.sum(axis=2, keepdims=True)).mean(axis=1)


@given(SEEDS, one_context, few, few, st.sampled_from([0, 1, 2, 3]))
def test_independent_arms_are_every_tuple_of_draws(seed, n, K, S, levels):
    values = draws(seed, n, K, S, levels)
    np.testing.assert_allclose(by_draws.independent(values), every_tuple(values), atol=1e-12)


@given(SEEDS, one_context, st.integers(1, 9), st.integers(1, 60), st.sampled_from([0, 1, 2, 5]))
def test_dependent_arms_are_the_share_of_draws_won(seed, n, K, S, levels):
    values = draws(seed, n, S, K, levels)
    np.testing.assert_allclose(by_draws.joint(values), together(values), atol=1e-12)


@given(SEEDS, st.integers(1, 30), st.integers(1, 50), st.sampled_from([0, 1, 2, 4]))
def test_they_sum_to_one_and_follow_their_arms_and_rank(seed, K, S, levels):
    """Whatever the order of arms and of draws; only the order of the values counts."""
    rng, values = np.random.default_rng(seed), draws(seed, 2, K, S, levels)
    arms, order = rng.permutation(K), rng.permutation(S)
    for p, again in (
        (by_draws.independent(values), by_draws.independent(np.exp(values[:, arms][:, :, order]))),
        (
            by_draws.joint(values.transpose(0, 2, 1)),
            by_draws.joint(np.exp(values[:, arms][:, :, order].transpose(0, 2, 1))),
        ),
    ):
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        assert ((p >= 0.0) & (p <= 1.0)).all()  # propensities, to the last bit
        np.testing.assert_allclose(again, p[:, arms], atol=1e-12)


def test_weights_of_each_arm_are_repeated_draws():
    """Of arms that are drawn independently; a weight of 0 is no draw."""
    rng = np.random.default_rng(0)
    values, weights = (
        rng.normal(size=(2, 3, 4)),
        np.array([[1, 2, 3, 0], [0, 1, 3, 2], [6, 0, 0, 0]]),
    )
    repeated = np.stack([np.repeat(values[:, k], w, axis=1) for k, w in enumerate(weights)], axis=1)
    ours, theirs = bb.Draws(values, 0.5 * weights), bb.Draws(repeated)
    for a, b in ((ours, theirs), (ours.among([0, 2]), theirs.among([0, 2]))):
        np.testing.assert_allclose(a.best(), b.best(), atol=1e-12)
        np.testing.assert_allclose(a.best(0.3), b.best(0.3), atol=1e-12)
        np.testing.assert_allclose(a.mean, b.mean, atol=1e-12)
        np.testing.assert_allclose(a.sd, b.sd, atol=1e-12)
    drawn = ours.draw(4000, rng)
    np.testing.assert_allclose(drawn.mean(axis=0), ours.mean, atol=4.5 * ours.sd.max() / 4000**0.5)
    with pytest.raises(ValueError, match=r"weights must be \(4,\) or \(3, 4\), ≥ 0, not all 0"):
        bb.Draws(values, weights[:2])
    with pytest.raises(ValueError, match=r"weights must be \(4,\), ≥ 0"):
        bb.Draws(values, weights, joint=True)
