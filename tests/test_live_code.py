"""A run is of one code: its results are kept for the code that made them."""

import bayesbandit as bb
from bayesbandit.cli.bandits import parse_bandit
from bayesbandit.experiments import experiment as runner

IRIS = bb.environments.bundled("iris")
PLAYER = """
import bayesbandit as bb

class P:
    def __init__(self, arms, n_features, seed=0):
        self.arms, self.n_features = tuple(arms), n_features
    def choose(self, x):
        return bb.Choice(self.arms[0], 1.0)
    def observe(self, choice, reward):
        pass
def player(arms, n_features, seed=0):
    {twice}
    return P(arms, n_features)
"""


def test_a_factorys_own_body_counts(tmp_path, monkeypatch):
    """What it gives is the same where a player is only described."""
    file = tmp_path / "mine.py"
    begun, play_unit = [], runner.play_unit

    def counted(*unit, **settings):
        begun.append(unit)
        return play_unit(*unit, **settings)

    monkeypatch.setattr(runner, "play_unit", counted)
    played = []
    for twice in ("", "", "n_features + 0"):
        file.write_text(PLAYER.format(twice=twice))
        players = dict([parse_bandit(f"{file}:player")])
        experiment = bb.Experiment([IRIS], players, 20, 4, points=5)
        experiment.run(1, tmp_path / "out", progress=False)
        played.append(len(begun))
    assert played == [4, 4, 8]
