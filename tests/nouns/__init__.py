"""What is held to the laws of its noun: the toolkit's own, and the recipes of CONTRIBUTING, which
are written as a stranger would and touch nothing of the package."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import bayesbandit as bb

RECIPES = Path(__file__).parents[2] / "recipes"


def recipe(name: str) -> ModuleType:
    """A recipe, imported once."""
    full = f"recipes_{name}"
    if full not in sys.modules:
        spec = spec_from_file_location(full, RECIPES / f"{name}.py")
        sys.modules[full] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


for _name in bb._HOMES:  # whose classes are registered when they are imported
    getattr(bb, _name)
RECIPE = {path.stem: recipe(path.stem) for path in sorted(RECIPES.glob("*.py"))}
