"""The belief of any declared model: posterior draws, which rewards weight until the next refit.

Each reward multiplies the draws' weights by its likelihood, (11) of mathematics.md, if rows are
independent given the variables: the weighted draws then stand for the posterior of all rounds.
Draws are computed again when too few of them have weight, or after as many decisions as there are
draws: using the same draws for ever would not be Thompson sampling. Draws that cannot be weighted
are computed again when an arm's rounds have grown enough.

In the background, a thread computes new draws on a fork. The old draws go on, and are weighted,
until it is done; the rounds that came meanwhile then weight the new draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bayesbandit.beliefs.by_draws import ByDraws
from bayesbandit.beliefs.sampled.cloud import (
    Cloud,
    Shapes,
    cloud_form,
    restored,
)
from bayesbandit.beliefs.sampled.watch import Watch
from bayesbandit.checks import Array
from bayesbandit.forms import Arrays, Form, Row, State, check, demand, picked, prefixed, unprefixed
from bayesbandit.inference.base import Improper, Refusal
from bayesbandit.inference.draws import Draws, Rows, SampledDraws
from bayesbandit.inference.exact.conjugate import ConjugateEngine
from bayesbandit.inference.gibbs import sampler as gibbs
from bayesbandit.inference.graph_analysis.density import read
from bayesbandit.inference.plan import Plan
from bayesbandit.posteriors.posterior import Posterior
from bayesbandit.predictions import IMPROPER_POSTERIOR
from bayesbandit.runtime.memory import AT_ONCE
from bayesbandit.runtime.one_thread import one_thread

if TYPE_CHECKING:
    from bayesbandit.beliefs.declared import Sampled

ROUNDS_AT_ONCE = 64  # whose likelihoods are computed in one call
# With refits in the background, a decision first weights the draws:
MAX_ROUNDS_BEHIND = 8  # by at most so many rounds, so that it stays quick,
MIN_SHARE_BEHIND = 0.05  # and by no round that would leave a smaller effective share of the draws


class SampledBelief(ByDraws):
    """K arms of a declared model, with posterior draws.

    `clouds` has the draws of each arm's posterior, or of the one that the arms share.
    """

    predict_may_refit = True  # a prediction may compute draws

    def __init__(
        self, spec: Sampled, plan: Plan, n_arms: int, normalize: bool, seed: np.random.SeedSequence
    ) -> None:
        super().__init__(n_arms, plan.n_features, normalize, seed)
        self.refitted: dict[int, Posterior] = {}  # of all rounds, by `posterior`
        self.spec = spec
        self.joint = spec.declared.takes_arm
        self.background = spec.background
        self.watch = Watch()
        self.decisions = 0  # made so far
        self._start(plan)
        if self.background:
            self.refit_if_due()  # the first decision need not wait for draws of the prior

    def _start(self, plan: Plan, runs: int = 0) -> None:
        """Begin without draws. runs: how often they have been computed."""
        self.plan = plan
        plan.prepare()  # compile now, so that the first decision need not wait
        if self.spec.background:
            plan.compile_kernels()  # else the first refit would compile while decisions go on
        self.refused: tuple[Refusal, ...] = ()  # planned engines that refused our rows
        self.clouds = [Cloud(runs=runs) for _ in range(1 if self.joint else len(self.n))]

    def __repr__(self) -> str:
        return (
            f"SampledBelief({self.spec.declared.name} by {self.plan.engine}, n_arms={len(self.n)})"
        )

    @property
    def weighs(self) -> bool:
        """Whether rewards weight the draws between two refits.

        Weights that are normalised change with each reward, those of past rounds too.
        """
        return not (self.spec.frozen or self.normalize or self.plan.row_likelihood.refused)

    def _arm(self, g: int) -> int | None:
        """Return the arm whose rounds posterior g has; None: all."""
        return None if self.joint else g

    def _of(self, k: int) -> int:
        """Return the posterior that arm k has."""
        return 0 if self.joint else k

    def _count(self, g: int) -> int:
        """Return how many rounds posterior g has."""
        return int(self.n.sum() if self.joint else self.n[g])

    # ---- when draws are computed -----------------------------------------------------------------

    def current(self, g: int) -> Draws:
        """Return the draws of posterior g: weighted by its new rounds, or new ones if they are due.

        In the background the old draws go on, and weight fewer rounds: a refit begins if it is due,
        and its draws are taken when it is over.
        """
        waits = self.background and bool(self.clouds[g].values)
        if waits:
            self._take(g)
        due = self._due(g)
        if waits:
            due |= not self._weigh(g, MAX_ROUNDS_BEHIND, MIN_SHARE_BEHIND)
        elif not due:
            due = not self._weigh(g, None, self.spec.refit_below)
        if due:
            refit = self._begin if waits else self._refit
            refit(g)
        self.watch.warn()
        return self.clouds[g].values

    def refit_if_due(self) -> bool:
        before = [cloud.runs for cloud in self.clouds]
        for g in range(len(self.clouds)):
            self.current(g)
        return before != [cloud.runs for cloud in self.clouds]

    def _due(self, g: int) -> bool:
        """Return whether new draws of posterior g are due.

        They are by the number of rounds that came since the last refit, or by that of the decisions
        made from the draws.
        """
        cloud = self.clouds[g]
        spec = self.spec
        n = self._count(g)
        used_up = self.decisions - cloud.since >= spec.draws and not spec.frozen
        if cloud.fitted < 0 or n < cloud.seen or used_up:
            return True
        if isinstance(self.plan.method, ConjugateEngine):  # new draws are as quick as weights
            return n > cloud.fitted
        if self.weighs and cloud.values and spec.refit_every is None:
            return False
        return n >= spec.schedule.next_due(cloud.fitted)

    def _begin(self, g: int) -> None:
        """Begin a refit of posterior g in the background, unless one runs.

        After one that failed, wait for more rounds.
        """
        cloud = self.clouds[g]
        wait = cloud.failed >= 0 and self._count(g) < self.spec.schedule.next_due(cloud.failed)
        if not (cloud.refit.runs or wait):
            twin = self.fork()

            def refit() -> tuple[SampledBelief, int]:
                twin._refit(g)
                return twin, g

            cloud.refit.begin(cloud.runs + 1, refit)

    def _take(self, g: int) -> None:
        """Take the draws of a refit of posterior g that is over.

        Draws of rounds that are not, or no longer, the first ones of posterior g are dropped, but
        for weights. So is a refit that was lost or has failed.
        """
        cloud = self.clouds[g]
        refit = cloud.refit
        if refit.runs or refit.number <= cloud.runs:
            return
        self.clouds[g] = replace(cloud, runs=refit.number)
        if refit.error is not None:
            failed = self._count(g)
            self.clouds[g] = replace(self.clouds[g], failed=failed, since=self.decisions)
            self.watch.warn_of_failure(self.plan, refit.error)
        if refit.result is None:
            return
        twin, h = refit.result  # posterior h of a fork, whose arms may have other numbers
        then = twin.rounds.of(twin._arm(h))
        now = self.rounds.of(self._arm(g))
        changed = {k for k, v in then.items() if not np.array_equal(now[k][: len(v)], v)}
        if changed - {"weight"}:
            return
        if len(twin.refused) > len(self.refused):
            self._switch(twin.plan, twin.refused)
        is_late = len(twin.refused) < len(self.refused)  # its engine has refused other rounds
        new = replace(twin.clouds[h], since=self.decisions)
        if changed:  # the past weighs otherwise by now: better than older draws, and due again
            new = replace(new, fitted=-1)
        self.clouds[g] = replace(new, state=None) if is_late else new

    def _switch(self, plan: Plan, refused: tuple[Refusal, ...]) -> None:
        """Go on with another engine, to which the states of samplers mean nothing."""
        self.plan = plan
        self.refused = refused
        self.clouds = [replace(cloud, state=None) for cloud in self.clouds]

    # ---- weights ---------------------------------------------------------------------------------

    def _weigh(self, g: int, most: int | None, least: float) -> bool:
        """Weight the draws of posterior g by those of its rounds that they do not know yet.

        most: how many rounds (None: all). least: the effective share of the draws that must be
        left. Return whether enough draws have weight.
        """
        cloud = self.clouds[g]
        if not (self.weighs and cloud.values):
            return True
        n = self._count(g)
        last = n if most is None else min(n, cloud.seen + most)
        step = max(1, min(ROUNDS_AT_ONCE, AT_ONCE // self.spec.draws))
        rows = self.rounds.of(self._arm(g)) if cloud.seen < last else {}
        while cloud.seen < last and not cloud.spent:
            end = min(cloud.seen + step, last)
            new_rows = picked(rows, slice(cloud.seen, end))
            likelihood = self.plan.row_likelihood(cloud.values, new_rows)
            cloud = cloud.after(likelihood, end - cloud.seen, least)
        self.clouds[g] = cloud
        return not cloud.spent and cloud.effective >= self.spec.refit_below

    def weights(self) -> Array | None:
        weights = [cloud.weight for cloud in self.clouds]
        if all(w is None for w in weights):
            return None
        equal = np.ones(self.spec.draws)
        each = np.stack([equal if w is None else w for w in weights])
        return each[0] if self.joint else each

    def count_decisions(self, n: int) -> None:
        self.decisions += n

    # ---- new draws -------------------------------------------------------------------------------

    def _refit(self, g: int) -> None:
        """Compute draws of posterior g from its rounds; if the engine refuses, by the next."""
        rows = self.rows(self._arm(g))
        with one_thread():
            before = self.plan.engine
            self.plan.try_engines(lambda _: self._draw(g, rows), self._without)
        if self.plan.engine != before:
            what = f"{self.spec.declared.name} is drawn by {self.plan.engine} from now on"
            warnings.warn(f"{what}, not by {before}: {self.refused[-1]}", stacklevel=2)

    def _without(self, refusal: Refusal) -> Plan:
        self._switch(self.plan.without(refusal), (*self.refused, refusal))
        self.plan.prepare()
        return self.plan

    def _draw(self, g: int, rows: Arrays) -> None:
        """Put draws of posterior g, which has these rows, in the place of its cloud."""
        cloud = self.clouds[g]
        spec = self.spec
        n = self._count(g)
        key = (*self.seed.spawn_key, g, cloud.runs)
        rng = np.random.default_rng(np.random.SeedSequence(self.seed.entropy, spawn_key=key))
        try:
            drawn = self._drawn(g, rows, int(rng.integers(2**63)), rng)
        except Improper:  # no draws until there are more rounds
            drawn = SampledDraws({})
        # in C's order, as a file gives them back: the last digits of products depend on it
        values = {name: np.ascontiguousarray(v[0]) for name, v in drawn.values.items()}
        state: Any = drawn.state
        if spec.frozen and values:  # keep one random draw; the sampler continues from it
            i = rng.integers(spec.draws)
            last = state[0] if state else {}
            values = picked(values, slice(i, i + 1))
            one = {**last, **picked(values, 0)}
            state = [one] if self._shapes_of_state(self.plan).keys() <= one.keys() else None
        self.clouds[g] = Cloud(
            values, state, fitted=n, seen=n, since=self.decisions, runs=cloud.runs + 1,
            refit=cloud.refit,
        )  # fmt: skip

    def _drawn(self, g: int, rows: Arrays, seed: int, rng: np.random.Generator) -> SampledDraws:
        """Return one chain of draws: from the prior, a closed form, or a sampler."""
        plan = self.plan
        S = self.spec.draws
        state = self.clouds[g].state
        if len(rows["reward"]) == 0 and plan.starts_at_prior:
            return _one_chain(plan.functions.prior(S, seed), state)
        if plan.closed_form:
            posterior = Posterior(plan, rows, plan.posterior(rows), seed)
            return _one_chain(posterior.samples(S, rng), state)
        drawn = plan.sample(rows, S, 1, seed, self.spec.tune, state)
        self.watch.check(plan, drawn, g, rows["x"])
        return drawn

    # ---- mean rewards ----------------------------------------------------------------------------

    @property
    def new(self) -> Array:
        """A mask (K,) of the arms without a reward, or without a proper posterior.

        With frozen draws an arm needs no reward.
        """
        no_draws = np.array([not self.current(g) for g in range(len(self.clouds))])
        return no_draws | ((self.n == 0) & (not self.spec.frozen))

    def values(self, x: Array) -> Array:
        """Return mean rewards (n, K, S) at x (n, d) under S draws.

        If the arms share the model, the s-th draws of all arms form one joint draw.
        """
        out = np.full((len(x), len(self.n), 1 if self.spec.frozen else self.spec.draws), np.nan)
        for g in range(len(self.clouds)):
            if draws := self.current(g):
                if self.joint:
                    return self._rewards(draws, x).transpose(1, 2, 0)
                out[:, g] = self._rewards(draws, x).T
        return out

    def _all(self, x: Array) -> Array:
        return self.values(x)  # which are checked

    def _rewards(self, draws: Draws, x: Array) -> Array:
        """Return mean rewards (S, n) or (S, n, K) at x (n, d); raise ValueError if not finite."""
        mean = self.plan.outcomes.mean_reward(draws, x)
        if not np.isfinite(mean).all():
            wrong = mean[~np.isfinite(mean)][0]
            largest = np.abs(x).max(initial=0.0)
            raise ValueError(
                f"{self.spec.declared.name} gives a mean reward of {wrong:g} under a posterior "
                f"draw, at contexts as large as {largest:g}"
            )
        return mean

    def max_batch(self, x: Array) -> int:
        return AT_ONCE // (self.spec.draws * len(self.n))

    # ---- rewards ---------------------------------------------------------------------------------

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Learn rounds.

        A single reward weights the draws at once: if one of them makes it likely, it is possible.
        Raise ValueError and learn nothing if a reward has likelihood 0 for all variables.
        """
        rows = {"x": x, "reward": reward, "weight": np.ones(len(x)), "arm": arm}
        likelihood = self._likelihood(rows if weight is None else {**rows, "weight": weight})
        likely = likelihood is not None and likelihood.max() > -np.inf
        self.plan.check_possible(rows, [cloud.values for cloud in self.clouds], likely)
        super().update(x, arm, reward, weight)
        if likelihood is not None:
            least = MIN_SHARE_BEHIND if self.background else self.spec.refit_below
            g = self._of(int(arm[0]))
            self.clouds[g] = self.clouds[g].after(likelihood, 1, least)

    def _likelihood(self, rows: Rows) -> Array | None:
        """Return the log likelihood (S,) of one round under the draws that know all before it; None
        of more rounds, or where there are no such draws."""
        if len(rows["x"]) != 1 or not self.weighs:
            return None
        g = self._of(int(rows["arm"][0]))
        cloud = self.clouds[g]
        if not cloud.values or cloud.spent or cloud.seen != self._count(g):
            return None
        return self.plan.row_likelihood(cloud.values, rows)

    def learn(self, arms: Iterable[int]) -> None:
        self.refitted = {}

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        super().reweigh(due, x, arm, reward, weight)
        for g in {self._of(k) for k in due}:
            self.clouds[g] = replace(self.clouds[g], fitted=-1)  # its draws are due

    def refit_when_asked(self) -> None:
        self.background = False

    def add_arm(self) -> None:
        super().add_arm()
        if self.joint:  # the variables have other shapes
            self._start_again()
        else:
            self.clouds.append(Cloud())

    def remove_arm(self, k: int) -> None:
        super().remove_arm(k)
        if self.joint:
            self._start_again()
        else:
            del self.clouds[k]

    def _start_again(self) -> None:
        self._start(self.spec.plan(len(self.n), self.n_features), self.clouds[0].runs)

    # ---- all that is known -----------------------------------------------------------------------

    def posterior(self, k: int, rows: Arrays) -> Posterior:
        """Return the posterior of arm k's variables from all rounds so far.

        If the arms share the model, it is that of all arms. It is kept until the rounds change.
        Decisions still use their own draws, which may not know the latest rounds, and their random
        numbers do not change.
        """
        g = self._of(k)
        if g not in self.refitted:
            self.refitted[g] = self._refitted(g)
        return self.refitted[g]

    def _refitted(self, g: int) -> Posterior:
        """Return posterior g of all rounds, computed on a fork."""
        rows = self.rows(self._arm(g))
        n = self._count(g)
        if self.plan.engine == "laplace" and n:  # the mode is known, and its draws are not needed
            return Posterior(self.plan, rows, self.plan.sample(rows, self.spec.draws, 1, 0), 0)
        twin = self.fork()
        if self.clouds[g].fitted != n or self.spec.frozen:  # one frozen draw is not a posterior
            twin.spec = replace(self.spec, frozen=False)
            twin._refit(g)
        cloud = twin.clouds[g]
        if not cloud.values:
            raise ValueError(f"{self.plan.model.name}: {IMPROPER_POSTERIOR}")
        sampled = _one_chain(cloud.values)
        sampled = replace(sampled, independent=twin.plan.closed_form)
        return Posterior(twin.plan, rows, sampled, 0)

    def fork(self) -> Self:
        twin = object.__new__(type(self))
        copies = {"rounds": self.rounds.fork(), "n": self.n.copy(), "clouds": [*self.clouds]}
        vars(twin).update(vars(self) | copies)
        return twin

    def state(self) -> State:
        """Return the whole state as arrays and plain values, for `restore`."""
        out = super().state()
        out["refused"] = [[refusal.engine, refusal.reason] for refusal in self.refused]
        for g, cloud in enumerate(self.clouds):
            out |= {f"{g}.{name}": v for name, v in cloud.stored(self.decisions).items()}
        return out

    def form(self, state: State, total: int) -> Form:
        check(state["refused"], [Row(str, str)], "its refusals")
        plan = self.plan
        for engine, reason in state["refused"][len(self.refused) :]:
            demand(engine == plan.engine, f"its rows were refused by {engine}")
            plan = plan.without(Refusal(engine, reason, of_rows=True))
        form: Form = super().form(state, total)
        form["refused"] = list
        drawn = self._shapes(plan)
        held = {**self._shapes_of_state(plan), f"{gibbs.TESTED_ROWS_KEY}?": ()}
        by_name = plan.engine == gibbs.ENGINE
        for g in range(len(self.clouds)):
            own = unprefixed(state, f"{g}.")
            form |= prefixed(f"{g}.", cloud_form(own, drawn, held, by_name))
        return form

    def restore(self, state: State) -> None:
        super().restore(state)
        for engine, reason in state["refused"][len(self.refused) :]:
            self._without(Refusal(engine, reason, of_rows=True))
        self.decisions = 0
        self.clouds = [restored(unprefixed(state, f"{g}.")) for g in range(len(self.clouds))]

    def _shapes(self, plan: Plan) -> Shapes:
        """Return the shape (S, *shape) of each variable's draws; None: the number of rows."""
        size = 1 if self.spec.frozen else self.spec.draws
        return {k: (size, *v.type.shape) for k, v in read(plan.built).values.items()}

    def _shapes_of_state(self, plan: Plan) -> Shapes:
        """Return the shape of each value of a sampler's state."""
        if isinstance(plan.method, gibbs.Gibbs):
            return plan.method.all_shapes
        return {name: shape[1:] for name, shape in self._shapes(plan).items()}


def _one_chain(values: Draws, state: Any = None) -> SampledDraws:
    """Return draws (S, *shape) by name as those of one chain."""
    return SampledDraws(picked(values, None), state)
