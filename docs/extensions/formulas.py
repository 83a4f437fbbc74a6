"""Formulas as MathML, which browsers show by themselves: the site loads nothing from elsewhere."""

import re
from html import unescape
from xml.etree import ElementTree

from docutils.utils.math.latex2mathml import tex2mathml

SPACE = "http://www.w3.org/1998/Math/MathML"
ENTITY = re.compile(r"&(?!lt;|gt;|amp;)\w+;")  # of HTML, which XML does not know
ACCENTS = set("ˉ¯ˆ^~˜˙→⃗")


def formula(tex, **settings):
    """MathML. The index of an accented letter stands beside it: docutils puts it below."""
    ElementTree.register_namespace("", SPACE)
    text = ENTITY.sub(lambda name: unescape(name[0]), tex2mathml(tex, **settings))
    root = ElementTree.fromstring(text)
    for node in root.iter(f"{{{SPACE}}}munderover"):
        letter, index, over = node
        if over.text in ACCENTS:
            accented = ElementTree.Element(f"{{{SPACE}}}mover", accent="true")
            accented.extend([letter, over])
            node.tag = f"{{{SPACE}}}msub"
            node[:] = [accented, index]
    return ElementTree.tostring(root, encoding="unicode")


def inline(writer, node):
    writer.body.append(formula(node.astext()))
    raise_skip()


def displayed(writer, node):
    writer.body.append(f'<div class="formula">{formula(node.astext(), as_block=True)}</div>')
    raise_skip()


def raise_skip():
    from docutils.nodes import SkipNode

    raise SkipNode


def setup(app):
    app.add_html_math_renderer(
        "mathml", inline_renderers=(inline, None), block_renderers=(displayed, None)
    )
    return {"parallel_read_safe": True}
