"""Gibbs sampling of generalised linear models: logistic, probit and negative binomial ones.

Given its auxiliary variables, a reward is a normal observation of its linear predictor
(`kernels/glm/sweeps`): the model is the working model with these observations. So each sweep draws
them again, and then the coefficients and their scales as those of any conditionally Gaussian model,
with the same joint moves (`gibbs/problem`). The coefficients' prior is normal or a mixture of
normals, such as Laplace, Student-t and horseshoe; its scales are fixed or learned.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.forms import picked
from bayesbandit.inference.base import matching, refuse
from bayesbandit.inference.draws import Rows
from bayesbandit.inference.gaussian_block import GaussianBlock
from bayesbandit.inference.gibbs.blocks import Blocks, blocks
from bayesbandit.inference.gibbs.problem import Problem, Sweep, lay_out
from bayesbandit.inference.gibbs.reading import Reading
from bayesbandit.inference.gibbs.sampler import BURN_IN_SWEEPS, ENGINE, Gibbs, Position
from bayesbandit.inference.glm.families import Family
from bayesbandit.inference.glm.link import Link, working
from bayesbandit.inference.graph_analysis.degrees import depends_on
from bayesbandit.kernels.algebra.cholesky import padded
from bayesbandit.kernels.glm import sweeps
from bayesbandit.kernels.glm.families import NEGATIVE_BINOMIAL, POISSON, PROBIT

if TYPE_CHECKING:
    import pymc as pm

TUNE_COEFFICIENTS = 200  # sweeps before the draws, where there are no scales to be learned
MAX_PROBIT_WEIGHT = 1000.0  # a probit reward has as many latent variables
NO_WEIGHT = 1e-100  # a weight that leaves sums as they are, where 0 would leave terms out


def check_counts(weight: Array) -> None:
    """Refuse weights (n,) of probit rewards that do not say how often a row was seen."""
    if (odd := (weight != np.floor(weight)) | (weight > MAX_PROBIT_WEIGHT)).any():
        reason = (
            "the likelihood of a probit reward is a mixture of normals where its weight is "
            f"a whole number, at most {MAX_PROBIT_WEIGHT:g}; got {weight[odd][0]:g}"
        )
        raise refuse(ENGINE, reason, of_rows=True)


def mixture(family: Family, reward: Array, weight: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return shape, κ and offset (n,) of rows with η = Aθ + b: a row's likelihood is e^{κψ} E
    exp(−ωψ²/2) with ω ~ PG(shape, 0) and ψ = Aθ + offset."""
    # (e^ψ)^a / (1 + e^ψ)^b = 2^−b e^{κψ} ∫ e^{−ωψ²/2} PG(ω | b, 0) dω, κ = a − b/2 (Polson, Scott
    # and Windle 2013, Theorem 1). Negative binomial: a = r, b = r + α, ψ = η − log α. Binomial: a
    # = r, b = number of trials
    number = family.number
    if family.kind == NEGATIVE_BINOMIAL:
        kappa = 0.5 * weight * (reward - number)
        return weight * (reward + number), kappa, b - math.log(number)
    # a likelihood to the power w has w a and w b in the place of a and b
    return weight * number, weight * (reward - 0.5 * number), b


def observed(whole: Problem, A: Array, b: Array, link: Link, data: Rows) -> sweeps.Rewards:
    """Return rewards with η = A θ + b, as `sweeps.sweep` observes them."""
    reward = data["reward"]
    weight = link.weights(data)
    prior = whole.layout.terms.groups[0].copy()
    n, D = A.shape
    P = padded(D)
    base = prior.copy()
    shape = np.zeros(n)
    psi_offset = np.zeros(n)
    offset = b + A @ whole.layout.centre
    if link.family.kind == PROBIT:
        check_counts(weight)
        # Albert and Chib (1993): a latent z ~ N(η, 1) for each trial has precision 1 whatever it
        # is, so that X'WX is added up once
        base[:D, :D] -= 0.5 * (A.T * weight) @ A
        base[:D, P] += 0.5 * A.T @ (weight * offset)
    else:
        shape, kappa, psi_offset = mixture(link.family, reward, weight, b)
        psi_offset = psi_offset + A @ whole.layout.centre
        # e^{κψ}: η'κ is the same in every sweep; ω alone is new
        # the kernel takes −2 times this column for the shift: A'κ
        base[:D, P] -= 0.5 * A.T @ kappa
    A = np.ascontiguousarray(A)
    family = link.family.kind, link.family.number
    return sweeps.Rewards(*family, A, offset, reward, weight, shape, psi_offset, prior, base)


class Augmented(Gibbs):
    """A generalised linear model whose likelihood is a mixture of normals.

    It is the sampler of the working model, with observations that every sweep draws. whole: the
    working model, laid out for `observed`.
    """

    def __init__(self, link: Link, apart: Blocks) -> None:
        super().__init__(replace(apart, density=working(link)), affine=False)
        self.link = link
        self.whole = worked(self)

    @property
    def proved(self) -> bool:
        return True  # `target` tests each new reward

    @property
    def burn_in(self) -> int:
        return BURN_IN_SWEEPS if self.rest else TUNE_COEFFICIENTS

    def target(self, rows: Rows) -> tuple[Problem, Sweep]:
        self.link.check(rows)
        A, b = self.mean_map(rows)
        rewards = observed(self.whole, A, b, self.link, rows)
        terms = self.whole.layout.terms
        wide = np.zeros((len(A), terms.groups.shape[2]))
        wide[:, : A.shape[1]] = A
        terms = terms._replace(groups=np.zeros_like(terms.groups), group_rest=np.zeros(1))
        return self.whole, partial(sweeps.sweep, wide, np.zeros(wide.shape), rewards, terms)

    def beginning(self, whole: Problem, state: Position, cold: bool) -> Position:
        """Return the state, from which sweeps climb."""
        return state

    def check(self, whole: Problem, rows: Rows, state: Position) -> None:
        super().check(whole, rows, state)
        A, b = self.mean_map(rows)
        self.link.check(rows, A @ whole.flat(state)[0] + b)


def worked(reading: Reading) -> Problem:
    """Return the working model, laid out for `observed`: of one row of next to no weight, which
    stands for a group of none. No row enters the prior (`Link`)."""
    row = picked(reading.density.own, slice(1))
    if not len(row["x"]):
        row = {"x": np.ones((1, reading.density.n_features)), "arm": np.zeros(1)}
    row |= {"reward": np.zeros(1), "weight": np.full(1, NO_WEIGHT)}
    # log p of the prior alone, in arrays that have a place for the rows' statistics
    problem = lay_out(reading, reading.data(**row))
    if len(problem.layout.terms.groups) != 1 or problem.layout.dense.powers.nnz:
        raise refuse(ENGINE, "a prior of many coefficients together, whose scale is to be learned")
    return problem


def check_proper(apart: Blocks, block: GaussianBlock) -> None:
    """Refuse a prior that is improper: rewards may leave it so, as those that all are 1."""
    for term in apart.density.terms:
        if term.label.endswith(("~ Flat", "~ HalfFlat")):
            raise refuse(ENGINE, f"{term.label}: improper")
    # one value of the scales is enough: a prior that is proper given one is so given any
    middle = {k: 0.5 * (low + min(high, low + 2.0)) for k, (low, high) in apart.positive.items()}
    values = [np.full(v.type.shape, middle[str(v.name)]) for v in block.given]
    precision, _ = block.natural(None, values)
    if not (np.isfinite(precision).all() and np.linalg.eigvalsh(precision)[0] > 0.0):
        raise refuse(ENGINE, "the coefficients' prior is improper")


@matching
def match(model: pm.Model) -> Augmented:
    """Return the sampler of a built model that is a generalised linear one, given its scales."""
    apart = blocks(model)
    density = apart.density
    if density.by_row:
        raise refuse(ENGINE, f"'{density.by_row[0]}': one value for each row")
    link = Link(density, ENGINE)
    if link.family.kind == POISSON:
        raise refuse(ENGINE, "a Poisson likelihood is no known mixture of normals")
    if names := depends_on([link.eta], {f"'{k}'": density.values[k] for k in apart.positive}):
        what = " and ".join(sorted(names))
        raise refuse(ENGINE, f"the linear predictor depends on {what} beside its coefficients")
    sampler = Augmented(link, apart)
    check_proper(apart, sampler)
    return sampler
