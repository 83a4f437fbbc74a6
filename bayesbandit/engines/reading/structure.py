"""Reads a log density's graph: the polynomial degree of every node in the free variables.

A log density that is quadratic in its free variables is a Gaussian's, however it was declared.
The analysis is an abstract interpretation, and sound: an operation that is not in the table here
counts as non-polynomial, so that a model is never taken for Gaussian by mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.exceptions import NotScalarConstantError

Outcome = float | str  # a degree, or why there is none

# Operations that move numbers about or add them: the greatest degree of what they are given.
LINEAR = {
    *("Alloc", "AllocDiag", "DeepCopyOp", "DimShuffle", "ExpandDims", "ExtractDiag", "Join"),
    *("JoinDims", "MakeVector", "Repeat", "Reshape", "ScalarFromTensor", "SpecifyAssumptions"),
    *("SpecifyShape", "Split", "SplitDims", "Squeeze", "TensorFromScalar", "Unbroadcast", "ViewOp"),
    *("TensorFromXTensor", "XTensorFromTensor", "Rename"),
}
TAKES = {"Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1"}  # x, then indices
PUTS = {"IncSubtensor", "AdvancedIncSubtensor", "AdvancedIncSubtensor1"}  # x, y, then indices
SHAPES = {"Shape", "Shape_i"}
PRODUCTS = {"Dot", "BatchedDot", "Dot22", "Matmul"}
SOLVES = {"Solve", "SolveTriangular"}  # A, b
ELEMENTWISE = {"Add", "Sub", "Neg", "Identity"}
COMPARISONS = {"EQ", "NEQ", "LT", "LE", "GT", "GE"}
MATRICES = {"Cholesky", "MatrixInverse", "Solve", "SolveTriangular", "CholeskySolve", "Det"}
MOVES = {
    *("Alloc", "DimShuffle", "ExpandDims", "Squeeze", "Reshape", "SpecifyShape", "ViewOp"),
    *("Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1", "ScalarFromTensor"),
}  # the elements of their first input, elsewhere
FIXED = {
    *(LINEAR | PUTS | SHAPES | PRODUCTS | SOLVES | MATRICES),
    *("CumOp", "IfElse", "Mark", "Eye", "SortOp", "ArgSortOp"),
}  # whose outputs are as large as the shapes of their inputs say
SMOOTH = {
    *("Sqrt", "Exp", "Expm1", "Log", "Log1p", "Log1mexp", "Reciprocal", "Sigmoid", "Softplus"),
    *("Tanh", "Erf", "Erfc", "Erfcx"),
}


def operation(node: Apply) -> tuple[Any, str]:
    """A node's operation, out of its Blockwise if it is in one, and the name the tables know."""
    op = node.op.core_op if isinstance(node.op, Blockwise) else node.op
    known = type(op).__module__.partition(".")[0] in ("pytensor", "pymc")
    return op, type(op).__name__ if known else f"{type(op).__module__}.{type(op).__name__}"


def exponent(node: Apply) -> float | None:
    """The constant that a Pow node raises to, if there is one."""
    try:
        return float(get_underlying_scalar_constant_value(node.inputs[1]))
    except NotScalarConstantError:
        return None


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
    name = type(node.op.scalar_op).__name__
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
    name = type(node.op.scalar_op).__name__ if isinstance(node.op, Elemwise) else operation(node)[1]
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


def guards_support(node: Apply, positive: Collection[Variable]) -> bool:
    """Whether a comparison is of what is positive with what is not, or of its logarithm with an
    infinity."""
    for subject, bound in (node.inputs, node.inputs[::-1]):
        try:
            limit = float(get_underlying_scalar_constant_value(bound))
        except NotScalarConstantError:
            continue
        inside = bare(subject)
        logarithm = inside.owner is not None and isinstance(inside.owner.op, Elemwise)
        if math.isinf(limit) and logarithm and inside.owner is not None:
            is_log = type(inside.owner.op.scalar_op).__name__ == "Log"
            return is_log and inside.owner.inputs[0] in positive
        return limit <= 0 and subject in positive
    return False


def bare(variable: Variable) -> Variable:
    """The variable beneath changes of shape and copies."""
    while variable.owner is not None and (
        operation(variable.owner)[1] in ("DimShuffle", "ExpandDims", "Squeeze", "ViewOp")
        or (
            isinstance(variable.owner.op, Elemwise)
            and type(variable.owner.op.scalar_op).__name__ == "Identity"
        )
    ):
        variable = variable.owner.inputs[0]
    return variable


def keeps_positive(node: Apply, positive: Collection[Variable]) -> bool:
    """Whether a node is positive where `positive` ones, the weights and its constants are."""

    def sure(v: Variable) -> bool:
        if isinstance(v, Constant):
            return lower_bound(v) > 0.0
        return v in positive or (v.owner is None and v.name == "weight")

    op, name = operation(node)
    if isinstance(op, Elemwise):
        name = type(op.scalar_op).__name__
        if name in ("Exp", "Sigmoid", "Softplus", "Erfc"):
            return True
        if name == "Sub" and below_one(node.inputs[1]):
            return lower_bound(node.inputs[0]) >= 1.0
        if name == "Pow":
            return sure(node.inputs[0])
        kept = {"Add", "Mul", "TrueDiv", "Sqrt", "Sqr", "Abs", "Identity", "Reciprocal", "Maximum"}
        return name in kept and all(map(sure, node.inputs))
    if isinstance(op, CAReduce):
        return type(op.scalar_op).__name__ in ("Add", "Mul") and sure(node.inputs[0])
    return (name in MOVES or isinstance(op, CheckAndRaise)) and sure(node.inputs[0])


def lower_bound(variable: Variable) -> float:
    """The least number of a constant, −∞ of what is none."""
    while (node := variable.owner) is not None and (
        operation(node)[1] in ("DimShuffle", "ExpandDims")
        or (
            isinstance(node.op, Elemwise)
            and type(node.op.scalar_op).__name__ == "Cast"
            and node.outputs[0].type.dtype == "float64"
        )
    ):
        [variable] = node.inputs
    return float(np.min(variable.data)) if isinstance(variable, Constant) else -math.inf


def below_one(variable: Variable) -> bool:
    """Whether a node is a sigmoid."""
    op = variable.owner.op if variable.owner is not None else None
    return isinstance(op, Elemwise) and type(op.scalar_op).__name__ == "Sigmoid"


def sizes_by_value(node: Apply, d: Sequence[float]) -> bool:
    """Whether the shape of a node's outputs depends on values that have a degree, where `d` are
    those of its inputs."""
    op, name = operation(node)
    sizes = {"Repeat": 1, "Alloc": 1, "Reshape": 1, "AllocEmpty": 0} | dict.fromkeys(TAKES, 1)
    known = name in FIXED or isinstance(op, Elemwise | CAReduce | CheckAndRaise)
    first = sizes.get(name, len(d) if known else 0)
    return max(d[first:], default=0) > 0


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
        _, name = operation(node)
        if isinstance(node.op, Elemwise):
            name = type(node.op.scalar_op).__name__
        if name == "Pow":
            return f"power {exponent(node):g} of {self.names(node.inputs)}"
        return f"{'square' if name == 'Sqr' else 'product'} of {self.names(node.inputs)}"
