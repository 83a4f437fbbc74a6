"""Logs from files: Parquet, CSV and JSON lines."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.logs.readers import of_frame, roles_in
from bayesbandit.tables.encoder import Encoder
from bayesbandit.tables.files import read_rounds
from bayesbandit.tables.fitting import NoFeatures
from bayesbandit.tables.roles import names_in


def read_log(
    path: str | Path,
    *,
    encoder: Encoder | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
    **columns: Any,
) -> Log:
    """Read a log from a file: Parquet, CSV or JSON lines.

    columns: which column is what, as `Log.of` takes it for a table: arm, reward, propensity, time,
        reward_time, batch, probabilities, x, drop, keep and arms.
    encoder: makes numbers of the contexts. Default: one that is fitted to the file, `log.encoder`.
    sep, decimal, dates: how a CSV file is written: its separator (None: a comma; a tab for .tsv),
        its decimal mark (None: "."), and the format of its dates, such as "%d/%m/%Y" (dates of
        ISO 8601 need none).
    """
    form = {"sep": sep, "decimal": decimal, "dates": dates}
    frame = read_rounds(path, columns.get("arm"), encoder, **form)
    name = Path(path).name
    if encoder is None:
        contexts = roles_in(frame, name, **columns).contexts
        keep = [column for column in names_in(columns.get("keep", ())) if column in contexts]
        try:
            if contexts:
                encoder = Encoder.fit(frame[list(contexts)], keep=keep)
        except NoFeatures as error:
            warnings.warn(f"the log is read without contexts: {error}", stacklevel=2)
        if encoder is None:
            columns["x"] = []
    return Log.made(of_frame(frame, name, encoder=encoder, **columns))
