"""Beliefs by draws: those of the engine at each refit, and exact from then on."""

import numpy as np
import pytest

import bayesbandit as bb
from tests.beliefs.by_draws import (
    EXACT,
    GIBBS,
    HETEROSCEDASTIC,
    SHARED,
    K,
    believed,
    near,
    of,
    probe,
)
from tests.beliefs.closed_form import data, learn
from tests.cases import moments_of, quick_but


@pytest.mark.slow
@pytest.mark.parametrize("name", quick_but(["noise that rows share"], EXACT))
def test_an_exact_posterior_that_does_not_stream(name):
    """Independent draws of the posterior that `bb.fit` finds on the arm's own rows, its weights
    among them; of an arm without rows, of the prior."""
    model, S = EXACT[name], 4000
    rows = data(n=40, K=2)
    belief = learn(believed(model, draws=S), rows)
    mean, sd = moments_of(belief, probe())
    for k in range(K):
        fit = bb.fit(model, **of(rows, k))
        assert fit.engine in ("exact_gaussian", "normal_inverse_gamma")
        near(mean[:, k], fit.mean(probe()), S, fit.sd(probe()))
        np.testing.assert_allclose(sd[:, k], fit.sd(probe()), rtol=5 / np.sqrt(2 * S) + 0.03)
        theta = belief.posterior(k, {}).coefficients["theta"][0]
        near(theta, fit.coefficients["theta"][0], S, np.sqrt(np.diag(fit.known.covariance)))


@pytest.mark.parametrize(
    "model", [SHARED, pytest.param(GIBBS, marks=pytest.mark.slow)], ids=lambda m: m.name
)
@pytest.mark.slow
def test_arms_that_share_the_model(model):
    """One set of draws of all arms; what they have in common stays in common."""
    rows = data(n=40, K=2)
    belief = learn(believed(model, draws=2000), rows)
    fit = bb.fit(model, *(rows[r] for r in ("x", "reward", "weight")),
                 arm=rows["arm"], n_arms=K, draws=2000, seed=1)  # fmt: skip
    mean, sd = moments_of(belief, probe())
    near(mean, fit.mean(probe()), 2000, fit.sd(probe()), thin=6)
    np.testing.assert_allclose(sd, fit.sd(probe()), rtol=4.5 * np.sqrt(6 / 4000))
    rng = np.random.default_rng(0)
    ours = np.corrcoef(belief.predict(probe()[:1]).draw(4000, rng)[:, 0].T)
    theirs = np.corrcoef(fit.draw(probe()[:1], 4000, rng)[:, 0].T)
    np.testing.assert_allclose(ours, theirs, atol=0.2)
    assert len(belief.clouds) == 1


@pytest.mark.slow
def test_every_quantity_is_of_the_same_draws():
    """`values` are the belief: moments are theirs, also of an arm's posterior."""
    belief = learn(believed(HETEROSCEDASTIC, draws=50), data(n=30))
    values = belief.values(probe())
    assert values.shape == (4, K, 50)
    mean, sd = moments_of(belief, probe())
    np.testing.assert_allclose(mean, values.mean(axis=2), rtol=1e-12)
    np.testing.assert_allclose(sd, values.std(axis=2), rtol=1e-12)
    np.testing.assert_allclose(belief.predict(probe()).mean, mean, rtol=1e-9, atol=1e-12)
    for k in range(K):  # of the posterior by itself, too
        posterior = belief.posterior(k, {})
        np.testing.assert_allclose(posterior.mean(probe()), mean[:, k], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_variables_with_a_value_for_each_row():
    """A Student-t's mixture: the sampler starts from fewer rows than there are now, and draws what
    the model without the mixture does."""
    model, rows, S = bb.load_model("student_t_mixture"), data(n=60, K=1), 2000
    belief = believed(model, 1, draws=S, refit_every=20)
    for part in np.split(np.arange(60), 3):
        learn(belief, {role: v[part] for role, v in rows.items()})
        moments_of(belief, probe())
    assert belief.clouds[0].values["q"].shape == (S, 60)
    mean, sd = moments_of(belief, probe())
    fit = bb.fit(bb.load_model("student_t"), **of(rows, 0), draws=4000, seed=1)
    near(mean[:, 0], fit.mean(probe()), S, fit.sd(probe()), thin=6)
    np.testing.assert_allclose(sd[:, 0], fit.sd(probe()), rtol=4.5 * np.sqrt(6 / (2 * S)))
