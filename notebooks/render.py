"""Execute notebooks and write readable copies, with their pictures, to docs/notebooks.

uv run notebooks/render.py                            # all of them, at full size
uv run notebooks/render.py 01_posterior_behaviour --size toy --out runs/notebooks
uv run notebooks/render.py --strip                    # only take outputs out of the sources

The sources never keep outputs. A notebook reads its size, "toy" or "full", from BAYESBANDIT_SIZE.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import time
from pathlib import Path

import nbformat
from joblib import Parallel, delayed
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from nbformat import NotebookNode
from traitlets.config import Config

HERE = Path(__file__).resolve().parent
RENDERED = HERE.parent / "docs" / "notebooks"
SOURCES = sorted(HERE.glob("*.ipynb"))
VARIABLE, SIZES = "BAYESBANDIT_SIZE", ("toy", "full")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PLACES = (  # in warnings
    (r"\S*ipykernel_\d+\S*\.py", "cell"),
    (r"\S*site-packages/", ""),
    (re.escape(f"{HERE.parent}/"), ""),
)
SHOWN = ["image/png", "text/markdown", "text/plain"]  # a table as plain text, which diffs well


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def stripped(notebook: NotebookNode) -> NotebookNode:
    """The same notebook without outputs, execution counts and traces of the machine."""
    notebook = NotebookNode(notebook)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = NotebookNode(kernelspec=kernel, language_info={"name": "python"})
    for cell in notebook.cells:
        cell.metadata = NotebookNode()
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


def write(notebook: NotebookNode, name: str, out: Path) -> None:
    """NAME.md and its pictures NAME_files/*.png, in place of those that were there."""
    exporter = MarkdownExporter(config=Config(NbConvertBase={"display_data_priority": SHOWN}))
    names = {"unique_key": "picture", "output_files_dir": f"{name}_files"}
    text, resources = exporter.from_notebook_node(notebook, resources=names)
    shutil.rmtree(out / f"{name}_files", ignore_errors=True)
    for file, picture in resources["outputs"].items():
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        (out / file).write_bytes(picture)
    out.mkdir(parents=True, exist_ok=True)
    for place, name_there in PLACES:
        text = re.sub(place, name_there, text)
    lines = (line.rstrip() for line in text.strip().splitlines())
    (out / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def render(path: Path, size: str, out: Path) -> str:
    start = time.perf_counter()
    write(executed(path, size), path.stem, out)
    return f"{path.stem}: {time.perf_counter() - start:.0f} s at {size} size"


def strip(path: Path) -> None:
    nbformat.write(stripped(read(path)), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all notebooks")
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--jobs", type=int, default=1, help="notebooks at a time")
    parser.add_argument("--out", type=Path, default=RENDERED)
    parser.add_argument("--strip", action="store_true", help="only take outputs out of the sources")
    asked = parser.parse_args()
    paths = {path.stem: path for path in SOURCES}
    if unknown := [name for name in asked.names if name not in paths]:
        parser.error(f"no notebook {unknown[0]!r}; there are: {', '.join(paths)}")
    chosen = [paths[name] for name in asked.names or paths]
    for path in chosen:
        strip(path)
    if not asked.strip:
        jobs = (delayed(render)(path, asked.size, asked.out) for path in chosen)
        for said in Parallel(asked.jobs, return_as="generator_unordered")(jobs):
            print(said, flush=True)


if __name__ == "__main__":
    main()
