"""Whoever waits for kernels is told so, once; nobody else is."""

import sys
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core import event as events

from bayesbandit.runtime import compile_notice


@pytest.mark.parametrize(
    ("module", "said"),
    [("bayesbandit.kernels.rounds", 1), ("somebody.else", 0), (None, 0)],
)
def test_one_line_for_our_own_kernels(module, said, monkeypatch, capsys):
    monkeypatch.setattr(compile_notice, "is_watched", lambda: True)

    def kernel(a):
        return a + 1.5

    kernel.__module__ = module
    listener = compile_notice.Waiting()
    for _ in range(2):
        listener.on_start(SimpleNamespace(data={"dispatcher": numba.njit(kernel)}))
    assert capsys.readouterr().err == said * (compile_notice.LINE + "\n")


def test_nobody_is_told_who_does_not_look(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert not compile_notice.is_watched()  # a test's stderr is no terminal
    monkeypatch.setattr(sys, "stderr", None)
    assert not compile_notice.is_watched()


def test_it_hears_numba(monkeypatch):
    heard = compile_notice.Waiting()
    monkeypatch.setattr(compile_notice, "_is_ours", lambda event: True)
    with events.install_listener("numba:compile", heard):
        numba.njit(lambda x: x + 1.5)(np.float64(1.0))
    assert heard.said
