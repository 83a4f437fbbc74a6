"""A study is the same table whatever happens on the way: kills, processes, a cluster."""

import signal
import subprocess
import sys
import time
from dataclasses import replace

import joblib
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from bayesbandit.studies import smoothing, table1
from tests.cases import long_but

REPRODUCE = [
    sys.executable, "-m", "bayesbandit", "reproduce", "table1", "--quick", "--replications",
    "3", "--out",
]  # fmt: skip


def reproduced(folder):
    """The study's tables, whole."""
    subprocess.run([*REPRODUCE, folder], check=True, capture_output=True)
    made = folder / "table1-quick"
    return pd.read_csv(made / "table.csv"), (made / "table.md").read_text()


def kill_after(parts, folder):
    """SIGKILL once so many parts of the study are on disk, and not all of it is."""
    child = subprocess.Popen([*REPRODUCE, folder], stdout=subprocess.DEVNULL)
    kept = folder / "table1-quick" / "parts"
    deadline = time.monotonic() + 300
    while len(list(kept.glob("[!.]*.parquet"))) < parts and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert len(list(kept.glob("[!.]*.parquet"))) >= parts
    assert not (folder / "table1-quick" / "results.parquet").exists()


@pytest.mark.slow
def test_a_study_killed_twice_gives_the_table_of_one_left_alone(tmp_path):
    kill_after(1, tmp_path / "killed")
    kill_after(3, tmp_path / "killed")
    frame, text = reproduced(tmp_path / "killed")
    alone, said = reproduced(tmp_path / "alone")
    assert_frame_equal(frame, alone)
    assert text == said


@pytest.mark.slow
@pytest.mark.parametrize(
    "study", long_but([table1], [table1, smoothing]), ids=["table1", "smoothing"]
)
def test_processes_and_a_cluster_give_the_table_of_one_process(study):
    from distributed import Client, LocalCluster

    def table(jobs):
        small = replace(study.STUDY.small(), horizon=120)
        return small.table(small.experiment(replications=2).run(jobs, progress=False))

    one = table(1)
    assert_frame_equal(table(2), one)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert_frame_equal(table(-1), one)
