"""Exact beliefs of declared models: what streams in is what `bb.fit` finds, on every path."""

import pytest

from tests.beliefs.closed_form import data, learn
from tests.beliefs.exact import DECLARED, agree, believed
from tests.cases import in_gate


@pytest.mark.slow
@pytest.mark.parametrize("name", DECLARED)
@in_gate(14)
def test_what_streams_in_is_what_fit_finds(name):
    """One by one, in batches, and all at once; an arm without rows is the prior."""
    model, rows = DECLARED[name], data(n=40)
    one_by_one, in_batches, at_once = believed(model), believed(model), believed(model)
    agree(learn(one_by_one, rows), model, rows)
    agree(learn(in_batches, rows, (1, 7, 0, 30, 2)), model, rows)
    agree(learn(at_once, rows, (40,)), model, rows)
    agree(believed(model), model, {role: v[:0] for role, v in rows.items()})


@pytest.mark.slow
@pytest.mark.parametrize("name", DECLARED)
@in_gate(5)
def test_long_streams_do_not_drift(name):
    """Over the refactorisations of a few thousand rounds."""
    model, rows = DECLARED[name], data(n=7000)
    agree(learn(believed(model), rows, (5000, 2000)), model, rows)
