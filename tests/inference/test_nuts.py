"""The sampler: right where the answer is known, compiled once, reproducible, clear in failure."""

import _thread
import signal
import threading

import arviz as az
import numpy as np
import nutpie
import pytest

from bayesbandit.inference import nuts
from bayesbandit.inference.plan import plan
from bayesbandit.posteriors.fitting import fit
from tests import declarations as declared

DRAWS, CHAINS = 500, 2


class Panic(BaseException):
    """As Rust's panics come to Python."""


@pytest.fixture(scope="module")
def engine():
    return plan(declared.known, 3, engine="nuts").method


def agrees(found, mean, covariance, errors=4.0):
    """Whether means and sds are within so many Monte-Carlo standard errors."""
    theta, ess = found.values["theta"], found.diagnostics.ess["theta"]
    sd = np.sqrt(np.diag(covariance))
    off = np.abs(theta.mean(axis=(0, 1)) - mean) / (sd / np.sqrt(ess))
    off_sd = np.abs(theta.std(axis=(0, 1)) - sd) / (sd / np.sqrt(2 * ess))
    return (off < errors).all() and (off_sd < errors).all()


@pytest.mark.slow
def test_the_closed_form_is_met_for_any_rows_by_one_compilation(engine, monkeypatch):
    few, many = declared.data(30), declared.data(60, seed=1)
    first = engine.sample(few, DRAWS, CHAINS, seed=1)
    assert first.values["theta"].shape == (CHAINS, DRAWS, 3)
    assert agrees(first, *declared.ridge(**few))
    assert first.divergences == 0
    assert 0.5 < first.acceptance <= 1.0
    monkeypatch.setattr(nutpie, "compile_pymc_model", None)  # compiled once is enough
    warm = engine.sample(many, DRAWS, CHAINS, seed=2, start=first.state)
    assert agrees(warm, *declared.ridge(**many))
    again = engine.sample(many, DRAWS, CHAINS, seed=2, start=first.state)
    np.testing.assert_array_equal(again.values["theta"], warm.values["theta"])
    other = engine.sample(many, DRAWS, CHAINS, seed=3, start=first.state)
    assert not np.array_equal(other.values["theta"], warm.values["theta"])
    wider = engine.sample(many, 20, 3, seed=2, start=first.state)  # more chains than states
    assert wider.values["theta"].shape == (3, 20, 3)


def test_a_panic_is_a_runtime_error(monkeypatch):
    model = declared.known.build(*declared.rows())
    engine = nuts.match(model)

    def panic(*_, **__):
        raise Panic("index out of bounds\nat src/lib.rs")

    monkeypatch.setattr(nutpie, "compile_pymc_model", panic)
    with pytest.raises(RuntimeError, match="cannot compile the model: Panic: index out of bounds"):
        engine.sample(declared.data(40))


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"tune": 10**8}, {"draws": 10**8}])
def test_an_interrupt_is_one(engine, settings):
    """Nutpie would return the draws so far, from each chain as many as it has."""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # or it draws for ever
    engine.sample(declared.data(30), 20, 1, tune=20)  # compiles
    threading.Timer(0.3, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        engine.sample(declared.data(30), chains=2, seed=1, **settings)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesbandit.inference.draws.PoorDiagnostics")
def test_nuts_takes_all_knobs(monkeypatch):
    asked = {}

    def record(compiled, **settings):
        asked.update(settings)
        return sample(compiled, **settings)

    sample = nutpie.sample
    monkeypatch.setattr(nutpie, "sample", record)
    rows = declared.rows()
    how = {"draws": 30, "chains": 2, "seed": 1, "engine": "nuts", "tune": 60}
    close = fit(declared.known, *rows, **how, target_accept=0.99, cores=1)
    assert asked.items() >= {"tune": 60, "target_accept": 0.99, "cores": 1}.items()
    loose = fit(declared.known, *rows, **how, target_accept=0.6)
    assert close.known.acceptance > loose.known.acceptance
    assert close.known.stats["step_size"].mean() < loose.known.stats["step_size"].mean()


@pytest.mark.slow
def test_the_no_u_turn_sampler_tells_arviz_of_itself():
    x, reward, weight = declared.rows()
    posterior = fit(declared.known, x, reward, weight, engine="nuts", seed=1)
    tree = posterior.to_datatree()
    stats = tree["sample_stats"]
    wanted = {"lp", "diverging", "energy", "tree_depth", "step_size", "acceptance_rate"}
    assert wanted <= set(stats.data_vars)
    assert all(stats[name].dims == ("chain", "draw") for name in wanted)
    assert float(stats["acceptance_rate"].mean()) == posterior.diagnostics.acceptance
    theta = posterior.known.values["theta"]  # of a model without a transformation
    weighted = -0.5 * weight * (reward - theta @ x.T) ** 2 / declared.SIGMA**2
    expected = weighted.sum(axis=-1) - 0.5 * (theta**2).sum(axis=-1) / 4.0
    off = stats["lp"].values - expected
    np.testing.assert_allclose(off, off[0, 0], atol=1e-8)
    assert az.bfmi(tree) is not None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesbandit.inference.draws.PoorDiagnostics")
def test_a_state_from_which_nothing_can_be_drawn_gives_way_to_a_cold_start():
    engine, rows = plan(declared.known, 3, engine="nuts").method, declared.data(20)
    far = np.full((1, 3), 1e200)
    warm = engine.sample(rows, 50, 1, seed=2, start=far)
    cold = engine.sample(rows, 50, 1, seed=2)
    np.testing.assert_array_equal(warm.values["theta"], cold.values["theta"])
