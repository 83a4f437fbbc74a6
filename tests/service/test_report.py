"""The page about a log: whole, of one file, and hostile names are text."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from tests.commands import run

pytest.importorskip("sqlalchemy")

from bayesbandit.cli.report import watch

DAY = 86_400.0
BAD = '<script>alert("1")</script>'
ARMS = ["mail", BAD, "\"' onload=x $x^2$ & \\"]


class Page(HTMLParser):
    """The tags, attributes and texts of a page; tables as rows of texts."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.addresses, self.texts, self.rows = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attributes)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, text):
        self.texts.append(text)
        if self.rows:
            self.rows[-1].append(text)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Twenty days with an encoder, late rewards, and from day ten on a level that is new."""
    rng, now = np.random.default_rng(0), [1.7e9]
    fit = pd.DataFrame({"age": rng.normal(40, 10, 200), "city": rng.choice(["Rome", "Oslo"], 200)})
    encoder = bb.Encoder.fit(fit)
    bandit = bb.Bandit(
        ARMS, bb.Ridge(), bb.Thompson(min_probability=0.1), encoder=encoder,
        n_features=len(encoder.features), seed=0,
    )  # fmt: skip
    url = f"sqlite:///{tmp_path_factory.mktemp('report')}/log.db"
    with bb.DecisionLog(url) as log:
        service = bb.Service(bandit, log, "2d", 0.0, clock=lambda: now[0])
        for day in range(20):
            cities = ["Rome", BAD] if day >= 10 else ["Rome", "Oslo"]
            x = pd.DataFrame(
                {"age": rng.normal(60, 10, 10), "city": [cities[i % 2] for i in range(10)]}
            )
            batch = service.decide(x)
            rewards = (batch.arm == "mail").astype(float)
            now[0] += 3600
            service.reward(batch.id[:7].tolist(), rewards[:7])
            now[0] += DAY - 3600
            service.learn()
        yield log, url


def written(url, tmp_path, *words):
    out = tmp_path / "page.html"
    found = run("report", "--log", url, "--out", out, *words)
    assert found.exit_code == 0, found.output
    return Page(out.read_text(encoding="utf-8")), found.said


@pytest.fixture(scope="module")
def page(log, tmp_path_factory):
    """The page about the log, and what the command said."""
    return written(log[1], tmp_path_factory.mktemp("page"))


@pytest.mark.slow
def test_the_page_is_one_file_and_names_are_text(page):
    page, _ = page
    assert not {"script", "link", "iframe", "b"} & set(page.tags)
    assert all(one.startswith("data:image/png;base64,") for one in page.addresses)
    assert page.tags.count("img") == 2
    assert any(BAD.replace('"', '\\"') in text for text in page.texts)  # as JSON


@pytest.mark.slow
def test_its_numbers_are_those_of_the_log(log, page):
    frame = log[0].frame()
    page, said = page
    assert f"{len(frame)} decisions" in said
    weeks = [row for row in page.rows if row and row[0].startswith("2023-")]
    assert sum(int(row[1]) for row in weeks) == len(frame)
    assert sum(int(row[2]) for row in weeks) == frame["rewarded_at"].notna().sum()
    first = frame["decided_at"] < "2023-11-20"
    assert float(weeks[0][4]) == pytest.approx(frame["reward"][first].mean(), abs=1e-4)
    closed = {row[0]: int(row[1]) for row in page.rows if row and row[0] in ("open", "reward")}
    assert closed == {key: (frame["status"] == key).sum() for key in closed}
    assert "refused" not in closed


@pytest.mark.slow
def test_there_is_nothing_to_say_of_no_decision(log):
    for words, said in (
        (["--since", "2030-01-01"], "no decision in this time"),
        (["--since", "soon"], "since must"),
    ):
        found = run("report", "--log", log[1], *words)
        assert found.exit_code == 2
        assert said in found.said


@pytest.mark.slow
def test_a_young_log_and_one_whose_last_decisions_are_open(tmp_path):
    """Nothing is known of rewards, or nothing any more."""
    url = f"sqlite:///{tmp_path}/log.db"
    with bb.DecisionLog(url) as log:
        service = bb.Service(bb.LinTS([1, "1", "as decided"], 2, seed=0), log)
        ids = service.decide(np.zeros((30, 2))).id
        written(url, tmp_path)
        service.reward(ids[:20], np.arange(20.0))
        service.learn()
        page, said = written(url, tmp_path)
        tables, figures, _ = watch(log)
        assert tables["By week"]["low"].isna().all()  # some rewards are not known
        for name in ("counts", "shares"):
            low, high = figures[name].axes[0].get_xlim()
            assert 0 < high - low <= 3, name  # days
        service.reward(ids[20:22], [0.0, 0.0], at=["0001-01-02", "9999-12-30"])
        written(url, tmp_path)  # not a day for each of 10,000 years
    assert "10 open" in said
    week = next(row for row in page.rows if row and row[0].startswith("20"))
    assert [float(text) for text in week[1:5]] == [30, 20, 10, 9.5]


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_it_says_whether_rewards_have_changed(shared, tmp_path):
    url, now, rng = f"sqlite:///{tmp_path}/log.db", [1.7e9], np.random.default_rng(0)
    model = bb.Shared(bb.Ridge()) if shared else bb.Ridge()
    bandit = bb.Bandit(["a", "b"], model, bb.Thompson(min_probability=0.1), n_features=1, seed=0)
    said = []
    with bb.DecisionLog(url) as log:
        service = bb.Service(bandit, log, clock=lambda: now[0])
        for mean in (0.0, 3.0):
            batch = service.decide(rng.normal(size=(150, 2, 1) if shared else (150, 1)))
            service.reward(batch.id.tolist(), mean + rng.normal(size=150))
            now[0] += DAY
            service.learn()
            _, output = written(url, tmp_path)
            said.append(output)
    assert "Nothing says that the rewards have changed" in said[0]
    found = re.search(r"have changed: the evidence passed 100 at reward (\d+)", said[1])
    assert found is not None
    assert 150 < int(found[1]) < 230


def test_decisions_that_were_not_shown_earn_nothing(tmp_path):
    """The others are judged as if they had not been, also if their context is erased."""
    now = [1.764e9]
    with bb.DecisionLog(f"sqlite:///{tmp_path}/log.db") as log:
        bandit = bb.LinTS(["a", "b"], 1, seed=0)
        service = bb.Service(bandit, log, "1h", activation=True, clock=lambda: now[0])
        ids = [f"d{i}" for i in range(60)]
        service.decide(np.linspace(-1, 1, 60)[:, None], id=ids)
        service.reward(ids[1:], np.arange(59.0) % 2)
        assert "60 decisions" in watch(log)[2]  # and nothing to judge
        service.activate(ids[1:])
        now[0] += DAY
        while service.learn():
            pass
        log.erase(ids[1:2])
        (week,) = watch(log)[0]["By week"].to_dict("records")
    assert week["value"] == pytest.approx(29 / 59)
    assert week["low"] < week["value"] < week["high"]
