"""The laws of numbers, for every belief, policy and balance at any scale.

What is accepted leads to probabilities between 0 and 1 that sum to 1 and respect their floor, to
finite means and standard deviations, and to a file that loads. What is refused is named, and
changes nothing.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit.systems.bootstrap.belief import Bootstrap
from bayesbandit.systems.forest.belief import Forest
from bayesbandit.systems.policy_tree.belief import PolicyTree
from bayesbandit.systems.super_ucb.belief import SuperUCB
from tests.cases import moments_of
from tests.oracle import exact_moments
from tests.players import anatomy, play

K = 3
POLICIES = {
    "Thompson": bb.Thompson,
    "Thompson of 0": lambda **floor: bb.Thompson(0.0, **floor),
    "Thompson of 1e50": lambda **floor: bb.Thompson(1e50, **floor),
    "UCB": bb.UCB,
    "UCB of 1e50": lambda **floor: bb.UCB(1e50, **floor),
    "Greedy": bb.Greedy,
    "EpsilonGreedy": bb.EpsilonGreedy,
    "Boltzmann": bb.Boltzmann,
    "Boltzmann of 1e-300": lambda **floor: bb.Boltzmann(1e-300, **floor),
    "TopTwo": bb.TopTwo,
}
BALANCES = {
    "Unweighted": bb.Unweighted(),
    "decision": bb.InversePropensity(),
    "clip of 1e-12": bb.InversePropensity(clip=1e-12),
    "normalised": bb.InversePropensity(normalize=True),
    "estimated": bb.InversePropensity(propensity="estimated"),
    "pooled": bb.InversePropensity(propensity="pooled"),
    "ResidualBalance": bb.ResidualBalance(),
    "as they are": bb.ResidualBalance(scale=False),
    "rbf": bb.KernelBalance(),
    "polynomial": bb.KernelBalance(kernel="polynomial"),
}
OTHERS = {
    "SuperUCB": SuperUCB(),
    "SuperUCB, λ of 1e-16": SuperUCB(ridge=1e-16),
    "LASSO": Bootstrap(replicates=4),
    "ridge": Bootstrap("ridge", replicates=4, draw="normal"),
    "squares": Bootstrap("ridge", lam=1e-12, replicates=4, degree=2),
    "Forest": Forest(trees=8),
    "PolicyTree": PolicyTree(),
    "PolicyTree, cv": PolicyTree(base=bb.Ridge("cv"), prior_rows=0),
}
SCALES = [1e-300, 1e-160, 1e-8, 1.0, 1e5, 1e8, 1e12, 1e20, 1e49]
REWARDS = [1e-300, 1e-160, 1.0, 1e10, 1e49, 1e100]


def ridges():
    """`Ridge` with any of its rules."""
    return st.builds(
        bb.Ridge,
        ridge=st.sampled_from([1e-16, 1.0, 1e16, "cv"]),
        variance=st.sampled_from(["empirical_bayes", "rss/n", "rss", "nig", 1.0]),
        intercept=st.sampled_from([True, False, "unpenalised"]),
    )


def contexts(shape, scale, n, d, rng):
    """Contexts (n, d) of a shape, at a scale."""
    x = rng.normal(size=(n, d))
    match shape:
        case "copies":
            x = x[np.arange(n) // 4]
        case "collinear":
            x = x[:, :1] * np.ones(d)
        case "zeros":
            x[rng.random(x.shape) < 0.6] = 0.0
        case "one-hot":
            x = np.eye(d)[rng.integers(d, size=n)]
        case "mixed":
            x, scale = x * 10.0 ** (np.log10(scale) * rng.uniform(-1, 1, size=d)), 1.0
        case "one is large":
            x[np.arange(n) != n // 2] /= scale
    with np.errstate(under="ignore", over="ignore"):
        return np.clip(x * scale, -1e50, 1e50)


SHAPES = ["plain", "copies", "collinear", "zeros", "one-hot", "mixed", "one is large"]


def is_taken(bandit, decision, reward):
    """Observe a reward; False where it is refused by name, which changes nothing."""
    before = anatomy(bandit)
    try:
        bandit.observe(decision, reward)
    except ValueError as error:
        refusal = str(error)
    else:
        return True
    assert "must be" in refusal
    assert anatomy(bandit) == before
    return False


def lawful(bandit, decision, floor):
    p = np.atleast_2d(decision.probabilities)
    assert ((p >= 0.0) & (p <= 1.0 + 1e-12)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
    assert (p >= floor * (1.0 - 1e-9)).all()
    assert (np.atleast_1d(decision.propensity) > 0.0).all()
    mean, sd = np.atleast_2d(decision.mean), np.atleast_2d(decision.sd)
    assert np.isfinite(mean).all()
    assert (sd >= 0.0).all()
    if isinstance(bandit.spec, bb.Ridge) and bandit.spec.variance != "nig":
        assert np.isfinite(sd[:, bandit.belief.n > 0]).all()


def obeys(bandit, x, reward, floor, path):
    """A bandit obeys the laws through contexts x (n, d) and all arms' rewards (n, K)."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twin, whole = bandit.copy(), True
        for context, rewards in zip(x, reward, strict=True):
            decision = bandit.choose(context)
            lawful(bandit, decision, floor)
            told = float(rewards[bandit.arms.index(decision.arm)])
            whole = is_taken(bandit, decision, told) and whole
        batch = bandit.choose(x)
        lawful(bandit, batch, floor)
        is_taken(bandit, batch, reward[:, 0])
        lawful(bandit, bandit.choose(x[0]), floor)
        bandit.save(path)
        loaded = bb.Bandit.load(path)
        np.testing.assert_array_equal(loaded.probabilities(x), bandit.probabilities(x))
        if whole and (np.abs(reward) <= 1e50).all():
            one = twin.copy()
            twin.play(x, reward)
            play(one, x, reward)
            assert one.history.total == twin.history.total
            np.testing.assert_array_equal(one.probabilities(x), twin.probabilities(x))


def worlds(columns):
    """The shape of contexts and their scale, rows, columns; the rewards' scale; a floor; a seed."""
    return st.tuples(
        st.sampled_from(SHAPES), st.sampled_from(SCALES), st.sampled_from([3, 8, 20]),
        st.sampled_from(columns), st.sampled_from(REWARDS), st.sampled_from([0.0, 0.1, 1 / K]),
        st.integers(0, 2**32 - 1),
    )  # fmt: skip


def plays(model, policy, balance, world, path):
    shape, scale, n, d, unit, floor, seed = world
    rng = np.random.default_rng(seed)
    x, reward = contexts(shape, scale, n, d, rng), unit * rng.normal(size=(n, K))
    bandit = bb.Bandit(K, model, policy(min_probability=floor), balance, n_features=d, seed=1)
    obeys(bandit, x, reward, floor, path)


def combined(model, policies, balances):
    return st.tuples(model, st.sampled_from(policies), st.sampled_from(balances)).filter(
        lambda it: it[2] != "pooled" or not it[1].startswith(("Boltzmann", "TopTwo"))
    )


@pytest.mark.slow
@settings(max_examples=8)
@given(combined(ridges(), list(POLICIES), list(BALANCES)), worlds([1, 2, 5, 40]))
def test_linear_bandits(tmp_path_factory, it, world):
    model, policy, balance = it
    path = tmp_path_factory.getbasetemp() / "linear"
    plays(model, POLICIES[policy], BALANCES[balance], world, path)


@pytest.mark.slow
@settings(max_examples=6)
@given(
    combined(st.sampled_from(list(OTHERS)), list(POLICIES), ["Unweighted", "decision", "rbf"]),
    worlds([1, 2, 5]),
)
def test_other_bandits(tmp_path_factory, it, world):
    model, policy, balance = it
    path = tmp_path_factory.getbasetemp() / "other"
    plays(OTHERS[model], POLICIES[policy], BALANCES[balance], world, path)


def learned(x, r, w, ridge=1.0, way="update", **settings):
    """A belief about one arm that has learned rows in one of two ways."""
    model = bb.Ridge(ridge, variance=1.0, intercept=False, **settings)
    belief, arm = model.belief(1, x.shape[1]), np.zeros(len(x), np.int64)
    if way == "update":
        belief.update(x, arm, r, w)
    else:
        belief.reweigh([0], x, arm, r, w)
    return belief


@pytest.mark.parametrize("way", ["update", "reweigh"])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e5, 1e6, 1e8, 1e10])
@pytest.mark.parametrize(("n", "copies"), [(3, 1), (6, 2), (12, 1)])
def test_posteriors_are_exact_up_to_a_ratio_of_1e20(scale, n, copies, way):
    """Against rational arithmetic, where n is fewer and more than 5 columns: sds to 1e-4, and means
    to 1e-4 of an sd; to 1e-6 up to contexts of 1e8."""
    rng = np.random.default_rng(int(scale % 97) + n)
    x = scale * np.repeat(rng.normal(size=(n // copies, 5)), copies, axis=0)
    r, w = rng.normal(size=n), rng.uniform(0.5, 10.0, n)
    at = np.vstack([x, scale * rng.normal(size=(2, 5)), rng.normal(size=(1, 5))])
    mean, sd = moments_of(learned(x, r, w, way=way), at)
    wanted, width = exact_moments(x, r, w, 1.0, at)
    tolerance = 1e-6 if scale <= 1e8 else 1e-4
    np.testing.assert_allclose(sd[:, 0] / width, 1.0, atol=tolerance)
    np.testing.assert_allclose(mean[:, 0] / width, wanted / width, atol=tolerance)


@given(
    st.sampled_from(SHAPES), st.sampled_from([1.0, 1e5, 1e9, 1e14]), st.integers(1, 15),
    st.integers(1, 9), st.integers(-150, 150), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_units_of_contexts_change_no_bit(shape, scale, n, d, power, seed):
    """Contexts times 2^k under a ridge times 4^k predict the same."""
    rng, c = np.random.default_rng(seed), 2.0**power
    x, r, w = contexts(shape, scale, n, d, rng), rng.normal(size=n), rng.uniform(1, 10, n)
    x = np.where(np.abs(x) < 1e-20, 0.0, x)  # whose squares stay where float64 is even
    one, other = learned(x, r, w), learned(c * x, r, w, ridge=c * c)
    for ours, theirs in zip(moments_of(one, x), moments_of(other, c * x), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_a_declared_posterior_that_float64_cannot_hold():
    """Its coefficients are refused by name; predictions stand."""
    bandit = bb.Bandit(2, bb.load_model("ridge"), bb.Thompson(), n_features=20)
    rng = np.random.default_rng(0)
    x = 1e8 * rng.normal(size=(8, 20))
    bandit.update(x, [0] * 8, rng.normal(size=8), np.full(8, 0.5))
    with pytest.raises(ValueError, match="must have directions that float64 tells apart; got a"):
        bandit.posterior(0)
    lawful(bandit, bandit.choose(x), 0.0)
