"""Tables of mixed columns, for the laws of encoders."""

import numpy as np
import pandas as pd


def same_bits(one, other):
    assert one.dtype == other.dtype == np.float64
    assert one.shape == other.shape
    assert one.tobytes() == np.ascontiguousarray(other).tobytes()


def mixed(seed=0, n=60):
    """A table with every kind of column that makes features, with gaps and rare levels."""
    rng = np.random.default_rng(seed)

    def gaps(values, share=0.1):
        return pd.Series(values, dtype=object).where(rng.random(n) > share)

    amount = rng.integers(1_000, 9_999_999, n)
    frame = pd.DataFrame(
        {
            "age": gaps(rng.normal(40, 9, n)).astype(float),
            "visits": rng.integers(0, 9, n),
            "income": pd.array(gaps(rng.integers(1, 99, n)), dtype="Int64"),
            "amount": amount,
            "city": gaps(rng.choice(["Bonn", "Ulm", "Rom", "Oslo"], n, p=[0.4, 0.3, 0.29, 0.01])),
            "plan": pd.Categorical(rng.choice(["a", "b"], n)),
            "grade": pd.Categorical(rng.choice([1, 2, 3], n)),
            "member": rng.random(n) < 0.5,
            "open": pd.array(gaps(rng.random(n) < 0.4), dtype="boolean"),
            "word": pd.Categorical([f"w{k}" for k in rng.integers(0, 40, n)]),
            3: rng.exponential(size=n).astype(np.float32),
            "constant": 1.0,
            "empty": np.nan,
        }
    )
    return frame[list(rng.permutation(np.array(frame.columns, dtype=object)))]


def marketing(seed=0, n=200):
    """As `mixed`, with dates, an identifier and texts that never repeat."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "customer_id": rng.permutation(n) + 1,
            "email": [f"c{k}@example.org" for k in range(n)],
            "signup": pd.date_range("2024-01-01", periods=n, freq="7h"),
            "last_seen": [f"2026-{m:02}-{d:02}" for m, d in rng.integers(1, 13, (n, 2))],
            "country": rng.choice(["DE", "FR", "IT"], n),
            "spend": rng.gamma(2.0, 10.0, n),
        }
    )
