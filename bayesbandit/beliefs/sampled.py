"""The belief of any declared model: posterior draws, computed anew on a schedule.

The draws are the belief: a Thompson decision takes one of them, for each arm by itself or for all
arms together where they share a model, and so each arm's probability is known exactly. They are
renewed when an arm's rounds have grown by enough, and when they have served as many decisions as
there are draws: a draw that is used for ever is not Thompson sampling.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.beliefs.chains import Chain, Draws, restored, shapes, stored
from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.beliefs.watch import Watch
from bayesbandit.engines.base import Improper, NotThisEngine, one_thread
from bayesbandit.engines.draws import SampledDraws
from bayesbandit.engines.plan import Plan, plan
from bayesbandit.kernels import winners
from bayesbandit.kernels.rules import put_moments, shared
from bayesbandit.posteriors.posterior import Posterior

if TYPE_CHECKING:
    from bayesbandit.beliefs.declared import Declared

IMPROPER = "the posterior is not proper before there are more rewards"
MOST = 4_000_000  # numbers in one step's intermediate results


class SampledBelief:
    """K arms of a declared model by posterior draws; n (K,): observations of each arm.

    `chains` has one posterior for each arm, or a single one where the arms share the model.
    """

    tabulates = True
    computes_when_asked = True  # a question may renew the draws

    def __init__(
        self, spec: Declared, n_arms: int, n_features: int, normalize: bool,
        seed: np.random.SeedSequence,
    ) -> None:  # fmt: skip
        self.spec, self.normalize, self.seed = spec, normalize, seed
        self.n_features = self.n_columns = n_features
        self.joint = spec.model.takes_arm
        self.watch = Watch()
        self.rounds = Rounds(n_features)
        self._set_arms(n_arms)
        self.chains = [Chain() for _ in range(1 if self.joint else n_arms)]

    def _set_arms(self, n_arms: int) -> None:
        spec = self.spec
        self.plan: Plan = plan(
            spec.model, self.n_features, n_arms if self.joint else None, spec.engine
        )
        self.plan.prepare()  # not when the first decision waits for it
        self.n = np.bincount(self.rounds.arm, minlength=n_arms).astype(np.float64)

    def __repr__(self) -> str:
        return f"SampledBelief({self.spec.model.name} by {self.plan.engine}, n_arms={len(self.n)})"

    # ---- draws -----------------------------------------------------------------------------------

    def current(self, g: int, serving: int = 0) -> Draws:
        """The draws of posterior g, renewed if that is due; `serving`: decisions to come."""
        chain = self.chains[g]
        n = int(self.n.sum() if self.joint else self.n[g])
        worn = chain.served >= self.spec.draws and not self.spec.frozen
        if chain.fitted < 0 or n >= self.spec.next_due(chain.fitted) or n < chain.fitted or worn:
            self._run(g, n)
            chain = self.chains[g]
        chain.served += serving
        return chain.values

    def _run(self, g: int, n: int) -> None:
        """New draws from all rounds, by the next engine where one refuses these."""
        with one_thread():
            while True:
                try:
                    return self._sample(g, n)
                except NotThisEngine as error:
                    if self.spec.engine not in ("auto", "exact"):
                        raise
                    self.plan = self.plan.without(error.refusal)
                    self.plan.prepare()
                    self.chains = [replace(chain, state=None) for chain in self.chains]

    def _sample(self, g: int, n: int) -> None:
        chain, spec = self.chains[g], self.spec
        rng = np.random.default_rng(
            np.random.SeedSequence(
                self.seed.entropy, spawn_key=(*self.seed.spawn_key, g, chain.runs)
            )
        )
        number, state, rows = int(rng.integers(2**63)), chain.state, self._rows(g)
        values: Draws = {}
        try:
            if n == 0:
                values = self.plan.prior_draws(spec.draws, number)
            elif self.plan.closed_form:
                known = self.plan.method.posterior(**rows)
                values = Posterior(self.plan, rows, known, number).samples(spec.draws, rng)
            else:
                sampled = self.plan.sample(rows, spec.draws, 1, number, spec.tune, state)
                self.watch(self.plan, sampled, g, rows["x"])
                values, state = {k: v[0] for k, v in sampled.values.items()}, sampled.state
        except Improper:  # until there are more rounds
            state = None
        if spec.frozen and values:  # one draw, at random, from which the sampler goes on
            i = rng.integers(spec.draws)
            values = {k: v[i : i + 1] for k, v in values.items()}
            state = [{**(state[0] if state else {}), **{k: v[0] for k, v in values.items()}}]
        self.chains[g] = Chain(values, state, n, 0, chain.runs + 1)

    def _rows(self, g: int) -> dict[str, np.ndarray]:
        """Posterior g's rounds by role, each arm's weights of mean 1 if they are normalised."""
        rows = self.rounds.of(None if self.joint else g)
        if self.normalize:
            arm = rows.get("arm", np.zeros(len(rows["reward"]), dtype=np.int64))
            mean = np.bincount(arm, rows["weight"]) / np.maximum(np.bincount(arm), 1)
            rows["weight"] = rows["weight"] / mean[arm]
        return rows

    # ---- mean rewards ----------------------------------------------------------------------------

    @property
    def new(self) -> np.ndarray:
        """Arms of which there is no reward, or no proper posterior (K,); a frozen draw needs
        none."""
        without = np.array([not self.current(g) for g in range(len(self.chains))])
        return without | ((self.n == 0) & (not self.spec.frozen))

    def values(self, x: np.ndarray, serving: int = 0) -> np.ndarray:
        """Mean rewards at x (n, d) under the draws: (n, K, S); NaN where there are none so far.

        Of arms that share the model, the s-th of each arm belong together.
        """
        n, K, S = len(x), len(self.n), 1 if self.spec.frozen else self.spec.draws
        if self.joint:
            draws = self.current(0, serving)
            if not draws:
                return np.full((n, K, S), np.nan)
            return self.plan.mean_reward(draws, x).transpose(1, 2, 0)
        out = np.full((n, K, S), np.nan)
        for k in range(K):
            if draws := self.current(k, serving):
                out[:, k] = self.plan.mean_reward(draws, x).T
        return out

    def _proper(self, x: np.ndarray) -> np.ndarray:
        """`values`, which all arms must have."""
        if np.isnan(values := self.values(x)).any():
            raise ValueError(f"{self.spec.model.name}: {IMPROPER}")
        return values

    def parts(self, x: np.ndarray) -> list[slice]:
        """Contexts x (n, d) in parts whose draws fit into memory."""
        step = max(1, MOST // (self.spec.draws * len(self.n)))
        return [slice(i, i + step) for i in range(0, len(x), step)]

    def moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations of the mean rewards at x (n, d): (n, K) each."""
        found = [summary(self.values(x[part])) for part in self.parts(x)]
        mean, sd = map(np.concatenate, zip(*found, strict=True))
        return mean, sd

    def mean(self, x: np.ndarray) -> np.ndarray:
        """Means of the mean rewards at x (n, d): (n, K); where these are affine in the variables,
        those of the variables' means."""
        draws = [self.current(g) for g in range(len(self.chains))]
        if not (all(draws) and getattr(self.plan.method, "affine", False)):
            return self.moments(x)[0]
        centres = [{k: v.mean(axis=0, keepdims=True) for k, v in d.items()} for d in draws]
        means = [self.plan.mean_reward(centre, x)[0] for centre in centres]
        return means[0] if self.joint else np.stack(means, axis=1)

    def describe(
        self, rows: np.ndarray, available: np.ndarray, alpha: np.ndarray | None = None
    ) -> None:
        """Fill the moments of the available arms into rows (n, width), and for Thompson sampling
        with spreads α (1,) or (n,) their probabilities."""
        D = self.n_columns
        for part in self.parts(rows):
            block, new = rows[part], self.new
            values = self.values(block[:, :D], serving=len(block))
            mean, sd = summary(values)
            last = np.where(new, -np.inf, np.inf)
            if alpha is not None:
                a = alpha if alpha.size == 1 else alpha[part]
                last = shared(
                    new, available, lambda old, v=values, a=a: self._compared(v[:, old], a)
                )
            put_moments(block, D, available, mean, sd, last)

    def _compared(self, values: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """P(arm is best) (n, K) from draws (n, K, S), α times as far from their means; all alike as
        long as an arm has none."""
        if np.isnan(values[:, :, 0]).any():
            return np.full(values.shape[:2], 1.0 / values.shape[1])
        mean = values.mean(axis=2, keepdims=True)
        values = mean + alpha[:, None, None] * (values - mean)
        return (
            winners.joint(values.transpose(0, 2, 1)) if self.joint else winners.independent(values)
        )

    def best(self, x: np.ndarray, alpha: Any = 1.0, available: Any = None) -> np.ndarray:
        """P(arm has the largest draw) at x (n, d), each α times as far from its mean, α a number or
        (n,): (n, K), or (n, A) among the `available`."""
        which = slice(None) if available is None else available
        a = np.broadcast_to(np.ravel(alpha), len(x))
        parts = [self._compared(self.values(x[p])[:, which], a[p]) for p in self.parts(x)]
        return np.concatenate(parts)

    def sample(self, x: np.ndarray, alpha: float, rng: np.random.Generator) -> np.ndarray:
        """One independent draw a row of every arm's mean reward, α times as far from its mean as
        the posterior's: (n, K)."""
        values = self._proper(x)
        n, K, S = values.shape
        which = rng.integers(S, size=(n, 1 if self.joint else K))
        drawn = np.take_along_axis(values, np.broadcast_to(which, (n, K))[:, :, None], 2)[:, :, 0]
        mean = values.mean(axis=2)
        return mean + alpha * (drawn - mean)

    def draw(self, x: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
        """Mean rewards under `size` posterior draws (size, n, K); one draw spans all contexts."""
        values = self._proper(x)
        _, K, S = values.shape
        which = rng.integers(S, size=(size, 1 if self.joint else K))
        which = np.broadcast_to(which, (size, K))
        return np.stack([values[:, k, which[:, k]].T for k in range(K)], axis=2)

    # ---- rewards ---------------------------------------------------------------------------------

    def update(
        self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: Any = None
    ) -> None:
        """Rounds x (n, d), arm numbers (n,), rewards (n,), weights (n,; None: 1); nothing of them
        where a reward has likelihood 0, whatever the variables are."""
        self.admit(x, arm, reward)
        self.rounds.append(x, arm, reward, weight)
        self.n += np.bincount(arm, minlength=len(self.n))

    def admit(self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray) -> None:
        """Refuse rewards that are impossible under the model: there would be no posterior."""
        if not self.plan.closed_form:
            rows = {"x": x, "reward": reward, "weight": np.ones(len(x)), "arm": arm}
            draws = [chain.values for chain in self.chains]
            self.plan.likelihood.check(self.spec.model.name, rows, draws)

    def reweigh(
        self, due: Iterable[int], x: np.ndarray, arm: np.ndarray, reward: np.ndarray,
        weight: np.ndarray,
    ) -> None:  # fmt: skip
        """The arms that are due afresh, from all rows: see `update`."""
        here = arm >= 0  # not those of arms that are gone
        self.rounds.clear()
        self.rounds.append(x[here], arm[here], reward[here], weight[here])
        for k in due:
            self.chains[0 if self.joint else k].fitted = -1

    def fork(self) -> SampledBelief:
        """What is known now, to be gone on with while this stays as it is."""
        twin = object.__new__(SampledBelief)
        own = {"rounds": self.rounds.fork(), "n": self.n.copy()}
        vars(twin).update(vars(self), chains=[replace(c) for c in self.chains], **own)
        return twin

    def add_arm(self) -> None:
        """One more arm, about which nothing is known of its own."""
        self._change(len(self.n) + 1)
        if not self.joint:
            self.chains.append(Chain())

    def remove_arm(self, k: int) -> None:
        """Forget arm k; those behind it move up."""
        self.rounds.drop(k)
        self._change(len(self.n) - 1)
        if not self.joint:
            del self.chains[k]

    def _change(self, n_arms: int) -> None:
        self._set_arms(n_arms)
        if self.joint:  # other variables: the sampler begins anew
            self.chains = [Chain(runs=self.chains[0].runs)]

    # ---- all that is known -----------------------------------------------------------------------

    def posterior_of(self, k: int, rows: dict[str, np.ndarray]) -> Posterior:
        """Arm k's variables by the draws that decisions are made from; of arms that share the
        model, all of them."""
        g = 0 if self.joint else k
        values = {name: v[None] for name, v in self.current(g).items()}
        if not values:
            raise ValueError(f"{self.spec.model.name}: {IMPROPER}")
        rows = {role: v[: self.chains[g].fitted] for role, v in self._rows(g).items()}
        known = SampledDraws(values, independent=self.plan.closed_form)
        return Posterior(self.plan, rows, known, 0)

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as arrays and plain values."""
        return {"rounds": self.rounds.state(), **stored(self.chains)}

    def drawn(self) -> dict[str, tuple[int | None, ...]]:
        """The shape of each variable's draws (S, *shape); None for the number of rows."""
        return shapes(self.plan, 1 if self.spec.frozen else self.spec.draws)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.rounds.restore(state["rounds"])
        self._set_arms(len(self.n))
        self.chains = restored(state)


def summary(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations (n, K) of draws (n, K, S); 0 and ∞ where there are none."""
    mean, sd, known = values.mean(axis=2), values.std(axis=2), ~np.isnan(values[:, :, 0])
    return np.where(known, mean, 0.0), np.where(known, sd, math.inf)
