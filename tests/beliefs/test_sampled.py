"""Beliefs by draws: those of the engine at each refit, and exact from then on; draws that rewards
weight, until when, and with which propensities."""

from functools import cache

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

import bayesbandit as bb
from bayesbandit.beliefs.sampled.cloud import Cloud, cloud_form
from bayesbandit.forms import check
from bayesbandit.model import RewardModel
from tests import declarations as declared
from tests.beliefs.by_draws import (
    EXACT,
    GIBBS,
    HETEROSCEDASTIC,
    SHARED,
    K,
    believed,
    near,
    of,
    probe,
    runs,
    state_of,
)
from tests.beliefs.closed_form import data, learn
from tests.cases import moments_of, quick_but


@pytest.mark.slow
@pytest.mark.parametrize("name", quick_but(["noise that rows share"], EXACT))
def test_an_exact_posterior_that_does_not_stream(name):
    """Independent draws of the posterior that `bb.fit` finds on the arm's own rows, its weights
    among them; of an arm without rows, of the prior."""
    model, S = EXACT[name], 4000
    rows = data(n=40, K=2)
    belief = learn(believed(model, draws=S), rows)
    mean, sd = moments_of(belief, probe())
    for k in range(K):
        fit = bb.fit(model, **of(rows, k))
        assert fit.engine in ("exact_gaussian", "normal_inverse_gamma")
        near(mean[:, k], fit.mean(probe()), S, fit.sd(probe()))
        np.testing.assert_allclose(sd[:, k], fit.sd(probe()), rtol=5 / np.sqrt(2 * S) + 0.03)
        theta = belief.posterior(k, {}).coefficients["theta"][0]
        near(theta, fit.coefficients["theta"][0], S, np.sqrt(np.diag(fit.known.covariance)))


@pytest.mark.parametrize(
    "model", [SHARED, pytest.param(GIBBS, marks=pytest.mark.slow)], ids=lambda m: m.name
)
@pytest.mark.slow
def test_arms_that_share_the_model(model):
    """One set of draws of all arms; what they have in common stays in common."""
    rows = data(n=40, K=2)
    belief = learn(believed(model, draws=2000), rows)
    fit = bb.fit(model, *(rows[r] for r in ("x", "reward", "weight")),
                 arm=rows["arm"], n_arms=K, draws=2000, seed=1)  # fmt: skip
    mean, sd = moments_of(belief, probe())
    near(mean, fit.mean(probe()), 2000, fit.sd(probe()), thin=6)
    np.testing.assert_allclose(sd, fit.sd(probe()), rtol=4.5 * np.sqrt(6 / 4000))
    rng = np.random.default_rng(0)
    ours = np.corrcoef(belief.predict(probe()[:1]).draw(4000, rng)[:, 0].T)
    theirs = np.corrcoef(fit.draw(probe()[:1], 4000, rng)[:, 0].T)
    np.testing.assert_allclose(ours, theirs, atol=0.2)
    assert len(belief.clouds) == 1


@pytest.mark.slow
def test_every_quantity_is_of_the_same_draws():
    """`values` are the belief: moments are theirs, also of an arm's posterior."""
    belief = learn(believed(HETEROSCEDASTIC, draws=50), data(n=30))
    values = belief.values(probe())
    assert values.shape == (4, K, 50)
    mean, sd = moments_of(belief, probe())
    np.testing.assert_allclose(mean, values.mean(axis=2), rtol=1e-12)
    np.testing.assert_allclose(sd, values.std(axis=2), rtol=1e-12)
    np.testing.assert_allclose(belief.predict(probe()).mean, mean, rtol=1e-9, atol=1e-12)
    for k in range(K):  # of the posterior by itself, too
        posterior = belief.posterior(k, {})
        np.testing.assert_allclose(posterior.mean(probe()), mean[:, k], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_variables_with_a_value_for_each_row():
    """A Student-t's mixture: the sampler starts from fewer rows than there are now, and draws what
    the model without the mixture does."""
    model, rows, S = bb.load_model("student_t_mixture"), data(n=60, K=1), 2000
    belief = believed(model, 1, draws=S, refit_every=20)
    for part in np.split(np.arange(60), 3):
        learn(belief, {role: v[part] for role, v in rows.items()})
        moments_of(belief, probe())
    assert belief.clouds[0].values["q"].shape == (S, 60)
    mean, sd = moments_of(belief, probe())
    fit = bb.fit(bb.load_model("student_t"), **of(rows, 0), draws=4000, seed=1)
    near(mean[:, 0], fit.mean(probe()), S, fit.sd(probe()), thin=6)
    np.testing.assert_allclose(sd[:, 0], fit.sd(probe()), rtol=4.5 * np.sqrt(6 / (2 * S)))


S = 50
LASSO = bb.load_model("laplace").with_priors(intercept=0)  # by Gibbs


@cache
def history():
    """Values that a declaration observes beside the rows."""
    return np.array([2.0, 2.2])


def logistic(x, reward):
    theta = pm.Normal("theta", 0, 1)
    pm.Normal("history", theta, 0.3, observed=history())
    p = pm.math.sigmoid(x[:, 0] * theta)
    pm.Bernoulli("reward", p, observed=reward)
    return p


def parted(rows, n):
    return tuple({k: v[s] for k, v in rows.items()} for s in (slice(n), slice(n, None)))


def test_a_reward_multiplies_the_weights_by_its_likelihood(rng):
    """Until the next refit; one by one or at once, and whether or not somebody looks."""
    known, new = parted(data(n=60, K=2), 54)
    belief, other = (learn(believed(LASSO, 2, draws=S), known) for _ in range(2))
    for one in (belief, other):
        one.predict(probe())
    assert belief.weights() is None
    learn(belief, new)
    for i in range(6):
        learn(other, {k: v[i : i + 1] for k, v in new.items()})
        other.predict(probe())
    assert runs(belief) == runs(other) == [1, 1]
    prediction, values = belief.predict(probe()), belief.values(probe())
    weights = belief.weights()
    np.testing.assert_allclose(other.weights(), weights, rtol=1e-9)
    for k in range(2):
        chain, mine = belief.clouds[k], {r: v[new["arm"] == k] for r, v in new.items()}
        mean = chain.values["theta"] @ mine["x"].T
        sigma = np.sqrt(chain.values["sigma2"][:, None] / mine["weight"])
        log = stats.norm.logpdf(mine["reward"], mean, sigma).sum(axis=1)
        w = np.exp(log - log.max())
        np.testing.assert_allclose(weights[k], w, rtol=1e-9)
        w /= w.sum()
        np.testing.assert_allclose(prediction.mean[:, k], values[:, k] @ w)
        sd = np.sqrt((values[:, k] - prediction.mean[:, [k]]) ** 2 @ w)
        np.testing.assert_allclose(prediction.sd[:, k], sd)


@pytest.mark.slow
def test_what_is_observed_beside_the_rows_is_known_before_the_first_reward():
    """Means of θ, of draws without a round and weighted by one, within .3 posterior sds of those by
    quadrature."""
    belief = believed(RewardModel(logistic, {}), 1, n_features=1)
    assert belief.plan.engine == "gibbs"
    theta = np.linspace(0.01, 5.0, 2000)
    prior = stats.norm.logpdf(history()[:, None], theta, 0.3).sum(axis=0) + stats.norm.logpdf(theta)
    x = np.full((1, 1), 0.5)
    for log_density in (prior, prior + special.log_expit(0.5 * theta)):
        p = np.exp(log_density - log_density.max())
        mean = (p @ theta) / p.sum()
        sd = np.sqrt(p @ (theta - mean) ** 2 / p.sum())
        belief.predict(x)
        [chain] = belief.clouds
        w = np.ones(400) if chain.weight is None else chain.weight
        assert abs(np.average(chain.values["theta"], weights=w) - mean) < 0.3 * sd
        belief.update(x, np.zeros(1, dtype=np.int64), np.ones(1))


@pytest.mark.slow
def test_draws_are_renewed_when_few_of_them_have_weight():
    """At once where hardly a draw makes a reward likely; after each reward if so wished; at the
    latest as `refit_every` says; and after one update of many rounds."""
    known, new = parted(data(n=90, K=1), 40)
    one = {k: v[:1] for k, v in new.items()}
    far = one | {"reward": np.array([1e4])}
    cases = [({}, one, 1), ({"refit_below": 1.0}, one, 2), ({"refit_every": 1}, one, 2)]
    cases += [({}, far, 2), ({"refit_below": 0.0}, far, 1), ({}, data(n=9000, K=1), 2)]
    cases += [({"refit_below": 0.0}, new, 1)]
    for settings, rows, expected in cases:
        belief = learn(believed(LASSO, 1, draws=S, **settings), known)
        belief.predict(probe())
        learn(belief, rows).predict(probe())
        assert runs(belief) == [expected], (settings, rows["reward"][:3])
        assert (belief.weights() is None) == (expected == 2)
        assert belief.clouds[0].seen == len(known["reward"]) + len(rows["reward"])


@pytest.mark.slow
def test_what_cannot_be_weighted_waits_for_its_refit():
    """Frozen draws, weights that average 1, closed forms, rows that depend on each other."""
    frozen = {"model": bb.load_model("bayesian_lasso"), "frozen": True}
    for settings in (frozen, {"model": LASSO, "normalize": True}, {"model": SHARED}):
        belief = learn(believed(draws=S, refit_every=50, **settings), data(n=30))
        belief.predict(probe())
        before = state_of(belief)
        learn(belief, {k: v[:3] for k, v in data(n=9).items()}).predict(probe())
        assert belief.weights() is None
        after = state_of(belief)
        assert {k: v for k, v in after.items() if k != "rounds"} == {
            k: v for k, v in before.items() if k != "rounds"
        }


def test_draws_that_are_spent_stay_so_in_a_file():
    """Such draws are replaced at the next decision. The loaded belief replaces them, too, even if
    a later reward would make their weights equal again."""
    known, new = parted(data(n=30, K=1), 24)
    belief, other = (believed(LASSO, 1, draws=S) for _ in range(2))
    learn_and_look(belief, known)
    for reward in (9.0, -9.0):
        learn(belief, {k: v[:1] for k, v in new.items()} | {"reward": np.array([reward])})
    assert belief.clouds[0].spent
    state = belief.state()
    check(state, other.form(state, 30))
    other.restore(state)
    np.testing.assert_array_equal(other.values(probe()), belief.values(probe()))
    assert runs(other) == [2]
    with pytest.raises(ValueError, match="spent"):
        check(state | {"0.spent": 1}, other.form(state, 30))


def test_a_samplers_points_are_finite_numbers():
    draws, shapes, good = {"theta": np.zeros((4, 1))}, {"theta": (4, 1)}, np.zeros((4, 1))
    for points in (good, good[0], good + np.nan, good.astype(int), good.astype("f4")):
        stored = Cloud(draws, points, 3, 3).stored(0)
        form = cloud_form(stored, shapes, shapes, by_name=False)
        if points is good:
            check(stored, form)
            continue
        with pytest.raises(ValueError, match="state must be"):
            check(stored, form)


def test_draws_that_are_handed_out_may_be_changed():
    """They were those by which a bandit decides."""
    bandit = bb.BayesianLassoTS(["a", "b"], n_features=2, seed=0)
    rng = np.random.default_rng(0)
    bandit.update(rng.normal(size=(12, 2)), ["a", "b"] * 6, rng.normal(size=12))
    x = rng.normal(size=(3, 2))
    before = bandit.probabilities(x)
    posterior = bandit.posterior("a")
    mean = posterior.mean(x)
    for draws in posterior.draws.values():
        draws[:] = 7.0
    for draws in posterior.to_datatree()["posterior"].dataset.values():
        draws.values[:] = 7.0
    np.testing.assert_array_equal(bandit.probabilities(x), before)
    np.testing.assert_array_equal(posterior.mean(x), mean)


def learn_and_look(belief, rows):
    learn(belief, rows).predict(probe())
    return belief


@pytest.mark.slow
def test_weighted_draws_are_the_posterior():
    """Against the exact posterior of a known noise at 8 checkpoints, 4 seeds: means within .3
    posterior sds, and .08 on the average. Over 12 seeds they are .042 ± .002 off, and draws that
    wait for their refit .119 ± .007."""
    model, off = declared.known, []
    for seed in range(4):
        x, reward, _ = declared.rows(n=120, seed=seed)
        belief = believed(model, 1, engine="gibbs", seed=seed)
        for i in range(120):
            belief.update(x[[i]], np.zeros(1, dtype=int), reward[[i]])
            found = belief.predict(probe())
            belief.count_decisions(1)
            if i >= 20 and i % 13 == 0:
                mean, covariance = declared.ridge(x[: i + 1], reward[: i + 1], np.ones(i + 1))
                sd = np.sqrt(np.einsum("ni,ij,nj->n", probe(), covariance, probe()))
                off.append(np.abs(found.mean[:, 0] - probe() @ mean) / sd)
    assert np.max(off) < 0.3
    assert np.mean(off) < 0.08
