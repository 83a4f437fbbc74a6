"""The image and the services of deploy/ without Docker: their steps as nobody, on a read-only disk.

Not tested here: that pip installs the package, which the gate does with the wheel; and Docker.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

import bayesbandit as bb
from tests.ports import free_port
from tests.service.servers import HEADERS, KEY, httpx
from tests.store.databases import KINDS, fresh

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
NOBODY = 65534
# nobody may read what root has, as this checkout; and write nothing
READS = "-all,+dac_read_search"
SEALED = f"""
set -e
mount --make-rprivate /
for place in $WRITABLE; do mount --bind $place $place; done
mount -o bind,remount,ro /
exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups --inh-caps={READS} \
    --ambient-caps={READS} --bounding-set={READS} "$@"
"""


def instructions():
    """The image's instructions and their texts, with continued lines joined."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def settings():
    """The variables of the image, with the defaults of its arguments."""
    named = {}
    for kind, text in instructions():
        for word in shlex.split(text) if kind in ("ARG", "ENV") else ():
            name, _, value = word.partition("=")
            named[name] = re.sub(r"\$\{(\w+)\}", lambda found: named[found[1]], value)
    return named


def test_the_image_has_the_extras_of_a_server_and_ends_as_nobody():
    texts = dict(instructions())
    installed = next(text for kind, text in instructions() if "pip install" in text)
    extras = re.search(r"\[([\w,]+)\]", installed)[1].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    wanted = {re.split(r"[\[<>=]", one)[0] for name in extras
              for one in PROJECT["optional-dependencies"][name]}  # fmt: skip
    assert {"fastapi", "uvicorn", "sqlalchemy", "psycopg", "prometheus-client"} <= wanted
    assert texts["USER"] == "nobody"
    kinds = [kind for kind, _ in instructions()]
    assert kinds.index("USER") > max(i for i, kind in enumerate(kinds) if kind == "RUN")
    assert json.loads(texts["ENTRYPOINT"]) == [*PROJECT["scripts"]]


def test_what_the_image_copies_is_what_the_package_is_built_from():
    """And no key, log or environment of the checkout."""
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    build = {"bayesbandit", "models", "pyproject.toml", PROJECT["readme"]}
    build |= {*PROJECT["license-files"]}
    assert lines[0] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == build
    assert all((ROOT / name).exists() for name in build)


def test_the_services_know_their_log_and_key_and_write_nothing():
    services = COMPOSE["services"]
    for name in ("serve", "learn"):
        service = services[name]
        assert service["read_only"] is True
        assert set(service["environment"]) == {"BAYESBANDIT_LOG", "BAYESBANDIT_API_KEY"}
        assert shlex.split(service["command"])[0] == name
        assert (DEPLOY / service["build"]["dockerfile"]).resolve(), service
    for service in services.values():
        for text in service["environment"].values():
            assert not re.search(r"PASSWORD\b(?!:\?)", text), "a password has no default"


def sealing():
    """How a process of root runs as nobody on a disk that is read-only; skip where that cannot be
    tried."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "mount"))):
        pytest.skip("needs root, unshare and setpriv, to be nobody on a read-only disk")
    words = ["unshare", "--mount", "sh", "-c", SEALED, "sh"]
    tried = subprocess.run([*words, "true"], env={**os.environ, "WRITABLE": ""}, check=False)
    if tried.returncode:
        pytest.skip("this machine does not let a process have mounts of its own")
    return words


@pytest.fixture(scope="module")
def image():
    """A tree as the image's, without compiled files, and the variables of its processes.

    Not in a folder of pytest, which only its user may enter.
    """
    sealing()
    folder = TemporaryDirectory(prefix="image")
    tree, ignored = Path(folder.name), shutil.ignore_patterns("__pycache__")
    tree.chmod(0o755)
    shutil.copytree(Path(bb.__file__).parent, tree / "site" / "bayesbandit", ignore=ignored)
    shutil.copytree(ROOT / "models", tree / "site" / "bayesbandit" / "_models", ignore=ignored)
    (tree / "bin").mkdir()
    command = tree / "bin" / "bayesbandit"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m bayesbandit "$@"\n')
    command.chmod(0o755)
    there = {name: re.sub("^(?=/(opt|tmp)/)", str(tree), text) for name, text in settings().items()}
    known = {
        **{name: os.environ[name] for name in ("LANG", "PYTHONUNBUFFERED") if name in os.environ},
        "PATH": f"{tree}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(tree / "site"),
        "HOME": "/nonexistent",
        "TMPDIR": str(tree / "tmp"),
    } | there
    for name in ("tmp", "data"):
        (tree / name).mkdir()
        os.chown(tree / name, NOBODY, NOBODY)
    [compile_kernels] = [text for kind, text in instructions()
                         if kind == "RUN" and "pip" not in text]  # fmt: skip
    subprocess.run(["sh", "-c", compile_kernels.replace("/opt", f"{tree}/opt")],
                   cwd="/", env=known | {"HOME": str(tree)}, check=True, timeout=300)  # fmt: skip
    bb.LinTS(["mail", "call"], 2, seed=0).save(tree / "offers.npz")
    (tree / "offers.npz").chmod(0o644)
    yield tree, known
    folder.cleanup()


def sealed(tree, known, words, writable, **more):
    """Run words as nobody where only these folders can be written."""
    places = {"WRITABLE": " ".join(str(tree / name) for name in writable)}
    return subprocess.Popen([*sealing(), *words], env=known | more | places, cwd="/", text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip


def words_of(service, tree, port):
    """The words of a service's command, at other places than in its container."""
    words = shlex.split(service["command"])
    words = [word.replace("/srv", str(tree)).replace("0.0.0.0", "127.0.0.1") for word in words]
    return ["bayesbandit", *words, *(["--port", str(port)] if words[0] == "serve" else [])]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_services_serve_and_learn_as_nobody_on_a_read_only_disk(kind, image, tmp_path):
    tree, known = image
    port, services = free_port(), COMPOSE["services"]
    url = fresh(kind, tree / "data" if kind == "sqlite" else tmp_path)
    known = known | {"BAYESBANDIT_LOG": url, "BAYESBANDIT_API_KEY": KEY}
    writable = ["tmp"] + ["data"] * (kind == "sqlite")
    running = [sealed(tree, known, words_of(services["serve"], tree, port), writable)]
    try:
        check = services["serve"]["healthcheck"]["test"][1:]
        check = [word.replace(":8000", f":{port}") for word in check]
        until(
            lambda: subprocess.run(check, env=known, capture_output=True).returncode == 0, running
        )
        running.append(sealed(tree, known, words_of(services["learn"], tree, port), writable))
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=HEADERS, timeout=30) as web:
            one = web.post("/decide", json={"context": [0.3, -1.2]}).json()
            assert web.post("/reward", json={"id": one["id"], "value": 1.0}).status_code == 200
            until(lambda: web.get("/healthz").json()["version"] != "0", running)
    finally:
        said = [ended(process) for process in reversed(running)]
    lines = [line for text in said for line in text.splitlines()]
    assert [line.split()[1] for line in lines] == ["INFO"] * len(lines), lines
    compiled = sorted(file.name for file in (tree / "tmp").rglob("*.nbi"))
    assert not compiled, sorted(file.name for file in (tree / "opt").rglob("*.nbi"))
    assert not [*(tree / "site").rglob("*.nb?")]


def until(true, running, seconds=120):
    """Wait until a condition holds. Fail when a process has ended."""
    end = time.monotonic() + seconds
    while not true():
        for process in running:
            assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.2)


def ended(process):
    """What a process has said; it is asked to end, and killed if it does not."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.communicate(timeout=40)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]
