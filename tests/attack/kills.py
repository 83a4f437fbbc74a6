"""Processes killed while they save: the file is whole, and is the last or the one before."""

import signal
import subprocess
import sys
import time

import numpy as np

import bayesbandit as bb

SAVES = """
import sys, bayesbandit as bb
path, bandit = sys.argv[1], bb.LinTS(3, 5)
while True:
    bandit.observe(bandit.choose([1.0] * 5), 1.0)
    bandit.save(path)
    print(bandit.history.total, flush=True)
"""


def kill(folder, seed):
    """A save that was acknowledged is in the file."""
    path, rng = folder / "b", np.random.default_rng(seed)
    process = subprocess.Popen(
        [sys.executable, "-c", SAVES, path], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(float(rng.uniform(0, 0.2)))
    process.send_signal(signal.SIGKILL)
    said = [line for line in process.stdout.read().splitlines() if line.strip().isdigit()]
    process.wait()
    found = bb.Bandit.load(path).history.total
    assert found >= (int(said[-2]) if len(said) > 1 else 1)
    bb.Bandit.load(path).save(path)
    assert list(folder.iterdir()) == [path], "files were left behind"
