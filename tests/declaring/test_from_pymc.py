"""A PyMC model that exists is the model that one would have declared."""

import math
import pickle
from contextlib import nullcontext
from functools import cache, partial

import numpy as np
import nutpie
import pandas as pd
import pymc as pm
import pymc.dims as pmd
import pytensor.tensor as pt
import pytest

import bayesbandit as bb
from bayesbandit.declaring.distribution_means import mean_of
from bayesbandit.model import RewardModel
from tests.cases import few

J, N = 4, 60


def rows(seed=0):
    rng = np.random.default_rng(seed)
    county = np.arange(N) % J
    floor = rng.integers(0, 2, N).astype(float)
    return county, floor, 1.0 + 0.5 * floor + rng.normal(size=N)


def radon():
    """Known scales: its posterior is Gaussian."""
    county, floor, y = rows()
    with pm.Model(coords={"county": list("abcd")}) as model:
        floor_of = pm.Data("floor", floor, dims="home")
        county_of = pm.Data("county_of", county, dims="home")
        a = pm.Normal("a", 0, 5)
        z = pm.Normal("z", 0, 1, dims="county")
        alpha = pm.Deterministic("alpha", a + 0.7 * z, dims="county")
        b = pm.Normal("b", 0, 2)
        mu = pm.Deterministic("mu", alpha[county_of] + b * floor_of, dims="home")
        pm.Normal("y", mu, 0.8, observed=y, dims="home")
    return model


ROWS = {"floor": 0, "county_of": lambda arm: arm}


@bb.reward_model(
    a=bb.Prior("Normal", mu=0, sigma=5),
    z=bb.Prior("Normal", mu=0, sigma=1, dims="arm"),
    b=bb.Prior("Normal", mu=0, sigma=2),
)
def declared_radon(x, reward, arm, a, z, b):
    mu = a + 0.7 * z[arm] + b * x[:, 0]
    pm.Normal("y", mu, 0.8, observed=reward)
    return mu


def handed(**settings):
    given = {"mean": "mu", "reward": "y", "rows": ROWS, "arm_dim": "county"} | settings
    return RewardModel.from_pymc(radon, **given)


def handed_over(make, mean="mu", coords=None, **settings):
    """A model that `make` fills."""

    def made():
        with pm.Model(coords=coords) as model:
            make()
        return model

    return RewardModel.from_pymc(made, mean, **settings)


def fitted(model, **settings):
    county, floor, y = rows()
    return bb.fit(model, floor[:, None], y, arm=county, n_arms=J, seed=0, **settings)


def same(ours, theirs, atol):
    """Whether two posteriors are exact, and the same."""
    assert ours.engine == theirs.engine == "exact_gaussian"
    for name in ("a", "z", "b"):
        for one, other in zip(ours.coefficients[name], theirs.coefficients[name], strict=True):
            np.testing.assert_allclose(one, other, atol=atol)


def test_a_model_handed_over_has_the_posterior_of_the_declared_one():
    same(fitted(handed()), fitted(declared_radon), 1e-12)


def test_the_model_that_is_handed_over_is_not_changed():
    model = radon()
    before = set(model.named_vars), dict(model.coords), model.initial_point()
    handed_over = RewardModel.from_pymc(model, "mu", "y", ROWS, "county", name="radon_again")
    fitted(handed_over)
    assert (set(model.named_vars), dict(model.coords)) == before[:2]
    assert model.initial_point().keys() == before[2].keys()


def test_data_that_nothing_replaces_stay_as_they_are():
    """Whatever is done with the model later."""
    with pm.Model() as model:
        x = pm.Data("x", [[1.0], [2.0]])
        size = pm.Data("size", 1.0)
        pm.Normal("y", x @ pm.Normal("theta", 0, 1, shape=1), size, observed=[1.0, 2.0])
    mine = RewardModel.from_pymc(model, rows={"x": lambda x: x}, name="mine")
    rows_given = [[1.0], [3.0]], [1.0, 2.0]
    before, _ = bb.fit(mine, *rows_given).coefficients["theta"]
    pm.set_data({"size": 200.0}, model=model)
    np.testing.assert_array_equal(bb.fit(mine, *rows_given).coefficients["theta"][0], before)


def test_other_arms_than_the_model_was_built_for():
    built = handed().build(np.zeros((3, 1)), np.zeros(3), arm=[0, 5, 6], n_arms=7)
    assert built["z"].eval().shape == built["alpha"].eval().shape == (7,)
    assert built.named_vars_to_dims["alpha"] == ("arm",)


def test_a_bandit_plays_it_and_is_loaded_by_its_name(tmp_path):
    bandit = bb.Bandit(list("abcd"), handed(), bb.Thompson(), n_features=1, seed=0)
    for _ in range(5):
        decision = bandit.choose([1.0])
        bandit.observe(decision, 1.0)
    bandit.save(tmp_path / "b")
    again = bb.Bandit.load(tmp_path / "b")
    np.testing.assert_array_equal(again.probabilities([[1.0]]), bandit.probabilities([[1.0]]))


def test_a_model_of_a_function_is_pickled_by_its_name():
    one = handed(rows={"floor": 0, "county_of": arm_itself})
    other = pickle.loads(pickle.dumps(one))
    assert other.name == one.name == "radon"
    np.testing.assert_array_equal(fitted(other).coefficients["a"], fitted(one).coefficients["a"])


def arm_itself(arm):
    return arm


def test_columns_by_the_names_of_an_encoder():
    frame = pd.DataFrame({"age": [1.0, 2.0, 4.0], "floor": [0.0, 1.0, 0.0]})
    encoder = bb.Encoder.fit(frame)
    model = handed(rows={**ROWS, "floor": "floor"}, encoder=encoder)
    at = list(encoder.features).index("floor")
    x = np.zeros((3, len(encoder.features)))
    x[:, at] = [5.0, 6.0, 7.0]
    built = model.build(x, np.zeros(3), arm=[0, 1, 2], n_arms=3)
    at_one = {built["a"]: 0.0, built["b"]: 1.0, built["z"]: np.zeros(3)}
    mean = built["mean_reward"].eval({k: np.asarray(v) for k, v in at_one.items()})
    np.testing.assert_array_equal(mean, [5.0, 6.0, 7.0])
    with pytest.raises(ValueError, match=r"must be one of the encoder's .*'age'.*got 'height'"):
        handed(rows={**ROWS, "floor": "height"}, encoder=encoder)


def no_data():
    """Arrays inside, without pm.Data; and a potential."""
    _, floor, y = rows()
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        tilt = pm.HalfNormal("tilt", 1)
        pm.Potential("soft", -0.5 * (b[0] - b[1]) ** 2)
        p = pm.Deterministic("p", pm.math.sigmoid(b[0] + b[1] * floor + 0 * tilt))
        pm.Bernoulli("y", p, observed=(y > 1).astype(int))
    return model


def test_constant_arrays_are_replaced_and_potentials_stay():
    floor = rows()[1]
    model = RewardModel.from_pymc(no_data, "p", rows=[(floor, 0)])
    built = model.build(np.array([[2.0], [3.0], [-1.0]]), np.array([0.0, 1.0, 1.0]))
    at = {"b": np.array([0.3, -0.2]), "tilt_log__": np.array(0.0)}
    p = 1 / (1 + np.exp(-(0.3 - 0.2 * np.array([2.0, 3.0, -1.0]))))
    likelihood = np.log([1 - p[0], p[1], p[2]]).sum()
    prior = -0.5 * (0.3**2 + 0.2**2) - np.log(2 * np.pi) - 0.5 * 0.5**2
    half = 0.5 * np.log(2 / np.pi) - 0.5  # HalfNormal at 1; its logarithm's Jacobian is 0
    np.testing.assert_allclose(built.compile_logp()(at), likelihood + prior + half, rtol=1e-12)


def test_a_weight_is_a_power_of_the_likelihood():
    county, floor, y = rows()
    weight = np.random.default_rng(1).integers(1, 4, N)
    model = handed(weighted=True, name="weighted_radon")
    once = bb.fit(model, floor[:, None], y, weight, arm=county, n_arms=J)
    again = [np.repeat(v, weight, axis=0) for v in (floor[:, None], y, county)]
    repeated = bb.fit(handed(), *again[:2], arm=again[2], n_arms=J)
    same(once, repeated, 1e-11)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"rows": {"floor": 0}}, r"'county_of' have a value for each row.*rows=\{\"county_of\""),
        ({"rows": {"floors": 0}}, r"must name data of the model \('floor', 'county_of'\)"),
        ({"mean": "nu"}, "mean must name a variable of the model; got 'nu'"),
        ({"reward": "b"}, r"reward must name an observed variable \('y'\); got 'b'"),
        ({"arm_dim": "town"}, r"arm_dim must be a dimension of the model .*'county'.*got 'town'"),
        ({"rows": {**ROWS, "floor": "age"}}, "give encoder="),
        ({"rows": {**ROWS, "floor": lambda z: z}}, "takes x, arm, weight and reward; got 'z'"),
        ({"name": "1|g"}, "identifier of Python"),
        ({"weighted": 1}, "weighted must be"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_what_to_write(settings, said):
    with pytest.raises((ValueError, TypeError), match=said):
        handed(**settings)


@pytest.mark.parametrize(
    ("dims", "of_rewards", "is_refused"),
    [(None, None, True), ("obs", None, True), ("obs", "obs", True), ("other", "obs", False)],
)
def test_data_as_long_as_the_rewards_are_of_the_rows_unless_dims_tell(dims, of_rewards, is_refused):
    def make():
        z = pm.Data("z", np.arange(9.0), dims=dims)
        mu = pm.Deterministic("mu", pm.Normal("b") * z + pm.Data("one", np.ones(9)))
        pm.Normal("y", mu, 1.0, observed=np.zeros(9), dims=of_rewards)

    said = pytest.raises(ValueError, match=r"'z' have a value for each row.*rows=\{\"z\"")
    with said if is_refused else nullcontext():
        coords = {"obs": range(9), "other": range(9)}
        handed_over(make, coords=coords, rows={"one": lambda x: x[:, 0]})


def test_what_is_observed_of_the_rewards_stays_so():
    """As logarithms of them; and it has no draws of rewards."""
    rng = np.random.default_rng(0)
    z, r = rng.normal(size=N), np.exp(rng.normal(size=N))

    def make():
        mu = pm.Deterministic("mu", pm.Normal("b", 0, 1) * pm.Data("z", z))
        pm.Normal("y", mu, 1.0, observed=pm.math.log(pm.Data("r", r)))

    model = handed_over(make, rows={"z": 0, "r": lambda reward: reward})
    mean = bb.fit(model, z[:, None], r).coefficients["b"][0]
    assert mean == pytest.approx(z @ np.log(r) / (z @ z + 1), rel=1e-9)
    with pytest.raises(ValueError, match="'y' observes what is computed of the rewards"):
        model.prior_predictive(z[:, None])
    with pytest.raises(ValueError, match="'y' observes what is computed of the rewards"):
        bb.compare_models({"a": model}, z[:, None], r)


def of_levels(values, index):
    """Rewards −1 where a level, of whole numbers or booleans, is 1: by an index, or a slope."""

    def make():
        level = pm.Data("level", values)
        b = pm.Normal("b", 0, 5, shape=2 if index else ())
        mu = b[level] if index else b * level
        pm.Normal("y", pm.Deterministic("mu", mu), 0.3, observed=-1.0 * values)

    return handed_over(make, rows={"level": 0}, name="of_levels")


@pytest.mark.parametrize("kind", [int, bool])
def test_numbers_in_the_place_of_whole_ones_stay_as_they_are(kind):
    level = np.arange(40) % 2
    posterior = bb.fit(of_levels(level.astype(kind), False), level[:, None], -1.0 * level)
    slope = -20 / (20 + 0.3**2 / 5**2)
    x = np.array([0.0, 0.7, 1.9, -0.9])
    np.testing.assert_allclose(posterior.mean(x[:, None]), slope * x, rtol=1e-9)


def test_an_index_may_be_a_context():
    level = np.arange(40) % 2
    model = of_levels(level, True)
    posterior = bb.fit(model, level[:, None], -1.0 * level)
    np.testing.assert_allclose(posterior.mean([[0.0], [1.0]]), [0.0, -1.0], atol=1e-3)
    with pytest.raises(ValueError, match="has a level that was not declared"):
        posterior.mean([[2.0]])
    bandit = bb.Bandit(2, bb.Sampled(model, draws=20), bb.Thompson(), n_features=1, seed=0)
    bandit.observe(bandit.choose([1.0]), -1.0)
    assert bandit.belief.n.sum() == 1


def test_rewards_may_depend_on_each_other():
    """Rewards with one covariance, as of a Gaussian process."""
    z, rng = np.arange(8.0), np.random.default_rng(0)

    def make():
        data = pm.Data("z", z)
        mu = pm.Deterministic("mu", pm.Normal("b", 0, 1) * data)
        pm.MvNormal("y", mu, 0.25 * pt.eye(data.shape[0]), observed=z)

    x, r = rng.normal(size=(30, 1)), rng.normal(size=30)
    posterior = bb.fit(handed_over(make, rows={"z": 0}), x, r)
    right = x[:, 0] @ r / (x[:, 0] @ x[:, 0] + 0.25)
    assert posterior.coefficients["b"][0] == pytest.approx(right, rel=1e-9)


def equal_arrays():
    mu = pm.Normal("a") * RAMP + pm.Normal("c") * RAMP.copy()
    pm.Normal("y", pm.Deterministic("mu", mu), 1.0, observed=np.zeros(6))


def missing():
    mu = pm.Deterministic("mu", pm.Normal("b") * np.ones(3))
    pm.Normal("y", mu, observed=[0, 1, np.nan])


RAMP = np.arange(6.0)
REFUSED = {  # what is said, a model, and how it is handed over
    r"a vector of rewards \(n,\).*shape \(\)": (lambda: pm.Normal("y", observed=0.5), {}),
    r"a vector of .*shape \(4, 1\)": (lambda: pm.Normal("y", observed=np.zeros((4, 1))), {}),
    "add the mean reward": (lambda: pm.LogitNormal("y", observed=np.full(4, 0.3)), {}),
    "'a' is of pymc.dims": (lambda: (pmd.Normal("a"), pm.Normal("y", observed=np.zeros(4))), {}),
    r"equal arrays cannot be told apart.*pm\.Data": (
        equal_arrays, {"mean": "mu", "rows": [(RAMP, 0), (RAMP.copy(), 1)]},
    ),
    r"missing rewards are imputed .*leave these rows out": (
        missing, {"mean": "mu", "reward": "y_observed"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("said", REFUSED)
def test_a_model_of_another_kind_is_not_handed_over(said):
    make, settings = REFUSED[said]
    with pytest.raises((TypeError, ValueError), match=said):
        handed_over(make, **{"mean": None} | settings)


@pytest.mark.parametrize(
    ("model", "rows", "said"),
    [
        (no_data, (), r"an array of 60 constants.*rows=\[\(array, lambda"),
        (no_data, [(np.arange(7.0), 0)], "no constant array"),
        (lambda: 3, (), "must be a PyMC model"),
    ],
)
def test_an_array_of_rows_that_nothing_replaces_is_refused(model, rows, said):
    with pytest.raises((TypeError, ValueError), match=said):
        RewardModel.from_pymc(model, "p", rows=rows)


def one_slope():
    pm.Normal("y", pm.Normal("b") * pm.Data("z", np.ones(4)), 1.0, observed=np.zeros(4))


def test_data_are_replaced_by_as_many_axes():
    model = handed_over(one_slope, None, rows={"z": lambda x: x}, name="axes")
    with pytest.raises(ValueError, match="'z' as many axes as it has, 1; got 2"):
        bb.fit(model, np.ones((5, 1)), np.zeros(5))


@pytest.mark.slow
def test_models_are_compared_by_rows_of_weight_1():
    model = handed_over(one_slope, None, rows={"z": 0}, weighted=True, name="with_weights")
    x, r = np.ones((9, 1)), np.arange(9.0)
    table = bb.compare_models({"theirs": model, "ridge": bb.load_model("ridge")}, x, r)
    assert set(table.index) == {"theirs", "ridge"}
    with pytest.raises(ValueError, match=r"weights of 1.*got 2"):
        bb.compare_models({"theirs": model}, x, r, weight=np.full(9, 2.0))


@cache
def coefficient(name):
    """The engine, and the moments of a slope of this name."""

    def make():
        slope = pm.Normal(name, 0, 1)
        scale = pm.HalfNormal("σ", 1)
        mu = pm.Deterministic("mu", slope * pm.Data("z", np.ones(3)))
        pm.Normal("y", mu, scale, observed=np.zeros(3))

    made = handed_over(make, rows={"z": 0})
    rng = np.random.default_rng(0)
    posterior = bb.fit(made, np.ones((5, 1)), rng.normal(size=5), draws=20, chains=1, seed=0)
    [first, _] = posterior.coefficients.values()
    return posterior.engine, first


@pytest.mark.parametrize(
    "name", ["short", "1|g", "float64", "a b", "x", "reward", "weight", "arm", "mean_reward", "é"]
)
def test_a_variable_may_have_any_name(name):
    """Its posterior is that of a variable of another name."""
    assert coefficient(name) == coefficient("slope")


V = np.array([0.5, 1.5])
DISTRIBUTIONS = [
    (lambda: pm.Normal.dist(V, 2), V),
    (lambda: pm.Normal.dist(3, V), [3, 3]),
    (lambda: pm.StudentT.dist(nu=4, mu=V, sigma=2), V),
    (lambda: pm.Laplace.dist(V, 2), V),
    (lambda: pm.Weibull.dist(V, 2), [4, 2 * math.gamma(1 + 1 / 1.5)]),
    (lambda: pm.Categorical.dist([[0.2, 0.8, 0.0], [0.1, 0.1, 0.8]]), [0.8, 1.7]),
    (lambda: pm.HurdleGamma.dist(0.3, alpha=V, beta=1), 0.3 * V),
    (lambda: pm.ZeroInflatedPoisson.dist(0.3, V), 0.3 * V),
    (
        lambda: pm.Mixture.dist([0.2, 0.8], [pm.Normal.dist(V, 1), pm.Normal.dist(3, 1)]),
        0.2 * V + 2.4,
    ),
]


@pytest.mark.parametrize(("made", "mean"), DISTRIBUTIONS)
@few("made1-", "made6-")
def test_the_mean_of_a_distribution(made, mean):
    found = mean_of(made()).eval(mode="FAST_COMPILE")
    np.testing.assert_allclose(found, mean, rtol=1e-8)


@pytest.mark.parametrize(
    "of",
    [
        lambda v, n: pm.AsymmetricLaplace.dist(mu=v, b=1, q=0.8, size=n),
        lambda v, n: pm.Kumaraswamy.dist(a=v, b=2, size=n),
        lambda v, n: pm.Weibull.dist(alpha=2, beta=v, size=n),
        lambda v, n: pm.HalfStudentT.dist(nu=5, sigma=v, size=n),
        lambda v, n: pm.Gamma.dist(mu=v, sigma=1, size=n),
    ],
)
def test_the_mean_is_of_other_rows_than_those_of_the_model(of):
    v = pt.vector("v")
    found = mean_of(of(v, 60)).eval({v: V}, mode="FAST_COMPILE")
    np.testing.assert_allclose(found, mean_of(of(V, 2)).eval(mode="FAST_COMPILE"))


@pytest.mark.parametrize(
    "made",
    [
        lambda: pm.Censored.dist(pm.Normal.dist(), lower=0, upper=1),
        lambda: pm.Truncated.dist(pm.Poisson.dist(2), lower=2),
        lambda: pm.HurdlePoisson.dist(0.3, V),
        lambda: pm.VonMises.dist(1, 1),
        lambda: pm.ExGaussian.dist(mu=1, sigma=1, nu=2),
        lambda: pm.StudentT.dist(nu=1, mu=V, sigma=1),
        lambda: pm.Pareto.dist(alpha=0.9, m=V),
    ],
)
def test_a_mean_that_is_not_known_is_refused_with_what_to_write(made):
    with pytest.raises(ValueError, match="name it by mean="):
        mean_of(made())


def test_a_mean_that_is_left_out_is_that_of_the_rewards():
    """The model has 60 rows, and is built on others."""
    x, k = np.array([[2.0], [3.0]]), [1, 2]
    named, left_out = (handed(mean=mean).build(x, k, arm=k, n_arms=J) for mean in ("mu", None))
    at = {named["a"]: 0.5, named["b"]: 1.0, named["z"]: np.arange(4.0)}
    of = {left_out[v.name]: number for v, number in at.items()}
    np.testing.assert_array_equal(left_out["mean_reward"].eval(of), named["mean_reward"].eval(at))


@pytest.mark.parametrize("noise", [partial(pm.StudentT, nu=4), pm.Laplace], ids=["t", "laplace"])
def test_a_mean_that_is_left_out_changes_no_engine(noise):
    def make():
        scale = {"b" if noise is pm.Laplace else "sigma": pm.HalfNormal("scale", 1)}
        noise("y", mu=pm.Normal("b") * pm.Data("z", np.ones(9)), **scale, observed=np.zeros(9))

    assert handed_over(make, None, rows={"z": 0}).explain(1).startswith("made: gibbs")


def test_a_mean_that_is_one_number_is_that_of_all_rows():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=np.zeros(20))
    built = RewardModel.from_pymc(model).build(np.ones((3, 1)), np.zeros(3))
    np.testing.assert_array_equal(built["mean_reward"].eval({built["mu"]: 2.0}), [2.0, 2.0, 2.0])


def masked():
    """Rewards above 1 are known to be there, and nothing else."""
    _, floor, y = rows()
    seen = y < 1
    with pm.Model() as model:
        mu = pm.Deterministic("mu", pm.Normal("a", 0, 2) + pm.Normal("b", 0, 2) * floor)
        pm.Normal("y", mu[seen], 1, observed=y[seen])
        beyond = pm.Normal.dist(mu[~seen], 1)
        pm.Potential("beyond", pm.logp(beyond, np.minimum(y[~seen], 1)))
    return model


def handed_masked(**settings):
    _, floor, y = rows()
    seen = y < 1
    given = [
        (floor, 0),
        (seen, lambda x: x[:, 1] > 0),
        (~seen, lambda x: x[:, 1] <= 0),
        ("y", lambda x, reward: reward[x[:, 1] > 0]),
        (np.minimum(y[~seen], 1), lambda x, reward: reward[x[:, 1] <= 0]),
    ]
    model = RewardModel.from_pymc(masked, "mu", "y", given, **settings)
    return model, np.column_stack([floor, seen]), np.minimum(y, 1)


def test_a_part_of_the_rewards_is_observed_and_a_bandit_plays():
    model, x, r = handed_masked()
    at = {"a": np.array(0.3), "b": np.array(-0.2)}
    ours, theirs = (m.compile_logp(mode="FAST_COMPILE")(at) for m in (model.build(x, r), masked()))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    bandit = bb.Bandit(["p", "q"], model, bb.Thompson(), n_features=2, seed=0)
    bandit.update(x, np.array(["p", "q"])[np.arange(N) % 2], r)
    assert 0 < bandit.choose([1.0, 1.0]).propensity <= 1
    with pytest.raises(ValueError, match="weighted=True and 'y' in rows"):
        handed_masked(weighted=True)


@pytest.mark.slow
def test_what_a_part_of_the_rows_observes_has_no_dimension_of_rows():
    model, x, r = handed_masked()
    posterior = bb.fit(model, x, r, engine="laplace", seed=0)
    with pytest.warns(UserWarning, match="the tree is without log_likelihood"):
        tree = posterior.to_datatree(chains=1, draws=20)
    assert tree["observed_data"]["y"].shape == ((r < 1).sum(),)
    assert tree["posterior"]["mean_reward"].dims == ("chain", "draw", "row")


def correlated():
    """Slopes of counties, correlated by LKJ."""
    county, floor, y = rows()
    with pm.Model(coords={"county": list("abcd"), "param": ["level", "slope"]}) as model:
        scale = pm.Exponential.dist(0.5, shape=2)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=scale)
        z = pm.Normal("z", 0, 1, dims=("param", "county"))
        ab = pm.Deterministic("ab", (chol @ z).T, dims=("county", "param"))
        county_of = pm.Data("county_of", county, dims="home")
        floor_of = pm.Data("floor", floor, dims="home")
        pm.Normal("y", ab[county_of, 0] + ab[county_of, 1] * floor_of, 1, observed=y, dims="home")
    return model


def test_a_row_that_takes_a_vector_of_its_arm_is_a_row():
    model = RewardModel.from_pymc(correlated, rows=ROWS, arm_dim="county")
    said = model.explain(1, J, bandit=True)
    assert "a bandit plays it: each reward weights the posterior draws" in said


@pytest.mark.slow
def test_lkj_is_compiled_once_for_two_fits(monkeypatch):
    """A compiler replaces the constants of a transform by their values, where models share it."""
    compiled = []

    def counted(model, **settings):
        compiled.append(model)
        return compile_pymc_model(model, **settings)

    compile_pymc_model = nutpie.compile_pymc_model
    monkeypatch.setattr(nutpie, "compile_pymc_model", counted)
    model = RewardModel.from_pymc(correlated, rows=ROWS, arm_dim="county", name="lkj_once")
    for n in (N, N // 2):
        county, floor, y = (of[:n] for of in rows())
        bb.fit(model, floor[:, None], y, arm=county, n_arms=J, draws=20, chains=1, tune=20, seed=0)
    assert len(compiled) == 1
