"""Experiments: environments × bandits × replications → one tidy table.

A killed experiment can be resumed, and any number of jobs gives the same table.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, product
from math import nan
from operator import itemgetter
from pathlib import Path
from types import FunctionType
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd

from bayesbandit import checks
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.player import (
    Factory,
    HasGreedy,
    HasUpdate,
    Player,
    check,
    names_of,
    step,
)
from bayesbandit.beliefs.base import Declaring
from bayesbandit.beliefs.shared.belief import Shared
from bayesbandit.checks import Array, Name
from bayesbandit.environments.base import (
    Environment,
    HasFingerprint,
    HasOptimum,
    Sample,
    check_sample,
)
from bayesbandit.evaluation.results import RUN, SCHEMA
from bayesbandit.experiments.results_on_disk import Cache, key, write_results
from bayesbandit.runtime import fingerprints, user_modules
from bayesbandit.runtime.plugins import blamed
from bayesbandit.runtime.progress import bar
from bayesbandit.runtime.shown import in_full

Run = tuple[str, str, int]  # environment, bandit and replication

# rounds per checkpoint whose propensity is computed if the weights do not need it
AUDITED_ROUNDS = 16


def stream(seed: int, *key: object) -> np.random.SeedSequence:
    """Return a seed sequence that depends on the seed and the key of the work only."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
    return np.random.SeedSequence([seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])


def checkpoints(horizon: int, points: int = 100) -> Array:
    """Return the rounds after which a run is recorded.

    Half of them are evenly spaced and half geometrically. The last is the horizon.
    """
    even = np.linspace(0, horizon, points // 2 + 1)[1:]
    early = np.geomspace(1, horizon, points // 2)
    return np.unique(np.ceil(np.concatenate([even, early]) - 1e-9).astype(np.int64))


@dataclass(frozen=True)
class Experiment:
    """A comparison of bandits on environments.

    Within a replication all bandits face the same drawn data, and have the same seed for their own
    random numbers. So a bandit's name does not change its results.

    environments: one or more, with different names.
    bandits: name → a function (arms, n_features, seed) → `Bandit` or another `Player`
        (`bandit/player.py`), or a sequence of such functions under their own names, e.g.
        `{"LinTS": bb.LinTS, "timid": partial(bb.LinTS, alpha=.1)}`.
    horizon: rounds of each run; None: the environment's own horizon.
    points: the number of checkpoints of a run, at most; each gives a row of the table.
    """

    environments: Sequence[Environment]
    bandits: Mapping[str, Factory] | Sequence[Factory]
    horizon: int | None = None
    replications: int = 10
    seed: int = 0
    points: int = 100

    def __post_init__(self) -> None:
        environments = self.environments
        bandits = self.bandits
        if isinstance(environments, Environment):
            environments = (environments,)
        object.__setattr__(self, "environments", tuple(environments))
        if strange := [e for e in self.environments if not isinstance(e, Environment)]:
            raise TypeError(
                "environments must have name, arms, n_features and sample, as "
                f"bb.environments.NonLinear(); got {checks.shown(strange[0])}"
            )
        if callable(bandits):
            bandits = (bandits,)
        if not isinstance(bandits, Mapping):
            named = [(_name(factory), factory) for factory in bandits]
            _distinct([name for name, _ in named], "bandits")
            bandits = dict(named)
        object.__setattr__(self, "bandits", dict(bandits))
        for name, factory in dict(bandits).items():
            if not callable(factory):
                raise TypeError(
                    f"bandits: {name!r} must be a function (arms, n_features, seed) of a bandit, "
                    f"as bb.LinTS; got {checks.shown(factory)}"
                )
        _distinct([e.name for e in self.environments], "environments")
        _distinct(list(bandits), "bandits")
        for name, least in (("replications", 1), ("seed", 0), ("points", 2), ("horizon", 1)):
            value = vars(self)[name]
            if value is not None or name != "horizon":
                object.__setattr__(self, name, checks.integer(value, name, least=least))

    def describe(self) -> dict[str, Any]:
        """Return the settings that determine the results.

        They are seed, horizon, points, and each environment's data and bandit's settings.
        """
        return self._described()[0]

    def run(
        self, jobs: int = 1, out: str | Path | None = None, progress: bool = True
    ) -> pd.DataFrame:
        """Return the results table (`evaluation.SCHEMA`), in order of declaration.

        `attrs` has the seed. Raise `Failed` for an error in a player's code.

        out: a folder for `results.parquet`. It also keeps each finished run, in `runs`, by its
            settings, the player's code and the versions of libraries. A run that is there is not
            repeated, so a killed experiment continues where it stopped, and others may be added.
        jobs: joblib processes (−1: all cores). Inside `joblib.parallel_config(backend="dask")` the
            work goes to a Dask cluster.
        progress: whether to show a progress bar.
        """
        if jobs != -1:
            checks.integer(jobs, "jobs, a number of processes or -1 for all cores,", least=1)
        begun = time.monotonic()
        described, texts = self._described()
        user_modules.unchanged(texts)
        cache = Cache(None if out is None else Path(out) / "runs")
        keys = self._keys(described)
        left = [run for run in keys if keys[run] not in cache]
        with bar("runs", len(keys), len(keys) - len(left), progress) as advance:
            for rows in self._played(left, jobs, texts):
                for run, group in groupby(rows, itemgetter(*RUN)):
                    cache[keys[run]] = pd.DataFrame(group).astype(SCHEMA)[list(SCHEMA)]
                    advance(1)
        table = pd.concat([cache[key] for key in keys.values()], ignore_index=True)
        if out is not None:
            write_results(Path(out), table, described, time.monotonic() - begun)
        table.attrs["seed"] = self.seed
        return table

    def _keys(self, described: Mapping[str, Any]) -> dict[Run, str]:
        """Return the key of each run, by environment, bandit and replication."""
        common = {name: described[name] for name in ("seed", "horizon", "points")}
        runs = product(described["environments"], described["bandits"], range(self.replications))
        return {
            (environment, bandit, replication): key(
                environment=[environment, described["environments"][environment]],
                bandit=[bandit, described["bandits"][bandit]],
                replication=replication,
                **common,
            )
            for environment, bandit, replication in runs
        }

    def _played(
        self, left: Iterable[Run], jobs: int, texts: Mapping[str, str]
    ) -> Iterable[list[dict[str, Any]]]:
        """Yield the rows of each replication of these runs as it ends."""
        from joblib import Parallel, delayed

        units = dict[tuple[str, int], dict[str, Factory]]()
        for environment, bandit, replication in left:
            units.setdefault((environment, replication), {})[bandit] = self._factories()[bandit]
        worlds = {environment.name: environment for environment in self.environments}
        work = (
            delayed(play_unit)(
                worlds[name], replication, factories, self.horizon, self.seed, self.points, texts
            )
            for (name, replication), factories in units.items()
        )
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(work)

    def _described(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return what `describe` returns, and digests of the user's modules that play a part."""
        settings = {}
        code = list[object]()
        for name, factory in self._factories().items():
            settings[name], parts = self._settings(name, factory)
            code += parts
        described = {
            "seed": self.seed,
            "horizon": self.horizon,
            "points": self.points,
            "environments": {e.name: fingerprint(e) for e in self.environments},
            "bandits": settings,
        }
        return described, fingerprints.texts(*code)

    def _settings(self, name: str, factory: Factory) -> tuple[str, list[object]]:
        """Return a bandit's settings on the first environment as text, and what it is made of: the
        factory, the class and the parts.

        The text is without memory addresses. User code adds a fingerprint, which changes when the
        code changes.
        """
        first = self.environments[0]
        with blamed(f"{name} on {first.name} failed"):  # settings name their errors
            player = factory(first.arms, first.n_features, seed=0)
        with in_full():
            texts = [checks.shown(player)]
        made_of: list[object] = [factory, type(player)]
        if isinstance(player, Bandit):
            made_of += [player.spec, player.policy, player.balance]
            model = player.spec.model if isinstance(player.spec, Shared) else player.spec
            if isinstance(model, Declaring):
                # a model that has no digest gets a unique text
                digest = model.digest(len(first.arms), first.n_features) or uuid4().hex
                texts.append(f"declared as {digest[:16]}")
        texts += fingerprints.packages(*made_of)
        if code := fingerprints.fingerprint(*made_of):
            texts.append(f"code {code}")
        return ", ".join(texts), made_of

    def _factories(self) -> dict[str, Factory]:
        assert isinstance(self.bandits, dict)
        return self.bandits


def play_unit(
    environment: Environment,
    replication: int,
    factories: Mapping[str, Factory],
    horizon: int | None,
    seed: int,
    points: int,
    texts: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Play one replication of one environment, with the same sample for every bandit.

    Return rows of the results table. Raise `Failed` for an error in a player's code.
    """
    from threadpoolctl import threadpool_limits

    name = environment.name
    rows = []
    with threadpool_limits(limits=1):
        rng = np.random.default_rng(stream(seed, "environment", name, replication))
        sample = environment.sample(horizon, rng)
        check_sample(sample, environment, horizon)
        for label, factory in factories.items():
            key = stream(seed, "bandit", name, replication)  # the same for all bandits
            what = f"{label} on {name}, replication {replication}, seed {seed}, failed"
            with blamed(what, ()):
                player = factory(environment.arms, environment.n_features, seed=key)
                check(player, environment)
                run = {"environment": name, "bandit": label, "replication": replication}
                rows += [run | record for record in play(player, environment, sample, points)]
        user_modules.unchanged(texts)
    return rows


def play(
    player: Player, environment: Environment, sample: Sample, points: int = 100
) -> Iterable[dict[str, Any]]:
    """Play one run and yield a record after each checkpoint. The warm start comes first."""
    if len(sample.warm_arm):
        _warm(player, environment, sample)
    rounds_by = player.play if isinstance(player, Bandit) else partial(step, player)
    best = sample.mean.max(axis=1)
    start = 0
    reward = 0.0
    regret = 0.0
    for t in checkpoints(len(sample.x), points).tolist():
        part = slice(start, t)
        every = max(1, (t - start) // AUDITED_ROUNDS)
        data = sample.x[part].copy(), sample.reward[part].copy()  # a player may write into them
        chosen, propensity = rounds_by(*data, every)
        rounds = np.arange(start, t)
        has_propensity = ~np.isnan(propensity)
        reward += float(sample.reward[rounds, chosen].sum())
        regret += float((best[rounds] - sample.mean[rounds, chosen]).sum())
        value, agreement = judge(player, environment.arms, sample)
        solved = isinstance(environment, HasOptimum) and environment.solved(value, agreement)
        yield {
            "t": t,
            "reward": reward,
            "regret": regret,
            "propensity": float(propensity[has_propensity].mean()) if has_propensity.any() else nan,
            "value": value,
            "agreement": agreement,
            "optimal": solved,
        }
        start = t


def _warm(player: Player, environment: Environment, sample: Sample) -> None:
    """Let a player learn the rounds logged before the first decision."""
    if not isinstance(player, HasUpdate):
        raise TypeError(
            f"{environment.name} begins with logged rounds, for which {player!r} needs a method "
            "`update(x, arm, reward, propensity)`"
        )
    names = [environment.arms[k] for k in sample.warm_arm]
    logged = sample.warm_reward.copy(), sample.warm_propensity.copy()
    player.update(sample.warm_x.copy(), names, *logged)


def judge(player: Player, arms: Sequence[Name], sample: Sample) -> tuple[float, float]:
    """Return the greedy policy's mean reward on the test contexts, and how often its arm is best.

    Both are NaN without test contexts, or for a player without a greedy policy.
    """
    if sample.test_x is None or sample.test_mean is None or not isinstance(player, HasGreedy):
        return nan, nan
    arm = names_of(player, player.greedy(sample.test_x.copy()), arms, len(sample.test_x))
    reward = sample.test_mean[np.arange(len(arm)), arm]
    return float(reward.mean()), float((reward >= sample.test_mean.max(axis=1)).mean())


def fingerprint(environment: Environment) -> str:
    """Return a text that distinguishes environments of the same name; data sets have their hash.

    Without a fingerprint of its own it is the `repr` without memory addresses, and a digest of the
    user's code and of what the environment holds.
    """
    if isinstance(environment, HasFingerprint):
        return environment.fingerprint
    with in_full():
        text = checks.shown(environment)
    code = fingerprints.fingerprint(environment)
    return f"{text}, code {code}" if code else text


def _name(factory: Factory) -> str:
    if not isinstance(factory, FunctionType | type) or factory.__name__ == "<lambda>":
        raise ValueError(f"give {factory!r} a name: pass bandits as a dict of name → function")
    return factory.__name__


def _distinct(names: Sequence[str], what: str) -> None:
    if not names:
        raise ValueError(f"an experiment needs {what}; got none")
    if odd := [name for name in names if not isinstance(name, str)]:
        raise ValueError(f"the names of {what} must be texts; got {odd[0]!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"{what} must have different names; got {sorted(names)}")
