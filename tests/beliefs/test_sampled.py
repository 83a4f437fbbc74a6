"""Beliefs by draws: those of the engine at each refit, on a schedule, and exact from then on."""

from functools import cache

import numpy as np
import pymc as pm
import pytest

import bayesbandit as bb
from bayesbandit.beliefs.declared import Declared
from bayesbandit.beliefs.sampled import SampledBelief
from bayesbandit.kernels import winners
from bayesbandit.model import RewardModel
from tests.beliefs.closed_form import data, learn
from tests.engines import linear, unknown_noise


def context_noise(x, reward, weight, arm):
    """A hierarchy whose posterior is exact, but does not stream: the noise depends on x."""
    centre = pm.Normal("centre", 0, 1, dims="feature")
    theta = pm.Normal("theta", centre, 0.7, dims=("arm", "feature"))
    mu = (x * theta[arm]).sum(axis=-1)
    pm.Normal("reward", mu, pm.math.exp(0.3 * x[:, 0]) / pm.math.sqrt(weight), observed=reward)
    return mu


D, K = 3, 3
LOGISTIC = bb.load_model("logistic")
UNKNOWN = bb.Prior("InverseGamma", alpha=2, beta=1)
GIBBS = bb.load_model("hierarchical_ridge").with_priors(tau2=UNKNOWN, sigma2=UNKNOWN)
SHARED = RewardModel(context_noise, {})
HETEROSCEDASTIC = RewardModel(linear.noise_by_context, {})
JOINT_NOISE = RewardModel(linear.joint_noise, {})
ZELLNER = RewardModel(linear.zellner, {})
POWERS = RewardModel(unknown_noise.powers, {})
IMPROPER = RewardModel(unknown_noise.flat, {})  # with σ² ~ InverseGamma: proper from D rows on
EXACT = {
    "noise by context": HETEROSCEDASTIC,
    "noise that rows share": JOINT_NOISE,
    "powers of the likelihood": POWERS,
}


def believed(model, n_arms=K, n_features=D, normalize=False, seed=0, **settings):
    belief = Declared(model, **settings).belief(
        n_arms, n_features, normalize, np.random.SeedSequence(seed)
    )
    assert type(belief) is SampledBelief
    return belief


@cache
def probe():
    return np.random.default_rng(99).normal(size=(4, D))


def binary(rows):
    return rows | {"reward": (rows["reward"] > 1.0).astype(float)}


def of(rows, k):
    return {role: rows[role][rows["arm"] == k] for role in ("x", "reward", "weight")}


def doubled(rows):
    """Every row twice, its weight 1."""
    twice = {role: np.repeat(v, 2, axis=0) for role, v in rows.items()}
    return twice | {"weight": np.ones(2 * len(rows["reward"]))}


def runs(belief):
    return [chain.runs for chain in belief.chains]


def state_of(belief):
    """All that is known, as bytes."""
    return {k: v.tobytes() if isinstance(v, np.ndarray) else repr(v)
            for k, v in belief.state().items()}  # fmt: skip


def near(ours, theirs, draws, sd, thin=1.0):
    """Means (…) of `draws` draws, worth one in `thin`, within 4.5 standard errors."""
    assert (np.abs(ours - theirs) <= 4.5 * sd * np.sqrt(thin / draws)).all()


# ---- what the draws are --------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_posterior_that_does_not_stream(name):
    """Independent draws of the posterior that `bb.fit` finds on the arm's own rows, its weights
    among them; of an arm without rows, of the prior."""
    model, S = EXACT[name], 4000
    rows = data(n=40, K=2)
    belief = learn(believed(model, draws=S), rows)
    mean, sd = belief.moments(probe())
    for k in range(K):
        fit = bb.fit(model, **of(rows, k))
        assert fit.engine in ("exact_gaussian", "normal_inverse_gamma")
        near(mean[:, k], fit.mean(probe()), S, fit.sd(probe()))
        np.testing.assert_allclose(sd[:, k], fit.sd(probe()), rtol=5 / np.sqrt(2 * S) + 0.03)
        theta = belief.posterior(k, {}).coefficients["theta"][0]
        near(theta, fit.coefficients["theta"][0], S, np.sqrt(np.diag(fit.known.covariance)))


@pytest.mark.parametrize("name", ["laplace", "bayesian_lasso"])
def test_gibbs_draws_are_those_of_a_long_fit(name):
    """2,000 sweeps against 4 × 4,000; an effective draw is worth at most four sweeps here."""
    model, rows = bb.load_model(name), data(n=40, K=2)
    belief = learn(believed(model, 2, draws=2000), rows)
    assert belief.plan.engine == "gibbs"
    mean, sd = belief.moments(probe())
    for k in range(2):
        fit = bb.fit(model, **of(rows, k), draws=4000, seed=1)
        near(mean[:, k], fit.mean(probe()), 2000, fit.sd(probe()), thin=4)
        np.testing.assert_allclose(sd[:, k], fit.sd(probe()), rtol=4.5 * np.sqrt(4 / 4000))


def test_an_approximation_on_request():
    """Laplace's, of each arm; equal to that of `bb.fit` to Monte-Carlo error."""
    S, rows = 4000, binary(data(n=40, K=2))
    belief = learn(believed(LOGISTIC, 2, engine="laplace", draws=S), rows)
    assert belief.plan.engine == "laplace"
    mean, sd = belief.moments(probe())
    for k in range(2):
        fit = bb.fit(LOGISTIC, **of(rows, k), engine="laplace", draws=S, seed=5)
        near(mean[:, k], fit.mean(probe()), S, fit.sd(probe()), thin=1.25)
        np.testing.assert_allclose(sd[:, k], fit.sd(probe()), rtol=0.07)


@pytest.mark.parametrize(
    "model", [SHARED, pytest.param(GIBBS, marks=pytest.mark.slow)], ids=lambda m: m.name
)
def test_arms_that_share_the_model(model):
    """One set of draws of all arms; what they have in common stays in common."""
    rows = data(n=40, K=2)
    belief = learn(believed(model, draws=2000), rows)
    fit = bb.fit(model, *(rows[r] for r in ("x", "reward", "weight")),
                 arm=rows["arm"], n_arms=K, draws=2000, seed=1)  # fmt: skip
    mean, sd = belief.moments(probe())
    near(mean, fit.mean(probe()), 2000, fit.sd(probe()), thin=6)
    np.testing.assert_allclose(sd, fit.sd(probe()), rtol=4.5 * np.sqrt(6 / 4000))
    rng = np.random.default_rng(0)
    ours = np.corrcoef(belief.draw(probe()[:1], 4000, rng)[:, 0].T)
    theirs = np.corrcoef(fit.draw(probe()[:1], 4000, rng)[:, 0].T)
    np.testing.assert_allclose(ours, theirs, atol=0.2)
    assert len(belief.chains) == 1


@pytest.mark.parametrize("name", ["laplace", "bayesian_lasso"])
def test_before_any_reward_the_draws_are_the_priors(name):
    belief = believed(bb.load_model(name), draws=4000)
    mean, sd = belief.moments(probe())
    near(mean, 0.0, 4000, sd)
    if name == "laplace":  # Var θ_j = 2
        expected = np.sqrt(2.0 * (probe() ** 2).sum(axis=1))
        np.testing.assert_allclose(sd, np.repeat(expected[:, None], K, axis=1), rtol=0.1)


def test_every_quantity_is_of_the_same_draws(rng):
    """`values` are the belief: moments, best, sample and draw are theirs, arm by arm apart."""
    belief = learn(believed(HETEROSCEDASTIC, draws=50), data(n=30))
    values = belief.values(probe())
    assert values.shape == (4, K, 50)
    mean, sd = belief.moments(probe())
    np.testing.assert_allclose(mean, values.mean(axis=2), rtol=1e-12)
    np.testing.assert_allclose(sd, values.std(axis=2), rtol=1e-12)
    np.testing.assert_array_equal(belief.mean(probe()), mean)
    for k in range(K):  # of the posterior by itself, too
        posterior = belief.posterior(k, {})
        np.testing.assert_allclose(posterior.mean(probe()), mean[:, k], rtol=1e-9, atol=1e-12)
    for alpha in (1.0, 0.4):
        wide = mean[:, :, None] + alpha * (values - mean[:, :, None])
        np.testing.assert_allclose(belief.best(probe(), alpha), winners.independent(wide))
        x = np.repeat(probe(), 2000, axis=0)
        drawn = belief.sample(x, alpha, rng).reshape(4, 2000, K)
        for row in range(4):
            for k in range(K):
                gap = np.abs(drawn[row, :, k][:, None] - wide[row, k]).min(axis=1)
                assert gap.max() < 1e-9
        p, chosen = belief.best(probe(), alpha), drawn.argmax(axis=2)
        error = np.sqrt(np.maximum(p * (1 - p), 1e-12) / 2000)
        for k in range(K):
            share = (chosen == k).mean(axis=1)
            assert (np.abs(share - p[:, k]) <= 4.5 * error[:, k]).all()
    drawn = belief.draw(probe(), 300, rng)
    for k in range(K):
        which = np.abs(drawn[:, 0, k, None] - values[0, k]).argmin(axis=1)
        np.testing.assert_allclose(drawn[:, :, k], values[:, k, which].T)  # one spans all contexts


def test_draws_of_arms_that_share_the_model_belong_together(rng):
    belief = learn(believed(SHARED, draws=50), data(n=30))
    values = belief.values(probe())
    np.testing.assert_allclose(
        belief.best(probe(), 1.0), winners.joint(values.transpose(0, 2, 1)), atol=1e-12
    )
    for drawn in (belief.draw(probe(), 200, rng)[:, 0], belief.sample(probe()[[0] * 200], 1, rng)):
        which = np.abs(drawn[:, :1] - values[0, 0]).argmin(axis=1)
        np.testing.assert_allclose(drawn, values[0][:, which].T)


def test_many_contexts_in_parts(monkeypatch):
    """However many contexts fit into memory at a time: the same numbers."""
    belief = learn(believed(HETEROSCEDASTIC, draws=20), data(n=30))
    x = np.random.default_rng(0).normal(size=(17, D))
    whole = *belief.moments(x), belief.best(x, 0.7)
    monkeypatch.setattr("bayesbandit.beliefs.sampled.MOST", 3 * 20 * K)
    assert len(belief.parts(x)) == 6
    for ours, theirs in zip((*belief.moments(x), belief.best(x, 0.7)), whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


# ---- when they are computed anew -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("refit_every", "expected"),
    [
        (1, list(range(41))),
        (7, [0, 7, 14, 21, 28, 35]),
        (0.5, [0, 1, 2, 3, 5, 8, 12, 18, 27]),
        (0.1, [*range(12), 13, 15, 17, 19, 21, 24, 27, 30, 33, 37]),
    ],
)
def test_a_schedule_of_refits(refit_every, expected):
    """Every m rounds of the arm, or each time they have grown by a share; another arm's rounds do
    not count."""
    belief, rows = believed(HETEROSCEDASTIC, 2, refit_every=refit_every, draws=4), data(n=40)
    seen = []
    for i in range(41):
        belief.moments(probe())
        if not seen or belief.chains[0].fitted != seen[-1]:
            seen.append(belief.chains[0].fitted)
        assert runs(belief) == [len(seen), 1]
        if i < 40:
            part = {role: v[i : i + 1] for role, v in rows.items()} | {"arm": np.array([0])}
            learn(belief, part)
    assert seen == expected


def test_the_rounds_of_all_arms_count_where_they_share_the_model():
    belief, rows = believed(SHARED, refit_every=10, draws=4), data(n=25)
    seen = []
    for i in range(25):
        belief.moments(probe())
        seen.append(belief.chains[0].fitted)
        learn(belief, {role: v[i : i + 1] for role, v in rows.items()})
    assert seen == [0] * 10 + [10] * 10 + [20] * 5


def test_draws_are_renewed_when_they_have_served():
    """As many decisions as there are draws; looking on does not wear them out."""
    belief = learn(believed(HETEROSCEDASTIC, draws=30), data(n=30))
    rows = np.zeros((10, D + 3 * K + 6))
    everything, alpha = np.ones(K, dtype=bool), np.ones(1)
    values = []
    for _ in range(8):
        assert belief.describe(rows, everything, alpha)
        belief.moments(probe()), belief.best(probe(), 1.0)
        values.append(belief.values(probe()))
    assert runs(belief) == [3] * K
    for i in range(1, 8):
        assert np.array_equal(values[i], values[i - 1]) == (i not in (2, 5))


def test_a_frozen_draw_stays_until_the_next_reward():
    """The paper's Appendix C: one draw for each arm, picked among the sampler's."""
    model, rows = bb.load_model("bayesian_lasso"), data(n=30)
    belief = learn(believed(model, refit_every=1, draws=20, frozen=True), rows)
    table = np.zeros((50, D + 3 * K + 6))
    table[:, :D] = np.random.default_rng(0).normal(size=(50, D))
    assert belief.describe(table, np.ones(K, dtype=bool), np.ones(1))
    before = belief.values(probe())
    assert before.shape == (4, K, 1)
    np.testing.assert_array_equal(belief.moments(probe())[1], 0.0)
    p = table[:, D + 2 * K : D + 3 * K]
    np.testing.assert_array_equal(p, np.eye(K)[table[:, D : D + K].argmax(axis=1)])
    assert belief.describe(table, np.ones(K, dtype=bool), np.ones(1))
    np.testing.assert_array_equal(belief.values(probe()), before)
    learn(belief, {role: v[:1] for role, v in rows.items()} | {"arm": np.array([1])})
    changed = (belief.values(probe()) != before).all(axis=(0, 2))
    np.testing.assert_array_equal(changed, [False, True, False])


# ---- weights -------------------------------------------------------------------------------------


def test_weights_are_powers_of_the_likelihood_where_the_model_says_so():
    """Weight 2: the row twice. Laplace's approximation says so up to Monte-Carlo error, and much
    more than the difference that the weight makes."""
    S, rows = 4000, binary(data(n=40, K=1)) | {"weight": np.full(40, 2.0)}
    settings = {"engine": "laplace", "draws": S}
    twice = learn(believed(LOGISTIC, 1, **settings), rows)
    copied = learn(believed(LOGISTIC, 1, **settings, seed=1), doubled(rows))
    once = learn(believed(LOGISTIC, 1, **settings), rows | {"weight": np.ones(40)})
    (mean, sd), (same, same_sd), (_, wide) = (b.moments(probe()) for b in (twice, copied, once))
    near(mean, same, S, sd, thin=2)
    np.testing.assert_allclose(sd, same_sd, rtol=0.07)
    assert (wide > 1.15 * sd).all()


def test_weights_are_precisions_where_the_model_says_so():
    """With noise known, rows of weight 2 are rows twice; the posterior is a closed form."""
    rows = data(n=30, K=1) | {"weight": np.full(30, 2.0)}
    belief = learn(believed(HETEROSCEDASTIC, 1, draws=4000), rows)
    mean, sd = belief.moments(probe())
    x, w = rows["x"], 2.0 * np.exp(-rows["x"][:, 0])
    covariance = np.linalg.inv(np.eye(D) + (x.T * w) @ x)
    theta = covariance @ (x.T @ (w * rows["reward"]))
    expected = np.sqrt(np.einsum("ni,ij,nj->n", probe(), covariance, probe()))
    near(mean[:, 0], probe() @ theta, 4000, expected)
    np.testing.assert_allclose(sd[:, 0], expected, rtol=4.5 / np.sqrt(8000))


@pytest.mark.parametrize("model", [HETEROSCEDASTIC, SHARED], ids=["own", "shared"])
def test_normalised_weights_have_mean_one_in_each_arm(model):
    """Then no unit of the weights matters, whatever the arm: bit for bit the same draws."""
    rows = data(n=30)
    mean = np.bincount(rows["arm"], rows["weight"]) / np.bincount(rows["arm"])
    by_hand = learn(
        believed(model, draws=20), rows | {"weight": rows["weight"] / mean[rows["arm"]]}
    )
    units = np.array([0.25, 2.0, 64.0])[rows["arm"]]
    for scale in (1.0, units):
        belief = learn(believed(model, normalize=True, draws=20),
                       rows | {"weight": scale * rows["weight"]})  # fmt: skip
        np.testing.assert_array_equal(belief.values(probe()), by_hand.values(probe()))


@pytest.mark.parametrize("model", [HETEROSCEDASTIC, SHARED], ids=["own", "shared"])
def test_weights_that_change_with_hindsight(model):
    """The arms that are due are computed anew, as if the weights had always been so; rows of an
    arm that is gone (−1) are none of it."""
    rows = data(n=30)
    belief, other = believed(model, draws=20), believed(model, draws=20)
    learn(belief, rows | {"weight": np.ones(30)})
    gone = {role: np.concatenate([v[:5], v]) for role, v in rows.items()}
    gone["arm"][:5] = -1
    belief.reweigh([0, 2], *(gone[role] for role in ("x", "arm", "reward", "weight")))
    learn(other, rows)
    np.testing.assert_array_equal(belief.values(probe()), other.values(probe()))
    np.testing.assert_array_equal(belief.n, np.bincount(rows["arm"]))
    before = runs(belief)
    belief.reweigh([1], *(rows[role] for role in ("x", "arm", "reward", "weight")))
    belief.moments(probe())
    assert np.subtract(runs(belief), before).tolist() == ([1] if model.takes_arm else [0, 1, 0])


# ---- improper priors -----------------------------------------------------------------------------


@pytest.mark.parametrize("model", [IMPROPER, RewardModel(linear.improper, {})], ids=["nig", "flat"])
def test_an_improper_prior_waits_until_the_posterior_is_proper(model):
    """Without draws: mean 0 with an infinite sd, and not ready; each arm has to be."""
    rows = data(n=12, K=1)
    belief = believed(model, 2, draws=10)
    table, every = np.zeros((2, D + 6 + 6)), np.ones(2, dtype=bool)
    for i in range(12):
        enough = i >= (D if model is IMPROPER else D + 1)
        mean, sd = belief.moments(probe())
        assert np.isfinite(sd[:, 0]).all() == enough
        assert not np.isfinite(sd[:, 1]).any()
        assert (mean[:, 1] == 0).all()
        assert not belief.describe(table, every, np.ones(1))
        assert belief.describe(table, np.array([True, False]), np.ones(1)) == enough
        learn(belief, {role: v[i : i + 1] for role, v in rows.items()})
    learn(belief, rows | {"arm": np.ones(12, dtype=int)})
    assert belief.describe(table, every, np.ones(1))


# ---- arms that come and go -----------------------------------------------------------------------


def test_own_models_of_arms_that_come_and_go():
    """The others' draws stay as they are; a new arm begins with the prior."""
    rows = data(n=30)
    belief = learn(believed(HETEROSCEDASTIC, draws=20), rows)
    values, mean = belief.values(probe()), belief.moments(probe())[0]
    belief.add_arm()
    grown = belief.values(probe())
    np.testing.assert_array_equal(grown[:, :K], values)
    fresh = learn(believed(HETEROSCEDASTIC, K + 1, draws=20), rows)
    np.testing.assert_array_equal(grown, fresh.values(probe()))
    belief.remove_arm(1)
    np.testing.assert_array_equal(belief.moments(probe())[0][:, :2], mean[:, [0, 2]])
    np.testing.assert_array_equal(belief.n, [*np.bincount(rows["arm"])[[0, 2]], 0])
    assert set(belief.rounds.arm.tolist()) == {0, 1}
    kept = of(rows, 2)
    np.testing.assert_array_equal(belief.posterior(1, {}).rows["reward"], kept["reward"])


def test_a_shared_model_of_arms_that_come_and_go():
    """The posterior is that of the other number of arms, on the rows that remain."""
    rows, S = data(n=30), 2000
    belief = learn(believed(SHARED, draws=S), rows)
    belief.add_arm()
    check(belief, rows, K + 1, S)
    belief.remove_arm(1)
    left = {role: v[rows["arm"] != 1] for role, v in rows.items()}
    left["arm"] = left["arm"] - (left["arm"] > 1)
    check(belief, left, K, S)


def check(belief, rows, n_arms, S):
    mean, sd = belief.moments(probe())
    fit = bb.fit(belief.spec.model, *(rows[r] for r in ("x", "reward", "weight")),
                 arm=rows["arm"], n_arms=n_arms)  # fmt: skip
    near(mean, fit.mean(probe()), S, fit.sd(probe()))
    np.testing.assert_allclose(sd, fit.sd(probe()), rtol=4.5 / np.sqrt(2 * S))


# ---- state ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (HETEROSCEDASTIC, {}),
        (bb.load_model("laplace"), {}),
        (bb.load_model("bayesian_lasso"), {"frozen": True, "refit_every": 1}),
        (bb.load_model("student_t_mixture"), {"tune": 20}),
        (GIBBS, {"tune": 20}),
        (IMPROPER, {}),
        (LOGISTIC, {"engine": "laplace"}),
    ],
    ids=["exact", "gibbs", "frozen", "by row", "shared", "improper", "laplace"],
)
def test_state_and_restore_go_on_bit_for_bit(model, settings):
    rows = data(n=30)
    rows = binary(rows) if model is LOGISTIC else rows
    belief, other = (believed(model, draws=10, seed=3, **settings) for _ in range(2))
    first, more = ({role: v[s] for role, v in rows.items()} for s in (slice(14), slice(14, None)))
    learn(belief, first), belief.moments(probe())
    other.restore({k: v.copy() if isinstance(v, np.ndarray) else v
                   for k, v in belief.state().items()})  # fmt: skip
    assert state_of(other) == state_of(belief)
    np.testing.assert_array_equal(other.n, belief.n)
    for part in (first, more):
        for one in (belief, other):
            learn(one, part)
        np.testing.assert_array_equal(belief.values(probe(), 5), other.values(probe(), 5))
        assert state_of(other) == state_of(belief)


def test_the_seed_decides():
    rows = data(n=20)
    a, b, c = (learn(believed(HETEROSCEDASTIC, draws=10, seed=s), rows) for s in (0, 0, 1))
    np.testing.assert_array_equal(a.values(probe()), b.values(probe()))
    assert (a.values(probe()) != c.values(probe())).all()


@pytest.mark.parametrize(
    "model", [SHARED, bb.load_model("student_t_mixture")], ids=lambda m: m.name
)
def test_the_posterior_is_of_the_rows_that_its_draws_know(model):
    """Also between two refits, where there are more rows than the draws know of."""
    rows = data(n=30, K=1)
    belief = learn(believed(model, 1, refit_every=20, draws=8, tune=20), rows)
    belief.moments(probe())
    learn(belief, {role: v[:5] for role, v in rows.items()})
    tree = belief.posterior(0, {}).to_datatree()
    assert tree["log_likelihood"]["reward"].shape == (1, 8, 30)
    assert tree["observed_data"]["reward"].shape == (30,)


# ---- the no-U-turn sampler -----------------------------------------------------------------------


@pytest.mark.slow
def test_logistic_regression_by_nuts():
    """Compiled once: refits are cheap; draws are those of a long fit (one in three counts)."""
    rows, S = binary(data(n=60, K=2)), 500
    belief = learn(believed(LOGISTIC, 2, draws=S), rows)
    assert belief.plan.engine == "nuts"
    mean, sd = belief.moments(probe())
    for k in range(2):
        fit = bb.fit(LOGISTIC, **of(rows, k), draws=1000, seed=1)
        near(mean[:, k], fit.mean(probe()), S, fit.sd(probe()), thin=3)
        np.testing.assert_allclose(sd[:, k], fit.sd(probe()), rtol=4.5 * np.sqrt(3 / (2 * S)))
    other = believed(LOGISTIC, 2, draws=S)
    other.restore(belief.state())
    learn(belief, rows), learn(other, rows)
    np.testing.assert_array_equal(belief.values(probe()), other.values(probe()))
    assert runs(belief) == [2, 2]


@pytest.mark.slow
def test_variables_with_a_value_for_each_row():
    """A Student-t's mixture: the sampler starts from fewer rows than there are now, and draws what
    the model without the mixture does."""
    model, rows, S = bb.load_model("student_t_mixture"), data(n=60, K=1), 2000
    belief = believed(model, 1, draws=S, refit_every=20)
    for part in np.split(np.arange(60), 3):
        learn(belief, {role: v[part] for role, v in rows.items()})
        belief.moments(probe())
    assert belief.chains[0].values["q"].shape == (S, 60)
    mean, sd = belief.moments(probe())
    fit = bb.fit(bb.load_model("student_t"), **of(rows, 0), draws=4000, seed=1)
    near(mean[:, 0], fit.mean(probe()), S, fit.sd(probe()), thin=6)
    np.testing.assert_allclose(sd[:, 0], fit.sd(probe()), rtol=4.5 * np.sqrt(6 / (2 * S)))
