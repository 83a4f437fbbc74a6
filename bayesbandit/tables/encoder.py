"""Tables of mixed columns as contexts: what is learned of columns once, and holds ever after."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import LARGEST, Name, Table, contexts, integer
from bayesbandit.tables import inputs, samples
from bayesbandit.tables.advice import remarks, warn_of
from bayesbandit.tables.columns import Column, LeftOut, Levels, Number, Used, unique
from bayesbandit.tables.learning import Components, learn
from bayesbandit.tables.recognition import Recognised, recognise

if TYPE_CHECKING:
    import pandas as pd

    from bayesbandit.tables.formulas.formula import Formula

MAX_FEATURES = 100


@dataclass(frozen=True, eq=False)
class Encoder:
    """What turns rows of a table into contexts. Made by `Encoder.fit` or `Encoder.formula`; frozen.

    fitted: the columns of the fit, in order, those left out among them. named: whether they had
    names; those of an array are numbers. components: principal components of the features, where
    there were too many. spec: the formula, where there is one.
    """

    fitted: tuple[Column, ...]
    named: bool = True
    components: Components | None = None
    spec: Formula | None = None

    @classmethod
    def fit(
        cls,
        frame: object,
        *,
        drop: Collection[Name] = (),
        keep: Collection[Name] = (),
        max_features: int = MAX_FEATURES,
    ) -> Encoder:
        """Learn the columns of a table (n, c): pandas, Polars or another that narwhals reads, or an
        array, whose columns go by position. Of a dask.dataframe, 100,000 rows drawn at random in
        one pass are the table, or all rows if there are fewer.

        - Numbers: a missing value takes the median; then mean 0 and standard deviation 1. A column
          of text is one of numbers where every value is a number, and all have a sign of currency
          or percents ($1,200 or 12%, which they must have ever after), or more than a tenth have
          thousands separators in the right places, as 1,234.5 has, or there are more than 20
          different ones that repeat, or fractions that do not; codes as 007 are levels. `summary`
          says so. Where nearly all are numbers, or were with decimal commas, the others are named
          in an error. So are infinite numbers, and those beyond ±1e100.
        - Text, categories and booleans: a 0/1 feature for each level, a missing value being a level
          like any other. Levels seen once are pooled, and where there would be more than 20
          features the rarest are too; of a pair of features the second is kept.
        - Left out: columns to `drop`, and those that never vary or have no value at all. With a
          warning: dates (also text, where all of it is as 2026-11-22 or 2026-11-22T18:00Z, or as
          22/11/2026, which cannot be kept, since it may be read in two ways), and identifiers.
          These are text that never repeats; text or whole numbers of which nine tenths differ,
          under a name that says so (customer_id, orderKey, uuid); and integers that all differ, of
          100 rows or more, and leave out less than a twentieth of their range. A measurement with a
          fraction is never taken for one. `keep` brings them back: dates as days since the first,
          which are numbers like others.
        - Also with a warning, but used: columns that repeat another one in every row, and levels
          most of whose rows are pooled, as of prices or notes.
        - More than max_features features become that many leading principal components, or fewer
          where the rest have no variance. They keep their relative sizes; one common factor gives
          them mean square 1, so that contexts are as long as those of standardised columns.

        Afterwards, in `transform`: a missing number or date takes the median of the fit. A level
        that the fit did not see is one of the pooled ones where there are any, else all features of
        its column are 0 (of a pair: as of the first); so is a missing value where the fit saw none.
        A number is found by its value (1 is 1.0 and "1.0"), a date too; a warning says where a new
        level is of another kind than all of the fit, as a number among words. An infinite number is
        an error; so is a new level beside True and False. Columns are found
        by name, in any order; a missing or unknown one is an error, one left out is ignored.
        """
        encoder, _, said = fitted(frame, drop=drop, keep=keep, max_features=max_features)
        warn_of(said)
        return encoder

    @classmethod
    def formula(cls, formula: str, frame: object) -> Encoder:
        """Learn the terms of a formula, as "~ age * country + bs(income, df=4)", from a table.

        Formulas are those of formulaic: + - : * / ** ( ), functions of numbers (bs, cr, cs, cc,
        poly, center, scale, log, exp, sqrt, abs, …) and arithmetic in I(…) or {…}; `names with
        blanks` stand in backticks; no code runs. A formula has at most 10,000 characters, a term 6
        factors, and there are at most 5,000 features. Knots, centres and levels are those of
        the fit; outside its range a spline goes on as at its edge. Features are not scaled unless
        the formula says so, and there is no constant one: models have their own. Levels are against
        the first one, unless the formula begins with 0 +; they are pooled as by `fit`, and a new
        one is a pooled one; where there is none, all its features are 0. Dates are days since the
        first. A missing value is an error that names its column, at fit and in `transform`. Columns
        that the formula does not name are ignored.
        """
        from bayesbandit.tables.formulas.formula import learned

        table, has_names = inputs.table(frame)
        if not has_names:
            raise TypeError("a formula names columns; got an array: pandas.DataFrame(…, columns=…)")
        columns, spec = learned(formula, table)
        encoder = cls(columns, True, None, spec)
        encoder.transform(table)  # which every number of the fit must allow
        return encoder

    @cached_property
    def _used(self) -> tuple[Used, ...]:
        return tuple(column for column in self.fitted if not isinstance(column, LeftOut))

    @cached_property
    def columns(self) -> tuple[Name, ...]:
        """The names of the columns that are needed, in the order of the fit."""
        return tuple(column.name for column in self._used)

    @cached_property
    def _ignored(self) -> tuple[Name, ...]:
        return tuple(column.name for column in self.fitted if isinstance(column, LeftOut))

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The names of the d features, all different."""
        if self.spec is not None:
            return self.spec.features
        if self.components is not None:
            return tuple(f"component {j + 1}" for j in range(len(self.components.vectors)))
        return tuple(name for names in self._features_by_column.values() for name in names)

    @cached_property
    def _features_by_column(self) -> dict[Name, tuple[str, ...]]:
        """In the order of the features: numbers first, then levels."""
        ordered = sorted(self._used, key=lambda column: isinstance(column, Levels))
        own = [column.features(self._label(column.name)) for column in ordered]
        names = iter(unique(name for names in own for name in names))
        return {
            column.name: tuple(islice(names, len(part)))
            for column, part in zip(ordered, own, strict=True)
        }

    def _label(self, name: Name) -> str:
        return str(name) if self.named else f"x{name}"

    def transform(self, x: object) -> np.ndarray:
        """Return contexts (n, d), float64, of a table with the columns of the fit or a list of
        dicts, or (1, d) of one row: a dict, or a pandas Series with the columns as its index."""
        values = inputs.read(x, self.columns, self._ignored, self.named)
        if self.spec is not None:
            features = self.spec.encoded(self._used, values)
        else:
            features = self._encoded(values)
        self._check(features)
        return self.components.scores(features) if self.components is not None else features

    def _encoded(self, values: Mapping[Name, Any]) -> np.ndarray:
        """Return features (n, p) before components."""
        ordered = sorted(self._used, key=lambda column: isinstance(column, Levels))
        return np.concatenate([c.encoded(values[c.name]) for c in ordered], axis=1)

    def _check(self, features: np.ndarray) -> None:
        """Raise a ValueError for a feature that cannot be computed with."""
        if not (np.abs(features) <= LARGEST).all():
            row, j = np.argwhere(~(np.abs(features) <= LARGEST))[0]
            names = self.features if self.components is None else None
            at = f"feature {names[j]!r}" if names else f"feature {j}"
            raise ValueError(
                f"{at} must be finite and at most {LARGEST:g} in size; got {features[row, j]:g} in "
                f"row {row + 1}"
            )

    def summary(self) -> pd.DataFrame:
        """Return a row for each column of the fit: column, kind (number, date, levels, left out),
        features (their names, or the reason why it is left out)."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for column in self.fitted:
            kind = column.said if isinstance(column, Number) else column.kind
            if isinstance(column, LeftOut):
                said = column.why
            elif self.spec is not None:
                said = ", ".join(self.spec.features_of(column.name))
            else:
                said = ", ".join(self._features_by_column[column.name])
            rows.append({"column": self._label(column.name), "kind": kind, "features": said})
        if self.components is not None:
            k = len(self.components.vectors)
            said = f"component 1, …, component {k}" if k > 1 else "component 1"
            rows.append({"column": "(all used)", "kind": "principal components", "features": said})
        return pd.DataFrame(rows, columns=["column", "kind", "features"])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON holds; `from_dict` takes them back bit for
        bit."""
        from bayesbandit.tables.stored import stored

        return stored(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Encoder:
        """Return the encoder that `to_dict` describes; anything else is a ValueError, and runs no
        code."""
        from bayesbandit.tables.stored import restored

        return cls(*restored(plain))

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoder.from_dict, (self.to_dict(),)

    def __copy__(self) -> Encoder:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Encoder:
        return self  # nothing in it changes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Encoder):
            return NotImplemented
        return self is other or self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.columns, self.features))

    def __repr__(self) -> str:
        by = "" if self.spec is None else f"{self.spec.text!r}, "
        return f"Encoder({by}{len(self.columns)} columns → {len(self.features)} features)"


def contexts_of(x: object, encoder: Encoder | None, n_features: int) -> np.ndarray:
    """Return contexts (n, d), of a table or a row where there is an encoder, else of numbers."""
    return contexts(x if encoder is None else encoder.transform(x), n_features)


def numbers_only(x: object) -> Any:
    """Return contexts where there is no encoder: a table's columns would go by position unseen."""
    import sys

    pandas = sys.modules.get("pandas")
    if isinstance(x, Mapping | Table):
        kind = "dict" if isinstance(x, Mapping) else type(x).__name__
    elif pandas is not None and isinstance(x, pandas.Series) and x.index.dtype.kind not in "iu":
        kind = "Series with names"
    else:
        return x
    raise ValueError(
        f"contexts must be numbers: found a {kind}; make the bandit with "
        "encoder=bb.Encoder.fit(frame), or pass its values, which go by position"
    )


def fitted(
    frame: object,
    *,
    drop: Collection[Name] = (),
    keep: Collection[Name] = (),
    max_features: int = MAX_FEATURES,
) -> tuple[Encoder, np.ndarray, list[str]]:
    """Return an encoder, the features (n, d) of the table that it was fitted on, and what one
    should know of the fit (`remarks`). In one thread, so that every process gets the same bits; of
    principal components, `transform` gives the features up to rounding."""
    from threadpoolctl import threadpool_limits

    integer(max_features, "max_features", least=1)
    table, has_names = inputs.table(samples.of_dask(frame) if inputs.is_dask(frame) else frame)
    drop, keep = _chosen(drop, "drop", table), _chosen(keep, "keep", table)
    if both := drop & keep:
        raise ValueError(f"columns both to drop and to keep: {inputs.named(sorted(both, key=str))}")
    with threadpool_limits(limits=1):
        found: Recognised = recognise(table, drop, keep)
        columns, components, features = learn(table, found, max_features)
    return Encoder(columns, has_names, components), features, remarks(found, columns)


def _chosen(names: object, what: str, table: pd.DataFrame) -> set[Name]:
    if not isinstance(names, str | Integral | Iterable):
        raise TypeError(f"{what} must be columns' names, as [{table.columns[0]!r}]; got {names!r}")
    listed: list[Any] = [names] if isinstance(names, str | Integral) else list(names)
    if unknown := [n for n in listed if not _is_name(n) or n not in table.columns]:
        raise ValueError(
            f"{what}: there is no column {inputs.named(unknown)}; there are "
            f"{inputs.named(list(table.columns))}"
        )
    return set(listed)


def _is_name(name: object) -> bool:
    return isinstance(name, str | Integral) and not isinstance(name, bool)
