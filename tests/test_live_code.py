"""A run is of one code: what changes while it goes stops it, and its results are of one kind.
The bar of an experiment counts runs, those of an earlier run included, and changes nothing."""

import importlib
import os
import sys

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from pandas.testing import assert_frame_equal

import bayesbandit as bb
from bayesbandit.cli.bandits import parse_bandit
from bayesbandit.experiments import experiment as runner

IRIS = bb.environments.bundled("iris")
PLAYER = """
import bayesbandit as bb

class P:
    def __init__(self, arms, n_features, seed=0):
        self.arms, self.n_features = tuple(arms), n_features
    def choose(self, x):
        return bb.Choice(self.arms[{arm}], 1.0)
    def observe(self, choice, reward):
        pass
def player(arms, n_features, seed=0):
    {twice}
    return P(arms, n_features)
"""


def write(file, arm, twice=""):
    file.write_text(PLAYER.format(arm=arm, twice=twice))


def run(file, out, name="P", jobs=1):
    players = dict([parse_bandit(f"{file}:{name}")])
    return bb.Experiment([IRIS], players, 20, 4, points=5).run(jobs, out, progress=False)


def after(units, change, monkeypatch):
    """Let something happen once so many units of work have begun in this process."""
    begun, play_unit = [], runner.play_unit

    def counted(*unit, **settings):
        begun.append(unit)
        if len(begun) == units + 1:
            change()
        return play_unit(*unit, **settings)

    monkeypatch.setattr(runner, "play_unit", counted)


def test_a_file_that_changes_stops_the_run(tmp_path, monkeypatch):
    """What was finished before is of the old code alone; with it, the run goes on."""
    file, out = tmp_path / "mine.py", tmp_path / "out"
    write(file, 0)
    table = run(file, None)
    after(2, lambda: write(file, 1), monkeypatch)
    with pytest.raises(ValueError, match=r"mine\.py changed while the run .*: start it again"):
        run(file, out)
    monkeypatch.undo()
    assert len(list((out / "runs").glob("*.parquet"))) == 2
    assert not run(file, out).equals(table)
    write(file, 0)
    begun = []
    after(1, lambda: begun.append(0), monkeypatch)
    assert_frame_equal(run(file, out), table)
    assert begun == [0]  # two of four were there, and were not played again


def test_a_factorys_own_body_counts(tmp_path, monkeypatch):
    """What it gives is the same where a player is only described."""
    file, out = tmp_path / "mine.py", tmp_path / "out"
    write(file, 0)
    run(file, out, "player")
    write(file, 0, twice="n_features + 0")
    begun = []
    after(0, lambda: begun.append(0), monkeypatch)
    run(file, out, "player")
    assert begun


@pytest.mark.slow
def test_workers_that_are_behind_stop_the_run(tmp_path, monkeypatch):
    """Processes go on from one run to the next, and with them what they have loaded."""
    monkeypatch.syspath_prepend(tmp_path)
    library = tmp_path / "fp_kept.py"
    write(library, 0)
    get_reusable_executor().shutdown(wait=True)  # those of other tests do not find the module
    try:
        kept = importlib.import_module("fp_kept")
        experiment = bb.Experiment([IRIS], {"P": kept.P}, 20, 4, points=5)
        os.environ["PYTHONPATH"] = str(tmp_path)
        first = experiment.run(2, progress=False)
        assert first["regret"].max() > 0
        library.write_text(library.read_text().replace("arms[0]", "arms[ 1 ]"))
        importlib.reload(kept)
        again = bb.Experiment([IRIS], {"P": kept.P}, 20, 4, points=5)
        with pytest.raises(ValueError, match=r"fp_kept\.py changed while the run was going"):
            again.run(2, progress=False)
    finally:
        get_reusable_executor().shutdown(wait=True)
        os.environ.pop("PYTHONPATH", None)
        sys.modules.pop("fp_kept", None)


def test_what_was_done_before_counts(tmp_path, capsys):
    for names in (["a"], ["a", "b"], ["a", "b"]):
        players = dict.fromkeys(names, bb.LinTS)
        bb.Experiment([IRIS], players, 20, 2).run(out=tmp_path)
        runs = 2 * len(names)
        assert f"{runs}/{runs}" in capsys.readouterr().err


def test_a_run_that_fails_shows_how_far_it_came(capsys):
    def fails(arms, n_features, seed):
        if isinstance(seed, np.random.SeedSequence):
            raise RuntimeError("no")
        return bb.LinTS(arms, n_features)

    with pytest.raises(RuntimeError, match="no"):
        bb.Experiment([IRIS], {"fails": fails}, 20, 2).run()
    assert "0/2" in capsys.readouterr().err


@pytest.mark.slow
def test_two_jobs_move_it(capsys):
    bb.Experiment([IRIS], [bb.LinTS], 150, 4).run(jobs=2)
    assert "4/4" in capsys.readouterr().err
