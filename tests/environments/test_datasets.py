"""Data sets from scikit-learn, frames, CSV, and OpenML, whose server is not asked."""

from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from bayesbandit.environments import Classification, bundled, from_csv, from_frame, openml
from tests.environments.test_laws import draw

TABLE = pd.DataFrame(
    {"size": [1.0, 2.5, 3.0, 4.0], "shape": ["o", "o", "x", "x"], "kind": ["b", "a", "b", "a"]}
)


def same(one, other):
    assert one.arms == other.arms
    np.testing.assert_array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.label, other.label)


def checked(environment):
    """The laws of a prepared data set."""
    sample = draw(environment)
    n, K = sample.reward.shape
    assert sample.x.shape == (n, environment.n_features)
    assert 1 <= environment.n_features <= 100
    assert np.isfinite(sample.x).all()
    np.testing.assert_allclose(sample.x.max(axis=0) > sample.x.min(axis=0), True)
    assert K == len(environment.arms) == len(set(environment.arms)) >= 2
    assert list(environment.arms) == sorted(environment.arms)
    np.testing.assert_array_equal(sample.reward.sum(axis=1), 1.0)
    assert (sample.reward.sum(axis=0) > 0).all()
    return n


@pytest.mark.parametrize(
    ("name", "n", "d", "arms"),
    [
        ("iris", 150, 4, ("setosa", "versicolor", "virginica")),
        ("wine", 178, 13, ("class_0", "class_1", "class_2")),
        ("breast_cancer", 569, 30, ("benign", "malignant")),
        ("digits", 1797, 61, tuple(range(10))),  # 3 of 64 pixels are always blank
    ],
)
def test_bundled(name, n, d, arms):
    environment = bundled(name)
    assert checked(environment) == n
    assert (environment.name, environment.arms, environment.n_features) == (name, arms, d)


def test_frame_and_csv_are_the_same_data(tmp_path):
    path = tmp_path / "toy.csv"
    TABLE.to_csv(path, index=False)
    frame, csv = from_frame(TABLE, "kind"), from_csv(path, "kind")
    assert (frame.name, csv.name) == ("kind", "toy")
    assert from_csv(str(path), "kind", name="mine").name == "mine"
    same(frame, csv)
    same(frame, Classification(TABLE[["size", "shape"]], TABLE["kind"], "toy"))


def test_rows_without_a_label_are_dropped_with_a_warning():
    x = np.random.default_rng(0).normal(size=30)
    y = np.where(np.arange(30) % 10 == 4, np.nan, np.arange(30) % 2)
    with pytest.warns(UserWarning, match="toy: dropped 3 of 30 rows, which have no label"):
        environment = from_frame(pd.DataFrame({"x": x, "y": y}), "y", name="toy")
    assert environment.arms == (0, 1)  # whole numbers, as they were before the gaps
    known = np.flatnonzero(~np.isnan(y))
    same(environment, Classification(x[known, None], y[known].astype(int), "toy"))


@pytest.mark.parametrize("name", ["None", "NA", "null", "nan", "N/A"])
def test_a_class_is_missing_where_its_cell_is_empty(name, tmp_path):
    """And a feature where pandas takes it to be."""
    rows = [f"{name if i == 5 else i},{name if i % 2 else 'drug'}" for i in range(20)]
    (tmp_path / "toy.csv").write_text("\n".join(["x,kind", *rows]))
    found = from_csv(tmp_path / "toy.csv", "kind")
    assert found.arms == tuple(sorted(["drug", name]))
    assert len(found.sample(None, np.random.default_rng(0)).x) == 20
    frame = pd.DataFrame({"x": np.arange(20.0), "kind": [row.split(",")[1] for row in rows]})
    frame.loc[5, "x"] = np.nan
    same(found, from_frame(frame, "kind", name="toy"))


def test_missing_target():
    with pytest.raises(ValueError, match="no single column 'y'"):
        from_frame(TABLE.set_axis(["a", "y", "y"], axis=1), "y")
    with pytest.raises(TypeError, match="must be a DataFrame; got ndarray"):
        from_frame(TABLE.to_numpy(), "kind")


def test_more_features_are_allowed_in_words_that_the_error_says(tmp_path, rng):
    path = tmp_path / "wide.csv"
    wide = pd.DataFrame(rng.normal(size=(20, 101))).add_prefix("v").assign(kind=["a", "b"] * 10)
    wide.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"by max_features= of Encoder.fit or environments.fr"):
        from_csv(path, "kind")
    assert from_csv(path, "kind", max_features=101).n_features == 101
    assert from_frame(wide, "kind", max_features=101).n_features == 101


def test_no_file(tmp_path):
    for path in (tmp_path / "toy.csv", tmp_path):
        with pytest.raises(FileNotFoundError, match="no file "):
            from_csv(path, "kind")


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


def test_openml_sparse_and_without_some_labels(server):
    from scipy.sparse import csr_matrix

    y = pd.Series(["a", None, "b", "a"])
    server(Bunch(data=csr_matrix(np.eye(4)), target=y, details={"name": "toy"}))
    with pytest.warns(UserWarning, match="toy: dropped 1 of 4 rows"):
        found = openml("toy")
    same(found, Classification(np.eye(4)[[0, 2, 3]], y.dropna(), "toy"))


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
