"""Arms by one half-life, or by several (`half_life="auto"`): the best predictor decides."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from scipy.special import logsumexp

from bayesbandit.beliefs.base import Belief, CompiledArms
from bayesbandit.beliefs.memory import Memory
from bayesbandit.checks import Array
from bayesbandit.forms import Form, Numbers, State
from bayesbandit.kernels import scoring


def prior(M: int, first: float = scoring.FIRST_PRIOR) -> Array:
    """Return the prior probabilities (M,) of half-lives, by that of the first."""
    if M == 1:
        return np.ones(1)
    return np.append(first, np.full(M - 1, (1.0 - first) / (M - 1)))


def aligned(shape: tuple[int, ...]) -> Array:
    """Return an uninitialised float64 array that begins at a cache line."""
    size = int(np.prod(shape))
    buffer = np.empty(size + 8)
    start = -buffer.ctypes.data // 8 % 8
    return buffer[start : start + size].reshape(shape)


class HalfLives(Belief, CompiledArms):
    """K arms as arrays, by M half-lives. The most probable half-life decides.

    blocks (M, K, …): the numbers of the arms, which the kernels update in place. log_weight (M,):
    log probabilities of the half-lives, by the exact density that each gave every reward before it
    learned it. The first of several does not forget, and counts the rounds.
    """

    blocks: Array
    log_weight: Array
    memory: Memory
    n_at: ClassVar[int]  # the places of an arm's rounds and of its clock among its numbers
    clock_at: ClassVar[int]

    def _begin(self, memory: Memory, blocks: Sequence[Array]) -> None:
        """Set the arms before any data, an array (K, …) for each half-life."""
        self.memory = memory
        self.clock = memory.ticks
        self.predict_may_refit = self.clock is not None
        self.log_weight = np.log(prior(len(blocks)))
        self._hold(blocks)

    def _hold(self, blocks: Sequence[Array] | Array) -> None:
        """Take a copy of the arms of each half-life, (K, …)."""
        self.blocks = aligned((len(blocks), *blocks[0].shape))
        self.blocks[:] = blocks

    @property
    def arms(self) -> Array:
        """The numbers (K, …) of the arms that decide: those of the most probable half-life."""
        return self.blocks[self.log_weight.argmax()]

    @property
    def half_life(self) -> float | str | None:
        """The half-life that decides: the most probable one, or that of the setting."""
        return self.memory.each()[self.log_weight.argmax()].half_life

    @property
    def n(self) -> Array:
        return self.blocks[0, :, self.n_at]

    @property
    def new(self) -> Array:
        return self.arms[:, self.n_at] == 0

    @property
    def latest(self) -> float:
        """The latest tick of the clock."""
        return float(self.blocks[:, :, self.clock_at].max())

    def ticks(self, n: int, given: Array | None = None) -> Array | None:
        """Return the ticks (n,) of new rounds: those given, or the latest; None without a clock.

        Rounds count by the share of them that is left. Several half-lives learn one after the other
        how well each predicted the rounds. A late round is predicted as of now, and counts as of
        its decision.
        """
        if not self.clock:
            return None
        return np.full(n, self.latest) if given is None else given

    def _weigh(self, scores: Sequence[Array]) -> None:
        """Update the probabilities of half-lives by the log densities (n,) of rewards by each."""
        of_rows = np.column_stack(scores)
        scoring.evidence(of_rows, self.log_weight, np.empty(len(of_rows)))

    def _absorb_probabilities(self, other: HalfLives) -> None:
        """Set the probabilities of half-lives to those by the rewards of both."""
        # P(h | both) ∝ P(h | mine) P(h | other's) / P(h): the prior counts once
        w = self.log_weight + other.log_weight - np.log(prior(len(self.blocks)))
        self.log_weight = w - logsumexp(w)

    def postpone(self, ticks: float) -> None:
        if len(self.blocks) > 1:
            raise ValueError(
                f"{self!r} does not forget by the ages of rounds alone, so it must learn them in "
                "their order: bandit.update(x, arm, reward)"
            )
        self.blocks[:, :, self.clock_at] += ticks

    def fork(self) -> Self:
        """Return a copy that may change while this belief stays as it is."""
        twin = object.__new__(type(self))
        twin.__setstate__(vars(self))
        return twin

    def __setstate__(self, state: State) -> None:
        """Set the state, with copies of the arrays that change; the arms begin at a cache line."""
        vars(self).update(state, log_weight=state["log_weight"].copy())
        self._hold(state["blocks"])

    def state(self) -> State:
        """Return the whole state as arrays, for `restore`: arms (M · K, …), a view."""
        arms = {"arms": self.blocks.reshape(-1, self.blocks.shape[2])}
        return arms if len(self.blocks) == 1 else arms | {"log_weight": self.log_weight}

    @abstractmethod
    def blank(self) -> Array:
        """Return the numbers of an arm without data, (M, 1, …)."""

    @abstractmethod
    def renew(self) -> None:
        """Compute what depends on all arms, after some of them have changed."""

    def add_arm(self) -> None:
        self._hold(np.concatenate([self.blocks, self.blank()], axis=1))
        self.renew()

    def remove_arm(self, k: int) -> None:
        """Remove arm k; later arms move up by one."""
        self._hold(np.delete(self.blocks, k, axis=1))
        self.renew()

    @abstractmethod
    def arms_form(self, n: int) -> object:
        """Return the form of the numbers of n arms."""

    def form(self, state: State, total: int) -> Form:
        M, K, _ = self.blocks.shape
        arms = {"arms": self.arms_form(M * K)}
        return arms if M == 1 else arms | {"log_weight": Numbers((M,))}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        for name, own in HalfLives.state(self).items():
            own[:] = state[name]
