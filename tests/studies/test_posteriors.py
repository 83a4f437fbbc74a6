"""Posteriors in pictures: closed forms as they are, nothing outside the figure."""

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.plots.style import Picture
from bayesbandit_studies import pictures
from tests.pictures import inside

LONG = "a posterior with a name of sixty signs, which is really long"


class Known:
    """A posterior of one variable, exact or by draws."""

    encoder = None

    def __init__(self, mean, sd, draws=None):
        from scipy import stats

        exact = stats.norm(np.asarray(mean, float), np.broadcast_to(sd, np.shape(mean)))
        rng = np.random.default_rng(0)
        self.marginals = {"theta": exact} if draws is None else {}
        self.draws = {"theta": exact.rvs((draws or 2, *np.shape(mean)), random_state=rng)}
        self.coefficients = {"theta": (np.asarray(mean, float), None)}

    def quantiles(self, name, p):
        if name in self.marginals:
            return np.stack([self.marginals[name].ppf(one) for one in p])
        return np.quantile(self.draws[name], p, axis=0)


@pytest.mark.slow
def test_a_closed_form_is_drawn_as_it_is():
    figure = inside(
        pictures.densities({"p": Known([0.0, 5.0], [1.0, 0.01])}, truth={"theta": [0, 5]})
    )
    assert [ax.get_title() for ax in figure.axes] == ["theta[0]", "theta[1]"]
    for ax, mean, sd in zip(figure.axes, (0.0, 5.0), (1.0, 0.01), strict=True):
        x, y = ax.lines[0].get_data()
        np.testing.assert_allclose(
            y, np.exp(-(((x - mean) / sd) ** 2) / 2) / sd / np.sqrt(2 * np.pi)
        )
        assert y.max() == pytest.approx(1 / sd / np.sqrt(2 * np.pi), rel=1e-3)
        assert ax.lines[1].get_xdata()[0] == mean
        assert x[0] < mean - 2.5 * sd
        assert x[-1] > mean + 2.5 * sd
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["p", "truth"]


def test_draws_say_that_they_are_draws():
    figure = inside(pictures.densities({"p": Known(0.0, 1.0, 500), "exact": Known(0.0, 1.0)}))
    texts = [t.get_text() for t in figure.legends[0].get_texts()]
    assert texts == ["p (500 draws)", "exact"]
    (ax,) = figure.axes
    x, y = ax.lines[0].get_data()
    assert np.abs(y - np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)).max() < 0.1


@pytest.mark.slow
def test_many_posteriors_with_long_names():
    many = {f"{LONG} {i}": Known(np.arange(10.0), 1.0 + i) for i in range(30)}
    figure = inside(pictures.coefficients(many, truth=np.arange(10.0)))
    inside(pictures.densities(dict(list(many.items())[:9]), title=LONG * 3))
    inside(pictures.shrinkage(dict(list(many.items())[:7]), np.arange(10.0)))
    looks = {
        (line.get_color(), line.get_marker())
        for line in figure.axes[0].lines
        if line.get_marker() != "None"
    }
    assert len(looks) == 30


def test_intervals_are_quantiles():
    posterior = Known([1.0, -2.0], 0.5)
    (ax,) = inside(pictures.coefficients({"p": posterior}, select=[1])).axes
    ends = sorted(line.get_segments()[0][:, 0].tolist() for line in ax.collections[:2])
    low, lower, upper, high = posterior.marginals["theta"].ppf([[0.05], [0.25], [0.75], [0.95]])[
        :, 1
    ]
    np.testing.assert_allclose(ends, [[low, high], [lower, upper]])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["theta[1]"]


def test_shrinkage_has_equal_axes_and_a_diagonal():
    figure = inside(
        pictures.shrinkage({"p": Known([0.5, 1.0], 1.0)}, [1.0, 2.0], {"zero": [True, False]})
    )
    (ax,) = figure.axes
    assert ax.get_xlim() == ax.get_ylim()
    assert ax.lines[-1].get_xdata().tolist() == [1.0]
    assert ax.lines[-1].get_ydata().tolist() == [0.5]


SEVERAL, ONE = Known(np.zeros(30), 1.0), Known(0.0, 1.0)
REFUSED = [
    (pictures.densities, ({"p": SEVERAL},), "at most 24 elements; theta have 30"),
    (pictures.densities, ({},), "needs one at least"),
    (pictures.densities, ({"p": ONE, "q": Known([0.0], 1.0)}, ["theta"]), "different shapes"),
    (pictures.shrinkage, ({}, [0.0, 1.0]), "needs one at least"),
    (pictures.shrinkage, ({"p": SEVERAL}, [0.0, 1.0]),
     r"raw must be \(30,\), as 'theta' of p; got \(2,\)"),
]  # fmt: skip


def test_what_cannot_be_drawn():
    for draw, given, said in REFUSED:
        with pytest.raises(ValueError, match=said):
            draw(*given)
    for select in ([], [30], [-31]):
        with pytest.raises(ValueError, match="select must be positions of the 30 elements"):
            pictures.coefficients({"p": SEVERAL}, select=select)
    with pytest.raises(ValueError, match=r"the truth of 'theta' must be \(30,\); got \(2,\)"):
        pictures.coefficients({"p": SEVERAL}, truth=[0.0, 1.0])


def test_a_notebook_shows_pictures_without_pyplot():
    figure = pictures.densities({"p": Known(0.0, 1.0)})
    assert isinstance(figure, Picture)
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.slow
def test_what_a_bandit_knows_is_drawn_too():
    bandit = bb.LinTS(2, 2)
    rng = np.random.default_rng(0)
    bandit.play(rng.normal(size=(50, 2)), rng.normal(size=(50, 2)))
    arms = {f"arm {k}": bandit.posterior(k) for k in (0, 1)}
    assert len(inside(pictures.densities(arms)).axes) == 3  # with the intercept
    inside(pictures.coefficients(arms))
