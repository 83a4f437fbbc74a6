"""Declarations that were once answered wrongly, with rows that show it.

Each must be answered rightly or refused with a reason. Kinds: "fault" (an operation that clears
another's fault), "rows" (structure that a few template rows do not show), "template" (values read
while the graph is built), "stale" (surroundings that change), "mean" (means that depend on rewards
or weights), "idiom" (what PyMC allows).
"""

from __future__ import annotations

from tests.hunt.case import Case
from tests.hunt.traps import (
    FAR,
    HORSESHOE,
    IDS,
    LONG,
    NORMAL,
    POSITIVE,
    SCALE,
    SD,
    VARIANCE,
    WEIGHTED,
    by_rows,
    declared,
    fault,
    idiom,
    mean,
    normal,
    stale,
    template,
)

KNOWN: list[Case] = [
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
