"""Encoders, which turn tables of mixed columns into contexts as learned from a first table."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import (
    MAX_ABS_VALUE,
    PACKAGE_FOLDER,
    Array,
    Name,
    Table,
    contexts,
    integer,
    one_of,
)
from bayesbandit.tables import fitting, inputs
from bayesbandit.tables.columns import Column, LeftOut, Levels, Separate, Used, codes_of, unique
from bayesbandit.tables.roles import names_in
from bayesbandit.tables.samples import sample

if TYPE_CHECKING:
    import pandas as pd

    from bayesbandit.tables.formula import Formula

MAX_FEATURES = 100
MIN_ROWS_TO_WARN = 20  # all of which have new levels
CONSTANT = "constant"  # the name of its feature


@dataclass(frozen=True, eq=False)
class Encoder:
    """An encoder that turns rows of a table into contexts. It never changes after its fit.

    Make one by `Encoder.fit` or `Encoder.formula`.

    fitted: the columns of the fit, in order, with those that are left out. spec: the formula, if
    there is one. constant: whether the first feature is 1 in every row.
    """

    fitted: tuple[Column, ...]
    spec: Formula | None = None
    constant: bool = False

    @classmethod
    def fit(
        cls,
        frame: object,
        *,
        drop: Collection[Name] = (),
        keep: Collection[Name] = (),
        max_features: int = MAX_FEATURES,
        constant: bool = False,
    ) -> Encoder:
        """Return an encoder that is fitted to a table (n, c).

        frame: a pandas or Polars table, or another that narwhals reads. Of a dask.dataframe the fit
        uses some 100,000 rows, drawn at random, or all rows if there are fewer. drop, keep: names
        of columns to leave out, and of columns to use although a rule below leaves them out.
        max_features: the largest number of features beside the constant; more raise ValueError.
        constant: whether the first feature, "constant", is 1 in every row. A model needs it that
        has no constant of its own: the toolkit's models have one.

        The type of a column decides what becomes of it. No text is read as a number or a date.

        - Numbers are standardised: a missing value becomes the median, then the mean is 0 and the
          standard deviation 1. A number beyond ±1e100 or an infinite one raises ValueError.
        - Categories, booleans and text give a feature of 0 and 1 for each level. A missing value is
          a level too. Levels that occur once are pooled. If a column would have more than 20
          features, its rarest levels are pooled as well. Of two levels only the second gets a
          feature.
        - Columns that never vary, or that have no value, are left out.
        - Other columns are left out with a warning, and `keep` uses them: text with more than 20
          different values; dates, which become days since the first one; identifiers. An
          identifier is a column of text or whole numbers under a name that ends in id, such as
          customer_id, userId or uuid, or under the name "Unnamed: 0", which pandas gives to a
          written index; or at least 100 integers that all differ and leave out less than a
          twentieth of their range.
        - Text and categories whose values all differ are left out with a warning, and cannot be
          kept.

        Later, in `transform`: a missing number or date becomes the median of the fit. A level that
        the fit did not see counts as a pooled level. If no level was pooled, all features of its
        column are 0; of a pair of levels, it counts as the first. The same holds for a missing
        value if the fit saw none. A warning says if no row of a table has a level of the fit, as of
        another spelling. Levels are compared by their texts; whole numbers of any type have one
        text, so that 1, 1.0 and "1" are equal. An infinite number raises ValueError, and so does a
        new level beside True and False. Columns are found by name, in any order. A missing or
        unknown column raises ValueError; a column that the fit left out is ignored.
        """
        one_of(constant, "constant", (True, False))
        encoder, _, notes = fitted(frame, drop=drop, keep=keep, max_features=max_features)
        fitting.warn_of(notes)
        return replace(encoder, constant=constant)

    @classmethod
    def formula(cls, formula: str, frame: object) -> Encoder:
        """Return an encoder for the terms of a formula, such as "~ age * country + bs(income,
        df=4)".

        frame: the table to which it is fitted.

        - The operators are those of formulaic: + - : * / ** ( ). A factor is a column, arithmetic
          in I(…) or {…}, or a function: bs, cr, cs, cc and poly of degree and knots, center, scale,
          log, exp, sqrt, abs and others. Names with blanks stand in backticks. All else is refused;
          no text is run. A formula has at most 10,000 characters, and there are at
          most 5,000 features.
        - Knots, centres and levels are those of the fit. Outside the range of the fit, a spline
          continues as at the edge of the range.
        - Features are scaled only if the formula says so.
        - There is a constant feature, the first one, only if the formula names it: "~ 1 + age". The
          toolkit's models have a constant of their own.
        - The first level has no feature, unless the formula begins with 0 +. Levels are pooled as
          in `fit`. A new level counts as a pooled level; if there is none, all its features are 0.
        - Dates are numbers of days since the first date of the fit.
        - A missing value raises an error that names its column, in the fit and in `transform`.
          Columns that the formula does not name are ignored.
        """
        from bayesbandit.tables.formula import learned

        table = inputs.table(frame)
        columns, spec = learned(formula, table)
        encoder = cls(columns, spec, spec.constant)
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
    def texts(self) -> list[str]:
        """The columns whose levels a CSV file must not turn into numbers, truth values or dates."""
        levels = [column for column in self._used if isinstance(column, Levels)]
        return [str(column.name) for column in levels if column.are_texts]

    @cached_property
    def left(self) -> dict[Name, str]:
        """The columns of the fit that are not needed, with the reasons."""
        return {column.name: column.why for column in self.fitted if isinstance(column, LeftOut)}

    @cached_property
    def design(self) -> Separate | Formula:
        """How features follow from the codes of columns."""
        return self.spec or Separate(self._used)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The names of the d features, all different."""
        names = self.design.features
        return (unique([*names, CONSTANT])[-1], *names) if self.constant else names

    def transform(self, x: object) -> Array:
        """Return contexts (n, d), float64, or (1, d) for one row.

        x: a table with the columns of the fit, or a list of dicts. One row is a dict, or a pandas
        Series whose index has the columns' names.
        """
        table = inputs.read(x, self.columns, self.left)
        codes = codes_of(self._used, table)
        if len(codes) >= MIN_ROWS_TO_WARN:
            self._warn_of_new_levels(table, codes)
        features = self.design.encoded(codes)
        if self.constant:
            features = np.column_stack([np.ones(len(features)), features])
        if not (np.abs(features) <= MAX_ABS_VALUE).all():
            row, j = np.argwhere(~(np.abs(features) <= MAX_ABS_VALUE))[0]
            raise ValueError(
                f"feature {self.features[j]!r} must be finite and at most {MAX_ABS_VALUE:g} in "
                f"size; got {features[row, j]:g} in row {row}"
            )
        return features

    def _warn_of_new_levels(self, table: Any, codes: Array) -> None:
        """Warn of columns in which no row has a level of the fit."""
        for column, own in zip(self._used, codes.T, strict=True):
            if isinstance(column, Levels) and (own == column.unseen).all():
                first = table[0] if isinstance(table, list) else table.iloc[0]
                warnings.warn(
                    f"column {column.name!r}: none of {len(own)} rows has a level of the fit, "
                    f"{inputs.named(column.levels)}; got {first[column.name]!r} and others, which "
                    "all count as new levels",
                    skip_file_prefixes=PACKAGE_FOLDER,
                )

    def summary(self) -> pd.DataFrame:
        """Return a table with a row for each column of the fit.

        Its columns are `column`, `kind` (number, date, levels or left out) and `features`: the
        names of the features, or the reason why the column is left out.
        """
        import pandas as pd

        rows: list[tuple[str, str, str]] = []
        pairs = [*zip(self.design.features, self.design.uses, strict=True)]
        for column in self.fitted:
            features = ", ".join(feature for feature, used in pairs if column.name in used)
            outcome = column.why if isinstance(column, LeftOut) else features
            rows.append((str(column.name), column.kind, outcome))
        if self.constant:
            rows.append(("(none)", "constant", self.features[0]))
        return pd.DataFrame(rows, columns=["column", "kind", "features"])

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain values that JSON can hold, for `from_dict`."""
        from bayesbandit.tables.stored import stored

        return stored(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Encoder:
        """Return the encoder that `to_dict` describes, equal to the bit.

        Anything else raises ValueError. No code runs.
        """
        from bayesbandit.tables.stored import restored

        return cls(*restored(plain))

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoder.from_dict, (self.to_dict(),)

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


def contexts_of(x: object, encoder: Encoder | None, n_features: int) -> Array:
    """Return contexts (n, d): numbers as they are, or a table or row that an encoder encodes."""
    return contexts(x if encoder is None else encoder.transform(x), n_features)


def numbers_only(x: object) -> Any:
    """Return contexts of a bandit without an encoder; raise ValueError for a table or named values.

    Without an encoder columns would silently go by position.
    """
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
) -> tuple[Encoder, Array, list[str]]:
    """Return an encoder, the features (n, d) of its table, and sentences about the fit."""
    integer(max_features, "max_features", least=1)
    table = inputs.table(sample(frame) if inputs.is_dask(frame) else frame)
    dropped = _chosen(drop, "drop", table)
    to_keep = _chosen(keep, "keep", table)
    if both := dropped & to_keep:
        raise ValueError(f"columns both to drop and to keep: {inputs.named(sorted(both, key=str))}")
    columns = fitting.fit(table, dropped, to_keep)
    encoder = Encoder(tuple(columns))
    if not encoder.columns:
        why = "; ".join(f"{name!r}: {reason}" for name, reason in encoder.left.items())
        raise fitting.NoFeatures(f"no column tells the rows apart ({why})")
    if len(encoder.features) > max_features:
        raise ValueError(
            f"the table gives {len(encoder.features):,} features, over max_features={max_features}:"
            " drop columns, or allow more by max_features= of Encoder.fit or environments.from_csv"
        )
    features = encoder.transform(table)
    return encoder, features, fitting.remarks(columns)


def _chosen(names: object, what: str, table: pd.DataFrame) -> set[Name]:
    columns = table.columns.tolist()
    listed = names_in(names, what)
    if unknown := [name for name in listed if not inputs.is_name(name) or name not in columns]:
        raise ValueError(
            f"{what}: there is no column {inputs.named(unknown)}; there are {inputs.named(columns)}"
        )
    return set(listed)
