"""How a declared reward model learns: `Declared` chooses its belief, `Sampled` has posterior draws,
`Laplace` the mode and the curvature there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bayesbandit.beliefs.base import Belief, Clock
from bayesbandit.beliefs.counts import Counts
from bayesbandit.beliefs.declared_features import regressions
from bayesbandit.beliefs.glm.link import linearized
from bayesbandit.beliefs.memory import Memory
from bayesbandit.beliefs.sampled.belief import SampledBelief
from bayesbandit.checks import MAX_DRAWS, integer, number, one_of, shown
from bayesbandit.inference.exact.conjugate import ConjugateEngine
from bayesbandit.inference.graph_analysis.degrees import depends_on
from bayesbandit.inference.plan import Plan, plan
from bayesbandit.inference.pymc_model.digest import digest
from bayesbandit.inference.pymc_model.template import template
from bayesbandit.inference.registry import choices
from bayesbandit.inference.target import OnTarget
from bayesbandit.model import RewardModel
from bayesbandit.runtime.shown import settings_repr
from bayesbandit.schedule import Schedule

REFIT_GROWTH = 0.1  # the share by which rounds grow between two refits, if nothing else is due
POSTERIOR_DRAWS = 400
EFFECTIVE_SHARE = 0.5  # of weighted draws: below it they are renewed


@dataclass(frozen=True)
class Declared:
    """A declared reward model whose belief is chosen: a closed form, or else posterior draws.

    `bb.Bandit(arms, model, …)` is `bb.Bandit(arms, Declared(model), …)`.

    engine: as in `bb.fit`.
    half_life: how long until a round counts half: a number of rounds, or with clock="time" seconds
        or a text as "7d". None: rounds count as long as the bandit lives. The prior stays.
        Posteriors with a closed form fade, and so do those of generalised linear models by
        Laplace's approximation. A model known by draws does not forget.
        "auto" is as of `Ridge`, for linear-Gaussian models, probabilities and rates.
    clock: what ticks: "rounds", contexts decided and rows learned by `update`, or "time".
    drift: the variance of each variable's step in a tick, for linear-Gaussian models whose
        variables walk at random, as of `Ridge`. None or 0: they stand still. It is of the declared
        variables: of z, if the coefficients are m + s z.
    """

    __repr__ = settings_repr

    declared: RewardModel
    engine: str = "auto"
    half_life: float | str | None = None
    clock: Clock = "rounds"
    drift: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.declared, RewardModel):
            kind = type(self).__name__
            raise TypeError(f"{kind} is of a declared reward model; got {shown(self.declared)}")
        one_of(self.engine, "engine", choices())
        _ = self.memory

    @cached_property
    def memory(self) -> Memory:
        """How long a round counts, or how the variables walk."""
        return Memory(self.half_life, self.clock, self.drift)

    def digest(self, n_arms: int, n_features: int) -> str | None:
        """Return a digest of the built model, the same in every process; None if it has none."""
        K = n_arms if self.declared.takes_arm else None
        return digest(template(self.declared, n_features, K))

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
        if depends_on([built["mean_reward"]], {"x": built["x"]}):
            return ""
        return f"the mean reward of {self.declared.name} does not depend on x"

    def refuses_removal(self, n_arms: int, n_features: int) -> str:
        """Return why no arm can be removed, so that others take its place; "" if one can."""
        if not self.declared.takes_arm or self.plan(n_arms, n_features).functions.arms_are_alike:
            return ""
        return (
            f"{self.declared.name} tells arms apart by their places (a constant, an order or an "
            "index of them), and those behind a removed arm would take the places before theirs"
        )

    def plan(self, n_arms: int, n_features: int) -> Plan:
        """Return the plan, with its engine, for so many arms and features.

        Raise ValueError if the model changes with each row, so that a bandit cannot use it.
        """
        K = n_arms if self.declared.takes_arm else None
        chosen = plan(self.declared, n_features, K, self.engine)
        if chosen.no_bandit:
            raise ValueError(f"{self.declared.name}{chosen.no_bandit}")
        return chosen

    def belief(
        self, n_arms: int, n_features: int, normalize: bool, seed: np.random.SeedSequence
    ) -> Belief:
        """Return the belief before any data.

        normalize: rescale each arm's weights to average 1, or all weights if all arms share an
        exact posterior. seed: the samplers' seed.
        """
        plan = self.plan(n_arms, n_features)
        memory = self.memory
        if plan.linearized:
            by_mode = Laplace(self.declared, self.half_life, self.clock, self.drift)
            return by_mode.belief(n_arms, n_features, normalize, seed)
        if plan.streams(normalize):
            if isinstance(plan.method, ConjugateEngine):
                self._check_memory("a beta or gamma posterior", chooses=True)
                return Counts(plan, n_arms, normalize, memory)
            return regressions(plan, n_arms, normalize, memory)
        self._refuse_memory()
        return Sampled(self.declared, self.engine).by_draws(plan, n_arms, normalize, seed)

    def _refuse_memory(self) -> None:
        """Raise ValueError if a model that is known by draws is to forget."""
        if not self.memory.ticks:
            return
        setting = f"half_life={self.half_life!r}" if self.half_life else f"drift={self.drift!r}"
        raise ValueError(
            f"{self.declared.name} is known by posterior draws, which do not forget: "
            f"got {setting}; bb.Declared(model, half_life=…) forgets if the posterior is in closed "
            "form, and bb.Laplace(model, half_life=…) if the model is a generalised linear one; or "
            "give a new bandit the latest rounds instead, as "
            "new.update(bb.ope.Log.of(bandit.history)[-1000:])"
        )

    def _check_memory(self, known_by: str, chooses: bool = False) -> None:
        """Raise ValueError if a model that is no regression has a drift.

        Also if it has half_life="auto" and not the exact density of a reward (`chooses`). known_by:
        what its posterior is.
        """
        if self.memory.drift or (self.memory.chooses and not chooses):
            setting = 'half_life="auto"' if self.memory.chooses else f"drift={self.drift!r}"
            raise ValueError(
                f"{setting} needs a linear-Gaussian posterior, where it is exact; "
                f"{self.declared.name} is known by {known_by}: give half_life a number of rounds"
            )


@dataclass(frozen=True)
class Sampled(Declared):
    """A declared reward model that is known by posterior draws.

    Draws are renewed after as many decisions as there are draws. Between two refits each reward
    multiplies the draws' weights by its likelihood, where rows are independent given the variables.

    engine: as of `Declared`.
    draws: the number of posterior draws. tune: sweeps before them; None: the engine's choice.
    refit_every: an arm is refitted at the latest after m of its rounds (an int), or each time they
        have grown by a share (a float). None: by 0.1 where draws cannot be weighted, else not.
    refit_below: weighted draws are renewed when their effective number (Kish 1965) is below this
        share of them, from 0 to 1.
    background: whether draws are renewed in a thread while decisions and rewards go on. Decisions
        then depend on how long that takes: the same seed does not give the same decisions.
    frozen: whether an arm uses one random draw until its next reward, as in the paper's Appendix C
        (only for Gibbs).
    """

    __repr__ = settings_repr

    half_life: None = field(default=None, init=False)
    clock: Clock = field(default="rounds", init=False)
    drift: None = field(default=None, init=False)
    draws: int = POSTERIOR_DRAWS
    tune: int | None = None
    refit_every: int | float | None = None
    refit_below: float = EFFECTIVE_SHARE
    background: bool = False
    frozen: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        integer(self.draws, "draws", least=2, most=MAX_DRAWS)
        if self.tune is not None:
            integer(self.tune, "tune", least=0, most=MAX_DRAWS)
        _ = renewal(self.refit_every)
        number(self.refit_below, "refit_below", least=0, most=1)
        one_of(self.background, "background", (False, True))
        one_of(self.frozen, "frozen", (False, True))

    @cached_property
    def schedule(self) -> Schedule:
        """When draws are renewed by the number of rounds."""
        return renewal(self.refit_every)

    def belief(
        self, n_arms: int, n_features: int, normalize: bool, seed: np.random.SeedSequence
    ) -> Belief:
        return self.by_draws(self.plan(n_arms, n_features), n_arms, normalize, seed)

    def by_draws(
        self, plan: Plan, n_arms: int, normalize: bool, seed: np.random.SeedSequence
    ) -> SampledBelief:
        """Return the belief before any data, of a plan that is made."""
        if self.frozen and plan.engine != "gibbs":
            raise ValueError(f"frozen draws are of Gibbs sampling; the engine is {plan.engine}")
        if why := plan.row_likelihood.failure(plan.functions.prior.start):
            raise ValueError(
                f"{self.declared.name} cannot be computed on any number of rows, as a bandit has "
                f'them ({why}); what has a value for each row has dims="row"'
            )
        if isinstance(plan.method, OnTarget) and (name := plan.of_each_row):
            raise ValueError(
                f"{self.declared.name}: {name!r} has a value for each row, and {plan.engine} takes "
                'the same variables at each refit: engine="auto" draws it'
            )
        return SampledBelief(self, plan, n_arms, normalize, seed)


@dataclass(frozen=True)
class Laplace(Declared):
    """A declared reward model by Laplace's approximation: the mode, and the curvature there.

    A generalised linear model learns row by row, and its mode is computed again from all rows on a
    schedule. Another model is known by draws of the approximation.

    half_life, clock: as of `Declared`.
    refit_every: the mode is computed again after m rounds of an arm (an int), or each time they
        have grown by a share (a float). None: by 0.1.
    """

    __repr__ = settings_repr

    engine: str = field(default="laplace", init=False)
    refit_every: int | float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = renewal(self.refit_every)

    def belief(
        self, n_arms: int, n_features: int, normalize: bool, seed: np.random.SeedSequence
    ) -> Belief:
        plan = self.plan(n_arms, n_features)
        glm = plan.linearized
        if glm is None:
            self._refuse_memory()
            drawn = Sampled(self.declared, self.engine, refit_every=self.refit_every)
            return drawn.by_draws(plan, n_arms, normalize, seed)
        self._check_memory("Laplace's approximation")
        schedule = renewal(self.refit_every)
        return linearized(plan, glm, n_arms, normalize, self.memory, schedule)


def renewal(refit_every: int | float | None) -> Schedule:
    """Return when a posterior is computed again by the number of rounds."""
    return Schedule(REFIT_GROWTH if refit_every is None else refit_every)


LEARNING_MODELS = {
    kind.__name__: kind for kind in (Declared, Sampled, Laplace)
}  # by name in a file
