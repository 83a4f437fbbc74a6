"""PyTensor's operations by name, in the classes that the analyses of a graph tell apart."""

from __future__ import annotations

from typing import Any

from pytensor.graph.basic import Apply, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.exceptions import NotScalarConstantError

# Operations that move numbers about or add them: the greatest degree of what they are given.
LINEAR_OPERATIONS = {
    *("Alloc", "AllocDiag", "DeepCopyOp", "DimShuffle", "ExpandDims", "ExtractDiag", "Join"),
    *("JoinDims", "MakeVector", "Repeat", "Reshape", "ScalarFromTensor", "SpecifyAssumptions"),
    *("SpecifyShape", "Split", "SplitDims", "Squeeze", "TensorFromScalar", "Unbroadcast", "ViewOp"),
    *("TensorFromXTensor", "XTensorFromTensor", "Rename"),
}
INDEXING = {"Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1"}  # x, then indices
INDEXED_WRITES = {
    "IncSubtensor",
    "AdvancedIncSubtensor",
    "AdvancedIncSubtensor1",
}  # x, y, then indices
SHAPE_OPERATIONS = {"Shape", "Shape_i"}
MATRIX_PRODUCTS = {"Dot", "BatchedDot", "Dot22", "Matmul"}
LINEAR_SOLVES = {"Solve", "SolveTriangular"}  # A, b
ELEMENTWISE = {"Add", "Sub", "Neg", "Identity"}
COMPARISONS = {"EQ", "NEQ", "LT", "LE", "GT", "GE"}
MATRIX_OPERATIONS = {
    "Cholesky",
    "MatrixInverse",
    "Solve",
    "SolveTriangular",
    "CholeskySolve",
    "Det",
}
SHAPE_CHANGES = {
    *("Alloc", "DimShuffle", "ExpandDims", "Squeeze", "Reshape", "SpecifyShape", "ViewOp"),
    *("Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1", "ScalarFromTensor"),
}  # the elements of their first input, elsewhere
SIZE_OPERATIONS = {
    *(
        "Alloc",
        "JoinDims",
        "Repeat",
        "Reshape",
        "SpecifyShape",
        "Split",
        "SplitDims",
        "Unbroadcast",
    ),
}  # x, then lengths
OPERATION_KINDS = {
    **dict.fromkeys(LINEAR_OPERATIONS, "move"),
    **dict.fromkeys(INDEXING, "take"),
    **dict.fromkeys(INDEXED_WRITES, "put"),
    **dict.fromkeys(SHAPE_OPERATIONS, "shape"),
    **dict.fromkeys(MATRIX_PRODUCTS, "product"),
    **dict.fromkeys(LINEAR_SOLVES, "solve"),
    "CumOp": "cumulation",
    "IfElse": "branch",
}
ANALYTIC_OPERATIONS = {
    *("Sqrt", "Exp", "Expm1", "Log", "Log1p", "Log1mexp", "Reciprocal", "Sigmoid", "Softplus"),
    *("Tanh", "Erf", "Erfc", "Erfcx"),
}


def operation(node: Apply) -> tuple[Any, str]:
    """Return a node's operation, taken out of Blockwise, and its name in the tables."""
    op = node.op.core_op if isinstance(node.op, Blockwise) else node.op
    known = type(op).__module__.partition(".")[0] in ("pytensor", "pymc")
    return op, type(op).__name__ if known else f"{type(op).__module__}.{type(op).__name__}"


def kind(node: Apply) -> str:
    """Return the class of a node's operation: the rule that a `walk` takes for it."""
    op, name = operation(node)
    if isinstance(op, Elemwise):
        return "elementwise"
    if isinstance(op, CheckAndRaise):
        return "check"
    return "reduction" if isinstance(op, CAReduce) else OPERATION_KINDS.get(name, "other")


def reduced_by(node: Apply) -> str:
    """Return the name of the operation on numbers that a reduction repeats."""
    return type(operation(node)[0].scalar_op).__name__


def elementwise_name(variable: Variable) -> str:
    """Return the name of the elementwise operation that computes a variable; "" for another
    operation."""
    node = variable.owner
    if node is None or not isinstance(node.op, Elemwise):
        return ""
    return type(node.op.scalar_op).__name__


def operands(variable: Variable) -> list[Variable]:
    """Return the variables from which a variable is computed."""
    return [] if variable.owner is None else list(variable.owner.inputs)


def number(variable: Variable) -> float | None:
    """Return a variable's constant number, through casts, changes of shape and arithmetic; None if
    it is not constant."""
    try:
        return float(get_underlying_scalar_constant_value(variable))
    except NotScalarConstantError:
        return None


def exponent(node: Apply) -> float | None:
    """Return the constant that a Pow node raises to, if there is one."""
    return number(node.inputs[1])


def bare(variable: Variable) -> Variable:
    """Return the variable beneath changes of shape and copies."""
    while variable.owner is not None and (
        operation(variable.owner)[1] in ("DimShuffle", "ExpandDims", "Squeeze", "ViewOp")
        or elementwise_name(variable) == "Identity"
    ):
        variable = variable.owner.inputs[0]
    return variable
