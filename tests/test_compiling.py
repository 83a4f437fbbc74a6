"""Kernels are compiled as parts of those that Python calls, and without what cannot happen."""

import json
import os
import pickle
import subprocess
import sys
import threading
import time

import numba
import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import bayesbandit as bb
from bayesbandit.kernels import linear, play, propensities, rounds
from bayesbandit.kernels.row_layout import BETA, TABULATED, THOMPSON, UCB, row_type, row_width
from bayesbandit.runtime.compiling import Kernel, interpreted, njit, switches, without

DOUBLED = True


@njit(cache=False)
def rare(x):
    return 2.0 * x


@njit(cache=False)
def inner(x):
    return rare(x) if DOUBLED and x > 0.0 else x


@njit(cache=False)
def outer(x):
    return inner(x) + 1.0


@njit(cache=False)
def share(x, n):
    return x / n


@njit(cache=False)
def half(x, n):
    return 0.5 * share(x, n)


def test_what_python_does_in_the_place_of_a_kernel_compiles_nothing():
    before = len(outer.overloads), len(inner.overloads)
    assert interpreted(outer)(5.0) == 11.0
    assert (len(outer.overloads), len(inner.overloads)) == before


def test_what_is_ruled_out_is_not_compiled():
    plain = without(outer, "DOUBLED")
    assert plain(3.0) == 4.0
    assert not rare.overloads
    assert not rare.part.overloads
    assert outer(3.0) == 7.0
    assert len(rare.part.overloads) == 1
    assert not rare.overloads  # no machine code of its own
    assert rare(3.0) == 6.0  # till Python calls it


def test_a_kernel_without_something_is_one():
    assert switches(outer) == {"DOUBLED"}
    assert without(outer, "DOUBLED", "ELSE") is without(outer, "DOUBLED")
    assert without(outer, "ELSE") is outer
    assert without(rare, "DOUBLED") is rare


def test_an_error_in_a_part_is_raised():
    with pytest.raises(ZeroDivisionError):
        half(1.0, 0.0)
    assert half(1.0, 2.0) == 0.25


def test_a_kernel_is_pickled_by_its_function():
    twin = pickle.loads(pickle.dumps(share))
    assert isinstance(twin, Kernel)
    assert twin(1.0, 4.0) == 0.25


@pytest.mark.parametrize("kernel", [linear.rebuild, rounds.observe_one, play.play])
def test_what_bandits_may_lack_is_reached(kernel):
    """A switch that is renamed would rule out nothing."""
    assert {"SUMS", "MOVING"} <= switches(kernel)


@pytest.mark.parametrize("kind", [THOMPSON, UCB, BETA])
def test_a_rule_rules_out_the_others(kind):
    assert set(propensities.RULES) <= switches(propensities.put_chances)
    assert len(propensities.ruled_out(kind)) == 2
    assert len(propensities.ruled_out(TABULATED)) == 3


def test_a_kernel_says_that_a_row_has_another_rule():
    """A reward of a row that Thompson sampling did not choose is left to Python."""
    row = np.zeros(row_width(1, 2))
    log = row.view(row_type(1, 2))[0]
    log["last"], log["rule"], log["propensity"] = np.inf, UCB, np.nan
    for make, outcome in ((bb.BLTS, rounds.OTHER), (bb.BLUCB, rounds.DONE)):
        observe_one, _, *rest = make(2, 0, propensity="decision", history=0).learning
        assert observe_one(row, 1.0, *rest) == outcome


FIRST = """
import json
import numpy as np
import bayesbandit as bb
from numba.core.event import Listener, register
names = []
class Compiled(Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        names.append(f"{function.__module__}.{function.__name__}")
    def on_end(self, event):
        pass
register("numba:compile", Compiled())
bandit = bb.LinUCB(["a", "b"], 2)
decision = bandit.choose(np.zeros(2))
decision.propensity, decision.probabilities, decision.sd
bandit.observe(decision, 1.0)
print(json.dumps(names))
"""


@pytest.mark.slow
def test_a_first_round_compiles_what_it_needs(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, text=True, check=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    names = json.loads(run.stdout)
    assert len(names) <= 78
    needless = "conjugate", "cross_validation", "draws", "best_arm"
    assert not [n for n in names for room in needless if f"bayesbandit.kernels.{room}" in n]


@pytest.mark.slow
def test_bandits_play_where_numba_is_told_to_compile_nothing(tmp_path):
    play = """
import bayesbandit as bb
bandit = bb.LinTS(["a", "b"], 1, seed=0)
decision = bandit.choose([0.5])
bandit.observe(decision, 1.0)
print(decision.propensity)
"""
    env = os.environ | {"NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", play], capture_output=True, text=True, env=env)
    assert run.stdout == "0.5\n", run.stderr


def test_threads_that_compile_at_once_leave_the_setting_as_it_was(monkeypatch):
    seen = []

    def compile_slowly(kernel, signature):
        time.sleep(signature)
        seen.append(numba.config.DISABLE_JIT)

    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    monkeypatch.setattr(CPUDispatcher, "compile", compile_slowly)
    threads = [threading.Thread(target=outer.compile, args=(s,)) for s in (0.1, 0.2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [0, 0]
    assert numba.config.DISABLE_JIT == 1
