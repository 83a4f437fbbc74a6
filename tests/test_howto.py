"""The site's pages work as written: all their Python runs, and prints what stands below it."""

import re
from pathlib import Path

import pytest

from tests.cases import few, quick_but

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", flags=re.S | re.M)


def blocks(page):
    """Each block of Python, and what it is said to print."""
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


PAGES = [path.relative_to(DOCS).as_posix() for path in (*DOCS.glob("*.md"), *DOCS.glob("*/*.md"))]
PAGES = sorted(page for page in PAGES if blocks(page))
LONG = ("howto/arm_features.md", "howto/many_arms.md")


def test_every_howto_is_found():
    assert {page.relative_to(DOCS).as_posix() for page in DOCS.glob("howto/*.md")} - {
        "howto/index.md"
    } <= set(PAGES)


@pytest.mark.parametrize("page", quick_but(LONG, PAGES))
@few(
    "delayed",
    "files",
    "migrate",
    "tables",
    "serve",
    "service",
    "index",
    "quickstart",
    "which",
)
def test_prints_what_it_says(page, tmp_path, monkeypatch, capsys):
    if page == "howto/service.md":
        pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for code, said in blocks(page):
        exec(compile(code, page, "exec"), names)
        printed = [line.rstrip() for line in capsys.readouterr().out.rstrip().splitlines()]
        assert printed == said.rstrip().splitlines(), code


def test_tables(tmp_path, monkeypatch):
    """The whole journey."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for block, _ in blocks("howto/tables.md"):
        exec(block, names)
    bandit, encoder = names["bandit"], names["encoder"]
    assert encoder.columns == ("signup", "age", "income", "country", "plan", "newsletter")
    assert {"country=DE", "country=missing", "plan=pro", "newsletter=True"} <= set(encoder.features)
    assert bandit.t >= 25_000
    assert list(names["tree"]["posterior"].coords["feature"].values) == list(encoder.features)
    assert "plan[T.plus]:newsletter[T.True]" in names["by_formula"].features
    assert (tmp_path / "offers.npz").exists()
    assert names["earned"] > 1.1 * names["bought"].mean(axis=0).max()
