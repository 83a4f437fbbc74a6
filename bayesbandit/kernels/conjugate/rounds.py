"""One round of arms without contexts, each a probability or a rate: what `kernels/rounds.py` does
for linear ones, and the rules of which it shares.

Thompson sampling draws from the arms' posteriors, of which the row keeps a and b (BETA, GAMMA): an
arm's probability is computed when it is asked for. What is alike, as `choose_one` and `play`, is
written out here as there: of a kernel that takes another as an argument, numba's cache has no use
in the next process.
"""

import math

import numpy as np

from bayesbandit.checks import LARGEST
from bayesbandit.kernels.algebra.dense import copy_into
from bayesbandit.kernels.conjugate.drawing import decide_drawn
from bayesbandit.kernels.conjugate.families import beta_moments, gamma_moments
from bayesbandit.kernels.prob_best.conjugate import SHAPE, reshape
from bayesbandit.kernels.propensities import drawn_chances, put_chances
from bayesbandit.kernels.rounds import (
    DECISION,
    DONE,
    FULL,
    GIVEN,
    NOT_FINITE,
    OTHER,
    STREAM_EMPTY,
    UNWEIGHTED,
    log_many,
    record,
    room,
    weigh,
)
from bayesbandit.kernels.rules import (
    ARM,
    DRAWN,
    GAMMA,
    KIND,
    PROPENSITY,
    REWARD,
    WEIGHT,
    df_at,
    is_short,
    row_width,
    scale_at,
    tail_at,
)
from bayesbandit.kernels.uncounted_arrays import borrowed, held
from bayesbandit.runtime.compiling import njit

# A row of an arm: its shape (`best.py`), then rounds, Σ w r, and Σ w (1 − r) or Σ w; the mean and
# standard deviation; a and b, which of a shape may have been blunted.
N, HITS, REST, MEAN, SPREAD, FIRST, SECOND = range(SHAPE, SHAPE + 7)
WIDTH = 16

# The settings shared by all arms: columns of the design, family, the prior's a and b, whether an
# arm's weights are scaled to mean 1, whether rewards are 0 and 1, and whether they are whole.
D_, FAMILY, A0, B0, NORMALIZE, BINARY, WHOLE = range(7)
REFUSED = -2  # a reward that has likelihood 0


def unreached(settings: np.ndarray) -> tuple[str, ...]:
    """What the kernels may be `without` that learn by these settings: nothing."""
    return ()


@njit(cache=True)
def is_possible(reward, settings):
    """Whether a reward has a likelihood."""
    if settings[BINARY] > 0.0:
        return reward == 0.0 or reward == 1.0
    return reward >= 0.0 and (settings[WHOLE] == 0.0 or reward == math.floor(reward))


@njit(cache=True)
def parameters(arm, settings):
    """The a and b of an arm's posterior."""
    w_bar = 1.0
    if settings[NORMALIZE] > 0.0 and arm[N] > 0.0:
        gamma = int(settings[FAMILY]) == GAMMA
        w_bar = (arm[REST] if gamma else arm[HITS] + arm[REST]) / arm[N]
    return settings[A0] + arm[HITS] / w_bar, settings[B0] + arm[REST] / w_bar


@njit(cache=True)
def renew(arm, settings):
    """What follows from an arm's sums."""
    family, (a, b) = int(settings[FAMILY]), parameters(arm, settings)
    reshape(arm, a, b, family)
    arm[FIRST], arm[SECOND] = a, b
    arm[MEAN], arm[SPREAD] = gamma_moments(a, b) if family == GAMMA else beta_moments(a, b)


@njit(cache=True)
def add(arm, reward, weight, settings):
    """Add a reward to an arm's sums."""
    arm[N] += 1.0
    arm[HITS] += weight * reward
    arm[REST] += weight if int(settings[FAMILY]) == GAMMA else weight * (1.0 - reward)


@njit(cache=True)
def renew_all(arms, settings):
    """What follows from the sums of all arms."""
    for k in range(arms.shape[0]):
        renew(arms[k], settings)


@njit(cache=True)
def update_many(arms, arm, reward, weight, settings):
    """Arm numbers, rewards and weights (n,) arrive in order."""
    for i in range(arm.size):
        add(arms[arm[i]], reward[i], weight[i], settings)
    renew_all(arms, settings)


@njit(cache=True)
def describe(row, arms, available, settings, kind):
    """Fill in every arm's moments, or its a and b where a rule of this kind draws from them."""
    D, K = int(settings[D_]), arms.shape[0]
    drawn = kind in DRAWN
    for k in range(K):
        mean, scale, last = -np.inf, 0.0, 0.0
        if available[k]:
            arm = arms[k]
            mean, scale = arm[MEAN], arm[SECOND] if drawn else arm[SPREAD]
            last = arm[FIRST] if drawn else np.inf
            last = last if arm[N] > 0.0 else -last
        row[D + k], row[scale_at(D, K) + k], row[df_at(D, K) + k] = mean, scale, last


@njit(cache=True)
def describe_many(rows, arms, available, settings, kind):
    """`describe` for rows (n, width)."""
    for i in range(rows.shape[0]):
        describe(rows[i], arms, available, settings, kind)


@njit(cache=True)
def choose_into(row, x, arms, available, settings, kind, param, floor, stream):
    """Fill a whole row for context x (d,) and return the chosen arm."""
    D, K = int(settings[D_]), arms.shape[0]
    for i in range(D):
        row[i] = x[i]
    describe(row, arms, available, settings, kind)
    arm = decide_drawn(row, D, K, kind, param, floor, stream)
    record(row, arm, D, K, kind, param, floor)
    return arm


@njit(cache=True)
def choose_many(rows, start, D, K, kind, params, stream):
    """See `kernels.rounds.choose_many`."""
    for i in range(start, rows.shape[0]):
        if is_short(stream, K):
            stream[-1] += i - start
            return i
        at = i if params.shape[0] > 1 else 0
        arm = decide_drawn(rows[i], D, K, kind, params[at, 0], params[at, 1], stream)
        record(rows[i], arm, D, K, kind, params[at, 0], params[at, 1])
    stream[-1] += rows.shape[0] - start
    return rows.shape[0]


@njit(cache=True)
def put_chance_now(row, a, arms, settings):
    """The bits of `chance` for a row of these arms as they are, sooner, into the row."""
    D, K = int(settings[D_]), arms.shape[0]
    tail = row[tail_at(D, K) :]
    if int(tail[KIND]) not in DRAWN:
        put_chances(row, a, D, K, tail[PROPENSITY : PROPENSITY + 1])
        return
    out = np.empty(K)
    drawn_chances(row, arms, D, K, out)
    tail[PROPENSITY] = out[a]


@njit(cache=True)
def choose_one(row, x, arms, available, settings, kind, param, floor, stream):
    """`choose_into`, checked: NOT_FINITE (or too large) and STREAM_EMPTY leave all as it was."""
    for i in range(x.size):
        if not abs(x[i]) <= LARGEST:
            return NOT_FINITE
    if is_short(stream, arms.shape[0]):
        return STREAM_EMPTY
    row, x, stream = borrowed(row), borrowed(x), borrowed(stream)
    arms, settings, available = borrowed(arms), borrowed(settings), borrowed(available)
    arm = choose_into(row, x, arms, available, settings, kind, param, floor, stream)
    stream[-1] += 1.0
    return arm


@njit(cache=True)
def learn_into(row, arms, settings):
    """Update the row's arm by its reward and weight."""
    tail = row[tail_at(int(settings[D_]), arms.shape[0]) :]
    arm = arms[int(tail[ARM])]
    add(arm, tail[REWARD], tail[WEIGHT], settings)
    renew(arm, settings)


@njit(cache=True)
def observe_into(row, arms, settings, source, clip):
    """Weigh the row's reward and update its arm."""
    weigh(row, int(settings[D_]), arms.shape[0], source, clip)
    learn_into(row, arms, settings)


@njit(cache=True)
def observe_given(row, reward, arms, settings, source, clip, history, count):
    """`observe_one` where the weight is 1 or the row's own: see `kernels/rounds.py`."""
    if not is_possible(reward, settings):
        return REFUSED
    arms, settings, row = borrowed(arms), borrowed(settings), borrowed(row)
    history, count = borrowed(history), borrowed(count)
    D, K, at = int(settings[D_]), arms.shape[0], count[0]
    if at < 0 or (count[2] != 0 and at >= history.shape[0]):
        return FULL
    own = np.empty(row.size)
    logged = history[at] if count[2] != 0 else borrowed(own)
    copy_into(logged, row)
    tail = logged[tail_at(D, K) :]
    tail[REWARD] = reward
    if source == UNWEIGHTED:
        tail[WEIGHT] = 1.0
    learn_into(logged, arms, settings)
    held(own)
    count[0] += count[2] != 0
    count[1] += 1
    return DONE


@njit(cache=True)
def observe_one(row, reward, arms, settings, source, clip, history, count):
    """A reward arrives for a decided row, which is weighed and logged behind the rows of `history`:
    see `kernels/rounds.py`. REFUSED: it has likelihood 0, and nothing is done."""
    own = np.empty(row.size)
    copy_into(own, row)
    weighed = weigh(borrowed(own), int(settings[D_]), arms.shape[0], source, clip)
    if not weighed:
        held(own)
        return OTHER
    return observe_given(own, reward, arms, settings, GIVEN, clip, history, count)


@njit(cache=True)
def observe_many(rows, z, arm, reward, weight, arms, settings, history, count):
    """Rows (n, width) that carry all of their numbers are logged, and their arms updated by arm
    numbers, rewards and weights (n,): all of it or, without room, nothing. z is not needed."""
    kept = room(rows.shape[0], history, count)
    if kept == FULL:
        return FULL
    update_many(arms, arm, reward, weight, settings)
    log_many(rows, kept, history, count)
    return DONE


@njit(cache=True)
def play(x, reward, start, every, arms, available, settings, kind, params, source, clip, stream,
         chosen, propensity, history):  # fmt: skip
    """Rounds from `start` on against contexts x (T, d) and all arms' rewards (T, K): see
    `kernels/rounds.py`."""
    x, reward, arms, settings = borrowed(x), borrowed(reward), borrowed(arms), borrowed(settings)
    available, params, stream = borrowed(available), borrowed(params), borrowed(stream)
    chosen, propensity, history = borrowed(chosen), borrowed(propensity), borrowed(history)
    D, K = int(settings[D_]), arms.shape[0]
    own = np.empty(row_width(D, K))
    row = borrowed(own)
    tail = row[tail_at(D, K) :]
    for t in range(start, x.shape[0]):
        if is_short(stream, K):
            stream[-1] += t - start
            held(own)
            return t
        at = t if params.shape[0] > 1 else 0
        param, floor = params[at, 0], params[at, 1]
        arm = choose_into(row, x[t], arms, available, settings, kind, param, floor, stream)
        if t % every == 0 or source == DECISION:
            put_chance_now(row, arm, arms, settings)
        tail[REWARD] = reward[t, arm]
        observe_into(row, arms, settings, source, clip)
        chosen[t], propensity[t] = arm, tail[PROPENSITY]
        if history.shape[0] > 0:
            history[t % history.shape[0]] = row
    stream[-1] += x.shape[0] - start
    held(own)
    return x.shape[0]
