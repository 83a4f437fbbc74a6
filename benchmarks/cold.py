"""What the first minute costs: the first round with no kernel compiled, and the next process's.

    uv run benchmarks/cold.py [--repeats N] [--beside CHECKOUT] [--functions]

CPU seconds of fresh processes, which import, choose, and ask for the propensity, for all
probabilities and for a reward's update: on an empty cache of kernels, on the one that this left,
and on this with no bytecode of any module kept (PYTHONDONTWRITEBYTECODE on a new machine).
--beside: the same in another checkout of the project, in turn, and the ratios. --functions: which
functions numba compiled, by the seconds of each without those that it calls.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[1]
STEPS = """
import json, time
clock = time.process_time
marks = [0.0]
def done():
    marks.append(clock())
import numpy as np
import bayesbandit as bb
bandit = bb.{bandit}(["a", "b", "c"], 4)
done()
found, open_ = [], []
try:
    from numba.core.event import Listener, register
    class Compiled(Listener):
        def on_start(self, event):
            function = event.data["dispatcher"].py_func
            open_.append([f"{{function.__module__}}.{{function.__qualname__}}", clock(), 0.0])
        def on_end(self, event):
            name, start, inner = open_.pop()
            took = clock() - start
            found.append((name, took - inner))
            if open_:
                open_[-1][2] += took
    register("numba:compile", Compiled())
finally:
    decision = bandit.choose(np.zeros(4)); done()
    decision.propensity; done()
    decision.probabilities; done()
    bandit.observe(decision, 1.0); done()
print(json.dumps([marks, found]))
"""
NAMES = "import", "choose", "propensity", "probabilities", "observe"
BANDITS = "LinTS", "LinUCB", "BLTS"


def played(bandit: str, checkout: Path, kernels: str, bytecode: str, write: bool = True):
    """Seconds of each step in a fresh process, and what was compiled with the seconds of each."""
    env = os.environ | {"NUMBA_CACHE_DIR": kernels, "OPENBLAS_NUM_THREADS": "1",
                        "PYTHONPATH": str(checkout), "PYTHONPYCACHEPREFIX": bytecode}  # fmt: skip
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    if not write:
        env["PYTHONDONTWRITEBYTECODE"] = "1"
    run = subprocess.run(
        [sys.executable, "-c", STEPS.format(bandit=bandit)],
        check=True, capture_output=True, text=True, env=env, cwd=checkout,
    )  # fmt: skip
    marks, found = json.loads(run.stdout)
    return [b - a for a, b in itertools.pairwise(marks)], found


def measured(bandit: str, checkout: Path, bytecode: str):
    """Steps (5,) by state, and what was compiled on the empty cache."""
    with tempfile.TemporaryDirectory() as kernels, tempfile.TemporaryDirectory() as none:
        cold, found = played(bandit, checkout, kernels, bytecode)
        warm, _ = played(bandit, checkout, kernels, bytecode)
        bare, _ = played(bandit, checkout, kernels, none, write=False)
    return {"nothing compiled": cold, "compiled": warm, "compiled, no bytecode": bare}, found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--functions", action="store_true")
    asked = parser.parse_args()
    checkouts = [HERE] + ([asked.beside.resolve()] if asked.beside else [])
    print(f"{'CPU seconds':36s}" + "".join(f"{name:>14s}" for name in NAMES) + f"{'all':>14s}")
    with tempfile.TemporaryDirectory() as bytecode:
        for checkout in checkouts:  # that bytecode is kept from here on
            with tempfile.TemporaryDirectory() as kernels:
                played("LinTS", checkout, kernels, bytecode)
                played("BLTS", checkout, kernels, bytecode)
        for bandit in BANDITS:
            runs, functions = defaultdict(list), {}
            for _ in range(asked.repeats):
                for checkout in checkouts:
                    states, functions[checkout] = measured(bandit, checkout, bytecode)
                    for state, steps in states.items():
                        runs[state, checkout].append([*steps, sum(steps)])
            for state in states:
                for checkout in checkouts:
                    mid = [median(column) for column in zip(*runs[state, checkout], strict=True)]
                    label = f"{bandit}, {state}" + (" (beside)" if checkout != HERE else "")
                    print(f"{label:36s}" + "".join(f"{number:14.2f}" for number in mid))
                if asked.beside:
                    mine, other = (median(r[-1] for r in runs[state, c]) for c in checkouts)
                    print(f"{'':36s}{'ratio':>70s}{mine / other:14.2f}")
            count = " beside ".join(str(len(functions[checkout])) for checkout in checkouts)
            print(f"{bandit}: {count} functions compiled")
            if asked.functions:
                for name, seconds in sorted(functions[HERE], key=lambda pair: -pair[1])[:20]:
                    print(f"    {seconds:6.2f}  {name}")


if __name__ == "__main__":
    main()
