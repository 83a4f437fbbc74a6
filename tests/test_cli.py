"""The command line, run as a user would."""

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit import evaluation
from bayesbandit.cli import output, reproduce, tuning
from bayesbandit.cli.bandits import DEFAULT_BANDITS, parse_bandit
from tests.commands import columns, run
from tests.tables.mixed import marketing

pytestmark = pytest.mark.usefixtures("files_for_pictures")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    data = ["--data", "iris", "--data", "wine"]
    return out, run("compare", *data, "--replications", 2, "--out", out)


@pytest.mark.slow
def test_compare_answers_the_question(compared):
    out, result = compared
    assert result.exit_code == 0, result.output
    folder = out / "compare"
    table = pd.read_parquet(folder / "results.parquet")
    evaluation.check(table)
    assert set(table["bandit"]) == set(DEFAULT_BANDITS)
    best = evaluation.ranking(table)["bandit"].iloc[0]
    said = result.said
    assert f"Best on this data: {best}," in said or f"no significant difference: {best}," in said
    for picture in ("regret", "differences"):
        assert (folder / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv(folder / "table.csv")) == 2 * len(DEFAULT_BANDITS)
    table = (folder / "table.md").read_text()
    assert "| LinTS" in table
    assert "## Beside the bandits: normalised regret" in table
    for name in ("(a random arm)", "(the best arm always)", "(full-information ridge)"):
        assert name in said
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert report.count("data:image/png;base64") == 2
    assert "Which bandit does best on iris, wine?" in report
    record = json.loads((folder / "run.json").read_text())
    assert record["settings"]["seed"] == 0
    assert "Thompson(alpha=1.0)" in record["settings"]["bandits"]["LinTS"]
    assert record["versions"]["bayesbandit"]


@pytest.mark.slow
def test_no_significant_difference_is_said_as_such(tmp_path):
    few = ["--data", "wine", "--replications", 2, "--horizon", 6, "--out", tmp_path]
    text = run("compare", *few, "--bandit", "LinTS", "--bandit", "LinUCB").output
    assert "no significant difference" in text
    assert "Best on this data" not in text
    assert "LinTS: mean reward" in run("compare", *few, "--bandit", "LinTS").output


@pytest.mark.parametrize("name", DEFAULT_BANDITS)
def test_settings_not_given_are_those_of_the_preset(name):
    label, factory = parse_bandit(name)
    assert label == name
    played, preset = factory(2, 1), getattr(bb, name)(2, 1)
    for part in ("model", "policy", "balance"):
        assert getattr(played, part) == getattr(preset, part)
    _, factory = parse_bandit(f"{name}(ridge=3.0)")
    assert factory(2, 1).model == dataclasses.replace(preset.model, ridge=3.0)


def test_without_the_papers_studies_a_sentence_says_how_to_get_them(monkeypatch, tmp_path):
    monkeypatch.setattr("bayesbandit.runtime.plugins.entry_points", lambda group: [])
    result = run("reproduce")
    assert result.exit_code == 0
    assert result.said == reproduce.PAPER_MISSING
    result = run("reproduce", "table1", "--out", tmp_path)
    assert result.exit_code == 2
    assert f"unknown study 'table1'. {reproduce.PAPER_MISSING}" in result.said


def test_a_column_has_the_same_digits_in_all_rows(capsys):
    output.show(
        pd.DataFrame({"z": [0.8, -15.8, np.inf], "n": [2, 3, 4], "k": ["a", None, "b"]}), ""
    )
    rows = [line.strip("│ ").split("│") for line in capsys.readouterr().out.splitlines()]
    cells = [[cell.strip() for cell in row] for row in rows if len(row) == 3]
    assert cells == [["0.8", "2", "a"], ["-15.8", "3", "–"], ["∞", "4", "b"]]


OWN = '''"""Mine."""
import pymc as pm

import bayesbandit as bb


@bb.reward_model(theta=bb.Prior("Laplace", mu=0, b=1, dims="feature"), base=0.5)
def mine(x, reward, weight, theta, base):
    mu = base + x @ theta
    pm.Normal("reward", mu, 0.4 / pm.math.sqrt(weight), observed=reward)
    return mu
'''


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    return path


@pytest.mark.slow
def test_a_model_of_ones_own_is_compared(own, tmp_path):
    """From a file outside the repository, with settings and without; the declaration is part of
    what a run is known by."""
    told = ["compare", "--data", "iris", "--bandit", "LinGreedy", "--replications", 1,
            "--horizon", 60, "--out", tmp_path]  # fmt: skip
    result = run(*told, "--bandit", own, "--bandit", f"{own}:mine(alpha=0.5, draws=50)")
    assert result.exit_code == 0, result.output
    table = pd.read_parquet(tmp_path / "compare" / "results.parquet")
    assert set(table["bandit"]) == {"LinGreedy", "mine", "mine(alpha=0.5, draws=50)"}
    own.write_text(OWN.replace("0.4", "0.3"))
    again = run(*told, "--bandit", own, "--bandit", f"{own}:mine(alpha=0.5, draws=50)")
    assert again.exit_code == 0, again.output
    kept = map(pd.read_parquet, (tmp_path / "compare" / "runs").iterdir())
    assert pd.concat(one[:1] for one in kept).groupby("bandit").size().tolist() == [1, 2, 2]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["[/b]", "x\\[/i]"])
def test_names_are_not_read_as_markup(name, tmp_path):
    """Of columns, classes, data sets and folders; they stand in the tables as they are."""
    rng, folder = np.random.default_rng(0), tmp_path / name.replace("/", "∕")
    file, x = tmp_path / f"{name.replace('/', '∕')}.csv", rng.normal(size=(60, 1))
    frame = pd.DataFrame({name: x[:, 0], f"{name} class": np.where(x[:, 0] > 0, name, "other")})
    frame.to_csv(file, index=False)
    told = ["compare", "--csv", file, "--target", f"{name} class", "--replications", 1,
            "--bandit", "LinGreedy", "--out", folder]  # fmt: skip
    result = run(*told)
    assert result.exit_code == 0, result.output
    text = "".join(result.output.split())
    assert "".join(file.stem.split()) in text
    assert "".join(folder.name.split()) in text
    missing = run(*told[:3], "--target", f"{name} gone")
    assert missing.exit_code == 2
    assert repr(f"{name} gone").replace(" ", "") in "".join(missing.output.split())


@pytest.mark.slow
def test_columns_and_what_became_of_them(tmp_path):
    """Identifiers and dates are left out with a warning, unless told otherwise; `table.md`."""
    labels = np.random.default_rng(0).choice(["u", "v"], 200)
    table = marketing()[["customer_id", "signup", "spend", "country"]].assign(label=labels)
    table.to_csv(tmp_path / "mine.csv", index=False)
    told = ["compare", "--csv", tmp_path / "mine.csv", "--target", "label", "--bandit", "LinGreedy",
            "--replications", 1, "--out", tmp_path]  # fmt: skip
    result = run(*told)
    assert result.exit_code == 0, result.output
    assert "UserWarning" not in result.stderr
    warned = " ".join(result.stderr.split())
    assert "mine: left out 'customer_id' (an identifier" in warned
    assert "'signup' (dates)" in warned
    assert "country=DE, country=FR, country=IT" in result.said
    text = " ".join((tmp_path / "compare" / "table.md").read_text().split())
    assert "| customer_id | left out | an identifier" in text
    assert "| country | levels | country=DE, country=FR, country=IT |" in text
    result = run(
        *told[:-1], tmp_path / "other", "--column", "drop=customer_id", "--column", "context=signup"
    )
    assert result.exit_code == 0, result.output
    assert "left out" not in result.stderr
    text = " ".join((tmp_path / "other" / "compare" / "table.md").read_text().split())
    assert "| customer_id | left out | dropped |" in text
    assert "| signup | date | signup |" in text


@pytest.fixture
def prices(tmp_path, rng):
    x = rng.normal(size=60)
    frame = pd.DataFrame(
        {"x": x, "left": 1 - x, "right": 1 + x, "label": rng.choice(["a", "b"], 60)}
    )
    frame.to_csv(tmp_path / "prices.csv", index=False)
    return tmp_path / "prices.csv"


@pytest.mark.slow
def test_compare_takes_rewards_of_every_arm(prices, tmp_path):
    play = ["compare", "--csv", prices, "--bandit", "LinTS", "--replications", 1]
    named = columns("drop=label", "reward=left", "reward=right")
    result = run(*play, *named, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    table = pd.read_parquet(tmp_path / "compare" / "results.parquet")
    assert table["reward"].iloc[-1] / 60 > 1.3  # right where x > 0


def test_compile_says_where_kernels_are():
    found = run("compile", "--bandit", "LinTS", "--bandit", "LinUCB(alpha=2.0)")
    assert found.exit_code == 0, found.output
    text = found.said
    assert "LinTS: " in text
    assert "LinUCB(alpha=2.0): " in text
    assert re.search(r"Compiled code is in /", text)


@pytest.mark.slow
def test_compile_fits_models(monkeypatch):
    """A few rewards only weight the draws of a model, and its sampler is not called."""
    fitted = []
    monkeypatch.setattr(bb.Bandit, "posterior", lambda self, arm: fitted.append(arm))
    found = run("compile", "--bandit", "LinTS", "--bandit", "laplace")
    assert found.exit_code == 0, found.output
    assert fitted == ["a"]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    out = tmp_path_factory.mktemp("tuned")
    bandits = ["--bandit", "LinTS(ridge=1.0)", "--bandit", "LinGreedy"]
    small = ["--data", "iris", "--data", "wine", "--horizon", 60, "--replications", 5]
    return out, run("compare", *small, *bandits, "--tune", "--out", out)


@pytest.mark.slow
def test_settings_are_chosen_on_one_half_and_shown_on_the_other(tuned):
    """The choice is the least mean regret of streams 0 and 1; the table has streams 2 to 4."""
    out, result = tuned
    assert result.exit_code == 0, result.output
    runs = pd.concat(map(pd.read_parquet, (out / "compare" / "runs").iterdir()), ignore_index=True)
    ends = evaluation.last(runs)
    first = ends[(ends["replication"] < 2) & (ends["environment"] == "wine")]
    for name, stem, tried in (("LinTS(ridge=1.0)", "LinTS(", 4), ("LinGreedy", "LinGreedy(", 3)):
        cells = first[first["bandit"].str.startswith(stem)].groupby("bandit")["regret"].mean()
        assert len(cells) == tried
        later = ends[(ends["bandit"] == cells.idxmin()) & (ends["environment"] == "wine")]
        later = later[later["replication"] >= 2]
        assert sorted(later["replication"]) == [2, 3, 4]
        table = pd.read_csv(out / "compare" / "table.csv").set_index(["bandit", "environment"])
        shown = table.loc[(name, "wine")]
        assert shown["replications"] == 3
        assert shown["normalised_regret"] == pytest.approx((later["regret"] / later["t"]).mean())
    said = (out / "compare" / "table.md").read_text()
    assert "Settings chosen on 2 of 5 streams" in said
    assert cells.idxmin() in said


def test_tuning_keeps_the_settings_that_are_given():
    assert len(tuning.grid("BLTS")) == 12
    assert list(tuning.grid("LinUCB(alpha=1, ridge=2.0)")) == ["LinUCB(alpha=1, ridge=2.0)"]
    assert list(tuning.grid("PolicyTreeTS")) == [
        f"PolicyTreeTS(alpha={alpha})" for alpha in (0.1, 0.25, 0.5, 1.0)
    ]


def test_a_spreadsheet_computes_nothing_in_a_table_that_is_written(tmp_path):
    """Texts that begin as a formula get an apostrophe; numbers, also negative ones, stay."""
    from bayesbandit.cli.output import without_formulas

    texts = ["=HYPERLINK(1)", "+1", "-a", "@x", "\t=1", "\r=1", "mail", "", "a=b", None, "-1"]
    mixed = [*texts[:3], *range(-4, 4)]
    table = pd.DataFrame({"=name": texts, "value": np.arange(11) - 5.0, "mixed": mixed})
    table["kind"] = pd.Categorical(texts)
    written = without_formulas(table)
    assert list(written) == ["'=name", "value", "mixed", "kind"]
    for column in ("'=name", "kind"):
        cells = [None if pd.isna(cell) else cell for cell in written[column]]
        assert cells == [*(f"'{text}" for text in texts[:6]), *texts[6:10], "'-1"]
    assert written["value"].equals(table["value"])
    assert written["mixed"].tolist() == ["'=HYPERLINK(1)", "'+1", "'-a", *range(-4, 4)]
    assert table["=name"][0] == "=HYPERLINK(1)"  # the table itself is as it was
