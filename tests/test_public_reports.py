"""What users reported of other libraries, tried here. Each test names the report."""

import pickle

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb

FRAME = pd.DataFrame({"u": [1.0, 2.0, 3.0], "v": [4.0, 5.0, 7.0]}, index=[10, 20, 30])


def test_columns_in_another_order_are_never_taken_by_position():
    """scikit-learn 7242, LightGBM 4102, xgboost 8357: columns were taken by position, silently."""
    plain = bb.LinTS(["a", "b"], n_features=2, seed=0)
    with pytest.raises(ValueError, match=r"encoder=bb\.Encoder\.fit"):
        plain.choose(FRAME)
    encoder = bb.Encoder.fit(FRAME)
    np.testing.assert_array_equal(encoder.transform(FRAME), encoder.transform(FRAME[["v", "u"]]))


def test_levels_in_another_order_have_the_same_code():
    """xgboost 11160: the codes of a categorical went by the order of each frame."""
    frame = pd.DataFrame({"c": pd.Categorical(["x", "y", "z", "x"], categories=["x", "y", "z"])})
    other = pd.DataFrame({"c": pd.Categorical(["x", "y", "z", "x"], categories=["z", "y", "x"])})
    encoder = bb.Encoder.fit(frame)
    np.testing.assert_array_equal(encoder.transform(frame), encoder.transform(other))


@pytest.mark.parametrize("given", ["arm", "reward", "propensity"])
def test_a_series_in_another_order_of_rows_is_refused(given):
    """statsmodels 206: rows with other labels were paired by their position."""
    columns = {"arm": ["a", "b", "a"], "reward": [3.0, 1.0, 2.0], "propensity": [0.5, 0.5, 0.5]}
    columns[given] = pd.Series(columns[given], index=[30, 10, 20])
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(FRAME), seed=0)
    with pytest.raises(ValueError, match=f"x and {given} have the same index in different orders"):
        bandit.update(FRAME, **columns)
    assert len(bandit.history) == 0
    with pytest.raises(ValueError, match="in different orders"):
        bb.ope.Log(FRAME, columns.pop("arm"), columns.pop("reward"), **columns)
    sorted_ = pd.Series(columns.get(given, [1.0] * 3), index=FRAME.index)
    bandit.update(FRAME, ["a", "b", "a"], sorted_.index.to_series() / 30)
    bandit.update(FRAME, ["a", "b", "a"], pd.Series([1.0, 2.0, 3.0]))  # other labels: by position


def test_fit_refuses_a_sorted_reward():
    model = bb.load_model("ridge")
    reward = pd.Series([3.0, 2.0, 1.0], index=[30, 20, 10])
    with pytest.raises(ValueError, match=r"pass reward\.loc\[x\.index\]"):
        bb.fit(model, FRAME, reward)
    np.testing.assert_array_equal(
        bb.fit(model, FRAME, reward.loc[FRAME.index]).mean(FRAME.to_numpy()),
        bb.fit(model, FRAME, [1.0, 2.0, 3.0]).mean(FRAME.to_numpy()),
    )


def test_without_contexts_the_best_arm_is_found():
    """Vowpal Wabbit 1436: the first arm was predicted, whatever had been learned."""
    bandit = bb.LinTS([1, 2, 3, 4], n_features=0, seed=0)
    arms, costs = [1, 4, 4, 3, 3, 3, 3, 2, 4, 1], [1, 1, 1, 0.1, 0.1, 0.1, 0.1, 1, 1, 1]
    bandit.update(np.empty((10, 0)), arms, -np.array(costs), propensity=0.25)
    assert list(bandit.greedy(np.empty((2, 0)))) == [3, 3]


def test_arms_without_a_reward_may_be_forgotten():
    """bayesianbandits 49: decay of an arm that had not been updated was singular."""
    bandit = bb.LinTS(["a", "b", "c"], n_features=1, half_life=5, seed=0)
    for _ in range(50):
        bandit.update(np.ones((3, 1)), ["a"] * 3, [1.0, 0.0, 1.0])
        bandit.forget(steps=3)
    np.testing.assert_allclose(bandit.probabilities([1.0]), 1 / 3)


def test_a_copy_by_pickle_draws_as_the_original():
    """bayesianbandits 13: arms of an unpickled agent had a generator of their own."""
    bandit = bb.LinTS(["a", "b"], n_features=1, seed=0)
    bandit.choose([1.0])
    copy = pickle.loads(pickle.dumps(bandit))
    assert [bandit.choose([1.0]).arm for _ in range(20)] == [
        copy.choose([1.0]).arm for _ in range(20)
    ]


def test_replay_of_random_choices_has_no_bias(rng):
    """Vowpal Wabbit 2621: `explore_eval` gave −.098 where all choices are random and it is 0."""
    n, K = 20_000, 10
    arm = rng.integers(K, size=n)
    log = bb.ope.Log(
        np.ones((n, 1)), arm, np.where(arm < 5, 1.0, -1.0), np.full((n, K), 1 / K), range(K)
    )
    player = bb.Bandit(range(K), bb.Ridge(), bb.EpsilonGreedy(epsilon=1.0), n_features=1, seed=1)
    found = bb.ope.replay(log, player)
    assert abs(found.value) < 4 * found.se


def test_one_observation_is_enough_for_numbers():
    """mab2rec 17: LinUCB predicted NaN for arms with few observations."""
    bandit = bb.LinUCB(["a", "b"], n_features=2, seed=0)
    bandit.update([[1.0, 0.0]], ["a"], [0.0])
    assert np.isfinite(bandit.probabilities([0.0, 1.0])).all()
    bandit.update([[1.0, 0.0]], ["b"], [1.0])
    prediction = bandit.belief.predict(np.array([[0.0, 1.0]]))
    assert np.isfinite(prediction.mean).all()
    assert np.isfinite(prediction.sd).all()


def test_contexts_that_begin_with_zero_are_learned():
    """LinUCB (thunfischtoast) 2: where the first number was 0, all arms were played alike."""
    bandit = bb.LinUCB(["a", "b"], n_features=2, seed=0)
    for _ in range(100):
        decision = bandit.choose([0.0, 1.0])
        bandit.observe(decision, float(decision.arm == "a"))
    assert bandit.summary()["rounds"]["a"] > 90


@pytest.mark.parametrize("arms", [3, range(3), [0, 1, 2], np.arange(3), pd.Index([0, 1, 2])])
def test_arms_may_be_a_number_or_any_sequence(arms):
    """contextualbandits 59: a list of arms, where a number was expected, raised TypeError."""
    assert bb.LinTS(arms, n_features=1, seed=0).arms == (0, 1, 2)


def test_an_optimism_that_grows_is_for_arms_that_were_not_chosen_too():
    """MABWiser 10: bounds of arms without a new reward stayed as they were."""
    bandit = bb.LinUCB(["a", "b"], n_features=0, alpha=lambda t: float(t), variance=1.0, seed=0)
    bandit.update(np.empty((2, 0)), ["a", "b"], [1.0, 0.0])
    for _ in range(200):
        decision = bandit.choose()
        bandit.observe(decision, float(decision.arm == "a"))
    assert bandit.summary()["rounds"]["b"] > 50


def test_predictions_need_not_have_the_rows_of_the_fit(rng):
    """bambi 845, pymc 7897: new rows had to be as many as those of the fit."""
    x = rng.normal(size=(16, 2))
    posterior = bb.fit(bb.load_model("logistic"), x, (x[:, 0] > 0) * 1.0, seed=0, draws=50)
    assert posterior.mean(rng.normal(size=(18, 2))).shape == (18,)


def test_a_reward_that_is_pandas_na_is_missing():
    """It ended in "float() argument must be a string or a real number, not 'NAType'"."""
    bandit = bb.LinTS(["a", "b"], n_features=1, seed=0)
    with pytest.raises(ValueError, match=r"reward must be finite, .* found nan"):
        bandit.observe(bandit.choose([1.0]), pd.NA)
    assert len(bandit.history) == 0
