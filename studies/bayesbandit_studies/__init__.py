"""The studies of the paper: a file for each table or figure, found by `bayesbandit reproduce`."""

from collections.abc import Callable

import bayesbandit as bb
from bayesbandit_studies.pictures import names

Factory = Callable[..., bb.Bandit]  # (arms, n_features, seed) → Bandit

names.use()
