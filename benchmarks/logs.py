"""How fast a log is learned: bayesbandit, BLAS alone, scikit-learn and Vowpal Wabbit.

    uv run benchmarks/logs.py [--repeats N] [--size N] [--d D …] [--no-vw]

K = 3 arms, rounds with propensities. CPU time, one thread. Every repeat measures everybody once, in
turn; a ratio is taken within a repeat, and the table shows the median. Vowpal Wabbit runs in an
environment that uv makes for it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

K, BLOCK, SIZE = 3, 2048, 20_000_000  # SIZE: numbers of a log's contexts
FEWER = 50  # Vowpal Wabbit reads so many times fewer rows

Log = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def log(n: int, d: int) -> Log:
    """Contexts (n, d), arms, rewards and propensities (n,)."""
    rng = np.random.default_rng(0)
    x, arm = rng.normal(size=(n, d)), rng.integers(0, K, n)
    return x, arm, x[:, 0] * arm + rng.normal(size=n), rng.uniform(0.1, 1.0, n)


def blas(x: np.ndarray, arm: np.ndarray, r: np.ndarray, p: np.ndarray) -> None:
    """X'WX and X'Wr of all rows, whatever their arms."""
    wx = x * (1.0 / p)[:, None]
    x.T @ wx, r @ wx


def blocks(x: np.ndarray, arm: np.ndarray, r: np.ndarray, p: np.ndarray) -> None:
    """The same, block by block: at small d twice as fast."""
    G, b = np.zeros((x.shape[1], x.shape[1])), np.zeros(x.shape[1])
    for start in range(0, len(x), BLOCK):
        part = slice(start, start + BLOCK)
        wx = x[part] * (1.0 / p[part])[:, None]
        G += x[part].T @ wx
        b += r[part] @ wx


def players(d: int) -> dict[str, Callable[..., object]]:
    """Everybody, by name."""
    from sklearn.linear_model import Ridge

    import bayesbandit as bb

    def updated(preset: Callable[..., bb.Bandit], **settings: object) -> Callable[..., object]:
        return lambda *rows: preset(K, d, **settings).update(*rows)

    def ridge(x: np.ndarray, arm: np.ndarray, r: np.ndarray, p: np.ndarray) -> None:
        for k in range(K):
            mine = arm == k
            Ridge(alpha=1.0).fit(x[mine], r[mine], 1.0 / p[mine])

    return {
        "X'WX + X'Wr, whole": blas,
        "X'WX + X'Wr, in blocks": blocks,
        "BLTS": updated(bb.BLTS),
        "BLTS, history=0": updated(bb.BLTS, history=0),
        "LinTS": updated(bb.LinTS),
        'LinTS, ridge="cv"': updated(bb.LinTS, ridge="cv"),
        "scikit-learn Ridge": ridge,
    }


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def vowpal_wabbit(d: int, n: int) -> float:
    """CPU seconds in which Vowpal Wabbit reads a text file of n rounds and learns them."""
    from vowpalwabbit import Workspace

    x, arm, r, p = log(n, d)
    names = " ".join(f"f{j}:%.6g" for j in range(d))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.txt"
        with path.open("w") as file:
            for t in range(n):
                file.write(
                    f"{arm[t] + 1}:{-r[t]:.6g}:{p[t]:.6g} | {names % tuple(x[t].tolist())}\n"
                )
        return seconds(lambda: Workspace(f"--cb {K} --quiet -d {path}").finish())


def by_vowpal_wabbit(d: int, n: int) -> float | None:
    """The same in an environment of its own; None where it cannot be installed."""
    own = ["uv", "run", "--no-project", "--python", sys.executable, "--with", "vowpalwabbit"]
    command = [*own, "--with", "numpy", "python", __file__, "--vw", str(d), str(n)]
    run = subprocess.run(command, capture_output=True, text=True)
    return json.loads(run.stdout) if run.returncode == 0 else None


def measured(d: int, n: int, repeats: int, vw: bool) -> dict[str, tuple[float, float, float]]:
    """Rows a second, and the ratios to BLAS whole and in blocks, by name."""
    rows, everybody = log(n, d), players(d)
    for call in everybody.values():
        call(*(values[:5000] for values in rows))  # compile
    turns: dict[str, list[float]] = {name: [] for name in everybody}
    for _ in range(repeats):
        for name, call in everybody.items():
            turns[name].append(seconds(lambda call=call: call(*rows)) / n)
        if vw and (spent := by_vowpal_wabbit(d, n // FEWER)) is not None:
            turns.setdefault("Vowpal Wabbit", []).append(spent / (n // FEWER))
    whole, parts, *_ = turns.values()
    return {
        name: (
            1.0 / median(own),
            median(a / b for a, b in zip(whole, own, strict=True)),
            median(a / b for a, b in zip(parts, own, strict=True)),
        )
        for name, own in turns.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--size", type=int, default=SIZE, help="rows times features of a log")
    parser.add_argument("--d", type=int, nargs="*", default=[10, 30, 100, 200])
    parser.add_argument("--no-vw", action="store_true", help="without Vowpal Wabbit")
    parser.add_argument("--vw", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.vw:
        print(json.dumps(vowpal_wabbit(*options.vw)))
        return
    print("| d | who | rows a second | ÷ BLAS, whole | ÷ BLAS, in blocks |")
    print("| --: | :-- | --: | --: | --: |")
    for d in options.d:
        n = options.size // d
        for name, (rate, whole, parts) in measured(
            d, n, options.repeats, not options.no_vw
        ).items():
            print(f"| {d} | {name} | {rate:,.0f} | {whole:.2f} | {parts:.2f} |", flush=True)


if __name__ == "__main__":
    for threads in ("OMP", "OPENBLAS", "MKL"):
        if os.environ.get(f"{threads}_NUM_THREADS") != "1":  # read when NumPy is imported
            environment = os.environ | {f"{t}_NUM_THREADS": "1" for t in ("OMP", "OPENBLAS", "MKL")}
            os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    main()
