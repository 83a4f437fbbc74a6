"""Rewards that no variables make likely are told from those that some do; densities add up."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.model.transform.conditioning import remove_value_transforms

import bayesbandit as bb
from bayesbandit.inference.graph_analysis.density import read
from bayesbandit.inference.pymc_model.log_density import LogDensity
from bayesbandit.inference.pymc_model.prior import PriorDraws
from bayesbandit.inference.pymc_model.template import template
from bayesbandit.model import RewardModel
from tests import declarations as declared
from tests.cases import few, in_gate

THETA = bb.Prior("Normal", mu=0, sigma=1, dims="feature")


def ordinal(x, reward, theta):
    ordered = pm.distributions.transforms.ordered
    cut = pm.Normal("cut", [-1.0, 1.0], 1, transform=ordered, shape=2)
    pm.OrderedLogistic("reward", eta=x @ theta, cutpoints=cut, observed=reward)
    return 2 - pm.math.sigmoid(cut[0] - x @ theta) - pm.math.sigmoid(cut[1] - x @ theta)


def levels(x, reward, theta):
    eta = pt.stack([x @ theta, 0.5 * (x @ theta), 0.0 * x[:, 0]], axis=1)
    p = pm.math.softmax(eta, axis=1)
    pm.Categorical("reward", p=p, observed=reward)
    return p[:, 1] + 2 * p[:, 2]


def clicks(x, reward, arm, theta):
    tau, z = pm.HalfNormal("tau", 1), pm.Normal("z", 0, 1, dims=("arm", "feature"))
    p = pm.math.sigmoid(x @ theta + (x * (tau * z)[arm]).sum(axis=-1))
    pm.Bernoulli("reward", p, observed=reward)
    return p


def censored(x, reward, theta):
    normal = pm.Normal.dist(x @ theta, pm.HalfNormal("scale", 1))
    pm.Censored("reward", normal, lower=None, upper=1.0, observed=reward)
    return x @ theta


def by_a_sum(x, reward, theta):
    pm.Potential("fit", -(np.abs(reward - x @ theta)).sum())
    return x @ theta


WHOLE = {f.__name__: RewardModel(f, {"theta": THETA}) for f in (ordinal, levels, clicks)}
OTHERS = {f.__name__: RewardModel(f, {"theta": THETA}) for f in (censored, by_a_sum)}
MODELS = WHOLE | OTHERS
MODELS |= {
    model.name: model
    for model in (
        *(declared.known, declared.heavy, declared.potential, declared.pooled),
        *(declared.noncentred, bb.load_model("student_t_mixture")),
    )
}
S, N = 5, 11  # so that a last piece has one row


def drawn(name):
    """PyMC's model, draws (S, …) of its variables, and rows that it allows."""
    model, (x, reward, weight) = MODELS[name], declared.rows(N)
    if name in WHOLE:
        reward = np.arange(N) % (2.0 if name == "clicks" else 3.0)
    reward = np.minimum(reward, 1.0) if name == "censored" else reward
    data = {"x": x, "reward": reward}
    data |= {"weight": weight} if model.takes_weight else {}
    data |= {"arm": np.arange(N) % 2} if model.takes_arm else {}
    built = model.build(**data)
    values = pm.draw(built.free_RVs, draws=S, random_seed=1)
    draws = dict(zip([v.name for v in built.free_RVs], values, strict=True))
    if "cut" in draws:
        draws["cut"] = np.sort(draws["cut"], axis=1)
    return built, draws, data | {"weight": weight, "arm": np.arange(N) % 2}


@few("[potential]", "[ordinal]")
@pytest.mark.parametrize("name", MODELS)
@in_gate(6)
def test_the_log_density_is_pymcs(name, monkeypatch):
    """Of rows and prior, and the part of the rows, together or one by one; no step between which
    other threads go on has more than `PIECE` draws times rows."""
    built, draws, data = drawn(name)
    plain = remove_value_transforms(built)
    function = plain.compile_logp(jacobian=False, mode="FAST_COMPILE")
    expected = [
        function({plain.rvs_to_values[plain[k]].name: v[s] for k, v in draws.items()})
        for s in range(S)
    ]
    found = LogDensity(read(built))
    of_each_row = name == "student_t_mixture"
    assert bool(found.refused) == of_each_row
    once, sizes = LogDensity._sum, []

    def counted(self, terms, part, some):
        sizes.append(len(next(iter(part.values()))) * len(some["reward"]))
        return once(self, terms, part, some)

    monkeypatch.setattr(LogDensity, "_sum", counted)
    for piece in (5, 20, 1000):
        monkeypatch.setattr("bayesbandit.inference.pymc_model.log_density.PIECE", piece)
        sizes.clear()
        np.testing.assert_allclose(found.joint(draws, data), expected, rtol=1e-9)
        assert of_each_row or max(sizes[:-1]) <= piece  # the last is the prior's
    if of_each_row:
        return
    rest = np.array(expected) - found(draws, data)
    for i in range(N):
        rest += found(draws, {k: v[i : i + 1] for k, v in data.items()})
    np.testing.assert_allclose(rest, expected, rtol=1e-9)


def test_draws_of_the_prior_follow_from_their_seed():
    """Also the first ones, for which PyMC compiles, and seeds at random."""
    one, other = (PriorDraws(template(declared.known, 3, None)) for _ in range(2))
    np.testing.assert_array_equal(one(5, 1)["theta"], other(5, 1)["theta"])
    assert not np.array_equal(one(5, 1)["theta"], one(5, 2)["theta"])
