"""What a declared model costs: to plan, to stream, to refit, to play.

    uv run benchmarks/declared.py [--repeats N] [NAME …]
    uv run benchmarks/declared.py [--rounds N] [--models NAME …] [--ways NAME …] rounds

Parts are plan, stream, refit, lasso, reward, regret, accuracy and rounds. Ratios are taken within a
repeat, the two sides one after the other; shown are the median and the range over repeats. The last
four play bandits of the declarations in `nine.py`. `rounds` plays those of `--models`, which learn
in `--ways`: schedule, weights, background.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from nine import NINE, TRUTH, D, Rewards
from threadpoolctl import threadpool_limits

import bayesbandit as bb
from bayesbandit.beliefs.sampled.belief import SampledBelief


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
                3,
                bb.load_model("ridge_known_noise").with_priors(intercept=0),
                bb.Thompson(),
                n_features=d,
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


# how a bandit without a closed form learns; by schedule: also refitted as rounds grow by a tenth
WAYS = "schedule", "weights", "background"
FIRST = 3  # rounds that are left out, since they load kernels
SLOW = 10.0  # ms


def bandit_of(
    name: str,
    way: str,
    seed: int = 0,
    arms: int = 2,
    draws: int = 400,
    refit_below: float = 0.5,
) -> bb.Bandit:
    model = bb.Sampled(
        NINE[name].model,
        draws=draws,
        refit_below=refit_below,
        refit_every=0.1 if way == "schedule" else None,
        background=way == "background",
    )
    return bb.Bandit(arms, model, bb.Thompson(), n_features=D, seed=seed)


@dataclass
class Rounds:
    """What rounds cost in milliseconds, and the share of decisions that do not know all rewards.

    Columns of `ms` are, of `choose` and `observe`: the time by the clock; the thread's CPU for the
    decision, and for the reward; and the CPU of other threads of the process meanwhile. The thread
    waited for a refit for no longer than these worked, and than its own CPU leaves of the clock.
    """

    ms: np.ndarray
    late: float

    @property
    def cpu(self) -> np.ndarray:
        return self.ms[:, 1] + self.ms[:, 2]

    @property
    def wait(self) -> np.ndarray:
        return np.minimum(self.ms[:, 0] - self.cpu, self.ms[:, 3]).clip(0.0)


def live(bandit: bb.Bandit, reward: Rewards, T: int, pause: float = 0.01) -> Rounds:
    """Play T rounds after the first ones. pause: seconds until a reward comes."""
    rng, spans, late = np.random.default_rng(1), [], 0

    def now() -> np.ndarray:
        own = time.thread_time()
        return np.array([time.perf_counter(), own, own, time.process_time() - own])

    for x in rng.normal(size=(FIRST + T, D)):
        began = now()
        decision = bandit.choose(x)
        chosen = now() - began
        got, belief = reward(float(x @ TRUTH[decision.arm]), rng), bandit.belief
        if isinstance(belief, SampledBelief):
            late += sum(chain.seen for chain in belief.clouds) < belief.n.sum()
            time.sleep(pause)
        began = now()
        bandit.observe(decision, got)
        learned = now() - began
        spans.append([chosen[0] + learned[0], chosen[1], learned[2], chosen[3] + learned[3]])
    return Rounds(1e3 * np.array(spans[FIRST:]), late / (FIRST + T))


def reward(repeats: int) -> Iterator[tuple[str, str]]:
    """What a decision and a reward cost their thread between two refits, with 400 draws."""
    for name in ("ordinal", "censored_time", "counts"):
        bandit, medians = bandit_of(name, "weights", refit_below=0.0), []
        for _ in range(repeats + 1):  # the first of them loads kernels
            played = live(bandit, NINE[name].reward, 40, pause=0.0)
            medians.append(np.median(played.ms[:, 1:3], axis=0))
        for what, times in zip(("decision", "reward"), zip(*medians[1:], strict=True), strict=True):
            yield f"{name}: CPU of a {what} between refits", said(list(times), " ms")


def rounds(T: int, models: Sequence[str], ways: Sequence[str]) -> None:
    """Print what a bandit of each declaration costs: to make, and a round of choose and observe."""
    columns = ("model, engine", "made, CPU s, and again", "", "median, ms", "worst, ms",
               f"rounds > {SLOW:.0f} ms", "worst CPU, ms", "worst wait, ms", "waits > 2 ms",
               "lack a reward", "refits")  # fmt: skip
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    for name in models:
        first, again = (
            spent(lambda k=name: bandit_of(k, "weights"), time.process_time) for _ in range(2)
        )
        for way in ways:
            bandit = bandit_of(name, way)
            played = live(bandit, NINE[name].reward, T)
            belief, start, ms = bandit.belief, ("", ""), played.ms[:, 0]
            if way == ways[0]:
                start = f"{name}, {belief.plan.engine}", f"{first:.1f}, {again:.1f}"
            sampled = isinstance(belief, SampledBelief)
            runs = sum(chain.runs for chain in belief.clouds) if sampled else 0
            numbers = (f"{np.median(ms):.2f}", f"{ms.max():.1f}", f"{(ms > SLOW).sum()}",
                       f"{played.cpu.max():.1f}", f"{played.wait.max():.1f}",
                       f"{(played.wait > 2.0).sum()}", f"{played.late:.0%}",
                       f"{runs}")  # fmt: skip
            print(f"| {' | '.join((*start, way, *numbers))} |", flush=True)


def accuracy(repeats: int) -> Iterator[tuple[str, str]]:
    """Draws of one arm at 25, 50 and 80 rounds against 3,000 of NUTS from all rounds: how far means
    of mean rewards at four contexts are off, in posterior sds, and Kolmogorov's distance."""
    at = np.random.default_rng(99).normal(size=(4, D))
    for name in ("ordinal", "censored_time"):
        for way in ("schedule", "weights"):
            off, far = [], []
            for seed in range(repeats):
                found = [gaps(*pair, at, seed) for pair in grown(name, way, seed, (25, 50, 80))]
                means, distances = np.mean(found, axis=0)
                off.append(means)
                far.append(distances)
            for what, values in (("means off, sds", off), ("Kolmogorov's distance", far)):
                error = np.std(values, ddof=1) / np.sqrt(repeats)
                yield f"{name}, {way}: {what}", f"{np.mean(values):.3f} ± {error:.3f}"


HORIZON, MARGIN = 30, 0.05  # rounds; what share of the regret of chance may be lost


def regret(repeats: int) -> Iterator[tuple[str, str]]:
    """Regret by weights less that by the schedule, in the world of `student_t`, with 100 draws.

    Seeds are 0, 1, …; both ways have the same contexts and, for each arm, the same rewards. Its
    refits, by Gibbs, are the quickest of the nine.
    """
    found = []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(HORIZON, D))
        mean = x @ TRUTH.T
        rewards = mean + rng.standard_t(4, mean.shape)
        lost, at = mean.max(axis=1, keepdims=True) - mean, np.arange(HORIZON)
        ways = [bandit_of("student_t", way, seed, draws=100) for way in ("schedule", "weights")]
        arms = [bandit.play(x, rewards)[0] for bandit in ways]
        found.append([lost.mean(axis=1).sum(), *(lost[at, arm].sum() for arm in arms)])
    chance, schedule, weights = np.transpose(found)
    worse = weights - schedule
    error = worse.std(ddof=1) / np.sqrt(repeats)
    yield (
        "regret by chance, by schedule, by weights",
        ", ".join(
            f"{r.mean():.2f} ± {r.std(ddof=1) / np.sqrt(repeats):.2f}"
            for r in (chance, schedule, weights)
        ),
    )
    yield (
        f"weights less schedule (allowed: {MARGIN * chance.mean():.2f})",
        f"{worse.mean():.2f} ± {error:.2f}, at most {worse.mean() + 1.645 * error:.2f} with 95 %",
    )


def grown(
    name: str, way: str, seed: int, stops: Sequence[int]
) -> Iterator[tuple[bb.Bandit, np.ndarray]]:
    """Play one arm, and yield the bandit at some rounds with the weights of its draws."""
    bandit, rng = bandit_of(name, way, seed, arms=1), np.random.default_rng(seed)
    for n in range(stops[-1] + 1):
        decision = bandit.choose(x := rng.normal(size=D))
        if n in stops:
            weights = bandit.belief.weights()
            yield bandit, np.ones(400) if weights is None else weights[0]
        bandit.observe(decision, NINE[name].reward(float(x @ TRUTH[0]), rng))


def gaps(bandit: bb.Bandit, weight: np.ndarray, at: np.ndarray, seed: int) -> tuple[float, float]:
    plan, rows = bandit.belief.plan, bandit.belief.rows(0)
    long = plan.sample(rows, 1500, 2, seed).values
    truth = plan.outcomes.mean_reward({k: v.reshape(-1, *v.shape[2:]) for k, v in long.items()}, at)
    values, w = bandit.belief.values(at)[:, 0], weight / weight.sum()
    off = np.abs(values @ w - truth.mean(axis=0)) / truth.std(axis=0)
    far = [ks_distance(a, w, b) for a, b in zip(values, truth.T, strict=True)]
    return float(off.mean()), float(np.mean(far))


def ks_distance(values: np.ndarray, weight: np.ndarray, truth: np.ndarray) -> float:
    """Kolmogorov's distance of weighted draws from equally weighted ones."""
    order = values.argsort()
    ours, w = weight[order].cumsum(), weight[order]
    theirs = np.searchsorted(np.sort(truth), values[order], side="right") / len(truth)
    return float(max(np.abs(ours - theirs).max(), np.abs(ours - w - theirs).max()))


PARTS = {part.__name__: part for part in (plan, stream, refit, lasso, reward, regret, accuracy)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*PARTS, "rounds"]
    parser.add_argument("parts", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--models", nargs="+", choices=NINE, default=list(NINE))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    arguments = parser.parse_args()
    chosen = arguments.parts or names
    with threadpool_limits(1):
        if parts := [name for name in chosen if name in PARTS]:
            print("| what | measured |\n|---|---|")
        for name in parts:
            for what, value in PARTS[name](arguments.repeats):
                print(f"| {what} | {value} |", flush=True)
        if "rounds" in chosen:
            rounds(arguments.rounds, arguments.models, arguments.ways)


if __name__ == "__main__":
    main()
