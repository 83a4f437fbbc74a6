"""A study is the same table whatever happens on the way: kills, processes, a cluster."""

import signal
import subprocess
import sys
import time
from dataclasses import replace

import joblib
import pytest
from pandas.testing import assert_frame_equal

from bayesbandit_studies import smoothing, table1
from tests.cases import long_but

RUN = "import sys; from tests.studies.test_resume import run; run(sys.argv[1])"


def small(study=table1):
    return replace(study.STUDY.small(), horizon=100)


def run(folder):
    """The study's table, with its results in a folder."""
    study = small()
    return study.table(study.experiment(replications=3).run(out=folder, progress=False))


def kill_after(parts, folder):
    """SIGKILL once so many runs of the study are on disk, and not all of it is."""
    child = subprocess.Popen([sys.executable, "-c", RUN, folder])
    kept = folder / "runs"
    deadline = time.monotonic() + 300
    while len(list(kept.glob("[!.]*.parquet"))) < parts and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert len(list(kept.glob("[!.]*.parquet"))) >= parts
    assert not (folder / "results.parquet").exists()


@pytest.mark.slow
def test_a_study_killed_twice_gives_the_table_of_one_left_alone(tmp_path):
    kill_after(1, tmp_path / "killed")
    kill_after(3, tmp_path / "killed")
    assert_frame_equal(run(tmp_path / "killed"), run(tmp_path / "alone"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "study", long_but([table1], [table1, smoothing]), ids=["table1", "smoothing"]
)
def test_processes_and_a_cluster_give_the_table_of_one_process(study):
    from distributed import Client, LocalCluster

    def table(jobs):
        made = small(study)
        return made.table(made.experiment(replications=2).run(jobs, progress=False))

    one = table(1)
    assert_frame_equal(table(2), one)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert_frame_equal(table(-1), one)
