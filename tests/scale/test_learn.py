"""`bb.learn`: the same bandit from any parts of a log, wherever they are."""

import re
import time
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import bayesbandit as bb
from bayesbandit.cli.app import app
from bayesbandit.scale import learning, parts
from tests import declarations as declared
from tests.beliefs.test_linear import seeds

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


class Cut(parts.Parts):
    """A table that is cut at some rows."""

    def __init__(self, frame, ends):
        self.frame, self.columns, self.ends = frame, list(frame.columns), sorted(ends)

    def each(self, work, columns, jobs):
        for number, rows in enumerate(np.split(np.arange(len(self.frame)), self.ends)):
            yield work(self.frame[columns].iloc[rows], number)


def whole(frame, model, balance=None, **settings):
    bandit = declared.bandit(ARMS, model, bb.Thompson(), balance, n_features=2, **settings)
    bandit.update(frame[["u", "v"]].to_numpy(), frame["arm"], frame["reward"], frame["propensity"])
    return bandit


def same(one, other, tolerance=1e-11):
    x, forgets = np.random.default_rng(5).normal(size=(7, 2)), one.belief.clock
    for a, b in zip(*(predicted(bandit, x) for bandit in (one, other)), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())
    if forgets is None:  # else rows that are forgotten may be counted
        np.testing.assert_array_equal(one.belief.n, other.belief.n)
    assert one.history.total == other.history.total
    pd.testing.assert_frame_equal(one.history.to_frame(), other.history.to_frame())


def predicted(bandit, x):
    found = bandit.belief.predict(x)
    return found.mean, found.sd


MODELS = st.sampled_from([bb.Ridge(), bb.Ridge("cv", "nig", "unpenalised"), declared.noncentred])


@pytest.mark.slow
@given(
    seed=seeds, model=MODELS, normalize=st.booleans(),
    ends=st.lists(st.integers(0, 300), max_size=9), history=st.sampled_from([0, 70, 10_000]),
)  # fmt: skip
def test_any_parts_give_the_bandit_of_one_update(seed, model, normalize, ends, history):
    frame, balance = log(seed), bb.InversePropensity(clip=0.2, normalize=normalize)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "parts_of", lambda source, **_: source)
        learned = bb.learn(Cut(frame, ends), model, balance=balance, history=history)
    assert learned.arms == ARMS
    same(learned, whole(frame, model, balance, history=history))


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
    seed=seeds, normalize=st.booleans(), ends=st.lists(st.integers(0, 300), max_size=9),
    begun=st.integers(1, 299),
)  # fmt: skip
def test_any_parts_give_the_same_where_rows_fade(kind, seed, normalize, ends, begun):
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
        balance = bb.InversePropensity(clip=0.2, normalize=normalize)
    if kind == "by time":
        frame["at"] = 1.7e9 + np.random.default_rng(seed).uniform(0.0, 3e4, 300)
        timed = {"time": "at"}
    features = ["u", "v"]

    def learned(bandit, rows, ends):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(learning, "parts_of", lambda source, **_: source)
            return bb.learn(Cut(rows, ends), bandit, features=features, **timed)

    def updated(bandit, rows):
        p = rows["propensity"]
        time = rows["at"] if timed else None
        bandit.update(rows[features].to_numpy(), rows["arm"], rows["reward"], p, time=time)

    first, rest = frame.iloc[:begun], frame.iloc[begun:]
    one = declared.bandit(ARMS, model, bb.Thompson(), balance, n_features=2, **memory)
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
        whole = declared.bandit(ARMS, model, bb.Thompson(), balance, n_features=2, **memory)
        updated(whole, frame)
        same(
            learned(
                declared.bandit(ARMS, model, bb.Thompson(), balance, n_features=2, **memory),
                frame,
                ends,
            ),
            whole,
            tolerance,
        )


def stored(frame, folder):
    """A folder of Parquet files, by hours, one of them empty."""
    for hour, (a, b) in enumerate([(0, 0), (0, 10), (10, 200), (200, 300)]):
        (folder / f"hour={hour}").mkdir()
        frame.iloc[a:b].to_parquet(folder / f"hour={hour}" / "log.parquet")
    return folder


@pytest.mark.parametrize("place", ["table", "polars", "folder", "pattern", "dask"])
def test_a_log_may_be_anywhere(place, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "ROWS", 100)
    monkeypatch.setattr(parts, "ROOM", 300)
    frame = log()
    if place == "dask":
        dd = pytest.importorskip("dask.dataframe")
        pieces = [frame.iloc[a:b] for a, b in [(0, 0), (0, 40), (40, 40), (40, 300)]]
        source = dd.concat([dd.from_pandas(piece, npartitions=1) for piece in pieces])
    elif place == "polars":
        source = pytest.importorskip("polars").from_pandas(frame)
    elif place == "table":
        source = frame
    else:
        source = stored(frame, tmp_path)
        source = str(source / "*" / "*.parquet") if place == "pattern" else source
    features = ["u", "v"]
    learned = bb.learn(source, bb.Ridge(), features=features, deterministic=True)
    same(learned, whole(frame, bb.Ridge()))
    more = bb.learn(source, learned, features=features)
    twice = pd.concat([frame, frame])
    same(more, whole(twice, bb.Ridge()))
    assert learned.history.total == 300  # it stays as it was


@pytest.mark.parametrize(
    ("column", "first"),
    [("reward", "int8"), ("u", "float16"), ("u", "float32"), ("u", "null"), ("arm", "category")],
)
def test_the_first_file_does_not_say_what_others_hold(column, first, tmp_path):
    """pyarrow casts the columns of all files to the types of the first."""
    frame = log()
    if column != "arm":
        frame.loc[:99, column] = frame.loc[:99, column].round()
    files = [frame.iloc[:0].astype({column: object})] if first == "null" else []
    files.append(frame.iloc[:100].astype({} if first == "null" else {column: first}))
    for number, rows in enumerate([*files, frame.iloc[100:]]):
        rows.to_parquet(tmp_path / f"{number}.parquet")
    same(bb.learn(tmp_path, bb.Ridge(), features=["u", "v"]), whole(frame, bb.Ridge()))


def test_types_of_files_that_do_not_go_together_are_refused(tmp_path):
    frame = log()
    for number, rows in enumerate([frame.assign(reward=frame["reward"] > 0), frame]):
        rows.to_parquet(tmp_path / f"{number}.parquet")
    with pytest.raises(ValueError, match="'reward' is bool and double in different files"):
        bb.learn(tmp_path, bb.Ridge(), features=["u", "v"])


def on_dask(pieces):
    """A dask.dataframe of these partitions, with the first one's columns."""
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_map(pieces.__getitem__, range(len(pieces)), meta=pieces[0].iloc[:0])


@pytest.mark.parametrize("dates_first", [False, True])
def test_times_that_are_dates_in_one_part_alone_are_refused(dates_first, tmp_path):
    """Also as one table, where the column holds both."""
    frame, model = log(), bb.Ridge(half_life="1d", clock="time")
    pieces = [
        frame.iloc[:100].assign(at=np.arange(100)),
        frame.iloc[100:100].assign(at="none"),  # empty, so that it has no times
        frame.iloc[100:].assign(at=pd.date_range("2025-01-01", periods=200, unit="us")),
    ]
    both = "part 2 of the log: column 'at' is {}, and {} in part 0"
    types = ["datetime64[us]", "int64"]
    if dates_first:
        pieces, types = pieces[::-1], types[::-1]
    for source, said in (
        (on_dask(pieces), re.escape(both.format(*types))),
        (pd.concat(pieces), "must be times, as .* or seconds"),
    ):
        with pytest.raises(ValueError, match=said):
            bb.learn(source, model, features=["u", "v"], time="at", arms=ARMS)


@pytest.mark.parametrize("column", ["reward", "propensity"])
def test_dates_are_no_numbers(column):
    frame = log().assign(**{column: pd.date_range("2025-01-01", periods=300)})
    with pytest.raises(ValueError, match=r"part 0 of the log: .* must be numbers: found"):
        bb.learn(frame, bb.Ridge(), bb.Thompson(), bb.InversePropensity(), features=["u", "v"])


@pytest.mark.parametrize("column", ["arm", "v", "propensity"])
def test_a_column_that_one_part_has_not_is_named_with_those_that_it_has(column, tmp_path):
    frame = log()
    pieces = [frame.iloc[:100], frame.iloc[100:].drop(columns=column)]
    for number, rows in enumerate(pieces):
        rows.to_parquet(tmp_path / f"{number}.parquet")
    there = re.escape(f"has no column {column!r}; it has {[*pieces[1].columns]!r}")
    for source, part in ((on_dask(pieces), "partition 1"), (tmp_path, r"file .*1\.parquet")):
        with pytest.raises(ValueError, match=f"{part} {there}"):
            bb.learn(source, bb.Ridge(), features=["u", "v"])


def test_a_part_without_a_feature_is_not_scored(tmp_path):
    """A column that nobody reads may be missing in a file."""
    frame = log()[["u", "v", "reward"]]
    bandit = bb.LinTS(ARMS, 2)
    for number, rows in enumerate([frame.iloc[:100], frame.iloc[100:].drop(columns="v")]):
        rows.to_parquet(tmp_path / f"{number}.parquet")
    there = re.escape("has no column 'v'; it has ['u', 'reward']")
    with pytest.raises(ValueError, match=f"file .*1.parquet {there}"):
        bb.score(tmp_path, bandit, tmp_path / "out", features=["u", "v"])
    pieces = [frame.iloc[:100], frame.iloc[100:].drop(columns="v")]
    with pytest.raises(ValueError, match=f"part 1 {there}"):
        bb.score(on_dask(pieces), bandit, features=["u", "v"]).compute()
    frame.iloc[100:].drop(columns="reward").to_parquet(tmp_path / "1.parquet")
    scored = bb.score(tmp_path, bandit, tmp_path / "out", features=["u", "v"])
    assert len(pd.read_parquet(scored)) == 300


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    seed=seeds, encoded=st.booleans(), missing=st.sampled_from([None, None, 0, 30, 59]),
    sizes=st.lists(st.sampled_from([0, 1, 2, 9, 25]), max_size=8),
)  # fmt: skip
def test_random_partitions_are_one_table(seed, encoded, missing, sizes):
    """Empty ones, and some of one row; with levels that the first ones lack, and that the encoder
    has not seen; with a number that is missing, which is refused alike or learned alike."""
    dask = pytest.importorskip("dask")
    frame, rng = log(seed, 60), np.random.default_rng(seed)
    if missing is not None:
        frame.loc[missing, "u"] = np.nan
    features, encoder, d = ["u", "v"], None, 2
    if encoded:
        frame["country"] = np.where(np.arange(60) < 25, "fr", rng.choice(["de", "pt", "at"], 60))
        features = [*features, "country"]
        encoder, d = bb.Encoder.fit(frame[features].iloc[5:45]), None
    bandit = bb.Bandit(ARMS, bb.Ridge(), bb.Thompson(), n_features=d, encoder=encoder)
    ends = np.minimum(np.cumsum(sizes), 60)
    pieces = [frame.iloc[a:b] for a, b in pairwise([0, *ends.tolist(), 60])]

    def learned():
        with dask.config.set(scheduler="sync"):
            return bb.learn(on_dask(pieces), bandit, features=features)

    one, x = bandit.copy(), frame[features] if encoded else frame[features].to_numpy()
    try:
        one.update(x, frame["arm"], frame["reward"], frame["propensity"])
    except ValueError:
        at = next(i for i, piece in enumerate(pieces) if missing in piece.index)
        with pytest.raises(ValueError, match=f"part {at} of the log: .* nan"):
            learned()
        return
    parts = learned()
    theirs = one.belief.arms
    np.testing.assert_allclose(
        parts.belief.arms, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max()
    )
    pd.testing.assert_frame_equal(parts.history.to_frame(), one.history.to_frame())


@pytest.mark.parametrize("zones", [("UTC", "Europe/Paris"), (None, "UTC"), ("Europe/Paris", None)])
def test_files_may_have_times_of_several_zones(zones, tmp_path):
    frame = log()
    at = pd.Timestamp("2025-06-01") + pd.to_timedelta(np.arange(300) * 997, "s")
    for number, (zone, rows) in enumerate(
        zip(zones, (slice(0, 100), slice(100, 300)), strict=True)
    ):
        moments = at[rows] if zone is None else at[rows].tz_localize("UTC").tz_convert(zone)
        frame.iloc[rows].assign(at=moments).to_parquet(tmp_path / f"{number}.parquet")
    bandit = bb.LinTS(ARMS, 2, half_life="1d", clock="time")
    learned = bb.learn(tmp_path, bandit, features=["u", "v"], time="at")
    p = frame["propensity"]
    bandit.update(frame[["u", "v"]].to_numpy(), frame["arm"], frame["reward"], p, time=at)
    same(learned, bandit)


@pytest.mark.parametrize("categories", [False, True])
def test_words_are_encoded_and_a_part_may_have_new_levels(categories):
    """Also where each partition of a dask.dataframe has categories of its own."""
    dd = pytest.importorskip("dask.dataframe")
    frame = log().assign(country=["fr", "de"] * 150)
    encoder = bb.Encoder.fit(frame[["u", "country"]].iloc[:100])
    frame.loc[250:, "country"] = "pt"
    bandit = bb.BLTS(ARMS, encoder=encoder)
    pieces = [frame.iloc[i : i + 50].copy() for i in range(0, 300, 50)]
    if categories:
        pieces = [piece.astype({"country": "category", "arm": "category"}) for piece in pieces]
    meta = pieces[0].iloc[:0]
    learned = bb.learn(dd.from_map(pieces.__getitem__, range(6), meta=meta), bandit)
    bandit.update(frame[["u", "country"]], frame["arm"], frame["reward"], frame["propensity"])
    np.testing.assert_allclose(
        learned.probabilities(frame[:9][["u", "country"]]),
        bandit.probabilities(frame[:9][["u", "country"]]), rtol=1e-9,
    )  # fmt: skip


def test_arms_with_features_share_what_parts_teach():
    frame = log()
    learned = bb.learn(frame, bb.Shared(bb.Ridge()))
    alone = bb.learn(frame.assign(arm="a"), bb.Ridge())
    np.testing.assert_allclose(
        learned.posterior("a").location, alone.posterior("a").location, rtol=1e-10
    )


REFUSED = {
    "no column 'q' .propensity": {"propensity": "q"},
    "no column 'w' .feature": {"features": ["w"]},
    "needs the logged propensities": {"balance": bb.InversePropensity(), "features": ["u"]},
    "changes the weights of past rounds": {"balance": bb.InversePropensity(propensity="estimated")},
    "part 0 of the log: unknown arm 'c'": {"arms": ("a", "b")},
    "jobs": {"jobs": 0},
    "keeps no sums, .* by bandit.update": {"model": bb.BootstrapRidgeTS(ARMS, 2)},
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_learned_is_refused(why):
    frame = log()
    if "needs the logged" in why:
        frame = frame.drop(columns="propensity")
    with pytest.raises(ValueError, match=why):
        bb.learn(frame, **({"model": bb.Ridge()} | REFUSED[why]))


@pytest.mark.slow
def test_other_things_are_no_log(tmp_path):
    frame = log()
    frame.iloc[:0].to_parquet(tmp_path / "none.parquet")
    with pytest.raises(ValueError, match="at least one round"):
        bb.learn(tmp_path, bb.Ridge())
    with pytest.raises(FileNotFoundError, match="no Parquet files"):
        bb.learn(tmp_path / "absent", bb.Ridge())
    with pytest.raises(TypeError, match="columns have no names"):
        bb.learn(frame[["u", "v"]].to_numpy(), bb.Ridge())
    with pytest.raises(TypeError, match="has its own policy"):
        bb.learn(frame, bb.LinTS(ARMS, 2), bb.Greedy())
    for model, said in (
        (bb.Ridge(drift=0.1), "coefficients that walk .* by bandit.update"),
        (bb.Ridge(half_life="auto"), "does not forget by the ages of rounds alone"),
        (bb.Ridge(half_life="7d", clock="time"), "time= must name the column of the rows' times"),
    ):
        with pytest.raises(ValueError, match=said):
            bb.learn(frame, model)
    with pytest.raises(ValueError, match="and be None for others; got time='u'"):
        bb.learn(frame, bb.Ridge(half_life=50.0), time="u")
    with pytest.raises(ValueError, match=r"no column 'at' .time"):
        bb.learn(frame, bb.Ridge(), time="at")
    with pytest.raises(ValueError, match=r"keeps no sums, .* by bandit.update"):
        bb.learn(frame, bb.Sampled(declared.lasso, draws=50))
    for column, role in (("reward", "rewards"), ("propensity", "propensities")):
        for strange in ("high", pd.Timestamp("2026-01-01")):
            with pytest.raises(ValueError, match=f"part 0 of the log: {role} must be numbers"):
                bb.learn(frame.assign(**{column: strange}), bb.Ridge())
    frame.loc[7, "reward"] = np.nan
    with pytest.raises(ValueError, match="part 0 of the log: 1 of 300 rewards are missing"):
        bb.learn(frame, bb.Ridge())


def test_a_path_that_looks_like_a_pattern_is_a_path_if_it_exists(tmp_path):
    folder = tmp_path / "[ab] logs"
    folder.mkdir()
    log().to_parquet(folder / "a*.parquet")
    for source in (folder, folder / "a*.parquet"):
        assert len(bb.learn(source, bb.LinTS(ARMS, 2)).history) == len(log())
    with pytest.raises(FileNotFoundError, match="no Parquet files"):
        bb.learn(tmp_path / "[ab] logs" / "*.parquet", bb.LinTS(ARMS, 2))  # of a folder a or b


def test_the_same_parts_give_the_same_bits_in_any_order(monkeypatch):
    """Whoever computes them: their order, and so the tree of their sums, is that of the log."""
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    frame, ends, settings = log(), [40, 40, 130, 220], {"arms": ARMS, "deterministic": True}
    pieces = [frame.iloc[a:b] for a, b in pairwise([0, *ends, 300])]
    source = dd.from_map(pieces.__getitem__, range(5), meta=pieces[0].iloc[:0])
    found = []
    for scheduler in ("sync", "threads"):
        with dask.config.set(scheduler=scheduler):
            found.append(bb.learn(source, bb.Ridge(), features=["u", "v"], **settings))
    monkeypatch.setattr(learning, "parts_of", lambda source, **_: source)
    found.append(bb.learn(Cut(frame, ends), bb.Ridge(), features=["u", "v"], **settings))
    assert len({bandit.belief.arms.tobytes() for bandit in found}) == 1
    same(found[0], whole(frame, bb.Ridge()))


@pytest.mark.slow
def test_any_number_of_processes_gives_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "ROWS", 50)
    stored(log(), tmp_path)
    one, two = (
        bb.learn(tmp_path, bb.Ridge(), features=["u", "v"], jobs=jobs, deterministic=True)
        for jobs in (1, 2)
    )
    assert one.belief.arms.tobytes() == two.belief.arms.tobytes()


def test_the_command_line_learns_files(tmp_path):
    frame = log().rename(columns={"arm": "action"}).assign(day="monday", id=range(300))
    frame.loc[::2, "day"] = "tuesday"
    path, out = tmp_path / "log.parquet", tmp_path / "learned.npz"
    frame.to_parquet(path)
    command = ["train", str(path), "--out", str(out)]
    run = CliRunner().invoke(app, [*command, "--bandit", "BLTS(clip=0.2)", "--column", "drop=id"])
    assert run.exit_code == 0, run.output
    assert "300 rounds of 3 arms learned" in " ".join(run.output.split())
    bandit = bb.Bandit.load(out)
    assert bandit.encoder.columns == ("u", "v", "day")
    again = CliRunner().invoke(app, [*command, "--bandit", str(out)])
    assert again.exit_code == 0, again.output
    assert bb.Bandit.load(out).history.total == 600
    timed = frame.assign(at=pd.date_range("2025-01-01", periods=300, freq="h"))
    timed.to_parquet(path)
    made = ["--bandit", "LinTS(half_life='2d', clock='time')", "--column", "drop=id"]
    made += ["--column", "time=at"]
    run = CliRunner().invoke(app, [*command, *made])
    assert run.exit_code == 0, run.output
    found = bb.Bandit.load(out)
    told = bb.LinTS(found.arms, encoder=found.encoder, half_life="2d", clock="time")
    told.update(timed[["u", "v", "day"]], timed["action"], timed["reward"], time=timed["at"])
    told.now = found.now = time.time()
    known = timed[["u", "v", "day"]].head()
    np.testing.assert_allclose(found.probabilities(known), told.probabilities(known), atol=1e-6)
    for wrong, said in [
        (command, "Missing option '--bandit'"),
        (["learn"], "Missing option '--log'"),
        ([*command, "--bandit", "BLTS", "--once"], "No such option: --once"),
        ([*command, "--bandit", "BLTS", "--jobs", "0"], "jobs, a number of processes or -1"),
        ([*command, "--bandit", "BLTS", "--model", "ridge"], "`bayesbandit --part model="),
        (["--part", "model=ridge", *command, "--bandit", "BLTS"], "is for a saved bandit"),
        ([*command, "--bandit", "lost.npz"], "there is no file lost.npz"),
        (
            [*command, "--bandit", str(out), "--column", "drop=id"],
            "--column drop=id: the bandit's encoder says",
        ),
        (
            ["learn", "--log", f"sqlite:///{tmp_path}/log.db", "--preset", "BLTS"],
            "`bayesbandit train FILE",
        ),
    ]:
        refused = CliRunner().invoke(app, wrong)
        assert refused.exit_code != 0
        assert said in " ".join(refused.output.split())
