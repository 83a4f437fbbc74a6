"""How kernels are compiled: alone where Python calls them, as a part where another kernel does.

Numba makes machine code, wrappers for Python and C and a file of every function, also of one that
only ever runs inside another kernel, where all of it is done again. A `Part` is left as LLVM's
input: the kernel around it is optimised once, as a whole. That is a third of the time in which a
bandit compiles. No result depends on it: LLVM keeps the order of operations (no `fastmath`).

What a bandit cannot reach is not compiled for it. A constant of a kernel's module that is True
stands for something that may happen; `without` gives the kernel in which it does not.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher
from numba.core.types import Type
from numba.core.typing.templates import Signature

from bayesbandit.runtime.caches import announced, complain, forgiving
from bayesbandit.runtime.interrupts import interrupts_held_back

UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class Part(JITCodeLibrary):
    """The code of a function that other kernels take in, without machine code of its own."""

    @property
    def codegen(self) -> Any:
        """A code generator that knows no variables of this library: it has no addresses."""
        return SimpleNamespace(set_env=lambda name, environment: None)

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is nothing that Python could call."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        """Leave it to the kernel that takes it in."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class PartCompiler(Compiler):
    """Numba's compiler, which writes into a `Part`."""

    def __init__(self, typing: object, target: Any, library: object, *settings: object) -> None:
        super().__init__(typing, target, Part(target.codegen(), "part"), *settings)


class Kernel(CPUDispatcher):
    """A compiled function for Python, whose `part` is what other kernels call."""

    @cached_property
    def part(self) -> Any:
        """The same function, compiled for other kernels alone, which take it in: as an argument a
        tuple of views is some fifty numbers, and costs more than most of what is done with it. What
        is long and called in several places is one function for all of them: `forceinline=False`.
        """
        options = {"forceinline": True} | self.targetoptions | UNWRAPPED
        return CPUDispatcher(self.py_func, targetoptions=options, pipeline_class=PartCompiler)

    def enable_caching(self: Any) -> None:
        """Keep what is compiled; where that fails, say so and go on. Say it if a user waits."""
        try:
            CPUDispatcher.enable_caching(self)
        except RuntimeError:  # numba knows no place
            self._cache.save_overload = lambda *_: complain("no folder can be written")
        else:
            self._cache.save_overload = forgiving(
                self._cache.save_overload, Path(self._cache.cache_path)
            )
        self._cache.load_overload = announced(self._cache.load_overload)

    def compile(self, signature: str | tuple[Type, ...] | Signature) -> Any:
        """Compile for these types. Under NUMBA_DISABLE_JIT numba would not compile its own
        functions either, which kernels call."""
        config: Any = numba.config
        with (
            interrupts_held_back(),
            global_compiler_lock,
        ):  # one thread at a time changes the setting
            disabled = config.DISABLE_JIT
            config.DISABLE_JIT = 0
            try:
                return CPUDispatcher.compile(self, signature)
            finally:
                config.DISABLE_JIT = disabled

    def get_call_template(self, args: object, kws: object) -> Any:
        """Return the type of a call in a kernel."""
        return self.part.get_call_template(args, kws)

    def get_overload(self, signature: object) -> Any:
        """Return what a call in a kernel runs."""
        return self.part.get_overload(signature)


CALLED = {  # of numba's classes, which are not its public interface
    JITCodeLibrary: (
        "_ensure_finalized",
        "_finalize_dynamic_globals",
        "_optimize_final_module",
        "_finalize_final_module",
    ),
    CPUDispatcher: ("get_call_template", "get_overload"),
}
KNOWN = all(name in dir(kind) for kind, names in CALLED.items() for name in names)
if not KNOWN:
    logging.getLogger("bayesbandit").warning("with this numba kernels take longer to compile")


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function, as `numba.njit` does with these options, and as a part of others.

    Also with NUMBA_DISABLE_JIT: Python cannot run what lends arrays.
    """
    cache = options.pop("cache")

    def compiled(function: Callable[..., Any]) -> Any:
        if not KNOWN:
            return numba.njit(cache=cache, **options)(function)
        kernel = Kernel(
            function, targetoptions={"nopython": True, "no_cfunc_wrapper": True, **options}
        )
        if cache:
            kernel.enable_caching()
        return kernel

    return compiled


@cache
def switches(kernel: Kernel) -> frozenset[str]:
    """Return the names of the constants that are True in a kernel, or in those that it calls."""
    names = set()
    for name in kernel.py_func.__code__.co_names:
        value = kernel.py_func.__globals__.get(name)
        if value is True:
            names.add(name)
        elif isinstance(value, CPUDispatcher):
            names |= switches(value)
    return frozenset(names)


def without(kernel: Any, *names: str) -> Any:
    """Return a kernel in which these constants, of its module and of those that it calls, are
    False; the kernel itself where it reaches none of them."""
    reached = switches(kernel).intersection(names)
    return _without(kernel, tuple(sorted(reached))) if reached else kernel


@cache
def _without(kernel: Kernel, names: tuple[str, ...]) -> Any:
    function = kernel.py_func
    around = kernel.py_func.__globals__
    called = ((name, around.get(name)) for name in function.__code__.co_names)
    twins = {n: without(other, *names) for n, other in called if isinstance(other, CPUDispatcher)}
    twin = FunctionType(
        function.__code__,
        {**around, **dict.fromkeys(names, False), **twins},
        function.__name__,
        function.__defaults__,
    )
    # its file in the cache
    twin.__qualname__ = "_".join((function.__qualname__, "without", *names))
    twin.__doc__ = function.__doc__
    options = {k: v for k, v in kernel.targetoptions.items() if k not in ("nopython", *UNWRAPPED)}
    return njit(cache=True, **options)(twin)


@cache
def interpreted(kernel: Any) -> Callable[..., Any]:
    """Return a kernel as Python runs it, with those that it calls: for what is done once, and takes
    longer to compile than to do. Not of one that calls itself, or that lends arrays."""
    function: FunctionType = kernel.py_func
    called = function.__globals__
    names = {
        name: interpreted(called[name])
        for name in function.__code__.co_names
        if isinstance(called.get(name), Dispatcher)
    }
    return FunctionType(
        function.__code__, {**called, **names}, function.__name__, function.__defaults__
    )


def kept() -> str | None:
    """Return the folder that holds the compiled kernels of this process; None: none are kept."""
    modules = [module for name, module in [*sys.modules.items()] if name.startswith("bayesbandit.")]
    kernels = [value for m in modules for value in vars(m).values() if isinstance(value, Kernel)]
    folders = {path for kernel in kernels if (path := kernel.stats.cache_path) is not None}
    return os.path.commonpath(folders) if folders else None
