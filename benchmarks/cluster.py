"""A log on a Dask cluster of this machine: rows a second, CPU seconds and memory.

    uv run --group dev benchmarks/cluster.py [--rows N] [--d D] [--workers W] [--part N]

Writes a few Parquet files of random rounds to a temporary folder and learns them again and again,
until there were N rows. Memory is the largest of each worker, with what it takes when idle.
"""

import argparse
import itertools
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import bayesbandit as bb

FILES = 4


def rounds(n: int, d: int, seed: int) -> pd.DataFrame:
    """A log of three arms with d features."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"x{j}" for j in range(d)])
    arm = rng.integers(0, 3, n)
    reward = frame["x0"] * arm + rng.normal(size=n)
    return frame.assign(arm=arm, reward=reward, propensity=rng.uniform(0.1, 1.0, n))


def used() -> tuple[float, float]:
    """CPU seconds and largest memory in MB of this process."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime, own.ru_maxrss / 1024


def main() -> None:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--d", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--part", type=int, default=250_000, help="rows of a file")
    options = parser.parse_args()
    workers = {"n_workers": options.workers, "threads_per_worker": 1, "dashboard_address": None}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(**workers) as cluster,
        Client(cluster) as client,
    ):
        paths = [Path(folder) / f"{i}.parquet" for i in range(FILES)]
        for i, path in enumerate(paths):
            rounds(options.part, options.d, i).to_parquet(path)
        bandit = bb.BLTS(3, options.d)
        warm = dd.from_map(pd.read_parquet, paths[: options.workers])
        bb.learn(warm, bandit)  # compile
        before = client.run(used)
        parts = list(itertools.islice(itertools.cycle(paths), options.rows // options.part))
        start = time.perf_counter()
        learned = bb.learn(dd.from_map(pd.read_parquet, parts), bandit)
        wall, after = time.perf_counter() - start, client.run(used)
    n = learned.history.total
    cpu = sum(after[w][0] - before[w][0] for w in after)
    print(f"{n:,} rows of {options.d} features in {len(parts)} parts, {options.workers} workers")
    print(f"{wall:.1f} s, {n / wall:,.0f} rows a second; {1e9 * cpu / n:.0f} ns of CPU a row")
    print("largest memory of a worker, MB:", sorted(round(mb) for _, mb in after.values()))
    print("before, after two parts, MB:", sorted(round(mb) for _, mb in before.values()))
    print("largest memory of the process that joins the sums, MB:", round(used()[1]))


if __name__ == "__main__":
    main()
