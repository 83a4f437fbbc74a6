"""Mean rewards at new contexts, as a posterior predicts them, held against PyMC's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.hunt.exact import EXACT, Moments, Unjudged, Wrong, compare
from tests.hunt.truth import Truth


def contexts(truth: Truth, rng: np.random.Generator, n: int = 7) -> np.ndarray:
    """Contexts unlike the rows: each column's values by themselves, those that are no ids a half
    as large again."""
    x = truth.rows["x"]
    new = np.stack([rng.choice(column, n) for column in x.T], axis=1)
    whole = (x == np.floor(x)).all(axis=0) | (x > 0).all(axis=0)
    return np.where(whole, new, 1.5 * new)


def over_arms(truth: Truth, draw: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """Mean rewards (n,), or (n, K) of a model over arms, under one draw."""
    if not truth.model.takes_arm:
        return truth.mean_reward(draw, x)
    K = truth.n_arms or 1
    return np.stack([truth.mean_reward(draw, x, arm=k) for k in range(K)], axis=1)


def mean_function(truth: Truth, draw: Mapping[str, np.ndarray], rng: np.random.Generator) -> None:
    """A mean that depends on rewards or weights is no function of the context: nothing that is
    predicted by it can be right."""
    x = contexts(truth, rng)
    try:
        base = over_arms(truth, draw, x)
        other = truth.mean_reward(draw, x, reward=[7.0, 1e5, -3.0])
        heavy = truth.mean_reward(draw, x, weight=[2.0, 1e5, 1e-5])
    except Exception as error:
        raise Unjudged(f"no prediction: {type(error).__name__}") from None
    base = base if base.ndim == 1 else base[:, 0]
    for moved, of in ((other, "rewards"), (heavy, "weights")):
        if not np.allclose(base, moved, rtol=1e-9, atol=1e-12, equal_nan=True):
            raise Wrong(f"answered, although the returned mean depends on the {of}")


def asked(posterior: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Means and sds of the mean reward; None where they are refused, because that of a context
    depends on other rows."""
    try:
        return posterior.mean(x), posterior.sd(x)
    except ValueError as error:
        if "depends on other rows" in str(error):
            return None
        raise


def predictions(
    truth: Truth, posterior: Any, right: Moments, settled: bool, rng: np.random.Generator
) -> None:
    """Holds mean rewards at new contexts against PyMC's, where these are affine in θ."""
    zero = truth.constrained(np.zeros(truth.dim))
    shapes = {k: v.shape for k, v in zero.items()}
    sizes = [int(np.prod(s)) for s in shapes.values()]

    def split(vector: np.ndarray) -> dict[str, np.ndarray]:
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        return {k: p.reshape(s) for (k, s), p in zip(shapes.items(), parts, strict=True)}

    mean_function(truth, split(right.mean), rng)
    x = contexts(truth, rng)
    rows_alone = np.stack(
        [over_arms(truth, split(right.mean), x[i : i + 1])[0] for i in range(len(x))]
    )
    together = over_arms(truth, split(right.mean), x)
    found = asked(posterior, x)
    if not np.allclose(rows_alone, together, rtol=1e-9, atol=1e-9 * np.abs(together).max()):
        if found is not None:
            raise Wrong("predicted, although the mean of a context depends on other rows")
        return
    unit = np.sqrt(np.diag(right.covariance))
    A = np.stack(
        [(over_arms(truth, split(right.mean + s * e), x) - together) / s
         for s, e in zip(unit, np.eye(len(unit)), strict=True) if s > 0], axis=-1,
    )  # fmt: skip
    keep = unit > 0
    far = right.mean + 3.0 * unit * rng.normal(size=len(unit))
    affine = np.allclose(
        over_arms(truth, split(far), x), together + A @ (far - right.mean)[keep],
        rtol=1e-6, atol=1e-6 * np.abs(A @ unit[keep]).max(),
    )  # fmt: skip
    if not affine:
        return
    sd = np.sqrt(
        np.maximum(np.einsum("...i,ij,...j->...", A, right.covariance[np.ix_(keep, keep)], A), 0)
    )
    if found is None:
        return
    said, spread = found
    alone = np.stack([posterior.mean(x[i : i + 1])[0] for i in range(len(x))])
    floor = 1e-9 * np.abs(together).max() + EXACT * sd.max()
    if not np.allclose(said, alone, rtol=1e-7, atol=floor):
        raise Wrong("contexts together are predicted unlike each alone")
    if np.shape(said) != np.shape(together):
        raise Wrong(f"predicted means have shape {np.shape(said)}, right {np.shape(together)}")
    if settled and np.isfinite(spread).all():
        loose = (sd > 1e-6 * sd.max()) & (sd > 1e-11 * np.abs(together))  # differences of sums
        compare("mean reward", (said[loose], spread[loose]), (together[loose], sd[loose]), 2e-3)
    elif not np.allclose(said, together, atol=floor + 1e-2 * sd.max()):
        raise Wrong("mean reward: not the right one")
