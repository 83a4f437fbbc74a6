"""How soon a bandit follows when the best arm changes, and what that costs where nothing does.

    uv run benchmarks/drift.py
    uv run benchmarks/drift.py --runs 20 --flip 10000
    uv run benchmarks/drift.py --walk
    uv run benchmarks/drift.py --alarm

Three arms, three contexts, linear Thompson sampling with a minimum probability of .03. The best arm
has mean reward .3, the others 0; all get .1 x₀ and noise of sd .5. After the flip another arm is
the best. Recovered: the first 200 rounds after it with 60 % of them at the new best arm, counted to
their last round. Regret: of 5,000 rounds in which nothing changes. Medians, and standard errors by
the bootstrap; the same worlds for all.

With --walk the coefficients walk: those of each arm begin at N(0, .3² I), with the constant's, and
take a step of variance q in each coordinate a round. The table has the regret of 3,000 rounds, and
how it differs from that of never forgetting in the same worlds, with standard errors.

With --alarm arms are played by chance, and the tests of `bandit.drift_test` are counted that ever
alarm at level .05: in worlds that stand still, with 3 and with 20 features, with contexts that have
a trend, and with 100 arms that are alike but for a half; and in those with 3 features where from
the middle on each arm has what the next one had.
"""

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

import bayesbandit as bb

D, GAP, NOISE, FLOOR, WINDOW, SHARE = 3, 0.3, 0.5, 0.03, 200, 0.6
AFTER, STILL = 12_000, 5_000
MEMORIES: dict[str, dict[str, Any]] = {
    "none": {},
    "half_life=250": {"half_life": 250},
    "half_life=500": {"half_life": 500},
    "half_life=1000": {"half_life": 1000},
    'half_life="auto"': {"half_life": "auto"},
    "drift=1e-5": {"drift": 1e-5},
    "drift=1e-4": {"drift": 1e-4},
}


def world(seed: int, rounds: int, best: int) -> tuple[np.ndarray, np.ndarray]:
    """Contexts (T, d) and rewards (T, 3)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rounds, D))
    mean = GAP * (np.arange(3) == best) + 0.1 * x[:, :1]
    return x, mean + NOISE * rng.normal(size=(rounds, 3))


def bandit_of(memory: Mapping[str, Any], seed: int) -> bb.Bandit:
    """Return a new bandit."""
    return bb.LinTS(3, D, seed=seed, min_probability=FLOOR, history=0, **memory)


def recovery(memory: Mapping[str, Any], seed: int, flip: int) -> float:
    """Return how many rounds after the flip the bandit is at the new best arm; ∞: not in time."""
    bandit = bandit_of(memory, seed)
    if flip:
        bandit.play(*world(2 * seed, flip, 0), every=flip)
    chosen, _ = bandit.play(*world(2 * seed + 1, AFTER, 1), every=AFTER)
    counts = np.cumsum(np.concatenate([[0], chosen == 1]))
    there = np.flatnonzero(counts[WINDOW:] - counts[:-WINDOW] >= SHARE * WINDOW)
    return float(there[0] + WINDOW) if len(there) else np.inf


def regret(memory: Mapping[str, Any], seed: int) -> float:
    """Return the regret of rounds in which nothing changes."""
    chosen, _ = bandit_of(memory, seed).play(*world(2 * seed, STILL, 0), every=STILL)
    return GAP * float((chosen != 0).sum())


WALKS = (1e-5, 1e-4)  # q
WALKED = 3_000
FOLLOWING: dict[str, dict[str, Any]] = {
    "none": {},
    "half_life=1000": {"half_life": 1000},
    "half_life=250": {"half_life": 250},
    'half_life="auto"': {"half_life": "auto"},
    "drift=1e-6": {"drift": 1e-6},
    "drift=1e-5": {"drift": 1e-5},
    "drift=1e-4": {"drift": 1e-4},
}


def walking_regret(memory: Mapping[str, Any], seed: int, q: float) -> float:
    """Return the regret of rounds in which the coefficients walk."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(WALKED, D))
    steps = np.sqrt(q) * rng.normal(size=(WALKED, 3, D + 1))
    theta = 0.3 * rng.normal(size=(3, D + 1)) + np.cumsum(steps, axis=0)
    mean = np.einsum("td,tkd->tk", np.column_stack([x, np.ones(WALKED)]), theta)
    reward = mean + NOISE * rng.normal(size=mean.shape)
    chosen, _ = bandit_of(memory, seed).play(x, reward, every=WALKED)
    return float((mean.max(axis=1) - mean[np.arange(WALKED), chosen]).sum())


def walk(runs: int) -> None:
    """Print the table of worlds whose coefficients walk."""
    names = [name for q in WALKS for name in (f"q = {q:g}", "less none")]
    print("|", " | ".join(["memory", *names]), "|")
    print("| :-- |" + " --: |" * len(names))
    none = {q: np.array([walking_regret({}, seed, q) for seed in range(runs)]) for q in WALKS}
    for name, memory in FOLLOWING.items():
        cells = []
        for q in WALKS:
            lost = np.array([walking_regret(memory, seed, q) for seed in range(runs)])
            cells += [
                f"{values.mean():,.0f} ± {values.std(ddof=1) / runs**0.5:.0f}"
                for values in (lost, lost - none[q])
            ]
        print("|", " | ".join([name, *cells]), "|", flush=True)


def rewards_of(kind: str, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return rewards of a kind, by linear predictors (n,) of variance 1 and the means of arms."""
    noise = rng.normal(size=len(eta))
    if kind == "normal":
        return eta + noise
    if kind == "Student's t, 5":
        return eta + rng.standard_t(5, size=len(eta))
    if kind == "exponential noise":
        return eta + rng.exponential(size=len(eta))
    if kind == "clipped at 0 and 1":
        return np.clip(eta + noise, 0.0, 1.0)
    if kind == "counts":
        return rng.poisson(np.exp(0.5 * eta - 1.0)).astype(float)
    share = float(kind.split(" %")[0]) / 100.0
    happened = rng.random(len(eta)) < 1.0 / (1.0 + (1.0 / share - 1.0) * np.exp(-eta))
    return happened * (np.exp(noise) if "amounts" in kind else 1.0)


KINDS = (
    "normal", "Student's t, 5", "exponential noise", "clipped at 0 and 1", "counts",
    "50 % ones", "10 % ones", "1 % ones", "3 % amounts",
)  # fmt: skip
WORLDS: dict[str, dict[str, Any]] = {
    "1,000 × 3": {},
    "1,000 × 20": {"d": 20},
    "1,000 × 3, a trend": {"trend": True},
    "10,000 × 0, 100 arms": {"rounds": 10_000, "d": 0, "arms": 100},
    "10,000 × 3, 100 arms": {"rounds": 10_000, "arms": 100},
    "1,000 × 3 changes": {"changes": True},
    "10,000 × 3 changes": {"rounds": 10_000, "changes": True},
}


def alarms(
    kind: str, seed: int, rounds: int = 1_000, d: int = 3, arms: int = 3,
    trend: bool = False, changes: bool = False,
) -> bool:  # fmt: skip
    """Return whether rewards of a kind ever alarm."""
    rng = np.random.default_rng([KINDS.index(kind), rounds, d, arms, trend, changes, seed])
    x = rng.normal(size=(rounds, d))
    if trend:
        x = 0.5 * x + 1.5 * np.linspace(-1.0, 1.0, rounds)[:, None]
    arm = rng.integers(0, arms, rounds)
    theta = rng.normal(size=(arms, d)) / max(d, 1) ** 0.5
    level = rng.normal(size=arms) * (1.0 if arms == 3 else 0.5)
    law = (arm + (np.arange(rounds) >= rounds // 2) * changes) % arms
    reward = rewards_of(kind, (x * theta[law]).sum(axis=1) + level[law], rng)
    bandit = bb.LinTS(arms, d, history=None)
    bandit.update(x, arm, reward)
    return bandit.drift_test(0.05).alarm


def alarm(runs: int) -> None:
    """Print the table of alarms."""
    print("|", " | ".join(["rewards", *WORLDS]), "|")
    print("| :-- |" + " --: |" * len(WORLDS))
    for kind in KINDS:
        counts = [sum(alarms(kind, s, **world) for s in range(runs)) for world in WORLDS.values()]
        print("|", " | ".join([kind, *map(str, counts)]), "|", flush=True)


def shown(values: np.ndarray, statistic: Any) -> str:
    """Return a statistic with its standard error."""
    rng = np.random.default_rng(0)
    again = statistic(rng.choice(values, (1000, len(values))), axis=1)
    if not np.isfinite(statistic(values)):
        return f"> {AFTER:,} ({np.mean(np.isinf(values)):.0%} of runs)"
    error = again[np.isfinite(again)].std()
    return f"{statistic(values):,.0f} ± {error:,.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--flip", type=int, nargs="*", default=[0, 3_000, 10_000])
    parser.add_argument("--walk", action="store_true")
    parser.add_argument("--alarm", action="store_true")
    settings = parser.parse_args()
    if settings.alarm:
        alarm(settings.runs)
        return
    if settings.walk:
        walk(settings.runs)
        return
    seeds = range(settings.runs)
    flips = [f"flip after {flip:,}" if flip else "new" for flip in settings.flip]
    print("|", " | ".join(["memory", *flips, "regret, 5,000 still rounds", "÷ none"]), "|")
    print("| :-- |" + " --: |" * (len(flips) + 2))
    still = np.array([regret({}, seed) for seed in seeds])
    for name, memory in MEMORIES.items():
        found = [np.array([recovery(memory, s, flip) for s in seeds]) for flip in settings.flip]
        lost = np.array([regret(memory, seed) for seed in seeds])
        ratio = f"{lost.mean() / still.mean():.2f}"
        cells = [*(shown(one, np.median) for one in found), shown(lost, np.mean), ratio]
        print("|", " | ".join([name, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
