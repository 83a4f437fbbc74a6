"""Priors as values: models are written as YAML and read back."""

import json
from itertools import pairwise
from time import process_time

import numpy as np
import pytest

import bayesbandit as bb
from tests.test_model import robust, shared


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("Normal", "prior 'theta' of robust must be a bb.Prior, or a number.*got 'Normal'"),
        (True, "must be a bb.Prior, or a number"),
        ([], "must not be an empty array"),
        (["a"], "prior 'theta' of robust must be numbers"),
        (bb.Prior("Normal", dims="arm"), "has the dimension 'arm'; allowed: feature, row"),
        (
            bb.Prior("Normal", mu=bb.Prior("Normal", dims="group"), dims=("feature", "group")),
            "has the dimension 'group'; allowed: feature, row",
        ),
        (bb.Prior("Normal", sigma=np.nan), "sigma of prior 'theta' of robust must be a number"),
        (bb.Prior("Normal", mu=np.array([1.0, np.nan])), "must be a number; got .*nan"),
        (bb.Prior("Normal", mu=bb.Prior("Gamma", mu=np.nan)), "must be a number; got nan"),
        (bb.Prior("Normal", sigma=np.inf), "sigma of prior 'theta' .*must be finite; got inf"),
    ],
)
def test_a_prior_is_checked(prior, message):
    with pytest.raises((TypeError, ValueError), match=message):
        robust.with_priors(theta=prior)


def test_bounds_may_be_infinite():
    half = bb.Prior("TruncatedNormal", mu=0, sigma=1, lower=0, upper=np.inf)
    for prior in (bb.Prior("Uniform", lower=0, upper=np.inf), half):
        assert robust.with_priors(sigma=prior).priors["sigma"] == prior


ODD = robust.with_priors(
    theta=bb.Prior(
        "Normal", mu=bb.Prior("Normal", mu=np.array([0.1, 1e-20, 3]), sigma=1, dims="feature"),
        sigma=bb.Prior("Gamma", alpha=np.float64(1 / 3), beta=2), dims="feature", centered=False,
    ),
    sigma=bb.Prior("Normal", mu=0, sigma=1, transform="exp"),
)  # fmt: skip


@pytest.mark.parametrize(
    "model",
    [
        robust,
        shared,
        ODD,
        robust.with_priors(theta=np.array([0.1, 2.0, -1e22]), sigma=1 / 3),
        shared.with_priors(theta=np.full((2, 3), np.pi), sigma=1e20),
    ],
    ids=["priors", "arms", "odd", "array", "matrix"],
)
def test_reads_back_exactly(model):
    again = bb.RewardModel.from_yaml(model.to_yaml())
    assert again == model
    assert again.to_yaml() == model.to_yaml()
    assert repr(again) == repr(model)


def test_text_is_for_people():
    assert robust.with_priors(sigma=0.5).to_yaml() == (
        "name: robust\n"
        "priors:\n"
        "  theta:\n"
        "    dist: Normal\n"
        "    kwargs: {mu: 0, sigma: 1}\n"
        "    dims: [feature]\n"
        "  sigma: 0.5\n"
    )
    model = bb.RewardModel.from_yaml("name: robust\npriors: {sigma: 1e-3}")
    assert model == robust.with_priors(sigma=0.001)


SIGMA = "name: robust\npriors: {sigma: %s}"
WRONG_TEXTS = [
    ("name: robust\npriors: {tau: 1}", "robust has no prior 'tau'; its priors: theta, sigma"),
    ("name: robust\nprior: {}", "unknown key 'prior'; allowed: name"),
    ("priors: {}", "must have a 'name'"),
    ("name: robust\npriors: [1]", r"priors must be a mapping; got \[1\]"),
    ("name: [", "must be YAML"),
    ("name: no_such_model", "there is no model 'no_such_model'; there are: .*ridge"),
    (f"name: {'x' * 300}", "there is no model 'xxx"),
    ("name: ''", "the text names '' as its model, which is not a bare name"),
]
WRONG_PRIORS = {  # of sigma, and what is said
    "{dist: HalfNorml}": "cannot name the distribution 'HalfNorml'; allowed: .*Gamma",
    # its draws would start a C compiler
    "{dist: GARCH11, kwargs: {omega: 9}}": "cannot name the distribution 'GARCH11'",
    "{dist: HalfNormal, kwargs: {sd: 1}}": "HalfNormal has no parameter 'sd'; allowed: sigma, tau",
    "{dist: HalfNormal, args: {sigma: 1}}": "'sigma': unknown key 'args'; allowed: dist, kwargs",
    "{dist: HalfNormal, kwargs: {sigma: {dist: Nrmal}}}": "'sigma'.sigma: a text cannot .*'Nrmal'",
    "{kwargs: {}}": "prior 'sigma' has no 'dist'",
    "yes": "prior 'sigma' must be a number, a list",
    "one": "prior 'sigma' must be a number; got 'one'",
    "{dist: HalfNormal, dims: arm}": "allowed: feature, row",
    "{dist: HalfNormal, transform: nix}": "'sigma': .*nix",
    "{dist: Normal, transform: __delattr__}": "cannot name the transform .* softplus",
    "{dist: Normal, kwargs: {mu: {dist: Normal, transform: kron}}}": "cannot name the transform",
    "{dist: Gamma, centered: false}": "'sigma': .*'Gamma'",
    "{class: os.system, data: {command: ls}}": "'class'",
    "!!python/name:os.system ": "must be YAML: .*python/name",
    "{dist: HalfNormal, kwargs: {sigma: .nan}}": "sigma of prior 'sigma' .* must be a number; got",
    f"{{dist: HalfNormal, kwargs: {{sigma: 1{'0' * 400}}}}}": "must be numbers: int too large",
    f"1{'0' * 5000}": "must be YAML: .*4300",
}


@pytest.mark.parametrize(
    ("text", "message"),
    WRONG_TEXTS + [(SIGMA % prior, message) for prior, message in WRONG_PRIORS.items()],
)
def test_a_wrong_text_is_told_what_is_allowed(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        bb.RewardModel.from_yaml(text)
    assert "\n" not in str(caught.value)


def test_other_variable_factories_are_not_written():
    from pymc_extras.prior import Censored

    model = robust.with_priors(sigma=Censored(bb.Prior("HalfNormal", sigma=2), lower=0.1))
    with pytest.raises(TypeError, match="prior 'sigma' cannot be written as text: Censored"):
        model.to_yaml()


def test_what_a_text_cannot_name_is_not_written():
    """What is written can be read; a transform that the program has registered is known."""
    from pymc_extras.prior import CUSTOM_TRANSFORMS, register_tensor_transform

    odd = bb.Prior("Normal", transform="sin")
    for prior in (odd, bb.Prior("Normal", mu=odd)):
        model = robust.with_priors(theta=prior)
        with pytest.raises(ValueError, match="cannot name the transform 'sin'"):
            model.to_yaml()
    register_tensor_transform("sin", np.sin)
    try:
        assert bb.RewardModel.from_yaml(model.to_yaml()).to_yaml() == model.to_yaml()
    finally:
        del CUSTOM_TRANSFORMS["sin"]


NINE = [f"{k}: &{k} [{', '.join([f'*{before}'] * 9)}]" for before, k in pairwise("abcdefghijkl")]
MERGED = [
    f"{k}: &{k} {{<<: [{', '.join([f'*{before}'] * 9)}]}}" for before, k in pairwise("abcdefghij")
]
BOMBS = {
    "laughs": "\n".join(["name: &a [l, l]", *NINE]),
    "merged": "\n".join(["a: &a {k: v}", *MERGED]),
    "of itself": "name: robust\npriors: {sigma: &p {dist: HalfNormal, kwargs: {sigma: *p}}}",
    "deep priors": f"name: robust\npriors: {{sigma: {'{dist: Normal, kwargs: {mu: ' * 999}",
    "long": f"name: [{'x' * 10**5}]",
    "long name": f"name: {'x' * 10**5}.y",
    "long number": f"name: robust\npriors: {{sigma: {'x' * 10**5}}}",
}  # fmt: skip


@pytest.mark.parametrize("kind", BOMBS)
def test_a_small_text_does_not_become_a_large_one(kind):
    """Nor does what is said of it; it takes no time."""
    start = process_time()
    with pytest.raises(ValueError, match=r"^a model's text |^the text |prior 'sigma'") as caught:
        bb.RewardModel.from_yaml(BOMBS[kind])
    assert len(str(caught.value)) < 400
    assert process_time() - start < 20


def test_a_text_runs_no_file(tmp_path):
    evil, ran = tmp_path / "evil.py", tmp_path / "ran"
    evil.write_text(f"open({str(ran)!r}, 'w').close()\n")
    for name in (str(evil), f"{evil}:model", "../evil.py", "evil.py", str(tmp_path)):
        with pytest.raises(ValueError, match="is not a bare name"):
            bb.RewardModel.from_yaml(f"name: {json.dumps(name)}\npriors: {{}}\n")
    assert not ran.exists()


def test_a_prior_of_another_length_is_named():
    ridge = bb.load_model("ridge_known_noise")
    for name, wrong in (
        ("mu", bb.Prior("Normal", mu=np.zeros(3), sigma=1, dims="feature")),
        ("sigma", bb.Prior("Normal", mu=0, sigma=np.ones(3), dims="feature")),
    ):
        said = rf"{name} of the prior of theta has the shape \(3,\), .* feature, are here \(2,\)"
        with pytest.raises(ValueError, match=said) as caught:
            bb.Bandit(2, ridge.with_priors(theta=wrong), bb.Thompson(), n_features=2)
        assert any("'ridge_known_noise'" in note for note in caught.value.__notes__)
        bb.Bandit(2, ridge.with_priors(theta=wrong), bb.Thompson(), n_features=3)
