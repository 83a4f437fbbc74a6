"""What the known declarations are written with: rows, priors, and how a declaration reads."""

from __future__ import annotations

from tests.hunt.case import Case

NORMAL = 'theta=P("Normal", mu=0, sigma=1, dims="feature")'
LAPLACE = 'theta=P("Laplace", mu=0, b=1, dims="feature")'
ROWS = """
rng = np.random.default_rng(1)
x = rng.normal(size=(60, 3))
reward = x @ [1.0, 2.0, 3.0] + rng.normal(size=60)
weight = np.ones(60)
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
OFFSET = """
rng = np.random.default_rng(1)
x = rng.normal(size=(60, 3)) * [1.0, 5.0, 0.2] + [3.0, -10.0, 2.0]
reward = 50 + x @ [1.0, 2.0, 3.0] + 4 * rng.normal(size=60)
weight = np.ones(60)
"""
POSITIVE = """
rng = np.random.default_rng(1)
x = np.exp(rng.normal(size=(60, 2)))
reward = np.exp(0.3 * np.log(x) @ [1.0, -1.0] + 0.2 * rng.normal(size=60))
weight = np.ones(60)
"""
WEIGHTED = """
rng = np.random.default_rng(1)
x = rng.normal(size=(60, 2))
reward = x @ [1.0, 2.0] + rng.normal(size=60)
weight = 10.0 ** rng.uniform(0, 4, 60)
"""


def declared(priors: str, *body: str, before: str = "", arm: bool = False) -> str:
    """The source of a declaration."""
    names = [part.split("=")[0].strip() for part in priors.split("; ") if part]
    weight = ["weight"] if any("weight" in line for line in body) else []
    arguments = ", ".join(["x", "reward", *weight, *(["arm"] if arm else []), *names])
    head = f"{before}\n\n" if before else ""
    lines = "\n    ".join(body)
    decorator = f"@bb.reward_model({priors.replace('; ', ', ')})"
    return f"{head}{decorator}\ndef declared({arguments}):\n    {lines}\n"


def normal(
    observed: str = "reward", sd: str = "1 / pt.sqrt(weight)", mu: str = "x @ theta",
    priors: str = NORMAL, returned: str = "mu", before: str = "", extra: tuple[str, ...] = (),
    arm: bool = False, first: tuple[str, ...] = (),
) -> str:  # fmt: skip
    """A declaration with normal rewards."""
    body = (*first, f"mu = {mu}", f'pm.Normal("r", mu, {sd}, observed={observed})', *extra)
    return declared(priors, *body, f"return {returned}", before=before, arm=arm)


def fault(source: str, rows: str = ROWS, stream: bool = True) -> Case:
    return Case(source, rows, stream=stream, slow=not stream, kind="fault")


def by_rows(source: str, rows: str = LONG, stream: bool = True) -> Case:
    return Case(source, rows, stream=stream, kind="rows")


def template(source: str, rows: str = OFFSET, stream: bool = False) -> Case:
    return Case(source, rows, stream=stream, slow="HSGP" in source, kind="template")


def stale(source: str, change: str, rows: str = ROWS) -> Case:
    return Case(source, rows, change=change, kind="stale")


def mean(source: str, rows: str = ROWS) -> Case:
    return Case(source, rows, slow=True, kind="mean")


def idiom(source: str, rows: str = ROWS, stream: bool = False) -> Case:
    return Case(source, rows, stream=stream, slow="gp." in source, kind="idiom")


HORSESHOE = (
    'tau2 = pm.InverseGamma("tau2", 0.5, 0.5, dims="feature")',
    'theta = pm.Normal("theta", 0, pt.sqrt(tau2), dims="feature")',
)
SCALE = NORMAL + '; s=P("HalfNormal", sigma=10)'
VARIANCE = LAPLACE + '; s2=P("InverseGamma", alpha=2, beta=2)'
SD = "pt.sqrt(s2 / weight)"
