"""`bayesbandit train`: a bandit that has learned a log in files, as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesbandit.cli import options
from bayesbandit.cli.output import check_file, clear_errors, say

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

    from bayesbandit.bandit.bandit import Bandit
    from bayesbandit.tables.roles import Roles

    type Log = pd.DataFrame | dd.DataFrame


def train(
    data: Annotated[
        str,
        typer.Argument(
            help='Parquet: a file, or with the extra "dask" a folder or a pattern as '
            '"log/*.parquet"; or a CSV file, or JSON lines.'
        ),
    ],
    bandit: Annotated[
        str,
        typer.Option(
            rich_help_panel=options.BANDITS_PANEL,
            help="Who learns: the file of a saved bandit, or a new one, as of `compare`: "
            '"BLTS(clip=0.2)".',
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="The file of the bandit that has learned."),
    ],
    column: options.LogColumn = None,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    dates: options.Dates = None,
) -> None:
    """Let a bandit learn a log in files, and save it.

    A new bandit gets the arms of the log, and an encoder for its contexts: all columns that have no
    role. A saved bandit has its own.
    """
    with clear_errors():
        from bayesbandit.bandit.bandit import Bandit
        from bayesbandit.cli.bandits import is_saved
        from bayesbandit.scale.learning import learn, table_of

        check_file(out)
        if data.startswith(("sqlite:", "postgresql")):
            raise ValueError("train reads files; `bayesbandit learn` learns the log of a database")
        choices = options.columns_of(column)
        form = {"sep": sep, "decimal": decimal, "dates": dates}
        saved = Bandit.load(bandit) if is_saved(bandit) else None
        encoder = None if saved is None else saved.encoder
        log = table_of(data, choices.get("arm"), encoder, **form)
        learner, roles = learner_of(saved or bandit, log, choices)
        say(str(roles))
        learned = learn(
            log, learner, arm=roles.named["arm"], reward=roles.named["reward"],
            propensity=roles.named.get("propensity"),
            time=None if learner.belief.clock is None else roles.named.get("time"),
            features=None if learner.encoder else roles.contexts,
        )  # fmt: skip
        learned.save(out)
        rounds = learned.history.total - learner.history.total
        say(f"{out}: {rounds:,} rounds of {len(learned.arms)} arms learned")


def learner_of(learner: Bandit | str, log: Log, choices: Mapping[str, Any]) -> tuple[Bandit, Roles]:
    """Return the bandit that is to learn a log, and the roles of the log's columns.

    learner: a saved bandit, or the text of a new one, which gets the arms of the log and an encoder
    of its contexts. choices: the columns that --column names, by role.
    """
    from bayesbandit.bandit.logged import columns_in_order
    from bayesbandit.cli.bandits import made, parse_bandit
    from bayesbandit.scale.learning import arms_in
    from bayesbandit.tables.encoder import Encoder

    if not isinstance(learner, str):
        named = {"drop": choices["drop"], "context": choices["keep"]}
        if learner.encoder is not None and any(named.values()):
            named_as = options.said_of(named)
            raise ValueError(f"{named_as}: the bandit's encoder says which columns are contexts")
        roles, _ = _roles(log, choices, learner)
        ordered = columns_in_order(learner, roles.contexts, choices["keep"])
        return learner, replace(roles, contexts=tuple(ordered))
    new = parse_bandit(learner)
    roles, sample = _roles(log, choices, None)
    arms = [*roles.probabilities] or arms_in(log, roles.named["arm"])
    used = [*roles.contexts]
    if not used:
        return made(new, arms, 0), roles
    encoder = Encoder.fit(sample[used], keep=[c for c in choices["keep"] if c in used])
    bandit = made(new, arms, None, encoder=encoder)
    return bandit, _roles(log, choices, bandit)[0]


def _roles(
    log: Log, choices: Mapping[str, Any], bandit: Bandit | None
) -> tuple[Roles, pd.DataFrame]:
    """Return the roles of the columns of a log, and the rows from which they were told.

    bandit: one that has arms, maybe an encoder, with which the columns' names are enough.
    """
    import pandas as pd

    from bayesbandit.tables.roles import roles_of
    from bayesbandit.tables.samples import sample

    encoder, arms = (None, None) if bandit is None else (bandit.encoder, bandit.arms)
    empty = pd.DataFrame(columns=log.columns)
    if encoder is None:
        columns = [column for column in log.columns if column not in choices["drop"]]
        empty = sample(log[columns]).reindex(columns=log.columns)
    named = roles_of(
        empty, "the log", encoder=encoder, arms=arms, needs_propensity=False, **choices
    )
    return named, empty
