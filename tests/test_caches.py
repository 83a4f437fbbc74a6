"""Where neither the package nor the home can be written, as in a container that is read-only."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bayesbandit

WORKS = "import bayesbandit as bb; b = bb.LinTS(2, 1); b.observe(b.choose([1.0]), 1.0); print(b.t)"


@pytest.mark.slow
@pytest.mark.parametrize("temporary", [True, False])
def test_it_starts_where_little_can_be_written(temporary, tmp_path):
    """`is_writable` is told so, since root can write anywhere."""
    package = tmp_path / "site" / "bayesbandit"
    source = Path(bayesbandit.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / "caches.py"
    told = f"    return {temporary} and str(folder).startswith({str(tmp_path / 'tmp')!r})\n"
    lines = file.read_text().split("    while not folder.exists():")
    file.write_text(lines[0] + told + "    while not folder.exists():" + lines[1])
    (tmp_path / "tmp").mkdir()
    env = os.environ | {"PYTHONPATH": str(package.parent), "TMPDIR": str(tmp_path / "tmp")}
    run = subprocess.run(
        [sys.executable, "-c", WORKS], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert run.stdout.strip() == "1", run.stderr
    kept = list((tmp_path / "tmp").rglob("*.nbi"))
    assert bool(kept) == temporary
    assert not list(package.rglob("*.nbi"))
