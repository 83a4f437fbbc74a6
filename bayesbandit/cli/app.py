"""The command line: bayesbandit compare | evaluate | serve | learn | train | report | …"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from bayesbandit.cli.compare import compare
from bayesbandit.cli.evaluate import evaluate
from bayesbandit.cli.log import log
from bayesbandit.cli.options import Commands
from bayesbandit.cli.output import clear_errors, console, say, show
from bayesbandit.cli.report import report
from bayesbandit.cli.reproduce import reproduce
from bayesbandit.cli.serving import learn, serve
from bayesbandit.cli.train import train

app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_show_locals=False)


CHOOSE_PANEL = "Which bandit?"
LIVE_PANEL = "A bandit at work"
MODELS_PANEL = "Declared models and the paper"


def _say_version(asked: bool) -> None:
    if asked:
        console.print(f"bayesbandit {version('bayesbandit')}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say it and exit."),
    ] = False,
) -> None:
    """Which bandit does best on your data? And what does the paper say?"""


app.command(rich_help_panel=CHOOSE_PANEL)(compare)
app.command(rich_help_panel=CHOOSE_PANEL)(evaluate)
app.command(rich_help_panel=LIVE_PANEL)(serve)
app.command(rich_help_panel=LIVE_PANEL)(learn)
app.command(rich_help_panel=LIVE_PANEL)(train)
app.command(rich_help_panel=LIVE_PANEL)(report)
app.add_typer(log, rich_help_panel=LIVE_PANEL)
app.command(rich_help_panel=MODELS_PANEL)(reproduce)


@app.command(rich_help_panel=MODELS_PANEL)
def models() -> None:
    """List the declared reward models of the gallery.

    `bayesbandit explain NAME` tells the engine of a model.
    """
    import pandas as pd

    from bayesbandit.declaring.gallery import list_models

    with clear_errors():
        rows = list_models().items()
    show(pd.DataFrame(rows, columns=["model", "title"]), "Declared reward models")


@app.command(rich_help_panel=MODELS_PANEL)
def explain(
    model: Annotated[str, typer.Argument(help="A model's name, or FILE.py, or FILE.py:NAME.")],
) -> None:
    """Print the engine of a declared model, and why it is not a faster one.

    It is asked for three features, and for two arms if they share the model.
    """
    from bayesbandit.model import load_model

    with clear_errors():
        declared = load_model(model)
        text = declared.explain(3, 2 if declared.takes_arm else None)
    console.print(repr(declared), text, sep="\n", markup=False, highlight=False, soft_wrap=True)


@app.command("compile", rich_help_panel=LIVE_PANEL)
def compile_kernels(
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
        for text in bandit or bandits.DEFAULT_BANDITS:
            seconds = bandits.rehearse(bandits.rehearsed(text))
            say(f"{text}: {seconds:.1f} s")
        folder = kept()
        if folder is None:
            raise OSError("no kernel is kept: set NUMBA_CACHE_DIR to a folder that can be written")
    say(f"Compiled code is in {folder}")
