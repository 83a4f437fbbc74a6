"""`.. examples:: NAME`: where the site's code uses a public name, section by section.

Found in the parsed pages: in every block of Python, of a how-to, a notebook or a recipe.
"""

import re
from collections import defaultdict

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import bayesbandit

NAME = re.compile(r"\bbb\.((?:environments|evaluation|extend|ope|plots|systems)\.)?([A-Za-z]\w*)")
ROOMS = ("environments", "evaluation", "extend", "ope", "plots", "systems")
UNNAMED = {  # what is used without its name
    "Decision": re.compile(r"\bdecision\.|\.choose\("),
    "DecisionLog": re.compile(r"\blog\.(replay|verify|frames?)\("),
    "Service": re.compile(r"\bservice\."),
    "extend.History": re.compile(r"\.history\b"),
    "RewardModel": re.compile(r"@bb\.reward_model|bb\.load_model"),
    "posteriors.posterior.Posterior": re.compile(r"\bbb\.fit\(|\.posterior\("),
}
PYTHON = {"python", "ipython3"}


class examples(nodes.General, nodes.Element):
    """To be replaced when all pages have been read."""


class Examples(SphinxDirective):
    required_arguments = 1

    def run(self):
        name = self.arguments[0].removeprefix("bayesbandit.")
        return [examples(name=name)]


def names_in(code):
    """Public names that a text of Python uses."""
    found = {f"{room or ''}{name}" for room, name in NAME.findall(code)}
    return found | {name for name, sign in UNNAMED.items() if sign.search(code)}


def place_of(block, page):
    """The section a block is in: its address, and its titles from the page's on."""
    titles, address = [], page
    section = block.parent
    while section is not None:
        if isinstance(section, nodes.section):
            if not titles:
                address = f"{page}#{section['ids'][0]}"
            titles.insert(0, section.next_node(nodes.title).astext())
        section = section.parent
    return address, " › ".join(titles if len(titles) < 2 else [titles[0], titles[-1]])


def collect(app, doctree):
    page, used = app.env.docname, defaultdict(dict)
    if not page.startswith("reference/") and page != "index":
        for block in doctree.findall(nodes.literal_block):
            if block.get("language") in PYTHON:
                address, title = place_of(block, page)
                for name in names_in(block.astext()):
                    used[name].setdefault(address, title)
    everywhere(app.env)[page] = dict(used)


def everywhere(env):
    if not hasattr(env, "examples_by_page"):
        env.examples_by_page = {}
    return env.examples_by_page


def forget(app, env, page):
    everywhere(env).pop(page, None)


def fill(app, doctree, page):
    for node in list(doctree.findall(examples)):
        places = {}
        for used in (used for _, used in sorted(everywhere(app.env).items())):
            places |= used.get(node["name"], {})
        items = nodes.bullet_list()
        for address, title in places.items():
            target, _, section = address.partition("#")
            uri = app.builder.get_relative_uri(page, target) + (f"#{section}" if section else "")
            link = nodes.reference("", title, refuri=uri, internal=True)
            items += nodes.list_item("", nodes.paragraph("", "", link))
        known = nodes.rubric("", "Examples that use it")
        node.replace_self([known, items] if places else [])


def again(app, env):
    """Pages of the reference, where examples anywhere have changed."""
    return [page for page in env.found_docs if page.startswith("reference/")]


def setup(app):
    assert set(ROOMS) <= set(bayesbandit.__all__)
    app.add_node(examples)
    app.add_directive("examples", Examples)
    app.connect("doctree-read", collect)
    app.connect("env-purge-doc", forget)
    app.connect("env-updated", again)
    app.connect("doctree-resolved", fill)
    return {"parallel_read_safe": False}
