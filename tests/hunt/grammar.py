"""Random declarations, written as users of PyMC write them, and rows unlike any template's.

A declaration is a path of choices, each an integer below a bound; 0 is always the simplest, so that
both hypothesis and `shrunk` make a failure short.
"""

from __future__ import annotations

from tests.hunt.case import Case
from tests.hunt.draft import Choices, Draft
from tests.hunt.likelihoods import likelihood, means
from tests.hunt.priors import coefficients, noise, potentials


def declaration(c: Choices) -> Case:
    """A random declaration on random rows."""
    arms = c.pick(0, 0, 0, 0, 1, 2, 3, 4)
    draft = Draft(d=c.pick(2, 1, 3, 4, 6), K=arms)
    draft.columns = c.pick(
        "real", "real", "real", "whole", "ids", "ids", "positive", "constant", "far"
    )
    noise(c, draft)
    coefficients(c, draft)
    mean = means(c, draft)
    returned = likelihood(c, draft, mean)
    potentials(c, draft)
    stream, source = c.chance(60), draft.source(returned)
    return Case(source, rows(c, draft, source), draft.change, stream, kind="drawn")


def rows(c: Choices, draft: Draft, source: str) -> str:
    """Rows for a declaration, as source."""
    n = c.pick(40, 12, 25, 8, 60, 30, 5, 120, 3, 1, 20, 500)
    if n <= 3 and any(mark in line for line in draft.lines for mark in ("[:-", "Minibatch")):
        n = 40
    d, seed = draft.d, c.below(10_000)
    size = c.pick("1", "1", "1", "10", "1e-3", "1e3", "1e-6", "1e6")
    columns = {
        "real": f"{size} * rng.normal(size=(n, {d}))",
        "whole": f"rng.integers(-3, 4, size=(n, {d})).astype(float)",
        "ids": f"np.column_stack([rng.integers(0, 8, n), rng.normal(size=(n, {d - 1}))]).astype(float)",
        "positive": f"np.exp(rng.normal(size=(n, {d})))",
        "constant": f"np.column_stack([np.ones(n), rng.normal(size=(n, {d - 1}))])",
        "far": f"{c.pick(5, 100, 1000)} + 20 * rng.normal(size=(n, {d}))",
    }[draft.columns]
    lines = [f"rng = np.random.default_rng({seed})", f"n = {n}", f"x = {columns}"]
    unit = "x / np.maximum(1e-9, abs(x).max())" if draft.columns in ("real", "far") else "x"
    signal = f"({unit}) @ rng.normal(size={d})"
    if draft.rewards != "real":
        lines.append(
            "reward = "
            + (
                "(rng.random(n) < 0.4).astype(float)"
                if draft.rewards == "binary"
                else "rng.poisson(3, n).astype(float)"
            )
        )
    else:
        lines.append("reward = " + c.pick(
        f"{signal} + rng.normal(size=n)", f"10 * ({signal}) + rng.normal(size=n)",
        f"{signal} + rng.standard_t(3, size=n)", "(rng.random(n) < 0.4).astype(float)",
        f"{c.pick('1e3', '1e6')} + {signal} + rng.normal(size=n)",
        f"{c.pick('1e-4', '1e3', '1e5')} * ({signal} + rng.normal(size=n))",
        "rng.poisson(3, n).astype(float)", "np.zeros(n)", f"np.exp({signal} + rng.normal(size=n))",
    ))  # fmt: skip
    if "weight" in source:
        lines.append(
            "weight = "
            + c.pick("np.ones(n)", "rng.uniform(0.5, 2.0, n)", "10.0 ** rng.uniform(-2, 2, n)")
        )
    if draft.arm:
        lines += [f"K = {draft.K}", f"arm = rng.integers(0, {draft.K}, n)"]
    return "\n".join(lines)
