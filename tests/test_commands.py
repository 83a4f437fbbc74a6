"""The commands as processes and as a tree: what they load, what an option reads, what they say."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Annotated, get_args, get_origin, get_type_hints

import pytest
import typer

from bayesbandit.cli.app import app
from tests.commands import run

HEAVY = {
    *("pymc", "pytensor", "arviz", "numba", "numpy", "scipy", "pandas", "pyarrow", "matplotlib"),
    *("sklearn", "sqlalchemy", "fastapi", "joblib", "narwhals", "formulaic", "xarray"),
}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--version"], 0, "bayesbandit "),
        (["--help"], 0, "compare"),
        (["compar"], 2, "Did you mean"),
        (["serve", "--prot", "1"], 2, "--port"),
        (["models"], 0, "hierarchical_ridge"),
        (["learn"], 2, "BAYESBANDIT_LOG"),
    ],
)
def test_a_command_loads_nothing_heavy_to_say_a_line(words, status, said):
    """The time that it takes is that of its imports, and these can be counted."""
    heavy = {"pymc", "pytensor", "arviz", "matplotlib"} if words == ["models"] else HEAVY
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "bayesbandit", *words],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    lines = done.stderr.splitlines()
    loaded = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    assert (done.returncode, "typer" in loaded) == (status, True), done.stderr
    assert said in done.stdout + done.stderr
    assert not loaded & heavy, sorted(loaded & heavy)


OWN = """
import warnings
import pymc as pm
import bayesbandit as bb

warnings.warn("old", DeprecationWarning)
warnings.warn("older", FutureWarning)
warnings.warn("the user should know", UserWarning)

@bb.reward_model(lam=1.0)
def mine(x, reward, lam):
    theta = pm.Normal("theta", 0, lam, dims="feature")
    mu = x @ theta
    pm.Normal("reward", mu, 1.0, observed=reward, dims="row")
    return mu
"""


def test_a_command_passes_on_warnings_for_users_and_not_those_for_authors(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.setattr("bayesbandit.declaring.gallery.own_folder", lambda: tmp_path)
    found = run("explain", "mine")
    assert "the user should know" in found.stderr
    assert "old" not in found.stderr
    assert "mine: exact_gaussian" in found.stdout


def functions(group):
    """The functions behind the commands of an app, by the command's name."""
    known = {found.name or found.callback.__name__: found for found in group.registered_commands}
    return {name.replace("_", "-"): found.callback for name, found in known.items()}


def declared(annotation):
    """The options and arguments within an annotation, however deep."""
    found = [one for one in getattr(annotation, "__metadata__", ()) if hasattr(one, "param_decls")]
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    return found + [one for part in get_args(annotation) for one in declared(part)]


@pytest.mark.parametrize("name", sorted(functions(app)))
def test_an_option_has_all_that_its_annotation_declares(name):
    """In `Annotated[…] | None` the metadata is lost, without a word."""
    function = functions(app)[name]
    hints = get_type_hints(function, include_extras=True)
    options = {one.name: one for one in typer.main.get_command(app).commands[name].params}
    assert any(declared(hint) for hint in hints.values()) == bool(hints.keys() & options.keys())
    for parameter in hints.keys() & options.keys():
        for info in declared(hints[parameter]):
            option = options[parameter]
            assert getattr(option, "help", None) == info.help, parameter
            assert (option.envvar or None) == info.envvar, parameter


ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/howto/*.md")]
PAGES += [ROOT / "deploy" / "Dockerfile", ROOT / "deploy" / "compose.yaml", ROOT / ".ci" / "run"]
END = r"(?:`|\||#|\n(?!\s+--)|$)"  # of a command on a page
CALL = re.compile(r"bayesbandit ((?:log )?[a-z]+)\b([^`|#]*?)" + END)


@cache
def options_of(words):
    """The options of a command, as `log prune`; None if there is none of this name."""
    command = typer.main.get_command(app)
    for word in words.split():
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            return None
    return {text for one in command.params for text in one.opts}


def test_pages_show_options_that_there_are():
    for page in filter(Path.exists, PAGES):
        for words, rest in CALL.findall(page.read_text(encoding="utf-8")):
            known = options_of(words)
            if known is not None:
                shown = {*re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)}
                assert shown <= known, f"{page.name}: bayesbandit {words} has no {shown - known}"
