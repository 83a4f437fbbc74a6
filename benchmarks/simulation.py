"""Data sets drawn from a declared model, and the truth's rank in the posterior of an engine.

Talts, Betancourt, Simpson, Vehtari and Gelman (2018), Validating Bayesian inference algorithms with
simulation-based calibration; Modrák, Moon, Kim, Bürkner, Huurre, Faltejsková, Gelman and Vehtari
(2023), Simulation-based calibration checking for Bayesian computation: the choice of test
quantities shapes sensitivity, Bayesian Analysis.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pymc as pm
from pymc.model.transform.conditioning import remove_value_transforms
from pymc.pytensorf import compile as compiled
from pymc.pytensorf import find_rng_nodes, reseed_rngs
from scipy import stats
from uniformity import DRAWS, uniformity

import bayesbandit as bb
from bayesbandit.inference.plan import plan
from bayesbandit.inference.registry import candidates

SQUEEZE = 0.8  # the spread of the control's draws about their median, beside the engine's
QUICK = "FAST_COMPILE"

Draws = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """An engine on a declared model, with the rows' form and how its chain is run.

    said: what is special about the model's priors. thin: every such draw of the chain is kept.
    """

    engine: str
    model: bb.RewardModel = field(repr=False)
    weighted: bool
    said: str = ""
    n: int = 12
    d: int = 3
    n_arms: int | None = None
    thin: int = 1
    tune: int = 0

    @property
    def kind(self) -> str:
        return self.engine

    @property
    def name(self) -> str:
        return self.model.name + (f", {self.said}" if self.said else "")


# ---- one data set --------------------------------------------------------------------------------


class Simulation:
    """Draws of a case's joint distribution, its engine's posterior, and what is ranked.

    told: the model that the engine is given, where that is not the one that makes the rewards.
    """

    def __init__(self, case: Case, told: bb.RewardModel | None = None) -> None:
        self.case, self.told = case, told or case.model
        self.plan = plan(self.told, case.d, case.n_arms, case.engine)
        built = case.model.build(**self._rows(np.random.default_rng(0)), n_arms=case.n_arms)
        self.built = remove_value_transforms(built)
        reward = self.built["reward"]
        self.names = [str(v.name) for v in self.built.free_RVs]
        dims = self.built.named_vars_to_dims
        self.by_row = {k for k in self.names if "row" in (dims.get(k) or ())}
        outputs = [*self.built.free_RVs, reward]
        self._rngs = find_rng_nodes(outputs)
        self._joint = compiled([], outputs, mode=QUICK)
        self._log_likelihood = self.built.compile_logp([reward], jacobian=False, mode=QUICK)

    def draw(self, rng: np.random.Generator) -> tuple[Draws, dict[str, np.ndarray]]:
        """Parameters from the prior, and rows whose rewards are drawn given them."""
        rows = self._rows(rng)
        renamed = {"reward": "observed_reward", "arm": "arm_index"}
        pm.set_data({renamed.get(k, k): v for k, v in rows.items()}, model=self.built)
        reseed_rngs(self._rngs, int(rng.integers(2**31)))
        *truth, reward = self._joint()
        return dict(zip(self.names, truth, strict=True)), rows | {"reward": np.asarray(reward)}

    def posterior(self, rows: dict[str, np.ndarray], rng: np.random.Generator) -> Draws:
        """The engine's draws, each variable (DRAWS, *shape)."""
        case = self.case
        if case.engine in {engine.name for engine in candidates("exact")}:
            fitted = bb.fit(self.told, **rows, engine=case.engine, n_arms=case.n_arms)
            return fitted.samples(DRAWS, rng)
        draws = self.plan.method.sample(
            rows, draws=DRAWS * case.thin, chains=1, tune=case.tune,
            seed=int(rng.integers(2**31)),
        ).values  # fmt: skip
        return {k: draws[k][0, case.thin - 1 :: case.thin] for k in self.names}

    def quantities(self, draws: Draws, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What is ranked: every variable's elements (of those with one for each row, the first's),
        mean rewards at the first context, and the log likelihood."""
        found = {}
        for k, v in draws.items():
            flat = v.reshape(len(v), -1)[:, : 1 if k in self.by_row else None]
            found |= {f"{k}[{j}]": column for j, column in enumerate(flat.T)}
        means = self.plan.outcomes.mean_reward(draws, rows["x"][:1]).reshape(len(flat), -1)
        found |= {f"mean reward[{j}]": column for j, column in enumerate(means.T)}
        at = [{k: v[s] for k, v in draws.items()} for s in range(len(flat))]
        return found | {"log likelihood": np.array([self._log_likelihood(p) for p in at])}

    def _rows(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        case = self.case
        rows = {"x": rng.normal(size=(case.n, case.d)), "reward": np.zeros(case.n)}
        spread = 1.0 if case.weighted else 0.0
        rows["weight"] = 10.0 ** rng.uniform(-spread, spread, case.n)
        if case.n_arms:
            rows["arm"] = rng.integers(0, case.n_arms, case.n).astype(np.int32)
        return rows


# ---- many ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranks:
    """Ranks 0 … DRAWS of the truth among draws, and among the control's, (N, Q) each.

    correlation: the largest lag-1 correlation of kept draws, averaged over data sets.
    """

    case: Case
    names: list[str]
    ranks: np.ndarray
    control: np.ndarray
    correlation: float

    @property
    def p_values(self) -> np.ndarray:
        return np.array([uniformity(column) for column in self.ranks.T])

    @property
    def control_p_values(self) -> np.ndarray:
        return np.array([uniformity(column) for column in self.control.T])


def calibrate(
    case: Case, datasets: int, seed: int = 0, told: bb.RewardModel | None = None,
    tick: Callable[[], object] = lambda: None,
) -> Ranks:  # fmt: skip
    """Ranks on that many data sets. told: as in `Simulation`. tick: called after each."""
    simulation = Simulation(case, told)
    stream = zlib.crc32(f"{case.kind} {case.name} {case.weighted}".encode())
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    names: list[str] = []
    for i in range(datasets):
        rng = np.random.default_rng([seed, stream, i])
        truth, rows = simulation.draw(rng)
        draws = simulation.posterior(rows, rng)
        narrow = {k: squeezed(v) for k, v in draws.items()}
        at_truth, *ranked = (
            simulation.quantities(d, rows)
            for d in ({k: v[None] for k, v in truth.items()}, draws, narrow)
        )
        names = list(at_truth)
        own, control = (np.array([np.sum(d[k] < at_truth[k]) for k in names]) for d in ranked)
        found.append((own, control, np.array([lag1(ranked[0][k]) for k in names])))
        tick()
    own, control, lags = (np.array(part) for part in zip(*found, strict=True))
    return Ranks(case, names, own, control, float(np.nanmean(lags, axis=0).max()))


def squeezed(draws: np.ndarray) -> np.ndarray:
    """Draws nearer to their median; where they are positive, in their logarithms."""
    positive = bool((draws > 0.0).all())
    z = np.log(draws) if positive else draws
    centre = np.median(z, axis=0)
    z = centre + SQUEEZE * (z - centre)
    return np.exp(z) if positive else z


def lag1(draws: np.ndarray) -> float:
    """The correlation of ranks of neighbours, plus the 1/S by which it is too low."""
    ranks = stats.rankdata(draws)
    return float(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) + 1.0 / len(draws)
