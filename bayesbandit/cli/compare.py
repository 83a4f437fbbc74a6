"""The command `bayesbandit compare`: which bandit does best on this data?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesbandit.cli import options
from bayesbandit.cli.output import check_folder, clear_errors, counted, save, say, show, warn

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MAX_SHOWN_COLUMNS = 40  # the most columns of a data set that the terminal lists


def compare(
    data: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=options.DATA_PANEL,
            metavar="NAME",
            help="A bundled set: iris, wine, breast_cancer or digits. May be repeated.",
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=options.DATA_PANEL, metavar="FILE", help="A CSV or Parquet file."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=options.DATA_PANEL,
            metavar="COLUMN",
            help="The column of --csv to predict.",
        ),
    ] = None,
    openml: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=options.DATA_PANEL,
            metavar="NAME",
            help="A name or number at OpenML.",
        ),
    ] = None,
    column: options.DataColumn = None,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    dates: options.Dates = None,
    bandit: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=options.BANDITS_PANEL,
            help="Who plays: a preset; a model of the gallery, FILE.py or FILE.py:NAME; or a class "
            "or function (arms, n_features, seed), FILE.py:NAME. Each with settings if any: "
            '"BLTS(alpha=0.5, clip=0.05)". May be repeated.',
        ),
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            rich_help_panel=options.BANDITS_PANEL,
            help="Choose each bandit's alpha and ridge on half of the streams, and show the other "
            "half.",
        ),
    ] = False,
    replications: Annotated[
        int,
        typer.Option(min=1, help="Random orders of each set."),
    ] = 10,
    horizon: Annotated[
        int | None,
        typer.Option(min=1, help="Rounds; all rows if less."),
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    out: options.Out = Path("runs"),
) -> None:
    """Compare bandits: which one does best on this data?

    Arms are classes, and the true class pays 1; or each arm has a column of rewards.
    Without options, LinTS, LinUCB, BLTS, BLUCB and LinGreedy play four bundled data sets. A
    bandit's other settings are its preset's defaults, or those that --tune chooses. A declared
    model plays Thompson sampling with alpha = 1.
    """
    import pandas as pd

    from bayesbandit import evaluation, plots
    from bayesbandit.cli.bandits import DEFAULT_BANDITS, parse_bandits
    from bayesbandit.cli.data import data_sets
    from bayesbandit.cli.tuning import play_tuned
    from bayesbandit.experiments.experiment import Experiment

    with clear_errors():
        bandits = parse_bandits(bandit or DEFAULT_BANDITS)
        form = {"sep": sep, "decimal": decimal, "dates": dates}
        columns = options.by_role(column, options.ROLES_OF_DATA_SETS)
        sets = data_sets(data or [], csv, target, openml or [], columns, form)
        tables = {f"{one.name}: what became of its columns": one.encoder.summary() for one in sets}
        for title in tables if csv is not None or openml else ():
            show(tables[title].head(MAX_SHOWN_COLUMNS), title)
        folder = out / "compare"
        check_folder(folder)
        choices: dict[str, pd.DataFrame] = {}
        if tune:
            results, chosen = play_tuned(
                sets, bandit or DEFAULT_BANDITS, horizon, replications, seed, jobs, folder
            )
            half = f"Settings chosen on {replications // 2} of {replications} streams"
            choices = {half: chosen} if len(chosen) else {}
        else:
            experiment = Experiment(sets, bandits, horizon, replications, seed)
            results = experiment.run(jobs, folder)
    if results["replication"].nunique() == 1:
        warn(
            "one replication cannot show a bandit that at times locks on to the wrong arm, and "
            "allows no test of significance"
        )
    ranking = evaluation.ranking(results)
    summary = evaluation.summary(results)
    titled = choices | {"Ranking": ranking, "Every data set": summary}
    normalised = None
    if len(sets) <= plots.MAX_PANELS:
        beside = evaluation.baselines(sets, horizon, seed)
        titled["Beside the bandits: normalised regret"] = beside
        every = pd.concat([summary, beside])
        normalised = evaluation.wide(every, 3, "bandit", "environment", "normalised_regret")
    figures = pictures(results, len(sets))
    for heading, frame in choices.items():
        show(frame, heading)
    if normalised is not None:
        show(normalised, "Normalised regret ± standard error: less is better")
    show(ranking.drop(columns="environments"), f"Ranking over {len(sets)} data set(s)")
    say(answer := verdict(ranking))
    title = f"Which bandit does best on {', '.join(one.name for one in sets[: plots.MAX_PANELS])}?"
    save(folder, summary, titled | tables, figures, title=title, answer=answer)


def pictures(results: pd.DataFrame, n_sets: int) -> dict[str, Figure]:
    """Return the pictures of a comparison by their files' names."""
    from bayesbandit import plots

    if n_sets > plots.MAX_PANELS:
        return {}
    figures = {"regret": plots.regret_curves(results)}
    if results["bandit"].nunique() > 1 and results["replication"].nunique() > 1:
        figures["differences"] = plots.paired_differences(results)
    return figures


def verdict(ranking: pd.DataFrame) -> str:
    """Return the result of a ranking as a sentence."""
    best = ranking.iloc[0]
    reward = f"mean reward {best['mean_reward']:.3f} a round"
    said = f"{best['bandit']}, {reward}"
    if len(ranking) == 1:
        return f"{best['bandit']}: {reward}."
    if best["wins"] == best["losses"] == 0:
        return f"Least regret, but no significant difference: {said}."
    wins, losses = (counted(int(best[key]), "time") for key in ("wins", "losses"))
    return (
        f"Best on this data: {said}; it beats the others significantly {wins} and loses {losses} "
        "(p < .05 each, uncorrected)."
    )
