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
