"""Play random scripts with fresh seeds for so many minutes.

uv run python -m tests.attack --minutes 5
uv run python -m tests.attack --seed 1234 --minutes 0.1 --kind "BLTS pooled"    # a failure again
"""

import argparse
import time

import numpy as np
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.attack.machine import KINDS, Machine

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kind", choices=KINDS)
    options = parser.parse_args()
    end, now = time.monotonic() + 60 * options.minutes, options.seed
    run = settings(
        max_examples=8, stateful_step_count=30, deadline=None, database=None, derandomize=False,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    while time.monotonic() < end:
        kind = options.kind or str(np.random.default_rng(now).choice(list(KINDS)))
        print(f"seed {now}: {kind}", flush=True)
        one = type("One", (Machine,), {"kinds": (kind,)})
        run_state_machine_as_test(seed(now)(one), settings=run)
        now += 1
