"""Arrays that a kernel reads and writes without counting who holds them.

Numba counts the holders of an array at every slice and call, by two atomic operations each: half of
the time of a round. The caller of a kernel holds its arrays all along, so that a kernel may borrow
them; what it allocates itself it must name in `held` behind its last use.
"""

from typing import Any

from numba import njit, types
from numba.extending import intrinsic


@intrinsic
def uncounted(context: Any, array: types.Array) -> Any:
    """The array without a holder, as compiled code sees it."""

    def view(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(array)(context, builder, args[0])
        view.meminfo = view.meminfo.type(None)
        view.parent = view.parent.type(None)
        return view._getvalue()

    return array(array), view


@njit(cache=True)
def borrowed(array):
    """The same array, whose slices nobody counts."""
    return uncounted(array)  # type: ignore[call-arg]  # numba puts the context in


@njit(cache=True)
def held(array):
    """Does nothing: up to here an array is alive of which a part was borrowed."""
