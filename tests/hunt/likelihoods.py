"""Random mean rewards and likelihoods."""

from __future__ import annotations

from tests.hunt.draft import Choices, Draft


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
        "{s} * pt.maximum(1, abs(x[:, 0]) / (1 + {far}))",
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


def successes(c: Choices, draft: Draft) -> str:
    """Rewards of 0 and 1, by links and likelihoods that are almost alike; what is returned."""
    line = draft.lines.append
    link = c.pick("sigmoid", "sigmoid", "sigmoid", "invprobit")
    line(f"p = pm.math.{link}(mu)")
    form = c.pick(
        "p", "p", "p", "pt.clip(p, 1e-3, 1 - 1e-3)", "0.05 + 0.9 * p", f"pm.math.{link}(0.5 * mu)",
        f"pm.math.{link}(mu + 0.3 * x[:, 0])", "1 - p",
    )  # fmt: skip
    line(
        c.pick(
            f'pm.Bernoulli("r", {form}, observed=reward)',
            f'pm.Bernoulli("r", {form}, observed=reward)',
            f'pm.Potential("r", weight * pm.logp(pm.Bernoulli.dist({form}), reward))',
            f'pm.Potential("r", pt.minimum(weight, 2) * pm.logp(pm.Bernoulli.dist({form}), reward))',
            f'pm.Binomial("r", n=3, p={form}, observed=2 * reward)',
        )
    )
    return c.pick("p", "p", "p", "2 * p", "p ** 2")


def overdispersed(c: Choices, draft: Draft) -> None:
    """Counts whose dispersion is learned, in forms that are almost alike."""
    prior = c.pick(
        "Gamma('alpha', 2, 0.1)", "HalfNormal('alpha', 5)", "Exponential('alpha', 0.3)",
        "LogNormal('alpha', 0, 1)", "InverseGamma('alpha', 2, 3)", "HalfCauchy('alpha', 2)",
        "Uniform('alpha', 0.5, 6)",
    )  # fmt: skip
    draft.lines += [f"alpha = pm.{prior}".replace("'", '"'), "rate = pt.exp(mu)"]
    draft.walls.append("alpha")
    form = c.pick(
        "alpha", "alpha", "alpha", "1 / alpha", "2 / alpha ** 2", "pt.clip(alpha, 0.1, 50)",
        "pt.sqrt(alpha)", "1 + alpha", "alpha * (1 + 0.1 * x[:, 0] ** 2)",
    )  # fmt: skip
    likely = f"pm.NegativeBinomial.dist(mu=rate, alpha={form})"
    draft.lines.append(
        c.pick(
            f'pm.NegativeBinomial("r", mu=rate, alpha={form}, observed=reward)',
            f'pm.NegativeBinomial("r", mu=rate, alpha={form}, observed=reward)',
            f'pm.Potential("r", weight * pm.logp({likely}, reward))',
            f'pm.Potential("r", pt.minimum(weight, 2) * pm.logp({likely}, reward))',
            f'pm.Potential("r", pm.logp({likely}, reward) + 0.5 * reward * pt.log(alpha))',
        )
    )


def likelihood(c: Choices, draft: Draft, mean: str) -> str:
    """The observed variable; what is returned as the mean."""
    line = draft.lines.append
    kind = c.pick(
        *["normal"] * 8, "lag", "ids", "studentt", "laplace", "logistic", "lognormal", "custom",
        "power", "bernoulli", "poisson", "overdispersed", "slice", "scales", "twice", "minibatch" if c.chance(10) else "tau",
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
    elif kind == "scales":  # a variable for each row, before or behind the others
        family = c.pick('Gamma("own", 2, 2', 'InverseGamma("own", 2, 2', 'Exponential("own", 1')
        draft.lines.insert(c.pick(len(draft.lines), 0), f'own = pm.{family}, dims="row")')
        line(f'pm.Normal("r", mu, {draft.scale} / pt.sqrt(own), observed=reward)')
    elif kind == "twice":
        line(f'pm.Normal("r", mu, {draft.scale}, observed=reward)')
        line(f'pm.Normal("r2", 2 * mu, {c.pick("3.0", draft.scale)}, observed=reward + 1)')
    elif kind == "lognormal":
        line(f'pm.LogNormal("r", mu, {draft.scale}, observed=1e-6 + abs(reward))')
        returned = c.pick("mu", f"pt.exp(pt.clip(mu + ({draft.scale}) ** 2 / 2, -9, 9))")
    elif kind == "custom":
        line(
            f"def logp(value, mu, sigma):\n        return {c.pick('pm.logp(pm.Normal.dist(mu, sigma), value)', '-0.5 * ((value - mu) / sigma) ** 2 - pt.log(sigma)')}"
        )
        line(f'pm.CustomDist("r", mu, {draft.scale}, logp=logp, observed=reward)')
    elif kind == "power":
        line(f'pm.Potential("r", weight * pm.logp(pm.Normal.dist(mu, {draft.scale}), {seen(c)}))')
    elif kind == "bernoulli":
        returned, draft.rewards = successes(c, draft), "binary"
    elif kind == "poisson":
        line("rate = pt.exp(pt.clip(mu, -5, 5))")
        line(
            c.pick(
                'pm.Poisson("r", rate, observed=reward)',
                'rate = pt.exp(mu); pm.NegativeBinomial("r", mu=rate, alpha=2.5, observed=reward)',
                'rate = pt.exp(mu); pm.NegativeBinomial("r", mu=rate, alpha=0.3, observed=pt.minimum(reward, 3))',
            )
        )
        returned, draft.rewards = "rate", "count"
    elif kind == "overdispersed":
        overdispersed(c, draft)
        returned, draft.rewards = c.pick("rate", "rate", "rate", "rate * alpha"), "count"
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
