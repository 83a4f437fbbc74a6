"""Reading a file's arrays and plain values safely: no code is run, and memory use is limited."""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from bayesbandit.forms import Broken

KINDS = ("<f8", "<i8", "|u1")  # allowed dtypes of arrays
HEADER = re.compile(  # an array's header, which NumPy's own reader would parse as Python code
    rb"\x93NUMPY\x01\x00..\{'descr': '(<f8|<i8|\|u1)', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,16}, )*(?:\d{1,16},?)?)\), \} *\n",
    re.DOTALL,
)
DIMENSIONS = 32  # the most dimensions of an array


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file; raise `Broken` if they are larger than the file."""
    with path.open("rb") as whole, zipfile.ZipFile(whole) as file:
        entries = file.infolist()
        size = os.fstat(whole.fileno()).st_size
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        if len(set(names)) < len(names) or any(e.compress_type for e in entries):
            raise Broken("its entries repeat or are compressed")
        if sum(entry.file_size for entry in entries) > size:
            raise Broken("its entries are larger than the file")
        return {n: _array(file.read(e), n, size) for n, e in zip(names, entries, strict=True)}


def _array(content: bytes, name: str, most: int) -> np.ndarray:
    header = HEADER.match(content)
    if header is None or header.end() != 10 + int.from_bytes(content[8:10], "little"):
        raise Broken(f"{name!r} is not an array of {', '.join(KINDS)}")
    dtype = np.dtype(header[1].decode())
    shape = tuple(map(int, re.findall(rb"\d+", header[2])))
    allowed = len(shape) <= DIMENSIONS and max(shape, default=0) <= most
    if not allowed or math.prod(shape) * dtype.itemsize != len(content) - header.end():
        raise Broken(f"{name!r} is not the array that it says")
    return np.frombuffer(content, dtype, offset=header.end()).reshape(shape).copy()


def plain(text: str) -> Any:
    """Return the values of a JSON text; raise `Broken` if an object repeats a key."""
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(values := dict(pairs)) < len(pairs):
        raise Broken("it says something twice")
    return values
