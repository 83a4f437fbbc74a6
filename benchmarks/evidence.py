"""Coverage and width of 95 % intervals from adaptive logs, and what the propensity test detects.

    uv run benchmarks/evidence.py [--replications 1000] [--seed 0]

Three arms of equal value, linear Thompson sampling in batches of 40, 1,000 rounds. Coverage of the
value of arm 0 and of "arm 0 less arm 1", with standard errors; then of a peeking analyst.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from bayesbandit.ope import Log, check, estimate
from tests.ope.designs import DESIGNS, bernoulli, linear, logs

METHODS = {
    "ips, equal": {"estimator": "ips", "weights": "equal"},
    "dr, ridge, equal": {"mean": "ridge", "weights": "equal"},
    "dr, ridge, minvar": {"mean": "ridge"},
    "default": {},
}


def covered(low, high, truth=0.0):
    return (low <= truth) & (truth <= high)


def rate(hits):
    p = np.mean(hits)
    return f"{100 * p:.1f} ± {100 * np.sqrt(max(p * (1 - p), 0.25 / len(hits)) / len(hits)):.1f}"


def coverage(R, seed):
    rows = []
    for design, (well, floor) in DESIGNS.items():
        found = {(m, t): [] for m in METHODS for t in ("arm 0", "0 − 1")}
        naive = []  # (low, high, whether its effective sample size is suspect)
        for log in logs(linear(R, seed, well, floor)):
            y = log.reward[log.played == 0]
            half = 1.96 * y.std() / np.sqrt(max(len(y), 1))
            naive.append((y.mean() - half, y.mean() + half, False))
            for name, settings in METHODS.items():
                for target, asked in (("arm 0", 0), ("0 − 1", (0, 1))):
                    e = estimate(log, asked, force=True, **settings)
                    warned = any("expected" in said for said in e.warnings)
                    found[name, target].append((e.low, e.high, warned))
        for (name, target), ends in {("sample mean", "arm 0"): naive, **found}.items():
            low, high, warned = np.array(ends).T
            good = ~np.isnan(low)
            hit, warned = covered(low[good], high[good]), warned[good] > 0
            rows.append(
                {"design": design, "method": name, "target": target,
                 "coverage": rate(hit), "warned": warned.mean(),
                 "covered if warned": rate(hit[warned]) if warned.any() else "",
                 "if not": rate(hit[~warned]),
                 "width": (high - low)[good].mean(), "refused": 1 - good.mean()}
            )  # fmt: skip
    return pd.DataFrame(rows)


def peeking(R, seed):
    always = {"fixed": [], "asymptotic": [], "exact": []}
    width = {"fixed": [], "asymptotic": [], "exact": []}
    for log in logs(bernoulli(R, seed)):
        fixed = [estimate(log[:t], 0, force=True) for t in range(120, 1001, 40)]
        always["fixed"].append(all(covered(e.low, e.high, 0.3) for e in fixed if e.low == e.low))
        width["fixed"].append(fixed[-1].high - fixed[-1].low)
        for kind, asked in (("asymptotic", "asymptotic"), ("exact", (0, 1))):
            s = estimate(log, 0, sequence=asked, force=True).sequence
            always[kind].append(covered(s.low, s.high, 0.3).all())
            width[kind].append(s.high[-1] - s.low[-1])
    return pd.DataFrame(
        {"always covers": {k: rate(v) for k, v in always.items()},
         "width at the end": {k: np.mean(v) for k, v in width.items()}}
    )  # fmt: skip


def lies(e):
    """Wrong probabilities of a log with the true ones e (n, K)."""
    return {
        "true": e,
        "1/K": np.full_like(e, 1 / e.shape[1]),
        "swapped": e[:, [1, 0, 2]],
        "means": np.broadcast_to(e.mean(axis=0), e.shape),
    }


def detection(R, seed, T=500):
    rows = []
    for design, (well, floor) in DESIGNS.items():
        found = {}
        for x, arm, reward, e in zip(*linear(R, seed, well, floor, T=T), strict=True):
            for name, said in lies(e).items():
                found.setdefault(name, []).append(check(Log(x, arm, reward, said)).refuted)
        rows.append({"design": design, **{name: rate(hits) for name, hits in found.items()}})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for table in (coverage, peeking, detection):
        print(f"\n{table.__name__}, {given.replications} replications\n")
        print(table(given.replications, given.seed).round(3).to_string(), flush=True)
