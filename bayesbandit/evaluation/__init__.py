"""Regret, and significant wins and losses, from a table of results."""

from bayesbandit.evaluation.baselines import baselines
from bayesbandit.evaluation.contests import differences, pairwise, ranking
from bayesbandit.evaluation.results import (
    RUN,
    SCHEMA,
    check,
    curves,
    first_optimal,
    last,
    regrets,
    seed_of,
    summary,
    wide,
)
from bayesbandit.evaluation.text import markdown, within

__all__ = [
    "RUN", "SCHEMA", "baselines", "check", "curves", "differences", "first_optimal", "last",
    "markdown", "pairwise", "ranking", "regrets", "seed_of", "summary",
    "wide", "within",
]  # fmt: skip
