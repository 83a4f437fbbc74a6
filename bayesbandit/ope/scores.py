"""The scores of the rounds of a log, and what multiplies the rewards in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesbandit.ope.estimators import ESTIMATORS, Tuning, snips
from bayesbandit.ope.question import Question
from bayesbandit.ope.tally import Scored, alike
from bayesbandit.ope.weights import averaged

Array = np.ndarray


def scored(
    asked: Question, estimator: str, tuning: Tuning, m: Array | None, h: Array, learned: Array
) -> Scored:
    """Return the scores Γ of the target, or of the first target less the second.

    m: predicted means (n, K), if the estimator has them. h: the weights of rounds (n,). learned:
    the rewards (n,), NaN if not known.
    """
    log = asked.log
    y = asked.reward
    e = asked.log.probabilities
    signs = (1, -1)[: len(asked.targets)]
    weigh = ESTIMATORS[estimator].weight
    given = asked.ratios
    if m is None and ESTIMATORS[estimator].modelled:
        weigh = ESTIMATORS["ips"].weight
    ratios = tuple(weigh(w, tuning) for w in given)
    scores = np.zeros(len(log))
    part = np.zeros(len(log))
    centres = list[float]()
    for sign, target, w in zip(signs, asked.targets, ratios, strict=True):
        base: Array | float = 0.0
        centre: Array | float = 0.0
        share = 1.0
        if m is not None:
            centre = m[np.arange(len(log)), log.played]
        elif estimator == "snips":
            base, share = snips(w, y, h)
            centre = base
            centres.append(base)
        if target.pi is None and e is None:
            own = y  # the logged policy's, whatever the means
        else:
            if m is not None:
                base = np.einsum("nk,nk->n", target.density(log), m)
            own = base + w * (y - centre) * share
        scores = scores + sign * own
        part = part + sign * w * (y - centre)
    if asked.logged_alone:
        return alike(learned, scores, ratios)

    def weights(k: int) -> tuple[Array, ...]:
        if e is None:
            return ratios
        chance = np.where(e[:, k] > 0, e[:, k], 1.0)
        shares = (target.density(log)[:, k] for target in asked.targets)
        return tuple(weigh(pi / chance, tuning) for pi in shares)

    def of(k: int) -> tuple[Any, Any, Any, Any]:
        each = [sign * w for sign, w in zip(signs, weights(k), strict=True)]
        chance = log.played == k if e is None else e[:, k]
        total = sum(each[1:], each[0])
        if m is not None:
            return chance, total, m[:, k], averaged(log, h, m[:, k]) if log.x.size else m[:, k]
        mean: Array | float = 0.0
        if centres:
            sums = sum(w * v for w, v in zip(each, centres, strict=True))
            mean = np.divide(sums, total, out=np.zeros_like(total), where=total != 0)
        return chance, total, mean, mean

    if estimator == "dm":
        arms = np.empty(0, dtype=np.int64)
    elif e is None:
        arms = np.unique(log.played[asked.on & (asked.w != 0)])
    else:
        arms = np.flatnonzero((asked.delta[asked.on] != 0).any(axis=0))
    return Scored(scores, log.played, learned, part, ratios, tuple(arms.tolist()), of)
