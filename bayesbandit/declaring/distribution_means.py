"""The mean of a random variable's distribution, as an expression of its parameters."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import pytensor.tensor as pt
from pymc.distributions import moments
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.distributions.truncated import TruncatedRV
from pymc.exceptions import UndefinedMomentException
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.random.basic import CategoricalRV
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type_other import NoneConst
from pytensor.tensor.variable import TensorVariable

MIXTURE_OPS = "MixtureRV", "_HurdleRV"  # that of hurdles has no public name
# PyMC's formula is another: of ExGaussian mu + sigma, not mu + nu; of VonMises a mean angle.
OPS_WITH_OTHER_MEANS = "ExGaussianRV", "RiceRV", "SkewStudentTRV", "VonMisesRV"
# Their mean is the location. PyMC broadcasts it by an operation that few engines know.
LOCATION_SCALE_OPS = "NormalRV", "StudentTRV", "LaplaceRV", "LogisticRV"
# They have a mean if their first parameter, ν or α, is above 1.
HEAVY_OPS = "StudentTRV", "ParetoRV", "InvGammaRV"


@runtime_checkable
class Rebuildable(Protocol):
    """An operation of PyMC that makes its variable again, of parameters."""

    def dist_params(self, node: Any) -> Any: ...

    def rv_op(self, *parameters: Any) -> Any: ...


class UnknownMean(Exception):
    """The error of a distribution whose mean is not known here; the message says why."""


def mean_of(rv: Any) -> Any:
    """Return the mean of the distribution of rv, by PyMC's formulas.

    Added to these: categories 0, 1, 2, … as numbers. Raise ValueError if the mean is
    not known, as of a censored variable, or if PyMC says that it does not exist.
    """
    try:
        return pt.cast(_mean(rv), "float64")
    # PyMC raises the first two where it has no formula, and where there is no mean.
    except (NotImplementedError, UndefinedMomentException, UnknownMean) as error:
        raise ValueError(
            f"the mean of {rv.name!r} is not known ({error}): add the mean reward to the model, as "
            'pm.Deterministic("mean", …), and name it by mean='
        ) from error


def _mean(rv: Any) -> Any:
    op = rv.owner.op
    if type(op).__name__ in MIXTURE_OPS:
        return _mean_of_mixture(*rv.owner.inputs[1:])
    if isinstance(op, TruncatedRV):
        raise UnknownMean("it is truncated, as the counts of a hurdle are")
    if type(op).__name__ in OPS_WITH_OTHER_MEANS:
        raise UnknownMean("PyMC's formula is not the mean")
    # PyMC fills the size of the variable, which is that of the data, with the mean
    if isinstance(op, SymbolicRandomVariable):
        if not isinstance(op, Rebuildable):
            raise UnknownMean(f"PyMC has no formula for {type(op).__name__}")
        return moments.mean(op.rv_op(*op.dist_params(rv.owner)))
    if not isinstance(op, RandomVariable):
        return moments.mean(rv)
    rng, _, *parameters = rv.owner.inputs
    if type(op).__name__ in HEAVY_OPS and _is_at_most_one(parameters[0]):
        raise UnknownMean("it does not exist: ν or α must be above 1")
    if isinstance(op, CategoricalRV):
        [p] = parameters
        return (p * pt.arange(p.shape[-1])).sum(axis=-1)
    if type(op).__name__ in LOCATION_SCALE_OPS:
        mu, sigma = parameters[-2:]
        return mu + pt.zeros_like(sigma) if 1 in mu.type.shape else mu
    return moments.mean(op.make_node(rng, NoneConst, *parameters).outputs[1])


def _is_at_most_one(parameter: TensorVariable) -> bool:
    """Return whether a parameter is constant, and somewhere at most 1."""
    is_constant = all(isinstance(v, Constant) for v in graph_inputs([parameter]))
    return is_constant and bool((parameter.eval(mode="FAST_COMPILE") <= 1.0).any())


def _mean_of_mixture(weights: Any, *components: Any) -> Any:
    if len(components) == 1:
        return (weights * _mean(components[0])).sum(axis=-1)
    means = [_mean(component) for component in components]
    return sum(weights[..., k] * mean for k, mean in enumerate(means))
