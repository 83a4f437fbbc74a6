"""What the pages claim is short, and its numbers are those of the tables that the studies wrote."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[1]
NUMBER = r"[+−-]?(?:\d[\d,]*)?\.?\d+"
PAIR = re.compile(rf"({NUMBER}) ± ({NUMBER})")
COUNTS = re.compile(r"\d+–\d+ \(\d+–\d+\)")
PAGES = {  # and where the part that cites the studies begins
    "README.md": "## When to balance",
    "docs/results/README.md": "",
    "docs/when_to_balance.md": "",
    "docs/policy_tree.md": "| regret | non-linear |",
}
ENDS = {"README.md": "## Documentation", "docs/policy_tree.md": "| depth 1 |"}


def claims(page: str) -> str:
    """The part of a page that cites the studies."""
    text = (ROOT / page).read_text()
    text = text[text.index(PAGES[page]) :]
    return text[: text.index(ENDS[page])] if page in ENDS else text


@cache
def tables() -> str:
    return "\n".join(path.read_text() for path in (ROOT / "docs/results").glob("*/*.md"))


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


def test_wins_and_losses_are_in_a_table():
    page = claims("docs/results/README.md")
    assert not [counts for counts in COUNTS.findall(page) if counts not in tables()]


def of_page(heading: str, page: str = "README.md") -> str:
    """The section of a page of results that begins with a heading, up to the next one."""
    after = (ROOT / "docs/results" / page).read_text().split(f"## {heading}")[1]
    return after.split("\n## ")[0]


def cells(text: str) -> dict[str, list[str]]:
    """The rows of the tables of a text: first cell → the others."""
    lines = [line.strip()[1:-1] for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    return {first: rest for first, *rest in rows}


def brief(value: float, se: float, digits: int = 2, sign: bool = True) -> str:
    """A number with its error as the pages write it: "−.69 ± .26"."""
    text = f"{value:{'+' if sign else ''}.{digits}f} ± {se:.{digits}f}".replace("-", "−")
    return re.sub(r"(?<!\d)0\.", ".", text)


def test_a_claim_reads_at_a_glance():
    parts = (ROOT / "docs/results/README.md").read_text().split("\n## ")
    claimed = [part for part in parts if "): " in part.splitlines()[0]]
    assert len(claimed) == 13
    for part in claimed:
        heading, *lines = part.splitlines()
        prose = " ".join(line for line in lines if line and line[0] not in "|!")
        words = re.sub(r"\]\([^)]*\)", "]", prose).split()
        assert len(words) <= 80, (heading, len(words))
        assert sum(line.startswith("![") for line in lines) == 1, heading
        assert cells(part), heading


def test_table_1_is_that_of_the_study():
    found = pd.read_csv(ROOT / "docs/results/table1/table.csv").set_index(
        ["bandit", "specification"]
    )
    names = {"BLTS, weights average 1": "BLTS, mean 1", "LinTS, λ ÷ 3": "LinTS, grid ÷ 3"}
    names["LinUCB, λ ÷ 3"] = "LinUCB, grid ÷ 3"
    shown, readme = cells(of_page("Balanced bandits find")), claims("README.md")
    for bandit in ("LinTS", "LinUCB", "BLTS", "BLUCB", *names):
        ours, papers = [], []
        for specification in ("well", "mis"):
            row = found.loc[(names.get(bandit, bandit), specification)]
            ours.append(f"{row['optimal']:.0f} ± {row['optimal_se']:.0f}")
            near = abs(row["optimal"] - row["paper"]) <= 1.96 * row["optimal_se"]
            known = "" if np.isnan(row["paper"]) else f"{row['paper']:.0f}"
            papers.append(f"({known})" if near else known)
        assert shown[bandit] == [ours[0], papers[0], ours[1], papers[1]], bandit
        if bandit in ("LinTS", "BLTS"):
            assert ours[0] in readme


def test_wins_on_data_sets_are_those_of_the_study():
    found = pd.read_csv(ROOT / "docs/results/openml_controls/table.csv")
    found = found.set_index(["row", "column", "protocol", "reading"])
    page, advice = (ROOT / "docs/results/README.md").read_text(), claims("docs/when_to_balance.md")
    null, best, other = "LinTS, 12 draws", "best of the grid", "fixed settings"

    def rows(one: str, two: str, protocol: str = best) -> tuple[list[str], list[str]]:
        """Sets won–lost, and the difference in points, by reading."""
        readings = ("RSS/n, floor 1e-6", "RSS/n, floor 1e-2", "RSS")
        cells = [found.loc[(one, two, protocol, reading)] for reading in readings]
        wins = [f"{cell['smaller']:.0f}–{cell['larger']:.0f}" for cell in cells]
        return wins, [brief(100 * cell["difference"], 100 * cell["se"]) for cell in cells]

    shown = cells(of_page("BLTS wins against LinTS"))
    assert shown["BLTS – LinTS"] == rows("BLTS", "LinTS")[0]
    assert shown[f"null: {null} – LinTS"] == rows(null, "LinTS")[0]
    assert shown["BLTS – null"] == rows("BLTS", null)[0]
    fixed = rows("BLTS", "LinTS", other)[1]
    assert shown["BLTS − LinTS, settings of other sets (points)"] == fixed
    shown = cells(of_page("Thompson sampling beats UCB"))
    named = {best: best, "settings of other sets": other, "α = 1 for both": "α = 1"}
    for name, protocol in named.items():
        pairs = zip(*rows("LinTS", "LinUCB", protocol), strict=True)
        assert shown[name] == [", ".join(pair) for pair in pairs]
    for one in ("BLTS", null):
        wins = rows(one, "LinUCB")[0]
        assert f"{wins[0]}, {wins[1]} and {wins[2]}" in page
    greedy = rows("BLTS", "greedy", other)[1][2]
    for text in (*fixed, greedy):
        assert text.strip("+−") in advice


def test_wins_of_balanced_ucb_are_those_of_the_study():
    found = pd.read_csv(ROOT / "docs/results/openml/table.csv")
    found = found.set_index(["row", "column", "protocol", "noise"])
    shown = cells(of_page("BLUCB wins against LinUCB"))
    rows = {name: (*name.split(" – "), "best of the grid") for name in shown if " – " in name}
    rows["the same, settings of other sets"] = ("BLUCB", "LinUCB", "fixed settings")
    assert len(rows) == 5
    for name, (one, other, protocol) in rows.items():
        cell = [found.loc[(one, other, protocol, noise)] for noise in ("rss/n", "rss")]
        counts = [f"{c.smaller:.0f}–{c.larger:.0f} ({c.wins:.0f}–{c.losses:.0f})" for c in cell]
        assert shown[name][1:] == counts, name


def test_the_share_of_the_error_that_weights_remove():
    page, shares = "balancing/table.md", []
    changes = cells(of_page("Mean squared error of estimates", page))
    for world, place in (("synthetic-mis: estimates", 2), ("synthetic-mis, no warm start: est", 3)):
        errors = cells(of_page(world, page))["none, floor"][:3]
        before = np.mean([float(error.split()[0]) ** 2 for error in errors])
        change = changes["decision, floor − none, floor"][place]
        shares.append(f"{-100 * float(change.split()[0]) / before:.0f}")
    text = (ROOT / "docs/when_to_balance.md").read_text()
    assert f"remove {shares[0]} and {shares[1]} % of the error" in text
    assert f"With a wrong model {shares[0]} % of the error goes" in of_page("Balancing makes")


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
