"""The yardstick and bayesbandit, in one process: `python ours.py`.

One step is one `choose` and one `observe` through the public API. No intercept column, as with the
yardstick and the peers, so that d is the number of columns everywhere; one line has it. BLTS works
out the exact propensity of each decision in `observe`, to weight by it; one line also reads it.
"""

from importlib.metadata import version
from typing import Any

import numpy as np
import yardstick
from clock import Contestant, K, Play, in_batches, serve

import bayesbandit as bb

TRAINED = 300  # rounds known before batches are served


def plain_lints(padded: bool) -> Contestant:
    def build(x: np.ndarray, reward: np.ndarray) -> Play:
        yardstick.prove(x[:500], reward[:500])
        state, step = yardstick.start(K, x.shape[1], padded), yardstick.step

        def play(start: int, stop: int) -> None:
            for row, rewards in zip(x[start:stop], reward[start:stop], strict=True):
                step(row, rewards, state)

        return play

    return build


def preset(name: str, d: int, **settings: object) -> "bb.Bandit":
    settings = {"intercept": False, "seed": 0} | settings
    return getattr(bb, name)(list(range(K)), n_features=d, **settings)


def one_by_one(name: str, log: bool = False, **settings: object) -> Contestant:
    def build(x: np.ndarray, reward: np.ndarray) -> Play:
        bandit, rewards = preset(name, x.shape[1], **settings), reward.tolist()

        def play(start: int, stop: int) -> None:
            for row, own in zip(x[start:stop], rewards[start:stop], strict=True):
                decision = bandit.choose(row)
                if log:
                    _ = decision.propensity
                bandit.observe(decision, own[decision.arm])

        return play

    return build


def batch_choice(x: np.ndarray, reward: np.ndarray) -> Play:
    bandit = preset("LinTS", x.shape[1])
    arm = np.arange(TRAINED) % K
    bandit.update(x[:TRAINED], arm, reward[np.arange(TRAINED), arm])
    return in_batches(lambda rows: bandit.choose(rows).arm, x)


def compiled_loop(bandit: "bb.Bandit", x: np.ndarray, reward: np.ndarray, every: int) -> None:
    """All rounds in the experiment runner's one compiled loop; a propensity each `every` rounds."""
    arm, propensity = bandit.play(x, reward, every)
    if not len(arm) == len(propensity) == len(x) or np.isnan(propensity[::every]).any():
        raise RuntimeError("the compiled loop has not played its rounds")


def in_the_compiled_loop(name: str, every: int) -> Contestant:
    def build(x: np.ndarray, reward: np.ndarray) -> Play:
        bandit = preset(name, x.shape[1])
        return lambda start, stop: compiled_loop(bandit, x[start:stop], reward[start:stop], every)

    return build


CV: dict[str, Any] = {"ridge": "cv", "folds": 5, "grid": tuple(10.0**p for p in range(-3, 4))}
OURS: dict[str, Contestant] = {
    "yardstick": plain_lints(padded=True),
    "yardstick, rows not padded": plain_lints(padded=False),
    "LinTS": one_by_one("LinTS"),
    "LinUCB": one_by_one("LinUCB"),
    "BLTS": one_by_one("BLTS"),
    "BLTS, propensity read": one_by_one("BLTS", log=True),
    "greedy": one_by_one("LinGreedy"),
    "LinTS, intercept": one_by_one("LinTS", intercept=True),
    "LinTS ridge=cv": one_by_one("LinTS", **CV),
    "batch LinTS": batch_choice,
    "compiled loop LinTS": in_the_compiled_loop("LinTS", every=100),
    "compiled loop LinTS, every propensity": in_the_compiled_loop("LinTS", every=1),
    "compiled loop BLTS": in_the_compiled_loop("BLTS", every=1),
}

if __name__ == "__main__":
    serve(version("bayesbandit"), OURS)
