"""Beliefs by draws: when they are computed anew, their weights, arms, and state."""

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.model import RewardModel
from tests.beliefs.by_draws import (
    GIBBS,
    HETEROSCEDASTIC,
    IMPROPER,
    LOGISTIC,
    SHARED,
    D,
    K,
    believed,
    binary,
    of,
    probe,
    runs,
    state_of,
)
from tests.beliefs.closed_form import data, learn
from tests.cases import few, in_gate, moments_of, quick_but
from tests.declarations import lasso
from tests.inference import linear


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refit_every", "expected"),
    [
        (1, list(range(41))),
        (7, [0, 1, 8, 15, 22, 29, 36]),
        (0.5, [0, 1, 2, 3, 5, 8, 12, 18, 27]),
        (0.1, [*range(12), 13, 15, 17, 19, 21, 24, 27, 30, 33, 37]),
    ],
)
def test_a_schedule_of_refits(refit_every, expected):
    """Every m rounds of the arm, or each time they have grown by a share; another arm's rounds do
    not count."""
    belief, rows = believed(HETEROSCEDASTIC, 2, refit_every=refit_every, draws=4), data(n=40)
    seen = []
    for i in range(41):
        moments_of(belief, probe())
        if not seen or belief.clouds[0].fitted != seen[-1]:
            seen.append(belief.clouds[0].fitted)
        assert runs(belief) == [len(seen), 1]
        if i < 40:
            part = {role: v[i : i + 1] for role, v in rows.items()} | {"arm": np.array([0])}
            learn(belief, part)
    assert seen == expected


def test_draws_are_renewed_when_they_have_served():
    """As many decisions as there are draws; looking on does not wear them out."""
    belief = learn(believed(HETEROSCEDASTIC, draws=30), data(n=30))
    rows = np.zeros((10, D))
    values = []
    for _ in range(8):
        belief.predict(rows), belief.count_decisions(len(rows))
        moments_of(belief, probe()), belief.predict(probe()).best()
        values.append(belief.values(probe()))
    assert runs(belief) == [3] * K
    for i in range(1, 8):
        assert np.array_equal(values[i], values[i - 1]) == (i not in (2, 5))


@pytest.mark.slow
def test_a_frozen_draw_stays_until_the_next_reward():
    """The paper's Appendix C: one draw for each arm, picked among the sampler's."""
    model, rows = bb.load_model("bayesian_lasso"), data(n=30)
    belief = learn(believed(model, refit_every=1, draws=20, frozen=True), rows)
    table = np.random.default_rng(0).normal(size=(50, D))
    found = belief.predict(table)
    belief.count_decisions(len(table))
    before = belief.values(probe())
    assert before.shape == (4, K, 1)
    np.testing.assert_array_equal(moments_of(belief, probe())[1], 0.0)
    np.testing.assert_array_equal(found.best(), np.eye(K)[found.mean.argmax(axis=1)])
    belief.predict(table), belief.count_decisions(len(table))
    np.testing.assert_array_equal(belief.values(probe()), before)
    learn(belief, {role: v[:1] for role, v in rows.items()} | {"arm": np.array([1])})
    changed = (belief.values(probe()) != before).all(axis=(0, 2))
    np.testing.assert_array_equal(changed, [False, True, False])


def test_a_frozen_draw_of_a_sampler_that_has_variables_of_its_own():
    """A draw of the prior has no scales of the mixture, from which its sampler could go on."""
    belief, rows = believed(lasso, 1, draws=10, frozen=True), data(n=9, K=1)
    belief.values(probe())
    values = learn(belief, rows).values(probe())
    assert values.shape == (4, 1, 1)
    assert belief.clouds[0].fitted == 9


@few("[own]")
@pytest.mark.parametrize("model", [HETEROSCEDASTIC, SHARED], ids=["own", "shared"])
def test_weights_that_change_with_hindsight(model):
    """The arms that are due are computed anew, as if the weights had always been so; rows of an
    arm that is gone (−1) are none of it."""
    rows = data(n=30)
    belief, other = believed(model, draws=20), believed(model, draws=20)
    learn(belief, rows | {"weight": np.ones(30)})
    gone = {role: np.concatenate([v[:5], v]) for role, v in rows.items()}
    gone["arm"][:5] = -1
    belief.reweigh([0, 2], *(gone[role] for role in ("x", "arm", "reward", "weight")))
    learn(other, rows)
    np.testing.assert_array_equal(belief.values(probe()), other.values(probe()))
    np.testing.assert_array_equal(belief.n, np.bincount(rows["arm"]))
    before = runs(belief)
    belief.reweigh([1], *(rows[role] for role in ("x", "arm", "reward", "weight")))
    moments_of(belief, probe())
    assert np.subtract(runs(belief), before).tolist() == ([1] if model.takes_arm else [0, 1, 0])


@pytest.mark.parametrize("model", [IMPROPER, RewardModel(linear.improper, {})], ids=["nig", "flat"])
@pytest.mark.slow
def test_an_improper_prior_waits_until_the_posterior_is_proper(model):
    """Without draws: mean 0 with an infinite sd, and new."""
    rows = data(n=12, K=1)
    belief = believed(model, 2, draws=10)
    for i in range(12):
        enough = i >= (D if model is IMPROPER else D + 1)
        mean, sd = moments_of(belief, probe())
        assert np.isfinite(sd[:, 0]).all() == enough
        assert not np.isfinite(sd[:, 1]).any()
        assert (mean[:, 1] == 0).all()
        assert belief.new.tolist() == [not enough, True]
        np.testing.assert_array_equal(belief.predict(probe()).best(), 0.5)
        learn(belief, {role: v[i : i + 1] for role, v in rows.items()})
    learn(belief, rows | {"arm": np.ones(12, dtype=int)})
    assert not belief.new.any()


@pytest.mark.slow
def test_own_models_of_arms_that_come_and_go():
    """The others' draws stay as they are; a new arm begins with the prior."""
    rows = data(n=30)
    belief = learn(believed(HETEROSCEDASTIC, draws=20), rows)
    values, mean = belief.values(probe()), moments_of(belief, probe())[0]
    belief.add_arm()
    grown = belief.values(probe())
    np.testing.assert_array_equal(grown[:, :K], values)
    fresh = learn(believed(HETEROSCEDASTIC, K + 1, draws=20), rows)
    np.testing.assert_array_equal(grown, fresh.values(probe()))
    belief.remove_arm(1)
    np.testing.assert_array_equal(moments_of(belief, probe())[0][:, :2], mean[:, [0, 2]])
    np.testing.assert_array_equal(belief.n, [*np.bincount(rows["arm"])[[0, 2]], 0])
    assert set(belief.rounds.arm.tolist()) == {0, 1}
    kept = of(rows, 2)
    np.testing.assert_array_equal(belief.posterior(1, {}).rows["reward"], kept["reward"])


@few("[frozen]")
@in_gate(5)
@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (bb.load_model("bayesian_lasso"), {"frozen": True, "refit_every": 1}),
        (bb.load_model("student_t_mixture"), {"tune": 20}),
        (GIBBS, {"tune": 20}),
        (IMPROPER, {}),
        (LOGISTIC, {"engine": "laplace"}),
    ],
    ids=["frozen", "by row", "shared", "improper", "laplace"],
)
def test_state_and_restore_go_on_bit_for_bit(model, settings):
    rows = data(n=30)
    rows = binary(rows) if model is LOGISTIC else rows
    belief, other = (believed(model, draws=10, seed=3, **settings) for _ in range(2))
    first, more = ({role: v[s] for role, v in rows.items()} for s in (slice(14), slice(14, None)))
    learn(belief, first), moments_of(belief, probe())
    other.restore({k: v.copy() if isinstance(v, np.ndarray) else v
                   for k, v in belief.state().items()})  # fmt: skip
    assert state_of(other) == state_of(belief)
    np.testing.assert_array_equal(other.n, belief.n)
    for part in (first, more):
        for one in (belief, other):
            learn(one, part)
        np.testing.assert_array_equal(belief.values(probe()), other.values(probe()))
        belief.count_decisions(5), other.count_decisions(5)
        assert state_of(other) == state_of(belief)


@pytest.mark.parametrize(
    "model", quick_but([GIBBS], [GIBBS, bb.load_model("student_t_mixture")]), ids=lambda m: m.name
)
@pytest.mark.slow
def test_the_posterior_is_of_all_rows(model):
    """Also between two refits, where there are more rows than the draws know of."""
    rows = data(n=30, K=1)
    belief = learn(believed(model, 1, refit_every=20, draws=8, tune=20), rows)
    moments_of(belief, probe())
    learn(belief, {role: v[:5] for role, v in rows.items()})
    tree = belief.posterior(0, {}).to_datatree()
    assert tree["log_likelihood"]["reward"].shape == (1, 8, 35)
    assert tree["observed_data"]["reward"].shape == (35,)
    assert belief.clouds[0].fitted == 30
