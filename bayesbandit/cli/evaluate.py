"""The command `bayesbandit evaluate`: off-policy evaluation of policies with a bandit's log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesbandit.cli import options
from bayesbandit.cli.output import check_folder, clear_errors, save, say, show, warn
from bayesbandit.runtime.files import replacing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from bayesbandit.bandit.bandit import Bandit
    from bayesbandit.ope import Best, Check, Evaluation, Log
    from bayesbandit.ope.logs.files import LoggedTable

LOGGED = "logged"
ARMS = 10  # at most this many arms are evaluated, those most often chosen
DIFFERENCES = f"Paired differences: policies less {LOGGED}"
HALF = 0.5  # the share of the rounds from which a policy learns


def evaluate(
    ctx: typer.Context,
    log: Annotated[
        Path, typer.Argument(help="A log: Parquet, CSV, JSON lines, or the lines of vw --dsjson.")
    ],
    column: options.LogColumn = None,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    dates: options.Dates = None,
    errors: options.Errors = "raise",
    bandit: Annotated[
        list[str] | None,
        typer.Option(
            help='Who is judged: a new bandit, as of `compare`: "LinTS(alpha=.25)", which learns '
            "the first half and is judged on the second; the file of a saved one; or an arm. The "
            "logged policy and the ten arms most chosen are judged, too. May be repeated."
        ),
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(help="The least and the largest possible reward: exact sequences."),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help='What an empty reward is: "open", it may still come; "random"; or "bounds", '
            "anything within --bounds."
        ),
    ] = None,
    out: options.Out = Path("runs"),
) -> None:
    """Estimate what other policies would have earned, from the log of a bandit or an experiment.

    The columns arm, reward, propensity, time and batch have these roles, and probability_ARM for
    each arm, unless --column names others. All other columns are contexts. One page, report.html,
    has each policy's value with an interval, or the reason why there is none. The intervals are
    valid although the log's policy learned. The page also has differences, effective sample sizes,
    a test of the logged probabilities, and intervals that are valid at all rounds at once.
    """
    with clear_errors():
        from bayesbandit.experiments.results_on_disk import record, write_record
        from bayesbandit.ope import check
        from bayesbandit.ope import evaluate as judge
        from bayesbandit.ope.logs.files import read_table

        folder = out / "evaluate"
        check_folder(folder)
        form: dict[str, Any] = {"sep": sep, "decimal": decimal, "dates": dates, "errors": errors}
        table = read_table(log, **form, **options.columns_of(column))
        data, policies, said = judged(table, bandit or [], ctx.obj)
        said.insert(0, str(data.roles))
        settings: dict[str, Any] = {
            "missing": missing,
            "bounds": bounds if missing == "bounds" else None,
            "sequence": None if missing == "bounds" else bounds or "asymptotic",
        }
        result = judge(data, policies, **settings)
        doubt = check(data)
        if doubt.untested:
            said.append(f"The logged probabilities are not tested: {doubt.untested}.")
        best = None if missing == "bounds" else result.best()
        tables = titled(result, doubt, best)
        figures = pictures(result, doubt)
        policies_table = tables["Policies"]
        folder.mkdir(parents=True, exist_ok=True)
        settings |= {"log": str(log), "columns": roles(data), "policies": list(policies)}
        write_record(folder / "run.json", record(settings))
        with replacing(folder / "results.parquet") as beside:
            policies_table.astype({"policy": str}).to_parquet(beside, index=False)
    for text in said:
        say(text)
    short = policies_table[["policy", "estimate", "low", "high", "ess", "refused"]]
    show(short, f"Policies by {len(data):,} rounds of {table.name}")
    texts = [text for told in result.warnings.values() for text in told]
    for text in dict.fromkeys(texts):
        names = [str(name) for name, told in result.warnings.items() if text in told]
        warn(f"{', '.join(names)}: {text}")
    say(text := answer(result, doubt, best, tables))
    title = f"What would have been earned by the log {table.name}?"
    save(folder, policies_table, tables, figures, title=title, answer=" ".join([text, *said]))


def judged(
    table: LoggedTable, texts: list[str], parts: list[str] | None
) -> tuple[Log, dict[Any, Any], list[str]]:
    """Return the log of the rounds for evaluation, the policies by name, and sentences to print.

    texts: arms and bandits, as of --bandit. parts: what --part gives.
    """
    import numpy as np

    from bayesbandit.cli.bandits import is_saved, load_saved, made, parse_bandit

    if twice := [text for text in texts if texts.count(text) > 1]:
        raise ValueError(f"--bandit {twice[0]} is given more than once")
    named = set(texts) & set(table.frame[table.columns.named["arm"]].astype(str))
    saved = [text for text in texts if text not in named and is_saved(text)]
    new = [parse_bandit(text) for text in texts if text not in (*named, *saved)]
    half = round(HALF * len(table.frame)) if new else 0
    data = table.encoded(table.encoder(slice(half or None)))
    said = list[str]()
    later = data[half:]
    count = np.bincount(later.played, minlength=len(data.arms))
    most = {data.arms[k] for k in np.argsort(-count, kind="stable")[:ARMS]}
    judged_arms = [arm for arm in data.arms if arm in most or str(arm) in named]
    names = [LOGGED, *map(str, judged_arms), *(label for label, _ in new)]
    names += [Path(text).name for text in saved]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two policies are named {twice[0]!r}: rename one")
    policies: dict[Any, Any] = {LOGGED: None} | {arm: arm for arm in judged_arms}
    if len(data.arms) > ARMS:
        said.append(f"Of {len(data.arms)} arms the {ARMS} most chosen are judged, and those named.")
    for label, factory in new:
        bandit = made((label, factory), data.arms, n_features=data.x.shape[1])
        i = np.flatnonzero(~np.isnan(data.reward[:half]))
        bandit.update(data.x[i], data.arm[i], data.reward[i], propensity=data.propensity[i])
        policies[label] = bandit
    if new:
        n = len(data)
        said.append(
            f"Policies were learned from rounds 1 to {half:,}, and all are judged by "
            f"rounds {half + 1:,} to {n:,}."
        )
    for text in saved:
        policies[Path(text).name] = frozen(table, load_saved(text, parts), half)
    return later, policies, said


def frozen(table: LoggedTable, bandit: Bandit, half: int) -> Any:
    """Return a saved bandit's probabilities in the rounds from `half` on.

    A bandit with an encoder encodes the contexts itself. Raise ValueError if they do not fit.
    """
    from bayesbandit.cli.bandits import check_contexts
    from bayesbandit.ope.targets import target_of

    if bandit.encoder is not None:
        return target_of(table.encoded(bandit.encoder)[half:], bandit)
    check_contexts(bandit, table.x)
    return target_of(table.log(table.contexts)[half:], bandit)


def titled(result: Evaluation, doubt: Check, best: Best | None) -> dict[str, pd.DataFrame]:
    """Return the tables of the page by their titles."""
    import pandas as pd

    table = result.table.reset_index()
    said = {name: "; ".join(texts) for name, texts in result.warnings.items()}
    if result.settings["sequence"] is not None and len(result.sequence):
        last = result.sequence.groupby("policy").tail(1).set_index("policy")
        table["always_low"] = table["policy"].map(last["low"])
        table["always_high"] = table["policy"].map(last["high"])
    table["warnings"] = table["policy"].map(said).fillna("")
    tables = {"Policies": table}
    if LOGGED not in result.unsupported and len(result.policies) > 1:
        tables[DIFFERENCES] = result.contrasts(LOGGED)
    if best is not None:
        p = best.p.rename_axis("policy").rename(columns=str).reset_index()
        tables["Always-valid p of: the row earns no more than the column"] = p
    sizes = pd.concat([doubt.overlap, doubt.ess], axis=1).rename_axis("arm").reset_index()
    tables["Arms: rounds, probabilities, effective sample sizes"] = sizes
    if doubt.log.probabilities is not None:
        tables["Calibration of the logged probabilities"] = doubt.calibration
        placebo = doubt.placebo.rename_axis("arm").reset_index()
        tables["Placebo: z of what no arm can change"] = placebo
    return tables


def pictures(result: Evaluation, doubt: Check) -> dict[str, Figure]:
    """Return the pictures of the page by their files' names."""
    from bayesbandit import plots

    figures = {"values": plots.policy_values(result)}
    if LOGGED not in result.unsupported and len(result.policies) > 1:
        figures["differences"] = plots.policy_contrasts(result, LOGGED)
    figures["sample_sizes"] = plots.sample_sizes(result)
    if doubt.log.probabilities is not None:
        figures["calibration"] = plots.calibration(doubt)
    if result.settings["sequence"] is not None and len(result.sequence):
        figures["sequences"] = plots.value_sequences(result)
    return figures


def answer(
    result: Evaluation, doubt: Check, best: Best | None, tables: dict[str, pd.DataFrame]
) -> str:
    """Return the result of the evaluation in one to three sentences."""
    if doubt.refuted:
        return (
            f"The logged probabilities are refuted (log E = {doubt.log_e:.1f}, since round "
            f"{doubt.at}): no interval is given."
        )
    names = {name: e for name, e in result.estimates.items() if e is not None and not e.refused}
    if not names:
        return "No policy has an interval: the table says why."
    proved = None if best is None else best.policy
    top = max(names, key=lambda name: names[name].value) if proved is None else proved
    row = result.simultaneous().loc[top]
    value = f"{row['estimate']:.4g} [{row['low']:.4g}, {row['high']:.4g}] a round"
    if proved is not None:
        said = f"{top} earns more than every other policy: {value}."
    else:
        said = f"No policy is shown to be better than all others; {top} has the largest estimate, "
        said += f"{value}."
    gaps = tables.get(DIFFERENCES)
    if top != LOGGED and gaps is not None:
        columns = ["difference", "low_all", "high_all"]
        gap, low, high = gaps.loc[gaps["one"] == top, columns].to_numpy(float)[0]
        said += f" That is {gap:+.4g} [{low:+.4g}, {high:+.4g}] against {LOGGED}."
    return said if len(names) == 1 else said + " These intervals hold for all policies at once."


def roles(log: Log) -> dict[str, Any]:
    """Return the columns of a log from a file by their roles."""
    columns = log.roles
    assert columns is not None
    each = {str(arm): column for arm, column in columns.probabilities.items()}
    left = {str(column): why for column, why in columns.left.items()}
    contexts = list(columns.contexts)
    return {**columns.named, "probabilities": each, "contexts": contexts, "left_out": left}
