"""Bandits with declared models: propensities, rewards, weights, files and arms, of every belief."""

import re
from functools import partial

import numpy as np
import pymc as pm
import pytest
from pandas.testing import assert_frame_equal
from scipy import stats

import bayesbandit as bb
from bayesbandit.beliefs.affine import AffineBelief, JointBelief
from bayesbandit.beliefs.sampled import SampledBelief
from bayesbandit.model import RewardModel, reward_model
from tests import declarations as declared
from tests.engines import linear
from tests.players import anatomy, play, world

D, ARMS = 3, ("a", "b", 3)
NORMAL = bb.Prior("Normal", mu=0.5, sigma=1, dims="feature")


@reward_model(sigma2=bb.Prior("InverseGamma", alpha=2, beta=1))
def off_centre(x, reward, weight, sigma2):
    theta = pm.Normal("theta", 0.5, pm.math.sqrt(sigma2), dims="feature")
    mu = 1.0 + x @ theta
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward)
    return mu


@reward_model(theta=NORMAL)
def noise_by_context(x, reward, weight, theta):
    mu = x @ theta
    sigma = pm.math.exp(0.3 * x[:, 0]) / pm.math.sqrt(weight)
    pm.Normal("reward", mu, sigma, observed=reward)
    return mu


@reward_model(centre=NORMAL)
def shared_noise_by_context(x, reward, weight, arm, centre):
    theta = pm.Normal("theta", centre, 0.7, dims=("arm", "feature"))
    mu = (x * theta[arm]).sum(axis=-1)
    sigma = pm.math.exp(0.3 * x[:, 0]) / pm.math.sqrt(weight)
    pm.Normal("reward", mu, sigma, observed=reward)
    return mu


KINDS = {
    "affine": (AffineBelief, declared.noncentred, {}),
    "affine, unknown noise": (AffineBelief, off_centre, {}),
    "joint": (JointBelief, declared.pooled, {}),
    "by draws": (SampledBelief, noise_by_context, {"draws": 60}),
    "by Gibbs": (SampledBelief, declared.lasso, {"draws": 60}),
    "joint, by draws": (SampledBelief, shared_noise_by_context, {"draws": 60}),
}
POLICIES = [bb.Thompson(0.7), bb.UCB(0.7), bb.Greedy(), bb.EpsilonGreedy(0.2)]
every = pytest.mark.parametrize("kind", KINDS)


def bandit_of(kind, policy=POLICIES[0], balance=None, arms=ARMS, **settings):
    belief, model, own = KINDS[kind]
    bandit = bb.Bandit(arms, model, policy, balance, n_features=D, **(own | settings))
    assert type(bandit.belief) is belief
    return bandit


def trained(kind, *args, T=30, seed=7, **settings):
    """A bandit that has learned from rounds that were logged elsewhere."""
    x, reward = world(np.random.default_rng(seed), T)
    bandit, k = bandit_of(kind, *args, **settings), np.arange(T) % 3
    names = np.array(ARMS, dtype=object)
    bandit.update(x, names[k], reward[np.arange(T), k], np.full(T, 0.5))
    return bandit


def probe(n=4):
    return np.random.default_rng(99).normal(size=(n, D))


def close(ours, theirs, tolerance=1e-9):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def fitted(bandit, arm, weight=None):
    """`bb.fit` on the rounds that the history holds, of one arm or of all that share a model."""
    history, model = bandit.history, bandit.model.model
    weight = history.weight if weight is None else weight
    known = np.array([a in bandit.arms for a in history.arm])
    if model.takes_arm:
        index = np.array([bandit.arms.index(a) for a in history.arm[known]])
        return bb.fit(model, history.x[known], history.reward[known], weight[known],
                      arm=index, n_arms=len(bandit.arms))  # fmt: skip
    mine = history.arm == arm
    return bb.fit(model, history.x[mine], history.reward[mine], weight[mine])


def agree(bandit):
    """An exact belief is what `bb.fit` finds in the history."""
    mean, sd = bandit.belief.moments(probe())
    for k, arm in enumerate(bandit.arms):
        fit, at = fitted(bandit, arm), slice(None)
        if bandit.model.model.takes_arm:
            at = (slice(None), k)
        close(mean[:, k], fit.mean(probe())[at])
        close(sd[:, k], fit.sd(probe())[at])


# ---- decisions -----------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_arms_are_chosen_as_often_as_their_probabilities_say(kind, policy):
    """4,000 choices for one context, a χ² test at 10⁻³ of a fixed seed."""
    bandit, x = trained(kind, policy), probe(1)
    expected = policy.probabilities(bandit.belief, x)[0]
    mean, sd = bandit.belief.moments(x)
    decision = bandit.choose(np.repeat(x, 4000, axis=0))
    p = decision.probabilities[0]
    np.testing.assert_allclose(p, expected, atol=1e-9)
    assert p.sum() == pytest.approx(1.0, abs=1e-6)
    close(decision.mean[0], mean[0])
    close(decision.sd[0], sd[0])
    chosen = np.array([ARMS.index(a) for a in decision.arm])
    np.testing.assert_array_equal(decision.propensity, decision.probabilities[0][chosen])
    counts, possible = np.bincount(chosen, minlength=3), p > 0
    assert not counts[~possible].any()
    if possible.sum() > 1:
        assert stats.chisquare(counts[possible], 4000 * p[possible] / p.sum()).pvalue > 1e-3
    if isinstance(policy, bb.UCB | bb.Greedy):
        score = mean[0] + (0.7 * sd[0] if isinstance(policy, bb.UCB) else 0.0)
        assert set(chosen.tolist()) == {int(score.argmax())}


@every
def test_a_subset_of_arms(kind):
    bandit, x = trained(kind), probe(1)
    decision = bandit.choose(np.repeat(x, 2000, axis=0), arms=["a", 3])
    p = decision.probabilities[0]
    assert p[1] == 0.0
    assert decision.mean[0, 1] == -np.inf
    assert p.sum() == pytest.approx(1.0, abs=1e-6)
    counts = np.bincount([ARMS.index(a) for a in decision.arm], minlength=3)
    assert counts[1] == 0
    error = np.sqrt(2000 * p * (1 - p))
    assert (np.abs(counts - 2000 * p) <= 4 * error + 1e-6).all()
    two = bandit_of(kind, arms=("a", 3))
    if not bandit.model.model.takes_arm:  # arms that do not share: as if there were these alone
        history = bandit.history
        kept = history.arm != "b"
        two.update(history.x[kept], history.arm[kept], history.reward[kept],
                   history.propensity[kept])  # fmt: skip
        if not isinstance(two.belief, SampledBelief):
            close(two.choose(x[0]).probabilities, p[[0, 2]])
    alone = bandit.choose(x[0], arms="b")
    assert (alone.arm, alone.propensity) == ("b", 1.0)


@every
def test_a_batch_is_as_many_single_choices(kind):
    batch = trained(kind)
    single, x = batch.copy(), probe(40)
    together = batch.choose(x)
    for row, context in enumerate(x):
        decision = single.choose(context)
        assert decision.arm == together.arm[row]
        close(decision.mean, together.mean[row])
        close(decision.sd, together.sd[row])
        np.testing.assert_allclose(decision.probabilities, together.probabilities[row], atol=2e-3)
    assert batch.t == single.t == 40
    np.testing.assert_array_equal(batch.stream, single.stream)


@every
def test_until_every_arm_has_a_reward_arms_are_uniform(kind):
    bandit = bandit_of(kind)
    for arm in ARMS[:2]:
        np.testing.assert_array_equal(bandit.choose(probe()).probabilities, 1 / 3)
        bandit.update(probe(1)[0], arm, 1.0)
        assert bandit.history.propensity[-1] == 1 / 3
    np.testing.assert_array_equal(bandit.choose(probe(), arms=["a", 3]).propensity, 0.5)
    p = bandit.choose(probe(), arms=["a", "b"]).probabilities
    assert not (p == 0.5).all()


def test_an_improper_prior_is_uniform_until_every_posterior_is_proper():
    """σ known, an intercept and D coefficients that are flat: D + 1 rounds of each arm."""
    reward = np.random.default_rng(0).normal(size=(12, 2))
    x = np.repeat(np.vstack([np.eye(D), np.zeros((3, D))]), 2, axis=0)
    model = RewardModel(linear.improper, {})
    bandit = bb.Bandit(2, model, bb.Thompson(), n_features=D, refit_every=1)
    for t in range(12):
        expected = t >= 2 * (D + 1)
        decision = bandit.choose(probe())
        assert (decision.probabilities != 0.5).any() == expected
        if t < 2:
            with pytest.raises(ValueError, match="not proper"):
                bandit.posterior(1)
        bandit.update(x[t], t % 2, reward[t, t % 2])
    assert bandit.posterior(1).mean(probe()).shape == (4,)


# ---- rewards and weights -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["affine", "joint", "by draws", "joint, by draws"])
def test_rewards_late_in_any_order_and_in_batches(kind, rng):
    bandit = trained(kind, balance=bb.InversePropensity())
    decision, reward = bandit.choose(probe(12)), rng.normal(size=12)
    at_once, one_by_one, shuffled = bandit.copy(), bandit.copy(), bandit.copy()
    at_once.observe(decision, reward)
    for i in range(12):
        one_by_one.observe(decision[i], float(reward[i]))
    order = rng.permutation(12)
    shuffled.observe(decision[order], reward[order])
    for other in (one_by_one, shuffled):
        for ours, theirs in zip(other.belief.moments(probe()), at_once.belief.moments(probe()),
                                strict=True):  # fmt: skip
            close(ours, theirs, 1e-7)
    np.testing.assert_array_equal(
        at_once.history.weight[-12:], 1 / np.maximum(0.1, decision.propensity)
    )
    assert at_once.history.total == 42


@every
def test_a_decision_among_other_arms_is_observed_with_its_propensity(kind, rng):
    """Also one that was certain: a propensity is never above 1."""
    bandit = trained(kind, balance=bb.InversePropensity())
    decision = bandit.choose(np.repeat(probe(), 5, axis=0), arms=["b"])
    bandit.add_arm("new")
    bandit.observe(decision, np.ones(20))
    np.testing.assert_array_equal(bandit.history.propensity[-20:], 1.0)
    np.testing.assert_array_equal(bandit.history.weight[-20:], 1.0)


@pytest.mark.parametrize("kind", ["affine", "affine, unknown noise", "joint"])
@pytest.mark.parametrize(
    "balance",
    [
        None,
        bb.InversePropensity(clip=0.2),
        bb.InversePropensity(propensity="estimated", refresh=1),
        bb.InversePropensity(propensity="estimated", refresh=0.5),
    ],
    ids=["unweighted", "decision", "estimated", "estimated now and then"],
)
def test_what_was_played_is_what_fit_finds_in_the_history(kind, balance, rng):
    """With the weights of the history, which the balance gave."""
    x, reward = world(rng, 40)
    bandit = bandit_of(kind, balance=balance, arms=3)
    bandit.play(x, reward)
    agree(bandit)
    weight, p = bandit.history.weight, bandit.history.propensity
    if balance is None:
        np.testing.assert_array_equal(weight, 1.0)
    elif balance.propensity == "decision":
        np.testing.assert_array_equal(weight, 1 / np.maximum(0.2, p))
    else:
        assert np.abs(weight - 1 / np.maximum(0.1, p)).max() > 0.1


@pytest.mark.parametrize("kind", ["joint", "by draws", "by Gibbs", "joint, by draws"])
@pytest.mark.parametrize("propensity", ["decision", "estimated"])
def test_weights_reach_the_rounds_that_the_belief_keeps(kind, propensity, rng):
    x, reward = world(rng, 30)
    balance = bb.InversePropensity(propensity=propensity, refresh=1)
    bandit = bandit_of(kind, balance=balance, arms=3)
    bandit.play(x, reward)
    rows, history = bandit.belief.rounds.of(), bandit.history
    for role in ("x", "arm", "reward", "weight"):
        np.testing.assert_array_equal(rows[role], getattr(history, role))
    assert np.ptp(rows["weight"]) > 0.1
    np.testing.assert_array_equal(bandit.belief.n, np.bincount(history.arm, minlength=3))


@every
def test_logged_rounds_without_propensities_get_those_of_today(kind):
    bandit = trained(kind, balance=bb.InversePropensity(clip=0.01))
    p = bandit.policy.probabilities(bandit.belief, probe())
    bandit.update(probe(), ["a", "b", 3, "a"], np.ones(4))
    close(bandit.history.propensity[-4:], p[np.arange(4), [0, 1, 2, 0]])
    close(bandit.history.weight[-4:], 1 / np.maximum(0.01, p[np.arange(4), [0, 1, 2, 0]]))
    bandit.update(probe(), ["a", "b", 3, "a"], np.ones(4), [0.25, 0.5, 0.125, 1.0])
    np.testing.assert_array_equal(bandit.history.weight[-4:], [4.0, 2.0, 8.0, 1.0])


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
        ({"engine": "exact"}, "non-polynomial function abs of 'theta'"),
    ],
)
def test_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        bb.Bandit(2, declared.lasso, bb.Thompson(), n_features=D, **settings)


@pytest.mark.parametrize("name", ["engine", "refit_every", "draws"])
def test_settings_of_declared_models_are_not_of_ridge(name):
    value = {"engine": "auto", "refit_every": 5, "draws": 10}[name]
    with pytest.raises(ValueError, match=rf"{name}: only of a declared reward model; got Ridge\("):
        bb.Bandit(2, bb.Ridge(), bb.Thompson(), n_features=D, **{name: value})


@pytest.mark.parametrize(
    ("model", "balance", "message"),
    [
        (declared.binary, bb.InversePropensity(), "binary does not take `weight`: it cannot be"),
        (declared.noncentred, bb.InversePropensity(propensity="pooled"),
         "noncentred: pooled propensities are for ridge regressions; .*'decision' or 'estimated'"),
        (declared.lasso, bb.InversePropensity(propensity="pooled"), "lasso: pooled propensities"),
    ],
)  # fmt: skip
def test_balances(model, balance, message):
    with pytest.raises(ValueError, match=message):
        bb.Bandit(2, model, bb.Thompson(), balance, n_features=D, engine=None)


@pytest.mark.parametrize("model", [bb.Ridge, declared.lasso.function, "lasso", None], ids=repr)
def test_models(model):
    with pytest.raises(
        TypeError, match="model must be a reward model, .*" + re.escape(repr(model))
    ):
        bb.Bandit(2, model, bb.Thompson(), n_features=D)


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


@every
@pytest.mark.parametrize("balance", [None, bb.InversePropensity(propensity="estimated")],
                         ids=["unweighted", "estimated"])  # fmt: skip
def test_saved_and_copied_it_goes_on_as_if_it_had_not_been(kind, balance, tmp_path, rng):
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


def test_a_model_that_is_nowhere_to_be_found_is_given_again(tmp_path):
    model = RewardModel(linear.intercept, {})
    bandit = bb.Bandit(2, model, bb.Thompson(), n_features=D, draws=77)
    bandit.save(tmp_path / "bandit")
    with pytest.raises(ValueError, match=r"intercept.*give the bandit's model again: load\(path, "):
        bb.Bandit.load(tmp_path / "bandit")
    loaded = bb.Bandit.load(tmp_path / "bandit", model=model)
    assert anatomy(loaded) == anatomy(bandit)
    assert loaded.model == bandit.model
    assert loaded.model.draws == 77


def test_a_model_of_the_gallery_is_found_with_its_priors(tmp_path):
    model = bb.load_model("hierarchical_ridge").with_priors(tau2=0.3)
    bandit = bb.Bandit(2, model, bb.Thompson(), n_features=D)
    bandit.save(tmp_path / "bandit")
    assert anatomy(bb.Bandit.load(tmp_path / "bandit")) == anatomy(bandit)


@every
def test_the_seed_decides(kind, rng):
    x, reward = world(rng, 40)
    runs = [play(bandit_of(kind, seed=seed), x, reward)[0].tolist() for seed in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


# ---- arms, history, posteriors -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["affine", "joint"])
def test_arms_come_and_go(kind, rng):
    """The belief is what `bb.fit` finds in the rounds of the arms that there are."""
    x, reward = world(rng, 30)
    bandit = bandit_of(kind, balance=bb.InversePropensity())
    bandit.play(x, reward)
    late = bandit.choose(probe(8))
    bandit.add_arm("new")
    np.testing.assert_array_equal(bandit.choose(probe()).probabilities, 0.25)
    agree(bandit)
    bandit.update(probe(), ["new"] * 4, np.ones(4), np.full(4, 0.5))
    bandit.observe(late, np.ones(8))  # of a decision among fewer arms
    agree(bandit)
    bandit.remove_arm("b")
    agree(bandit)
    bandit.play(x, reward)
    agree(bandit)
    assert bandit.arms == ("a", 3, "new")


@pytest.mark.parametrize("kind", ["by draws", "by Gibbs", "joint, by draws"])
def test_arms_come_and_go_by_draws(kind, rng):
    x, reward = world(rng, 30)
    bandit = bandit_of(kind, balance=bb.InversePropensity(propensity="estimated", refresh=1))
    bandit.play(x, reward)
    bandit.add_arm("new")
    np.testing.assert_array_equal(bandit.choose(probe()).probabilities, 0.25)
    bandit.remove_arm("b")
    bandit.play(x, reward)
    rows, history = bandit.belief.rounds.of(), bandit.history
    known = history.arm != "b"
    names = np.array(bandit.arms, dtype=object)
    assert names[rows["arm"]].tolist() == history.arm[known].tolist()
    for role in ("x", "reward", "weight"):
        np.testing.assert_array_equal(rows[role], getattr(history, role)[known])
    np.testing.assert_array_equal(bandit.belief.n, np.bincount(rows["arm"], minlength=3))


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


@every
def test_a_posterior_as_an_arviz_tree(kind):
    """All groups; rows are those of the arm, or all that share the model."""
    bandit = trained(kind)
    posterior = bandit.posterior("b")
    tree = posterior.to_datatree(chains=2, draws=50)
    rows = 30 if bandit.model.model.takes_arm else 10
    groups = ("posterior", "prior", "posterior_predictive", "log_likelihood", "observed_data")
    assert {*groups, "constant_data"} <= set(tree.children)
    assert tree["log_likelihood"]["reward"].shape[2:] == (rows,)
    assert tree["posterior"].sizes["feature"] == D
    assert tree.attrs["engine"] == posterior.engine
    mean, sd = bandit.belief.moments(probe())
    at = slice(None) if bandit.model.model.takes_arm else 1
    close(posterior.mean(probe()), mean[:, at])
    exact = not isinstance(bandit.belief, SampledBelief)
    np.testing.assert_allclose(posterior.sd(probe()), sd[:, at], rtol=1e-9 if exact else 0.01)


# ---- experiments ---------------------------------------------------------------------------------


def declared_bandit(model, arms, n_features, seed):
    return bb.Bandit(arms, model, bb.Thompson(), n_features=n_features, seed=seed, draws=30)


def experiment():
    bandits = {
        name: partial(declared_bandit, model)
        for name, model in (
            ("affine", declared.noncentred),
            ("joint", bb.load_model("hierarchical_ridge")),
            ("draws", bb.load_model("laplace")),
        )
    }
    iris = bb.environments.bundled("iris")
    return bb.Experiment([iris], bandits, horizon=30, replications=2, points=5)


def test_experiments_with_declared_models():
    table = experiment().run(progress=False)
    assert list(table["bandit"].unique()) == ["affine", "joint", "draws"]
    np.testing.assert_allclose(table["reward"] + table["regret"], table["t"])
    assert_frame_equal(experiment().run(progress=False), table)


@pytest.mark.slow
def test_two_jobs_give_the_same_table():
    assert_frame_equal(experiment().run(jobs=2, progress=False), experiment().run(progress=False))
