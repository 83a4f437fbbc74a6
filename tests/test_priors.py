"""Priors as values: models are written as YAML and read back."""

import numpy as np
import pytest

import bayesbandit as bb
from tests.test_model import robust, shared


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("Normal", "prior 'theta' of robust must be a bb.Prior, or a number.*got 'Normal'"),
        (True, "must be a bb.Prior, or a number"),
        (np.nan, "prior 'theta' of robust must be finite"),
        ([], "must not be an empty array"),
        (["a"], "prior 'theta' of robust must be numbers"),
        (bb.Prior("Normal", dims="arm"), "has the dimension 'arm'; allowed: feature, row"),
        (
            bb.Prior("Normal", mu=bb.Prior("Normal", dims="group"), dims=("feature", "group")),
            "has the dimension 'group'; allowed: feature, row",
        ),
    ],
)
def test_a_prior_is_checked(prior, message):
    with pytest.raises((TypeError, ValueError), match=message):
        robust.with_priors(theta=prior)


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: robust\npriors: {tau: 1}", "robust has no prior 'tau'; its priors: theta, sigma"),
        ("name: robust\nprior: {}", "unknown key 'prior', did you mean 'priors'.*allowed: name"),
        ("priors: {}", "must have a 'name'"),
        ("name: robust\npriors: [1]", r"priors must be a mapping; got \[1\]"),
        ("name: [", "must be YAML"),
        ("name: no_such_model", "there is no model 'no_such_model'; there are: .*ridge"),
        (
            "name: robust\npriors: {sigma: {dist: HalfNorml}}",
            "prior 'sigma': PyMC has no distribution 'HalfNorml', did you mean 'HalfNormal'.*Gamma",
        ),
        ("name: robust\npriors: {sigma: {dist: Model}}", "PyMC has no distribution 'Model'"),
        ("name: robust\npriors: {sigma: {dist: [Gamma]}}", "PyMC has no distribution"),
        (
            "name: robust\npriors: {sigma: {dist: HalfNormal, kwargs: {sd: 1}}}",
            "prior 'sigma': HalfNormal has no parameter 'sd'; allowed: sigma, tau",
        ),
        (
            "name: robust\npriors: {sigma: {dist: HalfNormal, args: {sigma: 1}}}",
            "prior 'sigma': unknown key 'args', did you mean 'kwargs'.* allowed: dist, kwargs",
        ),
        (
            "name: robust\npriors: {sigma: {dist: HalfNormal, kwargs: {sigma: {dist: Nrmal}}}}",
            "prior 'sigma'.sigma: PyMC has no distribution 'Nrmal'",
        ),
        ("name: robust\npriors: {sigma: {kwargs: {}}}", "prior 'sigma' has no 'dist'"),
        ("name: robust\npriors: {sigma: yes}", "prior 'sigma' must be a number, a list"),
        ("name: robust\npriors: {sigma: one}", "prior 'sigma' must be a number; got 'one'"),
        ("name: robust\npriors: {sigma: {dist: HalfNormal, dims: arm}}", "allowed: feature, row"),
        ("name: robust\npriors: {sigma: {dist: HalfNormal, transform: nix}}", "'sigma': .*nix"),
        ("name: robust\npriors: {sigma: {dist: Gamma, centered: false}}", "'sigma': .*'Gamma'"),
        ("name: robust\npriors: {sigma: {class: Nix, data: 1}}", "prior 'sigma': .*Nix"),
    ],
)  # fmt: skip
def test_a_wrong_text_is_told_what_is_allowed(text, message):
    with pytest.raises(ValueError, match=message):
        bb.RewardModel.from_yaml(text)


def test_other_variable_factories_read_back():
    from pymc_extras.prior import Censored

    model = robust.with_priors(sigma=Censored(bb.Prior("HalfNormal", sigma=2), lower=0.1))
    assert bb.RewardModel.from_yaml(model.to_yaml()) == model
