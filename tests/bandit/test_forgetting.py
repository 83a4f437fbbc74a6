"""Bandits that forget: rows that fade, and coefficients that walk, against the definitions."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import bayesbandit as bb
from bayesbandit.beliefs.half_lives import prior
from bayesbandit.beliefs.memory import HALF_LIVES
from bayesbandit.kernels.scoring import P_SWITCH, evidence, switch
from tests import declarations as declared
from tests import oracle
from tests.bandit.late_rewards import ARMS, D, ages, late_rounds
from tests.cases import few, moments_of

NU = 2.0
RULES = ["empirical_bayes", "rss/n", "nig", 0.3]


def bandit_of(maker=bb.LinTS, **memory):
    return maker(ARMS, D, seed=3, **({"min_probability": 0.05} | memory))


def world(seed, T, K=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(T, D)), rng.normal(size=(T, K)) + np.arange(K)


def surprises(r, weight, s2):
    """κ min(1, s²/v) s² of all rewards, by their weights (`Ridge`)."""
    far = (r - np.average(r, weights=weight)) ** 2
    v = np.average(far, weights=weight)
    return np.average(far**2, weights=weight) / v**2 * min(1.0, s2 / v) * s2


def left(x, r, w, share, lam, rule, s2):
    """θ, covariance and degrees of freedom by the definition, from rows and their shares."""
    z, n, rows = oracle.design(x), share.sum(), share * w
    B = z.T @ (rows[:, None] * z) + lam * np.eye(z.shape[1])
    theta = np.linalg.solve(B, z.T @ (rows * r))
    rss = rows @ (r - z @ theta) ** 2
    if rule == "rss/n":
        return theta, rss / n * np.linalg.inv(B), np.inf
    if rule == "nig":
        sigma2 = (2.0 + rss + lam * theta @ theta) / (2.0 + n)
        return theta, sigma2 * np.linalg.inv(B), 2.0 + n
    if rule == "empirical_bayes":
        own = rows.sum() / n * s2
        return theta, (rss + own) / n * np.linalg.inv(B), np.inf
    return theta, rule * np.linalg.inv(B), np.inf


def agree(bandit, x, arm, r, w, share, rule, rows_of_one=1.0):
    """A bandit believes of its arms what rows, their weights and their shares say."""
    q, alive = share * w, [k for k in range(3) if share[arm == k].sum() > 1e-9]
    loss = 0.0
    for k in alive:
        z, mine, y = oracle.design(x[arm == k]), q[arm == k], r[arm == k]
        B, b = z.T @ (mine[:, None] * z) + 0.7 * np.eye(D + 1), z.T @ (mine * y)
        loss += mine @ y**2 - b @ np.linalg.solve(B, b)
    there = np.isin(arm, alive)
    s2 = rows_of_one * NU * surprises(r[there], q[there], loss / q[there].sum())
    for k in alive:
        rows = [values[arm == k] for values in (x, r, w, share)]
        if rows[3].sum() < 1e-6:
            continue
        theta, spread, df = left(*rows, 0.7, rule, s2)
        posterior = bandit.posterior(ARMS[k])
        np.testing.assert_allclose(posterior.location, theta, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(posterior.spread, spread, rtol=1e-8, atol=1e-10)
        assert posterior.df == pytest.approx(df, rel=1e-12)


@few("[0.3]")
@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), half_life=st.sampled_from([3.0, 25.0, 400.0]))
def test_rows_count_by_the_time_of_their_decision(rule, seed, half_life):
    """Late rewards, in any order, with `forget` and `update` in between."""
    bandit = bandit_of(variance=rule, half_life=half_life, ridge=0.7, min_variance=0.0)
    rng = np.random.default_rng(seed)
    drawn = np.random.Generator.standard_normal
    x, arm, r, age = ages(late_rounds(bandit, rng, 60, drawn))
    agree(bandit, x, arm, r, np.ones(len(r)), 0.5 ** (age / half_life), rule)


@few("[0.3]")
@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), half_life=st.sampled_from([25.0, 800.0]))
def test_blocks_of_weighted_rows_are_the_definition(rule, seed, half_life):
    """Arms with few rows of a block, with many, and with none."""
    rng, memory = np.random.default_rng(seed), {"half_life": half_life, "ridge": 0.7}
    bandit = bandit_of(bb.BLTS, variance=rule, min_variance=0.0, **memory)
    blocks = []
    for n in rng.choice([1, 2, 30, 1800], 5, p=[0.3, 0.3, 0.3, 0.1]):
        x, arm = rng.normal(size=(n, D)), rng.choice(3, n, p=[0.6, 0.38, 0.02])
        r, p = rng.normal(size=n) + arm, rng.uniform(0.1, 1.0, n)
        bandit.update(x, np.array(ARMS)[arm], r, p)
        blocks.append((x, arm, r, 1.0 / p))
    x, arm, r, w = (np.concatenate(values) for values in zip(*blocks, strict=True))
    share = 0.5 ** ((len(r) - 1 - np.arange(len(r))) / half_life)
    agree(bandit, x, arm, r, w, share, rule, rows_of_one=2.0)  # twice as many for BLTS


def test_a_steep_row_of_a_walk():
    """A context of 1e7 among ones of 1 loses digits in its own direction alone."""
    x = np.array([[1.0, 0.5, -0.3], [1e7, -2e7, 1e7], [0.2, 0.1, 1.0]])
    bandit = bb.LinTS(["a"], D, intercept=False, variance=0.5, drift=0.1)
    S, m = 0.5 * np.eye(D), np.zeros(D)
    for t, z in enumerate(x):
        bandit.observe(bandit.choose(z), 1.0)
        B = np.linalg.inv(S + (0.1 if t else 0.0) * np.eye(D))
        S = np.linalg.inv(B + np.outer(z, z) / 0.5)
        m = S @ (B @ m + z * 1.0 / 0.5)
    posterior = bandit.posterior("a")
    np.testing.assert_allclose(posterior.location, m, rtol=1e-2, atol=1e-3)
    probe = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, -1.0]])  # at right angles to the steep context
    expected = np.sqrt(np.einsum("ni,ij,nj->n", probe, S, probe))
    np.testing.assert_allclose(posterior.sd(probe), expected, rtol=1e-2)


@pytest.mark.parametrize("rule", RULES)
def test_ten_million_ticks_without_rewards(rule):
    bandit = bandit_of(half_life=500.0, variance=rule)
    x, reward = world(2, 40)
    bandit.play(x, reward)
    bandit.forget(10**7)
    np.testing.assert_allclose(bandit.probabilities(x[:3]), 1 / 3)
    assert bandit.choose(x[0]).propensity == pytest.approx(1 / 3)
    assert bandit.belief.new.all()
    bandit.play(x, reward)
    assert np.isfinite(bandit.posterior("a").sd(x)).all()


def test_a_batch_is_decided_as_of_its_first_round():
    one, many = bandit_of(half_life=10.0), bandit_of(half_life=10.0)
    x, reward = world(4, 30)
    one.play(x[:10], reward[:10])
    many.play(x[:10], reward[:10])
    batch = many.choose(x[10:20])
    assert batch.tick.tolist() == list(range(11, 21))
    first = one.choose(x[10])
    np.testing.assert_allclose(batch[0].probabilities, first.probabilities, rtol=1e-12)
    many.observe(batch, np.ones(10))
    for i, decision in enumerate([first, *(one.choose(z) for z in x[11:20])]):
        decision.rows[:] = batch.rows[i]
        one.observe(decision, 1.0)
    means, sds = moments_of(one.belief, x)
    np.testing.assert_allclose(moments_of(many.belief, x), (means, sds), rtol=1e-9)


def test_time(monkeypatch):
    """Seconds count by the clock on the wall; one that runs back takes nothing back."""
    now = [1.7e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    bandit = bandit_of(half_life="1h", clock="time", variance=0.3, intercept=False)
    x, _ = world(8, 4)
    decisions = []
    for step in (0, 3600, -7200, 5400):
        now[0] += step
        decisions.append(bandit.choose(x[len(decisions)]))
    for decision in decisions:
        decision.rows[:] = decisions[0].rows
        decision.rows[-7] = 0.0  # all of arm "a"
        bandit.observe(decision, 1.0)
    share = 0.5 ** np.array([1.0, 0.0, 2.0, 0.5])  # as of the latest
    z = np.repeat(x[:1], 4, axis=0)
    theta = np.linalg.solve(z.T @ (share[:, None] * z) + np.eye(D), z.T @ share)
    np.testing.assert_allclose(bandit.posterior("a").location, theta, rtol=1e-6)
    bandit.forget(3600)
    with pytest.raises(ValueError, match="play has rounds, and no times"):
        bandit.play(x, np.zeros((4, 3)))


def test_when_a_reward_is_learned_changes_nothing(monkeypatch):
    """Also if arms came meanwhile: a replay has the same beliefs, to the bit."""
    now, x, learned = [1.7e9], np.ones(D), []
    monkeypatch.setattr(time, "time", lambda: now[0])
    bandit = bb.BLTS(ARMS, D, half_life="1h", clock="time")
    bandit.update(x, "a", 0.5, 0.4)
    decision = bandit.choose(x)
    bandit.add_arm("new")
    for later in (60, 7200):
        now[0] += later
        learned.append(bandit.copy())
        learned[-1].observe(decision, 1.0)
    np.testing.assert_array_equal(*(one.belief.arms for one in learned))
    np.testing.assert_array_equal(*(one.history.ordered() for one in learned))


def test_what_cannot_forget_says_so():
    with pytest.raises(ValueError, match="does not forget: give it a half_life or a drift"):
        bandit_of().forget()
    forgetful = bandit_of(half_life=5.0)
    for bad in (-1, np.nan, np.inf, "a"):
        with pytest.raises(ValueError, match="steps must"):
            forgetful.forget(bad)
    forgetful.forget(2**52 - 2)
    with pytest.raises(ValueError, match="the clock, after steps, must"):
        forgetful.forget(9)
    forgetful = bandit_of(half_life=5.0)
    forgetful.play(*world(1, 9))
    with pytest.raises(ValueError, match="weights that do not fade"):
        forgetful.posterior("a").robust()


def test_decisions_of_another_process_put_the_clock_forward():
    """What a bandit decides after it has seen a later tick is later than that."""
    worker = bandit_of(half_life=10.0, variance=0.3, intercept=False)
    learner, (x, _) = worker.copy(), world(4, 1)
    decision = worker.choose(np.repeat(x, 2000, axis=0))[1999]
    learner.observe(decision, 1.0)
    learner.update(x, decision.arm, 5.0)
    z, share = np.repeat(x, 2, axis=0), np.array([0.5**0.1, 1.0])
    theta = np.linalg.solve(z.T @ (share[:, None] * z) + np.eye(D), z.T @ (share * [1.0, 5.0]))
    np.testing.assert_allclose(learner.posterior(decision.arm).location, theta, rtol=1e-9)
    for tick in (1e300, np.inf, np.nan):
        other = worker.choose(x[0])
        other.tick = np.array(tick)
        with pytest.raises(ValueError, match="the decision's tick must be finite"):
            learner.observe(other, 1.0)
    assert learner.belief.n.sum() == 2


def test_more_than_32_columns_fade_by_steps():
    """Fading waits until 5 % are due; then all of it is exact."""
    rng = np.random.default_rng(0)
    bandit = bb.LinTS(["a"], 40, intercept=False, half_life=100.0, variance=1.0)
    x, reward = rng.normal(size=(60, 40)), rng.normal(size=(60, 1))
    bandit.play(x, reward)
    bandit.forget(50)
    share = 0.5 ** ((50 + 59 - np.arange(60)) / 100.0)
    B = x.T @ (share[:, None] * x) + np.eye(40)
    theta = np.linalg.solve(B, x.T @ (share * reward[:, 0]))
    np.testing.assert_allclose(bandit.posterior("a").location, theta, rtol=1e-8, atol=1e-10)


def test_half_lives_are_weighed_by_the_density_that_each_gave_every_reward():
    """Beliefs of bandits with one half-life each, and normal densities by scipy."""
    rng = np.random.default_rng(0)
    x, reward, arm = rng.normal(size=(40, D)), rng.normal(size=40), rng.integers(0, 3, 40)
    auto = bandit_of(half_life="auto")
    singles = [bandit_of(half_life=half_life) for half_life in HALF_LIVES]
    weight = prior(len(HALF_LIVES))
    for t in range(40):
        said = []
        for single in singles:
            if single.belief.clock is not None:
                single.belief.advance(t + 1.0)
            k, found = arm[t], single.belief.predict(x[t : t + 1])
            sd = np.sqrt(single.belief.sigma2[k] + found.scale[0, k] ** 2)
            said.append(stats.norm(found.mean[0, k], sd).pdf(reward[t]))
            single.update(x[t], ARMS[k], reward[t])
        auto.update(x[t], ARMS[arm[t]], reward[t])
        if np.isfinite(sd):
            weight = weight * said
            weight = (1 - P_SWITCH) * weight / weight.sum() + P_SWITCH * prior(len(HALF_LIVES))
        np.testing.assert_allclose(np.exp(auto.belief.log_weight), weight, rtol=1e-9)
    best = singles[int(weight.argmax())].posterior("b")
    np.testing.assert_allclose(auto.posterior("b").location, best.location, rtol=1e-9)
    np.testing.assert_allclose(auto.posterior("b").spread, best.spread, rtol=1e-9)


@pytest.mark.parametrize("common", [0.0, 2.0**52, -(2.0**52), -(2.0**300)])
def test_only_differences_of_log_densities_weigh_half_lives(common):
    """The log density of an outlier is far from 0; its sum with a log probability has no digits."""
    score = common + np.array([0.0, -1.0, -3.0, -1.0]) * (2.0**248 if abs(common) > 2**60 else 1.0)
    before = np.array([0.5, 0.3, 0.1, 0.1])
    expected = before * np.exp(score - score[0])
    log_e = np.log(expected.sum())
    expected = (1 - P_SWITCH) * expected / expected.sum() + P_SWITCH * np.array([0.5, *[1 / 6] * 3])
    weight, found = np.log(before), np.empty(1)
    switch(weight, score)
    np.testing.assert_allclose(np.exp(weight), expected, rtol=1e-12)
    evidence(score[None], np.log(before), found)
    assert found[0] == pytest.approx(log_e, rel=1e-12)


@pytest.mark.parametrize("rule", ["empirical_bayes", "rss/n", "nig"])
def test_the_less_coefficients_walk_the_nearer_they_are_to_standing_still(rule, rng):
    """The noise variance too: it is of the residuals, and not of the penalty."""
    x = 0.3 * rng.normal(size=(40, D))
    reward = x @ [3.0, -2.0, 1.0][:D] + rng.normal(size=40)
    found = []
    for drift in (None, 1e-12, 1e-9):
        belief = bb.Ridge(30.0, rule, drift=drift).belief(1, D)
        belief.update(x, np.zeros(40, dtype=np.int64), reward, tick=np.arange(1.0, 41.0))
        found.append(np.array([belief.sigma2[0], *np.ravel(belief.predict(x[:3]).sd)]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-8)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-5)


@pytest.mark.parametrize("model", [bb.Ridge, "declared"])
def test_a_drift_of_0_is_none_to_the_bit(model):
    x, reward = world(4, 40)
    bandits = []
    for drift in (None, 0.0):
        walking = bb.Ridge(drift=drift)
        if model == "declared":
            walking = bb.Declared(declared.pooled, drift=drift)
        bandits.append(bb.Bandit(ARMS, walking, bb.Thompson(), n_features=D, seed=1))
    played = [bandit.play(x, reward) for bandit in bandits]
    np.testing.assert_array_equal(played[0], played[1])
    for found in (np.stack(moments_of(bandit.belief, x)) for bandit in bandits):
        np.testing.assert_array_equal(found, np.stack(moments_of(bandits[0].belief, x)))
