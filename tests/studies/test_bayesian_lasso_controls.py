"""The pseudocode's two differences, one by one."""

import pytest

from bayesbandit_studies import bayesian_lasso_controls as study


@pytest.mark.slow
def test_four_combinations_are_played():
    described = study.STUDY.experiment().describe()["bandits"]
    for name, draws in study.DRAWS.items():
        assert f"frozen={draws == 'frozen'}" in described[name]
        constant = "intercept=Prior(" in described[name]
        assert constant == (name in (study.OURS, study.WITH))
        assert "lambda2=1.0, sigma2=0.01" in described[name]
    assert "intercept=False" in described[study.LINEAR]
