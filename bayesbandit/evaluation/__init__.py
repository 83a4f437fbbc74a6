"""Regret, significant wins and losses, and accuracy of estimates, from a table of results."""

from bayesbandit.evaluation.baselines import baselines
from bayesbandit.evaluation.contests import differences, pairwise, ranking, wins_and_losses
from bayesbandit.evaluation.drift import drift
from bayesbandit.evaluation.estimates import accuracy, replayed, replays, root
from bayesbandit.evaluation.intervals import Beliefs, after_runs, intervals
from bayesbandit.evaluation.regrets import gaps, medians, paired, regrets, wide
from bayesbandit.evaluation.results import (
    RUN,
    SCHEMA,
    check,
    curves,
    first_optimal,
    last,
    seed_of,
    summary,
)
from bayesbandit.evaluation.text import markdown, share, with_errors, within

__all__ = [
    "RUN", "SCHEMA", "Beliefs", "accuracy", "after_runs", "baselines", "check", "curves",
    "differences", "drift", "first_optimal", "gaps", "intervals", "last", "markdown", "medians",
    "paired", "pairwise", "ranking", "regrets", "replayed", "replays", "root", "seed_of", "share",
    "summary", "wide", "wins_and_losses", "with_errors", "within",
]  # fmt: skip
