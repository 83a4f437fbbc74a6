"""The scores of the rounds of a log, and what multiplies the rewards in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.ope.estimators import ESTIMATORS, Tuning, snips
from bayesbandit.ope.question import Question
from bayesbandit.ope.tally import Scored, alike
from bayesbandit.ope.weights import averaged

SIGNS = (1, -1)  # of the target, and of the one that is subtracted


def scored(
    question: Question, estimator: str, tuning: Tuning, m: Array | None, h: Array, learned: Array
) -> Scored:
    """Return the scores Γ of the target, or of the first target less the second.

    m: predicted means (n, K), if the estimator has them. h: the weights of rounds (n,). learned:
    the rewards (n,), NaN if not known.
    """
    log = question.log
    e = log.probabilities
    y = question.reward
    if question.logged_alone:
        return alike(learned, y, question.ratios)
    weigh = ESTIMATORS[estimator].weight
    ratios = tuple(weigh(w, tuning) for w in question.ratios)
    scores, part = np.zeros((2, len(log)))
    offsets = list[float]()  # without m: what is subtracted from rewards, the same for all arms
    for sign, target, w in zip(SIGNS, question.targets, ratios, strict=False):
        offset, share = snips(w, y, h) if estimator == "snips" else (0.0, 1.0)
        offsets.append(offset)
        centre = offset if m is None else m[np.arange(len(log)), log.played]
        if target.pi is None and e is None:
            score = y  # the logged policy's, whatever the means
        else:
            base = offset if m is None else np.einsum("nk,nk->n", target.density(log), m)
            score = base + w * (y - centre) * share
        scores += sign * score
        part += sign * w * (y - centre)

    def part_of_arm(k: int) -> tuple[Any, Any, Any, Any]:
        chance: Array = log.played == k
        each = ratios
        if e is not None:
            chance = e[:, k]
            shares = (target.density(log)[:, k] for target in question.targets)
            each = tuple(weigh(pi / np.where(chance > 0, chance, 1.0), tuning) for pi in shares)
        total = sum(sign * w for sign, w in zip(SIGNS, each, strict=False))
        if m is not None:
            return chance, total, m[:, k], averaged(log, h, m[:, k]) if log.x.size else m[:, k]
        sums = sum(sign * w * v for sign, w, v in zip(SIGNS, each, offsets, strict=False))
        mean = np.divide(sums, total, out=np.zeros(len(log)), where=total != 0)
        return chance, total, mean, mean

    if estimator == "dm":
        arms = np.empty(0, dtype=np.int64)
    elif e is None:
        arms = np.unique(log.played[question.on & (question.w != 0)])
    else:
        arms = np.flatnonzero((question.delta[question.on] != 0).any(axis=0))
    return Scored(scores, log.played, learned, part, ratios, tuple(arms.tolist()), part_of_arm)
