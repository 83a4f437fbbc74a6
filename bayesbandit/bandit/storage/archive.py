"""The arrays and plain values of a file: no more than there are, and none of its words is run."""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from bayesbandit.runtime.schema import Broken

KINDS = ("<f8", "<i8", "|u1")  # of arrays
HEADER = re.compile(  # of an array: NumPy's own reader has Python parse it
    rb"\x93NUMPY\x01\x00..\{'descr': '(<f8|<i8|\|u1)', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,16}, )*(?:\d{1,16},?)?)\), \} *\n",
    re.DOTALL,
)
DIMENSIONS = 32  # that an array has at most


def arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an npz file, which may not become larger than it is."""
    with path.open("rb") as whole, zipfile.ZipFile(whole) as file:
        entries, size = file.infolist(), os.fstat(whole.fileno()).st_size
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        if len(set(names)) < len(names) or any(e.compress_type for e in entries):
            raise Broken("its entries repeat or are compressed")
        if sum(entry.file_size for entry in entries) > size:
            raise Broken("its entries are larger than the file")
        return {n: _array(file.read(e), n, size) for n, e in zip(names, entries, strict=True)}


def _array(held: bytes, name: str, most: int) -> np.ndarray:
    said = HEADER.match(held)
    if said is None or said.end() != 10 + int.from_bytes(held[8:10], "little"):
        raise Broken(f"{name!r} is not an array of {', '.join(KINDS)}")
    dtype, shape = np.dtype(said[1].decode()), tuple(map(int, re.findall(rb"\d+", said[2])))
    whole = len(shape) <= DIMENSIONS and max(shape, default=0) <= most
    if not whole or math.prod(shape) * dtype.itemsize != len(held) - said.end():
        raise Broken(f"{name!r} is not the array that it says")
    return np.frombuffer(held, dtype, offset=said.end()).reshape(shape).copy()


def plain(text: str) -> Any:
    """The values of a JSON text, in which no key comes twice."""
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise Broken("it says something twice")
    return found
