"""The log of a bandit's rounds, in the order of their decisions: the input of every estimate."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit.checks import (
    MAX_ABS_VALUE,
    PROBABILITY_TOLERANCE,
    Array,
    Table,
    arm_column,
    column_names,
    finite,
    floats,
    instants,
    number,
    one_a_row,
    same_rows,
)
from bayesbandit.history import name_array
from bayesbandit.ope.logs.columns import (
    arms_of,
    ascending,
    available_of,
    contexts_of,
    matrix_of,
    numbers_of,
    propensities_of,
    rewards_of,
)
from bayesbandit.store.log import DecisionLog
from bayesbandit.tables.encoder import Encoder
from bayesbandit.tables.roles import Roles, blamed

MAX_BLOCK_SHARE = 50  # a log without batches gets new ones of at most a 50th of the rounds before
MIN_BLOCK_ROUNDS = 20  # or of this many rounds
OF_ROUNDS = (  # attributes with a value for each round
    "x", "played", "reward", "propensity", "probabilities", "available", "batch", "time",
    "reward_time", "mean", "index",
)  # fmt: skip
CACHED_FIELDS = "batches", "checked"  # what a log keeps of its rounds


class Log:
    """A log: rounds t = 0 … n − 1 with contexts, chosen arms, rewards and probabilities.

    Rounds are in the order of their decisions.

    x: contexts (n, d), an array or a table of numbers; None without contexts.
    arm: names of the chosen arms (n,).
    reward: their rewards (n,). NaN is a reward that has not come yet, or is missing.
    probabilities: every arm's probability at the moment of decision (n, K). If it is a table, its
        columns are the arms' names.
    arms: the names of the columns of `probabilities`. Default: 0 … K − 1, if arms are such numbers.
    propensity: the chosen arm's probability (n,), if those of the others are not known. With two
        arms, the other's is computed, unless `available` is given.
    batch: labels (n,), ascending. The policy may change only between batches; predicted means and
        weights change there, too. Default: batch sizes double from one round to a fiftieth of the
        rounds before, or to 20 rounds if that is more.
    mean: mean rewards (n, K) that were predicted before each round, for example by the bandit.
    snapshots: the policies of the batches: their probabilities (B, n, K) at all contexts, by batch.
    available: a mask (n, K) of the available arms.
    time, reward_time: when each round was decided, and when its reward came (n,).

    The columns are checked once, here, and copied. A slice is a log: `log[:500]`; see `split` and
    `within`.

    Of a log that was read from a table, `encoder` has made the contexts (None: they were numbers),
    and `roles` says which column plays which role (`print(log.roles)`). `of_table` is True if the
    contexts, or what the encoder made them of, are a table's columns, and not a bandit's history.
    `index`: the labels of the rows of a table, with which masks and others are compared.
    """

    encoder: Encoder | None = None
    roles: Roles | None = None

    def __init__(
        self,
        x: Any,
        arm: Any,
        reward: Any,
        probabilities: Any = None,
        arms: Any = None,
        propensity: Any = None,
        batch: Any = None,
        mean: Any = None,
        snapshots: Any = None,
        available: Any = None,
        time: Any = None,
        reward_time: Any = None,
    ) -> None:
        self.index = same_rows(
            x=x, arm=arm, reward=reward, probabilities=probabilities, propensity=propensity,
            batch=batch, mean=mean, available=available, time=time, reward_time=reward_time,
        )  # fmt: skip
        chosen = arm_column(arm)
        n = len(chosen)
        if chosen.ndim != 1:
            raise ValueError(f"arm must have one name a round; got {chosen.shape}")
        if n < 2:
            raise ValueError(f"a log needs at least two rounds; got {n}")
        if arms is None and isinstance(probabilities, Table):
            arms = column_names(probabilities)
        self.arms = arms_of(arms, chosen, probabilities)
        self.played = numbers_of(chosen, self.arms)
        self.features, self.x = contexts_of(x, n)
        self.of_table = isinstance(x, Table)
        self.reward = rewards_of(reward, n)
        self.probabilities, self.propensity = propensities_of(
            probabilities, propensity, self.played, self.arms, available is None
        )
        self.available = available_of(available, self.played, self.probabilities, self.arms)
        self.batch = ascending(batch, n, "batch")
        self.time = ascending(time, n, "time")
        self.reward_time = (
            None if reward_time is None else one_a_row(instants(reward_time), n, "reward_time")
        )
        if self.time is not None and self.reward_time is not None:
            odd = self.reward_time < self.time
            if odd.any():
                t = int(np.argmax(odd))
                raise ValueError(
                    f"the reward of round {t} came before its decision: reward_time "
                    f"{self.reward_time[t]:g}, time {self.time[t]:g}"
                )
        self.mean = None if mean is None else finite(matrix_of(mean, n, self.arms, "mean"), "mean")
        self.snapshots = self._checked_snapshots(snapshots)
        # what was given may change later, and was checked now
        for name in (*OF_ROUNDS, "snapshots"):
            if isinstance(values := getattr(self, name), Array):
                setattr(self, name, values.copy())

    def __len__(self) -> int:
        return len(self.played)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.arms[:5])) + (", …" if len(self.arms) > 5 else "")
        column = "probabilities" if self.probabilities is not None else "propensities"
        return f"Log({len(self)} rounds, arms=[{shown}], {column})"

    def __getitem__(self, rows: slice | Array) -> Log:
        """Return some of the rounds, in order: by a slice that goes forward, or a mask (n,)."""
        same_rows(self.index, mask=rows)
        which = np.arange(len(self))[rows]
        if which.ndim != 1 or (np.diff(which) <= 0).any():
            raise IndexError("rounds must be a slice that goes forward, or true and false (n,)")
        if len(which) < 2:
            raise ValueError(f"a log needs at least two rounds; got {len(which)} of {len(self)}")
        part = copy(self)
        for name in CACHED_FIELDS:
            vars(part).pop(name, None)
        for name in OF_ROUNDS:
            values = getattr(self, name)
            setattr(part, name, None if values is None else values[which])
        if self.snapshots is not None:
            part.snapshots = self.snapshots[:, which]
        return part

    @staticmethod
    def of(source: Any, **columns: Any) -> Log:
        """Return the log of a bandit's `history`, of a `DecisionLog`, or of a table.

        A `history` has its rounds in the order of their rewards. Decisions must have had the same
        order: late rewards would bias all estimates.

        For a table, arm, reward, propensity, time, reward_time and batch are names of columns;
        probabilities is a dict from arms to columns. Without them, a role belongs to the
        column with its own name: arm, reward, propensity, time, reward_time, batch; else action or
        item_id, click, pscore, timestamp. `probability_ARM` or `p_ARM` are the arms' probabilities
        if each arm that was chosen has such a column. An arm with probability 0 was not available.
        All other columns are contexts, which must be numbers. x: the columns of contexts instead.
        drop: columns to leave out. keep: columns that are contexts, although their names, or values
        that look like dates or identifiers, say otherwise. encoder: an encoder that makes numbers
        of its columns. arms: the arms' names; default: those with a probability, or those that
        were chosen.
        `print(log.roles)` says which column is what. The table of `history.to_frame()` has known
        columns: its weights, which tell the arm, are left out.

        For a `DecisionLog`, since and until are times. Decisions that were not shown are left out.

        For files, see `read_log`.
        """
        from bayesbandit.ope.logs.readers import of_frame, of_history
        from bayesbandit.ope.logs.stored import of_decisions

        if isinstance(source, DecisionLog):
            parts = of_decisions(source, **columns)
        elif isinstance(source, Table):
            parts = of_frame(source, **columns)
        else:
            parts = of_history(source, **columns)
        return Log.made(parts)

    @staticmethod
    def made(parts: dict[str, Any]) -> Log:
        """Return the log of the parts that a reader returns, with encoder, features and roles."""
        beside = {name: parts.pop(name, None) for name in ("features", "encoder", "roles", "index")}
        with blamed(beside["roles"]):
            log = Log(**parts)
        log.features = beside["features"] or log.features
        log.encoder = beside["encoder"]
        log.roles = beside["roles"]
        log.index = log.index if beside["index"] is None else beside["index"]
        log.of_table &= log.roles is None or not log.roles.of_history
        return log

    @property
    def arm(self) -> Array:
        """Names of the chosen arms (n,)."""
        return name_array(self.arms)[self.played]

    @cached_property
    def batches(self) -> list[slice]:
        """The rounds of each batch, as slices."""
        n = len(self)
        if self.batch is None:
            size = 1
            ends = [0]
            while ends[-1] < n:
                ends.append(min(n, ends[-1] + size))
                size = min(2 * size, max(MIN_BLOCK_ROUNDS, ends[-1] // MAX_BLOCK_SHARE))
        else:
            ends = [0, *(np.flatnonzero(self.batch[1:] != self.batch[:-1]) + 1).tolist(), n]
        return [slice(a, b) for a, b in pairwise(ends)]

    def policy(self, b: int, rows: Array | slice) -> Array:
        """Return the probabilities (m, K) of batch number b's policy at the contexts of `rows`."""
        assert self.batch is not None
        assert self.snapshots is not None
        probabilities: Array = self.snapshots[int(self.batch[self.batches[b].start])][rows]
        return probabilities

    def split(self, at: float = 0.5) -> tuple[Log, Log]:
        """Return the first share `at` of the rounds, and the rest.

        Learn a policy from the first part and evaluate it by the second.
        """
        m = round(number(at, "at", above=0, below=1) * len(self))
        return self[:m], self[m:]

    def within(self, delay: float, default: float = np.nan, now: float | None = None) -> Log:
        """Return the rounds at least `delay` old, with the rewards that came within `delay`.

        Other rewards are `default`; one without a time has never come. A round counts if it is that
        old at `now` (default: the last time in the log), whether or not its reward has come:
        selecting by that would bias estimates. Times are numbers (seconds, for datetimes).
        """
        if default == default:  # NaN: not known
            number(default, "default", largest=MAX_ABS_VALUE)
        if self.time is None or self.reward_time is None:
            raise ValueError("within needs a log with time= and reward_time=")
        came = np.nan_to_num(self.reward_time, nan=-np.inf)
        now = max(self.time[-1], came.max()) if now is None else now
        log = self[self.time <= now - number(delay, "delay", least=0)]
        assert log.time is not None
        assert log.reward_time is not None
        late = ~(log.reward_time - log.time <= delay)  # NaN: never
        log.reward = rewards_of(np.where(late, default, log.reward), len(log))
        return log

    def _checked_snapshots(self, snapshots: ArrayLike | None) -> Array | None:
        """Return the snapshots. Raise ValueError if they differ from the logged probabilities."""
        if snapshots is None:
            return None
        if self.batch is None:
            raise ValueError("snapshots need batch=: the label of the policy of each round")
        if self.probabilities is None:
            raise ValueError("snapshots need the probabilities (n, K) that were logged")
        stack = floats(snapshots, "snapshots")
        n, K = self.probabilities.shape
        if stack.shape[1:] != (n, K):
            raise ValueError(f"snapshots must be (B, {n}, {K}), by batch=; got {stack.shape}")
        if not {float(b) for b in self.batch} <= set(range(len(stack))):
            raise ValueError(
                f"batches must be 0 … {len(stack) - 1}, as snapshots; got {self.batch[0]:g} … "
                f"{self.batch[-1]:g}"
            )
        gap = np.abs(stack[self.batch.astype(int), np.arange(n)] - self.probabilities).max(axis=1)
        fits = gap <= PROBABILITY_TOLERANCE  # NaN does not
        if not fits.all():
            t = int(np.argmin(fits))
            raise ValueError(
                f"the snapshot of batch {self.batch[t]:g} differs from the logged probabilities by "
                f"{gap[t]:.3g} in round {t}"
            )
        return stack
