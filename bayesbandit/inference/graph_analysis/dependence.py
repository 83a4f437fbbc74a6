"""An analysis of dependence: which inputs the values of a variable may depend on.

An input on which only the shape depends does not count. It is sound: the outputs of an operation
without a rule depend on all of its inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pytensor.graph.basic import Apply, Variable

from bayesbandit.inference.graph_analysis.operations import (
    elementwise_name,
    kind,
    operation,
)
from bayesbandit.inference.graph_analysis.scaling import SIZED, sizes_by_value
from bayesbandit.inference.graph_analysis.walk import Walk

Names = frozenset[str]


class Influence(Walk[Names]):
    """The names of the seeds that the values of nodes between `seeds` and `outputs` may depend
    on."""

    def __init__(
        self, outputs: Sequence[Variable], seeds: Mapping[Variable, Collection[str]]
    ) -> None:
        super().__init__(outputs, {v: frozenset(names) for v, names in seeds.items()})
        self._size: dict[Variable, Names] = {}  # what shapes may depend on
        self.walk(self.nodes, self.values)

    def root(self, variable: Variable) -> Names:
        """Return no names: a constant depends on none."""
        return frozenset()

    def visit(self, node: Apply, given: Sequence[Names]) -> Sequence[Names]:
        sized = self._shapes(node)
        if sizes_by_value(node, [len(names) for names in given]):
            sized = sized.union(*given)
        self._size.update(dict.fromkeys(node.outputs, sized))
        return [self.rule(node, given)] * len(node.outputs)

    def rule(self, node: Apply, given: Sequence[Names]) -> Names:
        """Return the names that a node's outputs depend on, given those of its inputs."""
        match kind(node):
            case "elementwise" if elementwise_name(node.outputs[0]) == "Second":
                return given[1]
            case "check":
                return given[0]
            case "shape":
                return self._shapes(node)
            case "move" if operation(node)[1] in SIZED:
                return given[0]
        return frozenset[str]().union(*given)

    def _shapes(self, node: Apply) -> Names:
        """Return the names that the shapes of a node's inputs depend on."""
        return frozenset[str]().union(*(self._size.get(v, frozenset()) for v in node.inputs))


def depends_on(graphs: Sequence[Variable], among: Mapping[str, Variable]) -> Names:
    """Return the names of those variables that the values of some graphs may depend on."""
    influence = Influence(graphs, {v: (name,) for name, v in among.items()})
    return frozenset[str]().union(*map(influence.of, graphs))
