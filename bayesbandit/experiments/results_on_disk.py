"""Results that are saved as runs finish, so that a killed experiment can be resumed."""

from __future__ import annotations

import hashlib
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

KEY = ["environment", "bandit", "replication"]
NUMBERS = {"seed", "horizon", "points"}  # these settings are the same for all results of a folder
OTHERWISE = "give another folder (out=, or --out), or delete this one"
LIBRARIES = ("bayesbandit", "numpy", "numba", "scipy", "scikit-learn", "pandas")


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
        (folder / "parts").mkdir(exist_ok=True)  # locked: a run that ends removes it
        file = folder / "run.json"
        past = _record(file)
        before = past.get("settings", {})
        for key in sorted(NUMBERS):
            if before.get(key, settings[key]) != settings[key]:
                raise ValueError(
                    f"{folder} holds results with {key} = {before[key]!r}, not {settings[key]!r}; "
                    + OTHERWISE
                )
        stored = before.get("environments", {})
        asked = settings["environments"]
        for kind in ("environments", "bandits"):
            for name, now in settings[kind].items():
                then = before.get(kind, {}).get(name, now)
                if then != now and stored and not stored.keys() & asked.keys():
                    raise ValueError(
                        f"{folder} holds results on {', '.join(stored)}, and not on "
                        f"{', '.join(asked)}; {OTHERWISE}"
                    )
                if then != now:
                    raise ValueError(
                        f"{folder} holds results of another {name}: {then}, not {now}; "
                        f"give it another name, or {OTHERWISE}"
                    )
            settings[kind] = {**before.get(kind, {}), **settings[kind]}
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
        parts = sorted((folder / "parts").glob("[!.]*.parquet"))
        files = [folder / "results.parquet", *parts]
        self.frames += [_read(file) for file in files if file.exists()]
        _check_recorded(self.frames, before, file)
        write_record(file, self.record)

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

        table = pd.concat(self.frames).drop_duplicates([*KEY, "t"])
        if self.folder is not None:
            ordered = table.sort_values([*KEY, "t"], ignore_index=True)
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
    return set(frame[KEY].itertuples(index=False, name=None))


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
        "versions": {library: version(library) for library in LIBRARIES},
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
        past = json.loads(file.read_text())
        settings = past["settings"]
        _ = float(past.get("seconds", 0.0))
        valid = all(isinstance(settings[k], dict) for k in ("environments", "bandits"))
        valid = valid and isinstance(past.get("versions", {}), dict) and set(settings) >= NUMBERS
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ValueError(f"{file} is broken: {error!r}; {OTHERWISE}") from error
    if not valid:
        raise ValueError(f"{file} is broken: its settings are {settings!r}; {OTHERWISE}")
    return past


def _check_recorded(frames: list[pd.DataFrame], settings: dict[str, Any], file: Path) -> None:
    """Raise ValueError for results whose settings run.json does not have.

    They may come from other seeds, data or bandits.
    """
    for kind in ("environments", "bandits"):
        names = {name for frame in frames for name in frame[kind.removesuffix("s")].unique()}
        if unknown := sorted(names - set(settings.get(kind, {}))):
            raise ValueError(
                f"{file.parent} holds results of {', '.join(unknown)}, of which {file.name} "
                f"does not say how they were made; {OTHERWISE}"
            )


def _write(file: Path, frame: pd.DataFrame) -> None:
    """Write a table with a checksum for each page and one for all its values.

    The page checksums do not protect the file's footer.
    """
    frame = frame.copy(deep=False)
    frame.attrs = {"digest": digest(frame)}  # kept in the file
    with replacing(file) as temporary:
        frame.to_parquet(temporary, index=False, write_page_checksum=True)


def _read(file: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_parquet(file, page_checksum_verification=True)
        if list(frame) != list(evaluation.SCHEMA):
            raise ValueError(f"its columns are {list(frame)}")
        written = frame.attrs.pop("digest", None)
        if written is not None and written != digest(frame):
            raise ValueError("its rows are not those that were written")
        empty = pd.DataFrame(columns=list(evaluation.SCHEMA)).astype(evaluation.SCHEMA)
        if not frame.dtypes.equals(empty.dtypes):
            raise ValueError(f"its columns are {frame.dtypes.astype(str).to_dict()}")
        if not frame[KEY[:2]].map(lambda name: isinstance(name, str)).all(axis=None):
            raise ValueError("it has rows of no run")
    except Exception as error:  # the reader may raise anything for a broken file
        raise ValueError(f"{file} is broken: {error}; delete it to go on") from error
    return frame


def digest(frame: pd.DataFrame) -> str:
    """Return a hash of a results table's values."""
    sums = hashlib.blake2b(digest_size=16)
    for name, dtype in evaluation.SCHEMA.items():
        column = frame[name]
        if dtype == "str":
            sums.update(json.dumps(column.tolist()).encode())
        else:
            sums.update(f"{column.dtype}".encode() + column.to_numpy().tobytes())
    return sums.hexdigest()
