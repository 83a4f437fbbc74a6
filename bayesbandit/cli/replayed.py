"""The command `bayesbandit compare --log`, which replays a log to find the best bandit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import batched
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.bandit.player import Player
from bayesbandit.cli.evaluate import roles
from bayesbandit.cli.report import save, say, show, warn
from bayesbandit.experiments.results_on_disk import record, write_record
from bayesbandit.ope import Log, check
from bayesbandit.ope.logs.files import read_table
from bayesbandit.ope.replay import Replay, overlap, pooled, replay, together
from bayesbandit.runtime.progress import bar

if TYPE_CHECKING:
    import pandas as pd


def compare_by_log(
    path: Path, choices: Mapping[str, Any], bandits: Mapping[str, Callable[..., Player]],
    replications: int, seed: int, jobs: int, out: Path,
) -> None:  # fmt: skip
    """Replay a log to each bandit several times; print and save which one earned most.

    choices: arguments of `read_table`, for its columns and for how a file is written. jobs: the
    number of processes; it does not change the results.
    """
    from joblib import Parallel, delayed

    from bayesbandit import plots

    table = read_table(path, **choices)
    data = table.encoded(table.encoder())
    say(str(data.roles))
    check(data)  # once; the log keeps the result and takes it to every process
    seeds = range(seed, seed + replications)
    work = (delayed(replayed)(data, make, s) for make in bandits.values() for s in seeds)
    with bar("replays", len(bandits) * replications) as advance:
        done = []
        for run in Parallel(n_jobs=jobs, return_as="generator")(work):
            done.append(run)
            advance(1)
    each = batched(done, replications)
    runs = {name: list(some) for name, some in zip(bandits, each, strict=True)}
    table_of_bandits = ranking(runs)
    shared = [run for name in runs for run in runs[name]]
    for text in dict.fromkeys(text for run in shared for text in (*run.warnings, run.refused)):
        if text:
            warn(text)
    short = table_of_bandits[["bandit", "mean_reward", "low", "high", "below_best", "matched"]]
    show(short, f"Replay of {len(data):,} rounds of {table.name}")
    say(text := verdict(table_of_bandits))
    folder = out / "compare-log"  # `compare` keeps runs that go on in "compare"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "log": str(path),
        "columns": roles(data),
        "bandits": list(bandits),
        "replications": replications,
        "seed": seed,
    }
    write_record(folder / "run.json", record(settings))
    curves = {name: [run.curve for run in some] for name, some in runs.items()}
    figures = {"replay": plots.replay_curves(curves)}
    title = f"Which bandit learns best by the log {table.name}?"
    titled = {"Replay": table_of_bandits}
    save(folder, table_of_bandits, titled, figures, title=title, answer=text)


def replayed(data: Log, make: Callable[..., Player], seed: int) -> Replay:
    """Replay a log to a new bandit, in one thread. The result does not keep the bandit."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        run = replay(data, make(data.arms, n_features=data.x.shape[1], seed=seed), seed=seed)
    return replace(run, bandit=None)


def ranking(runs: Mapping[str, list[Replay]], level: float = 0.95) -> pd.DataFrame:
    """Return a row for each bandit, the best first.

    The columns have the mean reward with its interval, and the paired difference to the best
    bandit's (`below_best`) with its interval.
    """
    import pandas as pd

    values = {name: np.array([run.value for run in some]) for name, some in runs.items()}
    order = sorted(runs, key=lambda name: -values[name].mean())
    rows = []
    for name in order:
        some = runs[name]
        if any(run.refused for run in some):
            mean, se, low, high = float(values[name].mean()), np.nan, np.nan, np.nan
        elif len(some) == 1:
            mean, se, low, high = some[0].value, some[0].se, some[0].low, some[0].high
        else:
            mean, se, low, high = together(some, level)
        gaps = values[order[0]] - values[name]
        gap, _, gap_low, gap_high = pooled(gaps, overlap(some), level)
        matched = np.mean([run.matched for run in some])
        rows.append((name, mean, se, low, high, gap, gap_low, gap_high, matched, len(some)))
    columns = ["bandit", "mean_reward", "se", "low", "high", "below_best", "below_low",
               "below_high", "matched", "runs"]  # fmt: skip
    frame = pd.DataFrame(rows, columns=columns)
    frame.loc[0, ["below_low", "below_high"]] = np.nan
    return frame


def verdict(ranks: pd.DataFrame) -> str:
    """Return the result of a replay as a sentence. ranks: from `ranking`."""
    best = ranks.iloc[0]
    value = f"mean reward {best.mean_reward:.4g} a round in {best.matched:.0f} matched rounds"
    if len(ranks) == 1:
        return f"{best.bandit}: {value}."
    beaten = int((ranks["below_low"].iloc[1:] > 0).sum())
    if beaten == len(ranks) - 1:
        return f"Best by this log: {best.bandit}, {value}; it beats every other one."
    return (
        f"Most by this log: {best.bandit}, {value}; it beats {beaten} of {len(ranks) - 1} others "
        "beyond the error of the replay."
    )
