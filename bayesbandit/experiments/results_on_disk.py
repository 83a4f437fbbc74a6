"""Results that are saved as runs finish, so that a killed experiment can be resumed."""

from __future__ import annotations

import json
import platform
import shutil
import sys
import time
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

from bayesbandit import evaluation
from bayesbandit.evaluation.results import in_order
from bayesbandit.runtime import locks
from bayesbandit.runtime.files import replacing

if TYPE_CHECKING:
    import pandas as pd

RUN_KEY = ["environment", "bandit", "replication"]
SHARED_SETTINGS = {
    "seed",
    "horizon",
    "points",
}  # these settings are the same for all results of a folder
OTHER_FOLDER_ADVICE = "give another folder (out=, or --out), or delete this one"
RECORDED_LIBRARIES = ("bayesbandit", "numpy", "numba", "scipy", "scikit-learn", "pandas")


class Ledger:
    """The rows of an experiment, saved in `folder` (None: kept in memory only).

    Each finished replication is written to a temporary file and moved to `parts`. At the end
    `results.parquet` collects all of them. `run.json` has the settings that determine the results;
    a folder with results of other settings is refused. It also has the seconds that finished runs
    took.
    """

    def __init__(self, folder: str | Path | None, settings: dict[str, Any]) -> None:
        self.folder = None if folder is None else Path(folder)
        self.frames: list[pd.DataFrame] = []
        self.lock: IO[str] | None = None
        self.begun = time.monotonic()
        self.record: dict[str, Any] = {}  # the content of run.json
        if self.folder is not None:
            try:
                self._open(self.folder, settings)
            except BaseException:
                self.close()
                raise
        self.n_loaded = len(self.frames)
        self.finished = {key for frame in self.frames for key in _keys(frame)}

    def _open(self, folder: Path, settings: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = locked(folder)
        parts = folder / "parts"
        parts.mkdir(exist_ok=True)  # locked: a run that ends removes it
        past = _record(folder / "run.json")
        files = [*folder.glob("results.parquet"), *sorted(parts.glob("[!.]*.parquet"))]
        if files and not past:
            raise ValueError(
                f"{folder} holds results, and no run.json says how they were made; "
                f"{OTHER_FOLDER_ADVICE}"
            )
        before = past.get("settings", {"environments": {}, "bandits": {}})
        _check_same(folder, before, settings)
        for kind in ("environments", "bandits"):
            settings[kind] = {**before[kind], **settings[kind]}
        self.record = record(settings, seconds=past.get("seconds", 0.0))
        versions = self.record["versions"]
        then = past.get("versions", versions)
        other = [f"{k} {then[k]}, now {v}" for k, v in versions.items() if then.get(k, v) != v]
        if other:
            warnings.warn(
                f"{folder} holds results of other versions: {'; '.join(other)}; the table will "
                "have both",
                stacklevel=2,
            )
        self.frames += map(_read, files)
        write_record(folder / "run.json", self.record)

    def close(self) -> None:
        """Release the lock, so that other runs can write into the folder."""
        if self.lock is not None:
            self.lock.close()

    def done(self, environment: str, replication: int) -> set[str]:
        """Return the bandits that have finished this replication."""
        return {b for e, b, r in self.finished if e == environment and r == replication}

    def append(self, rows: list[dict[str, Any]]) -> None:
        """Keep the rows of finished runs."""
        import pandas as pd

        frame = pd.DataFrame(rows).astype(evaluation.SCHEMA)[list(evaluation.SCHEMA)]
        self.frames.append(frame)
        if self.folder is not None:
            _write(self.folder / "parts" / f"{uuid4().hex}.parquet", frame)

    def finish(
        self, environments: list[str], bandits: list[str], replications: int
    ) -> pd.DataFrame:
        """Write all rows to one file; return the rows asked for, in the order of the names."""
        import pandas as pd

        table = pd.concat(self.frames).drop_duplicates([*RUN_KEY, "t"])
        if self.folder is not None:
            ordered = table.sort_values([*RUN_KEY, "t"], ignore_index=True)
            _write(self.folder / "results.parquet", ordered)
            shutil.rmtree(self.folder / "parts")
            if len(self.frames) > self.n_loaded:
                taken = self.record["seconds"] + time.monotonic() - self.begun
                self.record["seconds"] = round(taken, 1)
                write_record(self.folder / "run.json", self.record)
            self.close()
        wanted = (
            table["environment"].isin(environments)
            & table["bandit"].isin(bandits)
            & (table["replication"] < replications)
        )
        return in_order(table[wanted], [*environments, *bandits])


def _keys(frame: pd.DataFrame) -> set[tuple[str, str, int]]:
    return set(frame[RUN_KEY].itertuples(index=False, name=None))


def locked(folder: Path) -> IO[str]:
    """Lock the folder and return the lock file; keep it open while this run writes.

    Raise ValueError if another run has the lock.
    """
    file = (folder / ".lock").open("a")
    try:
        locks.take(file)
    except BlockingIOError as error:
        file.close()
        raise ValueError(
            f"another run writes into {folder}; wait for its end, or give another folder"
        ) from error
    except OSError as error:  # a file system without locks
        warnings.warn(f"{folder} cannot be locked ({error}): let no two runs write", stacklevel=2)
    return file


def record(settings: Mapping[str, object], **more: object) -> dict[str, Any]:
    """Return the content of run.json: how results were made, and more."""
    return {
        "settings": dict(settings),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "python": platform.python_version(),
        "versions": {library: version(library) for library in RECORDED_LIBRARIES},
        **more,
    }


def write_record(file: Path, content: dict[str, Any]) -> None:
    """Write run.json."""
    with replacing(file) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n")


def _record(file: Path) -> dict[str, Any]:
    """Return the content of run.json, {} without one. Raise ValueError if it is broken."""
    if not file.exists():
        return {}
    try:
        past: dict[str, Any] = json.loads(file.read_text())
        settings = past["settings"]
        named = settings["environments"].keys() | settings["bandits"].keys()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{file} is broken: {error!r}; {OTHER_FOLDER_ADVICE}") from error
    if not (named and {*settings} >= SHARED_SETTINGS):
        raise ValueError(f"{file} is broken: its settings are {settings!r}; {OTHER_FOLDER_ADVICE}")
    return past


def _check_same(folder: Path, before: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Raise ValueError if results in a folder were made by other settings."""
    for key in sorted(SHARED_SETTINGS):
        if before.get(key, settings[key]) != settings[key]:
            raise ValueError(
                f"{folder} holds results with {key} = {before[key]!r}, not {settings[key]!r}; "
                + OTHER_FOLDER_ADVICE
            )
    for kind in ("environments", "bandits"):
        for name, now in settings[kind].items():
            if (then := before[kind].get(name, now)) != now:
                raise ValueError(
                    f"{folder} holds results of another {name}: {then}, not {now}; give it another "
                    f"name, or {OTHER_FOLDER_ADVICE}"
                )


def _write(file: Path, frame: pd.DataFrame) -> None:
    """Write a table with a checksum for each page."""
    with replacing(file) as temporary:
        frame.to_parquet(temporary, index=False, write_page_checksum=True)


def _read(file: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_parquet(file, page_checksum_verification=True)
        found = frame.dtypes.astype(str).to_dict()
        if found != evaluation.SCHEMA or frame[RUN_KEY].isna().any(axis=None):
            raise ValueError(f"its columns are {found}")
    except Exception as error:  # the reader may raise anything for a broken file
        raise ValueError(f"{file} is broken: {error}; delete it to go on") from error
    return frame
