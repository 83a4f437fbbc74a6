"""Arms that share a model: contexts are (n, K, d), a row of features an arm."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, kstest, norm, t

import bayesbandit as bb
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.kernels.prob_best import joint, points
from bayesbandit.systems.bootstrap.belief import Bootstrap
from bayesbandit.systems.forest.belief import Forest
from bayesbandit.systems.iltcb.belief import PolicyMixture
from bayesbandit.systems.policy_tree.belief import PolicyTree
from bayesbandit.systems.super_ucb.belief import SuperUCB
from tests import declarations
from tests.bandit.kinds import Loud
from tests.beliefs.closed_form import orthants
from tests.cases import few, moments_of

K, D = 5, 3
THETA = np.array([1.0, -0.5, 0.3])


def features(n, seed=0, arms=K):
    return np.random.default_rng(seed).normal(size=(n, arms, D))


def bandit(model=None, policy=None, balance=None, arms=K, **settings):
    model = bb.Shared(model or bb.Ridge())
    settings = {"n_features": D, "seed": 1} | settings
    return declarations.bandit(arms, model, policy or bb.Thompson(), balance, **settings)


def played(made, n=30, seed=0):
    noise = np.random.default_rng(seed + 1)
    for x in features(n, seed, len(made.arms)):
        decision = made.choose(x)
        made.observe(decision, float(decision.x @ THETA + 0.3 * noise.normal()))
    return made


VARIANCES = ["empirical_bayes", "rss/n", "nig", 0.09]


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_posterior_is_one_regression_of_all_rounds(variance, intercept):
    """As that of a bandit of one arm which is told all rounds."""
    ridge = bb.Ridge(variance=variance, intercept=intercept)
    made = played(bandit(ridge))
    alone = bb.Bandit(["all"], ridge, bb.Greedy(), n_features=D)
    history = made.history
    alone.update(history.x, ["all"] * len(history), history.reward)
    for arm in made.arms:
        ours, theirs = made.posterior(arm), alone.posterior("all")
        np.testing.assert_allclose(ours.location, theirs.location, rtol=1e-10)
        np.testing.assert_allclose(ours.spread, theirs.spread, rtol=1e-8)
    x = features(4, 9)
    decision = made.choose(x)
    flat = alone.choose(x.reshape(-1, D))
    np.testing.assert_allclose(decision.mean.ravel(), flat.mean[:, 0], rtol=1e-9)
    np.testing.assert_allclose(decision.sd.ravel(), flat.sd[:, 0], rtol=1e-7)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("floor", [0.0, 0.05])
def test_probabilities_beside_an_integral(alpha, floor):
    """P(arm is best) under one θ for all: an orthant probability of the differences, by SciPy."""
    made = played(bandit(policy=bb.Thompson(alpha, min_probability=floor), arms=4), 12)
    x = features(3, 5, 4)
    p, known = made.probabilities(x), made.posterior(0)
    z = np.concatenate([x, np.ones((3, 4, 1))], axis=2)
    for i in range(3):
        mean, spread = z[i] @ known.location, z[i] @ known.spread @ z[i].T
        exact = orthants(mean, spread, known.df, alpha)
        np.testing.assert_allclose(p[i], floor + (1 - 4 * floor) * exact, atol=4e-3)


@few("[0.3-0.09]")
@pytest.mark.parametrize("variance", [0.09, "nig"])
@pytest.mark.parametrize("p", [1e-5, 1e-3, 0.3])
def test_shares_of_decisions_are_right_on_average(variance, p):
    """Each decision compares the arms at points of its own. The worse arm's share varies, its mean
    is Thompson sampling's probability, and it is never impossible: fixed points gave it 0."""
    model, n = bb.Ridge(variance=variance), 4000
    rounds = features(6, 2, 1)[:, 0], [0] * 6, [1.0, -0.5, 0.3, 0.1, 0.0, 0.2], [0.5] * 6
    made, x = bandit(model, arms=2), features(1, 3, 2)[0]
    made.update(*rounds)
    known, apart = made.posterior(0), x[0] - x[1]
    mean, sd = apart @ known.location[:D], np.sqrt(apart @ known.spread[:D, :D] @ apart)
    alpha = -abs(mean) / (sd * t.ppf(p, known.df))
    made = bandit(model, bb.Thompson(alpha), arms=2)
    made.update(*rounds)
    share = made.choose(np.tile(x, (n, 1, 1))).probabilities[:, int(mean > 0)]
    assert abs(share.mean() - p) < 4 * share.std() / np.sqrt(n)
    assert (share > 0).any()
    assert len(set(share)) > 1


@pytest.mark.slow
def test_points_are_uniform_whatever_the_shift(rng):
    """Each point of each shift: normal, its coordinates independent; and alone as among all."""
    rest = points.normals(), points.log_width(np.inf), 1.0
    noise, column, alone = np.empty((3, 4096)), np.empty(4096), np.empty((3, 1))
    found = []
    for seed in rng.normal(size=150):
        joint.put_noise(seed, points.cells(3), 0, *rest, column, noise)
        joint.put_noise(seed, points.cells(3), 17, *rest, column[:1], alone)
        np.testing.assert_array_equal(alone[:, 0], noise[:, 17])
        assert all(kstest(noise[j], "norm").statistic < 1 / 4096 + 1e-7 for j in range(3))
        found.append(alone[:, 0].copy())
    drawn = np.array(found)
    assert all(kstest(drawn[:, j], "norm").pvalue > 1e-4 for j in range(3))
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 4 / np.sqrt(150)


@pytest.mark.parametrize("df", [0.3, 1.0, 2.5, 30.0, 1e6])
def test_widths_beside_scipy(df, rng):
    log_width = points.log_width(df)
    for z in (-6.0, -3.0, -0.5, 0.1, 4.0):
        width = joint.width_at(z, log_width)
        assert chi2.logcdf(df / width**2, df) == pytest.approx(norm.logcdf(z), rel=1e-4, abs=1e-7)


def test_tables_whose_index_names_the_arms():
    names = ["a", "b", "c"]
    made = played(bandit(arms=names, encoder=bb.Encoder.fit(frame(names)), n_features=None), 0)
    offers = frame(names)
    for _ in range(8):
        decision = made.choose(offers)
        made.observe(decision, float(names.index(decision.arm)))
    mean = made.choose(offers).mean
    np.testing.assert_allclose(made.choose(offers.loc[["c", "a", "b"]]).mean, mean)
    some = made.choose(offers.loc[["c", "a"]])
    assert some.arm in ("a", "c")
    np.testing.assert_allclose(some.mean[[0, 2]], mean[[0, 2]])
    np.testing.assert_allclose(made.choose(offers.reset_index(drop=True)).mean, mean)
    with pytest.raises(ValueError, match=r"unknown arm 'z'.*\['a', 'b', 'c'\]"):
        made.choose(offers.rename(index={"a": "z"}))
    with pytest.raises(ValueError, match="there is none of"):
        made.probabilities(offers.loc[["c", "a"]])
    assert list(made.history.to_frame().columns[:2]) == list(made.encoder.features[:2])


def frame(names):
    return pd.DataFrame({"price": [1.0, 2.0, 4.0], "kind": ["x", "y", "x"]}, index=names)


class Fading:
    """Weighs by how many rounds have come since."""

    schedule = bb.Schedule(10)

    def weights(self, history, belief):
        return 0.9 ** np.arange(len(history.reward))[::-1]


@pytest.mark.parametrize(("balance", "settled"), [(Loud(), 30), (Fading(), 21)])
def test_a_balance_of_ones_own_weighs_all_rounds(balance, settled):
    """Those of every arm at once, also of one that is gone: they are of one regression, whose
    rounds the schedule counts."""
    made = played(bandit(balance=balance, arms=["a", "b", "c"]), 15)
    made.remove_arm("b")
    played(made, 15, 1)
    history, ridge = made.history, Ridge()
    assert set(history.arm) == {"a", "b", "c"}
    weight = np.ones(30)
    weight[:settled] = balance.weights(SimpleNamespace(reward=history.reward[:settled]), None)
    np.testing.assert_allclose(history.weight, weight)
    fresh = ridge.belief(1, D)
    fresh.update(history.x, np.zeros(len(history), int), history.reward, weight)
    np.testing.assert_allclose(made.posterior("a").location, fresh.posterior(0).location, rtol=1e-8)


ALIKE = "does not depend on x: .* alike"
BALANCE, BEST = r"balance must be Unweighted\(\)", "says which arm is best in a context"
REFUSED = [
    ({"balance": bb.InversePropensity(propensity="pooled")}, BALANCE),
    ({"balance": bb.InversePropensity(propensity="estimated")}, BALANCE),
    ({"balance": bb.ResidualBalance()}, BALANCE),
    ({"balance": bb.KernelBalance()}, BALANCE),
    ({"model": bb.load_model("beta_bernoulli")}, f"reward of beta_bernoulli {ALIKE}"),
    ({"model": bb.load_model("gamma_poisson")}, f"reward of gamma_poisson {ALIKE}"),
    ({"model": bb.load_model("hierarchical_ridge")}, "takes `arm`, and is of all arms by itself"),
    *(({"model": model}, BEST) for model in (SuperUCB(), PolicyMixture(), PolicyTree())),
    ({"model": bb.Shared(bb.Ridge())}, "share one model"),
    ({"model": 3}, "model must be"),
    ({"n_features": 0}, "n_features, of each arm"),
]


@pytest.mark.parametrize(("settings", "match"), REFUSED)
def test_what_arms_cannot_share_is_refused(settings, match):
    with pytest.raises((ValueError, TypeError), match=match):
        bandit(**settings)


@pytest.mark.parametrize("intercept", [True, False])
def test_decisions_about_other_contexts_are_refused(intercept):
    """Of a bandit without features of arms, and the other way round."""
    ridge = bb.Ridge(intercept=intercept)
    ours, plain = bandit(ridge), bb.Bandit(K, ridge, bb.Thompson(), n_features=D)
    with pytest.raises(ValueError, match=r"contexts are \(K, d\); got one about contexts \(d,\)"):
        ours.observe(plain.choose(np.ones(D)), 1.0)
    with pytest.raises(ValueError, match=r"contexts are \(d,\); got one about contexts \(K, d\)"):
        plain.observe(ours.choose(np.ones((2, K, D))), [1.0, 1.0])
    assert ours.history.total == plain.history.total == 0


def test_bad_contexts_and_arms():
    made, x = bandit(), np.zeros((2, D))
    for bad, said in (
        (x[0], r"row of 3 features for each of 5 arms.*\(3,\)"),
        (np.zeros((4, D)), r"\(5, 3\) or \(n, 5, 3\); got \(4, 3\)"),
        ([[[1.0] * D] * K, [[1.0] * D]], "must be numbers: found rows of different lengths"),
    ):
        for ask in (made.choose, made.probabilities, made.greedy):
            with pytest.raises(ValueError, match=said):
                ask(bad)
    with pytest.raises(ValueError, match="unknown arm 'z'"):
        made.choose(x, arms=["z", 1])
    with pytest.raises(ValueError, match="each arm may be given once"):
        made.choose(x, arms=[1, 1])
    with pytest.raises(ValueError, match="no arm to choose from"):
        made.choose(np.zeros((0, D)), arms=[])


@pytest.mark.parametrize("arms", [5, 13, 17, 33])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_equal_arms_have_equal_probabilities(arms, alpha, rng):
    """To the last bit, wherever they stand."""
    made = bandit(arms=arms, policy=bb.Thompson(alpha), n_features=7)
    made.update(rng.normal(size=(20, 7)), [0] * 20, rng.normal(size=20), [0.5] * 20)
    best = made.posterior(0).location[:7]
    for some in (2, arms):
        x, which = rng.normal(size=(3, arms, 7)), rng.choice(arms, some, replace=False)
        x[:, which] = (3 * best + 0.1 * rng.normal(size=(3, 7)))[:, None]
        p = made.probabilities(x)
        np.testing.assert_allclose(p[:, which], p[:, which[:1]].repeat(some, axis=1), atol=1e-12)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)


@pytest.mark.parametrize("model", [Bootstrap(draw="normal"), Forest(trees=8, bag=2, least=4)])
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_moments_alone_are_drawn_for_each_arm_by_itself(model, alpha, rng):
    """One normal for all arms never told them apart: the larger mean won at any spread."""
    made = played(bandit(model, bb.Thompson(alpha)), 20)
    x = 0.3 * features(6, 4)
    mean, sd = moments_of(made.belief, x)
    p = made.probabilities(x)
    np.testing.assert_allclose(p, bb.choice_probabilities(mean, alpha * sd), atol=1e-9)
    draws = made.belief.predict(x).draw(20_000, rng)
    share = np.stack([np.bincount(d, minlength=K) for d in draws.argmax(axis=2).T]) / len(draws)
    np.testing.assert_allclose(share, bb.choice_probabilities(mean, sd), atol=0.02)
    assert (p.max(axis=1) < 0.99).any()
    some = np.array([True, False, True, True, False])
    np.testing.assert_allclose(
        made.belief.predict(x).among(some).best(alpha),
        bb.choice_probabilities(*(part[:, some] for part in (mean, alpha * sd))),
        atol=1e-9,
    )


def test_an_index_that_names_no_arms():
    """Texts that are no arms are refused; one that counts rows goes with the arms given."""
    rows, arms = frame(["a", "b", "c"]), [10, 9, 1]
    made = bandit(arms=[*arms, 0], encoder=bb.Encoder.fit(rows), n_features=None)
    made.update(rows, arms, [1.0, 2.0, 3.0], [0.5] * 3)
    for index in (["11", "12", "13"], ["10", "9", "1"]):
        with pytest.raises(ValueError, match=r"unknown arm '1.'.*reset_index"):
            made.choose(rows.set_axis(index), arms=arms)
    want = made.choose(rows.set_axis(arms)).mean
    counted = rows.reset_index(drop=True)
    np.testing.assert_array_equal(made.choose(counted, arms=arms).mean, want)
    swapped = made.choose(counted.iloc[:2], arms=[1, 0]).mean
    np.testing.assert_allclose(swapped[[2, 3]], want[:2])
    assert made.choose(counted.iloc[:1], arms=np.int64(9)).arm == 9


@pytest.mark.parametrize("model", [bb.Ridge(intercept=False), bb.Ridge(1e-16, variance=1.0)])
def test_an_arm_that_is_chosen_is_possible(model, rng):
    """Also where features differ by less than their squares, or their sums, can say."""
    for x in (
        np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]) * 1e-200,
        rng.normal(size=(3, D)) * 1e-170,
        np.diag([1e46, 1e-18, 1e-28]),
    ):
        made = bandit(model, bb.Thompson(0.4), arms=len(x))
        made.update(features(5)[:, 0], [0] * 5, rng.normal(size=5))
        decision = made.choose(np.repeat(x[None], 200, axis=0))
        assert (decision.propensity > 0.0).all()
