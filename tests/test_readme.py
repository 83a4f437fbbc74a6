"""What the README shows works as written."""

import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from tests.cases import slow_but

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)


def test_a_bandit_in_your_code():
    names = {}
    exec(BLOCKS[0], names)
    assert names["decision"].arm == "red"
    assert 0.85 < names["decision"].propensity <= 0.9 + 1e-12  # a minimum of .05 for two others
    history = names["bandit"].history
    assert len(history) == 500
    assert history.propensity.min() > 0.05 - 1e-12  # or its log would not be worth evaluating


def test_the_policys_signature_is_the_one_that_is_called():
    (shown,) = re.findall(r"any object with `probabilities\((.*?)\)`", README.read_text())
    assert shown.split(", ") == [*inspect.signature(bb.Thompson.probabilities).parameters][1:]


@pytest.mark.parametrize("jobs", slow_but([1], [1, 2]))
def test_an_experiment(jobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(60, 2))
    pd.DataFrame(x).assign(label=x[:, 0] > 0).to_csv("mine.csv", index=False)
    names = {}
    shown = BLOCKS[1].replace("replications=20", "horizon=50").replace("jobs=2", f"jobs={jobs}")
    exec("import bayesbandit as bb\n" + shown, names)
    assert set(names["table"]["environment"]) == {"synthetic-well", "mine"}
    assert (tmp_path / "regret.png").exists()
    assert (tmp_path / "runs" / "mine" / "results.parquet").exists()


def test_a_declared_model(capsys):
    names = {"__name__": "readme"}
    exec("import bayesbandit as bb, numpy as np\n" + BLOCKS[2], names)
    assert names["posterior"].engine == "exact_gaussian"
    shown = README.read_text().split("    mine: gibbs\n")[1].splitlines()[0].strip()
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize("link", re.findall(r"\]\((?!https?:)([^)]+)\)", README.read_text()))
def test_links_lead_somewhere(link):
    assert (README.parent / link).exists()
