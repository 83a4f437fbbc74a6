"""Exact beliefs of declared models: what streams in is what `bb.fit` finds, on every path."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import bayesbandit as bb
from bayesbandit.beliefs.affine import AffineBelief, JointBelief
from bayesbandit.beliefs.declared import Declared
from bayesbandit.model import RewardModel
from tests import oracle
from tests.beliefs import closed_form
from tests.beliefs.closed_form import MODELS, data, learn
from tests.engines import linear, unknown_noise

D, K = 3, 3
SEED = np.random.SeedSequence(0)
QUICK = {
    "an intercept": linear.intercept,
    "another centre": linear.centred_elsewhere,
    "squares of features": linear.squares_of_features,
    "a fixed offset": linear.offset,
    "correlated coefficients": linear.mv_cov,
    "a random walk": linear.random_walk,
    "non-centred": linear.non_centred,
    "two likelihoods": linear.two_likelihoods,
    "unknown noise, off centre": unknown_noise.off_centre,
    "unknown noise, correlated": unknown_noise.correlated,
    "unknown noise, non-centred": unknown_noise.non_centred,
    "arms that share a mean": linear.arms_share_a_mean,
    "arms, unknown noise": unknown_noise.arms,
}
UNUSED = ("no_weights", "custom_by_draws")  # take weights, but have no use for them
DOES_NOT_STREAM = ("noise_by_context", "improper", "logarithms", "jeffreys", "flat", "powers")
SLOW = [
    f
    for f in (*linear.STREAMED, *unknown_noise.STREAMED)
    if f not in QUICK.values() and f.__name__ not in (*DOES_NOT_STREAM, *UNUSED)
]
DECLARED = {name: RewardModel(f, {}) for name, f in QUICK.items()} | MODELS
FIRST = (  # the others are slow
    "squares of features",
    "unknown noise, off centre",
    "hierarchical",
    "effects, unknown noise",
)


def of(names, quick=FIRST):
    marked = [pytest.param(n, marks=[pytest.mark.slow] if n not in quick else []) for n in names]
    return pytest.mark.parametrize("name", marked)


every, shared = of(DECLARED), of(MODELS)
own = of([n for n, m in DECLARED.items() if not m.takes_arm])


def believed(model, n_arms=K, normalize=False):
    belief = Declared(model).belief(n_arms, D, normalize, SEED)
    assert type(belief) is (JointBelief if model.takes_arm else AffineBelief)
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
    mean, sd = belief.moments(probe())
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
    close(belief.mean(probe()), mean)
    np.testing.assert_array_equal(belief.n, np.bincount(rows["arm"], minlength=n_arms))


@of(DECLARED, [*FIRST, "another centre", "a random walk", "arms, unknown noise"])
def test_what_streams_in_is_what_fit_finds(name):
    """One by one, in batches, and all at once; an arm without rows is the prior."""
    model, rows = DECLARED[name], data(n=40)
    one_by_one, in_batches, at_once = believed(model), believed(model), believed(model)
    agree(learn(one_by_one, rows), model, rows)
    agree(learn(in_batches, rows, (1, 7, 0, 30, 2)), model, rows)
    agree(learn(at_once, rows, (40,)), model, rows)
    agree(believed(model), model, {role: v[:0] for role, v in rows.items()})


@pytest.mark.slow
@pytest.mark.parametrize("declare", SLOW, ids=lambda f: f.__name__)
def test_so_it_is_however_it_is_declared(declare):
    model, rows = RewardModel(declare, {}), data(n=40)
    agree(learn(believed(model), rows), model, rows)


@pytest.mark.slow
@every
def test_long_streams_do_not_drift(name):
    """Over the refactorisations of a few thousand rounds."""
    model, rows = DECLARED[name], data(n=7000)
    agree(learn(believed(model), rows, (5000, 2000)), model, rows)


@every
def test_the_order_of_rounds_does_not_matter(name, rng):
    model, rows = DECLARED[name], data(n=40)
    order = rng.permutation(40)
    belief = learn(believed(model), rows)
    again = learn(believed(model), {role: v[order] for role, v in rows.items()})
    for ours, theirs in zip(belief.moments(probe()), again.moments(probe()), strict=True):
        close(ours, theirs)


@every
def test_without_weights_every_weight_is_one(name):
    model, rows = DECLARED[name], data(n=20)
    plain, weighted = believed(model), believed(model)
    plain.update(rows["x"], rows["arm"], rows["reward"])
    weighted.update(rows["x"], rows["arm"], rows["reward"], np.ones(20))
    for ours, theirs in zip(plain.moments(probe()), weighted.moments(probe()), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@every
def test_weights_that_change_with_hindsight(name):
    """Of own models only the arms that are due; of a shared one all. Rows of an arm that is gone
    (−1) are none of it."""
    model, rows = DECLARED[name], data(n=40)
    belief = learn(believed(model), rows | {"weight": np.ones(40)})
    gone = {role: np.concatenate([v[:5], v]) for role, v in rows.items()}
    gone["arm"][:5] = -1
    belief.reweigh([0, 2], *(gone[role] for role in ("x", "arm", "reward", "weight")))
    if not model.takes_arm:
        rows = rows | {"weight": np.where(rows["arm"] == 1, 1.0, rows["weight"])}
    agree(belief, model, rows)
    more = data(seed=1, n=10)
    both = {role: np.concatenate([rows[role], more[role]]) for role in rows}
    agree(learn(belief, more), model, both)


@every
def test_normalised_weights_have_mean_one(name):
    """Of each arm's weights; of all weights, where the arms share the model."""
    model, rows = DECLARED[name], data(n=40)
    belief = learn(believed(model, normalize=True), rows)
    groups = np.zeros(40, dtype=int) if model.takes_arm else rows["arm"]
    mean = np.bincount(groups, rows["weight"]) / np.bincount(groups)
    normalised = rows | {"weight": rows["weight"] / mean[groups]}
    agree(belief, model, normalised)
    scaled = learn(believed(model, normalize=True), rows | {"weight": 7.0 * rows["weight"]})
    for ours, theirs in zip(belief.moments(probe()), scaled.moments(probe()), strict=True):
        close(ours, theirs)


@every
def test_arms_come_and_go(name):
    """A new arm knows the prior, or what the others teach; the rows of one that goes are as if
    they had never been."""
    model, rows = DECLARED[name], data(n=30)
    belief = learn(believed(model), rows)
    belief.add_arm()
    agree(belief, model, rows, K + 1)
    more = data(seed=1, n=20, K=K + 1)
    both = {role: np.concatenate([rows[role], more[role]]) for role in rows}
    agree(learn(belief, more), model, both, K + 1)
    belief.remove_arm(1)
    left = {role: v[both["arm"] != 1] for role, v in both.items()}
    left["arm"] = left["arm"] - (left["arm"] > 1)
    agree(belief, model, left, K)
    agree(learn(belief, rows), model, {role: np.concatenate([left[role], rows[role]])
                                       for role in rows}, K)  # fmt: skip


# ---- arms that share a model ---------------------------------------------------------------------


def joint(name, n_arms, n=20, seed=0):
    rows = data(seed=seed, n=n, K=n_arms)
    belief = learn(believed(MODELS[name], n_arms), rows, (n,))
    return belief, closed_form.mean_rewards(name, rows, n_arms, probe())


@shared
@pytest.mark.parametrize("n_arms", [1, 3])
def test_moments_in_closed_form(name, n_arms):
    belief, (mean, spread, df) = joint(name, n_arms)
    ours, root, ours_df = belief.together(probe())
    close(ours, mean)
    close(root @ root.transpose(0, 2, 1), spread)
    assert ours_df == df
    variance = closed_form.variance(spread, df)
    close(belief.moments(probe())[1], np.sqrt(np.einsum("nkk->nk", variance)))


@shared
@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_the_better_of_two_dependent_arms(name, alpha):
    """P = Φ((m₀ − m₁)/(α √var(m₀ − m₁))), of Student-t with its own distribution function."""
    belief, (mean, spread, df) = joint(name, 2)
    c = np.array([1.0, -1.0])
    z = mean @ c / (alpha * np.sqrt(spread @ c @ c))
    p = stats.t.cdf(z, df) if np.isfinite(df) else stats.norm.cdf(z)
    np.testing.assert_allclose(belief.best(probe(), alpha)[:, 0], p, atol=2e-3)


@shared
@pytest.mark.parametrize("alpha", [1.0, 2.5])
@pytest.mark.parametrize("n_arms", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_the_best_of_dependent_arms_is_an_orthant(name, alpha, n_arms):
    belief, (mean, spread, df) = joint(name, n_arms, n=12)
    p = belief.best(probe(), alpha)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    for row in range(len(p)):
        expected = closed_form.orthants(mean[row], spread[row], df, alpha)
        np.testing.assert_allclose(p[row], expected, atol=3e-3 if n_arms == 3 else 5e-3)


@shared
def test_it_is_not_what_independent_arms_would_give(name):
    """What the arms share cancels in their differences; else the belief would be needless."""
    belief, (mean, spread, df) = joint(name, 3, n=6)
    sd = np.sqrt(np.einsum("nkk->nk", closed_form.variance(spread, df)))
    apart = bb.choice_probabilities(mean, sd)
    if name != "hierarchical, apart":
        assert np.abs(belief.best(probe(), 1.0) - apart).max() > 0.02


@shared
def test_before_any_reward_all_arms_are_alike(name):
    np.testing.assert_allclose(believed(MODELS[name]).best(probe(), 1.0), 1 / 3, atol=3e-3)


@shared
def test_alpha_zero_is_greedy(name, rng):
    belief, (mean, _, _) = joint(name, 3)
    greedy = bb.Greedy().probabilities(belief, probe())
    np.testing.assert_array_equal(greedy.argmax(axis=1), mean.argmax(axis=1))
    for policy in (bb.Thompson(0.0), bb.UCB(0.0)):
        np.testing.assert_allclose(policy.probabilities(belief, probe()), greedy, atol=1e-12)
        np.testing.assert_array_equal(policy.scores(belief, probe(), rng), belief.mean(probe()))


# ---- draws ---------------------------------------------------------------------------------------

S = 20_000


def drawn_from(draws, mean, covariance, df):
    """Draws (S, m) have these moments, within 4.5 standard errors of each."""
    kurtosis = 1.0 if np.isinf(df) else (df - 2) / (df - 4)
    variance = np.diag(covariance)
    assert (np.abs(draws.mean(axis=0) - mean) <= 4.5 * np.sqrt(variance / len(draws))).all()
    products = np.outer(variance, variance)
    error = np.sqrt((kurtosis * (products + 2 * covariance**2) - covariance**2) / len(draws))
    assert (np.abs(np.cov(draws.T) - covariance) <= 4.5 * error).all()


@shared
def test_one_draw_spans_all_contexts_and_arms(name, rng):
    """The covariance of two contexts' mean rewards, too: A Σ A' of both together."""
    rows = data(n=20)
    belief = learn(believed(MODELS[name]), rows)
    draws = belief.draw(probe()[:2], S, rng).reshape(S, -1)
    fit = fitted(MODELS[name], rows, K)[0]
    A, _ = fit.plan.method.linear_map(probe()[:2])
    A = A.reshape(-1, A.shape[-1])
    df = fit.known.df if hasattr(fit.known, "df") else np.inf
    mean, spread, _ = closed_form.mean_rewards(name, rows, K, probe()[:2])
    covariance = A @ fit.known.covariance @ A.T
    close(covariance[:K, :K], closed_form.variance(spread, df)[0])
    drawn_from(draws, mean.reshape(-1), covariance, df)


@shared
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_a_sample_is_a_joint_draw_of_each_row(name, alpha, rng):
    belief, (mean, spread, df) = joint(name, 3)
    x = np.repeat(probe()[:2], S, axis=0)
    sample = belief.sample(x, alpha, rng).reshape(2, S, K)
    for row in range(2):
        covariance = alpha**2 * closed_form.variance(spread[row], df)
        drawn_from(sample[row], mean[row], covariance, df)
    assert abs(np.corrcoef(sample[0, :, 0], sample[1, :, 0])[0, 1]) < 4.5 / np.sqrt(S)


@own
def test_own_models_draw_arms_apart(name, rng):
    """Moments of the mean rewards, arms independent; best is the integral of these."""
    model, rows = DECLARED[name], data(n=40)
    belief = learn(believed(model), rows)
    x = probe()[:1]
    mean, scale, df = belief.location_scale(x)
    sd = belief.moments(x)[1]
    nu = df.min()
    drawn_from(belief.draw(x, S, rng)[:, 0], mean[0], np.diag(sd[0] ** 2), nu)
    drawn_from(belief.sample(np.repeat(x, S, axis=0), 0.5, rng), mean[0],
               np.diag(0.25 * sd[0] ** 2), nu)  # fmt: skip
    for alpha in (1.0, 2.5):
        p = belief.best(x, alpha)[0]
        np.testing.assert_allclose(p, oracle.best_arm(mean[0], alpha * scale[0], df[0]), atol=1e-6)
        if np.isinf(df).all():
            close(p, bb.choice_probabilities(mean[0], alpha * sd[0]))


@every
def test_upper_bounds_are_those_of_the_moments(name):
    model, rows = DECLARED[name], data(n=40)
    belief = learn(believed(model), rows)
    mean, sd = belief.moments(probe())
    for policy, score in ((bb.UCB(1.3), mean + 1.3 * sd), (bb.Greedy(), mean)):
        p = policy.probabilities(belief, probe())
        np.testing.assert_array_equal(p, np.eye(K)[score.argmax(axis=1)])


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, K]), st.integers(0, 25))
def test_any_rounds(seed, n_arms, n):
    """Whatever the number of arms and rounds, the joint belief is the closed form."""
    name = "hierarchical"
    rows = data(seed=seed, n=n, K=n_arms)
    belief = learn(believed(MODELS[name], n_arms), rows)
    mean, spread, _ = closed_form.mean_rewards(name, rows, n_arms, probe())
    ours, root, _ = belief.together(probe())
    close(ours, mean)
    close(root @ root.transpose(0, 2, 1), spread)
    np.testing.assert_allclose(belief.best(probe(), 1.0).sum(axis=1), 1.0, atol=1e-12)
