"""Fits a case by the public interface, and judges every answer by the declaration's log density."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.stats import kstest

import bayesbandit as bb
from bayesbandit.inference.base import NotThisEngine
from bayesbandit.inference.draws import SampledDraws
from bayesbandit.inference.nuts import Nuts
from bayesbandit.inference.plan import plan_of_built
from tests.hunt.case import Case, Scene, Spared, Verdict, raised
from tests.hunt.exact import (
    Moments,
    Unjudged,
    Wrong,
    compare,
    gaussian,
    given_scale,
)
from tests.hunt.predictions import asked, contexts, mean_function, over_arms, predictions
from tests.hunt.sampled import judge as judge_draws
from tests.hunt.truth import Truth

CLOSED = ("exact_gaussian", "normal_inverse_gamma")
DRAWS = 400  # of each of two chains; four times as many where these look wrong
RHAT, ESS = 1.05, 60.0  # draws beyond these may look wrong without being so
TINY = 1e-150  # the square of a smaller number is 0


def judged(case: Case, nuts: bool = False, seed: int = 0) -> list[Verdict]:
    """What becomes of a case; with `nuts`, also where only NUTS answers."""
    with warnings.catch_warnings(), nullcontext() if nuts else sparing():
        warnings.simplefilter("ignore")
        scene = case.run()
        verdicts = list(fits(scene, "fit", nuts, seed))
        if case.change:
            scene.change(case.change)
            verdicts += fits(scene, "changed", nuts, seed)
        by_nuts = any(v.engine == "nuts" for v in verdicts)  # which a bandit compiles for 20 s
        if case.stream and not by_nuts:
            verdicts += streams(scene, seed)
    return verdicts


def sparing() -> Any:
    """Where NUTS is not to compile, although an engine leaves some rows to it."""
    return patch.object(Nuts, "_with", side_effect=Spared)


class Unmixed(Unjudged):
    """Draws look wrong, and their own diagnostics say that they may be."""


def fits(scene: Scene, what: str, nuts: bool, seed: int) -> Iterator[Verdict]:
    """`bb.fit` on the rows; where only NUTS answers and is to be spared, why the others refuse."""
    try:
        truth = Truth(scene.model, scene.rows, scene.K)
        truth.logp(np.zeros(truth.dim))
    except Exception as error:
        yield raised(scene, what, "build", error)
        return
    try:
        found = plan_of_built(scene.model, truth.built)
    except Exception as error:
        yield raised(scene, what, "auto", error)
        return
    if found.engine == "nuts" and not nuts:
        yield Verdict(what, "nuts", "spared")
        yield from (Verdict(what, r.engine, "refused", str(r)) for r in found.refusals)
    else:
        yield fitted(scene, truth, what, seed)


def fitted(scene: Scene, truth: Truth, what: str, seed: int) -> Verdict:
    """One fit, judged; draws that look wrong are drawn once more, four times as many."""
    for draws in (DRAWS, 4 * DRAWS):
        try:
            posterior = fit(scene, seed + draws, draws)
        except Exception as error:
            return raised(scene, what, "auto", error)
        verdict = verdict_on(truth, posterior, what, seed)
        if posterior.engine in CLOSED or verdict.outcome not in ("wrong", "unmixed"):
            break
        if "certain" in verdict.detail:
            break
    return verdict


def fit(scene: Scene, seed: int, draws: int) -> Any:
    """The posterior by `bb.fit`."""
    rows = scene.rows
    n_arms = scene.K if scene.model.takes_arm else None
    return bb.fit(
        scene.model, rows["x"], rows["reward"], rows.get("weight"), seed=seed,
        draws=draws, chains=2, n_arms=n_arms, arm=rows.get("arm"),
    )  # fmt: skip


def verdict_on(truth: Truth, posterior: Any, what: str, seed: int) -> Verdict:
    """Whether a posterior is the truth's."""
    engine = posterior.engine
    try:
        judge(truth, posterior, np.random.default_rng(seed))
    except Wrong as error:
        return Verdict(what, engine, "wrong", str(error))
    except Unjudged as error:
        outcome = "unmixed" if isinstance(error, Unmixed) else "unjudged"
        return Verdict(what, engine, outcome, str(error))
    except NotThisEngine as error:
        return Verdict(what, engine, "refused", f"later: {error}")
    return Verdict(what, engine, "right")


def judge(truth: Truth, posterior: Any, rng: np.random.Generator) -> None:
    """Raises `Wrong` where a posterior, or what it predicts, is not the truth's."""
    theta = np.zeros(truth.dim)
    if truth.logp(theta) != truth.logp(theta):
        raise Wrong("answered, although the log density is random")
    if isinstance(getattr(posterior, "known", None), SampledDraws):
        sampled(truth, posterior, rng)
        return
    if posterior.engine == "exact_gaussian":
        start, spread = reported(truth, posterior)
        right = gaussian(truth, start, spread)
        settled = True
    else:
        right, settled = scaled(truth, posterior, rng)
    predictions(truth, posterior, right, settled, rng)
    said = posterior.coefficients
    if set(truth.names) <= set(said):
        for name in truth.names:
            if truth.transformed[truth.names.index(name)] and not settled:
                continue
            mean, covariance = right.of(truth, name)
            value, spread_said = said[name]
            if np.size(value) != np.size(mean):
                continue
            if settled:
                compare(f"'{name}'", (value, spread_said), (mean, as_said(covariance, spread_said)))
    if hasattr(posterior, "samples"):
        drawn(truth, posterior, right, settled, rng)


def as_said(covariance: np.ndarray, said: Any) -> np.ndarray:
    """A covariance, or a number's sd, as the posterior has it."""
    return covariance if np.ndim(said) == 2 else np.sqrt(np.diag(covariance))


def reported(truth: Truth, posterior: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Where to begin, and with which steps: at what the posterior says, if that is θ itself."""
    said = posterior.coefficients
    if not set(truth.names) <= set(said) or any(truth.transformed):
        return np.zeros(truth.dim), None
    means = [np.ravel(said[name][0]) for name in truth.names]
    spreads = [np.asarray(said[name][1], dtype=float) for name in truth.names]
    sds = [np.sqrt(np.diag(s)) if s.ndim == 2 else np.ravel(s) for s in spreads]
    start, spread = np.concatenate(means), np.concatenate(sds)
    if len(start) != truth.dim:
        return np.zeros(truth.dim), None
    if not (np.isfinite(start).all() and np.isfinite(spread).all() and (spread > 0).all()):
        raise Wrong("the reported moments are not finite")
    return start, spread


def scaled(truth: Truth, posterior: Any, rng: np.random.Generator) -> tuple[Moments, bool]:
    """The moments of a posterior that is Gaussian given one positive variable."""
    which = [i for i, t in enumerate(truth.transformed) if t]
    if len(which) != 1 or truth.sizes[which[0]] != 1:
        raise Wrong("the answer has one scale; the declaration has not")
    name = truth.names[which[0]]
    index = int(sum(truth.sizes[: which[0]]))
    start = np.zeros(truth.dim)
    if hasattr(posterior, "samples"):
        draws = posterior.samples(1000, rng)
        theta = truth.unconstrained(draws)
        if not np.isfinite(theta).all():
            raise Wrong("draws are outside of the support")
        start, u = np.median(theta, axis=0), theta[:, index]
        right = given_scale(truth, index, start, float(np.median(u)), float(u.std()))
        p = kstest(u, lambda v: np.interp(v, right.u, right.cdf)).pvalue
        if p < 1e-9:
            raise Wrong(f"draws of '{name}' are not of its marginal: p = {p:.1g}")
    else:
        coarse = given_scale(truth, index, start, 0.0, 2.0)
        centre = float(coarse.probability @ coarse.u)
        sd = float(np.sqrt(coarse.probability @ (coarse.u - centre) ** 2))
        right = given_scale(truth, index, start, centre, max(sd, 0.05))
    return right.moments, right.settled


def drawn(
    truth: Truth, posterior: Any, right: Moments, settled: bool, rng: np.random.Generator
) -> None:
    """Holds independent draws against the right mean and variances."""
    if not settled:
        return
    size = 500
    draws = posterior.samples(size, rng)
    flat = np.concatenate([np.reshape(draws[k], (size, -1)) for k in truth.names], axis=1)
    sd = np.sqrt(np.diag(right.covariance))
    ok = sd > 1e-9 * (1.0 + np.abs(right.mean))
    z = ((flat.mean(axis=0) - right.mean) / sd)[ok] * np.sqrt(size)
    if np.abs(z).max(initial=0.0) > 8.0:
        raise Wrong(f"draws are off the mean by {np.abs(z).max():.1f} standard errors")


def sampled(truth: Truth, posterior: Any, rng: np.random.Generator) -> None:
    """Draws, and the means that they predict."""
    values = {k: np.asarray(v) for k, v in posterior.known.values.items()}
    if not set(truth.names) <= set(values):
        raise Wrong(f"no draws of {set(truth.names) - set(values)}")
    chains, size = next(iter(values.values())).shape[:2]
    flat = {k: values[k].reshape(chains * size, *values[k].shape[2:]) for k in truth.names}
    if not all(np.isfinite(v).all() for v in flat.values()):
        raise Wrong("draws are not finite")
    # a mean and its own draws
    mean_function(truth, {k: v[0] for k, v in flat.items()}, rng)
    x = contexts(truth, rng)
    some = rng.choice(chains * size, min(200, chains * size), replace=False)
    if (said := asked(posterior, x)) is not None:
        mean, sd = said
        if not np.isfinite(mean).all():  # as that of e^θ, θ ~ Cauchy: one draw of all is infinite
            some = np.arange(chains * size)
        predicted = np.array(
            [over_arms(truth, {k: v[s] for k, v in flat.items()}, x) for s in some]
        )
        with np.errstate(all="ignore"):
            own = predicted.mean(axis=0)
            spread = np.maximum(predicted.std(axis=0), sd) + 1e-9 * np.abs(mean) + TINY
            off = np.abs(mean - own) > 8.0 * spread / np.sqrt(len(some) / 20)
        fine = np.isfinite(own)
        if (np.isfinite(mean) != fine).any() or off[fine].any():
            raise Wrong("predicted means are not those of the draws")
    theta = truth.unconstrained(flat).reshape(chains, size, truth.dim)
    poor = unmixed(posterior.diagnostics)
    try:
        judge_draws(truth, theta, rng)
    except Wrong as error:
        if poor and "zero density" not in str(error):
            raise Unmixed(f"{poor}; {error}") from None
        raise


def unmixed(diagnostics: Any) -> str:
    """What a sampler itself says against its draws, if it is enough to excuse them."""
    rhat = max((v for v in diagnostics.rhat.values() if v == v), default=1.0)
    ess = min((v for v in diagnostics.ess.values() if v == v), default=np.inf)
    return f"R-hat {rhat:.2f}, {ess:.0f} effective draws" if rhat > RHAT or ess < ESS else ""


def streams(scene: Scene, seed: int) -> Iterator[Verdict]:
    """A bandit that is fed with the rows in random batches, at two moments."""
    model, rows, rng = scene.model, dict(scene.rows), np.random.default_rng(seed)
    n, d = rows["x"].shape
    arms = scene.K if model.takes_arm else 1
    arm = rows.get("arm", np.zeros(n, dtype=np.int64))
    weighted = model.takes_weight and "weight" in rows and (rows["weight"] != 1.0).any()
    weight = rows["weight"] / rows["weight"].min() if weighted else np.ones(n)
    balance = bb.InversePropensity(clip=1e-12) if weighted else bb.Unweighted()
    try:
        bandit = bb.Bandit(
            arms, bb.Sampled(model, refit_every=1, draws=1000), bb.Thompson(), balance, n_features=d, seed=seed, history=None,
        )  # fmt: skip
    except Exception as error:
        yield raised(scene, "stream", "bandit", error)
        return
    cuts = np.unique(np.sort(rng.integers(1, n + 1, size=min(n, 6))))
    cuts = np.unique(np.append(cuts, n))
    moments = {int(cuts[len(cuts) // 2]), n}
    done = 0
    for cut in map(int, cuts):
        batch = slice(done, cut)
        try:
            bandit.update(rows["x"][batch], arm[batch], rows["reward"][batch], 1.0 / weight[batch])
            posterior = bandit.posterior(0) if cut in moments else None
        except Exception as error:
            yield raised(scene, "stream", "bandit", error)
            return
        done = cut
        if posterior is None:
            continue
        seen = {k: v[:cut] for k, v in rows.items()}
        if weighted:
            seen["weight"] = 1.0 / (1.0 / weight[:cut])
        truth = Truth(model, seen, scene.K)
        verdict = verdict_on(truth, posterior, "stream", seed)
        yield verdict
        if verdict.outcome != "right":
            return
