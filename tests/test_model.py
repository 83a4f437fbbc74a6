"""Declared reward models: values with priors, that build PyMC models and are written as YAML."""

import copy
import importlib
import os
import pickle
import subprocess
import sys

import cloudpickle
import numpy as np
import pymc as pm
import pytest

import bayesbandit as bb
from bayesbandit.declaring.declaration import DATA_NAMES
from bayesbandit.model import RewardModel
from tests.cases import slow_but

NORMAL = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
QUICK = {"mode": "FAST_COMPILE"}


@bb.reward_model(theta=NORMAL, sigma=bb.Prior("HalfNormal", sigma=1))
def robust(x, reward, weight, theta, sigma):
    """A title of its own.

    And more.
    """
    mu = x @ theta
    pm.Normal("reward", mu, sigma / pm.math.sqrt(weight), observed=reward)
    return mu


@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims=("arm", "feature")), sigma=1.0)
def shared(x, reward, arm, theta, sigma):
    mu = (x * theta[arm]).sum(-1)
    pm.Normal("reward", mu, sigma, observed=reward)
    return mu


def rows(rng, n=5, d=3):
    return rng.normal(size=(n, d)), rng.normal(size=n)


def test_prints_its_name_and_priors():
    assert repr(robust) == (
        'RewardModel(\'robust\', theta=Prior("Normal", mu=0, sigma=1, dims="feature"), '
        'sigma=Prior("HalfNormal", sigma=1))'
    )
    from pymc_extras.prior import Scaled

    odd = robust.with_priors(theta=np.arange(3), sigma=Scaled(bb.Prior("HalfNormal"), factor=2))
    assert "theta=array([0., 1., 2.])" in repr(odd)
    assert "0x" not in repr(odd)


def test_is_a_value():
    assert robust.with_priors() == robust != robust.with_priors(sigma=1)
    assert hash(robust.with_priors(sigma=1)) == hash(robust.with_priors(sigma=np.int64(1)))
    assert robust.with_priors(theta=[1, 2, 3]) != robust.with_priors(theta=[1, 2, 4])
    assert copy.deepcopy(robust) == robust
    with pytest.raises(AttributeError):
        robust.priors = {}
    with pytest.raises(TypeError):
        robust.priors["sigma"] = 1.0


def test_priors_are_its_own(rng):
    prior = bb.Prior("HalfNormal", sigma=1)
    model = robust.with_priors(sigma=prior)
    prior.parameters["sigma"] = 5
    assert model.priors["sigma"]["sigma"] == 1
    before = vars(model.priors["theta"]).copy()
    model.build(*rows(rng))
    assert vars(model.priors["theta"]) == before


def test_a_declaration_and_its_priors_agree():
    def wrong(x, reward, theta):
        return x @ theta

    with pytest.raises(TypeError, match=r"wrong\(x, reward, theta\) has no prior for 'theta'"):
        bb.reward_model()(wrong)
    with pytest.raises(TypeError, match=r"prior 'tau' is not an argument of wrong\(x, reward"):
        bb.reward_model(theta=NORMAL, tau=1)(wrong)
    with pytest.raises(TypeError, match="prior 'reward' is a name of the data"):
        bb.reward_model(theta=NORMAL, reward=1)(wrong)
    with pytest.raises(TypeError, match="must take 'reward'"):
        bb.reward_model(theta=NORMAL)(lambda x, theta: x @ theta)
    with pytest.raises(TypeError, match="must take named arguments only"):
        bb.reward_model(theta=NORMAL)(lambda x, reward, *theta: x)
    with pytest.raises(TypeError, match="declared by a function; got 3"):
        bb.reward_model(theta=NORMAL)(3)


def test_data_stand_in_their_containers(rng):
    x, reward = rows(rng)
    with pm.Model():  # of somebody else
        built = robust.build(x.tolist(), reward)
    assert built.isroot
    assert {"x", "observed_reward", "weight"} == {v.name for v in built.data_vars}
    np.testing.assert_array_equal(built["weight"].get_value(), np.ones(5))
    arms = shared.build(x, reward, arm=[0, 2, 1, 0, 0])
    assert arms[DATA_NAMES["arm"]].get_value().tolist() == [0, 2, 1, 0, 0]
    assert arms.coords["arm"] == (0, 1, 2)
    assert shared.build(x, reward, arm=[0] * 5, n_arms=4).coords["arm"] == (0, 1, 2, 3)
    assert shared.build(np.empty((0, 3)), [], arm=[], n_arms=4).coords["arm"] == (0, 1, 2, 3)


def test_numbers_fix_variables_and_spread_over_their_dimensions(rng):
    built = robust.with_priors(theta=0.5, sigma=2).build(*rows(rng))
    assert built.free_RVs == []
    x = built["x"].get_value()
    np.testing.assert_allclose(built["mean_reward"].eval(**QUICK), 0.5 * x.sum(1))
    fixed = robust.with_priors(theta=[1, 2, 3]).build(*rows(rng))
    assert [v.name for v in fixed.free_RVs] == ["sigma"]
    with pytest.raises(ValueError, match=r"theta has the dimensions feature, here \(3,\)"):
        robust.with_priors(theta=[1, 2]).build(*rows(rng))
    free_again = robust.with_priors(theta=0.5).with_priors(theta=bb.Prior("Laplace", mu=0, b=1))
    assert free_again.priors["theta"].dims == ("feature",)


def test_a_prior_without_dimensions_takes_the_declared_ones(rng):
    model = robust.with_priors(theta=bb.Prior("Laplace", mu=0, b=bb.Prior("HalfNormal")))
    built = model.build(*rows(rng))
    assert built.named_vars_to_dims["theta"] == ("feature",)
    assert [v.name for v in built.free_RVs] == ["theta_b", "theta", "sigma"]


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        (robust, {"x": [1.0, 2.0]}, r"contexts must have shape \(n, d\), d ≥ 1; got \(2,\)"),
        (robust, {"x": [[np.inf], [1]]}, "contexts must be finite"),
        (
            robust,
            {"reward": [1.0, 2, 3]},
            r"rewards must have one value for each of 2 rows; got \(3,\)",
        ),
        (robust, {"reward": [1.0, np.nan]}, r"rewards must be finite.*found nan at \[1\]"),
        (
            robust,
            {"reward": np.ma.masked_array([1.0, 2], mask=[False, True])},
            "rewards must be an array",
        ),
        (robust, {"weight": [1.0, 0]}, r"weights must be > 0; got 0\.0"),
        (robust, {"arm": [0, 1]}, "robust does not take `arm`"),
        (shared, {"arm": None}, "shared takes `arm`: give the arm of each of 2 rows"),
        (shared, {"arm": [0, 2], "n_arms": 2}, "arms must be integers 0 … 1; got 2"),
        (shared, {"arm": [0, 0.5]}, r"arms must be integers 0 … 0; got 0\.5"),
        (shared, {"arm": [0, 1], "n_arms": 0}, "n_arms must be an integer ≥ 1; got 0"),
        (shared, {"weight": [1, 2]}, "shared does not take `weight`"),
    ],
)
def test_data_are_checked(model, change, message):
    given = {"x": [[1.0], [2]], "reward": [1.0, 2]} | ({"arm": [0, 1]} if model.takes_arm else {})
    with pytest.raises(ValueError, match=message):
        model.build(**given | change)


def returning(mean):
    def mine(x, reward, theta):
        pm.Normal("reward", x @ theta, 1, observed=reward)
        return mean(x, theta)

    return RewardModel(mine, {"theta": NORMAL})


def test_what_a_declaration_does_is_checked(rng):
    with pytest.raises(ValueError, match="mine must return the mean reward of each of 5 rows; got"):
        returning(lambda x, theta: None).build(*rows(rng))
    with pytest.raises(ValueError, match="mine must return the mean reward"):
        returning(lambda x, theta: x * theta).build(*rows(rng))
    with pytest.raises(ZeroDivisionError) as error:
        returning(lambda x, theta: 1 / 0).build(*rows(rng))
    assert error.value.__notes__ == ["in the declaration of the reward model 'mine'"]


@pytest.mark.parametrize("elsewhere", slow_but([False], [False, True]))
def test_a_model_of_a_module_goes_through_plain_pickle(elsewhere, tmp_path, monkeypatch):
    """Also to a process that has never seen it; the module's attribute is not the function."""
    (tmp_path / "own_models.py").write_text(
        "import bayesbandit as bb\n"
        "@bb.reward_model(level=1, slope=bb.Prior('Normal', mu=0, sigma=1))\n"
        "def flat(x, reward, level, slope): ...\n"
        "class Family:\n"
        "    @bb.reward_model(level=1)\n"
        "    def member(x, reward, level): ...\n"
        "def plain(x, reward, level): ...\n"
        "named_otherwise = bb.reward_model(level=1)(plain)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    own = importlib.import_module("own_models")
    models = [own.flat, own.flat.with_priors(level=2), own.Family.member, own.named_otherwise]
    assert pickle.loads(pickle.dumps(models)) == models
    if not elsewhere:
        return
    here = [robust.with_priors(sigma=0.5), bb.load_model("ridge")]  # by value
    code = (
        "import pickle, sys; print(pickle.load(sys.stdin.buffer)); "
        "a, b = pickle.load(sys.stdin.buffer); a.build([[1.0]], [1.0]); print([a, b])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(models) + cloudpickle.dumps(here),
        capture_output=True, check=True, env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert run.stdout.decode().splitlines() == [repr(models), repr(here)]


LEVELS = ["a", "b", "c", "d"]
OF_GROUP = bb.Prior("Normal", mu=0, sigma=2, dims="group")


@bb.reward_model()
def grouped(x, reward, weight):
    """An effect of each level of the last column, by a prior made in the body."""
    pm.modelcontext(None).add_coord("group", LEVELS)
    effect = OF_GROUP.create_variable("effect")
    mu = effect[x[:, -1].astype("int64")]
    pm.Normal("reward", mu, 0.5 / pm.math.sqrt(weight), observed=reward)
    return mu


@pytest.mark.slow
def test_a_dimension_that_the_declaration_adds():
    """Priors of it, made in the body, are as any others: the posterior is in closed form."""
    rng = np.random.default_rng(0)
    x = np.c_[rng.normal(size=30), np.arange(30) % 3]
    reward = x[:, 1] + rng.normal(size=30)
    posterior = bb.fit(grouped, x, reward)
    assert posterior.engine == "exact_gaussian"
    mean, covariance = posterior.coefficients["effect"]
    precision = np.array([10, 10, 10, 0]) / 0.25 + 1 / 4
    total = [reward[x[:, 1] == k].sum() / 0.25 for k in range(4)]
    np.testing.assert_allclose(mean, total / precision, rtol=1e-9)
    np.testing.assert_allclose(covariance, np.diag(1 / precision), rtol=1e-9, atol=1e-15)
    tree = posterior.to_datatree(1, 10)
    assert list(tree["posterior"]["effect"].coords["group"].values) == LEVELS
    assert tree["log_prior"]["effect"].dims == ("chain", "draw", "group")
    bandit = bb.Bandit(2, grouped, bb.Thompson(), n_features=2, seed=0)
    bandit.update(x, np.zeros(30, int), reward)
    np.testing.assert_allclose(bandit.posterior(0).mean(x), posterior.mean(x), rtol=1e-9)


def test_outside_the_body_there_is_no_such_dimension_yet():
    def mean(x, reward, effect):
        return x @ effect

    complaint = (
        r"prior 'effect' of mean has the dimension 'group'; allowed: feature, row\. .* made in its "
        r"body alone: pm\.modelcontext\(None\)\.add_coord\('group', …\), and then "
        r"bb\.Prior\(…, dims='group'\)\.create_variable\(name\)"
    )
    with pytest.raises(ValueError, match=complaint):
        bb.reward_model(effect=OF_GROUP)(mean)


def test_a_prior_without_dims_that_is_taken_for_a_vector_is_named():
    model = RewardModel(
        returning(lambda x, theta: x @ theta).function, {"theta": bb.Prior("Normal")}
    )
    with pytest.raises(ValueError, match="matmul operand cannot be scalar") as found:
        model.build(np.ones((6, 3)), np.ones(6))
    assert any("without dims are one number each: theta" in note for note in found.value.__notes__)


@pytest.mark.slow
def test_a_declaration_whose_module_is_unknown(tmp_path):
    """As `exec` makes it: it is planned, plays and is saved like any other."""
    space = {"bb": bb, "pm": pm, "NORMAL": NORMAL}
    text = (
        "@bb.reward_model(theta=NORMAL)\ndef unplaced(x, reward, theta):\n"
        "    pm.Normal('reward', x @ theta, 1, observed=reward)\n    return x @ theta\n"
    )
    exec(text, space)
    model = space["unplaced"]
    assert model.function.__module__ is None
    assert "unplaced: exact_gaussian" in model.explain(2)
    bandit = bb.Bandit(2, model, bb.Thompson(), n_features=2)
    bandit.update(np.eye(2), [0, 1], [1.0, 2.0])
    bandit.save(tmp_path / "bandit")
    assert bb.Bandit.load(tmp_path / "bandit").model == model
    assert cloudpickle.loads(cloudpickle.dumps(model)).priors == model.priors


NO_VALUES = r"in a declaration, x, .* no values yet \(.*\): .*shape\[0\].* @ theta"
NAMELESS = r".* without names; .* x\[:, 0\]"  # PyTensor looks for booleans in a text without end
ASKED = {
    "a column by its name": lambda x, theta: x["age"],
    "an attribute": lambda x, theta: x.age,
    "a value": lambda x, theta: 1.0 if x[0, 0] > 0 else 2.0,
    "the length": lambda x, theta: 1.0 / len(x),
    "each coefficient": lambda x, theta: sum(t * x[:, j] for j, t in enumerate(theta)),
    "each row": lambda x, theta: sum(row[0] for row in x),
    "a float": lambda x, theta: float(theta[0]),
}


@pytest.mark.parametrize("of", ASKED)
def test_nothing_in_a_declaration_has_a_value_or_names(of):
    said = NAMELESS if of in ("a column by its name", "an attribute") else NO_VALUES
    with pytest.raises(TypeError, match=f"mine: {said}"):
        returning(ASKED[of]).build(np.ones((3, 2)), np.zeros(3))


@pytest.mark.slow
def test_posteriors_plans_and_engines_print_no_addresses():
    posterior = bb.fit(bb.load_model("ridge_known_noise"), np.eye(2), np.ones(2))
    shown = repr(posterior)
    assert shown.startswith("Posterior(RewardModel('ridge_known_noise'")
    assert "engine='exact_gaussian', rows=2" in shown
    for value in (posterior, posterior.plan, posterior.plan.chosen, posterior.known):
        assert "0x" not in repr(value)
