"""The how-tos work as written."""

import re
from pathlib import Path

import pytest

HOWTO = Path(__file__).parents[1] / "docs" / "howto"


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (HOWTO / name).read_text(), flags=re.S)


@pytest.mark.parametrize("rows", [pytest.param(30_000, marks=pytest.mark.slow), 6_000])
def test_tables(rows, tmp_path, monkeypatch):
    """The whole journey; a shorter table decides as the long one does."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks("tables.md"):
        exec(block.replace("30_000", f"{rows:_}", 1), names)
    bandit, encoder = names["bandit"], names["encoder"]
    assert encoder.columns == ("signup", "age", "income", "country", "plan", "newsletter")
    assert {"country=DE", "country=missing", "plan=pro", "newsletter=True"} <= set(encoder.features)
    assert bandit.t >= rows - 5_000
    assert list(names["tree"]["posterior"].coords["feature"].values) == list(encoder.features)
    assert "plan[T.plus]:newsletter[T.True]" in names["by_formula"].features
    assert (tmp_path / "offers.npz").exists()
    if rows == 30_000:
        assert names["earned"] > 1.1 * names["bought"].mean(axis=0).max()
