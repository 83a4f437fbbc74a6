"""The command line: bayesbandit compare | evaluate | serve | learn | train | report | …"""

from __future__ import annotations

import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesbandit.cli.columns import (
    Column,
    Dates,
    Decimal,
    Errors,
    FormerSpellings,
    Sep,
    columns_of,
)
from bayesbandit.cli.evaluate import evaluate
from bayesbandit.cli.keeping import log
from bayesbandit.cli.report import (
    FOR_AUTHORS,
    Jobs,
    Out,
    Seed,
    clear_errors,
    console,
    save,
    say,
    show,
    warn,
)
from bayesbandit.cli.reproduce import reproduce
from bayesbandit.cli.serving import learn, serve
from bayesbandit.cli.training import train
from bayesbandit.cli.watching import report
from bayesbandit.runtime.addresses import hidden, shown
from bayesbandit.runtime.plugins import said
from bayesbandit.runtime.progress import bar


class Commands(FormerSpellings):
    """The commands. A usage error quotes what was typed, but no password of a database."""

    def invoke(self, ctx: Any) -> Any:
        """Invoke the command that the context names."""
        words = [*getattr(ctx, "_protected_args", ()), *ctx.args]
        try:
            return super().invoke(ctx)
        except Exception as error:
            message: Any = getattr(error, "message", None)
            if isinstance(message, str):
                for word in filter(lambda word: "://" in word, words):
                    message = message.replace(word, shown(word))
                vars(error)["message"] = hidden(message)
            raise


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)

FEATURES = 3  # for which `models` finds an engine, unless told otherwise


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


@app.command()
def compare(
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="A bundled set (iris, wine, breast_cancer, digits), or a Parquet or CSV file."
        ),
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="A CSV or Parquet file of your own.")] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            help="The log of a bandit, as of `evaluate`: bandits learn by replay of its rounds."
        ),
    ] = None,
    column: Column = None,
    target: Annotated[str | None, typer.Option(help="The column of --csv to predict.")] = None,
    reward: Annotated[
        list[str] | None,
        typer.Option(help="A column of --csv: what the arm of its name pays. One for each arm."),
    ] = None,
    cost: Annotated[
        list[str] | None, typer.Option(help="The same, but what the arm costs.")
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(help="A column of --csv, --openml or --log to leave out."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="A column to use though its name or its values speak against it."),
    ] = None,
    errors: Errors = "raise",
    sep: Sep = None,
    decimal: Decimal = None,
    dates: Dates = None,
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
    player: Annotated[
        list[str] | None,
        typer.Option(
            help="An algorithm of your own that plays, too: FILE.py:NAME, a class or a function "
            "(arms, n_features, seed), with settings if any. May be repeated."
        ),
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Choose each bandit's alpha and ridge on half of the streams, and show the other "
            "half.",
        ),
    ] = False,
    replications: Annotated[int, typer.Option(min=1, help="Random orders of each set.")] = 10,
    horizon: Annotated[int | None, typer.Option(min=1, help="Rounds; all rows if less.")] = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    out: Out = Path("runs"),
) -> None:
    """Compare bandits: which one does best on this data?

    Arms are classes, and the true class pays 1; or each arm has a column of rewards or costs.
    Without options, LinTS, LinUCB, BLTS, BLUCB and LinGreedy play four bundled data sets. A
    bandit's other settings are its preset's defaults, or those that --tune chooses. A declared
    model plays Thompson sampling with alpha = 1, together with the named bandits, or with all five
    if none is named.
    """
    import pandas as pd

    from bayesbandit import evaluation, plots
    from bayesbandit.cli.data import columns, data_sets, listed, split_files, verdict
    from bayesbandit.cli.players import (
        PLAYED,
        lacks_constant,
        named_once,
        parse_bandit,
        parse_model,
        parse_player,
    )
    from bayesbandit.cli.replayed import compare_by_log
    from bayesbandit.cli.tuning import play_tuned
    from bayesbandit.experiments.experiment import Experiment

    with clear_errors():
        chosen = [*(bandit or PLAYED), *(model or []), *(player or [])]
        if twice := {text for text in chosen if chosen.count(text) > 1}:
            raise ValueError(f"a bandit is given more than once: {', '.join(sorted(twice))}")
        bandits = named_once(map(parse_bandit, bandit or PLAYED))
        extra = named_once([*map(parse_model, model or []), *map(parse_player, player or [])])
        bandits = named_once([*bandits.items(), *extra.items()])
        for sentence in filter(None, dict.fromkeys(map(lacks_constant, model or ()))):
            warn(sentence)
        form = {"sep": sep, "decimal": decimal, "dates": dates}
        if log is None and errors != "raise":
            raise ValueError(f"--errors {errors} needs --log, whose odd lines it leaves out")
        if log is None and column:
            raise ValueError(f"--column {column[0]} needs --log, whose column it is")
        if log is not None:
            if data or csv or openml or folder or target or reward or cost:
                raise ValueError("--log stands alone: it is no data set with every arm's reward")
            if horizon is not None:
                raise ValueError("--horizon is not for --log, whose rounds are all replayed")
            if tune:
                raise ValueError("--tune needs streams with every arm's reward; --log has none")
            choices = {"drop": drop or [], "keep": keep or [], **columns_of(column)}
            choices |= {**form, "errors": errors}
            compare_by_log(log, choices, bandits, replications, seed, jobs, out)
            return
        names, csv = split_files(data or [], csv)
        sets = data_sets(
            names,
            csv,
            target,
            reward or [],
            cost or [],
            openml or [],
            folder,
            drop or [],
            keep or [],
            form,
        )
        tables = columns(sets)
        for title in tables if csv is not None or openml else ():
            show(listed(tables[title]), title)
        choices = {}
        if tune:
            tuned = play_tuned(
                sets, bandit or PLAYED, extra, horizon, replications, seed, jobs, out / "compare"
            )
            results, half = tuned.runs, replications // 2
            choices = {f"Settings chosen on {half} of {replications} streams": tuned.choices}
        else:
            experiment = Experiment(sets, bandits, horizon, replications, seed)
            results = experiment.run(jobs, out / "compare")
    many, streams = results["bandit"].nunique() > 1, results["replication"].nunique()
    if streams == 1:
        warn(
            "one replication cannot show a bandit that at times locks on to the wrong arm; "
            "the test of significance takes its rounds for independent"
        )
    few, beside = len(sets) <= plots.MANY, pd.DataFrame()
    with bar("tables and pictures", 4 + len(sets) * few) as advance:
        ranking, summary = evaluation.ranking(results), evaluation.summary(results)
        advance(1)
        for one in sets if few else ():
            beside = pd.concat([beside, evaluation.baselines([one], horizon, seed)])
            advance(1)
        figures = {"regret": plots.regret_curves(results)}
        advance(1)
        figures["propensities"] = plots.propensities(results)
        advance(1)
        if many and len(sets) > plots.MANY:
            figures["pairwise"] = plots.pairwise_scatter(results)
        elif many and streams > 1:
            figures["differences"] = plots.paired_differences(results)
        advance(1)
    for heading, frame in choices.items():
        show(frame, heading)
    titled = choices | {"Ranking": ranking, "Every data set": summary}
    if few:
        titled["Beside the bandits: normalised regret"] = beside
        every = pd.concat([summary, beside])
        cells = evaluation.wide(every, 3, "bandit", "environment", "normalised_regret")
        show(cells, "Normalised regret ± standard error: less is better")
    show(ranking.drop(columns="environments"), f"Ranking over {len(sets)} data set(s)")
    say(*(said := verdict(ranking)))
    answer = "".join(part if isinstance(part, str) else part[0] for part in said)
    title = f"Which bandit does best on {', '.join(one.name for one in sets[: plots.MANY])}?"
    save(out / "compare", summary, titled, figures, tables, title=title, answer=answer)


app.command()(evaluate)
app.command()(serve)
app.command()(learn)
app.command()(train)
app.command()(report)
app.command()(reproduce)
app.add_typer(log)


@app.command()
def models(
    features: Annotated[
        int | None,
        typer.Option(min=1, help="Find the engines again, for contexts of so many features."),
    ] = None,
) -> None:
    """List the gallery's declared reward models, and the engine of each.

    The engines of the toolkit's own models are known. Those of other models are found, which loads
    PyMC: that takes seconds.
    """
    import pandas as pd

    from bayesbandit.declaring.gallery import known_engines, list_models

    rows = []
    with clear_errors():
        known = known_engines() if features is None else {}
        for name, title in list_models().items():
            if name in known:
                rows.append({"model": name, "title": title, "engine": known[name]})
                continue
            from bayesbandit.inference.plan import plan
            from bayesbandit.model import load_model

            try:
                with warnings.catch_warnings(record=True, action="always") as told:
                    for category in FOR_AUTHORS:
                        warnings.simplefilter("ignore", category)
                    model = load_model(name)
                found = plan(model, features or FEATURES, 2 if model.takes_arm else None)
            except Exception as error:  # a broken model does not hide the others
                warn(f"{name} is left out: {said(error)}")
                continue
            for warning in told:
                warn(str(warning.message))
            rows.append({"model": name, "title": title, "engine": found.engine})
    show(pd.DataFrame(rows), "Declared reward models")


@app.command()
def explain(
    model: Annotated[str, typer.Argument(help="A model's name, or FILE.py, or FILE.py:NAME.")],
    features: Annotated[int, typer.Option(min=1, help="Features of a context.")] = 3,
    arms: Annotated[int | None, typer.Option(min=1, help="Arms, where they share it.")] = None,
) -> None:
    """Print the engine of a declared model, and why it is not a faster one."""
    from bayesbandit.model import load_model

    with clear_errors():
        declared = load_model(model)
        text = declared.explain(features, arms)
    console.print(repr(declared), text, sep="\n", markup=False, highlight=False, soft_wrap=True)


@app.command("compile")
def compile_kernels(
    preset: Annotated[
        list[str] | None,
        typer.Option(help='A bandit, as "LinTS" or "BLTS(clip=0.2)". May be repeated.'),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A reward model that plays: as in `compare`. May be repeated."),
    ] = None,
) -> None:
    """Compile the kernels of these bandits now, for an image or a fleet; print where they are.

    Without options, the bandits are LinTS, LinUCB, BLTS, BLUCB and LinGreedy. Kernels that are
    already compiled are kept.
    """
    from bayesbandit.cli.players import PLAYED, parse_bandit, parse_model, rehearse
    from bayesbandit.runtime.compiling import kept

    with clear_errors():
        chosen = preset or ([] if model else PLAYED)
        bandits, models = map(parse_bandit, chosen), map(parse_model, model or [])
        for fits, found in ((False, [*bandits]), (True, [*models])):
            for name, factory in found:
                say(f"{name}: {rehearse(factory, fits):.1f} s")
        folder, files, size = kept()
        if folder is None:
            raise OSError("no kernel is kept: set NUMBA_CACHE_DIR to a folder that can be written")
    say(f"{files} files, {size / 1e6:.1f} MB, in {folder}")
