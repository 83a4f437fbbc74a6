"""What engines share: protocols, refusals with their reasons, and compiled functions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from bayesbandit.checks import Array, finite
from bayesbandit.inference.draws import Known, Rows, SampledDraws
from bayesbandit.runtime.pytensor_lock import COMPILE

if TYPE_CHECKING:
    import pymc as pm
    from pytensor.graph.basic import Variable


@dataclass(frozen=True)
class Refusal:
    """Why an engine does not fit a model: the variable and the operation, in one sentence.

    of_rows: whether the engine refuses only these rows, and may answer for others.
    """

    engine: str
    reason: str
    of_rows: bool = False

    def __str__(self) -> str:
        return f"{self.engine}: {self.reason}"


@runtime_checkable
class Sampler(Protocol):
    """A sampler of the posterior of one built model."""

    def sample(
        self,
        data: Rows,
        *,
        draws: int,
        chains: int,
        tune: int | None,
        seed: int,
        start: Any,
    ) -> SampledDraws:
        """Return draws given rows x (n, d), reward, weight, arm (n,), by role.

        start: the `state` of an earlier run, on other rows.
        """
        ...


class ClosedForm(Protocol):
    """A closed form of the posterior of one built model.

    streams: whether the posterior can be updated row by row.
    """

    @property
    def streams(self) -> bool: ...

    def posterior(
        self,
        x: Array,
        reward: Array,
        weight: Array | None = None,
        arm: Array | None = None,
    ) -> Known:
        """Return the posterior given rows x (n, d), reward, weight, arm (n,)."""
        ...


Method = Sampler | ClosedForm
Kind = Literal["exact", "sampler", "approximation"]
ENGINE_GROUPS = ("auto", "exact")  # instead of a name: the first engine, or closed form, that fits


@dataclass(frozen=True)
class Engine:
    """One way from a declared model to its posterior.

    match: a function of a built PyMC model that returns a `Method`, or a `Refusal`. cost: what an
    effective draw costs, in words. kind: "exact" for a closed form; "sampler" for draws from the
    posterior itself; "approximation" is used only if it is asked for by name. knobs: which of tune,
    target_accept and cores (arguments of `fit`) it takes. least_tune: the least value of tune.
    """

    name: str
    match: Callable[[pm.Model], Method | Refusal] = field(repr=False)
    cost: str
    kind: Kind = "sampler"
    knobs: tuple[str, ...] = ()
    least_tune: int = 0


class NotThisEngine(ValueError):
    """The error that an engine does not fit a model or its rows; `refusal` says why."""

    def __init__(self, refusal: Refusal) -> None:
        if not isinstance(refusal, Refusal):
            raise TypeError(f"NotThisEngine takes a Refusal(engine, reason); got {refusal!r}")
        super().__init__(str(refusal))
        self.refusal = refusal

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.refusal,)


def refuse(engine: str, reason: str, of_rows: bool = False) -> NotThisEngine:
    """Return an engine's refusal, ready to be raised."""
    return NotThisEngine(Refusal(engine, reason, of_rows))


def matching[M](make: Callable[[pm.Model], M]) -> Callable[[pm.Model], M | Refusal]:
    """Return `make` as a function that returns a refusal instead of raising it."""

    @wraps(make)
    def match(model: pm.Model) -> M | Refusal:
        try:
            with COMPILE:
                return make(model)
        except NotThisEngine as error:
            return error.refusal

    return match


class NotFinite(ValueError):
    """The log density is −∞ or NaN where an engine starts. `Plan` adds the rewards at fault."""


def check_start(engine: str, value: float | Array) -> None:
    """Raise `NotFinite` if the log density is −∞ or NaN where an engine starts."""
    if not value > -np.inf:
        raise NotFinite(f"{engine}: the log density is {float(value):g} where it starts")


def sound(array: Array, what: str) -> Array:
    """Return the array; raise `NotFinite` if a number in it is not finite."""
    try:
        return finite(array, what)
    except ValueError as error:
        raise NotFinite(str(error)) from error


class NoElement(ValueError):
    """An index in the rows (an arm, a level) is out of the model's bounds."""


class Improper(NotThisEngine):
    """The posterior given these rows is improper; with more rows it may be proper."""


def improper(engine: str, reason: str) -> Improper:
    """Return the error of an improper posterior, ready to be raised."""
    return Improper(Refusal(engine, reason, of_rows=True))


class Own(threading.local):
    """The compiled function of one thread; None until the thread needs it."""

    function: Callable[..., list[Array]] | None = None


class Compiled:
    """A compiled graph of explicit inputs, without shared state.

    PyTensor keeps a function's arguments and results in storage of its own, so that two threads in
    one function read each other's numbers: each thread has its own copy. trusted: arguments have
    the inputs' types, and neither they nor their lengths are checked; the graph runs by `steps`
    where it can.
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        trusted: bool = False,
    ) -> None:
        import pytensor

        from bayesbandit.inference.steps import steps
        from bayesbandit.inference.uncompiled import UNCOMPILED_MODE

        self._graph = list(inputs), list(outputs), trusted
        self._trusted = trusted
        with COMPILE:
            self._function = pytensor.function(
                list(inputs),
                list(outputs),
                mode=UNCOMPILED_MODE,
                on_unused_input="ignore",
                trust_input=trusted,
            )
        self._steps = steps(self._function.maker.fgraph) if trusted else None
        self._own = Own()
        self._own.function = self._function

    def __call__(self, *arguments: Array) -> list[Array]:
        function = self._steps or self._own.function
        if function is None:
            with COMPILE:
                function = self._own.function = self._function.copy(share_memory=False)
                function.trust_input = self._trusted
        try:
            return [np.asarray(output) for output in function(*arguments)]
        except IndexError as error:
            what = str(error).splitlines()[0]
            raise NoElement(
                f"the model takes an element that it does not have ({what}): a column of the "
                "contexts, the arm or the reward is an index, and has a level that was not declared"
            ) from error

    def __reduce__(self) -> tuple[Any, ...]:
        return Compiled, self._graph

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return self  # nothing in it changes
