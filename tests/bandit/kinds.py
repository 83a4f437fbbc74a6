"""The registry: bandits of every kind for which the laws hold."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest

import bayesbandit as bb
from bayesbandit.beliefs.base import Declaring
from bayesbandit.model import reward_model
from bayesbandit.weighting.base import is_normalized
from tests import declarations as declared
from tests.cases import moments_of
from tests.nouns import RECIPE

D, ARMS = 3, ("a", "b", 3)
NORMAL = bb.Prior("Normal", mu=0.5, sigma=1, dims="feature")


@reward_model(sigma2=bb.Prior("InverseGamma", alpha=2, beta=1))
def off_centre(x, reward, weight, sigma2):
    theta = pm.Normal("theta", 0.5, pm.math.sqrt(sigma2), dims="feature")
    mu = 1.0 + x @ theta
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward)
    return mu


def together(mu, sigma, reward):
    """Rewards as one observation, so that no row is told from another: exact, but no stream."""
    pm.MvNormal("reward", mu, cov=pt.diag(sigma**2), observed=reward)
    return mu


@reward_model(theta=NORMAL)
def noise_by_context(x, reward, weight, theta):
    return together(x @ theta, pt.exp(0.3 * x[:, 0]) / pt.sqrt(weight), reward)


@reward_model(centre=NORMAL)
def shared_noise_by_context(x, reward, weight, arm, centre):
    theta = pm.Normal("theta", centre, 0.7, dims=("arm", "feature"))
    mu = (x * theta[arm]).sum(axis=-1)
    return together(mu, pt.exp(0.3 * x[:, 0]) / pt.sqrt(weight), reward)


@reward_model(theta=NORMAL)
def known_noise_by_context(x, reward, weight, theta):
    mu = x @ theta
    pm.Normal("reward", mu, pt.exp(0.3 * x[:, 0]) / pt.sqrt(weight), observed=reward)
    return mu


@reward_model(theta=bb.Prior("Normal", mu=[0.0, 0.5, 1.0], sigma=1, dims="arm"))
def one_prior_an_arm(x, reward, weight, arm, theta):
    mu = theta[arm]
    pm.Normal("reward", mu, 1 / pm.math.sqrt(weight), observed=reward)
    return mu


@bb.savable
@dataclass(frozen=True)
class Loud:
    """A balance that a user writes; it weights all past rounds."""

    def weights(self, history: Any, belief: Any) -> np.ndarray:
        return np.asarray(1.0 + np.abs(history.reward))


@dataclass(frozen=True)
class Kind:
    """How a bandit of d features is made, and what a naive model needs to know of it.

    make: (arms, d, seed) → Bandit. most: arms at most; 3: they cannot change. naive: settings of
    `attack.naive.Naive`, None where there is no closed form. common: those of the posterior that
    all arms share, where they do. exact: a declared model whose posterior `bb.fit` finds in closed
    form. rewards: "real", "binary" or "counts".
    """

    make: Callable[..., bb.Bandit]
    d: int = 2
    most: int = 5
    naive: dict[str, Any] | None = None
    common: dict[str, Any] | None = None
    exact: bool = False
    slow: bool = False
    rewards: str = "real"

    @property
    def changes(self) -> bool:
        """Whether arms can be added and removed without compiling a model again."""
        return self.naive is not None or self.common is not None

    def __call__(self, seed: int = 0) -> bb.Bandit:
        return self.make(["a", "b", "c"], self.d, seed=seed)

    def drawn(self, rng: np.random.Generator, shape: Any) -> np.ndarray:
        """Rewards that the model may have seen."""
        if self.rewards == "binary":
            return rng.integers(0, 2, size=shape).astype(float)
        if self.rewards == "counts":
            return rng.poisson(2.0, size=shape).astype(float)
        return np.asarray(rng.normal(size=shape))


def _ridge(make: Callable[..., bb.Bandit], **naive: Any) -> Kind:
    rows = make(ARMS, 2).model.prior_rows
    return Kind(make, naive={"rule": ("Thompson", 1.0), "prior_rows": rows, **naive})


def _every_row(**settings: Any) -> Any:
    balance = bb.InversePropensity(refit_every=1, **settings)
    return _made(bb.Ridge(), bb.Thompson(), balance)


def _decaying(t: int) -> float:
    return 2.0 / np.sqrt(t)


def _one_in(t: int) -> float:
    return 1.0 / t


def _made(model: Any, policy: Any = None, balance: Any = None, **settings: Any) -> Any:
    def make(arms: Any, d: int, seed: int = 0) -> bb.Bandit:
        own = policy or bb.Thompson(0.7)
        return declared.bandit(arms, model, own, balance, n_features=d, seed=seed, **settings)

    return make


def _of(model: Any, balance: Any = None, settings: Any = None, **more: Any) -> Kind:
    settings = (settings or {}) | ({"history": None} if balance is None else {})
    return Kind(_made(model, None, balance, **settings), d=D, most=4, **more)


def _shared(model: Any, balance: Any = None, policy: Any = None, **settings: Any) -> Any:
    own = policy or bb.Thompson(0.7, min_probability=0.01)
    return _made(bb.Shared(model), own, balance, **settings)


def _of_tables(arms: Any, d: int, seed: int = 0) -> bb.Bandit:
    return bb.LinTS(arms, encoder=bb.Encoder.formula("~ age * land", FRAME), seed=seed)


FRAME = pd.DataFrame({"age": [21.0, 35.0, 50.0, 64.0], "land": ["no", "se", "no", "dk"]})
RIDGE_GRID = (0.1, 1.0, 10.0)
FEW_DRAWS = {"draws": 60}
CLICKS, SALES = bb.load_model("beta_bernoulli"), bb.load_model("gamma_poisson")
IPW, UCB = {"balance": "decision", "clip": 0.1}, {"rule": ("UCB", 1.0)}
POOLED = {"balance": "pooled", "clip": 0.1, "refresh": 0.25, "snapshots": 32}
ESTIMATED = {**POOLED, "balance": "estimated"}
RIDGES = {
    "LinTS": _ridge(bb.LinTS),
    "LinUCB": _ridge(bb.LinUCB, **UCB),
    "LinGreedy": _ridge(bb.LinGreedy, rule=("Greedy", 0.0)),
    "ε-greedy": _ridge(partial(bb.LinGreedy, epsilon=0.3), rule=("EpsilonGreedy", 0.3)),
    "BLTS": _ridge(bb.BLTS, **IPW),
    "BLTS pooled": _ridge(partial(bb.BLTS, propensity="pooled"), **POOLED),
    "BLUCB": _ridge(bb.BLUCB, **UCB, **ESTIMATED),
    "cv": _ridge(partial(bb.LinTS, ridge="cv", grid=RIDGE_GRID), grid=RIDGE_GRID),
    "balanced cv": _ridge(
        partial(bb.BLTS, ridge="cv", normalize=True, folds=3),
        grid="default", folds=3, normalize=True, **IPW,
    ),
    "rss": _ridge(partial(bb.LinTS, variance="rss"), variance="rss"),
    "nig": _ridge(
        partial(bb.BLTS, variance="nig", prior=(0.5, 0.2)),
        variance="nig", prior=(0.5, 0.2), **IPW,
    ),
    "nig UCB": _ridge(partial(bb.LinUCB, variance="nig"), variance="nig", **UCB),
    "known noise": _ridge(partial(bb.LinTS, variance=0.25, history=5), variance=0.25),
    "normalised": _ridge(
        partial(bb.BLTS, normalize=True, clip=0.02), normalize=True, **IPW | {"clip": 0.02}
    ),
    "unpenalised": _ridge(
        partial(bb.LinTS, intercept="unpenalised"), intercept="unpenalised"
    ),
    "no intercept": _ridge(
        partial(bb.BLUCB, intercept=False, propensity="decision"), intercept=False, **UCB, **IPW
    ),
    "no history": _ridge(partial(bb.BLTS, history=0), **IPW),
    "pooled, every row": _ridge(
        _every_row(propensity="pooled", snapshots=5), **POOLED | {"refresh": 1, "snapshots": 5}
    ),
    "estimated, every row": _ridge(
        _every_row(propensity="estimated"), **ESTIMATED | {"refresh": 1}
    ),
}  # fmt: skip
DECLARED = {
    "affine": _of(declared.noncentred, exact=True),
    "affine, unknown noise": _of(off_centre, exact=True),
    "affine, balanced": _of(declared.noncentred, bb.InversePropensity(), exact=True),
    "affine, noise by context": _of(known_noise_by_context, exact=True),
    "joint": _of(declared.pooled, exact=True),
    "joint, estimated": _of(
        declared.pooled, bb.InversePropensity(propensity="estimated"), exact=True, slow=True
    ),
    "by draws": _of(noise_by_context, None, FEW_DRAWS),
    "by Gibbs": _of(declared.lasso, None, FEW_DRAWS),
    "by Gibbs, balanced": _of(declared.lasso, bb.InversePropensity(), FEW_DRAWS),
    "joint, by draws": _of(shared_noise_by_context, None, FEW_DRAWS, slow=True),
    "one prior an arm": Kind(_made(one_prior_an_arm, history=None), d=1, most=3, exact=True),
    "NUTS": Kind(
        _made(bb.Sampled(declared.binary, "nuts", draws=20, tune=20, refit_every=40)),
        most=3, slow=True, rewards="binary",
    ),
    "conjugate": Kind(_made(CLICKS), d=0, exact=True, rewards="binary"),
    "conjugate, compiled": Kind(
        _made(CLICKS, bb.Thompson(min_probability=0.05), bb.InversePropensity()),
        d=0, exact=True, rewards="binary",
    ),
    "rates, compiled": Kind(
        _made(SALES, bb.Thompson(), bb.InversePropensity(normalize=True)),
        d=0, exact=True, rewards="counts",
    ),
    "Laplace": Kind(_made(declared.binary, engine="laplace"), d=D, rewards="binary"),
}  # fmt: skip
ALONE = {"rule": ("Greedy", 0.0)}  # of one arm, which stands for all
SHARED = {
    "shared": Kind(_shared(bb.Ridge()), common=ALONE),
    "shared, balanced": Kind(
        _shared(bb.Ridge(variance="nig"), bb.InversePropensity()),
        common={**ALONE, **IPW, "variance": "nig"},
    ),
    "shared, UCB": Kind(
        _shared(bb.Ridge(ridge="cv", grid=RIDGE_GRID), policy=bb.UCB(), history=3),
        common={**ALONE, "grid": RIDGE_GRID},
    ),
    "shared, reweighed": Kind(_shared(bb.Ridge(), Loud())),
    "shared, affine": Kind(_shared(declared.noncentred)),
    "shared, by Gibbs": Kind(_shared(declared.lasso, draws=20), slow=True),
    "shared, Laplace": Kind(_shared(declared.binary, engine="laplace"), rewards="binary"),
}
FORGETTING = {
    "fading": Kind(partial(bb.LinTS, half_life=20.0)),
    "fading, cv": Kind(partial(bb.LinUCB, half_life=20.0, ridge="cv")),
    "half-lives": Kind(partial(bb.LinTS, half_life="auto")),
    "walking": Kind(partial(bb.LinTS, drift=0.01)),
    "fading, balanced": Kind(partial(bb.BLTS, half_life=20.0)),
    "fading, shared": Kind(_shared(bb.Ridge(half_life=20.0))),
    "fading, affine": Kind(_made(declared.noncentred, half_life=20.0), d=D),
    "fading, joint": Kind(_made(declared.pooled, half_life=20.0), d=D),
    "half-lives, affine": Kind(_made(declared.noncentred, half_life="auto"), d=D),
    "walking, joint": Kind(_made(declared.pooled, drift=0.01), d=D),
    "fading, conjugate": Kind(_made(SALES, half_life=20.0), d=0, rewards="counts"),
    "half-lives, conjugate": Kind(_made(SALES, half_life="auto"), d=0, rewards="counts"),
    "fading, Laplace": Kind(
        _made(declared.binary, engine="laplace", half_life=20.0), d=D, rewards="binary"
    ),
}
SYSTEMS = {
    "Bayesian LASSO": Kind(partial(bb.BayesianLassoTS, draws=20, history=None), most=4, slow=True),
    "the appendix's LASSO": Kind(
        partial(bb.BayesianLassoUCB, draws=20, sigma2=0.5, history=None), most=4, slow=True
    ),
    "forest": Kind(partial(bb.ForestTS, trees=8, bag=2, least=4, history=None), most=4),
    "bootstrap": Kind(partial(bb.BootstrapRidgeTS, replicates=10, n_lams=3, folds=2)),
    "tree": Kind(partial(bb.PolicyTreeTS, least=5)),
    "tree, cv": Kind(partial(bb.PolicyTreeTS, least=5, base=bb.Ridge("cv"), balanced=True)),
    "mixture": Kind(partial(bb.ILTCB, rewards=(-99.0, 99.0))),
    "levels": Kind(partial(bb.SuperLinUCB, horizon=100, alpha=0.3)),
}
OTHERS = {
    "α of t": Kind(partial(bb.LinTS, alpha=_decaying)),
    "ε of t": Kind(partial(bb.LinGreedy, epsilon=_one_in)),
    "pooled, α of t": Kind(partial(bb.BLTS, alpha=_decaying, propensity="pooled")),
    "cv on a schedule": Kind(partial(bb.LinUCB, ridge="cv", refit_every=0.05)),
    "a floor": Kind(partial(bb.LinTS, min_probability=0.1)),
    "residual": Kind(_made(bb.Ridge(), bb.TopTwo(0.3), bb.ResidualBalance())),
    "kernel": Kind(_made(bb.Ridge(), bb.Boltzmann(0.5), bb.KernelBalance())),
    "a balance of yours": Kind(_made(bb.Ridge(), None, Loud())),
    "a policy of yours": Kind(_made(bb.Ridge(), RECIPE["policy"].Annealed())),
    "a belief of yours": Kind(_made(RECIPE["belief"].Trees(draws=4))),
    "tables": Kind(_of_tables),
}
KINDS = RIDGES | DECLARED | SHARED | FORGETTING | SYSTEMS | OTHERS


WITHOUT_A_CLOCK = [name for name in KINDS if name not in FORGETTING]
NO_SUMS = {  # whose belief depends on the order of rounds, or on the calls that bring them
    *("BLTS pooled", "BLUCB", "pooled, every row", "estimated, every row", "pooled, α of t"),
    *("joint, estimated", "residual", "kernel", "a balance of yours", "shared, reweighed"),
    *("by draws", "by Gibbs", "by Gibbs, balanced", "joint, by draws", "NUTS", "shared, by Gibbs"),
    *("Laplace", "shared, Laplace", "fading, Laplace"),  # a mode is found now and then
    *("half-lives", "walking", "walking, joint", "cv on a schedule", "a belief of yours"),
    *SYSTEMS,
}
KINDS_OF_SUMS = [name for name in KINDS if name not in NO_SUMS]
ONE_BY_ONE = [
    *(*KINDS_OF_SUMS, "half-lives", "walking", "walking, joint"),
    *("forest", "bootstrap", "tree", "tree, cv", "mixture", "levels"),
]


def of_kinds(names: Iterable[str] = KINDS) -> Any:
    """The kinds that a law holds for."""
    marked = [
        pytest.param(name, marks=[pytest.mark.slow] if KINDS[name].slow else []) for name in names
    ]
    return pytest.mark.parametrize("name", marked)


def contexts(bandit: bb.Bandit, rng: np.random.Generator, n: int) -> Any:
    """Contexts (n, d) of a bandit, (n, K, d) where each of its arms of now has a row, or a table of
    n rows."""
    if bandit.encoder is not None:
        return FRAME.iloc[rng.integers(len(FRAME), size=n)].reset_index(drop=True)
    arms = (len(bandit.arms),) if bandit.of_arms else ()
    return rng.normal(size=(n, *arms, bandit.n_features))


def lived(name: str, T: int = 24, seed: int = 0) -> bb.Bandit:
    """A bandit with a past: rounds logged elsewhere, and of its own."""
    kind, rng = KINDS[name], np.random.default_rng(seed)
    bandit = kind(seed)
    arm = np.array(bandit.arms)[np.arange(T) % 3]
    bandit.update(contexts(bandit, rng, T), arm, kind.drawn(rng, T), rng.uniform(0.1, 1, T))
    bandit.observe(bandit.choose(contexts(bandit, rng, 5)), kind.drawn(rng, 5))
    return bandit


def given_again(bandit: bb.Bandit) -> dict[str, Any]:
    """What a file of this bandit does not hold."""
    spec = getattr(bandit.spec, "model", bandit.spec)
    model = {"model": bandit.model} if isinstance(spec, Declaring) else {}
    policy = any(callable(value) for value in vars(bandit.policy).values())
    return model | ({"policy": bandit.policy} if policy else {})


def probe(n=4, d=D):
    return np.random.default_rng(99).normal(size=(n, d))


def close(ours, theirs, tolerance=1e-9):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def fitted(bandit, arm):
    """`bb.fit` on the rounds that the history holds, of one arm or of all that share a model."""
    history, model, weight = bandit.history, bandit.model, bandit.history.weight
    known = np.array([a in bandit.arms for a in history.arm])
    if model.takes_arm:
        index = np.array([bandit.arms.index(a) for a in history.arm[known]])
        return bb.fit(model, history.x[known], history.reward[known], weight[known],
                      arm=index, n_arms=len(bandit.arms))  # fmt: skip
    mine = history.arm == arm
    x = history.x[mine] if bandit.n_features else None
    weight = weight[mine]
    if is_normalized(bandit.balance):
        weight = weight / weight.mean()
    return bb.fit(model, x, history.reward[mine], weight)


def agree(bandit):
    """An exact belief is what `bb.fit` finds in the history."""
    x = probe(d=bandit.n_features)
    mean, sd = moments_of(bandit.belief, x)
    for k, arm in enumerate(bandit.arms):
        fit, at = fitted(bandit, arm), slice(None)
        if bandit.model.takes_arm:
            at = (slice(None), k)
        close(mean[:, k], fit.mean(x)[at])
        close(sd[:, k], fit.sd(x)[at])
