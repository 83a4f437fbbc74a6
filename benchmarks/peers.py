"""The peers, each through its public interface: `python peers.py NAME` where NAME is installed.

Everyone gets ridge 1, exploration 1 and no intercept, and the stream in the form that it takes
(dicts, lists, text, one-row arrays), converted off the clock.
"""

import random
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from clock import Contestant, K, Play, in_batches, serve

TRAINED = 300  # rounds played before batches are served


def _rows(x: np.ndarray) -> list[np.ndarray]:
    return [row[None] for row in x]


def served(play: Play, choose: Callable[[np.ndarray], object], x: np.ndarray) -> Play:
    """Batch choice after some rounds of learning."""
    play(0, TRAINED)
    return in_batches(choose, x)


def mabwiser() -> dict[str, Contestant]:
    from mabwiser.mab import MAB, LearningPolicy

    def contestant(policy: object, batch: bool = False) -> Contestant:
        def build(x: np.ndarray, reward: np.ndarray) -> Play:
            bandit = MAB(list(range(K)), policy, seed=0)
            bandit.fit(list(range(K)), [float(reward[k, k]) for k in range(K)], x[:K])
            rows, rewards = _rows(x), reward.tolist()

            def play(start: int, stop: int) -> None:
                for t in range(start, stop):
                    arm = bandit.predict(rows[t])
                    bandit.partial_fit([arm], [rewards[t][arm]], rows[t])

            return served(play, bandit.predict, x) if batch else play

        return build

    lints = LearningPolicy.LinTS(alpha=1.0, l2_lambda=1.0)
    linucb = LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0)
    return {
        "LinTS": contestant(lints),
        "LinUCB": contestant(linucb),
        "batch LinTS": contestant(lints, batch=True),
        "batch LinUCB": contestant(linucb, batch=True),
    }


def contextualbandits() -> dict[str, Contestant]:
    from contextualbandits.online import LinTS, LinUCB

    def contestant(make: Callable[[], Any], batch: bool = False) -> Contestant:
        def build(x: np.ndarray, reward: np.ndarray) -> Play:
            bandit, rows = make(), _rows(x)

            def play(start: int, stop: int) -> None:
                for t in range(start, stop):
                    arm = bandit.predict(rows[t])
                    bandit.partial_fit(rows[t], arm, reward[t, arm])

            return served(play, bandit.predict, x) if batch else play

        return build

    common = {"fit_intercept": False, "method": "sm", "random_state": 1}

    def lints() -> object:
        return LinTS(K, sample_from="ci", **common)

    def linucb() -> object:
        return LinUCB(K, **common)

    return {
        "LinTS": contestant(lints),
        "LinUCB": contestant(linucb),
        "batch LinTS": contestant(lints, batch=True),
        "batch LinUCB": contestant(linucb, batch=True),
    }


def bayesianbandits() -> dict[str, Contestant]:
    from bayesianbandits import (
        Arm,
        ContextualAgent,
        NormalInverseGammaRegressor,
        NormalRegressor,
        ThompsonSampling,
        UpperConfidenceBound,
    )

    def contestant(
        learner: Callable[[], object], policy: Callable[[], object], batch: bool = False
    ) -> Contestant:
        def build(x: np.ndarray, reward: np.ndarray) -> Play:
            arms = [Arm(k, learner=learner()) for k in range(K)]
            bandit, rows = ContextualAgent(arms, policy(), random_seed=0), _rows(x)

            def play(start: int, stop: int) -> None:
                for t in range(start, stop):
                    (arm,) = bandit.pull(rows[t])
                    bandit.update(rows[t], reward[t, arm : arm + 1])

            return served(play, bandit.pull, x) if batch else play

        return build

    def normal() -> object:
        return NormalRegressor(alpha=1.0, beta=1.0)

    return {
        "normal TS": contestant(normal, ThompsonSampling),
        "normal UCB": contestant(normal, UpperConfidenceBound),
        "normal-inverse-gamma TS": contestant(NormalInverseGammaRegressor, ThompsonSampling),
        "batch normal TS": contestant(normal, ThompsonSampling, batch=True),
    }


def vowpalwabbit() -> dict[str, Contestant]:
    """SGD, not least squares, and no Thompson or UCB: the nearest are ε-greedy and SquareCB.

    It reads text. "Text given" has the contexts written before the clock starts, which is kinder
    than a caller with numbers can be; "text written" writes each one on the clock.
    """
    from vowpalwabbit import Workspace

    def epsilon_greedy(written: bool) -> Contestant:
        def build(x: np.ndarray, reward: np.ndarray) -> Play:
            bandit = Workspace(f"--cb_explore {K} --epsilon 0.1 --noconstant --quiet")
            texts, rewards = _texts(x, "|"), reward.tolist()
            form = "| " + " ".join(f"f{j}:%.6g" for j in range(x.shape[1]))
            rng, arms = random.Random(0), range(K)

            def play(start: int, stop: int) -> None:
                for t in range(start, stop):
                    text = texts[t] if written else form % tuple(x[t].tolist())
                    p = bandit.predict(text)
                    (arm,) = rng.choices(arms, p)
                    bandit.learn(f"{arm + 1}:{-rewards[t][arm]}:{p[arm]} {text}")

            return play

        return build

    def squarecb(x: np.ndarray, reward: np.ndarray) -> Play:
        bandit = Workspace("--cb_explore_adf --squarecb -q ca --noconstant --quiet")
        texts, rewards = _texts(x, "shared |c"), reward.tolist()
        lines, rng, arms = [f"|a {k}" for k in range(K)], random.Random(0), range(K)

        def play(start: int, stop: int) -> None:
            for t in range(start, stop):
                p = bandit.predict([texts[t], *lines])
                (arm,) = rng.choices(arms, p)
                label = f"0:{-rewards[t][arm]}:{p[arm]} {lines[arm]}"
                bandit.learn([texts[t], *lines[:arm], label, *lines[arm + 1 :]])

        return play

    return {
        "ε-greedy, text given": epsilon_greedy(written=True),
        "ε-greedy, text written": epsilon_greedy(written=False),
        "SquareCB, text given": squarecb,
    }


def _texts(x: np.ndarray, head: str) -> list[str]:
    # names, not bare numbers: numbers are taken as hashes, and the arms' weights then collide
    return [" ".join([head, *(f"f{j}:{v:.6g}" for j, v in enumerate(row))]) for row in x]


def coba() -> dict[str, Contestant]:
    from coba.learners import LinTSLearner, LinUCBLearner

    def contestant(make: Callable[[], Any]) -> Contestant:
        def build(x: np.ndarray, reward: np.ndarray) -> Play:
            bandit, rows, rewards = make(), x.tolist(), reward.tolist()
            actions = [tuple(int(k == j) for j in range(K)) for k in range(K)]

            def play(start: int, stop: int) -> None:
                for t in range(start, stop):
                    action, p = bandit.predict(rows[t], actions)
                    bandit.learn(rows[t], action, rewards[t][action.index(1)], p)

            return play

        return build

    return {
        "LinTS": contestant(lambda: LinTSLearner(v=1, features=["ax"])),
        "LinUCB": contestant(lambda: LinUCBLearner(alpha=1, features=["ax"])),
    }


def river() -> dict[str, Contestant]:
    from river.bandit import LinUCBDisjoint

    def linucb(x: np.ndarray, reward: np.ndarray) -> Play:
        bandit, arms = LinUCBDisjoint(alpha=1.0, beta=1.0, seed=0), list(range(K))
        rows, rewards = [dict(enumerate(row)) for row in x.tolist()], reward.tolist()

        def play(start: int, stop: int) -> None:
            for t in range(start, stop):
                arm = bandit.pull(arms, rows[t])
                bandit.update(arm, rows[t], rewards[t][arm])

        return play

    return {"LinUCB": linucb}


def obp() -> dict[str, Contestant]:
    from obp.policy import LinTS, LinUCB

    def contestant(make: Callable[[int], Any]) -> Contestant:
        def build(x: np.ndarray, reward: np.ndarray) -> Play:
            bandit, rows, rewards = make(x.shape[1]), _rows(x), reward.tolist()

            def play(start: int, stop: int) -> None:
                for t in range(start, stop):
                    arm = bandit.select_action(rows[t])[0]
                    bandit.update_params(arm, rewards[t][arm], rows[t])

            return play

        return build

    return {
        "LinTS": contestant(lambda d: LinTS(dim=d, n_actions=K, random_state=0)),
        "LinUCB": contestant(lambda d: LinUCB(dim=d, n_actions=K, random_state=0, epsilon=1.0)),
    }


PEERS: dict[str, Callable[[], dict[str, Contestant]]] = {
    peer.__name__: peer
    for peer in (mabwiser, contextualbandits, bayesianbandits, vowpalwabbit, coba, river, obp)
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    name = sys.argv[1]
    serve(version(name), PEERS[name]())
