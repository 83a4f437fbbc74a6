"""The exact engine for one probability or one rate: the posterior is beta or gamma.

Recognised from the declaration's log density, which must be affine in v, log v and log(1 − v)
(`exponents.py`), v the one variable, which the mean reward is, or is computed of:

    log p(v) = c + (a − 1) log v + (b − 1) log(1 − v)        v ~ Beta(a, b)
    log p(v) = c + (a − 1) log v − b v                       v ~ Gamma(a, b)

Bernoulli rewards r add w r to a and w (1 − r) to b, Poisson ones w r and w: but what rows add is
read off the model's own density of them, whatever their likelihood is. So Poisson counts of an
exposure x add w r and w x, exponential times w and w r.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors

from bayesbandit.inference.base import (
    Compiled,
    Improper,
    NotFinite,
    NotThisEngine,
    improper,
    matching,
    refuse,
)
from bayesbandit.inference.exact.beta_gamma import Beta, Gamma, OneNumber
from bayesbandit.inference.exact.exponents import (
    Coefficients,
    Exponents,
    possible,
    read_coefficients,
)
from bayesbandit.inference.exact.reward_support import RewardSupport, telling, uncast
from bayesbandit.inference.graph_analysis.degrees import Degrees
from bayesbandit.inference.graph_analysis.density import (
    Density,
    Term,
    containers,
    distribution,
    read,
)
from bayesbandit.inference.graph_analysis.dependence import depends_on
from bayesbandit.inference.graph_analysis.quadratic import PYTHON, Data, total
from bayesbandit.inference.graph_analysis.recognise import (
    differs,
    not_additive,
    positive,
    simplified,
)
from bayesbandit.inference.graph_analysis.scaling import Scaling
from bayesbandit.inference.graph_analysis.transforms import ends

if TYPE_CHECKING:
    import pymc as pm

Array = np.ndarray
ENGINE = "conjugate"


def refused(reason: str, of_rows: bool = False) -> NotThisEngine:
    """Return the refusal of a model that is not conjugate."""
    return refuse(ENGINE, reason, of_rows)


def one_variable(model: pm.Model) -> tuple[Variable, float]:
    """Return the one free variable, a number, and the upper bound of its support, whose lower one
    is 0."""
    if not model.free_RVs:
        raise refused("the model has no free variable")
    if len(model.free_RVs) > 1:
        two = " and ".join(f"'{v.name}' ~ {distribution(v)}" for v in model.free_RVs[:2])
        raise refused(f"{two}: more than one variable")
    [v] = model.free_RVs
    if "arm" in containers(model):
        raise refused(f"'{v.name}' ~ {distribution(v)}: the arms share the model")
    label = f"'{v.name}' ~ {distribution(v)}"
    if not str(v.dtype).startswith("float"):
        raise refused(f"{label}: discrete")
    if v.type.ndim:
        raise refused(f"{label}: not a scalar")
    if np.isnan(containers(model)["reward"].get_value(borrow=True)).any():
        raise refused("missing rewards")
    low, high = ends(v, model.rvs_to_transforms[v])
    if low != 0.0 or high not in (1.0, math.inf):
        raise refused(f"{label}: its support is not (0, 1) or (0, ∞)")
    return v, high


def mean_is(density: Density, value: Variable) -> bool:
    """Return whether the mean reward is the variable itself, whatever the row."""
    if depends_on([density.mean], density.inputs):
        return False
    if Degrees([density.mean], {value: 1.0}).of(density.mean) > 1:
        return False
    mean_of = Compiled([value, *density.inputs.values()], [density.mean], PYTHON)
    ones = np.ones(2)
    rows = density.arguments((np.ones((2, density.n_features)), ones, ones, np.zeros(2, np.int64)))
    return all((mean_of(np.array(v), *rows)[0] == v).all() for v in (0.0, 1.0))


FAMILIES = {1.0: Beta, math.inf: Gamma}  # by the upper bound of the support
INSIDE = 1e-200, 1.0 - 1e-9  # where log v and log(1 − v) keep their digits


class ConjugateEngine:
    """A model of one probability or rate, and how to compute its posterior.

    name: the variable's. family: `Beta` or `Gamma`. itself: whether the mean reward is the variable
    itself. reward_support: which rewards have a likelihood, where it is, and rows may come one by
    one, each adding w r to a and w (1 − r) or w to b; else None.
    """

    engine = ENGINE

    def __init__(self, density: Density, name: str, upper: float, whole: bool) -> None:
        self.density, self.name, self.family = density, name, FAMILIES[upper]
        self.itself = mean_is(density, density.values[name])
        self.n_features, self.n_arms = density.n_features, density.n_arms
        value = density.values[name]
        terms = [[t for t in density.terms if t.on_data == k] for k in (False, True)]
        totals = [total([t.graph for t in part]) for part in terms]
        self.exponents = exponents = Exponents(totals, value, upper)
        for part, graph in zip(terms, exponents.graphs, strict=True):
            if why := exponents.fault(graph):
                raise refused(f"{_blamed(part, value, upper).label}: {why}")
        self._inputs = list(density.inputs.values())
        self._coefficients = exponents.compiled(self._inputs, exponents.graphs[1:])
        self._whole_density = _on_points(totals, value, self._inputs)
        prior = exponents.compiled([], exponents.graphs[:1])
        self._prior = read_coefficients(prior, [])[0]
        self.reward_support = self._reward_support(whole) if self.itself else None

    def likelihood(self, data: Data) -> Coefficients:
        """Return what rows add to the log density."""
        return read_coefficients(self._coefficients, self.density.arguments(data))[0]

    @property
    def affine(self) -> bool:
        """Whether the mean reward is known as A θ + b: it is the variable itself."""
        return False

    @property
    def streams(self) -> bool:
        """Whether rows may come one by one."""
        return self.reward_support is not None and self.proper_prior is not None

    @property
    def proper_prior(self) -> OneNumber | None:
        """The distribution before any rows; None where it is improper."""
        try:
            return self.distribution(self._prior)
        except Improper:
            return None

    def posterior(
        self, x: Array, reward: Array, weight: Array | None = None, arm: Array | None = None
    ) -> OneNumber:
        """Return the posterior given rows x (n, d), reward and weight (n,), if it is `checked`."""
        n = len(x)
        data = (
            np.ascontiguousarray(x, dtype=np.float64),
            np.asarray(reward, dtype=np.float64),
            np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64),
            np.zeros(n, dtype=np.int64),
        )
        rows = self.likelihood(data)
        known = self.distribution(self._prior + rows)
        self.checked(known, data)
        constant, prior = self._prior.constant, self.proper_prior
        if prior is not None and abs(constant + prior.log_volume) <= 1e-5 * (1.0 + abs(constant)):
            constant = -prior.log_volume  # PyMC's own may be of single precision
        return replace(known, log_evidence=constant + rows.constant + known.log_volume)

    def checked(self, known: OneNumber, data: Data) -> None:
        """Run the identity test: at some v from the middle and the tails, the model's own log
        density of these rows is that of `known`, to rounding or to 1e-5."""
        points = known.distribution.ppf([0.5, 1e-4, 1.0 - 1e-4])
        points = np.array([0.3, *points, 0.7])
        inside = (points > INSIDE[0]) & ((points < INSIDE[1]) | (self.family is Gamma))
        points = points[inside & np.isfinite(points)]
        [values] = self._whole_density(points, *self.density.arguments(data))
        if not np.isfinite(values).all():
            raise NotFinite(f"the log density of the rows is not finite; got {values[0]}")
        closed = known.log_kernel(points)
        if why := differs(values, closed):
            raise refused(why, True)

    def distribution(self, sums: Coefficients) -> OneNumber:
        """Return the distribution that has these coefficients; refused where there is none."""
        if not math.isfinite(sums.constant):
            raise NotFinite(f"the log density of the rows is not finite; got {sums.constant}")
        a = sums.log + 1.0
        b = sums.log1m + 1.0 if self.family is Beta else -sums.slope
        if self.family is Beta and sums.slope != 0.0:
            raise refused(f"'{self.name}': a power of exp(v) beside those of a conjugate prior")
        if not (0.0 < a < math.inf and 0.0 < b < math.inf):
            label = self.density.label(self.name)
            kind = self.family.__name__.lower()
            raise improper(ENGINE, f"{label}: improper, {kind} of ({a:g}, {b:g})")
        return self.family(self.name, a, b)

    def _reward_support(self, whole: bool) -> RewardSupport | None:
        """Return which rewards have a likelihood, if it is proved that each adds w r to a, and w (1
        − r) or w to b."""
        inputs, binary = self.density.inputs, self.family is Beta
        reward = inputs["reward"]
        graphs = uncast(self.exponents.graphs[1:], reward) if whole else self.exponents.graphs[1:]
        [likelihood] = possible(graphs)
        slopes = simplified(*self.exponents.slopes(likelihood))
        roles = depends_on(slopes, inputs)
        if roles - {"reward", "weight"}:
            return None
        if "weight" in roles:
            scaling = Scaling(slopes, {inputs["weight"]: 1.0})
            if not all(scaling.degree(s) in (1.0, math.inf) for s in slopes):
                return None
        degrees = Degrees(slopes, {reward: 1.0})
        if not binary and any(degrees.of(s) > 1 for s in slopes):
            return None
        expected = (
            ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0)) if binary else ((-1.0, 0.0, 0.0), (-1.0, 1.0, 0.0))
        )
        for r, wanted in zip((0.0, 1.0), expected, strict=True):
            one = self._at(r)
            if (one.slope, one.log, one.log1m) != wanted or not math.isfinite(one.constant):
                return None
        at = telling(graphs, inputs, whole)
        finite = np.array([math.isfinite(self._at(r).constant) for r in at])
        support = RewardSupport(
            binary, binary or whole or not math.isfinite(self._at(0.5).constant)
        )
        return support if len(at) and (finite != support.excludes(at)).all() else None

    def _at(self, r: float) -> Coefficients:
        """Return what one row of this reward adds, of weight 1."""
        x = np.ones((1, self.density.n_features))
        return self.likelihood((x, np.array([r]), np.ones(1), np.zeros(1, dtype=np.int64)))


@matching
def match(model: pm.Model) -> ConjugateEngine:
    """Return the conjugate engine of a built model.

    An improper prior is accepted where the model's own rows make the posterior proper.
    """
    variable, upper = one_variable(model)
    density = read(model)
    if why := not_additive(density):
        raise refused(why)
    reward = containers(model)["reward"]
    whole = any(
        np.dtype(v.dtype).kind in "iub" and reward in ancestors([model.rvs_to_values[v]])
        for v in model.observed_RVs
    )
    engine, data = ConjugateEngine(density, str(variable.name), upper, whole), density.own
    try:
        engine.posterior(data["x"], data["reward"], data.get("weight"))
    except NotThisEngine:
        raise
    except NotFinite:
        pass
    except ValueError as error:  # a parameter out of its bounds, as an exposure of less than 0
        other = positive(density, len(data["x"]))
        try:
            engine.posterior(other["x"], np.ones(len(data["x"])), data.get("weight"))
        except ValueError:
            raise refused(str(error).splitlines()[0], True) from error
    return engine


def _on_points(totals: list[Variable], value: Variable, inputs: list[Variable]) -> Compiled:
    """Return the log density at several values v (S,), as a function of them and of rows."""
    many = pt.tensor(f"{value.name}s", shape=(None,), dtype="float64")
    vectorised = vectorize_graph([pt.add(*totals)], {value: many})
    return Compiled([many, *inputs], list(vectorised), PYTHON)


def _blamed(terms: list[Term], value: Variable, upper: float) -> Term:
    """Return the first of some terms that is not affine in the logarithms."""
    for term in terms:
        alone = Exponents([term.graph], value, upper)
        if alone.fault(alone.graphs[0]):
            return term
    return terms[0]
