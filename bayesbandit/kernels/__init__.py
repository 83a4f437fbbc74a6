"""Compiled leaf functions, and where they are kept between two runs."""

from bayesbandit.runtime.caches import settle
from bayesbandit.runtime.compiling import njit

__all__ = ["njit"]

settle()
