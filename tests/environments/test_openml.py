"""Data sets from OpenML, whose server is not asked."""

from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from bayesbandit.environments import Classification, from_frame, openml
from tests.environments.test_datasets import TABLE, same


@pytest.fixture
def server(monkeypatch):
    """Stands in for OpenML: records what is asked and returns, or raises, what is set."""
    asked = []

    def answer(reply):
        def fetch(**request):
            asked.append(request)
            if isinstance(reply, Exception):
                raise reply
            return reply

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        return asked

    return answer


def test_openml_by_name_and_id(server):
    y = TABLE["kind"].astype("category")
    asked = server(Bunch(data=TABLE[["size", "shape"]], target=y, details={"name": "toy"}))
    assert [openml(key).name for key in ("toy", 31, "31")] == ["toy", "toy (31)", "toy (31)"]
    assert asked == [
        {"name": "toy", "as_frame": "auto"},
        {"data_id": 31, "as_frame": "auto"},
        {"data_id": 31, "as_frame": "auto"},
    ]
    same(openml("toy"), from_frame(TABLE, "kind"))


def test_openml_drops_rows_without_a_label(server):
    y = pd.Series(["a", None, "b", "a"], dtype="category")
    server(Bunch(data=TABLE[["size"]], target=y, details={"name": "toy"}))
    with pytest.warns(UserWarning, match="toy: dropped 1 of 4 rows"):
        assert len(openml("toy").x) == 3


def test_openml_sparse(server):
    from scipy.sparse import csr_matrix

    y = pd.Series(list("abab"))
    server(Bunch(data=csr_matrix(np.eye(4)), target=y, details={"name": "toy"}))
    same(openml("toy"), Classification(np.eye(4), y, "toy"))


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (URLError("offline"), ConnectionError, "'toy' could not be fetched: .*offline"),
        (TimeoutError("slow"), ConnectionError, "'toy' could not be fetched: slow"),
        (ValueError("No active dataset toy found."), ValueError, "'toy': No active dataset"),
        (Bunch(data=TABLE, target=None, details={}), ValueError, "does not have one target"),
        (Bunch(data=TABLE, target=TABLE, details={}), ValueError, "does not have one target"),
    ],
)
def test_openml_errors(server, reply, error, message):
    server(reply)
    with pytest.raises(error, match=f"OpenML data set {message}" if "'" in message else message):
        openml("toy")
