"""The general engine: the no-U-turn sampler of nutpie, compiled once for each model and shape.

New rows are passed to the compiled density (`with_data`). A later run starts each chain at a draw
of the run before. Step size and mass matrix are tuned again, because nutpie takes no initial
ones. So a warm start saves the way to the typical set, and a part of the tuning.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.declaring.declaration import DATA_NAMES
from bayesbandit.inference.base import COMPILE, NotFinite, Refusal, check_start
from bayesbandit.inference.draws import Rows, SampledDraws
from bayesbandit.inference.graph_analysis.density import row_axes
from bayesbandit.inference.graph_analysis.eligibility import discrete
from bayesbandit.inference.pymc_model.template import rows_of, set_rows
from bayesbandit.inference.uncompiled import UNCOMPILED_MODE

if TYPE_CHECKING:
    import pymc as pm

ENGINE = "nuts"
TUNING_DRAWS = 600
RESUMED_TUNING = 200
LARGE_CONTEXT = 30.0  # whose exponential is beyond 1e13
TRIAL_DRAWS = 20  # draws of a first run, which takes a second longer than later ones
ARVIZ_NAMES = {  # nutpie's names to ArviZ's
    "logp": "lp",
    "diverging": "diverging",
    "energy": "energy",
    "energy_error": "energy_error",
    "max_energy_error": "max_energy_error",
    "depth": "tree_depth",
    "maxdepth_reached": "reached_max_treedepth",
    "n_steps": "n_steps",
    "step_size": "step_size",
    "step_size_bar": "step_size_bar",
    "mean_tree_accept": "acceptance_rate",
}

log = logging.getLogger("bayesbandit")


class Nuts:
    """A model of continuous variables, and how to sample it."""

    engine = ENGINE

    def __init__(self, model: pm.Model) -> None:
        self.model = model
        self.names = tuple(str(v.name) for v in model.free_RVs)
        self.by_row = bool(row_axes(model))
        self._compiled: dict[int, Any] = {}  # by number of rows, where that shapes the variables

    def prepare(self, name: str) -> None:
        """Compile now, before the first draw is wanted; it takes 5 to 30 seconds.

        The logger "bayesbandit" and a terminal are told. A model with a variable for each row is
        left out: it is compiled again for every number of rows. name: the model's name.
        """
        if self.by_row:
            log.info("%s by nuts has variables for each row: every refit compiles again", name)
            return
        with COMPILE:
            if self._compiled:
                return
            tell(f"compiling {name} for the no-U-turn sampler, once: it takes some seconds")
            began = time.perf_counter()
            data = rows_of(self.model)
            self._with(data)
            try:
                self.sample(data, TRIAL_DRAWS, 1, TRIAL_DRAWS)
            except (RuntimeError, NotFinite) as error:  # a likelihood may exclude made-up rows
                log.info("%s: no trial run: %s", name, error)
            log.info("%s compiled in %.1f s", name, time.perf_counter() - began)

    def sample(
        self,
        data: Rows,
        draws: int = 1000,
        chains: int = 4,
        tune: int | None = None,
        seed: int = 0,
        start: Array | None = None,
        cores: int | None = None,
        target_accept: float = 0.9,
        progress: bool = False,
    ) -> SampledDraws:
        """Return draws given rows x (n, d), reward, weight, arm (n,), by role.

        start: unconstrained states (S, D), the `SampledDraws.state` of an earlier run: all its
        draws. The start is cold if they do not fit, because a variable has a value for each row,
        or if the warm start fails.
        """
        import nutpie

        compiled = self._with(data)
        # each chain begins at a draw of the last posterior, which the new one is close to
        if start is not None and start.shape[-1] == compiled.n_dim:
            compiled = dataclasses.replace(compiled, initial_point_func=_one_of(start))
        if tune is None:
            tune = TUNING_DRAWS if start is None else RESUMED_TUNING
        try:
            sampler = nutpie.sample(
                compiled,
                draws=draws,
                tune=tune,
                chains=chains,
                cores=cores,
                seed=seed,
                target_accept=target_accept,
                store_unconstrained=True,
                save_warmup=False,
                progress_bar=progress,
                return_raw_trace=True,  # the way to xarray takes longer than most draws
                blocking=False,  # a call that blocks takes an interrupt for a wish for fewer draws
            )
            trace = waited(sampler)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a panic of nutpie's is no Exception
            if start is not None:
                log.info("nuts: a cold start, since a warm one failed: %s", _first_line(error))
                return self.sample(data, draws, chains, None, seed, None, cores, target_accept)
            with COMPILE:
                set_rows(self.model, data)
                log_density = self.model.compile_logp(mode=UNCOMPILED_MODE)
                check_start(ENGINE, log_density(self.model.initial_point()))
            reason = f"nuts: nutpie failed: {_first_line(error)}"
            if (largest := np.abs(data["x"]).max(initial=0.0)) > LARGE_CONTEXT:
                reason += (
                    f"; contexts are as large as {largest:g}: scale them, as bb.Encoder.fit does"
                )
            raise RuntimeError(reason) from error
        drawn, stats = trace.get_arrow_trace()
        # all draws are kept, for the next run's chains to begin at
        states = by_chain(stats, "unconstrained_draw", draws)
        kept = [name for name in ARVIZ_NAMES if name in stats[0].column_names]
        return SampledDraws(
            {name: by_chain(drawn, name, draws) for name in self.names},
            state=np.concatenate(states),
            divergences=int(by_chain(stats, "diverging", draws).sum()),
            acceptance=float(by_chain(stats, "mean_tree_accept", draws).mean()),
            stats={ARVIZ_NAMES[name]: by_chain(stats, name, draws) for name in kept},
        )

    def _with(self, data: Rows) -> Any:
        """Return the compiled model with these rows in place of its own."""
        n = len(data["x"])
        key = n if self.by_row else 0
        rows = {
            DATA_NAMES[role]: v
            for role, v in data.items()
            if DATA_NAMES[role] in self.model.named_vars
        }
        with COMPILE:
            # nutpie compiles for fixed shapes of the variables, whatever the rows are
            if key not in self._compiled:
                if self.by_row:
                    self._compiled.clear()
                self._compiled[key] = self._compile(data)
            compiled = self._compiled[key]
        names = {v.name for v in compiled.shared_var_keys}
        return compiled.with_data(**{k: v for k, v in rows.items() if k in names})

    def _compile(self, data: Rows) -> Any:
        import nutpie

        set_rows(self.model, data)
        try:  # of the free variables only: those with a value for each row would be of fixed length
            return nutpie.compile_pymc_model(self.model, var_names=list(self.names))
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            reason = f"nuts: nutpie cannot compile the model: {_first_line(error)}"
            raise RuntimeError(reason) from error


def match(model: pm.Model) -> Nuts | Refusal:
    """Return the sampler of a built model, or a refusal."""
    return discrete(model, ENGINE) or Nuts(model)


def waited(sampler: Any) -> Any:
    """Return what a sampler of nutpie's draws; stop it where something stops the waiting."""
    try:
        return sampler.wait()
    except BaseException:
        sampler.cancel()
        raise


def by_chain(tables: Sequence[Any], name: str, draws: int) -> Array:
    """Return the last draws of a column of nutpie's Arrow tables, one a chain: (chain, draw, …)."""
    import pyarrow as pa

    chains = []
    for table in tables:
        column = table.column(name)
        values = pa.array(column)
        # an array is a list of its elements, and the column's metadata say its shape
        shape = (column.field.metadata or {}).get(b"shape", b"").decode()
        if shape:
            values = values.flatten()
        sizes = [int(size) for size in shape.split(",") if size]
        chains.append(values.to_numpy(zero_copy_only=False).reshape(len(column), *sizes)[-draws:])
    return np.stack(chains)


def tell(message: str) -> None:
    """Write a line to the log, and to standard error if that is a terminal."""
    log.info(message)
    if sys.stderr.isatty() and not log.isEnabledFor(logging.INFO):
        print(f"bayesbandit: {message}", file=sys.stderr)


def _one_of(states: Array) -> Any:
    """Return nutpie's function for initial points: it picks one of the states by a chain's seed."""
    states = np.ascontiguousarray(states, dtype=np.float64)

    def initial(seed: int | None = None) -> Array:
        return states[np.random.default_rng(seed).integers(len(states))].copy()

    return initial


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or "no message"
    return f"{type(error).__name__}: {text.splitlines()[0]}"
