"""Products of a scale and a normal variable as one normal: the same density, draws of the declared
variables, and what is left as it is."""

import numpy as np
import pymc as pm
import pytest
from arviz_stats.base import array_stats
from scipy import stats

import bayesbandit as bb
from bayesbandit.inference.gibbs.rewrite_products import without_products
from bayesbandit.inference.graph_analysis.density import read
from bayesbandit.inference.graph_analysis.quadratic import total
from bayesbandit.inference.plan import plan
from bayesbandit.inference.pymc_model.template import template
from bayesbandit.inference.uncompiled import UNCOMPILED_MODE
from tests.cases import slow_but
from tests.declarations import EACH, HALF, normal_rewards

K, D = 3, 2


def normal(mu, reward):
    return normal_rewards(mu, 0.8, reward, "r")


def won(eta, reward):
    p = pm.math.sigmoid(eta)
    pm.Bernoulli("r", p, observed=reward)
    return p


def declared(likelihood, **priors):
    """A hierarchy of arms, in its non-centred form."""

    def product(x, reward, arm, mu0, tau):
        z = pm.Normal("z", 0, 1, dims=("arm", "feature"))
        theta = pm.Deterministic("theta", mu0 + tau * z)
        return likelihood((x * theta[arm]).sum(axis=-1), reward)

    return bb.reward_model(**{"mu0": EACH, "tau": HALF} | priors)(product)


def single(body, **priors):
    """One arm: `body` returns the mean reward of x and a standard normal z, one for a feature."""

    def model(x, reward, arm):
        z = pm.Normal("z", 0, 1, dims="feature")
        return normal(body(x, z), reward)

    model.__name__ = f"product_{body.__name__}"  # bandits in files find a model by its name
    return bb.reward_model(**priors)(model)


def horseshoe(x, z):
    return x @ (z * pm.HalfCauchy("lam", 1, dims="feature") * pm.HalfCauchy("tau", 0.1))


def late(x, z):
    return pm.Exponential("tau", 1) * (x @ z) + 0.5


def precision(x, z):
    return x @ (z * pm.Gamma("q", 2, 2) ** -0.5)


def twice(x, z):
    tau = pm.HalfNormal("tau", 1)
    return x[:, 0] * (tau * z[0]) + x[:, 1] * (tau * z[1])


def scale_elsewhere(x, z):
    tau = pm.HalfNormal("tau", 1)
    pm.Potential("near", -tau)
    return (x * (tau * z)).sum(axis=-1)


REWRITTEN = {
    **{f.__name__: single(f) for f in (horseshoe, late, precision, twice, scale_elsewhere)},
    "hierarchy": declared(normal),
    "by feature": declared(normal, tau=bb.Prior("HalfNormal", sigma=1, dims="feature")),
    "logistic": declared(won),
}


@pytest.mark.parametrize("name", slow_but(["hierarchy"], REWRITTEN))
def test_the_density_is_the_same(name, rng):
    """log p(z) = log p(v) + log |dv/dz| at v = τ z, and the mean reward is the same."""
    model = template(REWRITTEN[name], D, K)
    rewritten, divided = without_products(model)
    ours, theirs = read(rewritten), read(model)
    for _ in range(3):
        z = {k: rng.gamma(3.0, 0.4, v.type.shape) for k, v in theirs.values.items()}
        z |= {k: rng.normal(size=z[k].shape) for k in ("z", "mu0") if k in z}
        one = {k: np.ones_like(v) if k == "z" else v for k, v in z.items()}
        inverse = divided({k: v[None, None] for k, v in one.items()})["z"][0, 0]
        v = z | {"z": z["z"] / inverse}
        jacobian = -np.log(inverse).sum()
        values = []
        for density, at in ((theirs, z), (ours, v)):
            given = {density.values[k]: at[k] for k in density.values}
            given |= {density.inputs[k]: density.own[k] for k in density.inputs}
            graphs = total([t.graph for t in density.terms]), density.mean
            values.append(
                [g.eval(given, mode=UNCOMPILED_MODE, on_unused_input="ignore") for g in graphs]
            )
        assert values[1][0] + jacobian == pytest.approx(values[0][0], rel=1e-9)
        np.testing.assert_allclose(values[1][1], values[0][1], rtol=1e-9)


def also_alone(x, z):
    return x @ (pm.HalfNormal("tau", 1) * z) + z[0]


def two_scales(x, z):
    return x @ (pm.HalfNormal("tau", 1) * z) + x @ (pm.HalfNormal("tau2", 1) * z)


def signed(x, z):
    return x @ (pm.Normal("a", 0, 1) * z)


def constant(x, z):
    return x @ (2.0 * z)


def by_row(x, z):
    return (x @ z) * pm.HalfNormal("tau", 1) * pm.math.exp(x[:, 0]) + (abs(x[:, 0]) * (x @ z))


def wider(x, z):
    return (x * (pm.HalfNormal("tau", 1, dims=("arm", "feature")) * z).sum(axis=0)).sum(axis=-1)


@pytest.mark.parametrize("body", [also_alone, two_scales, signed, constant, by_row, wider])
def test_other_products_stay(body):
    model = template(single(body), D, K)
    rewritten, divided = without_products(model)
    assert rewritten is model
    assert divided is None


@pytest.mark.slow
def test_the_scale_of_many_coefficients_moves():
    """170 arms and few rows: τ by quadrature, given rewards that are jointly normal."""
    rng, arms = np.random.default_rng(3), 170
    x, arm = rng.normal(size=(50, 3)), rng.integers(arms, size=50)
    reward = x.sum(axis=1) + rng.normal(size=50)
    data = {"x": x, "reward": reward, "weight": np.ones(50), "arm": arm}
    tau = plan(declared(normal), 3, arms).method.sample(data, 400, 2, 200).values["tau"]
    grid, gram = np.linspace(1e-3, 4, 400), x @ x.T
    log = [
        stats.multivariate_normal.logpdf(
            reward, cov=0.64 * np.eye(50) + gram + t**2 * gram * (arm == arm[:, None])
        )
        - t**2 / 2
        for t in grid
    ]
    p = np.exp(log - np.max(log)) / np.exp(log - np.max(log)).sum()
    mean, sd = p @ grid, np.sqrt(p @ grid**2 - (p @ grid) ** 2)
    ess = float(array_stats.ess(tau, chain_axis=0, draw_axis=1))
    assert ess > 50
    assert abs(tau.mean() - mean) < 4.0 * sd / np.sqrt(ess)
    assert abs(tau.std() / sd - 1.0) < 0.35
