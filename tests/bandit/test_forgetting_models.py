"""Declared models that forget, against fits to what is left of rounds; coefficients that walk,
against a Kalman filter; and half-lives that the rewards choose."""

import time
from datetime import datetime
from functools import partial

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import bayesbandit as bb
from bayesbandit.beliefs.half_lives import prior
from bayesbandit.beliefs.memory import HALF_LIVES
from bayesbandit.kernels.scoring import P_SWITCH
from bayesbandit.model import reward_model
from tests import declarations as declared
from tests.bandit.kinds import known_noise_by_context, off_centre
from tests.bandit.late_rewards import ARMS, D, ages, bandit_of, late_rounds, now
from tests.cases import few, moments_of

HALF = 12.0
STREAMED = {
    "by columns": (declared.known, {}),
    "affine": (declared.noncentred, {}),
    "affine, noise by context": (known_noise_by_context, {}),
    "together": (declared.pooled, {}),
    "unknown noise": (off_centre, {}),
    "a probability": (bb.load_model("beta_bernoulli"), {}),
    "a rate": (bb.load_model("gamma_poisson"), {}),
    "Laplace": (declared.binary, {"engine": "laplace", "refit_every": 1}),
}


def rewards(kind, rng, shape):
    if kind in ("a probability", "Laplace"):
        return rng.integers(0, 2, shape) * 1.0
    return rng.poisson(2.0, shape) * 1.0 if kind == "a rate" else rng.normal(size=shape)


def lived(kind, seed):
    """A bandit, and the contexts, arms, rewards and ages of what it has learned."""
    (model, own), rng = STREAMED[kind], np.random.default_rng(seed)
    bandit = bandit_of(model, **({"half_life": HALF} | own))
    return bandit, *ages(late_rounds(bandit, rng, 40, partial(rewards, kind)))


def expected(kind, x, arm, r, share, probe):
    """Means and sds (n, 3) by the definition: the prior, and each row by its share."""
    model, _ = STREAMED[kind]
    if kind == "together":
        fit = bb.fit(model, x, r, share, arm=arm, n_arms=3)
        return fit.mean(probe), fit.sd(probe)
    found = []
    for k in range(3):
        mine = arm == k
        z, y, s = x[mine], r[mine], share[mine]
        if kind == "unknown noise":  # θ ~ N(½, σ²), σ² ~ InverseGamma(2, 1), rewards less 1
            Lam = z.T @ (s[:, None] * z) + np.eye(D)
            m = np.linalg.solve(Lam, z.T @ (s * (y - 1.0)) + 0.5)
            shape = 2.0 + 0.5 * s.sum()
            scale = 1.0 + 0.5 * (s @ (y - 1.0) ** 2 + D * 0.25 - m @ Lam @ m)
            spread = scale / (shape - 1.0) * np.linalg.inv(Lam)
            moments = 1.0 + probe @ m, np.sqrt(np.einsum("ni,ij,nj->n", probe, spread, probe))
        elif kind == "Laplace":  # the mode by Newton's method, and the curvature there
            theta = np.zeros(D)
            for _ in range(50):
                p = 1.0 / (1.0 + np.exp(-z @ theta))
                H = (z.T * (s * p * (1.0 - p))) @ z + np.eye(D) / 4.0
                theta = theta + np.linalg.solve(H, z.T @ (s * (y - p)) - theta / 4.0)
            moments = (
                probe @ theta,
                np.sqrt(np.einsum("ni,ni->n", probe, np.linalg.solve(H, probe.T).T)),
            )
        else:
            fit = bb.fit(model, z, y, s)
            moments = fit.mean(probe), fit.sd(probe)
        found.append(moments)
    return tuple(np.column_stack(columns) for columns in zip(*found, strict=True))


@few("[affine]", "[a probability]", "[together]")
@pytest.mark.parametrize("kind", [kind for kind in STREAMED if kind != "Laplace"])
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_is_left_of_rows_is_a_weighted_fit(kind, seed):
    bandit, x, arm, r, age = lived(kind, seed)
    probe = np.random.default_rng(1).normal(size=(4, D))
    ours = moments_of(now(bandit), probe)
    theirs = expected(kind, x, arm, r, 0.5 ** (age / HALF), probe)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_laplace_fades_by_powers_of_likelihoods():
    bandit, x, arm, r, age = lived("Laplace", 3)
    for k in range(3):  # a mode is of all rows when an arm learns, and fades until it learns again
        bandit.update(x[k], ARMS[k], 1.0)
    x, arm = np.vstack([x, x[:3]]), np.append(arm, [0, 1, 2])
    r, age = np.append(r, np.ones(3)), np.append(age + 3.0, [2.0, 1.0, 0.0])
    theirs = expected("Laplace", x, arm, r, 0.5 ** (age / HALF), x[:4])
    eta = bandit.belief.predict(x[:4]).eta
    ours = eta.mean, eta.sd
    for found, right in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(found[:, 2], right[:, 2], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found, right, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("kind", ["a probability", "a rate"])
def test_half_lives_are_weighed_by_predictive_densities(kind):
    """Beta-binomial and negative binomial ones, by scipy; rewards come late."""
    rng = np.random.default_rng(3)
    tick = np.sort(rng.integers(1, 400, 60)).astype(float)
    late = np.where(rng.random(60) < 0.3, np.maximum(tick - 40.0, 0.0), tick)
    k, r, w = rng.integers(0, 3, 60), rewards(kind, rng, 60), rng.uniform(0.5, 2.0, 60)
    belief, x = bandit_of(STREAMED[kind][0], half_life="auto").belief.fork(), np.zeros((60, D))
    a0, b0 = belief.predict(x[:1]).a[0, 0], belief.predict(x[:1]).b[0, 0]
    for some in (slice(0, 1), slice(1, 25), slice(25, 60)):
        belief.update(x[some], k[some], r[some], w[some], late[some])
        belief.advance(tick[some][-1])
    weight = prior(len(HALF_LIVES))
    rates = np.log(2.0) / np.array([h or np.inf for h in HALF_LIVES])
    for i in range(60):
        said, mine, now = [], np.flatnonzero(k[:i] == k[i]), max(late[: i + 1])
        for rate in rates:
            share = w[mine] * np.exp(-rate * (now - late[mine]))
            hits = share @ r[mine]
            if kind == "a rate":
                b = b0 + share.sum()
                said.append(stats.nbinom(a0 + hits, b / (b + 1.0)).pmf(r[i]))
            else:
                rest = b0 + share @ (1.0 - r[mine])
                said.append(stats.betabinom(1, a0 + hits, rest).pmf(r[i]))
        weight = weight * said
        weight = (1 - P_SWITCH) * weight / weight.sum() + P_SWITCH * prior(len(HALF_LIVES))
    np.testing.assert_allclose(np.exp(belief.log_weight), weight, rtol=1e-9)


def test_times_of_a_log():
    """Rounds logged with their times, in any order, are a weighted fit; `forget` ages them all."""
    rng, start = np.random.default_rng(4), time.time() - 10 * 86_400.0
    x, k, r = rng.normal(size=(30, D)), rng.integers(0, 3, 30), rng.normal(size=30)
    at = start + rng.uniform(0.0, 9 * 86_400.0, 30)
    dates = pd.Series(pd.to_datetime(at, unit="s", utc=True))
    for model, more in ((bb.Ridge(half_life="2d", clock="time", variance=0.49), {}),
                        (declared.noncentred, {"half_life": "2d", "clock": "time"})):  # fmt: skip
        found = []
        for when in (at, dates, dates.dt.tz_localize(None).to_numpy(), dates.to_list()):
            bandit = declared.bandit(ARMS, model, bb.Thompson(), n_features=D, **more)
            bandit.update(x[:20], np.array(ARMS)[k[:20]], r[:20], time=when[:20])
            bandit.update(x[20:], np.array(ARMS)[k[20:]], r[20:], time=when[20:])
            bandit.now = start + 10 * 86_400.0
            belief = bandit.belief.fork()
            belief.advance(bandit.now)
            found.append(moments_of(belief, x[:4]))
        np.testing.assert_allclose(found[1:], found[:-1], rtol=1e-6)
        share = 0.5 ** ((start + 10 * 86_400.0 - at) / (2 * 86_400.0))
        if model is declared.noncentred:
            theirs = expected("affine", x, k, r, share, x[:4])
            np.testing.assert_allclose(found[0], theirs, rtol=1e-8, atol=1e-9)
    late = bb.LinTS(ARMS, D, half_life="2d", clock="time")
    for bandit, when, said in (
        (late, 1e11, "time must be at most now"),
        (late, np.nan, "time must be at most now"),
        (late, [start] * 2, "time must have one value for each of 3 rows"),
        (late, "yesterday", "time, as dates .* since 1970, must be numbers"),
        (late, -np.inf, "at least -4503599627370496; got -inf"),
        (late, np.ma.array(dates[:3], "M8[us]", mask=[0, 1, 0]), "without a mask"),
        (bb.LinTS(ARMS, D), start, "does not forget"),
        (bb.LinTS(ARMS, D, half_life=5.0), start, "counts rounds"),
    ):
        n = bandit.belief.n.sum()
        with pytest.raises(ValueError, match=said):
            bandit.update(x[:3], ["a"] * 3, r[:3], time=when)
        assert bandit.belief.n.sum() == n
    for old in (np.datetime64("1500-01-01"), datetime(1500, 1, 1)):  # before nanoseconds begin
        late.update(x[:3], ["a"] * 3, r[:3], time=old)
    np.testing.assert_allclose(late.probabilities(x[:1]), 1 / 3)


Q, SIGMA2 = 0.03, declared.SIGMA**2


class Filter:
    """A Kalman filter: θ ~ N(m, S), with steps of variance Q in each coordinate from the first
    reward on. nig: shape and scale of an unknown noise variance; steps are divided by its estimate
    and S is that at a variance of 1."""

    def __init__(self, m, S, nig=None):
        self.m, self.S, self.nig, self.n, self.clock, self.loss = m, S, nig, 0, 0.0, 0.0

    @property
    def sigma2(self):
        if self.nig is None:
            return 1.0
        return (2.0 * self.nig[1] + self.loss) / (2.0 * self.nig[0] + self.n)

    def wait(self, tick):
        passed = max(tick - self.clock, 0.0)
        self.clock += passed
        if self.n:
            self.S = self.S + Q * passed / self.sigma2 * np.eye(len(self.m))

    def learn(self, a, y, noise):
        v = self.S @ a
        s = noise + a @ v
        error = y - a @ self.m
        self.m, self.S = self.m + v * error / s, self.S - np.outer(v, v) / s
        self.loss += error**2 / s
        self.n += 1

    def moments(self, A):
        df = np.inf if self.nig is None else 2.0 * self.nig[0] + self.n
        wider = self.sigma2 * (1.0 if df == np.inf else df / (df - 2.0))
        return A @ self.m, np.sqrt(wider * np.einsum("ni,ij,nj->n", A, self.S, A))


class World:
    """The filters of a declaration; a round is a row a of them, an offset and a noise variance."""

    def __init__(self, kind):
        one, three = np.ones(D), np.ones((3, 3))
        self.kind, self.together = kind, kind == "together"
        self.filters = {
            "by columns": lambda: Filter(0.0 * one, 4.0 * np.eye(D)),
            "affine": lambda: Filter(0.0 * one, np.eye(D)),  # z of θ = 1 + 3z
            "affine, noise by context": lambda: Filter(0.5 * one, np.eye(D)),
            "unknown noise": lambda: Filter(0.5 * one, np.eye(D), (2.0, 1.0)),
            "together": lambda: Filter(  # the arms' θ, which know their centre
                np.zeros(3 * D), np.kron(4.0 * three + 0.25 * np.eye(3), np.eye(D))
            ),
        }[kind]
        self.filters = [self.filters() for _ in range(1 if self.together else 3)]

    def row(self, x, k):
        if self.together:
            return np.kron(np.eye(3)[k], x), 0.0, SIGMA2
        return {
            "by columns": (x, 0.0, SIGMA2),
            "affine": (3.0 * x, x.sum(), SIGMA2),
            "affine, noise by context": (x, 0.0, np.exp(0.6 * x[0])),
            "unknown noise": (x, 1.0, 1.0),
        }[self.kind]

    def wait(self, tick):
        for one in self.filters:
            one.wait(tick)

    def learn(self, x, k, r):
        a, offset, noise = self.row(x, k)
        self.filters[0 if self.together else k].learn(a, r - offset, noise)

    def moments(self, probe):
        found = []
        for k in range(3):
            rows = [self.row(x, k) for x in probe]
            A, offset = np.array([a for a, _, _ in rows]), np.array([b for _, b, _ in rows])
            mean, sd = self.filters[0 if self.together else k].moments(A)
            found.append((mean + offset, sd))
        return tuple(np.column_stack(columns) for columns in zip(*found, strict=True))


MODELS = {
    "by columns": declared.known,
    "affine": declared.noncentred,
    "affine, noise by context": known_noise_by_context,
    "unknown noise": off_centre,
    "together": declared.pooled,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_walking_coefficients_are_a_kalman_filter(kind, seed):
    """Rewards that come late or in batches, `forget` and `update` in between; arms come and go."""
    bandit, world, rng = bandit_of(MODELS[kind], drift=Q), World(kind), np.random.default_rng(seed)
    for tick, row in late_rounds(bandit, rng, 25, np.random.Generator.standard_normal, most=4):
        world.wait(tick)
        if row is not None:
            world.learn(*row)
    probe = rng.normal(size=(4, D))
    ours, theirs = moments_of(now(bandit), probe), world.moments(probe)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    bandit.forget(5)
    world.wait(tick + 5.0)
    posterior, (mean, sd) = bandit.posterior("b"), world.moments(probe)
    at = (slice(None), 1) if kind == "together" else slice(None)
    np.testing.assert_allclose(posterior.mean(probe)[at], mean[:, 1], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(posterior.sd(probe)[at], sd[:, 1], rtol=1e-9, atol=1e-10)
    bandit.add_arm("d")
    bandit.remove_arm("d")
    again = moments_of(now(bandit), probe)
    np.testing.assert_allclose(again, (mean, sd), rtol=1e-9, atol=1e-10)


@reward_model(theta=bb.Prior("Normal", mu=0, sigma=2, dims="feature", centered=False))
def scaled(x, reward, weight, theta):
    mu = x @ theta
    pm.Normal("reward", mu, declared.SIGMA / pm.math.sqrt(weight), observed=reward)
    return mu


@reward_model()
def by_arm(x, reward, weight, arm):
    theta = pm.Normal("theta", 0, 2, dims=("arm", "feature"))
    mu = (x * theta[arm]).sum(axis=-1)
    pm.Normal("reward", mu, declared.SIGMA / pm.math.sqrt(weight), observed=reward)
    return mu


@pytest.mark.slow
def test_a_declared_ridge_chooses_the_half_life_of_the_preset():
    """And so does the same model in other words."""
    rng, memory = np.random.default_rng(0), {"half_life": "auto"}
    mean = np.repeat([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]], 350, axis=0)  # another arm is the best
    x, reward = rng.normal(size=(700, D)), mean + declared.SIGMA * rng.normal(size=(700, 3))
    preset = bb.LinTS(
        ARMS, D, ridge=SIGMA2 / 4.0, variance=SIGMA2, intercept=False, min_probability=0.05,
        seed=3, **memory,
    )  # fmt: skip
    chosen, propensity = preset.play(x, reward)
    weight = np.exp(preset.belief.log_weight)
    assert weight.argmax() > 0  # it has seen the change
    ours = bandit_of(declared.known, **memory)
    played = ours.play(x, reward)
    np.testing.assert_array_equal(played[0], chosen)
    np.testing.assert_allclose(played[1], propensity, rtol=1e-10)
    np.testing.assert_allclose(np.exp(ours.belief.log_weight), weight, rtol=1e-10)
    arm = np.array(ARMS)[chosen]
    for model in (scaled, by_arm):
        other = bandit_of(model, **memory)
        for part in (slice(0, 1), slice(1, 400), slice(400, 700)):
            rows = np.arange(700)[part]
            other.update(x[rows], arm[rows], reward[rows, chosen[rows]])
        np.testing.assert_allclose(np.exp(other.belief.log_weight), weight, rtol=1e-7)
        found = moments_of(other.belief, x[:4])
        np.testing.assert_allclose(found, moments_of(preset.belief, x[:4]), rtol=1e-7, atol=1e-8)
        other.add_arm("d")  # arms together are fitted again
        np.testing.assert_allclose(np.exp(other.belief.log_weight), weight, rtol=1e-7)
        probe = x[:4]
        at = (slice(None), 1) if model is by_arm else slice(None)
        mean = other.posterior("b").mean(probe)[at]
        np.testing.assert_allclose(mean, preset.posterior("b").mean(probe), rtol=1e-7, atol=1e-8)
