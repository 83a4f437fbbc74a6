"""Every estimator gives what Open Bandit Pipeline gives; the file has its numbers, and a log."""

import json
from pathlib import Path

import pytest

from bayesbandit.ope import Log, estimate

OBP = json.loads((Path(__file__).parent / "logs" / "obp.json").read_text())
TUNING = {"clip": 2.0, "tau": 1.5, "lam": 4.0}


@pytest.mark.parametrize("estimator", OBP["values"])
def test_as_open_bandit_pipeline(estimator):
    log = Log(None, OBP["arm"], OBP["reward"], OBP["probabilities"])
    found = estimate(log, OBP["target"], estimator, OBP["mean"], "equal", **TUNING)
    assert found.value == pytest.approx(OBP["values"][estimator], abs=1e-12)
