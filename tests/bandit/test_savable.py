"""Settings of one's own classes come back from a file as they were, or it says what it lacks."""

import importlib
import subprocess
import sys
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.runtime import savable


@dataclass(frozen=True, eq=False)
class Inner:
    power: float = 2.0


@dataclass(frozen=True, eq=False)
class Even:
    """A policy and a balance of any settings."""

    setting: Any = None
    alpha: Any = None
    inner: Any = field(default_factory=Inner)

    def probabilities(self, prediction, t=1):
        return np.full(prediction.mean.shape, 1.0 / prediction.mean.shape[1])

    def weights(self, history, belief):
        return np.ones(len(history))


Mode = StrEnum("Mode", "EVEN BEST")
Place = Enum("Place", {"HERE": (1, 2.0), "THERE": None})


@pytest.fixture(autouse=True)
def registered():
    """For these tests alone."""
    kinds = [bb.savable(kind) for kind in (Inner, Even, Mode, Place)]
    yield
    for kind in kinds:
        del savable.KINDS[savable.name_of(kind)]


def made(policy=None, balance=None):
    bandit = bb.Bandit(2, bb.Ridge(), policy or Even(), balance, n_features=1, seed=0)
    bandit.update([[1.0], [2.0]], [0, 1], [1.0, 0.0], [0.5, 0.5])
    return bandit


SETTINGS = {
    "nothing": None,
    "a number": 1,
    "not a number": float("nan"),
    "infinite": float("inf"),
    "NumPy's number": np.float64(0.25),
    "text": "kind",
    "a tuple": (1, (2.0, "a")),
    "a part": Inner(power=3.0),
    "a word of several": Mode.BEST,
    "one of several": Place.HERE,
}


def equal(one, other):
    if isinstance(one, Inner):
        return one.power == other.power
    return type(one) in (type(other), np.float64) and (one == other or one != one)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("part", ["policy", "balance"])
def test_settings_come_back(name, part, tmp_path):
    setting = SETTINGS[name]
    bandit = made(**{part: Even(setting)})
    bandit.save(tmp_path / "bandit")
    found = getattr(bb.Bandit.load(tmp_path / "bandit"), part)
    assert equal(setting, found.setting)
    assert found.inner.power == 2.0
    again = bb.Bandit.load(tmp_path / "bandit", **{part: Even(setting)})
    assert equal(setting, getattr(again, part).setting)


KEPT_OUT = {
    "function": lambda t: 0.5,
    "list": [1.0],
    "dict": {"a": 1.0},
    "ndarray": np.ones(2),
    "Other": Enum("Other", "A B").A,
}


@pytest.mark.parametrize("part", ["policy", "balance"])
@pytest.mark.parametrize("kind", KEPT_OUT)
def test_what_a_file_does_not_hold_is_asked_for(kind, part, tmp_path):
    """In a setting, or in a setting of a setting; other settings must be those of the file."""
    setting = KEPT_OUT[kind]
    for wrapped in (setting, (1, Inner(setting))):
        made(**{part: Even(wrapped)}).save(tmp_path / "bandit")
        with pytest.raises(ValueError, match=rf"setting of the {part} .*Even was a .*{kind}"):
            bb.Bandit.load(tmp_path / "bandit")
        given = Even(wrapped)
        assert getattr(bb.Bandit.load(tmp_path / "bandit", **{part: given}), part) is given
        if part == "balance":  # a file may get another policy
            with pytest.raises(ValueError, match="of other settings than"):
                bb.Bandit.load(tmp_path / "bandit", balance=Even(2.0))


@pytest.mark.slow
def test_a_fresh_process_finds_the_classes_that_packages_offer(tmp_path):
    """As those of the toolkit's own systems, without an import by hand."""
    names = "Bootstrap", "Forest", "SuperUCB", "PolicyMixture", "PolicyTree", "KernelBalance"
    for name in names:
        made, balance = savable.kind_of(name)(), None
        if name == "KernelBalance":
            made, balance = bb.Ridge(), made
        bb.Bandit(2, made, bb.Thompson(), balance, n_features=1).save(tmp_path / name)
    code = "import sys, bayesbandit as bb\nfor path in sys.argv[1:]: print(bb.Bandit.load(path))"
    paths = [str(tmp_path / name) for name in names]
    run = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True)
    for name, line in zip(names, run.stdout.splitlines(), strict=True):
        assert name in line, run.stderr


OFFERED = """
from dataclasses import dataclass
import numpy as np
import bayesbandit as bb

@bb.savable
@dataclass(frozen=True)
class Halves:
    def probabilities(self, belief, x, t=1):
        return np.full((len(x), 2), 0.5)
"""


@pytest.mark.parametrize("module", ["offered_even", "offering"])
def test_a_class_of_a_package_is_imported_when_a_file_names_it(tmp_path, monkeypatch, module):
    (tmp_path / "offering.py").write_text("from offered_even import Halves\n")
    (tmp_path / "offered_even.py").write_text(OFFERED)
    info = tmp_path / "halves-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: halves\nVersion: 1.0\n")
    points = info / "entry_points.txt"
    points.write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "b"
    made(importlib.import_module("offered_even").Halves()).save(path)
    del savable.KINDS["offered_even:Halves"], sys.modules["offered_even"]
    with pytest.raises(ValueError, match="offered_even:Halves, whose module must be imported"):
        bb.Bandit.load(path)
    assert "offered_even" not in sys.modules
    points.write_text(f"[bayesbandit.savable]\nhalves = {module}:Halves\n")
    importlib.invalidate_caches()
    assert type(bb.Bandit.load(path).policy).__name__ == "Halves"
    del savable.KINDS["offered_even:Halves"], sys.modules["offered_even"]
    sys.modules.pop("offering", None)
