"""Random declarations, written as users of PyMC write them, and rows unlike any template's.

A declaration is a path of choices, each an integer below a bound; 0 is always the simplest, so that
hypothesis makes a failure short. `RULES` is the grammar: each {word} of a text is one of the texts
of its rule, picked when it is first used, and the same from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.hunt.case import Case


@dataclass
class Choices:
    """Where integers come from."""

    integer: Callable[[int], int]

    def below(self, bound: int) -> int:
        """An integer 0 … bound − 1."""
        return min(self.integer(bound), bound - 1)

    def pick(self, *options: Any) -> Any:
        """One of some options, the simplest first."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """True so often; False is simpler."""
        return self.below(100) >= 100 - percent


def seeded(seed: int) -> Choices:
    """Choices by a seed."""
    rng = np.random.default_rng(seed)
    return Choices(lambda bound: int(rng.integers(bound)))


class Words(dict[str, Any]):
    """Words by name: those that are known, and the others by their rules."""

    def __init__(self, c: Choices, **known: Any) -> None:
        super().__init__(known)
        self.c = c

    def __missing__(self, name: str) -> str:
        self[name] = self.write(self.c.pick(*RULES[name]))
        return str(self[name])

    def write(self, text: str) -> str:
        """A text with its words."""
        return text.format_map(self)


AROUND = (  # a noise scale that stands around the declaration, its place, and a change of it
    ("SIGMA", "SIGMA = 0.5", "SIGMA = 5.0"),
    ("cfg.sigma", "cfg = SimpleNamespace(sigma=0.5)", "cfg.sigma = 5.0"),
    ("level", "level = pytensor.shared(0.5)", "level.set_value(5.0)"),
    ('frame["s"].iloc[0]', 'frame = pd.DataFrame({"s": [0.5]})', 'frame.loc[0, "s"] = 5.0'),
    ('settings["s"]', 'settings = {"s": 0.5}', 'settings["s"] = 5.0'),
)
LEARNED = {  # a noise scale that is learned, and its variable
    "s": (
        *("HalfNormal(sigma=2)", "HalfCauchy(beta=1)", "Exponential(lam=1)"),
        *("Gamma(alpha=2, beta=1)", "LogNormal(mu=0, sigma=1)", "Uniform(lower=0.01, upper=20)"),
        *("InverseGamma(alpha=3, beta=3)", "HalfStudentT(nu=4, sigma=2)"),
    ),
    "pt.sqrt(s2)": (
        *("InverseGamma(alpha=3, beta=3)", "InverseGamma(alpha=0.5, beta=2)"),
        *("Gamma(alpha=2, beta=1)", "Exponential(lam=0.2)", "HalfNormal(sigma=3)"),
    ),
    "1 / pt.sqrt(q)": ("Gamma(alpha=2, beta=2)",),
}
THETA = {  # priors of the coefficients, as lines of the body
    "normal": 'theta = pm.Normal("theta", 0, {width}, dims={where})',
    "laplace": 'theta = pm.Laplace("theta", 0, {width}, dims={where})',
    "conjugate": 'theta = pm.Normal("theta", 0, {width} * {s}, dims={where})',
    "elsewhere": 'theta = pm.Normal("theta", {away}, {width}, dims={where})',
    "vector": 'theta = pm.Normal("theta", 0, np.linspace({width}, 30, {d}), dims={where})',
    "noncentred": 'raw = pm.Normal("raw", 0, 1, dims={where})\ntheta = {shifted}',
    "hierarchy": '{centre}\ntheta = pm.Normal("theta", centre, {width}, dims={where})',
    "spread": '{tau}\ntheta = pm.Normal("theta", 0, {root}, dims={where})',
    "learned": '{tau}\n{centre}\ntheta = pm.Normal("theta", centre, {root}, dims={where})',
    "scaled": '{tau}\nraw = pm.Normal("raw", 0, {width}, dims={where})\ntheta = {form}',
    "about": '{tau}\n{centre}\nraw = pm.Normal("raw", 0, 1, dims={where})\ntheta = centre + {form}',
    "studentt": 'theta = pm.StudentT("theta", nu={nu}, mu=0, sigma={width}, dims={where})',
    "cauchy": 'theta = pm.Cauchy("theta", 0, {width}, dims={where})',
    "horseshoe": 'lam = pm.HalfCauchy("lam", 1, dims={where})\n'
    'theta = pm.Normal("theta", 0, {width} * lam, dims={where})',
}
OF_VECTORS = {  # of features alone, at least two
    "mvnormal": 'theta = pm.MvNormal("theta", np.zeros({d}), '
    "cov=(1 - {rho}) * np.eye({d}) + {rho}, dims={where})",
    "design": 'theta = pm.MvNormal("theta", np.zeros({d}), '
    "tau=np.eye({d}) + x.T @ x / {n}, dims={where})",
    "walk": 'theta = pm.GaussianRandomWalk("theta", sigma={width}, '
    "init_dist=pm.Normal.dist(0, 1), dims={where})",
    "zerosum": 'theta = pm.ZeroSumNormal("theta", {width}, dims={where})',
    "flat": 'theta = pm.Flat("theta", dims={where})',
}
NORMAL = 'pm.Normal("r", mu, {sd}, observed={y})'
LIKELIHOODS = (  # lines of the body, what is returned, and rewards
    *((NORMAL, "{value}", "real"),) * 8,
    ('pm.StudentT("r", nu=4, mu=mu, sigma={sd}, observed={y})', "{value}", "real"),
    ('pm.Laplace("r", mu, {sd}, observed={y})', "{value}", "real"),
    ('pm.Logistic("r", mu, {sd}, observed={y})', "{value}", "real"),
    ('pm.Normal("r", mu, tau=weight / ({s}) ** 2, observed=reward)', "{value}", "real"),
    ('pm.Normal("r", mu[{k}:] - {rho} * mu[:-{k}], {s}, '
     "observed=reward[{k}:] - {rho} * reward[:-{k}])", "{value}", "real"),
    ("same = {same}\n"
     'pm.MvNormal("r", mu, cov=({s}) ** 2 * (pt.eye({n}) + 4 * same), observed=reward)',
     "{value}", "real"),
    ("own = pm.{own}\n"
     'pm.Normal("r", mu, {s} / pt.sqrt(own), observed=reward)', "{value}", "real"),
    ('pm.Normal("r", mu, {s}, observed=reward)\n'
     'pm.Normal("r2", 2 * mu, {s2nd}, observed=reward + 1)', "{value}", "real"),
    ('pm.LogNormal("r", mu, {s}, observed=1e-6 + abs(reward))', "{grown}", "real"),
    ("def logp(value, mu, sigma):\n    return {density}\n"
     'pm.CustomDist("r", mu, {s}, logp=logp, observed=reward)', "{value}", "real"),
    ('pm.Potential("r", weight * pm.logp(pm.Normal.dist(mu, {s}), {y}))', "{value}", "real"),
    ("p = pm.math.{link}(mu)\n{won}", "{returned p}", "binary"),
    ("rate = pt.exp(pt.clip(mu, -5, 5))\n{counts}", "rate", "count"),
    ("alpha = pm.{alpha}\nrate = pt.exp(mu)\n{overdispersed}", "{returned rate}", "count"),
    ('pm.Normal("r", mu{part}, {s}, observed=reward{part})', "{value}", "real"),
    ("some, few = pm.Minibatch(x.get_value(), reward.get_value(), batch_size=5)\n"
     'pm.Normal("r", some @ theta, {s}, observed=few, total_size=50)', "{value}", "real"),
)  # fmt: skip
RULES: dict[str, tuple[str, ...]] = {
    # scales and coefficients
    "number": ("1.0", "0.3", "5.0", "1", "np.float64(2.0)"),
    "width": ("1", "3", "0.1", "20"),
    "away": ("5", "-40", "1000"),
    "nu": ("4", "3", "10"),
    "rho": ("0.5", "0.9", "0.1"),
    "centre": ('centre = pm.Normal("centre", 0, 2)',),
    "tau": tuple(
        f"tau = pm.{family}"
        for family in (
            *('HalfNormal("tau", 1)', 'InverseGamma("tau", 2, 2)', 'HalfCauchy("tau", 1)'),
            *('Exponential("tau", 1)', 'Gamma("tau", 2, 1)'),
        )
    ),
    "root": ("tau", "pt.sqrt(tau)"),
    "shifted": (
        *("1 + {width} * raw", 'pm.Deterministic("theta", 1 + {width} * raw)'),
        "pt.set_subtensor(raw[..., :1], {width} * raw[..., :1])",
    ),
    "form": ("{product}", 'pm.Deterministic("theta", {product})'),
    "product": (
        *("tau * raw", "raw * pt.sqrt(tau)", "raw / tau", "0.5 * tau * raw"),
        *("tau * raw + 0.1 * raw", "-raw * tau"),
    ),
    # mean rewards
    "z": (
        *("x", "x", "x", "x", "(x ** 2)", "(x - x.mean(0))", "(x - x.get_value().mean(0))"),
        *("(x / (1 + x.get_value().std(0)))", "{curve}", "pt.clip(x, -3, 3)"),
        *("pt.switch(x > 3, 0, x)", "(x / (1 + abs(x)))", "x.reshape((-1, {d}))"),
        *("(x - np.median(x.eval(), axis=0))", "(pt.sqr(x) / 10 + x)", "x[:, ::-1]"),
        "(x / pt.maximum(abs(x).max(0), 3))",
    ),
    "of arms": (
        *("({z} * theta[arm]).sum(-1)", "pt.einsum('nd,nd->n', {z}, theta[arm])"),
        "({z} @ theta.T)[pt.arange({n}), arm]",
    ),
    "of one": (
        *("{z} @ theta", "{z} @ theta", "{z} @ theta", "pt.dot({z}, theta)"),
        *("({z} * theta).sum(axis=1)", "pt.einsum('nd,d->n', {z}, theta)"),
        *("{z}[:, :1] @ theta[:1]", "{z}[:, 0] * theta[0]"),
        "{z} @ pt.concatenate([theta[:1], 2 * theta[1:]])",
    ),
    "mean": (
        *("{linear}", "{linear}", "{linear}", "a + {linear}", "{linear}{group}"),
        *("{offset} + {linear}", "{linear} + {trend}", 'pm.Deterministic("mu", {linear})'),
        *("{linear} * pt.switch(pt.arange({n}) >= {start}, 1, 0.5)", "{bent}({linear})"),
        *("{linear}",) * 8,
        "{linear} + {beside}",
    ),
    "groups": ("8", "int(x.get_value()[:, 0].max()) + 1"),
    "offset": ("3", "1e4", "-0.5 * x[:, 0] ** 2"),
    "trend": ("0.1 * pt.arange({n})", "(pt.arange({n}) >= 20) * 2.0"),
    "start": ("5", "20", "100"),
    "bent": ("pt.tanh", "abs", "pt.sqr"),
    "beside": (
        *("0.8 * pt.concatenate([[0.0], reward[:-1]])", "0.1 * reward.mean()"),
        *("pt.switch(reward > 4, 1, 0)", "0.1 * pt.log(weight)", "pt.switch(weight > 50, 1, 0)"),
    ),
    "value": (*("mu",) * 6, "{mean}", "{mean}", "mu * weight", 'pm.Deterministic("value", mu)'),
    # noise and what is observed
    "sd": ("{spread}", "{spread} / {by weight}", "{spread} / {by weight}"),
    "by weight": ("pt.sqrt(weight)", "pt.sqrt(pt.minimum(weight, 50))", "pm.math.sqrt(weight)"),
    "spread": (
        *("{s}", "{s}", "{s}", "{s}", "pt.switch(x[:, 0] > {far}, 16, 1) * {s}"),
        *("{s} * (1 + 9 * pt.ge(x[:, -1], {far}))", "{s} * pt.exp(0.3 * pt.clip(x[:, 0], -3, 3))"),
        *("{s} * pt.sqrt(1 + x[:, 0] ** 2)", "{s} / pt.sqrt(pt.minimum(1, 20 / {n}))"),
        *(
            "{s} * pt.switch(pt.arange({n}) >= {n} - 50, 1, 1e3)",
            "{s} * (1 + 0.1 * pt.arange({n}))",
        ),
        *("{s} * pt.maximum(1, abs(x[:, 0]) / (1 + {far}))", "{s} * {uneven}"),
        "{s} * np.sqrt(reward.get_value().var() + 1)",
    ),
    "far": ("0", "1", "3", "10", "100"),
    "y": (
        *("reward",) * 5,
        *("pt.clip(reward, -{bound}, {bound})", "pt.minimum(reward, {bound})", "reward / 10"),
        *("abs(reward)", "pt.log1p(abs(reward))", "pt.tanh(reward)", "reward - 2"),
        "pt.switch(abs(reward) > {bound}, 0, reward)",
    ),
    "bound": ("1", "2", "3", "5", "10", "100", "1000"),
    # likelihoods
    "k": ("1", "2", "4", "5", "7", "10"),
    "same": (
        *("pt.eq(x[:, 0][:, None], x[:, 0]) * 1.0", "pt.exp(-((x[:, :1] - x[:, 0]) / 0.01) ** 2)"),
        "0.1 * pt.eq(abs(pt.arange({n})[:, None] - pt.arange({n})), 6)",
    ),
    "own": tuple(
        f'{family}, dims="row")'
        for family in ('Gamma("own", 2, 2', 'InverseGamma("own", 2, 2', 'Exponential("own", 1')
    ),
    "s2nd": ("3.0", "{s}"),
    "grown": ("{value}", "pt.exp(pt.clip(mu + ({s}) ** 2 / 2, -9, 9))"),
    "density": (
        "pm.logp(pm.Normal.dist(mu, sigma), value)",
        "-0.5 * ((value - mu) / sigma) ** 2 - pt.log(sigma)",
    ),
    "part": ("[-50:]", "[3:]", "[:40]", "[::2]"),
    "link": ("sigmoid", "sigmoid", "sigmoid", "invprobit"),
    "won": (
        *('pm.Bernoulli("r", {p}, observed=reward)',) * 2,
        'pm.Potential("r", {power} * pm.logp(pm.Bernoulli.dist({p}), reward))',
        'pm.Binomial("r", n=3, p={p}, observed=2 * reward)',
    ),
    "power": ("weight", "pt.minimum(weight, 2)"),
    "p": (
        *("p", "p", "p", "pt.clip(p, 1e-3, 1 - 1e-3)", "0.05 + 0.9 * p", "1 - p"),
        *("pm.math.{link}(0.5 * mu)", "pm.math.{link}(mu + 0.3 * x[:, 0])"),
    ),
    "returned p": ("p", "p", "p", "2 * p", "p ** 2"),
    "counts": (
        'pm.Poisson("r", rate, observed=reward)',
        'rate = pt.exp(mu)\npm.NegativeBinomial("r", mu=rate, alpha=2.5, observed=reward)',
        "rate = pt.exp(mu)\n"
        'pm.NegativeBinomial("r", mu=rate, alpha=0.3, observed=pt.minimum(reward, 3))',
    ),
    "alpha": (
        *('Gamma("alpha", 2, 0.1)', 'HalfNormal("alpha", 5)', 'Exponential("alpha", 0.3)'),
        *('LogNormal("alpha", 0, 1)', 'InverseGamma("alpha", 2, 3)', 'HalfCauchy("alpha", 2)'),
        'Uniform("alpha", 0.5, 6)',
    ),
    "dispersion": (
        *("alpha", "alpha", "alpha", "1 / alpha", "2 / alpha ** 2", "pt.clip(alpha, 0.1, 50)"),
        *("pt.sqrt(alpha)", "1 + alpha", "alpha * (1 + 0.1 * x[:, 0] ** 2)"),
    ),
    "negative": ("pm.NegativeBinomial.dist(mu=rate, alpha={dispersion})",),
    "overdispersed": (
        *('pm.NegativeBinomial("r", mu=rate, alpha={dispersion}, observed=reward)',) * 2,
        'pm.Potential("r", {power} * pm.logp({negative}, reward))',
        'pm.Potential("r", pm.logp({negative}, reward) + 0.5 * reward * pt.log(alpha))',
    ),
    "returned rate": ("rate", "rate", "rate", "rate", "rate * alpha"),
    # a potential on {v}, near or far
    "wall": (
        *("pt.switch({v} > {near}, -np.inf, 0)", "pt.switch({v} > {near}, -np.inf, 0) + 1"),
        *("-(abs({v} - 1) + 1)", "-pt.exp(pt.minimum({v} - {near}, 50))", "{tilt}"),
        *("-1e2 * pt.maximum({v} - {near}, 0)", "-(pt.clip({v}, -{near}, {near}) ** 2)"),
        *("-0.5 * ({v} - 1) ** 2", "pt.log(pt.lt({v}, {near}) * 1.0)"),
        "-(pt.floor({v} / {near}) + 1)",
    ),
    "near": ("1", "2", "5", "30", "100"),
    # rows
    "rows": ("40", "12", "25", "8", "60", "30", "5", "120", "3", "1", "20", "500"),
    "size": ("1", "1", "1", "10", "1e-3", "1e3", "1e-6", "1e6"),
    "middle": ("5", "100", "1000"),
    "real": (
        *("{signal} + rng.normal(size=n)", "10 * ({signal}) + rng.normal(size=n)", "{binary}"),
        *("{signal} + rng.standard_t(3, size=n)", "{high} + {signal} + rng.normal(size=n)"),
        *("{unit} * ({signal} + rng.normal(size=n))", "{count}", "np.zeros(n)"),
        "np.exp({signal} + rng.normal(size=n))",
    ),
    "binary": ("(rng.random(n) < 0.4).astype(float)",),
    "count": ("rng.poisson(3, n).astype(float)",),
    "signal": ("({scaled x}) @ rng.normal(size={d})",),
    "high": ("1e3", "1e6"),
    "unit": ("1e-4", "1e3", "1e5"),
    "weights": ("np.ones(n)", "rng.uniform(0.5, 2.0, n)", "10.0 ** rng.uniform(-2, 2, n)"),
}
COLUMNS = {
    "real": "{size} * rng.normal(size=(n, {d}))",
    "whole": "rng.integers(-3, 4, size=(n, {d})).astype(float)",
    "ids": "np.column_stack([rng.integers(0, 8, n), rng.normal(size=(n, {d} - 1))]).astype(float)",
    "positive": "np.exp(rng.normal(size=(n, {d})))",
    "constant": "np.column_stack([np.ones(n), rng.normal(size=(n, {d} - 1))])",
    "far": "{middle} + 20 * rng.normal(size=(n, {d}))",
}


def declaration(c: Choices) -> Case:
    """A random declaration on random rows."""
    arms, d = c.pick(0, 0, 0, 0, 1, 2, 3, 4), c.pick(2, 1, 3, 4, 6)
    columns = c.pick("real", "real", "real", *COLUMNS, "ids")
    priors: dict[str, str] = {}
    body: list[str] = []

    def variable(name: str, distribution: str, dims: str = "") -> None:
        """A prior of the decorator, or a line of the body, where others may be named."""
        family, _, arguments = distribution.rstrip(")").partition("(")
        if c.chance(50):
            body.append(f'{name} = pm.{family}("{name}", {arguments}{dims})')
        else:
            priors[name] = f'P("{family}", {arguments}{dims})'

    words = Words(c, d=d, n="x.shape[0]", where='("arm", "feature")' if arms else '"feature"')
    words["curve"] = "pt.log(x)" if columns == "positive" else "pt.sin(x)"
    words["group"] = ' + u[pt.cast(x[:, 0], "int64")]' if columns == "ids" else ""
    words["uneven"] = (
        "pt.as_tensor([1.0, 3.0, 0.5, 2.0])[arm]" if arms else "pt.maximum(1, x[:, 0])"
    )
    words["scaled x"] = "x / np.maximum(1e-9, abs(x).max())" if columns in ("real", "far") else "x"
    before = change = ""
    walls = ["theta"]
    noise = c.pick("number", "number", "around", *LEARNED)
    if noise == "number":
        words["s"] = words["number"]
    elif noise == "around":
        words["s"], before, change = c.pick(*AROUND)
    else:
        words["s"] = noise
        name = noise.rpartition("(")[2].rstrip(")")
        variable(name, c.pick(*LEARNED[noise]))
        walls.append(name)
    kind = c.pick(*THETA, *(OF_VECTORS if d > 1 and not arms else ()))
    if kind == "normal" and not arms and c.chance(50):
        variable("theta", f"Normal(mu=0, sigma={words['width']})", ', dims="feature"')
    else:
        body += words.write((THETA | OF_VECTORS)[kind]).splitlines()
    walls += ["tau"] if "{tau}" in (THETA | OF_VECTORS)[kind] else []
    words["linear"] = words["of arms" if arms else "of one"]
    mean = words["mean"]
    if mean.startswith("a + "):
        variable("a", "Normal(mu=0, sigma=10)")
    if "u[pt.cast" in mean:
        body.append(words.write('u = pm.Normal("u", 0, 1, shape={groups})'))
    body.append(f"mu = {mean}")
    forms = LIKELIHOODS if c.chance(10) and not arms else LIKELIHOODS[:-1]  # the last is rare
    text, returned, rewards = c.pick(*forms)
    returned = "mu" if returned == "{value}" and "Deterministic" in mean else words.write(returned)
    lines = words.write(text).splitlines()
    if "own" in words and c.chance(50):  # a variable for each row before the others
        body.insert(0, lines.pop(0))
    body += lines
    walls += ["alpha"] if "alpha" in words else []
    if c.chance(15):
        name = c.pick(*walls)
        words["v"] = f"{name}.sum()" if name == "theta" else name
        words["tilt"] = (
            f"-2.0 * pt.log({name})" if name != "theta" else "-0.5 * pt.sqr(theta.sum())"
        )
        body.append(f'pm.Potential("wall", {words["wall"]})')
    body.append(f"return {returned}")
    source = sourced(before, priors, body, bool(arms))
    return Case(source, rows(c, words, columns, rewards, arms, source), change, c.chance(60))


def sourced(before: str, priors: dict[str, str], body: list[str], arm: bool) -> str:
    """The source of a declaration."""
    weight = ["weight"] if any("weight" in line for line in body) else []
    arguments = ", ".join(["x", "reward", *weight, *(["arm"] if arm else []), *priors])
    decorator = ", ".join(f"{name}={prior}" for name, prior in priors.items())
    lines = "\n    ".join(body)
    return f"{before}\n\n@bb.reward_model({decorator})\ndef declared({arguments}):\n    {lines}\n"


def rows(c: Choices, words: Words, columns: str, rewards: str, arms: int, source: str) -> str:
    """Rows for a declaration, as source."""
    n = int(words["rows"])
    if n <= 3 and ("[:-" in source or "Minibatch" in source):
        n = 40
    lines = [f"rng = np.random.default_rng({c.below(10_000)})", f"n = {n}"]
    lines.append(f"x = {words.write(COLUMNS[columns])}")
    lines.append(f"reward = {words[rewards]}")
    if "weight" in source:
        lines.append(f"weight = {words['weights']}")
    if arms:
        lines += [f"K = {arms}", f"arm = rng.integers(0, {arms}, n)"]
    return "\n".join(lines)
