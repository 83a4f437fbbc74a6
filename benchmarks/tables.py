"""CPU time of encoders: of a fit, and of one row.

uv run benchmarks/tables.py
"""

import time
import warnings

import numpy as np
import pandas as pd

import bayesbandit as bb

ROWS, REPEATS = 200_000, 5
FORMULAS = [
    "~ age * country",
    "~ country * member + plan + bs(visits, df=4)",
    "~ age * country + bs(visits, df=4) + cr(a, df=3) + poly(b, 2) + scale(log(visits + 1))",
]


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            **{name: rng.normal(size=n) for name in ("a", "b", "c", "age")},
            "visits": rng.integers(0, 90, n),
            "member": rng.random(n) < 0.4,
            "plan": pd.Categorical(rng.choice([*"abcdef"], n)),
            "country": rng.choice(["DE", "FR", "IT", "ES"], n),
            "word": rng.choice([f"w{k}" for k in range(15)], n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )


def seconds(call, times):
    """Return the least CPU time of a call over a few repeats of `times` calls."""
    call()
    found = []
    for _ in range(REPEATS):
        began = time.process_time()
        for _ in range(times):
            call()
        found.append((time.process_time() - began) / times)
    return min(found)


def main():
    frame = table(ROWS)
    encoder = bb.Encoder.fit(frame)
    row = frame.iloc[0].to_dict()
    fit = seconds(lambda: bb.Encoder.fit(frame), 1)
    print(f"fit, {ROWS:,} rows of {frame.shape[1]} columns: {fit:.2f} s")
    print(f"their contexts: {seconds(lambda: encoder.transform(frame), 1):.2f} s")
    print(f"one row: {1e3 * seconds(lambda: encoder.transform(row), 300):.3f} ms")
    for text in FORMULAS:
        made = bb.Encoder.formula(text, frame[:1000])
        print(
            f"one row of {text}: {1e3 * seconds(lambda made=made: made.transform(row), 100):.3f} ms"
        )


if __name__ == "__main__":
    with warnings.catch_warnings(action="ignore"):
        main()
