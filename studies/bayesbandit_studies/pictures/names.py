"""What the bandits of the studies look like, and the paper's designs in words, in all pictures."""

from bayesbandit.plots import style

# Names with one look are of one bandit, or never in one picture.
LOOKS = {
    "none": 0, "Thompson": 0, "decision": 2, "estimated": 3, "greedy": 4, "uniform": 4,
    "PolicyTreeTS, model": 33, "PolicyTreeUCB, model": 34,
    "ForestTS": 22, "forest-TS": 22, "ForestUCB": 26,
    "BootstrapLassoTS": 9, "LASSO-TS": 9, "bootstrap LASSO": 9, "lasso": 9,
    "BootstrapRidgeTS": 10, "ridge-TS": 10, "bootstrap ridge": 10, "ridge": 10,
    "BootstrapLassoUCB": 23, "BootstrapRidgeUCB": 24,
    "BayesianLassoTS": 25, "λ learned": 25, "BayesianLassoUCB": 27,
    "ILTCB": 18, "SuperLinUCB": 19, "SuperBLUCB": 20,
    "pooled": 8, "residual": 11, "kernel": 12, "decision, raw": 13,
    "LinTS, grid ÷ 3": 15, "BLTS, mean 1": 17,
    "horseshoe": 2, "Laplace": 4, "pooled, τ learned": 5,  # priors, in notebooks
}  # fmt: skip
DESIGNS = {
    r"synthetic-(well|mis)": r"synthetic example, \1-specified, σ = 0.1",
    r"synthetic-(well|mis), no warm start": r"\1-specified, σ = 0.1, no warm start",
    r"sparse-linear-d(\d+)-q\d+-sigma([\d.]+)": r"sparse design, d = \1, σ = \2",
    r"non-linear": r"non-linear design, σ = 0.1",
    r"breast_cancer": r"breast cancer",
}


def use() -> None:
    """Let all pictures of this process have these looks and words."""
    style.KNOWN.update(LOOKS)
    style.DESIGNS.update(DESIGNS)
