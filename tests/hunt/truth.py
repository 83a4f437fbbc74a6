"""What a declaration says of its rows: PyMC's log density and mean reward, and no engine's word.

The model is built afresh on the rows themselves. θ is the vector of all free variables in PyMC's
unconstrained space (D,), in the order of `names`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace, vectorize_graph

from bayesbandit.declaring.declaration import DATA_NAMES
from bayesbandit.model import RewardModel

MODE = "FAST_COMPILE"
FEW = 200  # θ that are judged one by one
LARGEST = 4_000_000  # numbers in a batch's intermediate results

Rows = Mapping[str, np.ndarray]


class Truth:
    """The log density of a model of rows x (n, d), reward, weight, arm (n,), by role."""

    def __init__(self, model: RewardModel, rows: Rows, n_arms: int | None = None) -> None:
        self.model, self.rows, self.n_arms = model, dict(rows), n_arms
        data = (rows["x"], rows["reward"], rows.get("weight"), rows.get("arm"))
        self.built: pm.Model = model.build(*data, n_arms if model.takes_arm else None)
        self.free = list(self.built.free_RVs)
        self.names = [v.name for v in self.free]
        self.values = [self.built.rvs_to_values[v] for v in self.free]
        start = self.built.initial_point(0)
        self.shapes = [np.shape(start[v.name]) for v in self.values]
        self.sizes = [int(np.prod(shape)) for shape in self.shapes]
        self.dim = sum(self.sizes)
        self.transformed = [self.built.rvs_to_transforms[v] is not None for v in self.free]
        self._logp = self.built.compile_logp(mode=MODE).f

    def logp(self, theta: np.ndarray) -> float:
        """Log density of θ (D,), with the Jacobian of the transforms."""
        with np.errstate(all="ignore"):
            value = float(self._logp(**self._point(theta)))
        return -np.inf if np.isnan(value) else value

    def logps(self, thetas: np.ndarray) -> np.ndarray:
        """`logp` of many θ (S, D): (S,); one by one where PyTensor's batches of it are not that."""
        n = len(self.rows["x"])
        size = max(8, LARGEST // (n * (n + self.dim)))
        if self._batched is None or len(thetas) < FEW:
            return np.array([self.logp(theta) for theta in thetas])
        found = []
        for start in range(0, len(thetas), size):
            part = thetas[start : start + size]
            columns = np.split(part, np.cumsum(self.sizes)[:-1], axis=1)
            values = [c.reshape(len(part), *shape)
                      for c, shape in zip(columns, self.shapes, strict=True)]  # fmt: skip
            try:
                with np.errstate(all="ignore"):
                    found.append(np.broadcast_to(self._batched(*values), len(part)))
            except (
                ValueError,
                np.linalg.LinAlgError,
            ):  # a parameter of one of them is out of bounds
                found.append(np.array([self.logp(theta) for theta in part]))
        logs = np.concatenate(found)
        logs[np.isnan(logs)] = -np.inf
        some = np.linspace(0, len(thetas) - 1, 5).astype(int)
        alone = np.array([self.logp(thetas[i]) for i in some])
        if np.allclose(logs[some], alone, rtol=1e-10, atol=1e-10):
            return logs
        return np.array([self.logp(theta) for theta in thetas])

    @cached_property
    def _batched(self) -> Any:
        try:
            many = {v: pt.tensor(v.name, shape=(None, *v.type.shape), dtype=v.dtype)
                    for v in self.values}  # fmt: skip
            graph = vectorize_graph(self.built.logp(), many)
            return pytensor.function(
                list(many.values()), graph, mode=MODE, on_unused_input="ignore"
            )
        except (NotImplementedError, TypeError, ValueError):  # an operation has no batches
            return None

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """∂ log p / ∂θ (D,); by differences where PyTensor's is not finite though the density is:
        of whole numbers it writes (a / k) / k as a / k², and an int8 of 16 has the square 0."""
        with np.errstate(all="ignore"):
            found = np.asarray(self._dlogp(**self._point(theta)), dtype=np.float64)
        if np.isfinite(found).all() or not np.isfinite(self.logp(theta)):
            return found
        step = 1e-5 * np.maximum(1.0, np.abs(theta))
        ways = [e * h for e, h in zip(np.eye(self.dim), step, strict=True)]
        return np.array([
            (self.logp(theta + way) - self.logp(theta - way)) / (2.0 * h)
            for way, h in zip(ways, step, strict=True)
        ])  # fmt: skip

    @cached_property
    def _dlogp(self) -> Any:
        return self.built.compile_dlogp(mode=MODE).f

    def _point(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        parts = np.split(theta, np.cumsum(self.sizes)[:-1])
        return {
            v.name: part.reshape(shape)
            for v, part, shape in zip(self.values, parts, self.shapes, strict=True)
        }

    def unconstrained(self, draws: Mapping[str, np.ndarray]) -> np.ndarray:
        """θ (S, D) of draws by name, (S, *shape)."""
        columns = []
        size = len(next(iter(draws.values())))
        for s in range(size):
            with np.errstate(all="ignore"):
                parts = self._forward(*(np.asarray(draws[name][s]) for name in self.names))
            columns.append(np.concatenate([np.ravel(part) for part in parts]))
        return np.array(columns).reshape(size, self.dim)

    def constrained(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """The variables by name, of θ (D,)."""
        point = self._point(theta)
        values = self._backward(*(point[v.name] for v in self.values))
        return dict(zip(self.names, map(np.asarray, values), strict=True))

    @cached_property
    def _forward(self) -> Any:
        own = {v: v.type(name=v.name) for v in self.free}
        graphs = []
        for v in self.free:
            transform = self.built.rvs_to_transforms[v]
            graphs.append(
                own[v] if transform is None else transform.forward(own[v], *v.owner.inputs)
            )
        graphs = clone_replace(graphs, own)
        return pytensor.function(list(own.values()), graphs, mode=MODE, on_unused_input="ignore")

    @cached_property
    def _backward(self) -> Any:
        graphs: list[Any] = []
        own: dict[Any, Any] = {}
        for v, value in zip(self.free, self.values, strict=True):
            transform = self.built.rvs_to_transforms[v]
            inputs = clone_replace(list(v.owner.inputs), own) if own else list(v.owner.inputs)
            own[v] = value if transform is None else transform.backward(value, *inputs)
            graphs.append(own[v])
        return pytensor.function(self.values, graphs, mode=MODE, on_unused_input="ignore")

    def mean_reward(
        self, draw: Mapping[str, np.ndarray], x: np.ndarray, arm: Any = 0,
        reward: Any = 0.0, weight: Any = 1.0,
    ) -> np.ndarray:  # fmt: skip
        """Mean rewards (n,) of contexts x (n, d) under one draw: the model that was built on the
        rows, with other data in its containers, as PyMC predicts."""
        n = len(x)
        given = {"x": x, "reward": np.resize(reward, n), "weight": np.resize(weight, n)}
        given["arm"] = np.resize(arm, n)
        arguments = [given[role].astype(v.dtype) for role, v in self._containers.items()]
        return np.asarray(self._mean(*arguments, *(np.asarray(draw[name]) for name in self.names)))

    @cached_property
    def _containers(self) -> dict[str, Any]:
        found = {role: self.built.named_vars.get(name) for role, name in DATA_NAMES.items()}
        return {role: v for role, v in found.items() if v is not None}

    @cached_property
    def _mean(self) -> Any:
        swap = {v: v.type() for v in self._containers.values()}
        own = {v: v.type() for v in self.free}
        [graph] = clone_replace([self.built["mean_reward"]], swap | own)
        inputs = [*swap.values(), *own.values()]
        return pytensor.function(inputs, graph, mode=MODE, on_unused_input="ignore")
