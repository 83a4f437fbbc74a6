"""Estimates against formulas and Open Bandit Pipeline's numbers, exact identities, and each refusal
by a log that deserves it."""

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.ope import Log, estimate, evaluate
from bayesbandit.ope.weights import contextual, phi
from bayesbandit_studies.evidence.designs import BATCH, DESIGNS, linear
from tests.cases import long_but

N, K = 400, 3


def made(seed=0, n=N, batch=True):
    """A log with contexts, three arms and rewards in [0, 1], and a target (n, K)."""
    rng = np.random.default_rng(seed)
    x, e = rng.normal(size=(n, 2)), 0.1 / K + 0.9 * rng.dirichlet(np.ones(K), size=n)
    arm = (e.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    reward = np.clip(0.5 + 0.2 * x[:, 0] * (arm - 1) + 0.1 * rng.normal(size=n), 0, 1)
    pi = rng.dirichlet(np.ones(K), size=n)
    return Log(x, arm, reward, e, batch=np.arange(n) // BATCH if batch else None), pi


def parts(log, pi):
    rows = np.arange(len(log))
    return pi[rows, log.played] / log.propensity, log.reward, rows


def error_by_hand(log, found, weight, part, m, ratios, t=None):
    """The standard error after t rounds that count, by the definition, arm by arm.

    weight: w_k (n, K). part: w(Y − m) (n,). m: predicted means (n, K).
    """
    on = np.flatnonzero(found.h > 0)[:t]
    h, scores, arm, y = found.h[on], found.scores[on], log.played[on], log.reward[on]
    v = (h @ scores) / h.sum()
    terms = (h * (scores - v)) ** 2
    seen, size = terms.sum(), terms.sum() ** 2 / (terms**2).sum()
    size = min(size, *(w[on].sum() ** 2 / (w[on] ** 2).sum() for w in ratios))
    level = m.copy()  # the means, averaged over the contexts of a batch
    for at in log.batches:
        level[at] = np.average(m[at], axis=0, weights=found.h[at] if found.h[at].any() else None)
    pooled = sum(((y[arm == k] - y[arm == k].mean()) ** 2).sum() for k in set(arm)) / len(y)
    excess = -(h**2 * part[on] ** 2).sum()
    for k in np.flatnonzero((weight[on] != 0).any(axis=0)):
        own, g = y[arm == k], h**2 * log.probabilities[on, k] * weight[on, k] ** 2
        if (own == own[:1]).all():  # an arm of which nothing is known borrows from all
            excess += pooled * g.sum()
            excess += (g * (own.mean() - level[on, k]) ** 2).sum() if len(own) else 0.0
            continue
        u = own - np.cumsum(own) / np.arange(1, len(own) + 1)
        around_m = ((own - m[on, k][arm == k])[1:] ** 2).sum() / len(own)
        q = (u**2).sum() ** 2 / (u**4).sum()
        varies = min(own.var(), around_m) * (1 + min(q / 2, 2 / q)) + max(1 - q / 2, 0) * pooled
        excess += varies * g.sum()
        if own.var() <= around_m:
            excess += (g * (own.mean() - level[on, k]) ** 2).sum()
    return np.sqrt(seen + 50 * max(excess, 0) / (size + 50)) / h.sum()


OBP = json.loads((Path(__file__).parent / "logs" / "obp.json").read_text())


@pytest.mark.parametrize("estimator", OBP["values"])
def test_values_are_those_of_open_bandit_pipeline(estimator):
    log = Log(None, OBP["arm"], OBP["reward"], OBP["probabilities"])
    tuning = {"clip": 2.0, "tau": 1.5, "lam": 4.0}
    found = estimate(log, OBP["target"], estimator, OBP["mean"], "equal", **tuning)
    assert found.value == pytest.approx(OBP["values"][estimator], abs=1e-12)


def test_errors_of_estimators_by_hand():
    """SWITCH has w ≤ τ, shrunk DR λw/(w² + λ)."""
    log, pi = made()
    m = np.random.default_rng(1).random((N, K))
    w, y, rows = parts(log, pi)
    m_A, base = m[rows, log.played], (pi * m).sum(axis=1)
    for name in ("clipped", "dm", "switch", "shrunk"):
        found = estimate(log, pi, name, m, "equal")
        assert "biased" in found.refused
        assert np.isnan([found.low, found.high]).all()
    v, ratio = (w * y).sum() / w.sum(), pi / log.probabilities
    found = estimate(log, pi, "snips", weights="equal")
    np.testing.assert_allclose(found.scores, v + w * (y - v) / w.mean(), atol=1e-12)
    found = estimate(log, pi, "dr", m, "equal")
    np.testing.assert_allclose(found.scores, base + w * (y - m_A), atol=1e-12)
    for name, of, means in (
        ("snips", lambda w: w, np.full((N, K), v)),
        ("dr", lambda w: w, m),
        ("clipped", lambda w: np.minimum(w, 2.0), 0 * m),
        ("switch", lambda w: w * (w <= 2.0), m),
        ("shrunk", lambda w: 3.0 * w / (w**2 + 3.0), m),
    ):
        found = estimate(log, pi, name, m, "equal", clip=2.0, tau=2.0, lam=3.0)
        part = of(w) * (y - means[rows, log.played])
        error = error_by_hand(log, found, of(ratio), part, means, [of(w)])
        assert found.se == pytest.approx(error, rel=1e-9), name
    found = estimate(log, pi, "dm", m, "equal")
    assert found.se == pytest.approx(base.std() / np.sqrt(N))
    found = estimate(log, pi, "ips", weights="equal")
    assert found.ess == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert found.expected_ess == pytest.approx(N**2 / (pi**2 / log.probabilities).sum())


@pytest.mark.parametrize("weights", ["equal", "minvar", "stablevar"])
def test_unbiased_by_enumeration(weights):
    """Three rounds, two arms, binary rewards and a policy that learns: E[Σ hΓ] = V E[Σ h]."""
    value, total = 0.0, 0.0
    theta = np.array([0.3, 0.6])
    for arms, rewards in product(product((0, 1), repeat=3), product((0, 1), repeat=3)):
        e = [np.array([0.5, 0.5])]
        for a, r in zip(arms[:2], rewards[:2], strict=True):
            shift = 0.2 * (r if a == 1 else -r)
            p = np.clip(e[-1][1] + shift, 0.2, 0.8)
            e.append(np.array([1 - p, p]))
        chance = np.prod([p[a] for p, a in zip(e, arms, strict=True)])
        chance *= np.prod([theta[a] ** r * (1 - theta[a]) ** (1 - r)
                           for a, r in zip(arms, rewards, strict=True)])  # fmt: skip
        log = Log(None, list(arms), rewards, np.array(e), arms=2, batch=[0, 1, 2])
        found = estimate(log, 1, weights=weights)
        value += chance * (found.h * (found.scores - 0.6)).sum()
        total += chance
    assert total == pytest.approx(1.0)
    assert value == pytest.approx(0.0, abs=1e-12)


def test_the_logged_policy_earned_the_mean_reward():
    log, _ = made()
    assert estimate(log, None).value == pytest.approx(log.reward.mean(), rel=1e-14)
    for name in ("ips", "snips", "clipped"):
        found = estimate(log, log.probabilities, name, weights="equal")
        assert found.value == pytest.approx(log.reward.mean(), rel=1e-14)
    assert estimate(log, (log.probabilities, None)).value == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("name", ["ips", "snips", "dr", "switch"])
def test_contrasts_are_paired(name):
    log, pi = made()
    m = np.full((N, K), 0.4)
    one, other, gap = (estimate(log, t, name, m, "equal") for t in (0, pi, (0, pi)))
    assert gap.value == pytest.approx(one.value - other.value, rel=1e-9)
    np.testing.assert_allclose(gap.scores, one.scores - other.scores, atol=1e-12)
    back = estimate(log, (pi, 0), name, m, "equal")
    assert (back.value, back.se) == pytest.approx((-gap.value, gap.se))
    same = estimate(log, (pi, pi))
    assert (same.value, same.se, same.p) == (0, 0, 1)


def test_swapping_arms_changes_nothing():
    log, _ = made()
    order = [2, 0, 1]
    names = np.array(["a", "b", "c"])
    one = Log(log.x, names[log.played], log.reward, log.probabilities, arms=list("abc"))
    two = Log(
        log.x, names[log.played], log.reward, log.probabilities[:, order], arms=names[order]
    )  # fmt: skip
    for target in ("a", ("b", "c"), lambda x: np.where(x[:, 0] > 0, "a", "c")):
        a, b = estimate(one, target), estimate(two, target)
        assert (a.value, a.se, a.ess) == pytest.approx((b.value, b.se, b.ess))


def test_the_running_mean_is_that_of_all_earlier_rewards():
    log, _ = made()
    m = estimate(log, 0, mean="running").m
    before = np.cumsum(log.reward)[:-1] / np.arange(1, N)
    np.testing.assert_allclose(m, np.tile(np.r_[0.0, before][:, None], K), atol=1e-12)


def test_means_in_a_table_are_those_of_the_arms_that_its_columns_name():
    log, pi = made()
    m = pd.DataFrame(np.random.default_rng(1).random((N, K)))
    expected = estimate(log, pi, "dm", mean=m.to_numpy()).value
    assert estimate(log, pi, "dm", mean=m[[2, 0, 1]]).value == expected


def test_means_are_predictable():
    """Later contexts and rewards do not change earlier means, nor weights of rounds."""
    log, pi = made()
    first = np.arange(N) < 200
    other = Log(np.where(first[:, None], log.x, 5 - 3 * log.x), log.played,
                np.where(first, log.reward, 1 - log.reward), log.probabilities,
                batch=log.batch)  # fmt: skip
    for mean in ("chosen", "arm", "ridge", "quadratic"):
        one, two = (estimate(log_, pi, mean=mean, force=True) for log_ in (log, other))
        np.testing.assert_array_equal(one.m[:200], two.m[:200])
        assert not np.allclose(one.m[280:], two.m[280:])
        np.testing.assert_array_equal(one.h, two.h)
        assert one.m.min() >= 0
        assert one.m.max() <= 1
    arm = estimate(log, pi, mean="arm").m
    for t in (1, 2, 7, 240, 251):  # also within a batch
        np.testing.assert_allclose(arm[t], shrunk_by_hand(log.played[:t], log.reward[:t]))


def shrunk_by_hand(arm, y):
    """Arms' means by the analysis of variance: m_k = r̄ + (r̄_k − r̄) nτ²/(nτ² + σ²)."""
    count = np.bincount(arm, minlength=K)
    own = [y[arm == k].mean() if count[k] else y.mean() for k in range(K)]
    within = sum(((y[arm == k] - own[k]) ** 2).sum() for k in range(K))
    sigma2 = within / max(len(y) - (count > 0).sum(), 1)
    between = (count * (own - y.mean()) ** 2).sum() - ((count > 0).sum() - 1) * sigma2
    tau2 = max(between, 0.0) / max(len(y) - (count**2).sum() / len(y), 1)
    share = [n * tau2 / (n * tau2 + sigma2) if n * tau2 > 0 else 0.0 for n in count]
    return y.mean() + np.array(share) * (own - y.mean())


def test_forward_ridge_is_scikit_learns():
    from sklearn.linear_model import Ridge

    log, pi = made()
    found = estimate(log, pi, mean="ridge").m[200:240]
    past, now = log.x[:200], log.x[200:240]
    z = (past - past.mean(axis=0)) / past.std(axis=0)
    f = np.column_stack([np.ones(200), z])
    means = shrunk_by_hand(log.played[:200], log.reward[:200])
    for k in range(K):
        mine, r = log.played[:200] == k, means[k]
        fit = Ridge(alpha=1.0, fit_intercept=False).fit(f[mine], log.reward[:200][mine] - r)
        new = np.column_stack([np.ones(40), (now - past.mean(axis=0)) / past.std(axis=0)])
        low, high = log.reward[:200].min(), log.reward[:200].max()
        np.testing.assert_allclose(found[:, k], np.clip(r + fit.predict(new), low, high))


def test_weights_by_hand():
    log, pi = made()
    cost = (pi**2 / log.probabilities).sum(axis=1).reshape(-1, BATCH).mean(axis=1)
    h = np.repeat(1 / np.append(cost[0], cost[:-1]), BATCH)
    m = np.zeros((N, K))
    np.testing.assert_allclose(estimate(log, pi, mean=m, weights="minvar").h, h)
    np.testing.assert_allclose(estimate(log, pi, mean=m).h, np.sqrt(h))


def test_snapshots_and_contextual_weights_by_hand():
    """Against the (T, T) table that the toolkit does not make."""
    rng = np.random.default_rng(3)
    n, slopes = 60, np.array([0.0, 1.0, -0.5])
    x, batch = rng.normal(size=(n, 1)), np.arange(n) // 20

    def policy(b, x):
        odds = np.exp(slopes[int(b)] * x * np.array([0.0, 1.0]))
        return odds / odds.sum(axis=1, keepdims=True)

    e = np.vstack([policy(b, x[batch == b]) for b in range(3)])
    arm = (rng.random(n) < e[:, 1]).astype(int)
    known = np.array([policy(b, x) for b in range(3)])
    log = Log(x, arm, rng.random(n), e, batch=batch, snapshots=known)
    delta = np.eye(2)[np.ones(n, int)]
    expected = [1 / policy(0, x[:20])[:, 1], 1 / policy(1, x[:20])[:, 1]]
    expected.append(1 / policy(2, x[:40])[:, 1])
    np.testing.assert_allclose(
        phi(log, delta, np.ones(n, bool)), [part.mean() for part in expected]
    )
    scores = rng.normal(size=n)
    table = np.array([policy(b, x)[:, 1] for b in batch])  # h_t(X_s), (t, s)
    Z = table.sum(axis=0)
    B = np.diag(table) * scores / Z
    centre = table @ (B / Z)
    _, value, variance = contextual(log, delta, scores)
    assert value == pytest.approx(B.sum())
    assert variance == pytest.approx(((B - centre) ** 2).sum())
    assert estimate(log, 1, weights="contextual").weights == "contextual"


def test_variance_by_hand():
    """At every round, of a value and of a difference; and of a subgroup."""
    log, pi = made()
    w, y, _ = parts(log, pi)
    w1 = (log.played == 1) / log.propensity
    e = log.probabilities
    truth = 0.5 + 0.2 * log.x[:, :1] * np.arange(-1, K - 1)  # rewards vary less around it
    pair = (pi, 1), pi - np.eye(K)[1], [w, w1]
    for mean, (target, delta, ratios) in product(("chosen", truth), ((pi, pi, [w]), pair)):
        found = estimate(log, target, mean=mean)
        for t in (7, 130, N):
            error = np.sqrt(found.sums.V[t - 1]) / found.sums.H[t - 1]
            w_A, m = (delta / e)[np.arange(N), log.played], found.m
            part = w_A * (y - m[np.arange(N), log.played])
            by_hand = error_by_hand(log, found, delta / e, part, m, ratios, t)
            assert error == pytest.approx(by_hand, rel=1e-9)
        assert found.se == pytest.approx(error)
    g = log.x[:, 0] > 0  # a subgroup
    part = estimate(log, pi, mean="arm", subgroup=g)
    assert (part.n, part.h[~g].max()) == (g.sum(), 0)
    assert part.value == pytest.approx(part.h @ part.scores / part.h.sum())
    weighted = w * (y - part.m[np.arange(N), log.played])
    by_hand = error_by_hand(log, part, pi / e, weighted, part.m, [w])
    assert part.se == pytest.approx(by_hand)
    squares, fourth = 0.0, 0.0
    for k in range(K):
        own = y[log.played == k]
        u = own - np.cumsum(own) / np.arange(1, len(own) + 1)
        squares, fourth = squares + (u**2).sum(), fourth + (u**4).sum()
    assert found.sums.steady[-1] == pytest.approx(squares**2 / fourth)


def test_heavy_rounds_that_are_still_to_come_widen_the_interval():
    rng = np.random.default_rng(4)
    e = np.tile([0.9, 0.1], (N, 1))
    e[:40] = 0.5
    for share, widened in ((0.01, True), (0.1, False)):  # of rounds in which arm 1 was taken
        arm = np.where(np.arange(N) < 40, np.arange(N) % 2, rng.random(N) < share).astype(int)
        log = Log(None, arm, rng.random(N), e, batch=np.arange(N) // 40)
        log.checked = bb.ope.check(log[:40])  # the arms are not by the probabilities
        for weights in ("minvar", "equal"):
            found = estimate(log, 1, weights=weights)
            seen = np.sqrt((found.h**2 * (found.scores - found.value) ** 2).sum()) / found.h.sum()
            assert (found.se > 1.25 * seen) == widened
            assert any("vary less" in said for said in found.warnings) == widened


def test_rewards_that_do_not_vary_have_no_interval():
    """No click in 300 rounds is no proof that there will be none."""
    rng = np.random.default_rng(0)
    for reward in (0.0, 7.0):
        log = Log(None, rng.integers(0, 2, 300), np.full(300, reward), np.full((300, 2), 0.5))
        result = evaluate(log, {"a": 0, "b": 1, "logged": None}, sequence="asymptotic")
        assert all("all rewards are the same" in why for why in result.table.refused)
        assert np.isnan(result.contrast("a", "b").p)
        assert result.best().policy is None
        assert len(result.sequence) == 0
        exact = estimate(log, 0, sequence=(0, 7)).sequence  # needs no variance
        assert (exact.low <= reward).all()
        assert (exact.high >= reward).all()
        assert exact.high[-1] - exact.low[-1] < 2
    log, _ = made()
    same = estimate(log, (0, 0))
    assert (same.low, same.value, same.high, same.p) == (0, 0, 0, 1)


def test_the_origin_of_rewards_costs_nothing():
    """Rewards + 1,000 standard deviations: predicted means take them away, within the first batch,
    too. Rounds before an arm's first reward have hardly any weight."""
    rng = np.random.default_rng(0)
    arm, y = rng.integers(0, 2, 1000), rng.normal(size=1000)
    for batch in (None, np.zeros(1000), np.arange(1000) // 40):
        here, there = (
            estimate(Log(None, arm, y + c, np.full((1000, 2), 0.5), batch=batch), 0)
            for c in (0.0, 1000.0)
        )
        assert there.value - 1000 == pytest.approx(here.value, abs=1e-8)
        assert there.se == pytest.approx(here.se, rel=1e-8)


def test_missing_rewards():
    log, pi = made()
    holes = log.reward.copy()
    holes[::10] = np.nan
    open_ = Log(log.x, log.played, np.where(np.arange(N) < 300, log.reward, np.nan),
                log.probabilities)  # fmt: skip
    some = Log(log.x, log.played, holes, log.probabilities)
    with pytest.raises(ValueError, match=r"40 of 400 rewards are missing \(NaN\)"):
        estimate(some, pi)
    with pytest.raises(ValueError, match="the reward of round 0 is open"):
        estimate(some, pi, missing="open")
    prefix = estimate(open_[:300], pi[:300])
    so_far = estimate(open_, pi, missing="open")
    assert so_far.value == prefix.value
    assert "rounds from the first open reward on are left out: 300 of 400 count" in so_far.warnings
    assert estimate(some, pi, missing="random").n == 360
    lost = estimate(some, pi, "ips", weights="equal", missing="random")
    w = pi[np.arange(N), log.played] / log.propensity
    assert lost.value == pytest.approx(np.nanmean(w * holes))
    with pytest.raises(ValueError, match="missing must be one of None"):
        estimate(some, pi, missing=0.9)


@pytest.mark.parametrize("missing", ["open", "random"])
def test_a_subgroup_without_rounds_that_count_is_no_failure_of_the_others(missing):
    log, _ = made()
    late = np.arange(N) >= 200
    some = Log(log.x, log.played, np.where(late, np.nan, log.reward), log.probabilities)
    found = evaluate(some, [0], missing=missing).subgroups(late)
    assert found.refused[0, True] == "the subgroup must have a round that counts; got none"
    assert found.estimate[0, False] == estimate(some, 0, missing=missing).value
    assert np.isnan(found.estimate[0, True])
    with pytest.raises(ValueError, match="must have a round that counts; got none"):
        estimate(log, 0, subgroup=np.zeros(N, dtype=bool))


@pytest.fixture
def part():
    """A log in whose first half arm 2 was not available."""
    log, _ = made()
    e = log.probabilities.copy()
    e[:200, 2] = 0
    e /= e.sum(axis=1, keepdims=True)
    arm = (e.cumsum(axis=1) > np.random.default_rng(5).random((N, 1))).argmax(axis=1)
    return Log(log.x, arm, log.reward, e, batch=log.batch)


def test_availability(part):
    with pytest.raises(ValueError, match=r"probability 0 in 200 of 400 rounds \(50.0%\)"):
        estimate(part, 2)
    found = estimate(part, 2, mean="arm", while_available=True)
    assert found.n == 200
    assert "50.0% of rounds" in found.warnings[0]
    assert found.value == pytest.approx(estimate(part[200:], 2, mean="arm").value)
    table = evaluate(part, {"a": 0, "c": 2}).table
    assert "200 of 400" in table.refused["c"]
    assert np.isnan(table.estimate["c"])
    assert table.refused["a"] == ""


@pytest.mark.parametrize("p", [1e-320, 1e-300, 1e-60])
def test_an_arm_that_was_as_good_as_impossible_is_not_supported(p):
    """Powers of its weights would be infinite."""
    arm = np.where(np.arange(200) == 5, 0, 1)
    whole = {"probabilities": np.tile([p, 1.0], (200, 1))}
    for known in (whole, {"propensity": np.where(arm == 0, p, 1.0), "arms": 3}):
        log = Log(None, arm, np.arange(200.0), **known)
        with pytest.raises(ValueError, match="the target wants arms that had probability 0"):
            estimate(log, 0)
        assert estimate(log, None, force=True).value == pytest.approx(99.5)


def test_names_of_policies_and_subgroups(part):
    log, _ = made()
    result = evaluate(part, [0, 2, None], while_available=True)
    assert list(result.table.index) == [0, 2, "logged"]
    early = np.where(np.arange(N) < 200, "early", "late")
    found = result.subgroups(early)  # arm 2 could not be taken early
    assert "in every round" in found.refused[2, "early"]
    assert np.isnan(found.low_all[2, "early"])
    for key in ((0, "early"), (2, "late"), ("logged", "late")):
        assert found.low_all[key] <= found.low[key] < found.high[key] <= found.high_all[key]
    with pytest.raises(ValueError, match="different names; got 0 more than once"):
        evaluate(part, [0, 0])
    names = np.array(["logged", "new", "old"])[part.played]
    named = Log(None, names, log.reward, propensity=log.propensity)
    with pytest.raises(ValueError, match="different names; got 'logged' more than once"):
        evaluate(named, ["logged", None])
    first = evaluate(log, [0], subgroup=np.arange(N) < 300).subgroups(early)
    assert first["n"].tolist() == [200, 100]
    assert [*evaluate(log, [0], subgroup=early == "late").subgroups(early).index] == [(0, "late")]
    with pytest.raises(ValueError, match="labels must not be missing; 200 of 400 are"):
        result.subgroups(np.where(np.arange(N) < 200, np.nan, 1.0))


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
def test_subgroups_may_be_days_in_any_unit(unit):
    log, _ = made()
    day = np.datetime64("2026-11-01", unit) + np.arange(N) // 200 * np.timedelta64(1, "D")
    found = evaluate(log, [0]).subgroups(day)
    by_number = evaluate(log, [0]).subgroups(np.arange(N) // 200)
    assert [*found.loc[0].index] == [pd.Timestamp("2026-11-01"), pd.Timestamp("2026-11-02")]
    np.testing.assert_array_equal(found["estimate"], by_number["estimate"])


def test_adjusted_p_are_no_smaller_than_draws_can_tell():
    """Between p and its multiple by Bonferroni; of one row, p itself."""
    log, _ = made(n=2000)
    rows = evaluate(log, [0, 1, 2]).contrasts()
    assert (rows.p <= rows.p_adjusted).all()
    assert (rows.p_adjusted <= 3 * rows.p + 3e-3).all()
    sure = Log(None, log.played, log.played + 0.1 * log.reward, log.probabilities)
    rows = evaluate(sure, [0, 1, 2]).contrasts()
    np.testing.assert_allclose(rows.p_adjusted, 3 * rows.p)  # beyond what draws can tell


def test_refusals():
    log, pi = made()
    for wrong in ("red", None, 3):
        with pytest.raises(TypeError, match="policies must be a mapping"):
            evaluate(log, wrong)
    rare = np.tile([0.996, 0.002, 0.002], (N, 1))
    few = Log(None, np.where(np.arange(N) % 200 == 3, 1, 0), np.ones(N), rare)
    assert "effective sample size is 2.0, below 5" in estimate(few, 1).refused
    lucky = np.tile([0.9, 0.099, 0.001], (N, 1))  # the third arm is taken where it was likely
    lucky[:40] = 1 / 3
    arm = np.where(np.arange(N) < 40, np.arange(N) % 3, 0)
    late = Log(None, arm, np.arange(N) % 7, lucky, batch=np.arange(N) // 40)
    late.checked = bb.ope.check(log)  # its probabilities are not what is asked here
    for settings in ({"estimator": "ips"}, {"weights": "equal"}):
        assert "still to come" in estimate(late, 2, **settings).refused
    default = estimate(late, 2)
    assert default.refused == ""
    assert any("expected" in said for said in default.warnings)
    assert "learned from the rounds" in estimate(log, pi, predictable=False).refused
    with pytest.raises(ValueError, match="best takes neither"):
        evaluate(log, [0, 1], "snips").best()
    with pytest.raises(ValueError, match=r"a target must be among \[0, 1, 2\]; got 7"):
        estimate(log, 7)
    with pytest.raises(ValueError, match="must sum to 1"):
        estimate(log, pi * 0.9)
    for settings, said in (
        ({"sequence": "exact"}, "declared bounds"),
        ({"sequence": (0, 0.5)}, r"declared bounds \[0, 0.5\]; got"),
        ({"sequence": "asymptotic", "planned": -3}, "planned must be an integer ≥ 1; got -3"),
        ({"sequence": ("a", "b")}, r"lo < hi; got \('a', 'b'\)"),
        ({"estimator": "snips", "sequence": "asymptotic"}, "their scores use later rounds"),
        ({"weights": "contextual"}, "need a log with snapshots"),
        ({"estimator": "magic"}, "estimator must be one of"),
    ):
        with pytest.raises(ValueError, match=said):
            estimate(log, pi, **settings)
    bare = Log(log.x, log.played, log.reward, arms=3, propensity=log.propensity)
    assert estimate(bare, 1).weights == "equal"
    with pytest.raises(ValueError, match="need the probabilities"):
        estimate(bare, 1, weights="minvar")


def test_a_refuted_log_needs_force():
    log = next(linear(1, seed=2).logs())
    wrong = Log(log.x, log.played, log.reward, np.full_like(log.probabilities, 1 / 3))
    found = estimate(wrong, 0)
    assert "refuted" in found.refused
    assert np.isnan(found.low)
    assert estimate(wrong, 0, force=True).refused == ""


def test_rewards_that_are_missing_by_arm_are_not_missing_at_random():
    rng = np.random.default_rng(0)
    arm, reward = rng.integers(0, 2, 400), rng.normal(size=400)
    p, kept = np.full((400, 2), 0.5), rng.random(400)
    by_arm = Log(None, arm, np.where(kept < np.where(arm == 0, 0.3, 0.9), reward, np.nan), p)
    by_chance = Log(None, arm, np.where(kept < 0.6, reward, np.nan), p)
    found = estimate(by_arm, 0, missing="random")
    assert re.search("rewards are missing.*depends on the arm.*are refuted", found.refused)
    assert np.isnan(found.low)
    assert estimate(by_arm, 0, missing="random", force=True).refused == ""
    assert estimate(by_chance, 0, missing="random").refused == ""
    whole = Log(None, arm, reward, p)
    assert "depends on the arm" in estimate(whole, 0, subgroup=arm == 0).refused
    assert estimate(whole, 0, subgroup=kept < 0.5).refused == ""


@pytest.mark.parametrize("target", [True, 1.0, [1, 0], ("a",), {"a": 1}, b"a"])
def test_what_is_no_target(target):
    log = next(linear(1, seed=2).logs())
    with pytest.raises(TypeError, match="a target is an arm's name, probabilities"):
        estimate(log, target)


def test_a_bandit_is_judged_by_the_names_of_its_arms():
    """Which stand in the log in another order."""
    log, _ = made()
    bandit = bb.LinTS([2, 0, 1], 2, min_probability=0.1, seed=1)
    bandit.update(log.x[:9], log.played[:9], log.reward[:9], log.propensity[:9])
    later = log[9:]
    p = bandit.probabilities(later.x)[:, [1, 2, 0]]
    assert estimate(later, bandit).value == pytest.approx(estimate(later, p).value)


def test_a_bandit_is_not_judged_by_what_it_learned_in_another_order():
    """Also where contexts repeat, and other rounds came; not by rounds of another log."""
    rng = np.random.default_rng(1)
    x = np.eye(60)[rng.integers(60, size=(2, 1000))]
    arm = rng.integers(0, 3, size=(2, 1000))
    reward = 1.0 * (rng.random((2, 1000)) < 0.3)
    log = Log(x[0], arm[0], reward[0], np.full((1000, 3), 1 / 3))
    for which, rows in ((0, rng.permutation(1000)), (0, np.arange(0, 1000, 2)), (1, slice(None))):
        bandit = bb.LinTS(3, 60, seed=0)
        bandit.update(x[which][rows], arm[which][rows], reward[which][rows])
        bandit.observe(bandit.choose(np.full(60, 0.5)), 1.0)
        assert ("trained on" in estimate(log, bandit.greedy).refused) == (which == 0)


@pytest.mark.parametrize("d", [0, 2])
def test_rounds_that_look_alike_are_not_taken_for_learned_ones(d):
    """Most rounds of rare rewards are the same: the best arm, and no reward."""
    arms = ["a", "b", "c"]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = (rng.random((4000, d)) < 0.1).astype(float)
        bandit = bb.LinTS(arms, d, min_probability=0.02, seed=seed)
        bandit.play(x, (rng.random((4000, 3)) < [0.01, 0.012, 0.03]).astype(float))
        first, later = Log.of(bandit.history).split(0.5)
        learned = bb.LinTS(arms, d, seed=1)
        learned.update(first.x, first.arm, first.reward, first.propensity)
        assert not estimate(later, learned.greedy).refused
        assert "trained on" in estimate(first, learned.greedy).refused


def test_a_short_life_beside_a_long_log_is_not_taken_for_a_part_of_it():
    """A bandit that plays one arm leaves all rows of the others to the log."""
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 10, 20_000)
    x = np.eye(50)[rng.integers(50, size=20_000)]
    log = Log(x, arm, rng.integers(0, 30, 20_000) / 10, np.full((20_000, 10), 0.1))
    bandit = bb.LinTS(10, 50, seed=0)
    bandit.update(x[rng.permutation(200)], np.zeros(200, int), rng.integers(0, 30, 200) / 10)
    assert not estimate(log, bandit.greedy).refused


@pytest.mark.slow
def test_evaluation():
    log, pi = made(n=1_000)
    result = evaluate(log, {"zero": 0, "two": 2, "mix": pi, "logged": None})
    gap = result.contrast("zero", "mix")
    assert gap.value == estimate(log, (0, pi)).value
    wide = result.simultaneous()
    assert (wide.low < result.table.low).all()
    assert (len(result.contrasts(against="logged")), len(result.contrasts())) == (3, 6)
    groups = result.subgroups(np.where(log.x[:, 0] > 0, "high", "low"))
    assert groups.loc[("two", "high")].estimate > groups.loc[("two", "low")].estimate
    with pytest.raises(ValueError, match="gives a sequence"):
        result.sequence  # noqa: B018
    with pytest.raises(ValueError, match="at most 20"):
        result.subgroups("x0")
    with pytest.raises(ValueError, match="a policy must be among"):
        result.contrast("zero", "nobody")


@pytest.mark.slow
@pytest.mark.parametrize("design", long_but(["mis, decaying"], DESIGNS))
def test_coverage(design):
    """At least 91 % of 120 intervals of every target, within three standard errors (2.6 each)."""
    (well, floor), targets = DESIGNS[design], (0, 1, 2, (0, 1), (0, 2))
    logs = linear(120, 7, well, floor).logs()
    estimates = [[estimate(log, target, force=True) for target in targets] for log in logs]
    for ends in zip(*estimates, strict=True):
        hit = [e.low <= 0 <= e.high for e in ends if e.low == e.low]
        assert np.mean(hit) > 0.91 - 0.078
        assert len(hit) > 100


def test_an_evaluation_is_of_the_policies_as_they_were():
    """A bandit learned on before it was asked for a contrast."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    arm = rng.integers(2, size=200)
    reward = np.where(arm == (x[:, 0] > 0), 1.0, 0.0)
    log = Log(x, arm, reward, propensity=np.full(200, 0.5))
    bandit = bb.LinTS(2, n_features=1, seed=0)
    bandit.update(x, arm, reward)
    table = np.array([[0.2, 0.8]] * 200)
    policies = {"greedy": bandit.greedy, "bandit": bandit, "table": table, "first": 0}
    before = evaluate(log, policies)
    contrasts = {name: before.contrast(name, "first").value for name in policies}
    halves = before.subgroups(np.arange(200) % 2)["estimate"]
    result = evaluate(log, policies)
    bandit.update(x, arm, -5.0 * reward)
    table[:] = [0.9, 0.1]
    assert {name: result.contrast(name, "first").value for name in policies} == contrasts
    pd.testing.assert_series_equal(result.subgroups(np.arange(200) % 2)["estimate"], halves)
    changed = evaluate(log, policies).table["estimate"]
    assert (changed != result.table["estimate"])[["greedy", "bandit", "table"]].all()
