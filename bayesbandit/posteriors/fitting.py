"""The function `fit`, which computes the posterior of a declared reward model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit import checks
from bayesbandit.checks import Contexts
from bayesbandit.inference.base import Engine
from bayesbandit.inference.draws import Known, SampledDraws
from bayesbandit.inference.graph_analysis.density import rows_of
from bayesbandit.inference.nuts import Nuts
from bayesbandit.inference.plan import Plan, naming_the_model, plan, plan_of_built
from bayesbandit.inference.registry import choices, engines
from bayesbandit.model import RewardModel
from bayesbandit.posteriors.posterior import Posterior
from bayesbandit.tables.encoder import Encoder


def fit(
    model: RewardModel,
    x: Contexts,
    reward: ArrayLike,
    weight: ArrayLike | None = None,
    engine: str = "auto",
    seed: int | np.random.SeedSequence | None = None,
    draws: int = 1000,
    chains: int = 4,
    n_arms: int | None = None,
    arm: ArrayLike | None = None,
    *,
    tune: int | None = None,
    target_accept: float | None = None,
    cores: int | None = None,
    encoder: Encoder | None = None,
    progress: bool = False,
) -> Posterior:
    """Return the posterior of a model given rows of data.

    x: contexts (n, d). It may be None if no variable of the model has the dimension "feature".
    reward, weight: (n,), weights > 0.
    arm: for a model over arms, the arm 0 … K − 1 of each row; n_arms: K.
    engine: "auto" for the fastest engine that is exact or samples the exact posterior, "exact" for
    a closed form, or a name: "exact_gaussian", "normal_inverse_gamma", "conjugate", "gibbs",
    "nuts", "laplace", "advi". An engine that does not fit raises `NotThisEngine` with the reason.
    draws, chains: the draws of each chain, and the chains, of a sampler.
    seed: the same seed gives the same posterior. Without a seed every call gives another one.
    encoder: a `bb.Encoder`; x is then a table, here and in the posterior's methods.

    The samplers' own settings follow; None leaves the choice to the sampler. Raise ValueError for
    one that the engine does not have.

    tune: sweeps to discard before the draws ("gibbs", "nuts").
    target_accept: the acceptance rate in (0, 1) for which the step size is tuned ("nuts").
    cores: how many chains run at a time ("nuts").
    progress: whether "nuts" shows a bar; the other engines are quick.
    """
    if not isinstance(model, RewardModel):
        raise TypeError(f"model must be a RewardModel; got {model!r}")
    checks.one_of(engine, "engine", choices())
    checks.integer(draws, "draws", 4)
    checks.integer(chains, "chains", 1)
    asked: dict[str, Any] = {"tune": tune, "target_accept": target_accept, "cores": cores}
    knobs = checks.without_none(asked)
    if tune is not None:
        checks.integer(tune, "tune")
    if target_accept is not None:
        checks.number(target_accept, "target_accept", above=0, below=1)
    if cores is not None:
        checks.integer(cores, "cores", 1)
    checks.one_of(progress, "progress", (False, True))
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(None if seed is None else checks.integer(seed, "seed"))
    checks.same_rows(x=x, reward=reward, weight=weight, arm=arm)
    features = tuple(checks.column_names(x)) if isinstance(x, checks.Table) else None
    if encoder is not None:
        if not isinstance(encoder, Encoder):
            raise TypeError(f"encoder must be a bb.Encoder; got {checks.shown(encoder)}")
        x = encoder.transform(x)
        features = encoder.features
    built = model.build(x, reward, weight, arm, n_arms)
    rows = rows_of(built)
    number = int(seed.generate_state(1, np.uint64)[0])

    def known_by(plan: Plan) -> Known:
        _check_knobs(knobs, plan.chosen, model.name)
        if plan.closed_form:
            return plan.posterior(rows)
        plan.check_possible(rows)
        if glm := plan.linearized:
            return glm.approximated(rows)
        shown = {"progress": True} if progress and isinstance(plan.method, Nuts) else {}
        return plan.sample(rows, draws, chains, number, **knobs, **shown)

    with naming_the_model(model, "these rows"):
        first = plan_of_built(model, built, engine)
        chosen, results = first.try_engines(known_by)
        if chosen is not first or any(refusal.of_rows for refusal in chosen.refusals):
            _warn_of_another(chosen)
    if isinstance(results, SampledDraws):
        results.diagnostics.warn(f"{model.name} by {chosen.engine}")
    return Posterior(chosen, rows, results, number, features, encoder)


def _warn_of_another(chosen: Plan) -> None:
    """Warn if these rows were refused by the engine that `explain` names."""
    try:
        named = plan(chosen.model, chosen.n_features, chosen.n_arms, chosen.asked).engine
    except ValueError:  # `explain` names none, since the model takes no trial rows
        return
    for refusal in chosen.refusals:
        if refusal.engine == named:
            what = f"{chosen.model.name} by {chosen.engine}: {named}, the engine that `explain`"
            warnings.warn(f"{what} names, does not fit these rows: {refusal}", stacklevel=3)


def _check_knobs(knobs: Mapping[str, Any], engine: Engine, name: str) -> None:
    """Raise ValueError for a sampler setting that the engine does not have, or not so small."""
    for knob in knobs:
        if knob not in engine.knobs:
            have = " and ".join(repr(e.name) for e in engines if knob in e.knobs)
            raise ValueError(f"{knob} is a knob of {have}; the engine of {name} is {engine.name!r}")
    if "tune" in knobs:
        checks.integer(knobs["tune"], f"tune, of {engine.name!r},", engine.least_tune)
