"""Environments for bandits: simulated designs, classification data, and tables of rewards."""

from bayesbandit.environments.base import Environment, Sample
from bayesbandit.environments.datasets import BUNDLED, bundled, from_csv, from_frame, openml
from bayesbandit.environments.rows import Classification, KnownRewards
from bayesbandit.environments.synthetic import (
    NonLinear,
    SparseLinear,
    SyntheticExample,
)

__all__ = [
    "BUNDLED",
    "Classification",
    "Environment",
    "KnownRewards",
    "NonLinear",
    "Sample",
    "SparseLinear",
    "SyntheticExample",
    "bundled",
    "from_csv",
    "from_frame",
    "openml",
]
