"""What the README shows works as written."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import bayesbandit as bb

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)
MAX_LINES, MAX_WORDS = 120, 1_000


def test_it_is_read_in_five_minutes():
    text = README.read_text()
    assert len(text.splitlines()) <= MAX_LINES
    assert len(text.split()) <= MAX_WORDS


def test_a_bandit_in_your_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(BLOCKS[0], names)
    assert names["decision"].arm == "red"
    assert bb.Bandit.load("colours.npz").arms == names["bandit"].arms
    assert 0.85 < names["decision"].propensity <= 0.9 + 1e-12  # a minimum of .05 for two others
    history = names["bandit"].history
    assert len(history) == 500
    assert history.propensity.min() > 0.05 - 1e-12  # or its log would not be worth evaluating


def test_the_policys_signature_is_the_one_that_is_called():
    tasks = (ROOT / "docs/tasks.md").read_text()
    (shown,) = re.findall(r"any object with `probabilities\((.*?)\)`", tasks)
    assert shown.split(", ") == [*inspect.signature(bb.Thompson.probabilities).parameters][1:]


def test_a_declared_model(capsys):
    names = {"__name__": "readme"}
    exec("import bayesbandit as bb\n" + BLOCKS[1], names)
    assert 0 < names["decision"].propensity < 1
    shown = README.read_text().split("    mine: gibbs\n")[1].splitlines()[0].strip()
    assert shown in capsys.readouterr().out


WHICH = (ROOT / "docs/which.md").read_text()


@pytest.mark.parametrize("line", [c for c in re.findall(r"`(bb\.[^`]*\))`", WHICH) if "…" not in c])
def test_the_bandits_that_are_advised_decide(line):
    bandit = eval(line, {"bb": bb, "arms": ["a", "b"], "d": 3})
    x = np.zeros((2, 3)) if bandit.of_arms else np.zeros(3)
    assert bandit.choose(x).arm in bandit.arms
