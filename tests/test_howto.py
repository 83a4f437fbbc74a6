"""The site's pages work as written: all their Python runs, and prints what stands below it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import bayesbandit as bb
from tests.cases import few, in_gate, quick_but
from tests.ports import free_port

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", flags=re.S | re.M)


def blocks(page):
    """Each block of Python, and what it is said to print."""
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


def played(page, capsys):
    """Run a page's Python: each block prints what stands below it. Return the names it made."""
    names = {"__name__": "page"}
    for code, said in blocks(page):
        exec(compile(code, page, "exec"), names)
        printed = [line.rstrip() for line in capsys.readouterr().out.rstrip().splitlines()]
        assert printed == said.rstrip().splitlines(), code
    return names


PAGES = [path.relative_to(DOCS).as_posix() for path in (*DOCS.glob("*.md"), *DOCS.glob("*/*.md"))]
PAGES = sorted(page for page in PAGES if blocks(page))
SHELL = re.compile(r"^```sh\n(.*?)^```$", flags=re.S | re.M)


def shell_of(page):
    return SHELL.findall((DOCS / page).read_text(encoding="utf-8"))


# pages whose shell blocks run after their Python
WITH_SHELL = [page for page in PAGES if page.startswith("howto/") and shell_of(page)]
WITH_SHELL.remove("howto/serve.md")  # whose server is asked for more
PYTHON_ALONE = [page for page in PAGES if page not in WITH_SHELL]
LONG = ("howto/arm_features.md", "howto/many_arms.md")


def test_every_howto_is_found():
    assert {page.relative_to(DOCS).as_posix() for page in DOCS.glob("howto/*.md")} - {
        "howto/index.md"
    } <= set(PAGES)


@in_gate(10)
@pytest.mark.parametrize("page", quick_but(LONG, PYTHON_ALONE))
@few("delayed", "files", "migrate", "tables", "serve", "service", "index", "quickstart", "which")
def test_prints_what_it_says(page, tmp_path, monkeypatch, capsys):
    if page == "howto/service.md":
        pytest.importorskip("sqlalchemy")
    if page == "howto/bring_your_model.md":
        pytest.importorskip("bambi")
    monkeypatch.chdir(tmp_path)
    names = played(page, capsys)
    if page == "howto/tables.md":
        is_the_whole_journey(names)


def is_the_whole_journey(names):
    """From a table to what bandits earned with it."""
    bandit, encoder = names["bandit"], names["encoder"]
    assert encoder.columns == ("signup", "age", "income", "country", "plan", "newsletter")
    assert {"country=DE", "country=missing", "plan=pro", "newsletter=True"} <= set(encoder.features)
    assert bandit.t >= 25_000
    assert list(names["tree"]["posterior"].coords["feature"].values) == list(encoder.features)
    assert "plan[T.plus]:newsletter[T.True]" in names["by_formula"].features
    assert Path("offers.npz").exists()
    assert names["earned"] > 1.1 * names["bought"].mean(axis=0).max()


def test_every_command_of_a_howto_is_in_a_block_that_runs():
    for page in DOCS.glob("howto/*.md"):
        text = SHELL.sub("", page.read_text(encoding="utf-8"))
        assert not re.findall(r"^(?: {4}|```bash\n)(?:bayesbandit|curl) .*", text, flags=re.M), page


def serve_elsewhere(script, port):
    """A script whose servers listen on another port: this machine may use 8000."""
    script = script.replace("localhost:8000", f"localhost:{port}")
    return script.replace("bayesbandit serve", f"bayesbandit serve --port {port}")


@contextmanager
def run_shell(page, folder, port):
    """Run a page's shell blocks, one after the other, with the toolkit's commands on the path.

    Yield what they print. What they started goes on until the end of the block.
    """
    if missing := [name for name in ("bash", "curl", "openssl") if not shutil.which(name)]:
        pytest.skip(f"needs {', '.join(missing)}")
    known = {k: v for k, v in os.environ.items() if not k.startswith("BAYESBANDIT_")}
    known["PATH"] = f"{Path(sys.executable).parent}:{known['PATH']}"
    known["PYTHONPATH"] = str(DOCS.parent)
    script = serve_elsewhere("\n".join(shell_of(page)), port)
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as err:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder, env=known, stdout=out, stderr=err, start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(timeout=300)
            said = (folder / "out").read_text(), (folder / "err").read_text()
            assert status == 0, said
            yield said
        finally:
            with suppress(ProcessLookupError):  # nothing runs any more
                os.killpg(process.pid, signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_SHELL)
def test_the_shell_blocks_run_as_they_stand(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    played(page, capsys)
    with run_shell(page, tmp_path, free_port()) as (out, err):
        assert out
        assert "Error" not in err


def objects(text):
    """The JSON objects in a text, in their order."""
    at = text.find("{")
    while at >= 0:
        one, end = json.JSONDecoder().raw_decode(text, at)
        yield one
        at = text.find("{", end)


@pytest.mark.slow
def test_a_service_in_ten_lines_serves_and_learns(tmp_path, monkeypatch, capsys):
    """With its log in the environment, from which the learner must read it."""
    for needed in ("sqlalchemy", "fastapi", "uvicorn", "prometheus_client"):
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    page = "howto/serve.md"
    played(page, capsys)
    assert len(shell_of(page)[0].splitlines()) <= 10
    with run_shell(page, tmp_path, free_port()) as (out, _):
        told = [*objects(out)]
        assert [one["id"] for one in told[:2]] == ["order-1", "order-1"]
        assert told[1]["status"] == "timely"
        assert "1 decision" in (tmp_path / "offers.html").read_text()
        with bb.DecisionLog("sqlite:///offers.db") as log:
            end = time.monotonic() + 60
            while log.counts()["versions"] < 2 and time.monotonic() < end:
                time.sleep(0.2)
            assert log.counts()["versions"] >= 2, (tmp_path / "err").read_text()
            assert log.counts()["closed: reward"] == 1
        lines = (tmp_path / "err").read_text().splitlines()
        learned = [line for line in lines if line.endswith("version 1: 1 reward learned")]
        assert re.fullmatch(r"[\d-]{10}T[\d:.]{12}Z INFO version 1: 1 reward learned", learned[0])
