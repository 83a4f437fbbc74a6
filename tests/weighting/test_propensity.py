"""Inverse-propensity weights: known, pooled (by brute force), and estimated (by scikit-learn)."""

import re

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesbandit as bb
from tests import oracle
from tests.cases import few
from tests.players import play, world


def balanced(policy=None, arms=3, d=3, seed=0, model=None, **settings):
    balance = bb.InversePropensity(**settings)
    policy = bb.Thompson() if policy is None else policy
    return bb.Bandit(arms, model or bb.Ridge(), policy, balance, n_features=d, seed=seed)


def estimates_are_weighted(bandit, intercept=True, normalize=False):
    """Every arm's θ is scikit-learn's on the history's own weights, and σ² that of the oracle."""
    history, rows = bandit.history, {}
    for arm in set(history.arm.tolist()):
        mine = history.arm == arm
        w = history.weight[mine]
        w = w / w.mean() if normalize else w
        rows[arm] = history.x[mine], history.reward[mine], w, 1.0
    noise = oracle.pooled_noise(list(rows.values()), bandit.model.prior_rows, intercept)
    for sigma2, (arm, (x, reward, w, lam)) in zip(noise, rows.items(), strict=True):
        theta = oracle.sklearn_ridge(x, reward, w, lam, intercept)
        np.testing.assert_allclose(bandit.posterior(arm).location, theta, atol=1e-8)
        B = oracle.precision(x, w, lam, intercept)
        np.testing.assert_allclose(
            bandit.posterior(arm).spread, sigma2 * np.linalg.inv(B), atol=1e-8
        )


class PooledByHand:
    """Every period's posterior kept; P(arm | x) is the mean over all of them, O(t²)."""

    def __init__(self, policy, x):
        self.policy, self.x = policy, x
        self.periods, self.number, self.known = [], [], {}

    def period(self, bandit):
        """One more period, decided by today's posteriors of the arms with a reward."""
        n = bandit.belief.n
        self.periods.append([bandit.posterior(a) if m else None
                             for a, m in zip(bandit.arms, n, strict=True)])  # fmt: skip
        self.number.append(self.policy.param(bandit.t))

    def at(self, s, i):
        """All arms' probabilities at context i under period s."""
        old = [k for k, p in enumerate(self.periods[s]) if p is not None]
        if not old:
            return np.full(3, 1 / 3)
        if (s, i) not in self.known:
            z, known = oracle.design(self.x[i])[0], [self.periods[s][k] for k in old]
            mean = [z @ p.location for p in known]
            scale = [np.sqrt(z @ p.spread @ z) for p in known]
            df = [p.df for p in known]
            kind = type(self.policy).__name__
            p = np.full(3, 1 / 3)
            p[old] = oracle.policy_probabilities(kind, self.number[s], mean, scale, df)
            p[old] *= len(old) / 3
            self.known[s, i] = p
        return self.known[s, i]

    def of(self, k, rows):
        return np.mean([[self.at(s, i)[k] for i in rows] for s in range(len(self.periods))], axis=0)


def shrinking(t):
    return 2 / t


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "variance", "T"),
    [
        (bb.Thompson(0.8), "empirical_bayes", 12),
        (bb.Thompson(shrinking), "empirical_bayes", 12),
        (bb.Thompson(), "nig", 10),
        (bb.UCB(0.8), "empirical_bayes", 40),
        (bb.UCB(shrinking), "nig", 40),
        (bb.EpsilonGreedy(0.3), 0.2, 40),
    ],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", str(value)),
)
def test_pooled_is_the_mean_over_all_past_policies(policy, variance, T, rng):
    """The pulled arm's weights, all of them, after every round; the other arms' stay."""
    x, reward = world(rng, T)
    model = bb.Ridge(variance=variance)
    bandit = balanced(
        policy, model=model, propensity="pooled", refit_every=1, snapshots=10_000, clip=0.01
    )
    by_hand, weight, arms = PooledByHand(policy, x), np.empty(T), np.empty(T, int)
    for t in range(T):
        decision = bandit.choose(x[t])
        arms[t] = decision.arm
        by_hand.period(bandit)
        bandit.observe(decision, reward[t, decision.arm])
        mine = np.flatnonzero(arms[: t + 1] == arms[t])
        weight[mine] = 1 / np.maximum(0.01, by_hand.of(arms[t], mine))
        np.testing.assert_allclose(1 / bandit.history.weight, 1 / weight[: t + 1], atol=1e-6)
    if variance == "empirical_bayes":
        estimates_are_weighted(bandit)


def test_pooled_batches_are_periods_of_one_policy(rng):
    x, reward = world(rng, 24)
    bandit = balanced(bb.UCB(), propensity="pooled", refit_every=1, snapshots=1000)
    by_hand = PooledByHand(bandit.policy, x)
    for rows in np.split(np.arange(24), 4):
        decision = bandit.choose(x[rows])
        for _ in rows:
            by_hand.period(bandit)
        bandit.observe(decision, reward[rows, decision.arm])
    played = bandit.history.arm
    for k in set(bandit.history.arm[-6:].tolist()):
        weight = 1 / np.maximum(0.1, by_hand.of(k, np.flatnonzero(played == k)))
        np.testing.assert_allclose(bandit.history.weight[played == k], weight, atol=1e-5)
    assert sum(bandit.reweighting.weigher.periods) == 24


@pytest.mark.parametrize("most", [2, 3, 5, 8])
def test_snapshots_are_thinned_and_no_period_is_lost(most, rng):
    x, reward = world(rng, 120)
    bandit = balanced(bb.UCB(), propensity="pooled", refit_every=1, snapshots=most)
    for t in range(120):
        if t == 60:
            bandit.add_arm("new")
        decision = bandit.choose(x[t])
        bandit.observe(decision, reward[t, 0])
        pool = bandit.reweighting.weigher
        assert sum(pool.periods) == t + 1
        assert len(pool.periods) == len(pool.beliefs) == len(pool.rules) <= most
        assert pool.arms[-1] == bandit.arms
        probe = bandit.history.rows[:5]
        total = sum(pool.of(arm, probe, bandit.layout) for arm in bandit.arms)
        np.testing.assert_allclose(total, 1.0, atol=1e-8)
    assert max(pool.periods) > 4  # old stretches are long ones


def test_a_period_counts_over_the_arms_of_its_moment(rng):
    """Snapshots are taken when the arms change and when weights are settled, and no more."""
    x, reward = world(rng, 90, K=4)
    bandit = balanced(bb.UCB(), ["a", "b"], propensity="pooled", refit_every=40, snapshots=1000)
    for t in range(90):
        if t == 30:
            bandit.add_arm("c")
        if t == 60:
            bandit.remove_arm("c")
        decision = bandit.choose(x[t])
        bandit.observe(decision, reward[t, bandit.arms.index(decision.arm)])
    pool = bandit.reweighting.weigher
    periods = dict.fromkeys(pool.arms, 0)
    for arms, n in zip(pool.arms, pool.periods, strict=True):
        periods[arms] += n
    assert periods == {("a", "b"): 60, ("a", "b", "c"): 30}
    settled = 2 * (1 + 90 // 40) + 1  # the first round of an arm is due, and each 40 after it
    assert len(pool.periods) <= settled + 2


@few("[pulled-3-False]")
@pytest.mark.parametrize(
    ("K", "intercept"),
    [
        (2, True),
        (3, False),
        pytest.param(2, False, marks=pytest.mark.slow),
        pytest.param(3, True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("refresh", ["pulled", "all"])
def test_estimated_is_a_logistic_regression(K, intercept, refresh, rng):
    x, reward = world(rng, 120, K=K)
    x = np.column_stack([100 + 20 * x[:, 0], x[:, 1], np.full(120, 4.0)])  # scales, a constant
    model = bb.Ridge(intercept=intercept)
    bandit = balanced(
        bb.UCB(3.0), K, model=model, propensity="estimated", refit_every=1, clip=0.01,
        refresh=refresh,
    )  # fmt: skip
    play(bandit, x, reward)
    history = bandit.history
    fit = make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky", tol=1e-10))
    p = fit.fit(history.x, history.arm).predict_proba(history.x)
    spreads = []
    for arm in history.arm[-1:] if refresh == "pulled" else bandit.arms:
        mine = history.arm == arm
        expected = np.maximum(0.01, p[mine, list(fit.classes_).index(arm)])
        np.testing.assert_allclose(1 / history.weight[mine], expected, rtol=1e-3)
        spreads.append(expected.std())
    assert max(spreads) > 0.05
    estimates_are_weighted(bandit, intercept=intercept)


def test_before_there_is_an_estimate_the_known_propensity_serves(rng):
    bandit = balanced(bb.UCB(), propensity="estimated")
    decision = bandit.choose(rng.normal(size=3))
    bandit.observe(decision, 1.0)
    np.testing.assert_allclose(bandit.history.weight, 3.0)  # one arm seen: nothing to regress


def test_weights_undo_the_selection(rng):
    """Σ w r over the rounds of an arm estimates its mean reward over all rounds, unbiased."""
    x, reward = world(rng, 4000, d=1, K=2)
    bandit = balanced(bb.EpsilonGreedy(0.2), 2, d=1, clip=0.05)
    bandit.play(x, reward)
    history = bandit.history
    for k in range(2):
        terms = np.where(history.arm == k, history.reward * history.weight, 0.0)
        assert stats.ttest_1samp(terms - reward[:, k], 0.0).pvalue > 0.01


@pytest.mark.parametrize("kind", ["pooled", "estimated"])
def test_an_arm_that_comes_back_is_due_as_a_new_one(kind, rng):
    """Not only once it has as many rounds as the one that went."""
    x, reward = world(rng, 90)
    bandit = balanced(bb.UCB(), ["a", "b", "c"], propensity=kind, refit_every=0.5)
    bandit.update(x, list("abc") * 30, reward[:, 0], np.full(90, 1 / 3))
    assert bandit.reweighting.due["a"] == 45
    bandit.remove_arm("a")
    bandit.add_arm("a")
    for n, due in enumerate([2, 3, 5, 5, 8], start=1):
        bandit.update(x[n], "a", 0.0, 0.5)
        assert bandit.reweighting.due["a"] == due
        assert bandit.reweighting.due["b"] == 45


def test_a_period_counts_by_the_rule_of_its_own_round(rng):
    """ε = 1/t, and uniform before: the greedy arm's chance is pooled of 1/2 twice and 1 − 1/2t."""
    policy = bb.EpsilonGreedy(lambda t: 1 / t)
    bandit = balanced(policy, 2, 1, propensity="pooled", refit_every=1, clip=0.01)
    bandit.update(np.ones((2, 1)), [0, 1], [0.0, 5.0], [0.5, 0.5])
    greedy = [0.5, 0.5]
    for t in range(1, 9):
        bandit.observe(bandit.choose([1.0]), 2.5)  # 0 < θ < 5 of either arm
        mean = bandit.belief.predict(np.ones((1, 1))).mean[0]
        assert mean[1] > mean[0]
        greedy.append(1 - 0.5 / t)
        arm = bandit.history.arm[-1]
        chance = np.mean(greedy) if arm == 1 else 1 - np.mean(greedy)
        np.testing.assert_allclose(1 / bandit.history.weight[-1], chance, atol=1e-9)


def test_rounds_of_elsewhere_count_by_the_next_rounds_rule(rng):
    """Where their propensity is not known: ε = 1/t at the round that would come next."""
    policy, balance = bb.EpsilonGreedy(lambda t: 1 / t), bb.InversePropensity(clip=0.01)
    bandit = bb.Bandit(2, bb.Ridge(), policy, balance, n_features=1)
    bandit.update(np.ones((2, 1)), [0, 1], [0.0, 5.0])
    bandit.choose(np.ones((9, 1)))
    assert bandit.t == 9
    bandit.update(np.ones((2, 1)), [0, 1], [0.0, 5.0])
    np.testing.assert_allclose(1 / bandit.history.weight, [0.5, 0.5, 0.05, 0.95])
