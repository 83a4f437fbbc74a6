"""The attacks with fixed seeds; `uv run python -m tests.attack --minutes 5` has fresh ones."""

import pytest
from hypothesis import settings

from tests.attack.flips import flip
from tests.attack.kills import kill
from tests.attack.machine import Machine

TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("name", ["LinTS", "BLTS pooled"])
def test_flips(name, tmp_path):
    refused, same = flip(tmp_path, 1, name)
    assert refused > 25
    assert refused + same == 50


def test_kills(tmp_path):
    kill(tmp_path, 1)
