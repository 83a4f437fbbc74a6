"""A Dask cluster of processes: workers that are killed, and samples of partitions."""

import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.tables import samples
from tests.scale.test_learn import log, same, whole

PARTS = 24


def loaded(number, folder):
    """A part of a log, which takes a while and leaves a trace."""
    open(os.path.join(folder, f"{number}-{time.time_ns()}"), "w").close()
    time.sleep(0.15)
    return log(number, 200)


@pytest.mark.slow
def test_a_lost_worker_costs_what_it_held(tmp_path):
    distributed = pytest.importorskip("distributed")
    import dask.dataframe as dd

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        read = partial(loaded, folder=str(tmp_path))
        frame = dd.from_map(read, range(PARTS), meta=log(0, 2))

        def kill():
            while len(os.listdir(tmp_path)) < PARTS // 2:
                time.sleep(0.01)
            os.kill(cluster.workers[0].pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        bandit = bb.Bandit(("a", "b", "c"), bb.Ridge(), bb.Thompson(), n_features=2)
        learned = bb.learn(frame, bandit)
        killer.join()
        time.sleep(0.1)
        again = bb.learn(frame, bandit)
    same(learned, whole(pd.concat([log(i, 200) for i in range(PARTS)]), bb.Ridge()))
    assert learned.belief.arms.tobytes() == again.belief.arms.tobytes()
    loads = len(os.listdir(tmp_path)) - PARTS
    assert PARTS < loads <= PARTS + PARTS // 2 + 3, loads  # what the worker held is read again


@pytest.mark.slow
def test_an_encoder_learns_a_sample_of_a_table_on_a_cluster(monkeypatch):
    dd = pytest.importorskip("dask.dataframe")
    table = log(0, 2000)[["u", "arm"]]
    frame = dd.from_pandas(table, npartitions=20)
    assert bb.Encoder.fit(frame) == bb.Encoder.fit(table)
    monkeypatch.setattr(samples, "MAX_SAMPLE_ROWS", 500)
    rows = samples.sample(frame)
    assert len(rows) == 500
    pd.testing.assert_frame_equal(rows, samples.sample(frame))
    assert rows["u"].isin(table["u"]).all()
    assert rows["u"].is_unique
    error = table["u"].std() / np.sqrt(500)
    assert abs(rows["u"].mean() - table["u"].mean()) < 4 * error
    assert bb.Encoder.fit(frame).features == bb.Encoder.fit(table).features
