"""Encoders from files: what is not whole is refused as it is loaded, and runs nothing."""

import copy
import itertools
import json
import time

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.tables.stored import digest
from tests.cases import few, slow_but
from tests.tables.mixed import marketing, mixed


def table(**settings):
    frame = mixed().join(marketing(n=60)[["signup"]])
    return bb.Encoder.fit(frame, keep=["signup"], **settings).to_dict()


def formula():
    frame = marketing().assign(age=np.random.default_rng(0).normal(size=200))
    return bb.Encoder.formula("~ age * country + bs(spend, df=4) + poly(age, 2)", frame).to_dict()


MADE = {"table": table(), "formula": formula()}


def places(value, at=()):
    """Where the values of a nested one stand; of a long list, the first and the last."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    inner = list(inner) if isinstance(value, dict | list) else []
    for key, one in inner if isinstance(value, dict) else inner[:2] + inner[2:][-1:]:
        yield from places(one, (*at, key)) if isinstance(one, dict | list) else [(*at, key)]


def put(plain, at, value):
    changed = copy.deepcopy(plain)
    if not at:
        return value
    part = changed
    for key in at[:-1]:
        part = part[key]
    part[at[-1]] = value
    return changed


STRANGE = [None, True, -7, 10**400, 1e300, float("nan"), "x", [], {}, [[1.0]], {"pairs": 3}]


@few("[table]")
@pytest.mark.parametrize("kind", MADE)
def test_any_other_value_is_refused(kind):
    """Or it is the same one, at any place: changed without its digest."""
    plain = json.loads(json.dumps(MADE[kind]))
    assert bb.Encoder.from_dict(plain).to_dict() == plain
    for at in places(plain):
        for value in STRANGE:
            changed = put(plain, at, value)
            if json.dumps(changed) == json.dumps(plain):
                continue
            with pytest.raises(ValueError, match=r"."):
                bb.Encoder.from_dict(changed)


@pytest.mark.parametrize("kind", slow_but(["table"], MADE))
def test_values_of_other_kinds_are_refused_with_a_digest_too(kind):
    """A crafted file has the right digest: what is loaded then is whole, and gives numbers."""
    plain = json.loads(json.dumps(MADE[kind]))
    row = pd.concat([mixed().iloc[0], marketing().iloc[0]]).to_dict() | {"age": 1.0}
    refused = 0
    for at in places(plain):
        for value in STRANGE:
            changed = put(plain, at, value)
            if isinstance(changed, dict) and "digest" in changed and at != ("digest",):
                changed["digest"] = digest(changed)
            try:
                encoder = bb.Encoder.from_dict(changed)
            except ValueError:
                refused += 1
                continue
            needed = {name: row.get(name, 1.0) for name in encoder.columns}
            try:
                x = encoder.transform(needed)
            except ValueError:
                continue
            assert x.shape == (1, len(encoder.features))
            assert np.isfinite(x).all()
    assert refused > 100


def crafted(at, value, kind="table"):
    changed = put(json.loads(json.dumps(MADE[kind])), at, value)
    return changed | {"digest": digest(changed)}


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        (7, "not a dict but 7"),
        (crafted(("format",), "pickle"), "format 'pickle' version 3; this release reads"),
        (crafted(("version",), 1), "version 1; this release reads .* version 3: fit the encoder"),
        (crafted(("columns",), []), "it has no columns"),
        (crafted(("columns", 0, "name"), 1.5), "a column's name is 1.5"),
        (crafted(("columns", 0, "kind"), "code"), "a column's kind is 'code'"),
        (crafted(("columns", 0, "more"), 1), r"column '.*' has the unknown key 'more'"),
        (MADE["table"] | {"digest": "0"}, "its values are not those that were saved"),
        (crafted(("constant",), True, "formula"), "its formula says another constant"),
        (crafted(("formula", "text"), "~ open(age, 2)", "formula"), "is not allowed"),
        (crafted(("formula", "text"), "~ age", "formula"), "is broken: it uses"),
        (crafted(("formula", "state"), {}, "formula"), "is broken: its state is not whole|be comp"),
        (crafted(("formula", "features"), ["age"], "formula"), "is broken: its features are"),
    ],
)
def test_what_is_wrong_is_said(plain, message):
    with pytest.raises(ValueError, match=message):
        bb.Encoder.from_dict(plain)


def column(**parts):
    whole = {"kind": "levels", "name": "a", "levels": ["x", "y", "z"]}
    whole |= {"missing": False, "pooled": False} | parts
    plain = {"format": "bayesbandit.Encoder", "version": 3, "named": True, "columns": [whole]}
    plain |= {"formula": None, "constant": False}
    return plain | {"digest": digest(plain)}


def test_levels_have_features_of_their_own():
    assert bb.Encoder.from_dict(column()).transform({"a": "y"}).tolist() == [[0.0, 1.0, 0.0]]
    for parts in (
        {"levels": ["x", "x"]}, {"levels": "xy"}, {"levels": [1, 2]}, {"levels": []},
        {"pooled": 1}, {"missing": None}, {"codes": [0, 1, 2]},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="column 'a'"):
            bb.Encoder.from_dict(column(**parts))


@pytest.mark.slow
def test_what_a_formula_learned_has_the_sizes_that_it_implies():
    """A spline of 10,000 knots would take 800 MB, from a file of 60 kB."""
    frame = marketing().assign(age=np.random.default_rng(0).normal(size=200))
    text = (
        "~ cr(age, df=3) + cc(spend, df=4) + scale(log(spend)) + bs(age, df=4) + poly(age, 2) + "
        "center(age) + standardize(spend)"
    )
    plain = json.loads(json.dumps(bb.Encoder.formula(text, frame).to_dict()))
    assert bb.Encoder.from_dict(plain).to_dict() == plain
    state = plain["formula"]["state"]
    assert len(state) == 7
    refused = 0
    kinds = itertools.cycle([[], {}, None, float("nan"), [1.0] * 9])
    for at in places(state):
        value = state
        for key in at:
            value = value[key]
        longer = [*value, *value * 5000] if isinstance(value, list) else [value]
        for other in (longer, next(kinds)):
            changed = put(plain, ("formula", "state", *at), other)
            if not at or changed == plain:
                continue
            began = time.process_time()
            try:
                encoder = bb.Encoder.from_dict(changed | {"digest": digest(changed)})
                assert encoder.transform(frame).shape == (200, len(encoder.features))
            except ValueError:
                refused += 1
            assert time.process_time() - began < 20
    assert refused > 50


def test_many_levels_take_memory_by_the_row():
    """An identity matrix of 30,000 levels would be 7 GB."""
    levels = [str(i) for i in range(30_000)]
    encoder = bb.Encoder.from_dict(column(levels=levels))
    assert encoder.transform({"a": "29999"}).argmax() == 29_999
