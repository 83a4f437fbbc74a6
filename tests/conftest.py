"""Shared by all tests: fresh kernels, hypothesis without a clock, a generator."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

KERNELS = Path(__file__).parents[1] / "bayesbandit" / "kernels"

settings.register_profile("bounded", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("bounded")


def pytest_configure(config: pytest.Config) -> None:
    """Drop compiled kernels older than any source: numba looks at each file's own age only, and a
    kernel that has been compiled into another would stay as it was."""
    if hasattr(config, "workerinput"):  # a worker of pytest-xdist: done already
        return
    compiled = [path.stat().st_mtime for path in KERNELS.glob("__pycache__/*.nb?")]
    if compiled and max(path.stat().st_mtime for path in KERNELS.glob("*.py")) > min(compiled):
        shutil.rmtree(KERNELS / "__pycache__", ignore_errors=True)


@pytest.fixture
def rng():
    return np.random.default_rng(2018)
