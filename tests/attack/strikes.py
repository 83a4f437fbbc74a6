"""Errors at any line of the package."""

import os
import sys

import bayesbandit as bb

PACKAGE = os.path.dirname(os.path.abspath(bb.__file__))


class Struck(BaseException):
    """An injected error."""


def strike(act, at):
    """Whether `act` got through, though the `at`-th line of the package that it runs fails."""
    left = at

    def trace(frame, event, arg):
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise Struck
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except Struck:
        return False
    finally:
        sys.settrace(before)
    return True
