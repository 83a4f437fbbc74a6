"""Results on disk as they come: a killed experiment goes on where it was."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

from bayesbandit import evaluation
from bayesbandit.runtime import locks
from bayesbandit.runtime.files import replacing

if TYPE_CHECKING:
    import pandas as pd

KEY = ["environment", "bandit", "replication"]
NUMBERS = {"seed", "horizon", "points"}  # settings that all results of a folder share
OTHERWISE = "give another folder (out=, or --out), or delete this one"
LIBRARIES = ("bayesbandit", "numpy", "numba", "scipy", "scikit-learn", "pandas")


class Ledger:
    """The rows of an experiment, kept in `folder` (None: in memory only).

    Each finished piece of work is a file of its own under `parts`, written beside and moved into
    place; `results.parquet` takes them all in at the end. `run.json` says what the numbers depend
    on, and results that were made otherwise are refused; and how many seconds the runs took that
    came to an end.
    """

    def __init__(self, folder: str | Path | None, settings: dict[str, Any]) -> None:
        self.folder = None if folder is None else Path(folder)
        self.frames: list[pd.DataFrame] = []
        self.lock: IO[str] | None = None
        self.begun = time.monotonic()
        self.said: dict[str, Any] = {}  # what run.json says
        if self.folder is not None:
            try:
                self._open(self.folder, settings)
            except BaseException:
                self.close()
                raise
        self.found = len(self.frames)
        self.finished = {key for frame in self.frames for key in _keys(frame)}

    def _open(self, folder: Path, settings: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = locked(folder)
        (folder / "parts").mkdir(exist_ok=True)  # not before: a run that ends removes it
        record = folder / "run.json"
        past = _record(record)
        before = past.get("settings", {})
        for key in sorted(NUMBERS):
            if before.get(key, settings[key]) != settings[key]:
                raise ValueError(
                    f"{folder} holds results with {key} = {before[key]!r}, not {settings[key]!r}; "
                    + OTHERWISE
                )
        there, asked = before.get("environments", {}), settings["environments"]
        for kind in ("environments", "bandits"):
            for name, now in settings[kind].items():
                then = before.get(kind, {}).get(name, now)
                if then != now and there and not there.keys() & asked.keys():
                    raise ValueError(
                        f"{folder} holds results on {', '.join(there)}, and not on "
                        f"{', '.join(asked)}; {OTHERWISE}"
                    )
                if then != now:
                    raise ValueError(
                        f"{folder} holds results of another {name}: {then}, not {now}; "
                        f"give it another name, or {OTHERWISE}"
                    )
            settings[kind] = {**before.get(kind, {}), **settings[kind]}
        versions = {library: version(library) for library in LIBRARIES}
        then = past.get("versions", versions)
        other = [f"{k} {then[k]}, now {v}" for k, v in versions.items() if then.get(k, v) != v]
        if other:
            warnings.warn(
                f"{folder} holds results of other versions: {'; '.join(other)}; the table will "
                "have both",
                stacklevel=2,
            )
        self.said = {
            "settings": settings,
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "python": platform.python_version(),
            "versions": versions,
            "seconds": past.get("seconds", 0.0),
        }
        parts = sorted((folder / "parts").glob("[!.]*.parquet"))
        files = [folder / "results.parquet", *parts]
        self.frames += [_read(file) for file in files if file.exists()]
        _made(self.frames, before, record)
        _say(record, self.said)

    def close(self) -> None:
        """Let other runs write into the folder."""
        if self.lock is not None:
            self.lock.close()

    def done(self, environment: str, replication: int) -> set[str]:
        """Return the bandits whose run of this replication is on record."""
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
        """Return all rows into one file, and those asked for in the order asked for."""
        import pandas as pd

        table = pd.concat(self.frames).drop_duplicates([*KEY, "t"])
        if self.folder is not None:
            whole = table.sort_values([*KEY, "t"], ignore_index=True)
            _write(self.folder / "results.parquet", whole)
            shutil.rmtree(self.folder / "parts")
            if len(self.frames) > self.found:
                taken = self.said["seconds"] + time.monotonic() - self.begun
                _say(self.folder / "run.json", self.said | {"seconds": round(taken, 1)})
            self.close()
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


def locked(folder: Path) -> IO[str]:
    """Return a file to be held open for as long as this run writes into the folder. Raise
    ValueError where another run holds it."""
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


def _say(record: Path, text: dict[str, Any]) -> None:
    with replacing(record) as beside:
        beside.write_text(json.dumps(text, indent=2) + "\n")


def _record(file: Path) -> dict[str, Any]:
    """Return what run.json says of the results so far."""
    if not file.exists():
        return {}
    try:
        past = json.loads(file.read_text())
        settings, _ = past["settings"], float(past.get("seconds", 0.0))
        whole = all(isinstance(settings[k], dict) for k in ("environments", "bandits"))
        whole = whole and isinstance(past.get("versions", {}), dict) and set(settings) >= NUMBERS
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ValueError(f"{file} is broken: {error!r}; {OTHERWISE}") from error
    if not whole:
        raise ValueError(f"{file} is broken: its settings are {settings!r}; {OTHERWISE}")
    return past


def _made(frames: list[pd.DataFrame], settings: dict[str, Any], record: Path) -> None:
    """Raise a ValueError where run.json does not say how results were made: they may be of other
    seeds, data or bandits."""
    for kind in ("environments", "bandits"):
        found = {name for frame in frames for name in frame[kind.removesuffix("s")].unique()}
        if unknown := sorted(found - set(settings.get(kind, {}))):
            raise ValueError(
                f"{record.parent} holds results of {', '.join(unknown)}, of which {record.name} "
                f"does not say how they were made; {OTHERWISE}"
            )


def _write(file: Path, frame: pd.DataFrame) -> None:
    """Write a table with a checksum for each page, and one of the numbers: the file's footer has
    none."""
    frame = frame.copy(deep=False)
    frame.attrs = {"digest": digest(frame)}  # kept in the file
    with replacing(file) as beside:
        frame.to_parquet(beside, index=False, write_page_checksum=True)


def _read(file: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_parquet(file, page_checksum_verification=True)
        if list(frame) != list(evaluation.SCHEMA):
            raise ValueError(f"its columns are {list(frame)}")
        said = frame.attrs.pop("digest", None)
        if said is not None and said != digest(frame):
            raise ValueError("its rows are not those that were written")
        empty = pd.DataFrame(columns=list(evaluation.SCHEMA)).astype(evaluation.SCHEMA)
        if not frame.dtypes.equals(empty.dtypes):
            raise ValueError(f"its columns are {frame.dtypes.astype(str).to_dict()}")
        if not frame[KEY[:2]].map(lambda name: isinstance(name, str)).all(axis=None):
            raise ValueError("it has rows of no run")
    except Exception as error:  # the reader raises what it likes when the file is broken
        raise ValueError(f"{file} is broken: {error}; delete it to go on") from error
    return frame


def digest(frame: pd.DataFrame) -> str:
    """Return what tells a table of results from any other."""
    found = hashlib.blake2b(digest_size=16)
    for name, dtype in evaluation.SCHEMA.items():
        column = frame[name]
        if dtype == "str":
            found.update(json.dumps(column.tolist()).encode())
        else:
            found.update(f"{column.dtype}".encode() + column.to_numpy().tobytes())
    return found.hexdigest()
