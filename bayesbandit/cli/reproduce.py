"""The command `reproduce`: run a study that an installed package offers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesbandit.cli.options import Jobs, Out, Seed
from bayesbandit.cli.output import check_folder, clear_errors, counted, save, say, show, warn
from bayesbandit.runtime.plugins import blamed, plugin, plugins, refused, said

if TYPE_CHECKING:
    from bayesbandit.experiments.study import Study

PAPER_MISSING = (
    "The paper's studies are not installed: in a clone of bayesbandit's repository, `uv sync` or "
    "`pip install ./studies` installs them."
)


def reproduce(
    study: Annotated[str | None, typer.Argument(help="Without it, all are listed.")] = None,
    replications: Annotated[int | None, typer.Option(min=1, help="Simulations.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version, to see it.")] = False,
    seed: Seed = 0,
    jobs: Jobs = 1,
    out: Out = Path("runs"),
) -> None:
    """Run a study of the paper and print our table beside the paper's."""
    import pandas as pd

    from bayesbandit.evaluation.text import span

    if study is None:
        list_studies()
        return
    with clear_errors():
        chosen = load(study)
        if quick and not chosen.quick:
            raise ValueError(f"the study {study!r} has no small version: omit --quick")
        folder = out / (f"{study}-quick" if quick else study)
        check_folder(folder)
        failed = f"the study {study!r} failed"
        with blamed(failed):
            chosen = chosen.small() if quick else chosen
            experiment = chosen.experiment(seed, replications)
        results = experiment.run(jobs, folder)
        with blamed(failed, (), f"; its results are kept in {folder / 'results.parquet'}"):
            table = pd.DataFrame(chosen.table(results))
            simulations = counted(results["replication"].nunique(), "simulation")
            rounds = span(results.groupby("environment")["t"].max())
            answer = f"{chosen.title}: {simulations} of {rounds} rounds"
            titled = {answer: pd.DataFrame(chosen.printed(table))}
            titled |= {str(k): pd.DataFrame(v) for k, v in chosen.details(results).items()}
            figures = dict(chosen.figures(results))
        for heading, frame in titled.items():
            show(frame, heading)
    tables = titled | {"In full": table}
    save(folder, table, tables, figures, title=chosen.title, answer=answer)


def load(name: str) -> Study:
    """Return the study of this name.

    Raise ValueError if no package offers it, or several, and TypeError if it is something else.
    """
    from bayesbandit.experiments.study import Study

    if name not in (studies := plugins("studies")):
        hint = f"; there are {', '.join(studies)}" if studies else f". {PAPER_MISSING}"
        raise ValueError(f"unknown study {name!r}{hint}")
    offered = plugin("studies", name)
    if not isinstance(offered, Study):
        raise refused("studies", name, offered, "a bb.Study")
    return offered


def list_studies() -> None:
    """Print the studies of installed packages, with their titles."""
    import pandas as pd

    rows = []
    with clear_errors():
        for name in plugins("studies"):
            try:
                rows.append({"study": name, "what it shows": load(name).title})
            except Exception as error:  # a broken study does not hide the others
                warn(f"{name} is left out: {said(error)}")
    if rows:
        show(pd.DataFrame(rows), "Studies")
    else:
        say(PAPER_MISSING)
