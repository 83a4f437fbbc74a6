"""The site speaks of every public name, command and picture; what builds it is tested by building
it (`.ci/run`)."""

import re
import runpy
from importlib import import_module
from pathlib import Path

import bayesbandit as bb

DOCS = Path(__file__).parents[1] / "docs"
ROOMS = ("engines", "environments", "evaluation", "extend", "ope", "plots", "systems")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")
PAGES = [page for page in DOCS.rglob("*.md") if "api" not in page.parts]
PAGES.append(DOCS.parent / "README.md")


def listed():
    """The names that have a page of the reference."""
    text = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    tables = re.findall(r"autosummary::\n.*?```", text, flags=re.S)
    return re.findall(r"^   ([A-Za-z][\w.]*)$", "\n".join(tables), flags=re.M)


def is_documented(name, room):
    """Functions and classes; constants are said where they are used."""
    return callable(getattr(room, name))


def test_every_public_name_has_a_page():
    wanted = {name for name in bb.__all__ if name not in ROOMS}
    for name in ROOMS:
        room = getattr(bb, name)
        wanted |= {f"{name}.{own}" for own in room.__all__ if is_documented(own, room)}
    names = listed()
    assert len(names) == len(set(names))
    assert wanted <= set(names)


def test_a_page_is_of_something():
    for name in listed():
        room, _, own = f"bayesbandit.{name}".rpartition(".")
        assert getattr(import_module(room), own).__doc__, name


def test_the_chart_is_the_one_that_is_drawn():
    chart = runpy.run_path(str(DOCS / "which_chart.py"))["chart"]
    assert (DOCS / "which.svg").read_text(encoding="utf-8") == chart()


def test_the_chart_is_told_in_words():
    """What the chart says to take is in the text below it, too."""
    steps = runpy.run_path(str(DOCS / "which_chart.py"))
    text = (DOCS / "which.md").read_text(encoding="utf-8")
    for answer in (*(answer for _, answer in steps["STEPS"]), steps["LAST"], steps["ALWAYS"]):
        names = re.findall(r"\w+_\w+|\w+(?=\()|[A-Z]\w*[a-z][A-Z]\w*|BLTS", " ".join(answer))
        assert names
        assert all(name in text for name in names), names


def test_links_lead_somewhere():
    for page in PAGES:
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), (page.name, link)


def test_pictures_have_a_text():
    for page in PAGES:
        for text, picture in re.findall(r"!\[(.*?)\]\(([^)]*)\)", page.read_text(encoding="utf-8")):
            assert len(text) > 10, (page.name, picture)


def stated(doc):
    """A docstring of something with the settings alpha, beta_ and clip, as the site reads it."""

    def thing(alpha, beta_, clip):
        """To be explained."""

    rewritten = runpy.run_path(str(DOCS / "extensions" / "docstrings.py"))["rewritten"]
    lines = doc.splitlines()
    rewritten(None, "function", "bayesbandit.thing", thing, None, lines)
    return "\n".join(lines)


def test_settings_are_told_apart():
    """At the beginning of a line or a sentence, going on in the next line, indented or not."""
    doc = "alpha: a number. beta_, clip: two of\nthem.\n    with more: so.\nother: no setting"
    assert stated(doc).split("\n") == [
        "``alpha``",
        "    a number.",
        "``beta_``, ``clip``",
        "    two of them. with more: so. other: no setting",
        "",
    ]


def test_nothing_but_code_is_markup():
    doc = "A *star*, a tail_ and a|bar of `x_*` and `Ridge`s, `Thompson(0.5)` or `bb.UCB`."
    assert stated(doc).strip() == (
        r"A \*star\*, a tail\_ and a\|bar of ``x_*`` and :py:obj:`Ridge <bayesbandit.Ridge>`\ s, "
        ":py:obj:`Thompson(0.5) <bayesbandit.Thompson>` or :py:obj:`bb.UCB <bayesbandit.UCB>`."
    )


def test_formulas_and_lists_stay_as_they_are():
    doc = "First:\n\n    p = 1\n    q = 2\n\n- one\n  more\n- two"
    assert stated(doc).split("\n") == [
        *("First:", "", "::", "", "    p = 1", "    q = 2", "", "- one more", "- two", "")
    ]


def test_equations_have_numbers_that_the_code_cites():
    equations = re.findall(r"^\$\$(.*)\$\$$", (DOCS / "mathematics.md").read_text(), re.M)
    numbers = [re.search(r"\\qquad \((\d+)\)$", equation) for equation in equations]
    assert [int(found[1]) for found in numbers] == list(range(1, len(equations) + 1))
    sources = [path.read_text() for path in (DOCS.parent / "bayesbandit").rglob("*.py")]
    cited = {int(n) for text in sources for n in re.findall(r"\((\d+)\)\s+of\s+mathematics", text)}
    assert cited == set(range(1, len(equations) + 1))


def test_tables_have_heads():
    for page in PAGES:
        for head in re.findall(r"^(\|.*\|)\n\|[-:| ]+\|$", page.read_text(encoding="utf-8"), re.M):
            assert head.strip("| "), page.name


def test_an_index_stands_beside_its_letter_and_an_accent_above():
    formula = runpy.run_path(str(DOCS / "extensions" / "formulas.py"))["formula"]
    for tex, letter, sign in ((r"\bar{w}_k", "w", "ˉ"), (r"\hat\theta_k", "θ", "ˆ")):
        words = re.sub(r"\s", "", re.sub(r" \w+=\"[^\"]*\"", "", formula(tex)))
        accented = f"<mover><mi>{letter}</mi><mo>{sign}</mo></mover>"
        assert words == f"<math><msub>{accented}<mi>k</mi></msub></math>"
    assert "<munder>" in formula(r"\min_w x", as_block=True)
    math = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    found = re.findall(r"\$+([^$]+)\$+", re.sub(r"```.*?```", "", math, flags=re.S))
    assert len(found) > 50
    assert all("munderover" not in formula(tex) for tex in found)
