"""One walk over a PyTensor graph, by which every analysis of graphs is made.

An analysis is a domain, a subclass of `Walk`. It says what its values are, what an input without a
seed is (`root`), and what a node is, by a rule for each class of operation (`operations.kind`).
Where a domain has no rule for a class, its rule `other` decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import toposort

from bayesbandit.inference.graph_analysis.operations import (
    elementwise_name,
    kind,
    sizes_by_value,
)


class Walk[V, R](ABC):
    """The nodes between `seeds` and `outputs`, and their values V. A rule returns an R.

    ragged: variables whose shape depends on the seeds, where a domain keeps them (`resized`).
    """

    def __init__(self, outputs: Sequence[Variable], seeds: Mapping[Variable, V]) -> None:
        self.seeds = dict(seeds)
        self.values: dict[Variable, V] = dict(seeds)
        self.ragged: set[Variable] = set()
        self.nodes = list(toposort(outputs, blockers=list(seeds)))

    def walk(self, nodes: Iterable[Apply], values: dict[Variable, V]) -> None:
        """Add the values of nodes, in their order, to those that are known."""
        for node in nodes:
            given = [values[v] if v in values else self.root(v) for v in node.inputs]
            values.update(zip(node.outputs, self.visit(node, given), strict=True))

    def of(self, variable: Variable) -> V:
        """Return the value of a node or an input."""
        return self.values[variable] if variable in self.values else self.root(variable)

    @abstractmethod
    def root(self, variable: Variable) -> V:
        """Return the value of an input that is no seed."""

    @abstractmethod
    def visit(self, node: Apply, given: Sequence[V]) -> Sequence[V]:
        """Return the values of a node's outputs, given those of its inputs."""

    def resized(self, node: Apply, depends: Sequence[float]) -> bool:
        """Return whether the shape of a node's first input depends on the seeds, and note that of
        its outputs. depends: for each input, more than 0 where its value depends on the seeds."""
        inherited = not self.ragged.isdisjoint(node.inputs)
        if inherited or sizes_by_value(node, depends):
            self.ragged.update(node.outputs)
        return inherited and node.inputs[0] in self.ragged

    def rule(self, node: Apply, given: Sequence[V]) -> R:
        """Return what the rule for the class of a node's operation says."""
        match kind(node):
            case "elementwise":
                return self.elementwise(node, elementwise_name(node.outputs[0]), given)
            case "check":
                return self.check(node, given)
            case "reduction":
                return self.reduction(node, given)
            case "shape":
                return self.shape(node, given)
            case "move":
                return self.move(node, given)
            case "take":
                return self.take(node, given)
            case "put":
                return self.put(node, given)
            case "product":
                return self.product(node, given)
            case "solve":
                return self.solve(node, given)
            case "cumulation":
                return self.cumulation(node, given)
            case "branch":
                return self.branch(node, given)
        return self.other(node, given)

    def elementwise(self, node: Apply, name: str, given: Sequence[V]) -> R:
        """Interpret an operation on numbers, applied to arrays that are broadcast together."""
        return self.other(node, given)

    def check(self, node: Apply, given: Sequence[V]) -> R:
        """Interpret the first input, if the conditions that follow hold."""
        return self.other(node, given)

    def reduction(self, node: Apply, given: Sequence[V]) -> R:
        """Interpret a sum, product or the like along axes."""
        return self.other(node, given)

    def shape(self, node: Apply, given: Sequence[V]) -> R:
        """Interpret the shape of an array, or one number of it."""
        return self.other(node, given)

    def move(self, node: Apply, given: Sequence[V]) -> R:
        """Interpret elements of arrays in other places."""
        return self.other(node, given)

    def take(self, node: Apply, given: Sequence[V]) -> R:
        """Interpret parts of the first input, by the indices that follow."""
        return self.other(node, given)

    def put(self, node: Apply, given: Sequence[V]) -> R:
        """Interpret the first input, in which the second is put at the indices that follow."""
        return self.other(node, given)

    def product(self, node: Apply, given: Sequence[V]) -> R:
        """Interpret a product of matrices or vectors."""
        return self.other(node, given)

    def solve(self, node: Apply, given: Sequence[V]) -> R:
        """Interpret the solution x of A x = b, for inputs A and b."""
        return self.other(node, given)

    def cumulation(self, node: Apply, given: Sequence[V]) -> R:
        """Interpret sums or products of more and more elements."""
        return self.other(node, given)

    def branch(self, node: Apply, given: Sequence[V]) -> R:
        """Interpret one input or another, by a condition."""
        return self.other(node, given)

    def other(self, node: Apply, given: Sequence[V]) -> Any:
        """Interpret an operation that the domain has no rule for."""
        raise TypeError(f"{type(self).__name__} has no rule for {node.op}")
