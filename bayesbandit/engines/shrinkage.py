from __future__ import annotations
class Shrinkage: ...
def recognised(*a):
    return None
