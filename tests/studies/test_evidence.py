"""The study of evidence: what it measures is what `bb.ope` says, and its arithmetic."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import bayesbandit as bb
from bayesbandit.ope import estimate
from bayesbandit_studies import evidence
from bayesbandit_studies.evidence import designs, measured, open_bandit
from bayesbandit_studies.evidence.measured import DEFAULT, FIXED, LOOKS


def test_the_default_is_what_estimate_does():
    log = next(designs.linear(1, seed=3).logs())
    for asked in (1, (0, 2)):
        found = dict(measured.estimates(log, next(designs.linear(1, seed=3, snapshots=True).logs(
            snapshots=True)), asked))  # fmt: skip
        assert found[DEFAULT] == measured.ends(estimate(log, asked, force=True))
        assert found["DR, ridge, StableVar"][0] == estimate(log, asked, mean="ridge").value


def test_snapshots_are_the_policy():
    drawn = designs.linear(2, seed=1, T=200, snapshots=True)
    for log in drawn.logs(snapshots=True):  # a log refuses snapshots that differ from its rows
        assert log.snapshots.shape == (5, 200, designs.K)
    plain = designs.linear(2, seed=1, T=200)
    np.testing.assert_array_equal(plain.arm, drawn.arm)
    np.testing.assert_array_equal(plain.probabilities, drawn.probabilities)


def test_looks_are_ordinary_intervals():
    log = next(designs.bernoulli(1, seed=2).logs())
    for asked in (0, (2, 1)):
        low, high = measured.fixed(estimate(log, asked))
        for at in (0, 7, len(LOOKS) - 1):
            found = estimate(log[: LOOKS[at]], asked, force=True)
            assert (low[at], high[at]) == pytest.approx((found.low, found.high))


def made(part, rows):
    columns = ["environment", "target", "method", "replication", "value", "low", "high", "round"]
    return pd.DataFrame(rows, columns=columns).assign(part=part, t=9)


def test_table_by_hand():
    nan = np.nan
    rows = [
        ("well", "arm 0", DEFAULT, 0, 0.1, -0.1, 0.3, nan),
        ("well", "arm 0", DEFAULT, 1, 0.3, 0.1, 0.5, nan),
        ("well", "arm 0", DEFAULT, 2, 0.2, nan, nan, nan),
    ]
    (row,) = evidence.table(made("coverage", rows)).to_dict("records")
    assert row["coverage"] == 0.5
    assert row["coverage_se"] == pytest.approx(0.5)
    assert row["width"] == pytest.approx(0.4)
    assert row["bias"] == pytest.approx(0.2)
    assert row["rmse"] == pytest.approx(np.sqrt(0.14 / 3))
    assert row["refused"] == pytest.approx(1 / 3)


def test_peeking_by_hand():
    rows = [
        ("e", "arm 0", name, i, 0.3, 0.2, 0.4, at)
        for name in evidence.SEQUENCES for i, at in enumerate([120, np.nan])
    ]  # fmt: skip
    row = evidence.peeked(made("peeking", rows)).set_index("method").loc[FIXED]
    assert row["misses at some look, in %"].startswith("50.0 ± 35.4")
    assert row["misses at the end, in %"].startswith("0 (≤")
    so_far = evidence.by_round(made("peeking", rows), (100, 120, 160))
    assert so_far.groupby("t")["so far"].mean().tolist() == [0.0, 0.5, 0.5]


def test_blocks_depend_on_the_seed_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(evidence, "PARTS", {"detection": ("mis",)})
    monkeypatch.setattr(evidence, "BLOCK", 2)
    three = evidence.simulations(3).run(out=tmp_path)
    assert sorted(set(three["replication"])) == [0, 1, 2]
    two = evidence.simulations(2).run()
    assert_frame_equal(three[three["replication"] < 2].reset_index(drop=True), two)
    assert_frame_equal(evidence.simulations(3).run(out=tmp_path), three)  # those that are kept
    one = evidence.simulations(3, seed=1).run()
    assert_frame_equal(evidence.simulations(3, seed=1).run(out=tmp_path), one)  # not those of 0
    true = three[three["method"] == "true"]
    assert true["round"].isna().all()


def test_an_interrupted_run_goes_on_where_it_was(monkeypatch, tmp_path):
    monkeypatch.setattr(evidence, "PARTS", {"detection": ("mis", "well")})
    monkeypatch.setattr(evidence, "BLOCK", 1)
    measured_once, begun = evidence.block, []

    def interrupted(*unit):
        if len(begun) == 3:
            raise KeyboardInterrupt
        begun.append(unit)
        return measured_once(*unit)

    monkeypatch.setattr(evidence, "block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        evidence.simulations(2).run(out=tmp_path)
    again = []
    monkeypatch.setattr(evidence, "block", lambda *unit: again.append(unit) or measured_once(*unit))
    found = evidence.simulations(2).run(out=tmp_path)
    assert again == [("detection", "well", 1, 0)]
    assert_frame_equal(found, evidence.simulations(2).run())


def test_a_real_log(monkeypatch, tmp_path):
    """Two logs of one policy: each judges the other."""
    rng, n = np.random.default_rng(0), 3_000
    for file in open_bandit.FILES.values():
        item = rng.integers(open_bandit.K, size=n)
        frame = pd.DataFrame({
            "timestamp": pd.date_range("2020-01-01", periods=n, freq="s"), "item_id": item,
            "position": rng.integers(1, 4, size=n), "propensity_score": 1 / open_bandit.K,
            "click": (rng.random(n) < 0.1).astype(int),
        })  # fmt: skip
        frame.to_parquet(tmp_path / file)
    monkeypatch.delenv(open_bandit.FOLDER, raising=False)
    assert open_bandit.sample() is None
    monkeypatch.setenv(open_bandit.FOLDER, str(tmp_path))
    found = open_bandit.sample()
    assert len(found) == 2 * (len(open_bandit.ESTIMATORS) + 1)
    assert (found["refused"] == "").all()
    assert ((found["low"] < 0.1) & (found["high"] > 0.1)).mean() > 0.7
    shown = open_bandit.table(found)
    assert shown["clicks"].str.contains("±").all()
    logs = open_bandit.logs(tmp_path)
    shares = open_bandit.shares(logs["Thompson"])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert not bb.ope.check(logs["uniform"]).refuted


@pytest.mark.slow
@pytest.mark.long
def test_the_claims():
    """Coverage ≥ 91 % of the default everywhere, and detection, at 15 replications."""
    results = evidence.simulations(15).run()
    found = evidence.table(results)
    mine = found[found["method"] == DEFAULT]
    assert (mine["coverage"] > 0.91 - 3 * 0.074).all()
    control = found[(found["method"] == "sample mean") & (found["target"] == "arm 0")]
    control = control.set_index("environment")["coverage"]
    # 10 standard deviations apart, the policy hardly asks for contexts: a mean of rounds at random
    by_contexts = [*designs.DESIGNS, "apart by 1 sd"]
    assert (control[by_contexts] < 0.7).all()
    assert (control.drop(by_contexts) > 0.95 - 3 * 0.057).all()
    detected = evidence.refuted(results).set_index("design")
    assert detected.shape == (4, 4)
    assert set(evidence.figures(results)) >= {"coverage", "width", "peeking", "detection"}
    assert list(evidence.printed(found)["target"]) == list(measured.TARGETS)
    assert evidence.details(results)
