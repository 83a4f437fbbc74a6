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
    close,
    every,
    probe,
    unlike,
)
from tests.cases import in_gate, long_but, moments_of


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
@every
def test_the_order_of_rounds_does_not_matter(name, rng):
    model, rows = DECLARED[name], data(n=40)
    order = rng.permutation(40)
    belief = learn(believed(model), rows)
    again = learn(believed(model), {role: v[order] for role, v in rows.items()})
    for ours, theirs in zip(moments_of(belief, probe()), moments_of(again, probe()), strict=True):
        close(ours, theirs)


@pytest.mark.slow
@every
def test_without_weights_every_weight_is_one(name):
    model, rows = DECLARED[name], data(n=20)
    plain, weighted = believed(model), believed(model)
    plain.update(rows["x"], rows["arm"], rows["reward"])
    weighted.update(rows["x"], rows["arm"], rows["reward"], np.ones(20))
    for ours, theirs in zip(moments_of(plain, probe()), moments_of(weighted, probe()), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
@every
def test_weights_that_change_with_hindsight(name):
    """Of own models only the arms that are due; of a shared one all. Rows of an arm that is gone
    (−1) are none of it."""
    model, rows = DECLARED[name], data(n=40)
    belief = learn(believed(model), rows | {"weight": np.ones(40)})
    gone = {role: np.concatenate([v[:5], v]) for role, v in rows.items()}
    gone["arm"][:5] = -1
    belief.reweigh([0, 2], *(gone[role] for role in ("x", "arm", "reward", "weight")))
    if not model.takes_arm:
        rows = rows | {"weight": np.where(rows["arm"] == 1, 1.0, rows["weight"])}
    agree(belief, model, rows)
    more = data(seed=1, n=10)
    both = {role: np.concatenate([rows[role], more[role]]) for role in rows}
    agree(learn(belief, more), model, both)


@pytest.mark.slow
@every
def test_normalised_weights_have_mean_one(name):
    """Of each arm's weights; of all weights, where the arms share the model."""
    model, rows = DECLARED[name], data(n=40)
    belief = learn(believed(model, normalize=True), rows)
    groups = np.zeros(40, dtype=int) if model.takes_arm else rows["arm"]
    mean = np.bincount(groups, rows["weight"]) / np.bincount(groups)
    normalised = rows | {"weight": rows["weight"] / mean[groups]}
    agree(belief, model, normalised)
    scaled = learn(believed(model, normalize=True), rows | {"weight": 7.0 * rows["weight"]})
    for ours, theirs in zip(moments_of(belief, probe()), moments_of(scaled, probe()), strict=True):
        close(ours, theirs)


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
