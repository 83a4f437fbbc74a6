"""When are pooled weights computed again, and what does it change? (Algorithm 1, `table1`)

    uv run benchmarks/pooled.py [--replications N] [--horizon T]

BLTS of the study `table1` written a second time, in its worlds: λ by 5-fold cross-validation on
{.1, 1, 10}, σ² = RSS/n, α = 1, γ = .2. The toolkit takes a snapshot of the belief when it reweights
an arm. Here snapshots are taken whenever the rounds have grown by 8 %, so that rows of the table
differ only in when past rounds are reweighted, and in what they weigh until then.
"""

import argparse
import math

import numpy as np

from bayesbandit.environments import SyntheticExample
from bayesbandit.environments.synthetic import Specification
from bayesbandit.experiments.experiment import stream
from bayesbandit.kernels import njit
from bayesbandit.kernels.prob_best.located import closed_form

GRID = np.array([10.0, 1.0, 0.1])  # of equal errors the first, the larger λ, is taken
FOLDS, CLIP, FLOOR, K, SNAPSHOTS = 5, 0.2, 1e-6, 3, 128
NEVER, BY_ARM, BY_ROUND = 0, 1, 2  # the clock: the rounds of the pulled arm, or of all arms
POOLED, DECISION, ONE = 0, 1, 2  # a new round's weight, until it is computed again
TOOLKIT = "pooled, arm's rounds + 25 %"
RULES = {  # clock, growth between two times, all arms or the pulled one, first weight, warm periods
    "decision": (NEVER, 0.0, False, DECISION, True),
    "pooled, never again": (NEVER, 0.0, False, POOLED, True),
    TOOLKIT: (BY_ARM, 0.25, False, POOLED, True),
    "pooled, arm's rounds + 1 %": (BY_ARM, 0.01, False, POOLED, True),
    "pooled, all rounds + 25 %": (BY_ROUND, 0.25, False, POOLED, True),
    "pooled, all rounds + 25 %, all arms": (BY_ROUND, 0.25, True, POOLED, True),
    "as the toolkit's, weight 1 at first": (BY_ARM, 0.25, False, ONE, True),
    "as the toolkit's, no warm-up periods": (BY_ARM, 0.25, False, POOLED, False),
}


@njit(cache=True)
def root(A):
    """Put the Cholesky root of A (d, d) into its lower triangle."""
    for j in range(A.shape[0]):
        for i in range(j, A.shape[0]):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = math.sqrt(total) if i == j else total / A[j, j]


@njit(cache=True)
def solve(L, b, out):
    """Put (LL')⁻¹b into out (d,)."""
    d = b.size
    for i in range(d):
        total = b[i]
        for k in range(i):
            total -= L[i, k] * out[k]
        out[i] = total / L[i, i]
    for i in range(d - 1, -1, -1):
        total = out[i]
        for k in range(i + 1, d):
            total -= L[k, i] * out[k]
        out[i] = total / L[i, i]


@njit(cache=True)
def loss(G, b, rr, theta):
    """Return the weighted sum of squared residuals at θ, by statistics G (d, d), b (d,) and rr."""
    total = rr
    for i in range(b.size):
        total -= 2.0 * theta[i] * b[i]
        for j in range(b.size):
            total += theta[i] * G[i, j] * theta[j]
    return total


@njit(cache=True)
def fit(G, b, rr, n, theta, V):
    """Put the ridge regression of an arm with folds G (F, d, d), b (F, d), rr (F,) into θ and V."""
    d = theta.size
    every, sums, A, least, chosen = G.sum(axis=0), b.sum(axis=0), np.empty((d, d)), np.inf, 0.0
    for lam in GRID:
        error = 0.0
        for f in range(FOLDS):
            A[:] = every - G[f]
            for i in range(d):
                A[i, i] += lam
            root(A)
            solve(A, sums - b[f], theta)
            error += loss(G[f], b[f], rr[f], theta)
        if error < least:
            least, chosen = error, lam
    A[:] = every
    for i in range(d):
        A[i, i] += chosen
    root(A)
    solve(A, sums, theta)
    sigma2, unit = max(loss(every, sums, rr.sum(), theta) / n, FLOOR), np.zeros(d)
    for i in range(d):
        unit[i] = sigma2
        solve(A, unit, V[i])
        unit[i] = 0.0


@njit(cache=True)
def moments(x, theta, V, mean, scale):
    """Put mean and scale (K,) of the mean rewards at x (d,) there."""
    for k in range(K):
        m = q = 0.0
        for i in range(x.size):
            m += x[i] * theta[k, i]
            for j in range(x.size):
                q += x[i] * V[k, i, j] * x[j]
        mean[k], scale[k] = m, math.sqrt(q)


@njit(cache=True)
def add(G, b, rr, f, x, r, w):
    """Add a row with weight w to fold f."""
    for i in range(x.size):
        b[f, i] += w * r * x[i]
        for j in range(x.size):
            G[f, i, j] += w * x[i] * x[j]
    rr[f] += w * r * r


@njit(cache=True)
def play(
    x, reward, warm_x, warm_arm, warm_reward, normals, clock, growth, together, first, uniform
):
    """Return θ (K, d) after rounds against contexts x (T, d) and all arms' rewards (T, K).

    normals (T, K): standard normal. uniform: whether the logged rounds count as periods.
    """
    T, d = x.shape
    rows, warm = T + len(warm_x), len(warm_x)
    before = warm if uniform else 0
    X, R, n = np.empty((K, rows, d)), np.empty((K, rows)), np.zeros(K, np.int64)
    closed, upto = np.zeros((K, rows)), np.zeros((K, rows), np.int64)  # sums over old snapshots
    G, b, rr = np.zeros((K, FOLDS, d, d)), np.zeros((K, FOLDS, d)), np.zeros((K, FOLDS))
    theta, V, due = np.zeros((K, d)), np.zeros((K, d, d)), np.zeros(K, np.int64)
    thetas, Vs = np.empty((SNAPSHOTS, K, d)), np.empty((SNAPSHOTS, K, d, d))
    periods, S, snapshot, again = np.zeros(SNAPSHOTS), 0, 0, math.ceil(warm * (1.0 + growth))
    mean, scale = np.empty(K), np.empty(K)
    for i in range(warm):
        a = warm_arm[i]
        X[a, n[a]], R[a, n[a]] = warm_x[i], warm_reward[i]
        add(G[a], b[a], rr[a], n[a] % FOLDS, warm_x[i], warm_reward[i], float(K))
        n[a] += 1
    for a in range(K):
        fit(G[a], b[a], rr[a], n[a], theta[a], V[a])
        due[a] = max(n[a] + 1, math.ceil(n[a] * (1.0 + growth)))
    for t in range(T):
        moments(x[t], theta, V, mean, scale)
        a = int(np.argmax(mean + scale * normals[t]))
        if t >= snapshot and S < SNAPSHOTS:
            thetas[S], Vs[S], S = theta, V, S + 1
            snapshot = max(t + 1, math.ceil((t + warm) * 1.08) - warm)
        periods[S - 1] += 1.0
        if first == ONE:
            p = 1.0
        elif first == DECISION:
            p = closed_form(a, K, 0, 1, 2, mean, scale)
        else:
            p = before / K
            for s in range(S):
                moments(x[t], thetas[s], Vs[s], mean, scale)
                chance = periods[s] * closed_form(a, K, 0, 1, 2, mean, scale)
                closed[a, n[a]] += chance if s < S - 1 else 0.0
                p += chance
            p, upto[a, n[a]] = p / (before + t + 1), S - 1
        X[a, n[a]], R[a, n[a]] = x[t], reward[t, a]
        add(G[a], b[a], rr[a], n[a] % FOLDS, x[t], reward[t, a], 1.0 / max(CLIP, p))
        n[a] += 1
        fit(G[a], b[a], rr[a], n[a], theta[a], V[a])
        now, of_all = t + 1 + warm, clock == BY_ROUND
        if clock == NEVER or (of_all and now < again) or (not of_all and n[a] < due[a]):
            continue
        again = max(now + 1, math.ceil(now * (1.0 + growth)))
        due[a] = max(n[a] + 1, math.ceil(n[a] * (1.0 + growth)))
        for k in range(K):
            if k != a and not together:
                continue
            G[k], b[k], rr[k] = 0.0, 0.0, 0.0
            for i in range(n[k]):
                p = 0.0
                for s in range(upto[k, i], S):
                    moments(X[k, i], thetas[s], Vs[s], mean, scale)
                    chance = periods[s] * closed_form(k, K, 0, 1, 2, mean, scale)
                    closed[k, i] += chance if s < S - 1 else 0.0
                    p = chance
                upto[k, i] = S - 1
                p = (before / K + closed[k, i] + p) / (before + t + 1)
                add(G[k], b[k], rr[k], i % FOLDS, X[k, i], R[k, i], 1.0 / max(CLIP, p))
            fit(G[k], b[k], rr[k], n[k], theta[k], V[k])
    return theta


def solved(specification: Specification, replication: int, horizon: int) -> list[bool]:
    """Return for each rule whether its bandit is at the optimal assignment at the end."""
    world = SyntheticExample(specification, n_test=2000)
    key = (world.name, replication)
    drawn = world.sample(horizon, np.random.default_rng(stream(0, "environment", *key)))
    normals = np.random.default_rng(stream(0, "pooled", *key)).standard_normal((horizon, K))
    x, warm_x, test_x = (
        np.column_stack([part, np.ones(len(part))])
        for part in (drawn.x, drawn.warm_x, drawn.test_x)
    )
    found = []
    for rule in RULES.values():
        theta = play(x, drawn.reward, warm_x, drawn.warm_arm, drawn.warm_reward, normals, *rule)
        arm = (test_x @ theta.T).argmax(axis=1)
        reward = drawn.test_mean[np.arange(len(arm)), arm]
        right = float((reward >= drawn.test_mean.max(axis=1)).mean())
        found.append(world.solved(float(reward.mean()), right))
    return found


def main(replications: int, horizon: int) -> None:
    """Print the shares, and their differences from the toolkit's schedule, both ± SE."""
    base, columns = list(RULES).index(TOOLKIT), []
    for specification in ("well", "mis"):
        shares = 100.0 * np.array([solved(specification, r, horizon) for r in range(replications)])
        for sign, values in (("", shares), ("+", shares - shares[:, [base]])):
            errors = values.std(axis=0, ddof=1) / math.sqrt(replications)
            pairs = zip(values.mean(axis=0), errors, strict=True)
            columns.append([f"{mean:{sign}.1f} ± {error:.1f}" for mean, error in pairs])
    print(f"| % of {replications} after {horizon:,} rounds | well | above | mis | above |")
    print("|---|--:|--:|--:|--:|")
    for rule, *cells in zip(RULES, *columns, strict=True):
        print(f"| {rule} | {' | '.join(cells)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--horizon", type=int, default=3000)
    asked = parser.parse_args()
    main(asked.replications, asked.horizon)
