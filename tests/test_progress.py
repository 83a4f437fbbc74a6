"""The bar of an experiment moves with the rounds, and changes nothing."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from pandas.testing import assert_frame_equal

import bayesbandit as bb
from bayesbandit.runtime import progress


class World:
    name, arms, n_features, fingerprint = "world", (0, 1), 1, "world"

    def sample(self, horizon, rng):
        mean = np.tile([1.0, 0.0], (horizon, 1))
        return bb.environments.Sample(np.zeros((horizon, 1)), mean, mean)


class Watcher:
    """Plays arm 0, and sees after each stretch of rounds how far the bar is by then."""

    arms, n_features = (0, 1), 1
    seen: list[float] = []  # noqa: RUF012

    def __init__(self, board):
        self.board = board

    def play(self, x, reward, every):
        self.seen.append(float(self.board[-1].done.sum()))
        return np.zeros(len(x), dtype=np.int64), np.ones(len(x))


@pytest.fixture
def boards(monkeypatch):
    made, board = [], progress._board

    def kept(n, file):
        made.append(board(n, file))
        return made[-1]

    monkeypatch.setattr(progress, "_board", kept)
    return made


def test_it_moves_by_rounds_within_a_run(boards):
    Watcher.seen = []
    players = {name: lambda *_, seed: Watcher(boards) for name in ("one", "two")}
    bb.Experiment([World()], players, 50, replications=2, points=10).run()
    seen = np.array(Watcher.seen)
    assert (np.diff(seen) >= 0.0).all()
    assert len(np.unique(seen)) > 20  # of four runs
    assert seen[0] == 0.0
    assert seen[-1] < 4.0
    assert boards[0].done.tolist() == [2.0, 2.0]
    assert not Path(boards[0].file).exists()


def test_what_was_done_before_counts(tmp_path, boards):
    both = {"a": bb.LinTS, "b": bb.LinGreedy}
    bb.Experiment([World()], {"a": bb.LinTS}, 20, 2).run(out=tmp_path)
    bb.Experiment([World()], both, 20, 2).run(out=tmp_path)
    assert [board.done.tolist() for board in boards] == [[1.0, 1.0], [1.0, 1.0]]
    bb.Experiment([World()], both, 20, 2).run(out=tmp_path)
    assert len(boards[2].done) == 0


def test_the_table_is_the_same(boards):
    experiment = bb.Experiment([bb.environments.bundled("iris")], [bb.LinTS, bb.BLTS], 40, 2)
    assert_frame_equal(experiment.run(), experiment.run(progress=False))
    assert len(boards) == 1


@pytest.mark.slow
def test_other_processes_tell_and_those_without_the_file_do_not(tmp_path):
    board = progress._board(3, tmp_path / "done")
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        pool.submit(_told, board.place(1), 0.25).result()
    assert board.done.tolist() == [0.0, 0.25, 0.0]
    progress.tell((str(tmp_path / "nowhere"), 1))(0.5)
    progress.tell((None, 1))(0.5)
    assert board.done.tolist() == [0.0, 0.25, 0.0]


def _told(place, much):
    progress.tell(place)(much)


def test_a_disk_that_takes_no_file_costs_the_bar_its_rounds_alone(tmp_path):
    board = progress._board(2, tmp_path / "no" / "folder")
    assert board.place(1) == (None, 1)
    board.done[1] = 1.0
    assert board.done.sum() == 1.0


@pytest.mark.slow
def test_two_jobs_move_it(boards):
    bb.Experiment([World()], [bb.LinTS], 2000, 4).run(jobs=2)
    assert boards[0].done.tolist() == [1.0] * 4
