"""Table 1 of the paper: how often a bandit finds the optimal assignment (section 3.1).

Features (x, x²) or x with a penalised constant, λ by 5-fold cross-validation on {.1, 1, 10} at
every update, σ² = RSS/n, α = 1, γ = .2: the closest of the settings that the paper leaves open.
The study `table1_controls` plays the paper's grids of α and γ, too, and variants that the paper may
be read as, and controls that it lacks: weights above 1 also shrink the penalty, so that LinTS and
LinUCB must be seen with a weaker one, and BLTS with weights of mean 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import bayesbandit as bb
from bayesbandit import evaluation, plots
from bayesbandit.environments import SyntheticExample
from bayesbandit.plots.curves import horizon
from bayesbandit_studies import Factory, pictures
from bayesbandit_studies.tables import differences, share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "synthetic-"

PAPER = {
    ("LinTS", "well"): 84, ("LinTS", "mis"): 39,
    ("LinUCB", "well"): 51, ("LinUCB", "mis"): 29,
    ("BLTS", "well"): 92, ("BLTS", "mis"): 58,
    ("BLUCB", "well"): 79, ("BLUCB", "mis"): 30,
}  # fmt: skip

FOUR: dict[str, Factory] = {
    "LinTS": bb.LinTS,
    "LinUCB": bb.LinUCB,
    "BLTS": bb.BLTS,
    "BLUCB": bb.BLUCB,
}
ALPHAS = {"TS": (0.25, 0.5, 1.0), "UCB": (1.0, 2.0, 4.0)}
CLIPS = (0.01, 0.05, 0.1, 0.2)
CLIP = 0.2
CV: dict[str, Any] = {
    "alpha": 1.0, "ridge": "cv", "grid": (0.1, 1.0, 10.0), "folds": 5, "variance": "rss/n",
}  # fmt: skip
FIXED: dict[str, Any] = {"alpha": 0.5, "ridge": 1.0, "variance": "rss/n"}

PAIRS = [  # whose difference is shown, simulation by simulation
    ("LinTS", "LinUCB"), ("BLTS", "LinTS"), ("BLUCB", "LinUCB"), ("BLTS", "LinTS, grid ÷ 3"),
    ("BLTS", "BLTS, mean 1"), ("BLTS, mean 1", "LinTS"), ("BLTS, pooled, all arms", "BLTS"),
    ("BLUCB, all arms", "BLUCB"), ("BLTS, λ = 1, mean 1", "LinTS, λ = 1"),
    ("BLTS, λ = 1", "LinTS, λ = ⅓"),
]  # fmt: skip
SCALES = ["LinTS", "BLTS", "LinTS, grid ÷ 3", "BLTS, mean 1"]  # what weights of that scale do
WINDOWS = [(0, 0), (1, 50), (51, 200), (201, 500), (501, 1000)]  # of the pictures of one simulation


def four() -> dict[str, Factory]:
    """Return the paper's four algorithms at the closest setting."""
    return {name: grid(name)[name] for name in FOUR}


def bandits() -> dict[str, Factory]:
    """Return the four algorithms at the closest setting, variants of them, and controls."""
    lin, blts, blucb = (
        partial(bb.LinTS, **CV),
        partial(bb.BLTS, clip=CLIP, **CV),
        partial(bb.BLUCB, clip=CLIP, **CV),
    )
    third, fifth, triple = (
        {"grid": tuple(c * lam for lam in CV["grid"])} for c in (1 / 3, 1 / 5, 3.0)
    )
    fixed = partial(bb.LinTS, **FIXED)
    balanced = partial(bb.BLTS, clip=CLIP, **FIXED)
    return {
        "LinTS": lin,
        "LinUCB": partial(bb.LinUCB, **CV),
        "BLTS": blts,
        "BLUCB": blucb,
        "BLTS, pooled": partial(blts, propensity="pooled"),
        "BLTS, pooled, all arms": partial(blts, propensity="pooled", refresh="all"),
        "BLUCB, all arms": partial(blucb, refresh="all"),
        "LinTS, grid ÷ 3": partial(lin, **third),
        "LinTS, grid ÷ 5": partial(lin, **fifth),
        "BLTS, grid × 3": partial(blts, **triple),
        "BLTS, mean 1": partial(blts, normalize=True),
        "LinUCB, grid ÷ 3": partial(bb.LinUCB, **CV | third),
        "LinTS, free constant": partial(lin, intercept="unpenalised"),
        "BLTS, free constant": partial(blts, intercept="unpenalised"),
        "LinTS, rss": partial(lin, variance="rss"),
        "BLTS, rss": partial(blts, variance="rss"),
        "LinTS, λ = 1": fixed,
        "LinTS, λ = ⅓": partial(fixed, ridge=1 / 3),
        "BLTS, λ = 1": balanced,
        "BLTS, λ = 1, mean 1": partial(balanced, normalize=True),
    }


def grid(name: str) -> dict[str, Factory]:
    """Return an algorithm at all settings of the paper's grids."""
    settings = [{"alpha": alpha} for alpha in ALPHAS[name.removeprefix("BL").removeprefix("Lin")]]
    if name.startswith("BL"):
        settings = [s | {"clip": clip} for s in settings for clip in CLIPS]
    return {cell(name, s): partial(FOUR[name], **CV | s) for s in settings}


def cell(name: str, settings: Mapping[str, float]) -> str:
    """Return what an algorithm is called at a setting of its grid; by its name alone at the
    closest."""
    if settings["alpha"] == CV["alpha"] and settings.get("clip", CLIP) == CLIP:
        return name
    texts = [f"α = {settings['alpha']:g}"]
    texts += [f"γ = {settings['clip']:g}"] if "clip" in settings else []
    return ", ".join([name, *texts])


def players() -> dict[str, Factory]:
    """Return the algorithms, variants and controls, and the paper's grids."""
    found = bandits()
    for name in FOUR:
        found |= grid(name)
    return found


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Return for each bandit and specification one row, shares in % of the simulations.

    optimal: at the optimal assignment at T, and its standard error; paper: what the paper reports;
    ever: there at some checkpoint; first_round: the median first one there (inf where half of the
    simulations never arrive); regret: cumulative, at T, and its standard error. The rows "best of
    n" are the settings that do best on one half of the simulations, as they do on the other.
    """
    rows = _rows(results)
    half = results["replication"] % 2
    if half.nunique() < 2:
        return rows
    chosen, shown = (_rows(results[half == h]) for h in (0, 1))
    for name in FOUR:
        members = [label for label in grid(name) if label in set(rows["bandit"])]
        if len(members) < 2:
            continue
        for specification in rows["specification"].unique():
            before = chosen[chosen["specification"] == specification].set_index("bandit")
            best = before.loc[members, "optimal"].idxmax()
            after = shown[(shown["specification"] == specification) & (shown["bandit"] == best)]
            after = after.assign(bandit=f"{name}, best of {len(members)} (half)", setting=best)
            after["paper"] = PAPER[name, specification]
            rows = pd.concat([rows, after], ignore_index=True)
    return rows


def _rows(results: pd.DataFrame) -> pd.DataFrame:
    """Return `table`, without the best of the grids."""
    cells = evaluation.summary(results)
    share = cells["optimal_at_end"]
    key = list(zip(cells["bandit"], cells["environment"].str.removeprefix(NAME), strict=True))
    return cells[["bandit"]].assign(
        setting=cells["bandit"],
        specification=[specification for _, specification in key],
        optimal=100 * share,
        optimal_se=100 * np.sqrt(share * (1 - share) / cells["replications"]),
        paper=[PAPER.get(k, np.nan) for k in key],
        ever=100 * cells["optimal_ever"],
        first_round=cells["first_optimal"],
        regret=cells["normalised_regret"] * cells["t"],
        regret_se=cells["normalised_regret_se"] * cells["t"],
        simulations=cells["replications"],
    )


def printed(table: pd.DataFrame) -> pd.DataFrame:
    """Return ours ± SE beside the paper's numbers, in brackets where these simulations cannot tell
    the two apart; of the grids, their best."""
    inside = {label for name in FOUR for label in grid(name)} - set(FOUR)
    table = table[~table["bandit"].isin(inside)]
    shown = table[["bandit"]].drop_duplicates().set_index("bandit")
    for specification, rows in table.groupby("specification", sort=False):
        cells = rows.set_index("bandit")
        near = (cells["optimal"] - cells["paper"]).abs() <= 1.96 * cells["optimal_se"]
        known = cells["paper"].map("{:.0f}".format).where(cells["paper"].notna(), "–")
        counts = (cells["optimal"] / 100 * cells["simulations"]).round().astype(int)
        shown[f"{specification} (%)"] = [
            share(k, n) for k, n in zip(counts, cells["simulations"], strict=True)
        ]
        shown[f"paper, {specification}"] = known.where(~near, "(" + known + ")")
        shown[f"{specification}: regret"] = [
            evaluation.within(a, b)
            for a, b in zip(cells["regret"], cells["regret_se"], strict=True)
        ]
    return shown.reset_index()


def details(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return differences between bandits, simulation by simulation, in points of the share ± SE."""
    shown = differences(results, PAIRS, "optimal", 100)
    shown = shown.rename(columns=lambda name: name.removeprefix(NAME))
    return {"Differences, simulation by simulation (points ± SE)": shown}


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Return pictures by file name: four of all simulations, and those of `maps`."""
    four = results[results["bandit"].isin(FOUR)]
    drawn = {
        "scale": share_rows(_rows(results), horizon(results)),
        "optimal_share": pictures.optimal_share(four),
        "regret": plots.regret_curves(four),
        "propensities": pictures.propensities(four),
    }
    return drawn | maps(evaluation.seed_of(results))


def maps(seed: int) -> dict[str, Figure]:
    """Play one simulation of each bandit; return pictures of it in the plane of contexts."""
    drawn: dict[str, Figure] = {}
    for specification in ("well", "mis"):
        environment = SyntheticExample(specification, horizon=WINDOWS[-1][1])
        points = np.stack(np.meshgrid(*[np.linspace(-3, 3, 61)] * 2), axis=-1).reshape(-1, 2)
        truth = environment.expected_rewards(points)
        estimates = []
        for name in FOUR:
            x, arm, t, means = walk(environment, bandits()[name], points, seed)
            estimates.append(means[-1])
            regions = np.stack([mean.argmax(axis=1) for mean in means])
            drawn[f"assignment-{specification}-{name}"] = pictures.assignment(
                x,
                arm,
                t,
                environment.arms,
                WINDOWS,
                points,
                regions,
                truth,
                title=f"Arm assignment by {name}, {specification}-specified, one simulation",
            )
        drawn["outcomes"] = pictures.outcomes(points, truth, environment.arms)
        drawn[f"bias-{specification}"] = pictures.bias(
            points,
            np.stack(estimates),
            truth,
            environment.arms,
            list(FOUR),
            title=f"Estimation bias after {WINDOWS[-1][1]:,} rounds, {specification}-specified, "
            f"σ = {environment.sigma}, one simulation",
        )
    return drawn


def share_rows(table: pd.DataFrame, when: str) -> Figure:
    """Draw the shares of `table` that show what the scale of the weights does, with 95 % intervals;
    the paper's number stands beside the name. when: the end of the runs, in words."""
    shown = table[table["bandit"].isin(SCALES)]
    names = {
        name: f"{name} (paper: {PAPER[name, 'well']} and {PAPER[name, 'mis']})"
        for name in SCALES
        if (name, "well") in PAPER
    }
    rows = shown.assign(
        row=shown["bandit"].replace(names),
        panel=shown["specification"] + "-specified, σ = 0.1",
    ).sort_values("bandit", key=lambda c: c.map(SCALES.index), kind="stable")
    n = int(shown["simulations"].max())
    return pictures.interval_rows(
        rows,
        "row",
        "optimal",
        "panel",
        "% at the optimal assignment",
        f"Optimal assignment {when}: share of {n} simulations and 95 % interval",
        least=0.0,
        most=100.0,
    )


def walk(
    environment: SyntheticExample, factory: Factory, points: np.ndarray, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
    """Play one simulation. Return contexts of the plane (n, 2), arms (n,) and rounds (n,), the
    warm start as round 0, and the estimated mean rewards at the points (m, K) at the end of each
    window."""
    sample = environment.sample(None, np.random.default_rng(seed))
    bandit = factory(environment.arms, environment.n_features, seed=seed)
    bandit.update(sample.warm_x, sample.warm_arm, sample.warm_reward, sample.warm_propensity)
    features = environment.features(points)
    chosen = [sample.warm_arm]
    means = []
    for first, last in WINDOWS:
        rounds = slice(max(first - 1, 0), last)
        if last > 0:
            chosen.append(bandit.play(sample.x[rounds], sample.reward[rounds])[0])
        means.append(bandit.belief.predict(features).mean)
    t = np.concatenate([np.zeros(len(sample.warm_arm)), 1.0 + np.arange(len(sample.x))])
    x = np.concatenate([sample.warm_x, sample.x])[:, :2]
    return x, np.concatenate(chosen), t, means


STUDY = bb.extend.Study(
    title="Simulations that find the optimal assignment (%), well- and mis-specified",
    environments=[SyntheticExample("well"), SyntheticExample("mis")],
    players=four(),
    table=table,
    printed=printed,
    details=details,
    figures=figures,
    replications=500,
    horizon=10_000,
    points=20,
    quick={"replications": 10, "horizon": 2_000},
)
CONTROLS = replace(STUDY, title=f"{STUDY.title}: variants, grids and controls", players=players())
