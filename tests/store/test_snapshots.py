"""Old snapshots go, and nothing that a log promises goes with them."""

import numpy as np
import pytest

import bayesbandit as bb

pytest.importorskip("sqlalchemy")

from tests.service.test_killing import FORK
from tests.service.test_service import begun, same
from tests.store.databases import KINDS, fresh


def lived(url, n):
    service, clock = begun(url, snapshot_every=1)
    rng = np.random.default_rng(0)
    for _ in range(n):
        service.reward(service.decide(rng.normal(size=2)).id, float(rng.random()))
        service.learn()
    return service, clock


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_log_promises_what_it_promised(kind, tmp_path):
    service, clock = lived(fresh(kind, tmp_path), 40)
    log = service.log
    behind = bb.Service.open(log, clock=clock)
    assert log.counts()["snapshots"] == 2  # the first and the newest
    assert log.verify().empty
    for version in (0, 7, 23, 40):
        assert log.replay(version=version).t == version
    assert same(log.replay(), service.bandit)
    assert same(behind.bandit, service.bandit)


def replayed(url, together, said):
    """Follow, replay and verify while another process learns and removes snapshots."""
    with bb.DecisionLog(url) as log:
        service = bb.Service.open(log)
        together.wait()
        for _ in range(4):
            version = service.sync()
            t = log.replay(version=version).t, service.bandit.t
            said.put((version, t, len(log.verify()), bb.Service.open(log).version >= version))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_who_reads_meanwhile_misses_nothing(kind, tmp_path):
    url = fresh(kind, tmp_path)
    begun(url)[0].decide([0.0, 0.0])
    together, said = FORK.Barrier(3), FORK.Queue()
    readers = [FORK.Process(target=replayed, args=(url, together, said)) for _ in range(2)]
    for reader in readers:
        reader.start()
    together.wait()
    service, _ = lived(url, 60)
    for _ in range(8):
        version, (replay, own), violations, newer = said.get(timeout=120)
        assert replay == own == version
        assert violations == 0
        assert newer
    for reader in readers:
        reader.join()
    assert service.version == 60


SETTINGS = {
    "Declared": {"engine": "laplace", "half_life": 30.0},
    "Sampled": {"engine": "gibbs", "draws": 60, "refit_below": 0.4},
    "Laplace": {"refit_every": 5},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SETTINGS)
def test_a_log_holds_how_a_declared_model_learns(kind, tmp_path):
    """Who opens it needs not say it again, and learns the same."""
    model = getattr(bb, kind)(bb.load_model("logistic"), **SETTINGS[kind])
    bandit = bb.Bandit(["a", "b"], model, bb.Thompson(), n_features=2, seed=0)
    service, clock = begun(fresh("sqlite", tmp_path), bandit)
    follower = bb.Service.open(service.log, clock=clock)
    for seed in range(2):
        ids = service.decide(np.random.default_rng(seed).normal(size=(8, 2))).id.tolist()
        service.reward(ids, [0.0, 1.0] * 4)
        service.learn()
    service.snapshot()
    follower.sync()
    for other in (follower, bb.Service.open(service.log, clock=clock)):
        assert other.bandit.spec == model
        assert same(other.bandit, service.bandit)
    assert service.log.verify().empty
