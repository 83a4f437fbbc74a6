"""A declared bandit's life: how it is made, saved and copied, its arms, history and posteriors."""

import pymc as pm
import pytest

import bayesbandit as bb
from bayesbandit.model import RewardModel
from tests import declarations as declared
from tests.bandit.kinds import D
from tests.cases import few
from tests.inference import linear
from tests.players import anatomy

# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("draws", 10, r"a setting of the model: bb\.Sampled\(model, draws=10\)"),
        ("engine", "nuts", r"a setting of the model: bb\.Declared\(model, engine='nuts'\)"),
        ("floor", 0.1, "a bandit has no setting 'floor'"),
    ],
)
def test_settings_of_models_are_not_of_bandits(name, value, told):
    with pytest.raises(TypeError, match=told):
        bb.Bandit(2, declared.lasso, bb.Thompson(), n_features=D, **{name: value})


@pytest.mark.parametrize("kind", [bb.Declared, bb.Sampled, bb.Laplace])
def test_settings_of_declared_models_are_not_of_others(kind):
    with pytest.raises(TypeError, match=rf"{kind.__name__} is of a declared .*; got Ridge\("):
        kind(bb.Ridge())


@few("[model1-balance1-noncentred: pooled propensities need snapshots.*'decision' or 'estimated']")
@pytest.mark.parametrize(
    ("model", "balance", "message"),
    [
        (declared.binary, bb.InversePropensity(), "binary does not take `weight`: it cannot be"),
        (declared.noncentred, bb.InversePropensity(propensity="pooled"),
         "noncentred: pooled propensities need snapshots.*'decision' or 'estimated'"),
        (declared.lasso, bb.InversePropensity(propensity="pooled"), "lasso: pooled propensities"),
    ],
)  # fmt: skip
def test_balances(model, balance, message):
    with pytest.raises(ValueError, match=message):
        bb.Bandit(2, model, bb.Thompson(), balance, n_features=D)


# ---- files, copies, seeds ------------------------------------------------------------------------


@pytest.mark.slow
def test_a_copy_is_the_same_whatever_its_declaration_reads_by_now(rng, monkeypatch):
    bandit = bb.Bandit(2, bb.Sampled(declared.lasso, draws=20), bb.Thompson(), n_features=2)
    x, reward = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    bandit.play(x[:10], reward[:10])
    monkeypatch.setattr(declared, "SIGMA", 50.0)
    twin = bandit.copy()
    assert anatomy(twin) == anatomy(bandit)
    for one in (twin, bandit):
        one.play(x[10:], reward[10:])
    assert anatomy(twin) == anatomy(bandit)


@pytest.mark.slow
def test_a_model_that_is_nowhere_to_be_found_is_given_again(tmp_path):
    model = RewardModel(linear.intercept, {})
    bandit = bb.Bandit(2, bb.Sampled(model, draws=77), bb.Thompson(), n_features=D)
    bandit.save(tmp_path / "bandit")
    with pytest.raises(ValueError, match=r"intercept.*give the bandit's model again: load\(path, "):
        bb.Bandit.load(tmp_path / "bandit")
    loaded = bb.Bandit.load(tmp_path / "bandit", model=model)
    assert anatomy(loaded) == anatomy(bandit)
    assert loaded.model == bandit.model
    assert loaded.spec.draws == 77


# ---- experiments ---------------------------------------------------------------------------------


@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"))
def deaf(x, reward, weight, theta):
    """Takes weights and makes no use of them."""
    mu = x @ theta
    pm.Normal("reward", mu, 0.7, observed=reward)
    return mu


@pytest.mark.parametrize(
    "model",
    [
        deaf,
        pytest.param(
            deaf.with_priors(theta=bb.Prior("Laplace", mu=0, b=1)), marks=pytest.mark.slow
        ),
    ],
)
def test_a_declaration_without_use_for_weights_cannot_be_balanced(model):
    with pytest.raises(ValueError, match="deaf has no use for its `weight`"):
        bb.Bandit(2, model, bb.Thompson(), bb.InversePropensity(), n_features=2)
    bb.Bandit(2, model, bb.Thompson(), n_features=2)
