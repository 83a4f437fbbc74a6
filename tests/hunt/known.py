"""Declarations that were once answered wrongly, and others of their kinds, with rows that show it.

Each must be answered rightly or refused with a reason. `REPORTED` are the former, `FURTHER` the
latter; kinds: "fault" (an operation that clears another's fault), "rows" (structure that a few
template rows do not show), "template" (values read while the graph is built), "stale" (surroundings
that change), "mean" (means that depend on rewards or weights), "idiom" (what PyMC allows).
"""

# ruff: noqa: E501  (declarations in one line are easier to compare)

from __future__ import annotations

from tests.hunt.case import Case

NORMAL = 'theta=P("Normal", mu=0, sigma=1, dims="feature")'
LAPLACE = 'theta=P("Laplace", mu=0, b=1, dims="feature")'
WIDE = 'theta=P("Normal", mu=0, sigma=100, dims="feature")'

ROWS = """
rng = np.random.default_rng(1)
x = rng.normal(size=(60, 3))
reward = x @ [1.0, 2.0, 3.0] + rng.normal(size=60)
weight = np.ones(60)
"""
SMALL = """
rng = np.random.default_rng(1)
x = rng.normal(size=(60, 3))
reward = x @ [0.1, -0.2, 0.3] + 0.1 * rng.normal(size=60)
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
ARMS = """
rng = np.random.default_rng(1)
K = 3
x, arm = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
reward = (x * np.array([[1.0, 2.0], [0.0, 1.0], [-2.0, 0.0]])[arm]).sum(1) + rng.normal(size=60)
weight = np.ones(60)
"""
BINARY = """
rng = np.random.default_rng(1)
x = rng.normal(size=(80, 2))
reward = (rng.random(80) < 1 / (1 + np.exp(-x @ [1.0, -1.0]))).astype(float)
weight = np.ones(80)
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
CAUCHY = NORMAL + '; s=P("HalfCauchy", beta=1)'
NIG = (
    's2=P("InverseGamma", alpha=2, beta=2)',
    'theta = pm.Normal("theta", 0, pt.sqrt(s2), dims="feature")',
)
SD = "pt.sqrt(s2 / weight)"

REPORTED: list[Case] = [
    # 1. a fault disappears behind the next operation
    fault(normal("pt.clip(reward, -5, 5)")),
    fault(normal("pt.clip(reward, -3, 3)")),
    fault(normal("pt.clip(reward, -2, 2)")),
    fault(normal("pt.clip(reward, -5, 5)", SD, priors=VARIANCE), stream=False),
    fault(normal(sd="pt.switch(x[:, 2] > 100, 16 * s, s)", priors=SCALE), FAR, stream=False),
    fault(
        normal(priors='s2=P("InverseGamma", alpha=2, beta=2)', sd=SD, first=HORSESHOE,
               extra=('pm.Potential("b", pt.switch(tau2 > 2, -np.inf, 0).sum())',)),
        stream=False,
    ),
    fault(
        normal(sd="s / pt.sqrt(weight)", priors=SCALE,
               extra=('pm.Potential("b", -5 * (abs(s - 1) + 1))',)),
        stream=False,
    ),
    # 2. structure of other rows than the template's
    by_rows(declared(NORMAL, "mu = x @ theta", "n = x.shape[0]",
            'same = pt.eq(x[:, 0][:, None], x[:, 0])',
            'pm.MvNormal("r", mu, cov=pt.eye(n) + 4 * same, observed=reward)', "return mu"), IDS),
    by_rows(normal("reward[7:] - 0.9 * reward[:-7]", "1.0", mu="x @ theta",
                   ).replace('"r", mu,', '"r", mu[7:] - 0.9 * mu[:-7],')),
    by_rows(declared(NORMAL, "mu = x @ theta", "n = x.shape[0]",
            "lag = pt.abs(pt.arange(n)[:, None] - pt.arange(n))",
            'pm.MvNormal("r", mu, cov=pt.eye(n) + 0.45 * pt.eq(lag, 7), observed=reward)',
            "return mu")),
    by_rows(declared(NORMAL, "mu = x @ theta", "n = x.shape[0]",
            "recent = pt.switch(pt.arange(n) >= n - 50, 1, 1e-6)",
            'pm.Normal("r", mu, 1 / pt.sqrt(weight * recent), observed=reward)', "return mu")),
    by_rows(normal(sd="1 / pt.sqrt(pt.minimum(1, 20 / x.shape[0]))")),
    # 3. built on template rows
    template(declared('ell=P("HalfNormal", sigma=1)',
             'gp = pm.gp.HSGP(m=[8], c=1.5, cov_func=pm.gp.cov.ExpQuad(1, ls=0.5))',
             'f = gp.prior("f", X=x[:, :1])',
             'pm.Normal("r", f, 0.3 + ell, observed=reward)', "return f"), """
rng = np.random.default_rng(1)
x = rng.uniform(-6, 6, size=(80, 1))
reward = np.sin(x[:, 0]) + 0.3 * rng.normal(size=80)
"""),
    template(normal(mu="(x - x.get_value().mean(0)) @ theta")),
    template(normal(sd="reward.std().eval()")),
    template(declared(NORMAL, "mu = pt.log(x) @ theta",
             'pm.LogNormal("r", mu, 0.2, observed=reward)', "return mu"), POSITIVE),
    template(normal("pt.log(reward)"), POSITIVE),
    template(normal(mu="pt.log(x) @ theta"), POSITIVE),
    # 4. stale plans
    stale(normal(sd="cfg.sigma", before="cfg = SimpleNamespace(sigma=0.5)"), "cfg.sigma = 50.0"),
    stale(normal(sd="level", before="level = pytensor.shared(0.5)"), "level.set_value(50.0)"),
    stale(normal(sd='float(frame["sigma"].iloc[0])', before='frame = pd.DataFrame({"sigma": [0.5]})'),
          'frame.loc[0, "sigma"] = 50.0'),
    # 5. means that depend on rewards or weights
    mean(declared(NORMAL + '; s=P("HalfNormal", sigma=1)',
         "lag = pt.concatenate([[0.0], reward[:-1]])", "mu = 3 + x @ theta + 0.8 * lag",
         'pm.StudentT("r", nu=4, mu=mu, sigma=s, observed=reward)', "return mu"), LONG),
    mean(declared(NORMAL, "mu = x @ theta",
         'pm.Logistic("r", mu * weight, 1, observed=reward)', "return mu * weight"), WEIGHTED),
    # 6., 7. idioms
    idiom(declared(NORMAL, 'mu = pm.Deterministic("mu", x @ theta)',
          'pm.Normal("r", mu, 1 / pt.sqrt(weight), observed=reward)', "return mu"), stream=True),
    idiom(declared(NORMAL, 'pm.Normal("r", x @ theta, 1 / pt.sqrt(weight), observed=reward)',
          'return pm.Deterministic("m", x @ theta)'), stream=True),
    idiom(declared(NORMAL, 'pm.Normal("r", x @ theta, 1 / pt.sqrt(weight), observed=reward)',
          "return x @ theta"), stream=True),
    idiom(declared('level=P("Normal", mu=0, sigma=1)',
          'gp = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(2, ls=1))', 'f = gp.prior("f", X=x)',
          'pm.Normal("r", f + level, 1, observed=reward)', "return f + level"), """
rng = np.random.default_rng(1)
x = rng.normal(size=(20, 2))
reward = x[:, 0] + rng.normal(size=20)
"""),
    idiom(declared(NORMAL, "some, few = pm.Minibatch(x.get_value(), reward.get_value(), batch_size=10)",
          'pm.Normal("r", some @ theta, 1, observed=few, total_size=60)', "return x @ theta")),
]  # fmt: skip

FURTHER: list[Case] = [
    # ---- faults
    fault(normal("pt.minimum(reward, 4)")),
    fault(normal("pt.maximum(reward, -4) + 0")),
    fault(normal("pt.switch(abs(reward) > 4, 0, reward)")),
    fault(normal("reward * (abs(reward) < 4)")),
    fault(normal("pt.clip(reward, -6, 6)", SD, priors=NIG[0], first=(NIG[1],))),
    fault(normal("pt.clip(2 * reward, -8, 8) / 2 + 0.0", SD, priors=VARIANCE), stream=False),
    fault(normal(sd="1 + 15 * (x[:, 2] > 100)"), FAR),
    fault(normal(sd="s * (1 + 15 * pt.ge(x[:, 2], 100))", priors=CAUCHY), FAR, stream=False),
    fault(normal(sd="pt.sqrt(s2) * pt.maximum(1, x[:, 2] / 60)", priors=NIG[0], first=(NIG[1],)), FAR),
    fault(normal(sd="1 / pt.sqrt(pt.minimum(weight, 2000))"), WEIGHTED),
    fault(normal(sd="s / pt.sqrt(pt.minimum(weight, 2000))", priors=SCALE), WEIGHTED, stream=False),
    fault(normal(mu="pt.clip(x, -4, 4) @ theta"), FAR),
    fault(normal(mu="pt.switch(x > 5, 5, x) @ theta"), FAR),
    fault(normal(mu="x @ theta + 30 * (x[:, 2] > 100)"), FAR),
    fault(normal(sd="s", priors=SCALE, extra=('pm.Potential("b", pt.switch(s > 1, -np.inf, 0) + 1)',)),
          stream=False),
    fault(normal(sd="s", priors=SCALE, extra=('pm.Potential("b", -1e3 * pt.maximum(s - 5, 0))',)), """
rng = np.random.default_rng(1)
x = rng.normal(size=(60, 2))
reward = 9 * rng.normal(size=60)
weight = np.ones(60)
""", stream=False),
    fault(normal(sd="s", priors=SCALE, extra=('pm.Potential("b", -pt.exp(20 * (s - 7)))',)), """
rng = np.random.default_rng(1)
x = rng.normal(size=(60, 2))
reward = 9 * rng.normal(size=60)
weight = np.ones(60)
""", stream=False),
    fault(normal(sd="pt.sqrt(s2)", priors='s2=P("InverseGamma", alpha=2, beta=2)', first=(
        'tau2 = pm.Exponential("tau2", 0.5, dims="feature")',
        'theta = pm.Normal("theta", 0, pt.sqrt(tau2), dims="feature")',
        'pm.Potential("b", pt.switch(tau2.sum() > 6, -np.inf, 0.0) * 1)')), stream=False),
    fault(normal(sd="pt.sqrt(s2)", priors=VARIANCE,
          extra=('pm.Potential("b", pt.log(pt.lt(s2, 0.8)) + 0)',)), stream=False),
    fault(normal(extra=('pm.Potential("b", pt.switch(theta.sum() > 5, -np.inf, 0) + 0)',)),
          stream=False),
    fault(normal(sd="1.0", extra=('pm.Potential("b", -50 * (pt.clip(theta, -1, 1) - theta).sum() ** 2)',)),
          stream=False),
    fault(normal(sd="s", priors=SCALE, extra=('pm.Potential("b", 40 * pt.abs(pt.floor(s)))',)),
          stream=False),
    fault(normal("pt.round(reward)"), ROWS),
    fault(normal("pt.sgn(reward) * pt.sqrt(abs(reward))"), ROWS),
    fault(normal("pt.log1p(pt.exp(reward))"), ROWS),
    # ---- rows
    *(by_rows(normal(f"reward[{k}:] - 0.9 * reward[:-{k}]", "1.0").replace(
        '"r", mu,', f'"r", mu[{k}:] - 0.9 * mu[:-{k}],')) for k in (1, 5, 10)),
    by_rows(declared(NORMAL, "mu = x @ theta", "n = x.shape[0]",
            "near = pt.exp(-(((x[:, 0][:, None] - x[:, 0]) / 0.001) ** 2))",
            'pm.MvNormal("r", mu, cov=pt.eye(n) + 4 * near, observed=reward)', "return mu"), IDS),
    by_rows(declared(NORMAL, "mu = x @ theta", "n = x.shape[0]",
            "same = pt.eq(pt.floor(x[:, 0] / 2)[:, None], pt.floor(x[:, 0] / 2)) * 1.0",
            'pm.MvNormal("r", mu, cov=pt.eye(n) + 4 * same, observed=reward)', "return mu"), IDS),
    by_rows(declared(NORMAL, "mu = x @ theta",
            "count = pt.eq(x[:, 0][:, None], x[:, 0]).sum(0)",
            'pm.Normal("r", mu, pt.sqrt(count), observed=reward)', "return mu"), IDS),
    by_rows(normal(mu="x @ theta * pt.switch(pt.arange(x.shape[0]) >= 60, 1, 0)")),
    by_rows(normal(sd="pt.switch(pt.arange(x.shape[0]) >= 20, 1, 1e3)")),
    by_rows(normal(sd="1 / pt.sqrt(0.95 ** (x.shape[0] - 1 - pt.arange(x.shape[0])))")),
    by_rows(normal(sd="pt.sqrt(pt.maximum(1, x.shape[0] - 40))")),
    by_rows(declared(NORMAL, "mu = x @ theta", 'pm.Normal("r", mu[-50:], 1, observed=reward[-50:])',
            "return mu")),
    by_rows(declared(NORMAL, "mu = x @ theta", 'pm.Normal("r", mu[30:], 1, observed=reward[30:])',
            "return mu")),
    by_rows(declared(NORMAL, "mu = x @ theta", 'pm.Normal("r", mu[:40], 1, observed=reward[:40])',
            "return mu")),
    by_rows(normal(mu="(x - x.mean(0)) @ theta", priors=WIDE)),
    by_rows(normal(mu="(x / abs(x).max(0)) @ theta", priors=WIDE)),
    by_rows(normal(mu="(x / pt.maximum(abs(x).max(0), 3)) @ theta", priors=WIDE)),
    by_rows(declared(NORMAL, "mu = x @ theta", "n = x.shape[0]",
            "same = pt.eq(x[:, 0][:, None], x[:, 0]) * (1 - pt.eye(n))",
            'pm.Normal("r", mu, 1, observed=reward)',
            'pm.Potential("p", -5 * same.sum() * theta[1] ** 2)', "return mu"), IDS),
    by_rows(declared(NORMAL, "mu = x @ theta", "n = x.shape[0]",
            'pm.Normal("r", mu, 1, observed=reward)',
            'pm.Potential("p", -20.0 * pt.maximum(0, n - 30) * theta[1] ** 2)', "return mu")),
    by_rows(declared(SCALE, "mu = x @ theta", "n = x.shape[0]",
            "same = pt.eq(x[:, 0][:, None], x[:, 0]) * 1.0",
            'pm.MvNormal("r", mu, cov=s**2 * (pt.eye(n) + 4 * same), observed=reward)',
            "return mu"), IDS, stream=False),
    by_rows(declared(NIG[0], NIG[1], "mu = x @ theta", "n = x.shape[0]",
            "same = pt.eq(x[:, 0][:, None], x[:, 0]) * 1.0",
            'pm.MvNormal("r", mu, cov=s2 * (pt.eye(n) + 4 * same), observed=reward)',
            "return mu"), IDS),
    by_rows(declared(LAPLACE, "mu = x @ theta", "n = x.shape[0]",
            "same = pt.eq(x[:, 0][:, None], x[:, 0]) * 1.0",
            'pm.MvNormal("r", mu, cov=pt.eye(n) + 4 * same, observed=reward)', "return mu"), IDS,
            stream=False),
    by_rows(normal(sd="s * pt.switch(pt.arange(x.shape[0]) >= x.shape[0] - 50, 1, 1e3)", priors=SCALE),
            stream=False),
    by_rows(declared(LAPLACE + '; s2=P("InverseGamma", alpha=2, beta=2)', "mu = x @ theta",
            "t = pt.switch(pt.arange(x.shape[0]) < 40, 1e6, 1)",
            'pm.Normal("r", mu, pt.sqrt(s2 * t), observed=reward)', "return mu"), stream=False),
    by_rows(declared(NORMAL, "mu = x @ theta", "n = x.shape[0]",
            "same = pt.eq(arm[:, None], arm) * pt.eq(x[:, 0][:, None], x[:, 0])",
            'pm.MvNormal("r", mu, cov=pt.eye(n) + 4 * same, observed=reward)', "return mu", arm=True),
            IDS + "K = 2\narm = np.arange(60) % 2\n"),
    by_rows(declared(NORMAL, "mu = x @ theta",
            "first = pt.eq(x[:, 0], pt.concatenate([[-1.0], x[:-1, 0]]))",
            'pm.Normal("r", mu, pt.switch(first, 20, 1), observed=reward)', "return mu"), IDS),
    by_rows(declared(NORMAL, "mu = x @ theta", "order = pt.argsort(x[:, 0])",
            'pm.Normal("r", mu[order], 1 + pt.arange(x.shape[0]), observed=reward[order])',
            "return mu")),
    by_rows(normal("reward - reward.mean()")),
    # ---- template
    template(normal(mu="(x / x.get_value().std(0)) @ theta")),
    template(normal(mu="((x - x.eval().min(0)) / np.ptp(x.eval(), axis=0)) @ theta")),
    template(normal(sd="float(reward.get_value().std())")),
    template(declared("", "sigma = float(abs(reward.get_value()).max())",
             'theta = pm.Normal("theta", 0, sigma, dims="feature")', "mu = x @ theta",
             'pm.Normal("r", mu, 1, observed=reward)', "return mu")),
    template(declared("", "knots = np.quantile(x.get_value()[:, 0], [0.2, 0.5, 0.8])",
             'theta = pm.Normal("theta", 0, 1, shape=3)',
             "mu = abs(x[:, 0][:, None] - knots) @ theta", 'pm.Normal("r", mu, 1, observed=reward)',
             "return mu")),
    template(declared("", "ids = np.unique(x.get_value()[:, 0])",
             'u = pm.Normal("u", 0, 2, shape=len(ids))',
             "mu = pt.eq(x[:, 0][:, None], ids) @ u", 'pm.Normal("r", mu, 1, observed=reward)',
             "return mu"), IDS),
    template(declared("", "G = int(x.get_value()[:, 0].max()) + 1",
             'u = pm.Normal("u", 0, 2, shape=G)',
             'mu = u[x[:, 0].astype("int64")]', 'pm.Normal("r", mu, 1, observed=reward)',
             "return mu"), IDS),
    template(declared("", "V = np.linalg.svd(x.get_value(), full_matrices=False)[2]",
             'theta = pm.Normal("theta", 0, np.array([5.0, 0.5, 0.05]), dims="feature")',
             "mu = x @ V.T @ theta", 'pm.Normal("r", mu, 1, observed=reward)', "return mu")),
    template(normal(sd="1 / np.sqrt(min(1, 20 / len(x.get_value())))")),
    template(normal("reward - reward.get_value().mean()", mu="x @ theta")),
    template(normal(sd="np.sqrt(weight.get_value().mean()) / pt.sqrt(weight)"), WEIGHTED),
    template(normal(mu="x @ theta if x.get_value().min() < -5 else (x ** 2) @ theta")),
    template(normal(mu="(x - x.get_value().mean(0)) @ theta", sd="s", priors=SCALE)),
    template(normal(mu="(x - x.get_value().mean(0)) @ theta", sd=SD, priors=VARIANCE)),
    template(normal(sd=SD, priors=NIG[0], first=(
        's0 = float(reward.get_value().std())',
        'theta = pm.Normal("theta", 0, s0 * pt.sqrt(s2), dims="feature")'))),
    template(declared(NORMAL + '; a=P("Normal", mu=0, sigma=1)',
             "mu = a * reward.get_value().mean() + x @ theta",
             'pm.Normal("r", mu, 1, observed=reward)', "return mu")),
    template(declared(NORMAL, "mu = x @ theta",
             'pm.Laplace("r", mu, float(reward.get_value().std()), observed=reward)', "return mu")),
    # ---- stale
    stale(normal(sd="cfg[0].sigma", before="cfg = [SimpleNamespace(sigma=0.5)]"), "cfg[0].sigma = 50.0"),
    stale(normal(sd='cfg["a"].b.sigma', before='cfg = {"a": SimpleNamespace(b=SimpleNamespace(sigma=0.5))}'),
          'cfg["a"].b.sigma = 50.0'),
    stale(normal(sd="Config.sigma", before="class Config:\n    sigma = 0.5"), "Config.sigma = 50.0"),
    stale(normal(sd="level()", before="class Level:\n    sigma = 0.5\n    def __call__(self):\n"
                 "        return self.sigma\nlevel = Level()"), "level.sigma = 50.0"),
    stale(normal(sd="level()", before="import functools\ncfg = SimpleNamespace(sigma=0.5)\n"
                 "level = functools.partial(getattr, cfg, 'sigma')"), "cfg.sigma = 50.0"),
    stale(normal(sd="levels.iloc[0]", before="levels = pd.Series([0.5])"), "levels.iloc[0] = 50.0"),
    stale(normal(sd="sigma", before="sigma = 0.5"), "sigma = 50.0"),
    stale(normal(sd="levels[0]", before="levels = np.array([0.5])"), "levels[0] = 50.0"),
    stale(normal(sd="levels[0]", before="levels = [0.5]"), "levels[0] = 50.0"),
    stale(normal(sd="level()", before="def level():\n    return 0.5"), "def level():\n    return 50.0"),
    stale(normal(sd="level()", before="cfg = SimpleNamespace(sigma=0.5)\ndef level():\n"
                 "    return cfg.sigma"), "cfg.sigma = 50.0"),
    stale(normal(sd="float(os.environ['HUNT_SIGMA'])", before="import os\nos.environ['HUNT_SIGMA'] = '0.5'"),
          "os.environ['HUNT_SIGMA'] = '50.0'"),
    stale(normal(sd="levels.sum()", before="levels = pytensor.shared(np.array([0.2, 0.3]))"),
          "levels.set_value(np.array([25.0, 25.0]))"),
    stale(declared("", 'theta = pm.Normal("theta", cfg.centre, 0.1, dims="feature")', "mu = x @ theta",
          'pm.Normal("r", mu, 1, observed=reward)', "return mu",
          before="cfg = SimpleNamespace(centre=0.0)"), "cfg.centre = 9.0"),
    stale(normal(sd=SD, priors=NIG[0], first=(
        'theta = pm.Normal("theta", 0, cfg.k * pt.sqrt(s2), dims="feature")',),
        before="cfg = SimpleNamespace(k=0.05)"), "cfg.k = 5.0"),
    stale(normal(sd="cfg.k * s", priors=SCALE, before="cfg = SimpleNamespace(k=1.0)"), "cfg.k = 50.0"),
    stale(normal(sd="s", priors='theta=P("Laplace", mu=0, b=1, dims="feature"); s=P("HalfNormal", sigma=1)',
          mu="(x * scale) @ theta", before="scale = pytensor.shared(np.ones(3))"),
          "scale.set_value(np.array([3.0, 1.0, 0.1]))"),
    stale(normal(mu="columns(x) @ theta", before="which = {0: 1.0}\ndef columns(x):\n"
                 "    return x * which[0]"), "which[0] = 3.0"),
    stale(normal(sd="next(levels)", before="levels = iter([0.5] * 2 + [50.0] * 50)"), "pass"),
    stale(normal(sd="float(cfg.sigma)", before="import dataclasses\n@dataclasses.dataclass\nclass C:\n"
                 "    sigma: float = 0.5\ncfg = C()"), "cfg.sigma = 50.0"),
    stale(normal(sd="float(table.sel(k=0))", before="import xarray as xr\n"
                 "table = xr.DataArray([0.5], dims='k')"), "table[0] = 50.0"),
    # ---- means
    *(mean(normal(mu=f"x @ theta + {term}", sd=sd, priors=priors), rows)
      for term, sd, priors, rows in (
        ("0.8 * pt.concatenate([[0.0], reward[:-1]])", "1", NORMAL, LONG),
        ("0.8 * pt.concatenate([[0.0], reward[:-1]])", "s", SCALE, LONG),
        ("0.5 * reward.mean()", "1", NORMAL, ROWS),
        ("pt.switch(reward > 5, 1, 0)", "1", NORMAL, ROWS),
        ("pt.switch(reward > 100, 1, 0)", "s", SCALE, ROWS),
        ("0.1 * pt.log(weight)", "1", NORMAL, WEIGHTED),
        ("0.1 * pt.log(weight)", "pt.sqrt(s2)", VARIANCE, WEIGHTED),
        ("pt.switch(weight > 2000, 5, 0)", "1", NORMAL, WEIGHTED),
        ("pt.switch(weight > 2000, 5, 0)", "s", SCALE, WEIGHTED),
    )),
    mean(normal(returned="mu * weight"), WEIGHTED),
    mean(normal(returned="mu + 0.5 * reward.mean()")),
    mean(normal(returned="pt.minimum(mu, reward.max())")),
    mean(declared(NORMAL, "mu = x @ theta", 'pm.StudentT("r", nu=4, mu=mu, sigma=1, observed=reward)',
         "return mu + pt.switch(reward > 4, 1, 0)")),
    mean(declared(NORMAL, "mu = x @ theta", 'pm.StudentT("r", nu=4, mu=mu, sigma=1, observed=reward)',
         "return mu + pt.maximum(weight - 1, 0)"), WEIGHTED),
    mean(declared(NORMAL, "mu = x @ theta + 0.8 * pt.concatenate([[0.0], abs(reward[:-1])])",
         'pm.Laplace("r", mu, 1, observed=reward)', "return mu"), LONG),
    mean(declared(NORMAL, "mu = x @ theta + 0.8 * pt.concatenate([[0.0], reward[:-1]])",
         'pm.Laplace("r", mu, 1, observed=reward)', "return x @ theta"), LONG),
    mean(normal(mu="x @ theta + 0.8 * pt.concatenate([[0.0], reward[:-1]])", returned="x @ theta"), LONG),
    mean(declared(NORMAL, "lag = pt.concatenate([[0.0], reward[:-1]])",
         "p = pm.math.sigmoid(x @ theta + lag)", 'pm.Bernoulli("r", p, observed=reward)',
         "return p"), BINARY),
    # ---- idioms
    idiom(declared(NORMAL, 'mu = pm.Deterministic("fit", x @ theta, dims="row")',
          'pm.Normal("r", mu, 1 / pt.sqrt(weight), observed=reward)', "return mu"), stream=True),
    idiom(declared(SCALE, 'mu = pm.Deterministic("mu", x @ theta)',
          'pm.Normal("r", mu, s, observed=reward)', "return mu")),
    idiom(declared(LAPLACE, 'mu = pm.Deterministic("mu", x @ theta)',
          'pm.Normal("r", mu, 1, observed=reward)', "return mu")),
    idiom(declared(NIG[0], NIG[1], 'mu = pm.Deterministic("mu", x @ theta)',
          'pm.Normal("r", mu, pt.sqrt(s2), observed=reward)', "return mu")),
    idiom(declared("", 'theta = pm.ZeroSumNormal("theta", 1, dims="feature")', "mu = x @ theta",
          'pm.Normal("r", mu, 1, observed=reward)', "return mu")),
    idiom(declared("", 'raw = pm.Normal("raw", 0, 1, dims="feature")',
          'theta = pm.Deterministic("theta", 2 + 3 * raw)', 'mu = pm.Deterministic("mu", x @ theta)',
          'pm.Normal("r", mu, 1, observed=reward)', "return mu"), stream=True),
    idiom(declared("", 'theta = pm.Normal("theta", 0, 1, dims=("arm", "feature"))',
          'mu = pm.Deterministic("mu", (x * theta[arm]).sum(-1))',
          'pm.Normal("r", mu, 1, observed=reward)', "return mu", arm=True), ARMS, stream=True),
    idiom(declared("", 'theta = pm.Normal("theta", 0, 1, dims=("arm", "feature"))',
          "mu = (x * theta[arm]).sum(-1)",
          'pm.Normal("r", mu, pt.as_tensor([0.5, 1.0, 3.0])[arm], observed=reward)',
          "return mu", arm=True), ARMS, stream=True),
    idiom(normal(sd="pt.exp(0.5 * x[:, 0]) / pt.sqrt(weight)"), stream=True),
    idiom(declared(NORMAL, "mu = x @ theta", 'pm.Normal("r", mu, tau=weight / 4, observed=reward)',
          "return mu"), WEIGHTED, stream=True),
    idiom(declared(NORMAL, "mu = x @ theta",
          'pm.Potential("r", weight * pm.logp(pm.Normal.dist(mu, 1), reward))', "return mu"), WEIGHTED,
          stream=True),
    idiom(declared(NORMAL, "some, few = pm.Minibatch(x.get_value(), reward.get_value(), batch_size=20)",
          "mu = x @ theta", 'pm.Normal("r", some @ theta, s, observed=few, total_size=60)',
          "return mu").replace("def declared(x, reward, theta", "def declared(x, reward, theta, s")
          .replace(f"({NORMAL})", f'({NORMAL}, s=P("HalfNormal", sigma=1))')),
]  # fmt: skip

KNOWN: list[Case] = [*REPORTED, *FURTHER]
SOON = [case for case in REPORTED if not case.slow]
QUICK: list[Case] = [  # the first two of each kind
    case
    for i, case in enumerate(SOON)
    if sum(earlier.kind == case.kind for earlier in SOON[:i]) < 2
]
