"""Coefficients that walk, against a Kalman filter; and half-lives that the rewards choose."""

import numpy as np
import pymc as pm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit.model import reward_model
from tests import declarations as declared
from tests.bandit.kinds import known_noise_by_context, off_centre
from tests.bandit.late_rewards import ARMS, D, bandit_of, late_rounds, now
from tests.cases import moments_of

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
        s, error = noise + a @ v, y - a @ self.m
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
