"""Rewards that no draw makes likely.

A reward that has likelihood 0 whatever the variables are (a count of −1, a level that there is not)
leaves no posterior. A row is refused if its log density is −∞ at the variables' initial point, at
draws of the prior, and at those of the posterior. Some draws are pulled towards the initial point,
where nothing overflows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from pytensor.graph.replace import clone_replace

from bayesbandit.checks import Array
from bayesbandit.declaring.observed import check_whole, made_whole
from bayesbandit.forms import picked
from bayesbandit.inference.base import COMPILE, NoElement
from bayesbandit.inference.draws import Draws, Rows
from bayesbandit.inference.graph_analysis.density import containers
from bayesbandit.inference.pymc_model.log_density import LogDensity
from bayesbandit.inference.pymc_model.of_draws import OfDraws
from bayesbandit.inference.pymc_model.prior import PRIOR_DRAWS, PriorDraws

if TYPE_CHECKING:
    import pymc as pm

EXAMPLE_REWARDS = np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])  # rewards that an error may name


class PossibleRewards:
    """The rewards that a model's likelihood allows.

    of_whole: whether PyMC casts rewards to whole numbers.
    """

    def __init__(self, model: pm.Model, log_density: LogDensity, prior: PriorDraws) -> None:
        self._log_density = log_density
        self._prior = prior
        inputs = log_density.density.inputs
        swap = {v: inputs[role] for role, v in containers(model).items()}
        with COMPILE:
            self._whole = [
                (name, clone_replace([cast], swap, rebuild_strict=False)[0])
                for name, cast in made_whole(model)
            ]
        self.of_whole = bool(self._whole)

    def prepare(self) -> None:
        """Compile what `check` needs."""
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
        if not possible and allowed.all():
            allowed = self._are_possible(rows, draws)
        if not allowed.all():
            i = int(allowed.argmin())
            row = picked(rows, [i])
            examples = [r for r in EXAMPLE_REWARDS.tolist() if self._allows(row, r, draws)]
            if not examples:
                self._log_density.of_terms(self._prior.start, row)  # raises NoElement
            raise impossible_reward(name, rows, i, examples)

    def lost(self, rows: Rows) -> Array:
        """Return the rows (m,) whose log likelihood is −∞ or NaN at the variables' initial
        point."""
        return np.flatnonzero(~self._are_likely(self._prior.start, rows))

    def _are_whole(self, name: str, rows: Rows) -> Array:
        """Return which rewards (n,) PyMC may cast to whole numbers, since these are the same."""
        reward = rows["reward"]
        inputs = self._log_density.density.inputs
        are_whole = np.ones(len(reward), dtype=bool)
        for observed, cast in self._whole:
            if cast is inputs["reward"]:
                are_whole &= reward == np.floor(reward)
            else:
                [[values]] = OfDraws([cast], {}, inputs)({}, rows)
                check_whole(f"{name}: {observed!r}", reward, values)
        return are_whole

    def _allows(self, row: Rows, reward: float, draws: Sequence[Draws]) -> bool:
        """Return whether another reward of a row is possible."""
        other = {**row, "reward": np.array([reward])}
        try:
            return bool(self._are_whole("", other)[0] and self._are_possible(other, draws)[0])
        except ValueError:
            return False

    def _are_possible(self, rows: Rows, draws: Sequence[Draws]) -> Array:
        """Return which rows (n,) have a likelihood at one of the points that are tried."""
        # a row is possible if one point gives it a likelihood: later points are asked about the
        # rest alone
        possible = np.zeros(len(rows["reward"]), dtype=bool)
        for points in self._tried(draws):
            if (at := np.flatnonzero(~possible)).size:
                part = picked(rows, at)
                possible[at] = self._are_likely(points, part)
        return possible

    def _are_likely(self, points: Draws, rows: Rows) -> Array:
        """Return which rows (n,) have a likelihood at some point.

        Each row is tried alone where a term is of all rows together, and where an index is beyond
        the model's: a row alone with such an index has no likelihood. Rows that depend on each
        other are left to the engine.
        """
        n = len(rows["reward"])
        try:
            terms = self._log_density.of_terms(points, rows).values()
        except NoElement:
            finite = [np.zeros((1, 1), dtype=bool)]
        else:
            finite = [value > -np.inf for value in terms]  # neither −∞ nor NaN
        if all(each.all() for each in finite):
            return np.ones(n, dtype=bool)
        if n > 1 and any(each.shape[1:2] != (n,) for each in finite):
            if self._log_density.refused:
                return np.ones(n, dtype=bool)  # no row has a likelihood of its own
            single_rows = (picked(rows, [i]) for i in range(n))
            return np.concatenate([self._are_likely(points, row) for row in single_rows])
        likely = np.ones((1, n), dtype=bool)
        for each in finite:
            likely = likely & each.reshape(len(each), n, -1).all(axis=2)
        return np.asarray(likely.any(axis=0))

    def _tried(self, draws: Sequence[Draws]) -> Iterator[Draws]:
        """Yield the initial point, which is mostly enough, and then all other points."""
        yield self._prior.start
        yield self._points
        for more in draws:
            if more:
                chosen = np.linspace(0, len(next(iter(more.values()))) - 1, PRIOR_DRAWS).astype(int)
                yield picked(more, chosen)

    @cached_property
    def _points(self) -> Draws:
        return self._prior.points()


def impossible_reward(name: str, rows: Rows, i: int, allowed: Sequence[float]) -> ValueError:
    """Return the error that row i's reward has no likelihood. allowed: some rewards that have."""
    listed = ", ".join(f"{r:g}" for r in allowed)
    return ValueError(
        f"{name} gives a reward of {rows['reward'][i]:g} the likelihood 0, whatever values of its "
        f"variables were tried: row {i}, the context "
        f"{np.array2string(rows['x'][i], threshold=6)}"
        + (f"; it allows, for example, {listed}" if listed else "")
    )
