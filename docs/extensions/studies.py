"""A page for each study of the paper: its title and pictures around the tables that it wrote."""

import re
from pathlib import Path

PAGE = re.compile(r"results/(\w+)/table")
COMMANDS = {"table1": "table1_controls"}  # the page has the tables of another study
LINK = re.compile(r"(?<!!)(\[[^\]]*\])\((\w+)/[\w.-]+\.png\)")  # to a picture, not the picture


def unbroken(line):
    """A row of a table whose short cells keep to one line; long ones, and prose, break."""
    cells = [cell.strip() for cell in line.split("|")]
    if len(cells) < 3 or "---" in line:
        return line
    return " | ".join(c if len(c) > 40 else c.replace(" ", "\u00a0") for c in cells).strip()


def completed(app, page, source):
    results = Path(app.srcdir, "results")
    if page == "results/README":
        source[0] = LINK.sub(r"\1(\2/table.md#pictures)", source[0])
    elif found := PAGE.fullmatch(page):
        study = found[1]
        titles = (results / "index.md").read_text(encoding="utf-8")
        title = re.search(rf"^(.+) <{study}/table>$", titles, flags=re.M)[1]
        asked = COMMANDS.get(study, study)
        command = f"```bash\nuv run bayesbandit reproduce {asked} --jobs 2\n```"
        tables = "\n".join(map(unbroken, source[0].splitlines()))
        names = sorted(picture.stem for picture in (results / study).glob("*.png"))
        shown = "\n\n".join(f"![{title}: {n.replace('_', ' ')}]({n}.png)" for n in names)
        source[0] = f"# {title}\n\n{command}\n\n{tables}\n\n## Pictures\n\n{shown}\n"


def setup(app):
    app.connect("source-read", completed)
    return {"parallel_read_safe": True}
