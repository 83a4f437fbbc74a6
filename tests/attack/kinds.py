"""Bandits of every kind that is attacked: presets, settings and declared models."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm

import bayesbandit as bb
from tests import declarations as declared
from tests.bandit import kinds as beliefs
from tests.players import STATEFUL, _balanced

ARMS = ("a", "b", "c")


@bb.reward_model(theta=bb.Prior("Normal", mu=[0.0, 0.5, 1.0], sigma=1, dims="arm"))
def one_prior_an_arm(x, reward, weight, arm, theta):
    mu = theta[arm]
    pm.Normal("reward", mu, 1 / pm.math.sqrt(weight), observed=reward)
    return mu


@dataclass(frozen=True)
class Kind:
    """How a bandit of d features is made, and what a naive model needs to know of it.

    make: (arms, d, seed) → Bandit. d: features. most: arms at most; 3: they cannot change.
    naive: settings of `naive.Naive`, None where there is no closed form. common: those of the
    posterior that all arms share, where they do. exact: a declared model whose posterior `bb.fit`
    finds in closed form.
    """

    make: Callable[..., bb.Bandit]
    d: int = 2
    most: int = 5
    naive: dict[str, Any] | None = None
    common: dict[str, Any] | None = None
    exact: bool = False
    slow: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Whether arms come and go at once, without a model that is compiled anew."""
        return self.naive is not None or self.common is not None

    def __call__(self, seed: int = 0) -> bb.Bandit:
        return self.make(list(ARMS), self.d, seed=seed)


def _ridge(name: str, **naive: Any) -> Kind:
    rows = STATEFUL[name](ARMS, 2).model.prior_rows
    return Kind(STATEFUL[name], naive={"rule": ("Thompson", 1.0), "prior_rows": rows, **naive})


def _declared(model: Any, balance: Any = None, **settings: Any) -> Callable[..., bb.Bandit]:
    def make(arms: Any, d: int, seed: int = 0) -> bb.Bandit:
        policy = bb.Thompson(0.7)
        return declared.bandit(arms, model, policy, balance, n_features=d, seed=seed, **settings)

    return make


def _of(name: str, balance: Any = None, **more: Any) -> Kind:
    _, model, settings = beliefs.KINDS[name]
    settings = settings | ({"history": None} if balance is None else {})
    return Kind(_declared(model, balance, **settings), d=3, most=4, **more)


IPW, UCB = {"balance": "decision", "clip": 0.1}, {"rule": ("UCB", 1.0)}
POOLED = {"balance": "pooled", "clip": 0.1, "refresh": 0.25, "snapshots": 32}
ESTIMATED = {**POOLED, "balance": "estimated"}
RIDGES = {
    "LinTS": _ridge("LinTS"),
    "LinUCB": _ridge("LinUCB", **UCB),
    "LinGreedy": _ridge("LinGreedy", rule=("Greedy", 0.0)),
    "ε-greedy": _ridge("ε-greedy", rule=("EpsilonGreedy", 0.3)),
    "BLTS": _ridge("BLTS", **IPW),
    "BLTS pooled": _ridge("BLTS pooled", **POOLED),
    "BLUCB": _ridge("BLUCB", **UCB, **ESTIMATED),
    "cv": _ridge("cv", grid=(0.1, 1.0, 10.0)),
    "balanced cv": _ridge("balanced cv", grid="default", folds=3, normalize=True, **IPW),
    "rss": _ridge("rss", variance="rss"),
    "nig": _ridge("nig", variance="nig", prior=(0.5, 0.2), **IPW),
    "nig UCB": _ridge("nig UCB", variance="nig", **UCB),
    "known noise": _ridge("known noise", variance=0.25),
    "normalised": _ridge("normalised", normalize=True, **IPW | {"clip": 0.02}),
    "unpenalised": _ridge("unpenalised", intercept="unpenalised"),
    "no intercept": _ridge("no intercept", intercept=False, **UCB, **IPW),
    "no history": _ridge("no history", **IPW),
    "pooled, every row": _ridge("pooled, every row", **POOLED | {"refresh": 1, "snapshots": 5}),
    "estimated, every row": Kind(
        _balanced(propensity="estimated", refit_every=1),
        naive={"rule": ("Thompson", 1.0), **ESTIMATED, "refresh": 1},
    ),
}
NUTS = bb.Sampled(declared.binary, "nuts", draws=10, tune=20, refit_every=40)
DECLARED = {
    "affine": _of("affine", exact=True),
    "affine, unknown noise": _of("affine, unknown noise", exact=True),
    "affine, balanced": _of("affine", bb.InversePropensity(), exact=True),
    "affine, noise by context": _of("affine, noise by context", exact=True),
    "joint": _of("joint", exact=True),
    "joint, estimated": _of(
        "joint", bb.InversePropensity(propensity="estimated"), exact=True, slow=True
    ),
    "by draws": _of("by draws"),
    "by Gibbs": _of("by Gibbs"),
    "by Gibbs, balanced": _of("by Gibbs", bb.InversePropensity()),
    "joint, by draws": _of("joint, by draws", slow=True),
    "Bayesian LASSO": Kind(partial(bb.BayesianLassoTS, draws=20, history=None), most=4, slow=True),
    "the appendix's LASSO": Kind(
        partial(bb.BayesianLassoUCB, draws=20, sigma2=0.5, history=None), most=4, slow=True
    ),
    "forest": Kind(partial(bb.ForestTS, trees=8, bag=2, least=4, history=None), most=4, slow=True),
    "one prior an arm": Kind(_declared(one_prior_an_arm, history=None), d=1, most=3, exact=True),
    "NUTS": Kind(_declared(NUTS, history=None), d=2, most=3, slow=True),
}


@bb.savable
@dataclass(frozen=True)
class Loud:
    """A balance of one's own, of all of the past."""

    def weights(self, history: Any, belief: Any) -> np.ndarray:
        return np.asarray(1.0 + np.abs(history.reward))


def _shared(model: Any, balance: Any = None, policy: Any = None, **settings: Any) -> Any:
    def make(arms: Any, d: int, seed: int = 0) -> bb.Bandit:
        own = policy or bb.Thompson(0.7, min_probability=0.01)
        return declared.bandit(
            arms, bb.Shared(model), own, balance, n_features=d, seed=seed, **settings
        )

    return make


ALL = {"rule": ("Greedy", 0.0)}  # of one arm, which stands for all
SHARED = {
    "shared": Kind(_shared(bb.Ridge()), common=ALL),
    "shared, balanced": Kind(
        _shared(bb.Ridge(variance="nig"), bb.InversePropensity()),
        common={**ALL, **IPW, "variance": "nig"},
    ),
    "shared, UCB": Kind(
        _shared(bb.Ridge(ridge="cv", grid=(0.1, 1.0, 10.0)), policy=bb.UCB(), history=3),
        common={**ALL, "grid": (0.1, 1.0, 10.0)},
    ),
    "shared, reweighed": Kind(_shared(bb.Ridge(), Loud())),
    "shared, affine": Kind(_shared(declared.noncentred)),
    "shared, by Gibbs": Kind(_shared(declared.lasso, draws=20), slow=True),
    "shared, Laplace": Kind(_shared(declared.binary, engine="laplace")),
}
KINDS = RIDGES | DECLARED | SHARED
QUICK = tuple(name for name, kind in KINDS.items() if not kind.slow)


FRAME = pd.DataFrame({"age": [21.0, 35.0, 50.0, 64.0], "land": ["no", "se", "no", "dk"]})


def _of_tables(arms: Any, d: int, seed: int = 0) -> bb.Bandit:
    return bb.LinTS(arms, encoder=bb.Encoder.formula("~ age * land", FRAME), seed=seed)


def _own(model: Any, policy: Any = None, balance: Any = None, **settings: Any) -> Any:
    def make(arms: Any, d: int, seed: int = 0) -> bb.Bandit:
        own = policy or bb.Thompson(0.7)
        return declared.bandit(arms, model, own, balance, n_features=d, seed=seed, **settings)

    return make


FORGETTING = {
    "fading": Kind(partial(bb.LinTS, half_life=20.0)),
    "fading, of time": Kind(partial(bb.LinUCB, half_life="7d", clock="time", ridge="cv")),
    "half-lives": Kind(partial(bb.LinTS, half_life="auto")),
    "walking": Kind(partial(bb.LinTS, drift=0.01)),
    "fading, pooled": Kind(partial(bb.BLTS, half_life=20.0, propensity="pooled")),
    "fading, affine": Kind(_own(declared.noncentred, half_life=20.0), d=3),
    "fading, joint": Kind(_own(declared.pooled, half_life=20.0), d=3),
    "half-lives, affine": Kind(_own(declared.noncentred, half_life="auto"), d=3),
    "walking, joint": Kind(_own(declared.pooled, drift=0.01), d=3),
    "fading, conjugate": Kind(_own(bb.load_model("gamma_poisson"), half_life=20.0), d=0),
    "fading, Laplace": Kind(_own(declared.binary, engine="laplace", half_life=20.0), d=3),
    "window, by Gibbs": Kind(_own(declared.lasso, draws=60, half_life=20.0), d=3),
    "window, bootstrap": Kind(
        partial(bb.BootstrapRidgeTS, replicates=10, n_lams=3, folds=2, half_life=20.0)
    ),
}
SAVED = (
    KINDS
    | FORGETTING
    | {  # whose files are crafted
        "bootstrap": Kind(partial(bb.BootstrapRidgeTS, replicates=10, n_lams=3, folds=2)),
        "tree": Kind(partial(bb.PolicyTreeTS, least=5)),
        "mixture": Kind(partial(bb.ILTCB, rewards=(-99.0, 99.0))),
        "levels": Kind(bb.SuperLinUCB),
        "conjugate": Kind(_own(bb.load_model("gamma_poisson")), d=0),
        "tables": Kind(_of_tables),
        "residual": Kind(_own(bb.Ridge(), bb.TopTwo(0.3), bb.ResidualBalance())),
        "kernel": Kind(_own(bb.Ridge(), bb.Boltzmann(0.5), bb.KernelBalance())),
        "a balance of yours": Kind(_own(bb.Ridge(), balance=Loud())),
    }
)


def rewards(name: str, rng: np.random.Generator, shape: Any) -> np.ndarray:
    """Rewards that a kind's model may have seen."""
    if name == "NUTS" or name.endswith("Laplace"):
        return rng.integers(0, 2, size=shape).astype(float)
    if name.endswith("conjugate"):
        return rng.poisson(2.0, size=shape).astype(float)
    return np.asarray(rng.normal(size=shape))


def contexts(bandit: bb.Bandit, rng: np.random.Generator, n: int) -> Any:
    """Contexts (n, d) of a bandit, (n, K, d) where each of its arms of now has a row, or a table of
    n rows."""
    if bandit.encoder is not None:
        return FRAME.iloc[rng.integers(len(FRAME), size=n)].reset_index(drop=True)
    arms = (len(bandit.arms),) if bandit.of_arms else ()
    return rng.normal(size=(n, *arms, bandit.n_features))
