"""Refused rows: the rows of a batch that a bandit cannot learn, with reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesbandit import checks
from bayesbandit.bandit import transactions
from bayesbandit.checks import Contexts
from bayesbandit.tables import inputs
from bayesbandit.tables.inputs import table_of

if TYPE_CHECKING:
    import pandas as pd

    from bayesbandit.bandit.bandit import Bandit

ERRORS = ("raise", "skip")


class Refused(NamedTuple):
    """A row that was not learned, by its number from 0, with the reason."""

    row: int
    reason: str


class Learnable:
    """The rows of a batch: the numbers `left` to learn, and a reason for each `refused` number."""

    def __init__(self, n: int, refused: Mapping[int, str] | None = None) -> None:
        self.left, self.refused = np.arange(n), dict(refused or {})
        if self.refused:
            self._drop_refused()

    def check_finite(self, values: np.ndarray, what: str) -> None:
        """Refuse the rows whose values (n, …) are not finite."""
        self.refused = checks.not_finite(values, what) | self.refused
        self._drop_refused()

    def _drop_refused(self) -> None:
        self.left = np.array([i for i in self.left if i not in self.refused], dtype=np.int64)

    def check(self, check: Callable[[np.ndarray], object]) -> None:
        """Refuse the rows for which `check`, a function of row numbers, raises ValueError."""
        if self.left.size:
            self.refused |= _refused(self.left, check)
            self._drop_refused()

    def learn(self, bandit: Bandit, learn: Callable[[Any, np.ndarray], object]) -> None:
        """Learn the rows that are left, after refusing those that the belief refuses."""
        if not self.left.size:
            return
        try:
            learn(bandit, self.left)
        except ValueError:
            before = self.left.size
            self.check(lambda rows: learn(transactions.fork(bandit), rows))
            if self.left.size == before:
                raise
            self.learn(bandit, learn)

    def listed(self) -> list[Refused]:
        """Return the refused rows, in their order."""
        return [Refused(row, self.refused[row]) for row in sorted(self.refused)]


def _refused(rows: np.ndarray, check: Callable[[np.ndarray], object]) -> dict[int, str]:
    """Return the reasons of the rows that `check` refuses, by row number.

    If `check` refuses several rows together, each half is checked again, down to single rows.
    """
    try:
        check(rows)
    except ValueError as error:
        if len(rows) == 1:
            row = int(rows[0])  # the model saw this row as row 0
            return {row: str(error).replace(": row 0, ", f": row {row}, ")}
        half = len(rows) // 2
        return _refused(rows[:half], check) | _refused(rows[half:], check)
    return {}


def contexts(bandit: Bandit, x: Contexts, n: int) -> tuple[np.ndarray, Learnable]:
    """Return contexts (n, d) or (n, K, d) of a log, with the rows that can be used.

    Refused contexts are 0. Raise ValueError if the shape is wrong.
    """
    rows = Learnable(n)
    d = bandit.n_features
    if bandit.encoder is not None:
        return _encoded(bandit, _frame(bandit, x), rows)
    z = np.empty((n, 0)) if x is None and d == 0 else checks.floats(bandit.encoded(x), "contexts")
    z = np.atleast_2d(z)
    shapes = {(n, d), (n, len(bandit.arms), d)} if bandit.of_arms else {(n, d)}
    if z.shape not in shapes:
        allowed = " or ".join(map(str, sorted(shapes)))
        raise ValueError(f"contexts of {n} rounds must have shape {allowed}; got {z.shape}")
    rows.check_finite(z, "contexts")
    return np.where(np.isin(np.arange(n), rows.left).reshape(-1, *[1] * (z.ndim - 1)), z, 0.0), rows


def _frame(bandit: Bandit, x: Contexts) -> pd.DataFrame:
    """Return rows of a log as a table; raise ValueError if its columns are wrong."""
    import pandas as pd

    encoder: Any = bandit.encoder
    frame = inputs.frame_of(
        table_of([dict(x.items())] if isinstance(x, Mapping | pd.Series) else x)
    )
    if frame is None:
        frame = pd.DataFrame(np.atleast_2d(inputs.array_of(x)))
    ignored = [column.name for column in encoder.fitted if column.name not in encoder.columns]
    inputs.read(frame, encoder.columns, ignored, encoder.named)
    return frame


def _encoded(bandit: Bandit, frame: pd.DataFrame, rows: Learnable) -> tuple[np.ndarray, Learnable]:
    encoder: Any = bandit.encoder
    n = len(rows.left)
    if len(frame) != n:
        raise ValueError(f"arm must have one name for each of {len(frame)} rows; got {(n,)}")
    rows.check(lambda i: encoder.transform(frame.iloc[i]))
    z = np.zeros((n, bandit.n_features))
    if rows.left.size:
        z[rows.left] = encoder.transform(frame.iloc[rows.left])
    return z, rows
