"""The walk over a PyTensor graph that all analyses of graphs share (abstract interpretation).

An analysis is a subclass of `Walk`. It gives every variable of the graph an abstract value V, such
as a polynomial degree. The seeds are the variables whose values are given at the start. A subclass
defines the value of any other input (`constant`), and the values of a node's outputs (`visit`).
Each has a method `rule`, with a case for each class of operation (`operations.kind`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import toposort


class Walk[V](ABC):
    """The nodes between `seeds` and `outputs`, and their values of type V."""

    constant: V

    def __init__(self, outputs: Sequence[Variable], seeds: Mapping[Variable, V]) -> None:
        self.seeds = dict(seeds)
        self.values: dict[Variable, V] = dict(seeds)
        for node in toposort(outputs, blockers=list(seeds)):
            given = [self.of(v) for v in node.inputs]
            self.values.update(zip(node.outputs, self.visit(node, given), strict=True))

    def of(self, variable: Variable) -> V:
        """Return the value of a variable."""
        return self.values.get(variable, self.constant)

    @abstractmethod
    def visit(self, node: Apply, given: Sequence[V]) -> Sequence[V]:
        """Return the values of a node's outputs, given those of its inputs."""
