"""The gallery, which finds declared reward models by name or by path.

A model's name is its function's. Three places are searched, and the first match is used:

- the folders of the environment variable BAYESBANDIT_MODELS;
- the copy of models/ in the wheel, or models/ of a checkout;
- the entry points `bayesbandit.models` of installed packages.

Listing reads the files and does not run them.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bayesbandit.declaring.declaration import Declaration
from bayesbandit.runtime.plugins import hides, module_of, plugin, plugins, refused, said

MODELS_VARIABLE = "BAYESBANDIT_MODELS"
FROM_FILE = f"{__name__}:"  # prefix of the module name of a loaded file
# of our own models, for listings: to find them, as `plan` does (tests/models), takes seconds
LISTED_ENGINES = {
    "bayesian_lasso": "gibbs",
    "beta_bernoulli": "conjugate",
    "censored_time": "nuts",
    "gamma_poisson": "conjugate",
    "heteroscedastic": "nuts",
    "hierarchical_logistic": "gibbs",
    "hierarchical_ridge": "exact_gaussian",
    "horseshoe": "gibbs",
    "laplace": "gibbs",
    "logistic": "gibbs",
    "ordinal": "nuts",
    "poisson": "nuts",
    "probit": "gibbs",
    "revenue": "nuts",
    "ridge": "normal_inverse_gamma",
    "ridge_known_noise": "exact_gaussian",
    "student_t": "gibbs",
    "student_t_mixture": "gibbs",
}
_HERE = Path(__file__).resolve().parents[1]
_running: dict[str, Declaration] = {}  # the running program's models, by name


@dataclass(frozen=True)
class Entry:
    """One model of the gallery, as read from its file."""

    name: str
    title: str
    path: Path


def folders() -> list[Path]:
    """Return the folders in which models are searched, in this order."""
    named = [
        Path(f).expanduser() for f in os.environ.get(MODELS_VARIABLE, "").split(os.pathsep) if f
    ]
    for folder in named:
        if not folder.is_dir():
            raise FileNotFoundError(f"{MODELS_VARIABLE} names {folder}, which is not a folder")
    return [*named, *own_folder()]


def own_folder() -> list[Path]:
    """Return the folder of the gallery's own models, where there is one."""
    wheel = _HERE / "_models"
    checkout = _HERE.parent / "models"
    if wheel.is_dir():
        return [wheel]
    return [checkout] if (_HERE.parent / "pyproject.toml").is_file() else []


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
    offered = {
        name: f"from {' and '.join(point.value for point in points)}"
        for name, points in plugins("models").items()
    }
    return dict(sorted((offered | {k: v[0].title for k, v in _entries().items()}).items()))


def known_engines() -> dict[str, str]:
    """Return the engines of the gallery's own models by name, where no other model has the name."""
    own = own_folder()
    return {
        name: LISTED_ENGINES[name]
        for name, found in _entries().items()
        if name in LISTED_ENGINES and [e.path.parent for e in found] == own
    }


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
    entries = _entries()
    matches = entries.get(text) or [
        e for entry in entries.values() for e in entry if e.path.stem == text
    ]
    if not matches and text in plugins("models"):
        offered = plugin("models", text)
        if not isinstance(offered, Declaration):
            raise refused("models", text, offered, "a reward model")
        return offered
    if not matches:
        raise ValueError(f"there is no model {text!r}; there are: {', '.join(list_models())}")
    first = [e for e in matches if e.path.parent == matches[0].path.parent]
    if len(first) > 1:
        choices = " or ".join(f"'{e.path}:{e.name}'" for e in first)
        raise ValueError(f"{text!r} may be several models; load one by {choices}")
    hides("models", text, first[0].path)
    return _one(first[0].path, first[0].name)


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


def _entries() -> dict[str, list[Entry]]:
    """Return all models by name; folders or files may have several of the same name."""
    entries: dict[str, list[Entry]] = {}
    for folder in folders():
        for path in sorted(folder.glob("*.py")):
            for entry in _read(path):
                entries.setdefault(entry.name, []).append(entry)
    return entries


def _read(path: Path) -> Iterator[Entry]:
    """Yield the models that a file declares, found in its syntax tree."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    except (SyntaxError, ValueError) as error:
        warnings.warn(f"{path} cannot be read: {said(error)}", stacklevel=4)
        return
    decorators = {"reward_model"} | {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == "reward_model"
    }
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            calls = [d.func for d in node.decorator_list if isinstance(d, ast.Call)]
            names = {call.attr for call in calls if isinstance(call, ast.Attribute)}
            names |= {call.id for call in calls if isinstance(call, ast.Name)}
            if names & decorators:
                doc = ast.get_docstring(node) or ast.get_docstring(tree) or ""
                yield Entry(node.name, doc.partition("\n")[0], path)
