"""The command line: bayesbandit compare | evaluate | serve | learn | train | report | …"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from bayesbandit.cli.compare import compare
from bayesbandit.cli.evaluate import evaluate
from bayesbandit.cli.log import log
from bayesbandit.cli.options import Command, Commands
from bayesbandit.cli.output import clear_errors, console, say, show, warn
from bayesbandit.cli.report import report
from bayesbandit.cli.reproduce import reproduce
from bayesbandit.cli.serving import learn, serve
from bayesbandit.cli.train import train
from bayesbandit.runtime.plugins import said

app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_show_locals=False)

EXPLAINED_FEATURES = 3  # for which `models` finds an engine
WITH_PARTS = ("evaluate", "serve", "learn", "train", "log", "compile")  # that take --part

CHOOSE = "Which bandit?"
LIVE = "A bandit at work"
MODELS = "Declared models and the paper"


def _say_version(asked: bool) -> None:
    if asked:
        console.print(f"bayesbandit {version('bayesbandit')}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    ctx: typer.Context,
    part: Annotated[
        list[str] | None,
        typer.Option(
            envvar="BAYESBANDIT_PART",
            metavar="PART=FILE.py:NAME",
            help="A policy, model or balance that the file of a saved bandit does not hold. May be "
            "repeated.",
        ),
    ] = None,
    _: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say it and exit."),
    ] = False,
) -> None:
    """Which bandit does best on your data? And what does the paper say?"""
    source = ctx.get_parameter_source("part")
    is_typed = source is not None and source.name == "COMMANDLINE"
    if is_typed and ctx.invoked_subcommand not in WITH_PARTS:
        raise typer.BadParameter(f"--part is for {', '.join(WITH_PARTS)}")
    ctx.obj = part


app.command(cls=Command, rich_help_panel=CHOOSE)(compare)
app.command(cls=Command, rich_help_panel=CHOOSE)(evaluate)
app.command(cls=Command, rich_help_panel=LIVE)(serve)
app.command(cls=Command, rich_help_panel=LIVE)(learn)
app.command(cls=Command, rich_help_panel=LIVE)(train)
app.command(cls=Command, rich_help_panel=LIVE)(report)
app.add_typer(log, rich_help_panel=LIVE)
app.command(rich_help_panel=MODELS)(reproduce)


@app.command(rich_help_panel=MODELS)
def models() -> None:
    """List the gallery's declared reward models, and the engine of each.

    The engines of the toolkit's own models are known. Those of other models are found, which loads
    PyMC: that takes seconds.
    """
    import pandas as pd

    from bayesbandit.declaring.gallery import LISTED_ENGINES, list_models

    rows = []
    with clear_errors():
        for name, title in list_models().items():
            if name in LISTED_ENGINES:
                rows.append({"model": name, "title": title, "engine": LISTED_ENGINES[name]})
                continue
            from bayesbandit.inference.plan import plan
            from bayesbandit.model import load_model

            try:
                model = load_model(name)
                found = plan(model, EXPLAINED_FEATURES, 2 if model.takes_arm else None)
            except Exception as error:  # a broken model does not hide the others
                warn(f"{name} is left out: {said(error)}")
                continue
            rows.append({"model": name, "title": title, "engine": found.engine})
    show(pd.DataFrame(rows), "Declared reward models")


@app.command(rich_help_panel=MODELS)
def explain(
    model: Annotated[str, typer.Argument(help="A model's name, or FILE.py, or FILE.py:NAME.")],
    features: Annotated[
        int, typer.Option(min=1, help="Features of a context.")
    ] = EXPLAINED_FEATURES,
    arms: Annotated[int | None, typer.Option(min=1, help="Arms, where they share it.")] = None,
) -> None:
    """Print the engine of a declared model, and why it is not a faster one."""
    from bayesbandit.model import load_model

    with clear_errors():
        declared = load_model(model)
        text = declared.explain(features, arms)
    console.print(repr(declared), text, sep="\n", markup=False, highlight=False, soft_wrap=True)


@app.command("compile", rich_help_panel=LIVE)
def compile_kernels(
    ctx: typer.Context,
    bandit: Annotated[
        list[str] | None,
        typer.Option(
            help='A bandit, as of `compare`: "BLTS(clip=0.2)"; or the file of a saved one. May be '
            "repeated."
        ),
    ] = None,
) -> None:
    """Compile the kernels of these bandits now, for an image or a fleet; print where they are.

    Without options, the bandits are LinTS, LinUCB, BLTS, BLUCB and LinGreedy. Kernels that are
    already compiled are kept.
    """
    from bayesbandit.cli import bandits
    from bayesbandit.runtime.compiling import kept

    with clear_errors():
        named = []
        for text in bandit or bandits.DEFAULT_BANDITS:
            if bandits.is_saved(text):
                named.append((text, bandits.like(bandits.load_saved(text, ctx.obj))))
            else:
                named.append(bandits.parse_bandit(text))
        for one in named:
            say(f"{one[0]}: {bandits.rehearse(one):.1f} s")
        folder, files, size = kept()
        if folder is None:
            raise OSError("no kernel is kept: set NUMBA_CACHE_DIR to a folder that can be written")
    say(f"{files} files, {size / 1e6:.1f} MB, in {folder}")
