"""Data sets of a folder of Parquet files, and principal components."""

import pickle
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesbandit.environments import from_frame
from bayesbandit_studies.data_sets import components, folder
from tests.environments.test_datasets import TABLE, checked, draw, same

SHARED = Path(__file__).parents[2].parent / "shared/data/openml"


@pytest.fixture
def shelf(tmp_path):
    for file in ("two", "one"):
        TABLE.rename(columns={"kind": "target"}).to_parquet(tmp_path / f"{file}.parquet")
    return tmp_path


def test_folder_without_a_manifest(shelf, monkeypatch):
    environments = folder(shelf)
    assert [e.name for e in environments] == ["one", "two"]
    same(environments[0].data, from_frame(TABLE, "kind"))
    monkeypatch.setenv("BAYESBANDIT_DATA", str(shelf))
    assert [e.name for e in folder()] == ["one", "two"]


def test_folder_with_a_manifest(shelf):
    (shelf / "manifest.csv").write_text(
        "paper_name,file,rows\nzeta,one.parquet,4\nNA,two.parquet,4"
    )
    assert [e.name for e in folder(str(shelf))] == ["NA", "zeta"]
    (shelf / "manifest.csv").write_text("paper_name,file\nzeta,elsewhere/one.parquet\n")
    (found,) = folder(shelf)  # beside the manifest, though not where it says
    assert found.name == "zeta"
    same(found.data, from_frame(TABLE, "kind"))


def test_a_file_written_over_is_another_data_set(shelf):
    before = folder(shelf)[0]
    assert before.n_features == 2
    TABLE.drop(columns="size").rename(columns={"kind": "target"}).to_parquet(shelf / "one.parquet")
    assert folder(shelf)[0].n_features == 1


@pytest.mark.parametrize(
    ("manifest", "error", "message"),
    [
        ("title,file\na,one.parquet", ValueError, r"lacks \['name'\]; its columns are \['title"),
        ("paper_name,file\na,one.parquet\na,two.parquet", ValueError, "uses a name twice: a"),
        ("paper_name,file\na,gone.parquet", FileNotFoundError, "not there: gone.parquet"),
        ("paper_name,file\n", ValueError, "has no Parquet files"),
        ("", ValueError, r"manifest\.csv cannot be read"),
    ],
)
def test_manifest_errors(shelf, manifest, error, message):
    (shelf / "manifest.csv").write_text(manifest)
    with pytest.raises(error, match=message):
        folder(shelf)


def test_folder_errors(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="has no Parquet files"):
        folder(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no folder .*gone"):
        folder(tmp_path / "gone")
    monkeypatch.delenv("BAYESBANDIT_DATA", raising=False)
    with pytest.raises(ValueError, match="BAYESBANDIT_DATA"):
        folder()


@pytest.mark.parametrize("keep", [0, 3, 0.5, 0.99])
def test_a_truncated_file_is_named_when_it_is_used(shelf, keep):
    path = shelf / "one.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    broken, sound = folder(shelf)
    with pytest.raises(ValueError, match=r"one\.parquet is not a whole Parquet file"):
        draw(broken)
    checked(sound)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"no file .*one\.parquet"):
        draw(broken)


def test_a_file_without_the_target_column(tmp_path):
    TABLE.to_parquet(tmp_path / "one.parquet")
    with pytest.raises(ValueError, match=r"one\.parquet: no single column 'target'"):
        draw(folder(tmp_path)[0])


FEATURES = {  # of the weirdest
    "collins (478)": 35,  # one column is an identifier
    "flags (285)": 95,
    "leukemia": 71,  # 7129 columns, 72 rows
    "tr23.wc": 100,  # 5832 word counts
    "prnn_cushings": 2,
    "kr-vs-k": 40,  # categories only
    "dresses-sales": 100,  # 835 missing categories
    "energy-efficiency": 8,
    "spectrometer (313)": 100,
    "zoo": 17,
}


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no folder {SHARED}")
@pytest.mark.long
def test_all_of_the_papers_sets():
    manifest = pd.read_csv(SHARED / "manifest.csv").set_index("paper_name")
    start = time.perf_counter()
    environments = folder(SHARED)
    assert [e.name for e in environments] == sorted(manifest.index)
    for environment in environments:
        name, environment = environment.name, pickle.loads(pickle.dumps(environment))
        assert checked(environment) == manifest.rows[name]
        assert len(environment.arms) == manifest.classes[name]
        assert environment.n_features == FEATURES.get(name, environment.n_features)
    print(f"{len(environments)} data sets in {time.perf_counter() - start:.1f} s")


def test_a_folder_keeps_the_set_used_last(shelf):
    """And a pickled set has no data."""
    one, two = folder(shelf)
    assert (one.arms, two.n_features) == (("a", "b"), 2)
    assert one.data is one.data
    assert two.data is two.data
    assert len(pickle.dumps(one)) < 1000
    np.testing.assert_array_equal(draw(pickle.loads(pickle.dumps(one))).x, draw(one).x)


@pytest.mark.parametrize("shape", [(300, 30), (20, 30), (30, 30)])
def test_too_many_columns_become_principal_components(shape):
    rng = np.random.default_rng(1)
    x = rng.normal(size=shape) @ rng.normal(size=(shape[1], shape[1]))
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    got = components(z, 8)
    u, s, _ = np.linalg.svd(z, full_matrices=False)
    scores = u[:, :8] * s[:8]
    scores /= np.sqrt(np.mean(scores**2))
    np.testing.assert_allclose(np.abs(got), np.abs(scores), atol=1e-8)
    assert np.mean(got**2) == pytest.approx(1)
    assert got.flags.c_contiguous
    np.testing.assert_array_equal(got, components(z, 8))


def test_components_without_variance_are_dropped():
    rng = np.random.default_rng(1)
    few_rows = components(rng.normal(size=(6, 200)), 100)
    assert few_rows.shape == (6, 5)  # n centred rows span n − 1 dimensions
    repeated = components(np.tile(rng.normal(size=(50, 3)), 40), 100)
    assert repeated.shape == (50, 3)
