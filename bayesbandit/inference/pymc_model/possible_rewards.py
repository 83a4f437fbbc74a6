"""Rewards that no draw makes likely.

A reward that has likelihood 0 whatever the variables are (a count of −1, a level that there is not)
leaves no posterior. It is looked for by numbers: at the variables' initial point, and at draws of
the prior and of the posterior, some pulled towards that point, where nothing overflows. A row that
has a likelihood at none of them is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import toposort

from bayesbandit.declaring.observed import check_whole, made_whole
from bayesbandit.inference.base import COMPILE, NoElement
from bayesbandit.inference.graph_analysis.density import containers
from bayesbandit.inference.graph_analysis.operations import (
    elementwise_name,
    exponent,
    kind,
    reduced_by,
)
from bayesbandit.inference.pymc_model.log_density import LogDensity
from bayesbandit.inference.pymc_model.of_draws import Draws, OfDraws, Rows
from bayesbandit.inference.pymc_model.prior import SIZE, PriorDraws

if TYPE_CHECKING:
    import pymc as pm

FINITE = {"Add", "Sub", "Neg", "Mul", "Sqr", "Abs", "Identity", "Second", "Cast"}
EXAMPLES = np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])  # rewards that an error may name


class PossibleRewards:
    """The rewards that a model's likelihood allows.

    judged: the terms that a reward may make −∞ or NaN.
    """

    def __init__(self, model: pm.Model, log_density: LogDensity, prior: PriorDraws) -> None:
        self._log_density = log_density
        self._prior = prior
        inputs = log_density.density.inputs
        terms = log_density.likelihood
        self.judged = {k for k, graph in terms.items() if may_exclude(graph, inputs["reward"])}
        swap = {v: inputs[role] for role, v in containers(model).items()}
        with COMPILE:
            self._whole = [
                (name, clone_replace([made], swap, rebuild_strict=False)[0])
                for name, made in made_whole(model)
            ]

    @property
    def judges(self) -> bool:
        """Whether some rewards may be impossible: fractions of counts, or those of density 0."""
        return bool(self.judged or self._whole)

    def failure(self) -> str:
        """Return how the log density fails on other rows than those of the built model; "" if it
        does not."""
        return self._log_density.failure(self._prior.start)

    def prepare(self) -> None:
        """Compile what `check` needs."""
        if self.judged:
            _ = self._points
            self._log_density.prepare()

    def check(
        self, name: str, rows: Rows, draws: Sequence[Draws] = (), possible: bool = False
    ) -> None:
        """Raise ValueError for impossible rewards; `draws` are more points to try.

        name: the model's. The message counts rows from 0. possible: whether some draw is known to
        make the rows likely: only rewards that are not whole are then refused.
        """
        allowed = self._are_whole(name, rows)
        if not possible and allowed.all() and self.judged:
            allowed = self._are_possible(rows, draws)
        if not allowed.all():
            i = int(allowed.argmin())
            row = {role: v[[i]] for role, v in rows.items()}
            examples = [r for r in EXAMPLES.tolist() if self._allows(row, r, draws)]
            if not examples:
                self._log_density.of_terms(self._prior.start, row)  # raises NoElement
            raise impossible_reward(name, rows, i, examples)

    def lost(self, rows: Rows) -> np.ndarray:
        """Return the rows (m,) whose log likelihood is −∞ or NaN at the variables' initial
        point."""
        every = self._log_density.likelihood
        return np.flatnonzero(~self._are_likely(every, self._prior.start, rows))

    def _are_whole(self, name: str, rows: Rows) -> np.ndarray:
        """Return which rewards (n,) PyMC may cast to whole numbers, since these are the same."""
        reward = rows["reward"]
        inputs = self._log_density.density.inputs
        whole = np.ones(len(reward), dtype=bool)
        for observed, made in self._whole:
            if made is inputs["reward"]:
                whole &= reward == np.floor(reward)
            else:
                [[values]] = OfDraws([made], {}, inputs)({}, rows)
                check_whole(f"{name}: {observed!r}", reward, values)
        return whole

    def _allows(self, row: Rows, reward: float, draws: Sequence[Draws]) -> bool:
        """Return whether another reward of a row is possible."""
        other = {**row, "reward": np.array([reward])}
        try:
            return bool(self._are_whole("", other)[0] and self._are_possible(other, draws)[0])
        except ValueError:
            return False

    def _are_possible(self, rows: Rows, draws: Sequence[Draws]) -> np.ndarray:
        """Return which rows (n,) have a likelihood at one of the points that are tried."""
        possible = np.zeros(len(rows["reward"]), dtype=bool)
        for points in self._tried(draws):
            if (at := np.flatnonzero(~possible)).size:
                part = {role: v[at] for role, v in rows.items()}
                possible[at] = self._are_likely(self.judged, points, part)
        return possible

    def _are_likely(self, terms: Collection[str], points: Draws, rows: Rows) -> np.ndarray:
        """Return which rows (n,) have a likelihood at some point by these terms.

        Rows are tried one by one where a term that is of all rows together is −∞, and where an
        index is beyond the model's: a row alone with such an index has no likelihood.
        """
        n = len(rows["reward"])
        together = False
        likely = np.ones((len(next(iter(points.values()))), n), dtype=bool)
        try:
            values = self._log_density.of_terms(points, rows)
        except NoElement:
            values = {}
            together = True
            likely[:] = False
        for name, value in values.items():
            if name in terms:
                finite = value > -np.inf  # neither −∞ nor NaN
                by_row = value.ndim == 2 and value.shape[1] == n
                together |= not by_row
                likely &= finite if by_row else finite.reshape(len(finite), -1).all(1)[:, None]
        found = likely.any(axis=0)
        if not together or n == 1 or found.all():
            return found
        each = ({role: v[[i]] for role, v in rows.items()} for i in range(n))
        return np.concatenate([self._are_likely(terms, points, row) for row in each])

    def _tried(self, draws: Sequence[Draws]) -> Iterator[Draws]:
        """Yield the initial point, which is mostly enough, and then all other points."""
        yield self._prior.start
        yield self._points
        for more in draws:
            if more:
                some = np.linspace(0, len(next(iter(more.values()))) - 1, SIZE).astype(int)
                yield {k: v[some] for k, v in more.items()}

    @cached_property
    def _points(self) -> Draws:
        return self._prior.points()


def may_exclude(graph: Variable, reward: Variable) -> bool:
    """Return whether a log density may be −∞ at some reward: whether the reward enters anything but
    sums and products."""
    entered = {reward}
    for node in toposort([graph]):
        by_reward = [v in entered for v in node.inputs]
        if any(by_reward) and kind(node) != "shape":
            if not _stays_finite(node, by_reward):
                return True
            entered.update(node.outputs)
    return False


def _stays_finite(node: Apply, by_reward: Sequence[bool]) -> bool:
    """Return whether an operation makes finite numbers of finite ones that a reward enters."""
    if kind(node) != "elementwise":
        added = kind(node) == "reduction" and reduced_by(node) == "Add"
        return added or kind(node) in ("move", "product")
    name = elementwise_name(node.outputs[0])
    if name == "Switch":
        return not by_reward[0]
    if name == "Pow":
        return not by_reward[1] and (exponent(node) or -1.0) > 0.0
    return name in FINITE or (name == "TrueDiv" and not by_reward[1])


def impossible_reward(name: str, rows: Rows, i: int, allowed: Sequence[float]) -> ValueError:
    """Return the error that row i's reward has no likelihood. allowed: some rewards that have."""
    listed = ", ".join(f"{r:g}" for r in allowed)
    return ValueError(
        f"{name} gives a reward of {rows['reward'][i]:g} the likelihood 0, whatever values of its "
        f"variables were tried: row {i}, the context "
        f"{np.array2string(rows['x'][i], threshold=6)}"
        + (f"; it allows, for example, {listed}" if listed else "")
    )
