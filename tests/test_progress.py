"""The bar of an experiment counts runs, those of an earlier run included, and changes nothing."""

import numpy as np
import pytest

import bayesbandit as bb

IRIS = bb.environments.bundled("iris")


def test_what_was_done_before_counts(tmp_path, capsys):
    for names in (["a"], ["a", "b"], ["a", "b"]):
        players = dict.fromkeys(names, bb.LinTS)
        bb.Experiment([IRIS], players, 20, 2).run(out=tmp_path)
        runs = 2 * len(names)
        assert f"{runs}/{runs}" in capsys.readouterr().err


def test_a_run_that_fails_shows_how_far_it_came(capsys):
    def fails(arms, n_features, seed):
        if isinstance(seed, np.random.SeedSequence):
            raise RuntimeError("no")
        return bb.LinTS(arms, n_features)

    with pytest.raises(RuntimeError, match="no"):
        bb.Experiment([IRIS], {"fails": fails}, 20, 2).run()
    assert "0/2" in capsys.readouterr().err


@pytest.mark.slow
def test_two_jobs_move_it(capsys):
    bb.Experiment([IRIS], [bb.LinTS], 150, 4).run(jobs=2)
    assert "4/4" in capsys.readouterr().err
