"""Cases of one law: a few that are unlike each other are quick, the others slow, or long."""

from collections.abc import Container, Iterable
from typing import Any

import pytest


def slow_but(quick: Container[Any], cases: Iterable[Any]) -> list[Any]:
    """All cases; those that are not among `quick` are slow."""
    return [c if c in quick else pytest.param(c, marks=pytest.mark.slow) for c in cases]


def quick_but(slow: Container[Any], cases: Iterable[Any]) -> list[Any]:
    """All cases; those among `slow` are slow."""
    return [pytest.param(c, marks=pytest.mark.slow) if c in slow else c for c in cases]


def few(*cases: str) -> pytest.MarkDecorator:
    """Above a test of many cases: those whose ids hold one of these texts are quick, the others
    slow. Without it two are quick."""
    return pytest.mark.few(*cases)


def all_quick() -> pytest.MarkDecorator:
    """Above a test of many cheap cases: all are quick that are not marked slow."""
    return pytest.mark.few("[")


def in_gate(n: int) -> pytest.MarkDecorator:
    """Above a test of many cases: of those that are slow the gate runs n, spread evenly; the others
    are long."""
    return pytest.mark.in_gate(n)


def long_but(gate: Container[Any], cases: Iterable[Any]) -> list[Any]:
    """All cases; those that are not among `gate` are long: they repeat what these show."""
    return [c if c in gate else pytest.param(c, marks=pytest.mark.long) for c in cases]


def moments_of(belief, x):
    """Means and standard deviations (n, K) of what a belief predicts at x (n, d)."""
    found = belief.predict(x)
    return found.mean, found.sd
