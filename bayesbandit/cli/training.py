"""`bayesbandit train`: a bandit that has learned a log in files, as a file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesbandit.cli.columns import Column, Dates, Decimal, Drop, Errors, Keep, Sep, columns_of
from bayesbandit.cli.report import clear_errors, say
from bayesbandit.cli.serving import OwnBalance, OwnModel, OwnPolicy, parts_of

if TYPE_CHECKING:
    import pandas as pd

    from bayesbandit.bandit.bandit import Bandit
    from bayesbandit.scale.parts import Parts
    from bayesbandit.tables.roles import Roles


def train(
    data: Annotated[
        str,
        typer.Argument(
            help='Parquet: a file, a folder, or a pattern as "log/*.parquet"; or a CSV file, JSON '
            "lines, or the lines of vw --dsjson."
        ),
    ],
    bandit: Annotated[
        str,
        typer.Option(
            help='Who learns: the file of a saved bandit, or a new one, as "BLTS(clip=0.2)".'
        ),
    ],
    out: Annotated[Path, typer.Option(help="The file of the bandit that has learned.")],
    column: Column = None,
    drop: Drop = None,
    keep: Keep = None,
    sep: Sep = None,
    decimal: Decimal = None,
    dates: Dates = None,
    errors: Errors = "raise",
    jobs: Annotated[int, typer.Option(help="Processes; -1: all cores.")] = 1,
    policy: OwnPolicy = None,
    model: OwnModel = None,
    balance: OwnBalance = None,
) -> None:
    """Let a bandit learn a log in files, and save it.

    A new bandit gets the arms of the log, and an encoder for its contexts: all columns that have no
    role. A saved bandit has its own.
    """
    with clear_errors():
        import numpy as np

        from bayesbandit.bandit.bandit import Bandit
        from bayesbandit.checks import processes
        from bayesbandit.cli.players import parse_bandit
        from bayesbandit.ope.logs.files import read_rounds
        from bayesbandit.scale import parts as scale
        from bayesbandit.scale.learning import arms_in, learn
        from bayesbandit.tables.encoder import Encoder
        from bayesbandit.tables.files import is_parquet

        processes(jobs)
        parts = parts_of(policy, model, balance)
        choices: dict[str, Any] = {"drop": drop or [], "keep": keep or [], **columns_of(column)}
        form = {"sep": sep, "decimal": decimal, "dates": dates}
        if Path(data).is_file() and not is_parquet(Path(data)):
            frame, choices = read_rounds(data, None, np.nan, errors, form, choices)
            files = scale.parts_of(frame)
        else:
            files = scale.parts_of(data, **form)
        if Path(bandit).is_file():
            learner = Bandit.load(bandit, **parts)
            if learner.encoder and (named := drop or keep):
                raise ValueError(
                    f"--{'drop' if drop else 'keep'} {named[0]}: the bandit's encoder says which "
                    "columns are contexts"
                )
            sample = _sample(files, choices["drop"], learner, jobs)
            roles = _roles(sample, choices, learner)
        else:
            if lost := [name for name, part in parts.items() if part is not None]:
                raise ValueError(f"--{lost[0]} is for a saved bandit; got --bandit {bandit}")
            if Path(bandit).suffix == ".npz":
                raise FileNotFoundError(f"there is no file {bandit} (--bandit)")
            make = parse_bandit(bandit)[1]
            sample = _sample(files, choices["drop"], None, jobs)
            roles = _roles(sample, choices, None)
            arms = [*roles.probabilities] or arms_in(files, roles.named["arm"], jobs)
            used = [*roles.contexts]
            if used:
                kept = [c for c in keep or () if c in used]
                encoder = Encoder.fit(sample[used], keep=kept)
                made = make(arms, None, encoder=encoder)
                roles = roles.without(encoder.left)
            else:
                made = make(arms, 0)
            if not isinstance(made, Bandit):
                raise ValueError(f"--bandit must have a reward model; got {bandit!r}")
            learner = made
        say(str(roles))
        learned = learn(
            files, learner, arm=roles.named["arm"], reward=roles.named["reward"],
            propensity=roles.named.get("propensity"),
            time=roles.named.get("time") if learner.belief.clock == "time" else None,
            features=None if learner.encoder else roles.contexts, jobs=jobs,
        )  # fmt: skip
        learned.save(out)
        rounds = learned.history.total - learner.history.total
        say(f"{out}: {rounds:,} rounds of {len(learned.arms)} arms learned")


def _sample(files: Parts, drop: Collection[str], bandit: Bandit | None, jobs: int) -> pd.DataFrame:
    """Return rows of a log from which the roles of its columns can be told.

    There are none if the bandit has an encoder: then the columns' names are enough.
    """
    import pandas as pd

    from bayesbandit.scale import parts as scale

    if bandit is not None and bandit.encoder is not None:
        return pd.DataFrame(columns=files.columns)
    read = [column for column in files.columns if column not in drop]
    return scale.sampled(files, read, jobs).reindex(columns=files.columns)


def _roles(sample: pd.DataFrame, choices: Mapping[str, Any], bandit: Bandit | None) -> Roles:
    """Return the roles of the columns of a log. bandit: one that has arms, maybe an encoder."""
    from bayesbandit.tables.roles import roles_of

    encoder, arms = (None, None) if bandit is None else (bandit.encoder, bandit.arms)
    return roles_of(
        sample, "the log", encoder=encoder, arms=arms, needs_propensity=False, **choices
    )
