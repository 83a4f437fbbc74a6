"""A study is the same table in one process, in several and on a cluster."""

from dataclasses import replace

import joblib
import pytest
from pandas.testing import assert_frame_equal

from bayesbandit_studies import smoothing, table1
from tests.cases import long_but


def small(study=table1):
    return replace(study.STUDY.small(), horizon=100)


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
