"""What reaches the compiled kernel has the posterior of the generic sweeps, in all units."""

import numpy as np
import pymc as pm
import pytest

import bayesbandit as bb
from bayesbandit.inference.base import NotThisEngine
from bayesbandit.inference.gibbs.generic import problem
from bayesbandit.inference.plan import plan
from tests.cases import few

MODELS = {
    "an intercept about 3": bb.load_model("bayesian_lasso").with_priors(
        intercept=bb.Prior("Normal", mu=3, sigma=0.5)
    ),
    "Laplace about 2": bb.load_model("laplace").with_priors(theta=bb.Prior("Laplace", mu=2, b=0.5)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_prior_means(name):
    """Means within 5 standard errors, by batches of 100 sweeps."""
    rng, n = np.random.default_rng(0), 30
    x, reward = rng.normal(size=(n, 2)), rng.normal(size=n)
    data = {"x": x, "reward": reward, "weight": rng.uniform(0.5, 2.0, n)}
    method = plan(MODELS[name], 2).method
    assert method.kernel is not None
    assert method.kernel.location.any()
    runs = {
        generic: method.sample(data, 2000, 1, 200, seed=1, generic=generic).values
        for generic in (True, False)
    }
    for variable in method.names:
        batches = [runs[generic][variable].reshape(20, 100, -1).mean(axis=1) for generic in runs]
        se = np.sqrt(sum(b.var(axis=0, ddof=1) / 20 for b in batches))
        z = (batches[0].mean(axis=0) - batches[1].mean(axis=0)) / se
        assert np.abs(z).max() < 5.0, (variable, z)


@bb.reward_model(
    theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    sigma2=bb.Prior("InverseGamma", alpha=2, beta=1),
)
def in_units(x, reward, weight, theta, sigma2):
    mu = x @ theta
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward)
    return mu


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e-3, 1e3, 1e9, 1e12])
def test_the_posterior_is_the_same_in_all_units(unit):
    """Where a prior's numbers are too unlike each other to be read off, it is not the kernel's."""
    rng, n = np.random.default_rng(0), 30
    x, reward = rng.normal(size=(n, 2)), rng.normal(size=n)
    model = in_units.with_priors(
        theta=bb.Prior("Normal", mu=0, sigma=unit, dims="feature"),
        sigma2=bb.Prior("InverseGamma", alpha=2, beta=unit**2),
    )
    data = {"x": x, "weight": np.ones(n)}
    one = plan(in_units, 2).method
    assert one.kernel is not None
    wanted = one.sample({**data, "reward": reward}, 2000, 1, 100, seed=1).values
    method = plan(model, 2).method
    found = method.sample({**data, "reward": unit * reward}, 2000, 1, 100, seed=1).values
    scaled = found["sigma2"] / unit**2
    np.testing.assert_allclose(np.log(scaled).mean(), np.log(wanted["sigma2"]).mean(), atol=0.04)
    spread = found["theta"].std(axis=(0, 1)) / unit
    np.testing.assert_allclose(spread, wanted["theta"].std(axis=(0, 1)), rtol=0.08)


@bb.reward_model(
    theta=bb.Prior(
        "Normal", mu=0, sigma=bb.Prior("HalfCauchy", beta=0.2, dims="feature"), dims="feature"
    )
)
def horseshoe(x, reward, weight, theta):
    mu = x @ theta
    pm.Normal("reward", mu, 1 / pm.math.sqrt(weight), observed=reward)
    return mu


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e6])
def test_digits_that_cancel_are_no_disagreement(monkeypatch, scale):
    """However far a coefficient is shrunk; one told off by 1e-3 standard deviations is."""
    rng, n = np.random.default_rng(0), 30
    x = rng.normal(size=(n, 3))
    data = {"x": x, "reward": x @ [1.5, -1.0, 0.7] + rng.normal(size=n), "weight": np.ones(n)}
    method = plan(horseshoe, 3).method
    whole = problem(method.reading, method.data(**data))
    state = method.start(method.data(**data), rng)
    state["theta_sigma"] = np.array([scale, 1.0, 0.3])
    method._compare(whole, state)
    precision, shift = method.kernel.natural(
        method.kernel.problem(*method.mean_map(whole.data), whole.data), state
    )
    error = 1e-3 * max(1.0, 1e-9 / scale)
    for told in shift + error * np.diag(np.sqrt(np.diag(precision))):
        answer = (precision, told)
        monkeypatch.setattr(type(method.kernel), "natural", lambda *_, answer=answer: answer)
        with pytest.raises(NotThisEngine, match="differs from the kernel's"):
            method._compare(whole, state)


@few("known", "learned")
@pytest.mark.parametrize("noise", ["known", "learned", "of each context", "in another term"])
def test_the_kernel_takes_what_is_proved_to_be_normal_noise_alone(noise):
    """Powers of a likelihood are rows of precision w/σ² where σ is known, and not elsewhere."""

    @bb.reward_model(theta=bb.Prior("Laplace", mu=0, b=1, dims="feature"))
    def declared(x, reward, weight, theta):
        mu = x @ theta
        s = 0.7 if noise == "known" else pm.InverseGamma("s", alpha=2, beta=1)
        variance = s * (1 + x[:, 0] ** 2) if noise == "of each context" else s
        if noise == "in another term":
            pm.Potential("more", -0.1 * s * (reward**2).sum())
            weight = 1.0
        likelihood = pm.logp(pm.Normal.dist(mu, pm.math.sqrt(variance)), reward)
        pm.Potential(
            "likelihood", likelihood if noise == "in another term" else weight * likelihood
        )
        return mu

    assert (plan(declared, 3, engine="gibbs").method.kernel is not None) == (noise == "known")
