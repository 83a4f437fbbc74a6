"""Hunt for wrong answers: `uv run python -m tests.hunt --count 10000 --seed 1 --jobs 2`.

Draws declarations, lets the package answer, judges the answers by PyMC's own log density, and
prints what it counted, also when it is interrupted. A failure is printed as source that can be
pasted. Exit code 1 if any.
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from itertools import takewhile

import numpy as np
import pytensor
from joblib import Parallel, delayed

from tests.hunt.case import Case, Verdict
from tests.hunt.grammar import declaration, seeded
from tests.hunt.judge import judged

Answer = tuple[int, Case | None, list[Verdict]]
LIMIT = 60.0  # seconds for a case without NUTS
YOUNG = 200_000  # objects between two collections of garbage
EVERY = 50  # declarations between two lines on what was counted


class OverTime(BaseException):
    """A case took too long. No `Exception`, so that nothing takes it for an engine's."""


def over_time(*_: object) -> None:
    """What the alarm does."""
    raise OverTime


def answered(number: int, case: Case, nuts: bool) -> list[Verdict]:
    """Verdicts on a case; a fault of the hunt's own is one, too, so that it is seen."""
    signal.signal(signal.SIGALRM, over_time)
    signal.setitimer(signal.ITIMER_REAL, LIMIT * (4 if nuts else 1))
    try:
        return judged(case, nuts, seed=number % 2**31)
    except OverTime:
        return [Verdict("hunt", "hunt", "unjudged", f"more than {LIMIT:g} seconds")]
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {str(error)[:200]} ({where.name}:{where.lineno})"
        return [Verdict("hunt", "hunt", "unjudged", text)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def frugal() -> None:
    """What a process that compiles many small graphs need not do."""
    warnings.simplefilter("ignore")
    pytensor.config.traceback__limit = 0  # where each variable was made
    if gc.get_threshold()[0] != YOUNG:
        gc.freeze()
        gc.set_threshold(YOUNG, 50, 50)


def one(number: int, nuts_share: float) -> Answer:
    """The case of a number, judged."""
    frugal()
    case = declaration(seeded(number))
    nuts = bool(np.random.default_rng([number, 1]).random() < nuts_share)
    verdicts = answered(number, case, nuts)
    return number, case if any(v.bad for v in verdicts) else None, verdicts


def main() -> int:
    """Runs the hunt; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.hunt")
    parser.add_argument("--count", type=int, default=100, help="declarations")
    parser.add_argument("--seed", type=int, help="of the first; fresh where none is given")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--nuts-share", type=float, default=0.01, help="of NUTS models sampled")
    given = parser.parse_args()
    cases = failures = 0
    count: Counter[str] = Counter()
    seed = given.seed
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}", flush=True)
    end = time.monotonic() + 60.0 * given.minutes
    numbers = takewhile(lambda _: time.monotonic() < end, range(seed, seed + given.count))
    tasks = (delayed(one)(number, given.nuts_share) for number in numbers)
    workers = Parallel(given.jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for number, case, verdicts in workers(tasks):
            cases += 1
            count.update(f"{v.what} by {v.engine}: {v.outcome}" for v in verdicts)
            if case is not None:
                failures += 1
                print(f"\n#### {number}\n{case}")
                print(*(f"# {v}" for v in verdicts if v.bad), sep="\n", flush=True)
            if cases % EVERY == 0:
                print(f"{cases} declarations; {failures} failed", flush=True)
    except KeyboardInterrupt:
        print(f"\ninterrupted; go on with --seed {seed + cases}")
    print(f"\n{cases} declarations; {failures} failed")
    print(*(f"{n:7} {verdict}" for verdict, n in sorted(count.items())), sep="\n", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
