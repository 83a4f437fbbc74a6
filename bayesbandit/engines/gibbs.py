"""The Gibbs engine for conditionally Gaussian models, derived from the declaration.

One block is Gaussian given the rest, by the degree of the log density (`quadratic`). Each other
variable is positive and, given everything else, a power of it is generalised inverse Gaussian
(`conditionals`), which the gradient says. Laplace, Student-t, half-Cauchy and the like are mixtures
of these (`mixtures`). Scalar noise with a diagonal scale mixture as prior is left to the compiled
kernel (`shrinkage`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.engines.base import NotThisEngine, Refusal, one_thread
from bayesbandit.engines.blocks import ENGINE, Blocks, blocks
from bayesbandit.engines.conditionals import MEAN, Conditional, trial
from bayesbandit.engines.draws import SampledDraws
from bayesbandit.engines.exact import Exact
from bayesbandit.engines.quadratic import Data, Quadratic
from bayesbandit.engines.recognise import Form, RowNoise, features, recognise
from bayesbandit.engines.recognise import trial as rows_of
from bayesbandit.engines.scale_mixtures import recognised
from bayesbandit.engines.shrinkage import Shrinkage
from bayesbandit.engines.sparsity import SparsePrior
from bayesbandit.engines.swept import Sweep

if TYPE_CHECKING:
    import pymc as pm

TUNE, TUNE_WARM = 500, 50
ROWS = 5  # of the data at which a model is tested

State = dict[str, np.ndarray]  # where a chain stands: all variables, auxiliary ones too

Chain = Callable[..., tuple[State, State]]


class Gibbs(Exact):
    """A model whose Gaussian block and positive variables are drawn in turn.

    names, shapes: the declared variables. block: those that are Gaussian given the rest.
    auxiliary: to each variable that was mixed over, the declared one that it belongs to; neither
    part of `names` nor of the draws. kernel: the compiled sampler, where the model has its form.
    prior_given: the block's natural parameters. scalar_noise: whether rewards are N(mean reward,
    σ²/weight), whatever is given.
    """

    engine = ENGINE

    def __init__(
        self,
        quadratic: Quadratic,
        form: Form,
        conditionals: Sequence[Conditional],
        auxiliary: Mapping[str, str],
        by_row: Sequence[str],
        kernel: Shrinkage | None,
        prior_given: SparsePrior,
        scalar_noise: bool,
    ) -> None:
        super().__init__(quadratic, form)
        self.conditionals, self.auxiliary, self.kernel = (
            tuple(conditionals),
            dict(auxiliary),
            kernel,
        )
        self.prior_given, self.scalar_noise = prior_given, scalar_noise
        self.by_row, self.block = tuple(by_row), quadratic.names
        values = quadratic.density.values
        self.names = tuple(k for k in values if k not in auxiliary)
        self.all_shapes = {k: tuple(v.type.shape) for k, v in values.items()}
        self.shapes = {k: self.all_shapes[k] for k in self.names}

    # ---- sampling --------------------------------------------------------------------------------

    def sample(
        self, data: Mapping[str, np.ndarray], draws: int = 1000, chains: int = 4,
        tune: int | None = None, seed: int | np.random.SeedSequence = 0,
        start: Sequence[State] | None = None, compiled: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> SampledDraws:  # fmt: skip
        """Draws of the declared variables given rows x (n, d), reward, weight, arm (n,), by role.

        start: states, such as `SampledDraws.state` of an earlier run on these or on other rows,
        whose number of chains may differ; without it, random ones. compiled: False for the sweep in
        Python also where there is a kernel. progress: told the number of sweeps as they are done.
        """
        rows = self.data(**data)
        if tune is None:
            tune = TUNE if start is None else TUNE_WARM
        kept: list[State] = []
        last: list[State] = []
        with one_thread():
            chain = self._chain(rows, compiled)
            for i, stream in enumerate(streams(seed, chains)):
                rng = np.random.default_rng(stream)
                state = (
                    self.resumed(start[i % len(start)], rows) if start else self.start(rows, rng)
                )
                values, state = chain(state, draws, tune, rng, progress or silent)
                kept.append(values)
                last.append(state)
        return SampledDraws({k: np.stack([v[k] for v in kept]) for k in self.names}, state=last)

    def _chain(self, data: Data, compiled: bool) -> Chain:
        """What draws a chain from the posterior given these rows."""
        if self.kernel is None or not compiled:
            return Sweep(self, data).sample
        return partial(self.kernel.sample, self.kernel.problem(*self.mean_map(data), data))

    def start(self, data: Data, rng: np.random.Generator) -> State:
        """Where a chain may begin: positive variables about 1, the block at 0."""
        return {
            k: np.zeros(shape) if k in self.block else np.exp(0.5 * rng.standard_normal(shape))
            for k, shape in self.shapes_at(len(data[0])).items()
        }

    def resumed(self, state: State, data: Data) -> State:
        """A copy of a state for these data: variables of rows that were not there begin at 1."""
        state = {k: np.array(state[k], dtype=np.float64) for k in self.all_shapes}
        n = len(data[0])
        for k in self.by_row:
            value, state[k] = state[k], np.ones(n)
            state[k][: min(n, len(value))] = value[:n]
        return state

    def mean_map(self, data: Data) -> tuple[np.ndarray, np.ndarray]:
        """The mean rewards A θ + b of rows: A (n, D), b (n,)."""
        return self.linear_map(data[0], None if self.n_arms is None else data[3])

    def given(self, state: State, rows: slice = slice(None)) -> list[np.ndarray]:
        """The values of the variables that the block is given, as `Quadratic` takes them."""
        return [
            state[k][rows] if k in self.by_row else state[k]
            for k in (v.name for v in self.quadratic.given)
        ]

    def shapes_at(self, n: int) -> dict[str, tuple[int, ...]]:
        """All variables' shapes with n rows."""
        return {k: tuple(n if m is None else m for m in s) for k, s in self.all_shapes.items()}


def silent(sweeps: int) -> None:
    """Tells nobody."""


def streams(seed: int | np.random.SeedSequence, chains: int) -> list[np.random.SeedSequence]:
    """A stream for each chain, the same ones however often they are asked for."""
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return [
        np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, i)) for i in range(chains)
    ]


def match(model: pm.Model) -> Gibbs | Refusal:
    """The Gibbs engine for a built model, or why it has a variable that it cannot draw."""
    try:
        return derived(blocks(model))
    except NotThisEngine as error:
        return error.refusal


def derived(apart: Blocks) -> Gibbs:
    """The engine of a density whose variables are a block and positive ones."""
    density, rest, by_row = apart.density, apart.rest, apart.by_row
    rng = np.random.default_rng(0)
    quadratic = Quadratic(density, ENGINE, given=rest)
    shapes = {
        k: tuple(ROWS if m is None else m for m in v.type.shape) for k, v in density.values.items()
    }
    values = trial(shapes, rest, rng)
    points: list[Any] = [[v[k] for k in rest] for v in (values, trial(shapes, rest, rng))]
    given = points[0]
    if by_row:
        why = f"'{by_row[0]}' has a value for each row"
        form = Form(why, False, features(quadratic), None, rows_of(density))
    else:
        form = recognise(quadratic, given)
    if quadratic.through_mean is not None:
        theta = np.concatenate([np.ravel(values[k]) for k in quadratic.names])
        values[MEAN] = quadratic.mean_reward(theta[None], form.trial)[0]
    conditionals = [Conditional(density, name, ENGINE, values, form.trial) for name in rest]
    kernel = None if by_row else recognised(quadratic, form, rng)
    noise = RowNoise(quadratic) if form.noise is not None else None
    scalar = noise is not None and all(noise.variance(g) for g in points)
    return Gibbs(
        quadratic, form, conditionals, apart.auxiliary, by_row, kernel,
        SparsePrior(quadratic, points), scalar,
    )  # fmt: skip
