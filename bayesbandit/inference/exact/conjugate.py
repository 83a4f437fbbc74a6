"""The exact engine for one probability or one rate: the posterior is beta or gamma.

Let v be the one variable. Its log density at given rows is a beta's or a gamma's,

    log p(v) = c + α log v + β log(1 − v)        v ~ Beta(α + 1, β + 1), 0 < v < 1
    log p(v) = c + α log v − β v                 v ~ Gamma(α + 1, β), v > 0

if and only if its slope, times v(1 − v) or v, is affine in v: α − (α + β) v or α − β v. Two values
of v give α and β. If the density is analytic in v, a third value that agrees proves the identity
(two analytic functions that agree at random points are one).

Bernoulli rewards r add w r to α and w (1 − r) to β, Poisson ones w r and w: but what rows add is
read off the model's own density of them, whatever their likelihood is. So Poisson counts of an
exposure x add w r and w x, exponential times w and w r.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from bayesbandit.checks import Array
from bayesbandit.declaring.observed import made_whole
from bayesbandit.forms import picked
from bayesbandit.inference.base import (
    Improper,
    NotFinite,
    NotThisEngine,
    improper,
    matching,
    refuse,
)
from bayesbandit.inference.draws import Rows
from bayesbandit.inference.exact.beta_gamma import OneNumber
from bayesbandit.inference.graph_analysis.degrees import Analytic, Degrees
from bayesbandit.inference.graph_analysis.density import (
    Density,
    Term,
    containers,
    distribution,
    read,
)
from bayesbandit.inference.graph_analysis.eligibility import check_eligible, check_on_own_rows
from bayesbandit.inference.graph_analysis.operations import (
    elementwise_name,
    operands,
)
from bayesbandit.inference.graph_analysis.quadratic import gradient
from bayesbandit.inference.graph_analysis.rows import not_additive
from bayesbandit.inference.graph_analysis.transforms import ends
from bayesbandit.inference.pymc_model.of_draws import OfDraws
from bayesbandit.kernels.conjugate.families import is_possible
from bayesbandit.runtime.compiling import interpreted

if TYPE_CHECKING:
    import pymc as pm

ENGINE = "conjugate"
IDENTITY_TOLERANCE = 1e-9  # relative, of identities that are tested at points
BETA_POINTS = np.array([0.5, 0.25, 0.7, 0.05])  # values of a probability that are tested
GAMMA_POINTS = np.array([1.0, 2.0, 0.3, 7.0])  # and of a rate
TO_WHOLE = {"Floor", "Ceil", "Trunc", "RoundHalfToEven", "Cast"}

# rewards that are tested
TESTED_COUNTS = np.array([0.0, 1.0, 2.0, 3.0, 11.0, 1e3, 1e6, -1.0, -2.0, -1e3])
TESTED_REWARDS = np.array([*TESTED_COUNTS, 0.5, 1.5, 0.1, 100.3, -0.5, -7.3])


def refused(reason: str, of_rows: bool = False) -> NotThisEngine:
    """Return the refusal of a model that is not conjugate."""
    return refuse(ENGINE, reason, of_rows)


def one_variable(model: pm.Model) -> tuple[Variable, float]:
    """Return the one free variable, a number, and the upper bound of its support, whose lower one
    is 0."""
    if len(model.free_RVs) > 1:
        two = " and ".join(f"'{v.name}' ~ {distribution(v)}" for v in model.free_RVs[:2])
        raise refused(f"{two}: more than one variable")
    check_eligible(model, ENGINE, unsuited=lambda *_: "")
    [v] = model.free_RVs
    label = f"'{v.name}' ~ {distribution(v)}"
    if "arm" in containers(model):
        raise refused(f"{label}: the arms share the model")
    if v.type.ndim:
        raise refused(f"{label}: not a scalar")
    low, high = ends(v, model.rvs_to_transforms[v])
    # a variable on (0, 5) is no beta: its log density has log(5 − v)
    if low != 0.0 or high not in (1.0, math.inf):
        raise refused(f"{label}: its support is not (0, 1) or (0, ∞)")
    return v, high


def analytic(
    graphs: Sequence[Variable], value: Variable, upper: float, rows: Sequence[Variable] = ()
) -> Analytic:
    """Return the analysis of graphs in one positive variable v, and perhaps in rows."""
    positive = [value, *(v for v in rows if v.name != "x")]
    return Analytic(graphs, dict.fromkeys([value, *rows], 1.0), positive, {value: (0.0, upper)})


def told_by_random_rows(
    graphs: Sequence[Variable], value: Variable, upper: float, rows: Sequence[Variable]
) -> bool:
    """Return whether what holds of graphs in v and in rows at random ones holds at all: they are
    analytic, and affine in the contexts, for a sigmoid of one may be another number far away."""
    known = analytic(graphs, value, upper, rows)
    affine = Degrees(graphs, {v: 1.0 for v in rows if v.name == "x"})
    return all(known.of(graph) <= 1 and affine.of(graph) <= 1 for graph in graphs)


def of_whole(graphs: Sequence[Variable], reward: Variable) -> list[Variable]:
    """Return graphs of whole rewards, without functions that change no whole number."""

    def is_reward(v: Variable) -> bool:
        if elementwise_name(v) not in TO_WHOLE or v.type.dtype not in ("int64", "float64"):
            return v is reward
        return is_reward(operands(v)[0])

    same = {v: reward for v in ancestors(graphs) if is_reward(v)}
    return list(clone_replace(graphs, same, rebuild_strict=False))


class ConjugateEngine:
    """A model of one probability or rate, and how to compute its posterior.

    name: the variable's. upper: the upper bound of its support. is_beta: whether it is a
    probability. itself: whether the mean reward is the variable itself. whole: whether rewards have
    a likelihood at whole numbers alone. adds_up: whether the mean reward is the variable, and each
    row adds w r to α and w (1 − r) or w to β.
    """

    engine = ENGINE

    def __init__(self, density: Density, name: str, upper: float, whole: bool) -> None:
        self.density = density
        self.name = name
        self.upper = upper
        self.is_beta = upper == 1.0
        self.points = BETA_POINTS if self.is_beta else GAMMA_POINTS
        self._value = value = density.values[name]
        graphs = [term.graph for term in density.terms]
        known = analytic(graphs, value, upper)
        for term in density.terms:
            if why := known.fault(term.graph, most=1):
                raise refused(f"{term.label}: {why}")
        # rows are summed in the graph: α, β and c are those of all together
        values = [pt.sum(graph) for graph in graphs]
        slopes = [gradient(v, value) for v in values]
        self._at = OfDraws([*values, *slopes], {name: value}, density.inputs)
        self._prior = self._sum(self._rows(np.ones(0)), on_data=False)
        self.itself = self._mean_is_value()
        self.whole = whole or self.is_beta
        tested = TESTED_COUNTS if whole else TESTED_REWARDS
        self.adds_up = self.itself and self._adds_up(tested)

    @property
    def streams(self) -> bool:
        """Whether rows may come one by one."""
        return self.adds_up and self.proper_prior is not None

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
        """Return the posterior given rows x (n, d), reward and weight (n,).

        Rows on which a term has another form are refused (`_coefficients`).
        """
        data = self._rows(np.asarray(reward, dtype=np.float64), x, weight)
        # c, α and β of prior and rows add up, as log densities do
        sums = self._prior + self._sum(data, on_data=True)
        found = self.distribution(sums)
        return replace(found, log_evidence=float(sums[0]) + found.log_volume)

    def distribution(self, sums: Array) -> OneNumber:
        """Return the distribution of c, α and β; refused where there is none."""
        constant, alpha, beta = sums.tolist()
        if not math.isfinite(constant):
            raise NotFinite(f"the log density of the rows is not finite; got {constant}")
        # proper if both exponents are above −1: a, b > 0
        found = OneNumber(self.name, self.is_beta, alpha + 1.0, beta + self.is_beta)
        if not (0.0 < found.a < math.inf and 0.0 < found.b < math.inf):
            label = self.density.label(self.name)
            kind = "beta" if self.is_beta else "gamma"
            raise improper(ENGINE, f"{label}: improper, {kind} of ({found.a:g}, {found.b:g})")
        return found

    # ---- evaluation ------------------------------------------------------------------------------

    def _rows(self, reward: Array, x: Array | None = None, weight: Array | None = None) -> Rows:
        """Return rows by role; contexts and weights are 1 unless given."""
        n = len(reward)
        x = np.ones((n, self.density.n_features)) if x is None else x
        weight = np.ones(n) if weight is None else weight
        return {"x": x, "reward": reward, "weight": weight, "arm": np.zeros(n)}

    def _values(self, points: Array, data: Rows) -> tuple[Array, Array]:
        """Return the log densities of all terms, and their slopes, at values (S,): (terms, S)."""
        found = self._at({self.name: points}, data)
        values, slopes = np.stack([v + 0.0 * points for v in found]).reshape(2, -1, len(points))
        return values, slopes

    def _sum(self, data: Rows, on_data: bool) -> Array:
        """Return the sums (3,) of c, α and β of the terms of the likelihood, or of the prior."""
        values, slopes = self._values(self.points, data)
        each = zip(self.density.terms, values, slopes, strict=True)
        mine = [self._coefficients(*one) for one in each if one[0].on_data == on_data]
        return np.sum([np.zeros(3), *mine], axis=0)

    def _coefficients(self, term: Term, value: Array, slope: Array) -> Array:
        """Return c, α and β of a term's log density from its values and slopes (S,) at points."""
        v = self.points
        beta = self.is_beta
        # α log v + β log(1 − v) has the slope α/v − β/(1 − v), α log v − βv has α/v − β: so h is
        # α − τv with τ = α + β or β, known from two points and tested at the others
        h = slope * v * (1.0 - v) if beta else slope * v  # = α − τ v
        tau = (h[0] - h[1]) / (v[1] - v[0])
        alpha = h[0] + tau * v[0]
        off = np.abs(h - (alpha - tau * v)).max()
        finite = np.isfinite(value)
        if finite.any() and not (finite.all() and off <= IDENTITY_TOLERANCE * np.abs(h).max()):
            form = f"log(1 − {self.name})" if beta else self.name
            raise refused(f"{term.label}: not affine in log {self.name} and {form}")
        last = tau - alpha if beta else tau
        # what α log v and the other term leave of a value is c
        kernel = alpha * math.log(v[0]) + last * (math.log1p(-v[0]) if beta else -v[0])
        return np.array([value[0] - kernel, alpha, last])

    # ---- rows one by one -------------------------------------------------------------------------

    def _mean_is_value(self) -> bool:
        """Return whether the mean reward is the variable itself, whatever the row."""
        inputs = list(self.density.inputs.values())
        mean = self.density.mean
        if not told_by_random_rows([mean], self._value, self.upper, inputs):
            return False
        points = self.points
        at = OfDraws([mean], {self.name: self._value}, self.density.inputs)
        [means] = at({self.name: points}, self._random(TESTED_COUNTS))
        return bool(np.isclose(means, points[:, None], rtol=1e-12, atol=0.0).all())

    def _random(self, reward: Array) -> Rows:
        """Return rows with random contexts, and with random weights where these have a use."""
        rng = np.random.default_rng(0)
        x = np.exp(rng.normal(size=(len(reward), self.density.n_features)))
        weighted = self.density.inputs.get("weight") in set(ancestors(self._likelihood))
        # weights other than 1: at 1 a weight, its square and no weight are the same
        return self._rows(reward, x, rng.uniform(0.5, 2.0, len(reward)) if weighted else None)

    @property
    def _likelihood(self) -> list[Variable]:
        return [term.graph for term in self.density.terms if term.on_data]

    def excludes(self, reward: Array) -> Array:
        """Return which of some rewards (n,) have no likelihood."""
        return np.logical_not(interpreted(is_possible)(reward, self.is_beta, self.whole))

    def _adds_up(self, tested: Array) -> bool:
        """Return whether each reward adds w r to α, and w (1 − r) or w to β; set `whole`. tested:
        rewards (m,).

        Random contexts and weights prove it for all. Of a probability both rewards are tested; of a
        rate the density is analytic in the reward, too.
        """
        binary = self.is_beta
        reward = self.density.inputs["reward"]
        data = self._random(tested)
        each = [picked(data, [i]) for i in range(len(tested))]
        # one row at a time: what each reward adds by itself
        constant, *added = np.array([self._sum(one, on_data=True) for one in each]).T
        # a reward of likelihood 0 has log p = −∞ at every v, and so c = −∞
        possible = np.isfinite(constant)
        # of densities on the reals ½ is possible, of counts it is not
        self.whole = self.whole or not possible[tested == 0.5].any()
        # a reward adds w r to α, and w (1 − r) or w to β
        wanted = data["weight"] * [tested, 1.0 - tested if binary else np.ones(len(tested))]
        close = np.isclose(added, wanted, rtol=IDENTITY_TOLERANCE, atol=IDENTITY_TOLERANCE)
        if not close[:, possible].all() or (possible == self.excludes(tested)).any():
            return False
        rows = [v for v in self.density.inputs.values() if v is not reward or not binary]
        graphs = of_whole(self._likelihood, reward) if self.whole else self._likelihood
        return told_by_random_rows(graphs, self._value, self.upper, rows)


@matching
def match(model: pm.Model) -> ConjugateEngine:
    """Return the conjugate engine of a built model."""
    variable, upper = one_variable(model)
    density = read(model)
    if why := not_additive(density):
        raise refused(why)
    whole = any(made_whole(model))
    engine = ConjugateEngine(density, str(variable.name), upper, whole)
    check_on_own_rows(engine, density, ENGINE)
    return engine
