"""Whoever waits for kernels is told so, once; nobody else is."""

import sys
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from bayesbandit.runtime import compile_notice


def event(module="bayesbandit.kernels.rounds"):
    def kernel():
        pass

    kernel.__module__ = module
    return SimpleNamespace(data={"dispatcher": numba.njit(kernel)})


def compiled(listener, clock, seconds, module="bayesbandit.kernels.rounds", inner=3):
    """A compilation that takes so long, with others within it."""
    listener.on_start(event(module))
    for _ in range(inner):
        clock.now += seconds / inner
        listener.on_start(event(module))
        listener.on_end(event(module))
    listener.on_end(event(module))


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(compile_notice, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(compile_notice, "is_watched", lambda: True)
    return clock


def test_one_line_after_a_second(clock, capsys):
    listener = compile_notice.Waiting()
    compiled(listener, clock, 0.6)
    clock.now += 1000.0  # nothing is compiled meanwhile
    compiled(listener, clock, 0.3)
    assert capsys.readouterr().err == ""
    compiled(listener, clock, 5.0)
    compiled(listener, clock, 5.0)
    assert capsys.readouterr().err == compile_notice.LINE + "\n"


@pytest.mark.parametrize("module", ["somebody.else", None])
def test_others_kernels_are_their_own_affair(clock, capsys, module):
    compiled(compile_notice.Waiting(), clock, 50.0, module=module)
    assert capsys.readouterr().err == ""


def test_nobody_is_told_who_does_not_look(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert not compile_notice.is_watched()  # a test's stderr is no terminal
    monkeypatch.setattr(sys, "stderr", None)
    assert not compile_notice.is_watched()


def test_it_hears_numba(monkeypatch):
    from numba import njit
    from numba.core import event as events

    heard = compile_notice.Waiting()
    monkeypatch.setattr(compile_notice, "_is_ours", lambda event: True)
    with events.install_listener("numba:compile", heard):
        njit(lambda x: x + 1.5)(np.float64(1.0))
    assert heard.busy > 0.0
    assert heard.depth == 0
