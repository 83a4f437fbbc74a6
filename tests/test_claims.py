"""Numbers that the pages claim are those of the tables that the studies wrote."""

import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[1]
NUMBER = r"[+−-]?(?:\d[\d,]*)?\.?\d+"
PAIR = re.compile(rf"({NUMBER}) ± ({NUMBER})")
COUNTS = re.compile(r"\d+–\d+ \(\d+–\d+\)")
PAGES = {  # and where the part that cites the studies begins
    "README.md": "## Which bandit to start with",
    "docs/results/README.md": "",
    "docs/when_to_balance.md": "",
    "docs/policy_tree.md": "| regret | non-linear |",
}
ENDS = {"README.md": "## What balancing does", "docs/policy_tree.md": "| depth 1 |"}


def claims(page: str) -> str:
    """The part of a page that cites the studies."""
    text = (ROOT / page).read_text()
    text = text[text.index(PAGES[page]) :]
    return text[: text.index(ENDS[page])] if page in ENDS else text


@cache
def tables() -> str:
    return "\n".join(path.read_text() for path in (ROOT / "docs/results").glob("*/table.md"))


def parsed(text: str) -> tuple[float, int]:
    """The size of a number, and its decimals."""
    plain = text.replace(",", "").strip("+−-")
    return float(plain), len(plain.partition(".")[2])


@cache
def measured() -> list[tuple[tuple[float, int], tuple[float, int]]]:
    return [(parsed(value), parsed(error)) for value, error in set(PAIR.findall(tables()))]


def rounds_to(number: tuple[float, int], claimed: tuple[float, int]) -> bool:
    finer = number[1] >= claimed[1]
    return finer and abs(number[0] - claimed[0]) <= 0.5 * 10.0 ** -claimed[1] + 1e-9


@pytest.mark.parametrize("page", PAGES)
def test_numbers_with_errors_are_in_a_table(page):
    found = PAIR.findall(claims(page))
    assert len(found) > 3
    missing = [
        f"{value} ± {error}"
        for value, error in found
        if not any(
            rounds_to(one, parsed(value)) and rounds_to(other, parsed(error))
            for one, other in measured()
        )
    ]
    assert not missing


@pytest.mark.parametrize("page", ["README.md", "docs/results/README.md"])
def test_wins_and_losses_are_in_a_table(page):
    assert not [counts for counts in COUNTS.findall(claims(page)) if counts not in tables()]


def test_a_policy_trees_page_has_the_studys_regrets():
    table = pd.read_csv(ROOT / "docs/results/smoothing/table.csv")
    worlds = pd.unique(table["environment"])
    cells = table.set_index(["bandit", "environment"])
    for line in claims("docs/policy_tree.md").splitlines():
        name, *shown = (cell.strip("* ") for cell in line.strip("|").split("|"))
        if name in cells.index.get_level_values(0):
            for world, text in zip(worlds, shown, strict=True):
                row = cells.loc[(name, world)]
                assert text == f"{row['regret']:.0f} ± {row['regret_se']:.0f}", (name, world)


def test_the_citation_has_the_packages_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert f'version = "{cited["version"]}"' in (ROOT / "pyproject.toml").read_text()
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
