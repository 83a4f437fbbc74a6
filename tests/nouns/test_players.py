"""The laws of a player, for every one: the presets, and a stranger's."""

from functools import partial

import numpy as np
import pytest
from pandas.testing import assert_frame_equal

import bayesbandit as bb
from bayesbandit.cli.bandits import BANDITS
from tests.cases import all_quick, few, in_gate, long_but, quick_but
from tests.nouns import RECIPE
from tests.players import Constant

THEORY = ("SuperLinUCB", "SuperBLUCB")  # whose own α explores for longer than these tests play
PLAYERS = BANDITS | {name: partial(BANDITS[name], alpha=0.1) for name in THEORY}
PLAYERS |= {"Neighbours": RECIPE["player"].Neighbours}
SYSTEMS = ("BayesianLasso", "BootstrapLasso", "BootstrapRidge", "Forest", "PolicyTree")
SLOW, LONG = [f"{name}TS" for name in SYSTEMS], [f"{name}UCB" for name in SYSTEMS]
NAMES = [name for name in PLAYERS if name not in LONG]
every = pytest.mark.parametrize(
    "name", quick_but([*SLOW, "SuperBLUCB"], NAMES) + long_but((), LONG)
)
WINE = bb.environments.bundled("wine")


def experiment(name, **settings):
    players = {name: PLAYERS[name], "twin": PLAYERS[name]}
    return bb.Experiment([WINE], players, replications=1, seed=1, points=6, **settings)


@every
@few("[BLTS", "Neigh")
@in_gate(6)
def test_it_plays_an_experiment(name, tmp_path):
    """The same numbers each time and by any name; a run in a folder is not run again."""
    table = experiment(name, horizon=60).run(progress=False)
    own, twin = (
        table[table["bandit"] == one].drop(columns="bandit").reset_index(drop=True)
        for one in (name, "twin")
    )
    assert_frame_equal(own, twin)
    assert own["t"].iloc[-1] == 60
    assert own["propensity"].between(0, 1).all()
    first = experiment(name, horizon=60).run(out=tmp_path, progress=False)
    assert_frame_equal(first, table)
    assert_frame_equal(experiment(name, horizon=60).run(out=tmp_path, progress=False), table)


@few("[BLTS]")
@every
@in_gate(5)
def test_it_learns(name):
    """It earns more than an arm at random, of three."""
    table = experiment(name).run(progress=False)
    assert table.groupby("bandit")["reward"].last().mean() > 1.2 * 178 / 3


@every
def test_its_choices(name):
    player = PLAYERS[name](("a", "b"), 2, seed=1)
    for i in range(20):
        choice = player.choose(np.array([1.0, float(i % 2)]))
        assert choice.arm in player.arms
        assert 0 < choice.propensity <= 1
        player.observe(choice, float(choice.arm == "b"))
    greedy = player.greedy(np.array([[1.0, 0.0], [1.0, 1.0]]))
    assert greedy.tolist() == ["b", "b"]
    assert " at 0x" not in repr(player)


def answering(**own):
    """A player that is not quite `Constant`."""

    def factory(arms, n_features, seed):
        player = type("Own", (Constant,), {k: v for k, v in own.items() if callable(v)})
        player = player(arms, n_features)
        vars(player).update({k: v for k, v in own.items() if not callable(v)})
        return player

    return factory


def writes(*arrays):
    for array in arrays:
        array[:] = 7.0


class Writes(Constant):
    """Writes into all that it is given."""

    def choose(self, x):
        writes(x)
        return super().choose(x)

    def update(self, x, arm, reward, propensity):
        writes(x, reward, propensity)

    def greedy(self, x):
        writes(x)
        return [self.arms[0]] * len(x)


def test_what_a_player_is_given_is_its_own():
    """Writing into it changes neither its own results nor those of the others."""
    world = bb.environments.SyntheticExample("well", n_test=20)
    both = {"W": Writes, "LinTS": bb.LinTS}
    alone, beside = (
        bb.Experiment([world], players, horizon=30, replications=1, points=5).run(progress=False)
        for players in ({"F": Constant, "LinTS": bb.LinTS}, both)
    )
    for name, like in (("LinTS", "LinTS"), ("W", "F")):
        for column in ("reward", "regret"):
            found = beside.loc[beside["bandit"] == name, column].to_numpy()
            wanted = alone.loc[alone["bandit"] == like, column].to_numpy()
            np.testing.assert_array_equal(found, wanted)


NO_PLAYERS = {
    "chose 'nowhere'; the arms are": answering(choose=lambda self, x: bb.Choice("nowhere")),
    r"chose \['a'\]; the arms are": answering(choose=lambda self, x: bb.Choice(["a"])),
    r"must choose a bb\.extend\.Choice\(arm, propensity\)": answering(choose=lambda self, x: "a"),
    r"in \[0, 1\], or NaN; got": answering(choose=lambda self, x: bb.Choice("class_0", 2.0)),
    "has the arms": lambda arms, n_features, seed: bb.LinTS(5, n_features),
    "has n_features = 2; wine has 13": answering(n_features=2),
}


def test_a_propensity_may_be_unknown():
    player = answering(choose=lambda self, x: bb.Choice("class_0"))
    table = bb.Experiment([WINE], {"odd": player}, 5, 1, points=6).run(progress=False)
    assert table["propensity"].isna().all()


@all_quick()
@pytest.mark.parametrize("match", NO_PLAYERS)
def test_what_is_no_player_is_named(match):
    made = bb.Experiment([WINE], {"odd": NO_PLAYERS[match]}, 5, 1, points=6)
    with pytest.raises((RuntimeError, TypeError, ValueError), match=match):
        made.run(progress=False)
