"""`commands`: every command of the command line, with its arguments and options as they are."""

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from bayesbandit.cli.app import app as commands


def item(part):
    """An argument or option, and what it is."""
    names = ", ".join(part.opts) if part.param_type_name == "option" else part.name.upper()
    default = part.default
    known = default not in (None, False, [], ()) and not callable(default)
    said = (getattr(part, "help", "") or "") + (f" Default: {default}." if known else "")
    term = nodes.term("", "", nodes.literal("", names))
    return nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph("", said)))


class Commands(SphinxDirective):
    def run(self):
        group, sections = typer.main.get_command(commands), []
        for name, command in group.commands.items():
            section = nodes.section(ids=[name], names=[name])
            section += nodes.title("", name)
            for text in (command.help or "").split("\n\n"):
                section += nodes.paragraph("", " ".join(text.split()))
            section += nodes.definition_list("", *map(item, command.params))
            sections.append(section)
        return sections


def setup(app):
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
