"""Reads a graph for whether it is one analytic function of its seeds, whatever their values are.

It says where `form` may be believed: an independent reading of a log density by evaluation, to be
held against `bayesbandit/inference/algebra`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytensor.graph.basic import Apply, Variable
from pytensor.raise_op import CheckAndRaise

from bayesbandit.inference.graph_analysis.degrees import Analytic, Outcome
from bayesbandit.inference.graph_analysis.operations import (
    COMPARISONS,
    MOVES,
    bare,
    elementwise_name,
    number,
    operation,
)

BRANCHED = {"Sqrt", "Log", "Log2", "Log10", "Log1p", "Log1mexp"}  # where the argument may be 0
ONE_SIGN = {
    "Mul",
    "TrueDiv",
    "Reciprocal",
    "Sqrt",
    "Pow",
    "Neg",
    "Abs",
    "Identity",
    "Second",
    "Switch",
}


class OneBranch(Analytic):
    """1 where a node is one analytic function of the seeds, 0 where it does not depend on them,
    else ∞.

    √(θ²) is analytic on either side of 0, and not the same function there: so roots and logarithms
    are taken of what has one sign, whatever the seeds are. between: the bounds of the positive
    seeds; a comparison with a number beyond these is a constant.
    """

    def __init__(
        self,
        outputs: Sequence[Variable],
        seeds: Sequence[Variable],
        between: Mapping[Variable, tuple[float, float]],
    ) -> None:
        self.between = dict(between)
        self.one_sign = set(between)
        super().__init__(outputs, dict.fromkeys(seeds, 1.0), list(between))

    def visit(self, node: Apply, given: Sequence[float]) -> Sequence[float]:
        values = super().visit(node, given)
        if self._keeps_sign(node, given):
            self.one_sign.update(node.outputs)
        return values

    def rule(self, node: Apply, given: Sequence[float]) -> Outcome:
        name = elementwise_name(node.outputs[0])
        if name in COMPARISONS:
            decided = self._decided(node) or super().rule(node, given) == 0
            return 0 if decided else "comparison"
        power = name == "Pow" and given[1] == 0 and not _is_whole(number(node.inputs[1]))
        if (name in BRANCHED or power) and not self._has_one_sign(node.inputs[0]):
            return f"{'power' if power else 'function ' + name.lower()} of what may be 0"
        return super().rule(node, given)

    def _behind(self, output: Variable) -> Iterator[Apply]:
        """Yield the nodes that an output is computed by; a check of parameters is not one."""
        left, seen = [output], set[Variable]()
        while left:
            v = left.pop()
            if v.owner is None or v in seen or v in self.seeds:
                continue
            seen.add(v)
            yield v.owner
            inputs = v.owner.inputs
            left += inputs[:1] if isinstance(v.owner.op, CheckAndRaise) else inputs

    def _decided(self, node: Apply) -> bool:
        """Return whether a seed is compared with a number beyond its bounds."""
        for subject, bound in (node.inputs, node.inputs[::-1]):
            limit, known = number(bound), self.between.get(bare(subject))
            if limit is not None and known is not None:
                return limit <= known[0] or limit >= known[1]
        return False

    def _has_one_sign(self, v: Variable) -> bool:
        return self.of(v) == 0 or v in self.one_sign or v in self.positive

    def _keeps_sign(self, node: Apply, given: Sequence[float]) -> bool:
        moved = operation(node)[1] in MOVES or isinstance(node.op, CheckAndRaise)
        if moved:
            return self._has_one_sign(node.inputs[0])
        name = elementwise_name(node.outputs[0])
        values = node.inputs[1:] if name in ("Switch", "Second") else node.inputs
        return name in ONE_SIGN and all(map(self._has_one_sign, values))


def _is_whole(k: float | None) -> bool:
    return k is not None and k == int(k)
