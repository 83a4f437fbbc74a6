"""Which engine a declaration gets, why not a faster one, and when a plan is the same plan: what two
declarations build is the same, whatever they read to build it."""

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import Interval
from pymc.logprob.transforms import LogTransform as Log
from pytensor.compile.ops import wrap_py
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

import bayesbandit as bb
from bayesbandit.declaring.priors import Prior
from bayesbandit.inference.base import NotThisEngine, Refusal
from bayesbandit.inference.plan import explain, plan
from bayesbandit.inference.pymc_model.digest import digest
from bayesbandit.inference.pymc_model.template import template
from bayesbandit.model import reward_model
from bayesbandit.posteriors.fitting import fit
from tests import declarations as declared
from tests.cases import few, slow_but
from tests.declarations import EACH, normal_rewards
from tests.inference import linear


@reward_model()
def wide_laplace(x, reward):
    """PyTensor keeps 20 in eight bits, where its square is -112."""
    theta = pm.Laplace("theta", 0, 20, dims="feature")
    return declared.normal_rewards(x @ theta, 1, reward)


@few("[model0-exact_gaussian-0]")
@pytest.mark.parametrize(
    ("model", "engine", "reasons"),
    [
        (declared.known, "exact_gaussian", 0),
        (declared.noncentred, "exact_gaussian", 0),
        (declared.potential, "exact_gaussian", 0),
        (declared.conjugate, "normal_inverse_gamma", 1),
        (declared.lasso, "gibbs", 3),
        (wide_laplace, "gibbs", 3),
        (declared.binary, "gibbs", 3),
        (declared.heavy, "nuts", 4),
    ],
)
def test_the_fastest_engine_that_fits_with_a_reason_for_each_faster_one(model, engine, reasons):
    found = plan(model, 3)
    assert found.engine == engine
    assert len(found.refusals) == reasons
    first, cost, *rest = explain(model, 3).splitlines()
    assert first == f"{model.name}: {engine}"
    assert ("closed form" in cost) == found.closed_form
    assert rest == [f"  not {refusal}" for refusal in found.refusals]
    assert found.explain() == explain(model, 3)


@pytest.mark.slow
def test_a_model_over_arms_has_a_plan_for_each_number_of_arms():
    assert plan(declared.pooled, 3, 4).engine == "exact_gaussian"
    assert plan(declared.pooled, 3, 4) is not plan(declared.pooled, 3, 5)
    assert explain(declared.pooled, 3) == explain(declared.pooled, 3, 4)
    with pytest.raises(ValueError, match="give n_arms"):
        plan(declared.pooled, 3)
    with pytest.raises(ValueError, match="does not take `arm`"):
        plan(declared.known, 3, 2)


def test_an_engine_that_does_not_fit_is_refused_with_its_reason():
    with pytest.raises(NotThisEngine, match="abs of 'theta'"):
        plan(declared.lasso, 3, engine="exact_gaussian")
    with pytest.raises(NotThisEngine, match=r"exact: no closed form.*normal_inverse_gamma: ") as e:
        plan(declared.lasso, 3, engine="exact")
    assert e.value.refusal.engine == "exact"
    with pytest.raises(ValueError, match=r"engine must be one of 'auto', 'exact'.*got 'stan'"):
        plan(declared.known, 3, engine="stan")


def test_a_discrete_variable_has_no_engine():
    with pytest.raises(NotThisEngine, match=r"no engine fits.*nuts: 'k' ~ Poisson: discrete"):
        plan(declared.counted, 3)


@pytest.mark.slow
def test_a_plan_is_kept_by_declaration_priors_and_shape():
    first = plan(declared.known, 3)
    wide = Prior("Normal", mu=0, sigma=9, dims="feature")
    assert plan(declared.known, 3).method is first.method
    same = declared.known.with_priors(theta=Prior("Normal", mu=0, sigma=2, dims="feature"))
    assert plan(same, 3).method is first.method
    assert plan(declared.known.with_priors(theta=wide), 3).method is not first.method
    assert plan(declared.known, 4).method is not first.method


@pytest.mark.slow
def test_rows_that_an_engine_refuses_change_no_later_plan():
    """From then on all fits of the model went to the next engine."""
    found = plan(declared.lasso, 3)
    other = found.without(Refusal("gibbs", "lost digits on these rows"))
    assert (found.engine, other.engine) == ("gibbs", "nuts")
    assert plan(declared.lasso, 3).engine == "gibbs"


@pytest.mark.slow
def test_plans_are_copied_stored_and_shared_by_threads():
    first = plan(declared.known, 3)
    assert copy.deepcopy(first) is first
    assert pickle.loads(cloudpickle.dumps(first)).method is first.method  # the function by value
    fresh = declared.known.with_priors(theta=Prior("Normal", mu=0, sigma=3, dims="feature"))
    with ThreadPoolExecutor(4) as pool:
        plans = list(pool.map(lambda _: plan(fresh, 2), range(4)))
    assert all(p.method is plans[0].method for p in plans)


@pytest.mark.slow
def test_a_prior_made_of_the_design_mixes_no_rows_of_the_mean():
    """Given θ, the mean reward of a row is its own; predictions were refused."""

    design, centred = map(reward_model(), (linear.zellner, linear.centred_contexts))
    assert plan(design, linear.D).row_mixing == ""
    assert plan(centred, linear.D).row_mixing == "mean over rows"
    x, reward, _ = declared.rows()
    found = fit(design, x, reward)
    np.testing.assert_allclose(found.mean(x), x @ found.coefficients["theta"][0])


class Settings:
    scale = 1.0


def normal(value, mu):
    return pm.logp(pm.Normal.dist(mu, Settings.scale), value)


def of(declare, d=2, **priors):
    model = bb.reward_model(theta=EACH, **priors)(declare)
    return digest(template(model, d, None))


def scaled(sigma):
    """A declaration whose noise is what `sigma()` says when it is built."""

    def declare(x, reward, theta):
        return normal_rewards(x @ theta, sigma(), reward)

    return declare


def custom(x, reward, theta):
    pm.CustomDist("r", x @ theta, logp=normal, observed=reward)
    return x @ theta


def custom_prior(x, reward, theta):
    a = pm.CustomDist("a", 0.0, logp=normal)
    return normal_rewards(a + x @ theta, 1, reward)


def custom_part(x, reward, theta):
    mu = x @ theta
    parts = [pm.CustomDist.dist(mu, logp=normal, class_name="part"), pm.Normal.dist(mu, 9)]
    pm.Mixture("r", [0.3, 0.7], parts, observed=reward)
    return mu


BOX, SHARED, FRAME = SimpleNamespace(s=0.5), pytensor.shared(0.5), pd.DataFrame({"s": [0.5]})
READ = {  # a declaration, and a change of what it reads
    "an attribute": (scaled(lambda: BOX.s), lambda: vars(BOX).update(s=50.0)),
    "a shared variable": (scaled(lambda: SHARED), lambda: SHARED.set_value(50.0)),
    "a table": (scaled(lambda: float(FRAME["s"].iloc[0])), lambda: FRAME.__setitem__("s", 9.0)),
    "in a likelihood": (custom, lambda: setattr(Settings, "scale", 3.0)),
    "in a prior": (custom_prior, lambda: setattr(Settings, "scale", 3.0)),
    "in a part of a mixture": (custom_part, lambda: setattr(Settings, "scale", 3.0)),
}


@pytest.mark.parametrize("name", READ)
def test_whatever_a_declaration_reads_counts(name, monkeypatch):
    monkeypatch.setattr(Settings, "scale", 1.0)
    declare, change = READ[name]
    before = of(declare)
    assert before is not None
    assert of(declare) == before
    change()
    assert of(declare) != before


FILE = """
import bayesbandit as bb, pymc as pm

class Noise:
    def __init__(self, sigma):
        super().__init__()
        self.sigma = sigma

    def twice(self):
        return Noise(2 * self.sigma)

    def logp(self, value, mu):
        known = self.sigma in {{"no", "one", "is", "known", "here"}}
        return pm.logp(pm.Normal.dist(mu, {sigma} + known), value)

noise = Noise(0.5)

def logp(value, mu):
    return noise.logp(value, mu)

@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"))
def custom(x, reward, theta):
    pm.CustomDist("r", x @ theta, logp=logp, observed=reward)
    return x @ theta
"""
ASK = (
    "import sys, bayesbandit as bb; from bayesbandit.inference.pymc_model.digest import digest;"
    "from bayesbandit.inference.pymc_model.template import template;"
    "print(digest(template(bb.load_model(sys.argv[1]), 2, None)))"
)


@pytest.mark.parametrize("seeds", slow_but([""], ["", "1"]))
def test_the_functions_of_a_file_count(seeds, tmp_path):
    """Also of classes that speak of themselves, and the same in every process."""
    found = []
    for i, sigma in enumerate(("1.0", "1.0", "2.0")):
        file = tmp_path / f"{i}" / "custom.py"
        file.parent.mkdir()
        file.write_text(FILE.format(sigma=sigma))
        found.append(digest(template(bb.load_model(file), 2, None)))
    assert None not in found
    assert found[2] != found[1]
    run = [sys.executable, "-c", ASK, str(tmp_path / "0" / "custom.py")]
    there = [
        subprocess.run(
            run, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": s}
        ).stdout.strip()
        for s in seeds
    ]
    assert there == [found[0]] * len(seeds)


class Own(Op):
    """An operation whose code says what it does."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = Settings.scale * inputs[0]


@pytest.mark.parametrize(
    "operation",
    [Own(), wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])(lambda a: 0.5 * a)],
    ids=["own", "wrapped"],
)
def test_an_operation_whose_settings_nothing_tells_has_no_digest(operation):
    """Functions that PyTensor wraps have one class, and differ in an attribute."""

    def declare(x, reward, theta):
        pm.Normal("r", operation(x @ theta), 1, observed=reward)
        return x @ theta

    assert of(declare) is None


class Tilted(Log):
    """A logarithm whose Jacobian is another."""

    def log_jac_det(self, value, *inputs):
        return 3.0 * value


def test_transforms_are_told_by_their_bounds_and_jacobians():
    def moved(transform):
        def declare(x, reward, theta):
            t = pm.Normal("t", 0, 1, transform=transform)
            pm.Normal("r", x @ theta + t, 1, observed=reward)
            return x @ theta

        return of(declare)

    made = [moved(t) for t in (Interval(-1, 1), Interval(-1, 1), Interval(-5, 5), Log(), Tilted())]
    assert made[0] == made[1]
    assert len({*made}) == 4


@pytest.mark.slow
def test_rows_do_not_count_and_shapes_do():
    model = bb.reward_model(theta=EACH)(scaled(lambda: 1.0))
    few, many = (np.random.default_rng(n).normal(size=(n, 3)) for n in (5, 50))
    assert digest(model.build(few, few[:, 0])) == digest(model.build(many, many[:, 0]))
    assert of(scaled(lambda: 1.0), d=3) != of(scaled(lambda: 1.0), d=4)

    def sized(x, reward, theta):
        e = pm.Normal("e", 0, 1, shape=x.shape[0])
        normal_rewards(x @ theta + e, 1, reward)
        return x @ theta

    by_rows = bb.reward_model(theta=EACH)(sized)
    for rows in (many, few):  # a plan for 50 values of e is none for 5
        assert bb.fit(by_rows, rows, rows[:, 0]).coefficients["e"][0].shape == (len(rows),)
    with pytest.raises(ValueError, match="cannot be computed on any number of rows"):
        bb.Bandit(2, by_rows, bb.Thompson(), n_features=3)


@pytest.mark.slow
def test_a_declaration_that_reads_its_rows_is_fitted_on_them_and_plays_no_bandit():
    def standardised(x, reward, theta):
        mu = (x - x.get_value().mean(axis=0)) @ theta
        return normal_rewards(mu, reward.std().eval(), reward)

    model = bb.reward_model(theta=EACH)(standardised)
    rng = np.random.default_rng(0)
    x = 5.0 + rng.normal(size=(30, 2))
    reward = 3.0 * rng.normal(size=30)
    z, s2 = x - x.mean(axis=0), reward.var()
    right = np.linalg.solve(z.T @ z + s2 * np.eye(2), z.T @ reward)
    np.testing.assert_allclose(bb.fit(model, x, reward).coefficients["theta"][0], right, rtol=1e-9)
    with pytest.raises(ValueError, match="reads its rows while it is built"):
        bb.Bandit(2, model, bb.Thompson(), n_features=2)
