"""Comparison of several policies by one log: a table, paired differences, and the best policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri

from bayesbandit.checks import Array, Name, number, same_rows, without_none
from bayesbandit.ope.estimate import Estimate, Rest, estimate
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.question import Bounds
from bayesbandit.ope.sequences import always_valid_p
from bayesbandit.ope.targets import Unsupported, target_of
from bayesbandit.ope.weights import DEFAULT_WEIGHTS
from bayesbandit.predictions import symmetric_root
from bayesbandit.runtime.shown import html_table

MAX_T_DRAWS = 100_000  # of max |t|
MAX_SUBGROUPS = 20  # the largest number of subgroups


@dataclass(frozen=True)
class Best:
    """The best policy, by tests that hold at all rounds simultaneously.

    policy: its name if p < α/(K − 1) against every other policy, else None. p: a table of p-values
    of "the row's value is at most the column's". The value of the logged policy, which changes, is
    its average so far.
    """

    policy: Name | None
    p: pd.DataFrame
    alpha: float


class Evaluation:
    """The values of several policies by one log; made by `evaluate`.

    estimates: by policy; None if the log does not support it, and `table` says why.
    """

    def __init__(self, data: Log, policies: Mapping[Name, Any], settings: dict[str, Any]) -> None:
        self.data = data
        self.policies = dict(policies)
        self.settings = settings
        self.level = settings["level"]
        # a bandit may learn before it is asked for a contrast: its probabilities are those of now
        self._targets = {name: _now(data, target) for name, target in self.policies.items()}
        questions = {name: (target, settings) for name, target in self._targets.items()}
        self.estimates, self.unsupported = _judged(data, questions)

    def __repr__(self) -> str:
        shown = self.table[["estimate", "low", "high", "ess", "n", "refused"]].to_string()
        return f"Evaluation of {len(self.policies)} policies by {self.data!r}\n{shown}"

    def _repr_html_(self) -> str:
        table = self.table.drop(columns=["largest_weight"])
        rows = table.reset_index().itertuples(index=False)
        return html_table("Evaluation", ("policy", *table.columns), rows)

    @cached_property
    def table(self) -> pd.DataFrame:
        """A table of the estimates, a row for each policy.

        Columns: estimate, se, low, high, ess, expected_ess, largest_weight, n, and refused: why
        there is no interval, or "".
        """
        return _table(self.estimates, self.unsupported).rename_axis("policy")

    @property
    def warnings(self) -> dict[Name, tuple[str, ...]]:
        """Warnings by policy."""
        return {
            name: estimate.warnings
            for name, estimate in self.estimates.items()
            if estimate is not None
        }

    def contrast(self, one: Name, other: Name) -> Estimate:
        """Return the value of `one` minus that of `other`, from paired scores."""
        pair = self._target(one), self._target(other)
        return estimate(self.data, pair, **self.settings)

    def contrasts(self, against: Name | None = None) -> pd.DataFrame:
        """Return a table of differences: all pairs of policies, or each policy `against` one.

        Columns: difference, se, low, high and p; and by max-t over all rows, simultaneous low_all
        and high_all, and p_adjusted. Policies that the log does not support are left out.
        """
        names = [name for name in self.policies if name not in self.unsupported]
        if against is None:
            pairs = list(combinations(names, 2))
        else:
            self._target(against)
            if against in self.unsupported:
                raise Unsupported(f"{against!r}: {self.unsupported[against]}")
            pairs = [(name, against) for name in names if name != against]
        contrasts = {pair: replace(self.contrast(*pair), m=None, sums=None) for pair in pairs}
        ends = max_t(contrasts, self.level)
        rows = [
            (*pair, e.value, e.se, e.low, e.high, e.p, *ends[pair], e.refused)
            for pair, e in contrasts.items()
        ]
        names = ["one", "other", "difference", "se", "low", "high", "p"]
        return pd.DataFrame(rows, columns=[*names, "low_all", "high_all", "p_adjusted", "refused"])

    def simultaneous(self) -> pd.DataFrame:
        """Return simultaneous intervals (max-t): estimate, low and high, by policy."""
        estimates = without_none(self.estimates)
        ends = max_t(estimates, self.level)
        rows = {name: (e.value, *ends[name][:2]) for name, e in estimates.items()}
        return pd.DataFrame.from_dict(rows, orient="index", columns=["estimate", "low", "high"])

    @cached_property
    def sequence(self) -> pd.DataFrame:
        """A table with a row for each policy and round: policy, round, low, high.

        Raise ValueError unless `evaluate` was called with `sequence`.
        """
        if self.settings["sequence"] is None:
            raise ValueError('evaluate(…, sequence="asymptotic" or (lo, hi)) gives a sequence')
        parts = [
            pd.DataFrame({"policy": name, "round": s.rounds, "low": s.low, "high": s.high})
            for name, e in self.estimates.items()
            if e is not None and (s := e.sequence) is not None
        ]
        empty = pd.DataFrame(columns=["policy", "round", "low", "high"])
        return pd.concat(parts, ignore_index=True) if parts else empty

    def best(self, alpha: float = 0.05) -> Best:
        """Return the policy that is better than every other one, if there is enough evidence.

        You may ask after every round: the probability of an error stays below `alpha`. Raise
        ValueError for "snips" and contextual weights, whose scores use later rounds.
        """
        number(alpha, "alpha", above=0, below=1)
        names = list(self.policies)
        p = pd.DataFrame(np.nan, index=names, columns=names)
        for a, b in combinations(names, 2):
            if a in self.unsupported or b in self.unsupported:
                continue
            contrast = self.contrast(a, b)
            if contrast.sums is None:
                raise ValueError("best takes neither estimator='snips' nor weights='contextual'")
            if not contrast.refused:
                planned = self.settings["planned"]
                moves = self.policies[a] is None or self.policies[b] is None
                p.loc[a, b], p.loc[b, a] = always_valid_p(contrast.sums, alpha, planned, moves)
        beaten = (p < alpha / max(len(names) - 1, 1)).sum(axis=1)  # NaN: no evidence
        wins = [a for a in names if len(names) > 1 and beaten[a] == len(names) - 1]
        return Best(wins[0] if wins else None, p, alpha)

    def subgroups(self, column: Any) -> pd.DataFrame:
        """Return a table with a row for each policy and subgroup.

        column: a feature's name, or labels (n,). low_all and high_all hold simultaneously for all
        policies and subgroups. Of an evaluation of a `subgroup`, they are its parts.
        """
        labels = self._labels(column)
        subgroup = self.settings.get("subgroup")
        on = np.ones(len(labels), dtype=bool) if subgroup is None else np.asarray(subgroup)
        values = sorted(set(labels[on].tolist()), key=lambda v: (isinstance(v, str), v))
        if len(values) > MAX_SUBGROUPS:
            raise ValueError(
                f"subgroups must be at most {MAX_SUBGROUPS}; got {len(values)} of {column!r}"
            )
        settings = {**self.settings, "sequence": None}
        questions = {
            (name, value): (self._targets[name], {**settings, "subgroup": on & (labels == value)})
            for name, value in product(self.policies, values)
        }
        estimates, unsupported = _judged(self.data, questions)
        table = _table(estimates, unsupported).rename_axis(["policy", "subgroup"])
        ends = max_t(without_none(estimates), self.level)
        lows, highs = ({key: end[i] for key, end in ends.items()} for i in (0, 1))
        return table.assign(low_all=table.index.map(lows), high_all=table.index.map(highs))

    def _target(self, name: Name) -> Any:
        if name not in self.policies:
            raise ValueError(f"a policy must be among {list(self.policies)!r}; got {name!r}")
        return self._targets[name]

    def _labels(self, column: str | ArrayLike) -> Array:
        if isinstance(column, str):
            if column not in self.data.features:
                raise ValueError(
                    f"a column must be among {list(self.data.features)!r}; got {column!r}"
                )
            return self.data.x[:, self.data.features.index(column)]
        same_rows(self.data.index, labels=column)
        labels = np.asarray(column)
        if labels.shape != (len(self.data),):
            raise ValueError(
                f"labels must be one for each of {len(self.data)} rounds; got {labels.shape}"
            )
        if (missing := int(pd.isna(labels).sum())) > 0:
            raise ValueError(f"labels must not be missing; {missing} of {len(labels)} are")
        return pd.Series(labels).to_numpy(object)  # NumPy would make integers of nanoseconds


def evaluate(
    data: Log,
    policies: Mapping[Name, Any] | Iterable[Any],
    estimator: str = "dr",
    weights: str = DEFAULT_WEIGHTS,
    *,
    mean: Any = "chosen",
    level: float = 0.95,
    sequence: str | Bounds | None = None,
    planned: int | None = None,
    **settings: Unpack[Rest],
) -> Evaluation:
    """Estimate the values of several policies by one log.

    policies: targets by name; or a list of arms' names and None, the logged policy. All other
    settings are those of `estimate`.
    """
    if not isinstance(data, Log):
        raise TypeError(f"evaluate takes a bb.ope.Log; got {data!r}")
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        raise TypeError(
            'policies must be a mapping, as {"red": "red", "logged": None}, or a list of arms; got '
            f"{policies!r}"
        )
    if not isinstance(policies, Mapping):
        named = [("logged" if target is None else target, target) for target in policies]
        names = [name for name, _ in named]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"policies must have different names; got {twice[0]!r} more than once")
        policies = dict(named)
    if not policies:
        raise ValueError("evaluate needs a policy; got none")
    if pairs := [name for name, target in policies.items() if isinstance(target, tuple)]:
        raise ValueError(
            f"policy {pairs[0]!r} is a pair, as `estimate` takes it: name its two policies here, "
            "and ask for their difference by result.contrast(name, other)"
        )
    all_settings = {
        "estimator": estimator, "weights": weights, "mean": mean, "level": level,
        "sequence": sequence, "planned": planned, **settings,
    }  # fmt: skip
    return Evaluation(data, policies, all_settings)


def max_t[Key](
    estimates: Mapping[Key, Estimate], level: float
) -> dict[Key, tuple[float, float, float]]:
    """Return low, high and adjusted p of each estimate: simultaneous intervals.

    The studentised estimates are about N(0, R), where R is the correlation of h(Γ − v)/Σh. The
    interval is v ± c se with P(max |Z| ≤ c) = level, from 100,000 draws of Z. NaN if an interval is
    refused.
    """
    ends = {key: (e.low, e.high, e.p) for key, e in estimates.items()}
    good = {key: e for key, e in estimates.items() if not e.refused and e.se > 0}
    if not good:
        return ends
    u = np.array([e.h * (e.scores - e.value) for e in good.values()])
    u /= np.sqrt((u**2).sum(axis=1, keepdims=True))
    root = symmetric_root(u @ u.T)
    Z = np.random.default_rng(0).normal(size=(MAX_T_DRAWS, len(good)))
    most = np.abs(Z @ root.T).max(axis=1)
    c = max(float(np.quantile(most, level)), float(ndtri((1 + level) / 2)))
    for key, e in good.items():
        beyond = (int((most >= e.z).sum()) + 1) / (MAX_T_DRAWS + 1)
        p = max(min(beyond, len(good) * e.p), e.p)  # Bonferroni if draws cannot tell
        half = c * e.se
        ends[key] = e.value - half, e.value + half, p
    return ends


def _now(data: Log, policy: Any) -> Any:
    """Return a policy as a target; one that the log does not support as it is."""
    try:
        return target_of(data, policy)
    except Unsupported:
        return policy  # `estimate` says why not


def _judged[Key](
    data: Log, questions: Mapping[Key, tuple[Any, dict[str, Any]]]
) -> tuple[dict[Key, Estimate | None], dict[Key, str]]:
    """Return the estimate of each target with its settings, or why there is none."""
    estimates = dict[Key, Estimate | None]()
    unsupported = dict[Key, str]()
    for key, (target, settings) in questions.items():
        try:
            estimates[key] = estimate(data, target, **settings)
        except Unsupported as error:
            estimates[key] = None
            unsupported[key] = str(error)
    return estimates, unsupported


def _table(
    estimates: Mapping[Any, Estimate | None], unsupported: Mapping[Any, str]
) -> pd.DataFrame:
    """Return the table of `Evaluation` for some estimates."""
    columns = ["estimate", "se", "low", "high", "ess", "expected_ess", "largest_weight", "n"]
    rows = [
        (np.nan,) * 7 + (0, unsupported[name])
        if e is None
        else (e.value, e.se, e.low, e.high, e.ess, e.expected_ess, e.largest_weight, e.n, e.refused)
        for name, e in estimates.items()
    ]
    return pd.DataFrame(rows, columns=[*columns, "refused"], index=pd.Index(list(estimates)))
