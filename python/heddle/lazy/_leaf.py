# SPDX-License-Identifier: Apache-2.0
"""Values of Python as leaves of a program."""

from __future__ import annotations

import numbers
import re
import sys
from typing import Any, Dict, Optional, Tuple

import numpy

from heddle import _engine
from heddle._errors import UsageError
from heddle.lazy._node import BOOL, FLOAT, INT, Argument, Node, is_user_frame

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
# Words of DML that no variable can have as a name.
_RESERVED = frozenset(
    "source as setwd ifdef if else for parfor while in function return externalFunction implemented TRUE FALSE int "
    "integer string boolean double unknown Int Integer String Boolean Double Unknown pi Inf NaN matrix frame list "
    "scalar tensor result".split())


def is_variable_name(name: str) -> bool:
    return _NAME.match(name) is not None and name not in _RESERVED


def number_text(value: Any) -> str:
    """A number as DML writes it."""
    if isinstance(value, (bool, numpy.bool_)):
        return "TRUE" if value else "FALSE"
    if isinstance(value, numbers.Integral):
        whole = int(value)
        if -2**63 < whole < 2**63:
            return str(whole)
        value = float(whole)
    number = float(value)
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Inf" if number > 0 else "-Inf"
    return repr(number)


def text_argument(text: str) -> Argument:
    """A text as a literal of DML; as an input where it has a backslash, which no literal has alone."""
    if "\\" in text:
        return Node("input", (), 1, 1, -1, "string", ("", text))
    for character, written in (("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r"), ('"', '\\"')):
        text = text.replace(character, written)
    return f'"{text}"'


def dtype_of_number(value: Any) -> Optional["numpy.dtype[Any]"]:
    """The dtype of a Python or NumPy number; None for anything else."""
    if isinstance(value, (bool, numpy.bool_)):
        return BOOL
    if isinstance(value, numbers.Integral):
        return INT
    if isinstance(value, numbers.Real):
        return FLOAT
    return None


_DTYPES: Dict[Any, Any] = {bool: BOOL, int: INT, float: FLOAT}


def dtype_of(dtype: Any) -> Any:
    """float64, int64 or bool of what NumPy takes as a dtype."""
    known = _DTYPES.get(dtype) if dtype.__hash__ is not None else None
    if known is not None:
        return known
    kind = numpy.dtype(dtype)
    if kind.kind == "f" and kind.itemsize <= 8:
        return FLOAT
    if kind.kind in "iu":
        return INT
    if kind.kind == "b":
        return BOOL
    raise UsageError(f"{kind} is no dtype of Heddle, which has float64, int64 and bool")


def name_in_caller(value: Any) -> str:
    """The variable in which the caller has this object; "" if there is none."""
    frame = sys._getframe(1)
    while not is_user_frame(frame.f_code.co_filename):
        outer = frame.f_back
        if outer is None:
            return ""
        frame = outer
    for variables in (frame.f_locals, frame.f_globals):
        for name, held in list(variables.items()):
            if held is value and is_variable_name(name):
                return name
    return ""


def leaf(value: Any, name: str = "") -> Node:
    """The input that an array, a matrix or a frame of another library is. Doubles that lie row by row are not copied,
    all others are, once."""
    kind = type(value).__module__.partition(".")[0]
    if kind == "scipy" and hasattr(value, "tocsr"):
        return _sparse_leaf(value, name)
    if kind == "pandas":
        return _pandas_leaf(value, name)
    if isinstance(value, _engine.Value):
        return _computed_leaf(value)
    if not isinstance(value, (numpy.ndarray, numpy.generic)):
        if isinstance(value, (str, bytes)) or not isinstance(value, (list, tuple)) and not any(
                hasattr(value, protocol) for protocol in ("__array__", "__dlpack__", "__array_interface__")):
            raise UsageError(f"a {type(value).__name__} is no number and no array; hd.array takes NumPy arrays, SciPy "
                             "matrices, pandas frames, numbers and lists of numbers")
        value = _to_numpy(value)
    return _dense_leaf(value, name)


def _to_numpy(value: Any) -> Any:
    try:
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return numpy.from_dlpack(value)
        return numpy.asarray(value)
    except (ValueError, BufferError, RuntimeError) as error:
        raise UsageError(f"NumPy makes no array of this {type(value).__name__}: {error}") from None


def _dtype_of_cells(dtype: Any) -> Any:
    if dtype.kind == "b":
        return BOOL
    if dtype.kind in "iu":
        return INT
    if dtype.kind == "f" and dtype.itemsize <= 8:
        return FLOAT
    hint = {"c": "; keep real and imaginary parts in two arrays", "O": "; astype(float) makes numbers of objects",
            "U": "; texts belong into a pandas frame"}.get(dtype.kind, "")
    raise UsageError(f"cells of {dtype} are no real numbers{hint}")


def _dense_leaf(array: Any, name: str) -> Node:
    dtype = _dtype_of_cells(array.dtype)
    if array.ndim == 0:
        return constant(array.item())
    if array.ndim > 2:
        raise UsageError(f"an array of {array.ndim} dimensions, shape {array.shape}: Heddle has two; "
                         f"reshape({array.shape[0]}, -1) makes a row of each element")
    cells = numpy.ascontiguousarray(array, FLOAT)
    if not cells.flags.aligned:
        cells = cells.copy()
    rows, columns = (cells.shape[0], 1) if cells.ndim == 1 else cells.shape
    return Node("input", (), rows, columns, cells.ndim, dtype, (name or name_in_caller(array), cells))


def _sparse_leaf(value: Any, name: str) -> Node:
    if value.ndim != 2:
        raise UsageError(f"a sparse array of {value.ndim} dimension: Heddle takes those of two; reshape it first")
    dtype = _dtype_of_cells(value.dtype)
    rows, columns = value.shape
    return Node("input", (), rows, columns, 2, dtype, (name or name_in_caller(value), value.tocsr()))


def _pandas_leaf(value: Any, name: str) -> Node:
    name = name or name_in_caller(value)
    if value.ndim == 1 or all(getattr(column, "kind", "O") in "fiub" for column in value.dtypes):
        return _dense_leaf(value.to_numpy(), name)
    rows, columns = value.shape
    return Node("input", (), rows, columns, -1, "frame", (name, value))


def _computed_leaf(value: Any) -> Node:
    kind = value.kind
    if kind == "list":
        node = Node("input", (), None, None, -1, "list", ("", value))
    else:
        rows, columns = value.shape
        frame = kind == "frame"
        node = Node("input", (), rows, columns, -1 if frame else 2, "frame" if frame else FLOAT, ("", value))
    node.value = value
    return node


def constant(value: Any) -> Node:
    """A scalar that the program has as a literal."""
    dtype = dtype_of_number(value)
    if dtype is None:
        _dtype_of_cells(numpy.asarray(value).dtype)
        raise UsageError(f"a {type(value).__name__} is no number")
    return Node(number_text(value), (), 1, 1, 0, dtype)


def operand(value: Any) -> Tuple[Argument, Any]:
    """An argument of an operator that is no lazy array: the literal of a number, the leaf of an array; its dtype."""
    dtype = dtype_of_number(value)
    if dtype is not None:
        return number_text(value), dtype
    node = leaf(value)
    return node, node.dtype
