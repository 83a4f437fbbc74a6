"""The gallery: models by name, by path, from one's own folder."""

import os
import pickle
import subprocess
import sys
import textwrap

import pytest

import bayesbandit as bb
from bayesbandit.declaring import gallery

MINE = '''
"""My own ridge.

More about it.
"""
import pymc as pm
import bayesbandit as bb

@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"), sigma=1)
def {name}(x, reward, theta, sigma):
    pm.Normal("reward", x @ theta, sigma, observed=reward)
    return x @ theta
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "own_folder", lambda: tmp_path)
    return tmp_path


def write(path, text):
    path.write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")
    return path


def test_lists_the_models_without_pymc():
    code = (
        "import sys; from bayesbandit.declaring.gallery import list_models; print(*list_models()); "
        "assert not {'pymc', 'pytensor', 'pymc_extras'} & set(sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"ridge", "bayesian_lasso", "horseshoe", "logistic"} <= set(run.stdout.split())


def test_loads_by_name():
    model = bb.load_model("bayesian_lasso")
    assert model.name == "bayesian_lasso"
    assert bb.load_model("bayesian_lasso") is model
    with pytest.raises(ValueError, match="there is no model 'lasso'; there are: bayesian_lasso, "):
        bb.load_model("lasso")


def test_loads_a_file_anywhere(tmp_path, monkeypatch):
    path = write(tmp_path / "a file.py", MINE.format(name="anywhere"))
    assert bb.load_model(path).name == bb.load_model(str(path)).name == "anywhere"
    assert bb.load_model(f"{path}:anywhere").name == "anywhere"
    monkeypatch.chdir(tmp_path)
    model = bb.load_model("a file.py").with_priors(sigma=2)
    assert bb.RewardModel.from_yaml(model.to_yaml()) == model
    assert "anywhere" not in bb.list_models()


def test_a_model_has_the_title_and_the_name_of_its_file(folder):
    write(folder / "mine.py", MINE.format(name="mine"))
    assert bb.list_models() == {"mine": "My own ridge."}
    assert bb.load_model("mine") is bb.load_model(folder / "mine.py")


def test_finds_own_folders_first(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, name in ((first, "mine"), (second, "mine"), (first, "ridge")):
        folder.mkdir(exist_ok=True)
        write(folder / f"{name}.py", MINE.format(name=f"{name}_of_{folder.name}"))
    monkeypatch.setenv(gallery.MODELS_VARIABLE, os.pathsep.join([str(first), str(second)]))
    assert bb.load_model("mine").name == "mine_of_first"
    assert bb.load_model("ridge").name == "ridge_of_first"
    assert {"mine", "ridge", "logistic"} <= set(bb.list_models())
    monkeypatch.setenv(gallery.MODELS_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"BAYESBANDIT_MODELS names .*nowhere"):
        bb.list_models()


def test_a_changed_file_is_read_again(tmp_path):
    path = write(tmp_path / "m.py", MINE.format(name="first"))
    assert bb.load_model(path).name == "first"
    write(path, MINE.format(name="second"))
    assert bb.load_model(path).name == "second"


def test_several_models_in_a_file(folder):
    one = MINE.format(name="one")
    path = write(folder / "both.py", one + one.replace("one(", "two(") + "\n_hidden = one\n")
    hidden = bb.load_model(f"{path}:_hidden").with_priors(sigma=2)
    assert pickle.loads(pickle.dumps(hidden)) == hidden
    with pytest.raises(ValueError, match=r"both.py has several models: .*both.py:one.*:two"):
        bb.load_model(path)
    with pytest.raises(ValueError, match=r"both.py has no model 'three'; it has .*both.py:one"):
        bb.load_model(f"{path}:three")
    assert bb.load_model(f"{path}:two").name == "two"


def test_a_broken_file_is_named(folder):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing.py"):
        bb.load_model(folder / "nothing.py")
    with pytest.raises(FileNotFoundError, match=r"is not a model's file; give FILE.py"):
        bb.load_model(folder)
    with pytest.raises(FileNotFoundError, match=r"is not a model's file; give FILE.py"):
        bb.load_model(folder / "ridge")
    path = write(folder / "fails.py", MINE.format(name="fails").replace("sigma=1)", "sigm=1)"))
    with pytest.raises(ImportError, match=r"fails.py cannot be loaded: .*'sigm'"):
        bb.load_model(path)
    path = write(folder / "none.py", "x = 1\n")
    with pytest.raises(ValueError, match=r"none.py declares no reward model"):
        bb.load_model(path)
    path = write(folder / "syntax.py", "def broken(:\n")
    with pytest.raises(ImportError, match=r"syntax.py cannot be loaded: SyntaxError"):
        bb.load_model(path)
    assert not [name for name in sys.modules if name.endswith(("fails.py", "syntax.py"))]
