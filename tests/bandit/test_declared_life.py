"""A declared bandit's life: how it is made, saved and copied, its arms, history and posteriors."""

import re
from copy import deepcopy
from functools import partial

import numpy as np
import pymc as pm
import pytest
from pandas.testing import assert_frame_equal

import bayesbandit as bb
from bayesbandit.beliefs.sampled.belief import SampledBelief
from bayesbandit.checks import shown
from bayesbandit.model import RewardModel
from tests import declarations as declared
from tests.bandit.kinds import ARMS, D, agree, bandit_of, close, every, kinds, probe, trained
from tests.cases import few, moments_of
from tests.inference import linear
from tests.players import anatomy, lent, pickled, play, world

# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "fast"}, r"engine must be .*'auto'.*'nuts'.*; got 'fast'"),
        ({"refit_every": 0}, r"refit_every, as a number of rounds, must be .*≥ 1; got 0"),
        ({"refit_every": -0.5}, r"refit_every, as a share of growth, must be .*> 0; got -0\.5"),
        ({"refit_every": "often"}, r"refit_every.*got 'often'"),
        ({"draws": 1}, r"draws must be .*≥ 2; got 1"),
        ({"draws": 2.5}, r"draws.*got 2\.5"),
        ({"frozen": "yes"}, "frozen must be one of False, True; got 'yes'"),
        ({"engine": "exact"}, "non-polynomial function abs of 'theta'"),
    ],
)
def test_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        declared.bandit(2, declared.lasso, bb.Thompson(), n_features=D, **settings)


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


@pytest.mark.parametrize("name", ["logistic", pytest.param("student_t", marks=pytest.mark.slow)])
def test_laplace_does_not_walk(name):
    laplace = bb.Laplace(bb.load_model(name), drift=0.1)
    with pytest.raises(ValueError, match=rf"drift=0.1 needs .*; {name} is known by Laplace's"):
        bb.Bandit(2, laplace, bb.Thompson(), n_features=2)


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


@pytest.mark.parametrize(
    "model",
    [bb.Ridge, pytest.param(declared.lasso.function, id="function"), "lasso", None],
    ids=repr,
)
def test_models(model):
    with pytest.raises(
        TypeError, match="model must be a reward model, .*" + re.escape(shown(model))
    ):
        bb.Bandit(2, model, bb.Thompson(), n_features=D)


@few("[by Gibbs]")
@every
def test_bad_input_leaves_everything_as_it_was(kind):
    bandit = trained(kind, balance=bb.InversePropensity())
    decision = bandit.choose(probe())
    before, x, bad = anatomy(bandit), probe(1)[0], np.array([0.0, np.nan, 1.0])
    for act, message in (
        (lambda: bandit.choose(bad), "contexts must be finite.*found nan"),
        (lambda: bandit.choose(np.tile(bad, (3, 1))), r"found nan at \[0, 1\]"),
        (lambda: bandit.choose(np.ones(D + 1)), rf"got \({D + 1},\)"),
        (lambda: bandit.choose(np.ones((0, D))), "at least one"),
        (lambda: bandit.choose(x, arms=["z"]), "unknown arm 'z'"),
        (lambda: bandit.update(bad, "a", 1.0), "found nan"),
        (lambda: bandit.update(x, "z", 1.0), "unknown arm 'z'"),
        (lambda: bandit.update(x, "a", np.inf), "found inf"),
        (lambda: bandit.update(x, "a", 1.0, 1.5), r"got 1\.5"),
        (lambda: bandit.observe(decision, np.ones(3)), r"got \(3,\)"),
        (lambda: bandit.observe(decision[0], np.nan), "found nan"),
    ):
        with pytest.raises(ValueError, match=message):
            act()
        assert anatomy(bandit) == before


# ---- files, copies, seeds ------------------------------------------------------------------------


@few("[affine]")
@every
def test_saved_and_copied_it_goes_on_as_if_it_had_not_been(kind, tmp_path, rng):
    goes_on(kind, None, tmp_path, rng)


@every
@few("affine", "joint")
def test_a_copy_builds_nothing(kind, monkeypatch):
    bandit = trained(kind)
    with monkeypatch.context() as patch:
        patch.setattr(RewardModel, "build", None)
        twin = bandit.copy()
    assert anatomy(twin) == anatomy(bandit)


@pytest.mark.slow
def test_a_frozen_draw_is_saved(tmp_path, rng):
    """The sampler goes on from it, and its numbers are of no dimensions."""
    model = bb.Sampled(bb.load_model("bayesian_lasso"), draws=20, frozen=True)
    bandit = bb.Bandit(2, model, bb.Thompson(), n_features=2)
    x, reward = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    bandit.play(x[:6], reward[:6])
    bandit.save(tmp_path / "bandit")
    twin = bb.Bandit.load(tmp_path / "bandit", model=model)
    for one in (twin, bandit):
        one.play(x[6:], reward[6:])
    np.testing.assert_array_equal(twin.choose(x).rows, bandit.choose(x).rows)


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


@pytest.mark.parametrize("how", [deepcopy, pickled, lent])
@kinds("affine", "joint")
def test_pickled_it_goes_on_counting(kind, how, rng):
    """An arm's rounds, by which it is known whether all arms have been tried."""
    x, reward = world(rng, 12)
    bandit = bandit_of(kind)
    bandit.update(x, list(ARMS) * 4, reward[:, 0])
    other = how(bandit)
    for b in (bandit, other):
        b.update(x, list(ARMS) * 4, reward[:, 0])
        assert b.belief.n.tolist() == [8, 8, 8]
    np.testing.assert_array_equal(other.choose(x).rows, bandit.choose(x).rows)


@pytest.mark.slow
@kinds("affine")
def test_so_it_does_with_weights_that_change(kind, tmp_path, rng):
    goes_on(kind, bb.InversePropensity(propensity="estimated"), tmp_path, rng)


def goes_on(kind, balance, tmp_path, rng):
    x, reward = world(rng, 40)
    bandit = bandit_of(kind, balance=balance, refit_every=0.3)
    bandit.play(x[:20], reward[:20])
    bandit.remove_arm("b"), bandit.add_arm("new")
    bandit.play(x[20:25], reward[20:25])
    bandit.save(tmp_path / "bandit")
    copies = bandit.copy(), bb.Bandit.load(tmp_path / "bandit")
    state = anatomy(bandit)
    after = play(bandit, x[25:], reward[25:])
    for copy in copies:
        assert anatomy(copy) == state
        assert repr(copy) == repr(bandit)
        for ours, theirs in zip(play(copy, x[25:], reward[25:]), after, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert anatomy(copy) == anatomy(bandit)
    assert state != anatomy(bandit)


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


@pytest.mark.slow
def test_a_model_of_the_gallery_is_found_with_its_priors(tmp_path):
    model = bb.load_model("hierarchical_ridge").with_priors(tau2=0.3)
    bandit = bb.Bandit(2, model, bb.Thompson(), n_features=D)
    bandit.save(tmp_path / "bandit")
    assert anatomy(bb.Bandit.load(tmp_path / "bandit")) == anatomy(bandit)


@few("[affine]")
@every
def test_the_seed_decides(kind, rng):
    x, reward = world(rng, 40)
    runs = [play(bandit_of(kind, seed=seed), x, reward)[0].tolist() for seed in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


# ---- arms, history, posteriors -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["affine", "joint"])
def test_arms_come_and_go(kind, rng):
    """The belief is what `bb.fit` finds in the rounds of the arms that there are."""
    x, reward = world(rng, 30)
    bandit = bandit_of(kind, balance=bb.InversePropensity())
    bandit.play(x, reward)
    late = bandit.choose(probe(8))
    bandit.add_arm("new")
    p = bandit.choose(probe()).probabilities
    np.testing.assert_allclose(p[:, 3], 0.25)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert not np.allclose(p, 0.25)
    agree(bandit)
    bandit.update(probe(), ["new"] * 4, np.ones(4), np.full(4, 0.5))
    bandit.observe(late, np.ones(8))  # of a decision among fewer arms
    agree(bandit)
    bandit.remove_arm("b")
    agree(bandit)
    bandit.play(x, reward)
    agree(bandit)
    assert bandit.arms == ("a", 3, "new")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["by draws", "by Gibbs", "joint, by draws"])
def test_arms_come_and_go_by_draws(kind, rng):
    x, reward = world(rng, 30)
    bandit = bandit_of(kind, balance=bb.InversePropensity(propensity="estimated", refit_every=1))
    bandit.play(x, reward)
    bandit.add_arm("new")
    p = bandit.choose(probe()).probabilities
    np.testing.assert_allclose(p[:, 3], 0.25)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert not np.allclose(p, 0.25)
    bandit.remove_arm("b")
    bandit.play(x, reward)
    rows, history = bandit.belief.rounds.of(), bandit.history
    known = history.arm != "b"
    names = np.array(bandit.arms, dtype=object)
    assert names[rows["arm"]].tolist() == history.arm[known].tolist()
    for role in ("x", "reward", "weight"):
        np.testing.assert_array_equal(rows[role], getattr(history, role)[known])
    np.testing.assert_array_equal(bandit.belief.n, np.bincount(rows["arm"], minlength=3))


@few("[affine]")
@every
def test_the_history_has_what_was_decided(kind, rng):
    x, reward = world(rng, 20)
    bandit = bandit_of(kind, arms=3, history=15)
    arms, propensity = play(bandit, x, reward)
    history = bandit.history
    np.testing.assert_array_equal(history.x, x[-15:])
    np.testing.assert_array_equal(history.arm, arms[-15:])
    np.testing.assert_array_equal(history.propensity, propensity[-15:])
    np.testing.assert_array_equal(history.reward, reward[np.arange(20), arms][-15:])
    assert ((propensity > 0) & (propensity <= 1)).all()
    other = bandit_of(kind, arms=3, history=15)
    chosen, p = other.play(x, reward, every=1)
    np.testing.assert_array_equal(chosen, arms)
    np.testing.assert_array_equal(p, propensity)
    assert anatomy(other) == anatomy(bandit)


@pytest.mark.slow
@kinds("joint", "by Gibbs")
def test_a_posterior_as_an_arviz_tree(kind):
    """All groups; rows are those of the arm, or all that share the model."""
    bandit = trained(kind, refit_below=1.0)
    posterior = bandit.posterior("b")
    tree = posterior.to_datatree(chains=2, draws=50)
    rows = 30 if bandit.model.takes_arm else 10
    groups = ("posterior", "prior", "posterior_predictive", "log_likelihood", "observed_data")
    assert {*groups, "constant_data"} <= set(tree.children)
    together = kind.endswith("by draws")  # one observation of all rows has one likelihood
    assert tree["log_likelihood"]["reward"].shape[2:] == (() if together else (rows,))
    assert tree["posterior"].sizes["feature"] == D
    assert tree.attrs["engine"] == posterior.engine
    mean, sd = moments_of(bandit.belief, probe())
    at = slice(None) if bandit.model.takes_arm else 1
    close(posterior.mean(probe()), mean[:, at])
    exact = not isinstance(bandit.belief, SampledBelief)
    np.testing.assert_allclose(posterior.sd(probe()), sd[:, at], rtol=1e-9 if exact else 0.01)


# ---- experiments ---------------------------------------------------------------------------------


def declared_bandit(model, arms, n_features, seed):
    return bb.Bandit(
        arms, bb.Sampled(model, draws=30), bb.Thompson(), n_features=n_features, seed=seed
    )


def experiment(replications, names):
    bandits = {
        name: partial(declared_bandit, model)
        for name, model in (
            ("affine", declared.noncentred),
            ("joint", bb.load_model("hierarchical_ridge")),
            ("draws", bb.load_model("laplace")),
        )
        if name in names
    }
    iris = bb.environments.bundled("iris")
    return bb.Experiment([iris], bandits, horizon=30, replications=replications, points=5)


@pytest.mark.slow
@pytest.mark.parametrize("names", [["affine"], ["joint", "draws"], ["affine", "joint", "draws"]])
def test_experiments_with_declared_models(names):
    replications = 1 if len(names) == 1 else 2
    table = experiment(replications, names).run(progress=False)
    assert list(table["bandit"].unique()) == names
    np.testing.assert_allclose(table["reward"] + table["regret"], table["t"])
    assert_frame_equal(experiment(replications, names).run(progress=False), table)


@pytest.mark.slow
def test_two_jobs_give_the_same_table():
    def table(jobs):
        return experiment(2, ["draws"]).run(jobs=jobs, progress=False)

    assert_frame_equal(table(2), table(1))


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


@bb.reward_model(sigma=bb.Prior("HalfNormal", sigma=1))
def half_normal_noise(x, reward, sigma):
    mu = x @ pm.Normal("theta", 0, 1, dims="feature")
    pm.Normal("reward", mu, sigma, observed=reward)
    return mu


@pytest.mark.slow
def test_a_bandit_without_a_proper_posterior_is_kept(tmp_path):
    """Rewards of 0 are fitted exactly, and the noise may fall to 0: its draws are kept."""
    settings = {"n_features": 2, "seed": 0, "refit_every": 1, "draws": 20}
    bandit = declared.bandit(["a", "b"], half_normal_noise, bb.Thompson(), **settings)
    for x in np.random.default_rng(0).normal(size=(8, 2)):
        bandit.observe(bandit.choose(x), 0.0)
    assert np.isclose(bandit.choose(x).probabilities.sum(), 1.0)
    bandit.save(tmp_path / "b")
    again = bb.Bandit.load(tmp_path / "b", model=half_normal_noise)
    assert [again.choose(x).arm for _ in range(9)] == [bandit.choose(x).arm for _ in range(9)]
