"""Declarations that were once answered wrongly, with rows that show it.

Each must be answered rightly or refused with a reason.
"""

from __future__ import annotations

from tests.hunt.case import Case
from tests.hunt.grammar import sourced

THETA = {"theta": 'P("Normal", mu=0, sigma=1, dims="feature")'}
SCALE = THETA | {"s": 'P("HalfNormal", sigma=10)'}
OBSERVED = 'pm.Normal("r", mu, 1 / pt.sqrt(weight), observed=reward)'
ROWS = """
rng = np.random.default_rng(1)
x = rng.normal(size=(60, 3)) * [1.0, 5.0, 0.2] + [3.0, -10.0, 2.0]
reward = 50 + x @ [1.0, 2.0, 3.0] + 4 * rng.normal(size=60)
weight = np.ones(60)
"""
LONG = """
rng = np.random.default_rng(1)
x = rng.normal(size=(120, 2)) + 1
slope = np.where(np.arange(120)[:, None] < 60, [1.0, -1.0], [-1.0, 2.0])
reward = (x * slope).sum(1) + rng.normal(size=120)
reward[7:] += 0.9 * reward[:-7]
weight = np.ones(120)
"""
FAR = """
rng = np.random.default_rng(1)
x = np.column_stack([rng.normal(size=(60, 2)), 80 + 20 * rng.normal(size=60)])
reward = x @ [1.0, -1.0, 0.02] + np.where(x[:, 2] > 100, 16, 1) * rng.normal(size=60)
weight = np.ones(60)
"""
IDS = """
rng = np.random.default_rng(1)
x = np.column_stack([rng.integers(0, 6, 60), rng.normal(size=60)]).astype(float)
reward = x[:, 1] + rng.normal(size=60) + 5 * rng.normal(size=6)[x[:, 0].astype(int)]
"""
POSITIVE = """
rng = np.random.default_rng(1)
x = np.exp(rng.normal(size=(60, 2)))
reward = np.exp(0.3 * np.log(x) @ [1.0, -1.0] + 0.2 * rng.normal(size=60))
"""
WAVE = """
rng = np.random.default_rng(1)
x = rng.uniform(-6, 6, size=(80, 1))
reward = np.sin(x[:, 0]) + 0.3 * rng.normal(size=80)
"""


def of(rows: str, *body: str, priors: dict[str, str] = THETA, stream: bool = False) -> Case:
    """A case whose body is these lines, on these rows."""
    return Case(sourced("", priors, list(body), arm=False), rows, stream=stream)


KNOWN = {
    "a clipped reward": of(
        ROWS, "mu = x @ theta", OBSERVED.replace("=reward", "=pt.clip(reward, -5, 5)"), "return mu",
        stream=True,
    ),
    "a far context": of(
        FAR, "mu = x @ theta",
        'pm.Normal("r", mu, pt.switch(x[:, 2] > 100, 16 * s, s), observed=reward)', "return mu",
        priors=SCALE,
    ),
    "rows of one id": of(
        IDS, "mu = x @ theta", "same = pt.eq(x[:, 0][:, None], x[:, 0])",
        'pm.MvNormal("r", mu, cov=pt.eye(x.shape[0]) + 4 * same, observed=reward)', "return mu",
        stream=True,
    ),
    "a lag": of(
        LONG, "mu = x @ theta",
        'pm.Normal("r", mu[7:] - 0.9 * mu[:-7], 1.0, observed=reward[7:] - 0.9 * reward[:-7])',
        "return mu", stream=True,
    ),
    "recent rows": of(
        LONG, "mu = x @ theta", "recent = pt.switch(pt.arange(x.shape[0]) >= x.shape[0] - 50, 1, 1e-6)",
        OBSERVED.replace("weight", "weight * recent"), "return mu", stream=True,
    ),
    "the number of rows": of(
        LONG, "mu = x @ theta",
        'pm.Normal("r", mu, 1 / pt.sqrt(pt.minimum(1, 20 / x.shape[0])), observed=reward)',
        "return mu", stream=True,
    ),
    "a centre that the template gives": of(
        WAVE, "gp = pm.gp.HSGP(m=[8], c=1.5, cov_func=pm.gp.cov.ExpQuad(1, ls=0.5))",
        'f = gp.prior("f", X=x[:, :1])', 'pm.Normal("r", f, 0.3 + ell, observed=reward)', "return f",
        priors={"ell": 'P("HalfNormal", sigma=1)'},
    ),
    "means of the template": of(ROWS, "mu = (x - x.get_value().mean(0)) @ theta", OBSERVED, "return mu"),
    "logarithms of what the template has below 0": of(
        POSITIVE, "mu = pt.log(x) @ theta", 'pm.LogNormal("r", mu, 0.2, observed=reward)', "return mu"
    ),
    "a mean that is written twice": of(
        ROWS, OBSERVED.replace("mu", "x @ theta"), 'return pm.Deterministic("m", x @ theta)',
        stream=True,
    ),
    "a process without columns": of(
        IDS, "gp = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(2, ls=1))", 'f = gp.prior("f", X=x)',
        'pm.Normal("r", f + level, 1, observed=reward)', "return f + level",
        priors={"level": 'P("Normal", mu=0, sigma=1)'},
    ),
}  # fmt: skip
