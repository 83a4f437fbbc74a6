"""A warning about contexts that are far from 0, where a model shrinks its constant.

Contexts are looked at when the number of rounds has doubled. So a round costs nothing.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.beliefs.base import PenalisesConstant
from bayesbandit.beliefs.shared.belief import Shared
from bayesbandit.checks import PACKAGE_FOLDER, Array

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

MIN_ROUNDS_TO_LOOK = 32
MAX_ROWS_TO_READ = 1_000
MIN_ROUNDS_OF_PRIOR = 100.0  # that are worth a warning: 300 rounds keep .78 of a slope of λ = 1
MIN_MEAN = 3.0  # below it a feature is penalised for its scale, and not for its distance from 0
NEVER_AGAIN = -1


def look(bandit: Bandit, x: Array | None = None) -> None:
    """Warn, once for a bandit, if its contexts are far from 0.

    x (n, d) or (n, K, d): contexts that it is about to learn; None: those of its history.

    With c = a − bm for the slope b and the level a at the feature's mean m, a prior of c about 0 is
    one of b about a/m, as strong as λ (m/sd)² rounds.
    """
    if bandit.looked == NEVER_AGAIN:
        return
    rounds = bandit.history.total + (0 if x is None else len(x))
    if rounds < MIN_ROUNDS_TO_LOOK or rounds < 2 * bandit.looked:
        return
    model = bandit.spec.model if isinstance(bandit.spec, Shared) else bandit.spec
    d = bandit.n_features
    if not isinstance(model, PenalisesConstant) or d == 0:
        bandit.looked = NEVER_AGAIN
        return
    bandit.looked = rounds
    if x is None or len(x) < MIN_ROUNDS_TO_LOOK:
        x = bandit.history.ordered()[:, :d]
    x = x.reshape(-1, d)[-MAX_ROWS_TO_READ:]
    if len(x) < MIN_ROUNDS_TO_LOOK:
        return
    mean = x.mean(axis=0)
    sd = x.std(axis=0)
    away = (np.abs(mean) >= MIN_MEAN) & (np.ptp(x, axis=0) > 0.0)  # a constant has a tiny sd
    of_prior = model.constant_penalty * np.square(mean / np.where(away, sd, np.inf))
    j = int(of_prior.argmax())
    if of_prior[j] < MIN_ROUNDS_OF_PRIOR:
        return
    bandit.looked = NEVER_AGAIN
    names = bandit.layout.features
    feature = repr(names[j]) if names else f"feature {j}"
    warnings.warn(
        f"{feature} has mean {mean[j]:.6g} and standard deviation {sd[j]:.3g}, far from 0. The "
        f"prior of the constant then shrinks a slope as {of_prior[j]:,.0f} rounds without an "
        "effect would. Centre and scale the contexts: encoder=bb.Encoder.fit(frame) does so, and "
        "scale(…) in a formula",
        skip_file_prefixes=PACKAGE_FOLDER,
    )
