"""Processes killed at random moments, and several at one folder: what was acknowledged is there."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import bayesbandit as bb
from tests.attack.kinds import KINDS
from tests.attack.tally import count

SAVES = """
import sys
import numpy as np
from tests.players import STATEFUL
path, name, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
if name in STATEFUL:  # without PyMC
    bandit = STATEFUL[name](3, 2, seed=seed)
else:
    from tests.attack.kinds import KINDS
    bandit = KINDS[name](seed)
while True:
    shape = (len(bandit.arms), bandit.n_features) if bandit.of_arms else (bandit.n_features,)
    bandit.observe(bandit.choose(np.ones((2, *shape))), np.ones(2))
    bandit.save(path)
    print(bandit.history.total, flush=True)
"""
RUNS = """
import sys
from tests.attack.kills import experiment
print("begins", flush=True)
while True:
    try:
        experiment(*sys.argv[3:]).run(jobs=int(sys.argv[2]), out=sys.argv[1], progress=False)
        break
    except ValueError as error:
        if "another run writes into" not in str(error):
            raise
print("done", flush=True)
"""


def python(code, *args):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=Path(__file__).parents[2],
    )  # fmt: skip


def kill_save(folder, seed, name):
    """A save that was acknowledged is in the file, and nothing lies beside it."""
    path, rng = folder / "b", np.random.default_rng(seed)
    process = python(SAVES, path, name, seed)
    first = process.stdout.readline()
    time.sleep(float(rng.uniform(0, 0.2)))
    process.send_signal(signal.SIGKILL)
    said = [first, *process.stdout.read().splitlines(keepends=True)]
    process.wait()
    said = [int(line) for line in said if line.endswith("\n")]
    model = KINDS[name](seed).model
    found = bb.Bandit.load(path, model=model)
    assert found.history.total >= said[-1], (found.history.total, said[-1])
    found.save(path)
    assert list(folder.iterdir()) == [path], "files were left behind"
    count(name, "kills")


def experiment(*names):
    bandits = {"LinTS": bb.LinTS, "BLTS": bb.BLTS, "LinUCB": bb.LinUCB}
    bandits = {name: bandits[name] for name in names or bandits}
    return bb.Experiment(bb.environments.bundled("iris"), bandits, 150, 20, points=4)


def kill_run(folder, seed, name, jobs=1):
    """A run that is killed again and again ends with the table of one that was not."""
    rng = np.random.default_rng(seed)
    right = experiment().run(progress=False)
    for _ in range(4):
        process = python(RUNS, folder / "run", jobs)
        process.stdout.readline()
        time.sleep(float(rng.uniform(0, 1.0)))
        process.send_signal(signal.SIGKILL)
        text, _ = process.communicate()
        count("runs", "kills")
        if "done" in text:
            break
    found = experiment().run(out=folder / "run", progress=False)
    pd.testing.assert_frame_equal(found, right)
    left = {p.name for p in (folder / "run").iterdir()} - {".lock"}
    assert left == {"results.parquet", "run.json"}, left


def two_runs(folder, seed, name):
    """Runs of one bandit each in one folder, each as soon as the others let it: all is there."""
    names, delays = ("LinTS", "BLTS", "LinUCB"), np.random.default_rng(seed).uniform(0, 0.5, 3)
    runs = []
    for name, delay in zip(names, delays, strict=True):
        runs.append(python(RUNS, folder / "run", 1, name))
        time.sleep(delay)
    ends = [(*run.communicate(), run.returncode) for run in runs]
    assert [code for *_, code in ends] == [0, 0, 0], ends
    order = ["bandit", "replication", "t"]
    stored = pd.read_parquet(folder / "run" / "results.parquet").sort_values(order)
    right = experiment().run(progress=False).sort_values(order)
    pd.testing.assert_frame_equal(stored.reset_index(drop=True), right.reset_index(drop=True))
    count("runs", "at one folder", 3)
