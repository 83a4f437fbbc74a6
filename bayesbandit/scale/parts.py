"""Tables read in parts: from memory, from Parquet files, or from a Dask cluster."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bayesbandit.checks import Name
from bayesbandit.tables import inputs, samples
from bayesbandit.tables.files import is_parquet, only_of_csv, read

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    import pyarrow as pa
    from dask.delayed import Delayed
    from distributed import Client, Future
    from pyarrow.dataset import ParquetFileFragment

ROWS = 2**17  # rows at least of a part of files
ROOM = 2**25  # numbers at most of a part of a table in memory
TOGETHER = 16  # parts that Dask computes in one call where there is no cluster
AHEAD = 8  # parts for each thread of a cluster that are computed or wait, at most

type Work[T] = Callable[[pd.DataFrame, int], T]  # of a part and its number


class Parts(Protocol):
    """A table that is read part by part, in a fixed order. columns: the names of its columns."""

    columns: list[Name]

    def check(self, columns: Sequence[Name]) -> None:
        """Raise ValueError if it is known that a part lacks one of these columns."""
        return

    @abstractmethod
    def each[T](self, work: Work[T], columns: Sequence[Name], jobs: int) -> Iterator[T]:
        """Yield what `work` makes of these columns of each part, in the order of the parts.

        jobs: how many processes work (−1: all cores).
        """


def parts_of(source: object, **form: Any) -> Parts:
    """Return the parts of a table, of a dask.dataframe, of Parquet files, or of one other file.

    Parquet files are given by a path, a folder, a pattern with * or an address as s3://…. Another
    file, CSV or JSON lines, is read whole, as `form` says: see `tables.files.read`. Raise
    FileNotFoundError if there are none, and TypeError for a table whose columns have no names.
    """
    if isinstance(source, Frame | Files | Cluster):
        return source
    if isinstance(source, str | PathLike):
        path = Path(source)
        if path.is_file() and not is_parquet(path):
            return Frame(read(path, **form))
        only_of_csv({name: form.get(name) for name in ("sep", "decimal", "dates")})
        return Files(fspath(source))
    if inputs.is_dask(source):
        return Cluster(source)
    frame, named = inputs.table(source)
    if not named:
        raise TypeError("the table's columns have no names: pandas.DataFrame(…, columns=…)")
    return Frame(frame)


class Frame(Parts):
    """A pandas table, read in slices of consecutive rows."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame, self.columns = frame, list(frame.columns)

    def each[T](self, work: Work[T], columns: Sequence[Name], jobs: int) -> Iterator[T]:
        frame = self.frame[list(columns)]
        step = max(1, ROOM // max(1, len(columns)))
        loads = [Slice(frame, i, i + step) for i in range(0, len(frame), step)]
        return _by_processes(work, loads, jobs)


class Files(Parts):
    """Parquet files, in parts of whole row groups."""

    def __init__(self, path: str) -> None:
        from pyarrow import ArrowInvalid, dataset

        is_whole = Path(path).exists() or ("://" in path and not has_magic(path))
        found = path if is_whole else sorted(glob(path, recursive=True))
        if not found:
            raise FileNotFoundError(f"there are no Parquet files, and no other file, {path!r}")
        try:
            data = dataset.dataset(found, format="parquet", partitioning="hive")
        except ArrowInvalid as error:
            raise ValueError(f"{path} has other files than Parquet: {error}") from error
        self.schema, self.files = data.schema, list(data.get_fragments())
        self.columns = list(self.schema.names)

    def each[T](self, work: Work[T], columns: Sequence[Name], jobs: int) -> Iterator[T]:
        schema = self._schema(columns)
        loads = []
        held = []
        rows = 0
        for file in self.files:
            for group in file.split_by_row_group():
                held.append(group)
                rows += group.count_rows()
                if rows >= ROWS:
                    loads.append(Groups(tuple(held), schema, tuple(columns)))
                    held = []
                    rows = 0
        if held:
            loads.append(Groups(tuple(held), schema, tuple(columns)))
        return _by_processes(work, loads, jobs)

    def check(self, columns: Sequence[Name]) -> None:
        """Raise as `Parts`: pyarrow would fill a column that a file lacks with nulls."""
        stored = {file.path: file.physical_schema.names for file in self.files}
        in_files = {name for names in stored.values() for name in names}  # the others: of folders
        for path, names in stored.items():
            check_there(f"the file {path}", [c for c in columns if c in in_files], names)

    def _schema(self, columns: Sequence[Name]) -> pa.Schema:
        """Return the files' schema, with types of these columns that hold the values of all files.

        pyarrow takes the types of the first file, and would cast what others have.
        """
        schema = self.schema
        of_files = dict.fromkeys(file.physical_schema.remove_metadata() for file in self.files)
        for name in columns:
            at = schema.get_field_index(name)
            stored = [s for s in of_files if name in s.names]
            if types := dict.fromkeys(s.field(name).type for s in stored):
                schema = schema.set(at, schema.field(at).with_type(_common(name, list(types))))
        return schema


def _common(name: Name, types: list[pa.DataType]) -> pa.DataType:
    """Return the type that a column has if files store it as any of these types.

    Raise ValueError if there is none.
    """
    import pyarrow as pa
    from pyarrow.types import is_dictionary, is_timestamp

    kinds = types
    zone = None
    if all(map(is_timestamp, types)):
        zone = next((t.tz for t in types if t.tz is not None), None)
        kinds = [pa.timestamp(t.unit) for t in types]  # without a zone it is of UTC
    elif not all(map(is_dictionary, types)):
        kinds = [t.value_type if is_dictionary(t) else t for t in types]
    try:
        schemas = [pa.schema([(str(name), kind)]) for kind in kinds]
        found = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowTypeError as error:
        said = " and ".join(str(t) for t in types)
        raise ValueError(
            f"column {name!r} is {said} in different files: write it with one type"
        ) from error
    return found if zone is None else pa.timestamp(found.unit, zone)


class Cluster(Parts):
    """A dask.dataframe, in its partitions."""

    def __init__(self, frame: dd.DataFrame) -> None:
        self.frame, self.columns = frame, list(frame.columns)

    def each[T](self, work: Work[T], columns: Sequence[Name], jobs: int) -> Iterator[T]:
        """Yield as `Parts.each`. `jobs` is not used: the cluster, or Dask's own scheduler,
        decides."""
        import dask

        shared = dask.delayed(work)  # one object of the graph, however many parts there are
        partitions = self.frame[list(columns)].to_delayed()
        tasks = [shared(part, number) for number, part in enumerate(partitions)]
        try:
            yield from _by_dask(tasks)
        except KeyError:  # of Dask, which says neither which partition nor what it has
            there = _by_dask([dask.delayed(list)(part) for part in self.frame.to_delayed()])
            for number, names in enumerate(there):
                check_there(f"partition {number}", columns, names)
            raise


def _by_dask(tasks: list[Delayed]) -> Iterator[Any]:
    """Yield the results of tasks in their order, by a cluster, or by Dask's own scheduler."""
    import dask

    client = _client()
    if client is not None:
        yield from _by_cluster(client, tasks)
        return
    for i in range(0, len(tasks), TOGETHER):
        yield from dask.compute(*tasks[i : i + TOGETHER])


def check_there(what: str, columns: Sequence[Name], names: Sequence[Name]) -> None:
    """Raise ValueError for the first of these columns that is not among the names."""
    for name in columns:
        if name not in names:
            raise ValueError(f"{what} has no column {name!r}; it has {list(names)!r}")


def sampled(parts: Parts, columns: Sequence[Name], jobs: int) -> pd.DataFrame:
    """Return these columns of all rows, or of 100,000 drawn at random in one pass."""
    return samples.least(parts.each(samples.ranked, columns, jobs))


def _client() -> Client | None:
    """Return the client of the running Dask cluster; None without one."""
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):  # ValueError: there is no client
        return None


def _by_cluster(client: Client, tasks: list[Delayed]) -> Iterator[Any]:
    """Yield the results of tasks in their order.

    The cluster has some tasks for each of its threads at a time, and each result leaves it as soon
    as it is there. So few results wait for an earlier one, however many tasks there are, and a
    worker that is lost costs only what it was computing.
    """
    from distributed import as_completed

    number: dict[Future, int] = {}  # of the tasks that are computed now
    waiting: dict[int, Any] = {}
    given = done = 0
    completed = as_completed(with_results=True)
    try:
        while done < len(tasks):
            ahead = max(TOGETHER, AHEAD * sum(client.nthreads().values()))
            if given < len(tasks) and given <= done + ahead // 2:
                futures = client.compute(tasks[given : done + ahead])
                number |= {future: given + i for i, future in enumerate(futures)}
                given += len(futures)
                completed.update(futures)
            future, result = next(completed)
            waiting[number.pop(future)] = result
            future.release()
            while done in waiting:
                yield waiting.pop(done)
                done += 1
    finally:
        client.cancel(list(number))


@dataclass(frozen=True, eq=False)
class Slice:
    """Some rows of a table in memory."""

    frame: pd.DataFrame
    start: int
    stop: int

    def __call__(self) -> pd.DataFrame:
        return self.frame.iloc[self.start : self.stop]

    def __reduce__(self) -> tuple[Any, ...]:
        rows = self()  # another process gets these alone
        return Slice, (rows, 0, len(rows))


@dataclass(frozen=True, eq=False)
class Groups:
    """Some row groups of Parquet files."""

    groups: tuple[ParquetFileFragment, ...]
    schema: pa.Schema
    columns: tuple[Name, ...]

    def __call__(self) -> pd.DataFrame:
        import pyarrow as pa

        names = list(self.columns)
        tables = [group.to_table(schema=self.schema, columns=names) for group in self.groups]
        return pa.concat_tables(tables).to_pandas()


def _by_processes[T](
    work: Work[T], loads: Sequence[Callable[[], pd.DataFrame]], jobs: int
) -> Iterator[T]:
    """Yield the results of `work` in order; so many processes load the parts and do it."""
    from joblib import Parallel, delayed

    calls = (delayed(_done)(work, load, number) for number, load in enumerate(loads))
    return iter(Parallel(jobs, return_as="generator")(calls))


def _done[T](work: Work[T], load: Callable[[], pd.DataFrame], number: int) -> T:
    return work(load(), number)
