"""Another processor gives the same to 1e-12, and reads what was saved on this one. Weights that an
optimiser finds agree to its tolerance.

The other processor is a process that may use fewer instructions: OpenBLAS's kernels for Nehalem,
NumPy's for any x86-64, and then numba's, too. Its kernels are kept in the folder
GENERIC_KERNELS, if that is set.
"""

import os
import pickle
import platform
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

import bayesbandit as bb
from tests.cases import long_but
from tests.nouns.stage import ARMS, D, world

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        platform.machine().lower() not in ("x86_64", "amd64"), reason="the variables are of x86-64"
    ),
]
FEWER = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": " ".join(n for n in __cpu_dispatch__ if __cpu_features__.get(n)),
}
PROCESSORS = {"BLAS and NumPy": FEWER, "numba, too": FEWER | {"NUMBA_CPU_NAME": "generic"}}
OPTIMISED = {"BLUCB": 1e-7, "ResidualBalance": 1e-7}
FRAME = pd.DataFrame({"age": [31.0, 44.0, 27.0, 65.0], "country": ["de", "fr", "de", "it"]})


def bandits() -> Iterator[tuple[str, bb.Bandit]]:
    """Bandits of each kind of arithmetic, before any round."""
    for preset in (bb.LinTS, bb.LinUCB, bb.BLTS, bb.BLUCB, bb.SuperLinUCB, bb.PolicyTreeTS):
        yield preset.__name__, preset(ARMS, D, seed=3)
    yield "cv", bb.LinTS(ARMS, D, ridge="cv", seed=3)
    yield "nig", bb.LinTS(ARMS, D, variance="nig", seed=3)
    yield "pooled", bb.BLTS(ARMS, D, propensity="pooled", seed=3)
    for balance in (bb.ResidualBalance(), bb.KernelBalance()):
        made = bb.Bandit(ARMS, bb.Ridge(), bb.Boltzmann(0.5), balance, n_features=D, seed=3)
        yield type(balance).__name__, made
    declared = bb.load_model("ridge_known_noise")
    yield "declared", bb.Bandit(ARMS, declared, bb.Thompson(), n_features=D, seed=3)
    yield "top two", bb.Bandit(ARMS, bb.Ridge(), bb.TopTwo(), n_features=D, seed=3)


def rounds() -> dict[str, tuple[list[str], np.ndarray, bytes]]:
    """By bandit: the arms chosen in 20 rounds, what it then thinks of 5 contexts, and its file."""
    found = {}
    for name, bandit in bandits():
        arms = []
        for x, reward in zip(*world(20), strict=True):
            decision = bandit.choose(x)
            arms.append(decision.arm)
            bandit.observe(decision, float(reward[ARMS.index(decision.arm)]))
        bandit.save("bandit.npz")
        with open("bandit.npz", "rb") as file:
            found[name] = arms, thinks(bandit), file.read()
    return found


def thinks(bandit: bb.Bandit) -> np.ndarray:
    """Means, sds and probabilities (5, 3K)."""
    decision = bandit.copy().choose(world(5, 7)[0])
    return np.hstack([decision.mean, decision.sd, decision.probabilities])


def played() -> pd.DataFrame:
    """An experiment, in a folder that the other processor continues."""
    wine = bb.environments.bundled("wine")
    return bb.Experiment([wine], [bb.LinTS], 60, replications=1).run(out="runs", progress=False)


def told() -> tuple:
    """All that a process says: rounds, an encoder with its features, and an experiment's table."""
    encoder = bb.Encoder.formula("~ country + bs(age, df=4)", FRAME)
    return rounds(), encoder.to_dict(), encoder.transform(FRAME), played()


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("here"))
        return told()


@pytest.mark.parametrize("processor", long_but(["numba, too"], PROCESSORS))
def test_another_processor(processor, here, tmp_path, monkeypatch):
    code = "import pickle, sys; from tests.test_processors import told; "
    code += "sys.stdout.buffer.write(pickle.dumps(told()))"
    limits = PROCESSORS[processor] | {"PYTHONPATH": os.getcwd()}
    if "NUMBA_CPU_NAME" in limits:
        limits["NUMBA_CACHE_DIR"] = os.environ.get("GENERIC_KERNELS", str(tmp_path / "numba"))
    out = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=tmp_path, env=os.environ | limits,
        stdout=subprocess.PIPE, check=True,
    ).stdout  # fmt: skip
    there, encoder, features, table = pickle.loads(out)
    own, _, own_features, own_table = here
    monkeypatch.chdir(tmp_path)
    pd.testing.assert_frame_equal(played(), table)
    pd.testing.assert_frame_equal(own_table, table, rtol=1e-12)
    np.testing.assert_allclose(features, own_features, rtol=1e-12, atol=1e-14)
    read = bb.Encoder.from_dict(encoder)
    np.testing.assert_allclose(read.transform(FRAME), own_features, rtol=1e-12, atol=1e-14)
    for name, (arms, thought, file) in there.items():
        assert arms == own[name][0], name
        to = OPTIMISED.get(name, 1e-12)
        np.testing.assert_allclose(thought, own[name][1], rtol=to, atol=to, err_msg=name)
        (tmp_path / "bandit.npz").write_bytes(file)
        loaded = bb.Bandit.load(tmp_path / "bandit.npz")
        np.testing.assert_allclose(thinks(loaded), thought, rtol=1e-12, atol=1e-12, err_msg=name)
        assert loaded.history.arm.tolist() == arms
