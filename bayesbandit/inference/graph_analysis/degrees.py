"""Reads a log density's graph: the polynomial degree of every node in the free variables.

A log density that is quadratic in its free variables is a Gaussian's, however it was declared.
The analysis is sound: an operation without a rule here counts as non-polynomial, so that a model is
never taken for Gaussian by mistake.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import CAReduce, Elemwise

from bayesbandit.inference.graph_analysis.operations import (
    ANALYTIC_OPERATIONS,
    COMPARISONS,
    ELEMENTWISE,
    MATRIX_OPERATIONS,
    SHAPE_CHANGES,
    SIZE_OPERATIONS,
    bare,
    elementwise_name,
    exponent,
    kind,
    number,
    operation,
    reduced_by,
)
from bayesbandit.inference.graph_analysis.walk import Walk

KEEPS_POSITIVE = {
    *("Add", "Mul", "TrueDiv", "Sqrt", "Sqr", "Abs", "Sign", "Identity", "Reciprocal", "Second"),
    "Switch",
}


def keeps_positive(node: Apply, positive: Collection[Variable]) -> bool:
    """Return whether a node is positive if the `positive` nodes, the weights and its constants
    are."""

    def sure(v: Variable) -> bool:
        if isinstance(v, Constant):
            return bool(np.all(v.data > 0.0))
        return v in positive or (v.owner is None and v.name == "weight") or (number(v) or 0.0) > 0.0

    op, name = operation(node)
    if isinstance(op, Elemwise):
        name = elementwise_name(node.outputs[0])
        # positive whatever they are taken of
        if name in ("Exp", "Sigmoid", "Softplus", "Erfc"):
            return True
        if name == "Sub":
            # 1 − sigmoid(x) = sigmoid(−x)
            one = number(node.inputs[0])
            rest = elementwise_name(node.inputs[1])
            return one is not None and one >= 1.0 and rest == "Sigmoid"
        if name == "Pow":
            return sure(node.inputs[0])
        # max(a, b) ≥ a: one positive argument is enough
        if name == "Maximum":
            return any(map(sure, node.inputs))
        if name == "Cast":
            return node.outputs[0].type.dtype == "float64" and sure(node.inputs[0])
        values = node.inputs[1:] if name in ("Switch", "Second") else node.inputs
        return name in KEEPS_POSITIVE and all(map(sure, values))
    if isinstance(op, CAReduce):
        return type(op.scalar_op).__name__ in ("Add", "Mul") and sure(node.inputs[0])
    if name == "ExtractDiag":
        # the diagonal of a Cholesky factor
        before = node.inputs[0].owner
        return before is not None and operation(before)[1] == "Cholesky"
    return (name in SHAPE_CHANGES or isinstance(op, CheckAndRaise)) and sure(node.inputs[0])


Outcome = float | str  # a degree, or why there is none


class Degrees(Walk[float]):
    """The degrees of all nodes between `seeds`, whose degrees are given, and `outputs`; ∞ for a
    node that is no polynomial."""

    constant = 0.0

    def __init__(self, outputs: Sequence[Variable], seeds: Mapping[Variable, float]) -> None:
        # of a variable above degree 1: by which node it is so, and how; before it, its place
        self.blame: dict[Variable, tuple[int, Apply, str]] = {}
        super().__init__(outputs, seeds)

    def visit(self, node: Apply, given: Sequence[float]) -> Sequence[float]:
        """Return an upper bound of the degree; ∞ if none is known."""
        # what no seed enters is a constant, whatever the operation is: of degree 0
        if max(given, default=0) == 0:
            return [0.0] * len(node.outputs)
        outcome = self.rule(node, given)
        degree = math.inf if isinstance(outcome, str) else outcome
        if degree > 1.0:
            # the first operation is to blame behind the input of the highest degree, in the order
            # of computation; a check computes nothing
            inputs = node.inputs[:1] if kind(node) == "check" else node.inputs
            before = [
                (-k, *self.blame[v])
                for v, k in zip(inputs, given, strict=False)
                if v in self.blame and math.isinf(k) == math.isinf(degree)
            ]
            if before:
                blame = min(before)[1:]
            else:
                why = outcome if isinstance(outcome, str) else _raising(node)
                blame = len(self.blame), node, why
            self.blame.update(dict.fromkeys(node.outputs, blame))
        return [degree] * len(node.outputs)

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
                fixed = self._has_fixed_shape(node.inputs[0])
                return 0 if fixed else "shape that depends on the value"
            case "move" if name in SIZE_OPERATIONS:
                return given[0] if max(given[1:], default=0) == 0 else "shape"
            case "move":
                return max(given)
            case "take":
                return given[0] if max(given[1:], default=0) == 0 else "index"
            # x with some elements replaced, or added to, by y
            case "put":
                return max(given[:2]) if max(given[2:], default=0) == 0 else "index"
            # deg(fg) = deg f + deg g; sums, moves and indices keep the largest degree
            case "product":
                return sum(given)
            # A⁻¹b is linear in b, and rational in A
            case "solve":
                return given[1] if given[0] == 0 else "inverse"
            case "cumulation":
                return given[0] if op.mode == "add" else "cumulative product"
            case "branch":
                return max(given[1:]) if given[0] == 0 else "branch"
        return f"unrecognised operation {name}"

    def _has_fixed_shape(self, v: Variable) -> bool:
        """Return whether the seeds' values do not enter a node's shape: they do not for a
        polynomial, nor for operations by elements."""
        if self.of(v) < math.inf:
            return True
        by_elements = isinstance(v.owner.op, Elemwise | CAReduce | CheckAndRaise)
        return by_elements and all(map(self._has_fixed_shape, v.owner.inputs))

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
                    # deg f^k = k deg f; 0^0 is 1, as f^0 is for every f
                    return given[0] * k if k else 0
                return f"power {k:g}" if k else "power"
        return f"non-polynomial function {name.lower()}"

    # ---- who is to blame -------------------------------------------------------------------------

    def fault(self, output: Variable, most: float = 2) -> str | None:
        """Return the operation by which `output` has a degree above `most`, as a reason; None if
        its degree is no larger."""
        k = self.of(output)
        if k <= most:
            return None
        _, node, why = self.blame[output]
        if why == "division":
            return f"division by {self.names(node.inputs[1:])}"
        said = f"{why} of {self.names(node.inputs)}"
        return said if k == math.inf else f"{said} (degree {k:g})"

    def names(self, variables: Sequence[Variable]) -> str:
        """Return the free variables that some nodes depend on, quoted."""
        seeds = [v for v in ancestors(variables, blockers=list(self.seeds)) if v in self.seeds]
        names = sorted({str(v.name) for v in seeds if self.seeds[v]})
        return " and ".join(f"'{name}'" for name in names)


def _raising(node: Apply) -> str:
    """Return how a node is of a higher degree than its inputs."""
    name = elementwise_name(node.outputs[0])
    if name == "Pow":
        return f"power {exponent(node):g}"
    return "square" if name == "Sqr" else "product"


def depends_on(graphs: Sequence[Variable], among: Mapping[str, Variable]) -> frozenset[str]:
    """Return the names of those variables that the values of some graphs may depend on."""
    return frozenset(
        name for name, v in among.items() if any(map(Degrees(graphs, {v: 1.0}).of, graphs))
    )


ANALYTIC_ON_ONE_SIDE = {"Sqrt", "Log", "Log1p"}  # analytic on one side of a point
PRODUCTS_OF = {
    *("Mul", "TrueDiv", "Reciprocal", "Sqrt", "Sqr", "Pow", "Neg", "Abs", "Identity", "Second"),
}


class Analytic(Degrees):
    """1 where a node is one analytic function of the seeds, 0 where it does not depend on them,
    else ∞.

    Two analytic functions that agree at points drawn at random agree everywhere: so numbers may
    settle an identity. √(t²) is analytic on either side of 0 and not the same function there, so
    roots and logarithms are taken of what has one sign, or of sums of seeds. The sign of what is
    `positive` is a constant, and so are the comparisons by which a density guards its support:
    t ≥ 0, log t = −∞, η = −∞, and those with a bound of t.

    positive: which of the seeds are; None: all. between: the bounds of seeds that have others.
    """

    def __init__(
        self,
        outputs: Sequence[Variable],
        seeds: Mapping[Variable, float],
        positive: Collection[Variable] | None = None,
        between: Mapping[Variable, tuple[float, float]] = MappingProxyType({}),
    ) -> None:
        self.positive = {v for v, k in seeds.items() if k} if positive is None else set(positive)
        self.between = dict.fromkeys(self.positive, (0.0, math.inf)) | dict(between)
        super().__init__(outputs, seeds)

    def visit(self, node: Apply, given: Sequence[float]) -> Sequence[float]:
        # positivity goes along with the walk: a root or a logarithm of what is positive has one
        # branch
        if keeps_positive(node, self.positive) or self._is_rest_of_bound(node):
            self.positive.update(node.outputs)
        return super().visit(node, given)

    def _is_rest_of_bound(self, node: Apply) -> bool:
        """Return whether a node is a number less a seed whose upper bound is no larger."""
        if elementwise_name(node.outputs[0]) != "Sub":
            return False
        whole = number(node.inputs[0])
        subject = bare(node.inputs[1])
        bound = self.between.get(subject, (0.0, math.inf))[1]
        # 5 − t is positive if t ends at 5 or before
        return whole is not None and math.inf > whole >= bound

    def rule(self, node: Apply, given: Sequence[float]) -> Outcome:
        if kind(node) == "check":
            return given[0]
        name = elementwise_name(node.outputs[0]) or operation(node)[1]
        if max(given) < math.inf:
            # t^k of a whole k is analytic but at a pole, as a quotient is; t^½ branches at 0
            power = name == "Pow" and given[1] == 0
            whole = power and (number(node.inputs[1]) or 0.5) % 1 == 0
            if (name in ANALYTIC_ON_ONE_SIDE or (power and not whole)) and not self._has_one_branch(
                node
            ):
                return f"{'power' if power else f'function {name.lower()}'} of what may be 0,"
            if (
                name in ANALYTIC_OPERATIONS
                or name in MATRIX_OPERATIONS
                or name == "TrueDiv"
                or power
            ):
                return 1
            # on one side of 0 the sign is a constant, |t| is ± t, and log Γ has no pole
            if name in ("Sign", "Abs", "GammaLn") and node.inputs[0] in self.positive:
                return 0 if name == "Sign" else 1
            if name in COMPARISONS and self._guards_support(node):
                return 0
        outcome = super().rule(node, given)
        # a polynomial is analytic, of whatever degree it is
        return outcome if isinstance(outcome, str) or outcome == math.inf else min(outcome, 1)

    def _has_one_branch(self, node: Apply) -> bool:
        """Return whether the argument of a root or a logarithm keeps to one side of its branch."""
        v = bare(node.inputs[0])
        function = elementwise_name(node.outputs[0])
        name = elementwise_name(v)
        # log(1 + t²) is analytic on all of ℝ, for its argument stays above 1
        even = name == "Sqr" or (name == "Pow" and (exponent(v.owner) or 0.5) % 2 == 0)
        if function == "Log1p" and even:
            return True
        if name == "Sub":  # 1 − t
            one, rest = v.owner.inputs
            # log(1 − t) is finite on one interval of t alone, and analytic there
            if rest in self.positive and self.of(one) == 0:
                return True
        # a sum of seeds is positive on a half-space, which is connected: one branch
        return self._has_one_sign(v) or self._is_sum(v)

    def _has_one_sign(self, v: Variable) -> bool:
        """Return whether a node is a product of what is positive and of what no seed enters."""
        if v in self.positive or self.of(v) == 0:
            return True
        node = v.owner
        if node is None or v in self.seeds:
            return False
        if operation(node)[1] in SHAPE_CHANGES:
            return self._has_one_sign(node.inputs[0])
        values = node.inputs[1:] if elementwise_name(v) == "Second" else node.inputs
        return elementwise_name(v) in PRODUCTS_OF and all(map(self._has_one_sign, values))

    def _guards_support(self, node: Apply) -> bool:
        """Return whether a node compares a value with itself, what has one sign with 0, a positive
        value with one that is not positive, a seed with a number beyond its bounds, or an infinity
        with a sum or with the logarithm of a positive value."""
        one, other = node.inputs
        aligned = bare(one).type.ndim <= 1 and one.type.broadcastable == other.type.broadcastable
        if bare(one) is bare(other) and aligned:
            return True
        for subject, bound in (node.inputs, node.inputs[::-1]):
            limit = number(bound)
            inside = bare(subject)
            if limit is None:
                continue
            if math.isinf(limit):
                # log t = −∞ only at t = 0, which is outside the support: false throughout
                log = elementwise_name(inside) == "Log"
                if (log and self._has_one_sign(inside.owner.inputs[0])) or self._is_sum(inside):
                    return True
                continue
            low, high = self.between.get(inside, (-math.inf, math.inf))
            if limit <= low or limit >= high or (limit <= 0.0 and subject in self.positive):
                return True
            if limit == 0.0 and self._has_one_sign(inside):
                return True
        return False

    def _is_sum(self, v: Variable) -> bool:
        """Return whether a node is a sum of seeds, which are finite, and of what they do not
        enter."""
        inside = bare(v)
        if inside in self.seeds or self.of(inside) == 0:
            return True
        sums = elementwise_name(inside) in ELEMENTWISE
        return sums and all(map(self._is_sum, inside.owner.inputs))
