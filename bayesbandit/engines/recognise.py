"""What a quadratic log density allows: settled by numbers at points drawn at random.

The degrees say that a function is a polynomial, or `analytic` that it is analytic; two of these
that agree at random points agree everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesbandit.engines.density import Density
from bayesbandit.engines.quadratic import Data, Natural, Quadratic, Rows
from bayesbandit.engines.structure import Degrees, analytic

TOLERANCE = 1e-9  # relative to the largest number compared
MOST = 4_000_000  # numbers that a map from contexts to features may take


@dataclass(frozen=True)
class Form:
    """How a model may be computed faster than by its gradients.

    not_additive: why statistics of batches of rows do not add up, so that rewards cannot be
        streamed; "" where they do.
    row_wise: whether each row speaks of θ through its own mean reward alone (`Quadratic.rows`).
    features: (C (d, D), a (D,)) where the mean reward is (x C + a)'θ, else None; of a model over
        arms, (C (K, d, D), a (K, D)), for each arm.
    noise: σ² where rewards are N(mean reward, σ²/weight), or N(mean reward, σ²) in a declaration
        that does not take weights, else None.
    trial, prior: the rows at which all this was found, and the prior's natural parameters there.
    """

    not_additive: str
    row_wise: bool
    features: tuple[np.ndarray, np.ndarray] | None
    noise: float | None
    trial: Data
    prior: Natural | None = None


def close(a: np.ndarray, b: np.ndarray, tolerance: float = TOLERANCE) -> bool:
    """Whether two arrays agree, relative to their largest number."""
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    largest = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    return bool(np.abs(a - b).max(initial=0.0) <= tolerance * largest)


def trial(
    density: Density, n: int, rng: np.random.Generator, own: bool = False, spread: float = 0.7
) -> Data:
    """n rows drawn at random, of as many arms as may be; weights are exp(±spread).

    own: contexts and rewards from the model's own data, where a model of log x has a value.
    """
    K = density.n_arms or 1
    arm = np.resize(rng.permutation(K), n)
    weight = np.exp(rng.uniform(-spread, spread, n))
    if own:
        x = rng.permuted(density.own["x"], axis=0)[np.arange(n) % len(density.own["x"])]
        rewards = density.own["reward"]
        return x.astype(float), rng.choice(rewards, n).astype(float), weight, arm
    return rng.normal(size=(n, density.n_features)), rng.normal(size=n), weight, arm


def part(data: Data, rows: slice) -> Data:
    """Some of the rows."""
    x, reward, weight, arm = data
    return x[rows], reward[rows], weight[rows], arm[rows]


def recognise(quadratic: Quadratic, given: tuple[float, ...], rng: np.random.Generator) -> Form:
    """The form of a quadratic log density, after the identity test that every one must pass."""
    data, prior, likelihood = examined(quadratic, given, rng)
    theta, (x, reward, weight, arm) = rng.normal(size=(1, quadratic.dim)), data
    means = quadratic.mean_reward(theta, data)
    if not close(means, quadratic.mean_reward(theta, (x, reward + 1.0, 2.0 * weight, arm))):
        raise quadratic.refusal("'mean_reward': depends on the rewards or their weights")
    rows = by_rows(quadratic, data, given)
    row_wise = rows is not None and same(rows.natural(), likelihood)
    return Form(
        "" if row_wise else not_additive(quadratic, data, given),
        row_wise,
        features(quadratic, rng),
        noise(quadratic, given, rng) if row_wise else None,
        data,
        prior,
    )


def tested(quadratic: Quadratic, given: tuple[float, ...], rng: np.random.Generator) -> Data:
    """Trial data at which the log density was found to be what its natural parameters say."""
    return examined(quadratic, given, rng)[0]


def examined(
    quadratic: Quadratic, given: tuple[float, ...], rng: np.random.Generator
) -> tuple[Data, Natural, Natural]:
    """Trial data at which the identity test was passed, and both parts' natural parameters."""
    density = quadratic.density
    choices = [trial(density, 5, rng)]
    if len(density.own["x"]):
        choices.append(trial(density, 5, rng, own=True))
    theta = 3.0 * rng.normal(size=(4, quadratic.dim))
    for data in choices:
        values = quadratic.log_densities(theta, data, given)
        if not np.isfinite(values).all():
            continue
        prior, likelihood = quadratic.natural(data, given)
        for natural, value, name in (
            (prior, values[0], "prior"),
            (likelihood, values[1], "likelihood"),
        ):
            if not close(natural(theta), value):
                raise quadratic.refusal(
                    f"the {name} differs from its closed form at random points: "
                    f"{natural(theta)[0]:.12g} against {value[0]:.12g}"
                )
        return data, prior, likelihood
    raise quadratic.refusal("the log density is not finite at random points, nor at its own data")


def not_additive(quadratic: Quadratic, data: Data, given: tuple[float, ...]) -> str:
    """Why stats(a) + stats(b) = stats(a ∪ b) does not hold; "" where it does."""
    try:
        parts = [quadratic.natural(part(data, s), given)[1] for s in (slice(0, 1), slice(1, None))]
        together = quadratic.natural(data, given)[1]
        maps = [quadratic.mean_reward(np.ones((1, quadratic.dim)), part(data, s))
                for s in (slice(0, 1), slice(1, None), slice(None))]  # fmt: skip
    except (ValueError, IndexError) as error:
        return f"other numbers of rows fail: {str(error).splitlines()[0]}"
    if not close(np.concatenate(maps[:2], axis=1), maps[2]):
        return "the mean reward of a row depends on other rows"
    if not same(parts[0] + parts[1], together):
        return "the likelihood of rows together is not the product of theirs apart"
    return ""


def same(a: Natural, b: Natural) -> bool:
    """Whether two sets of natural parameters agree."""
    constants = np.array([a.constant]), np.array([b.constant])
    return close(a.precision, b.precision) and close(a.shift, b.shift) and close(*constants)


def by_rows(quadratic: Quadratic, data: Data, given: tuple[float, ...]) -> Rows | None:
    """The rows' statements, where the likelihood is a product over rows, each of its own mean."""
    if quadratic.through_mean is None:
        return None
    n = len(data[0])
    zero, curvature, _ = quadratic.curvature(np.zeros(n), data, given)
    slopes = np.stack([quadratic.curvature(e, data, given)[0] for e in np.eye(n)], axis=1)
    if not close(slopes - zero[:, None], np.diag(curvature)):
        return None
    try:
        whole = quadratic.rows(data, given)
        apart = [quadratic.rows(part(data, s), given) for s in (slice(0, 1), slice(1, None))]
    except (ValueError, IndexError):
        return None
    for k in ("map", "precision", "shift"):
        if not close(np.concatenate([getattr(rows, k) for rows in apart]), getattr(whole, k)):
            return None
    constants = np.array([whole.constant]), np.array([sum(rows.constant for rows in apart)])
    return whole if close(*constants) else None


def features(
    quadratic: Quadratic, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray] | None:
    """(C, a) where the mean reward is (x C + a)'θ for every context x; over arms, (x C_k + a_k)'θ
    for every arm k."""
    density = quadratic.density
    degree = Degrees([density.mean], {density.inputs["x"]: 1.0}).of(density.mean)
    d, K = density.n_features, density.n_arms or 1
    if quadratic.not_affine or degree > 1 or K * d * quadratic.dim > MOST:
        return None
    slopes, offsets = [], []
    try:
        for k in range(K):
            corners, offset = quadratic.linear_map(rows_at(np.vstack([np.zeros(d), np.eye(d)]), k))
            C, a = corners[1:] - corners[0], corners[0]
            for n in (1, 4):
                x = rng.normal(size=(n, d))
                A, b = quadratic.linear_map(rows_at(x, k))
                if offset.any() or b.any() or not close(A, x @ C + a):
                    return None
            slopes.append(C)
            offsets.append(a)
    except (ValueError, IndexError):
        return None
    if density.n_arms is None:
        return slopes[0], offsets[0]
    return np.stack(slopes), np.stack(offsets)


def rows_at(x: np.ndarray, arm: int = 0) -> Data:
    """Contexts (n, d) with nothing known of their rewards, all of one arm."""
    n = len(x)
    return x, np.zeros(n), np.ones(n), np.full(n, arm)


def noise(quadratic: Quadratic, given: tuple[float, ...], rng: np.random.Generator) -> float | None:
    """σ² where a row is N(reward | mean reward, σ²/weight), whatever its context and arm.

    A declaration that has no use for weights is taken at weight 1.
    """
    assert quadratic.through_mean is not None
    inputs, cut = quadratic.density.inputs, quadratic.through_mean
    data = {v: 1.0 for role, v in inputs.items() if role != "arm"}
    if Degrees([cut], data, analytic).fault(cut, most=1):
        return None
    n = max(6, 2 * (quadratic.density.n_arms or 1))
    x, reward, weight, arm = trial(quadratic.density, n, rng, spread=7.0)
    if not quadratic.takes_weight:
        weight = np.ones(n)
    slope, curvature, _ = quadratic.curvature(np.zeros(n), (x, reward, weight, arm), given)
    if not (curvature < 0.0).all():
        return None
    sigma2 = -weight / curvature
    same = close(sigma2, np.full(n, sigma2[0])) and close(slope / weight, reward / sigma2[0])
    return float(sigma2[0]) if same else None
