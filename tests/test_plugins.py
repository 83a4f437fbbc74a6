"""What installed packages offer: named with its package, and none that fails hides the others."""

import importlib
import shutil
import sys

import pytest

import bayesbandit as bb
from bayesbandit.cli.bandits import parse_bandit
from bayesbandit.runtime import fingerprints, user_modules
from tests.cases import few
from tests.commands import run

IRIS = bb.environments.bundled("iris")
ODD = {"boom": "fp_boom:X", "missing": "fp_ok:Nope", "syntax": "fp_syntax:X", "raises": "fp_rt:X"}
WHY = {
    "boom": "ModuleNotFoundError: No module named 'nosuchlib'",
    "missing": "AttributeError: module 'fp_ok' has no attribute 'Nope'",
    "syntax": "SyntaxError: invalid syntax",
    "raises": "RuntimeError: no GPU",
}
OFFERED = {
    "players": ODD | {"Own": "fp_ok:Own", "number": "fp_ok:NUMBER", "Both": "fp_ok:Own"},
    "models": ODD | {"offered": "fp_ok:offered", "number": "fp_ok:NUMBER", "both": "fp_ok:offered",
                     "mine": "fp_ok:offered"},
    "studies": ODD | {"half": "fp_ok", "large": "fp_fails:large", "both": "fp_fails:large",
                      "fails": "fp_fails:study"},
}  # fmt: skip
FILES = {
    "fp_boom": "import nosuchlib\n",
    "fp_syntax": "def (:\n",
    "fp_rt": "raise RuntimeError('no GPU')\n",
    "fp_fails": """
import bayesbandit as bb
import os
def part(name):
    def called(*args):
        if os.environ.get("FAILS") == name:
            raise LookupError("no " + name)
        if name == "environments":
            return [bb.environments.bundled("iris")]
        return {} if name == "figures" else bb.evaluation.regrets(args[0]) if name == "table" \\
            else {"More": args[0]} if name == "details" else args[0]
    return called
names = ["environments", "table", "printed", "details", "figures"]
study = bb.Study(title="A study", players={"LinTS": bb.LinTS}, replications=1, horizon=9, points=2,
                 quick={"points": 2}, **{name: part(name) for name in names})
large = bb.Study(title="", environments=[], players={}, table=part("table"),
                 figures=part("figures"))
""",
    "fp_ok": """
import bayesbandit as bb, pymc as pm
NUMBER = 3
class Own:
    def __init__(self, arms, n_features, seed=0):
        self.arms, self.n_features = tuple(arms), n_features
    def __repr__(self):
        return "Own()"
    def choose(self, x):
        return bb.Choice(self.arms[0], 1.0)
    def observe(self, choice, reward):
        pass
@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"))
def offered(x, reward, theta):
    pm.Normal("reward", x @ theta, 1.0, observed=reward)
    return x @ theta
""",
}


def install(folder, package, version, offered):
    name = package.replace("-", "_")
    for former in folder.glob(f"{name}-*"):
        shutil.rmtree(former)
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (info / "top_level.txt").write_text("\n".join(FILES))
    lines = [
        f"[bayesbandit.{kind}]\n" + "".join(f"{name} = {at}\n" for name, at in points.items())
        for kind, points in offered.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    importlib.invalidate_caches()


@pytest.fixture
def packages(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(text)
    install(folder, "first-package", "1.0", OFFERED)
    both = {
        "players": {"Both": "fp_ok:Other"},
        "models": {"both": "fp_ok:other"},
        "studies": {"both": "fp_other:study"},
    }
    install(folder, "second-package", "2.0", both)
    monkeypatch.syspath_prepend(folder)
    user_modules.installed.cache_clear()
    fingerprints.distributions.cache_clear()
    yield folder
    for name in FILES:
        sys.modules.pop(name, None)
    fingerprints.distributions.cache_clear()


ASKED = {
    "players": lambda name, out: run("compare", "--data", "iris", "--bandit", name, "--out", out),
    "models": lambda name, out: run("explain", name),
    "studies": lambda name, out: run("reproduce", name, "--quick", "--out", out),
}


@pytest.mark.parametrize("kind", OFFERED)
@pytest.mark.parametrize("name", ODD)
def test_what_cannot_be_loaded_is_named_with_its_package(packages, tmp_path, kind, name):
    result = ASKED[kind](name, tmp_path)
    assert result.exit_code == 2
    offered = OFFERED[kind][name]
    assert (
        f"{name!r} of bayesbandit.{kind}, offered by first-package 1.0 ({offered})" in result.said
    )
    assert f"cannot be loaded: {WHY[name]}" in result.said


@pytest.mark.parametrize("kind", OFFERED)
def test_a_name_that_two_packages_offer_is_neither_of_theirs(packages, tmp_path, kind):
    name = "Both" if kind == "players" else "both"
    result = ASKED[kind](name, tmp_path)
    assert result.exit_code == 2
    assert (
        f"offered by first-package 1.0 ({OFFERED[kind][name]}) and by second-package 2.0"
        in result.said
    )


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("players", "number", "first-package 1.0 (fp_ok:NUMBER), must be a player"),
        ("models", "number", "first-package 1.0 (fp_ok:NUMBER), must be a reward model"),
        ("studies", "half", "offered by first-package 1.0 (fp_ok), must be a bb.Study; it is"),
        ("studies", "large", "the study 'large' has no small version: omit --quick"),
        ("studies", "nobody", "boom, both, evidence, fails, half, large, lasso_controls"),
    ],
)
def test_what_is_something_else_is_named(packages, tmp_path, kind, name, said):
    result = ASKED[kind](name, tmp_path)
    assert result.exit_code == 2
    assert said in result.said


def test_a_model_of_a_package_is_loaded_by_its_name(packages):
    assert bb.list_models()["offered"] == "from fp_ok:offered"
    assert bb.load_model("offered").name == "offered"


@pytest.mark.slow
def test_the_list_of_studies_goes_on(packages):
    result = run("reproduce")
    assert result.exit_code == 0
    assert "table1" in result.stdout
    assert "A study" in result.stdout
    for name in ("boom", "missing", "syntax", "raises", "both", "half"):
        assert f"Warning: {name} is left out: " in " ".join(result.stderr.split())
    assert "Warning: large" not in result.said


@few("[environments]")
@pytest.mark.parametrize("part", ["environments", "table", "printed", "details", "figures", None])
def test_a_study_that_fails_is_named_and_its_results_are_kept(
    packages, tmp_path, monkeypatch, part
):
    monkeypatch.setenv("FAILS", str(part))
    result = run("reproduce", "fails", "--out", tmp_path)
    assert result.exit_code == (0 if part is None else 1)
    if part is not None:
        assert f"the study 'fails' failed: LookupError: no {part}" in result.said
    assert ("its results are kept in" in result.said) == (part not in ("environments", None))
    assert (tmp_path / "fails" / "results.parquet").exists() == (part != "environments")
    assert (tmp_path / "fails" / "table.csv").exists() == (part is None)


@pytest.mark.slow
def test_a_packages_version_is_one_of_a_players_settings(packages, tmp_path):
    out = tmp_path / "out"
    players = dict([parse_bandit("Own")])
    kept = []
    for version in ("1.0", "1.0", "1.1"):
        install(packages, "first-package", version, OFFERED)
        bb.Experiment([IRIS], players, 5, 1).run(out=out, progress=False)
        kept.append(len([*(out / "runs").iterdir()]))
    assert kept == [1, 1, 2]
