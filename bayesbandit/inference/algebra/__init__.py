"""Computing a graph as sums of monomials."""
