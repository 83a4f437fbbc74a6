"""Whoever is killed, whenever: what was returned is in the log, and counts once."""

import os

import pytest

pytest.importorskip("sqlalchemy")

from tests.service.killing import killed


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills")
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_nothing_is_lost_and_nothing_counts_twice(database, tmp_path):
    found, counts = killed(database, tmp_path, times=12)
    assert not found
    assert counts["told"]["decision"] > 50
    assert counts["told"]["reward"] > 20
    assert counts["versions"] > 3
