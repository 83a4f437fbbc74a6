"""The belief of any declared model: posterior draws, which rewards weight until they are renewed.

Each reward multiplies the draws' weights by its likelihood, if rows are independent given the
variables: the weighted draws then stand for the posterior of all rounds. Draws are renewed when too
few of them have weight, or after as many decisions as there are draws: using the same draws for
ever would not be Thompson sampling. Draws that cannot be weighted are renewed when an arm's rounds
have grown enough.

In the background, a thread computes new draws of the rounds that there are. The old draws go on,
and are weighted, until it is done; the rounds that came meanwhile then weight the new draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from bayesbandit.beliefs.by_draws import ByDraws
from bayesbandit.beliefs.sampled.chains import (
    Chain,
    Draws,
    check_chain,
    lists,
    restored,
    shapes,
    stored,
)
from bayesbandit.beliefs.sampled.diagnostics import Watch
from bayesbandit.beliefs.sampled.refits import Refit
from bayesbandit.inference.base import Improper, Refusal, Shaped
from bayesbandit.inference.draws import PoorDiagnostics, SampledDraws
from bayesbandit.inference.exact.conjugate import ConjugateEngine
from bayesbandit.inference.gibbs.sampler import TESTED
from bayesbandit.inference.plan import Plan, plan
from bayesbandit.posteriors.posterior import Posterior
from bayesbandit.predictions import IMPROPER
from bayesbandit.runtime.memory import AT_ONCE
from bayesbandit.runtime.one_thread import one_thread
from bayesbandit.runtime.schema import brief, demand

if TYPE_CHECKING:
    from bayesbandit.beliefs.declared import Sampled

Array = np.ndarray
TOGETHER = 64  # rounds whose likelihoods are computed in one call
# With refits in the background, a decision first weights the draws:
BEHIND = 8  # by at most so many rounds, so that it stays quick,
FEW = 0.05  # and by no round that would leave a smaller effective share of the draws


class Renewed(NamedTuple):
    """New draws of a posterior that has these rounds, by role, and the plan that computed them."""

    chain: Chain
    rounds: dict[str, Array]
    plan: Plan
    refused: tuple[Refusal, ...]


class SampledBelief(ByDraws):
    """K arms of a declared model, with posterior draws.

    `chains` has one posterior for each arm, or a single one if the arms share the model.
    """

    computes_when_asked = True  # a prediction may renew the draws

    def __init__(
        self, spec: Sampled, n_arms: int, n_features: int, normalize: bool,
        seed: np.random.SeedSequence,
    ) -> None:  # fmt: skip
        super().__init__(n_arms, n_features, normalize, seed, spec.half_life, spec.clock)
        if spec.background and self.clock:
            raise ValueError(
                f"{spec.declared.name}: draws of a refit in the background would be of rounds that "
                f"have left the window of half_life={spec.half_life!r} by then: background must be "
                "False"
            )
        self.spec, self.joint, self.watch = spec, spec.declared.takes_arm, Watch()
        self.plan = self._planned(n_arms)
        self.weighs, self.background = self._weighs(), spec.background
        self.refused: tuple[Refusal, ...] = ()  # planned engines that refused our rows
        self.chains = [Chain() for _ in range(1 if self.joint else n_arms)]
        if self.background:
            self.renew()  # the first decision need not wait for draws of the prior

    def _planned(self, n_arms: int) -> Plan:
        spec = self.spec
        chosen = plan(spec.declared, self.n_features, n_arms if self.joint else None, spec.engine)
        chosen.prepare()  # compile now, so that the first decision need not wait
        if spec.background:
            chosen.rehearse()  # else the first refit would compile while decisions go on
        return chosen

    def _weighs(self) -> bool:
        """Return whether rewards weight the draws between two refits.

        Weights that are normalised change with each reward, those of past rounds too.
        """
        return not (self.spec.frozen or self.normalize or self.plan.row_likelihood.refused)

    def __repr__(self) -> str:
        return (
            f"SampledBelief({self.spec.declared.name} by {self.plan.engine}, n_arms={len(self.n)})"
        )

    # ---- draws -----------------------------------------------------------------------------------

    def current(self, g: int) -> Draws:
        """Return the draws of posterior g, weighted by its new rounds; draw again if that is due.

        In the background, a refit begins if it is due, and its draws are taken when it is over.
        """
        n, behind = self._count_of(g), self.background and bool(self.chains[g].values)
        if behind:
            self._take(g)
        due = self._due(g, n)
        if behind:
            if not self._weigh(g, n, BEHIND, FEW) or due:
                self._begin(g, n)
        elif due or not self._weigh(g, n, n, self.spec.refit_below):
            self._run(g, n)
        chain = self.chains[g]
        if chain.complaint:
            self.chains[g] = replace(chain, complaint="")
            warnings.warn(chain.complaint, PoorDiagnostics, stacklevel=2)
        return chain.values

    def _begin(self, g: int, n: int) -> None:
        """Begin a refit of posterior g in the background, unless one runs.

        After one that failed, wait for more rounds.
        """
        chain = self.chains[g]
        running = chain.slot.refit
        again = chain.failed < 0 or n >= self.spec.schedule.next_due(chain.failed)
        if again and (running is None or not running.runs):
            twin, rounds, rows = self.fork(), self._rounds(g), self._rows(g)
            chain.slot.refit = Refit(chain.runs + 1, lambda: twin._renewed(g, n, rounds, rows))

    def _renewed(self, g: int, n: int, rounds: dict[str, Array], rows: dict[str, Array]) -> Renewed:
        """Return new draws of posterior g, which has these n rounds, and these rows."""
        self._run(g, n, rows)
        return Renewed(self.chains[g], rounds, self.plan, self.refused)

    def _take(self, g: int) -> None:
        """Take the draws of a refit of posterior g that is over; warn once if one failed.

        Draws of rounds that are not, or no longer, the first ones of posterior g are dropped.
        """
        chain = self.chains[g]
        refit = chain.slot.refit
        if refit is None or refit.runs or refit.number <= chain.runs:
            return
        if refit.lost:
            self.chains[g] = replace(chain, runs=refit.number)
            return
        if error := refit.error:
            self.chains[g] = replace(chain, runs=refit.number, failed=self._count_of(g), served=0)
            if not self.watch.failed:
                self.watch.failed = True
                warnings.warn(
                    f"{self.plan.model.name}: a refit in the background failed: {error}. The old "
                    "draws go on; it is tried again with more rounds. Said once a bandit.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return
        found, now = refit.result(), self._rounds(g)
        n = len(found.rounds["reward"])
        if not all(np.array_equal(now[role][:n], v) for role, v in found.rounds.items()):
            self.chains[g] = replace(chain, runs=refit.number)
            return
        if len(found.refused) > len(self.refused):
            self.plan, self.refused = found.plan, found.refused
            self.weighs = self._weighs()
            self.chains = [replace(c, state=None) for c in self.chains]
        is_late = len(found.refused) < len(self.refused)  # its engine has refused other rounds
        self.chains[g] = replace(found.chain, state=None) if is_late else found.chain

    def renew(self) -> bool:
        before = [chain.runs for chain in self.chains]
        for g in range(len(self.chains)):
            self.current(g)
        return before != [chain.runs for chain in self.chains]

    def _due(self, g: int, n: int) -> bool:
        """Return whether new draws of posterior g are due, at n rounds.

        They are by the number of rounds that came or left the window since the last refit, or by
        that of the decisions made from the draws.
        """
        chain, (gone, then) = self.chains[g], self._gone(g)
        used_up = chain.served >= self.spec.draws and not self.spec.frozen
        if chain.fitted < 0 or n < chain.seen or used_up:
            return True
        if isinstance(self.plan.method, ConjugateEngine):  # new draws are as quick as weights
            return n > chain.fitted or gone > then
        waits = self.weighs and chain.values and self.spec.refit_every is None
        changed = gone - then + (0 if waits else n - chain.fitted)
        fitted = chain.fitted - then  # rounds that were there
        return changed >= self.spec.schedule.next_due(fitted) - fitted

    def _gone(self, g: int) -> tuple[int, int]:
        """Return how many of posterior g's rounds have left the window, and had at its refit."""
        if self.clock is None:
            return 0, 0
        gone, then = self.gone.sum(axis=1) if self.joint else self.gone[:, g]
        return int(gone), int(then)

    def advance(self, tick: float) -> None:
        if self.clock:
            old = self.rounds.records["tick"] <= tick - self.memory.window
            for g, chain in enumerate(self.chains):
                mine = old if self.joint else old[self.rounds.arm == g]
                if mine[len(mine) - self._count_of(g) + chain.seen :].any():
                    chain.fitted = -1  # late rounds, which draws can no longer be weighted by
        super().advance(tick)

    def _weigh(self, g: int, n: int, most: int, least: float) -> bool:
        """Weight the draws of posterior g by those of its n rounds that they do not know yet.

        most: how many rounds. least: the effective share of the draws that must be left. Return
        whether enough draws have weight.
        """
        chain = self.chains[g]
        if not (self.weighs and chain.values):
            return True
        if chain.spent:
            return False
        together, last = max(1, min(TOGETHER, AT_ONCE // self.spec.draws)), chain.seen + most
        while chain.seen < min(n, last):
            rows = self.rounds.latest(n - chain.seen, None if self.joint else g)
            some = {role: v[: min(together, last - chain.seen)] for role, v in rows.items()}
            likelihood = self.plan.row_likelihood(chain.values, some)
            if not self._multiply(g, likelihood, len(some["reward"]), least):
                return False
            chain = self.chains[g]
        return chain.effective >= self.spec.refit_below

    def _multiply(self, g: int, log_likelihood: Array, n: int, least: float) -> bool:
        """Multiply the weights of posterior g's draws by the likelihood (S,) of its next n rounds.

        Return whether the effective share of draws that is left is `least`; if not, they are spent.
        """
        chain = self.chains[g]
        after = chain.weighted(log_likelihood, chain.seen + n)
        enough = after.effective >= least and after.effective > 0.0
        self.chains[g] = after if enough else replace(chain, spent=True)
        return enough

    def weights(self) -> Array | None:
        weights = [chain.weight for chain in self.chains]
        if all(w is None for w in weights):
            return None
        equal = np.ones(self.spec.draws)
        each = np.stack([equal if w is None else w for w in weights])
        return each[0] if self.joint else each

    def decided(self, n: int) -> None:
        for chain in self.chains:
            chain.served += n

    def _run(self, g: int, n: int, rows: dict[str, Array] | None = None) -> None:
        """Draw again from all rounds, `rows` by role; if the engine refuses these, use the next."""
        known = self._rows(g) if rows is None else rows
        with one_thread():
            self.plan.answered(lambda _: self._sample(g, n, known), self._without)

    def _without(self, refusal: Refusal) -> Plan:
        self.plan = self.plan.without(refusal)
        self.refused = (*self.refused, refusal)
        self.plan.prepare()
        self.weighs = self._weighs()
        self.chains = [replace(chain, state=None) for chain in self.chains]
        return self.plan

    def _sample(self, g: int, n: int, rows: dict[str, Array]) -> None:
        chain, spec = self.chains[g], self.spec
        rng = np.random.default_rng(
            np.random.SeedSequence(
                self.seed.entropy, spawn_key=(*self.seed.spawn_key, g, chain.runs)
            )
        )
        number, state, complaint, engine = int(rng.integers(2**63)), chain.state, "", ""
        values: Draws = {}
        try:
            if len(rows["reward"]) == 0 and self.plan.starts_at_prior:
                values = self.plan.functions.prior(spec.draws, number)
            elif self.plan.closed_form:
                known = self.plan.posterior(rows)
                values = Posterior(self.plan, rows, known, number).samples(spec.draws, rng)
            else:
                sampled = self._moved(g, n, rows, rng)
                if sampled is None:
                    sampled = self.plan.sample(rows, spec.draws, 1, number, spec.tune, state)
                    complaint = self.watch(self.plan, sampled, g, rows["x"])
                values, state = {k: v[0] for k, v in sampled.values.items()}, sampled.state
                engine = sampled.engine
        except Improper:  # no draws until there are more rounds
            state = None
        if spec.frozen and values:  # keep one random draw; the sampler continues from it
            i = rng.integers(spec.draws)
            values = {k: v[i : i + 1] for k, v in values.items()}
            state = [{**(state[0] if state else {}), **{k: v[0] for k, v in values.items()}}]
        fresh = Chain(values, state, n, n, runs=chain.runs + 1, engine=engine)
        self.chains[g] = replace(fresh, slot=chain.slot, complaint=complaint)
        self.count_fit(range(len(self.n)) if self.joint else [g])

    def _moved(
        self, g: int, n: int, rows: dict[str, Array], rng: np.random.Generator
    ) -> SampledDraws | None:
        """Return the draws of posterior g, moved to all its n rounds without gradients.

        None if that does not mix, or if the draws' weights cannot know all rounds. Also None each
        time that the number of rounds passes a power of two: the engine then starts from scratch,
        so that errors do not add up, and a mode that no draw is near may be found.
        """
        chain, S = self.chains[g], self.spec.draws
        late, doubled = n - chain.seen, n.bit_length() > chain.fitted.bit_length()
        if self.clock or not (self.weighs and self.plan.moves) or doubled or chain.fitted < 1:
            return None
        if not 0 <= late <= TOGETHER or np.shape(chain.state) != (S, self.plan.dim):
            return None
        if late:
            new = {role: v[chain.seen :] for role, v in rows.items()}
            chain = chain.weighted(self.plan.row_likelihood(chain.values, new), n)
        log_weight = np.zeros(S) if chain.log_weight is None else chain.log_weight
        return self.plan.moved(rows, chain.state, log_weight, rng)

    def _count_of(self, g: int) -> int:
        """Return the number of posterior g's rounds so far, with those that left the window."""
        if self.joint:
            return int(self.n.sum() + self.gone[0].sum())
        return int(self.n[g] + self.gone[0, g])

    def _rounds(self, g: int) -> dict[str, Array]:
        """Return posterior g's rounds by role, with the weights that were given."""
        return self.rounds.of(None if self.joint else g)

    def _rows(self, g: int) -> dict[str, Array]:
        """Return posterior g's rounds by role, with the weights that it is fitted with."""
        return self.rows(None if self.joint else g)

    # ---- mean rewards ----------------------------------------------------------------------------

    @property
    def new(self) -> Array:
        """A mask (K,) of the arms without a reward, or without a proper posterior.

        With frozen draws an arm needs no reward.
        """
        no_draws = np.array([not self.current(g) for g in range(len(self.chains))])
        return no_draws | ((self.n == 0) & (not self.spec.frozen))

    def values(self, x: Array) -> Array:
        """Return mean rewards (n, K, S) at x (n, d) under S draws.

        If the arms share the model, the s-th draws of all arms form one joint draw.
        """
        n, K, S = len(x), len(self.n), 1 if self.spec.frozen else self.spec.draws
        if self.joint:
            draws = self.current(0)
            if not draws:
                return np.full((n, K, S), np.nan)
            return self._rewards(draws, x).transpose(1, 2, 0)
        out = np.full((n, K, S), np.nan)
        for k in range(K):
            if draws := self.current(k):
                out[:, k] = self._rewards(draws, x).T
        return out

    def _all(self, x: Array) -> Array:
        return self.values(x)  # which are checked

    def _rewards(self, draws: Draws, x: Array) -> Array:
        """Return mean rewards (S, n) or (S, n, K) at x (n, d); raise ValueError if not finite."""
        mean = self.plan.mean_reward(draws, x)
        if not np.isfinite(mean).all():
            wrong, largest = mean[~np.isfinite(mean)][0], np.abs(x).max(initial=0.0)
            raise ValueError(
                f"{self.spec.declared.name} gives a mean reward of {wrong:g} under a posterior "
                f"draw, at contexts as large as {largest:g}"
            )
        return mean

    def at_once(self, x: Array) -> int:
        return AT_ONCE // (self.spec.draws * len(self.n))

    # ---- rewards ---------------------------------------------------------------------------------

    def _append(
        self, tick: Array, x: Array, arm: Array, reward: Array, weight: Array | None
    ) -> None:
        """Add rounds: see `update`.

        A single reward weights the draws at once: if one of them makes it likely, it is possible.
        Raise ValueError and learn nothing if a reward has likelihood 0 for all variables.
        """
        likelihood = self._likelihood(x, arm, reward, weight)
        likely = likelihood is not None and likelihood.max() > -np.inf
        self.admit(x, arm, reward, possible=likely and self.plan.row_likelihood.whole)
        super()._append(tick, x, arm, reward, weight)
        if likelihood is not None:
            least = FEW if self.background else self.spec.refit_below
            self._multiply(0 if self.joint else int(arm[0]), likelihood, 1, least)

    def _likelihood(
        self, x: Array, arm: Array, reward: Array, weight: Array | None
    ) -> Array | None:
        """Return the log likelihood (S,) of one round under the draws that know all before it; None
        of more rounds, or where there are no such draws."""
        if len(x) != 1 or not self.weighs:
            return None
        g = 0 if self.joint else int(arm[0])
        chain, weights = self.chains[g], np.ones(1) if weight is None else weight
        if not chain.values or chain.spent or chain.seen != self._count_of(g):
            return None
        rows = {"x": x, "reward": reward, "weight": weights, "arm": arm}
        return self.plan.row_likelihood(chain.values, rows)

    def admit(self, x: Array, arm: Array, reward: Array, possible: bool = False) -> None:
        """Raise ValueError if a reward is impossible under the model: no posterior would exist.

        possible: whether a draw is known to make the rewards likely.
        """
        rows = {"x": x, "reward": reward, "weight": np.ones(len(x)), "arm": arm}
        self.plan.check_possible(rows, [chain.values for chain in self.chains], possible)

    def learn(self, arms: Iterable[int]) -> None:
        """Do nothing: draws are weighted or renewed when they are next used."""

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        super().reweigh(due, x, arm, reward, weight)
        for k in due:
            self.chains[0 if self.joint else k].fitted = -1

    def refit_when_asked(self) -> None:
        self.background = False

    def fork(self) -> Self:
        twin = object.__new__(type(self))
        copies = {"rounds": self.rounds.fork(), "n": self.n.copy()}
        vars(twin).update(vars(self), chains=[c.fork() for c in self.chains], **copies)
        return twin

    def add_arm(self) -> None:
        super().add_arm()
        if not self.joint:
            self.chains.append(Chain())

    def remove_arm(self, k: int) -> None:
        super().remove_arm(k)
        if not self.joint:
            del self.chains[k]

    def _change(self, n_arms: int) -> None:
        super()._change(n_arms)
        if self.joint:  # the variables have other shapes: the sampler starts again
            self.plan, self.refused = self._planned(n_arms), ()
            self.weighs = self._weighs()
            self.chains = [Chain(runs=self.chains[0].runs)]

    # ---- all that is known -----------------------------------------------------------------------

    def posterior(self, k: int, rows: dict[str, Array]) -> Posterior:
        """Return the posterior of arm k's variables from all rounds so far.

        If the arms share the model, it is that of all arms. It is kept until the rounds change.
        Decisions still use their own draws, which may not know the latest rounds, and their random
        numbers do not change.
        """
        g = 0 if self.joint else k
        if g not in self.refitted:
            self.refitted[g] = self._refitted(g)
        return self.refitted[g]

    def _refitted(self, g: int) -> Posterior:
        """Return posterior g of all rounds, computed on a fork."""
        twin, chain = self.fork(), self.chains[g]
        n = self._count_of(g)
        if self.plan.engine == "laplace" and n:  # the mode is known, and its draws are not needed
            rows = self._rows(g)
            return Posterior(self.plan, rows, self.plan.sample(rows, self.spec.draws, 1, 0), 0)
        known = chain.fitted == n and len(set(self._gone(g))) == 1
        if not known or self.spec.frozen:  # one frozen draw is not a posterior
            twin.spec = replace(self.spec, frozen=False)
            twin._run(g, n)
        if not (draws := twin.chains[g].values):
            raise ValueError(f"{self.plan.model.name}: {IMPROPER}")
        values = {name: v[None] for name, v in draws.items()}
        engine = twin.chains[g].engine
        sampled = SampledDraws(values, independent=twin.plan.closed_form, engine=engine)
        return Posterior(twin.plan, twin._rows(g), sampled, 0)

    def state(self) -> dict[str, Any]:
        """Return the whole state as arrays and plain values, for `restore`."""
        refused = [[refusal.engine, refusal.reason] for refusal in self.refused]
        return super().state() | stored(self.chains) | {"refused": refused}

    def drawn(self) -> dict[str, tuple[int | None, ...]]:
        """Return the shape (S, *shape) of each variable's draws; None stands for the rows."""
        return shapes(self.plan, 1 if self.spec.frozen else self.spec.draws)

    def held(self, state: Mapping[str, Any]) -> dict[str, tuple[int | None, ...]]:
        """Return the shape of each value of a sampler's state; None stands for the rows."""
        method = self.plan.method
        if isinstance(method, Shaped):
            shapes = method.all_shapes
        else:
            shapes = {name: shape[1:] for name, shape in self.drawn().items()}
        return shapes | ({TESTED: ()} if TESTED in state else {})

    def restore(self, state: dict[str, Any]) -> None:
        self.restore_rounds(state)
        for engine, reason in lists(state.get("refused", []), 2, "refused"):
            demand(engine == self.plan.engine, f"its rows were refused by {brief(engine)}")
            self._without(Refusal(engine, str(reason), of_rows=True))
        self.chains = restored(state, len(self.chains))

    def verify(self, total: int) -> None:
        super().verify(total)
        for chain in self.chains:
            state = chain.state[0] if isinstance(chain.state, list) and chain.state else {}
            check_chain(chain, self.drawn(), self.held(state), self.plan)
            demand(max(chain.fitted, chain.seen) <= total, "its draws know rounds that are to come")
