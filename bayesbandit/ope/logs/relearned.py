"""The log of a bandit, with its past policies, which are learned again from its history."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from bayesbandit.bandit import choosing, learning, transactions
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.ope.logs.columns import ascending
from bayesbandit.ope.logs.readers import of_history


def of_bandit(bandit: Bandit, batch: Any = None) -> dict[str, Any]:
    """Return the parts of the log of a bandit's history, with snapshots of its policies.

    A new bandit learns the history batch by batch. A copy before each batch is the policy that
    decided it. `Log` compares these policies with the logged probabilities. batch: labels (n,),
    ascending, of the rounds decided between two rewards; default: each round is a batch.
    """
    past = bandit.history.fork()
    if past.total > len(past):
        raise ValueError(
            f"the history keeps {len(past)} of {past.total} rounds, and past policies were learned "
            "from all: a bandit with history=None keeps them"
        )
    if bandit.belief.clock is not None:
        raise ValueError(
            f"{bandit.model} forgets, and the history does not say when a round was decided: the "
            "log of a bb.DecisionLog has the probabilities of its decisions"
        )
    parts = of_history(past)
    n = len(past)
    rows = past.ordered().copy()
    labels = np.arange(n, dtype=np.float64) if batch is None else ascending(batch, n, "batch")
    assert labels is not None
    if past.retired:
        raise ValueError(f"arms were removed: {past.retired!r}; their past policies are not known")
    own: Any = Bandit(
        bandit.arms, bandit.spec, bandit.policy, bandit.balance, n_features=bandit.n_features,
        seed=bandit.seed, history=0 if bandit.reweighting is None else None,
    )  # fmt: skip
    frozen: dict[float, Any] = {}
    starts = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), n]
    for start, end in pairwise(starts):
        own.t = start
        frozen[float(labels[start])] = transactions.fork(own)
        learning.learn(own, rows[start:end].copy())

    def snapshots(label: Any, x: np.ndarray) -> np.ndarray:
        return choosing.probabilities(frozen[float(label)], x)

    return {**parts, "batch": labels, "snapshots": snapshots, "encoder": bandit.encoder}
