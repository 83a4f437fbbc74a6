"""The choice of a belief for a declared reward model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import numpy as np

from bayesbandit.beliefs.affine import AffineBelief
from bayesbandit.beliefs.base import Belief
from bayesbandit.beliefs.conjugate.belief import ConjugateBelief
from bayesbandit.beliefs.conjugate.half_lives import ConjugateHalfLives
from bayesbandit.beliefs.gaussian import GaussianBelief, columns
from bayesbandit.beliefs.glm.belief import LinearizedBelief
from bayesbandit.beliefs.half_lives import by_half_life, remembered
from bayesbandit.beliefs.joint import JointBelief
from bayesbandit.beliefs.sampled.belief import SampledBelief
from bayesbandit.beliefs.sampled.settings import Sampling
from bayesbandit.inference.exact.conjugate import ConjugateEngine
from bayesbandit.inference.graph_analysis.dependence import Influence
from bayesbandit.inference.plan import Plan, plan
from bayesbandit.inference.pymc_model.digest import digest
from bayesbandit.inference.pymc_model.template import template

MAX_WIDTH_OF_CONSTANT = 10.0  # in widths of a slope's prior: N(0, 100) beside N(0, 1)


@dataclass(frozen=True)
class Declared(Sampling):
    """A declared reward model with settings, which makes the belief of a bandit."""

    def fingerprint(self, n_arms: int, n_features: int) -> str:
        """Return a text that differs if another declaration has the same name.

        It is a digest of the built model, the same in every process. A model that has no digest
        (`pymc_model/digest.py`) gets a unique text.
        """
        K = n_arms if self.declared.takes_arm else None
        known = digest(template(self.declared, n_features, K))
        return f"declared as {known[:16] if known else f'unseen {uuid4()}'}"

    def refuses_weights(self, n_arms: int, n_features: int) -> str:
        """Return why observations of the model cannot be weighted; "" if they can."""
        name = self.declared.name
        if not self.declared.takes_weight:
            return f"{name} does not take `weight`: it cannot be balanced"
        if not self.plan(n_arms, n_features).uses_weight:
            return f"{name} has no use for its `weight`: it cannot be balanced"
        return ""

    def refuses_sharing(self, n_features: int) -> str:
        """Return why the model would give all arms that share it the same reward; "" if not."""
        built = self.plan(1, n_features).built
        mean = built["mean_reward"]
        if Influence([mean], {built["x"]: ["x"]}).of(mean):
            return ""
        return f"the mean reward of {self.declared.name} does not depend on x"

    def has_constant(self, n_arms: int, n_features: int) -> bool:
        """Return whether the mean reward at x = 0 differs between draws of the prior."""
        return self.plan(n_arms, n_features).has_constant

    def constant_penalty(self, n_arms: int, mean: np.ndarray) -> float:
        """Return the penalty of a constant `MAX_WIDTH_OF_CONSTANT` times as wide as a slope.

        0 if draws of the mean reward do not differ more at features of this mean (d,) than at 0: a
        model may centre its features, or not depend on them.
        """
        plan = self.plan(n_arms, len(mean))
        spread = plan.spread_of_prior(np.stack([np.zeros(len(mean)), mean]))
        return MAX_WIDTH_OF_CONSTANT**-2 if spread[1] > spread[0] else 0.0

    def nbytes(self, n_arms: int, n_features: int) -> int:
        """Return the bytes of the arms' matrices of all coefficients."""
        return 8 * (n_arms**2 if self.declared.takes_arm else n_arms) * n_features**2

    def plan(self, n_arms: int, n_features: int) -> Plan:
        """Return the plan, with its engine, for so many arms and features.

        Raise ValueError if the model changes with each row, so that a bandit cannot use it.
        """
        name, K = self.declared.name, n_arms if self.declared.takes_arm else None
        chosen = plan(self.declared, n_features, K, self.engine)
        if why := chosen.reads_rows:
            raise ValueError(
                f"{name} reads its rows while it is built ({why}), so that every round "
                "would make it another model: compute with x and reward as they are, and give "
                "constants for what is read"
            )
        if sized := chosen.sized_by_rows:
            raise ValueError(
                f"{name}: {sized!r} has as many values as the rows make it, and every "
                'round would change the model: a value for each row has dims="row"'
            )
        if chosen.row_mixing:
            raise ValueError(
                f"{name}: the mean reward of a context depends on other rows "
                f"({chosen.row_mixing}); a bandit decides for one context at a time"
            )
        return chosen

    def belief(
        self, n_arms: int, n_features: int, normalize: bool, seed: np.random.SeedSequence
    ) -> Belief:
        """Return the belief before any data.

        normalize: rescale each arm's weights to average 1, or all weights if all arms share an
        exact posterior. seed: the samplers' seed.
        """
        plan = self.plan(n_arms, n_features)
        if self.frozen and plan.engine != "gibbs":
            raise ValueError(f"frozen draws are of Gibbs sampling; the engine is {plan.engine}")
        memory = self.memory
        if glm := plan.linearized:
            self._check_memory(normalize, "Laplace's approximation")
            return LinearizedBelief(self, plan, glm, n_arms, normalize, memory)
        if plan.streams(normalize):
            if isinstance(plan.method, ConjugateEngine):
                self._check_memory(normalize, "a beta or gamma posterior", chooses=True)
                made = partial(ConjugateBelief, plan, n_arms, normalize)
                if memory.chooses:
                    return ConjugateHalfLives(by_half_life(made, memory))
                return made(memory)
            if columns(plan) is not None:
                return remembered(partial(GaussianBelief, plan, n_arms, normalize), memory)
            kind = JointBelief if self.declared.takes_arm else AffineBelief
            return kind(plan, n_arms, normalize, memory)
        if why := plan.likelihood.failure():
            raise ValueError(
                f"{self.declared.name} cannot be computed on any number of rows, as a bandit has "
                f'them ({why}); what has a value for each row has dims="row"'
            )
        self._check_memory(False, "posterior draws")
        return SampledBelief(self, n_arms, n_features, normalize, seed)

    def _check_memory(self, normalize: bool, known_by: str, chooses: bool = False) -> None:
        """Raise ValueError if a model that is no regression has a drift.

        Also if it has half_life="auto" and not the exact density of a reward (`chooses`), or its
        rounds fade and their weights are to average 1. known_by: what its posterior is.
        """
        name = self.declared.name
        if self.memory.drift or (self.memory.chooses and not chooses):
            given = 'half_life="auto"' if self.memory.chooses else f"drift={self.drift!r}"
            raise ValueError(
                f"{given} needs a linear-Gaussian posterior, where it is exact; "
                f"{name} is known by {known_by}: give half_life a number of rounds "
                "(bb.evaluation.drift(log) shows which predicts best)"
            )
        if normalize and self.memory.ticks:
            raise ValueError(
                f"{name} cannot forget rounds whose weights are rescaled to average 1: the balance "
                f"must have normalize=False; got half_life={self.half_life!r}"
            )
