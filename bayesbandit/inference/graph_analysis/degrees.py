"""Reads a log density's graph: the polynomial degree of every node in the free variables.

A log density that is quadratic in its free variables is a Gaussian's, however it was declared.
The analysis is sound: an operation without a rule here counts as non-polynomial, so that a model is
never taken for Gaussian by mistake.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import CAReduce, Elemwise

from bayesbandit.inference.graph_analysis.operations import (
    COMPARISONS,
    ELEMENTWISE,
    MATRICES,
    MOVES,
    SMOOTH,
    bare,
    elementwise_name,
    exponent,
    kind,
    number,
    operation,
    reduced_by,
)
from bayesbandit.inference.graph_analysis.walk import Walk


def guards_support(node: Apply, positive: Collection[Variable]) -> bool:
    """Return whether a node compares a positive value with one that is not positive, or the
    logarithm of a positive value with an infinity."""
    for subject, bound in (node.inputs, node.inputs[::-1]):
        limit = number(bound)
        if limit is None:
            continue
        inside = bare(subject)
        if math.isinf(limit) and (name := elementwise_name(inside)):
            return name == "Log" and inside.owner.inputs[0] in positive
        return limit <= 0 and subject in positive
    return False


def keeps_positive(node: Apply, positive: Collection[Variable]) -> bool:
    """Return whether a node is positive if the `positive` nodes, the weights and its constants
    are."""

    def sure(v: Variable) -> bool:
        if isinstance(v, Constant):
            return bool(np.all(v.data > 0.0))
        return v in positive or (v.owner is None and v.name == "weight")

    op, name = operation(node)
    if isinstance(op, Elemwise):
        name = elementwise_name(node.outputs[0])
        if name in ("Exp", "Sigmoid", "Softplus", "Erfc"):
            return True
        if name == "Sub":
            one, rest = number(node.inputs[0]), elementwise_name(node.inputs[1])
            return one is not None and one >= 1.0 and rest == "Sigmoid"
        if name == "Pow":
            return sure(node.inputs[0])
        kept = {"Add", "Mul", "TrueDiv", "Sqrt", "Sqr", "Abs", "Identity", "Reciprocal", "Maximum"}
        return name in kept and all(map(sure, node.inputs))
    if isinstance(op, CAReduce):
        return type(op.scalar_op).__name__ in ("Add", "Mul") and sure(node.inputs[0])
    return (name in MOVES or isinstance(op, CheckAndRaise)) and sure(node.inputs[0])


Outcome = float | str  # a degree, or why there is none


class Degrees(Walk[float]):
    """The degrees of all nodes between `seeds`, whose degrees are given, and `outputs`; ∞ for a
    node that is no polynomial."""

    def __init__(self, outputs: Sequence[Variable], seeds: Mapping[Variable, float]) -> None:
        super().__init__(outputs, seeds)
        self.faults: dict[Apply, str] = {}
        self.walk(self.nodes, self.values)

    def root(self, variable: Variable) -> float:
        """Return the degree of a constant."""
        return 0.0

    def visit(self, node: Apply, given: Sequence[float]) -> Sequence[float]:
        """Return an upper bound of the degree; ∞ if none is known."""
        ragged = self.resized(node, given)
        if max(given, default=0) == 0:
            return [0.0] * len(node.outputs)
        outcome = self.rule(node, given)
        if ragged and kind(node) == "shape":
            outcome = "shape that depends on the value"
        if isinstance(outcome, str):
            if max(given) < math.inf:
                self.faults[node] = outcome
            outcome = math.inf
        return [outcome] * len(node.outputs)

    def rule(self, node: Apply, given: Sequence[float]) -> Outcome:
        """Return the degree of a node's outputs given those of its inputs, or the reason why it has
        none."""
        op, name = operation(node)
        match kind(node):
            case "elementwise":
                return self.elementwise(node, given)
            case "check":
                return given[0] if max(given[1:], default=0) == 0 else "parameter check"
            case "reduction" if reduced_by(node) == "Add":
                return given[0]
            case "reduction":
                return f"non-polynomial reduction {name.lower()}"
            case "shape":
                return 0
            case "move":
                return max(given)
            case "take":
                return given[0] if max(given[1:], default=0) == 0 else "index"
            case "put":
                return max(given[:2]) if max(given[2:], default=0) == 0 else "index"
            case "product":
                return sum(given)
            case "solve":
                return given[1] if given[0] == 0 else "inverse"
            case "cumulation":
                return given[0] if op.mode == "add" else "cumulative product"
            case "branch":
                return max(given[1:]) if given[0] == 0 else "branch"
        return f"unrecognised operation {name}"

    def elementwise(self, node: Apply, given: Sequence[float]) -> Outcome:
        """Return the degree of an operation on numbers, applied to arrays of one shape."""
        name = elementwise_name(node.outputs[0])
        if name in ELEMENTWISE:
            return max(given)
        match name:
            case "Mul":
                return sum(given)
            case "Second":  # the second argument in the shape of the first
                return given[1]
            case "Sqr":
                return 2 * given[0]
            case "Cast":
                dtype = node.outputs[0].type.dtype
                return given[0] if dtype == "float64" else f"cast to {dtype}"
            case "TrueDiv":
                return given[0] if given[1] == 0 else "division"
            case "Switch":
                return max(given[1:]) if given[0] == 0 else "branch"
            case "Pow" if given[1] == 0:
                k = exponent(node)
                if k is not None and k >= 0 and k == int(k):
                    return given[0] * k if k else 0
                return f"power {k:g}" if k else "power"
        return f"non-polynomial function {name.lower()}"

    # ---- who is to blame -------------------------------------------------------------------------

    def fault(self, output: Variable, most: float = 2) -> str | None:
        """Return the first operation by which `output` has a degree above `most`, as a reason; None
        if its degree is no larger."""
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
        """Return the free variables that some nodes depend on, quoted."""
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
        before = [self.of(v) for v in node.inputs]
        return max(self.of(v) for v in node.outputs) > max([1.0, *before])

    def _raising(self, node: Apply) -> str:
        name = elementwise_name(node.outputs[0]) or operation(node)[1]
        if name == "Pow":
            return f"power {exponent(node):g} of {self.names(node.inputs)}"
        return f"{'square' if name == 'Sqr' else 'product'} of {self.names(node.inputs)}"


class Analytic(Degrees):
    """1 where a node is analytic in the seeds, 0 where it does not depend on them, else ∞.

    Two analytic functions that agree at points drawn at random agree everywhere: so numbers may
    settle an identity. The sign of what is `positive` is a constant, and so are the comparisons
    t ≥ 0, log t = −∞ and η = −∞ by which a density guards its support.

    positive: which of the seeds are; None: all.
    """

    def __init__(
        self,
        outputs: Sequence[Variable],
        seeds: Mapping[Variable, float],
        positive: Collection[Variable] | None = None,
    ) -> None:
        self.positive = {v for v, k in seeds.items() if k} if positive is None else set(positive)
        super().__init__(outputs, seeds)

    def visit(self, node: Apply, given: Sequence[float]) -> Sequence[float]:
        if keeps_positive(node, self.positive):
            self.positive.update(node.outputs)
        return super().visit(node, given)

    def rule(self, node: Apply, given: Sequence[float]) -> Outcome:
        if kind(node) == "check":
            return given[0]
        name = elementwise_name(node.outputs[0]) or operation(node)[1]
        if max(given) < math.inf:
            power = name == "Pow" and given[1] == 0
            if name in SMOOTH or name in MATRICES or name == "TrueDiv" or power:
                return 1
            if name in ("Sign", "Abs") and node.inputs[0] in self.positive:
                return 0 if name == "Sign" else 1
            if name in COMPARISONS and guards_support(node, self.positive):
                return 0
            if name in ("EQ", "NEQ") and any(
                math.isinf(number(u) or 0.0) and self._is_sum(v)
                for u, v in (node.inputs, node.inputs[::-1])
            ):
                return 0
        outcome = super().rule(node, given)
        return outcome if isinstance(outcome, str) or outcome == math.inf else min(outcome, 1)

    def _is_sum(self, v: Variable) -> bool:
        """Return whether a node is a sum of seeds, which are finite, and of what they do not
        enter."""
        inside = bare(v)
        if inside in self.seeds or self.of(inside) == 0:
            return True
        sums = elementwise_name(inside) in ELEMENTWISE
        return sums and all(map(self._is_sum, inside.owner.inputs))
