"""Reads a log density's graph: the polynomial degree of every node in the free variables.

A log density that is quadratic in its free variables is a Gaussian's, however it was declared.
The analysis is an abstract interpretation, and sound: an operation that is not in the table here
counts as non-polynomial, so that a model is never taken for Gaussian by mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import CAReduce, Elemwise

from bayesbandit.inference.graph_analysis.operations import (
    COMPARISONS,
    ELEMENTWISE,
    LINEAR,
    MATRICES,
    PRODUCTS,
    PUTS,
    SHAPES,
    SMOOTH,
    SOLVES,
    TAKES,
    elementwise_name,
    exponent,
    operation,
    sizes_by_value,
)
from bayesbandit.inference.graph_analysis.positive import guards_support, keeps_positive

Outcome = float | str  # a degree, or why there is none


def polynomial(node: Apply, d: Sequence[float]) -> Outcome:
    """Degree of a node of degrees `d` (one for each input), or the reason why it has none."""
    op, name = operation(node)
    if isinstance(op, Elemwise):
        return elementwise(node, d)
    if isinstance(op, CheckAndRaise):
        return d[0] if max(d[1:], default=0) == 0 else "parameter check"
    if isinstance(op, CAReduce):
        plain = type(op.scalar_op).__name__ == "Add"
        return d[0] if plain else f"non-polynomial reduction {name.lower()}"
    if name in SHAPES:
        return 0
    if name in LINEAR:
        return max(d)
    if name == "CumOp":
        return d[0] if op.mode == "add" else "cumulative product"
    if name in TAKES or name in PUTS:
        values = 2 if name in PUTS else 1
        return max(d[:values]) if max(d[values:], default=0) == 0 else "index"
    if name in PRODUCTS:
        return sum(d)
    if name in SOLVES:
        return d[1] if d[0] == 0 else "inverse"
    if name == "IfElse":
        return max(d[1:]) if d[0] == 0 else "branch"
    return f"unrecognised operation {name}"


def elementwise(node: Apply, d: Sequence[float]) -> Outcome:
    """`polynomial` of an elementwise operation."""
    name = elementwise_name(node.outputs[0])
    if name in ELEMENTWISE:
        return max(d)
    match name:
        case "Mul":
            return sum(d)
        case "Second":  # the second argument in the shape of the first
            return d[1]
        case "Sqr":
            return 2 * d[0]
        case "Cast":
            dtype = node.outputs[0].type.dtype
            return d[0] if dtype == "float64" else f"cast to {dtype}"
        case "TrueDiv":
            return d[0] if d[1] == 0 else "division"
        case "Switch":
            return max(d[1:]) if d[0] == 0 else "branch"
        case "Pow" if d[1] == 0:
            k = exponent(node)
            whole = k is not None and k >= 0 and k == int(k)
            if k is not None and whole:
                return d[0] * k if k else 0
            return f"power {k:g}" if k else "power"
    return f"non-polynomial function {name.lower()}"


def analytic(node: Apply, d: Sequence[float], positive: Collection[Variable] = ()) -> Outcome:
    """1 where a node is analytic in what it depends on, or the reason why it may not be.

    Two analytic functions that agree at points drawn at random agree everywhere: this is what
    allows an identity to be settled by numbers. Of what is `positive` the sign is a constant, and
    so are the comparisons t ≥ 0 and log t = −∞ by which a density guards its support.
    """
    name = elementwise_name(node.outputs[0]) or operation(node)[1]
    if max(d) < math.inf:
        if name in SMOOTH or name in MATRICES or name == "TrueDiv" or (name == "Pow" and d[1] == 0):
            return 1
        if name in ("Sign", "Abs") and node.inputs[0] in positive:
            return 0 if name == "Sign" else 1
        if name in COMPARISONS and guards_support(node, positive):
            return 0
    if isinstance(node.op, CheckAndRaise):
        return d[0]
    outcome = polynomial(node, d)
    return outcome if isinstance(outcome, str) or outcome == math.inf else min(outcome, 1)


class Degrees:
    """Degrees of all nodes between `seeds` (each with a degree) and `outputs`; ∞ for none.

    rule: `polynomial`, or `analytic` with degrees 0 (constant) and 1. positive: which seeds are,
    by the rule `analytic`; None: all.
    """

    def __init__(
        self,
        outputs: Sequence[Variable],
        seeds: Mapping[Variable, float],
        rule: Callable[..., Outcome] = polynomial,
        positive: Collection[Variable] | None = None,
    ) -> None:
        self.seeds = dict(seeds)
        self.rule = rule
        self.degree: dict[Variable, float] = dict(seeds)
        self.faults: dict[Apply, str] = {}
        self.ragged: set[Variable] = set()  # whose shape depends on values
        signed = {v for v, k in seeds.items() if k} if positive is None else set(positive)
        self.positive = signed if rule is analytic else set()
        self.nodes = list(toposort(outputs, blockers=list(seeds)))
        for node in self.nodes:
            self._visit(node)

    def of(self, variable: Variable) -> float:
        """The degree of a node: an upper bound, ∞ where it is not known to be a polynomial."""
        return self.degree.get(variable, 0.0)

    def _visit(self, node: Apply) -> None:
        d = [self.of(v) for v in node.inputs]
        if self.rule is analytic and keeps_positive(node, self.positive):
            self.positive.update(node.outputs)
        if max(d, default=0) == 0:
            return
        if sizes_by_value(node, d) or not self.ragged.isdisjoint(node.inputs):
            self.ragged.update(node.outputs)
        more = (self.positive,) if self.rule is analytic else ()
        outcome = self.rule(node, d, *more)
        if operation(node)[1] in SHAPES and node.inputs[0] in self.ragged:
            outcome = "shape that depends on the value"
        if isinstance(outcome, str):
            if max(d, default=0) < math.inf:
                self.faults[node] = outcome
            outcome = math.inf
        for v in node.outputs:
            self.degree[v] = outcome

    def fault(self, output: Variable, most: float = 2) -> str | None:
        """Why `output` is of more than degree `most`: the first operation to blame, or None."""
        k = self.of(output)
        if k <= most:
            return None
        behind = set(self._behind(output))
        if k == math.inf:
            for node in self.nodes:
                if node in behind and node in self.faults:
                    return self._name(node)
        first = next(n for n in self.nodes if n in behind and self.of(n.outputs[0]) > most)
        behind = set(self._behind(first.outputs[0]))
        for node in self.nodes:
            if node in behind and self._raises(node):
                return f"{self._raising(node)} (degree {k:g})"
        raise AssertionError(f"no operation raises the degree to {k:g}")

    def names(self, variables: Sequence[Variable]) -> str:
        """The free variables that some nodes depend on, quoted."""
        seeds = [v for v in ancestors(variables, blockers=list(self.seeds)) if v in self.seeds]
        names = sorted({str(v.name) for v in seeds if self.seeds[v]})
        return " and ".join(f"'{name}'" for name in names)

    def _name(self, node: Apply) -> str:
        why = self.faults[node]
        if why == "division":
            return f"division by {self.names(node.inputs[1:])}"
        return f"{why} of {self.names(node.inputs)}"

    def _behind(self, output: Variable) -> Iterator[Apply]:
        for v in ancestors([output], blockers=list(self.seeds)):
            if v.owner is not None and v not in self.seeds:
                yield v.owner

    def _raises(self, node: Apply) -> bool:
        d = [self.of(v) for v in node.inputs]
        return max(self.of(v) for v in node.outputs) > max([1.0, *d])

    def _raising(self, node: Apply) -> str:
        name = elementwise_name(node.outputs[0]) or operation(node)[1]
        if name == "Pow":
            return f"power {exponent(node):g} of {self.names(node.inputs)}"
        return f"{'square' if name == 'Sqr' else 'product'} of {self.names(node.inputs)}"
