"""The recipes of CONTRIBUTING: short, and run as they are."""

import ast
from dataclasses import replace

import pytest

import bayesbandit as bb
from tests.nouns import RECIPE, RECIPES
from tests.nouns.test_balances import BALANCES
from tests.nouns.test_beliefs import MODELS
from tests.nouns.test_policies import POLICIES

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


def test_they_are_among_those_that_are_held_to_the_laws():
    for found, kind in (
        (POLICIES, RECIPE["policy"].Annealed),
        (BALANCES, RECIPE["balance"].Tempered),
        (MODELS, RECIPE["belief"].Trees),
    ):
        assert any(isinstance(one, kind) for one in found.values())
    assert RECIPE["engine"].independence is not None
    assert "independence" in bb.engines.choices()


def test_the_study_runs():
    study = replace(RECIPE["study"].STUDY.small(), horizon=50)
    results = study.experiment().run(progress=False)
    table = study.printed(study.table(results))
    assert table["bandit"].tolist() == list(study.players)
    assert set(study.figures(results)) == {"regret"}


def test_the_small_version_changes_fields_of_a_study():
    study = replace(RECIPE["study"].STUDY, quick={"horizon": 7})
    assert study.small() == replace(study, horizon=7)
    with pytest.raises(TypeError, match="nobody"):
        replace(study, quick={"nobody": 1}).small()
