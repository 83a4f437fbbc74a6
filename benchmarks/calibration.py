"""Simulation-based calibration of every engine that draws from the posterior itself.

    uv run benchmarks/calibration.py [--engine NAME] [--datasets N] [--seed N] [--out docs]
    uv run benchmarks/calibration.py --redraw [--out docs]      # the picture, from kept ranks

Parameters come from the declared prior, rewards from the declaration itself, and the posterior from
the engine. If the posterior is right, the rank of the truth among posterior draws is uniform, for
any quantity, also for one that depends on the data. The script prints one table. It writes the
table, a text and a picture to docs/calibration.md; for a single engine it needs `--out`. The ranks
are stored in runs/calibration.npz.
"""

import argparse
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.progress import Progress
from simulation import SQUEEZE, Case, Ranks, calibrate
from threadpoolctl import threadpool_limits
from uniformity import CELLS, DRAWS, band, below

import bayesbandit as bb
from bayesbandit.evaluation import markdown
from bayesbandit.plots.style import BLUE, GREY, dress, entitle, legend, panels, ruled

LEVEL = 0.05  # of all quantities together
DATASETS = {
    "exact_gaussian": 300, "normal_inverse_gamma": 300, "conjugate": 300, "gibbs": 500,
    "nuts": 500,
}  # fmt: skip
RANKS = Path("runs/calibration.npz")
PARTS = ("names", "ranks", "control", "correlation")
PACKAGES = ("bayesbandit", "pymc", "pytensor", "nutpie", "numba", "numpy", "scipy")


def cases() -> list[Case]:
    """What is calibrated: all engines that draw from the posterior itself."""
    gamma, noise = bb.Prior("Gamma", alpha=1, beta=1.78), bb.Prior("InverseGamma", alpha=3, beta=2)
    lasso = bb.load_model("bayesian_lasso").with_priors(lambda2=gamma)
    arms = bb.load_model("hierarchical_ridge")
    learnt = arms.with_priors(sigma2=noise, tau2=noise)
    both, three = (False, True), {"n": 15, "d": 2, "n_arms": 3}
    sds = bb.load_model("ridge_known_noise").with_priors(sigma=bb.Prior("HalfNormal", sigma=1))
    known, ridge, laplace, horseshoe, student, mixture, uneven, logistic, probit, poisson = map(
        bb.load_model,
        ["ridge_known_noise", "ridge", "laplace", "horseshoe", "student_t", "student_t_mixture",
         "heteroscedastic", "logistic", "probit", "poisson"],
    )  # fmt: skip
    gibbs = {"thin": 50, "tune": 500}
    chain = {"thin": 8, "tune": 400}
    return [
        *(Case("exact_gaussian", known, w) for w in both),
        *(Case("exact_gaussian", arms, w, **three) for w in both),
        *(Case("normal_inverse_gamma", ridge, w) for w in both),
        *(Case("conjugate", bb.load_model(m), False) for m in ("beta_bernoulli", "gamma_poisson")),
        *(Case("gibbs", lasso, w, "λ² ~ Gamma", **gibbs) for w in both),
        *(Case("gibbs", laplace, w, **gibbs) for w in both),
        *(Case("gibbs", horseshoe, w, thin=400, tune=4000) for w in both),
        *(Case("gibbs", student, w, **gibbs) for w in both),
        *(Case("gibbs", mixture, w, **gibbs) for w in both),
        *(Case("gibbs", sds, w, "σ ~ HalfNormal", **gibbs) for w in both),
        *(Case("gibbs", learnt, w, "σ², τ² learnt", **three, **gibbs) for w in both),
        *(Case("gibbs", m, False, thin=30, tune=300, n=20) for m in (logistic, probit)),
        Case("nuts", student, True, **chain),
        *(Case("nuts", uneven, w, **chain, n=20, d=2) for w in both),
        Case("nuts", logistic, False, **chain, n=20),
        Case("nuts", poisson, False, **chain, n=20, d=2),
    ]


def corrected(results: list[Ranks], control: bool = False) -> list[float]:
    """The smallest p-value of each case, times the number of quantities of all (Bonferroni)."""
    m = sum(len(r.names) for r in results)
    found = [r.control_p_values if control else r.p_values for r in results]
    return [min(1.0, m * float(p.min())) for p in found]


def table(results: list[Ranks]) -> pd.DataFrame:
    """A row for each case."""
    rows = []
    least = zip(results, corrected(results), corrected(results, control=True), strict=True)
    for r, own, control in least:
        p = r.p_values
        rows.append(
            {
                "engine": r.case.kind,
                "model": r.case.name,
                "weights": "0.1 … 10" if r.case.weighted else "1",
                "data sets": str(len(r.ranks)),
                "quantities": str(len(r.names)),
                "every": str(r.case.thin),
                "lag-1": f"{r.correlation:.2f}",
                "smallest p": f"{p.min():.2g}",
                "of": r.names[int(p.argmin())],
                "corrected": f"{own:.2g}",
                "verdict": "uniform" if own > LEVEL else "NOT UNIFORM",
                "control, corrected": f"{control:.1g}" if control > 1e-9 else "< 1e-09",
            }
        )
    return pd.DataFrame(rows)


def keep(results: list[Ranks], file: Path) -> None:
    """Writes the ranks of all cases."""
    file.parent.mkdir(parents=True, exist_ok=True)
    arrays = {f"{key(r.case)}/{part}": np.asarray(getattr(r, part))
              for r in results for part in PARTS}  # fmt: skip
    np.savez_compressed(file, **arrays)


def read(file: Path) -> list[Ranks]:
    """The ranks that were written, of the cases that there still are."""
    with np.load(file) as arrays:
        parts = [(c, [arrays[f"{key(c)}/{part}"] for part in PARTS])
                 for c in cases() if f"{key(c)}/names" in arrays]  # fmt: skip
    return [Ranks(c, names.tolist(), ranks, control, float(correlation))
            for c, (names, ranks, control, correlation) in parts]  # fmt: skip


def key(case: Case) -> str:
    return f"{case.kind}: {case.name}{', weighted' * case.weighted}"


def picture(results: list[Ranks]) -> Figure:
    """ECDFs of ranks minus the uniform one: engines, and the control, each with its bands."""
    kinds = [k for k in DATASETS if any(r.case.kind == k for r in results)]
    m, x = sum(len(r.names) for r in results), np.arange(1, CELLS) / CELLS
    figure, axes = panels(len(kinds) + 1, most=4, width=3.1, height=2.5)
    ends: list[float] = []
    for ax, kind in zip(axes, [*kinds, "control"], strict=True):
        chosen = [r for r in results if kind in (r.case.kind, "control")]
        n = max(len(r.ranks) for r in chosen)
        lines = [
            below(ranks) / n - x
            for r in chosen if len(r.ranks) == n
            for ranks in (r.control if kind == "control" else r.ranks).T
        ]  # fmt: skip
        ax.plot(x, np.transpose(lines), color=BLUE, lw=0.6, alpha=0.5)
        ends.append(np.abs(lines).max())
        for level, style in ((LEVEL / m, "-"), (LEVEL, ":")):
            for edge in band(n, level):
                ax.plot(x, edge / n - x, color="black", lw=0.9, ls=style)
                ends.append(np.abs(edge / n - x).max())
        ax.axhline(0.0, color=GREY, lw=0.8, zorder=1)
        title = f"control: spread × {SQUEEZE:g}" if kind == "control" else kind
        said = f"{title} ({n} data sets, {len(lines)} quantities)"
        dress(ax, said, "rank of the truth (share)", "ECDF − uniform")
        ruled(ax)
    for ax in axes:
        ax.set(xlim=(0, 1), ylim=(-1.1 * max(ends), 1.1 * max(ends)))
    entitle(figure, "Ranks of the truth among posterior draws: engines and control")
    keys = [
        Line2D([], [], color=BLUE, lw=0.9, label="a quantity"),
        Line2D([], [], color="black", lw=0.9, label=f"{1 - LEVEL:.0%} band for all quantities"),
        Line2D([], [], color="black", lw=0.9, ls=":", label=f"{1 - LEVEL:.0%} band for one"),
    ]
    legend(figure, keys, handle=2.5)
    return figure


def report(results: list[Ranks], command: str) -> str:
    """docs/calibration.md."""
    m, p = sum(len(r.names) for r in results), np.concatenate([r.p_values for r in results])
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    text = "\n\n".join(
        p if p.startswith(" ") else " ".join(p.split()) for p in TEXT.strip().split("\n\n")
    )
    return text.format(
        command=command, draws=DRAWS, cells=CELLS, m=m, level=LEVEL, squeeze=SQUEEZE,
        versions=versions, table=markdown(table(results)), small=int((p < 0.05).sum()),
        expected=f"{0.05 * m:.0f}",
        seen=sum(c <= LEVEL for c in corrected(results, control=True)), cases=len(results),
    ) + "\n"  # fmt: skip


TEXT = """\
# Are the posteriors calibrated?

    {command}

{table}

![ECDFs of ranks](calibration.png)

**How.** Each data set is simulated. Parameters come from the declared prior, contexts are standard
normal, and PyMC draws the rewards from the declaration itself. The engine then computes the
posterior from a cold start. If that posterior is correct, the rank of the true value among {draws}
independent posterior draws is uniform on {cells} values.

The quantities are the elements of each variable, the mean reward at a context, and the log
likelihood. Of a variable with one element for each row, only the first element is used. The log
likelihood depends on the data, so that it detects an engine that ignores some of them (Talts et al.
2018; Modrák et al. 2023).

**The test.** It compares the ECDF of the ranks with bands that hold at all points at once
(Säilynoja, Bürkner and Vehtari 2022). The p-value is computed exactly, without simulation.
`smallest p` is the smallest p-value of a row's quantities. `corrected` is {m} times it, for the {m}
quantities of the table (Bonferroni). A row is called uniform if `corrected` is above {level:g}. If
all engines are right, a table has a false alarm with probability {level:g} at most. Of the {m}
p-values {small} are below .05; {expected} are expected.

**Could the test fail?** `control` is the same test on the same data sets with a deliberate error:
each draw is moved towards the median, until the posterior's spread is {squeeze:g} of its original
spread (on the log scale for positive variables). Where `control` is small, the test would have
found so large an error. It is below {level:g} in {seen} of {cases} rows. More data sets can show
smaller errors (`--engine gibbs --datasets 1000`). Engines with a wrong prior, wrong noise or
without weights do fail (`tests/inference/test_calibration.py`). Negative binomial rewards have a
test of their own by the same means (`tests/inference/test_augmented.py`).

**How to read the table.** `lag-1` is the largest rank correlation between neighbouring kept draws,
averaged over data sets. It should be near 0, because ranks among dependent draws are not uniform
even if the sampler is right. `every` is the number of draws of a chain for each kept draw. "by
rows" is the sampler for any conditionally Gaussian model. Here it also runs on two models that have
their own kernel. In the picture every line is a quantity. Dotted lines are the bands for one
quantity, solid lines the bands for all of them.

**What the table does not show.** Where a model has noise to scale, weights are precision weights,
and rewards are drawn with them. `logistic`, `probit`, `poisson` and the conjugate models take a
weight as a power of the likelihood. No rewards can be drawn from such a power, so that these models
are calibrated with weights of 1 only. Data sets are small (12 to 20 rows), so that both prior and
data matter. `laplace` and `advi` are approximations and need not be calibrated.

Versions: {versions}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=sorted({c.engine for c in cases()}))
    parser.add_argument("--datasets", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--redraw", action="store_true", help=f"from {RANKS}")
    args = parser.parse_args()
    if args.redraw:
        draw(read(RANKS), args.out or Path("docs"))
        return
    chosen = [(c, args.datasets or DATASETS[c.kind]) for c in cases()
              if args.engine in (None, c.engine)]  # fmt: skip
    results = []
    with threadpool_limits(1), Progress() as progress:
        for case, n in chosen:
            task = progress.add_task(f"{case.kind}: {case.name}", total=n)
            found = calibrate(case, n, args.seed, tick=lambda t=task: progress.advance(t))
            progress.console.print(f"smallest p {found.p_values.min():.2g} of {len(found.names)}")
            results.append(found)
    print(markdown(table(results)))
    keep(results, RANKS)
    out = args.out or (None if args.engine else Path("docs"))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        words = ["uv run benchmarks/calibration.py"]
        words += [f"--{k} {v}" for k in ("engine", "datasets") if (v := getattr(args, k))]
        words += [f"--seed {args.seed}"] if args.seed else []
        page = out / "calibration.md"
        old = page.read_text(encoding="utf-8") if page.exists() else ""
        kept = old[old.index("\n## ") :] if "\n## " in old else ""  # of other studies
        page.write_text(report(results, " ".join(words)) + kept, encoding="utf-8")
        draw(results, out)


def draw(results: list[Ranks], out: Path) -> None:
    picture(results).savefig(out / "calibration.png", dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main()
