"""From a declared reward model and rows of data to its posterior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesbandit import checks
from bayesbandit.engines.base import NotThisEngine, one_thread
from bayesbandit.engines.density import containers
from bayesbandit.engines.draws import SampledDraws
from bayesbandit.engines.plan import ENGINES, Plan, planned
from bayesbandit.model import RewardModel
from bayesbandit.posterior import Posterior


def fit(
    model: RewardModel,
    x: Any,
    reward: Any,
    weight: Any = None,
    engine: str = "auto",
    seed: int | np.random.SeedSequence | None = None,
    draws: int = 1000,
    chains: int = 4,
    n_arms: int | None = None,
    arm: Any = None,
) -> Posterior:
    """The posterior given contexts x (n, d), rewards (n,), weights > 0 (n,) and, for a model over
    arms, the arm 0 … K − 1 of each row.

    engine: "auto" for the fastest that is exact or samples the posterior itself, "exact" for a
    closed form, or a name: "exact_gaussian", "normal_inverse_gamma", "gibbs", "nuts", "laplace",
    "advi". One that does not fit raises `NotThisEngine` with the reason. draws, chains: of a
    sampler. seed: the same seed gives the same posterior; without one, another every time.
    """
    if not isinstance(model, RewardModel):
        raise TypeError(f"model must be a RewardModel; got {model!r}")
    checks.one_of(engine, "engine", ENGINES)
    checks.integer(draws, "draws", 4)
    checks.integer(chains, "chains", 1)
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(None if seed is None else checks.integer(seed, "seed"))
    if not model.takes_arm and n_arms is not None:
        raise ValueError(f"{model.name} does not take `arm`; n_arms must be None")
    built = model.build(x, reward, weight, arm, n_arms)
    rows = {role: np.asarray(v.get_value()) for role, v in containers(built).items()}
    number = int(seed.generate_state(1, np.uint64)[0])
    chosen = planned(model, built, engine)
    while True:
        try:
            known = _posterior(chosen, rows, draws, chains, number)
            break
        except NotThisEngine as error:
            if engine not in ("auto", "exact"):
                raise
            chosen = chosen.without(error.refusal)
    if isinstance(known, SampledDraws):
        known.diagnostics.warn(f"{model.name} by {chosen.engine}")
    features = tuple(x.columns) if hasattr(x, "columns") else None
    return Posterior(chosen, rows, known, number, features)


def _posterior(
    plan: Plan, rows: Mapping[str, np.ndarray], draws: int, chains: int, seed: int
) -> Any:
    """The distribution, or draws of it; an engine whose closed form or kernel these rows do not
    bear out refuses."""
    if plan.closed_form:
        with one_thread():
            return plan.method.posterior(**rows)
    return plan.sample(rows, draws, chains, seed)
