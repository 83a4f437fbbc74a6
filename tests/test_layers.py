"""The order of the floors: imports run only downward, and private names stay at home;
a decision goes through few files, which somebody reads who follows it."""

import ast
from collections.abc import Callable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from sys import monitoring

import numpy as np
import pandas as pd
import pytest

import bayesbandit
import bayesbandit as bb

PACKAGE = Path(bayesbandit.__file__).parent
FLOORS = [  # from the cellar up; rooms on one floor do not know each other
    {"checks"},
    {"forms"},
    {"runtime"},
    {"schedule", "tables", "growing_rows"},
    {"kernels"},
    {"many_arms"},
    {"history", "predictions", "environments", "declaring"},
    {"inference"},
    {"model", "engines"},
    {"posteriors"},
    {"beliefs"},
    {"policies"},
    {"weighting"},
    {"bandit"},
    {"store", "scale"},
    {"service"},
    {"systems"},
    {"evaluation", "ope"},
    {"plots"},
    {"experiments"},
    {"cli", "extend"},
    {"__main__"},
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in FILES
}
NAMES = {path: name for name, path in MODULES.items()}


def for_types_only(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def walk(tree):
    """The nodes that run, inside functions too, without those for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if not for_types_only(node):
            yield node
            yield from walk(node)


def computed(node):
    """What a call of `import_module` imports, or how its name begins."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name != "import_module" or not node.args:
        return ""
    said = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
    return str(getattr(said, "value", "")).rstrip(".")


@cache
def parsed(path):
    return ast.parse(path.read_text())


@cache
def imported(path):
    """(module of the package, name taken from it or None), as an import statement says, or a call
    of `import_module`."""
    return list(_imported(path))


def _imported(path):
    for node in walk(parsed(path)):
        if isinstance(node, ast.Import):
            names = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{NAMES[path]}: a relative import"
            names = [(f"{node.module}.{alias.name}", alias.name) for alias in node.names]
        elif isinstance(node, ast.Call):
            names = [(computed(node), None)]
        else:
            continue
        for full, name in names:
            if full.split(".")[0] == "bayesbandit":
                module = full.removeprefix("bayesbandit").removeprefix(".")
                if module in MODULES or name is None:
                    yield module, None
                else:
                    yield module.rpartition(".")[0], name


def test_every_room_has_a_floor():
    rooms = {name.split(".")[0] for name in NAMES.values()}
    assert rooms == set(FLOOR)


def test_imports_run_only_downward():
    """Imports inside functions too. What is imported for type checkers alone is not an import."""
    for path in FILES:
        room = NAMES[path].split(".")[0]
        for module, name in imported(path):
            if room == "systems" and is_public(module, name):
                continue
            assert module, f"{NAMES[path]}: {name!r} comes from the roof: bayesbandit/__init__.py"
            other = module.split(".")[0]
            assert other == room or FLOOR[other] < FLOOR[room], f"{NAMES[path]} imports {module}"


def is_public(module, name):
    """Whether a stranger's package may import this name of this module."""
    if module == "":
        return name in (None, *bayesbandit.__all__)
    return module in (*bayesbandit.__all__, "checks", "forms", "kernels")


def test_systems_are_written_with_public_names():
    """Each could be another package: it imports its own folder, and what `bb.` offers."""
    for path in FILES:
        room, _, system = NAMES[path].partition(".")
        for module, name in imported(path) if room == "systems" and system else ():
            own = f"{module}.".startswith(f"systems.{system.split('.')[0]}.")
            assert own or is_public(module, name), f"{NAMES[path]} imports {name} of {module}"


def test_names_of_systems_load_from_their_folders():
    """`systems/__init__.py` imports nothing by itself."""
    assert all(module.startswith("systems.") for module in bayesbandit.systems.HOMES.values())
    assert set(imported(MODULES["systems"])) == {("runtime.lazy", "load")}


def test_the_package_knows_nothing_of_the_studies():
    for path in FILES:
        text = path.read_text()
        assert "bayesbandit_studies" not in text, f"{NAMES[path]} names the paper's studies"


def test_no_cycles():
    graph = {
        name: {module for module, _ in imported(path)} - {name} for name, path in MODULES.items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError with the cycle


def test_private_names_stay_at_home():
    for path in FILES:
        taken, where = set(), NAMES[path]
        for module, name in imported(path):
            private = (name or module).split(".")[-1].startswith("_")
            assert not private, f"{where}: {name} of {module}"
            taken.add(name or module.split(".")[-1])
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                private = node.attr.startswith("_") and not node.attr.startswith("__")
                named = f"{where}: {node.value.id}.{node.attr}"
                assert not (private and node.value.id in taken), named


TOOL = 4  # a number that neither debuggers nor coverage take
MOST = {"a function α": 5, "a dict": 6, "Boltzmann": 7, "Shared": 10}  # one has names alone


def entered(call: Callable[[], object]) -> set[str]:
    """Return the files of the package in which a function runs during a call."""
    files: set[str] = set()
    monitoring.use_tool_id(TOOL, "walks")
    monitoring.register_callback(
        TOOL, monitoring.events.PY_START, lambda code, _: files.add(code.co_filename)
    )
    try:
        monitoring.set_events(TOOL, monitoring.events.PY_START)
        call()
    finally:
        monitoring.set_events(TOOL, monitoring.events.NO_EVENTS)
        monitoring.free_tool_id(TOOL)
    ours = (Path(file) for file in files)
    return {str(f.relative_to(PACKAGE)) for f in ours if f.is_relative_to(PACKAGE)}


def walks(name: str) -> Callable[[], object]:
    """Return a decision that has been made before, so that nothing is compiled or imported."""
    x, frame = np.ones(2), pd.DataFrame({"age": [20.0, 30.0, 45.0], "city": ["A", "B", "A"]})
    context: object = x
    match name:
        case "a function α":
            policy = bb.Thompson(alpha=lambda t: 1.0 + 1.0 / t)
            bandit = bb.Bandit(3, bb.Ridge(), policy, n_features=2)
        case "a dict":
            encoder, context = bb.Encoder.fit(frame), {"age": 25.0, "city": "B"}
            bandit = bb.Bandit(3, bb.Ridge(), bb.Thompson(), encoder=encoder)
        case "Boltzmann":
            bandit = bb.Bandit(3, bb.Ridge(), bb.Boltzmann(temperature=1.0), n_features=2)
        case _:
            context = np.eye(3, 2)
            bandit = bb.Bandit(3, bb.Shared(bb.Ridge()), bb.Thompson(), n_features=2)
    for reward in range(6):  # no arm stays new
        bandit.observe(bandit.choose(context), float(reward))
    bandit.choose(context)
    return lambda: bandit.choose(context)


@pytest.mark.few("")
@pytest.mark.parametrize("name", MOST)
def test_a_decision_goes_through_few_files(name):
    files = entered(walks(name))
    assert "bandit/bandit.py" in files
    assert len(files) <= MOST[name], sorted(files)


def test_a_stored_decision_goes_through_few_files(tmp_path):
    """What somebody reads who follows `service.decide`, from the context to the database."""
    pytest.importorskip("sqlalchemy")
    bandit = bb.LinTS(3, n_features=2)
    service = bb.Service(bandit, bb.DecisionLog(f"sqlite:///{tmp_path / 'offers.db'}"))
    x = np.ones(2)
    for reward in range(6):
        service.reward(service.decide(x).id, float(reward))
    service.learn()
    service.decide(x)
    files = entered(lambda: service.decide(x))
    assert "service/service.py" in files
    assert len(files) <= 10, sorted(files)
