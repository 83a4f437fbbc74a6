"""Exact beliefs of declared models: what `bb.fit` finds, and arms that share one in closed form."""

from functools import cache

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.beliefs.regressions import Regressions
from bayesbandit.model import RewardModel
from tests.beliefs import closed_form
from tests.beliefs.closed_form import MODELS, data, learn
from tests.cases import in_gate, moments_of
from tests.inference import linear, unknown_noise

D, K = 3, 3
SEED = np.random.SeedSequence(0)
DOES_NOT_STREAM = (
    *(linear.improper, linear.logarithms),
    *(unknown_noise.jeffreys, unknown_noise.flat, unknown_noise.powers),
)
MORE = linear.log_rewards, linear.clipped, linear.noise_by_arm, unknown_noise.by_context
DECLARED = MODELS | {
    f"{f.__module__.rpartition('.')[2]}, {f.__name__}": RewardModel(f, {})
    for f in (*linear.STREAMED, *unknown_noise.STREAMED, *MORE)
    if f not in DOES_NOT_STREAM
}
shared = pytest.mark.parametrize("name", MODELS)


def believed(model, n_arms=K, normalize=False):
    belief = bb.Declared(model).belief(n_arms, D, normalize, SEED)
    assert isinstance(belief, Regressions)
    assert belief.joint == model.takes_arm
    return belief


@cache
def probe():
    return np.random.default_rng(99).normal(size=(5, D))


def fitted(model, rows, n_arms):
    """`bb.fit` of each arm's rows, or of all arms' together."""
    if model.takes_arm:
        whole = bb.fit(model, rows["x"], rows["reward"], rows["weight"],
                       arm=rows["arm"], n_arms=n_arms)  # fmt: skip
        return [whole] * n_arms
    found = []
    for k in range(n_arms):
        mine = rows["arm"] == k
        found.append(bb.fit(model, *(rows[role][mine] for role in ("x", "reward", "weight"))))
    return found


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def agree(belief, model, rows, n_arms=K):
    """A belief is what `bb.fit` says: all variables, and the mean rewards of every arm."""
    whole = fitted(model, rows, n_arms)
    mean, sd = moments_of(belief, probe())
    for k, fit in enumerate(whole):
        ours = belief.posterior(k, {role: rows[role][:0] for role in ("x", "reward", "weight")})
        assert ours.engine == fit.engine
        assert ours.coefficients.keys() == fit.coefficients.keys()
        for name, (centre, spread) in fit.coefficients.items():
            close(ours.coefficients[name][0], centre)
            close(ours.coefficients[name][1], spread)
        at = (slice(None), k) if model.takes_arm else slice(None)
        for a, b in ((mean[:, k], fit.mean(probe())[at]), (sd[:, k], fit.sd(probe())[at])):
            close(a, b)
        close(ours.sd(probe()), fit.sd(probe()))
    close(belief.predict(probe()).mean, mean)
    np.testing.assert_array_equal(belief.n, np.bincount(rows["arm"], minlength=n_arms))


def joint(name, n_arms, n=20, seed=0):
    rows = data(seed=seed, n=n, K=n_arms)
    belief = learn(believed(MODELS[name], n_arms), rows, (n,))
    return belief, closed_form.mean_rewards(name, rows, n_arms, probe())


@shared
@pytest.mark.parametrize("alpha", [1.0, 2.5])
@pytest.mark.parametrize("n_arms", [3, pytest.param(4, marks=pytest.mark.slow)])
@in_gate(6)
def test_the_best_of_dependent_arms_is_an_orthant(name, alpha, n_arms):
    belief, (mean, spread, df) = joint(name, n_arms, n=12)
    p = belief.predict(probe()).best(alpha)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    for row in range(len(p)):
        expected = closed_form.orthants(mean[row], spread[row], df, alpha)
        np.testing.assert_allclose(p[row], expected, atol=3e-3 if n_arms == 3 else 5e-3)


S = 20_000


@shared
def test_one_draw_spans_all_arms(name, rng):
    """Draws have the moments of the closed form, within 4.5 standard errors of each."""
    belief, (mean, spread, df) = joint(name, K)
    draws = belief.predict(probe()).draw(S, rng)[:, 0]
    covariance = closed_form.variance(spread, df)[0]
    kurtosis = 1.0 if np.isinf(df) else (df - 2) / (df - 4)
    variance = np.diag(covariance)
    assert (np.abs(draws.mean(axis=0) - mean[0]) <= 4.5 * np.sqrt(variance / S)).all()
    products = np.outer(variance, variance)
    error = np.sqrt((kurtosis * (products + 2 * covariance**2) - covariance**2) / S)
    assert (np.abs(np.cov(draws.T) - covariance) <= 4.5 * error).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", DECLARED)
@in_gate(14)
def test_what_streams_in_is_what_fit_finds(name):
    """One by one, in batches, and all at once; an arm without rows is the prior."""
    model, rows = DECLARED[name], data(n=40)
    one_by_one, in_batches, at_once = believed(model), believed(model), believed(model)
    agree(learn(one_by_one, rows), model, rows)
    agree(learn(in_batches, rows, (1, 7, 0, 30, 2)), model, rows)
    agree(learn(at_once, rows, (40,)), model, rows)
    agree(believed(model), model, {role: v[:0] for role, v in rows.items()})


@pytest.mark.slow
@pytest.mark.parametrize("name", DECLARED)
@in_gate(5)
def test_long_streams_do_not_drift(name):
    """Over the refactorisations of a few thousand rounds."""
    model, rows = DECLARED[name], data(n=7000)
    agree(learn(believed(model), rows, (5000, 2000)), model, rows)
