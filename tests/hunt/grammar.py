"""Random declarations, written as users of PyMC write them, and rows unlike any template's.

A declaration is a path of choices, each an integer below a bound; 0 is always the simplest, so that
both hypothesis and `shrunk` make a failure short.
"""

# ruff: noqa: E501  (declarations in one line are easier to compare)

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.hunt.case import Case


@dataclass
class Choices:
    """Where integers come from, and those that came."""

    integer: Callable[[int], int]
    made: list[int] = field(default_factory=list)

    def below(self, bound: int) -> int:
        """An integer 0 … bound − 1."""
        self.made.append(min(self.integer(bound), bound - 1))
        return self.made[-1]

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


def replayed(made: Sequence[int]) -> Choices:
    """Choices that were made before; 0 beyond them."""
    rest = iter(made)
    return Choices(lambda bound: next(rest, 0))


@dataclass
class Draft:
    """A declaration while it is being written.

    before: surroundings; priors: of the decorator; lines: of the body. d, K: sizes. scale: the
    noise's standard deviation as an expression, `learned` the name of its variable ("" if known).
    conjugate: whether θ's prior is scaled by the noise. walls: variables that may get a potential.
    """

    d: int
    K: int
    columns: str = "real"
    before: list[str] = field(default_factory=list)
    change: str = ""
    priors: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    scale: str = "1.0"
    learned: str = ""
    conjugate: bool = False
    walls: list[str] = field(default_factory=list)
    rewards: str = "real"

    @property
    def arm(self) -> bool:
        """Whether arms share the model."""
        return self.K > 0

    def variable(self, c: Choices, name: str, family: str, arguments: str, dims: str = "") -> None:
        """A variable, as a prior of the decorator or in the body, where names of others may stand."""
        where = f', dims="{dims}"' if dims else ""
        if c.chance(50):
            self.lines.append(f'{name} = pm.{family}("{name}", {arguments}{where})')
        else:
            self.priors[name] = f'P("{family}", {arguments}{where})'

    def local(self, name: str, family: str, arguments: str, dims: str = "") -> None:
        """A variable of the body."""
        where = f", dims={dims!r}" if dims else ""
        self.lines.append(f'{name} = pm.{family}("{name}", {arguments}{where})'.replace("'", '"'))

    def source(self, returned: str) -> str:
        """The whole declaration."""
        text = " ".join([*self.lines, returned])
        weight = ["weight"] if "weight" in text else []
        arguments = ["x", "reward", *weight, *(["arm"] if self.arm else []), *self.priors]
        priors = ", ".join(f"{k}={v}" for k, v in self.priors.items())
        body = "\n    ".join([*self.lines, f"return {returned}"])
        head = "\n".join(self.before) + ("\n\n" if self.before else "")
        return (
            f"{head}@bb.reward_model({priors})\ndef declared({', '.join(arguments)}):\n    {body}\n"
        )


def declaration(c: Choices) -> Case:
    """A random declaration on random rows."""
    arms = c.pick(0, 0, 0, 0, 1, 2, 3, 4)
    draft = Draft(d=c.pick(2, 1, 3, 4, 6), K=arms)
    draft.columns = c.pick(
        "real", "real", "real", "whole", "ids", "ids", "positive", "constant", "far"
    )
    noise(c, draft)
    coefficients(c, draft)
    mean = means(c, draft)
    returned = likelihood(c, draft, mean)
    potentials(c, draft)
    stream, source = c.chance(60), draft.source(returned)
    return Case(
        source, rows(c, draft, source), draft.change, stream, kind="drawn", choices=tuple(c.made)
    )


# ---- variables -----------------------------------------------------------------------------------


def noise(c: Choices, draft: Draft) -> None:
    """The noise's scale: a number, something around the declaration, or learned."""
    kind = c.pick("number", "number", "around", "sd", "variance", "precision")
    if kind == "number":
        draft.scale = c.pick("1.0", "0.3", "5.0", "1", "np.float64(2.0)")
    elif kind == "around":
        draft.scale, before, draft.change = c.pick(
            ("SIGMA", "SIGMA = 0.5", "SIGMA = 5.0"),
            ("cfg.sigma", "cfg = SimpleNamespace(sigma=0.5)", "cfg.sigma = 5.0"),
            ("level", "level = pytensor.shared(0.5)", "level.set_value(5.0)"),
            ('frame["s"].iloc[0]', 'frame = pd.DataFrame({"s": [0.5]})', 'frame.loc[0, "s"] = 5.0'),
            ('settings["s"]', 'settings = {"s": 0.5}', 'settings["s"] = 5.0'),
        )
        draft.before.append(before)
    elif kind == "sd":
        family = c.pick(
            ("HalfNormal", "sigma=2"), ("HalfCauchy", "beta=1"), ("Exponential", "lam=1"),
            ("Gamma", "alpha=2, beta=1"), ("LogNormal", "mu=0, sigma=1"),
            ("Uniform", "lower=0.01, upper=20"), ("InverseGamma", "alpha=3, beta=3"),
            ("HalfStudentT", "nu=4, sigma=2"),
        )  # fmt: skip
        draft.variable(c, "s", *family)
        draft.scale, draft.learned = "s", "s"
    elif kind == "variance":
        family = c.pick(
            ("InverseGamma", "alpha=3, beta=3"), ("InverseGamma", "alpha=0.5, beta=2"),
            ("Gamma", "alpha=2, beta=1"), ("Exponential", "lam=0.2"), ("HalfNormal", "sigma=3"),
        )  # fmt: skip
        draft.variable(c, "s2", *family)
        draft.scale, draft.learned = "pt.sqrt(s2)", "s2"
    else:
        draft.variable(c, "q", "Gamma", "alpha=2, beta=2")
        draft.scale, draft.learned = "1 / pt.sqrt(q)", "q"
    if draft.learned:
        draft.walls.append(draft.learned)


def coefficients(c: Choices, draft: Draft) -> None:
    """θ, of features or of arms and features."""
    d, dims = draft.d, ("arm", "feature") if draft.arm else ("feature",)
    where = '("arm", "feature")' if draft.arm else '"feature"'
    width = c.pick("1", "3", "0.1", "20")

    def body(text: str) -> None:
        draft.lines.append(text)

    kinds = [
        "normal",
        "normal",
        "laplace",
        "conjugate",
        "conjugate",
        "elsewhere",
        "vector",
        "noncentred",
        "hierarchy",
        "spread",
        "studentt",
        "cauchy",
        "horseshoe",
        "learned",
    ]
    if not draft.arm:
        kinds += ["mvnormal", "walk", "zerosum"] if d > 1 else []
        kinds += ["flat"] if c.chance(5) else []
    kind = c.pick(*kinds)
    if kind == "conjugate" and not draft.learned:
        kind = "normal"
    draft.conjugate = kind == "conjugate"
    match kind:
        case "normal":
            if not draft.arm and c.chance(50):
                draft.priors["theta"] = f'P("Normal", mu=0, sigma={width}, dims="feature")'
            else:
                body(f'theta = pm.Normal("theta", 0, {width}, dims={where})')
        case "laplace":
            body(f'theta = pm.Laplace("theta", 0, {width}, dims={where})')
        case "conjugate":
            body(f'theta = pm.Normal("theta", 0, {width} * {draft.scale}, dims={where})')
        case "elsewhere":
            body(f'theta = pm.Normal("theta", {c.pick(5, -40, 1000)}, {width}, dims={where})')
        case "vector":
            sds = [c.pick(1.0, 0.2, 5.0, 30.0) for _ in range(d)]
            body(f'theta = pm.Normal("theta", 0, np.array({sds}), dims={where})')
        case "noncentred":
            body(f'raw = pm.Normal("raw", 0, 1, dims={where})')
            body(
                c.pick(
                    "theta = 1 + {0} * raw",
                    'theta = pm.Deterministic("theta", 1 + {0} * raw)',
                    "theta = pt.set_subtensor(raw[..., :1], {0} * raw[..., :1])",
                ).format(width)
            )
        case "hierarchy":
            body('centre = pm.Normal("centre", 0, 2)')
            body(f'theta = pm.Normal("theta", centre, {width}, dims={where})')
        case "spread" | "learned":
            family = c.pick(
                'HalfNormal("tau", 1)',
                'InverseGamma("tau", 2, 2)',
                'HalfCauchy("tau", 1)',
                'Exponential("tau", 1)',
                'Gamma("tau", 2, 1)',
            )
            body(f"tau = pm.{family}")
            centre = "0"
            if kind == "learned":
                body('centre = pm.Normal("centre", 0, 2)')
                centre = "centre"
            body(
                f'theta = pm.Normal("theta", {centre}, {c.pick("tau", "pt.sqrt(tau)")}, dims={where})'
            )
            draft.walls.append("tau")
        case "studentt":
            body(
                f'theta = pm.StudentT("theta", nu={c.pick(4, 3, 10)}, mu=0, sigma={width}, dims={where})'
            )
        case "cauchy":
            body(f'theta = pm.Cauchy("theta", 0, {width}, dims={where})')
        case "horseshoe":
            body(f'lam = pm.HalfCauchy("lam", 1, dims={where})')
            body(f'theta = pm.Normal("theta", 0, {width} * lam, dims={where})')
        case "mvnormal":
            rho = c.pick(0.5, 0.9, -0.1)
            body(
                f'theta = pm.MvNormal("theta", np.zeros({d}), cov={1 - rho:g} * np.eye({d}) + {rho} , dims={where})'
            )
        case "walk":
            body(
                f'theta = pm.GaussianRandomWalk("theta", sigma={width}, init_dist=pm.Normal.dist(0, 1), dims={where})'
            )
        case "zerosum":
            body(f'theta = pm.ZeroSumNormal("theta", {width}, dims={where})')
        case "flat":
            body(f'theta = pm.Flat("theta", dims={where})')
    assert dims
    draft.walls.append("theta")


# ---- means ---------------------------------------------------------------------------------------


def means(c: Choices, draft: Draft) -> str:
    """The mean reward as an expression, and lines that it needs."""
    d = draft.d
    positive = draft.columns == "positive"
    z = c.pick(
        "x", "x", "x", "x", "x ** 2", "(x - x.mean(0))", "(x - x.get_value().mean(0))",
        "(x / (1 + x.get_value().std(0)))", "pt.log(x)" if positive else "pt.sin(x)",
        "pt.clip(x, -3, 3)", "pt.switch(x > 3, 0, x)", "(x / (1 + abs(x)))",
        f"x.reshape((-1, {d}))", "(x - np.median(x.eval(), axis=0))", "(pt.sqr(x) / 10 + x)",
        "x[:, ::-1]", "(x / pt.maximum(abs(x).max(0), 3))",
    )  # fmt: skip
    if draft.arm:
        mean = c.pick(
            f"({z} * theta[arm]).sum(-1)", f"pt.einsum('nd,nd->n', {z}, theta[arm])",
            f"({z} @ theta.T)[pt.arange(x.shape[0]), arm]",
        )  # fmt: skip
    elif "theta" in draft.priors or c.chance(80):
        mean = c.pick(
            f"{z} @ theta", f"{z} @ theta", f"pt.dot({z}, theta)", f"({z} * theta).sum(axis=1)",
            f"pt.einsum('nd,d->n', {z}, theta)",
        )  # fmt: skip
    else:
        k = max(1, d - 1)
        mean = c.pick(
            f"{z}[:, :{k}] @ theta[:{k}]",
            f"{z}[:, 0] * theta[0]",
            f"{z} @ pt.concatenate([theta[:1], 2 * theta[1:]])",
        )
    extra = c.pick(
        "", "", "", "intercept", "group", "offset", "trend", "deterministic", "window", "nonlinear"
    )
    if extra == "intercept":
        draft.variable(c, "a", "Normal", "mu=0, sigma=10")
        mean = f"a + {mean}"
    elif extra == "group" and draft.columns == "ids":
        G = c.pick("8", "int(x.get_value()[:, 0].max()) + 1", "8")
        draft.local("u", "Normal", f"0, 1, shape={G}")
        mean = f'{mean} + u[pt.cast(x[:, 0], "int64")]'
    elif extra == "offset":
        mean = f"{c.pick('3', '1e4', '-0.5 * x[:, 0] ** 2')} + {mean}"
    elif extra == "trend":
        mean = f"{mean} + {c.pick('0.1 * pt.arange(x.shape[0])', '(pt.arange(x.shape[0]) >= 20) * 2.0')}"
    elif extra == "window":
        mean = f"{mean} * pt.switch(pt.arange(x.shape[0]) >= {c.pick(5, 20, 100)}, 1, 0.5)"
    elif extra == "nonlinear" and c.chance(50):
        mean = c.pick("pt.tanh({})", "abs({})", "pt.sqr({})").format(mean)
    if c.chance(6):
        mean += c.pick(
            " + 0.8 * pt.concatenate([[0.0], reward[:-1]])", " + 0.1 * reward.mean()",
            " + pt.switch(reward > 4, 1, 0)", " + 0.1 * pt.log(weight)",
            " + pt.switch(weight > 50, 1, 0)",
        )  # fmt: skip
    if extra == "deterministic":
        mean = f'pm.Deterministic("{c.pick("mu", "fit")}", {mean})'
    draft.lines.append(f"mu = {mean}")
    return mean


# ---- likelihoods ---------------------------------------------------------------------------------


def spread(c: Choices, draft: Draft) -> str:
    """The noise's standard deviation in each row."""
    s = draft.scale
    n = "x.shape[0]"
    weighted = c.pick(True, True, False)
    form = c.pick(
        "{s}", "{s}", "{s}", "{s}",
        "pt.switch(x[:, 0] > {far}, 16, 1) * {s}",
        "{s} * (1 + 9 * pt.ge(x[:, -1], {far}))",
        "{s} * pt.exp(0.3 * pt.clip(x[:, 0], -3, 3))",
        "{s} * pt.sqrt(1 + x[:, 0] ** 2)",
        "{s} * pt.switch(pt.arange({n}) >= {n} - 50, 1, 1e3)",
        "{s} / pt.sqrt(pt.minimum(1, 20 / {n}))",
        "{s} * (1 + 0.1 * pt.arange({n}))",
        "{s} * pt.maximum(1, abs(x[:, 0]) / {far})",
        "{s} * pt.as_tensor([1.0, 3.0, 0.5, 2.0])[arm]" if draft.arm else "{s} * pt.maximum(1, x[:, 0])",
        "{s} * np.sqrt(reward.get_value().var() + 1)",
    ).format(s=s, n=n, far=c.pick(0, 1, 3, 10, 100))  # fmt: skip
    if weighted:
        form = f"{form} / {c.pick('pt.sqrt(weight)', 'pt.sqrt(weight)', 'pt.sqrt(pt.minimum(weight, 50))', 'pm.math.sqrt(weight)')}"
    return form


def seen(c: Choices) -> str:
    """What is observed."""
    bound = c.pick(1, 2, 3, 5, 10, 100, 1000)
    return c.pick(
        "reward", "reward", "reward", "reward", "reward", f"pt.clip(reward, -{bound}, {bound})",
        f"pt.minimum(reward, {bound})", "reward / 10", "abs(reward)", "pt.log1p(abs(reward))",
        "pt.tanh(reward)", f"pt.switch(abs(reward) > {bound}, 0, reward)", "reward - 2",
    )  # fmt: skip


def likelihood(c: Choices, draft: Draft, mean: str) -> str:
    """The observed variable; what is returned as the mean."""
    line = draft.lines.append
    kind = c.pick(
        *["normal"] * 8, "lag", "ids", "studentt", "laplace", "logistic", "lognormal", "custom",
        "power", "bernoulli", "poisson", "slice", "minibatch" if c.chance(10) else "tau",
    )  # fmt: skip
    returned = "mu"
    if kind in ("normal", "studentt", "laplace", "logistic"):
        sd, y = spread(c, draft), seen(c)
        line({
            "normal": f'pm.Normal("r", mu, {sd}, observed={y})',
            "studentt": f'pm.StudentT("r", nu=4, mu=mu, sigma={sd}, observed={y})',
            "laplace": f'pm.Laplace("r", mu, {sd}, observed={y})',
            "logistic": f'pm.Logistic("r", mu, {sd}, observed={y})',
        }[kind])  # fmt: skip
    elif kind == "tau":
        line(f'pm.Normal("r", mu, tau=weight / ({draft.scale}) ** 2, observed=reward)')
    elif kind == "lag":
        k, rho = c.pick(1, 2, 4, 5, 7, 10), c.pick(0.9, 0.5)
        line(f'pm.Normal("r", mu[{k}:] - {rho} * mu[:-{k}], {draft.scale}, '
             f"observed=reward[{k}:] - {rho} * reward[:-{k}])")  # fmt: skip
    elif kind == "ids":
        same = c.pick(
            "pt.eq(x[:, 0][:, None], x[:, 0]) * 1.0",
            "pt.exp(-((x[:, 0][:, None] - x[:, 0]) / 0.01) ** 2)",
            "0.1 * pt.eq(abs(pt.arange(x.shape[0])[:, None] - pt.arange(x.shape[0])), 6)",
        )
        line(f"same = {same}")
        line(
            f'pm.MvNormal("r", mu, cov=({draft.scale}) ** 2 * (pt.eye(x.shape[0]) + 4 * same), observed=reward)'
        )
    elif kind == "lognormal":
        line(f'pm.LogNormal("r", mu, {draft.scale}, observed=1e-6 + abs(reward))')
    elif kind == "custom":
        line(
            f"def logp(value, mu, sigma):\n        return {c.pick('pm.logp(pm.Normal.dist(mu, sigma), value)', '-0.5 * ((value - mu) / sigma) ** 2 - pt.log(sigma)')}"
        )
        line(f'pm.CustomDist("r", mu, {draft.scale}, logp=logp, observed=reward)')
    elif kind == "power":
        line(f'pm.Potential("r", weight * pm.logp(pm.Normal.dist(mu, {draft.scale}), {seen(c)}))')
    elif kind == "bernoulli":
        line("p = pm.math.sigmoid(mu)")
        line('pm.Bernoulli("r", p, observed=reward)')
        returned, draft.rewards = "p", "binary"
    elif kind == "poisson":
        line("rate = pt.exp(pt.clip(mu, -5, 5))")
        line('pm.Poisson("r", rate, observed=reward)')
        returned, draft.rewards = "rate", "count"
    elif kind == "slice":
        part = c.pick("[-50:]", "[3:]", "[:40]", "[::2]")
        line(f'pm.Normal("r", mu{part}, {draft.scale}, observed=reward{part})')
    elif kind == "minibatch":
        line("some, few = pm.Minibatch(x.get_value(), reward.get_value(), batch_size=5)")
        if not draft.arm:
            line(f'pm.Normal("r", some @ theta, {draft.scale}, observed=few, total_size=50)')
        else:
            line(f'pm.Normal("r", mu, {draft.scale}, observed=reward)')
    if returned == "mu" and "Deterministic" not in mean:
        returned = c.pick(
            "mu",
            "mu",
            "mu",
            "mu",
            "mu",
            "mu",
            mean,
            mean,
            "mu * weight",
            'pm.Deterministic("value", mu)',
        )
    return returned


def potentials(c: Choices, draft: Draft) -> None:
    """Walls, near or far, and what follows them."""
    if not c.chance(15):
        return
    name = c.pick(*draft.walls)
    far = c.pick(1, 2, 5, 30, 100)
    v = f"{name}.sum()" if name != draft.learned or name == "theta" else name
    positive = name != "theta"
    text = c.pick(
        f"pt.switch({v} > {far}, -np.inf, 0)", f"pt.switch({v} > {far}, -np.inf, 0) + 1",
        f"-(abs({v} - 1) + 1)", f"-pt.exp(pt.minimum({v} - {far}, 50))", f"-1e2 * pt.maximum({v} - {far}, 0)",
        f"-(pt.clip({v}, -{far}, {far}) ** 2)", f"-0.5 * ({v} - 1) ** 2",
        f"-2.0 * pt.log({v})" if positive else f"-0.5 * pt.sqr({v})",
        f"pt.log(pt.lt({v}, {far}) * 1.0)", f"-(pt.floor({v} / {far}) + 1)",
    )  # fmt: skip
    draft.lines.append(f'pm.Potential("wall", {text})')


# ---- rows ----------------------------------------------------------------------------------------


def rows(c: Choices, draft: Draft, source: str) -> str:
    """Rows for a declaration, as source."""
    n = c.pick(40, 12, 25, 8, 60, 30, 5, 120, 3, 1, 20, 500)
    if n <= 3 and any(mark in line for line in draft.lines for mark in ("[:-", "Minibatch")):
        n = 40
    d, seed = draft.d, c.below(10_000)
    size = c.pick("1", "1", "1", "10", "1e-3", "1e3", "1e-6", "1e6")
    columns = {
        "real": f"{size} * rng.normal(size=(n, {d}))",
        "whole": f"rng.integers(-3, 4, size=(n, {d})).astype(float)",
        "ids": f"np.column_stack([rng.integers(0, 8, n), rng.normal(size=(n, {d - 1}))]).astype(float)",
        "positive": f"np.exp(rng.normal(size=(n, {d})))",
        "constant": f"np.column_stack([np.ones(n), rng.normal(size=(n, {d - 1}))])",
        "far": f"{c.pick(5, 100, 1000)} + 20 * rng.normal(size=(n, {d}))",
    }[draft.columns]
    lines = [f"rng = np.random.default_rng({seed})", f"n = {n}", f"x = {columns}"]
    unit = "x / np.maximum(1e-9, abs(x).max())" if draft.columns in ("real", "far") else "x"
    signal = f"({unit}) @ rng.normal(size={d})"
    if draft.rewards != "real":
        lines.append(
            "reward = "
            + (
                "(rng.random(n) < 0.4).astype(float)"
                if draft.rewards == "binary"
                else "rng.poisson(3, n).astype(float)"
            )
        )
    else:
        lines.append("reward = " + c.pick(
        f"{signal} + rng.normal(size=n)", f"10 * ({signal}) + rng.normal(size=n)",
        f"{signal} + rng.standard_t(3, size=n)", "(rng.random(n) < 0.4).astype(float)",
        f"{c.pick('1e3', '1e6')} + {signal} + rng.normal(size=n)",
        f"{c.pick('1e-4', '1e3', '1e5')} * ({signal} + rng.normal(size=n))",
        "rng.poisson(3, n).astype(float)", "np.zeros(n)", f"np.exp({signal} + rng.normal(size=n))",
    ))  # fmt: skip
    if "weight" in source:
        lines.append(
            "weight = "
            + c.pick("np.ones(n)", "rng.uniform(0.5, 2.0, n)", "10.0 ** rng.uniform(-2, 2, n)")
        )
    if draft.arm:
        lines += [f"K = {draft.K}", f"arm = rng.integers(0, {draft.K}, n)"]
    return "\n".join(lines)
