"""Encoders from files: what is not whole is refused as it is loaded, and runs nothing."""

import copy
import json

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.tables.stored import digest
from tests.cases import few
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


def crafted(at, value, kind="table"):
    changed = put(json.loads(json.dumps(MADE[kind])), at, value)
    return changed | {"digest": digest(changed)}


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        (7, "not a dict but 7"),
        (crafted(("format",), "pickle"), "format 'pickle' version 3; this release reads"),
        (crafted(("version",), 1), "version 1; this release reads .* version 3: fit the encoder"),
        (crafted(("columns", 0, "kind"), "code"), "it is no whole encoder: KeyError.'code'"),
        (crafted(("columns", 0, "more"), 1), "it is no whole encoder: .*argument 'more'"),
        (MADE["table"] | {"digest": "0"}, "its values are not those that were saved"),
        (crafted(("formula", "text"), "~ open(age, 2)", "formula"), "is not allowed"),
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


def test_many_levels_take_memory_by_the_row():
    """An identity matrix of 30,000 levels would be 7 GB."""
    levels = [str(i) for i in range(30_000)]
    encoder = bb.Encoder.from_dict(column(levels=levels))
    assert encoder.transform({"a": "29999"}).argmax() == 29_999
