"""What a stranger does wrong is one sentence; it costs no work, and leaves nothing half written."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayesbandit as bb
from bayesbandit.cli.app import app
from bayesbandit.experiments.experiment import Experiment

OWN = """
import bayesbandit as bb
N = 3
READY = bb.LinTS(2, 1)
class Boom:
    def __init__(self, arms, n_features, seed=0, encoder=None):
        raise RuntimeError("boom")
class Play:
    def __init__(self, arms, n_features, seed=0, encoder=None):
        self.arms, self.n_features = tuple(arms), n_features
    def choose(self, x):
        raise KeyError("not yet")
    def observe(self, choice, reward):
        pass
def fine(arms, n_features, seed=0, **settings):
    return bb.LinTS(arms, n_features, seed=seed, **settings)
"""


@pytest.fixture
def here(tmp_path, monkeypatch, rng):
    """A folder with a log, a data set, files of bandits, and files that are none."""
    monkeypatch.chdir(tmp_path)
    n = 200
    frame = pd.DataFrame(
        {
            "arm": rng.choice(["a", "b"], n),
            "reward": rng.integers(2, size=n).astype(float),
            "propensity": 0.5,
            "age": rng.normal(size=n),
            "height": rng.normal(size=n),
        }
    )
    frame.to_csv("log.csv", index=False)
    frame[["age", "height"]].assign(label=frame["arm"]).to_csv("data.csv", index=False)
    for name, arms, d in (("five.npz", ["a", "b"], 5), ("others.npz", ["x", "y"], 2)):
        bb.LinTS(arms, d, seed=0).save(tmp_path / name)
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 and no more")
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "raises.py").write_text("raise KeyError('at once')\n")
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(0)\n")
    return tmp_path


def run(*words):
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert "Traceback" not in found.output
    return found, " ".join(found.output.split())


COMPARE = ["compare", "--data", "iris", "--replications", 1, "--horizon", 5]
EVALUATE = ["evaluate", "log.csv"]
TRAIN = ["train", "log.csv", "--out", "new.npz"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*EVALUATE, "--bandit", "five.npz"], "takes 5 numbers; the log has the contexts ['age'"),
        ([*TRAIN, "--bandit", "five.npz"], "takes 5 numbers; the log has the contexts ['age'"),
        ([*EVALUATE, "--bandit", "others.npz"], "arms that the log has not: ['x', 'y']"),
        ([*TRAIN, "--bandit", "others.npz"], "unknown arm"),
        ([*EVALUATE, "--bandit", "broken.npz"], "broken.npz is not a saved bandit, or is broken"),
        ([*TRAIN, "--bandit", "broken.npz"], "broken.npz is not a saved bandit, or is broken"),
        (["compile", "--bandit", "broken.npz"], "is not a saved bandit, or is broken"),
        ([*COMPARE, "--bandit", "five.npz"], "five.npz is a saved bandit, and a new one is needed"),
        ([*COMPARE, "--bandit", "raises.py:X"], "cannot be loaded: KeyError: 'at once'"),
        ([*COMPARE, "--bandit", "exits.py:X"], "cannot be loaded: SystemExit: 0"),
        ([*EVALUATE, "--bandit", "exits.py:X"], "cannot be loaded: SystemExit: 0"),
        ([*COMPARE, "--bandit", "own.py:Nobody"], "no object 'Nobody'; it has Boom, Play, fine"),
        ([*COMPARE, "--bandit", "own.py:N"], "must be a reward model, or a class or function"),
        ([*COMPARE, "--bandit", "own.py:READY"], "must be a reward model, or a class or function"),
        ([*COMPARE, "--bandit", "own.py"], "own.py declares no reward model"),
        ([*COMPARE, "--bandit", "LinTS", "--bandit", " LinTS"], "two bandits are named 'LinTS'"),
        ([*EVALUATE, "--bandit", "BLTS", "--bandit", " BLTS"], "two policies are named 'BLTS'"),
        ([*EVALUATE, "--bandit", "own.py:Play"], "must be a bandit of the toolkit; it is a Play"),
        ([*TRAIN, "--bandit", "own.py:Play"], "must be a bandit of the toolkit; it is a Play"),
        (["compare", "--csv", "log.csv", "--target", "arm"], "`bayesbandit evaluate log.csv` says"),
        (["compare", "--data", "data.csv"], "--data data.csv is a file: --csv data.csv reads it"),
        (["compare", "--csv", "data.csv", "--target", "none"], "got 'none', and the columns are"),
        ([*COMPARE, "--out", "log.csv"], "log.csv/compare cannot be written"),
        ([*EVALUATE, "--out", "log.csv"], "log.csv/evaluate cannot be written"),
        (["reproduce", "table1", "--quick", "--out", "log.csv"], "table1-quick cannot be written"),
        (["train", "log.csv", "--bandit", "LinTS", "--out", "no/b.npz"], "there is no folder"),
        (["train", "log.csv", "--bandit", "LinTS", "--out", "."], "it is a folder; name a file"),
        (["report", "--log", "sqlite:///none.db", "--out", "no/page.html"], "there is no folder"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_leaves_nothing(here, monkeypatch, words, said):
    monkeypatch.setenv("BAYESBANDIT_API_KEY", "a key that only the tests know")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.suffix != ".pyc"}
    found, output = run(*words)
    assert found.exit_code == 2, output
    assert said in output
    assert output.count("Error: ") == 1 + said.count("Error: ")
    after = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    assert {k: v for k, v in after.items() if k.suffix != ".pyc"} == before


def test_a_server_of_no_saved_bandit_leaves_nothing(here, monkeypatch):
    pytest.importorskip("uvicorn")
    words = ["serve", "--log", "sqlite:///new.db", "--bandit", "LinTS"]
    test_a_mistake_is_one_sentence_and_leaves_nothing(
        here, monkeypatch, words, "no saved bandit at LinTS"
    )


@pytest.mark.parametrize("words", [EVALUATE, TRAIN, ["compile"]])
def test_an_error_in_a_class_of_a_file_names_it(here, words):
    found, output = run(*words, "--bandit", "own.py:Boom")
    assert found.exit_code == 1
    assert "Boom cannot be made: RuntimeError: boom (line 7 of " in output
    assert not (here / "runs").exists()
    assert not (here / "new.npz").exists()


@pytest.mark.parametrize("words", [EVALUATE, TRAIN])
def test_a_function_of_a_file_that_returns_a_bandit_is_judged_and_trained(here, words):
    found, output = run(*words, "--bandit", "own.py:fine(alpha=0.5)")
    assert found.exit_code == 0, output
    if words is TRAIN:
        assert bb.Bandit.load("new.npz").policy == bb.Thompson(0.5)


def test_a_model_is_trained_and_judged_by_its_name(here):
    found, output = run(*TRAIN, "--bandit", "ridge_known_noise(alpha=0.5)")
    assert found.exit_code == 0, output
    learned = bb.Bandit.load("new.npz")
    assert learned.model.name == "ridge_known_noise"
    assert learned.encoder.columns == ("age", "height")
    found, output = run(*EVALUATE, "--bandit", "ridge_known_noise(alpha=0.5)")
    assert found.exit_code == 0, output
    table = pd.read_parquet("runs/evaluate/results.parquet").set_index("policy")
    assert np.isfinite(table.loc["ridge_known_noise(alpha=0.5)", "low"])


@pytest.mark.parametrize("words", [COMPARE, EVALUATE, [*TRAIN, "--bandit", "LinTS"]])
def test_ctrl_c_is_one_word(here, monkeypatch, words):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Experiment, "run", interrupted)
    monkeypatch.setattr("bayesbandit.ope.evaluate", interrupted)
    monkeypatch.setattr("bayesbandit.scale.learning.learn", interrupted)
    found, output = run(*words)
    assert found.exit_code == 130
    assert output.endswith("Interrupted.")
    assert not (here / "runs").exists()
    assert not (here / "new.npz").exists()
