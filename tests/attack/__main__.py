"""Attack the bandits for so long, with fresh seeds, and say what was tried.

uv run python -m tests.attack --minutes 5 [--seed N]
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test

from tests.attack.flips import flip
from tests.attack.kills import kill
from tests.attack.machine import Machine, counted
from tests.players import PRESETS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    end, seed = time.monotonic() + 60 * options.minutes, options.seed
    refused = same = kills = 0
    print(f"seed {seed}", flush=True)
    while time.monotonic() < end:
        seed += 1
        run = settings(
            max_examples=20, stateful_step_count=40, deadline=None, database=None,
            derandomize=False, suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        )  # fmt: skip
        run_state_machine_as_test(seeded(seed)(type("Machine", (Machine,), {})), settings=run)
        with tempfile.TemporaryDirectory() as folder:
            name = list(PRESETS)[seed % len(PRESETS)]
            more = flip(Path(folder), seed, name)
            refused, same = refused + more[0], same + more[1]
        if time.monotonic() < end:
            with tempfile.TemporaryDirectory() as folder:
                kill(Path(folder), seed)
                kills += 1
    print(
        f"{counted['operations']} operations, {counted['refusals']} refusals; {refused + same} "
        f"broken files, {refused} refused, {same} that said the same; {kills} kills: nothing lost"
    )


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
