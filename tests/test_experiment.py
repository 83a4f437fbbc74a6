"""The runner: same table for any jobs, from a kill onwards, and through the compiled loop. On disk
nothing is half-written, nothing counted twice, and nothing of other settings."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import bayesbandit as bb
from bayesbandit import evaluation
from bayesbandit.experiments import experiment as runner
from bayesbandit.experiments import results_on_disk
from bayesbandit.experiments.experiment import checkpoints, play, stream
from bayesbandit.experiments.results_on_disk import Cache, key, write_results
from tests.cases import few, moments_of
from tests.players import Constant

IRIS = bb.environments.bundled("iris")
WINE = bb.environments.bundled("wine")
BANDITS = {"LinTS": bb.LinTS, "BLTS": partial(bb.BLTS, alpha=0.5), "BLUCB": bb.BLUCB}


def experiment(**settings):
    return bb.Experiment([IRIS, WINE], BANDITS, **{"replications": 3, "points": 20} | settings)


@pytest.fixture(scope="module")
def table():
    return experiment().run(progress=False)


@pytest.mark.slow
def test_schema_and_order(table):
    evaluation.check(table)
    assert table.dtypes.astype(str).to_dict() == evaluation.SCHEMA
    assert list(table["environment"].unique()) == ["iris", "wine"]
    assert list(table["bandit"].unique()) == list(BANDITS)
    ends = table.groupby(["environment", "bandit", "replication"])["t"].max()
    assert set(ends["iris"]) == {150}
    assert set(ends["wine"]) == {178}
    np.testing.assert_allclose(table["reward"] + table["regret"], table["t"])


@pytest.mark.slow
def test_a_bandit_plays_the_same_alone_as_in_company(table):
    alone = bb.Experiment([WINE], {"BLTS": BANDITS["BLTS"]}, replications=2, points=20)
    of_company = table.query("environment == 'wine' and bandit == 'BLTS' and replication < 2")
    assert_frame_equal(alone.run(progress=False), of_company.reset_index(drop=True))


def test_the_table_is_what_the_public_interface_earns():
    """`choose` and `observe` one by one, with the runner's seeds, give the runner's numbers."""
    seed, name = 3, "BLTS"
    table = bb.Experiment([WINE], {name: BANDITS[name]}, replications=1, seed=seed, points=10)
    table = table.run(progress=False)
    sample = WINE.sample(None, np.random.default_rng(stream(seed, "environment", "wine", 0)))
    bandit = BANDITS[name](WINE.arms, WINE.n_features, seed=stream(seed, "bandit", "wine", 0))
    earned = []
    for x, reward in zip(sample.x, sample.reward, strict=True):
        decision = bandit.choose(x)
        earned.append(reward[WINE.arms.index(decision.arm)])
        bandit.observe(decision, earned[-1])
    np.testing.assert_array_equal(np.cumsum(earned)[table["t"] - 1], table["reward"])


def test_warm_start_and_test_contexts():
    environment = bb.environments.SyntheticExample("well", n_test=500)
    sample = environment.sample(300, np.random.default_rng(0))
    bandit = bb.LinTS(environment.arms, environment.n_features)
    rows = pd.DataFrame(play(bandit, environment, sample, points=10))
    assert bandit.history.total == 350
    np.testing.assert_allclose(bandit.history.propensity[:50], 1 / 3)
    assert rows["agreement"].between(0, 1).all()
    greedy = moments_of(bandit.belief, sample.test_x)[0].argmax(axis=1)
    value = sample.test_mean[np.arange(500), greedy].mean()
    assert rows["value"].iloc[-1] == pytest.approx(value)


OTHERS = {
    "seed": {"seed": 1},
    "horizon": {"horizon": 50},
    "setting": {"bandits": BANDITS | {"LinTS": partial(bb.LinTS, alpha=2.0)}},
    "data": {"environments": [bb.environments.Classification(np.eye(4), [0, 1] * 2, "iris")]},
}


@few("seed")
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_results_stay_and_those_of_other_settings_are_not_used(tmp_path, monkeypatch, other):
    base = {"environments": [IRIS], "bandits": BANDITS, "replications": 2, "points": 5}
    first = bb.Experiment(**base).run(out=tmp_path, progress=False)
    changed = bb.Experiment(**base | other)
    alone = changed.run(progress=False)
    assert not alone.equals(first)
    assert_frame_equal(changed.run(out=tmp_path, progress=False), alone)
    more = bb.Experiment(**base | {"replications": 3}).run(out=tmp_path, progress=False)
    monkeypatch.setattr(runner, "play_unit", None)  # all of it is there
    for run, table in ((base, first), (base | other, alone), (base | {"replications": 3}, more)):
        assert_frame_equal(bb.Experiment(**run).run(out=tmp_path, progress=False), table)
        assert_frame_equal(pd.read_parquet(tmp_path / "results.parquet"), table)


def test_integers_of_numpy_are_kept_as_pythons(tmp_path):
    sizes = {"horizon": np.int64(5), "seed": np.int64(3), "points": np.int64(2)}
    one = bb.Experiment([IRIS], [bb.LinTS], replications=np.int64(1), **sizes)
    assert set(one.run(out=tmp_path, progress=False)["t"]) == {1, 5}


SCRIPT = """
import sys, time
import bayesbandit as bb
from functools import partial
iris, wine = bb.environments.bundled("iris"), bb.environments.bundled("wine")
sample = bb.environments.Classification.sample
def slowly(self, horizon, rng):
    time.sleep(0.15)
    return sample(self, horizon, rng)
bb.environments.Classification.sample = slowly
bandits = {"LinTS": bb.LinTS, "BLTS": partial(bb.BLTS, alpha=0.5), "BLUCB": bb.BLUCB}
bb.Experiment([iris, wine], bandits, replications=3, points=20).run(out=sys.argv[1], progress=False)
"""


@pytest.mark.slow
def test_killed_twice_and_started_again_it_goes_on_and_gives_the_same_table(tmp_path, table):
    """SIGKILL at any moment: what was finished stays, and is not run again."""
    for least in (1, 3):
        child = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)])
        deadline = time.monotonic() + 120
        while len(found := [*tmp_path.glob("runs/[!.]*.parquet")]) < least:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert len(found) >= least
        assert not (tmp_path / "results.parquet").exists()
    assert_frame_equal(experiment().run(out=tmp_path, progress=False), table)


def test_what_is_no_environment_is_refused():
    """A dict of them is read as its names."""
    world = bb.environments.SyntheticExample("well")
    for environments in ({"well": world}, [world, 7], "well"):
        with pytest.raises(TypeError, match="environments must have name, arms, n_features and"):
            bb.Experiment(environments, [bb.LinTS])


def test_a_failed_replication_fails_the_study_by_name_and_seed():
    def broken(arms, n_features, seed):
        if not isinstance(seed, int):  # as it is where a bandit is only described
            raise ZeroDivisionError("as arranged")
        return bb.LinTS(arms, n_features, seed=seed)

    said = "broken on iris, replication 0, seed 7, failed: ZeroDivisionError: as arranged"
    with pytest.raises(RuntimeError, match=said):
        bb.Experiment([IRIS], [broken], replications=1, seed=7).run(progress=False)


@pytest.mark.parametrize("horizon", [1, 2, 7, 100, 12_345])
def test_checkpoints_grow_to_the_horizon(horizon):
    t = checkpoints(horizon)
    assert t[0] == 1
    assert t[-1] == horizon
    assert (np.diff(t) > 0).all()
    assert len(t) <= 101


class Drawn:
    """An environment with two arms and one feature, of 20 rounds with some parts changed; its
    `repr` has its address."""

    name = "drawn"
    columns = ("x",)  # as a table has
    arms = ("a", "b")
    n_features = 1

    def __init__(self, changed):
        self.changed = changed

    def sample(self, horizon, rng):
        parts = {"x": np.zeros((20, 1)), "mean": np.ones((20, 2)), "reward": np.ones((20, 2))}
        return bb.environments.Sample(**parts | self.changed)


@pytest.mark.parametrize("made", [np.array, pd.DataFrame, lambda reward: reward.astype(object)])
def test_an_environment_counts_with_all_its_data(made):
    zeros = np.zeros((1000, 2))
    corrected = zeros.copy()
    corrected[500] = 1.0
    described = [
        bb.Experiment([Drawn(made(reward))], {"P": Constant}, 5, 1).describe()["environments"]
        for reward in (zeros, zeros, corrected)
    ]
    assert described[0] == described[1] != described[2]
    assert "0x" not in str(described)


def warm(arm, propensity=0.5):
    return {
        "warm_x": np.zeros((3, 1)), "warm_arm": np.array([0, 1, arm]), "warm_reward": np.ones(3),
        "warm_propensity": np.full(3, propensity),
    }  # fmt: skip


BAD_SAMPLES = [
    ({"x": np.zeros((20, 2))}, r"x must have shape \(20, 1\) or \(20, 2, 1\); got \(20, 2\)"),
    ({"x": np.zeros((0, 1))}, "x must have 1 to 20 rounds; got 0"),
    ({"x": np.zeros((40, 1))}, "x must have 1 to 20 rounds; got 40"),
    ({"mean": np.ones(20)}, r"mean must have shape \(20, 2\); got \(20,\)"),
    ({"mean": np.full((20, 2), np.nan)}, "mean must be finite"),
    ({"reward": np.ones((19, 2))}, r"reward must have shape \(20, 2\); got \(19, 2\)"),
    ({"reward": np.ones((20, 2), dtype=bool)}, "numbers; got dtype bool"),
    ({"reward": [[1.0, 0.0]] * 20}, "reward must be a NumPy array of numbers; got list"),
    ({"test_x": np.zeros((5, 1))}, "test_x and test_mean must be given together"),
    (warm(-1), "warm_arm must be integers from 0 to 1; got -1"),
    (warm(2), "warm_arm must be integers from 0 to 1; got 2"),
    (warm(0.0), "warm_arm must be integers from 0 to 1; got 0.0"),
    (warm(1, propensity=0.0), "propensities must be in"),
]


@pytest.mark.parametrize(("changed", "sentence"), BAD_SAMPLES)
def test_a_sample_that_cannot_be_played_is_the_environments(changed, sentence):
    with pytest.raises((TypeError, ValueError), match=f"'drawn': .*{sentence}"):
        bb.Experiment([Drawn(changed)], {"P": Constant}, 20, 1).run(progress=False)


@pytest.mark.parametrize("changed", [{}, warm(1), {"reward": np.ones((20, 2), dtype=int)}])
def test_a_sample_that_can_be_played(changed):
    table = bb.Experiment([Drawn(changed)], {"P": Constant}, 30, 1).run(progress=False)
    assert table["t"].iloc[-1] == table["reward"].iloc[-1] == 20


def numbered(k):
    return pd.DataFrame({"name": ["a", "b"], "number": [k, k + 0.1]})


def has_tables(cache, n):
    """Whether a cache has the tables 0 … n − 1, and not the next."""
    for k in range(n):
        assert str(k) in cache
        assert_frame_equal(cache[str(k)], numbered(k))
    return str(n) not in cache


def test_runs_into_one_folder_keep_each_others_tables(tmp_path):
    one, other = Cache(tmp_path), Cache(tmp_path)
    for cache, k in ((one, 0), (other, 1), (other, 0), (other, 2)):
        cache[str(k)] = numbered(k)
    assert has_tables(one, 3)
    assert has_tables(Cache(tmp_path), 3)
    assert has_tables(Cache(None), 0)


def test_a_broken_file_is_named_before_anything_is_played(tmp_path):
    cache = Cache(tmp_path)
    for k in range(3):
        cache[str(k)] = numbered(k)
    file = tmp_path / "1.parquet"
    whole = file.read_bytes()
    for content in (b"half", b"", whole[: len(whole) // 2]):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"1\.parquet is broken: .*; delete it to go on"):
            assert "1" in Cache(tmp_path)
    file.unlink()
    assert "1" not in Cache(tmp_path)
    file.write_bytes(whole)
    assert has_tables(Cache(tmp_path), 3)


def test_writes_are_whole_or_not_at_all(tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    cache["0"] = numbered(0)

    def half(frame, path, **_):
        path.write_bytes(b"half of it")
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_parquet", half)
        with pytest.raises(OSError, match="disk is full"):
            cache["1"] = numbered(1)
    assert [file.name for file in tmp_path.iterdir()] == ["0.parquet"]
    assert has_tables(Cache(tmp_path), 1)


@pytest.mark.slow
def test_flipped_bytes_of_the_pages_are_no_other_numbers(tmp_path):
    many = pd.concat([numbered(k) for k in range(300)], ignore_index=True)
    Cache(tmp_path)["0"] = many
    file = tmp_path / "0.parquet"
    whole = file.read_bytes()
    pages = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    refused = 0
    for at in range(4, pages, 23):
        broken = bytearray(whole)
        broken[at] ^= 0x10
        file.write_bytes(broken)
        cache = Cache(tmp_path)
        try:
            assert "0" in cache
        except ValueError:
            refused += 1
        else:
            assert_frame_equal(cache["0"], many, obj=f"byte {at}")
    assert refused


def test_the_record_says_how_long_it_took_and_not_where(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", [str(tmp_path / "bin" / "bayesbandit"), "compare"])
    for seed, seconds in ((0, 3.5), (1, 2.0)):
        write_results(tmp_path, numbered(seed), {"seed": seed}, seconds)
        record = json.loads((tmp_path / "run.json").read_text())
        assert record["seconds"] == seconds
        assert record["command"] == ["bayesbandit", "compare"]
        assert record["settings"] == {"seed": seed}


def test_other_settings_and_other_versions_have_another_key(monkeypatch):
    keys = {key(seed=0), key(seed=1), key(seed=0, bandit="b"), key(seed="0")}
    assert key(bandit="b", seed=0) in keys
    monkeypatch.setattr(results_on_disk, "version", lambda library: "0.1")
    assert len(keys | {key(seed=0)}) == 5
