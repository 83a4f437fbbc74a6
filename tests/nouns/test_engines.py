"""The laws of an engine, for every one: the toolkit's, and a stranger's."""

from functools import cache

import numpy as np
import pymc as pm
import pytest

import bayesbandit as bb
from bayesbandit.inference import approximate, registry
from bayesbandit.inference.base import Engine, NotThisEngine
from bayesbandit.inference.draws import SampledDraws
from tests import declarations as declared
from tests.cases import in_gate, slow_but

NAMES = [engine.name for engine in registry.engines]
every = pytest.mark.parametrize("name", slow_but(("gibbs", "independence"), NAMES))
NORMAL = bb.Prior("Normal", mu=0.5, sigma=1.5, dims="feature")


@bb.reward_model(theta=NORMAL, sigma2=bb.Prior("InverseGamma", alpha=3, beta=1))
def learned_noise(x, reward, weight, theta, sigma2):
    pm.Normal("reward", x @ theta, pm.math.sqrt(sigma2 / weight), observed=reward)
    return x @ theta


@bb.reward_model(p=bb.Prior("Beta", alpha=2, beta=2))
def chance(x, reward, weight, p):
    won = pm.math.gt(reward, 0.0).astype("float64")
    pm.CustomDist(
        "won", p, weight, observed=won,
        logp=lambda value, p, weight: weight * pm.logp(pm.Bernoulli.dist(p), value),
    )  # fmt: skip
    return p


def rows(n=30):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    weight = rng.uniform(0.5, 2.0, n)
    return {"x": x, "weight": weight, "reward": x @ [1.0, -1.0] + 0.7 * rng.normal(size=n)}


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """As many as these small models need."""
    monkeypatch.setattr(approximate, "ADVI_STEPS", 3000)


def fitted(name):
    """A posterior by this engine, of the first of the models that it takes, and the model."""
    for model in (declared.known, learned_noise, declared.conjugate, chance):
        try:
            return bb.fit(model, **rows(), engine=name, seed=1), model
        except NotThisEngine:
            continue
    raise AssertionError(f"{name} takes none of them")


kept = cache(fitted)


@pytest.mark.slow
@every
@pytest.mark.filterwarnings("ignore::bayesbandit.inference.draws.PoorDiagnostics")
@in_gate(5)
def test_it_finds_the_posterior(name):
    """The moments of an engine that is exact, or else of NUTS, to within what draws tell."""
    posterior, model = kept(name)
    reference = bb.fit(model, **rows(), seed=2)
    if reference.engine == name:  # compiled in seconds
        reference = bb.fit(model, **rows(), engine="nuts", seed=2)
    x = rows(5)["x"]
    loose = 1.5 if name in ("laplace", "advi") else 1.0
    sd = reference.sd(x)
    np.testing.assert_allclose(posterior.mean(x), reference.mean(x), atol=0.15 * loose * sd.max())
    np.testing.assert_allclose(posterior.sd(x), sd, rtol=0.15 * loose)
    assert posterior.to_datatree(draws=20)["posterior"].attrs["engine"] == name


@pytest.mark.slow
@every
def test_the_same_seed_gives_the_same_posterior(name):
    (one, _), (other, _) = kept(name), fitted(name)
    x = rows(4)["x"]
    np.testing.assert_array_equal(one.mean(x), other.mean(x))


@every
def test_it_refuses_with_a_reason(name):
    @bb.reward_model(k=bb.Prior("Poisson", mu=2))
    def counted(x, reward, k):
        pm.Normal("reward", k + x[:, 0], 1.0, observed=reward)
        return k + x[:, 0]

    with pytest.raises(NotThisEngine, match=f"{name}: .*(k|discrete|variable|block)"):
        bb.fit(counted, rows()["x"], rows()["reward"], engine=name)


class Drawing:
    """A sampler that draws so."""

    def __init__(self, answer):
        self.answer = answer

    def sample(self, data, *, draws, chains, tune, seed, start):
        return self.answer(np.zeros((chains, draws, 2)))


def drawing(answer):
    return lambda built: Drawing(answer)


@pytest.mark.parametrize(
    ("match", "said"),
    [
        (lambda built: None, "odd: match must give a sampler, .* or a Refusal; got None"),
        (drawing(lambda v: {"theta": v}), "odd: sample must give SampledDraws; got"),
        (
            drawing(lambda v: SampledDraws({"beta": v})),
            r"no draws of 'theta'; there are \['beta'\]",
        ),
        (drawing(lambda v: SampledDraws({"theta": v[0]})), r"must be \(\d+, \d+, .*\); got"),
        (drawing(lambda v: SampledDraws({"theta": v[:, 1:]})), r"must be \(\d+, \d+, .*\); got"),
        (drawing(lambda v: SampledDraws({"theta": v + np.nan})), "'theta' are not numbers"),
    ],
)
def test_wrong_draws_are_named(monkeypatch, match, said):
    monkeypatch.setattr(registry, "engines", list(registry.engines))
    registry.register(Engine("odd", match, "nothing"), before="exact_gaussian")
    with pytest.raises((TypeError, ValueError), match=said):
        bb.fit(declared.known, **rows(), draws=20)


def test_a_refusal_is_one():
    with pytest.raises(TypeError, match=r"takes a Refusal\(engine, reason\); got 'odd rows'"):
        raise NotThisEngine("odd rows")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesbandit.inference.draws.PoorDiagnostics")
def test_a_target_is_the_posterior_without_bounds(monkeypatch):
    """Its density, gradient, start, constraints and rows, as a stranger's engine gets them."""
    monkeypatch.setattr(registry, "engines", list(registry.engines))
    seen = {}

    @bb.engines.sampler("seen", "nothing", fits=lambda target: seen.update(dim=target.dim))
    def look(target, run):
        z, e = target.start + 0.3, 1e-6 * np.eye(target.dim)
        slopes = [(target.log_density(z + h) - target.log_density(z - h)) / 2e-6 for h in e]
        np.testing.assert_allclose(target.gradient(z), slopes, rtol=1e-5, atol=1e-5)
        seen.update(rows=target.rows, constraints=target.constraints, shapes=target.shapes)
        seen.update(declared=target.constrain(z[None]), run=run, z=z)
        return np.broadcast_to(z, (run.chains, run.draws, target.dim))

    scale, data = bb.Prior("HalfNormal", sigma=1), rows()
    model = declared.known.with_priors(theta=bb.Prior("Normal", mu=0, sigma=scale, dims="feature"))
    posterior = bb.fit(model, **data, engine="seen", seed=1, draws=5, chains=2)
    assert seen["dim"] == 3
    assert seen["constraints"] == {"theta": (-np.inf, np.inf), "theta_sigma": (0.0, np.inf)}
    assert seen["shapes"] == {"theta": (2,), "theta_sigma": ()}
    np.testing.assert_array_equal(seen["rows"]["reward"], data["reward"])
    assert (seen["run"].draws, seen["run"].chains) == (5, 2)
    assert seen["declared"]["theta_sigma"] > 0
    assert posterior.engine == "seen"


@pytest.mark.slow
def test_draws_are_independent_only_if_the_engine_says_so(monkeypatch):
    """Nobody knows of an approximation's draws that each counts whole: a random walk's do not."""
    monkeypatch.setattr(registry, "engines", list(registry.engines))

    def walk(target, run):
        steps = run.rng(0).normal(size=(run.chains, run.draws, target.dim))
        return 0.05 * steps.cumsum(axis=1)

    def found(**says):
        bb.engines.sampler("walk", "a random walk", kind="approximation", **says)(walk)
        built = declared.known.build(**rows())
        return registry.candidates("walk")[0].match(built).sample(rows()).diagnostics

    assert found().ess["theta"] < 50
    assert found().rhat["theta"] > 1.1
    assert found(independent=True).ess == {"theta": 4000.0}
