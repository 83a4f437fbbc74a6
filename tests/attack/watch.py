"""What the interpreter is asked to do while a file is loaded."""

import builtins
import os
import sys
import tempfile
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path

from bayesbandit.declaring.gallery import folders

for _late in (
    "tables.formula",
    "tables.stored",
    "beliefs.declared",
    "inference.pymc_model.template",
):
    import_module(f"bayesbandit.{_late}")  # which the toolkit imports when a file needs them
INERT = {"builtins.id", "object.__getattr__", "sys._getframe", "sys._getframemodulename"}
LOOKS = {
    "os.listdir",
    "os.scandir",
    "glob.glob",
    "pathlib.Path.glob",
}  # of who looks for a declared model by its name
STARTS = (  # of processes, and of talk with others
    *("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "subprocess", "socket."),
    *("os.rmdir", "os.symlink", "os.link", "shutil.", "webbrowser."),
)
_seen: list[tuple[str, tuple]] | None = None


def _hook(event, args):
    if _seen is not None and event not in INERT:
        _seen.append((event, args))


@cache
def _hooked():
    sys.addaudithook(_hook)


@contextmanager
def watched():
    """The audit events of a block, in a list. The hook stays, and does nothing outside of one."""
    global _seen
    _hooked()
    _seen = []
    try:
        yield _seen
    finally:
        _seen = None


def harmless(event, args):
    """Whether all that is done is to read a file, to list a folder or to parse a formula or the
    gallery: nothing is imported, run, written or started."""
    if event == "open":
        writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
        return not args[2] & writes
    if event == "compile" and str(args[0]).lstrip("b'\"\\n").startswith("def _parse_args("):
        return True  # SciPy makes a distribution
    if event == "exec" and "_parse_args" in getattr(args[0], "co_names", ()):
        return True
    if event == "compile":  # by `ast.parse`: what is run has the event `exec` besides
        return args[1] == "<unknown>" or Path(str(args[1])).parent in folders()
    if event == "pickle.find_class":  # numba's own, of an error in a kernel; never the file's
        kind = getattr(builtins, args[1], None) if args[0] == "builtins" else None
        return isinstance(kind, type) and issubclass(kind, Exception)
    return event in LOOKS


def compiles(event, args):
    """Whether nothing is done but what a compiler within this process does: no process is started,
    nobody is called, and no file is deleted but temporary ones."""
    if event == "os.remove":
        return Path(os.fsdecode(args[0])).is_relative_to(tempfile.gettempdir())
    return not event.startswith(STARTS)
