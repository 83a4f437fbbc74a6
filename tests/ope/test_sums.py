"""The sums of a tally are what their descriptions say, in plain loops."""

import numpy as np
import pytest

from bayesbandit.ope import Log, estimate
from bayesbandit.ope.tally import Scored, tallied


def test_sums_are_their_definitions(rng):
    n, arms = 60, (0, 2)
    arm, y, scores, part = rng.integers(0, 3, n), *rng.normal(1.0, 1.0, size=(3, n))
    y[[3, 20, 41]] = np.nan
    h, ratio = rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 3.0, n)
    h[[5, 30]] = 0.0
    e, w, m, level = rng.uniform(0.2, 1.0, size=(4, 3, n))
    scored = Scored(scores, arm, y, part, (ratio,), arms, lambda k: (e[k], w[k], m[k], level[k]))
    found = tallied(scored, h).last()
    counted = [i for i in range(n) if h[i] > 0]
    known = [i for i in counted if not np.isnan(y[i])]
    within, squares, fourths, promised = 0.0, 0.0, 0.0, 0.0
    sums = {}
    for k in range(3):
        mine = [i for i in known if arm[i] == k]
        mean = np.mean(y[mine])
        u = [y[i] - np.mean(y[mine[: j + 1]]) for j, i in enumerate(mine)]
        sums[k] = {
            "n": len(mine),
            "own": sum((y[i] - mean) ** 2 for i in mine),
            "left": sum((y[i] - m[k, i]) ** 2 for i in mine[1:]),
            "u2": sum(v**2 for v in u),
            "u4": sum(v**4 for v in u),
            "C": sum((h[i] * w[k, i]) ** 2 * e[k, i] for i in counted),
            "far": sum((h[i] * w[k, i] * (mean - level[k, i])) ** 2 * e[k, i] for i in counted),
            "seen": sum((h[i] * w[k, i] * (y[i] - mean)) ** 2 for i in mine),
        }
        within += sums[k]["own"]
        squares += sums[k]["u2"]
        fourths += sums[k]["u4"]
    for at, k in enumerate(arms):
        for name, value in sums[k].items():
            assert getattr(found.arms, name)[at] == pytest.approx(value, rel=1e-9), (k, name)
        s = sums[k]
        size = s["u2"] ** 2 / s["u4"]
        assert size > 2  # enough rewards of its own
        promised += min(s["own"], s["left"]) / s["n"] * (1 + 2 / size) * s["C"]
        promised += s["far"] if s["own"] <= s["left"] else 0.0
    np.testing.assert_allclose(found.rewards, [len(known), within, squares, fourths])
    assert found.seen == pytest.approx(sum((h[i] * part[i]) ** 2 for i in known))
    assert found.excess == pytest.approx(promised - found.seen)
    S, H = sum(h[i] * scores[i] for i in counted), sum(h)
    assert (found.S, found.H, found.value) == pytest.approx((S, H, S / H))
    weights = [sum(ratio[counted]), sum(ratio[counted] ** 2)]
    np.testing.assert_allclose(found.ratios, [weights])
    deviations = [h[i] ** 2 * (scores[i] - S / H) ** 2 for i in counted]
    size = min(sum(deviations) ** 2 / sum(v**2 for v in deviations), weights[0] ** 2 / weights[1])
    raised = sum(deviations) + 50 * max(promised - found.seen, 0.0) / (size + 50)
    assert found.se == pytest.approx(np.sqrt(raised) / H)


def test_one_click_is_one_reward_that_carries_an_interval():
    reward = np.arange(40) == 30
    log = Log(None, np.arange(40) % 2, reward, np.full((40, 2), 0.5))
    assert estimate(log, 0, force=True).carrying == pytest.approx(1.0, abs=0.05)
