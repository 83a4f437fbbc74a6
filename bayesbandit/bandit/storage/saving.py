"""Saving and loading a bandit: one npz file with its arrays and a JSON text, without pickle."""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from bayesbandit.bandit import fast_path, random_streams, transactions, validation
from bayesbandit.bandit.storage import verify
from bayesbandit.bandit.storage.settings import DECLARED, decode, encode, made
from bayesbandit.beliefs.base import Declaring, Storable, needed
from bayesbandit.beliefs.shared.belief import Shared
from bayesbandit.checks import Array
from bayesbandit.forms import PLAIN_VALUE, Arrays, Broken, State, check
from bayesbandit.growing_rows import unheld
from bayesbandit.model import RewardModel
from bayesbandit.policies import Greedy, Policy
from bayesbandit.tables.encoder import Encoder
from bayesbandit.weighting.base import Balance

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

FILE_FORMAT = "bayesbandit.Bandit"
FILE_VERSION = 4
ARRAY_DTYPES = ("<f8", "<i8", "|u1")
INVALID_VALUE_ERRORS = (  # errors that a file's wrong values can cause
    *(Broken, TypeError, AttributeError, LookupError, ArithmeticError, MemoryError, RecursionError),
    *(AssertionError, NotImplementedError),  # by PyMC and PyTensor, for wrong priors
)


def state(bandit: Bandit) -> tuple[State, Arrays]:
    """Return a bandit as plain values for JSON and as arrays, which are not copied."""
    history = bandit.history
    stream = bandit.stream
    if stream[0] < 0:
        stream = np.append(unheld(stream[0]), stream[1:])
    arrays = {"stream": stream, "history": history.ordered()}
    parts: dict[str, State] = {}
    stored = needed(bandit.belief, Storable, "the bandit is saved and loaded")
    for part, whole in (("belief", stored), ("reweighting", bandit.reweighting)):
        parts[part] = {}
        for key, value in ({} if whole is None else whole.state()).items():
            if isinstance(value, np.ndarray):
                arrays[f"{part}.{key}"] = _storable(value, f"{part}.{key}")
            else:
                parts[part][key] = _keyed_by_text(value, f"{part}.{key}")
    meta: State = {
        "format": FILE_FORMAT,
        "version": FILE_VERSION,
        "names": list(bandit.arms),
        "n_features": bandit.n_features,
        "encoder": None if bandit.encoder is None else bandit.encoder.to_dict(),
        "model": encode(bandit.spec),
        "policy": encode(bandit.policy),
        "balance": encode(bandit.balance),
        "seed": [bandit.seed.entropy, list(bandit.seed.spawn_key)],
        "t": bandit.t,
        "rng": bandit.rng.bit_generator.state,
        "limit": history.limit,
        "total": history.total,
        "retired": list(history.retired),
        **parts,
    }
    if bandit.belief.clock is not None:
        meta["ahead"] = bandit.ahead
    spec = bandit.spec
    belief = cast(Any, bandit.belief)
    if isinstance(spec, Shared):
        spec = spec.model
        belief = belief.common
    if isinstance(spec, Declaring):
        meta["digest"] = belief.plan.made
        if meta["digest"] != spec.digest(len(bandit.arms), bandit.n_features):
            warnings.warn(
                f"{spec.declared.name} builds another model now than when the bandit was made; "
                "what is saved can be loaded with the model as it was",
                stacklevel=3,
            )
    return meta, arrays


def _keyed_by_text(value: object, name: str) -> object:
    """Return a plain value; raise TypeError if a key is not text, which JSON would change."""
    inner: Iterable[object] = ()
    if isinstance(value, dict):
        if odd := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"{name} has the key {odd[0]!r}; a file holds keys of text alone")
        inner = value.values()
    elif isinstance(value, list | tuple):
        inner = value
    for item in inner:
        _keyed_by_text(item, name)
    return value


def _storable(array: Array, name: str) -> Array:
    """Return an array in the order that files hold; raise TypeError for another dtype."""
    if array.dtype.str not in ARRAY_DTYPES:
        raise TypeError(f"{name} is an array of {array.dtype}; a file holds float64, int64, uint8")
    return np.asarray(array, order="C")


def restore(
    make: type[Bandit], meta: State, arrays: Arrays,
    policy: Policy | None = None, model: object = None, balance: Balance | None = None,
) -> Bandit:  # fmt: skip
    """Return the bandit that `state` describes; it uses the arrays without a copy."""
    entropy, key = meta["seed"]
    policy = decode(meta["policy"], "policy") if policy is None else policy
    balance = decode(meta["balance"], "balance", balance)
    spec = _model(meta["model"], model)
    if not isinstance(model, Declaring | Shared):  # such a model may replace the saved one
        _check_digest(spec, meta)
    encoder = None if meta["encoder"] is None else Encoder.from_dict(meta["encoder"])
    bandit = make(
        meta["names"], spec, Greedy(), balance, n_features=meta["n_features"], encoder=encoder,
        seed=np.random.SeedSequence(entropy, spawn_key=key), history=meta["limit"],
    )  # fmt: skip
    bandit.stream = arrays["stream"]
    bandit.rng.bit_generator.state = meta["rng"]
    bandit.ahead = meta.get("ahead", 0.0)
    verify.check_history(bandit.layout, meta, arrays["history"])
    bandit.history.restore(arrays["history"], meta["total"], list(meta["retired"]))
    states = verify.states(meta, arrays)
    verify.check_state(bandit, "belief", states["belief"])
    needed(bandit.belief, Storable, "a saved bandit is loaded").restore(states["belief"])
    verify.check_state(bandit, "reweighting", states["reweighting"])
    if bandit.reweighting is not None:
        bandit.reweighting.restore(states["reweighting"], bandit.belief)
    verify.check_counts(bandit)
    validation.check(bandit.spec, policy, bandit.balance, len(bandit.arms), bandit.n_features)
    fast_path.set_policy(bandit, policy)
    fast_path.publish(bandit)
    return bandit


def load(
    make: type[Bandit], file: BinaryIO, name: str,
    policy: Policy | None = None, model: object = None, balance: Balance | None = None,
    fresh: bool | np.random.SeedSequence = False,
) -> Bandit:  # fmt: skip
    """Return the bandit of a file, after checking all of its content. name: what errors call it."""
    if not isinstance(fresh, bool | np.random.SeedSequence):
        raise TypeError(f"fresh must be True, False or a SeedSequence; got {fresh!r}")
    if policy is not None:
        validation.check_policy(policy)
    if balance is not None:
        validation.check_balance(balance)
    meta, arrays = read(file, name)
    try:
        verify.check(meta, arrays)
        bandit = restore(make, meta, arrays, policy, model, balance)
    except INVALID_VALUE_ERRORS as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{name} is broken: {why}") from error
    if fresh is not False:
        random_streams.reseed(bandit, np.random.SeedSequence() if fresh is True else fresh)
    return bandit


def _check_digest(spec: object, meta: State) -> None:
    """Raise ValueError if a declaration builds another model than when the bandit was saved."""
    spec = spec.model if isinstance(spec, Shared) else spec
    if not isinstance(spec, Declaring):
        return
    now = spec.digest(len(meta["names"]), meta["n_features"])
    then = meta["digest"]
    if None not in (now, then) and now != then:
        raise ValueError(
            f"the declaration of {spec.declared.name!r} is not the one that the bandit was saved "
            "with: its code, its priors or what it refers to has changed; give the model as it "
            "was: load(path, model=…)"
        )


@transactions.exclusive
def checked(bandit: Bandit) -> tuple[str, Arrays]:
    """Return the text and arrays of this bandit's file; arrays are copied.

    Raise ValueError if `load` would refuse the file.
    """
    meta, arrays = state(bandit)
    text = json.dumps({**meta, "arrays": sorted(arrays)}, default=_plain)
    try:
        said = json.loads(text)
        verify.check(said, arrays)
        for part, whole in verify.states(said, arrays).items():
            verify.check_state(bandit, part, whole)
        verify.check_counts(bandit)
    except ValueError as error:
        raise ValueError(
            f"this bandit cannot be saved, no file of it would load: {error}"
        ) from error
    return text, {name: array.copy() for name, array in arrays.items()}


def write(file: BinaryIO, text: str, arrays: Arrays) -> None:
    """Write one npz file."""
    header = np.frombuffer(text.encode(), dtype=np.uint8)
    np.savez(file, allow_pickle=False, meta=header, **arrays)


def read(file: BinaryIO, name: str) -> tuple[State, Arrays]:
    """Return what `write` wrote; raise ValueError if the file is broken or of another version."""
    try:
        meta, arrays = _content(file)
    except Exception as error:  # a zip's reader raises what it likes when the file is broken
        raise ValueError(f"{name} is not a saved bandit, or is broken: {error}") from error
    kind = meta["format"]
    version = meta["version"]
    if kind != FILE_FORMAT or type(version) is not int or version != FILE_VERSION:
        raise ValueError(
            f"{name} holds {kind!r} version {version!r}; this release reads {FILE_FORMAT!r} "
            f"version {FILE_VERSION}"
        )
    if sorted(arrays) != meta.get("arrays"):
        raise ValueError(f"{name} is broken: it holds the arrays {sorted(arrays)}")
    return meta, arrays


def _content(file: BinaryIO) -> tuple[State, Arrays]:
    """Return the header and the arrays of a file; checksums of the zip find damage."""
    if not zipfile.is_zipfile(file):
        raise Broken("it is no npz file")
    file.seek(0)
    with np.load(file, allow_pickle=False) as content:
        arrays = {name: np.asarray(content[name], order="C") for name in content.files}
    if "meta" not in arrays:
        raise Broken(f"a saved bandit has the array 'meta'; this file has {sorted(arrays)}")
    meta = json.loads(arrays.pop("meta").tobytes().decode("utf-8"))
    check(meta, {"format": object, "version": object, ...: object}, "its header")
    return meta, arrays


def _plain(value: object) -> object:
    """Return NumPy's numbers as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"cannot save {value!r}: it is neither text nor a number")


def _model(encoded: State, model: object) -> Any:
    """Return the model that a file describes, or the given one.

    A file holds only the name and priors of a declared model. The model is found by name in the
    running program or the gallery.
    """
    if encoded["kind"] == Shared.__name__ and _kind(encoded.get("model")) in DECLARED:
        return Shared(_model(encoded["model"], model.model if isinstance(model, Shared) else model))
    if encoded["kind"] not in DECLARED:
        return decode(encoded, "model", model)
    if isinstance(model, Declaring):
        return model
    from bayesbandit.beliefs.declared import LEARNING_MODELS  # loads PyMC
    from bayesbandit.inference.registry import choices

    check(encoded, {"kind": str, "declared": str, ...: PLAIN_VALUE}, "its model")
    settings = {k: v for k, v in encoded.items() if k not in ("kind", "declared")}
    try:
        declared = RewardModel.from_yaml(encoded["declared"]) if model is None else model
    except (ValueError, OSError) as error:
        raise ValueError(f"{error}; give the bandit's model again: load(path, model=…)") from error
    if (engine := settings.get("engine", "auto")) not in choices():
        raise ValueError(
            f"the bandit's engine is {engine!r}, which is not registered; the engines are "
            f"{', '.join(choices())}: import the module that registers it, then load again"
        )
    return made(LEARNING_MODELS[encoded["kind"]], {"declared": declared, **settings})


def _kind(encoded: object) -> object:
    return encoded.get("kind") if isinstance(encoded, dict) else None
