"""Settings in one line, without defaults; results as small tables in a notebook, escaped;
a run on one page."""

import re
from base64 import b64decode
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.cli.bandits import BANDITS
from bayesbandit.evaluation.page import page
from bayesbandit.runtime.shown import MAX_ROWS, in_full

SETTINGS = {
    "Ridge()": bb.Ridge(),
    "Ridge(ridge='cv', folds=3)": bb.Ridge("cv", folds=3),
    "Thompson()": bb.Thompson(),
    "Thompson(alpha=0.5, min_probability=0.01)": bb.Thompson(0.5, min_probability=0.01),
    "Boltzmann(temperature=0.2)": bb.Boltzmann(0.2),
    "InversePropensity(propensity='pooled')": bb.InversePropensity(propensity="pooled"),
    "KernelBalance(landmarks=50)": bb.KernelBalance(landmarks=50),
    "ResidualBalance()": bb.ResidualBalance(),
    "Shared(Ridge(half_life=7.0))": bb.Shared(bb.Ridge(half_life=7.0)),
    "Forest(trees=40)": bb.Forest(trees=40),
    "PolicyTree(base=Ridge(ridge=2.0))": bb.systems.PolicyTree(bb.Ridge(2.0)),
    "PolicyMixture(psi=1.0)": bb.systems.PolicyMixture(psi=1.0),
}
EVIL = "<script>alert('1 & 2')</script>"


def cells(text):
    """The texts of an HTML table's cells, row by row: it is well-formed."""
    table = ElementTree.fromstring(text)
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


@pytest.mark.parametrize("text", SETTINGS)
def test_only_settings_that_differ_from_their_defaults_are_shown(text):
    assert repr(SETTINGS[text]) == text


def test_settings_that_are_kept_and_compared_are_shown_in_full():
    with in_full():
        text = repr(bb.LinTS(2, 3))
    assert "Ridge(ridge=1.0, variance='empirical_bayes', intercept=True, " in text
    assert "Thompson(alpha=1.0)" in text
    assert "Unweighted()" in text
    assert repr(bb.LinTS(2, 3)) == "Bandit(2 arms, Ridge(), Thompson(), n_features=3)"


@pytest.mark.parametrize("name", BANDITS)
def test_a_bandit_is_shown_in_one_line(name):
    assert "\n" not in repr(getattr(bb, name)(["a", "b"], 2))


def test_stored_results_are_of_all_settings():
    """A default that changes makes other results, though a bandit is shown without its defaults."""
    iris = bb.environments.bundled("iris")
    [said] = bb.Experiment([iris], {"LinTS": bb.LinTS}, 5, 1).describe()["bandits"].values()
    assert "ridge=1.0" in said


def test_names_of_arms_are_escaped_in_a_notebook(rng):
    bandit = bb.LinTS([EVIL, "b"], 2)
    x = rng.normal(size=(3, 2))
    batch = bandit.choose(x)
    bandit.observe(batch, [1.0, 0.0, 1.0])
    one = bandit.choose(x[0], arms=[EVIL])
    log = bb.ope.Log.of(bandit.history)
    found = bb.ope.evaluate(log, {EVIL: np.full((3, 2), 0.5), "logged": None})
    for thing in (bandit, batch, one, found):
        text = thing._repr_html_()
        assert "<script" not in text
        assert any(EVIL in cell for row in cells(text) for cell in row)


def test_what_a_table_tells(rng):
    bandit = bb.LinTS(["a", "b"], 2)
    x = rng.normal(size=(30, 2))
    decision = bandit.choose(x)
    bandit.observe(decision[:30], np.ones(30))
    decision = bandit.copy().choose(x)
    told = dict(cells(bandit._repr_html_()))
    assert told["arms"] == "a, b"
    assert told["model"] == "Ridge()"
    assert (told["contexts decided"], told["rewards learned"]) == ("30", "30")
    assert decision.ids is None
    head, *rows, more = cells(decision._repr_html_())
    assert decision.ids is None
    assert head == ["context", "arm", "propensity"]
    assert [row[1] for row in rows] == decision.arm[:MAX_ROWS].tolist()
    assert more == ["… and 10 more"]
    one = bandit.choose(x[0])
    head, *rows = cells(one._repr_html_())
    assert head == ["arm", "mean", "sd", "probability"]
    assert [float(row[3]) for row in rows] == pytest.approx(one.probabilities, rel=1e-3)


def test_a_posterior_in_a_notebook(rng):
    x = rng.normal(size=(20, 2))
    bandit = bb.LinTS(["a", "b"], 2)
    bandit.update(x, ["a"] * 20, x[:, 0])
    head, *rows = cells(bandit.posterior("a")._repr_html_())
    assert head == ["feature", "mean", "sd"]
    assert [row[0] for row in rows] == ["0", "1", "constant"]
    mean, _ = bandit.posterior("a").coefficients["theta"]
    assert [float(row[1]) for row in rows] == pytest.approx(mean, rel=1e-3, abs=1e-12)
    told = dict(cells(bb.fit(bb.load_model("ridge"), x, x[:, 0])._repr_html_()))
    assert told["rows"] == "20"
    assert re.search(r"\btheta\b", told["variables"])


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (960).to_bytes(4) + (600).to_bytes(4)
NASTY = '<b>&"|name'


class Read(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.pictures, self.cells, self.open = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "img":
            self.pictures.append(dict(attrs))
        elif tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th", "p", "h1", "pre"):
            self.cells.append(data)


def test_it_holds_all_and_needs_no_other_file():
    table = pd.DataFrame({NASTY: ["a", NASTY], "mean_regret": [0.25, float("nan")]})
    table["never_known"] = float("nan")
    html = page(NASTY, "LinTS is best.", {"r": ("Regret", PNG)}, {NASTY: table}, {"seed": 7})
    read = Read(html)
    assert read.open == []
    assert "b" not in read.tags  # names are no markup
    [picture] = read.pictures
    assert picture["alt"] == "Regret"
    assert picture["width"] == "640"
    assert b64decode(picture["src"].removeprefix("data:image/png;base64,")) == PNG
    assert "http" not in html
    for text in (NASTY, "LinTS is best.", "0.25", "–"):
        assert text in read.cells
    assert "mean regret" in read.cells
    assert "never known" not in read.cells
    assert any('"seed": 7' in cell for cell in read.cells)
