"""What a new machine waits for: the first decision, reward and propensity with no kernel compiled.

    uv run benchmarks/cold.py [--repeats N]

Seconds of wall time in fresh processes with an empty cache, import included in the first decision;
and the same with the cache that the first process left.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from statistics import median

STEPS = """
import time
start = time.perf_counter()
import numpy as np
import bayesbandit as bb
bandit = {bandit}
seconds = []
for step in (
    lambda: bandit.choose(np.zeros(4)),
    lambda: bandit.observe(bandit.choose(np.zeros(4)), 1.0),
    lambda: bandit.choose(np.zeros(4)).probabilities,
):
    step()
    now = time.perf_counter()
    seconds.append(now - start)
    start = now
print(*seconds)
"""
BANDITS = {
    "LinTS": "bb.LinTS(['a', 'b', 'c'], 4)",
    "LinUCB": "bb.LinUCB(['a', 'b', 'c'], 4)",
    "BLTS": "bb.BLTS(['a', 'b', 'c'], 4)",
}


def waited(bandit: str, cache: str) -> list[float]:
    """Seconds to the first decision, and of the first reward and the first probabilities."""
    run = subprocess.run(
        [sys.executable, "-c", STEPS.format(bandit=bandit)], check=True, capture_output=True,
        text=True, env=os.environ | {"NUMBA_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    return [float(word) for word in run.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    print("seconds                  decision   reward  probabilities")
    for name, bandit in BANDITS.items():
        cold, warm = [], []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(waited(bandit, cache))
                warm.append(waited(bandit, cache))
        for label, runs in (("nothing compiled", cold), ("compiled", warm)):
            found = [median(column) for column in zip(*runs, strict=True)]
            print(f"{name:7s}{label:17s} {found[0]:8.2f} {found[1]:8.2f} {found[2]:14.2f}")


if __name__ == "__main__":
    main()
