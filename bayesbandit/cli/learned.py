"""`bayesbandit learn --data`: a bandit that has learned a log in Parquet files, as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.checks import processes
from bayesbandit.cli.players import parse_bandit
from bayesbandit.cli.report import say
from bayesbandit.ope.logs.files import EACH, KNOWN, NEVER, guess
from bayesbandit.scale.learning import arms_in, learn
from bayesbandit.scale.parts import Parts, parts_of, sampled
from bayesbandit.tables.encoder import Encoder


def learn_files(
    data: str,
    out: Path,
    saved: Path | None,
    preset: str | None,
    roles: Mapping[str, str | None],
    drop: Sequence[str],
    parts: Mapping[str, Any],
    jobs: int,
) -> None:
    """Learn the log in Parquet files, and write the bandit to `out`.

    saved: a file with the bandit that learns. preset: a new bandit, as "BLTS(clip=0.2)", for the
    arms and columns of the log. roles: columns by their roles arm, reward, propensity and
    time; the first three are found if they have usual names. parts: see `serving.parts_of`.
    """
    if (saved is None) == (preset is None):
        raise ValueError("--data needs either --bandit FILE or --preset NAME")
    if preset is not None and (lost := [name for name, part in parts.items() if part is not None]):
        raise ValueError(f"--{lost[0]} is for --bandit, and --preset has its own")
    processes(jobs)
    files = parts_of(data)
    named = _named(files, roles)
    if saved is not None:
        bandit = Bandit.load(saved, **parts)
    else:
        columns = _features(files, named, drop)
        size = {"encoder": Encoder.fit(sampled(files, columns, jobs))} if columns else {}
        make = parse_bandit(str(preset))[1]
        made = make(arms_in(files, named["arm"], jobs), None if size else 0, **size)
        if not isinstance(made, Bandit):
            raise ValueError(f"--preset must be a bandit with a reward model; got {preset!r}")
        bandit = made
    if saved is not None and bandit.encoder and drop:
        raise ValueError(f"--drop {drop[0]}: the bandit's encoder says which columns are contexts")
    features = None if bandit.encoder else _features(files, named, drop)
    learned = learn(data, bandit, **named, features=features, jobs=jobs)
    learned.save(out)
    rounds = learned.history.total - bandit.history.total
    say(f"{out}: {rounds:,} rounds of {len(learned.arms)} arms learned")


def _named(files: Parts, roles: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the columns of the roles. Raise ValueError where there is none for arm or reward."""
    named: dict[str, Any] = {
        role: guess(role, map(str, files.columns)) if column is None and role != "time" else column
        for role, column in roles.items()
    }
    for role in ("arm", "reward"):
        if named[role] is None:
            raise ValueError(
                f"no column is recognised as {role} ({', '.join(KNOWN[role])}): name it by "
                f"--{role}; the columns are {files.columns!r}"
            )
    return named


def _features(files: Parts, named: Mapping[str, Any], drop: Sequence[str]) -> list[Any]:
    """Return the columns that are contexts: all others, without probabilities of each arm."""
    if lost := [name for name in drop if name not in files.columns]:
        raise ValueError(f"--drop: there is no column {lost[0]!r}; there are {files.columns!r}")
    taken = {*named.values(), *drop, *NEVER}
    return [c for c in files.columns if c not in taken and not str(c).startswith(EACH)]
