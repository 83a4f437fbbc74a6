"""Chains: the posterior draws behind a bandit's decisions, and how files hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bayesbandit.beliefs.base import below
from bayesbandit.beliefs.sampled.refits import RefitSlot
from bayesbandit.inference import nuts
from bayesbandit.inference.gibbs import sampler as gibbs
from bayesbandit.inference.graph_analysis.density import lengths, row_dimension
from bayesbandit.inference.independence import ENGINE as INDEPENDENCE
from bayesbandit.inference.plan import Plan
from bayesbandit.runtime import schema
from bayesbandit.runtime.schema import Row, Whole

COUNTS = Row(Whole(-1), Whole(), Whole(), Whole())  # fitted (−1: no draws), seen, served, runs
STATES = {nuts.ENGINE: np.ndarray, gibbs.ENGINE: list}  # the type of a sampler's state
Shapes = Mapping[str, tuple[int | None, ...]]  # by name; None stands for the number of rows
Draws = Mapping[str, np.ndarray]  # of the free variables by name, (S, *shape)


@dataclass
class Chain:
    """Draws of one posterior, and the state of its sampler.

    fitted: the number of rounds from which the draws were computed (−1: no draws). seen: the number
    of rounds that the draws and their weights know. served: decisions made from them. runs: how
    often draws have been computed. log_weight (S,): logarithms of the weights, the largest 0; None:
    all are equal. spent: whether the next rounds would leave too few draws with weight.
    slot: has the refit that runs in the background. failed: the number of rounds of the last such
    refit, if it failed. complaint: what is wrong with the draws, until the user has been warned.
    engine: the engine of the draws, if it is not the model's own.
    """

    values: Draws = field(default_factory=dict)
    state: Any = None
    fitted: int = -1
    seen: int = 0
    served: int = 0
    runs: int = 0
    log_weight: np.ndarray | None = None
    spent: bool = False
    slot: RefitSlot = field(default_factory=RefitSlot)
    failed: int = -1
    complaint: str = ""
    engine: str = ""

    def fork(self) -> Chain:
        """Return a chain in the same state."""
        twin = object.__new__(Chain)
        vars(twin).update(vars(self))
        return twin

    @cached_property
    def weight(self) -> np.ndarray | None:
        """The draws' weights (S,), the largest 1; None: all are equal."""
        return None if self.log_weight is None else np.exp(self.log_weight)

    def weighted(self, log_likelihood: np.ndarray, seen: int) -> Chain:
        """Return the chain whose draws have also seen rows of these log likelihoods (S,).

        All weights are NaN if no draw makes the rows likely.
        """
        known = self.log_weight
        log_weight = log_likelihood.copy() if known is None else log_likelihood + known
        most = log_weight.max()
        log_weight -= most if most > -np.inf else np.nan
        return replace(self, seen=seen, log_weight=log_weight)

    @cached_property
    def effective(self) -> float:
        """The effective share of the draws (Kish 1965): 1 if all weigh the same, 0 if no draw makes
        the rows likely."""
        if (w := self.weight) is None:
            return 1.0
        return float(w.sum() ** 2 / (w @ w) / len(w)) if w.max() > 0.0 else 0.0


def shapes(plan: Plan, size: int) -> dict[str, tuple[int | None, ...]]:
    """Return the shape (size, *shape) of each free variable's draws; None stands for the rows."""
    built, row = plan.built, row_dimension(plan.built)
    fixed = lengths(built, but=row)

    def shape(name: str) -> tuple[int | None, ...]:
        dims = built.named_vars_to_dims.get(name) or ()
        return tuple(None if d == row else len(built.coords[d] or ()) for d in dims)

    names = [str(v.name) for v in built.free_RVs]
    return {name: (size, *(fixed[name] if name in fixed else shape(name))) for name in names}


def stored(chains: Sequence[Chain]) -> dict[str, Any]:
    """Return chains as arrays and plain values."""
    counts = [[c.fitted, c.seen, c.served, c.runs] for c in chains]
    state: dict[str, Any] = {"chains": counts}
    for g, chain in enumerate(chains):
        if chain.log_weight is not None:
            state[f"{g}.weight"] = chain.log_weight
        if chain.engine:
            state[f"{g}.engine"] = chain.engine
        if chain.spent:
            state[f"{g}.spent"] = True
        state |= {f"{g}.values.{name}": v for name, v in chain.values.items()}
        if isinstance(chain.state, np.ndarray):
            state[f"{g}.state"] = chain.state
        elif chain.state:
            state |= {f"{g}.state.{name}": np.asarray(v) for name, v in chain.state[0].items()}
    return state


def check_chain(chain: Chain, drawn: Shapes, state: Shapes, plan: Plan) -> None:
    """Raise ValueError if draws or sampler state are not finite or do not have these shapes, or are
    not of this plan's engine."""
    counts = [chain.fitted, chain.seen, chain.served, chain.runs]
    schema.check(counts, COUNTS, "its chains' counts")
    known = isinstance(chain.engine, str) and chain.engine in ("", *[INDEPENDENCE] * plan.moves)
    schema.demand(known, f"its draws' engine is {schema.brief(chain.engine)}")
    schema.check(chain.spent, bool, "whether its draws are spent")
    fits = chain.state is None or isinstance(chain.state, STATES.get(plan.engine, object))
    schema.demand(fits, "its sampler's state is of another engine")
    if (w := chain.log_weight) is not None:
        sizes = {len(v) for v in chain.values.values()}
        whole = w.ndim == 1 and {len(w)} == sizes and w.max(initial=-np.inf) == 0.0
        schema.demand(
            whole, f"its draws' weights have the shape {w.shape}, or the largest is not 0"
        )
    states = chain.state if isinstance(chain.state, list) else []
    draws = [(chain.values, drawn)] if chain.values else []
    for values, shapes in (*draws, *((values, state) for values in states)):
        names = f"its draws are of {', '.join(values) or 'nothing'}, not {', '.join(shapes)}"
        schema.demand(values.keys() == shapes.keys(), names)
        for name, shape in shapes.items():
            array = np.asarray(values[name])
            fits = len(array.shape) == len(shape) and all(
                n in (m, None) for n, m in zip(shape, array.shape, strict=True)
            )
            schema.demand(fits, f"its draws of {name!r} have the shape {array.shape}")
            is_finite = array.dtype.kind in "iuf" and np.isfinite(array).all()
            schema.demand(is_finite, f"its draws of {name!r} are not finite")
    if isinstance(chain.state, np.ndarray):
        points = chain.state
        whole = points.ndim == 2 and points.dtype == np.float64 and np.isfinite(points).all()
        schema.demand(whole, "its sampler's state is not (S, D) finite numbers")


def restored(state: Mapping[str, Any], n: int) -> list[Chain]:
    """Return the n chains that `stored` wrote; raise ValueError if there are not n."""
    chains, counts = [], lists(state["chains"], 4, "chains")
    if len(counts) != n:
        raise ValueError(f"there must be {n} chains; got {len(counts)}")
    for g, (fitted, seen, served, runs) in enumerate(counts):
        values, variables = (below(state, f"{g}.{what}.") for what in ("values", "state"))
        last = state.get(f"{g}.state", [variables] if variables else None)
        weight = state.get(f"{g}.weight")
        more = {k: state[f"{g}.{k}"] for k in ("engine", "spent") if f"{g}.{k}" in state}
        chains.append(Chain(values, last, fitted, seen, served, runs, weight, **more))
    return chains


def lists(values: Any, length: int, what: str) -> list[Any]:
    """Return the values; raise ValueError unless they are a list of lists of this length."""
    whole = isinstance(values, list) and all(isinstance(v, list) for v in values)
    if not (whole and all(len(v) == length for v in values)):
        raise ValueError(f"{what} must be lists of {length} values; got {values!r}")
    return values
