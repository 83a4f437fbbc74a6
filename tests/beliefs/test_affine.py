"""Exact beliefs of declared models: what streams in is what `bb.fit` finds, on every path."""

import numpy as np
import pytest

from bayesbandit.model import RewardModel
from tests.beliefs.closed_form import data, learn
from tests.beliefs.exact import (
    DECLARED,
    SLOW,
    UNLIKE,
    K,
    agree,
    believed,
    every,
    unlike,
)
from tests.cases import in_gate, long_but


@pytest.mark.slow
@every
@in_gate(8)
def test_what_streams_in_is_what_fit_finds(name):
    """One by one, in batches, and all at once; an arm without rows is the prior."""
    model, rows = DECLARED[name], data(n=40)
    one_by_one, in_batches, at_once = believed(model), believed(model), believed(model)
    agree(learn(one_by_one, rows), model, rows)
    agree(learn(in_batches, rows, (1, 7, 0, 30, 2)), model, rows)
    agree(learn(at_once, rows, (40,)), model, rows)
    agree(believed(model), model, {role: v[:0] for role, v in rows.items()})


@pytest.mark.slow
@pytest.mark.parametrize("declare", long_but(UNLIKE, SLOW), ids=lambda f: f.__name__)
def test_so_it_is_however_it_is_declared(declare):
    model, rows = RewardModel(declare, {}), data(n=40)
    agree(learn(believed(model), rows), model, rows)


@pytest.mark.slow
@unlike
def test_long_streams_do_not_drift(name):
    """Over the refactorisations of a few thousand rounds."""
    model, rows = DECLARED[name], data(n=7000)
    agree(learn(believed(model), rows, (5000, 2000)), model, rows)


@pytest.mark.slow
@unlike
def test_arms_come_and_go(name):
    """A new arm knows the prior, or what the others teach; the rows of one that goes are as if
    they had never been."""
    model, rows = DECLARED[name], data(n=30)
    belief = learn(believed(model), rows)
    belief.add_arm()
    agree(belief, model, rows, K + 1)
    more = data(seed=1, n=20, K=K + 1)
    both = {role: np.concatenate([rows[role], more[role]]) for role in rows}
    agree(learn(belief, more), model, both, K + 1)
    belief.remove_arm(1)
    left = {role: v[both["arm"] != 1] for role, v in both.items()}
    left["arm"] = left["arm"] - (left["arm"] > 1)
    agree(belief, model, left, K)
    agree(learn(belief, rows), model, {role: np.concatenate([left[role], rows[role]])
                                       for role in rows}, K)  # fmt: skip
