"""Files that say what no bandit said: every value of a saved bandit in turn by one of another type,
size or shape, and every array; a law for all kinds of bandits."""

import io
import json
import re
import zipfile
from copy import deepcopy

import numpy as np

MARK = "\N{SNOWMAN}"  # stands for a text that is put in as it is
DIGITS = (
    *("-1", "0", "1", "2", "0.5", "-0.0", "3", "7", "100000", "1e308", "-1e308", "5e-324", "1e999"),
    *("NaN", "Infinity", "-Infinity", "2147483648", "9007199254740991", "9007199254740993"),
    *("1" + "0" * 30, "1" + "0" * 400, "-1" + "0" * 400, "1" + "0" * 5000),
)
VALUES = (
    *DIGITS,
    *("null", "true", "false"),
    *('""', '"x"', f'"{"x" * 10_000}"', '"\\ud800"', '"\\u0000"', '"1"', '"__class__"', '"list"'),
    *("[]", "{}", "[[]]", "[0]", '["a"]', "[null]", "[" * 1000 + "]" * 1000, '{"a":' * 99 + "1"),
    *('{"a": 1, "a": 2}', '{"kind": "Ridge"}', '{"kind": "Thompson"}', '{"kind": "os:system"}'),
    *('{"kind": "list", "values": 1}', '{"kind": "dict", "pairs": [[[], 1]]}', '{"kind": 1}'),
    '{"kind": "array", "dtype": "<U99999", "shape": [9], "values": ["", "", "", "", "", ""]}',
    '{"kind": "array", "dtype": "|O", "shape": [1], "values": ["a"]}',
    *('{"kind": "function", "foreign": true}', '{"kind": "Shared", "model": {"kind": "UCB"}}'),
)
NUMBERS = (
    *(np.nan, np.inf, -np.inf, -1, 0, 1, 0.5, 2, 7, 5e-324, 1e-300, 1e18, 1e50, 1e75, 1e308),
    *(-1e308, 2**31, 2**53, -(2**63)),
)
DTYPES = (
    *("<f4", ">f8", "<f2", "<i8", "<i4", "|u1", "|b1", "<c16", "<U3", "|S3", "|O", "<M8[s]"),
    "f8,i4",
)
PRIORS = (  # of a declared model's text
    *("1.0", "-1", "1e308", ".inf", "[1.0, 2.0]", "[[1.0]]", "[]", "true", "x", "{}", "{dist: 3}"),
    *(f"{{dist: Normal, transform: {name}}}" for name in ("arange", "exp", "eye", "__init__", "e")),
    *(f"{{dist: {name}, dims: [feature]}}" for name in ("Normal", "Flat", "Dirichlet", "set_data")),
    *(f"{{dist: {name}}}" for name in ("Normal", "HalfNormal", "AsymmetricLaplace", "DensityDist")),
    *("{dist: LKJCholeskyCov, kwargs: {n: 1000000, eta: 1}}", "{dist: MvNormal, kwargs: {mu: 1}}"),
    *(f"{{dist: Normal, kwargs: {{sigma: {n}}}}}" for n in ("0", "-1", "1e308", "5e-324")),
    "{dist: GARCH11, kwargs: {omega: 9, alpha_1: 9, beta_1: 9, initial_vol: 9}}",
    "{class: Censored, data: {dist: {dist: Normal}, lower: a, upper: 1}}",
    "{class: Scaled, data: {dist: {dist: Normal, transform: kron}, factor: 2}}",
    "{dist: Normal, kwargs: {mu: {dist: Normal, kwargs: {sigma: {dist: Flat}}}}}",
)
NAMES = (
    *("belief.update", "belief.__class__", "belief.n", "belief.arms", "belief.", "reweighting.0.a"),
    *("stream.npy", "../stream", "meta", "x", ""),
)


def places(value, at=()):
    """The paths of all values in lists and dicts in each other."""
    yield at
    if not isinstance(value, dict | list):
        return
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places(one, (*at, key))


def replaced(value, at, other):
    """A copy with another value at a path."""
    if not at:
        return other
    value = deepcopy(value)
    inner = value
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = other
    return value


def found(value, at):
    for key in at:
        value = value[key]
    return value


def pick(rng, values):
    return values[int(rng.integers(len(values)))]


def another_number(text, rng):
    """The text of plain values with one number another one; and what it is."""
    meta = json.loads(text)
    numbers = [at for at in places(meta) if type(found(meta, at)) in (bool, int, float)]
    top = pick(rng, sorted({at[0] for at in numbers}))
    at = pick(rng, [at for at in numbers if at[0] == top])
    now = found(meta, at)
    put = pick(rng, [*map(json.dumps, (now + 1, now - 1, 2 * now, now // 2, not now)), *DIGITS])
    return json.dumps(replaced(meta, at, MARK)).replace(json.dumps(MARK), put), f"{at}: {put:.40}"


def said_otherwise(text, rng):
    """The text of plain values with one of them another, or a key more or less; and what it is."""
    meta = json.loads(text)
    top = pick(rng, sorted(meta))  # a long list no more often than a number
    at = (top, *pick(rng, list(places(meta[top]))))
    inner, how = found(meta, at), rng.random()
    if isinstance(inner, dict | list) and how < 0.4:
        changed = deepcopy(inner)
        if isinstance(inner, dict):
            key = pick(rng, [*inner, "kind", "alpha", "__init__"])
            if how < 0.2:
                changed.pop(key, None)
            else:
                changed[pick(rng, ("more", "kind", "foreign", "code", "model", ""))] = MARK
        elif how < 0.2 and inner:
            del changed[int(rng.integers(len(inner)))]
        else:
            changed.insert(int(rng.integers(len(inner) + 1)), MARK)
        meta = replaced(meta, at, changed)
    elif how > 0.95:
        del meta[top]
    elif how > 0.9:
        meta[pick(rng, ("more", "\0", "digest"))] = MARK
    else:
        meta = replaced(meta, at, MARK)
    put = pick(rng, VALUES)
    said = json.dumps(meta).replace(json.dumps(MARK), put)
    if rng.random() < 0.03:
        said = said[:-1] + f", {json.dumps(top)}: {put}" + "}"
    return said, f"{'.'.join(map(str, at))}: {put[:40]}"


def other_priors(text, rng):
    """The text of plain values with another prior of its declared model, where it has one, and
    without a digest, which would tell it; and what it is."""
    meta = json.loads(text)
    named = [at for at in places(meta.get("model")) if at and at[-1] == "declared"]
    at = [at for at in named if isinstance(found(meta["model"], at), str)]
    if not at:
        return said_otherwise(text, rng)
    declared = found(meta["model"], at[0])
    name = pick(rng, re.findall(r"^  (\w+):", declared, re.MULTILINE) or ["theta"])
    put = f"{declared.partition('priors:')[0]}priors: {{{name}: {pick(rng, PRIORS)}}}\n"
    model = replaced(meta["model"], at[0], put)
    return json.dumps({**meta, "digest": None, "model": model}), put


def claimed(text, arrays, rng):
    """A file that says of itself, and nothing against it, that it has many more features."""
    meta, more = json.loads(text), pick(rng, (1, 100, 3000, 30_000))
    meta |= {"n_features": meta["n_features"] + more, "total": 0}
    meta |= {"digest": None} if "digest" in meta else {}
    rows = np.zeros((0, arrays["history"].shape[-1] + more))
    return json.dumps(meta), {**arrays, "history": rows}, f"{more} features more"


def otherwise(array, rng):
    """An array with other numbers, of another type or another shape; and what it is."""
    how, number = rng.random(), pick(rng, NUMBERS)
    with np.errstate(all="ignore"):
        if how < 0.5 and array.size and array.dtype.kind in "iuf":
            array = array.copy()
            flat = array.reshape(-1)
            head = rng.random() < 0.5
            at = int(rng.integers(min(24, flat.size) if head else flat.size))
            flat[slice(None) if rng.random() < 0.1 else at] = np.float64(number).astype(array.dtype)
            return array, f"[{at}] = {number}"
        if how < 0.7:
            dtype = pick(rng, DTYPES)
            try:
                return np.asarray(array).astype(dtype), dtype
            except (TypeError, ValueError, OverflowError, RuntimeError):
                return np.zeros(array.shape, dtype), dtype
        shapes = (
            array[:-1] if array.ndim else array.reshape(1), array.ravel(), array[None],
            array[..., :-1] if array.ndim else array, array.T, np.asfortranarray(array),
            np.repeat(array, 2, axis=0) if array.ndim else array, np.zeros(0), np.zeros(()),
            np.zeros((0, 10**6)), np.zeros((1,) * 20), np.full(array.shape, float(number)),
            np.ones((3, 3)), np.zeros((5, 200)), np.resize(array, array.size + 1),
        )  # fmt: skip
        changed = pick(rng, shapes)
    return changed, f"shape {changed.shape}"


def packed(text, arrays, rng=None):
    """The bytes of a file; with `rng`, at times one that no `savez` wrote."""
    odd = 1.0 if rng is None else rng.random()
    held = {"meta": np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8), **arrays}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if odd < 0.02 else 0) as zipped:
        for name, array in held.items():
            entry = io.BytesIO()
            version = (2, 0) if 0.02 < odd < 0.04 else None
            np.lib.format.write_array(entry, np.asanyarray(array), version)
            whole = entry.getvalue()
            if 0.04 < odd < 0.06:
                whole = whole.replace(b"'descr'", b"'desc' ", 1)
            if 0.06 < odd < 0.08:
                whole = whole.replace(b"False", b"f(1) ", 1)
            zipped.writestr(f"{name}.npy", whole)
        if 0.08 < odd < 0.1:
            zipped.writestr("more.npy", bytes(10**6))
    return file.getvalue()


def crafted(text, arrays, rng):
    """A file's bytes with one or two things that no bandit said, and what they are."""
    done = []
    for _ in range(int(rng.integers(1, 3))):
        how = rng.random()
        if how < 0.03 and not done:
            text, arrays, what = claimed(text, arrays, rng)
        elif how < 0.5:
            try:
                change = pick(rng, (another_number, said_otherwise, other_priors))
                text, what = change(text, rng)
            except (ValueError, RecursionError):  # it is no JSON any more
                continue
        elif how < 0.93:
            name = pick(rng, sorted(arrays))
            changed, what = otherwise(arrays[name], rng)
            arrays, what = {**arrays, name: changed}, f"{name} {what}"
        elif how < 0.96 and len(arrays) > 1:
            name = pick(rng, sorted(arrays))
            arrays, what = {k: v for k, v in arrays.items() if k != name}, f"no {name}"
        else:
            name = pick(rng, NAMES)
            arrays, what = {**arrays, name: pick(rng, list(arrays.values()))}, f"{name!r} more"
        done.append(what)
    names = json.dumps(sorted(name for name in arrays if name != "meta"))
    held = text.rpartition('"arrays": [')  # the list of arrays as it is now, mostly
    if held[1] and rng.random() < 0.95:
        text = held[0] + '"arrays": ' + names + held[2].partition("]")[2]
    return packed(text, arrays, rng), ", ".join(done)
