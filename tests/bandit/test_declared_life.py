"""A declared bandit's life: how it is saved and copied, its weights and posteriors."""

import numpy as np
import pymc as pm
import pytensor
import pytest
from pytensor.compile.maker import FunctionMaker

import bayesbandit as bb
from bayesbandit.model import RewardModel
from tests import declarations as declared
from tests.bandit.kinds import D
from tests.cases import few, moments_of
from tests.inference import linear
from tests.players import anatomy, pickled


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


@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"))
def deaf(x, reward, weight, theta):
    """Takes weights and makes no use of them."""
    mu = x @ theta
    pm.Normal("reward", mu, 0.7, observed=reward)
    return mu


@pytest.mark.parametrize(
    "prior", [{}, pytest.param({"theta": bb.Prior("Laplace", mu=0, b=1)}, marks=pytest.mark.slow)]
)
def test_a_declaration_without_use_for_weights_cannot_be_balanced(prior):
    model = deaf.with_priors(**prior)
    with pytest.raises(ValueError, match="deaf has no use for its `weight`"):
        bb.Bandit(2, model, bb.Thompson(), bb.InversePropensity(), n_features=2)
    bb.Bandit(2, model, bb.Thompson(), n_features=2)


@pytest.mark.slow
def test_a_posterior_is_fitted_once_for_the_same_rounds(rng):
    settings = {"n_features": D, "draws": 20, "refit_every": 50}
    bandit = declared.bandit(2, declared.lasso, bb.Thompson(), **settings)
    x, reward = rng.normal(size=(120, D)), rng.normal(size=(120, 2))
    bandit.play(x[:90], reward[:90])
    assert bandit.posterior(0) is bandit.posterior(0)
    known = bandit.posterior(0).mean(x)
    for other in (pickled(bandit), bandit.copy()):
        np.testing.assert_array_equal(other.posterior(0).mean(x), known)
    bandit.play(x[90:], reward[90:])
    assert (bandit.posterior(0).mean(x) != known).any()


EACH = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
ARMS = bb.Prior("Normal", mu=0, sigma=1, dims=("arm", "feature"))


def reading(noise, shared=False, intercept=0.0):
    """A ridge regression, which streams by a belief of its own kind."""

    def own(x, reward, t):
        mu = x @ t + intercept
        pm.Normal("reward", mu, noise, observed=reward)
        return mu

    def together(x, reward, arm, t):
        mu = (x * t[arm]).sum(axis=-1)
        pm.Normal("reward", mu, noise, observed=reward)
        return mu

    return bb.reward_model(t=ARMS if shared else EACH)(together if shared else own)


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "intercept"), [(False, 0.0), (False, 1.0), (True, 0.0)])
@few("False-1.0")
def test_a_bandit_is_saved_as_the_declaration_that_it_was_made_with(shared, intercept, tmp_path):
    noise, rng = pytensor.shared(1.0), np.random.default_rng(0)
    model = reading(noise, shared, intercept)
    bandit = bb.Bandit(2, model, bb.Thompson(), n_features=2)
    x = rng.normal(size=(30, 2))
    bandit.update(x, np.arange(30) % 2, x @ [1.0, 2.0], np.full(30, 0.5))
    known = moments_of(bandit.belief, x[:3])
    noise.set_value(3.0)
    with pytest.warns(UserWarning, match="builds another model now"):
        bandit.save(tmp_path / "bandit")
    with pytest.raises(ValueError, match="not the one that the bandit was saved with"):
        bb.Bandit.load(tmp_path / "bandit", model=model)
    if shared:
        with pytest.raises(ValueError, match="builds another model than when"):
            bandit.add_arm("new")
    noise.set_value(1.0)
    loaded = bb.Bandit.load(tmp_path / "bandit", model=model)
    for one, other in zip(known, moments_of(loaded.belief, x[:3]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_a_level_that_was_not_declared_is_named():
    @bb.reward_model()
    def by_city(x, reward):
        mu = pm.Normal("u", 0, 2, shape=4)[x[:, 0].astype("int32")]
        pm.Normal("reward", mu, 0.5, observed=reward)
        return mu

    found = bb.fit(by_city, [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"index 7 .*a level that was not declared"):
        found.mean([[7.0]])
    bandit = bb.Bandit(2, by_city, bb.Thompson(), n_features=1)
    with pytest.raises(ValueError, match="a level that was not declared"):
        bandit.choose([7.0])
    assert bandit.t == 0


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"draws": 20}, {"engine": "laplace"}])
def test_a_second_bandit_of_a_declaration_compiles_nothing(settings, monkeypatch, rng):
    model = declared.lasso if "draws" in settings else bb.load_model("logistic")
    x, reward = rng.normal(size=(12, D)), 1.0 * (rng.random(12) < 0.5)

    def live():
        bandit = declared.bandit(2, model, bb.Thompson(), n_features=D, **settings)
        bandit.update(x, [0, 1] * 6, reward)
        return bandit.choose(x).arm.tolist()

    first = live()
    monkeypatch.setattr(FunctionMaker, "__init__", None)
    assert live() == first
