"""Laws of the normal-inverse-gamma engine, on many ways of declaring the unknown noise."""

import numpy as np
import pymc as pm
import pytest

from bayesbandit.inference.base import Refusal
from bayesbandit.inference.exact import normal_inverse_gamma
from tests.cases import few, in_gate, quick_but
from tests.inference import unknown_noise
from tests.inference.declared import built, rows
from tests.inference.test_closed_forms import matched


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
@pytest.mark.slow
def test_an_intercept_takes_up_any_offset_of_the_rewards(offset):
    def wide(x, reward, weight):
        s2 = pm.InverseGamma("s2", 2.0, 1.0)
        level = pm.Normal("level", 0.0, 1e12 * pm.math.sqrt(s2))
        mu = level + x @ pm.Normal("theta", 0.0, pm.math.sqrt(s2), shape=unknown_noise.D)
        pm.Normal("r", mu, pm.math.sqrt(s2 / weight), observed=reward)
        return mu

    data = rows(n=unknown_noise.N, d=unknown_noise.D)
    engine = normal_inverse_gamma.match(built(wide, data))
    near = engine.posterior(**data)
    far = engine.posterior(**data | {"reward": data["reward"] + offset})
    apart = np.zeros(engine.dim)
    apart[engine.slices["level"]] = offset
    lost = 1e-9 + 1e-13 * offset  # digits of the rewards themselves
    assert np.isclose(far.scale, near.scale, rtol=lost)
    assert np.isclose(far.log_evidence, near.log_evidence, rtol=lost)
    assert np.allclose(far.mean - apart, near.mean, atol=100 * lost)


KERNEL = {  # the exponent of the scale in the precision, and the noise at scale 1
    unknown_noise.variance: (-1, 1),
    unknown_noise.precision: (1, 1),
    unknown_noise.standard_deviation: (-2, 1),
    unknown_noise.double_noise: (-1, 4),
}
NO_KERNEL = [
    *(unknown_noise.off_centre, unknown_noise.correlated, unknown_noise.non_centred),
    *(unknown_noise.powers, unknown_noise.arms, *unknown_noise.IN_BATCH),
]


@pytest.mark.slow
@pytest.mark.parametrize("declare", [*KERNEL, *NO_KERNEL], ids=lambda f: f.__name__)
def test_what_the_compiled_kernel_can_take_is_recognised(declare):
    """N(mean reward, noise/weight) with a noise that is inverse gamma, under a ridge."""
    engine, _, _ = matched(declare)
    if declare not in KERNEL:
        not_of_every_variance = declare in (unknown_noise.powers, *unknown_noise.IN_BATCH)
        assert (engine.noise is None) == (not engine.streams) == not_of_every_variance
        return
    exponent, noise = KERNEL[declare]
    assert engine.exponent == exponent
    prior = engine.prior_distribution
    a, b = unknown_noise.PRIOR
    assert np.allclose([prior.shape, prior.scale * engine.noise], [a, noise * b])


def test_tiny_and_huge_rewards_keep_their_digits():
    engine, data, _ = matched(unknown_noise.variance)
    for scale in (1e-7, 1e7):
        one = engine.data(data["x"][:1], scale * data["reward"][:1], data["weight"][:1])
        power, rate, _ = engine.scalars(np.zeros(engine.dim), one)
        assert np.isclose(power, 0.5, rtol=1e-12)
        assert np.isclose(
            rate, 0.5 * data["weight"][0] * (scale * data["reward"][0]) ** 2, rtol=1e-12
        )


LIKE_OTHERS = "known noise", "noise plus one", "two scales", "log-normal", "scaled by the variance"


@few("[no scale]")
@pytest.mark.parametrize("name", quick_but(LIKE_OTHERS, unknown_noise.REFUSED))
@in_gate(5)
def test_what_is_not_normal_inverse_gamma_is_refused_and_says_why(name):
    declare, words = unknown_noise.REFUSED[name]
    refusal = normal_inverse_gamma.match(built(declare, rows(n=unknown_noise.N, d=unknown_noise.D)))
    assert isinstance(refusal, Refusal), "accepted"
    assert refusal.engine == "normal_inverse_gamma"
    assert words in refusal.reason
