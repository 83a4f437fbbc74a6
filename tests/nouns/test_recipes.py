"""The recipes of CONTRIBUTING: short, and run as they are."""

import ast
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

import bayesbandit as bb
from bayesbandit.declaring import gallery
from bayesbandit.runtime import plugins
from tests.nouns import RECIPE, RECIPES

LINES = {"policy": 15, "balance": 25, "belief": 40, "player": 40, "engine": 25, "study": 25}


@pytest.mark.parametrize("name", LINES)
def test_it_is_short(name):
    text = (RECIPES / f"{name}.py").read_text()
    tree = ast.parse(text)
    written = {n.lineno for n in ast.walk(tree) if isinstance(n, ast.stmt) and not _is_said(n)}
    assert len(written) <= LINES[name]
    assert f"recipes/{name}.py" in (RECIPES.parent / "CONTRIBUTING.md").read_text()


def _is_said(node):
    return isinstance(node, ast.Import | ast.ImportFrom) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def test_the_study_runs():
    study = replace(RECIPE["study"].STUDY.small(), horizon=50)
    results = study.experiment().run(progress=False)
    table = study.printed(study.table(results))
    assert table["bandit"].tolist() == list(study.players)
    assert set(study.figures(results)) == {"regret"}


@pytest.mark.slow
def test_what_packages_offer_is_found(monkeypatch, tmp_path):
    """Players, studies and models by their entry points."""
    (tmp_path / "offered.py").write_text(
        "import bayesbandit as bb, pymc as pm\n"
        "from recipes_player import Neighbours\n"
        "@bb.reward_model()\ndef offered(x, reward):\n"
        "    pm.Normal('reward', x[:, 0], 1.0, observed=reward)\n    return x[:, 0]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    points = {
        "players": EntryPoint("Near", "offered:Neighbours", "bayesbandit.players"),
        "studies": EntryPoint("floors", "recipes_study:STUDY", "bayesbandit_studies"),
        "models": EntryPoint("offered", "offered:offered", "bayesbandit.models"),
    }
    monkeypatch.setattr(plugins, "entry_points", lambda group: [points[group.split(".")[1]]])
    assert bb.list_models()["offered"] == "from offered:offered"
    assert bb.load_model("offered").name == "offered"
    assert isinstance(gallery.load("offered"), bb.RewardModel)
    from typer.testing import CliRunner

    from bayesbandit.cli.app import app

    out = ["--out", str(tmp_path), "--replications", "1"]
    run = CliRunner().invoke(app, ["compare", "--data", "iris", "--bandit", "Near(k=2)", *out])
    assert run.exit_code == 0, run.output
    run = CliRunner().invoke(app, ["reproduce", "floors", "--quick", *out])
    assert run.exit_code == 0, run.output
    run = CliRunner().invoke(app, ["compare", "--bandit", "Nobody", *out])
    assert ", Near; " in " ".join(run.output.split())  # the last of those that there are


def test_the_small_version_changes_fields_of_a_study():
    study = replace(RECIPE["study"].STUDY, quick={"horizon": 7})
    assert study.small() == replace(study, horizon=7)
    with pytest.raises(TypeError, match="nobody"):
        replace(study, quick={"nobody": 1}).small()
