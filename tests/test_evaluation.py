"""Laws of the tables: calibration, antisymmetry, agreement with independent tests."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from scipy import stats

from bayesbandit import evaluation as ev

Run = tuple[str, str, int, list[int], list[float], list[float]]


def rows(*runs: Run):
    """A table from runs (environment, bandit, replication, t, reward, regret)."""
    names = ["environment", "bandit", "replication", "t", "reward", "regret"]
    table = pd.DataFrame(runs, columns=names).explode(["t", "reward", "regret"], ignore_index=True)
    table = table.assign(propensity=0.5, value=np.nan, agreement=np.nan, optimal=False)
    return table.astype(ev.SCHEMA)


def classified(errors, n):
    """One checkpoint at n for every bandit; errors (environments, replications) counts."""
    parts = []
    for bandit, wrong in errors.items():
        environment, replication = np.indices(wrong.shape).reshape(2, -1)
        one = pd.DataFrame({"environment": environment, "bandit": bandit, "t": n})
        one["replication"], one["regret"] = replication, wrong.ravel().astype(float)
        parts.append(one.assign(reward=n - one["regret"], propensity=1.0))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(value=np.nan, agreement=np.nan, optimal=False).astype(ev.SCHEMA)


def between(table, row, column):
    pairs = ev.pairwise(table)
    return pairs[(pairs["row"] == row) & (pairs["column"] == column)].reset_index(drop=True)


@pytest.fixture
def mixed():
    """Two classification environments and one with other rewards; 3 bandits, 4 replications."""
    rng = np.random.default_rng(1)
    runs: list[Run] = []
    t = np.array([50, 100, 200])
    for environment in ("iris", "wine", "synthetic"):
        other = environment == "synthetic"
        for b, bandit in enumerate(("LinTS", "BLTS", "UCB")):
            for replication in range(4):
                wrong = np.cumsum(rng.random(200) < 0.2 + 0.1 * b)[t - 1].astype(float)
                reward = t - wrong + other * rng.normal(size=3)
                regret = wrong * (1 + other * 0.1 * rng.random())
                runs.append((environment, bandit, replication, list(t), list(reward), list(regret)))
    return rows(*runs)


def test_summary_equals_the_one_by_hand():
    table = rows(
        ("e", "a", 0, [5, 10], [4, 7], [1, 3]),
        ("e", "a", 1, [5, 10], [4, 9], [1, 1]),
        ("e", "b", 0, [10], [5], [5]),
    )
    table.loc[table["bandit"] == "a", "value"] = 1.0
    table.loc[[0, 3], "optimal"] = True  # a/0 at t = 5, left again; a/1 at t = 10
    a, b = ev.summary(table).to_dict("records")
    assert (a["t"], a["replications"]) == (10, 2)
    assert a["normalised_regret"] == pytest.approx(0.2)  # (.3 + .1) / 2
    assert a["normalised_regret_se"] == pytest.approx(0.1)  # sd .1·√2, over √2
    assert a["mean_reward"] == pytest.approx(0.8)
    assert (a["optimal_at_end"], a["optimal_ever"], a["first_optimal"]) == (0.5, 1.0, 7.5)
    assert b["normalised_regret"] == 0.5
    untested = ("normalised_regret_se", "optimal_at_end", "optimal_ever", "first_optimal")
    assert all(np.isnan(b[name]) for name in untested)


def test_never_is_infinitely_late():
    runs = [("e", "a", r, [5, 10], [4, 7], [1, 3]) for r in range(3)]
    table = rows(*runs).assign(value=1.0)
    table.loc[1, "optimal"] = True
    assert ev.first_optimal(table)["first_optimal"].tolist() == [10, np.inf, np.inf]
    assert ev.summary(table)["first_optimal"].item() == np.inf
    assert ev.summary(table)["optimal_ever"].item() == pytest.approx(1 / 3)


def test_curves_are_means_and_standard_errors(mixed):
    points = ev.curves(mixed)
    assert len(points) == 3 * 3 * 3
    for point in points.sample(5, random_state=0).to_dict("records"):
        cell = mixed.query("environment == @point['environment'] and bandit == @point['bandit']")
        regret = cell.loc[cell["t"] == point["t"], "regret"].to_numpy()
        assert point["replications"] == 4
        assert point["regret"] == pytest.approx(regret.mean())
        assert point["regret_se"] == pytest.approx(regret.std(ddof=1) / 2)
        assert point["normalised_regret_se"] == pytest.approx(point["regret_se"] / point["t"])


def test_pairwise_is_antisymmetric(mixed):
    pairs = ev.pairwise(mixed)
    swapped = pairs.rename(columns={"row": "column", "column": "row"})
    both = pairs.merge(swapped, on=["environment", "row", "column"], suffixes=("", "_swapped"))
    assert len(both) == len(pairs) == 3 * 3 * 2
    np.testing.assert_array_equal(both["difference"], -both["difference_swapped"])
    np.testing.assert_array_equal(both["statistic"], -both["statistic_swapped"])
    np.testing.assert_array_equal(both["p"], both["p_swapped"])
    mirror = {"win": "loss", "loss": "win", "draw": "draw"}
    assert (both["outcome"].map(mirror) == both["outcome_swapped"]).all()
    assert {"win", "loss", "draw"} >= set(pairs["outcome"])


@pytest.mark.slow
@pytest.mark.parametrize("replications", [2, 3, 10])
def test_a_bandit_against_itself_differs_in_one_case_of_twenty(replications):
    """Runs that lock on to one arm or another, so that their rounds are anything but independent:
    4,000 pairs."""
    rng = np.random.default_rng(3)
    n, shape = 500, (4000, replications)
    errors = {name: rng.binomial(n, rng.beta(2, 6, size=shape)) for name in "ab"}
    table = classified(errors, n)
    share = (between(table, "a", "b")["outcome"] != "draw").mean()
    assert 0.03 < share < 0.06


@pytest.mark.parametrize(("replications", "outcome"), [(2, "draw"), (5, "draw"), (6, "win")])
def test_gaps_that_are_all_alike_meet_the_sign_test(replications, outcome):
    wrong = np.arange(replications)[None]
    runs = classified({"a": 7 + wrong, "b": 10 + wrong}, 100)
    pair = between(runs, "a", "b")
    p = pair["p"].item()
    assert p == pytest.approx(stats.binomtest(0, replications).pvalue)
    assert pair["outcome"].item() == outcome
    assert ev.differences(runs, [("a", "b")])["p"].item() == p
    assert set(ev.pairwise(runs, level=p)["outcome"]) == {"draw"}  # not below it


def test_rounding_is_no_difference():
    runs: list[Run] = [
        ("e", bandit, r, [1, 60], [0.5, 9.0], [0.1, 20.0 + r + (bandit == "b") * (1 + r) * 1e-14])
        for bandit in "ab" for r in range(4)
    ]  # fmt: skip
    pair = between(rows(*runs), "a", "b")
    assert (pair["p"].item(), pair["outcome"].item()) == (1.0, "draw")
    assert ev.differences(rows(*runs), [("a", "b")])["p"].tolist() == [1.0]


def test_differences_are_those_of_the_paired_t_test(mixed):
    pairs = [("BLTS", "LinTS"), ("UCB", "BLTS"), ("UCB", "nobody")]
    ends = mixed[mixed["t"] == 200]
    found = ev.differences(mixed, iter(pairs)).to_dict("records")
    assert [(f["environment"], f["one"]) for f in found] == [
        (environment, one) for environment in ("iris", "wine", "synthetic") for one, _ in pairs[:2]
    ]
    for row in found:
        here = ends[ends["environment"] == row["environment"]]
        regret = here.pivot(index="replication", columns="bandit", values="regret")
        gap = regret[row["one"]] - regret[row["other"]]
        tested = stats.ttest_rel(regret[row["one"]], regret[row["other"]])
        assert row["difference"] == pytest.approx(gap.mean())
        assert (row["se"], row["replications"]) == (pytest.approx(gap.sem()), 4)
        assert row["p"] == pytest.approx(tested.pvalue)
        pair = between(mixed, row["one"], row["other"]).set_index("environment")
        of_rates = pair.loc[row["environment"]]
        assert of_rates["statistic"] == pytest.approx(tested.statistic)
        assert of_rates["p"] == pytest.approx(tested.pvalue)
        assert of_rates["difference_se"] == pytest.approx(gap.sem() / 200)
    assert ev.differences(mixed[mixed["replication"] == 0], pairs).empty
    same = ev.differences(mixed, [("UCB", "UCB")], "optimal")
    assert same["p"].tolist() == [1.0] * 3


def test_ranking_puts_the_best_first(mixed):
    ranks = ev.ranking(mixed)
    assert ranks["bandit"].tolist() == ["LinTS", "BLTS", "UCB"]
    assert ranks["normalised_regret"].is_monotonic_increasing
    cells = ev.summary(mixed)
    best = cells[cells["bandit"] == "LinTS"]
    assert ranks.loc[0, "normalised_regret"] == pytest.approx(best["normalised_regret"].mean())
    se = np.sqrt((best["normalised_regret_se"] ** 2).sum()) / 3
    assert ranks.loc[0, "normalised_regret_se"] == pytest.approx(se)
    assert ranks["mean_rank"].sum() == pytest.approx(6)
    assert ranks["wins"].sum() == ranks["losses"].sum()
    assert (ranks["environments"] == 3).all()


def test_one_replication_is_a_draw(mixed):
    pairs = ev.pairwise(mixed[mixed["replication"] == 0])
    assert pairs["p"].isna().all()
    assert set(pairs["outcome"]) == {"draw"}
    ranks = ev.ranking(mixed[(mixed["bandit"] == "BLTS") & (mixed["replication"] == 0)])
    assert ranks[["wins", "losses"]].to_numpy().tolist() == [[0, 0]]
    assert ranks["normalised_regret_se"].isna().all()


@pytest.mark.slow
def test_row_order_and_index_do_not_matter(mixed):
    ranks = ev.ranking(mixed)
    pd.testing.assert_frame_equal(ranks, ev.ranking(mixed.set_axis([0] * len(mixed))))
    shuffled = ev.ranking(mixed.sample(frac=1, random_state=3))
    pd.testing.assert_frame_equal(ranks, shuffled)


def test_markdown_aligns_and_escapes():
    frame = pd.DataFrame(
        {"bandit": ["a|b", "LinTS"], "regret": [0.25, np.nan], "first": [110.0, np.inf]}
    )
    assert ev.markdown(frame, digits=2).splitlines() == [
        "| bandit | regret | first |",
        "| ------ | -----: | ----: |",
        "| a\\|b   |   0.25 |   110 |",
        "| LinTS  |      – |     ∞ |",
    ]
    assert ev.markdown(frame[:0]).count("\n") == 1
    assert ev.markdown(pd.DataFrame({"n": [1], "k": ["b"]})).splitlines() == [
        "|   n | k   |", "| --: | --- |", "|   1 | b   |",
    ]  # fmt: skip
    assert "–" in ev.markdown(pd.DataFrame({"k": ["b", None]}, dtype=object))
    assert "| 0.3333 |" in ev.markdown(pd.DataFrame({"share": [1 / 3, 0.5]}))
    rounded = ev.markdown(pd.DataFrame({"regret": [1457.2273, 128.75], "z": [5.1, -10.0]}))
    assert [line.split("|")[1:3] for line in rounded.splitlines()[2:]] == [
        ["   1457 ", "   5.1 "], ["    129 ", " -10.0 "],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ([1e-7, -2e-9, 0.0], ["1e-07", "-2e-09", "0"]),  # all would be 0
        ([6e-5, 1e-5, 0.0], ["0.0001", "0.0000", "0.0000"]),
        ([1e300, -2.0], ["1e+300", "-2"]),
        ([-1e-9, -0.5], ["0.0", "-0.5"]),
        ([-0.25, 2e6], ["0", "2000000"]),
        ([0.0, -0.0], ["0", "0"]),
    ],
)
def test_numbers_are_never_lost_nor_endless(values, cells):
    lines = ev.markdown(pd.DataFrame({"x": values})).splitlines()[2:]
    assert [line.strip("| ") for line in lines] == cells


ODD = st.sampled_from("ab 1_*`\\\\[]()<>!&;#|~-+.:/$'\"\n\r\tü$")


@given(st.text(ODD | st.characters(), max_size=12))
def test_markdown_shows_texts_as_they_are(text):
    """By a reader of Markdown, with HTML on: names of columns and levels may be anything."""
    text = text.replace("\0", "")
    frame = pd.DataFrame({"x" + text: ["y" + text, "z"], "n": [1.5, 2.0]})
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(ev.markdown(frame))
    tags = re.findall(r"<(\w+)", html)
    assert set(tags) <= {"table", "thead", "tbody", "tr", "th", "td"}
    shown = [unescape(cell) for cell in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", html, re.S)]
    assert [" ".join(cell.split()) for cell in shown] == [
        " ".join(cell.split()) for cell in ("x" + text, "n", "y" + text, "1.5", "z", "2.0")
    ]


@pytest.mark.parametrize("dtype", ["string", "boolean", "Int64", "datetime64[us]", object])
def test_a_value_of_any_type_may_be_missing(dtype):
    frame = pd.DataFrame({"a": pd.Series([None, None], dtype=dtype)})
    assert ev.markdown(frame).splitlines()[2].strip("| ") == "–"


def test_markdown_of_a_matrix(mixed):
    pairs = ev.pairwise(mixed)
    won = pairs.assign(win=(pairs["outcome"] == "win").astype(int))
    counts = won.pivot_table(["win"], "row", "column", "sum", sort=False).rename_axis("bandit")
    head = ev.markdown(counts["win"][["LinTS", "BLTS", "UCB"]]).splitlines()[0]
    assert head.replace("|", " ").split() == ["bandit", "LinTS", "BLTS", "UCB"]
    assert "win LinTS" in ev.markdown(counts)


def spoil(column, value):
    def change(table):
        table = table.astype({column: "float64"})
        table.loc[7, column] = value
        return table

    return change


SPOILT = {
    r"lacks \['regret', 'optimal'\]": lambda table: table.drop(columns=["regret", "optimal"]),
    "empty": lambda table: table[:0],
    "regret is not finite in environment 'iris', bandit 'LinTS', rep": spoil("regret", np.nan),
    "reward is not finite": spoil("reward", np.inf),
    "t must be at least 1": spoil("t", 0),
    "column 'regret' .* wanted float64": lambda table: table.assign(regret="much"),
    "column 'optimal' .* wanted bool": lambda table: table.assign(optimal="False"),
    "two rows for the same checkpoint": lambda table: pd.concat([table, table[5:6]]),
    r"'iris' end at different rounds: LinTS \[200\], BLTS \[100\], UCB \[200\]": (
        lambda table: table[(table["bandit"] != "BLTS") | (table["t"] < 200)]
    ),
}


@pytest.mark.parametrize("message", SPOILT)
def test_bad_tables_are_named(mixed, message):
    table = SPOILT[message](mixed)
    for function in (ev.check, ev.summary, ev.curves, ev.first_optimal, ev.pairwise, ev.ranking):
        with pytest.raises(ValueError, match=message):
            function(table)


def test_other_bad_input(mixed):
    ragged = mixed[(mixed["bandit"] != "UCB") | (mixed["environment"] == "iris")]
    with pytest.raises(ValueError, match=r"'UCB' has not played \['synthetic', 'wine'\]"):
        ev.ranking(ragged)
    assert len(ev.pairwise(ragged)) == 6 + 2 + 2
    for level in (5, 1, 0, -0.5):
        with pytest.raises(ValueError, match="level must be"):
            ev.pairwise(mixed, level=level)


def test_tables_come_in_the_order_of_the_runs_which_stay_as_they_are(mixed):
    before = mixed.copy(deep=True)
    for table in (ev.summary(mixed), ev.curves(mixed), ev.first_optimal(mixed)):
        assert table["environment"].unique().tolist() == ["iris", "wine", "synthetic"]
        assert table["bandit"].unique().tolist() == ["LinTS", "BLTS", "UCB"]
    assert ev.pairwise(mixed)["row"].unique().tolist() == ["LinTS", "BLTS", "UCB"]
    ev.ranking(mixed)
    pd.testing.assert_frame_equal(mixed, before)


@pytest.mark.parametrize("wrong", ["regrett", "bandit"])
def test_differences_are_of_a_column_with_numbers(wrong):
    table = classified({"A": np.ones((1, 2)), "B": np.zeros((1, 2))}, 9)
    with pytest.raises(ValueError, match=f"column must be one of .*'regret'.*; got '{wrong}'"):
        ev.differences(table, [("A", "B")], wrong)


TEXTS = {
    "+1.2 ± 0.5": ev.within(1.25, 0.5, 1, sign=True),
    "3": ev.within(3.0, np.nan),
    "0 ± 0": ev.within(-0.2, 0.1),  # what is rounded to 0 has no sign
    "+0 ± 0": ev.within(-0.2, 0.1, sign=True),
    "+0.0 ± 0.2": ev.within(-0.001, 0.2, 1, sign=True),
    "–": ev.within(np.nan, 1.0),
    "1e+200 ± 3e+199": ev.within(1e200, 3e199),
    "3 ± ∞": ev.within(3.0, np.inf),
    "-1e+16": ev.within(-1e16, np.nan, sign=True),
}


def test_numbers_with_their_errors_are_never_lost_nor_endless():
    assert {text: text for text in TEXTS} == TEXTS
    assert ev.within(np.nan, np.nan) == "–"
