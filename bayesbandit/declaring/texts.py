"""Priors as texts: write a model's name and priors as YAML, and read them.

A text is data. It may name PyMC's distributions and the transforms listed here, and nothing else.
Importing this file imports PyMC.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from inspect import signature
from numbers import Real
from typing import Any

import numpy as np
import pymc as pm
import yaml
from pymc_extras.prior import CUSTOM_TRANSFORMS, Prior

from bayesbandit.checks import floats
from bayesbandit.declaring.priors import text

PRIOR_KEYS = ("dist", "kwargs", "dims", "centered", "transform")
TRANSFORMS = tuple(  # allowed in a text, besides those of `register_tensor_transform`
    "abs cumsum exp expm1 invlogit invprobit log log1p logit neg reciprocal sigmoid softmax "
    "softplus sqr sqrt square tanh".split()
)
# abstract, with functions as parameters, or starting a C compiler
FORBIDDEN_DISTRIBUTIONS = (
    "Distribution Continuous Discrete SymbolicRandomVariable CustomDist DensityDist Simulator "
    "AR EulerMaruyama GARCH11"
).split()


def dump(name: str, priors: Mapping[str, Any]) -> str:
    """Return a model's name and priors as YAML."""
    data = {"name": name, "priors": {k: to_data(p, f"prior {k!r}") for k, p in priors.items()}}
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=None)


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """Return a model's name and priors from YAML; `from_data` reads each prior.

    Raise ValueError for another text.
    """
    try:
        # a small text with aliases may mean a large value
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise ValueError("aliases (*…) are not read")
        data = yaml.safe_load(text)
    # ValueError: also a number of too many digits; RecursionError: too many levels
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"a model's text must be YAML: {_line(error)}") from error
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise ValueError(
            f"a model's text must have a 'name' and 'priors'; got {reprlib.repr(data)}"
        )
    _known(data, ("name", "priors"), f"{data['name']}: unknown key")
    priors = data.get("priors") or {}
    if not isinstance(priors, dict):
        raise ValueError(f"{data['name']}: priors must be a mapping; got {reprlib.repr(priors)}")
    return data["name"], {str(name): prior for name, prior in priors.items()}


def to_data(value: object, what: str) -> Any:
    """Return a prior as numbers, texts, lists and mappings, in the format of pymc_extras.

    Raise ValueError or TypeError for a prior that cannot be written. what: its name in errors.
    """
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Real):
        return value
    if not isinstance(value, Prior):
        raise TypeError(f"{what} cannot be written as text: {text(value)}")
    data = value.to_dict()
    if value.parameters:
        data["kwargs"] = {k: to_data(v, f"{what}.{k}") for k, v in value.parameters.items()}
    if value.dims is not None:
        data["dims"] = list(value.dims)
    from_data(data, what)  # what is written can be read
    return data


def from_data(data: object, what: str) -> Any:
    """Return the prior that `to_data` wrote.

    Raise ValueError for a wrong key, distribution or parameter; it names the allowed ones.
    """
    if isinstance(data, Mapping):
        return _prior(data, what)
    if isinstance(data, bool) or not isinstance(data, Real | str | list):
        raise ValueError(
            f"{what} must be a number, a list of numbers or a prior (a mapping with a 'dist'); "
            f"got {reprlib.repr(data)}"
        )
    if isinstance(data, list):
        floats(data, what)
        return np.array(data)
    try:
        return float(data) if isinstance(data, str) else data  # YAML reads 1e-3 as a text
    except ValueError:
        raise ValueError(f"{what} must be a number; got {reprlib.repr(data)}") from None


def _prior(data: Mapping[str, Any], what: str) -> Prior:
    """Return a prior of a text, whose names are checked.

    This check is needed because a `Prior` looks up any attribute of PyMC and PyTensor.
    """
    _known(data, PRIOR_KEYS, f"{what}: unknown key")
    if "dist" not in data:
        raise ValueError(f"{what} has no 'dist'; found {_listed(data)}")
    distributions = _distributions()
    _known([data["dist"]], distributions, f"{what}: a text cannot name the distribution")
    if (transform := data.get("transform")) is not None:
        named = f"{what}: a text cannot name the transform"
        _known([transform], (*TRANSFORMS, *CUSTOM_TRANSFORMS), named)
    kwargs = data.get("kwargs") or {}
    if not isinstance(kwargs, Mapping):
        raise ValueError(f"{what}: kwargs must be a mapping; got {kwargs!r}")
    parameters = set(signature(distributions[data["dist"]].dist).parameters) - {"args", "kwargs"}
    _known(kwargs, sorted(parameters), f"{what}: {data['dist']} has no parameter")
    settings = {key: data[key] for key in ("centered", "dims", "transform") if key in data}
    given = {k: from_data(v, f"{what}.{k}") for k, v in kwargs.items()}
    try:
        return Prior(data["dist"], **settings, **given)
    except Exception as error:  # a text may make PyMC raise any class
        raise ValueError(f"{what}: {_line(error)[:200]}") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _distributions() -> dict[str, Any]:
    """Return PyMC's distributions by name."""
    named = {
        name: vars(pm)[name] for name in sorted(vars(pm)) if name not in FORBIDDEN_DISTRIBUTIONS
    }
    return {k: v for k, v in named.items() if isinstance(v, type) and "dist" in dir(v)}


def _known(names: Iterable[Any], allowed: Iterable[str], complaint: str) -> None:
    allowed = list(allowed)
    for name in names:
        if name not in allowed:
            raise ValueError(f"{complaint} {name!r}; allowed: {_listed(allowed)}")


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))
