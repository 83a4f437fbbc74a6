"""The yardstick and bayesbandit, in one process: `python ours.py`.

One step is one `choose` and one `observe` through the public API. No intercept column, as with the
yardstick and the peers, so that d is the number of columns everywhere. BLTS's exact propensity is
read in every round, as one who logs it would.
"""

from importlib.metadata import version

import numpy as np
import yardstick
from clock import Contestant, K, Play, in_batches, serve

import bayesbandit as bb

TRAINED = 300  # rounds known before batches are served


def plain_lints(x: np.ndarray, reward: np.ndarray) -> Play:
    yardstick.prove(x[:500], reward[:500])
    state, step = yardstick.start(K, x.shape[1]), yardstick.step

    def play(start: int, stop: int) -> None:
        for row, rewards in zip(x[start:stop], reward[start:stop], strict=True):
            step(row, rewards, state)

    return play


def preset(name: str, d: int, **settings: object) -> "bb.Bandit":
    make = getattr(bb, name)
    return make(list(range(K)), n_features=d, intercept=False, seed=0, **settings)


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
    return in_batches(bandit.choose, x)


def compiled_loop(bandit: "bb.Bandit", x: np.ndarray, reward: np.ndarray) -> object:
    """All rounds in the experiment runner's one compiled loop."""
    from bayesbandit.experiment import play

    return play(bandit, x, reward)


def in_the_compiled_loop(name: str) -> Contestant:
    def build(x: np.ndarray, reward: np.ndarray) -> Play:
        bandit = preset(name, x.shape[1])
        return lambda start, stop: compiled_loop(bandit, x[start:stop], reward[start:stop])

    return build


OURS: dict[str, Contestant] = {
    "yardstick": plain_lints,
    "LinTS": one_by_one("LinTS"),
    "LinUCB": one_by_one("LinUCB"),
    "BLTS": one_by_one("BLTS", log=True),
    "greedy": one_by_one("LinTS", alpha=0.0),
    "LinTS ridge=cv": one_by_one("LinTS", ridge="cv"),  # 5 folds, 7 λ: the default grid
    "batch LinTS": batch_choice,
    "compiled loop LinTS": in_the_compiled_loop("LinTS"),
    "compiled loop BLTS": in_the_compiled_loop("BLTS"),
}

if __name__ == "__main__":
    serve(version("bayesbandit"), OURS)
