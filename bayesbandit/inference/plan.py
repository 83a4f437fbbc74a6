"""Which engine a declared model gets, and why not a faster one.

    exact_gaussian → normal_inverse_gamma → conjugate → gibbs → nuts

in this order, the first that fits. An engine asked for by name that does not fit is refused with
its reason; `laplace` and `advi` are approximations and only ever asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.compile.ops import view_op
from pytensor.graph.traversal import ancestors

from bayesbandit.checks import Array, integer, shown, without_none
from bayesbandit.declaring.declaration import Declaration
from bayesbandit.inference.base import (
    COMPILE,
    ENGINE_GROUPS,
    Engine,
    Improper,
    NotFinite,
    NotThisEngine,
    Refusal,
    Sampler,
)
from bayesbandit.inference.draws import Draws, Known, Rows, SampledDraws, check_draws
from bayesbandit.inference.exact.conjugate import ConjugateEngine
from bayesbandit.inference.functions import Functions
from bayesbandit.inference.gibbs import sampler as gibbs
from bayesbandit.inference.glm.regression import Regression
from bayesbandit.inference.graph_analysis.density import (
    read,
    row_axes,
    whole_graph,
)
from bayesbandit.inference.graph_analysis.eligibility import (
    check_mean,
    check_random,
    is_out_of_bounds,
)
from bayesbandit.inference.graph_analysis.rows import not_apart
from bayesbandit.inference.nuts import Nuts
from bayesbandit.inference.pymc_model.digest import digest
from bayesbandit.inference.pymc_model.log_density import LogDensity
from bayesbandit.inference.pymc_model.outcomes import Outcomes
from bayesbandit.inference.pymc_model.possible_rewards import PossibleRewards
from bayesbandit.inference.pymc_model.template import (
    reads_rows,
    rows_of,
    set_rows,
    template,
)
from bayesbandit.inference.registry import candidates
from bayesbandit.runtime.one_thread import one_thread

if TYPE_CHECKING:
    import pymc as pm


KEPT_BYTES = 256_000_000  # bytes of the rows of all kept plans
MAX_KEPT_MODELS = 64  # whose plans are kept
MAX_NAMED_REWARDS = 5  # rewards that an error names


log = logging.getLogger("bayesbandit")


@dataclass(frozen=True, eq=False)
class Plan:
    """An engine for a declared model of d features and K arms.

    It serves all rows on which the declaration builds the same model (`digest`).

    asked: the argument `engine`. chosen: the engine that was found. method: what the engine made of
    the model, a `Sampler` or a `ClosedForm`. refusals: one for each faster engine. functions: what
    is compiled of the model.
    """

    model: Declaration
    n_features: int
    n_arms: int | None
    asked: str
    chosen: Engine
    method: Any = field(repr=False)
    refusals: tuple[Refusal, ...] = field(repr=False)
    functions: Functions = field(repr=False)

    @property
    def built(self) -> pm.Model:
        """The PyMC model behind the method, on rows that mean nothing or on those of a fit."""
        return self.functions.built

    @property
    def made(self) -> str | None:
        """The digest of the built model; None if it cannot be told apart."""
        return self.functions.made

    @property
    def closed_form(self) -> bool:
        """Whether the posterior is known without draws."""
        return self.chosen.kind == "exact"

    @property
    def engine(self) -> str:
        """The engine's name."""
        return self.chosen.name

    @cached_property
    def uses_weight(self) -> bool:
        """Whether the weights enter the likelihood, where the declaration takes them."""
        density = read(self.built)
        return density.inputs.get("weight") in set(ancestors([t.graph for t in density.terms]))

    @cached_property
    def row_mixing(self) -> str:
        """The operation by which a row's mean reward depends on other rows; "" if none does."""
        return not_apart(read(self.built)) or ""

    @cached_property
    def starts_at_prior(self) -> bool:
        """Whether the posterior without rows is the declared prior: no potential, and no value
        that is observed beside the rows, tells of the variables."""
        density = self.row_likelihood.density
        return all(term.on_data or term.name in density.values for term in density.terms)

    @property
    def of_each_row(self) -> str:
        """A free variable that has a value for each row; "" if there is none."""
        return next(iter(row_axes(self.built)), "")

    @cached_property
    def reads_rows(self) -> str:
        """How building the model reads the values of the rows; "" if it does not."""
        return reads_rows(self.model, self.n_features, self.n_arms)

    @cached_property
    def no_bandit(self) -> str:
        """Why a bandit cannot use the model, which changes with each row; "" if it can."""
        if why := self.reads_rows:
            return (
                f" reads its rows while it is built ({why}): compute with x and reward as they "
                "are, and give constants for what is read"
            )
        if isinstance(self.method, Nuts) and (name := self.of_each_row):
            return (
                f": {name!r} has a value for each row, and nuts would compile at every refit: "
                "declare the rewards by the distribution that is left when it is integrated out"
            )
        if self.row_mixing:
            return f": the mean reward of a context depends on other rows ({self.row_mixing})"
        return ""

    @property
    def outcomes(self) -> Outcomes:
        """Mean rewards and deterministic quantities as functions of draws."""
        return self.functions.outcomes

    @property
    def likelihood(self) -> PossibleRewards:
        """The rewards that the likelihood allows."""
        return self.functions.likelihood

    @property
    def row_likelihood(self) -> LogDensity:
        """The log likelihood of rows under draws, and the joint log density."""
        return self.functions.row_likelihood

    @cached_property
    def linearized(self) -> Regression | None:
        """The generalised linear model that is approximated by Laplace's method; None if it is not
        one, or if rewards cannot update its mode."""
        if self.engine != "laplace":
            return None
        try:
            glm = self.functions.regression
        except NotThisEngine:
            return None
        return glm if glm.block.streams else None

    def check_possible(
        self, rows: Rows, draws: Sequence[Draws] = (), possible: bool = False
    ) -> None:
        """Raise ValueError if a reward has likelihood 0 at the start, at draws of the prior, and at
        `draws`.

        rows: by role. draws: more values of the variables to try. possible: whether one of them is
        known to make the rows likely.
        """
        self.likelihood.check(self.model.name, rows, draws, possible)

    def streams(self, normalize: bool = False) -> bool:
        """Return whether a posterior can be updated row by row, exactly.

        The prior must be proper. Each row must observe an affine mean reward, or have a conjugate
        likelihood. With `normalize`, weights must divide the rows' variances or be powers of their
        likelihoods.
        """
        method = self.method
        if isinstance(method, ConjugateEngine):
            return method.streams
        if not (self.closed_form and method.streams) or (
            normalize and not method.row_noise.by_weight
        ):
            return False
        try:
            _ = method.prior_distribution
        except NotThisEngine:
            return False
        return True

    def posterior(self, rows: Rows) -> Known:
        """Return the posterior in closed form given rows, by role."""
        with one_thread(), self.likelihood_blamed(rows):
            return self.method.posterior(**rows)

    @contextmanager
    def likelihood_blamed(self, rows: Rows) -> Iterator[None]:
        """Name the rewards whose log density is not finite, where an engine raises `NotFinite`."""
        try:
            yield
        except NotFinite as error:
            self.check_possible(rows)
            at = self.likelihood.lost(rows)
            told = [f"{rows['reward'][i]:g} (row {i})" for i in at[:MAX_NAMED_REWARDS].tolist()]
            told += [f"{len(at) - MAX_NAMED_REWARDS} more"] if len(at) > MAX_NAMED_REWARDS else []
            by = f", by the rewards {', '.join(told)}" if told else ""
            raise ValueError(f"{self.model.name}: {error}{by}") from error

    def explain(self, bandit: bool = False) -> str:
        """Return the engine, what it costs, and one line for each faster one saying why not.

        bandit: whether to add how a bandit learns it.
        """
        lines = [f"{self.model.name}: {self.engine}", f"  {self.chosen.cost}"]
        if not self.closed_form and (why := self.row_likelihood.refused):
            lines += [f"  a bandit's draws learn rewards only at a refit, since rows depend: {why}"]
        lines += [f"  not {refusal}" for refusal in self.refusals]
        return "\n".join([*lines, self._explain_bandit()] if bandit else lines)

    def _explain_bandit(self) -> str:
        """Return how a bandit learns the model, or why it cannot use it."""
        if self.no_bandit:
            return f"  no bandit plays it: {self.model.name}{self.no_bandit}"
        if self.streams():
            how = "each reward updates the posterior, in closed form"
        elif self.closed_form or self.row_likelihood.refused:
            how = "its draws are renewed when there are more rounds: bb.Sampled(refit_every=…)"
        else:
            how = (
                "each reward weights the posterior draws, which are drawn again when too few have "
                "weight: bb.Sampled(draws=…, refit_below=…)"
            )
        return f"  a bandit plays it: {how}"

    def on(self, rows: Mapping[str, Any]) -> pm.Model:
        """Return a copy of the built model with other rows, by role; weights are 1 unless given."""
        from pymc.model.fgraph import ModelDeterministic, model_from_fgraph

        with COMPILE:
            graph, _ = whole_graph(self.built)
            for v in graph.outputs:  # PyMC takes two deterministic quantities of one value for one
                if isinstance(v.owner.op, ModelDeterministic):
                    view = view_op(v.owner.inputs[0])
                    graph.change_node_input(v.owner, 0, view, reason="own", import_missing=True)
            model = model_from_fgraph(graph, mutate_fgraph=True)
            given = without_none(rows)
            set_rows(model, {"weight": np.ones(len(rows["x"]))} | given)
        return model

    def of_arms(self, n_arms: int) -> Plan:
        """Return the plan for another number of arms.

        Raise ValueError if the declaration builds another model than before.
        """
        now = digest(template(self.model, self.n_features, self.n_arms))
        if now is None or now != self.made:
            raise ValueError(
                f"{self.model.name} builds another model than when the bandit was made: something "
                "that it reads has changed, or cannot be seen"
            )
        return plan(self.model, self.n_features, n_arms, self.asked)

    def without(self, refusal: Refusal) -> Plan:
        """Return the plan of the next engine, after one has refused these rows."""
        return plan_of_built(self.model, self.built, self.asked, (*self.refusals, refusal))

    def try_engines[T](
        self, by: Callable[[Plan], T], without: Callable[[Refusal], Plan] | None = None
    ) -> tuple[Plan, T]:
        """Return the first plan that answers, and its answer `by(plan)`.

        An engine that was not asked for by name may refuse these rows: the next one is tried then.
        without: makes the plan of the next engine; None: `Plan.without`.
        """
        plan = self
        while True:
            try:
                return plan, by(plan)
            except NotThisEngine as error:
                if plan.asked not in ENGINE_GROUPS or isinstance(error, Improper):
                    raise
                plan = (without or plan.without)(error.refusal)

    def sample(
        self,
        data: Rows,
        draws: int,
        chains: int,
        seed: int,
        tune: int | None = None,
        start: Any = None,
        **knobs: float | None,
    ) -> SampledDraws:
        """Return draws given rows x (n, d), reward, weight, arm (n,), by role.

        Closed forms have no draws. start: `SampledDraws.state` of an earlier run. knobs: settings
        of the engine, see `Engine.knobs`.
        """
        with self.likelihood_blamed(data):
            drawn = self.method.sample(
                data, draws=draws, chains=chains, tune=tune, seed=seed, start=start, **knobs
            )
        check_draws(drawn, self.built, self.engine, (chains, draws))
        return drawn

    def prepare(self) -> None:
        """Compile now what would otherwise delay the first decisions."""
        if not self.closed_form:
            self.likelihood.prepare()
            _ = self.outcomes
        if isinstance(self.method, Nuts):
            self.method.prepare(self.model.name)

    def compile_kernels(self) -> None:
        """Compile the kernels of Gibbs, once."""
        if self.engine == gibbs.ENGINE:
            _ = self._warm

    @cached_property
    def _warm(self) -> None:
        """A run on the meaningless rows that a model has, with rewards of 0 and 1; where the
        likelihood excludes these, of 1 and 2, or of 1/3 and 2/3.

        Weights are 1, because a probit likelihood wants whole ones.
        """
        rows = rows_of(self.built)
        reward = rows["reward"]
        rows["weight"] = np.ones(len(reward))
        for tried in (reward, 1.0 + reward, (1.0 + reward) / 3.0):
            try:
                with np.errstate(all="ignore"):
                    self.sample({**rows, "reward": tried}, draws=2, chains=1, seed=0, tune=2)
            except (NotThisEngine, RuntimeError, ValueError, FloatingPointError) as error:
                log.info("%s: no trial run: %s", self.model.name, error)
            else:
                return

    def __reduce__(self) -> tuple[Any, ...]:
        rows = rows_of(self.built) if self.reads_rows else None
        return _again, (self.model, self.n_features, self.n_arms, self.asked, rows, self.made)

    def __deepcopy__(self, memo: dict[int, Any]) -> Plan:
        return self  # nothing in it changes


def plan(
    model: Declaration, n_features: int, n_arms: int | None = None, engine: str = "auto"
) -> Plan:
    """Return the plan for a model of `n_features` features, and of `n_arms` arms if it takes `arm`.

    The model is built on made-up rows. engine: "auto" for the fastest that is exact or samples the
    posterior itself; "exact" for the first closed form that fits; or an engine's name. Raise
    `NotThisEngine` if none fits.
    """
    d = integer(n_features, "n_features", 0)
    if not model.takes_arm and n_arms is not None:
        raise ValueError(f"{model.name} does not take `arm`; n_arms must be None")
    if model.takes_arm:
        if n_arms is None:
            raise ValueError(f"{model.name} takes `arm`: give n_arms, the number of arms")
        n_arms = integer(n_arms, "n_arms", 1)
    with naming_the_model(model, "trial rows (standard normal contexts, rewards 0 and 1)"):
        return plan_of_built(model, template(model, d, n_arms), engine)


@contextmanager
def naming_the_model(model: Declaration, rows: str) -> Iterator[None]:
    """Add the model's name to PyMC's error for a parameter out of its bounds on these rows."""
    try:
        yield
    except ValueError as error:
        if not is_out_of_bounds(error):
            raise
        condition = str(error).splitlines()[0]
        raise ValueError(f"{model.name}: {condition} does not hold on {rows}") from error


def plan_of_built(
    model: Declaration, built: pm.Model, engine: str = "auto", refusals: tuple[Refusal, ...] = ()
) -> Plan:
    """Return the plan for a model that is already built on some rows: of the first engine that
    fits.

    refusals: of engines that are not tried again. What is found is kept by the digest of the built
    model. So the declaration runs each time, and only the analysis is saved.
    """
    # equal digests, equal models: what was found, and compiled, serves again
    made = digest(built)
    with COMPILE:
        functions = _built.get(made or "") or Functions(built, made)
        if made is not None:
            _keep(made, functions)
        key = model, engine, candidates(engine)
        kept: Plan | None = None if refusals else functions.plans.get(key)
        if kept is None:
            kept = _first_that_fits(model, built, engine, refusals, functions)
            # a refusal of these rows says nothing about other ones
            if not refusals and not any(refusal.of_rows for refusal in kept.refusals):
                functions.plans[key] = kept
        return kept


def _first_that_fits(
    model: Declaration,
    built: pm.Model,
    asked: str,
    refusals: tuple[Refusal, ...],
    functions: Functions,
) -> Plan:
    """Return the plan of the first engine that fits, of those that have not refused."""
    check_mean(built, asked)
    check_random(built, asked)
    d = built["x"].get_value(borrow=True).shape[1]
    n_arms = len(built.coords["arm"]) if model.takes_arm else None
    out = {refusal.engine for refusal in refusals}
    # the fastest first; what refuses is kept, for `explain`
    for engine in candidates(asked):
        if engine.name in out:
            continue
        method = functions.match(engine, built)
        if not isinstance(method, Refusal):
            if engine.kind != "exact" and not isinstance(method, Sampler):
                raise TypeError(
                    f"{engine.name}: match must give a sampler, with a method `sample`, or a "
                    f"Refusal; got {shown(method)}"
                )
            return Plan(model, d, n_arms, asked, engine, method, refusals, functions)
        refusals = (*refusals, method)
    if len(refusals) == 1:
        raise NotThisEngine(refusals[0])
    reason = "no engine fits" if asked == "auto" else "no closed form fits"
    raise NotThisEngine(Refusal(asked, "; ".join([reason, *map(str, refusals)])))


_built: dict[str, Functions] = {}  # by the digest of the model, the oldest first


def _keep(made: str, functions: Functions) -> None:
    """Keep what is compiled of a model, and drop the oldest for which there is no room."""
    _built.pop(made, None)
    _built[made] = functions
    while len(_built) > 1 and (
        len(_built) > MAX_KEPT_MODELS or sum(each.nbytes for each in _built.values()) > KEPT_BYTES
    ):
        del _built[next(iter(_built))]


def _again(
    model: Declaration,
    d: int,
    n_arms: int | None,
    engine: str,
    rows: dict[str, Array] | None,
    before: str | None,
) -> Plan:
    """Return a pickled plan, made again.

    before: the digest of its model. Raise ValueError if the declaration builds another one now.
    """
    built = model.build(**rows, n_arms=n_arms) if rows else template(model, d, n_arms)
    if digest(built) != before:
        raise ValueError(f"{model.name} builds another model than when this was stored")
    return plan_of_built(model, built, engine)


def explain(
    model: Declaration, n_features: int, n_arms: int | None = None, bandit: bool = False
) -> str:
    """Return the engine that a model gets, and one line for each faster one that says why not.

    n_arms: None means 2 if the model takes `arm`. bandit: whether to add how a bandit learns it.
    """
    found = plan(model, n_features, 2 if model.takes_arm and n_arms is None else n_arms)
    return found.explain(bandit)
