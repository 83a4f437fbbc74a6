"""A description, in words, of the rewards that a model allows, found by trying some."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

FAR = 1e6
WHOLE = np.concatenate([[-FAR], np.arange(-5.0, 101.0), [FAR]])
BROKEN = np.concatenate([[-FAR + 0.5], np.arange(-5.0, 100.0) + 0.4142, [FAR + 0.5]])
ROUNDS, STEPS = 8, 65  # by which an end is found: each makes it 64 times as exact

Open = Callable[[np.ndarray], np.ndarray]  # which of some rewards (m,) are possible


def allowed(possible: Open) -> str:
    """Return in words which rewards of a row are possible; "" if that is not seen."""
    whole, broken = possible(WHOLE), possible(BROKEN)
    if not (whole.any() or broken.any()):
        return ""
    if not broken.any():
        return "; it allows " + _listed(WHOLE[whole])
    tried = np.sort(np.concatenate([WHOLE, BROKEN]))
    fine = tried[possible(tried)]
    low, high = fine[0], fine[-1]
    ends = []
    if low > tried[0]:
        end, closed = _end(possible, float(tried[tried < low][-1]), float(low))
        ends.append(f"{'≥' if closed else '>'} {end:.6g}")
    if high < tried[-1]:
        end, closed = _end(possible, float(tried[tried > high][0]), float(high))
        ends.append(f"{'≤' if closed else '<'} {end:.6g}")
    return f"; it allows rewards {' and '.join(ends)}" if ends else ""


def _listed(whole: np.ndarray) -> str:
    """Return the possible whole numbers in words, as far as they were tried."""
    if whole[-1] == FAR:
        return f"whole numbers ≥ {whole[0]:g}" if whole[0] > -FAR else "whole numbers"
    if len(whole) > 8 and np.ptp(whole) == len(whole) - 1:
        return f"{whole[0]:g}, {whole[1]:g}, …, {whole[-1]:g}"
    return ", ".join(f"{k:g}" for k in whole[:20])


def _end(possible: Open, outside: float, inside: float) -> tuple[float, bool]:
    """Return where rewards begin to be possible, between two rewards, and whether the end itself
    is."""
    for _ in range(ROUNDS):
        tried = np.linspace(outside, inside, STEPS)
        first = int(possible(tried).argmax())
        outside, inside = float(tried[max(first - 1, 0)]), float(tried[first])
    end = round(inside, 9)
    return end, bool(possible(np.array([end]))[0])
