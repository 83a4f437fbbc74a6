"""Formulas of somebody who wants a shell: each ends in an encoder or in an error, soon, and none of
its text is run.

Three doors: `Encoder.formula`, `Encoder.from_dict` of a changed dict, and a bandit's file.
"""

import builtins
import json
import resource
import sys
import time
import warnings
from contextlib import suppress
from functools import cache

import numpy as np
import pandas as pd

import bayesbandit as bb
from bayesbandit.tables.stored import digest
from tests.attack.crafting import pick, places, replaced
from tests.attack.tally import count

SECONDS, MEGABYTES = 5.0, 300  # that a case, and all of them, may take
EVENTS = {"exec", "import", "open", "os.system", "os.posix_spawn", "subprocess.Popen", "pty.spawn",
          "socket.__new__", "ctypes.dlopen", "marshal.loads", "pickle.find_class"}  # fmt: skip
FRAME = pd.DataFrame(
    {
        "x": np.linspace(0.5, 7.0, 12) ** 1.5,
        "y": np.cos(np.arange(12.0)) + 2,
        "k": list("abcabcabcabb"),
        "it's": np.arange(12) % 5 + 0.5,
        "a b": np.sin(np.arange(12.0)),
    }
)
WHOLE = [
    "x", "y", "k", "`it's`", "`a b`", "log(x)", "sqrt(x)", "bs(x, df=4)", "cr(y, df=3)",
    "poly(x, 2)", "scale(y)", "center(`a b`)", "I(x**2)", "{x - y}", "I(`it's` * 2 + 1)", "0", "1",
    "bs(`it's`, knots=[1.5, 2.5])", "scale(log(x))", "I(-x / 3)", "cc(x, df=3)", "standardize(x)",
    "log1p(x)",
]  # fmt: skip
CALLS = [
    "ran()", "ran", "__import__('os').system('ran')", "eval('ran()')", "exec('ran()')",
    "ｅval('ran()')", "ｒａｎ()", "r\u200ban()", "getattr(ran, '__call__')()", "ran.__call__()",
    "().__class__.__base__.__subclasses__()", "(lambda: ran())()", "[ran() for i in 'a']",
    "{ran(): 1}", "f'{ran()}'", "(z := ran())", "x.pipe(ran)", "x.__class__", "x.values",
    "x.__init__.__globals__['__builtins__']['ran']()", "np.load('ran')",
    "np.frompyfunc(ran, 1, 1)(x)", "Q('x')", "Q(ran())", "C(x, ran())", "contr.treatment(ran())",
    "hashed(x)", "lag(x)", "open('ran')", "`+ran()+`", "'`' + str(ran()) + '`'",
    '"`" + str(ran()) + "`"', "`x` if ran() else `x`", "0*('`' == str(ran()) + '`')",
    "''' ` '''+ran()+''' ` '''", "1 if ran() else x", "ran() and x", "x[ran()]", "x @ ran()",
    "(yield ran())", "(await ran())", "*[ran()]", "**{'a': ran()}", "not ran()", "ran()()",
    "_state", "__builtins__", "__FORMULAIC_CONTEXT__", "__FORMULAIC_STATE__['x']", "np", "True",
    "None", "...", "x.y", "x ~ ran()", "x == ran()", "x < y < ran()", "u'clip'", "b'clip'",
    "'clip'", "9**9**9", "(((9*9)**100)**100)**100", "'a' * 1500000000", "[0] * 1500000000",
    "1e999", "1j", "10**400", "9" * 700, "0x" + "f" * 700, "x ** 1e9", "x ** x", "1 << 10**10",
    "(x+y)**100", "(x+y+k)^99", "-" * 400 + "x", "(" * 150 + "x" + ")" * 150,
    "+".join(["x"] * 200), "I(" * 60 + "x" + ")" * 60, "scale(" * 60 + "x" + ")" * 60,
    "x*" * 60 + "y", "(x+y+k)*" * 30 + "y", "x:" * 60 + "y",
]  # fmt: skip
FUNCTIONS = [
    "I", "bs", "cr", "cc", "poly", "scale", "center", "log", "np.log", "ran", "Q", "C", "",
    "eval",
]  # fmt: skip
SETTINGS = [
    "df=4", "df={}", "degree={}", "knots=[{}]", "knots={}", "raw={}", "extrapolation={}",
    "lower_bound={}", "_state={}", "_context={}", "_spec={}", "constraints={}", "center={}",
    "**{}", "*{}", "df=4, df={}", "include_intercept={}", "{}", "df=10**9", "df=100",
]  # fmt: skip
SIGNS = [
    "+", "-", "*", ":", "/", "**", "^", "%in%", "~", "|", ",", ".", " ", "\n", "\\\n", "#",
    "# \n", ";", "=", ":=", "%", "@", "[", "]", "(", ")", "{", "}", "`", "'", '"', "'''", '"""',
    "\\", "\\'", "\\`", "\x00", "\u200b", "｀", "＇", "＂", "ˋ", "′", "\ud800", "\u202e", "\ufeff",
    "f'", "r'", "b'", "{{", "\t", "\r", "\x0c",
]  # fmt: skip


class Ran(BaseException):
    """Code of a formula has run."""


WATCH = {"on": False}


@cache
def _hooked():
    """Watches the interpreter from now on; there is no way to stop, only to look away."""

    def hook(event, arguments):
        if WATCH["on"] and event in EVENTS and not _harmless(event, arguments):
            WATCH["on"] = False
            raise Ran(f"{event}: {arguments!r:.200}")

    sys.addaudithook(hook)
    return True


def _harmless(event, arguments):
    """Our own files: those of bandits, and lines of source that a warning shows."""
    return event == "open" and str(arguments[0]).endswith((".npz", ".py"))


def _ran(*_, **__):
    raise Ran("ran()")


def hostile(rng):
    """A part that may be anything."""
    how = rng.random()
    if how < 0.4:
        return pick(rng, CALLS)
    if how < 0.6:
        return (
            f"{pick(rng, FUNCTIONS)}({part(rng)}, {pick(rng, SETTINGS).replace('{}', part(rng))})"
        )
    if how < 0.75:
        return f"{pick(rng, FUNCTIONS)}({part(rng)}{pick(rng, SIGNS)}{part(rng)})"
    if how < 0.85:
        quote = pick(rng, ["'", '"', "`", "'''"])
        return quote + part(rng) + quote
    return "{" + part(rng) + "}"


def part(rng):
    return hostile(rng) if rng.random() < 0.4 else pick(rng, WHOLE)


def text_of(rng):
    """A formula: parts between signs, at times with a few characters changed."""
    signs = SIGNS[:4] if rng.random() < 0.7 else SIGNS
    evil = 0.0 if rng.random() < 0.05 else 0.7
    parts = [
        hostile(rng) if rng.random() < evil else pick(rng, WHOLE)
        for _ in range(int(rng.integers(1, 4)))
    ]
    text = "~ " * (rng.random() < 0.8) + parts[0]
    for one in parts[1:]:
        text += f" {pick(rng, signs)} {one}"
    return scratched(text, rng) if rng.random() < 0.3 else text


def scratched(text, rng):
    """A text with a few characters inserted, lost, doubled or moved."""
    for _ in range(int(rng.integers(1, 4))):
        at, to = sorted(int(i) for i in rng.integers(0, len(text) + 1, size=2))
        how = rng.random()
        if how < 0.5:
            text = text[:at] + pick(rng, SIGNS) + text[at:]
        elif how < 0.7:
            text = text[:at] + text[at + 1 :]
        elif how < 0.85:
            text = text[:to] + text[at:to] + text[to:]
        else:
            text = text[:at] + text[to:] + text[at:to]
    return text


def changed(plain, rng):
    """A stored encoder with another formula, or with other values; its digest is right."""
    formula = dict(plain["formula"])
    how = rng.random()
    if how < 0.3:
        formula["text"] = text_of(rng)
    elif how < 0.5:
        one = text_of(rng).removeprefix("~ ")
        formula["text"] = f"{formula['text']} + {one}"
    elif how < 0.65 and formula["state"]:
        key = pick(rng, list(formula["state"]))
        formula["state"] = formula["state"] | {hostile(rng): formula["state"][key]}
    elif how < 0.85:
        formula["state"] = moved(formula["state"], rng)
    else:
        formula = mangled(formula, rng)
    made = plain | {"formula": formula}
    if rng.random() < 0.1:
        made = mangled(made, rng)
    if isinstance(made, dict) and "digest" in made:
        with suppress(TypeError, ValueError):
            made = made | {"digest": digest(made)}
    return made


def mangled(value, rng):
    """A copy of plain values with another one in the place of one of them."""
    others = [None, True, -1, 0, 3, 2**53, 10**30, -0.5, 1e308, "", "x", [], {}, [[]], ["a"],
              float("nan"), float("inf")]  # fmt: skip
    return replaced(value, pick(rng, list(places(value))), pick(rng, others))


def moved(state, rng):
    """A state with another number in the place of one of its numbers."""
    if isinstance(state, dict) and state:
        key = pick(rng, list(state))
        return state | {key: moved(state[key], rng)}
    if isinstance(state, list) and state:
        at = int(rng.integers(len(state)))
        return [*state[:at], moved(state[at], rng), *state[at + 1 :]]
    number = isinstance(state, int | float)
    return pick(rng, [0.0, -1.0, 2.5, 1e9, -1e300, 7, float("nan"), 10**400]) if number else state


@cache
def stored():
    """Encoders as they are stored, and a bandit's file, as header and arrays."""
    texts = [
        "~ x * k + bs(y, df=4) + poly(x, 2)", "~ I(`it's` * 2) + scale(log(x)) + `a b`",
        "~ cr(x, df=4) + scale(y) + k:log(x)", "~ x + cc(y, df=3)",
    ]  # fmt: skip
    plain = [bb.Encoder.formula(text, FRAME).to_dict() for text in texts]
    return [json.loads(json.dumps(one)) for one in plain]


def _file(folder, plain):
    path = folder / "b.npz"
    bb.LinTS(2, encoder=bb.Encoder.from_dict(plain)).save(path)
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    return json.loads(arrays.pop("meta").tobytes()), arrays


def formulas(folder, seed, name="", times=400):
    """Formulas through three doors."""
    _hooked()
    rng = np.random.default_rng(seed)
    files = [_file(folder, plain) for plain in stored()]
    bb.Bandit.load(folder / "b.npz").encoder.transform(FRAME)  # which loads modules and kernels
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    builtins.ran = _ran
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in range(times):
                _one(folder, rng, files, i)
    finally:
        WATCH["on"] = False
        del builtins.ran
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MEGABYTES, f"{grown:.0f} MB for formulas of seed {seed}"


def _one(folder, rng, files, i):
    door = pick(rng, ["text"] * 14 + ["dict"] * 5 + ["file"])
    if door == "text":
        given = text_of(rng)
    else:
        at = int(rng.integers(len(files)))
        given = changed(stored()[at], rng)
    if door == "file":
        path, (meta, arrays) = folder / "b.npz", files[at]
        header = np.frombuffer(json.dumps(meta | {"encoder": given}).encode(), np.uint8)
        np.savez(path, meta=header, **arrays)
    began = time.process_time()
    WATCH["on"] = True
    try:
        if door == "text":
            encoder = bb.Encoder.formula(given, FRAME)
        elif door == "dict":
            encoder = bb.Encoder.from_dict(given)
        else:
            encoder = bb.Bandit.load(path).encoder
        if encoder is None:  # a bandit of numbers, which a file may say
            return
        row = encoder.transform(FRAME.iloc[[3]][list(encoder.columns)])
    except (ValueError, TypeError):
        count("formulas", f"{door}: refused")
    except BaseException as error:
        raise AssertionError(f"case {i}, {door}: {given!r} ended in {error!r}") from error
    else:
        count("formulas", f"{door}: encoders")
        assert row.shape == (1, len(encoder.features)), given
        assert np.isfinite(row).all(), given
        if door == "text":
            assert bb.Encoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder, given
    finally:
        WATCH["on"] = False
    took = time.process_time() - began
    assert took < SECONDS, f"case {i}, {door}: {took:.1f} s for {given!r}"
