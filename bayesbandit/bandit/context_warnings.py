"""Warnings about contexts that do not suit a model: no constant, two constants, values far from 0.

The encoder is looked at when a bandit is made, and contexts when the number of rounds has doubled.
So a round costs nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.beliefs.base import BeliefModel, Declaring, WithConstant
from bayesbandit.beliefs.shared.belief import Shared
from bayesbandit.tables.encoder import Encoder

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

MIN_ROUNDS_TO_LOOK = 32
MAX_ROWS_TO_READ = 1_000
MIN_ROWS_PER_FEATURE = 4  # to tell whether the features add up to a constant
MIN_ROUNDS_OF_PRIOR = 100.0  # that are worth a warning: 300 rounds keep .78 of a slope of λ = 1
MIN_MEAN = 3.0  # below it a feature is penalised for its scale, and not for its distance from 0
MAX_NAMES_SHOWN = 5
NEVER_AGAIN = -1

HERE = (str(Path(__file__).parents[1]),)  # a warning is of the line that called the package


def at_making(spec: BeliefModel, encoder: Encoder | None, n_arms: int, n_features: int) -> None:
    """Warn if neither encoder nor model has a constant, or both have one."""
    if encoder is None or not isinstance(spec, WithConstant):
        return
    has = spec.has_constant(n_arms, n_features)
    if has and encoder.constant and not _is_without_contexts(spec, n_features):
        _warn(
            f"both the encoder and {_name(spec)} have a constant, and a prior shrinks each: leave "
            f"one out. {_without(spec)}; an encoder has none without constant=True, or as a "
            "formula without '1 +'"
        )
    elif not has and isinstance(_whole(spec), Declaring) and not encoder.spans_constant:
        _warn(f"{_no_constant(spec)} Give the encoder one: {_encoder(encoder)}{_or_model(spec)}")


def look(bandit: Bandit, x: np.ndarray | None = None) -> None:
    """Warn, once for a bandit, if its contexts lack a constant or are far from 0.

    x (n, d) or (n, K, d): contexts that it is about to learn; None: those of its history.
    """
    if bandit.looked == NEVER_AGAIN:
        return
    rounds = bandit.history.total + (0 if x is None else len(x))
    if rounds < MIN_ROUNDS_TO_LOOK or rounds < 2 * bandit.looked:
        return
    spec, d = bandit.spec, bandit.n_features
    if not isinstance(spec, WithConstant) or d == 0:
        bandit.looked = NEVER_AGAIN
        return
    bandit.looked = rounds
    if x is None or len(x) < MIN_ROUNDS_TO_LOOK:
        x = bandit.history.ordered()[:, :d]
    x = x.reshape(-1, d)[-MAX_ROWS_TO_READ:]
    if len(x) >= MIN_ROUNDS_TO_LOOK and (said := next(_remarks(bandit, spec, x), "")):
        bandit.looked = NEVER_AGAIN
        _warn(said)


def _remarks(bandit: Bandit, spec: WithConstant, x: np.ndarray) -> Iterator[str]:
    """Yield what is to be said of contexts x (n, d)."""
    if said := _far(bandit, spec, x):
        yield said
    n, d = x.shape
    if bandit.encoder is not None or not isinstance(_whole(spec), Declaring):
        return
    if n >= MIN_ROWS_PER_FEATURE * d and not spec.has_constant(len(bandit.arms), d):
        unit = x / np.maximum(np.abs(x).max(axis=0), np.finfo(float).tiny)
        left = 1.0 - unit @ np.linalg.lstsq(unit, np.ones(n), rcond=None)[0]
        if np.abs(left).max() > 1e-6:
            yield f"{_no_constant(spec)} Add a column of ones to the contexts{_or_model(spec)}"


def _far(bandit: Bandit, spec: WithConstant, x: np.ndarray) -> str:
    """Return a sentence on the features that are far from 0; "" if there are none.

    With c = a − bm for the slope b and the level a at the feature's mean m, a prior of c about 0 is
    one of b about a/m. It is as strong as the rounds that `rounds_of_prior` counts.
    """
    mean, sd = x.mean(axis=0), x.std(axis=0)
    varies = np.ptp(x, axis=0) > 0.0  # a constant has an sd of rounding errors
    away = np.flatnonzero((np.abs(mean) >= MIN_MEAN) & varies)
    if away.size == 0:
        return ""
    rounds = np.zeros(len(mean))
    rounds[away] = (mean[away] / sd[away]) ** 2
    rounds *= spec.constant_penalty(len(bandit.arms), np.where(rounds > 0.0, mean, 0.0))
    far = np.flatnonzero(rounds >= MIN_ROUNDS_OF_PRIOR)
    if far.size == 0:
        return ""
    features = bandit.layout.features
    shown = "; ".join(
        f"{repr(features[j]) if features else f'feature {j}'} has mean {mean[j]:.6g} and standard "
        f"deviation {sd[j]:.3g}"
        for j in far[:MAX_NAMES_SHOWN]
    )
    more = f"; {far.size - MAX_NAMES_SHOWN} more" if far.size > MAX_NAMES_SHOWN else ""
    remedy = (
        "bb.Encoder.fit standardises numbers, and a formula does so by scale(…)"
        if bandit.encoder is not None
        else "encoder=bb.Encoder.fit(frame) does so"
    )
    return (
        f"contexts are far from 0: {shown}{more}. The prior of the constant then shrinks a slope "
        f"as {rounds.max():,.0f} rounds without an effect would. Centre and scale the contexts: "
        f"{remedy}"
    )


def _is_without_contexts(spec: object, n_features: int) -> bool:
    inner = _whole(spec)
    return isinstance(inner, Declaring) and bool(inner.refuses_sharing(n_features))


def _whole(spec: object) -> object:
    return spec.model if isinstance(spec, Shared) else spec


def _name(spec: object) -> str:
    inner = _whole(spec)
    return inner.declared.name if isinstance(inner, Declaring) else type(inner).__name__


def _no_constant(spec: object) -> str:
    return (
        f"{_name(spec)} has no constant: where all features are 0, its mean reward is the same "
        "under every draw of its variables, and no reward can change it."
    )


def _without(spec: object) -> str:
    """Return how the model loses its constant."""
    inner = _whole(spec)
    if not isinstance(inner, Declaring):
        return "intercept=False leaves out the model's"
    if "intercept" in inner.declared.arguments():
        return ".with_priors(intercept=0) leaves out the model's"
    return "Leave out the model's in its declaration"


def _encoder(encoder: Encoder) -> str:
    if encoder.spec is None:
        return "bb.Encoder.fit(frame, constant=True)"
    return f"bb.Encoder.formula('~ 1 + {encoder.spec.text.strip().removeprefix('~').strip()}', …)"


def _or_model(spec: object) -> str:
    """Return how a model gets a constant, as the end of a sentence."""
    inner = _whole(spec)
    if isinstance(inner, Declaring) and "intercept" in inner.declared.arguments():
        return ', or the model: .with_priors(intercept=bb.Prior("Normal", mu=0, sigma=…))'
    return ', or the model: intercept=bb.Prior("Normal", mu=0, sigma=…), added to x @ theta'


def _warn(sentence: str) -> None:
    warnings.warn(sentence, skip_file_prefixes=HERE)
