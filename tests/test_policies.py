"""How a prediction becomes an arm: scores, their distribution, and probabilities by quadrature."""

from dataclasses import replace

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.predictions import Draws, Joint, LocationScale
from tests import oracle
from tests.cases import few, moments_of

VARIANCES = ["rss/n", "nig", 0.3]


def believed(variance="rss/n", K=3, seed=0, n=40, **model):
    """A belief of K arms over 2 features, and contexts to ask it about."""
    rng = np.random.default_rng(seed)
    belief = bb.Ridge(variance=variance, **model).belief(K, 2)
    x = rng.normal(size=(n, 2))
    belief.update(x, np.arange(n) % K, rng.normal(size=n))
    return belief, rng.normal(size=(5, 2))


def test_choice_probabilities():
    mean, sd = (0.2, 0, -0.1), (0.3, 0.5, 0.05)
    expected = oracle.best_arm(mean, sd)
    np.testing.assert_allclose(bb.choice_probabilities(mean, sd), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("mean", "sd", "message"),
    [
        ([0.0, 1.0], [1.0, -1.0], "sd must be ≥ 0; got -1"),
        ([0.0, np.nan], [1.0, 1.0], r"mean must be finite; found nan at \[1\]"),
        ([0.0, 1.0], [1.0, np.inf], r"sd must be finite; found inf at \[1\]"),
        ([0.0, 1.0], [1.0], r"same shape .* got \(2,\) and \(1,\)"),
        ([], [], "K ≥ 1"),
        (["a", "b"], [1.0, 1.0], "mean must be numbers"),
    ],
)
def test_choice_probabilities_of_bad_input(mean, sd, message):
    with pytest.raises(ValueError, match=message):
        bb.choice_probabilities(mean, sd)


@pytest.mark.parametrize("variance", VARIANCES)
def test_ucb_takes_the_greatest_bound(variance, rng):
    """The mean and α standard deviations, those of a Student-t included."""
    belief, x = believed(variance)[0], rng.normal(size=(500, 2))
    mean, sd = moments_of(belief, x)
    p = bb.UCB(1.7).probabilities(belief.predict(x))
    np.testing.assert_array_equal(p, np.eye(3)[(mean + 1.7 * sd).argmax(axis=1)])


@pytest.mark.parametrize("n", [0, 40])
@pytest.mark.parametrize("prior", [(0.2, 1.0), (3.0, 1.0)])
@pytest.mark.parametrize("variance", ["rss/n", "nig", 0.3])
def test_alpha_zero_is_greedy(variance, prior, n):
    """Also where a standard deviation is infinite: no data yet, or too few degrees of freedom."""
    belief, x = believed(variance, n=n, prior=prior)
    greedy = bb.Greedy().probabilities(belief.predict(x))
    for policy in (bb.Thompson(0.0), bb.UCB(0.0), bb.EpsilonGreedy(0.0)):
        np.testing.assert_allclose(policy.probabilities(belief.predict(x)), greedy, atol=1e-12)
    every = bb.EpsilonGreedy(1.0).probabilities(belief.predict(x))
    np.testing.assert_allclose(every, np.full((5, 3), 1 / 3))


def test_the_number_may_follow_the_round():
    belief, x = believed()
    for kind in (bb.Thompson, bb.UCB, bb.EpsilonGreedy, bb.Boltzmann):
        found = kind(lambda t: 1.0 / t).probabilities(belief.predict(x), 4)
        np.testing.assert_array_equal(found, kind(0.25).probabilities(belief.predict(x)))


@pytest.mark.parametrize("variance", VARIANCES)
def test_boltzmann_knows_neither_origin_nor_unit(variance):
    belief, x = believed(variance)
    mean = moments_of(belief, x)[0]
    p = bb.Boltzmann(0.4).probabilities(belief.predict(x))
    np.testing.assert_allclose(np.log(p[:, 1:] / p[:, :1]), (mean[:, 1:] - mean[:, :1]) / 0.4)
    assert (bb.Boltzmann(1e-9).probabilities(belief.predict(x)).max(axis=1) > 1 - 1e-9).all()


@few("[0.3]")
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_top_two_is_what_its_draws_do(beta, rng):
    """The rule itself, drawn 40,000 times: within four standard errors."""
    belief, x = believed()
    p = bb.TopTwo(beta).probabilities(belief.predict(x[:1]))[0]
    best = belief.predict(x[:1]).best()[0]
    first = rng.choice(3, 40_000, p=best)
    second = rng.choice(3, 40_000, p=best)
    while (same := second == first).any():
        second[same] = rng.choice(3, same.sum(), p=best)
    chosen = np.where(rng.random(40_000) < beta, first, second)
    frequency = np.bincount(chosen, minlength=3) / 40_000
    assert (np.abs(frequency - p) <= 4 * np.sqrt(p * (1 - p) / 40_000) + 1e-6).all()


@pytest.mark.parametrize("kind", ["joint", "draws", "independent"])
def test_top_two_finds_a_challenger_however_sure_it_is(kind, rng):
    """Where next to no draw has another best arm: as many draws of the same posterior say."""
    mean, sd = np.array([[1.0, 0.3, 0.2]]), np.array([0.2, 0.1, 0.1])
    values = mean[0] + sd * rng.standard_normal((1_000_000, 3))
    prediction = {
        "joint": lambda: Joint(mean, np.diag(sd)[None]),
        "draws": lambda: Draws(values[:400].T[None], joint=True),
        "independent": lambda: LocationScale(mean, sd[None]),
    }[kind]()
    others = np.bincount(values.argmax(axis=1), minlength=3)[1:]
    p = bb.TopTwo(0.5).probabilities(prediction)[0]
    assert p[0] == pytest.approx(0.5, abs=0.01)
    assert p[1] / p[2] == pytest.approx(others[0] / others[1], rel=0.6)
    sure = replace(prediction, **{
        "joint": {"root": 1e-3 * np.diag(sd)[None]},
        "draws": {"values": mean[:, :, None] + 1e-3 * (values[:400] - mean[0]).T[None]},
        "independent": {"scale": 1e-3 * sd[None]},
    }[kind])  # fmt: skip
    np.testing.assert_allclose(bb.TopTwo(0.5).probabilities(sure), [[0.5, 0.5, 0.0]], atol=1e-9)
    alone = prediction.among(np.array([0]))
    np.testing.assert_allclose(bb.TopTwo(0.5).probabilities(alone), [[1.0]])


def test_the_challenger_of_dependent_arms_is_told_by_their_differences():
    """The second arm's mean is nearly always .3 less than the first's; the third's is apart."""
    root = np.array([[[1.0, 0.0], [1.0, 0.01], [0.0, 0.3]]])
    prediction = Joint(np.array([[5.0, 4.7, 4.0]]), root)
    p = bb.TopTwo(0.5).probabilities(prediction)[0]
    assert p[1] < 0.01 < p[2]
