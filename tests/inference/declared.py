"""PyMC models built by hand, with the data containers and names of `RewardModel.build`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm

from bayesbandit.declaring.declaration import DATA_NAMES

FAST = "FAST_COMPILE"


def rows(seed: int = 0, n: int = 30, d: int = 3, arms: int | None = None) -> dict[str, np.ndarray]:
    """x (n, d), reward, weight (n,), and arm (n,) of that many arms."""
    rng = np.random.default_rng(seed)
    data = {
        "x": rng.normal(size=(n, d)),
        "reward": rng.normal(1.0, 1.0, size=n),
        "weight": rng.uniform(0.5, 2.0, n),
    }
    return data if arms is None else data | {"arm": rng.integers(0, arms, n)}


def built(declare: Callable[..., Any], data: dict[str, np.ndarray]) -> pm.Model:
    """The model that `declare(x, reward, weight[, arm])`, which returns the mean reward, builds."""
    coords = {"feature": range(data["x"].shape[1])}
    if "arm" in data:
        coords["arm"] = range(int(data["arm"].max()) + 1)
    with pm.Model(coords=coords) as model:
        dims = dict.fromkeys(data, ("row",)) | {"x": ("row", "feature")}
        inputs = {role: pm.Data(DATA_NAMES[role], v, dims=dims[role]) for role, v in data.items()}
        mean = declare(**inputs)
        pm.Deterministic("mean_reward", getattr(mean, "values", mean), dims="row")
    return model


def log_densities(model: pm.Model, points: list[dict[str, np.ndarray]]) -> np.ndarray:
    """PyMC's own log density at some points, one for each."""
    logp = model.compile_logp(mode=FAST, jacobian=False)
    return np.array([float(logp(point)) for point in points])


def constant(values: np.ndarray, size: np.ndarray, tolerance: float = 1e-9) -> bool:
    """Whether all values are the same, next to the size of what they are differences of."""
    return bool(np.ptp(values) <= tolerance * max(1.0, np.abs(size).max()))
