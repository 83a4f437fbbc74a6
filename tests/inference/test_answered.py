"""Declarations that are unusual and sound are answered; others get a sentence with the way out.
Some were once answered wrongly, and silently."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import bayesbandit as bb
from bayesbandit.beliefs.regressions import Regressions
from bayesbandit.inference.base import NotThisEngine
from bayesbandit.inference.functions import Functions
from bayesbandit.inference.plan import plan
from bayesbandit.inference.pymc_model.template import template
from bayesbandit.model import RewardModel
from tests.cases import moments_of
from tests.declarations import EACH, normal_rewards

ONE = bb.Prior("Normal", mu=0, sigma=1)


def rows(n=12, d=3):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    return x, x[:, 0] + rng.normal(size=n)


def moments(posterior, name):
    mean, covariance = posterior.coefficients[name]
    return np.atleast_1d(mean), np.atleast_2d(covariance)


@pytest.mark.slow
def test_counts_may_be_made_of_rewards_if_none_is_cut_off():
    """29 cents are 100 · 0.29 = 28.999999999999996: a cast makes 28 of them."""

    def cents(x, reward, theta):
        pm.Poisson("reward", pm.math.exp(x @ theta), observed=100 * reward)
        return pm.math.exp(x @ theta) / 100

    def rounded(x, reward, theta):
        pm.Poisson("reward", pm.math.exp(x @ theta), observed=pm.math.round(100 * reward))
        return pm.math.exp(x @ theta) / 100

    exact, safe = (RewardModel(f, {"theta": EACH}) for f in (cents, rounded))
    x, _ = rows(2)
    with pytest.raises(ValueError, match=r"0.29 makes it 28\.9+6: observed=pm\.math\.round"):
        exact.build(x, [0.25, 0.29])
    with pytest.raises(
        ValueError, match=r"'reward' takes whole numbers; .* 0\.255 makes it 25\.5$"
    ):
        exact.build(x, [0.25, 0.255])
    exact.build(x, [0.25, 0.75])
    built = safe.build(x, [0.25, 0.29])
    assert built.rvs_to_values[built["reward"]].eval().tolist() == [25, 29]
    doors = [Functions(template(m, 3, None)).likelihood for m in (exact, safe)]
    row = {"x": x[:1], "reward": np.array([0.29]), "weight": np.ones(1)}
    with pytest.raises(ValueError, match="cents: 'reward' takes whole numbers"):
        doors[0].check("cents", row)
    doors[1].check("rounded", row)
    with pytest.raises(ValueError, match=r"reward of -1 .*allows, for example, 0, "):
        doors[1].check("rounded", {**row, "reward": np.array([-1.0])})


@pytest.mark.slow
@pytest.mark.parametrize("columns", [slice(None, 1), slice(1, 2)])
def test_one_column_times_a_vector(columns):
    def column(x, reward, theta):
        mu = (x[:, columns] * theta).sum(axis=1)
        pm.StudentT("reward", nu=4, mu=mu, sigma=1, observed=reward)
        return mu

    model = RewardModel(column, {"theta": EACH})
    bandit = bb.Bandit(
        2, bb.Sampled(model, engine="laplace", draws=10), bb.Thompson(), n_features=3, seed=0
    )
    x, reward = rows()
    bandit.update(x, [0, 1] * 6, reward)
    assert np.isfinite(bandit.choose(x).mean).all()


def level(x, reward, m):
    return normal_rewards(m, 1, reward)


def penalised(x, reward, m):
    pm.Potential("once", -0.5 * m**2)
    pm.Potential("each", -0.5 * (reward - m) ** 2)
    return m


def fixed(x, reward, m):
    normal_rewards(m, 1, reward)
    return 3.0


@pytest.mark.slow
def test_one_number_for_all_contexts_streams():
    """m ~ N(0, 1), rewards N(m, 1): m | rewards ~ N(Σr/(n + 1), 1/(n + 1))."""
    bandit = bb.Bandit(2, RewardModel(level, {"m": ONE}), bb.Thompson(), n_features=0, seed=0)
    assert isinstance(bandit.belief, Regressions)
    for r in (1.0, 3.0):
        bandit.update(np.empty((1, 0)), [0], [r])
    mean, sd = moments_of(bandit.belief, np.empty((1, 0)))
    np.testing.assert_allclose([mean[0, 0], sd[0, 0]], [4 / 3, 1 / np.sqrt(3)], atol=1e-12)


@pytest.mark.parametrize(("function", "once"), [(penalised, 2), (fixed, 1)])
def test_a_level_with_a_penalty_or_a_mean_that_is_a_number(function, once):
    """exp(−m²/2), of the prior and of a penalty, is there once, however many rows there are."""
    x, reward = rows()
    posterior = bb.fit(RewardModel(function, {"m": ONE}), x, reward)
    level = reward.sum() / (len(reward) + once)
    assert posterior.coefficients["m"][0] == pytest.approx(level)
    assert posterior.mean(x) == pytest.approx([3.0 if function is fixed else level] * len(x))


def unobserved(x, reward, theta):
    pm.Normal("reward", x @ theta, 1)
    return x @ theta


def of_zeros(x, reward, theta):
    pm.Normal("reward", x @ theta, 1, observed=np.zeros(12))
    return x @ theta


def penalty(x, reward, theta):
    pm.Potential("reward", -((x @ theta) ** 2))
    return x @ theta


@pytest.mark.parametrize("function", [unobserved, of_zeros, penalty])
def test_rewards_must_be_observed(function):
    words = f"{function.__name__} declares no likelihood of the rewards: .*observed=reward"
    with pytest.raises(ValueError, match=words):
        RewardModel(function, {"theta": EACH}).explain(3)
    with pytest.raises(ValueError, match=words):
        bb.fit(RewardModel(function, {"theta": EACH}), *rows())


@pytest.mark.parametrize(
    "name", ["x", "weight", "observed_reward", "mean_reward", "feature", "row"]
)
def test_names_that_are_taken_are_said(name):
    def clash(x, reward, theta):
        mu = x @ theta + pm.Normal(name, 0, 1)
        pm.Normal("r", mu, 1, observed=reward)
        return mu

    with pytest.raises(ValueError, match=f"clash: .* called '{name}': x, .*mean_reward, feature"):
        RewardModel(clash, {"theta": EACH}).build(*rows())


def test_a_prior_is_told_the_names_that_are_taken():
    def clash(x, reward, theta, arm_index=1):
        return x @ theta

    with pytest.raises(TypeError, match=r"prior 'arm_index' is a name of .*; taken are x, reward"):
        RewardModel(clash, {"theta": EACH, "arm_index": ONE})


@pytest.mark.slow
@pytest.mark.parametrize("times", [2, 3])
def test_rewards_may_be_observed_several_times(times):
    """Also where PyMC makes something of them, as whole numbers: as with powers of p."""

    def often(reward, p):
        for i in range(times):
            pm.Bernoulli(f"r{i}", p, observed=reward)
        return p

    def levels(x, reward, theta):
        for i in range(times):
            pm.Normal(f"r{i}", x @ theta, 1, observed=reward)
        return x @ theta

    won = np.array([1.0, 0.0, 1.0])
    model = RewardModel(
        lambda x, reward, p: often(reward, p), {"p": bb.Prior("Beta", alpha=1, beta=1)}
    )
    mean, _ = moments(bb.fit(model, None, won), "p")
    np.testing.assert_allclose(mean, (1 + 2 * times) / (2 + 3 * times), rtol=1e-12)
    x, reward = rows()
    mean, covariance = moments(bb.fit(RewardModel(levels, {"theta": EACH}), x, reward), "theta")
    np.testing.assert_allclose(covariance, np.linalg.inv(np.eye(3) + times * x.T @ x), atol=1e-12)


RANDOM = {
    "the rewards": (lambda r, z, mu: r, "depends on 'r', which is observed"),
    "more than the rewards": (lambda r, z, mu: mu + pt.sqr(r), "depends on 'r', which is observed"),
    "what is observed beside": (lambda r, z, mu: mu + z, "depends on 'z', which is observed"),
    "a draw": (lambda r, z, mu: mu + pm.Normal.dist(0, 1), "draws random numbers"),
    "a distribution": (lambda r, z, mu: pm.Normal.dist(mu, 1), "draws random numbers"),
}


@pytest.mark.parametrize("of", RANDOM)
def test_a_mean_that_is_drawn_at_random_is_refused(of):
    """A posterior would be of one draw, and say nothing of it."""
    returned, words = RANDOM[of]

    def declared(x, reward, theta):
        z = pm.Normal("z", 0, 1, observed=0 * reward)
        r = pm.Normal("r", x @ theta, 1, observed=reward)
        return returned(r, z, x @ theta)

    with pytest.raises(ValueError, match=f"declared must return the mean reward; .*{words}"):
        RewardModel(declared, {"theta": EACH}).explain(n_features=3)


X, R = rows(40, 2)


@pytest.mark.parametrize("times", [1, 5.0])
@pytest.mark.slow
def test_small_integers_do_not_overflow(times):
    """Nor times 5.0, which is of single precision beside them."""

    @bb.reward_model(theta=EACH)
    def model(x, reward, theta):
        return normal_rewards(x @ theta, pt.switch(x[:, 0] > 0, 16, 1) * times, reward)

    w = 1.0 / (times * np.where(X[:, 0] > 0, 16.0, 1.0)) ** 2
    right = np.linalg.solve((X.T * w) @ X + np.eye(2), X.T @ (w * R))
    np.testing.assert_allclose(bb.fit(model, X, R).coefficients["theta"][0], right, rtol=1e-9)


@pytest.mark.parametrize("of", ["rewards", "weights"])
def test_a_mean_that_no_future_row_has_is_refused(of):
    @bb.reward_model(theta=EACH)
    def model(x, reward, weight, theta):
        mu = x @ theta + (pt.concatenate([[0.0], reward[:-1]]) if of == "rewards" else weight)
        pm.StudentT("r", nu=4, mu=mu, sigma=1 / pt.sqrt(weight), observed=reward)
        return mu

    for engine in ("auto", "nuts"):
        with pytest.raises(NotThisEngine, match=f"depends on the {of}"):
            bb.fit(model, X, R, engine=engine)


def test_a_minibatch_is_refused():
    @bb.reward_model(theta=EACH)
    def model(x, reward, theta):
        some, seen = pm.Minibatch(x, reward, batch_size=10)
        pm.Normal("r", some @ theta, 1.0, observed=seen, total_size=40)
        return x @ theta

    with pytest.raises(NotThisEngine, match="minibatch"):
        bb.fit(model, X, R)


@pytest.mark.parametrize("offset", [1e6, 1e9])
@pytest.mark.slow
def test_offsets_of_rewards_take_no_digits_from_gibbs(offset):
    """Sums of squares are about the coefficients that fit best."""

    @bb.reward_model()
    def level(x, reward):
        sigma2 = pm.InverseGamma("sigma2", 2.0, 1.0)
        mu = pm.Normal("level", 0.0, 1e12) + x @ pm.Laplace("theta", 0.0, 1.0, shape=2)
        return normal_rewards(mu, pt.sqrt(sigma2), reward)

    engine = plan(level, 2).method
    rows = {"x": X, "reward": R}
    near = engine.sample(rows, 50, 1, seed=0).values
    far = engine.sample(rows | {"reward": R + offset}, 50, 1, seed=0).values
    np.testing.assert_allclose(far["sigma2"], near["sigma2"], rtol=1e-9 + 1e-14 * offset)
    np.testing.assert_allclose(far["level"] - offset, near["level"], atol=1e-9 + 1e-13 * offset)


@bb.reward_model(theta=EACH, noise=0.5)
def of_fixed_noise(x, reward, theta, noise):
    return normal_rewards(x @ theta, noise, reward)


@pytest.mark.parametrize("noise", [0.0, -1.0, bb.Prior("HalfNormal", sigma=-1)], ids=str)
def test_a_prior_out_of_its_bounds_names_the_model_before_there_are_rows(noise):
    model = of_fixed_noise.with_priors(noise=noise)
    said = r"^of_fixed_noise: sigma > 0 does not hold on trial rows"
    with pytest.raises(ValueError, match=said):
        model.explain(2)
    with pytest.raises(ValueError, match=said):
        bb.Bandit(2, model, bb.Thompson(), n_features=2)
