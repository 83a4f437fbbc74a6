"""Notebooks are kept without outputs, run from top to bottom, and have a readable copy."""

import os
import re

import nbformat
import pytest

from notebooks.render import RENDERED, SOURCES, VARIABLE, executed, read, stripped

MACHINE = re.compile(r"(?<![\w.:/])(?:/(?:home|root|tmp|Users|work|mnt|opt|usr|var)/|[A-Z]:\\)")
every_notebook = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)


def code(path):
    return [cell.source for cell in read(path).cells if cell.cell_type == "code"]


def test_there_are_notebooks():
    assert SOURCES


@every_notebook
def test_stripped(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook == stripped(read(path)), "uv run notebooks/render.py --strip"


@every_notebook
def test_first_a_title_then_the_size(path):
    first = read(path).cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    assert VARIABLE in code(path)[0]


@every_notebook
def test_nothing_of_a_machine(path):
    copy = (RENDERED / f"{path.stem}.md").read_text(encoding="utf-8")
    for text in (*(cell.source for cell in read(path).cells), copy):
        assert not MACHINE.search(text), MACHINE.search(text)


@every_notebook
def test_every_cell_is_python(path):
    for source in code(path):
        compile(source, path.name, "exec")


@every_notebook
def test_the_copy_shows_this_code(path):
    """docs/notebooks/NAME.md comes from the notebook as it is: render it again after a change."""
    copy = (RENDERED / f"{path.stem}.md").read_text(encoding="utf-8")
    for source in code(path):
        assert f"```python\n{source}\n```" in copy, f"uv run notebooks/render.py {path.stem}"
    pictures = {f"{path.stem}_files/{file.name}" for file in RENDERED.glob(f"{path.stem}_files/*")}
    assert pictures == set(re.findall(r"\]\((\S+_files/\S+\.png)\)", copy))


def test_copies_are_light():
    """A clone should not fetch more than a few megabytes of pictures."""
    assert sum(file.stat().st_size for file in RENDERED.rglob("*") if file.is_file()) < 1.5e6


@pytest.mark.slow
@every_notebook
def test_runs_at_toy_size(path):
    executed(path, os.environ.get(VARIABLE, "toy"))
