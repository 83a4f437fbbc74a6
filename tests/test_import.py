"""`import bayesbandit` is quick, and names load when they are first used."""

import subprocess
import sys

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


def test_a_bandit_does_not_need_pymc():
    code = "import sys, bayesbandit as bb; bb.LinTS(2, 2).choose([1.0, 2.0]); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(run.stdout.split()) & {"pymc", "pytensor", "arviz", "pandas", "matplotlib"}


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
    *("bayesbandit.systems", "bayesbandit.beliefs.counts", "bayesbandit.evaluation"),
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


@pytest.mark.parametrize("name", bb.__all__)
def test_every_public_name_loads(name):
    assert getattr(bb, name) is not None
    assert name in dir(bb)


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'bayesbandit' has no attribute 'nonsense'"):
        bb.nonsense  # noqa: B018
