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


@pytest.mark.parametrize("name", bb.__all__)
def test_every_public_name_loads(name):
    assert getattr(bb, name) is not None
    assert name in dir(bb)


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'bayesbandit' has no attribute 'nonsense'"):
        bb.nonsense  # noqa: B018
