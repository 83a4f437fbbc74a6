"""Arrays that a kernel reads and writes without counting who holds them.

Numba counts the holders of an array at every slice and call, by two atomic operations each: half of
the time of a round. The caller of a kernel holds its arrays all along, so that a kernel may borrow
them; what it allocates itself it must name in `keep_alive` behind its last use.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic

from bayesbandit.runtime.compiling import njit


def _alone(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return an array without a holder, or a tuple of them; anything else unchanged."""
    if isinstance(kind, types.Array):
        view = context.make_array(kind)(context, builder, value)
        view.meminfo = view.meminfo.type(None)
        view.parent = view.parent.type(None)
        return view._getvalue()
    for i, part in enumerate(getattr(kind, "types", ())):
        alone = _alone(context, builder, part, builder.extract_value(value, i))
        value = builder.insert_value(value, alone, i)
    return value


@intrinsic
def uncounted(context: Any, held: Any) -> Any:
    """Call `_alone` in compiled code."""
    return held(held), lambda c, builder, signature, args: _alone(c, builder, held, args[0])


@njit(cache=True)
def unmanaged(array):
    """Return the same array, or tuple of arrays, such that nobody counts its slices."""
    return uncounted(array)  # type: ignore[call-arg]  # numba puts the context in


@njit(cache=True)
def keep_alive(array):
    """Do nothing. Until this call an array, or a tuple of arrays, stays alive, though parts of it
    are lent."""
