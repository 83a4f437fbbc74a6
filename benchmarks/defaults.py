"""How the noise scale of the presets was chosen, which `bayesbandit compare` plays, too.

    uv run benchmarks/defaults.py FOLDER [--jobs N] [--out DIR] [--rules NAME …]
    uv run benchmarks/defaults.py --bernoulli [--jobs N] [--runs N] [--rules NAME …]
    uv run benchmarks/defaults.py --rare [--jobs N] [--runs N] [--seed N] [--only NAME …]

The first plays each algorithm by several rules for σ² (and Thompson sampling at several α) on every
classification data set of FOLDER (Parquet files with a manifest) and on the four bundled ones, one
shuffle of at most 20,000 rows each (1,000 of BLUCB, whose logistic regressions take most of the
time), and prints for each setting the mean normalised regret and its paired difference from the
preset, ± the standard error over data sets. The best of so many settings owes something to luck:
the last row of each algorithm has, for each data set, the setting that is best on the other half.

The second plays Bernoulli arms with means .2, .5 and .8, without features and with one that says
nothing, and prints how often the best arm is locked out: it has less than 5 % of the last fifth of
1,000 rounds (of BLUCB 300, in a quarter of the runs). The presets and the paper's rule also have
rewards in other units. Each row has seeds of its own; other units have those of the row.

The third plays the presets where rewards are rare: the first arm pays 1 more often than the others,
without features and with three that say nothing (of BLUCB half of the runs, and no world of more
than 10,000 rounds).
"""

import argparse
import sys
import zlib
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import bayesbandit as bb
from bayesbandit import environments, evaluation
from bayesbandit_studies.data_sets import folder
from bayesbandit_studies.tables import share

ALGORITHMS = {
    "LinTS": bb.LinTS, "BLTS": bb.BLTS, "LinUCB": bb.LinUCB, "BLUCB": bb.BLUCB,
    "LinGreedy": bb.LinGreedy,
}  # fmt: skip
PAPER: dict[str, Any] = {"variance": "rss/n"}
RULES: dict[str, dict[str, Any]] = {
    "": {},
    "rss/n": PAPER,
    **{f"rss/n, floor {c}": {**PAPER, "min_variance": float(c)} for c in (".03", ".1", ".25")},
    "nig": {"variance": "nig"},
    **{f"ν = {nu}": {"prior_rows": float(nu)} for nu in (1, 2, 4, 8, 16, 32)},
}
ALPHAS = {f"α = {alpha}": {"alpha": alpha} for alpha in (0.05, 0.1, 0.25, 0.5)}
BOTH = {
    f"α = {alpha}, {floor}": {"alpha": alpha, **RULES[floor]}
    for alpha in (0.1, 0.25, 0.5)
    for floor in ("rss/n, floor .03", "rss/n, floor .1", "rss/n, floor .25")
}
OWN = {"LinTS": 2, "BLTS": 4, "LinUCB": 32, "BLUCB": 32}  # ν of the preset
SHORT = ("", "rss/n", "rss/n, floor .03", "ν = 2")  # rules of BLUCB
MEANS, ROUNDS, LOCKED = (0.2, 0.5, 0.8), 1000, 0.05
RARE = (  # how often the best arm pays, and each other one; arms; rounds
    (0.002, 0.001, 2, 100_000), (0.002, 0.001, 3, 100_000), (0.002, 0.001, 5, 100_000),
    (0.01, 0.005, 3, 10_000), (0.01, 0.005, 3, 100_000), (0.01, 0.005, 20, 200_000),
    (0.02, 0.01, 2, 10_000), (0.02, 0.01, 5, 20_000),
    (0.03, 0.02, 3, 20_000),
    (0.1, 0.05, 2, 10_000), (0.1, 0.05, 3, 10_000), (0.1, 0.05, 5, 10_000), (0.1, 0.05, 20, 20_000),
)  # fmt: skip
SLOW_ROUNDS = 10_000  # the most of BLUCB
UNITS = (1.0, 1e-6, 1e6)
RESCALED = [f"{name}({rule})" for name in ("LinTS", "BLTS", "LinUCB") for rule in ("", "rss/n")]


def grid(names: list[str], only: list[str] | None = None) -> dict[str, partial[bb.Bandit]]:
    """Every algorithm by its preset and every rule (of `only`), under the name ALGORITHM(RULE)."""
    settings: dict[str, partial[bb.Bandit]] = {}
    for name in names:
        rules = {k: v for k, v in RULES.items() if k != f"ν = {OWN.get(name)}"}
        rules = {"": {}} if name == "LinGreedy" else rules
        rules = {k: RULES[k] for k in SHORT} if name == "BLUCB" else rules
        if name in ("LinTS", "BLTS", "LinUCB"):
            rules |= ALPHAS | BOTH
        rules = {k: v for k, v in rules.items() if only is None or k in ("", *only)}
        settings |= {f"{name}({rule})": partial(ALGORITHMS[name], **s) for rule, s in rules.items()}
    return settings


def regrets(summary: pd.DataFrame) -> pd.DataFrame:
    """Settings by algorithm, the best first, and what is chosen on the other half of the sets."""
    regret = summary.pivot(index="environment", columns="bandit", values="normalised_regret")
    stems = regret.index.str.split(" (", regex=False).str[0]  # versions of one set stay together
    half, rows = pd.factorize(stems)[0] % 2, []
    for name in ALGORITHMS:
        own = regret[[column for column in regret if column.startswith(f"{name}(")]]
        columns = {setting: own[setting] for setting in own.mean().sort_values().index}
        if len(columns) > 1:
            best = [own[half == 1 - h].mean().idxmin() for h in (0, 1)]
            columns[f"{name}, the best on the other half"] = own[best[0]].where(
                half == 0, own[best[1]]
            )
        for setting, values in columns.items():
            gap = values - own[f"{name}()"]
            rows.append(
                {
                    "setting": setting,
                    "normalised regret": values.mean(),
                    "above the preset": gap.mean(),
                    "± SE": gap.std(ddof=1) / np.sqrt(len(gap)),
                }
            )
    return pd.DataFrame(rows)


def is_locked_out(
    make: partial[bb.Bandit], means: tuple[float, ...], d: int, rounds: int, unit: float,
    row: str, run: int, seed: int = 0,
) -> bool:  # fmt: skip
    """Whether a run ends almost without the best arm. row: its text is part of the seed."""
    rng = np.random.default_rng([zlib.crc32(row.encode()), d, run, seed])
    x = rng.normal(size=(rounds, d))
    reward = unit * (rng.random((rounds, len(means))) < means)
    bandit = make(len(means), d, seed=int(rng.integers(2**32)))
    chosen, _ = bandit.play(x, reward, every=rounds)
    return float(np.mean(chosen[-rounds // 5 :] == np.argmax(means))) < LOCKED


def lock_outs(names: list[str], only: list[str] | None, jobs: int, runs: int) -> pd.DataFrame:
    """Shares of runs, in %, ± their standard errors; of 0 and 100, Wilson's limit."""
    rows = []
    for setting, make in grid(names, only).items():
        slow = setting.startswith("BLUCB(")
        rounds, n, cells = 300 if slow else ROUNDS, runs // 4 if slow else runs, {}
        for d in (0, 1):
            for unit in UNITS if setting in RESCALED else UNITS[:1]:
                task = delayed(is_locked_out)
                tasks = (task(make, MEANS, d, rounds, unit, setting, run) for run in range(n))
                locked = sum(Parallel(n_jobs=jobs)(tasks))
                label = f"d = {d}" + (f", rewards × {unit:g}" if unit != 1.0 else "")
                cells[label] = share(locked, n, digits=1)
        rows.append({"setting": setting, **cells})
        print(rows[-1], file=sys.stderr)
    return pd.DataFrame(rows).fillna("")


def rare_lock_outs(names: list[str], jobs: int, runs: int, seed: int) -> pd.DataFrame:
    """Shares of runs as `lock_outs`, of the presets where rewards are rare."""
    rows = []
    for best, other, arms, rounds in RARE:
        row = {"best": f"{best:.1%}", "others": f"{other:.1%}", "arms": arms, "rounds": rounds}
        means = (best, *[other] * (arms - 1))
        for name in names:
            slow = name == "BLUCB"
            for d in (0, 3):
                if slow and rounds > SLOW_ROUNDS:
                    row[f"{name}, d = {d}"] = ""
                    continue
                n, task = runs // 2 if slow else runs, delayed(is_locked_out)
                key = f"{name} {best} {other} {arms} {rounds}"
                make = partial(ALGORITHMS[name])
                tasks = (task(make, means, d, rounds, 1.0, key, run, seed) for run in range(n))
                locked = sum(Parallel(n_jobs=jobs)(tasks))
                row[f"{name}, d = {d}"] = share(locked, n, digits=1)
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--bernoulli", action="store_true")
    parser.add_argument("--rare", action="store_true")
    parser.add_argument("--only", nargs="+", default=list(OWN), choices=list(OWN))
    parser.add_argument("--rules", nargs="+", help="the rules to play beside the presets")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="other seeds of the rare rewards")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", default="runs/defaults")
    args = parser.parse_args()
    if args.bernoulli:
        print(evaluation.markdown(lock_outs(list(ALGORITHMS), args.rules, args.jobs, args.runs)))
        return
    if args.rare:
        print(evaluation.markdown(rare_lock_outs(args.only, args.jobs, args.runs, args.seed)))
        return
    sets: list[Any] = [*folder(args.folder)]
    names = {environment.name for environment in sets}
    sets += [environments.bundled(name) for name in environments.BUNDLED if name not in names]
    tables = []
    for some, horizon in ((["LinTS", "BLTS", "LinUCB", "LinGreedy"], 20_000), (["BLUCB"], 1_000)):
        played = grid(some, args.rules)
        experiment = bb.Experiment(sets, played, horizon=horizon, replications=1, points=4)
        results = experiment.run(args.jobs, f"{args.out}-{horizon}")
        tables.append(evaluation.summary(results))
    print(evaluation.markdown(regrets(pd.concat(tables))))


if __name__ == "__main__":
    main()
