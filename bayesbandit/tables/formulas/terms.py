"""The terms of a formula's text, with a bound on the work before it is done.

formulaic's parser evaluates calls on the left of ~ as it reads them. Therefore it never sees what a
user wrote but operators and numbers: each factor is read here, and stands as f0, f1, … in what
formulaic expands.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sized
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bayesbandit.checks import Name, shown
from bayesbandit.tables.formulas.expressions import Expression
from bayesbandit.tables.formulas.reading import Reader, check_column

if TYPE_CHECKING:
    from formulaic.parser.types import Operator, Term

LONGEST = 10_000  # characters of a formula
MOST_FACTORS = 6  # of a term
MOST_WORK = 200_000  # terms that operators go through, all together
PRODUCT = 10  # terms that one goes through in the time that a product of two takes
LARGEST = 100  # of an exponent
# a name in backticks; a text that a setting may have; any other quote
QUOTED = re.compile(r"`(?P<name>[^`]*)`|(?P<quote>['\"])[a-z]*(?P=quote)|[`'\"]")
NUMERAL = re.compile(r"\d+\.?\d*|\.\d+")
SIGNS = re.compile(r"[-+*/:^]{1,20}")


@dataclass(frozen=True)
class Terms:
    """The terms of a formula as the texts of their factors, none for the constant term; and what
    each factor computes. constant: whether the text itself names the constant term, as 1 + age."""

    terms: tuple[tuple[str, ...], ...]
    factors: Mapping[str, Expression]
    constant: bool = False


def terms_of(text: object, columns: Collection[Name]) -> Terms:
    """Return the terms of a formula of these columns; a ValueError for one that is not allowed."""
    if not isinstance(text, str):
        raise TypeError(f"a formula is a text, as '~ age * country'; got {shown(text)}")
    if len(text) > LONGEST:
        raise ValueError(
            f"the formula {text[:60]!r}… has {len(text):,} characters; at most {LONGEST:,}"
        )
    factors: dict[str, Expression] = {}
    skeleton = _skeleton(text, dict.fromkeys(columns), factors)
    texts = {f"f{i}": factor for i, factor in enumerate(factors)}
    terms, numbers = [], Reader((), {})
    for symbols in _expanded(text, skeleton, texts):
        term = tuple(texts.get(symbol, symbol) for symbol in symbols if symbol != "1")
        if len(term) > MOST_FACTORS:
            raise ValueError(
                f"a term of the formula has {len(term)} factors; at most {MOST_FACTORS}"
            )
        factors |= {one: numbers.read(one)[1] for one in term if one not in factors}
        terms.append(term)
    used = {factor for term in terms for factor in term}
    named = "1" in skeleton.split() and ["1"] in _expanded(text, skeleton, texts, implied=False)
    return Terms(tuple(terms), {one: factors[one] for one in factors if one in used}, named)


def _skeleton(text: str, columns: Collection[Name], factors: dict[str, Expression]) -> str:
    """Return a formula with f0, f1, … for its factors, which are put into `factors` in this
    order."""
    from formulaic.errors import FormulaicError
    from formulaic.parser.algos.tokenize import tokenize

    code, quoted = _without_backticks(text, columns)
    reader = Reader({n: None for n in columns if isinstance(n, str) and not n.isdecimal()}, quoted)
    places: dict[str, int] = {}
    parts = []
    try:
        tokens = list(tokenize(code))
    except FormulaicError as error:
        raise _unread(text, error) from error
    for i, token in enumerate(tokens):
        kind, said = token.kind.value, token.token
        if kind == "operator" and i == 0:
            said = said.removeprefix("~")
        if said == ".":
            raise ValueError(f"the formula {text!r}: '.' stands for no columns; name them")
        if kind in ("name", "python"):
            factor, computed = reader.read(said)
            factors[factor] = computed
            parts.append(f"f{places.setdefault(factor, len(places))}")
        elif kind == "operator" and ("~" in said or "|" in said):
            raise ValueError(f"a formula has one side, as '~ age * country'; got {text!r}")
        elif kind == "operator" and said == "in":
            parts.append("%in%")
        elif (
            (kind == "value" and NUMERAL.fullmatch(said))
            or (kind == "context" and said in "()")
            or (kind == "operator" and (SIGNS.fullmatch(said) or not said))
        ):
            parts.append(said)
        else:
            raise _unread(text, f"there is {said[:20]!r}")
    return " ".join(parts)


def _without_backticks(text: str, columns: Collection[Name]) -> tuple[str, dict[str, str]]:
    """Return a formula with an identifier for each name in backticks, and what these stand for."""
    stem = "quoted"
    while stem in unicodedata.normalize("NFKC", text):
        stem += "_"
    stand_ins: dict[str, str] = {}

    def stand_in(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            if len(found[0]) < 2:
                raise _unread(text, f"{found[0]} is without another, or around more than a word")
            return found[0]
        check_column(name, columns)
        if NUMERAL.fullmatch(name):
            raise ValueError(
                f"the formula {text!r}: the column {name!r} reads as a number; rename it"
            )
        return f" {stand_ins.setdefault(name, f'{stem}{len(stand_ins)}')} "

    code = QUOTED.sub(stand_in, text)
    return code, {identifier: name for name, identifier in stand_ins.items()}


def _expanded(
    text: str, skeleton: str, texts: Mapping[str, str], implied: bool = True
) -> list[list[str]]:
    """Return the terms of a formula of symbols and numbers.

    implied: whether there is a constant term unless the formula takes it away.
    """
    from formulaic import Formula
    from formulaic.errors import FormulaicError
    from formulaic.parser import DefaultFormulaParser

    parser = DefaultFormulaParser(operator_resolver=_operators(), include_intercept=implied)
    try:
        parsed = Formula(skeleton, _parser=parser)
    except (FormulaicError, SyntaxError, ValueError, TypeError, RecursionError) as error:
        said = re.sub(r"f\d+", lambda found: texts.get(found[0], found[0]), str(error))
        raise _unread(text, said) from error
    return [[factor.expr for factor in term.factors] for term in parsed]


def _operators() -> Any:
    """Return formulaic's operators for one formula. Together they do no more than MOST_WORK."""
    from formulaic.parser.parser import DefaultOperatorResolver
    from formulaic.parser.types import Operator

    left = MOST_WORK

    def bounded(theirs: Operator) -> Operator:
        product = theirs.symbol not in "+-"

        def to_terms(*sets: Sized) -> Any:
            nonlocal left
            sizes = [len(one) for one in sets]
            if product and 0 in sizes:
                raise ValueError(f"{theirs.symbol} is beside no term")
            left -= sum(sizes) + product * PRODUCT * math.prod(sizes)
            if left < 0:
                raise ValueError("it has too many terms")
            return theirs.to_terms(*sets)

        return _with(theirs, to_terms)

    def _with(theirs: Operator, to_terms: Callable[..., Any]) -> Operator:
        return Operator(
            theirs.symbol,
            arity=theirs.arity,
            precedence=theirs.precedence,
            associativity=theirs.associativity,
            fixity=theirs.fixity,
            to_terms=to_terms,
        )

    class Bounded(DefaultOperatorResolver):
        @property
        def operators(self) -> list[Any]:
            theirs = [one for one in super().operators if one.symbol not in ("~", "|", ".")]
            powers = [one for one in theirs if one.symbol in ("**", "^")]
            ours = [bounded(one) for one in theirs if one not in powers]
            times = next(one for one in ours if one.symbol == ":")
            return ours + [_with(one, partial(_power, times.to_terms)) for one in powers]

    return Bounded()


def _power(
    times: Callable[..., Any], terms: Iterable[Term], exponent: Iterable[Term]
) -> Iterable[Term]:
    """Return the products of so many of the terms, one factor after the other: there are soon no
    new ones, while all the products that formulaic forms would be too many."""
    said = [factor.expr for term in exponent for factor in term.factors]
    if len(said) != 1 or not re.fullmatch("[1-9][0-9]?|100", said[0]):
        raise ValueError(f"an exponent must be a whole number from 1 to {LARGEST}")
    found = terms
    for _ in range(int(said[0]) - 1):
        wider = times(found, terms)
        if [term.factors for term in wider] == [term.factors for term in found]:
            break
        found = wider
    return found


def _unread(text: str, why: object) -> ValueError:
    said = (str(why).splitlines() or [type(why).__name__])[0]
    return ValueError(f"the formula {text!r} cannot be read: {said}")
