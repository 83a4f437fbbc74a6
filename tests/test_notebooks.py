"""Notebooks are kept without outputs, run from top to bottom, and have a copy that shows them."""

import os
import re
from copy import deepcopy

import pytest

from bayesbandit.runtime.caches import COMPILING_TAKES_SECONDS

nbformat = pytest.importorskip("nbformat")

from notebooks.render import (
    LIBRARIES,
    RENDERED,
    SAID,
    SOURCES,
    VARIABLE,
    executed,
    presented,
    read,
    retold,
    stripped,
)

MACHINE = re.compile(r"(?<![\w.:/])(?:/(?:home|root|tmp|Users|work|mnt|opt|usr|var)/|[A-Z]:\\)")
every_notebook = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)


def code(path):
    return [cell.source for cell in read(path).cells if cell.cell_type == "code"]


def copy_of(path):
    return read(RENDERED / path.name)


def outputs(notebook):
    """Each output that is not a stream, with its cell."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type != "stream":
                yield cell, output


def texts(notebook):
    """All that a page would show as text."""
    for cell in notebook.cells:
        yield cell.source
        for output in cell.get("outputs", ()):
            yield output.get("text", "")
            yield from (v for k, v in output.get("data", {}).items() if k != "image/png")


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
    for text in (*texts(read(path)), *texts(copy_of(path))):
        assert not MACHINE.search(text), MACHINE.search(text)


@every_notebook
def test_the_copy_shows_this_notebook(path):
    """docs/notebooks/NAME.ipynb comes from the notebook as it is: render it after a change."""
    copy, source = copy_of(path), read(path)
    nbformat.validate(copy)
    assert stripped(copy).cells[:-1] == source.cells, f"uv run notebooks/render.py {path.stem}"
    assert all(name in copy.cells[-1].source for name in ("full size", *LIBRARIES))


@every_notebook
def test_pictures_are_described_and_tables_are_tables(path):
    kinds = set()
    for cell, output in outputs(copy_of(path)):
        (kind,) = output.data or ("nothing",)
        kinds.add(kind)
        if kind == "image/png":
            said = cell.metadata.get(SAID, {}).get("image", {}).get("alt", "")
            assert len(said.split()) > 8, cell.source
    assert {"image/png", "text/html"} <= kinds


def test_an_output_is_shown_in_one_way():
    frame = {"text/plain": "a", "text/html": "<style scoped>x\n</style>\n<table></table>"}
    data = [frame, {"text/plain": "a", "image/png": "AAAA"}, {"text/plain": "a"}, {"text/x": "a"}]
    new = nbformat.v4.new_output
    cell = nbformat.v4.new_code_cell("1", metadata={SAID: {"image": {"alt": "a"}}, "tags": ["b"]})
    cell.outputs = [new("execute_result", one, execution_count=3) for one in data]
    waited = new("stream", name="stderr", text=f"{COMPILING_TAKES_SECONDS}\n")
    cell.outputs += [waited, new("stream", text="/a/b/site-packages/c/d.py:3")]
    shown = presented(nbformat.v4.new_notebook(cells=[cell]), "toy").cells[0]
    kept = [output.data for output in shown.outputs[:-1]]
    table, picture = {"text/html": "<table></table>"}, {"image/png": "AAAA"}
    assert kept == [table, picture, {"text/plain": "a"}, {}]
    assert shown.outputs[-1].text == "c/d.py:3"
    assert shown.metadata == {SAID: {"image": {"alt": "a"}}}


@every_notebook
def test_text_is_told_anew_without_a_run(path):
    source, copy = read(path), copy_of(path)
    first, told = source.cells[0], deepcopy(source)
    told.cells[0].source = f"{first.source}, again"
    shown = retold(told, copy)
    assert shown.cells[0].source == told.cells[0].source
    assert shown.cells[1:] == copy.cells[1:]
    next(cell for cell in told.cells if cell.cell_type == "code").source += "\n"
    with pytest.raises(ValueError, match="has to be run"):
        retold(told, copy)


def test_copies_are_light():
    """A clone should not fetch more than a few megabytes of pictures."""
    assert sum(file.stat().st_size for file in RENDERED.rglob("*") if file.is_file()) < 1.5e6


@pytest.mark.slow
@every_notebook
def test_runs_at_toy_size(path):
    executed(path, os.environ.get(VARIABLE, "toy"))
