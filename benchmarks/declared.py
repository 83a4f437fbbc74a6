"""What a declared model costs: to plan, to stream, to refit, to play.

    uv run benchmarks/declared.py [--repeats N] [NAME …]      # plan, stream, refit, lasso, ordinal

Ratios are taken within a repeat, the two sides one after the other; shown are the median and the
range over repeats.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
import pymc as pm
from threadpoolctl import threadpool_limits

import bayesbandit as bb


def spent(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that some work takes."""
    began = clock()
    work()
    return clock() - began


def said(values: list[float], unit: str = "") -> str:
    return f"{statistics.median(values):.2f}{unit} ({min(values):.2f}–{max(values):.2f})"


def plan(repeats: int) -> Iterator[tuple[str, str]]:
    """Plan and build of ridge regressions that no plan is kept of."""
    from bayesbandit.inference.plan import plan as planned

    rng = np.random.default_rng(0)
    x, r = rng.normal(size=(100, 20)), rng.normal(size=100)
    for name in ("ridge_known_noise", "ridge"):
        prior = "sigma" if name == "ridge_known_noise" else "lam"
        times = []
        for i in range(repeats + 1):
            model = bb.load_model(name).with_priors(**{prior: 1.0 + i / 7})
            times.append(spent(lambda m=model: (planned(m, 20), m.build(x, r))))
        yield f"plan and build of `{name}`, d = 20 (required: < 1.5 s)", said(times[1:], " s")


def observe(bandit: bb.Bandit, pairs: list[tuple[bb.Decision, float]]) -> None:
    for decision, reward in pairs:
        bandit.observe(decision, reward)


def stream(repeats: int) -> Iterator[tuple[str, str]]:
    """`observe` of a derived exact belief against the preset's."""
    T = 20_000
    for d in (10, 100):
        rng = np.random.default_rng(0)
        x, r = rng.normal(size=(T, d)), rng.normal(size=T)
        bandits = {
            "preset": bb.LinTS(3, d, variance=1.0, intercept=False),
            "derived": bb.Bandit(
                3, bb.load_model("ridge_known_noise"), bb.Thompson(), n_features=d
            ),
        }
        ratios = []
        for _ in range(repeats + 1):  # the first of them compiles
            cost = {}
            for name, bandit in bandits.items():
                decisions = [bandit.choose(row) for row in x]
                pairs = list(zip(decisions, r.tolist(), strict=True))
                cost[name] = spent(lambda b=bandit, p=pairs: observe(b, p), time.process_time)
            ratios.append(cost["derived"] / cost["preset"])
        yield f"streaming update, derived / preset, d = {d} (required: ≤ 1.3)", said(ratios[1:])


def refit(repeats: int) -> Iterator[tuple[str, str]]:
    """A later run of NUTS on other rows against the sampling alone."""
    import nutpie

    from bayesbandit.inference.plan import plan as planned

    rng = np.random.default_rng(0)
    model, d = bb.load_model("logistic"), 10
    found = planned(model, d, engine="nuts")
    method, ratios = found.method, []

    def rows(n: int) -> dict[str, np.ndarray]:
        reward = rng.integers(0, 2, n).astype(np.float64)
        return {"x": rng.normal(size=(n, d)), "reward": reward, "weight": np.ones(n)}

    first = spent(lambda: found.sample(rows(400), 500, 4, 0, tune=300))
    for i in range(repeats):
        data = rows(400 + i)
        compiled = method._with(data)
        options = {"draws": 500, "tune": 300, "chains": 4, "seed": i, "progress_bar": False}
        alone = spent(lambda c=compiled, o=options: nutpie.sample(c, target_accept=0.9, **o))
        whole = spent(lambda data=data, i=i: found.sample(data, 500, 4, i, tune=300))
        ratios.append(whole / alone)
    yield "first run of NUTS, compilation included, d = 10", f"{first:.1f} s"
    yield "later run / its sampling alone (required: < 1.3)", said(ratios)


def lasso(repeats: int) -> Iterator[tuple[str, str]]:
    """The Bayesian LASSO bandit on the paper's sparse design, refitted after every reward."""
    world, times, regrets = bb.environments.SparseLinear(), [], []
    for i in range(repeats):
        sample = world.sample(1000, np.random.default_rng(i))
        bandit = bb.BayesianLassoTS(world.arms, world.n_features, seed=i)
        if i == 0:
            bandit.copy().play(sample.x[:20], sample.reward[:20])  # compiles
        chosen: list[np.ndarray] = []
        times.append(spent(lambda b=bandit, s=sample, c=chosen: c.extend(b.play(s.x, s.reward))))
        lost = sample.mean.max(axis=1) - sample.mean[np.arange(1000), chosen[0]]
        regrets.append(float(lost.sum()))
    yield "Bayesian LASSO TS, d = 102, T = 1000, 3 arms (required: < 20 s)", said(times, " s")
    yield "its regret", said(regrets)


@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"))
def ratings(x, reward, theta):
    """Ratings of 0, 1 or 2, by an ordered logistic regression."""
    ordered = pm.distributions.transforms.ordered
    cut = pm.Normal("cut", [-1.0, 1.0], 1, transform=ordered, shape=2)
    eta = x @ theta
    pm.OrderedLogistic("reward", eta=eta, cutpoints=cut, observed=reward)
    return 2 - pm.math.sigmoid(cut[0] - eta) - pm.math.sigmoid(cut[1] - eta)


def ratings_bandit(seed: int, background: bool) -> bb.Bandit:
    settings = {"n_features": 3, "seed": seed, "background": background}
    return bb.Bandit(2, ratings, bb.Thompson(), **settings)


def live(bandit: bb.Bandit, seed: int, T: int) -> tuple[list[float], list[float], float]:
    """Seconds of each round, those of its thread's CPU, and the share of decisions that do not know
    all rewards."""
    rng, truth = np.random.default_rng(seed), [[1.0, 0.0, -1.0], [0.0, 1.0, 0.5]]
    times, own, late = [], [], 0
    for x, noise in zip(rng.normal(size=(T, 3)), rng.logistic(size=T), strict=True):
        began, cpu = time.perf_counter(), time.thread_time()
        decision = bandit.choose(x)
        level = x @ truth[decision.arm] + noise
        bandit.observe(decision, float((level > -1.0) + (level > 1.0)))
        times.append(time.perf_counter() - began)
        own.append(time.thread_time() - cpu)
        known = sum(c.seen for c in bandit.belief.chains)
        late += known < bandit.belief.n.sum() - 1  # all but the reward that just came
        time.sleep(0.02)  # until the next request
    return times, own, late / T


def ordinal(repeats: int) -> Iterator[tuple[str, str]]:
    """A bandit of ratings, which NUTS refits: how long a round takes, and what decisions know."""
    T, clock = 200, time.process_time
    for what in ("the first bandit of ratings", "a second one"):
        yield (
            f"{what}, d = 3: CPU seconds to make",
            f"{spent(lambda: ratings_bandit(0, False), clock):.2f}",
        )
    for background in (False, True):
        median, worst, slowest, unseen, refits = [], [], [], [], []
        for seed in range(repeats):
            bandit = ratings_bandit(seed, background)
            times, own, late = live(bandit, seed, T)
            median.append(1e3 * statistics.median(times))
            worst.append(1e3 * max(times))
            slowest.append(1e3 * max(own))
            unseen.append(100.0 * late)
            refits.append(float(sum(c.runs for c in bandit.belief.chains)))
        what = f"{T} rounds of 2 arms, refits {'in the background' if background else 'at once'}"
        yield f"{what}: median of choose and observe", said(median, " ms")
        yield f"{what}: worst", said(worst, " ms")
        yield f"{what}: worst, CPU of the deciding thread", said(slowest, " ms")
        yield f"{what}: decisions that do not know all rewards", said(unseen, " %")
        yield f"{what}: refits", said(refits)
    row = {k: v[-1:] for k, v in bandit.belief.rows().items()}
    weigh, draws = bandit.belief.plan.row_likelihood, bandit.belief.chains[0].values
    cost = [spent(lambda: weigh(draws, row), clock) for _ in range(300)]
    yield "a reward's likelihood under 400 draws, CPU", said([1e3 * statistics.mean(cost)], " ms")


PARTS = {part.__name__: part for part in (plan, stream, refit, lasso, ordinal)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    print("| what | measured |\n|---|---|")
    for name in arguments.parts or PARTS:
        with threadpool_limits(1):
            for what, value in PARTS[name](arguments.repeats):
                print(f"| {what} | {value} |", flush=True)


if __name__ == "__main__":
    main()
