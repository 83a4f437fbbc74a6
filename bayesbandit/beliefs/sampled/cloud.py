"""Clouds of weighted draws: what a bandit knows of one posterior, and how files hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.beliefs.sampled.refits import Refit
from bayesbandit.checks import Array
from bayesbandit.forms import Form, Numbers, Row, State, Whole, unprefixed
from bayesbandit.inference.draws import Draws

if TYPE_CHECKING:
    from bayesbandit.beliefs.sampled.belief import SampledBelief

Shapes = Mapping[str, tuple[int | None, ...]]  # by name; None stands for the number of rows


@dataclass(frozen=True, eq=False)
class Cloud:
    """Draws of one posterior with their weights, and the state of their sampler.

    values: the draws (S, *shape) of the free variables by name; {} before the posterior is proper.
    state: where the sampler may go on. fitted: the number of rounds from which the draws were
    computed (−1: none). seen: the number of rounds that the draws and their weights know. since:
    how many decisions the bandit had made before it used them. runs: how often draws have been
    computed. log_weight (S,): logarithms of the weights, the largest 0; None: all are equal. spent:
    whether the next rounds are not taken in, since too few draws would have weight: new ones are
    due. refit: the one that runs in the background. failed: the number of rounds of the last refit
    there that failed; −1: none.
    """

    values: Draws = field(default_factory=dict)
    state: Any = None
    fitted: int = -1
    seen: int = 0
    since: int = 0
    runs: int = 0
    log_weight: Array | None = None
    spent: bool = False
    refit: Refit[tuple[SampledBelief, int]] = field(default_factory=Refit)
    failed: int = -1

    @cached_property
    def weight(self) -> Array | None:
        """The draws' weights (S,), the largest 1; None: all are equal."""
        if self.log_weight is None:
            return None
        with np.errstate(under="ignore"):  # a draw may have no weight
            return np.exp(self.log_weight)

    @cached_property
    def effective(self) -> float:
        """The effective share of the draws, (Σw)²/(S Σw²) (Kish 1965).

        It is 1 if all weigh the same, and 0 if no draw makes the rows likely.
        """
        if (w := self.weight) is None:
            return 1.0
        return float(w.sum() ** 2 / (w @ w) / len(w)) if w.max() > 0.0 else 0.0

    def after(self, log_likelihood: Array, n: int, least: float) -> Cloud:
        """Return the cloud after the next n rounds, of these log likelihoods (S,).

        The draws are spent instead if their effective share would be less than `least`.
        """
        before = self.log_weight
        log_weight = log_likelihood.copy() if before is None else log_likelihood + before
        largest = log_weight.max()
        log_weight -= largest if largest > -np.inf else np.nan  # no draw makes the rows likely
        after = replace(self, seen=self.seen + n, log_weight=log_weight)
        enough = after.effective >= least and after.effective > 0.0
        return after if enough else replace(self, spent=True)

    def stored(self, decisions: int) -> State:
        """Return arrays and plain values for `restored`, after so many decisions."""
        out: State = {f"values.{name}": v for name, v in self.values.items()}
        out["counts"] = [self.fitted, self.seen, decisions - self.since, self.runs]
        if isinstance(self.state, Array):
            out["state"] = self.state
        elif self.state:
            out |= {f"state.{name}": np.asarray(v) for name, v in self.state[0].items()}
        if self.log_weight is not None:
            out["weight"] = self.log_weight  # their logarithms, under the name that files have
        if self.spent:
            out["spent"] = True
        return out


def cloud_form(state: State, drawn: Shapes, held: Shapes, by_name: bool) -> Form:
    """Return the form of what `Cloud.stored` gives.

    drawn, held: the shapes of the draws, and of a sampler's state by name. by_name: whether it has
    one; another has points.
    """
    size = max((shape[0] or 0 for shape in drawn.values()), default=0)
    form: Form = {"weight?": Numbers((size,), -np.inf, 0.0), "spent?": True}
    form["counts"] = Row(Whole(-1), Whole(), Whole(), Whole())
    if not by_name:
        form["state?"] = Numbers((None, None))
    for prefix, shapes in (("values.", drawn), ("state.", held)):
        if unprefixed(state, prefix):
            form |= {prefix + name: Numbers(shape, dtype=None) for name, shape in shapes.items()}
    return form


def restored(state: State) -> Cloud:
    """Return the cloud that `stored` wrote, where no decision has been made."""
    fitted, seen, served, runs = state["counts"]
    variables = unprefixed(state, "state.")
    return Cloud(
        unprefixed(state, "values."),
        state.get("state", [variables] if variables else None),
        fitted, seen, -served, runs, state.get("weight"), state.get("spent", False),
    )  # fmt: skip
