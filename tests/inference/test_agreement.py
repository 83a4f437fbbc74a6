"""Engines agree with each other about the gallery's models.

Means and standard deviations of coefficients, scalar variables and mean rewards at three contexts,
each within three Monte-Carlo standard errors (of both engines together, as ArviZ estimates them) at
fixed seeds. That these errors are neither too small nor too large to say anything is asked as well:
the mean square of all z-scores is about 1.

Where NUTS gets another declaration of the same model: of the LASSO, τ² integrated out, because its
trajectories diverge as τ² goes to 0; of the Student-t mixture, q integrated out. Under half-Cauchy
scales, centred or not, they diverge by the hundred: here the horseshoe's are InverseGamma(5, 4), in
the model's own form, by the generic sweep. The horseshoe itself, and its kernel, are held to the
truth by `test_calibration.py`.
"""

import numpy as np
import pymc as pm
import pytest
from arviz_stats.base import array_stats

import bayesbandit as bb
from bayesbandit.inference.plan import plan
from bayesbandit.inference.registry import candidates
from bayesbandit.model import RewardModel
from bayesbandit.posteriors.fitting import fit

N, D, K = 25, 3, 3
SEEDS = (1, 2, 3)
CONTEXTS = np.vstack([np.ones(D), np.eye(D)[:2]])
CHAINS = 4
DRAWS = {"nuts": 8000, "gibbs": 30_000}

VARIANCE = bb.Prior("InverseGamma", alpha=3, beta=2)
LIGHT = bb.Prior("InverseGamma", alpha=5, beta=4)
LIGHT_EACH = bb.Prior("InverseGamma", alpha=5, beta=4, dims="feature")
LASSO, LAPLACE, HORSESHOE, HIERARCHICAL, STUDENT, MIXTURE, RIDGE, KNOWN = map(
    bb.load_model,
    ["bayesian_lasso", "laplace", "horseshoe", "hierarchical_ridge", "student_t",
     "student_t_mixture", "ridge", "ridge_known_noise"],
)  # fmt: skip
GAMMA = bb.Prior("Gamma", alpha=1, beta=1.78)
HALF = bb.Prior("HalfNormal", sigma=2)


@bb.reward_model(lambda2=1.0, sigma2=bb.Prior("InverseGamma", alpha=1, beta=1))
def integrated(x, reward, weight, lambda2, sigma2):
    """`bayesian_lasso` without τ²."""
    theta = pm.Laplace("theta", 0, pm.math.sqrt(sigma2 / lambda2), dims="feature")
    mu = x @ theta
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward, dims="row")
    return mu


SAMPLED = {  # by Gibbs, and the same model by NUTS
    "bayesian_lasso": (LASSO, integrated),
    "bayesian_lasso, λ² ~ Gamma": (
        LASSO.with_priors(lambda2=GAMMA), integrated.with_priors(lambda2=GAMMA),
    ),
    "laplace": (LAPLACE, LAPLACE),
    "horseshoe, lighter": (HORSESHOE.with_priors(tau2=LIGHT, lambda2=LIGHT_EACH),) * 2,
    "student_t_mixture": (MIXTURE, STUDENT),
    "student_t": (STUDENT, STUDENT),
    "student_t, half-normal σ²": (STUDENT.with_priors(sigma2=HALF),) * 2,
    "laplace, half-normal σ² and scale": (
        LAPLACE.with_priors(sigma2=HALF, theta=bb.Prior("Laplace", mu=0, b=HALF)),
    ) * 2,
    "hierarchical_ridge, half-normal τ²": (HIERARCHICAL.with_priors(sigma2=HALF, tau2=HALF),) * 2,
    "hierarchical_ridge": (HIERARCHICAL.with_priors(sigma2=VARIANCE, tau2=VARIANCE),) * 2,
}  # fmt: skip

Moments = dict[str, tuple[np.ndarray, np.ndarray]]  # of "name mean" and "name sd": value, error


def rows(model: RewardModel, seed: int, weighted: bool) -> dict[str, np.ndarray]:
    """x (N, D), reward, weight, arm (N,); two coefficients matter and one does not."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, D))
    weight = rng.uniform(0.3, 3.0, N) if weighted else np.ones(N)
    reward = x @ [1.0, -0.5, 0.0] + rng.normal(size=N) / np.sqrt(weight)
    data = {"x": x, "reward": reward, "weight": weight}
    return data | {"arm": rng.integers(0, K, N).astype(np.int32)} if model.takes_arm else data


def sampled(model: RewardModel, engine: str, data: dict[str, np.ndarray], seed: int) -> Moments:
    """Moments of an engine's draws."""
    chosen = plan(model, D, K if model.takes_arm else None, engine)
    kind = "nuts" if engine == "nuts" else "gibbs"
    draws = chosen.sample(data, DRAWS[kind], CHAINS, seed=seed)
    assert (draws.divergences or 0) < 0.01 * CHAINS * DRAWS[kind]
    flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in draws.values.items()}
    means = chosen.outcomes.mean_reward(flat, CONTEXTS)
    wanted = {k: v for k, v in draws.values.items() if v.ndim == 2 or k in ("theta", "mu0")}
    wanted["mean reward"] = means.reshape(CHAINS, -1, *means.shape[1:])
    found = {}
    for k, v in wanted.items():
        v = v.reshape(*v.shape[:2], -1)
        errors = (array_stats.mcse(v, 0, 1, method) for method in ("mean", "sd"))
        moments = v.mean(axis=(0, 1)), v.std(axis=(0, 1))
        pairs = zip(moments, errors, strict=True)
        found |= {f"{k} {m}": pair for m, pair in zip(("mean", "sd"), pairs, strict=True)}
    return found


def closed(model: RewardModel, data: dict[str, np.ndarray]) -> Moments:
    """Moments of a closed form; they have no error."""
    posterior = fit(model, **data, engine="exact", n_arms=K if model.takes_arm else None)
    assert posterior.engine in {engine.name for engine in candidates("exact")}
    known = {k: (m, np.sqrt(np.diag(c)) if np.ndim(c) == 2 else c)
             for k, (m, c) in posterior.coefficients.items()}  # fmt: skip
    known["mean reward"] = posterior.mean(CONTEXTS), posterior.sd(CONTEXTS)
    return {
        f"{k} {name}": (np.ravel(value), np.zeros(np.size(value)))
        for k, pair in known.items()
        for name, value in zip(("mean", "sd"), pair, strict=True)
    }


def z_scores(a: Moments, b: Moments) -> dict[str, np.ndarray]:
    """Differences in their standard errors, of what both know."""
    names = [k for k in a if k in b]
    assert {"theta mean", "theta sd", "mean reward mean", "mean reward sd"} <= set(names)
    return {k: (a[k][0] - b[k][0]) / np.hypot(a[k][1], b[k][1]) for k in names}


def agree(pairs: list[tuple[Moments, Moments]]) -> None:
    """Every z-score, of some 100, below 4, and all about as large as those of right errors."""
    scores = [z_scores(a, b) for a, b in pairs]
    for of_one in scores:
        for name, z in of_one.items():
            assert (np.abs(z) < 4.0).all(), f"{name}: z = {z}"
    square = np.mean(np.concatenate([z**2 for of_one in scores for z in of_one.values()]))
    assert 0.4 < square < 1.8, f"mean square {square}"


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLED)
def test_gibbs_and_nuts_agree(name):
    """Mean squares of z: of some 30 independent ones at least, so that their error is below .26."""
    by_gibbs, by_nuts = SAMPLED[name]
    pairs = []
    for seed in SEEDS:
        for weighted in (False, True):
            data = rows(by_gibbs, seed, weighted)
            pairs.append(
                (sampled(by_gibbs, "gibbs", data, seed), sampled(by_nuts, "nuts", data, seed))
            )
    agree(pairs)


@pytest.mark.slow
def test_a_weight_left_out_is_seen():
    """The control: the same comparison, of posteriors that are not the same."""
    data = rows(RIDGE, 1, weighted=True)
    whole = closed(RIDGE, data)
    with pytest.raises(AssertionError, match="z = "):
        agree([(sampled(RIDGE, "gibbs", data | {"weight": np.ones(N)}, 1), whole)])
