"""An arm's weighted ridge regression from the sums of many rows (`beliefs/sums.py`)."""

import numpy as np

from bayesbandit.kernels.arm import arm_of, named
from bayesbandit.kernels.linear import refactorise, scratch, set_noise
from bayesbandit.kernels.root import rotate_rows
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def add_root(numbers, settings, d, t, U, weight):
    """Add rows to an arm's root and loss: see `root.rotate_rows`."""
    arm = arm_of(numbers, int(named(settings).columns))
    arm.head.loss += rotate_rows(arm, d, t, U, weight, np.empty(scratch(settings)))


@njit(cache=True)
def renew(numbers, settings, sums):
    """Set the noise of an arm; if it learns from sums, first λ, the weights' divisor and B."""
    arm = arm_of(numbers, int(named(settings).columns))
    work = np.empty(scratch(settings))
    if sums:
        refactorise(arm, settings, work)
    set_noise(arm, settings, work)
