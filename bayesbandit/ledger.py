"""Results on disk as they come: a killed experiment goes on where it was."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesbandit import evaluation

if TYPE_CHECKING:
    import pandas as pd

KEY = ["environment", "bandit", "replication"]
LIBRARIES = ("bayesbandit", "numpy", "numba", "scipy", "scikit-learn", "pandas")


class Ledger:
    """The rows of an experiment, kept in `folder` (None: in memory only).

    Each finished piece of work is a file of its own under `parts`, written beside and moved into
    place; `results.parquet` takes them all in at the end. `run.json` says what the numbers depend
    on, and results that were made otherwise are refused.
    """

    def __init__(self, folder: str | Path | None, settings: dict[str, Any]) -> None:
        self.folder = None if folder is None else Path(folder)
        self.frames: list[pd.DataFrame] = []
        if self.folder is not None:
            self._open(self.folder, settings)
        self.finished = {key for frame in self.frames for key in _keys(frame)}

    def _open(self, folder: Path, settings: dict[str, Any]) -> None:
        import pandas as pd

        (folder / "parts").mkdir(parents=True, exist_ok=True)
        record = folder / "run.json"
        before = json.loads(record.read_text())["settings"] if record.exists() else {}
        for key in ("seed", "horizon", "points"):
            if before.get(key, settings[key]) != settings[key]:
                raise ValueError(
                    f"{folder} holds results with {key} = {before[key]!r}, not {settings[key]!r}; "
                    "give another folder, or delete this one"
                )
        for kind in ("environments", "bandits"):
            for name, now in settings[kind].items():
                then = before.get(kind, {}).get(name, now)
                if then != now:
                    raise ValueError(
                        f"{folder} holds results of another {name}: {then}, not {now}; "
                        "give another folder or another name, or delete this one"
                    )
            settings[kind] = {**before.get(kind, {}), **settings[kind]}
        versions = {library: version(library) for library in LIBRARIES}
        text = {
            "settings": settings,
            "command": sys.argv,
            "python": platform.python_version(),
            "versions": versions,
        }
        _replace(record, lambda path: path.write_text(json.dumps(text, indent=2) + "\n"))
        parts = sorted((folder / "parts").glob("*.parquet"))
        self.parts = len(parts)
        files = [folder / "results.parquet", *parts]
        for file in files:
            if file.exists():
                try:
                    self.frames.append(pd.read_parquet(file))
                except (OSError, ValueError) as error:
                    raise ValueError(f"{file} is broken: {error}; delete it to go on") from error

    def done(self, environment: str, replication: int) -> set[str]:
        """The bandits whose run of this replication is on record."""
        return {b for e, b, r in self.finished if e == environment and r == replication}

    def append(self, rows: list[dict[str, Any]]) -> None:
        """Keep the rows of finished runs."""
        import pandas as pd

        frame = pd.DataFrame(rows).astype(evaluation.SCHEMA)[list(evaluation.SCHEMA)]
        self.frames.append(frame)
        if self.folder is not None:
            file = self.folder / "parts" / f"{self.parts:06d}.parquet"
            self.parts += 1
            _replace(file, lambda path: frame.to_parquet(path, index=False))

    def finish(
        self, environments: list[str], bandits: list[str], replications: int
    ) -> pd.DataFrame:
        """All rows into one file, and those asked for in the order asked for."""
        import pandas as pd

        table = pd.concat(self.frames, ignore_index=True).drop_duplicates([*KEY, "t"])
        if self.folder is not None:
            whole = table.sort_values([*KEY, "t"], ignore_index=True)
            _replace(
                self.folder / "results.parquet", lambda path: whole.to_parquet(path, index=False)
            )
            shutil.rmtree(self.folder / "parts")
        wanted = (
            table["environment"].isin(environments)
            & table["bandit"].isin(bandits)
            & (table["replication"] < replications)
        )
        order = {name: i for i, name in enumerate([*environments, *bandits])}
        return table[wanted].sort_values(
            [*KEY, "t"],
            key=lambda c: c.map(order) if c.name in ("environment", "bandit") else c,
            ignore_index=True,
        )


def _keys(frame: pd.DataFrame) -> set[tuple[str, str, int]]:
    return set(frame[KEY].itertuples(index=False, name=None))


def _replace(file: Path, write: Any) -> None:
    beside = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        write(beside)
        os.replace(beside, file)
    finally:
        beside.unlink(missing_ok=True)
