"""Kernels as Python runs them: for what is done once, and takes longer to compile than to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any


@cache
def interpreted(kernel: Any) -> Callable[..., Any]:
    """A kernel, and those that it calls, without compiling any; not of one that calls itself, or
    that lends arrays."""
    function: FunctionType = kernel.py_func
    called = function.__globals__
    names = {
        name: interpreted(called[name])
        for name in function.__code__.co_names
        if hasattr(called.get(name), "py_func")
    }
    return FunctionType(
        function.__code__, {**called, **names}, function.__name__, function.__defaults__
    )
