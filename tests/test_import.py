"""`import bayesbandit` is quick, and names load when they are first used."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module

import pytest

import bayesbandit as bb

CODE = """
import sys, time
start = time.perf_counter()
import bayesbandit
print(time.perf_counter() - start)
print(*sys.modules)
"""


def test_a_fresh_import_is_quick_and_leaves_the_heavy_ones_out():
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    seconds, modules = run.stdout.splitlines()
    assert float(seconds) < 1.0
    loaded = set(modules.split())
    assert not loaded & {"pymc", "pytensor", "numba", "pandas", "sklearn", "arviz", "matplotlib"}


@pytest.mark.slow
def test_a_log_says_what_it_needs():
    """Where SQLAlchemy is not installed, everything else is there."""
    code = """
import sys
sys.modules["sqlalchemy"] = None
import bayesbandit as bb
assert bb.Service and bb.ope.Log
try:
    bb.DecisionLog("sqlite:///offers.db")
except ModuleNotFoundError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "a DecisionLog needs SQLAlchemy: pip install 'bayesbandit[log]'\n"


NEEDLESS = (  # of a linear bandit; numba itself loads scipy.linalg and yaml
    *("scipy.stats", "scipy.optimize", "scipy.sparse.linalg", "sklearn", "pandas", "formulaic"),
    *("pyarrow", "narwhals", "joblib", "matplotlib", "pymc", "pytensor", "arviz"),
    *("bayesbandit.environments", "bayesbandit.inference.plan", "bayesbandit.posteriors"),
    *(f"bayesbandit.systems.{name}" for name in ("bootstrap", "forest", "iltcb", "policy_tree")),
    *("bayesbandit.systems.super_ucb", "bayesbandit.beliefs.counts", "bayesbandit.evaluation"),
)
ROUND = """
import numpy as np, bayesbandit as bb
bandit = bb.LinTS(["a", "b"], 2)
bandit.observe(bandit.choose(np.zeros(2)), 1.0)
"""


@pytest.mark.slow
def test_a_linear_bandits_first_round_loads_no_more_than_it_needs():
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", ROUND], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert {"numba", "bayesbandit.kernels.rounds"} <= loaded
    found = [m for m in loaded if any(m == n or m.startswith(f"{n}.") for n in NEEDLESS)]
    assert not found, sorted(found)


LISTED = set(
    """
    Bandit Decision LinTS LinUCB LinGreedy BLTS BLUCB BayesianLassoTS BayesianLassoUCB
    BootstrapLassoTS BootstrapLassoUCB BootstrapRidgeTS BootstrapRidgeUCB ForestTS ForestUCB Encoder
    Prior RewardModel reward_model fit compare_models list_models load_model Ridge Shared Sampled
    Laplace Forest Bootstrap Unweighted InversePropensity ResidualBalance KernelBalance Thompson UCB
    Greedy EpsilonGreedy Boltzmann TopTwo choice_probabilities Experiment DecisionLog Service Client
    ope environments evaluation plots engines systems extend
    """.split()
)
UNLISTED = {"Declared", "balance_table", "checks", "kernels", "learn", "__version__"}
PACKAGES = [bb, bb.extend, bb.systems]


def test_the_listed_names_are_those_of_the_contract():
    assert set(dir(bb)) == set(bb.__all__) == LISTED


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_listed_name_loads_and_says_what_it_is(package):
    assert dir(package) == sorted(package.__all__)
    for name in package.__all__:
        thing = getattr(package, name)
        assert thing.__doc__, name
        assert re.match(r"[A-Z]\S* ", thing.__doc__), (name, thing.__doc__)


def test_names_that_are_not_listed_stay_reachable():
    for name in {*bb.extend.__all__, *bb.systems.__all__, *UNLISTED}:
        assert getattr(bb, name) is not None
        assert name not in dir(bb)
    for package in PACKAGES[1:]:
        assert all(getattr(bb, name) is getattr(package, name) for name in package.__all__)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_type_checkers_see_the_names_that_load(package):
    """What is imported for type checkers alone is what loads when it is first used."""
    [block] = [node for node in ast.parse(inspect.getsource(package)).body if is_typing(node)]
    homes = getattr(package, "HOMES", None) or bb._HOMES
    seen = {
        alias.name: node.module.removeprefix("bayesbandit").removeprefix(".") or alias.name
        for node in block.body
        for alias in node.names
        if alias.name != "*"
    }
    starred = [node.module for node in block.body if node.names[0].name == "*"]
    for module in starred:
        seen |= import_module(module).HOMES
    assert seen == homes
    eager = {"extend", "systems"} if package is bb else set()
    assert set(package.__all__) <= set(seen) | eager


def is_typing(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'bayesbandit' has no attribute 'nonsense'"):
        bb.nonsense  # noqa: B018


def test_completion_of_a_bandit_shows_what_its_user_calls():
    bandit = bb.LinTS(["a", "b"], 2)
    shown = {name for name in dir(bandit) if not name.startswith("_")}
    assert shown == {
        *("add_arm", "arms", "balance", "belief", "choose", "copy", "drift_test", "encoder"),
        *("forget", "greedy", "history", "load", "merge", "model", "n_features", "observe", "play"),
        *("policy", "posterior", "predict", "probabilities", "remove_arm", "reseed", "save"),
        *("seed", "spec", "summary", "t", "update"),
    }
