"""Plain values that are no decision. Those of one are in the laws (`test_laws.py`)."""

import re

import numpy as np
import pytest

import bayesbandit as bb
from tests.bandit.kinds import lived

# the second arm was not available
OF_TWO_ARMS = {"arms": ["a", "b"], "arm": "b", "mean": [0.0, None], "sd": [1.0, None]}
HOSTILE = [
    ({"arm": "zz"}, "arm must be one of"),
    ({"arm": ["a"]}, "id must be a list, with a text for each arm"),
    ({"arms": ["a", "a", "c"]}, "more than once"),
    ({"arms": "abc"}, "['arms'] is 'abc'"),
    ({"x": [1.0, np.nan]}, "finite"),
    ({"x": [1e60, 0.0]}, "finite"),
    ({"x": ["1", "2"]}, "numbers"),
    ({"mean": [1.0]}, "must be"),
    ({"mean": [np.inf, 0.0, 0.0]}, "finite"),
    ({"sd": [-1.0, 0.0, 0.0]}, "sd must be finite numbers from 0"),
    ({"probabilities": [0.5, 0.5, 0.5]}, "sum to 1"),
    ({"probabilities": [np.nan, 0.5, 0.5]}, "probabilities must be"),
    ({"propensity": 0.0}, "propensity must be finite numbers from"),
    ({"propensity": 1.0}, "the arm's probability"),
    ({"min_probability": 0.9}, "min_probability is"),
    ({"constant": 1}, "constant"),
    ({"id": 5}, "id[0] is 5"),
    ({"x": 5.0}, "x must be"),
    ({"x": [[1.0], [1.0, 2.0]]}, "different lengths"),
    ({"unknown": 1}, "unknown key"),
    (
        {**OF_TWO_ARMS, "probabilities": [0.5, 0.5], "propensity": 0.5, "min_probability": 0.0},
        "sum to 1",
    ),
]


@pytest.mark.parametrize(("change", "said"), HOSTILE, ids=[str(i) for i in range(len(HOSTILE))])
def test_what_is_no_decision_is_refused(change, said):
    values = lived("LinTS").choose([0.5, -1.0]).to_dict()
    with pytest.raises(ValueError, match=re.escape(said)):
        bb.Decision.from_dict(values | change)
    for key in values:
        with pytest.raises(ValueError, match=key):
            bb.Decision.from_dict({k: v for k, v in values.items() if k != key})


def test_a_decision_about_no_context_is_refused():
    values = bb.LinTS(3, 2).choose(np.ones((3, 2)))[:0].to_dict()
    with pytest.raises(ValueError, match="about one context or more; this one has none"):
        bb.Decision.from_dict(values)
