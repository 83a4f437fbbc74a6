"""Attack the bandits for so long, with fresh seeds, and say what was tried.

uv run python -m tests.attack --minutes 5
uv run python -m tests.attack --seed 1234 --turns 1     # a failure again
uv run python -m tests.attack --only machine --kind "BLTS pooled"
uv run python -m tests.attack --only formulas --turns 250 --minutes 30    # 100,000 formulas
"""

import argparse
import sys
import time
import traceback

import numpy as np

from tests.attack import tally
from tests.attack.kinds import SAVED
from tests.attack.turns import ATTACKS, alone, turn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--turns", type=int, default=sys.maxsize)
    parser.add_argument("--only", choices=ATTACKS)
    parser.add_argument("--kind", choices=SAVED)
    parser.add_argument("--keep-going", action="store_true", help="past failures")
    options = parser.parse_args()
    end, seed, failed = time.monotonic() + 60 * options.minutes, options.seed, []
    while seed < options.seed + options.turns and time.monotonic() < end:
        name, kind = turn(seed, options.only, options.kind)
        print(f"seed {seed}: {name}, {kind}", flush=True)
        try:
            alone(name, kind, seed, shrink=options.turns == 1)
        except Exception as error:
            traceback.print_exc()
            failed.append(f"seed {seed}: {name}, {kind}: {error!r:.200}")
            if not options.keep_going:
                break
        seed += 1
    print(tally.report(), *failed, sep="\n")
    print(f"{seed - options.seed} turns, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
