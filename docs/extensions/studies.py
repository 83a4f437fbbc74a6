"""A page for each study of the paper: its title and pictures above the tables that it wrote."""

import re
from importlib import import_module
from pathlib import Path

PAGE = re.compile(r"results/(\w+)/table")


def completed(app, page, source):
    if found := PAGE.fullmatch(page):
        folder = Path(app.srcdir, "results", found[1])
        names = sorted(picture.stem for picture in folder.glob("*.png"))
        title = import_module(f"bayesbandit.studies.{found[1]}").TITLE
        shown = "\n\n".join(f"![{title}: {n.replace('_', ' ')}]({n}.png)" for n in names)
        command = f"```bash\nuv run bayesbandit reproduce {found[1]} --jobs 2\n```"
        source[0] = f"# {title}\n\n{command}\n\n{source[0]}\n\n## Pictures\n\n{shown}\n"


def setup(app):
    app.connect("source-read", completed)
    return {"parallel_read_safe": True}
