"""Where compiled code is kept and read, and who is told that it is compiled.

Disks that are read-only: tests/service/test_deploy.py.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from numba.core import caching
from numba.core.caching import IndexDataCacheFile

import bayesbandit.kernels  # which extends the places
from bayesbandit.runtime import caches
from bayesbandit.runtime.compiling import njit

DOUBLE = """
from bayesbandit.kernels import njit

@njit(cache=True)
def double(a):
    return a * 2
"""
MULTIPLY_ONE_ROW = """
import numpy as np
from bayesbandit.kernels.algebra.cholesky import multiply

out = np.zeros(1)
multiply(np.array([[1.0, 1.0]]), np.array([2.0, 1.0]), out)
print(*out)
"""
AT_ONCE = """
import sys, time
import bayesbandit
from bayesbandit.kernels import row_layout
from numba.core import caching

kind, number, wait = caching.IndexDataCacheFile, eval(sys.argv[1]), float(sys.argv[2])
read, write = kind._load_index, kind._save_data

def reading(self):
    found = read(self)
    time.sleep(0.5)  # both have read before either has written
    return found

def writing(self, name, data):
    time.sleep(wait)
    write(self, name, data)

kind._load_index, kind._save_data = reading, writing
from doubled import double
time.sleep(max(0.0, float(sys.argv[3]) - time.time()))
print(double(number))
"""


@pytest.mark.slow
def test_two_processes_that_compile_at_once_keep_their_own_code(tmp_path):
    """Of one function, for a whole number and for a float: the second's index, the first's code."""
    (tmp_path / "doubled.py").write_text(DOUBLE)
    env = os.environ | {"PYTHONPATH": f"{tmp_path}:{Path(bayesbandit.__file__).parents[1]}"}
    start = str(time.time() + 6.0)
    runs = [
        subprocess.Popen([sys.executable, "-c", AT_ONCE, number, wait, start], env=env,
                         stdout=subprocess.PIPE, text=True)
        for number, wait in (("3", "2.0"), ("1.5", "0.0"))
    ]  # fmt: skip
    assert [run.communicate(timeout=120)[0].strip() for run in runs] == ["6", "3.0"]
    later = "from doubled import double; print(double(1.5), double(3))"
    again = subprocess.run([sys.executable, "-c", later], env=env, capture_output=True, text=True)
    assert again.stdout.strip() == "3.0 6", again.stderr


@pytest.mark.slow
def test_a_kernel_is_compiled_again_when_one_that_it_calls_has_changed(tmp_path):
    """Each is kept with what it calls: after an update it would go on with the old ones."""
    shutil.copytree(caches.PACKAGE, tmp_path / "bayesbandit", ignore=lambda *_: ["__pycache__"])
    env = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    called = tmp_path / "bayesbandit/kernels/algebra/dense.py"
    inner = "return (s0 + s1) + (s2 + s3)"
    shown = []
    for product in (inner, inner + " + 10.0"):
        called.write_text(called.read_text().replace(inner, product))
        command = [sys.executable, "-c", MULTIPLY_ONE_ROW]
        run = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
        shown.append(run.stdout.strip())
    assert shown == ["3.0", "13.0"], run.stderr


def test_a_disk_without_locks_is_written_to(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(caches.fcntl, "flock", flock)
    with caches.turn(tmp_path):
        (tmp_path / "file").touch()
    assert (tmp_path / "file").exists()


def function_of(folder, monkeypatch):
    """A function in a file of ours, and its file."""
    folder.mkdir(exist_ok=True)
    monkeypatch.setattr(caches, "PACKAGE", folder)
    file = folder / "doubled.py"
    file.write_text("def double(a):\n    return a * 2\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    return names["double"], str(file)


def test_kernels_that_came_with_an_image_are_read(tmp_path, monkeypatch):
    function, file = function_of(tmp_path, monkeypatch)
    (tmp_path / "__pycache__").mkdir()
    monkeypatch.setattr(caches, "is_writable", lambda folder: False)
    assert caches.place_of(function, Path(file), "mine") is None  # nothing is there
    (tmp_path / "__pycache__" / "doubled.double-1.py313.nbi").touch()
    assert caches.place_of(function, Path(file), "mine") == tmp_path / "__pycache__"
    monkeypatch.setattr(caches, "PACKAGE", tmp_path / "elsewhere")
    assert caches.place_of(function, Path(file), "mine") is None  # others' are their own affair


def test_a_cache_that_cannot_be_written_is_said_once(monkeypatch, caplog):
    def save(self, key, data):
        raise OSError(30, "Read-only file system", "/opt/kernels")

    monkeypatch.setattr(caches, "told", [])
    monkeypatch.setattr(IndexDataCacheFile, "save", save)
    monkeypatch.setattr(IndexDataCacheFile, "load", lambda self, key: None)

    @njit(cache=True)
    def double(a):
        return 2.0 * a

    assert double(1.5) == 3.0
    assert double(2) == 4.0  # another signature
    [record] = caplog.records
    assert "not kept" in record.message
    assert "/opt/kernels" in record.message
    assert "NUMBA_CACHE_DIR" in record.message


@pytest.mark.parametrize("asked", ["", "/proc/nothing"])
def test_code_goes_among_the_temporary_files_where_no_other_place_can_be_written(
    asked, tmp_path, monkeypatch
):
    """Also where NUMBA_CACHE_DIR names a folder that cannot be written."""
    import numba

    ours = tmp_path / f"bayesbandit-{os.getuid()}"
    monkeypatch.setattr(numba.config, "CACHE_DIR", asked)
    monkeypatch.setattr(caches.tempfile, "tempdir", str(tmp_path))
    function, file = function_of(tmp_path / "package", monkeypatch)
    monkeypatch.setattr(caches, "is_writable", lambda folder: ours in (folder, *folder.parents))
    assert caches.place_of(function, Path(file), "mine") == ours / "numba" / "mine"
    monkeypatch.setattr(caches, "temporary", lambda: None)
    assert caches.place_of(function, Path(file), "mine") is None


def test_a_function_whose_code_can_be_kept_nowhere_is_compiled(monkeypatch, caplog):
    monkeypatch.setattr(caches, "told", [])
    monkeypatch.setattr(caching.FunctionCache._impl_class, "_locator_classes", [])

    @njit(cache=True)
    def double(a):
        return 2.0 * a

    assert double(1.5) == 3.0
    [record] = caplog.records
    assert "no folder can be written" in record.message


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
