"""Gibbs sampling of generalised linear models whose coefficients have scales to be learned, as a
hierarchy has, or a prior that is a scale mixture: Laplace, Student-t, horseshoe; or whose
dispersion α is to be learned, of negative binomial rewards.

Given its auxiliary variables, a reward is a normal observation of its linear predictor: the model
is the working model with these observations. So each sweep draws them again, and then the
coefficients and the scales as those of any conditionally Gaussian model, with the same joint moves
(`gibbs/generic`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from pytensor.graph.traversal import ancestors
from scipy.special import ndtr, ndtri

from bayesbandit.inference.base import NotThisEngine, matching, refuse
from bayesbandit.inference.draws import SampledDraws
from bayesbandit.inference.gibbs.blocks import Blocks, blocks, depends_on
from bayesbandit.inference.gibbs.generic import Problem, Reading, Sweep, problem
from bayesbandit.inference.gibbs.layout import Layout
from bayesbandit.inference.gibbs.sampler import ENGINE, TUNE, TUNE_WARM, Gibbs, Position, streams
from bayesbandit.inference.glm import augmented
from bayesbandit.inference.glm.augmented import check_counts, mixture
from bayesbandit.inference.glm.link import Dispersed, Link, link, working
from bayesbandit.inference.graph_analysis.quadratic import Data, Quadratic
from bayesbandit.inference.graph_analysis.recognise import Form, features, trial
from bayesbandit.kernels.algebra.cholesky import padded
from bayesbandit.kernels.gibbs import orbits
from bayesbandit.kernels.gibbs.monomials import MonomialState, Terms, Work, weigh, workspace
from bayesbandit.kernels.gibbs.orbits import Moves
from bayesbandit.kernels.glm import augmentation, dispersion
from bayesbandit.kernels.glm.families import NEGATIVE_BINOMIAL, POISSON, PROBIT
from bayesbandit.runtime.one_thread import one_thread

if TYPE_CHECKING:
    import pymc as pm

UNLIKELY = 20.0  # a log density below the mode's, beside D: draws hardly ever are there
NOTHING = 1e-200  # a weight that leaves sums as they are, where 0 would leave terms out


class Observations:
    """Normal observations of linear predictors ψ = A δ + offset (n,), new ones for each sweep.

    terms: of the layout, which these observations enter by their statistics. base: the statistics
    to which they are added, of a prior of many coefficients together.
    """

    def __init__(self, layout: Layout, A: np.ndarray, offset: np.ndarray) -> None:
        self.A, self.offset = A, offset + A @ layout.centre
        self.base = layout.terms.groups[0].copy()
        groups = np.zeros_like(layout.terms.groups)
        self.terms: Terms = layout.terms._replace(groups=groups, group_rest=np.zeros(1))


class PolyaGamma(Observations):
    """Those of logistic and binomial rewards, given ω ~ PG(shape, ψ)."""

    def __init__(
        self, whole: Problem, A: np.ndarray, b: np.ndarray, link: Link, data: Data
    ) -> None:
        self.shape, kappa, b = mixture(link.family, data[1], link.weights(data), b)
        super().__init__(whole.layout, A, b)
        n, D = A.shape
        self.wide = np.zeros((n, self.base.shape[1]))
        self.base[:D, padded(D)] -= 0.5 * A.T @ kappa
        self.wide[:, :D], self.wide[:, padded(D)] = A, -self.offset

    @cached_property
    def sweep(self) -> Sweep:
        """Sweeps with new observations before each."""
        room = np.zeros(self.wide.shape)
        return partial(augmentation.sweep, self.wide, room, self.shape, self.base, self.terms)


class NegativeBinomial(Observations):
    """Those of negative binomial rewards, and the draws of their dispersion if it is learned.

    A sweep draws it given η alone, then ω ~ PG(w (r + α), η − log α), and all else given both.
    """

    def __init__(
        self, whole: Problem, A: np.ndarray, b: np.ndarray, link: Link, data: Data
    ) -> None:
        super().__init__(whole.layout, A, b)
        weight, terms = link.weights(data), self.terms
        element, constant, power, low, high = -1, math.log(link.family.number), 0.0, 0.0, 0.0
        if isinstance(link, Dispersed):
            element, constant, power = int(whole.places[link.name]), link.shift, link.power
            low, high = float(terms.low[element]), float(terms.high[element])
        self.terms = terms._replace(low=terms.low.copy(), high=terms.high.copy())
        n, D = A.shape
        self.wide = np.zeros((n, self.base.shape[1]))
        self.wide[:, :D] = A
        shift = 0.25 * A.T @ np.column_stack([-weight * data[1], weight])
        shift[:, 0] += self.base[:D, padded(D)]
        self.learned = dispersion.Dispersion(
            element,
            constant,
            power,
            low,
            high,
            float(weight @ (data[1] > 0.0)),
            dispersion.counted(data[1], weight),
            self.offset,
            self.base.copy(),
            shift,
        )

    def begin(self, whole: Problem, state: Position) -> Position:
        """Return a state, or one with coefficients that fit log(r + ½) if these are much likelier,
        given the other variables: chains of large counts hardly move from afar."""
        (reward, weight, *_), (theta, u) = self.learned.counts, whole.flat(state)
        u = whole.inside(u)
        precision, shift = whole.natural(u)
        power = weight * (reward + 0.5) / (reward + 1.5)  # Fisher's of η, at α = 1
        precision += (self.A.T * power) @ self.A
        shift += self.A.T @ (power * (np.log(reward + 0.5) - self.offset))
        near, centre = np.linalg.solve(precision, shift), whole.layout.centre
        likelier = self.log_density(near, u) - self.log_density(theta - centre, u)
        return state if likelier < len(near) + UNLIKELY else whole.named(near + centre, u)

    def log_density(self, delta: np.ndarray, u: np.ndarray) -> float:
        """Return the log density of δ (D,) given u, but for a constant."""
        i, state, work = (
            self.learned.element,
            MonomialState(delta, u),
            workspace(self.terms, len(delta)),
        )
        log_alpha = self.learned.constant + (self.learned.power * u[i] if i >= 0 else 0.0)
        weigh(self.terms, u, work.phi)
        return float(
            dispersion.log_density(self.wide, self.terms, self.learned, log_alpha, state, work)
        )

    @cached_property
    def sweep(self) -> Sweep:
        """Sweeps with a new dispersion and new observations before each."""
        room, shape = np.zeros(self.wide.shape), np.zeros(len(self.wide))
        fixed = self.wide, room, shape, self.base, self.learned, self.terms
        return partial(dispersion.sweep, *fixed)


class Latent(Observations):
    """Those of probit rewards: y ~ N(ψ, 1), positive where the reward is 1, for each time that a
    row was seen."""

    def __init__(
        self, whole: Problem, A: np.ndarray, b: np.ndarray, link: Link, data: Data
    ) -> None:
        self.count = link.weights(data)
        check_counts(self.count)
        self.row = np.repeat(np.arange(len(b)), self.count.astype(np.int64))
        self.sign = np.where(data[1] > 0.5, 1.0, -1.0)[self.row]
        super().__init__(whole.layout, A, b)

    def sweep(
        self,
        moves: Moves,
        state: MonomialState,
        work: Work,
        delta: np.ndarray,
        u: np.ndarray,
        kept: np.ndarray,
        tune: int,
        rng: np.random.Generator,
    ) -> int:
        """Sweep with new observations before each."""
        for s in range(-tune, len(delta)):
            self.observe(state.delta, rng)
            at = slice(max(s, 0), max(s, 0) + 1)
            wrong = orbits.sweep(self.terms, moves, state, work, delta[at], u[at], kept, 0, rng)
            if wrong >= 0:
                return int(wrong)
        return -1

    def observe(self, delta: np.ndarray, rng: np.random.Generator) -> None:
        """Draw the observations given δ."""
        psi = (self.A @ delta + self.offset)[self.row]
        below = rng.uniform(size=len(psi)) * ndtr(self.sign * psi)
        y = psi - self.sign * ndtri(np.maximum(below, np.finfo(np.float64).tiny))
        total = np.bincount(self.row, y, len(self.offset))
        D, group = self.A.shape[1], self.terms.groups[0]
        group[:] = self.base
        group[:D, :D] -= 0.5 * (self.A.T * self.count) @ self.A
        group[:D, padded(D)] -= 0.5 * self.A.T @ (total - self.count * self.offset)


class ScaleMixture:
    """A generalised linear model whose coefficients and their scales are drawn in turn.

    block: the sampler of the working model. names, shapes: the declared variables.
    """

    engine = ENGINE

    def __init__(self, link: Link, block: Gibbs) -> None:
        self.link, self.block = link, block
        self.names, self.shapes, self.all_shapes = block.names, block.shapes, block.all_shapes

    @property
    def alone(self) -> bool:
        """Whether no positive variable is to be learned but a dispersion."""
        given = (self.link.name,) if isinstance(self.link, Dispersed) else ()
        return self.block.reading.rest == given

    def sample(
        self,
        data: Mapping[str, np.ndarray],
        draws: int = 1000,
        chains: int = 4,
        tune: int | None = None,
        seed: int | np.random.SeedSequence = 0,
        start: Sequence[Position] | None = None,
    ) -> SampledDraws:
        """Return draws of the declared variables given rows x (n, d), reward, weight, arm (n,), by
        role.

        start: states, such as `SampledDraws.state` of an earlier run on these or on other rows;
        without it, random ones.
        """
        rows, block = self.block.data(**data), self.block
        if tune is None:
            cold = augmented.TUNE if self.alone else TUNE
            tune = cold if start is None else TUNE_WARM
        kept: list[Position] = []
        last: list[Position] = []
        with one_thread():
            self.link.check(rows)
            whole = worked(block.reading, rows)
            A, b = block.mean_map(rows)
            for i, stream in enumerate(streams(seed, chains)):
                rng = np.random.default_rng(stream)
                state = (
                    block.resumed(start[i % len(start)], rows) if start else block.start(rows, rng)
                )
                observations = observed(whole, A, b, self.link, rows)
                if isinstance(observations, NegativeBinomial):
                    state = observations.begin(whole, state)
                values, state = whole.sample(
                    state, draws, tune, rng, self.names, observations.sweep
                )
                kept.append(values)
                last.append(state)
            whole.check(last[0], np.random.default_rng(0))
            eta = A @ whole.flat(last[0])[0] + b
            self.link.check(rows, eta)
            if isinstance(self.link, Dispersed):
                self.link.check_alphas(rows, eta, ends(self.link, last))
        return SampledDraws({k: np.stack([v[k] for v in kept]) for k in self.names}, state=last)


def observed(
    whole: Problem, A: np.ndarray, b: np.ndarray, link: Link, rows: Data
) -> PolyaGamma | NegativeBinomial | Latent:
    """Return the normal observations of rows with η = A θ + b."""
    if link.family.kind == NEGATIVE_BINOMIAL:
        return NegativeBinomial(whole, A, b, link, rows)
    return (Latent if link.family.kind == PROBIT else PolyaGamma)(whole, A, b, link, rows)


def worked(reading: Reading, data: Data) -> Problem:
    """Return the working model of rows of next to no weight, laid out for `Observations`.

    Without rows it is of one, which stands for a group of none.
    """
    x, _, _, arm = data
    if not len(x):
        x, arm = np.ones((1, x.shape[1])), np.zeros(1, dtype=np.int64)
    whole = problem(reading, (x, np.zeros(len(x)), np.full(len(x), NOTHING), arm))
    dense = whole.layout.dense.powers
    if len(whole.layout.terms.groups) != 1 or dense.exponent.any():
        raise refuse(ENGINE, "a prior of many coefficients together, whose scale is to be learned")
    return whole


def ends(link: Dispersed, last: Sequence[Position]) -> list[float]:
    """Return the least and the largest dispersion at which chains ended, within those at which
    PyMC's densities have digits."""
    alpha = link.alpha(np.array([state[link.name] for state in last]))
    return [float(v) for v in np.clip([alpha.min(), alpha.max()], 1e-6, 1e6)]


def check_proper(apart: Blocks, quadratic: Quadratic) -> None:
    """Refuse a prior that is improper: rewards may leave it so, as those that all are 1."""
    for term in apart.density.terms:
        if term.label.endswith(("~ Flat", "~ HalfFlat")):
            raise refuse(ENGINE, f"{term.label}: improper")
    middle = {k: 0.5 * (low + min(high, low + 2.0)) for k, (low, high) in apart.between.items()}
    given = [np.full(v.type.shape, middle.get(str(v.name), 1.0)) for v in quadratic.given]
    precision = quadratic.prior(given).precision
    if not (np.isfinite(precision).all() and np.linalg.eigvalsh(precision)[0] > 0.0):
        raise refuse(ENGINE, "the coefficients' prior is improper")


def linked_by(apart: Blocks) -> Link:
    """Return the likelihood: with a dispersion to be learned, if it depends on just one scalar
    beside the block, and is such a one."""
    density = apart.density
    behind = set(ancestors([term.graph for term in density.terms if term.on_data]))
    given = [k for k in apart.rest if density.values[k] in behind]
    if len(given) == 1 and density.values[given[0]].type.ndim == 0:
        try:
            return link(density, ENGINE, given)
        except NotThisEngine:  # the reason below says what it depends on
            pass
    return link(density, ENGINE)


@matching
def match(model: pm.Model) -> ScaleMixture:
    """Return the sampler of a built model that is a generalised linear one, given its scales."""
    apart = blocks(model)
    if apart.by_row:
        raise refuse(ENGINE, f"'{apart.by_row[0]}': one value for each row")
    linked = linked_by(apart)
    if linked.family.kind == POISSON:
        raise refuse(ENGINE, "a Poisson likelihood is no known mixture of normals")
    if names := depends_on(linked.cut.node, apart.density, apart.rest):
        raise refuse(ENGINE, f"the linear predictor depends on {names} beside its coefficients")
    density = working(linked.cut)
    quadratic = Quadratic(density, ENGINE, given=apart.rest)
    check_proper(apart, quadratic)
    reading = Reading(density, apart.rest, ENGINE, apart.between)
    data = density.own
    arm = data.get("arm", np.zeros(len(data["x"]), dtype=np.int64))
    worked(reading, (data["x"], data["reward"], data["weight"], arm))
    form = Form("", False, features(quadratic), None, trial(density))
    return ScaleMixture(linked, Gibbs(quadratic, form, reading, apart.auxiliary, ()))
