"""Texts of the studies' tables."""

from bayesbandit_studies.tables import share

TEXTS = {
    "0 (≤ 28)": share(0, 10),  # Wilson's limits of 0 of 10: 0 and .2775
    "100 (≥ 72)": share(10, 10),
    "25 ± 12": share(3, 12),
    "0.5 ± 0.5": share(1, 200, digits=1),
    "99.8 ± 0.2": share(399, 400),  # near an end is not the end
    "0.01 ± 0.01": share(1, 10_000),
}


def test_shares_with_their_errors_are_never_lost_nor_endless():
    assert {text: text for text in TEXTS} == TEXTS
    assert share(0, 0) == "–"
