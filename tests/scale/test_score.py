"""`bb.score`: arms and probabilities, part by part."""

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.scale import scoring
from tests.cases import few
from tests.scale.test_learn import log, new

X = log()[["u", "v"]]
NEW = ["arm", "propensity", "probability_a", "probability_b", "probability_c"]


def test_arms_are_drawn_with_the_probabilities_that_are_written():
    bandit = bb.learn(log(), new())
    scored = bb.score(X, bandit)
    pd.testing.assert_frame_equal(scored[["u", "v"]], X)
    np.testing.assert_allclose(scored[NEW[2:]], bandit.probabilities(X.to_numpy()), rtol=1e-9)
    own = scored.apply(lambda r: r[f"probability_{r['arm']}"], axis=1)
    np.testing.assert_allclose(scored["propensity"], own, rtol=1e-12)
    expected, found = scored[NEW[2:]].mean(), scored["arm"].value_counts(normalize=True)
    error = np.sqrt((scored[NEW[2:]] * (1 - scored[NEW[2:]])).mean() / len(X))
    for arm in "abc":
        name = f"probability_{arm}"
        assert abs(found.get(arm, 0.0) - expected[name]) < 4 * error[name] + 1e-12
    pd.testing.assert_frame_equal(scored, bb.score(X, bandit))
    assert not scored.equals(bb.score(X, bandit, key="tomorrow"))
    judged = bb.ope.Log.of(
        scored.assign(reward=1.0),
        probabilities={a: f"probability_{a}" for a in "abc"},
        x=["u", "v"],
    )
    assert judged.probabilities.shape == (300, 3)


@few("[memory0]", "[memory2]")
@pytest.mark.parametrize(
    "memory",
    [
        {"half_life": 5.0},
        {"half_life": "auto"},
        {"drift": 0.1},
        {"half_life": "1h", "clock": "time"},
    ],
)
def test_a_bandit_that_forgets_does_not_age_while_it_scores(memory, monkeypatch):
    """The probabilities are the same however a table is cut; contexts all decided now."""
    bandit = bb.LinTS(tuple("abc"), 2, **memory)
    frame = log()[:60]
    bandit.update(frame[["u", "v"]].to_numpy(), frame["arm"], frame["reward"])
    found = []
    for room in (scoring.ROOM, 70):
        monkeypatch.setattr(scoring, "ROOM", room)
        found.append(bb.score(X[:40], bandit)[NEW[2:]].to_numpy())
    tolerance = 1e-3 if "clock" in memory else 1e-12  # the clock on the wall goes on
    np.testing.assert_allclose(found[1:], found[:-1], rtol=tolerance, atol=1e-12)
    one_each = [bandit.probabilities(x) for x in X[:40].to_numpy()[:, None]]
    np.testing.assert_allclose(found[0], np.concatenate(one_each), rtol=1e-3 + tolerance)


def test_a_table_on_a_cluster_stays_there_until_it_is_asked_for():
    dd = pytest.importorskip("dask.dataframe")
    bandit = bb.learn(log(), new())
    pieces = [dd.from_pandas(X.iloc[a:b]) for a, b in [(0, 100), (100, 300)]]
    scored = bb.score(dd.concat(pieces), bandit)
    assert isinstance(scored, dd.DataFrame)
    assert list(scored.columns) == ["u", "v", *NEW]
    found = scored.compute()
    assert found.dtypes.equals(scored.dtypes)
    alone = bb.score(X.iloc[:100], bandit)
    pd.testing.assert_frame_equal(found.iloc[:100].reset_index(drop=True), alone)
    assert bb.score(pieces[0].map_partitions(lambda part: part.iloc[:0]), bandit).compute().empty


def test_files_are_scored_when_they_are_asked_for(tmp_path):
    pytest.importorskip("dask.dataframe")
    bandit = bb.learn(log(), new())
    for i in range(3):
        X.iloc[100 * i : 100 * (i + 1)].to_parquet(tmp_path / f"{i}.parquet")
    bb.score(str(tmp_path / "*.parquet"), bandit).to_parquet(tmp_path / "scored")
    found = pd.read_parquet(tmp_path / "scored").reset_index(drop=True)
    pd.testing.assert_frame_equal(found[["u", "v"]], X)
    np.testing.assert_allclose(found[NEW[2:]], bandit.probabilities(X.to_numpy()), rtol=1e-9)


def test_what_cannot_be_scored_is_refused():
    bandit = bb.LinTS(("a", "b", "c"), 2)
    with pytest.raises(ValueError, match=r"a table must have rows and columns; got shape \(0, 2\)"):
        bb.score(X[:0], bandit)
    with pytest.raises(ValueError, match="a column 'arm' already"):
        bb.score(log(), bandit, features=["u", "v"])
    with pytest.raises(ValueError, match="must name 2 columns"):
        bb.score(X.assign(w=1.0), bandit)
    with pytest.raises(ValueError, match="no column 'w'"):
        bb.score(X, bandit, features=["u", "w"])
    shared = bb.Bandit(3, bb.Shared(bb.Ridge()), bb.Thompson(), n_features=2)
    with pytest.raises(ValueError, match="arms with features"):
        bb.score(X, shared)


@pytest.mark.parametrize("name", ["alpha", "min_probability"])
def test_a_policy_that_changes_by_the_round_is_refused(name):
    """Rows have no rounds: those of another part would be of the same ones."""
    bandit = bb.LinTS(tuple("abc"), 2, **{name: lambda t: 0.3 / t})
    with pytest.raises(ValueError, match="settings must be numbers"):
        bb.score(X, bandit)
