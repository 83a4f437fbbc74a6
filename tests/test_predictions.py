"""The laws of a prediction: its moments, draws, comparisons and restrictions are of one thing."""

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.kernels.row_layout import THOMPSON
from bayesbandit.kernels.row_layout import UCB as UCB_RULE

N, K = 2, 4


def made(seed=0):
    """One of each kind, at N contexts of K arms."""
    rng = np.random.default_rng(seed)
    mean, scale = rng.normal(size=(N, K)), rng.uniform(0.2, 1.5, size=(N, K))
    values, weights = rng.normal(size=(N, K, 6)), rng.uniform(size=6)
    a, b = rng.uniform(0.5, 9.0, size=(2, N, K))
    root = rng.normal(size=(N, K, 3))
    return {
        "normal": bb.LocationScale(mean, scale),
        "Student-t": bb.LocationScale(mean, scale, rng.uniform(5.0, 12.0, size=(N, K))),
        "joint": bb.Joint(mean, root),
        "joint Student-t": bb.Joint(mean, root, 7.0),
        "draws": bb.Draws(values),
        "joint draws": bb.Draws(values, joint=True),
        "weighted draws": bb.Draws(values, weights),
        "weighted joint draws": bb.Draws(values, weights, joint=True),
        "beta": bb.Conjugate("beta", a, b),
        "gamma": bb.Conjugate("gamma", a, b),
    }


MADE = made()
every = pytest.mark.parametrize("name", MADE)


@every
def test_moments_are_those_of_draws(name, rng):
    found, S = MADE[name], 40_000
    assert isinstance(found, bb.Prediction)
    draws = found.draw(S, rng)
    assert draws.shape == (S, N, K)
    error = found.sd / np.sqrt(S)
    assert (np.abs(draws.mean(axis=0) - found.mean) < 5 * error).all()
    np.testing.assert_allclose(draws.std(axis=0), found.sd, rtol=0.05)


@every
@pytest.mark.parametrize("alpha", [1.0, 0.4, np.array([2.0, 0.5])], ids=["1", "0.4", "of n"])
def test_best_is_the_share_of_draws(name, alpha, rng):
    """Of draws α times as far from their means."""
    found, S = MADE[name], 40_000
    wide = found.mean + np.reshape(alpha, (-1, 1)) * (found.draw(S, rng) - found.mean)
    share = np.stack([np.bincount(d, minlength=K) for d in wide.argmax(axis=2).T]) / S
    p = found.best(alpha)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)
    assert (np.abs(p - share) < 5 * np.sqrt(p * (1 - p) / S) + 2e-3).all()


@every
def test_some_arms_are_a_prediction_of_their_own(name, rng):
    found, some = MADE[name], np.array([True, False, True, True])
    for arms in (some, np.flatnonzero(some)):
        part = found.among(arms)
        np.testing.assert_array_equal(part.mean, found.mean[:, some])
        np.testing.assert_array_equal(part.sd, found.sd[:, some])
        assert part.draw(3, rng).shape == (3, N, 3) == (3, *part.best().shape)
    one = found.among(np.array([2]))
    np.testing.assert_allclose(one.best(), 1.0)
    swapped = found.among(np.array([3, 2, 1, 0]))
    np.testing.assert_allclose(swapped.best(), found.best()[:, ::-1], atol=5e-3)


@every
def test_a_compiled_rule_has_its_entries(name):
    """Or none, where Thompson sampling needs the whole prediction."""
    found = MADE[name]
    drawn = found.entries(THOMPSON)
    assert (drawn is not None) == isinstance(found, bb.LocationScale)
    scale, last = found.entries(UCB_RULE)
    nu = np.minimum(last, 1e300)
    wide = np.sqrt(nu / (nu - 2.0))
    np.testing.assert_allclose(scale * wide, found.sd)


def test_what_is_not_proper_is_not_drawn(rng):
    for found in (
        bb.LocationScale([[0.0, 0.0]], [[1.0, np.inf]]),
        bb.Draws([[[1.0, 2.0], [np.nan, np.nan]]]),
    ):
        assert found.sd[0, 1] == np.inf
        with pytest.raises(ValueError, match="not proper before there are more rewards"):
            found.draw(1, rng)
        np.testing.assert_allclose(found.best().sum(), 1.0)
    np.testing.assert_array_equal(found.best(), 0.5)  # draws: as long as an arm has none


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: bb.LocationScale([1.0], [1.0]), r"mean and scale must be \(n, K\); got \(1,\)"),
        (lambda: bb.LocationScale([[1.0]], [[1.0, 2.0]]), r"got \(1, 1\) and \(1, 2\)"),
        (lambda: bb.LocationScale([["a"]], [[1.0]]), "mean must be numbers"),
        (lambda: bb.Joint([[1.0]], [[1.0]]), r"root \(n, K, P\); got \(1, 1\) and \(1, 1\)"),
        (lambda: bb.Draws([[1.0]]), r"values must be \(n, K, S\), S ≥ 1; got \(1, 1\)"),
        (lambda: bb.Draws(np.ones((1, 2, 0))), r"S ≥ 1; got \(1, 2, 0\)"),
        (
            lambda: bb.Draws(np.ones((1, 2, 3)), [1.0, -1.0, 1.0]),
            r"weights must be \(3,\) or \(2, 3\), ≥ 0",
        ),
        (lambda: bb.Draws(np.ones((1, 2, 3)), [1.0]), r"weights must be \(3,\) or \(2, 3\), ≥ 0"),
        (lambda: bb.Conjugate("normal", [[1.0]], [[1.0]]), "family must be one of 'beta', 'gamma'"),
        (lambda: bb.Conjugate("beta", [[1.0]], [[0.0]]), "a and b must be > 0"),
    ],
)
def test_what_is_none(make, match):
    with pytest.raises(ValueError, match=match):
        make()
