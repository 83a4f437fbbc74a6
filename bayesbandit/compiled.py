"""Kernels compiled ahead of time, by playing a few rounds: for an image, or before users come."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bayesbandit.kernels.compiling import Kernel

ARMS, FEATURES = ("a", "b", "c"), 2
KEPT = "*.nb[ic]"  # numba's files: an index and the code


def rehearse(factory: Callable[..., Any]) -> float:
    """Call what a service calls of a bandit, about one context and about a batch; return the
    seconds that it took."""
    start = time.perf_counter()
    bandit = factory(ARMS, FEATURES, seed=0)
    for value in (1.0, 0.0, 1.0):  # rewards that every model takes
        contexts = np.random.default_rng(0).normal(size=(len(ARMS), FEATURES))
        for x in (contexts[0], contexts):
            decision = bandit.choose(x)
            _ = decision.propensity, decision.probabilities
            bandit.observe(decision, value if x.ndim == 1 else np.full(len(x), value))
        bandit.update(contexts, list(ARMS), np.full(len(ARMS), value), np.full(len(ARMS), 0.5))
        bandit.choose(contexts[0], arms=ARMS[:2])
        bandit.probabilities(contexts), bandit.greedy(contexts)
    bandit.belief.moments(contexts)
    return time.perf_counter() - start


def kept() -> tuple[Path | None, int, int]:
    """Return the folder that holds the compiled kernels of this process, with how many files and
    how many bytes; None where none are kept."""
    modules = [module for name, module in [*sys.modules.items()] if name.startswith("bayesbandit.")]
    kernels = [value for m in modules for value in vars(m).values() if isinstance(value, Kernel)]
    folders = {path for kernel in kernels if (path := kernel.stats.cache_path) is not None}
    files = [file for folder in folders for file in Path(folder).glob(KEPT)]
    if not files:
        return None, 0, 0
    return (
        Path(os.path.commonpath([file.parent for file in files])),
        len(files),
        sum(file.stat().st_size for file in files),
    )
