"""The gallery, which finds declared reward models by name or by path.

A name is that of a file which declares the model of this name: in a folder that the environment
variable BAYESBANDIT_MODELS names, or in models/, of the wheel or a checkout. Or it is that of an
entry point `bayesbandit.models` of an installed package. Listing reads the files and does not run
them.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

from bayesbandit.declaring.declaration import Declaration
from bayesbandit.runtime.plugins import module_of, plugin, plugins, refused

MODELS_VARIABLE = "BAYESBANDIT_MODELS"
FROM_FILE = f"{__name__}:"  # prefix of the module name of a loaded file
_HERE = Path(__file__).resolve().parents[1]
_running: dict[str, Declaration] = {}  # the running program's models, by name


def own_folder() -> Path:
    """Return the folder of the gallery's own models."""
    wheel = _HERE / "_models"
    return wheel if wheel.is_dir() else _HERE.parent / "models"


def _files() -> dict[str, Path]:
    """Return the files of models by name: those of the first folder that has the name."""
    named = os.environ.get(MODELS_VARIABLE, "").split(os.pathsep)
    folders = [Path(folder).expanduser() for folder in named if folder]
    for folder in folders:
        if not folder.is_dir():
            raise FileNotFoundError(f"{MODELS_VARIABLE} names {folder}, which is not a folder")
    every = [own_folder(), *reversed(folders)]
    return {path.stem: path for folder in every for path in sorted(folder.glob("*.py"))}


def register(model: Declaration) -> None:
    """Register a model, so that `running` finds it outside the folders."""
    _running[model.name] = model


def running(name: str) -> Declaration | None:
    """Return the model of this name that the program declared or loaded last; None without one."""
    return _running.get(name)


def list_models() -> dict[str, str]:
    """Return the titles of the gallery's and installed packages' models, by name.

    PyMC is not imported.
    """
    titles = {
        name: f"from {' and '.join(point.value for point in points)}"
        for name, points in plugins("models").items()
    }
    for name, path in _files().items():
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        titles[name] = text.partition("\n")[0]
    return dict(sorted(titles.items()))


def load(name: str | os.PathLike[str]) -> Declaration:
    """Return a model by its name, or from a file: "FILE.py", or "FILE.py:NAME" of several models.

    Raise ValueError or FileNotFoundError if there is no such model.
    """
    text = os.fspath(name)
    in_file = re.fullmatch(r"(.+\.py)(?::(\w+))?", text)
    if in_file:
        model = _one(Path(in_file[1]).expanduser(), in_file[2])
        register(model)
        return model
    if os.path.isdir(text) or Path(text).name != text:
        raise FileNotFoundError(f"{text} is not a model's file; give FILE.py or FILE.py:NAME")
    files = _files()
    if text in files:
        model = _one(files[text], None)
        register(model)
        return model
    if text not in plugins("models"):
        raise ValueError(f"there is no model {text!r}; there are: {', '.join(list_models())}")
    offered = plugin("models", text)
    if not isinstance(offered, Declaration):
        raise refused("models", text, offered, "a reward model")
    return offered


def declared_in(path: str | os.PathLike[str]) -> dict[str, Declaration]:
    """Return the reward models of a file by their variables' names."""
    variables = vars(module_of(Path(path), FROM_FILE)).items()
    return {k: v for k, v in variables if isinstance(v, Declaration)}


def _one(path: Path, name: str | None) -> Declaration:
    models = {k: v for k, v in declared_in(path).items() if k == name or not k.startswith("_")}
    if not models:
        raise ValueError(f"{path} declares no reward model; decorate one by @bb.reward_model(…)")
    if name is None and len(models) > 1:
        raise ValueError(f"{path} has several models: {_choices(path, models)}")
    if name is not None and name not in models:
        raise ValueError(f"{path} has no model {name!r}; it has {_choices(path, models)}")
    return models[name] if name is not None else next(iter(models.values()))


def _choices(path: Path, names: dict[str, Declaration]) -> str:
    return ", ".join(f"'{path}:{name}'" for name in names)
