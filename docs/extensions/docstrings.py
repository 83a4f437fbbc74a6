"""Docstrings as the house writes them, turned into reStructuredText.

Prose with `code`, formulas indented by four, lists, and settings as "name: what it is", at the
beginning of a line or of a sentence, which may go on in the next lines, indented or not.
"""

import inspect
import re
from contextlib import suppress

import bayesbandit

ITEM = re.compile(r"(?:^|(?<=\. ))([a-z_]\w*(?:, [a-z_]\w*)*): ")
CODE = re.compile(r"`([^`]+)`(\w?)")
PUBLIC = {name: name for name in (*bayesbandit.__all__, "Declared", "balance_table")}
for room in ("extend", "systems"):
    PUBLIC |= {name: f"{room}.{name}" for name in getattr(bayesbandit, room).__all__}


def linked(match):
    """`code`, which is a link where it names something public."""
    code, after = match.groups()
    name = re.match(r"(?:bb\.)?(?:extend\.|systems\.)?([A-Za-z]\w*)(?:\(.*\))?$", code)
    if name and name[1] in PUBLIC:
        shown = f":py:obj:`{code} <bayesbandit.{PUBLIC[name[1]]}>`"
    else:
        shown = f"``{code}``"
    return shown + (f"\\ {after}" if after else "")


def inline(text):
    """Prose, in which nothing but `code` is markup."""
    parts = re.split(r"(`[^`]+`\w?)", text)
    plain = (re.sub(r"([*|\\])|(?<=\w)(_)(?!\w)", r"\\\1\2", part) for part in parts[::2])
    code = (CODE.sub(linked, part) for part in parts[1::2])
    return "".join(part for pair in zip(plain, [*code, ""], strict=True) for part in pair)


def paragraph(lines, settings):
    """Lines without a blank one between them."""
    if all(line.startswith("    ") for line in lines):
        return ["::", "", *lines]
    if "====" in lines[0]:
        return lines
    if lines[0].startswith("- "):
        items = re.split(r"\n- ", "\n".join(lines)[2:])
        return [f"- {inline(' '.join(item.split()))}" for item in items]
    said = [[None, []]]
    for line in lines:
        at = 0
        for found in ITEM.finditer(line):
            if settings.issuperset(names := found[1].split(", ")):
                said[-1][1].append(line[at : found.start()].strip())
                said.append([", ".join(f"``{name}``" for name in names), []])
                at = found.end()
        said[-1][1].append(line[at:].strip())
    (_, text), *items = [(name, inline(" ".join(filter(None, words)))) for name, words in said]
    listed = [line for name, words in items for line in (name, f"    {words}")]
    return [*([text] if text else []), *([""] if text and items else []), *listed]


def names_of(thing):
    """What a docstring may explain by name: parameters, fields, attributes."""
    names = {name for name in dir(thing) if not name.startswith("_")}
    for part in (thing, getattr(thing, "__init__", None)):
        names |= {*getattr(part, "__annotations__", ())}
        with suppress(TypeError, ValueError):
            names |= {*inspect.signature(part).parameters}
    return names


def rewritten(app, what, name, thing, options, lines):
    if not name.startswith("bayesbandit"):
        return
    blocks = re.split(r"\n[ \t]*\n", "\n".join(lines).strip("\n"))
    settings = names_of(thing)
    lines[:] = [
        line
        for block in blocks
        if block.strip()
        for line in [*paragraph(block.splitlines(), settings), ""]
    ]


def setup(app):
    app.connect("autodoc-process-docstring", rewritten)
    return {"parallel_read_safe": True}
