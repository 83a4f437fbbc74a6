"""Random priors of the noise and of the coefficients, and potentials on them."""

from __future__ import annotations

from tests.hunt.draft import Choices, Draft


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
        "scaled",
    ]
    if not draft.arm:
        kinds += ["mvnormal", "walk", "zerosum"] if d > 1 else []
        kinds += ["design"] if d > 1 else []
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
        case "spread" | "learned" | "scaled":
            family = c.pick(
                'HalfNormal("tau", 1)',
                'InverseGamma("tau", 2, 2)',
                'HalfCauchy("tau", 1)',
                'Exponential("tau", 1)',
                'Gamma("tau", 2, 1)',
            )
            body(f"tau = pm.{family}")
            draft.walls.append("tau")
            centre = "0"
            if kind == "learned" or (kind == "scaled" and c.chance(50)):
                body('centre = pm.Normal("centre", 0, 2)')
                centre = "centre"
            if kind == "scaled":
                body(f'raw = pm.Normal("raw", 0, {c.pick("1", width)}, dims={where})')
                product = c.pick(
                    "tau * raw", "raw * pt.sqrt(tau)", "raw / tau", "0.5 * tau * raw",
                    "tau * raw + 0.1 * raw", "-raw * tau",
                )  # fmt: skip
                form = c.pick("{}", 'pm.Deterministic("theta", {})')
                body(f"theta = {form.format(f'{centre} + {product}')}")
            else:
                body(
                    f'theta = pm.Normal("theta", {centre}, {c.pick("tau", "pt.sqrt(tau)")}, dims={where})'
                )
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
        case "design":
            body(
                f'theta = pm.MvNormal("theta", np.zeros({d}), tau=np.eye({d}) + x.T @ x / x.shape[0], dims={where})'
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
