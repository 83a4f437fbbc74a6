"""The command line: bayesbandit compare | reproduce | models | explain."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bayesbandit.bandits import presets
from bayesbandit.bandits.bandit import Bandit
from bayesbandit.policies import Thompson

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from bayesbandit.experiment import Factory

app = typer.Typer(
    help="Which bandit does best on your data? And what does the paper say?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
console = Console()

BANDITS = {name: getattr(presets, name) for name in presets.__all__}

# What `compare` plays unless told otherwise, each as the preset of its name is by default.
PLAYED = ("LinTS", "LinUCB", "BLTS", "BLUCB", "LinGreedy")

MODEL_SETTINGS = ("alpha", "engine", "refit_every", "draws")  # of a declared model that plays

Jobs = Annotated[int, typer.Option(help="Processes to use; -1: all cores.")]
Out = Annotated[Path, typer.Option(help="Folder for results; a run found there goes on.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything.")]


@app.command()
def compare(
    data: Annotated[
        list[str] | None, typer.Option(help="A bundled set: iris, wine, breast_cancer, digits.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="A CSV file of your own.")] = None,
    target: Annotated[str | None, typer.Option(help="The column of --csv to predict.")] = None,
    openml: Annotated[list[str] | None, typer.Option(help="A name or number at OpenML.")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="A folder of Parquet files, with a manifest or without.")
    ] = None,
    bandit: Annotated[
        list[str] | None,
        typer.Option(
            help='A bandit, with settings if any: "BLTS(alpha=0.5, clip=0.05)". May be repeated.'
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A reward model that plays, too: a name of the gallery, FILE.py or FILE.py:NAME, "
            'with settings if any: "mine.py(alpha=0.5, refit_every=10)". May be repeated.'
        ),
    ] = None,
    replications: Annotated[int, typer.Option(min=1, help="Random orders of each set.")] = 10,
    horizon: Annotated[int | None, typer.Option(min=1, help="Rounds; all rows if less.")] = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    out: Out = Path("runs"),
) -> None:
    """Which bandit does best on this data? An arm is a class, and the right one pays 1.

    Without options: LinTS, LinUCB, BLTS, BLUCB and LinGreedy on four bundled data sets. A bandit's
    settings that are not given are those of the preset of its name. A declared model plays by
    Thompson sampling with alpha = 1, beside the bandits named, or else beside all five.
    """
    from bayesbandit import environments as rooms
    from bayesbandit import evaluation, plots
    from bayesbandit.experiment import Experiment

    with _clear_errors():
        sets: list[Any] = [rooms.bundled(name) for name in data or []]
        if csv is not None:
            if target is None:
                raise ValueError("--csv needs --target, the column to predict")
            sets.append(rooms.from_csv(csv, target))
        sets += [rooms.openml(name) for name in openml or []]
        sets += rooms.folder(folder) if folder is not None else []
        sets = sets or [rooms.bundled(name) for name in rooms.BUNDLED]
        chosen = [*(bandit or PLAYED), *(model or [])]
        if twice := {text for text in chosen if chosen.count(text) > 1}:
            raise ValueError(f"a bandit is given more than once: {', '.join(sorted(twice))}")
        bandits = dict(map(parse_bandit, bandit or PLAYED)) | dict(map(parse_model, model or []))
        experiment = Experiment(sets, bandits, horizon, replications, seed)
        results = experiment.run(jobs, out / "compare")
    ranking = evaluation.ranking(results)
    summary = evaluation.summary(results)
    figures = {"regret": plots.regret_curves(results), "propensities": plots.propensities(results)}
    if len(experiment.bandits) > 1:
        figures["pairwise"] = plots.pairwise_scatter(results)
    if len(sets) <= plots.MANY:
        show(by_environment(summary), "Normalised regret ± standard error: less is better")
    show(ranking.drop(columns="environments"), f"Ranking over {len(sets)} data set(s)")
    best = ranking.iloc[0]
    say(
        "Best on this data: ", (best["bandit"], "bold"), f", mean reward "
        f"{best['mean_reward']:.3f} a round; it beats the others significantly {best['wins']} "
        f"times and loses {best['losses']} times (p < .05 each, uncorrected).",
    )  # fmt: skip
    keep(out / "compare", summary, {"Ranking": ranking, "Every data set": summary}, figures)


@app.command()
def reproduce(
    study: Annotated[str, typer.Argument(help="A table or figure of the paper: table1.")],
    replications: Annotated[int | None, typer.Option(min=1, help="Simulations.")] = None,
    quick: Annotated[bool, typer.Option(help="A small version, to see it work.")] = False,
    seed: Seed = 0,
    jobs: Jobs = 1,
    out: Out = Path("runs"),
) -> None:
    """Run a study of the paper and print our table beside the paper's."""
    with _clear_errors():
        module = importlib.import_module(f"bayesbandit.studies.{_study(study)}")
        settings: dict[str, Any] = dict(module.QUICK) if quick else {}
        if replications is not None:
            settings["replications"] = replications
        folder = out / (f"{study}-quick" if quick else study)
        results = module.experiment(seed=seed, **settings).run(jobs, folder)
    table = module.table(results)
    beside = module.beside(table)
    show(beside, module.TITLE)
    keep(folder, table, {module.TITLE: beside, "In full": table}, module.figures(results))


@app.command()
def models(
    features: Annotated[int, typer.Option(min=1, help="Features of a context.")] = 3,
) -> None:
    """The gallery of declared reward models, and the engine that each gets."""
    import pandas as pd

    from bayesbandit import gallery
    from bayesbandit.engines.plan import plan

    rows = []
    with _clear_errors():
        for name, title in gallery.list_models().items():
            model = gallery.load_model(name)
            found = plan(model, features, 2 if model.takes_arm else None)
            rows.append({"model": name, "title": title, "engine": found.engine})
    show(pd.DataFrame(rows), "Declared reward models")


@app.command()
def explain(
    model: Annotated[str, typer.Argument(help="A model's name, or FILE.py, or FILE.py:NAME.")],
    features: Annotated[int, typer.Option(min=1, help="Features of a context.")] = 3,
    arms: Annotated[int | None, typer.Option(min=1, help="Arms, where they share it.")] = None,
) -> None:
    """The engine that a declared model gets, and why not a faster one."""
    from bayesbandit import gallery

    with _clear_errors():
        declared = gallery.load_model(model)
        text = declared.explain(features, arms)
    console.print(repr(declared), text, sep="\n", markup=False, highlight=False, soft_wrap=True)


def parse_bandit(text: str) -> tuple[str, Factory]:
    """`NAME` or `NAME(setting=value, …)`, values as Python writes them, as (text, factory)."""
    name, settings = parse(text)
    if name not in BANDITS:
        raise ValueError(f"unknown bandit {name!r}; there are {', '.join(BANDITS)}")
    factory = partial(BANDITS[name], **settings)
    try:
        factory(2, 1)
    except TypeError as error:
        raise ValueError(f"{text}: {error}") from error
    return text.strip(), factory


def parse_model(text: str) -> tuple[str, Factory]:
    """A reward model's name or file, with settings or without, as (label, factory)."""
    from bayesbandit.gallery import load_model

    where, settings = parse(text)
    if unknown := set(settings) - set(MODEL_SETTINGS):
        allowed = ", ".join(MODEL_SETTINGS)
        raise ValueError(f"{text}: unknown setting {sorted(unknown)[0]!r}; there are {allowed}")
    label = text.strip().replace(where, load_model(where).name, 1)
    return label, partial(play_model, where, **settings)


def play_model(
    model: str, arms: Any, n_features: int, alpha: float = 1.0, seed: Any = 0, **settings: Any
) -> Bandit:
    """A declared model by Thompson sampling; settings are those of `Bandit`."""
    from bayesbandit.gallery import load_model

    declared, policy = load_model(model), Thompson(alpha)
    return Bandit(arms, declared, policy, n_features=n_features, seed=seed, **settings)


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """`NAME` or `NAME(setting=value, …)`: the name and the settings."""
    name, bracket, inside = text.strip().partition("(")
    try:
        call = ast.parse(f"f({inside}" if bracket else "f()", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("settings must be named")
        return name.strip(), {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"cannot read {text!r} as NAME(setting=value, …): {error}") from error


def by_environment(summary: pd.DataFrame) -> pd.DataFrame:
    """A row for each bandit, a column for each environment: normalised regret ± SE."""
    cells = summary.assign(
        cell=[
            f"{regret:.3f}" + (f" ± {se:.3f}" if se == se else "")
            for regret, se in zip(
                summary["normalised_regret"], summary["normalised_regret_se"], strict=True
            )
        ]
    )
    wide = cells.pivot(index="bandit", columns="environment", values="cell")
    order = [summary[key].drop_duplicates() for key in ("bandit", "environment")]
    return wide.loc[order[0], order[1]].reset_index().rename_axis(columns=None)


def show(frame: pd.DataFrame, title: str) -> None:
    """A table in the terminal, numbers to the right."""
    table = Table(title=title, title_justify="left")
    for name in frame.columns:
        numeric = frame[name].dtype.kind in "fi"
        title = str(name).removeprefix("normalised_").replace("_", " ")
        table.add_column(Text(title), justify="right" if numeric else "left")
    for values in frame.itertuples(index=False):
        table.add_row(*(_cell(value) for value in values))
    console.print(table)


def keep(
    folder: Path, table: pd.DataFrame, titled: dict[str, pd.DataFrame], figures: dict[str, Figure]
) -> None:
    """table.csv, table.md and the pictures, beside results.parquet and run.json."""
    from bayesbandit import evaluation

    table.to_csv(folder / "table.csv", index=False)
    text = "\n".join(f"## {title}\n\n{evaluation.markdown(f)}\n" for title, f in titled.items())
    (folder / "table.md").write_text(text)
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=150)
    say(f"Results, tables and pictures are in {folder}")


def say(*parts: str | tuple[str, str]) -> None:
    """A sentence, of texts or (text, style); names in it are not read as markup."""
    console.print(Text.assemble(*parts))


def _cell(value: Any) -> Text:
    if isinstance(value, float):
        small = "–" if value != value else f"{value:.4f}"
        return Text(f"{value:.4g}" if abs(value) >= 1 else small)
    return Text(str(value))


def _study(name: str) -> str:
    studies: Iterable[str] = [
        m.name
        for m in pkgutil.iter_modules(importlib.import_module("bayesbandit.studies").__path__)
    ]
    if name not in studies:
        raise ValueError(f"unknown study {name!r}; there are {', '.join(studies)}")
    return name


class _clear_errors:
    """Bad input ends the command with one line instead of a traceback."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ValueError | OSError | TypeError | ImportError):
            say(("Error:", "bold red"), f" {error}")
            raise typer.Exit(2) from error
