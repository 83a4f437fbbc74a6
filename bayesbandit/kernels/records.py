"""Numbers as a record: views by name, at no cost."""

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import lower_builtin, type_callable


def as_record(numbers: np.ndarray, kind: np.dtype) -> Any:
    """Return the first numbers of a contiguous array as a record of this type: a view.

    Kernels take the address alone. `numbers.view(kind)[0]` is the same, but numba would compile all
    that it may mean at every place, a tenth of a second each.
    """
    return numbers[: kind.itemsize // numbers.itemsize].view(kind)[0]


@type_callable(as_record)
def _typed(context: Any) -> Any:
    def typer(numbers: Any, kind: Any) -> Any:
        if isinstance(numbers, types.Array) and numbers.is_contig and numbers.ndim == 1:
            return kind.dtype
        return None

    return typer


@lower_builtin(as_record, types.Array, types.DType)
def _lowered(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    numbers = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.bitcast(numbers.data, context.get_value_type(signature.return_type))
