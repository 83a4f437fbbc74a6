"""An alarm when rewards change, which is rare when they do not."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayesbandit as bb
from bayesbandit.beliefs.half_lives import HALF_LIVES, prior
from bayesbandit.beliefs.surprise import CHANGED, Evidence, Regressions
from bayesbandit.kernels.scoring import SWITCH
from tests.cases import in_gate

D = 3


def played(seed, T=300, binary=False, flip=None, **settings):
    """A bandit after T rounds; at `flip` the best arm changes."""
    rng = np.random.default_rng(seed)
    x, theta = rng.normal(size=(T, D)), 0.3 * rng.normal(size=(3, D))
    mean = 0.5 + 0.3 * (np.arange(3) == 0) + x @ theta.T * (not binary)
    if flip is not None:
        mean[flip:] = mean[flip:, [1, 0, 2]]
    noise = (rng.random((T, 3)) < mean) * 1.0 if binary else mean + 0.5 * rng.normal(size=(T, 3))
    bandit = bb.LinTS(3, D, seed=seed, min_probability=0.05, history=None, **settings)
    bandit.play(x, noise, every=T)
    return bandit


def test_it_is_the_ratio_of_densities_of_a_mixture_and_of_no_forgetting():
    bandit = played(1, 60)
    history, log_e = bandit.history, 0.0
    weight = np.array([1 - CHANGED, *[CHANGED / 3] * 3])
    found = bandit.surprise()
    rounds, evidence = (history.x, history.arm, history.reward), Evidence(bb.Ridge())
    density = np.exp(
        [*evidence.add(*(v[:1] for v in rounds)), *evidence.add(*(v[1:] for v in rounds))]
    )
    np.testing.assert_allclose(evidence.log_e, found.log_e, atol=1e-9)  # in parts
    for t, p in enumerate(density):
        if not np.isnan(p).any():
            log_e += np.log(weight @ p / p[0])
            weight = (1 - SWITCH) * weight * p / (weight @ p) + SWITCH * prior(len(p))
        assert found.log_e[t] == pytest.approx(log_e, abs=1e-9)
    assert found.half_life == HALF_LIVES[int(weight.argmax())]


def test_a_change_is_noticed_and_a_bandit_that_forgets_notices_it_too():
    for memory in ({}, {"half_life": 200}, {"half_life": "auto"}):
        still, changes = played(2, 1200, **memory), played(2, 1200, flip=800, **memory)
        assert not still.surprise().alarm
        found = changes.surprise()
        assert 800 < found.at < 1200
        assert found.largest > 2
        assert "alarm at round" in repr(found)


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True])
@in_gate(1)
def test_false_alarms_are_rare_whenever_one_looks(binary):
    """Of 2,000 worlds that stand still 5 % at most may alarm at level .05, and few do; of worlds
    that change most do."""
    alarms = np.mean([played(s, 300, binary).surprise(0.05).alarm for s in range(2000)])
    power = np.mean([played(s, 900, binary, flip=500).surprise(0.05).alarm for s in range(100)])
    print(f"false alarms {alarms:.4f}, power {power:.2f}")
    assert alarms <= 0.05
    assert power >= 0.8


def unchanging(rng, T, kind):
    """Rounds of three arms whose rewards are normal, or rarely 1 and else 0; or of contexts 0."""
    x, arm = rng.normal(size=(T, D)) * (kind != "constant"), rng.integers(0, 3, T)
    if kind == "rare":
        return x, arm, 1.0 * (rng.random(T) < np.array([0.05, 0.03, 0.03])[arm])
    theta, level = rng.normal(size=(3, D)), rng.normal(size=3)
    return x, arm, level[arm] + (x * theta[arm]).sum(axis=1) + rng.normal(size=T)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("rare", bb.Ridge()),
        ("normal", bb.Ridge(variance="rss/n")),
        ("constant", bb.Ridge(intercept="unpenalised")),
        ("normal", bb.Ridge(variance=1.0)),
    ],
)
def test_neither_rare_rewards_nor_how_a_variance_is_estimated_alarm(kind, model):
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(150):
        evidence = Evidence(model)
        evidence.add(*unchanging(rng, 300, kind))
        alarms += evidence.surprise(0.05).alarm
    assert alarms <= 0.02 * 150  # most came early, from a variance of too few errors


@pytest.mark.parametrize("variance", [0.7, "empirical_bayes"])
def test_it_is_normal_densities_with_one_variance(variance):
    """Each mean by its own weighted least squares, and the width by what does not forget."""
    x, arm, reward = unchanging(np.random.default_rng(5), 50, "normal")
    z, lives = np.column_stack([x, np.ones(50)]), (None, 30.0, 8.0)
    found = Evidence(bb.Ridge(1.5, variance), lives).add(x, arm, reward)
    r = reward - reward[0] * (variance != 0.7)
    error2, width = np.empty((50, 3)), np.empty(50)
    for t in range(50):
        mine = np.flatnonzero(arm[:t] == arm[t])
        for m, half_life in enumerate(lives):
            w = 0.5 ** ((t - mine) / (half_life or np.inf))
            B = (z[mine].T * w) @ z[mine] + 1.5 * np.eye(D + 1)
            mean = z[t] @ np.linalg.solve(B, z[mine].T @ (w * r[mine]))
            error2[t, m] = (r[t] - mean) ** 2
            if half_life is None:
                width[t] = 1.0 + z[t] @ np.linalg.solve(B, z[t])
    for t in range(50):
        if variance == 0.7:
            noise = 0.7
        else:
            e2, sure = error2[:t, 0] / np.minimum(width[:t], 2.0), width[:t] <= 2.0
            mine = arm[:t] == arm[t]
            if sure.sum() < 10:
                assert np.isnan(found[t]).all()
                continue
            pooled = e2[sure].mean()
            noise = max(pooled, (pooled + e2[mine].sum()) / (1 + mine.sum()))
        density = stats.norm.logpdf(np.sqrt(error2[t]), 0.0, np.sqrt(noise * width[t]))
        np.testing.assert_allclose(found[t], density, atol=1e-9)


def test_it_has_no_units_and_no_zero():
    x, arm, reward = unchanging(np.random.default_rng(6), 200, "normal")
    one, other = Evidence(bb.Ridge()), Evidence(bb.Ridge())
    one.add(x, arm, reward)
    other.add(x, arm, 5000.0 + 30.0 * reward)
    np.testing.assert_allclose(one.log_e, other.log_e, atol=1e-8)
    equal = Evidence(bb.Ridge())
    equal.add(x, arm, np.full(200, 7.0))
    assert (equal.log_e == 0.0).all()


def test_what_forgets_does_not_win_by_an_outlier():
    """It is less certain of 21 coefficients, and so would be less surprised."""
    rng = np.random.default_rng(0)
    x, arm, reward = rng.normal(size=(200, 20)), rng.integers(0, 3, 200), rng.normal(size=200)
    reward[150] += 30.0
    evidence = Evidence(bb.Ridge())
    evidence.add(x, arm, reward)
    assert evidence.log_e.max() < 1.0


def test_a_weak_penalty_does_not_make_the_noise_small():
    """Errors are far smaller than such a prior foretells, until an arm has 21 rewards."""
    rng = np.random.default_rng(0)
    x, arm = rng.normal(size=(900, 20)), rng.integers(0, 10, 900)
    reward = (x * rng.normal(size=(10, 20))[arm]).sum(axis=1) + rng.normal(size=900)
    for ridge in (1e-8, 1e-3):
        evidence = Evidence(bb.Ridge(ridge))
        evidence.add(x, arm, reward)
        assert evidence.log_e.max() < 1.0
        assert evidence.log_e[-1] != 0.0


def test_an_arm_with_much_noise_that_is_rare_does_not_alarm():
    """The noise of others is no measure of its first errors."""
    rng = np.random.default_rng(0)
    x, arm = rng.normal(size=(900, 20)), rng.choice(3, 900, p=(0.05, 0.475, 0.475))
    reward = (x * rng.normal(size=(3, 20))[arm]).sum(axis=1)
    evidence = Evidence(bb.Ridge(0.1))
    evidence.add(x, arm, reward + rng.normal(size=900) * np.where(arm == 0, 10.0, 1.0))
    assert evidence.log_e.max() < 1.0


def test_half_lives_of_a_log():
    still, changes = played(3, 800).history, played(3, 800, flip=400).history
    table = bb.evaluation.drift(still)
    assert table["half_life"][table["score"].idxmax()] >= 1000
    assert table["gain"][7] < 0 == table["gain"][0]
    assert table["half_life"].tolist()[:2] == [np.inf, 8000.0]
    changed = bb.evaluation.drift(bb.ope.Log.of(changes), bb.Ridge(), (None, 150.0))
    assert changed["gain"][1] > 2 * changed["se"][1] > 0


def test_what_is_no_log_and_no_half_life():
    history = bb.LinTS(2, 1).history
    for wrong, said in (
        ({"log": pd.DataFrame({"x": [1.0]})}, "bb.ope.Log.of"),
        ({"model": bb.load_model("beta_bernoulli")}, "model must be a bb.Ridge"),
        ({"half_lives": 500}, "half_lives must be a list"),
        ({"half_lives": ()}, "half_lives must be a list"),
        ({"half_lives": (None, "auto")}, "half_life must be a finite number"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            bb.evaluation.drift(**({"log": history} | wrong))


def test_a_sum_of_squares_is_read_as_a_variance():
    """`variance="rss"` never shrinks, and is no variance of a reward."""
    bandit, same = played(1, 40, variance="rss"), played(1, 40, variance="rss/n")
    history = bandit.history
    found = Regressions(same.spec, HALF_LIVES).scores(history.x, history.arm, history.reward)
    assert np.isfinite(bandit.surprise().log_e).all()
    table = bb.evaluation.drift(bandit.history, bandit.spec, HALF_LIVES)
    known = ~np.isnan(found).any(axis=1)
    np.testing.assert_allclose(table["score"], found[known].sum(axis=0))


def test_bad_levels_and_bandits_without_rounds():
    bandit = bb.LinTS(2, 1)
    assert not bandit.surprise().alarm
    for level in (0, 1, -0.1, np.nan):
        with pytest.raises(ValueError, match="level must"):
            bandit.surprise(level)


def test_arms_that_share_a_model_are_foretold_together():
    rng = np.random.default_rng(4)
    shared = bb.Bandit(5, bb.Shared(bb.Ridge(ridge=2.0)), bb.Thompson(), n_features=2)
    x, arm, r = rng.normal(size=(50, 2)), rng.integers(0, 5, 50), rng.normal(size=50)
    shared.update(x, arm, r)
    alone = bb.LinTS(1, 2, ridge=2.0)
    alone.update(x, np.zeros(50, int), r)
    np.testing.assert_array_equal(shared.surprise().log_e, alone.surprise().log_e)
