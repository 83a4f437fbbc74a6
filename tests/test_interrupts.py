"""An interrupt (Ctrl-C) stops a call. It never stops the process, and later calls go on."""

import os
import signal
import subprocess
import sys

import pytest

if not hasattr(signal, "setitimer"):
    pytest.skip("this system has no timers of signals", allow_module_level=True)

SCRIPT = """
import random, signal, sys
import numpy as np
import bayesbandit as bb

signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
kind, shortest, longest, wanted = sys.argv[1], *map(float, sys.argv[2:])
if kind == "LinTS":
    bandit = bb.LinTS(["a", "b"], n_features=2, seed=0)
else:
    model = bb.Sampled(bb.load_model(kind), refit_every=1, draws=20)
    bandit = bb.Bandit(["a", "b"], model, bb.Thompson(), n_features=2, seed=0)
delays, rng = random.Random(0), np.random.default_rng(0)

def play(rounds):
    for _ in range(rounds):
        decision = bandit.choose(rng.normal(size=2))
        bandit.observe(decision, float(rng.integers(2)))

if kind != "LinTS":
    play(30)  # all that is compiled has been
struck = 0
while struck < wanted:
    try:
        signal.setitimer(signal.ITIMER_REAL, delays.uniform(shortest, longest))
        play(10)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        struck += 1
    if kind == "LinTS" and bandit.t > 100:
        break
play(2)
print("goes on", struck)
"""


def interrupted(*arguments, **environment):
    run = [sys.executable, "-c", SCRIPT, *map(str, arguments)]
    return subprocess.run(run, capture_output=True, text=True, env=os.environ | environment)


@pytest.mark.parametrize(
    "model", ["bayesian_lasso", pytest.param("logistic", marks=pytest.mark.slow)]
)
def test_interrupts_while_draws_are_made(model):
    """Numba crashed where one came while it read the random generator of a sweep."""
    done = interrupted(model, 1e-4, 1e-2, 300)
    assert done.stdout == "goes on 300\n", (done.returncode, done.stderr[-2000:])


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.01, 0.03, 0.1, 1.0])
def test_interrupts_while_kernels_are_compiled(delay, tmp_path):
    """Numba could not compile afterwards."""
    done = interrupted("LinTS", delay, 1.5 * delay, 100, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stdout.startswith("goes on"), (done.returncode, done.stderr[-2000:])
