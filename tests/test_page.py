"""A run on one page."""

from base64 import b64decode
from html.parser import HTMLParser

import pandas as pd

from bayesbandit.evaluation.page import page

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
    table = pd.DataFrame({NASTY: ["a", NASTY], "regret": [0.25, float("nan")]})
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
    assert any('"seed": 7' in cell for cell in read.cells)
