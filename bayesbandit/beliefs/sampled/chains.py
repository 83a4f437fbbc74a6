"""Chains: the posterior draws behind a bandit's decisions, and how files hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesbandit.beliefs.base import below
from bayesbandit.inference.graph_analysis.density import lengths, row_dimension
from bayesbandit.inference.plan import Plan
from bayesbandit.runtime import schema
from bayesbandit.runtime.schema import Row, Whole

COUNTS = Row(Whole(-1), Whole(), Whole())  # fitted (−1: no draws), served and runs of a chain
Shapes = Mapping[str, tuple[int | None, ...]]  # by name; None stands for the number of rows
Draws = Mapping[str, np.ndarray]  # of the free variables by name, (S, *shape)


@dataclass
class Chain:
    """Draws of one posterior, and the state of its sampler.

    fitted: the number of rounds behind the draws (−1: no draws). served: decisions made from them.
    runs: how often draws have been computed.
    """

    values: Draws = field(default_factory=dict)
    state: Any = None
    fitted: int = -1
    served: int = 0
    runs: int = 0


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
    state: dict[str, Any] = {"chains": [[c.fitted, c.served, c.runs] for c in chains]}
    for g, chain in enumerate(chains):
        state |= {f"{g}.values.{name}": v for name, v in chain.values.items()}
        if isinstance(chain.state, np.ndarray):
            state[f"{g}.state"] = chain.state
        elif chain.state:
            state |= {f"{g}.state.{name}": v for name, v in chain.state[0].items()}
    return state


def check_chain(chain: Chain, drawn: Shapes, state: Shapes) -> None:
    """Raise ValueError if draws or sampler state are not finite or do not have these shapes."""
    schema.check([chain.fitted, chain.served, chain.runs], COUNTS, "its chains' counts")
    states = chain.state if isinstance(chain.state, list) else []
    draws = [(chain.values, drawn)] if chain.values else []
    for values, shapes in (*draws, *((values, state) for values in states)):
        schema.demand(values.keys() == shapes.keys(), "its draws' variables")
        for name, shape in shapes.items():
            array = np.asarray(values[name])
            fits = len(array.shape) == len(shape) and all(
                n in (m, None) for n, m in zip(shape, array.shape, strict=True)
            )
            schema.demand(fits, f"its draws of {name!r} have the shape {array.shape}")
            is_finite = array.dtype.kind in "iuf" and np.isfinite(array).all()
            schema.demand(is_finite, f"its draws of {name!r} are not finite")
    if isinstance(chain.state, np.ndarray):
        whole = chain.state.ndim == 2 and np.isfinite(chain.state).all()
        schema.demand(whole, "its sampler's state")


def restored(state: Mapping[str, Any], n: int) -> list[Chain]:
    """Return the n chains that `stored` wrote; raise ValueError if there are not n."""
    chains, counts = [], lists(state["chains"], 3, "chains")
    if len(counts) != n:
        raise ValueError(f"there must be {n} chains; got {len(counts)}")
    for g, (fitted, served, runs) in enumerate(counts):
        values, variables = (below(state, f"{g}.{what}.") for what in ("values", "state"))
        last = state.get(f"{g}.state", [variables] if variables else None)
        chains.append(Chain(values, last, fitted, served, runs))
    return chains


def lists(values: Any, length: int, what: str) -> list[Any]:
    """Return a list of lists of this length; raise ValueError if it is none."""
    whole = isinstance(values, list) and all(isinstance(v, list) for v in values)
    if not (whole and all(len(v) == length for v in values)):
        raise ValueError(f"{what} must be lists of {length} values; got {values!r}")
    return values
