"""One turn: an attack and a kind of bandit, both of which follow from a seed."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test

from tests.attack import flips, formulas, kills, scenes, tally, threads
from tests.attack.kinds import KINDS, SAVED
from tests.attack.machine import Machine


def machine(folder, seed, name, examples=8, steps=30, shrink=False):
    one = type("Machine", (Machine,), {"kinds": (name,)})
    run = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, database=None,
        derandomize=False, suppress_health_check=list(HealthCheck), print_blob=False,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
    )  # fmt: skip
    run_state_machine_as_test(seeded(seed)(one), settings=run)


ATTACKS = {
    "machine": machine,
    "threads": threads.share,
    "interrupts": threads.interrupt,
    "forks": threads.fork,
    "saved bandits": flips.flip_saved,
    "crafted bandits": flips.craft,
    "results": flips.flip_results,
    "priors": flips.flip_priors,
    "CSV": flips.odd_cell,
    "formulas": formulas.formulas,
    "killed saves": kills.kill_save,
    "killed runs": kills.kill_run,
    "two runs": kills.two_runs,
    "changed declarations": scenes.changed_declaration,
    "foreign models": scenes.foreign_model,
    "offsets": scenes.offset,
    "growth": scenes.growth,
}
SHARES = {"machine": 10, "threads": 3, "interrupts": 3, "crafted bandits": 3, "saved bandits": 3}
SECONDS = 600  # after which a turn hangs


def turn(seed, only=None, kind=None):
    """The attack and the kind of bandit of a seed."""
    rng = np.random.default_rng(seed)
    share = np.array([SHARES.get(name, 1) for name in ATTACKS], dtype=float)
    name = str(rng.choice(list(ATTACKS), p=share / share.sum()))
    found = str(rng.choice(list(SAVED if name == "crafted bandits" else KINDS)))
    return only or name, kind or found


def run(name, kind, seed, **settings):
    with tempfile.TemporaryDirectory() as folder:
        ATTACKS[name](Path(folder), seed, kind, **settings)


def alone(name, kind, seed, shrink=False):
    """A turn in a process of its own where it could end this one; `shrink`: the machine's failure
    to its shortest."""
    if name not in ("crafted bandits", "threads", "interrupts", "forks"):
        run(name, kind, seed, **{"shrink": True} if shrink and name == "machine" else {})
        return
    code = (
        "import json, sys; from tests.attack import tally, turns; "
        "turns.run(sys.argv[1], sys.argv[2], int(sys.argv[3])); "
        "print(json.dumps(tally.TRIED))"
    )
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, name, kind, str(seed)],
        capture_output=True, text=True, timeout=SECONDS, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    if told.returncode:
        raise AssertionError(
            f"the process ended with {told.returncode}\n{told.stdout[-500:]}\n{told.stderr[-4000:]}"
        )
    for of, tried in json.loads(told.stdout.splitlines()[-1]).items():
        tally.TRIED[of].update(tried)
