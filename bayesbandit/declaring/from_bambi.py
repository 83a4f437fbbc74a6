"""A bambi model, as the declaration of a reward model.

bambi builds the PyMC model, with the design of its data as constant arrays. Here each of these
becomes a function of contexts and arms, c + x @ w. c and w are found by evaluation. New rows are
made by drawing each column of the data at random. formulae computes their design, and the encoder
their contexts x. c and w of each arm are solved for by half of the rows, and tested by the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Array, arm_names, one_of
from bayesbandit.tables.encoder import Encoder

if TYPE_CHECKING:
    import bambi
    import pandas as pd
    from bambi.backend.pymc import PyMCModel
    from pytensor.tensor.variable import TensorVariable

MEAN_PARAMETERS = {  # families whose mean reward is a parameter of the likelihood
    **dict.fromkeys(("gaussian", "t", "laplace", "poisson", "negativebinomial"), "mu"),
    **dict.fromkeys(("gamma", "beta", "exponential", "wald"), "mu"),
    "bernoulli": "p",
}
ROWS_FOR_EACH, MIN_ROWS = 3, 40  # of each arm, by unknown and at least; half of them are tests
DESIGN_TOLERANCE = 1e-9  # of a column of a design, relative to its largest number


@dataclass(frozen=True)
class Part:
    """A constant array of a built model that has a row for each row of the data.

    name: that of the term. array: as it stands in the model. design: computes it for other rows.
    """

    name: str
    array: Array
    design: Callable[[pd.DataFrame], Array]


def _affine(c: Array, w: Array, array: Array, most: int) -> Callable[..., Any]:
    """Return c + x @ w as a function of x, of arm, or of both.

    c: (K, 1, p), of K arms. w: (K, d, p). array: as it stands in the model: numbers (n,) for p = 1,
    or (n, p); whole ones are an index. most: the largest of these.
    """
    import pytensor.tensor as pt

    def shaped(value: TensorVariable) -> TensorVariable:
        if array.dtype.kind in "iu":  # an index, whatever the contexts are
            value = pt.clip(pt.round(value), 0, most)
        return value[:, 0] if array.ndim == 1 else value

    def of_context(x: TensorVariable) -> TensorVariable:
        return shaped(c[0] + x @ w[0])

    def of_arm(arm: TensorVariable) -> TensorVariable:
        return shaped(pt.constant(c[:, 0])[arm])

    def of_both(x: TensorVariable, arm: TensorVariable) -> TensorVariable:
        slopes = (x[:, :, None] * pt.constant(w)[arm]).sum(axis=1)
        return shaped(pt.constant(c[:, 0])[arm] + slopes)

    if (c == c[:1]).all() and (w == w[:1]).all():
        return of_context
    return of_both if w.any() else of_arm


def built(
    formula: str | bambi.Model, family: str, priors: Mapping[str, Any] | None, data: Any
) -> tuple[bambi.Model, PyMCModel]:
    """Return a bambi model and a PyMC model of it, in which each array of the design stands.

    Its logit and probit are plain, where bambi's keep a chance of 0 or 1 away from these.
    """
    try:
        import bambi
    except ImportError as error:
        raise ImportError("from_bambi needs bambi: pip install 'bayesbandit[bambi]'") from error
    import pymc as pm
    from bambi.backend.pymc import PyMCModel

    if not isinstance(formula, bambi.Model):
        if data is None:
            raise TypeError("a formula needs data=, the table to which it is fitted")
        formula = bambi.Model(formula, data, family=family, priors=dict(priors or {}))
    one_of(formula.family.name, "family", tuple(MEAN_PARAMETERS))
    if (response := formula.response_term.name) not in formula.data.columns:
        raise ValueError(
            f"the response must be a column of the data, which rewards take the place of; got "
            f"{response!r}"
        )
    for component in formula.conditional_parameters.values():
        if component.hsgp_terms:
            raise ValueError(
                f"{', '.join(component.hsgp_terms)}: a hsgp term is no design of rows; declare the "
                "model in PyMC, and use bb.RewardModel.from_pymc"
            )
    backend = PyMCModel()
    sparse = bambi.config["SPARSE_DOT"]
    plain = {"logit": pm.math.sigmoid, "probit": pm.math.invprobit}
    backend.INVLINKS = backend.INVLINKS | plain
    bambi.config["SPARSE_DOT"] = False
    try:
        backend.build(formula)
    finally:
        bambi.config["SPARSE_DOT"] = sparse
    return formula, backend


def parts(model: bambi.Model) -> Iterator[Part]:
    """Return the arrays that depend on rows."""
    for component in model.conditional_parameters.values():
        for name, term in component.offset_terms.items():
            of = component.design.common.terms[term.term.name]
            yield Part(name, np.squeeze(term.data), of.eval_new_data)
        if component.common_terms:
            yield _common(model, component)
        for name, term in component.group_specific_terms.items():
            of = component.design.group.terms[term.term.name]

            def index(frame: pd.DataFrame, factor: Any = of.factor) -> Array:
                return np.asarray(factor.eval_new_data(frame)).argmax(axis=1)

            yield Part(name, term.group_index, index)
            yield Part(name, term.predictor, of.expr.eval_new_data)


def _common(model: bambi.Model, component: Any) -> Part:
    """Return the matrix of the common terms, less its means where bambi takes them off."""
    terms = [component.design.common.terms[t.term.name] for t in component.common_terms.values()]
    data = np.column_stack([term.data for term in component.common_terms.values()])
    is_centred = component.intercept_term is not None and model.center_predictors
    mean = data.mean(0) if is_centred else np.zeros(data.shape[1])

    def design(frame: pd.DataFrame) -> Array:
        return np.column_stack([term.eval_new_data(frame) for term in terms]) - mean

    return Part(", ".join(component.common_terms), data - mean if is_centred else data, design)


def variables(model: bambi.Model) -> list[str]:
    """Return the columns of the data that the terms of a model name."""
    names: set[str] = set()
    for component in model.conditional_parameters.values():
        for design in (component.design.common, component.design.group):
            if design is not None:
                names.update(*(term.var_names for term in design.terms.values()))
    return [name for name in model.data.columns if name in names]


def encoder_of(model: bambi.Model, arm: str) -> Encoder | None:
    """Return an encoder with the model's terms, without arms; None if there are none."""
    terms: dict[str, None] = {}
    for component in model.conditional_parameters.values():
        common = component.design.common
        group = component.design.group
        components = [] if common is None else list(common.terms.values())
        for term in () if group is None else group.terms.values():
            components += [term.expr, term.factor]
        for term in components:
            factors = [_spelled(f.name) for f in getattr(term, "components", ()) if f.name != arm]
            if factors:
                terms[":".join(factors)] = None
    return Encoder.formula("~ " + " + ".join(terms), model.data) if terms else None


def _spelled(factor: str) -> str:
    """Return a factor of formulae as an encoder's formula has it: log(x), not np.log(x) or
    offset(np.log(x))."""
    if factor.startswith("offset("):
        factor = factor.removeprefix("offset(").removesuffix(")")
    return factor.removeprefix("np.")


def affine_parts(
    model: bambi.Model, encoder: Encoder | None, arm: str, arms: Sequence[Any] | None
) -> list[tuple[Array, Callable[..., Any]]]:
    """Return the arrays of a model that depend on rows, each with the function that it is of
    contexts and arms."""
    d = 0 if encoder is None else len(encoder.features)
    half = max(MIN_ROWS, ROWS_FOR_EACH * (d + 1))
    arms = (None,) if arms is None else arms
    frame = _rows(model, arm, arms, 2 * half)
    x = np.zeros((len(frame), 0)) if encoder is None else encoder.transform(frame)
    z = np.column_stack([np.ones(len(x)), x]).reshape(len(arms), 2 * half, d + 1)
    functions: list[tuple[Part, Array, Callable[..., Any]]] = []
    for part in parts(model):
        y = np.asarray(part.design(frame), dtype=float).reshape(*z.shape[:2], -1)
        w = np.stack([_solved(a, b) for a, b in zip(z[:, :half], y[:, :half], strict=True)])
        if not (np.abs(z @ w - y) <= DESIGN_TOLERANCE * np.abs(y).max(axis=(0, 1))).all():
            features = ", ".join(encoder.features) if encoder else "(none)"
            raise ValueError(
                f"{part.name}: not linear in the features {features}; give an encoder with "
                'features that it is linear in, as bb.Encoder.formula("~ …", data)'
            )
        equal = [one for one in functions if np.array_equal(one[0].array, part.array)]
        for other, weights, _ in equal:
            if not np.array_equal(weights, w):
                raise ValueError(
                    f"{other.name} and {part.name} are equal in all rows of the data, and differ "
                    "in others: leave one out, or give data in which they differ"
                )
        if not equal:
            function = _affine(w[:, :1], w[:, 1:], np.asarray(part.array), int(y.max()))
            functions.append((part, w, function))
    return [(part.array, function) for part, _, function in functions]


def _rows(model: bambi.Model, arm: str, arms: Sequence[Any], n: int) -> pd.DataFrame:
    """Return n rows of each arm, each column drawn from the data by itself."""
    import pandas as pd

    rng = np.random.default_rng(0)
    data = model.data
    size = n * len(arms)
    columns = {
        name: data[name].iloc[rng.integers(len(data), size=size)].array for name in variables(model)
    }
    if arm in columns:
        where = np.repeat([np.flatnonzero(data[arm] == one)[0] for one in arms], n)
        columns[arm] = data[arm].iloc[where].array
    return pd.DataFrame(columns, index=range(size))


def _solved(z: Array, y: Array) -> Array:
    """Return w (d + 1, p) with z w = y, without what is rounding."""
    w = np.linalg.lstsq(z, y)[0]
    weight = np.abs(w) * np.abs(z).max(axis=0)[:, None]
    w[weight <= DESIGN_TOLERANCE * np.abs(y).max(axis=0, initial=1e-300)] = 0.0
    near = np.abs(w - np.round(w)) <= DESIGN_TOLERANCE
    return np.where(near, np.round(w), w)


def levels_of(model: bambi.Model, arm: str, arms: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """Return the values of the arm's column, in the order of the bandit's arms.

    None if no term uses that column. Raise ValueError for an arm that has no row in the data.
    """
    if arm not in variables(model):
        if arms is not None:
            raise ValueError(f"arms are {arms!r}, and no term names the column {arm!r}")
        return None
    column = model.data[arm]
    levels = list(column.cat.categories) if hasattr(column, "cat") else sorted(column.unique())
    names = tuple(levels) if arms is None else arm_names(arms)
    if unknown := [one for one in names if one not in set(column)]:
        raise ValueError(f"arms must be values of {arm!r} ({levels}); got {unknown[0]!r}")
    return names
