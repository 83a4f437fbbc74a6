"""The command `bayesbandit evaluate`: off-policy evaluation of policies with a bandit's log."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesbandit.cli import options
from bayesbandit.cli.output import check_folder, clear_errors, save, say, show, warn
from bayesbandit.cli.serving import begun_log
from bayesbandit.runtime.addresses import shown

if TYPE_CHECKING:
    import pandas as pd

    from bayesbandit.bandit.bandit import Bandit
    from bayesbandit.ope import Best, Check, Evaluation, Log

LOGGED_POLICY = "logged"
MAX_ARMS = 10  # at most this many arms are evaluated, those most often chosen
DIFFERENCES = f"Paired differences: policies less {LOGGED_POLICY}"
LEARNING_SHARE = 0.5  # the share of the rounds from which a policy learns


def evaluate(
    log: Annotated[
        str,
        typer.Argument(help="A log: Parquet, CSV or JSON lines; or the database of a service."),
    ],
    column: options.LogColumn = None,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    dates: options.Dates = None,
    bandit: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=options.BANDITS_PANEL,
            help='Who is judged: a new bandit, as of `compare`: "LinTS(alpha=.25)", which learns '
            "the first half and is judged on the second; or the file of a saved one. The logged "
            "policy and the ten arms most chosen are judged, too. May be repeated.",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help='What an empty reward is: "open", it may still come; or "random", it is lost '
            "whatever it was."
        ),
    ] = None,
    out: options.Out = Path("runs"),
) -> None:
    """Estimate what other policies would have earned, from the log of a bandit or an experiment.

    Columns have roles by their names, such as arm, reward and propensity, or by --column. All other
    columns are contexts. One page, report.html,
    has each policy's value with an interval, or the reason why there is none. The intervals are
    valid although the log's policy learned. The page also has differences, effective sample sizes,
    a test of the logged probabilities, and intervals that are valid at all rounds at once.
    """
    with clear_errors():
        from bayesbandit import plots
        from bayesbandit.experiments.results_on_disk import write_results
        from bayesbandit.ope import check
        from bayesbandit.ope import evaluate as judge

        begun = time.monotonic()
        folder = out / "evaluate"
        check_folder(folder)
        form = {"sep": sep, "decimal": decimal, "dates": dates}
        of_file = partial(rounds_of, log, form, options.columns_of(column))
        unused = [f"--{name}" for name, value in {"column": column, **form}.items() if value]
        if "://" in log and unused:
            raise ValueError(f"a database has its own columns; got {' and '.join(unused)}")
        read = rounds_of_database(log) if "://" in log else of_file
        data, policies, notes = judged(read, bandit or [])
        settings: dict[str, Any] = {"missing": missing, "sequence": "asymptotic"}
        result = judge(data, policies, **settings)
        doubt = check(data)
        if doubt.untested:
            notes.append(f"The logged probabilities are not tested: {doubt.untested}.")
        best = result.best()
        tables = titled(result, doubt, best)
        figures = {"values": plots.policy_values(result)}
        if DIFFERENCES in tables:
            figures["differences"] = plots.policy_contrasts(result, LOGGED_POLICY)
        policies_table = tables["Policies"]
        folder.mkdir(parents=True, exist_ok=True)
        columns = str(data.roles or "")
        where = shown(log) if "://" in log else log
        settings |= {"log": where, "columns": columns, "policies": list(policies)}
        stored = policies_table.astype({"policy": str})
        write_results(folder, stored, settings, time.monotonic() - begun)
    for text in notes:
        say(text)
    short = policies_table[["policy", "estimate", "low", "high", "ess", "refused"]]
    name = Path(where).name
    show(short, f"Policies by {len(data):,} rounds of {name}")
    texts = [text for sentences in result.warnings.values() for text in sentences]
    for text in dict.fromkeys(texts):
        names = [str(name) for name, sentences in result.warnings.items() if text in sentences]
        warn(f"{', '.join(names)}: {text}")
    say(text := answer(result, doubt, best))
    title = f"What would have been earned by the log {name}?"
    save(folder, policies_table, tables, figures, title=title, answer=" ".join([text, *notes]))


def rounds_of_database(log: str) -> Callable[[Bandit | None], Log]:
    """Return what gives the log of a service's database, as it is now: it may grow."""
    from bayesbandit.ope import Log

    with begun_log(log) as opened:
        data = Log.of(opened)
    return lambda bandit: data


def rounds_of(
    log: str, form: Mapping[str, Any], columns: Mapping[str, Any], bandit: Bandit | None
) -> Log:
    """Return the log of a file, with contexts as a saved bandit takes them; None: as numbers."""
    from bayesbandit.bandit.logged import columns_in_order
    from bayesbandit.ope import Log, read_log
    from bayesbandit.tables.files import read_rounds

    encoder = None if bandit is None else bandit.encoder
    if bandit is None or encoder is not None:
        return read_log(log, encoder=encoder, **form, **columns)
    roles = read_log(log, **form, **columns).roles
    free = () if roles is None else roles.contexts
    contexts = columns_in_order(bandit, free, columns["keep"])
    return Log.of(read_rounds(log, columns.get("arm"), None, **form), **columns, x=contexts)


def judged(
    read: Callable[[Bandit | None], Log], texts: Sequence[str]
) -> tuple[Log, dict[Any, Any], list[str]]:
    """Return the log of the rounds for evaluation, the policies by name, and sentences to print.

    read: gives the log, as `rounds_of`. texts: bandits, as of --bandit.
    """
    import numpy as np

    from bayesbandit.bandit.bandit import Bandit
    from bayesbandit.cli.bandits import is_saved, made, parse_bandit
    from bayesbandit.ope.targets import target_of

    data = read(None)
    saved = [text for text in texts if is_saved(text)]
    new = [parse_bandit(text) for text in texts if text not in saved]
    notes = [str(data.roles)] if data.roles is not None else []
    half = round(LEARNING_SHARE * len(data)) if new else 0
    later = data[half:]
    count = np.bincount(later.played, minlength=len(data.arms))
    most = np.argsort(-count, kind="stable")[:MAX_ARMS]
    arms = [data.arms[k] for k in sorted(most)]
    names = [LOGGED_POLICY, *map(str, arms), *(label for label, _ in new)]
    names += [Path(text).name for text in saved]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two policies are named {twice[0]!r}: rename one")
    policies: dict[Any, Any] = {LOGGED_POLICY: None} | {arm: arm for arm in arms}
    if len(data.arms) > MAX_ARMS:
        notes.append(f"Of {len(data.arms)} arms the {MAX_ARMS} most chosen are judged.")
    if new:
        notes.append(
            f"Policies were learned from rounds 1 to {half:,}, and all are judged by "
            f"rounds {half + 1:,} to {len(data):,}."
        )
    rewarded = np.flatnonzero(~np.isnan(data.reward[:half]))
    if new and not len(rewarded):
        raise ValueError(f"--bandit {new[0][0]}: rounds 1 to {half:,} have no reward to learn from")
    for named in new:
        bandit = made(named, data.arms, n_features=data.x.shape[1])
        rounds = data.x[rewarded], data.arm[rewarded], data.reward[rewarded]
        bandit.update(*rounds, propensity=data.propensity[rewarded])
        policies[named[0]] = bandit
    for text in saved:
        bandit = Bandit.load(text)
        policies[Path(text).name] = target_of(read(bandit)[half:], bandit)
    return later, policies, notes


def titled(result: Evaluation, doubt: Check, best: Best) -> dict[str, pd.DataFrame]:
    """Return the tables of the page by their titles."""
    import pandas as pd

    table = result.table.reset_index()
    sentences = {name: "; ".join(texts) for name, texts in result.warnings.items()}
    if len(result.sequence):
        last = result.sequence.groupby("policy").tail(1).set_index("policy")
        table["always_low"] = table["policy"].map(last["low"])
        table["always_high"] = table["policy"].map(last["high"])
    table["warnings"] = table["policy"].map(sentences).fillna("")
    tables = {"Policies": table}
    supported = [name for name in result.policies if name not in result.unsupported]
    if LOGGED_POLICY in supported and len(supported) > 1:
        tables[DIFFERENCES] = result.contrasts(LOGGED_POLICY)
    p = best.p.rename_axis("policy").rename(columns=str).reset_index()
    tables["Always-valid p of: the row earns no more than the column"] = p
    sizes = pd.concat([doubt.overlap, doubt.ess], axis=1).rename_axis("arm").reset_index()
    tables["Arms: rounds, probabilities, effective sample sizes"] = sizes
    if doubt.log.probabilities is not None:
        tables["Calibration of the logged probabilities"] = doubt.calibration
    return tables


def answer(result: Evaluation, doubt: Check, best: Best) -> str:
    """Return the result of the evaluation in one or two sentences."""
    if doubt.refuted:
        return (
            f"The logged probabilities are refuted (log E = {doubt.log_e:.1f}, since round "
            f"{doubt.at}): no interval is given."
        )
    values = {
        name: e.value for name, e in result.estimates.items() if e is not None and not e.refused
    }
    if not values:
        return "No policy has an interval: the table says why."
    top = max(values, key=values.__getitem__) if best.policy is None else best.policy
    row = result.simultaneous().loc[top]
    claim = f"{top} earns more than every other policy:"
    if best.policy is None:  # an arm may be 0
        claim = f"No policy is shown to be better than all others; {top} has the largest estimate,"
    return (
        f"{claim} {row['estimate']:.4g} [{row['low']:.4g}, {row['high']:.4g}] a round. "
        "The intervals hold for all policies at once."
    )
