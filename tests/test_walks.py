"""How many of the package's files one decision goes through: what somebody reads who follows it."""

from collections.abc import Callable
from pathlib import Path
from sys import monitoring

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb

PACKAGE = Path(bb.__file__).parent
TOOL = 4  # a number that neither debuggers nor coverage take
MOST = {"a function α": 5, "a dict": 6, "Boltzmann": 7, "Shared": 10}  # one has names alone


def entered(call: Callable[[], object]) -> set[str]:
    """Return the files of the package in which a function runs during a call."""
    files: set[str] = set()
    monitoring.use_tool_id(TOOL, "walks")
    monitoring.register_callback(
        TOOL, monitoring.events.PY_START, lambda code, _: files.add(code.co_filename)
    )
    try:
        monitoring.set_events(TOOL, monitoring.events.PY_START)
        call()
    finally:
        monitoring.set_events(TOOL, monitoring.events.NO_EVENTS)
        monitoring.free_tool_id(TOOL)
    ours = (Path(file) for file in files)
    return {str(f.relative_to(PACKAGE)) for f in ours if f.is_relative_to(PACKAGE)}


def walks(name: str) -> Callable[[], object]:
    """Return a decision that has been made before, so that nothing is compiled or imported."""
    x, frame = np.ones(2), pd.DataFrame({"age": [20.0, 30.0, 45.0], "city": ["A", "B", "A"]})
    context: object = x
    match name:
        case "a function α":
            policy = bb.Thompson(alpha=lambda t: 1.0 + 1.0 / t)
            bandit = bb.Bandit(3, bb.Ridge(), policy, n_features=2)
        case "a dict":
            encoder, context = bb.Encoder.fit(frame), {"age": 25.0, "city": "B"}
            bandit = bb.Bandit(3, bb.Ridge(), bb.Thompson(), encoder=encoder)
        case "Boltzmann":
            bandit = bb.Bandit(3, bb.Ridge(), bb.Boltzmann(temperature=1.0), n_features=2)
        case _:
            context = np.eye(3, 2)
            bandit = bb.Bandit(3, bb.Shared(bb.Ridge()), bb.Thompson(), n_features=2)
    for reward in range(6):  # no arm stays new
        bandit.observe(bandit.choose(context), float(reward))
    bandit.choose(context)
    return lambda: bandit.choose(context)


@pytest.mark.few("")
@pytest.mark.parametrize("name", MOST)
def test_a_decision_goes_through_few_files(name):
    files = entered(walks(name))
    assert "bandit/bandit.py" in files
    assert len(files) <= MOST[name], sorted(files)


def test_a_stored_decision_goes_through_few_files(tmp_path):
    """What somebody reads who follows `service.decide`, from the context to the database."""
    pytest.importorskip("sqlalchemy")
    bandit = bb.LinTS(3, n_features=2)
    service = bb.Service(bandit, bb.DecisionLog(f"sqlite:///{tmp_path / 'offers.db'}"))
    x = np.ones(2)
    for reward in range(6):
        service.reward(service.decide(x).id, float(reward))
    service.learn()
    service.decide(x)
    files = entered(lambda: service.decide(x))
    assert "service/service.py" in files
    assert len(files) <= 10, sorted(files)
