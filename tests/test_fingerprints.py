"""The fingerprint of the user's code: it sees whatever a change can hide behind, and that alone."""

import importlib
import os
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from bayesbandit.runtime import fingerprints, user_modules
from bayesbandit.runtime.fingerprints import fingerprint
from bayesbandit.runtime.plugins import module_of
from tests.cases import few

HIDDEN = {
    "a function": 'def p(): return len({{"one", "or", "another"}}) + {v}\ndef pick(): return p()',
    "a constant": "V = {v}\ndef pick(): return V",
    "a closure": "def made(k): return lambda: k\npick = made({v})",
    "a setting of a partial": "def p(k): return k\npick = partial(p, {v})",
    "a set that is held": 'def pick(names=frozenset({{"one", "or", "another"}})): return {v}',
    "a class": "class P:\n    v = {v}\ndef pick(): return P().v",
    "a compiled function": "@njit\ndef p(): return {v}\ndef pick(): return p()",
    "a metaclass": (
        "class M(type):\n    def a(cls): return {v}\nclass Q(metaclass=M): pass\n"
        "def pick(): return Q.a()"
    ),
    "a wrapper": (
        "def twice(f):\n    @wraps(f)\n    def g(): return 2 * f()\n    return g\n"
        "@twice\ndef p(): return {v}\ndef pick(): return p()"
    ),
}
HEAD = """
from functools import partial, wraps
from numba import njit
"""


def of(file, text):
    file.write_text(text)
    pick = module_of(file, "tests.code:").pick
    found = fingerprints.fingerprint(pick)
    assert fingerprints.fingerprint(pick) == found
    return found


def whole(kind, v):
    return HEAD + HIDDEN[kind].format(v=v)


@few("a function", "closure", "partial", "wrapper")
@pytest.mark.parametrize("kind", HIDDEN)
def test_a_change_is_seen(tmp_path, kind):
    file = tmp_path / "mine.py"
    first = of(file, whole(kind, 0))
    assert first
    assert of(file, whole(kind, 2)) != first


EVERY = """
import sys
from pathlib import Path
from bayesbandit.runtime import fingerprints
from bayesbandit.runtime.plugins import module_of
for file in sorted(Path(sys.argv[1]).glob("*.py")):
    print(file.name, fingerprints.fingerprint(module_of(file, "tests.code:").pick))
"""


@pytest.mark.slow
def test_it_is_the_same_in_every_process(tmp_path):
    for i, kind in enumerate(HIDDEN):
        (tmp_path / f"k{i}.py").write_text(whole(kind, 0))
    said = [
        subprocess.run(
            [sys.executable, "-c", EVERY, str(tmp_path)],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            capture_output=True, text=True, check=True,
        ).stdout.split("\n")
        for seed in (1, 2, 3)
    ]  # fmt: skip
    assert len(said[0]) == len(HIDDEN) + 1
    assert said[0] == said[1] == said[2]


def test_a_file_of_the_same_size_and_second_is_run_again(tmp_path):
    file = tmp_path / "m.py"
    for v in (1, 2, 1, 3):
        file.write_text(f"V = {v}\n")
        os.utime(file, (1e9, 1e9))
        assert v == module_of(file, "tests.code:").V
        assert module_of(file, "tests.code:") is module_of(file, "tests.code:")


def test_what_is_installed(tmp_path, monkeypatch):
    """Not all that stands below the environment's folder is."""
    for name in ("numpy", "json", "sys", "bayesbandit", "os.path", "pytest"):
        importlib.import_module(name)
        assert user_modules.installed(name)
    paths = sysconfig.get_paths() | {"data": str(tmp_path)}
    monkeypatch.setattr(sysconfig, "get_paths", lambda: paths)
    file = tmp_path / "mine.py"
    assert of(file, "def pick(): return 1") != of(file, "def pick(): return 2")


class Hostile:
    def __getattr__(self, name):
        raise KeyError(name)


@pytest.mark.slow
def test_packages_by_name_and_version():
    import numpy as np
    import pandas as pd

    import bayesbandit as bb

    assert fingerprints.packages(bb.LinTS, dict, len, Hostile()) == []
    assert fingerprints.packages(pd.DataFrame()) == [f"pandas {pd.__version__}"]
    assert fingerprints.packages(np.linalg.norm, pd.read_csv) == [
        f"numpy {np.__version__}", f"pandas {pd.__version__}",
    ]  # fmt: skip


def test_which_of_the_settings_are_one_object_counts():
    one, two = [0, 1], [1]
    first, second = (fingerprint(partial(dict, a=one, b=two, c=c, d=show)) for c in (one, two))
    assert first != second
    digests = {fingerprint(partial(dict, plan=plan, d=show)) for plan in ([0, 1, 0], [0, 1, 1])}
    assert len(digests) == 2


def show():
    """Do nothing, in a module of the user's."""


def test_a_function_without_a_module_counts():
    names = {}
    exec("def made(): pass", names)
    assert names["made"].__module__ is None
    assert fingerprint(names["made"]) != ""


def test_threads_that_load_a_file_at_once_have_it_whole(tmp_path):
    """One runs it, and the others wait."""
    file = tmp_path / "slow.py"
    file.write_text("import time\ntime.sleep(0.2)\nV = 1\n")
    with ThreadPoolExecutor(4) as pool:
        modules = [pool.submit(module_of, file, "tests.slow:") for _ in range(4)]
        assert [m.result().V for m in modules] == [1] * 4
