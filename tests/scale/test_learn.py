"""`bb.learn`: the same bandit from any parts of a log, wherever they are, though a worker dies."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit.tables import samples
from tests import declarations as declared
from tests.beliefs.test_linear import seeds
from tests.cases import in_gate, moments_of
from tests.commands import columns, run

dask = pytest.importorskip("dask")
ARMS = ("a", "b", "c")


def log(seed=0, n=300, rare=0.05):
    """A log with two numbers and a word as contexts; arm c is rare."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    arm = rng.choice(ARMS, n, p=[0.5, 0.5 - rare, rare])
    return pd.DataFrame({
        "u": x[:, 0], "v": x[:, 1], "arm": arm, "propensity": rng.uniform(0.1, 1.0, n),
        "reward": x[:, 0] * (arm == "a") + rng.normal(size=n),
    })  # fmt: skip


def on_dask(pieces):
    """A dask.dataframe of these partitions, with the first one's columns."""
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_map(pieces.__getitem__, range(len(pieces)), meta=pieces[0].iloc[:0])


def pieces_of(frame, ends):
    """A table that is cut at some rows."""
    return on_dask([frame.iloc[a:b] for a, b in pairwise([0, *sorted(ends), len(frame)])])


def new(model=None, balance=None, d=2, arms=ARMS):
    """A bandit that has learned nothing."""
    return bb.Bandit(arms, model or bb.Ridge(), bb.Thompson(), balance, n_features=d)


def whole(frame, model, balance=None, **settings):
    bandit = declared.bandit(ARMS, model, bb.Thompson(), balance, n_features=2, **settings)
    bandit.update(frame[["u", "v"]].to_numpy(), frame["arm"], frame["reward"], frame["propensity"])
    return bandit


def same(one, other, tolerance=1e-11):
    x, forgets = np.random.default_rng(5).normal(size=(7, one.n_features)), one.belief.clock
    for a, b in zip(*(moments_of(bandit.belief, x) for bandit in (one, other)), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())
    if forgets is None:  # else rows that are forgotten may be counted
        np.testing.assert_array_equal(one.belief.n, other.belief.n)
    assert one.history.total == other.history.total
    pd.testing.assert_frame_equal(one.history.to_frame(), other.history.to_frame())


MODELS = st.sampled_from([bb.Ridge(), bb.Ridge("cv", "nig", "unpenalised"), declared.noncentred])


FORGETFUL = {
    "fading": (bb.Ridge(half_life=40.0), {}),
    "fading fast": (bb.Ridge(half_life=2.0), {}),  # the first rows are of 150 half-lives ago
    "fading, cv": (bb.Ridge("cv", "nig", "unpenalised", half_life=40.0), {}),
    "affine": (declared.noncentred, {"half_life": 40.0}),
    "together": (declared.pooled, {"half_life": 40.0}),
    "a probability": (bb.load_model("beta_bernoulli"), {"half_life": 3.0}),
    "by time": (bb.Ridge(half_life="1h", clock="time"), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORGETFUL)
@settings(max_examples=4, deadline=None)
@given(
    seed=seeds, ends=st.lists(st.integers(0, 300), max_size=9),
    begun=st.integers(1, 299),
)  # fmt: skip
def test_any_partitions_give_the_same_where_rows_fade(kind, seed, ends, begun):
    """Also to a bandit that has learned before, and whose clock was put forward.

    A row is forgotten when less than 1e-9 of it is left, and sooner where a part ends meanwhile. So
    where they fade fast no arm waits 30 half-lives, and results are the same to some 1e-9.
    """
    model, memory = FORGETFUL[kind]
    fast = kind in ("fading fast", "a probability")
    tolerance = 1e-8 if fast else 1e-11
    frame, timed = log(seed, rare=0.3 if fast else 0.05), {}
    if kind == "a probability":
        frame["reward"], balance = (frame["reward"] > 0) * 1.0, None
    else:
        balance = bb.InversePropensity(clip=0.2)
    if kind == "by time":
        frame["at"] = 1.7e9 + np.random.default_rng(seed).uniform(0.0, 3e4, 300)
        timed = {"time": "at"}
    features = ["u", "v"]

    def learned(bandit, rows, ends):
        with dask.config.set(scheduler="sync"):
            return bb.learn(pieces_of(rows, ends), bandit, features=features, **timed)

    def updated(bandit, rows):
        p = rows["propensity"]
        time = rows["at"] if timed else None
        bandit.update(rows[features].to_numpy(), rows["arm"], rows["reward"], p, time=time)

    def begin():
        return declared.bandit(ARMS, model, bb.Thompson(), balance, n_features=2, **memory)

    first, rest = frame.iloc[:begun], frame.iloc[begun:]
    one = begin()
    parts = one.copy()
    updated(one, first)
    parts = learned(parts, first, [end for end in ends if end < begun])
    for bandit in (one, parts):
        bandit.forget(2)
    updated(one, rest)
    parts = learned(parts, rest, [end - begun for end in ends if end >= begun])
    same(parts, one, tolerance)
    assert parts.ahead == one.ahead
    if not timed:
        whole = begin()
        updated(whole, frame)
        same(learned(begin(), frame, ends), whole, tolerance)


def stored(frame, folder):
    """A folder of Parquet files, by hours, one of them empty."""
    for hour, (a, b) in enumerate([(0, 0), (0, 10), (10, 200), (200, 300)]):
        (folder / f"hour={hour}").mkdir()
        frame.iloc[a:b].to_parquet(folder / f"hour={hour}" / "log.parquet")
    return folder


@pytest.mark.parametrize("place", ["table", "polars", "folder", "pattern", "dask"])
def test_a_log_may_be_anywhere(place, tmp_path):
    frame = log()
    if place == "dask":
        source = pieces_of(frame, [0, 40, 40])
    elif place == "polars":
        source = pytest.importorskip("polars").from_pandas(frame)
    elif place == "table":
        source = frame
    else:
        source = stored(frame, tmp_path)
        source = str(source / "*" / "*.parquet") if place == "pattern" else source
    features = ["u", "v"]
    learned = bb.learn(source, new(), features=features)
    same(learned, whole(frame, bb.Ridge()))
    more = bb.learn(source, learned, features=features)
    twice = pd.concat([frame, frame])
    same(more, whole(twice, bb.Ridge()))
    assert learned.history.total == 300  # it stays as it was


@pytest.mark.parametrize("column", ["arm", "v", "propensity"])
def test_a_column_that_a_partition_lacks_is_named(column, tmp_path):
    frame = log()
    pieces = [frame.iloc[:100], frame.iloc[100:].drop(columns=column)]
    for number, rows in enumerate(pieces):
        rows.to_parquet(tmp_path / f"{number}.parquet")
    for source in (on_dask(pieces), tmp_path):
        with pytest.raises(ValueError, match=f"a partition of the table lacks .*{column}"):
            bb.learn(source, new(), features=["u", "v"])
    if column == "v":  # an encoder is fitted to all rows
        found = run("train", tmp_path / "*.parquet", "--bandit", "LinTS", "--out", tmp_path / "b")
        assert found.exit_code == 2
        assert "a partition of the table lacks a column" in found.said


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    seed=seeds, model=MODELS, normalize=st.booleans(), history=st.sampled_from([0, 20, 10_000]),
    encoded=st.booleans(), missing=st.sampled_from([None, None, 0, 30, 59]),
    sizes=st.lists(st.sampled_from([0, 1, 2, 9, 25]), max_size=8),
)  # fmt: skip
def test_random_partitions_are_one_table(seed, model, normalize, history, encoded, missing, sizes):
    """Empty ones, and some of one row; with levels that the first ones lack, and that the encoder
    has not seen; with a number that is missing, which is refused alike or learned alike."""
    frame, rng = log(seed, 60), np.random.default_rng(seed)
    if missing is not None:
        frame.loc[missing, "u"] = np.nan
    features, encoder, d = ["u", "v"], None, 2
    if encoded:
        frame["country"] = np.where(np.arange(60) < 25, "fr", rng.choice(["de", "pt", "at"], 60))
        features = [*features, "country"]
        encoder, d = bb.Encoder.fit(frame[features].iloc[5:45]), None
    balance = bb.InversePropensity(clip=0.2, normalize=normalize)
    settings = {"n_features": d, "encoder": encoder, "history": history}
    bandit = bb.Bandit(ARMS, model, bb.Thompson(), balance, **settings)
    ends = np.minimum(np.cumsum(sizes), 60)
    pieces = [frame.iloc[a:b] for a, b in pairwise([0, *ends.tolist(), 60])]
    if encoded:  # each part has categories of its own
        pieces = [piece.astype({"country": "category", "arm": "category"}) for piece in pieces]

    def learned():
        with dask.config.set(scheduler="sync"):
            return bb.learn(on_dask(pieces), bandit, features=features)

    one, x = bandit.copy(), frame[features] if encoded else frame[features].to_numpy()
    try:
        one.update(x, frame["arm"], frame["reward"], frame["propensity"])
    except ValueError:
        at = next(i for i, piece in enumerate(pieces) if missing in piece.index)
        with pytest.raises(ValueError, match=f"partition {at} of the log: .* nan"):
            learned()
        return
    same(learned(), one)


def test_arms_with_features_share_what_parts_teach():
    frame = log()
    learned = bb.learn(frame, new(bb.Shared(bb.Ridge())), features=["u", "v"])
    alone = bb.learn(frame.assign(arm="a"), new(), features=["u", "v"])
    np.testing.assert_allclose(
        learned.posterior("a").location, alone.posterior("a").location, rtol=1e-10
    )


DATES = pd.date_range("2025-01-01", periods=300)
FORGETFUL_BY_TIME = bb.Ridge(half_life="7d", clock="time")
REFUSED = [  # settings of a bandit, columns of the log that are others, settings, and what is said
    ({}, {}, {"propensity": "q"}, "no column 'q' .propensity"),
    ({}, {}, {"features": ["w"]}, "no column 'w' .context"),
    ({}, {}, {"time": "at"}, "no column 'at' .time"),
    ({"balance": bb.InversePropensity()}, {"propensity": None}, {}, "needs the logged propens"),
    ({"balance": bb.InversePropensity(propensity="estimated")}, {}, {},
     "changes the weights of past rounds"),
    ({"arms": ("a", "b")}, {}, {}, "partition 0 of the log: unknown arm 'c'"),
    ({"model": bb.Bootstrap("ridge")}, {}, {}, "keeps no sums, .* by bandit.update"),
    ({"model": bb.Sampled(declared.lasso, draws=50)}, {}, {}, "keeps no sums, .* by bandit.update"),
    ({"model": bb.Ridge(drift=0.1)}, {}, {}, "coefficients that walk .* by bandit.update"),
    ({"model": bb.Ridge(half_life="auto")}, {}, {}, "does not forget by the ages of rounds alone"),
    ({"model": FORGETFUL_BY_TIME}, {}, {}, "time= must name the column of the rows' times"),
    ({"model": bb.Ridge()}, {}, {"time": "u"}, "be None for what does not forget; got time='u'"),
    ({"model": bb.Ridge(half_life=50.0)}, {}, {"time": "u", "features": ["u", "v"]},
     "'u' runs back, and a half-life"),
    ({}, {"reward": np.where(np.arange(300) == 7, np.nan, 1.0)}, {},
     "partition 0 of the log: 1 of 300 rewards are missing"),
    *(
        ({"balance": bb.InversePropensity()}, {column: strange}, {"features": ["u", "v"]},
         f"log: column .{column}. .* must be numbers; got")
        for column in ("reward", "propensity")
        for strange in (DATES, "high", DATES[0])
    ),
]  # fmt: skip


@pytest.mark.parametrize(("made", "changed", "settings", "said"), REFUSED)
@in_gate(20)
def test_what_cannot_be_learned_is_refused(made, changed, settings, said):
    frame = log().assign(**changed).dropna(axis="columns", how="all")
    with pytest.raises(ValueError, match=said):
        bb.learn(frame, new(**made), **({"features": ["u", "v"]} | settings))


def test_times_that_run_back_between_partitions_are_refused():
    """As of files with other names than their days have: each is in order, and they are not."""
    frame = log().assign(time=DATES)
    model = bb.Ridge(half_life=50.0)
    assert len(bb.learn(pieces_of(frame, [100, 100, 200]), new(model)).history) == 300
    with pytest.raises(ValueError, match="from a partition of the log to the next its time runs"):
        bb.learn(pieces_of(pd.concat([frame[100:], frame[:100]]), [200]), new(model))


@pytest.mark.slow
def test_other_things_are_no_log(tmp_path):
    frame = log()
    frame.iloc[:0].to_parquet(tmp_path / "none.parquet")
    for source, bandit, error, said in (
        (tmp_path, new(), ValueError, "at least one round"),
        (tmp_path / "absent", new(), FileNotFoundError, "no Parquet files"),
        (frame[["u", "v"]].to_numpy(), new(), TypeError, "must have columns with names"),
        (frame, bb.Ridge(), TypeError, "a bandit learns the log"),
    ):
        with pytest.raises(error, match=said):
            bb.learn(source, bandit, features=["u", "v"])


def test_a_path_that_looks_like_a_pattern_is_a_path_if_it_exists(tmp_path):
    folder = tmp_path / "[ab] logs"
    folder.mkdir()
    log().to_parquet(folder / "a.parquet")
    learned = bb.learn(folder, bb.LinTS(ARMS, 2), features=["u", "v"])
    assert len(learned.history) == len(log())


def test_the_order_of_columns_is_by_their_names_and_no_guess():
    frame = log()
    expected = bb.learn(frame, new(), features=["u", "v"])
    with pytest.raises(ValueError, match=r"the log has the contexts \['v', 'u'\]: name a column"):
        bb.learn(frame[["v", "u", "arm", "reward", "propensity"]], expected)
    numbered = frame.rename(columns={"u": "x0", "v": "x1"})
    same(bb.learn(numbered[numbered.columns[::-1]], new()), expected)


def test_the_same_partitions_give_the_same_bits_in_any_order():
    """Whoever computes them: their order, and so the tree of their sums, is that of the log."""
    frame = log()
    source = pieces_of(frame, [40, 40, 130, 220])
    found = []
    for scheduler in ("sync", "threads"):
        with dask.config.set(scheduler=scheduler):
            found.append(bb.learn(source, new(), features=["u", "v"]))
    assert found[0].belief.arms.tobytes() == found[1].belief.arms.tobytes()
    same(found[0], whole(frame, bb.Ridge()))


def test_an_arm_is_not_a_number_in_one_part_and_a_text_in_another(tmp_path):
    frame = log().assign(arm=[0, 1] * 150)
    frame.to_parquet(tmp_path / "1.parquet")
    frame.assign(arm=frame["arm"].astype(str)).to_parquet(tmp_path / "2.parquet")
    found = run("train", tmp_path / "*.parquet", "--bandit", "LinTS", "--out", tmp_path / "b")
    assert found.exit_code == 2
    assert "the log has arms 0 and '0' (column 'arm')" in found.said


def test_levels_are_read_as_they_were_for_the_fit(tmp_path):
    """A file whose levels all look like numbers, truth values or dates has the same levels."""
    codes = {
        "zip": ["00123", "10115", "A1"],
        "size": ["1.50", "2.00", "XL"],
        "member": ["true", "false", "unknown"],
        "since": ["2024-01-01", "2024-02-01", "never"],
    }
    table = pd.DataFrame(codes).loc[np.repeat([0, 1, 2], 10)]
    table["month"] = pd.Categorical(pd.to_datetime(["2024-01-01", "2024-02-01", "2024-03-01"] * 10))
    table["group"] = pd.Categorical([1.0, 2.0, 2.5] * 10)
    frame = table.assign(arm=["01", "02"] * 15, reward=1.0, propensity=0.5)
    encoder = bb.Encoder.fit(table)
    later = frame[:20]
    later.to_csv(tmp_path / "later.csv", index=False)
    expected = encoder.transform(table[:20])
    assert (bb.ope.read_log(tmp_path / "later.csv", encoder=encoder).x == expected).all()
    bandit = bb.LinTS(["01", "02"], encoder=encoder, seed=0)
    bandit.save(tmp_path / "begun.npz")
    run("train", tmp_path / "later.csv", "--bandit", tmp_path / "begun.npz",
        "--out", tmp_path / "end.npz")  # fmt: skip
    whole = bandit.copy()
    whole.update(table[:20], later["arm"], later["reward"], propensity=later["propensity"])
    for learned in (bb.Bandit.load(tmp_path / "end.npz"), bb.learn(tmp_path / "later.csv", bandit)):
        same(learned, whole)


def test_the_command_line_learns_files(tmp_path):
    frame = log().rename(columns={"arm": "action"}).assign(day="monday", id=range(300))
    frame.loc[::2, "day"] = "tuesday"
    path, out = tmp_path / "log.parquet", tmp_path / "learned.npz"
    frame.to_parquet(path)
    command = ["train", path, "--out", out]
    found = run(*command, "--bandit", "BLTS(clip=0.2)", *columns("drop=id"))
    assert found.exit_code == 0, found.output
    assert "300 rounds of 3 arms learned" in found.said
    assert bb.Bandit.load(out).encoder.columns == ("u", "v", "day")
    again = run(*command, "--bandit", out)
    assert again.exit_code == 0, again.output
    assert bb.Bandit.load(out).history.total == 600
    timed = frame.assign(at=pd.date_range("2025-01-01", periods=300, freq="h"))
    timed.to_parquet(path)
    made = ["--bandit", "LinTS(half_life='2d', clock='time')", *columns("drop=id", "time=at")]
    found = run(*command, *made)
    assert found.exit_code == 0, found.output
    bandit = bb.Bandit.load(out)
    told = bb.LinTS(bandit.arms, encoder=bandit.encoder, half_life="2d", clock="time")
    told.update(timed[["u", "v", "day"]], timed["action"], timed["reward"], time=timed["at"])
    told.now = bandit.now = time.time()
    known = timed[["u", "v", "day"]].head()
    np.testing.assert_allclose(bandit.probabilities(known), told.probabilities(known), atol=1e-6)


SCRIPT = """
import dask, dask.dataframe as dd, numpy as np, pandas as pd, pymc as pm
import bayesbandit as bb

@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"))
def mine(x, reward, weight, theta):
    mu = x @ theta + 0.3
    pm.Normal("r", mu, 0.5 / pm.math.sqrt(weight), observed=reward)
    return mu

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    frame = frame.assign(arm=rng.choice(["u", "v"], 60), reward=rng.normal(size=60))
    with dask.config.set(scheduler="processes"):
        parts = dd.from_pandas(frame, npartitions=2)
        new = bb.Bandit(["u", "v"], mine, bb.Thompson(), n_features=2)
        bandit = bb.learn(parts, new, features=["a", "b"])
    whole = bb.learn(frame, new, features=["a", "b"])
    x = rng.normal(size=(5, 2))
    np.testing.assert_allclose(bandit.predict(x).mean, whole.predict(x).mean, rtol=1e-12)
"""


@pytest.mark.slow
def test_a_model_of_a_script_learns_in_other_processes(tmp_path):
    """They have a copy of its function: what rows depend on is compared, and not the function."""
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    subprocess.run([sys.executable, "-W", "ignore", file], check=True)


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
        learned = bb.learn(frame, bandit, features=["u", "v"])
        killer.join()
        time.sleep(0.1)
        again = bb.learn(frame, bandit, features=["u", "v"])
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


def test_train_forgets_no_log_backwards_that_begins_with_its_newest_rows(tmp_path):
    frame = log().assign(time=np.arange(300.0))
    found = {}
    for name, rows in {"in_order": frame, "newest_first": frame[::-1]}.items():
        rows.to_csv(tmp_path / name, index=False)
        bandit = "LinTS(half_life=50)"
        found[name] = run("train", tmp_path / name, "--bandit", bandit, "--out", tmp_path / "out")
    assert found["in_order"].exit_code == 0, found["in_order"].output
    assert found["newest_first"].exit_code == 2
    assert "'time' runs back, and a half-life counts the rows that follow" in (
        found["newest_first"].said
    )
