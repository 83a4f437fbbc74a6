"""Files that are written whole or not at all: full disks, pipes and folders in the way, names."""

import os
import stat
import sys
from contextlib import contextmanager

import pytest

import bayesbandit as bb
from bayesbandit.runtime.files import replacing
from tests.cases import few, slow_but
from tests.commands import run

resource = pytest.importorskip("resource")  # there is none on Windows
LIMITS = (0, 1, 60, 4096)  # bytes of a file; each of ours is larger than the last
TOO_LARGE = r"\[Errno 27\] .*"


@contextmanager
def full_after(size):
    """No file of this process grows beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def content(folder):
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder): file.read_bytes() for file in files}


def iris(replications):
    world = bb.environments.bundled("iris")
    return bb.Experiment([world], {"LinTS": bb.LinTS}, 100, replications, points=100)


@pytest.mark.parametrize("size", LIMITS)
def test_a_full_disk_takes_nothing_from_a_saved_bandit(size, tmp_path):
    path, bandit = tmp_path / "b", bb.LinTS(2, 1)
    bandit.save(path)
    before = content(tmp_path)
    bandit.observe(bandit.choose([1.0]), 1.0)
    with full_after(size), pytest.raises(OSError, match=f"{TOO_LARGE}{path}"):
        bandit.save(path)
    assert content(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("size", slow_but([0, 60], LIMITS))
@few("60")
def test_a_full_disk_takes_nothing_from_tables_and_pictures(size, tmp_path):
    """The error is one line, though the run itself has ended well."""
    command = sys.modules["bayesbandit.cli.compare"]  # the package has the function of this name
    told = ["compare", "--data", "iris", "--bandit", "LinGreedy", "--replications", "1",
            "--horizon", "20", "--out", str(tmp_path)]  # fmt: skip
    assert run(*told).exit_code == 0
    table = tmp_path / "compare" / "table.csv"
    table.write_text("of before\n" * 999)
    before, save = content(tmp_path), command.save

    def full(*parts, **said):
        with full_after(size):
            save(*parts, **said)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "save", full)
        result = run(*told)
    assert result.exit_code == 2
    assert "Error: [Errno 27]" in result.output
    after = content(tmp_path)
    assert before.keys() == after.keys()
    for name, text in after.items():
        assert text == before[name] or len(text) <= size or name.name == "run.json"


@pytest.mark.parametrize("there", ["folder", "pipe", "link to a pipe"])
def test_what_is_no_file_is_not_replaced(there, tmp_path):
    path = tmp_path / "there"
    if there == "folder":
        path.mkdir()
    elif there == "pipe":
        os.mkfifo(path)
    else:
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
    kind = stat.S_IFMT(path.stat().st_mode)
    with pytest.raises(FileExistsError, match="is there and is no file"):
        bb.LinTS(2, 1).save(path)
    assert stat.S_IFMT(path.stat().st_mode) == kind
    assert not list(tmp_path.glob(".*"))


@few("[%s{x}]")
@pytest.mark.parametrize("name", ["a b", "ü 🎰", "[bold]x", "%s{x}", "[ab]*?", "new\nline", "-x"])
def test_any_name_is_a_name(name, tmp_path):
    bandit = bb.LinTS(2, 1)
    bandit.save(tmp_path / name)
    bandit.save(tmp_path / name)
    assert bb.Bandit.load(tmp_path / name).arms == bandit.arms
    first = iris(1).run(out=tmp_path / f"{name} of runs", progress=False)
    assert iris(1).run(out=tmp_path / f"{name} of runs", progress=False).equals(first)


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    """Not the one beside it that nobody knows of."""
    path = tmp_path / "nowhere" / "b"
    with pytest.raises(FileNotFoundError) as caught:
        bb.LinTS(2, 1).save(path)
    assert caught.value.filename == str(path)
    path.parent.write_text("no folder")
    with pytest.raises(NotADirectoryError) as caught:
        bb.LinTS(2, 1).save(path)
    assert caught.value.filename == str(path)
    path.parent.unlink()
    with pytest.raises(OSError, match=r"^words alone$"), replacing(tmp_path / "b"):
        raise OSError("words alone")
    with pytest.raises(OSError, match="other"), replacing(tmp_path / "b"):
        raise OSError(5, "Input/output error", "other")
    assert not list(tmp_path.iterdir())
