"""Execute notebooks and write copies with their outputs to docs/notebooks, which the site shows.

uv run notebooks/render.py                            # all of them, at full size
uv run notebooks/render.py 01_posterior_behaviour --size toy --out runs/notebooks
uv run notebooks/render.py --text                     # of the same code, only text anew
uv run notebooks/render.py --strip                    # only take outputs out of the sources

The sources never keep outputs. A notebook reads its size, "toy" or "full", from BAYESBANDIT_SIZE.
What a cell's picture shows is said, for those who do not see it, in the cell's metadata:
{"mystnb": {"image": {"alt": "…"}}}.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import time
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path

import nbformat
from joblib import Parallel, delayed
from nbclient import NotebookClient
from nbformat import NotebookNode

from bayesbandit.runtime.caches import COMPILING_TAKES_SECONDS

HERE = Path(__file__).resolve().parent
RENDERED = HERE.parent / "docs" / "notebooks"
SOURCES = sorted(HERE.glob("*.ipynb"))
VARIABLE, SIZES = "BAYESBANDIT_SIZE", ("toy", "full")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PLACES = (  # in what is printed
    (re.escape(f"{COMPILING_TAKES_SECONDS}\n"), ""),  # a reader of the page does not wait
    (r"\S*ipykernel_\d+\S*\.py", "cell"),
    (r"\S*site-packages/", ""),
    (re.escape(f"{HERE.parent}/"), ""),
)
SHOWN = ["image/png", "text/markdown", "text/html", "text/plain"]  # the first that there is
STYLE = re.compile(r"<style scoped>.*?</style>\s*", re.DOTALL)  # of a table: pages have their own
SAID = "mystnb"  # the metadata that a cell keeps
LIBRARIES = (
    "bayesbandit", "arviz", "matplotlib", "numba", "numpy", "nutpie", "pandas", "pymc", "pytensor",
    "scikit-learn", "scipy",
)  # fmt: skip


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def stripped(notebook: NotebookNode) -> NotebookNode:
    """A copy without outputs, execution counts and traces of the machine."""
    notebook = deepcopy(notebook)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = NotebookNode(kernelspec=kernel, language_info={"name": "python"})
    for cell in notebook.cells:
        cell.metadata = NotebookNode({k: v for k, v in cell.metadata.items() if k == SAID})
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def executed(path: Path, size: str) -> NotebookNode:
    """The notebook after all its cells ran, in this Python environment and on one thread.

    A cell that fails raises `CellExecutionError`, which shows the cell and its traceback.
    """
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # a user's own kernel called python3 is not ours
    notebook = stripped(read(path))
    client = NotebookClient(
        notebook, timeout=None, kernel_name="python3", extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(HERE)}},
    )  # fmt: skip
    client.execute(env=os.environ | {VARIABLE: size} | dict.fromkeys(THREADS, "1"))
    return notebook


def presented(notebook: NotebookNode, size: str) -> NotebookNode:
    """Outputs as a page shows them, one kind of each, and what they were made with at the end."""
    shown = stripped(notebook)
    for cell, ran in zip(shown.cells, notebook.cells, strict=True):
        if cell.cell_type == "code":
            outputs = [_output(output) for output in ran.outputs]
            cell.outputs = [output for output in outputs if output.get("text") != ""]
    made = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    text = f"*Run at {size} size with Python {platform.python_version()}, {made}.*"
    shown.cells.append(nbformat.v4.new_markdown_cell(text, id="versions"))
    return shown


def _output(output: NotebookNode) -> NotebookNode:
    output = NotebookNode(output)
    if output.output_type == "stream":
        for place, name_there in PLACES:
            output.text = re.sub(place, name_there, output.text)
        return output
    if "execution_count" in output:
        output.execution_count = None
    kind = next((kind for kind in SHOWN if kind in output.data), None)
    output.metadata = NotebookNode()
    output.data = NotebookNode({} if kind is None else {kind: output.data[kind]})
    if kind == "text/html":
        output.data[kind] = STYLE.sub("", output.data[kind])
    return output


def retold(notebook: NotebookNode, copy: NotebookNode) -> NotebookNode:
    """A copy with the notebook's text and descriptions of pictures, and the outputs that it has."""
    ran = [cell for cell in copy.cells if cell.cell_type == "code"]
    shown = stripped(notebook)
    cells = [cell for cell in shown.cells if cell.cell_type == "code"]
    if [cell.source for cell in cells] != [cell.source for cell in ran]:
        raise ValueError("its code is not that of the copy: it has to be run")
    for cell, before in zip(cells, ran, strict=True):
        cell.outputs = before.outputs
    shown.cells.append(copy.cells[-1])
    return shown


def write(notebook: NotebookNode, name: str, size: str, out: Path) -> None:
    """NAME.ipynb with its outputs, in place of what was there."""
    out.mkdir(parents=True, exist_ok=True)
    nbformat.write(presented(notebook, size), out / f"{name}.ipynb")


def render(path: Path, size: str, out: Path) -> str:
    start = time.perf_counter()
    write(executed(path, size), path.stem, size, out)
    return f"{path.stem}: {time.perf_counter() - start:.0f} s at {size} size"


def retell(path: Path, out: Path) -> str:
    copy = out / path.name
    nbformat.write(retold(read(path), read(copy)), copy)
    return f"{path.stem}: its text"


def strip(path: Path) -> None:
    nbformat.write(stripped(read(path)), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all notebooks")
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--jobs", type=int, default=1, help="notebooks at a time")
    parser.add_argument("--out", type=Path, default=RENDERED)
    parser.add_argument("--text", action="store_true", help="run nothing: take over text alone")
    parser.add_argument("--strip", action="store_true", help="only take outputs out of the sources")
    asked = parser.parse_args()
    paths = {path.stem: path for path in SOURCES}
    if unknown := [name for name in asked.names if name not in paths]:
        parser.error(f"no notebook {unknown[0]!r}; there are: {', '.join(paths)}")
    chosen = [paths[name] for name in asked.names or paths]
    for path in chosen:
        strip(path)
    if asked.text:
        print(*(retell(path, asked.out) for path in chosen), sep="\n")
    elif not asked.strip:
        jobs = (delayed(render)(path, asked.size, asked.out) for path in chosen)
        for said in Parallel(asked.jobs, return_as="generator_unordered")(jobs):
            print(said, flush=True)


if __name__ == "__main__":
    main()
