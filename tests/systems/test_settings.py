"""Settings of the systems that are refused, each with the name of the setting."""

from functools import partial

import numpy as np
import pytest

from bayesbandit.systems.bootstrap.belief import Bootstrap
from bayesbandit.systems.forest.belief import Forest
from bayesbandit.systems.iltcb.belief import PolicyMixture
from bayesbandit.systems.policy_tree.belief import PolicyTree

REFUSED = {
    Bootstrap: [
        ({"penalty": "elastic"}, "penalty must be"), ({"replicates": 1}, "replicates"),
        ({"lam": 0.0}, "lam"), ({"lam": "aic"}, "lam"), ({"draw": "mean"}, "draw must be"),
        ({"degree": 3}, "degree"), ({"folds": 1}, "folds"), ({"least": 1}, "least"),
    ],
    Forest: [
        ({"trees": 10}, "bags of 4; got 10"), ({"trees": 4}, "trees"), ({"bag": 1}, "bag"),
        ({"share": 0.6}, "share must be"), ({"share": 0.0}, "share"), ({"min_node": 0}, "min_node"),
        ({"min_leaf": 0}, "min_leaf"), ({"tried": 0}, "tried"), ({"weights": "none"}, "weights"),
        ({"variance_floor": -1.0}, "variance_floor"), ({"least": 3}, "least"),
        ({"refit_every": 0.0}, "refit_every"),
    ],
    PolicyMixture: [
        ({"exploration": 0.0}, "exploration"), ({"delta": 1.0}, "delta"), ({"psi": -1.0}, "psi"),
        ({"rewards": (1.0, 0.0)}, "rewards must be"), ({"gains": "dm"}, "gains must be"),
        ({"refit_every": 0}, "refit_every"), ({"log_policies": -1.0}, "log_policies"),
        ({"oracle": partial(print)}, r"oracle must have a method on\(x\)"),
    ],
    PolicyTree: [
        ({"depth": 0}, "depth"), ({"depth": 40}, "depth"), ({"by": "gini"}, "by must be"),
        ({"cuts": 0}, "cuts"), ({"least": 0}, "least"), ({"refit_every": 0.0}, "refit_every"),
        ({"prior_rows": -1.0}, "prior_rows"), ({"prior_rows": np.nan}, "prior_rows"),
        ({"balanced": 1}, "balanced"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("model", REFUSED)
def test_settings_that_are_refused(model):
    for settings, match in REFUSED[model]:
        with pytest.raises((ValueError, TypeError), match=match):
            model(**settings)
