"""Exact confidence sequences beside those of Vowpal Wabbit's own estimators."""

import numpy as np
import pytest

from bayesbandit.ope import estimate
from bayesbandit_studies.evidence.designs import bernoulli

cs = pytest.importorskip("estimators.bandits.cs")

VALUE, LOOKS = 0.3, 40


def theirs(log):
    """Ends (looks, 2) of Vowpal Wabbit's sequence of arm 0's value, by inverse propensities.

    Away from its known fault: the running mean stays below 1 in these logs.
    """
    interval, ends = cs.IntervalImpl(0, 1, adjust=False), []
    for t, w in enumerate((log.played == 0) / log.propensity):
        interval.add(w, log.reward[t], 0, 0)
        if (t + 1) % LOOKS == 0:
            ends.append(interval.get(0.05))
    return np.array(ends)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:IncrementalFsum")  # a hundred thousand of them
def test_both_cover_and_ours_is_narrower():
    """A 95 % sequence misses at most 2 of 12 logs (p = .02)."""
    missed, widths = np.zeros(2), []
    for log in bernoulli(12, 77, VALUE).logs():
        ours = estimate(log, 0, sequence=(0, 1), force=True).sequence
        other = theirs(log)
        for i, (low, high) in enumerate(((ours.low, ours.high), other.T)):
            missed[i] += not ((low <= VALUE) & (high >= VALUE)).all()
        widths.append((ours.high[-1] - ours.low[-1], other[-1, 1] - other[-1, 0]))
    assert (missed <= 2).all(), missed
    own, beside = np.mean(widths, axis=0)
    assert own < 0.8 * beside
