"""The paper's bandits by name: what each is made of."""

import inspect

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.bandit.presets.preset import explanations
from bayesbandit.cli.bandits import BANDITS
from tests.cases import few
from tests.players import PRESETS, anatomy, world

RIDGE = bb.Ridge(2.0)
BALANCED = bb.Ridge(2.0, prior_rows=4.0)
REACHING = bb.Ridge(2.0, prior_rows=32.0)
MADE_OF = {
    "LinTS": (RIDGE, bb.Thompson(0.5), bb.Unweighted()),
    "LinUCB": (REACHING, bb.UCB(0.5), bb.Unweighted()),
    "BLTS": (BALANCED, bb.Thompson(0.5), bb.InversePropensity(0.1, "decision")),
    "BLUCB": (REACHING, bb.UCB(0.5), bb.InversePropensity(0.1, "estimated")),
}


@pytest.mark.parametrize("name", MADE_OF)
def test_a_preset_is_a_model_a_policy_and_a_balance(name, rng):
    model, policy, balance = MADE_OF[name]
    x, reward = world(rng, 60)
    preset = getattr(bb, name)(["a", "b", "c"], 3, alpha=0.5, ridge=2.0, seed=4)
    assert (preset.policy, preset.balance, preset.model) == (policy, balance, model)
    by_hand = bb.Bandit(["a", "b", "c"], model, policy, balance, n_features=3, seed=4)
    np.testing.assert_array_equal(preset.play(x, reward), by_hand.play(x, reward))
    assert anatomy(preset) == anatomy(by_hand)


@pytest.mark.parametrize("name", PRESETS)
def test_settings_reach_the_model_and_the_bandit(name):
    settings = {"min_variance": 1e-2, "grid": (1.0, 2.0), "folds": 3, "prior": (2.0, 3.0)}
    settings |= {"refit_every": 7, "prior_rows": 3.0}
    bandit = PRESETS[name](
        2, 3, ridge="cv", variance="nig", intercept="unpenalised", history=5, **settings
    )
    assert bandit.model == bb.Ridge("cv", "nig", "unpenalised", **settings)
    assert bandit.history.limit == (5 if bandit.reweighting is None else None)


@pytest.mark.parametrize("name", BANDITS)
def test_a_presets_signature_is_what_it_accepts(name):
    """Each keyword with a type, its default, and an explanation; and no others."""
    make = getattr(bb, name)
    parameters = inspect.signature(make).parameters
    assert all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters.values())
    assert all(p.annotation is not p.empty for p in parameters.values())
    by_name = [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert by_name[0] == "min_probability"
    assert by_name[-2:] == ["encoder", "history"]
    told = explanations(inspect.getdoc(make))
    assert set(parameters) <= set(told), set(parameters) - set(told)
    defaults = {p.name: p.default for p in parameters.values() if p.default is not p.empty}
    given, plain = make(2, **defaults | {"n_features": 3}), make(2, 3)
    for part in ("spec", "policy", "balance"):
        assert repr(getattr(given, part)) == repr(getattr(plain, part))
    assert given.history.limit == plain.history.limit
    with pytest.raises(TypeError) as refusal:
        make(2, 3, nonsense=1)
    assert str(refusal.value).split("there are ")[1].split(", ") == list(parameters)


def test_without_a_seed_it_is_from_the_operating_system_and_recorded(tmp_path, rng):
    x = rng.normal(size=(50, 3))
    bandits = [bb.LinTS(3, 3, seed=None) for _ in range(2)]
    assert bandits[0].seed.entropy != bandits[1].seed.entropy
    assert inspect.signature(bb.LinTS).parameters["seed"].default == 0
    for bandit in bandits:
        bandit.save(tmp_path / "bandit")
        loaded, again = bb.Bandit.load(tmp_path / "bandit"), bb.LinTS(3, 3, seed=bandit.seed)
        expected = bandit.choose(x).arm
        np.testing.assert_array_equal(loaded.choose(x).arm, expected)
        np.testing.assert_array_equal(again.choose(x).arm, expected)


@few("[LinTS]")
@pytest.mark.parametrize("name", sorted(set(BANDITS) - {"BayesianLassoTS", "BayesianLassoUCB"}))
def test_a_preset_takes_a_floor_under_its_probabilities(name, rng):
    x = rng.normal(size=(40, 2))
    free, floored = (BANDITS[name](3, 2, seed=1, min_probability=g) for g in (0.0, 0.1))
    for bandit in (free, floored):
        bandit.update(x, np.arange(40) % 3, (x[:, 0] > 0) * 1.0, propensity=np.full(40, 1 / 3))
    p, q = (bandit.choose(x).probabilities for bandit in (free, floored))
    np.testing.assert_allclose(q, 0.1 + 0.7 * p, atol=1e-9)
    with pytest.raises(ValueError, match="min_probability must be"):
        BANDITS[name](3, 2, min_probability=0.5)
