"""A bandit in one file: arrays as npz, everything else as JSON inside it; no pickle."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from bayesbandit.balance.propensity import InversePropensity, Unweighted
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.policies import UCB, EpsilonGreedy, Greedy, Policy, Thompson

if TYPE_CHECKING:
    from bayesbandit.bandits.bandit import Bandit

FORMAT = "bayesbandit.Bandit"
VERSION = 1
PREFIX = "reweighting."  # of its arrays
KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (Ridge, Thompson, UCB, Greedy, EpsilonGreedy, Unweighted, InversePropensity)
}


def state(bandit: Bandit) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A bandit as plain values, ready for JSON, and arrays (not copied)."""
    history = bandit.history
    arrays = {
        "arms": bandit.belief.arms,
        "stream": bandit.stream,
        "history": history.rows[: len(history)],
    }
    reweighting = {}
    if bandit.reweighting is not None:
        for key, value in bandit.reweighting.state().items():
            if isinstance(value, np.ndarray):
                arrays[PREFIX + key] = value
            else:
                reweighting[key] = value
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "names": list(bandit.arms),
        "n_features": bandit.n_features,
        "model": _encode(bandit.model),
        "policy": _encode(bandit.policy),
        "balance": _encode(bandit.balance),
        "t": bandit.t,
        "rng": bandit.rng.bit_generator.state,
        "limit": history.limit,
        "total": history.total,
        "retired": list(history.retired),
        "reweighting": reweighting,
    }
    return meta, arrays


def restore(
    make: type[Bandit], meta: dict[str, Any], arrays: dict[str, np.ndarray], policy: Policy | None
) -> Bandit:
    """The bandit that `state` describes; it owns the arrays from now on."""
    if policy is None:
        policy = _decode(meta["policy"])
    bandit = make(
        meta["names"],
        _decode(meta["model"]),
        policy,
        _decode(meta["balance"]),
        n_features=meta["n_features"],
        history=meta["limit"],
    )
    if arrays["arms"].shape != bandit.belief.arms.shape:
        raise ValueError(f"arms of shape {arrays['arms'].shape}, not {bandit.belief.arms.shape}")
    bandit.belief.arms[:] = arrays["arms"]
    bandit.stream = arrays["stream"]
    bandit.t = meta["t"]
    bandit.rng.bit_generator.state = meta["rng"]
    history = bandit.history
    history.total, history.retired = meta["total"], list(meta["retired"])
    if history.limit is None:
        history.rows = arrays["history"]
    else:
        history.rows[: len(history)] = arrays["history"]
    if bandit.reweighting is not None:
        saved = {k.removeprefix(PREFIX): a for k, a in arrays.items() if k.startswith(PREFIX)}
        bandit.reweighting.restore({**meta["reweighting"], **saved})
    return bandit


def write(path: str | Path, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """One npz file, complete or not there at all: written beside and moved into place."""
    path = Path(path)
    text = json.dumps({**meta, "arrays": sorted(arrays)}, default=_plain)
    header = np.frombuffer(text.encode(), dtype=np.uint8)
    beside = path.with_name(f"{path.name}.{uuid4().hex}.tmp")
    try:
        with beside.open("xb") as file:
            np.savez(file, allow_pickle=False, meta=header, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `write` wrote; a file that is broken, foreign or from the future gets a clear error."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no saved bandit at {path}")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        meta = json.loads(arrays.pop("meta").tobytes())
        kind, version = meta["format"], meta["version"]
        complete = sorted(arrays) == meta.get("arrays")
    except Exception as error:  # a zip's reader raises what it likes when the file is broken
        raise ValueError(f"{path} is not a saved bandit, or is broken: {error}") from error
    if kind != FORMAT or version != VERSION:
        raise ValueError(
            f"{path} holds {kind!r} version {version!r}; this release reads {FORMAT!r} "
            f"version {VERSION}"
        )
    if not complete:
        raise ValueError(f"{path} is broken: it holds the arrays {sorted(arrays)}")
    return meta, arrays


def _plain(value: Any) -> Any:
    """A NumPy number as Python's own."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot save {value!r}: it is neither text nor a number")


def _encode(value: Any) -> dict[str, Any]:
    """A frozen dataclass as its name and fields; a function cannot be stored and becomes None."""
    settings = {field.name: getattr(value, field.name) for field in fields(value)}
    stored = {k: None if callable(v) else v for k, v in settings.items()}
    return {"kind": type(value).__name__, **stored}


def _decode(encoded: dict[str, Any]) -> Any:
    kind = encoded["kind"]
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in encoded.items()}
    del settings["kind"]
    if None in (settings.get("alpha", 0), settings.get("epsilon", 0)):
        raise ValueError(
            f"the {kind} policy's number was a function, which a file does not hold: "
            f"give the policy again, load(path, policy={kind}(…))"
        )
    return KINDS[kind](**settings)
