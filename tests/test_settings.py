"""Settings that are refused, each with the name of the setting."""

from functools import partial

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.environments.synthetic import NonLinear, SparseLinear, SyntheticExample
from bayesbandit.systems.bootstrap.belief import Bootstrap
from bayesbandit.systems.forest.belief import Forest
from bayesbandit.systems.iltcb.belief import PolicyMixture
from bayesbandit.systems.policy_tree.belief import PolicyTree
from bayesbandit.systems.super_ucb.belief import SuperUCB
from bayesbandit_studies.worlds import Linear
from tests import declarations as declared
from tests.cases import all_quick, quick_but

CLICKS, SALES = bb.load_model("beta_bernoulli"), bb.load_model("gamma_poisson")
IRIS, NORMALISED = bb.environments.bundled("iris"), bb.InversePropensity(normalize=True)


def of(model, **settings):
    """A bandit of a declared model."""
    return declared.bandit(3, model, bb.Thompson(), n_features=3, **settings)


def experiment(**settings):
    return bb.Experiment(**{"environments": [IRIS], "bandits": [bb.LinTS]} | settings)


def each(**bad):
    """Each of these values of a setting is refused by the setting's name."""
    return [({name: value}, rf"\b{name}\b") for name, values in bad.items() for value in values]


COUNT, WHOLE = "must be a finite number ≥ 0", "needs a prior of all coefficients"
REFUSED = {  # what is made, and settings with words of the refusal
    "arms": (partial(bb.LinTS, n_features=2), [
        ({"arms": []}, "at least one arm; got none"), ({"arms": "abc"}, "got 'abc'"),
        ({"arms": ["a", "a"]}, "got 'a' more than once"),
        ({"arms": {"a", "b"}}, "ordered sequence of names"), ({"arms": [1.5, 2.5]}, r"got 1\.5"),
    ]),
    "LinTS": (partial(bb.LinTS, 2), [
        ({"n_features": 0, "intercept": False}, "n_features .*≥ 1; got 0"),
        ({"n_features": 2, "alpha": -1}, "alpha .*≥ 0; got -1"),
        ({"n_features": 2, "seed": -1}, "seed must be an integer ≥ 0; got -1"),
        ({"n_features": 2, "seed": True}, "seed must be an integer ≥ 0; got True"),
        ({"n_features": 2, "history": -1}, "history must be an integer ≥ 0"),
        ({"sed": 3}, r"^LinTS has no setting 'sed'; did you mean 'seed'\?"),
        ({"floor": 0.1}, "^LinTS has no setting 'floor'; it is now 'min_variance'; .*min_probab"),
    ]),
    "ForestTS": (partial(bb.ForestTS, 2, 1), [
        ({"sed": 3}, r"^ForestTS has no setting 'sed'; did you mean 'seed'\?"),
        ({"floor": 0.1}, "^ForestTS has no .*; it is now 'variance_floor'; .*min_probability"),
    ]),
    "BLTS": (partial(bb.BLTS, 3, 3), [
        ({"propensity": "estimated", "half_life": 5.0}, "weights past rounds again"),
        ({"propensity": "pooled", "drift": 0.1}, "weights past rounds again"),
        ({"normalize": True, "drift": 0.1}, "weights as they are"),
        ({"normalize": True, "half_life": 5.0}, "weights as they are"),
        ({"normalize": True, "half_life": "auto"}, "weights as they are"),
    ]),
    "PolicyTreeTS": (partial(bb.PolicyTreeTS, 2, 1), [
        ({"base": bb.Ridge(drift=0.1)}, "a tree does not forget"),
    ]),
    "Bandit": (partial(bb.Bandit, 2, n_features=1), [
        ({"model": "ridge", "policy": bb.UCB()}, "a reward model"),
        ({"model": bb.Ridge(), "policy": "ucb"}, "policy must be"),
        ({"model": bb.Ridge(), "policy": bb.UCB(), "balance": "w"}, "balance must be"),
        ({"model": PolicyTree(), "policy": bb.UCB(), "balance": NORMALISED}, "not of mean 1"),
    ]),
    "Bandit of a declaration": (partial(bb.Bandit, 2, declared.lasso, bb.Thompson()), [
        ({"draws": 10}, r"a setting of the model: bb\.Sampled\(model, draws=10\)"),
        ({"engine": "nuts"}, r"a setting of the model: bb\.Declared\(model, engine='nuts'\)"),
        ({"floor": 0.1}, "a bandit has no setting 'floor'"),
    ]),
    "balanced": (of, [
        ({"model": declared.binary, "balance": bb.InversePropensity()},
         "binary does not take `weight`: it cannot be"),
        ({"model": declared.noncentred, "balance": bb.InversePropensity(propensity="pooled")},
         "noncentred: pooled propensities need snapshots.*'decision' or 'estimated'"),
        ({"model": declared.lasso, "balance": bb.InversePropensity(propensity="pooled")},
         "lasso: pooled propensities"),
    ]),
    "forgetting": (of, [
        ({"model": declared.known, "half_life": "7d"}, "half_life must be a finite number > 0"),
        ({"model": declared.known, "half_life": "auto", "clock": "time"}, "chooses among rounds"),
        ({"model": declared.known, "drift": 0.1, "balance": NORMALISED}, "weights as they are"),
        ({"model": declared.lasso, "half_life": "auto"}, "lasso is known by posterior draws"),
        ({"model": declared.lasso, "half_life": 9.0}, "forget: got half_life=.*latest rounds"),
        ({"model": declared.binary, "half_life": 9.0}, "forget: got half_life=.*bb.Laplace"),
        ({"model": declared.binary, "engine": "laplace", "half_life": "auto"}, "by Laplace's app"),
        ({"model": declared.binary, "engine": "laplace", "drift": 0.1}, "a number of rounds"),
        ({"model": SALES, "drift": 0.1}, "drift=0.1 needs .* or gamma posterior"),
        ({"model": CLICKS, "half_life": 9.0, "balance": NORMALISED}, "as they are|be balanced"),
    ]),
    "Declared": (bb.Declared, [({"declared": bb.Ridge()}, r"Declared is of a decl.*; got Ridge")]),
    "Sampled": (bb.Sampled, [({"declared": bb.Ridge()}, r"Sampled is of a decl.*; got Ridge")]),
    "Laplace": (bb.Laplace, [({"declared": bb.Ridge()}, r"Laplace is of a decl.*; got Ridge")]),
    "Experiment": (experiment, [
        ({"environments": []}, "environments; got none"), ({"bandits": {}}, "bandits; got none"),
        ({"environments": [IRIS, IRIS]}, "different names"),
        ({"bandits": [bb.LinTS, bb.LinTS]}, "different names"),
        ({"bandits": {"a": bb.LinTS, 1: bb.LinTS}}, "names of bandits must be texts; got 1"),
        ({"bandits": [lambda arms, d, seed: None]}, "a name"),
        ({"bandits": {"mine": "LinTS"}}, "'mine' must be a function .* as bb.LinTS; got 'LinTS'"),
        ({"bandits": {"mine": bb.LinTS(2, 1)}}, "'mine' must be a function .*; got Bandit"),
        ({"replications": 0}, "replications must be an integer ≥ 1; got 0"),
        ({"horizon": -1}, "horizon must be an integer ≥ 1; got -1"),
        ({"seed": "x"}, "seed must be an integer"),
    ]),
    "Ridge": (bb.Ridge, [
        ({"ridge": 0}, "ridge must be a finite number > 0"), ({"ridge": "loo"}, "one of 'cv'; got"),
        ({"ridge": 1e-101}, "ridge must be at least 1e-100; got 1e-101"),
        ({"ridge": 1e101}, r"ridge must be at most 1e\+100; got 1e\+101"),
        ({"variance": "mse"}, "'rss/n', 'rss', 'nig'"), ({"min_variance": -1e-9}, "min_var"),
        ({"variance": 5e-324}, "a known variance must be at least 1e-100; got 5e-324"),
        ({"grid": ()}, "grid of λ must not be empty"),
        ({"ridge": "cv", "grid": (1e-200, 1.0)}, "each λ of the grid must be at least 1e-100"),
        ({"folds": 1}, "folds must be an integer ≥ 2; got 1"),
        ({"refit_every": 0}, "as a number of rounds"),
        ({"prior": (1.0,)}, r"a pair \(shape, scale\); got \(1.0,\)"),
        ({"prior": (1.0, 1e-300)}, "prior scale must be at least 1e-100; got 1e-300"),
        ({"half_life": -5.0}, "half_life must be a finite number > 0; got -5.0"),
        *each(half_life=[0, np.inf, np.nan, 1e-300, True, "soon"], clock=["pulls"]),
        ({"half_life": "7d"}, '> 0, "auto", or with clock="time" a text as "7d"; got \'7d\''),
        ({"half_life": np.timedelta64(7, "D"), "clock": "time"}, "got np.timedelta64"),
        ({"half_life": "soon", "clock": "time"}, "half_life must be seconds"),
        ({"drift": np.nan}, f"drift {COUNT}; got nan"), *each(drift=[1e300, -1.0]),
        ({"drift": 1.0, "half_life": 5.0}, "two rules for one"),
        ({"drift": 1.0, "ridge": "cv"}, WHOLE), ({"drift": 1.0, "intercept": "unpenalised"}, WHOLE),
        ({"half_life": 5.0, "variance": "rss"}, "a sum that never shrinks"),
    ]),
    "declared": (
        partial(declared.bandit, 2, declared.lasso, bb.Thompson(), n_features=3), [
        ({"engine": "fast"}, r"engine must be .*'auto'.*'nuts'.*; got 'fast'"),
        ({"refit_every": 0}, r"refit_every, as a number of rounds, must be .*≥ 1; got 0"),
        ({"refit_every": -0.5}, r"refit_every, as a share of growth, must be .*> 0; got -0\.5"),
        ({"refit_every": "often"}, r"refit_every.*got 'often'"),
        ({"draws": 1}, r"draws must be .*≥ 2; got 1"), ({"draws": 2.5}, r"draws.*got 2\.5"),
        ({"frozen": "yes"}, "frozen must be one of False, True; got 'yes'"),
        ({"engine": "exact"}, "non-polynomial function abs of 'theta'"),
    ]),
    "Thompson": (bb.Thompson, [
        ({"alpha": -0.1}, rf"alpha {COUNT}; got -0\.1"), ({"alpha": None}, "got None"),
        ({"alpha": True}, "got True"), ({"alpha": 1e300}, r"alpha must be at most 1e\+50"),
    ]),
    "UCB": (bb.UCB, [
        ({"alpha": np.nan}, f"alpha {COUNT}; got nan"), ({"alpha": "1"}, f"alpha {COUNT}; got '1'"),
        ({"min_probability": -0.1}, f"min_probability {COUNT}"),
    ]),
    "EpsilonGreedy": (bb.EpsilonGreedy, [({"epsilon": 1.5}, rf"{COUNT} and ≤ 1; got 1\.5")]),
    "Boltzmann": (bb.Boltzmann, [({"temperature": 0}, "temperature .* number > 0; got 0")]),
    "TopTwo": (bb.TopTwo, [({"beta": 1.5}, rf"beta {COUNT} and ≤ 1; got 1\.5")]),
    "UCB of t": (lambda t, alpha: bb.UCB(alpha).param(t), [
        ({"t": 3, "alpha": lambda t: -t}, r"alpha\(3\) must be .* got -3"),
    ]),
    "ε of t": (lambda t, epsilon: bb.EpsilonGreedy(epsilon).param(t), [
        ({"t": 2, "epsilon": lambda t: t}, r"epsilon\(2\) must be .* got 2"),
    ]),
    "InversePropensity": (bb.InversePropensity, [
        ({"clip": 0.0}, "clip must be .*> 0 and ≤ 1; got 0.0"),
        ({"clip": 1e-60}, "clip must be at least 1e-50; got 1e-60"),
        ({"snapshots": 1}, "snapshots .*≥ 2; got 1"),
    ]),
    "ResidualBalance": (bb.ResidualBalance, [
        ({"refit_every": 0}, "refit_every"), *each(zeta=[0.0, 1.0], least=[0.0, 2.0]),
    ]),
    "KernelBalance": (bb.KernelBalance, [
        ({"noise": 1e-300}, "noise must be at least 1e-50; got 1e-300"),
        *each(noise=[0.0], kernel=["cosine"], gamma=[-1.0], landmarks=[0], least=[0.0]),
    ]),
    "Linear": (Linear, [
        ({"mean": [1.0]}, r"mean must be \(K, d\), of K arms and d features; got \(1,\)"),
        ({"mean": [[np.nan]]}, "mean"), ({"mean": [[1.0]], "horizon": 0}, "horizon"),
        ({"mean": [[1.0]], "spread": -1.0}, r"a number or \(1, 1\), and not negative; got -1.0"),
        ({"mean": [[1.0]], "spread": [1.0, 2.0]}, r"a number or \(1, 1\)"),
        ({"mean": [[1.0]], "sigma": -0.1}, "sigma"),
    ]),
    "SyntheticExample": (SyntheticExample, [
        ({"specification": "good"}, "'well', 'mis'; got 'good'"),
        ({"horizon": 0}, "horizon must be an integer ≥ 1; got 0"),
        ({"n_test": 0}, "n_test must be an integer ≥ 1; got 0"),
    ]),
    "SparseLinear": (SparseLinear, [
        ({"d": 1, "q": 0}, "d must be an integer ≥ 2; got 1"),
        ({"d": 10, "q": 9}, "between 0 and d − 2 = 8; got 9"),
        ({"sigma": -1.0}, "sigma must be a finite number ≥ 0; got -1"),
        ({"sigma": np.nan}, "sigma must be a finite number"),
    ]),
    "NonLinear": (NonLinear, [({"horizon": -1}, "horizon must be an integer ≥ 1; got -1")]),
    "SuperUCB": (SuperUCB, [
        ({"ridge": 1e-310}, "ridge must be at least 1e-100; got 1e-310"),
        ({"alpha": 1e300}, r"alpha must be at most 1e\+50; got 1e\+300"),
    ]),
    "Bootstrap": (Bootstrap, [
        ({"lam": 1e300}, r"lam must be at most 1e\+100; got 1e\+300"),
        *each(penalty=["elastic"], replicates=[1], lam=[0.0, "aic"], draw=["mean"], degree=[3]),
        *each(folds=[1], least=[1]),
    ]),
    "Forest": (Forest, [
        ({"trees": 10}, "bags of 4; got 10"), *each(trees=[4], refit_every=[0.0]),
        *each(bag=[1], share=[0.6, 0.0], min_node=[0], min_leaf=[0], tried=[0], least=[3]),
        *each(weights=["none"], variance_floor=[-1.0]),
    ]),
    "PolicyMixture": (PolicyMixture, [
        ({"refit_every": 0}, "refit_every"),
        *each(exploration=[0.0], delta=[1.0], psi=[-1.0], rewards=[(1.0, 0.0)], gains=["dm"]),
        *each(log_policies=[-1.0], ridge=[0.0]),
    ]),
    "PolicyTree": (PolicyTree, [
        ({"refit_every": 0.0}, "refit_every"), ({"base": "ridge"}, "base must be Ridge"),
        *each(depth=[0, 40], by=["gini"], cuts=[0], least=[0], prior_rows=[-1.0, np.nan]),
        *each(balanced=[1], base=[bb.Bootstrap("ridge")]),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", quick_but(("declared", "balanced", "forgetting"), REFUSED))
@all_quick()
def test_settings_that_are_refused(name):
    make, settings = REFUSED[name]
    for given, match in settings:
        with pytest.raises((ValueError, TypeError), match=match):
            make(**given)
