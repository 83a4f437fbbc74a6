"""Shared by all tests: two processes, fresh kernels, graphs without stacks, hypothesis without a
clock, a generator."""

import gc
import math
import os
import sys
from pathlib import Path

# before PyTensor starts; a stack for each variable of each graph takes a tenth of the time
os.environ["PYTENSOR_FLAGS"] = "traceback__limit=0," + os.environ.get("PYTENSOR_FLAGS", "")

import numpy as np
import pytest
from hypothesis import settings

PACKAGE = Path(__file__).parents[1] / "bayesbandit"
KERNELS = *PACKAGE.glob("kernels/**/*.py"), *PACKAGE.glob("systems/*/kernels.py")
IN_GATE = 3  # of a law's slow cases

gc.set_threshold(500_000, 20, 20)  # graphs are many small things, most of which stay
# a process that is started by a test would compile PyMC's source anew
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile("bounded", deadline=None, max_examples=10, derandomize=True)
settings.load_profile("bounded")


def pytest_configure(config: pytest.Config) -> None:
    """Drop compiled kernels older than any source: numba looks at each file's own age only, and a
    kernel that has been compiled into another would stay as it was."""
    if hasattr(config, "workerinput"):  # a worker of pytest-xdist: done already
        return
    compiled = [*PACKAGE.rglob("*.nb?")]
    oldest = min((path.stat().st_mtime for path in compiled), default=math.inf)
    if max(path.stat().st_mtime for path in KERNELS) > oldest:
        for path in compiled:
            path.unlink(missing_ok=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is long is slow, too. Of a law's cases those are quick that `tests.cases.few` names, or
    else two, the first and the last; of the others the gate runs as many as
    `tests.cases.in_gate` says, or else IN_GATE, spread evenly. None of it where tests are asked for
    by name."""
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("slow")
    if config.option.keyword or any("::" in name for name in config.args):
        return
    laws: dict[str, list[pytest.Item]] = {}
    for item in items:
        laws.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for law, cases in laws.items():
        if named := next(cases[0].iter_markers("few"), None):
            quick = [c for c in cases if any(part in c.name for part in named.args)]
        elif law.startswith("tests/attack/"):
            continue
        else:
            found = [c for c in cases if c.get_closest_marker("slow") is None]
            quick = [*found[:1], *found[1:][-1:]]
        slow = [c for c in cases if c not in quick]
        for case in slow:
            case.add_marker("slow")
        most = next(cases[0].iter_markers("in_gate"), None)
        slow = [c for c in slow if c.get_closest_marker("long") is None]
        n = min(most.args[0] if most else IN_GATE, len(slow))
        kept = np.linspace(0, len(slow) - 1, n).round().astype(int)
        for i in set(range(len(slow))).difference(kept):
            slow[i].add_marker("long")


def pytest_collection_finish(session: pytest.Session) -> None:
    """What has been imported stays: it is not looked through for garbage again. So do plans: a
    model is compiled once a process, not once a file."""
    if plan := sys.modules.get("bayesbandit.inference.plan"):
        plan.MAX_KEPT, plan.KEPT_BYTES = 10_000, 2_000_000_000
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Nor at the end."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Two processes, unless told otherwise (`-n`), or a test or two are asked for by name."""
    option = config.option
    if hasattr(config, "workerinput") or not config.pluginmanager.hasplugin("xdist"):
        return
    alone = option.usepdb or option.collectonly or any("::" in name for name in config.args)
    if option.numprocesses is None and option.dist == "no" and not alone:
        option.numprocesses, option.dist = 2, "worksteal"


@pytest.fixture
def rng():
    return np.random.default_rng(2018)


@pytest.fixture
def files_for_pictures(request, monkeypatch):
    """Pictures are drawn for the fixture `compared`; elsewhere it is enough that there are some."""
    from matplotlib.figure import Figure

    if "compared" not in request.fixturenames:
        save = Figure.savefig
        small = Figure(figsize=(1, 1))
        monkeypatch.setattr(Figure, "savefig", lambda _, file, **how: save(small, file, **how))
