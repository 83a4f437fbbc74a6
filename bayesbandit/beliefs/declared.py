"""From a declared reward model to the belief that a bandit streams rewards into."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

import numpy as np

from bayesbandit.beliefs.affine import AffineBelief
from bayesbandit.beliefs.base import Belief
from bayesbandit.beliefs.conjugate.belief import ConjugateBelief
from bayesbandit.beliefs.gaussian import GaussianBelief, columns
from bayesbandit.beliefs.glm.belief import LinearizedBelief
from bayesbandit.beliefs.joint import JointBelief
from bayesbandit.beliefs.sampled.belief import SampledBelief
from bayesbandit.beliefs.sampled.settings import Sampling
from bayesbandit.inference.base import NotThisEngine
from bayesbandit.inference.exact.conjugate import Conjugate
from bayesbandit.inference.glm.regression import Regression
from bayesbandit.inference.graph_analysis.dependence import Influence
from bayesbandit.inference.plan import Plan, plan
from bayesbandit.inference.pymc_model.digest import digest
from bayesbandit.inference.pymc_model.template import template


@dataclass(frozen=True)
class Declared(Sampling):
    """A declared reward model as what a bandit believes, with these settings."""

    def fingerprint(self, n_arms: int, n_features: int) -> str:
        """What tells the declaration from another of the same name, in every process: what it
        builds. One that cannot be seen whole is like no other."""
        K = n_arms if self.declared.takes_arm else None
        found = digest(template(self.declared, n_features, K))
        return f"declared as {found[:16] if found else f'unseen {uuid4()}'}"

    def refuses_weights(self, n_arms: int, n_features: int) -> str:
        """Why observations of the model cannot be weighted; "" if they can."""
        name = self.declared.name
        if not self.declared.takes_weight:
            return f"{name} does not take `weight`: it cannot be balanced"
        if not self.plan(n_arms, n_features).uses_weight:
            return f"{name} has no use for its `weight`: it cannot be balanced"
        return ""

    def refuses_sharing(self, n_features: int) -> str:
        """Why arms that share the model could not be told apart; "" if they can."""
        built = self.plan(1, n_features).built
        mean = built["mean_reward"]
        if Influence([mean], {built["x"]: ["x"]}).of(mean):
            return ""
        return f"the mean reward of {self.declared.name} does not depend on x"

    def nbytes(self, n_arms: int, n_features: int) -> int:
        """Return the bytes of the arms' matrices of all coefficients."""
        return 8 * (n_arms**2 if self.declared.takes_arm else n_arms) * n_features**2

    def plan(self, n_arms: int, n_features: int) -> Plan:
        """The engine for so many arms and features; refused where rows that come one by one cannot
        be played by the declaration."""
        name, K = self.declared.name, n_arms if self.declared.takes_arm else None
        found = plan(self.declared, n_features, K, self.engine)
        if why := found.reads_rows:
            raise ValueError(
                f"{name} reads its rows while it is built ({why}), so that every round "
                "would make it another model: compute with x and reward as they are, and give "
                "constants for what is read"
            )
        if sized := found.sized_by_rows:
            raise ValueError(
                f"{name}: {sized!r} has as many values as the rows make it, and every "
                'round would change the model: a value for each row has dims="row"'
            )
        if found.row_mixing:
            raise ValueError(
                f"{name}: the mean reward of a context depends on other rows "
                f"({found.row_mixing}); a bandit decides for one context at a time"
            )
        return found

    def belief(
        self, n_arms: int, n_features: int, normalize: bool, seed: np.random.SeedSequence
    ) -> Belief:
        """The belief before any data; `normalize` scales an arm's weights to mean 1 (all weights,
        where an exact posterior is of all arms). seed: of the samplers."""
        found = self.plan(n_arms, n_features)
        if self.frozen and found.engine != "gibbs":
            raise ValueError(f"frozen draws are of Gibbs sampling; the engine is {found.engine}")
        if found.engine == "laplace" and (glm := linearized(found)):
            return LinearizedBelief(self, found, glm, n_arms, normalize)
        if streams(found, normalize):
            if isinstance(found.method, Conjugate):
                return ConjugateBelief(found, n_arms, normalize)
            if columns(found) is not None:
                return GaussianBelief(found, n_arms, normalize)
            kind = JointBelief if self.declared.takes_arm else AffineBelief
            return kind(found, n_arms, normalize)
        if why := found.likelihood.failure():
            raise ValueError(
                f"{self.declared.name} cannot be computed on any number of rows, as a bandit has "
                f'them ({why}); what has a value for each row has dims="row"'
            )
        return SampledBelief(self, n_arms, n_features, normalize, seed)


def linearized(found: Plan) -> Regression | None:
    """The generalised linear model that a model is, whose mode rewards move one by one."""
    try:
        glm = found.functions.regression
    except NotThisEngine:
        return None
    return glm if glm.block.streams else None


def streams(found: Plan, normalize: bool = False) -> bool:
    """Whether a posterior is updated row by row: exact, each row an observation of an affine mean
    reward, or of one conjugate to it, and a proper prior. Weights that are normalised must divide
    the rows' variances, or be powers of their likelihoods."""
    engine = found.method
    if isinstance(engine, Conjugate):
        return engine.streams
    if not (found.closed_form and getattr(engine, "streams", False)) or (
        normalize and not engine.form.by_weight
    ):
        return False
    try:
        prior = engine.prior()
        engine.distribution(prior)
    except NotThisEngine:
        return False
    return True
