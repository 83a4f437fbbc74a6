"""Numbers as a record: views by name, at no cost."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import from_dtype, types
from numba.extending import lower_builtin, type_callable


def record_view(kind: np.dtype) -> Callable[[np.ndarray], Any]:
    """Return a function that gives the first numbers of a contiguous array as a record: a view.

    A kernel takes their address. Of `numbers.view(kind)[0]` numba would compile all that it may
    mean, at every place, in a tenth of a second each.
    """
    width = kind.itemsize // 8

    def view(numbers: np.ndarray) -> Any:
        return numbers[:width].view(kind)[0]

    @type_callable(view)
    def typed(_context: Any) -> Any:
        record = from_dtype(kind)

        def typer(numbers: Any) -> Any:
            is_plain = isinstance(numbers, types.Array) and numbers.ndim == 1 and numbers.is_contig
            return record if is_plain else None

        return typer

    @lower_builtin(view, types.Array)
    def lowered(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.bitcast(numbers.data, context.get_value_type(signature.return_type))

    return view
