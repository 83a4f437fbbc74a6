"""From a declared reward model to the belief that a bandit streams rewards into."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np

from bayesbandit.beliefs.affine import AffineBelief
from bayesbandit.beliefs.gaussian import GaussianBelief, columns
from bayesbandit.beliefs.joint import JointBelief
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.beliefs.sampled import SampledBelief
from bayesbandit.checks import integer, number, one_of
from bayesbandit.engines.base import NotThisEngine
from bayesbandit.engines.digest import digest
from bayesbandit.engines.plan import ENGINES, Plan, plan
from bayesbandit.engines.stand_in import template
from bayesbandit.model import RewardModel

GROWTH = 0.1  # by which an arm's rounds grow between two refits, unless told otherwise
DRAWS = 400


@dataclass(frozen=True)
class Declared:
    """A declared reward model as what a bandit believes.

    engine: as of `bb.fit`. For models whose posterior does not stream row by row: refit_every, when
    it is computed anew, every m rounds of an arm (an int) or each time they have grown by a share
    (a float); draws, how many stand for it; tune, sweeps before them, the engine's choice if None;
    frozen, whether one draw, picked at random, stands for an arm until its next reward, as in the
    paper's Appendix C (only for Gibbs).
    """

    model: RewardModel
    engine: str = "auto"
    refit_every: int | float = GROWTH
    draws: int = DRAWS
    tune: int | None = None
    frozen: bool = False

    intercept = False  # a constant column is the declaration's own affair

    def __post_init__(self) -> None:
        one_of(self.engine, "engine", ENGINES)
        if isinstance(self.refit_every, float):
            number(self.refit_every, "refit_every, as a share of growth,", above=0)
        else:
            integer(self.refit_every, "refit_every, as a number of rounds,", least=1)
        integer(self.draws, "draws", least=2)
        if self.tune is not None:
            integer(self.tune, "tune", least=0)

    def fingerprint(self, n_arms: int, n_features: int) -> str:
        """What tells the declaration from another of the same name, in every process: what it
        builds. One that cannot be seen whole is like no other."""
        K = n_arms if self.model.takes_arm else None
        found = digest(template(self.model, n_features, K))
        return f"declared as {found[:16] if found else f'unseen {uuid4()}'}"

    def next_due(self, n: int) -> int:
        """The number of rounds at which a posterior of n rounds is next computed anew."""
        if n == 0:  # the first reward is worth more than a schedule
            return 1
        if isinstance(self.refit_every, float):
            return max(n + 1, math.ceil(n * (1.0 + self.refit_every)))
        return n + self.refit_every

    def plan(self, n_arms: int, n_features: int) -> Plan:
        """The engine for so many arms and features; refused where rows that come one by one cannot
        be played by the declaration."""
        found = plan(self.model, n_features, n_arms if self.model.takes_arm else None, self.engine)
        if why := found.reads_rows:
            raise ValueError(
                f"{self.model.name} reads its rows while it is built ({why}), so that every round "
                "would make it another model: compute with x and reward as they are, and give "
                "constants for what is read"
            )
        if name := found.sized_by_rows:
            raise ValueError(
                f"{self.model.name}: {name!r} has as many values as the rows make it, and every "
                'round would change the model: a value for each row has dims="row"'
            )
        if found.row_mixing:
            raise ValueError(
                f"{self.model.name}: the mean reward of a context depends on other rows "
                f"({found.row_mixing}); a bandit decides for one context at a time"
            )
        return found

    def belief(
        self, n_arms: int, n_features: int, normalize: bool, seed: np.random.SeedSequence
    ) -> GaussianBelief | AffineBelief | JointBelief | SampledBelief:
        """The belief before any data; `normalize` scales an arm's weights to mean 1 (all weights,
        where an exact posterior is of all arms). seed: of the samplers."""
        found = self.plan(n_arms, n_features)
        if self.frozen and found.engine != "gibbs":
            raise ValueError(f"frozen draws are of Gibbs sampling; the engine is {found.engine}")
        if streams(found, normalize):
            if columns(found) is not None:
                return GaussianBelief(found, n_arms, normalize)
            kind = JointBelief if self.model.takes_arm else AffineBelief
            return kind(found, n_arms, normalize)
        return SampledBelief(self, n_arms, n_features, normalize, seed)


def believed(model: RewardModel, n_arms: int, n_features: int, **settings: Any) -> Ridge | Declared:
    """What a bandit believes by a declared model: the ridge regression that it is, or the
    declaration; settings are those of `Declared`."""
    declared = Declared(model, **settings)
    return ridge(declared.plan(n_arms, n_features)) or declared


def streams(found: Plan, normalize: bool = False) -> bool:
    """Whether a posterior is updated row by row: exact, each row an observation of an affine mean
    reward, and a proper prior. Weights that are normalised must divide the rows' variances."""
    engine = found.method
    if not (found.closed_form and engine.streams) or (normalize and not engine.form.by_weight):
        return False
    try:
        prior = engine.prior()
        engine.gaussian(prior) if found.engine == "exact_gaussian" else engine.student(prior)
    except NotThisEngine:
        return False
    return True


def ridge(found: Plan) -> Ridge | None:
    """The weighted ridge regression that a declared model is, derived from its log density.

    Where the mean reward is x'θ and the prior θ ~ N(0, (σ²/λ) I), the posterior of each arm is that
    of `Ridge` with this λ: with a known noise variance, or normal-inverse-gamma.
    """
    engine = found.method
    if found.model.takes_arm or found.model.takes_weight != found.uses_weight:
        return None
    if not (streams(found) and engine.identity_map and engine.ridge):
        return None
    if found.engine == "exact_gaussian":
        return Ridge(ridge=engine.ridge, variance=engine.noise, intercept=False)
    return Ridge(ridge=engine.ridge, variance="nig", intercept=False, prior=engine.noise_prior)
