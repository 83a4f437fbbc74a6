"""Logs from files."""

import numpy as np
import pandas as pd
import pytest

from bayesbandit.ope import Log, read_log


def table(n=200, seed=0, arms=("a", "b", "c")):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(len(arms)), size=n) * 0.9 + 0.1 / len(arms)
    k = (rng.random((n, 1)) < p.cumsum(axis=1)).argmax(axis=1)
    frame = pd.DataFrame({f"probability_{arm}": p[:, i] for i, arm in enumerate(arms)})
    return frame.assign(
        action=np.array(arms)[k], reward=rng.random(n), propensity=p[np.arange(n), k],
        age=rng.normal(size=n), plan=np.array(["free", "paid"])[rng.integers(2, size=n)],
        timestamp=pd.date_range("2026-01-01", periods=n, freq="h").astype(str),
    )  # fmt: skip


def write(frame, folder, kind):
    path = folder / f"log.{kind}"
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    return path


def test_columns_that_are_no_contexts_are_left_out(tmp_path):
    """An identifier, or a column that never varies, is no reason to refuse a log."""
    plain = table()[["action", "reward", "propensity"]].assign(user_id=range(200), shop="x")
    with pytest.warns(UserWarning, match="read without contexts"):
        log = read_log(write(plain, tmp_path, "csv"))
    assert log.x.shape == (len(plain), 0)
    huge = plain.assign(reward=1).astype({"reward": object})
    huge.loc[0, "reward"] = 10**400
    with (
        pytest.warns(UserWarning, match="read without contexts"),
        pytest.raises(ValueError, match="rewards must be finite"),
    ):
        read_log(write(huge, tmp_path, "csv"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_are_recognised(kind, tmp_path):
    frame = table(arms=(0, 1, 2))
    log = read_log(write(frame, tmp_path, kind))
    assert log.arms == (0, 1, 2)
    np.testing.assert_allclose(log.probabilities, frame.iloc[:, :3])
    assert log.features == ("age", "plan=paid")
    np.testing.assert_allclose(log.x, log.encoder.transform(frame[list(log.encoder.columns)]))
    assert log.time[1] - log.time[0] == 3600


def test_a_bad_file_is_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_log(tmp_path / "none.csv")
    plain = table().drop(columns=["propensity", "probability_b"])
    with pytest.raises(ValueError, match="has no probabilities"):
        read_log(write(plain, tmp_path, "csv"))
    with pytest.raises(ValueError, match="at least two rounds; got 1"):
        read_log(write(table().head(1), tmp_path, "csv"), x=[])


@pytest.mark.parametrize("way", ["frame", "file"])
def test_an_arm_with_probability_0_was_not_available(way, tmp_path):
    frame = table()[["action", "reward", "propensity", "probability_a", "probability_b"]]
    first = np.arange(len(frame)) % 2 == 0
    frame = frame.assign(
        action=np.where(first, "a", "b"), propensity=np.where(first, 1.0, 0.5),
        probability_a=np.where(first, 1.0, 0.5), probability_b=np.where(first, 0.0, 0.5),
    )  # fmt: skip
    log = Log.of(frame) if way == "frame" else read_log(write(frame, tmp_path, "csv"), x=[])
    np.testing.assert_array_equal(log.available[:, 1], ~first)
