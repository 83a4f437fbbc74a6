"""Warnings about contexts that do not suit a model: no constant, or values far from 0.

The encoder is looked at when a bandit is made, and contexts when the number of rounds has doubled.
So a round costs nothing.
"""

from __future__ import annotations

import warnings
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

# a warning is of the line that called the package
PACKAGE_FOLDER = (str(Path(__file__).parents[1]),)


def at_making(spec: BeliefModel, encoder: Encoder | None, n_arms: int, n_features: int) -> None:
    """Warn if neither encoder nor a declared model has a constant."""
    if encoder is None or encoder.spans_constant or _declared(spec) is None:
        return
    if isinstance(spec, WithConstant) and not spec.has_constant(n_arms, n_features):
        _warn(_no_constant(spec))


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
    if len(x) < MIN_ROUNDS_TO_LOOK:
        return
    said = _far(bandit, spec, x)
    if not said and _lacks_constant(bandit, spec, x):
        said = _no_constant(spec)
    if said:
        bandit.looked = NEVER_AGAIN
        _warn(said)


def _lacks_constant(bandit: Bandit, spec: WithConstant, x: np.ndarray) -> bool:
    """Return whether neither a declared model nor the contexts x (n, d) have a constant."""
    n, d = x.shape
    if bandit.encoder is not None or _declared(spec) is None or n < MIN_ROWS_PER_FEATURE * d:
        return False
    if spec.has_constant(len(bandit.arms), d):
        return False
    unit = x / np.maximum(np.abs(x).max(axis=0), np.finfo(float).tiny)
    left = 1.0 - unit @ np.linalg.lstsq(unit, np.ones(n), rcond=None)[0]
    return bool(np.abs(left).max() > 1e-6)


def _far(bandit: Bandit, spec: WithConstant, x: np.ndarray) -> str:
    """Return a sentence on the features that are far from 0; "" if there are none.

    With c = a − bm for the slope b and the level a at the feature's mean m, a prior of c about 0 is
    one of b about a/m. It is as strong as the rounds that are counted here.
    """
    mean, sd = x.mean(axis=0), x.std(axis=0)
    varies = np.ptp(x, axis=0) > 0.0  # a constant has an sd of rounding errors
    away = (np.abs(mean) >= MIN_MEAN) & varies
    if not away.any():
        return ""
    rounds = np.where(away, (mean / np.where(away, sd, 1.0)) ** 2, 0.0)
    rounds *= spec.constant_penalty(len(bandit.arms), np.where(away, mean, 0.0))
    far = np.flatnonzero(rounds >= MIN_ROUNDS_OF_PRIOR)
    if far.size == 0:
        return ""
    features = bandit.layout.features
    shown = "; ".join(
        f"{repr(features[j]) if features else f'feature {j}'} has mean {mean[j]:.6g} and standard "
        f"deviation {sd[j]:.3g}"
        for j in far[:MAX_NAMES_SHOWN]
    )
    return (
        f"{far.size} of {len(mean)} features are far from 0: {shown}. The prior of the constant "
        f"then shrinks a slope as {rounds.max():,.0f} rounds without an effect would. Centre and "
        "scale the contexts: encoder=bb.Encoder.fit(frame) does so, and scale(…) in a formula"
    )


def _declared(spec: object) -> Declaring | None:
    """Return the declared model of a bandit, shared or not; None for another model."""
    inner = spec.model if isinstance(spec, Shared) else spec
    return inner if isinstance(inner, Declaring) else None


def _name(spec: object) -> str:
    declared = _declared(spec)
    inner = spec.model if isinstance(spec, Shared) else spec
    return type(inner).__name__ if declared is None else declared.declared.name


def _no_constant(spec: object) -> str:
    return (
        f"{_name(spec)} has no constant: where all features are 0, its mean reward is the same "
        "under every draw of its variables, and no reward can change it. Add a column of ones to "
        "the contexts, as bb.Encoder.fit(frame, constant=True) or a formula with '1 +' does, or "
        'give the model an intercept: .with_priors(intercept=bb.Prior("Normal", mu=0, sigma=…))'
    )


def _warn(sentence: str) -> None:
    warnings.warn(sentence, skip_file_prefixes=PACKAGE_FOLDER)
