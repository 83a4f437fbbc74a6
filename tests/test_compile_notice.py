"""Whoever waits for kernels is told so, once; nobody else is."""

import sys

import pytest
from numba.core.caching import IndexDataCacheFile

from bayesbandit.runtime import caches
from bayesbandit.runtime.compiling import njit


@pytest.mark.parametrize("watched", [True, False])
def test_one_line_before_kernels_compile(watched, monkeypatch, capsys):
    monkeypatch.setattr(caches, "told", [])
    monkeypatch.setattr(caches, "is_watched", lambda: watched)
    monkeypatch.setattr(IndexDataCacheFile, "load", lambda self, key: None)
    monkeypatch.setattr(IndexDataCacheFile, "save", lambda self, key, data: None)

    @njit(cache=True)
    def kernel(a):
        return a + 1.5

    assert kernel(1.0) == 2.5
    assert capsys.readouterr().err == watched * f"{caches.COMPILING_TAKES_SECONDS}\n"
    assert kernel(1) == 2.5  # another signature
    assert not capsys.readouterr().err


def test_nobody_is_told_whose_kernels_are_there(monkeypatch, capsys):
    monkeypatch.setattr(caches, "told", [])
    monkeypatch.setattr(caches, "is_watched", lambda: True)
    assert caches.announced(lambda *_: "code")("signature", "target") == "code"
    assert not caches.told
    assert not capsys.readouterr().err


def test_nobody_is_told_who_does_not_look(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert not caches.is_watched()  # a test's stderr is no terminal
    monkeypatch.setattr(sys, "stderr", None)
    assert not caches.is_watched()
