"""One round on arrays: context → moments → scores → arm (propensity) → reward → weight → update.

`Bandit` calls these functions once a round from Python, the experiment runner from one compiled
loop (`play`): same functions, same stream of random numbers, same bits. A logged round is one row
of numbers: the context with its constant column, each arm's mean, scale and degrees of freedom at
the moment of decision, then the scalars below. An arm that may not be chosen has mean −∞ and
scale 0.
"""

import numpy as np
from numba import njit, vectorize

from bayesbandit.checks import LARGEST
from bayesbandit.kernels.best_arm import best_probability, normal_cdf
from bayesbandit.kernels.linear import D_, DF, N, moments, moments_of_block, stride, update

# Offsets after the context (D) and the moments (3 K) of a row.
ARM, KIND, PARAM, PROPENSITY, REWARD, WEIGHT = range(6)
TAIL = 6
BLOCK = 64  # contexts whose moments are computed together
HUGE = 1e100  # stands for an infinite standard deviation, so that α = 0 leaves the mean

UNIFORM, THOMPSON, UCB, EPSILON_GREEDY = range(4)  # the rule that decided
UNWEIGHTED, DECISION, GIVEN = range(3)  # where an observation's weight comes from
NOT_FINITE, STREAM_EMPTY = -1, -2  # why no arm was chosen


def row_width(D: int, K: int) -> int:
    """Numbers that one logged round takes."""
    return D + 3 * K + TAIL


@njit(cache=True)
def normal(stream):
    """The next standard normal of a block; stream[0] counts those that are used."""
    stream[0] += 1.0
    return stream[int(stream[0])]


@njit(cache=True)
def below(count, stream):
    """A uniform integer in [0, count)."""
    return min(int(normal_cdf(normal(stream)) * count), count - 1)


@njit(cache=True)
def is_short(stream, K):
    """Whether the block may run out within a round: 2 normals an arm, 1 a tie, 2 to explore."""
    return stream[0] + 3 * K + 2 >= stream.size


@vectorize(["float64(float64, float64)"], cache=True)
def spread(scale, df):
    """Standard deviation of a location-scale normal (df = ∞) or Student-t."""
    if df <= 2.0:
        return np.inf if scale > 0.0 else 0.0
    return scale / np.sqrt(max(1.0 - 2.0 / df, 1e-300))  # both branches may be computed


@njit(cache=True)
def draw(mean, scale, df, stream):
    """One draw of an arm's mean reward.

    Student-t from two normals by Bailey's polar method (Math. Comp. 62, 1994), in the form
    t = z₁ √(ν (e^{R²/ν} − 1)) / R with R² = z₁² + z₂²: exact for every ν > 0, and z₁ as ν → ∞.
    """
    z = normal(stream)
    if df != np.inf:
        other = normal(stream)
        R2 = z * z + other * other
        if R2 > 0.0:
            z *= np.sqrt(df * np.expm1(R2 / df) / R2)
    return mean + scale * z if scale > 0.0 else mean


@njit(cache=True)
def describe(row, arms, available, settings, v):
    """Fill in every arm's moments; whether each available arm has been pulled."""
    D, K = int(settings[D_]), arms.shape[0]
    z, ready = row[:D], True
    for k in range(K):
        mean, scale, df = -np.inf, 0.0, np.inf
        if available[k]:
            mean, scale = moments(arms[k], z, D, v)
            df = arms[k][DF]
            ready = ready and arms[k][N] > 0
        row[D + k] = mean
        row[D + K + k] = scale
        row[D + 2 * K + k] = df
    return ready


@njit(cache=True)
def describe_many(rows, arms, available, settings):
    """`describe` for rows (n, width) whose contexts are in place, block by block."""
    D, K = int(settings[D_]), arms.shape[0]
    ready = True
    for k in range(K):
        ready = ready and (arms[k][N] > 0 or not available[k])
    zt, work = np.empty((D, BLOCK)), np.empty((5, BLOCK))
    means, scales = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(0, rows.shape[0], BLOCK):
        block = rows[start : start + BLOCK]
        B = block.shape[0]
        for b in range(BLOCK):
            for i in range(D):
                zt[i, b] = block[b, i] if b < B else 0.0
        for k in range(K):
            means[:], scales[:], df = -np.inf, 0.0, np.inf
            if available[k]:
                moments_of_block(arms[k], zt, means, scales, work)
                df = arms[k][DF]
            for b in range(B):
                block[b, D + k] = means[b]
                block[b, D + K + k] = scales[b]
                block[b, D + 2 * K + k] = df
    return ready


@njit(cache=True)
def ucb_score(row, k, K, D, alpha):
    if row[D + k] == -np.inf:
        return -np.inf
    return row[D + k] + alpha * min(spread(row[D + K + k], row[D + 2 * K + k]), HUGE)


@njit(cache=True)
def decide(row, D, K, kind, param, stream):
    """The arm that a rule picks from a row's moments; ties are broken evenly."""
    uniform = kind == UNIFORM
    if kind == EPSILON_GREEDY:
        uniform = normal_cdf(normal(stream)) < param
    if uniform:
        count = 0
        for k in range(K):
            count += row[D + k] > -np.inf
        skip = below(count, stream)
        for k in range(K):
            if row[D + k] > -np.inf:
                if skip == 0:
                    return k
                skip -= 1
    alpha = 0.0 if kind == EPSILON_GREEDY else param
    best, best_score, ties = -1, -np.inf, 0
    for k in range(K):
        if row[D + k] == -np.inf:
            continue
        if kind == THOMPSON:
            score = draw(row[D + k], alpha * row[D + K + k], row[D + 2 * K + k], stream)
        else:
            score = ucb_score(row, k, K, D, alpha)
        if score > best_score or best < 0:
            best, best_score, ties = k, score, 1
        elif score == best_score:
            ties += 1
            if below(ties, stream) == 0:
                best = k
    return best


@njit(cache=True)
def chance(row, a, D, K):
    """Probability that the rule in the row picks arm a, given the row's moments."""
    kind, param = int(row[D + 3 * K + KIND]), row[D + 3 * K + PARAM]
    mean, scale, df = row[D : D + K], row[D + K : D + 2 * K], row[D + 2 * K : D + 3 * K]
    if mean[a] == -np.inf:
        return 0.0
    if kind == THOMPSON:
        return best_probability(a, mean, param * scale, df)
    count = 0
    for k in range(K):
        count += mean[k] > -np.inf
    if kind == UNIFORM:
        return 1.0 / count
    explore = param if kind == EPSILON_GREEDY else 0.0
    alpha = param if kind == UCB else 0.0
    score, ties, beaten = ucb_score(row, a, K, D, alpha), 0, False
    for k in range(K):
        other = ucb_score(row, k, K, D, alpha)
        ties += other == score
        beaten = beaten or other > score
    return explore / count + (0.0 if beaten else (1.0 - explore) / ties)


@njit(cache=True)
def chances(rows, arm, D, K, out):
    """Each row's chance of the arm of that row (arm ≥ 0: of this arm instead)."""
    for i in range(rows.shape[0]):
        a = arm if arm >= 0 else int(rows[i, D + 3 * K + ARM])
        out[i] = chance(rows[i], a, D, K)


@njit(cache=True)
def pooled_chances(z, a, arms, settings, kind, param, share, out):
    """out (n,) += share · P(a | z) at contexts z (n, D) under a past belief and rule."""
    D, K = int(settings[D_]), arms.shape[0]
    row, v, every = np.empty(D + 3 * K + TAIL), np.empty(stride(D)), np.ones(K, np.bool_)
    for i in range(z.shape[0]):
        put(row, z[i], D)
        ready = describe(row, arms, every, settings, v)
        row[D + 3 * K + KIND] = kind if ready else UNIFORM
        row[D + 3 * K + PARAM] = param
        out[i] += share * chance(row, a, D, K)


@njit(cache=True)
def put(row, x, D):
    """Context x (d,) into its row, with the constant column behind it where there is one."""
    row[D - 1] = 1.0
    for i in range(x.size):
        row[i] = x[i]


@njit(cache=True)
def decide_into(row, ready, D, K, kind, param, stream):
    """Choose from a row's moments, and record the arm and the rule that chose it."""
    if not ready:
        kind, param = UNIFORM, 0.0
    arm = decide(row, D, K, kind, param, stream)
    tail = row[D + 3 * K :]
    tail[ARM], tail[KIND], tail[PARAM] = arm, kind, param
    tail[PROPENSITY] = tail[REWARD] = tail[WEIGHT] = np.nan
    return arm


@njit(cache=True)
def choose_into(row, x, arms, available, settings, kind, param, stream, v):
    """Fill a whole row for context x (d,) and return the chosen arm."""
    D = int(settings[D_])
    put(row, x, D)
    ready = describe(row, arms, available, settings, v)
    return decide_into(row, ready, D, arms.shape[0], kind, param, stream)


@njit(cache=True)
def choose_one(row, x, arms, available, settings, kind, param, stream):
    """`choose_into`, checked: NOT_FINITE (or too large) and STREAM_EMPTY leave all as it was."""
    for i in range(x.size):
        if not abs(x[i]) <= LARGEST:
            return NOT_FINITE
    if is_short(stream, arms.shape[0]):
        return STREAM_EMPTY
    v = np.empty(stride(int(settings[D_])))
    return choose_into(row, x, arms, available, settings, kind, param, stream, v)


@njit(cache=True)
def choose_many(rows, ready, start, D, K, kind, params, stream):
    """Decide for described rows from `start` on, one draw each, until the stream runs short; the
    next row to do."""
    for i in range(start, rows.shape[0]):
        if is_short(stream, K):
            return i
        decide_into(rows[i], ready, D, K, kind, params[i] if params.size > 1 else params[0], stream)
    return rows.shape[0]


@njit(cache=True)
def put_many(rows, x, D):
    """Contexts x (n, d) into their rows."""
    for i in range(x.shape[0]):
        put(rows[i], x[i], D)


@njit(cache=True)
def observe_into(row, arms, settings, source, clip, v):
    """Weigh the row's reward and update its arm. The paper's weight is 1 / max(γ, p)."""
    D, K = int(settings[D_]), arms.shape[0]
    tail = row[D + 3 * K :]
    arm = int(tail[ARM])
    if source == UNWEIGHTED:
        tail[WEIGHT] = 1.0
    elif source == DECISION:
        if np.isnan(tail[PROPENSITY]):
            tail[PROPENSITY] = chance(row, arm, D, K)
        tail[WEIGHT] = 1.0 / max(clip, tail[PROPENSITY])
    update(arms[arm], row[:D], tail[REWARD], tail[WEIGHT], settings, v)


@njit(cache=True)
def observe_one(row, reward, arms, settings, source, clip, history, at):
    """A reward arrives for a decided row, which is logged into history[at] (at < 0: nowhere)."""
    D, K = int(settings[D_]), arms.shape[0]
    logged = history[at] if at >= 0 else np.empty(row.size)
    logged[:] = row
    logged[D + 3 * K + REWARD] = reward
    observe_into(logged, arms, settings, source, clip, np.empty(stride(D)))


@njit(cache=True)
def observe_many(rows, arms, settings, source, clip):
    """Rewards, already in the rows, arrive in order."""
    v = np.empty(stride(int(settings[D_])))
    for i in range(rows.shape[0]):
        observe_into(rows[i], arms, settings, source, clip, v)


@njit(cache=True)
def play(x, reward, start, every, arms, available, settings, kind, params, source, clip, stream,
         chosen, propensity, history, logged):  # fmt: skip
    """Rounds from `start` on against contexts x (T, d) and all arms' rewards (T, K).

    Fills in the chosen arms and their propensities (of every round where the weights need them, of
    each `every`-th otherwise, else NaN), logs the rounds into the ring `history` after the `logged`
    before, and returns the next round: T, or where the stream ran short.
    """
    D, K = int(settings[D_]), arms.shape[0]
    row, v = np.empty(D + 3 * K + TAIL), np.empty(stride(D))
    tail = row[D + 3 * K :]
    for t in range(start, x.shape[0]):
        if is_short(stream, K):
            return t
        param = params[t] if params.size > 1 else params[0]
        arm = choose_into(row, x[t], arms, available, settings, kind, param, stream, v)
        if t % every == 0:
            tail[PROPENSITY] = chance(row, arm, D, K)
        tail[REWARD] = reward[t, arm]
        observe_into(row, arms, settings, source, clip, v)
        chosen[t], propensity[t] = arm, tail[PROPENSITY]
        if history.shape[0] > 0:
            history[(logged + t) % history.shape[0]] = row
    return x.shape[0]
