"""Calls that a bandit refuses, and is as it was."""

import numpy as np

BAD_NUMBERS = [np.nan, np.inf, -np.inf, 1e300, "1", 1j, None, 10**400, np.datetime64("2020")]


def wrong_contexts(x, arm):
    """Calls with contexts that are refused, of a bandit with features."""
    for bad in BAD_NUMBERS:
        row = np.full(x.shape[1:], bad, dtype=object)
        yield lambda b, row=row: b.choose(row)
        yield lambda b, row=row: b.choose([row, row])
        yield lambda b, row=row: b.update([row, row], [arm, arm], [0.0, 1.0])
    masked = np.ma.masked_array(x, mask=np.zeros(x.shape, bool))
    masked[0, ..., 0] = np.ma.masked
    yield lambda b: b.choose(masked)
    yield lambda b: b.choose(masked[0])
    yield lambda b: b.choose([masked[0], masked[1]])
    yield lambda b: b.update(masked, [arm, arm], [0.0, 1.0])
    yield lambda b: b.choose(x[..., :-1])
    yield lambda b: b.choose([x[0], x[1][..., :-1]])


def wrong(x, bandit, pending):
    """Calls that are refused, each with its own."""
    arm = bandit.arms[0]
    if x.shape[-1]:
        yield from wrong_contexts(x, arm)
    for bad in BAD_NUMBERS:
        yield lambda b, bad=bad: b.update(x, [arm, arm], [0.0, bad])
        yield lambda b, bad=bad: b.update(x, [arm, arm], [0.0, 1.0], [0.5, bad])
        if pending:
            decision = pending[0][0]
            n = len(np.atleast_1d(decision.propensity))
            said = bad if decision.rows.ndim == 1 else [bad] * n
            yield lambda b, d=decision, r=said: b.observe(d, r)
    column = np.ma.masked_array([0.0, 1.0], mask=[True, False])
    yield lambda b: b.update(x, [arm, arm], column)
    yield lambda b: b.update(x, np.ma.masked_array([arm, arm], mask=[True, False]), [0.0, 1.0])
    yield lambda b: b.update(x, [arm, arm], [0.0, 1.0], column + 0.5)
    for name in ("nobody", True, 1.0, None, np.nan, b"a", (arm,), np.array([arm])):
        yield lambda b, name=name: b.update(x, [arm, name], [0.0, 1.0])
        yield lambda b, name=name: b.choose(x, [name])
        yield lambda b, name=name: b.remove_arm(name)
    for name in (arm, True, 1.5, None, np.nan, b"a", (arm, arm), ()):
        yield lambda b, name=name: b.add_arm(name)
    yield lambda b: b.choose(x[:0])
    yield lambda b: b.choose(x[None])
    yield lambda b: b.choose(x, [])
    yield lambda b: b.update(x[:0], [], [])
    yield lambda b: b.update(x, [arm], [0.0, 1.0])
    yield lambda b: b.update(x, [arm, arm], [0.0])
    yield lambda b: b.update(x, [arm, arm], [0.0, 1.0], [0.5, 0.0])
    yield lambda b: b.update(x, [arm, arm], [0.0, 1.0], [0.5, 1.1])
    yield lambda b: b.play(x, np.zeros((2, len(b.arms) + 1)))
    yield lambda b: b.play(x, np.full((2, len(b.arms)), np.nan))
    yield lambda b: b.play(x, np.zeros((2, len(b.arms))), every=0)
    yield lambda b: b.observe("decision", 1.0)
    for values in (iter([0.0]), {1.0}, {"a": 1.0}, [[0.0, 1.0]]):
        yield lambda b, values=values: b.update(x, [arm, arm], values)
