"""What a stranger does wrong is one sentence; it costs no work, and leaves nothing half written."""

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.experiments.experiment import Experiment
from tests.cases import few, in_gate, slow_but
from tests.commands import columns, run

OWN = """
import bayesbandit as bb
N = 3
READY = bb.LinTS(2, 1)
class Boom:
    def __init__(self, arms, n_features, seed=0, encoder=None):
        raise RuntimeError("boom")
class Play:
    def __init__(self, arms, n_features, seed=0, encoder=None, at=""):
        self.arms, self.n_features, self.at = tuple(arms), n_features, at
        self.fail("__init__")
    def fail(self, where):
        if self.at == where: raise KeyError("as arranged")
    def choose(self, x):
        self.fail("choose")
        return bb.Choice(self.arms[0])
    def observe(self, choice, reward):
        self.fail("observe")
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
    frame.to_parquet("log.parquet")
    frame.to_json("log.jsonl", orient="records", lines=True)
    frame[["age", "height"]].assign(label=frame["arm"]).to_csv("data.csv", index=False)
    for name, arms, d in (("five.npz", ["a", "b"], 5), ("others.npz", ["x", "y"], 2)):
        bb.LinTS(arms, d, seed=0).save(tmp_path / name)
    bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(frame[["age", "height"]])).save("encoded.npz")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 and no more")
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "raises.py").write_text("raise KeyError('at once')\n")
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(0)\n")
    return tmp_path


COMPARE = ["compare", "--data", "iris", "--replications", 1, "--horizon", 5]
CSV = ["compare", "--csv", "data.csv"]
LABEL = [*CSV, "--target", "label"]
EVALUATE = ["evaluate", "log.csv"]
TRAIN = ["train", "log.csv", "--out", "new.npz"]

# words of a command, and what its error says
FILES = [
    ([*EVALUATE, "--bandit", "five.npz"], "takes 5 numbers; the log has the contexts ['age'"),
    ([*TRAIN, "--bandit", "five.npz"], "takes 5 numbers; the log has the contexts ['age'"),
    (
        [*EVALUATE, "--bandit", "others.npz", *columns("context=age", "context=height")],
        "arms that the log has not: ['x', 'y']",
    ),
    ([*TRAIN, "--bandit", "others.npz", *columns("context=age", "context=height")], "unknown arm"),
    ([*TRAIN, "--bandit", "lost.npz"], "there is no file lost.npz"),
    ([*COMPARE, "--bandit", "lost.npz"], "there is no file lost.npz"),
    ([*EVALUATE, "--bandit", "broken.npz"], "broken.npz is not a saved bandit, or is broken"),
    (["compile", "--bandit", "broken.npz"], "is not a saved bandit, or is broken"),
    ([*COMPARE, "--bandit", "five.npz"], "five.npz is a saved bandit, and a new one is needed"),
    ([*COMPARE, "--bandit", "nowhere.py"], "there is no file"),
    ([*COMPARE, "--bandit", "raises.py:X"], "cannot be loaded: KeyError: 'at once'"),
    ([*COMPARE, "--bandit", "exits.py:X"], "cannot be loaded: SystemExit: 0"),
    ([*COMPARE, "--bandit", "own.py:Nobody"], "no object 'Nobody'; it has Boom, Play, fine"),
    ([*COMPARE, "--bandit", "own.py:N"], "must be a reward model, or a class or function"),
    ([*COMPARE, "--bandit", "own.py"], "own.py declares no reward model"),
    ([*EVALUATE, "--bandit", "own.py:Play"], "must be a bandit of the toolkit; it is a Play"),
    (["compare", "--csv", "nowhere.csv", "--target", "y"], "there is no file nowhere.csv"),
    (["evaluate", "nowhere.csv"], "there is no file"),
    (["compare", "--csv", "log.csv", "--target", "arm"], "`bayesbandit evaluate log.csv` says"),
    (["compare", "--data", "data.csv"], "--data data.csv is a file: --csv data.csv reads it"),
    ([*COMPARE, "--out", "log.csv"], "log.csv/compare cannot be written"),
    ([*EVALUATE, "--out", "log.csv"], "log.csv/evaluate cannot be written"),
    (["reproduce", "table1", "--quick", "--out", "log.csv"], "table1-quick cannot be written"),
    (["train", "log.csv", "--bandit", "LinTS", "--out", "no/b.npz"], "there is no folder"),
    (["train", "log.csv", "--bandit", "LinTS", "--out", "."], "it is a folder; name a file"),
    (["report", "--log", "sqlite:///none.db", "--out", "no/page.html"], "there is no folder"),
]
NAMES = [
    ([*COMPARE, "--bandit", "LinTs"], "unknown bandit 'LinTs'; there are BLTS, BLUCB"),
    ([*COMPARE, "--bandit", "horseshow"], "unknown bandit 'horseshow'"),
    ([*EVALUATE, "--bandit", "LinTZ"], "unknown bandit 'LinTZ'"),
    ([*EVALUATE, "--bandit", "yellow"], "unknown bandit 'yellow'"),
    (["compile", "--bandit", "Nobody"], "unknown bandit 'Nobody'"),
    ([*COMPARE, "--bandit", "LinTS", "--bandit", " LinTS"], "two bandits are named 'LinTS'"),
    ([*EVALUATE, "--bandit", "BLTS", "--bandit", " BLTS"], "two policies are named 'BLTS'"),
    (
        ["compare", "--data", "titanic"],
        "one of 'iris', 'wine', 'breast_cancer', 'digits'; got 'titanic'",
    ),
    (["reproduce", "table9"], "unknown study 'table9'; there are balancing,"),
    (["explain", "lasso"], "bayesian_lasso"),
]
SETTINGS = [
    ([*COMPARE, "--bandit", "LinTS(alpha)"], "settings must be named"),
    ([*COMPARE, "--bandit", "ridge(2)"], "settings must be named"),
    ([*COMPARE, "--bandit", "LinTS(alfa=1)"], "no setting 'alfa'; did you mean 'alpha'?"),
    ([*COMPARE, "--bandit", "ridge(beta=2)"], "setting 'beta'; there are alpha, engine, refit_ev"),
    ([*COMPARE, "--bandit", "LinTS(alpha=f())"], "must be a literal, as 0.5 or 'cv'; got f()"),
    ([*COMPARE, "--bandit", "ridge(alpha"], "cannot read"),
    ([*COMPARE, "--bandit", "BLTS(clip=0.1, clip=0.2)"], "repeated: clip"),
    ([*COMPARE, "--bandit", "BLTS(seed=3)"], "(seed=3): each replication has a seed of its own"),
    ([*COMPARE, "--jobs", "0"], "or -1 for all cores, must be an integer ≥ 1; got 0"),
    ([*COMPARE, "--tune"], "--tune needs two replications or more; got 1"),
    ([*EVALUATE, "--missing", "later"], "missing must be"),
    ([*COMPARE, "--sep", ";"], "--sep ; needs --csv"),
    ([*COMPARE, "--dates", ";"], "--dates ; needs --csv"),
    (["evaluate", "log.jsonl", "--sep", ";"], "sep=';' is for CSV files"),
    (["evaluate", "log.parquet", "--decimal", ","], "decimal=',' is for CSV files"),
    (["evaluate", "log.parquet", "--dates", "%d/%m/%Y"], "dates='%d/%m/%Y' is for CSV files"),
]
COLUMNS = [
    (["compare", "--csv", "nowhere.csv"], "--csv needs --target"),
    (["compare", "--target", "y"], "--target y needs --csv"),
    ([*CSV, "--target", "none"], "no single column 'none'; the columns are"),
    (CSV, "needs --target, the column to predict, or --column reward=NAME for each arm"),
    ([*CSV, *columns("reward=age")], "there must be two arms or more; got ['age']"),
    ([*CSV, *columns("reward=age", "reward=up")], "no single column 'up'; the columns are"),
    ([*CSV, *columns("reward=age", "x=height")], "is one of reward, drop, context; got 'x'"),
    ([*CSV, *columns("reward=age", "reward=label")], "column 'label' (reward) must be numbers; go"),
    ([*LABEL, *columns("drop=up")], "drop: there is no column 'up'; there are 'age', 'height'"),
    (["compare", *columns("drop=a")], "drop=a needs --csv or --openml, whose column it is"),
    ([*COMPARE, *columns("context=a")], "--column context=a needs --csv or --openml"),
    ([*EVALUATE, *columns("arm=nothing")], "has no column 'nothing' (arm)"),
    ([*EVALUATE, *columns("x=site")], "a role is one of arm, reward, propensity"),
    ([*EVALUATE, *columns("keep=age")], "a role is one of"),
    ([*EVALUATE, *columns("arm=arm", "arm=age")], "each role once; got arm=arm, arm=age"),
    ([*EVALUATE, *columns("probability:a=x", "probability:a=y")], "each role once; got probabilit"),
    ([*EVALUATE, *columns("probability:a")], "takes ROLE=NAME, as reward=clicked; got 'probabili"),
    (["evaluate", "data.csv"], "no column that is recognised as arm"),
    ([*TRAIN, "--bandit", "encoded.npz", *columns("drop=age")], "the bandit's encoder says"),
]  # fmt: skip


MISTAKES = [*FILES, *NAMES, *SETTINGS, *COLUMNS]


@pytest.mark.parametrize(("words", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
@few(
    *("five.npz is a saved", "nowhere.csv", "no object", "exits", "cannot be written"),
    *("LinTZ", "table9", "lasso", "alfa", "named", "repeated", "--tune", "--sep ;"),
    *("is for CSV", "--target y", "up", "x0", "takes ROLE", "label"),
)
@in_gate(99)
def test_a_mistake_is_one_sentence_and_leaves_nothing(here, monkeypatch, words, said):
    monkeypatch.setenv("BAYESBANDIT_API_KEY", "a key that only the tests know")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.suffix != ".pyc"}
    found = run(*words)
    assert found.exit_code == 2, found.output
    assert said in found.said
    assert found.stderr.count("Error: ") == 1 + said.count("Error: ")
    assert "Error: " not in found.stdout
    after = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    assert {k: v for k, v in after.items() if k.suffix != ".pyc"} == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (TRAIN, "Missing option '--bandit'"),
        (["learn"], "Missing option '--log'"),
        ([*TRAIN, "--bandit", "BLTS", "--once"], "No such option: --once"),
    ],
)
def test_a_word_too_few_or_too_many_is_named(here, words, said):
    found = run(*words)
    assert found.exit_code == 2
    assert said in found.said


@pytest.mark.parametrize("words", [EVALUATE, TRAIN])
def test_columns_are_those_that_a_bandit_without_an_encoder_learned(here, words):
    """By position a file with its columns in another order was judged and learned by wrong ones."""
    log = pd.read_csv("log.csv")
    saved = bb.LinTS(["a", "b"], 2, seed=0)
    log["reward"] = log["age"] * (log["arm"] == "a")
    saved.update(log[["age", "height"]].to_numpy()[:99], log["arm"][:99], log["reward"][:99])
    saved.save("two.npz")

    def result(order, *named):
        frame = log[["arm", "reward", "propensity", *order]]
        numbered = {"age": "x0", "height": "x1"}
        frame = frame if named else frame.rename(columns=numbered)
        frame.to_csv("log.csv", index=False)
        found = run(*words, "--bandit", "two.npz", *columns(*(f"context={c}" for c in named)))
        assert found.exit_code == 0, found.output
        if words is TRAIN:
            return bb.Bandit.load("new.npz").predict([[1.0, 0.0]]).mean
        table = pd.read_parquet("runs/evaluate/results.parquet").set_index("policy")
        return table.loc["two.npz", "estimate"]

    expected = result(["age", "height"])
    np.testing.assert_allclose(result(["height", "age"]), expected)
    np.testing.assert_allclose(result(["height", "age"], "age", "height"), expected)
    log.to_csv("log.csv", index=False)
    found = run(*words, "--bandit", "two.npz")
    assert found.exit_code == 2
    assert "the log has the contexts ['age', 'height']: name a column for each" in found.said


@pytest.mark.parametrize("words", [EVALUATE, TRAIN, ["compile"]])
def test_an_error_in_a_class_of_a_file_names_it(here, words):
    found = run(*words, "--bandit", "own.py:Boom")
    assert found.exit_code == 1
    assert "Boom cannot be made: RuntimeError: boom (line 7 of " in found.said
    assert not (here / "runs").exists()
    assert not (here / "new.npz").exists()


@pytest.mark.parametrize("jobs", slow_but([1], [1, 2]))
@pytest.mark.parametrize("at", ["__init__", "choose", "observe"])
def test_an_error_in_a_players_own_code_is_one_line(here, at, jobs):
    name = f"Play(at={at!r})"
    found = run(*COMPARE, "--horizon", 40, "--bandit", f"own.py:{name}", "--jobs", jobs)
    assert found.exit_code == 1, found.output
    assert f"{name} on iris" in found.said
    assert "KeyError: 'as arranged' (line 13 of " in found.said
    assert isinstance(found.exception, SystemExit)


@pytest.mark.parametrize("words", [EVALUATE, TRAIN])
def test_a_function_of_a_file_that_returns_a_bandit_is_judged_and_trained(here, words):
    found = run(*words, "--bandit", "own.py:fine(alpha=0.5)")
    assert found.exit_code == 0, found.output
    if words is TRAIN:
        assert bb.Bandit.load("new.npz").policy == bb.Thompson(0.5)


@pytest.mark.slow
def test_a_model_is_trained_and_judged_by_its_name(here):
    found = run(*TRAIN, "--bandit", "ridge_known_noise(alpha=0.5)")
    assert found.exit_code == 0, found.output
    learned = bb.Bandit.load("new.npz")
    assert learned.model.name == "ridge_known_noise"
    assert learned.encoder.columns == ("age", "height")
    found = run(*EVALUATE, "--bandit", "ridge_known_noise(alpha=0.5)")
    assert found.exit_code == 0, found.output
    table = pd.read_parquet("runs/evaluate/results.parquet").set_index("policy")
    assert np.isfinite(table.loc["ridge_known_noise(alpha=0.5)", "low"])


@pytest.mark.parametrize("words", [COMPARE, EVALUATE, [*TRAIN, "--bandit", "LinTS"]])
def test_ctrl_c_is_one_word(here, monkeypatch, words):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Experiment, "run", interrupted)
    monkeypatch.setattr("bayesbandit.ope.evaluate", interrupted)
    monkeypatch.setattr("bayesbandit.scale.learning.learn", interrupted)
    found = run(*words)
    assert found.exit_code == 130
    assert found.said.endswith("Interrupted.")
    assert not (here / "runs").exists()
    assert not (here / "new.npz").exists()
