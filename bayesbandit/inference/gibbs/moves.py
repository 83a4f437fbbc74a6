"""The joint moves that help a Gibbs sampler of a layout to mix: `kernels.gibbs.orbits.Moves`.

A variable with few elements, such as a noise scale or a common prior scale, moves together

- with all elements of another variable, so that their common terms do not change (σ² with the
  precisions of Student-t noise: parameter expansion, Liu and Wu 1999);
- with the coefficients whose prior scale it is, all stretched about their prior means. This is the
  step of the non-centred parametrisation; a sweep takes the centred one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array

from bayesbandit.inference.gibbs.layout import Layout, part_of
from bayesbandit.kernels.gibbs.orbits import Moves

FEW = 32  # each element of a variable with at most so many is tried
MOVES = 40  # at most so many moves are used
LIFT_SIZE = 250_000  # largest number of entries of a right inverse that is dense
LOST = 1e-4  # of a log density, by rounding, that changes no step

Array = np.ndarray
Candidate = tuple[Array, bool]


def moves(layout: Layout, tried: Iterable[Candidate]) -> Moves:
    """Return the first `MOVES` of the candidates that are possible, as the kernel takes them."""
    parts: list[tuple[Array, ...]] = []
    exact = not loses_digits(layout)
    for speed, lifted in tried:
        part = move(layout, speed, lifted) if exact or not lifted else None
        if part is not None and len(parts) < MOVES:
            parts.append(part)
    columns = list(zip(*parts, strict=True)) if parts else [()] * 11
    shifted, rate, term, along, slot, exponents, stretch, squares, row, lift, sizes = columns
    linear = np.array([float(r) * len(o) for r, o in zip(stretch, squares, strict=True)])
    return Moves(
        joined(shifted, np.int64),
        joined(rate),
        ends(shifted),
        joined(term, np.int64),
        joined(along),
        np.concatenate([np.zeros((0, 3), np.int64), *slot]),
        ends(term),
        joined(exponents),
        ends(exponents),
        linear,
        np.array([float(r) for r in stretch]),
        joined(squares, np.int64),
        ends(squares),
        joined(row, np.int64),
        joined(lift),
        np.cumsum([0, *joined(sizes, np.int64)], dtype=np.int64),
    )


def loses_digits(layout: Layout) -> bool:
    """Return whether a stretch changes the log density by less than its rounding.

    It does if means are many sds of a known noise from the rewards.
    """
    dense = layout.dense
    known = (dense.powers.exponent == 0.0).all(axis=0)
    far = np.abs(dense.powers.coef[known]) @ dense.offsets[known] ** 2
    return bool(far * np.finfo(np.float64).eps > LOST)


def joined(parts: tuple[Array, ...], dtype: type = np.float64) -> Array:
    return np.concatenate([np.zeros(0, dtype), *(p.astype(dtype).ravel() for p in parts)])


def ends(parts: tuple[Array, ...]) -> Array:
    """Return where each part begins when the parts are concatenated."""
    return np.cumsum([0, *(p.size for p in parts)], dtype=np.int64)


def candidates(layout: Layout, owner: Array) -> Iterator[Candidate]:
    """Yield moves that may help: the elements' speeds (P,), and whether coefficients stretch, too.

    owner (P,): the number of the variable that each element belongs to.
    """
    t = layout.terms
    of_term = part_of(t.element_at)
    sizes = np.bincount(owner)
    for i in np.flatnonzero(sizes[owner] <= FEW):
        mine = t.element == i
        if mine.sum() < 2:
            continue
        alone = np.zeros(len(owner))
        alone[i] = 1.0
        yield alone, True
        shared = np.zeros(len(t.coef))
        shared[of_term[mine]] = t.exponent[mine]
        others = (shared[of_term] != 0.0) & ~mine
        for v in np.unique(owner[t.element[others]]):
            with_v = others & (owner[t.element] == v)
            terms, elements = of_term[with_v], t.element[with_v]
            lonely = len(np.unique(terms)) == len(terms) == len(np.unique(elements))
            if v == owner[i] or not lonely or len(terms) < 2:
                continue
            speed = alone.copy()
            speed[elements] = -shared[terms] / t.exponent[with_v]
            yield speed, False
            yield speed, True


def move(layout: Layout, speed: Array, lifted: bool) -> tuple[Array, ...] | None:
    """Return the parts of `Moves` that belong to one move; None if there is nothing to lift."""
    t, T = layout.terms, len(layout.terms.coef)
    along = np.bincount(part_of(t.element_at), t.exponent * speed[t.element], T)
    along[np.abs(along) < 1e-12] = 0.0
    first = len(t.rows) + len(t.groups)
    sparse = along[first : first + len(t.offset)]
    squares, R, r = np.zeros(0, np.int64), csc_array((layout.dim, 0)), 0.0
    touched = along != 0.0
    if lifted:
        squares = np.flatnonzero(sparse)
        if len(squares) < 2 or np.ptp(sparse[squares]) > 0.0:
            return None
        L = csr_array((t.form_coef, t.form, t.form_at), (len(t.offset), layout.dim))
        inverse = right_inverse(L[squares])
        if inverse is None:
            return None
        R, r = inverse, -0.5 * sparse[squares[0]]
        touched[:first] = True
        touched[first : first + len(t.offset)] |= abs(L @ R).sum(axis=1) > 0.0
        touched[first + squares] = False
    term = np.flatnonzero(touched)
    exponents = along[term, None] + r * np.arange(3.0)
    distinct, slot = np.unique(np.round(exponents, 12), return_inverse=True)
    shifted = np.flatnonzero(speed)
    return (
        shifted,
        speed[shifted],
        term,
        along[term],
        slot.reshape(exponents.shape),
        distinct,
        np.array(r),
        squares,
        R.indices,
        R.data,
        np.diff(R.indptr),
    )


def right_inverse(L: csr_array) -> csc_array | None:
    """Return R (D, p) with L R = I for forms L (p, D). Coordinates that only one form has are used
    where they exist; None if there is no R, or it is too large."""
    p, D = L.shape
    entries = coo_array(L)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    i, j, value = entries.row, entries.col, entries.data
    single = np.flatnonzero(np.bincount(j, minlength=D)[j] == 1)
    by_size = single[np.lexsort((j[single], -np.abs(value[single]), i[single]))]
    rows, first = np.unique(i[by_size], return_index=True)
    if len(rows) == p:
        best = by_size[first]
        return csc_array((1.0 / value[best], (j[best], rows)), (D, p))
    if p > D or p * D > LIFT_SIZE or np.linalg.matrix_rank(L.toarray()) < p:
        return None
    return csc_array(np.linalg.pinv(L.toarray()))
