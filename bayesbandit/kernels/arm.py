"""The numbers of one arm's regression, and the settings that all arms share, by name.

An arm is one row of numbers, and `arm_of` gives named views of its parts: no other file knows where
they stand. Kernels say `arm.head.sigma2`; Python says `heads(arms)["sigma2"]` of all arms at once.

Where an unpenalised intercept takes up any shift, x'β + c = (x − o)'β + (c + o'β), and the flat
prior of the intercept is the same about any origin o. So such an arm keeps all its numbers about
its first context, exactly: of large contexts that differ by little (years, prices, timestamps) the
differences keep their digits. Other arms have the origin 0.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import from_dtype, types
from numba.extending import lower_builtin, type_callable

from bayesbandit.checks import Array
from bayesbandit.runtime.compiling import interpreted, njit


def record_type(*names: str) -> np.dtype:
    """Return the type of a record of float64 of these names."""
    return np.dtype((np.record, [(name, "f8") for name in names]))


HEAD = record_type(
    "n",  # rows
    "sum_w",  # Σw
    "loss",  # the least penalised loss, min ‖r − Xθ‖²_W + λ‖θ‖²
    "sigma2",  # the noise variance
    "df",  # the degrees of freedom of θ
    "lam",  # the penalty λ
    "weight_divisor",  # the divisor of the weights
    "shift",  # what rewards are measured from where an intercept takes up any shift
    "residual",  # ‖r − Xθ‖²_W, for the empirical Bayes rule,
    "scaled_sum_w",  # Σw over the divisor,
    "prior_w",  # and ν w̄ of `pool_noise`
    "n_left",  # the rows that are left, each by its share, where rows fade (`kernels/fading.py`)
    "walked",  # the variance of a coefficient's steps so far over σ², where θ walks
    "clock",  # the tick at which all these numbers hold
    "mean_r",  # the moments of the rewards for empirical Bayes (`kernels/reward_moments.py`): m,
    "m2",  # M₂ = Σw (r − m)²,
    "m3_over_m2",  # M₃ and
    "m4_over_m2",  # M₄, the same sums of third and fourth powers, over M₂
    "sum_wrr",  # Σwr², and
    "due",  # the number of rows at which to factorise again, where sums are kept
    "spare0", "spare1", "spare2", "spare3",
)  # fmt: skip
HEAD_FIELDS = HEAD.names or ()
HEAD_WIDTH = len(HEAD_FIELDS)  # a whole number of cache lines

# The settings: `settings_of` puts them into the array that kernels take, `named` reads them.
# columns, and those that are penalised; variance: the rule of σ²; noise_parameter: the known σ²,
# or the rows that a prior of σ² stands for where rewards have kurtosis 1; prior_shape and
# prior_scale: of the normal-inverse-gamma prior; normalize: whether weights get mean 1; schedule:
# m > 0, every m rows, or −g, at growth by g; folds; rate: rows fade by e^−rate a tick; slack: how
# much of that may wait, as an exponent; walk: the variance of each coefficient's step a tick.
# Behind them stands the grid of λ, largest first. Where no column is penalised alike, but
# θ ~ N(m, σ²Λ⁻¹), the grid is one λ without meaning, and then comes Λ's root: d, t and U.
SETTINGS = record_type(
    "columns", "penalised", "variance", "noise_parameter", "min_variance", "prior_shape",
    "prior_scale", "normalize", "schedule", "folds", "rate", "slack", "walk",
)  # fmt: skip
GRID = len(SETTINGS.names or ())


def record_view(kind: np.dtype) -> Callable[[Array], Any]:
    """Return a function that views the first numbers of a contiguous array as a record.

    In a kernel it is the array's address. Numba takes a tenth of a second to compile
    `numbers.view(kind)[0]`, at every place where it stands.
    """
    width = kind.itemsize // 8

    def view(numbers: Array) -> Any:
        return numbers[:width].view(kind)[0]

    @type_callable(view)
    def typed(context):
        record = from_dtype(kind)

        def typer(numbers):
            is_plain = isinstance(numbers, types.Array) and numbers.ndim == 1 and numbers.is_contig
            return record if is_plain else None

        return typer

    @lower_builtin(view, types.Array)
    def lowered(context, builder, signature, arguments):
        numbers = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.bitcast(numbers.data, context.get_value_type(signature.return_type))

    return view


head_of = record_view(HEAD)  # of one arm's numbers
named = record_view(SETTINGS)

RSS_N, RSS, NIG, KNOWN_SIGMA2, EMPIRICAL_BAYES = range(5)


class Arm(NamedTuple):
    """Views of an arm's numbers. head: a record of HEAD. origin (D,): what contexts are measured
    from. d, t (D,) and U (D · stride,), row after row: the information root
    (`kernels/root.py`). kept: the numbers behind, which `sums_of` names."""

    head: Any
    origin: Any
    d: Any
    t: Any
    U: Any
    kept: Any


class Sums(NamedTuple):
    """b = X'Wr (D,), G = X'WX (D · stride,), and of each fold [n, Σwr², b, G], a row (F, …)."""

    b: Any
    G: Any
    folds: Any


def settings_of(grid: Sequence[float], **values: float) -> Array:
    """Return `SETTINGS` by name, and a grid of G λ, as the array that kernels take.

    A setting that is not given is 0. Raise KeyError for another name.
    """
    settings = np.zeros(GRID + len(grid))
    for name, value in values.items():
        settings[:GRID].view(SETTINGS)[name] = value
    settings[GRID:] = grid
    return settings


@njit(cache=True)
def columns_of(settings):
    """Return D: the settings of any arms begin with it."""
    return int(settings[0])


@njit(cache=True)
def stride(D):
    """Return the length of a stored row: D, filled up with zeros to whole cache lines."""
    # eight numbers of 8 bytes are a cache line, and a register of AVX-512
    return (D + 7) // 8 * 8


@njit(cache=True)
def core_width(D):
    """Return how many numbers an arm takes that predicts but does not learn."""
    return HEAD_WIDTH + (3 + D) * stride(D)


def arm_width(settings: Array) -> int:
    """Return how many numbers one arm takes."""
    setting = named(settings)
    D = int(setting.columns)
    whole = interpreted(stride)
    own = interpreted(core_width)(D)
    if interpreted(keeps_sums)(setting):
        own += (1 + D) * whole(D) + int(setting.folds) * (2 + D + D * D)
    return int(whole(own))


@njit(cache=True, inline="always")
def arm_of(numbers, D):
    """Return the named views of one arm's numbers."""
    M = stride(D)
    origin = HEAD_WIDTH
    d = HEAD_WIDTH + M
    t = HEAD_WIDTH + 2 * M
    U = HEAD_WIDTH + 3 * M
    return Arm(
        head_of(numbers),
        numbers[origin : origin + D],
        numbers[d : d + D],
        numbers[t : t + D],
        numbers[U : U + D * M],
        numbers[U + D * M :],
    )


@njit(cache=True, inline="always")
def sums_of(arm, folds):
    """Return the sums of an arm that keeps them."""
    D = arm.d.size
    M = stride(D)
    size = 2 + D + D * D
    start = (1 + D) * M
    return Sums(
        arm.kept[:D],
        arm.kept[M:start],
        arm.kept[start : start + folds * size].reshape(folds, size),
    )


def view(numbers: Array, D: int) -> Arm:
    """Return one arm's numbers by name, to Python: U as (D, D)."""
    arm: Arm = interpreted(arm_of)(numbers, D)
    return arm._replace(U=arm.U.reshape(D, -1)[:, :D])


def heads(arms: Array) -> Any:
    """Return the heads of arms (…, width) by name: a view."""
    return arms[..., :HEAD_WIDTH].view(HEAD)[..., 0]


@njit(cache=True)
def keeps_sums(setting):
    """Return whether λ, or the weights' divisor, changes, so that B must be made again."""
    return setting.folds > 0.0 or setting.normalize > 0.0


@njit(cache=True)
def has_prior(settings):
    """Return whether the settings end with the root of Λ."""
    return named(settings).folds == 0.0 and settings.size > GRID + 1


@njit(cache=True)
def is_moving(settings):
    """Return whether rows fade, or coefficients walk, as time passes."""
    setting = named(settings)
    return setting.rate > 0.0 or setting.walk > 0.0


@njit(cache=True)
def is_shifted(settings):
    """Return whether there is an unpenalised intercept, which takes up any shift of the rewards."""
    setting = named(settings)
    return setting.penalised == setting.columns - 1 and not has_prior(settings)
