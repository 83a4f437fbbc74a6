"""Rewards that no variables make likely are told from those that some do, whatever the graph;
engines that cannot start; densities add up."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.model.transform.conditioning import remove_value_transforms

import bayesbandit as bb
from bayesbandit.inference.functions import Functions
from bayesbandit.inference.graph_analysis.density import read
from bayesbandit.inference.pymc_model.log_density import LogDensity
from bayesbandit.inference.pymc_model.prior import PriorDraws
from bayesbandit.inference.pymc_model.template import template
from bayesbandit.model import RewardModel
from tests import declarations as declared
from tests.cases import few, in_gate, slow_but

THETA = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
U5 = bb.Prior("Uniform", lower=0, upper=5)
HALF = bb.Prior("HalfNormal", sigma=1)


def ordinal(x, reward, theta):
    pm.OrderedLogistic("reward", eta=x @ theta, cutpoints=np.array([-1.0, 0, 1]), observed=reward)
    return x @ theta


def learned_levels(x, reward, theta):
    cuts = pm.Normal("cuts", 0, 1, shape=3, transform=pm.distributions.transforms.ordered)
    pm.OrderedLogistic("reward", eta=x @ theta, cutpoints=cuts, observed=reward)
    return x @ theta


def indexed(x, reward, theta):
    p = pm.math.softmax(x[:, :1] * theta, axis=1)
    pm.Potential("fit", pt.log(p[pt.arange(x.shape[0]), reward.astype("int64")]))
    return p[:, 1]


def together(x, reward, theta):
    p = pm.math.sigmoid(x @ theta)
    pm.Potential("fit", pm.logp(pm.Bernoulli.dist(p), reward).sum())
    return p


def censored(x, reward, theta):
    pm.Censored("reward", pm.Normal.dist(x @ theta, 1), lower=-1, upper=None, observed=reward)
    return x @ theta


def truncated(x, reward, theta):
    pm.Truncated("reward", pm.Normal.dist(x @ theta, 1), lower=-1, upper=1, observed=reward)
    return x @ theta


def custom(x, reward, theta):
    mu = pm.math.exp(x @ theta)

    def logp(value, mu):
        return pm.math.switch(value < 1, -np.inf, pm.logp(pm.Poisson.dist(mu), value - 1))

    pm.CustomDist("reward", mu, logp=logp, observed=reward)
    return mu


def below(x, reward, theta):
    """A support that ends where the variable does."""
    pm.Uniform("reward", 0, theta, observed=reward)
    return theta / 2


def scanned(x, reward, theta):
    def step(r, m):
        return pt.switch(r < 0, -np.inf, -((r - m) ** 2))

    mu = x @ theta
    pm.Potential("fit", pytensor.scan(step, sequences=[reward, mu], return_updates=False))
    return mu


def trials(x, reward, theta):
    """As many trials as the context says."""
    p = pm.math.sigmoid(theta)
    pm.Binomial("reward", n=pt.exp(x[:, 0]).astype("int64"), p=p, observed=reward)
    return p


CASES = {  # rewards that are possible, that are not, and examples of possible ones
    "ordinal": (ordinal, THETA, [0, 3], [7, 4, -1, 0.5], "0, 1, 2, 3"),
    "learned levels": (learned_levels, THETA, [0, 3], [4, -1], "0, 1, 2, 3"),
    "indexed": (indexed, THETA, [0, 1], [2, 7], "-1, 0, 0.5, 1, 1.5"),
    "together": (together, THETA, [0, 1], [2], "0, 0.5, 1"),
    "censored": (censored, THETA, [-1, 4], [-1.5], "-1, 0, .*"),
    "truncated": (truncated, THETA, [-1, 1], [1.5], "-1, 0, 0.5, 1"),
    "custom": (custom, THETA, [1, 9], [0], "1, .*"),
    "scanned": (scanned, THETA, [0, 9], [-1], "0, 0.5, .*"),
    "below a bound": (below, U5, [4, 0.1], [5.1, -1], "0, .*"),
    "below no bound": (below, HALF, [1, 0.1], [400, -1], "0, .*"),
}
QUICK = ["ordinal", "indexed", "together", "censored", "below a bound", "below no bound"]


@few("[below no bound]")
@pytest.mark.parametrize("name", slow_but(QUICK, list(CASES)))
@in_gate(7)
def test_what_is_impossible_and_what_is_allowed(name):
    function, prior, possible, impossible, allowed = CASES[name]
    found = possible_rewards(function, prior)
    found.check("m", of(possible))
    for bad in impossible:
        with pytest.raises(
            ValueError,
            match=rf"^m gives a reward of {bad:g} the.*: row 2.*it allows, for example, {allowed}$",
        ):
            found.check("m", of([*possible, bad]))
    found.check("m", of(possible))


@pytest.mark.slow
def test_the_trials_of_a_context_bound_its_rewards():
    found = possible_rewards(trials, bb.Prior("Normal"))
    x = np.log([[3.5, 1.0], [9.5, 1.0]])
    found.check("m", of([3, 9], x))
    with pytest.raises(ValueError, match=r"reward of 4 .*row 0.*allows, for example, 0, 1, 2, 3$"):
        found.check("m", of([4, 9], x))


@pytest.mark.slow
def test_a_level_of_the_context_is_not_blamed_on_the_reward():
    def levels(x, reward, theta):
        mu = theta[x[:, 0].astype("int64")]
        pm.StudentT("reward", nu=3, mu=mu, sigma=1, observed=reward)
        return mu

    found = possible_rewards(levels, THETA)
    with pytest.raises(ValueError, match="the arm or the reward is an index, and has a level"):
        found.check("m", of([0.3, 0.1], np.array([[1.0, 0], [5, 0]])))


def poisson(x, reward, theta):
    mu = pm.math.exp(x @ theta)
    pm.Poisson("reward", mu, observed=reward)
    return mu


@pytest.mark.slow
@pytest.mark.parametrize("sd", [1, 1000])
def test_large_rewards_and_contexts_do_not_overflow_into_a_refusal(sd):
    """Under most draws of a vague prior the mean is 0 or ∞: not the reward's fault."""
    found = possible_rewards(poisson, bb.Prior("Normal", mu=0, sigma=sd, dims="feature"))
    found.check("m", of([5, 1000], np.full((2, 2), 300.0)))


def possible_rewards(function, prior):
    return Functions(template(RewardModel(function, {"theta": prior}), 2, None)).likelihood


def of(reward, x=None):
    n = len(reward)
    x = np.random.default_rng(0).normal(size=(n, 2)) if x is None else x
    return {"x": x, "reward": np.asarray(reward, float), "weight": np.ones(n),
            "arm": np.zeros(n, dtype=int)}  # fmt: skip


@pytest.mark.parametrize(
    "engine", ["laplace", "advi", pytest.param("nuts", marks=pytest.mark.slow)]
)
@few("laplace")
def test_an_engine_that_cannot_start_names_the_rewards(engine, rng):
    """A support moves with θ: a reward of 4 is possible, and not where engines start."""
    model = RewardModel(below, {"theta": U5})
    with pytest.raises(
        ValueError, match=rf"below: {engine}: .*-inf where it starts, by the rewards 4 \(row 1\)"
    ):
        bb.fit(model, rng.normal(size=(3, 2)), [0.1, 4, 0.2], engine=engine)


def graded(x, reward, theta):
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


def capped(x, reward, theta):
    normal = pm.Normal.dist(x @ theta, pm.HalfNormal("scale", 1))
    pm.Censored("reward", normal, lower=None, upper=1.0, observed=reward)
    return x @ theta


def by_a_sum(x, reward, theta):
    pm.Potential("fit", -(np.abs(reward - x @ theta)).sum())
    return x @ theta


WHOLE = {f.__name__: RewardModel(f, {"theta": THETA}) for f in (graded, levels, clicks)}
OTHERS = {f.__name__: RewardModel(f, {"theta": THETA}) for f in (capped, by_a_sum)}
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
    reward = np.minimum(reward, 1.0) if name == "capped" else reward
    data = {"x": x, "reward": reward}
    data |= {"weight": weight} if model.takes_weight else {}
    data |= {"arm": np.arange(N) % 2} if model.takes_arm else {}
    built = model.build(**data)
    values = pm.draw(built.free_RVs, draws=S, random_seed=1)
    draws = dict(zip([v.name for v in built.free_RVs], values, strict=True))
    if "cut" in draws:
        draws["cut"] = np.sort(draws["cut"], axis=1)
    return built, draws, data | {"weight": weight, "arm": np.arange(N) % 2}


@few("[potential]", "[graded]")
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
