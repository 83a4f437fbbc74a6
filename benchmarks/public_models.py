"""Public models, handed over as their authors write them, beside plain PyMC.

    uv run --group dev benchmarks/public_models.py [NAME …]
    uv run --group dev benchmarks/public_models.py --explain    # engines alone, in two minutes

Each case runs in a process of its own and leaves runs/public_models/NAME.json. A case that has its
file is not run again, so a run that is stopped goes on. The table is docs/results/public_models.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
from published import CASES, Handed, counts, hierarchies, scales, series

import bayesbandit as bb

FILES = hierarchies, counts, scales, series  # they add their cases
RUNS = Path("runs/public_models")
TABLE = Path("docs/results/public_models.md")
ROUNDS = 100
LARGEST_GAP = 4.0  # of means, in standard errors
LARGEST_RATIO = 1.1  # of standard deviations
HEAD = f"""# Public models

Models that others have published, written as their authors write them, and handed over by
`bb.RewardModel.from_pymc`. The data are small, and simulated by the published design.

    uv run --group dev benchmarks/public_models.py

- **rewrite**: *none*: the model is as published, and the arguments of `from_pymc` say what its
  data are.
- **means**: the largest difference to the means by plain PyMC (`pm.sample` with nutpie) of all
  variables, in standard errors of both. **sds**: the ratio of standard deviations that is farthest
  from 1. The scales of a horseshoe are half-Cauchy. Their posterior density falls as λ⁻³, so they
  have no standard deviation.
- A dash is what was not measured so far: the command goes on with those.
- **seconds**: of `bb.fit`, with compilation, beside `pm.sample` with as many **draws** (in two
  chains), on a busy machine.
- **bandit**: the seconds of {ROUNDS} rounds, without those that make it. Rewards are drawn from the
  data. *no*: a draw of the prior has an infinite mean reward, Γ(1 + 1/α) of a shape α near 0.

| model | source | rewrite | engine | means | sds | draws | seconds, beside PyMC | bandit |
|---|---|---|---|--:|--:|--:|--:|--:|
"""


def fitted(handed: Handed, draws: int) -> tuple[pd.DataFrame, str, float]:
    """Return the summary of our posterior, the engine and the seconds."""
    began = time.perf_counter()
    posterior = bb.fit(
        handed.model, handed.x, handed.reward, arm=handed.arm, n_arms=handed.n_arms, draws=draws,
        chains=2, seed=0,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    return summary(posterior.to_datatree(), handed), posterior.engine, seconds


def plain(handed: Handed, draws: int) -> tuple[pd.DataFrame, float]:
    """Return the summary of the posterior by PyMC alone, and the seconds."""
    began = time.perf_counter()
    tree = pm.sample(
        draws, tune=1000, chains=2, cores=1, model=handed.original, random_seed=1,
        nuts_sampler="nutpie", target_accept=0.95, progressbar=False,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    return summary(tree, handed), seconds


def summary(tree: object, handed: Handed) -> pd.DataFrame:
    """Return means and standard deviations of the variables, each number a row."""
    names = [str(v.name) for v in handed.original.free_RVs]
    table = az.summary(tree, var_names=names, round_to=10, kind="all").astype(float)
    return table.reset_index(drop=True)  # the labels of arms are those of the original, or numbers


def played(handed: Handed) -> float:
    """Return the seconds of some rounds of a bandit, with rewards drawn from the data."""
    K = handed.n_arms or 2
    rng = np.random.default_rng(0)
    bandit = bb.Bandit(
        [f"arm {k}" for k in range(K)],
        handed.model,
        bb.Thompson(),
        n_features=handed.x.shape[1],
        seed=0,
    )
    began = time.perf_counter()
    for i in rng.integers(len(handed.reward), size=ROUNDS):
        decision = bandit.choose(handed.x[i])
        if not decision.propensity > 0:
            raise RuntimeError(f"a propensity of {decision.propensity}")
        bandit.observe(decision, float(handed.reward[i]))
    return time.perf_counter() - began


def explained(name: str) -> dict[str, object]:
    """Return the engine that a case gets; "refused" where it cannot be handed over."""
    try:
        handed = CASES[name].build()
        text = handed.model.explain(handed.x.shape[1], handed.n_arms)
    except ValueError as error:
        return {"refused": str(error)}
    return {"engine": text.splitlines()[0].rpartition(": ")[2]}


def kept(name: str) -> dict[str, object]:
    """Return what is known of a case so far."""
    path = RUNS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def measured(name: str, draws: int) -> dict[str, object]:
    """Return the numbers of a case; "refused" where it cannot be handed over."""
    try:
        handed = CASES[name].build()
    except ValueError as error:
        return {"refused": str(error)}
    ours, engine, seconds = fitted(handed, draws)
    theirs, beside = plain(handed, draws)
    se = np.hypot(ours["mcse_mean"], theirs["mcse_mean"])
    moves = theirs["sd"] > 0  # LKJ: fixed zeros
    ratio = (ours["sd"] / theirs["sd"])[moves]
    found = {
        "engine": engine,
        "means": float(((ours["mean"] - theirs["mean"]).abs() / se)[moves].max()),
        "sds": float(ratio.iloc[np.abs(np.log(ratio)).to_numpy().argmax()]),
        "draws": 2 * draws,
        "seconds": seconds,
        "beside": beside,
    }
    try:
        return found | {"bandit": played(handed)}
    except ValueError as error:
        return found | {"no_bandit": str(error)}


def line(name: str) -> str:
    """Return the row of a case."""
    case = CASES[name]
    r = kept(name)
    cells = [name, case.source, case.rewrite]
    if "means" not in r:
        engine = "refused" if "refused" in r else str(r.get("engine", ""))
        return f"| {' | '.join([*cells, engine, *['–'] * 5])} |"
    bandit = f"{r['bandit']:.1f} s" if "bandit" in r else "no"
    cells += [r["engine"], f"{r['means']:.1f}", f"{r['sds']:.2f}", f"{r['draws']:,}"]
    cells += [f"{r['seconds']:.1f}, {r['beside']:.1f}", bandit]
    return f"| {' | '.join(cells)} |"


def write_table() -> None:
    """Write the table of all cases, and how many were as they should be."""
    whole = [r for r in map(kept, CASES) if "means" in r]
    equal = [
        r for r in whole
        if r["means"] <= LARGEST_GAP and 1 / LARGEST_RATIO <= r["sds"] <= LARGEST_RATIO
    ]  # fmt: skip
    none = sum(case.rewrite == "none" for case in CASES.values())
    told = (
        f"\n{none} of {len(CASES)} models need no rewrite. Of {len(whole)} that were sampled, "
        f"{len(equal)} have means within {LARGEST_GAP:g} standard errors and standard deviations "
        f"within 10 %; {sum('bandit' in r for r in whole)} were played by a bandit.\n"
    )
    TABLE.write_text(HEAD + "\n".join(map(line, CASES)) + "\n" + told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="cases; without, all")
    parser.add_argument("--draws", type=int, default=1000, help="of each of two chains")
    parser.add_argument("--one", action="store_true", help="measure in this process")
    parser.add_argument("--explain", action="store_true", help="find engines, and sample nothing")
    given = parser.parse_args()
    RUNS.mkdir(parents=True, exist_ok=True)
    if given.one:
        [name] = given.names
        warnings.simplefilter("ignore")
        (RUNS / f"{name}.json").write_text(json.dumps(measured(name, given.draws)))
        return
    for name in given.names or CASES:
        if given.explain and not kept(name):
            (RUNS / f"{name}.json").write_text(json.dumps(explained(name)))
        if not given.explain and not {"means", "refused"} & kept(name).keys():
            call = [sys.executable, __file__, name, "--one", "--draws", str(given.draws)]
            print(name, "failed" if subprocess.run(call).returncode else "measured", flush=True)
        write_table()


if __name__ == "__main__":
    main()
