"""Decisions: the chosen arms, their propensities, and the moments behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from bayesbandit.bandit.observed import Observed, keys_of
from bayesbandit.checks import MAX_ABS_VALUE, MAX_TICK, Array, Name, arm_names, floats, one_of
from bayesbandit.forms import Numbers, Row, check, demand, fits
from bayesbandit.history import Layout
from bayesbandit.kernels.propensities import chances, put_own
from bayesbandit.kernels.row_layout import ARM, PROPENSITY, TABULATED, TAIL
from bayesbandit.many_arms import Comparison
from bayesbandit.predictions import JointRows, deviation
from bayesbandit.runtime.identifiers import BYTES, id_text, new_ids
from bayesbandit.runtime.shown import html_table

PROBABILITY_TOLERANCE = 1e-9  # of probabilities
PARTS_WITH_NAN = "mean", "sd"  # of an arm that was not available, or without a variance
BOUNDS_OF_PARTS = {  # the least and the largest number of each part of a decision in JSON
    "x": (-MAX_ABS_VALUE, MAX_ABS_VALUE),
    "mean": (-(MAX_ABS_VALUE**2), MAX_ABS_VALUE**2),
    "sd": (0.0, np.inf),
    "probabilities": (0.0, 1.0 + PROBABILITY_TOLERANCE),
    "propensity": (5e-324, 1.0 + PROBABILITY_TOLERANCE),
    "min_probability": (0.0, 1.0),
    "tick": (-MAX_TICK, 2.0 * MAX_TICK),
}
FORM = {
    "arms": list,
    "constant": bool,
    "features_of_arms": bool,
    "tick?": object,
    **dict.fromkeys(("id", "arm", *(name for name in BOUNDS_OF_PARTS if name != "tick")), object),
}

# what computes the probabilities of these arms, and the standard deviations of all
Lazy = tuple[Comparison | None, Array, JointRows | None]


class Decision:
    """The arm chosen for one context, or for each of n contexts, with the moments behind it.

    `Bandit.choose` and `Decision.from_dict` make it.

    One context: x (d,), arm (a name), propensity (a float), probabilities, mean and sd (K,).
    A batch: x (n, d), arm (n,), propensity (n,), probabilities, mean and sd (n, K). It has a
    length, and `decision[i]` or a slice is a decision too.

    Columns are in the order of `arms`. If arms have features, x has those of the chosen arm.
    Probabilities are those of the moment of decision, computed when first needed. An arm that was
    not available has mean −∞, sd 0 and probability 0.
    """

    __slots__ = ("ids", "layout", "lazy", "learned_by", "rows", "tick")

    def __init__(
        self,
        layout: Layout,
        rows: Array,
        lazy: Lazy | None = None,
        ids: Array | None = None,
        tick: Array | None = None,
    ) -> None:
        self.layout = layout
        self.rows = rows  # (width,) or (n, width): see kernels/row_layout.py
        self.lazy = lazy  # computes missing probabilities of these arms, and sds of all
        self.ids = ids  # texts (…,), or bytes (…, 16) of new ids; None: no id so far
        self.tick = tick  # of the bandit's clock (…,); None: the bandit does not forget
        self.learned_by: Observed | None = None  # of a bandit that has learned it without its id

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes a copy: it has the same id, so that both are learned once."""
        ids = self.identify()
        return _restored, (self.layout, self.rows, self.lazy, ids, self.tick)

    def settle(self, probabilities: bool = True, sds: bool = True) -> None:
        """Compute the probabilities that are still missing, and the standard deviations."""
        if self.lazy is None:
            return
        comparison, arms, prediction = self.lazy
        rounds = np.atleast_1d(self.records)
        if probabilities and comparison is not None:
            rounds["last"] = 0.0
            rounds["last"][:, arms] = comparison.probabilities()
            comparison = None
        if sds and prediction is not None:
            rounds["scale"] = np.where(rounds["mean"] > -np.inf, prediction.sd, 0.0)
            prediction = None
        missing = comparison is not None or prediction is not None
        self.lazy = (comparison, arms, prediction) if missing else None

    def fill_propensity(self) -> None:
        """Compute what the probability of the chosen arm takes, and of many arms no other."""
        if self.lazy is None:
            return
        comparison, arms, _ = self.lazy
        if comparison is None or not comparison.bounded:
            self.settle(sds=False)
            return
        rounds = np.atleast_1d(self.records)
        if np.isnan(rounds["propensity"]).any():
            rounds["propensity"] = comparison.propensities(np.searchsorted(arms, rounds["arm"]))

    def identify(self) -> Array:
        """Return the ids, texts (…,) or bytes (…, 16); make them if there are none."""
        if self.ids is None:
            n = len(self.rows) if self.rows.ndim > 1 else 1
            self.ids = new_ids(n).reshape(*self.rows.shape[:-1], BYTES)
            if self.learned_by is not None:
                self.learned_by.record(keys_of(self))
        return self.ids

    @property
    def id(self) -> str | Array:
        """A text that no other decision has, or an array (n,) of such texts.

        A log sets it; otherwise it is made when first read.
        """
        ids = self.identify()
        if ids.dtype != np.uint8:
            return str(ids) if ids.ndim == 0 else ids.copy()
        if self.rows.ndim == 1:
            return id_text(ids)
        return np.array([id_text(one) for one in ids])

    @property
    def records(self) -> Array:
        """The row or rows as records, () or (n,): see `Layout.records`."""
        return self.layout.records(self.rows)

    @property
    def arms(self) -> tuple[Name, ...]:
        """The arms' names, in the order of the columns of mean, sd and probabilities."""
        return self.layout.arms

    @property
    def x(self) -> Array:
        """The context(s), (d,) or (n, d)."""
        return self.rows[..., : self.layout.n_features].copy()

    @property
    def arm(self) -> Name | Array:
        """The name of the chosen arm, or an array (n,) of names, with their Python types."""
        if self.rows.ndim == 1:
            return self.layout.arms[int(self.rows[ARM - TAIL])]
        return self.layout.names[self.records["arm"].astype(np.int64)]

    @property
    def mean(self) -> Array:
        """Posterior means of the arms' mean rewards (…, K)."""
        return self.records["mean"].copy()

    @property
    def sd(self) -> Array:
        """Posterior standard deviations of the arms' mean rewards (…, K)."""
        self.settle(probabilities=False)
        rounds = self.records
        return deviation(rounds["rule"][..., None], rounds["scale"], rounds["last"])

    @property
    def propensity(self) -> float | Array:
        """The chosen arm's probability, a float or (n,)."""
        if self.lazy is not None:
            self.fill_propensity()
        rows = self.rows
        layout = self.layout
        if rows.ndim > 1:
            return layout.fill_propensities(rows).copy()
        p = rows[PROPENSITY - TAIL]
        if p != p:  # NaN: not computed so far
            return put_own(rows, layout.n_columns, len(layout.arms))
        return float(p)

    @property
    def probabilities(self) -> Array:
        """Each arm's probability (…, K)."""
        self.settle(sds=False)
        rows = self.rows.reshape(-1, self.layout.width)
        K = len(self.arms)
        p = chances(rows, 0, self.layout.n_columns, K, K)
        return p.reshape(*self.rows.shape[:-1], K)

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain values that JSON takes, for `from_dict` in any process.

        A mean is None where the arm was not available, a standard deviation where it is infinite.
        """
        mean = self.mean.astype(object)
        sd = self.sd.astype(object)
        mean[self.mean == -np.inf] = sd[np.isinf(self.sd)] = None
        of_contexts = {
            "id": self.id,
            "arm": self.arm,
            "x": self.x,
            "mean": mean,
            "sd": sd,
            "probabilities": self.probabilities,
            "propensity": self.propensity,
            "min_probability": self.layout.floors(self.rows),
            **({} if self.tick is None else {"tick": self.tick}),
        }
        return {
            "arms": list(self.arms),
            "constant": self.layout.n_columns > self.layout.n_features,
            "features_of_arms": self.layout.of_arms,
            **{name: np.asarray(values).tolist() for name, values in of_contexts.items()},
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the decision of `to_dict`, which the bandit may observe as it would have then.

        Raise ValueError where the values cannot be those of a decision.
        """
        check(values, FORM, "the decision")
        arms = arm_names(values["arms"])
        one = not isinstance(values["arm"], list)
        if one:
            several = values.keys() & {*BOUNDS_OF_PARTS, "arm", "id"}
            values = values | {k: [values[k]] for k in several}
        ids = values["id"]
        n = len(values["arm"])
        K = len(arms)
        demand(n > 0, "a decision must be about one context or more; this one has none")
        demand(
            fits(ids, Row(*(str,) * n)),
            f"id must be a list, with a text for each arm of the list; got {ids!r}",
        )
        taken = [arms.index(one_of(arm, "arm", arms)) for arm in values["arm"]]
        arrays = {name: floats(values[name], name) for name in BOUNDS_OF_PARTS if name in values}
        sizes = {"x": (n, None), **dict.fromkeys(("mean", "sd", "probabilities"), (n, K))}
        for name, array in arrays.items():
            size = sizes.get(name, (n,))
            form = Numbers(size, *BOUNDS_OF_PARTS[name], nan=name in PARTS_WITH_NAN)
            form.check(array, name)
        x, mean, sd, p = (arrays[name] for name in sizes)
        chosen = arrays["propensity"]
        floor = arrays["min_probability"]
        tick = arrays.get("tick")
        is_available = ~np.isnan(mean)
        sums = (np.abs(p.sum(axis=1) - 1.0) <= PROBABILITY_TOLERANCE * K).all()
        demand(sums and not p[~is_available].any(), f"probabilities must sum to 1; got {p}")
        given = np.abs(chosen - p[np.arange(n), taken]) <= PROBABILITY_TOLERANCE
        demand(given.all(), f"propensity must be the arm's probability; got {chosen}")
        least_p = p.min(axis=1, where=is_available, initial=1.0) + PROBABILITY_TOLERANCE
        demand((floor <= least_p).all(), f"min_probability is {floor}")
        layout = Layout(
            arms, x.shape[1], x.shape[1] + values["constant"], None, values["features_of_arms"]
        )
        rows = np.empty((n, layout.width))
        log = layout.records(rows)
        log["x"] = 1.0
        log["x"][:, : x.shape[1]] = x
        log["mean"] = np.where(is_available, mean, -np.inf)
        log["scale"] = sd
        log["last"] = p
        log["scale"][np.isnan(sd)] = np.inf
        log["arm"] = taken
        log["rule"] = TABULATED
        log["number"] = 0.0
        log["min_probability"] = floor
        log["propensity"] = chosen
        log["reward"] = log["weight"] = np.nan
        if one:
            return cls(layout, rows[0], None, np.array(ids[0]), None if tick is None else tick[0])
        return cls(layout, rows, None, np.array(ids), tick)

    def __len__(self) -> int:
        if self.rows.ndim == 1:
            raise TypeError("a decision about one context has no length")
        return len(self.rows)

    def __getitem__(self, which: int | slice | Array) -> Decision:
        if self.rows.ndim == 1:
            raise TypeError("a decision about one context cannot be indexed")
        self.settle()
        ids = np.asarray(self.identify()[which])
        tick = None if self.tick is None else np.asarray(self.tick[which])
        return Decision(self.layout, self.rows[which], ids=ids, tick=tick)

    def __iter__(self) -> Iterator[Decision]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        if self.rows.ndim == 1:
            return f"Decision(arm={self.arm!r}, propensity={self.propensity:.4g})"
        return f"Decision({len(self)} contexts, arms={list(self.arms)!r})"

    def _repr_html_(self) -> str:
        if self.rows.ndim == 1:
            columns = ["arm", "mean", "sd", "probability"]
            of_arms = np.column_stack([self.mean, self.sd, self.probabilities]).tolist()
            rows = [(arm, *of_arm) for arm, of_arm in zip(self.arms, of_arms, strict=True)]
            return html_table(f"Decision: {self.arm}", columns, rows)
        columns = ["context", "arm", "propensity"]
        arms = np.asarray(self.arm).tolist()
        propensities = np.asarray(self.propensity).tolist()
        chosen = list(zip(range(len(self)), arms, propensities, strict=True))
        return html_table(f"Decision: {len(self)} contexts", columns, chosen)


def _restored(
    layout: Layout,
    rows: Array,
    lazy: Lazy | None,
    ids: Array | None,
    tick: Array | None,
) -> Decision:
    """Return a copied decision, with a copy of rows that another process lends to read."""
    writeable = rows if rows.flags.writeable else np.array(rows)
    return Decision(layout, writeable, lazy, ids, tick)
