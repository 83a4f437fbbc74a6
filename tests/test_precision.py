"""`pytensor.config.floatX` is the user's affair: every number here is of double precision."""

import numpy as np
import pytensor
import pytest

import bayesbandit as bb
from bayesbandit.inference import plan
from bayesbandit.inference.plan import Cache
from bayesbandit.runtime.pytensor_lock import COMPILE
from tests import declarations as declared


def fitted(model, floatx, monkeypatch, **how):
    """Mean, sd, coefficients and log likelihood by plans made from scratch."""
    x, reward, weight = declared.rows()
    arm = {"arm": np.arange(40) % 2} if model.takes_arm else {}
    monkeypatch.setattr(plan, "_built", Cache(64, plan.KEPT_BYTES, lambda _: 0))
    with pytensor.config.change_flags(floatX=floatx):
        posterior = bb.fit(model, x, reward, weight, seed=1, draws=20, chains=2, **arm, **how)
        coefficients = [np.concatenate([np.ravel(v) for v in m])
                        for m in posterior.coefficients.values()]  # fmt: skip
        tree = posterior.to_datatree(2, 20)
        groups = [v.values for k in ("prior", "log_likelihood") if k in tree.children
                  for v in tree[k].data_vars.values()]  # fmt: skip
        found = [posterior.mean(x), posterior.sd(x), *coefficients, *groups]
    assert pytensor.config.floatX == "float64"
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "how"),
    [
        (declared.known, {}),
        (declared.lasso, {}),
        (declared.heavy, {}),
        (declared.known, {"engine": "laplace"}),
    ],
    ids=lambda v: getattr(v, "name", v),
)
def test_a_fit_is_bit_for_bit_that_of_double_precision(model, how, monkeypatch):
    double = fitted(model, "float64", monkeypatch, **how)
    single = fitted(model, "float32", monkeypatch, **how)
    for a, b in zip(double, single, strict=True):
        assert b.dtype == np.float64
        np.testing.assert_array_equal(a, b)


def test_the_setting_comes_back_also_after_an_error():
    with pytensor.config.change_flags(floatX="float32"):
        with COMPILE, COMPILE:
            assert pytensor.config.floatX == "float64"
        with pytest.raises(ZeroDivisionError), COMPILE:
            raise ZeroDivisionError
        assert pytensor.config.floatX == "float32"
