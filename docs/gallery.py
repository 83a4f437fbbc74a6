"""Draw gallery.png, the picture of gallery.md: python docs/gallery.py

Each panel simulates rewards from a model of the gallery, and shows the posterior of the mean reward
by this model, and by a linear regression (ridge) or one model for each arm (logistic).
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import expit

import bayesbandit as bb

TRUTH, MODEL, OTHER = "#000000", "#0072B2", "#D55E00"
GRID = np.linspace(-2.5, 2.5, 61)


def interval(posterior, x):
    """Return mean and 90 % interval of mean rewards at contexts x (n, d), (3, n) or (3, n, K)."""
    draws = posterior.draw(x, 4_000, np.random.default_rng(0))
    return np.stack([draws.mean(axis=0), *np.quantile(draws, [0.05, 0.95], axis=0)])


def curves(axes: Axes, model, x, reward, truth, **marks):
    """Show rows (x, reward), the true mean reward, and two posteriors of it."""
    axes.plot(x, reward, "o", ms=2.5, alpha=0.35, color="#777777", label="rewards")
    for one, colour, name in ((model, MODEL, model.name), ("ridge", OTHER, "ridge")):
        found = bb.fit(bb.load_model(one) if one == "ridge" else one, x[:, None], reward, seed=0)
        mean, low, high = interval(found, GRID[:, None])
        axes.fill_between(GRID, low, high, color=colour, alpha=0.18, lw=0)
        axes.plot(GRID, mean, color=colour, label=name, ls="-" if one is model else "--")
    axes.plot(GRID, truth, ":", color=TRUTH, label="truth")
    axes.set(xlabel="feature", ylabel="mean reward")
    axes.legend(frameon=False, fontsize=7, loc="upper left")


def ordinal(axes: Axes, rng):
    cuts = np.array([-2.0, -1.6, 0.2, 0.6])
    x = rng.normal(size=200)
    u = rng.logistic(size=x.size) + 1.8 * x
    rating = (u[:, None] > cuts).sum(axis=1).astype(float)
    curves(axes, bb.load_model("ordinal"), x, rating, expit(1.8 * GRID[:, None] - cuts).sum(axis=1))
    axes.set_title("ordinal: 200 ratings of 0 to 4")


def revenue(axes: Axes, rng):
    x = rng.normal(size=300)
    sold = rng.random(x.size) < expit(-1.5 + x)
    spent = np.where(sold, np.exp(-0.3 + 0.4 * x + 0.6 * rng.normal(size=x.size)), 0.0)
    truth = expit(-1.5 + GRID) * np.exp(-0.3 + 0.4 * GRID + 0.18)
    curves(axes, bb.load_model("revenue"), x, spent, truth)
    axes.set(ylim=(-0.4, 3.2), title=f"revenue: 300 visits, {sold.sum()} orders")


def censored_time(axes: Axes, rng):
    x = rng.normal(size=120)
    time = rng.exponential(np.exp(1.5 + 0.8 * x))
    watched, u = np.minimum(time, 10.0), 10.0 * np.exp(-(1.5 + 0.8 * GRID))
    truth = -10.0 * np.expm1(-u) / u
    curves(axes, bb.load_model("censored_time"), x, watched, truth)
    axes.set_title(f"censored_time: 120 times, {(time >= 10).sum()} reach the limit of 10")


def hierarchical_logistic(axes: Axes, rng):
    K = 12
    p = expit(rng.normal(-1.0, 0.5, size=K))
    trials = rng.integers(3, 40, size=K)
    trials[-1] = 0
    arm = np.repeat(np.arange(K), trials)
    reward = (rng.random(arm.size) < p[arm]).astype(float)
    together = bb.fit(
        bb.load_model("hierarchical_logistic"), np.zeros((arm.size, 1)), reward,
        arm=arm, n_arms=K, seed=0,
    )  # fmt: skip
    alone = [
        bb.fit(bb.load_model("logistic"), np.zeros((n, 1)), reward[arm == k], seed=0)
        for k, n in enumerate(trials)
    ]
    one = np.zeros((1, 1))
    found = {
        "hierarchical_logistic": interval(together, one)[:, 0],
        "logistic, each arm alone": np.hstack([interval(posterior, one) for posterior in alone]),
    }
    for at, colour, (name, (mean, low, high)) in zip(
        (-0.15, 0.15), (MODEL, OTHER), found.items(), strict=True
    ):
        axes.errorbar(np.arange(K) + at, mean, [mean - low, high - mean], fmt="o", ms=3.5, lw=1,
                      color=colour, label=name)  # fmt: skip
    axes.plot(np.arange(K), p, "_", color=TRUTH, ms=12, label="truth")
    axes.set_xticks(np.arange(K), trials)
    axes.set(xlabel="an arm, by its number of rewards", ylabel="mean reward", ylim=(0, 1))
    axes.set_title("hierarchical_logistic: 12 arms; the last is new")
    axes.legend(frameon=False, fontsize=7, loc="upper left")


figure = Figure(figsize=(9, 6.6), layout="constrained")
for draw, axes in zip(
    (ordinal, revenue, censored_time, hierarchical_logistic), figure.subplots(2, 2).flat,
    strict=True,
):  # fmt: skip
    draw(axes, np.random.default_rng(0))
    axes.title.set_fontsize(9)
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)
