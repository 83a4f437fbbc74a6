"""Off-policy evaluation: policies' values from a log, the best policy, and tests of the log."""

from bayesbandit.ope.check import Check, check
from bayesbandit.ope.estimate import Estimate, estimate
from bayesbandit.ope.evaluate import Best, Evaluation, evaluate
from bayesbandit.ope.logs.files import read_log
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.monitor import Monitor
from bayesbandit.ope.sequences import Sequence

__all__ = [
    "Best", "Check", "Estimate", "Evaluation", "Log", "Monitor", "Sequence", "check", "estimate",
    "evaluate", "read_log",
]  # fmt: skip

GONE = {  # what was here, and what to do instead
    "power": "docs/howto/experiment.md simulates an experiment in a few lines",
    "replay": "docs/howto/logs.md replays a bandit that learns in a few lines",
}


def __getattr__(name: str) -> object:
    instead = f": {GONE[name]}" if name in GONE else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}")
