# SPDX-License-Identifier: Apache-2.0
"""Values of Python as inputs of the engine, and back. docs/python.md says where cells are copied."""

from __future__ import annotations

import numbers
from array import array as typed_array
from collections.abc import Mapping
from typing import Any

from heddle import _engine
from heddle._errors import UsageError
from heddle._frame import Frame


class _Memory:
    """Memory of the engine as NumPy takes it: the array that views it keeps `owner` alive."""

    def __init__(self, owner, address, shape, typestr, writable):
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": typestr, "data": (address, not writable)}


def view(owner, address, shape, typestr, writable=False):
    """An array over the engine's memory; an empty one of its own where there are no cells."""
    import numpy
    if 0 in shape:
        return numpy.empty(shape, typestr)
    return numpy.asarray(_Memory(owner, address, shape, typestr, writable))


# --- inputs ---

_MOST_LEVELS = 200  # of lists in lists


def to_inputs(inputs):
    """What python/module/values.h takes for these inputs, by name."""
    if inputs is None:
        return {}
    if not isinstance(inputs, Mapping):
        raise UsageError(f"inputs is a dict of values by name, not a {type(inputs).__name__}")
    for name in inputs:
        if not isinstance(name, str):
            raise UsageError(f"names of inputs are texts, not {name!r}")
    return {name: to_input(name, value) for name, value in inputs.items()}


def to_input(name, value, level=0):
    """What python/module/values.h takes for this input. Raises UsageError for what is no value of a script."""
    if isinstance(value, (bool, float, str, _engine.Value)):
        return value
    if isinstance(value, int):
        if not -2**63 <= value < 2**63:
            raise UsageError(f"input {name!r}: {value} does not fit into 64 bits; pass float({name})")
        return value
    if isinstance(value, Frame):
        return value._value
    kind = type(value).__module__.partition(".")[0]
    if kind == "scipy" and hasattr(value, "tocsr"):
        return _sparse(name, value)
    if isinstance(value, dict):
        names = [str(key) for key in value]
        if len(set(names)) < len(names):
            raise UsageError(f"input {name!r}: two keys have the same text; names of a list are texts")
        return _list(name, names, value.values(), level)
    if isinstance(value, tuple) or isinstance(value, list) and not _is_numbers(value, level):
        return _list(name, None, value, level)
    if kind == "pandas" and (hasattr(value, "iloc") or hasattr(value, "to_frame")):
        from heddle._frame import frame_of_pandas
        return frame_of_pandas(name, value)
    if kind == "polars" and hasattr(value, "to_frame"):
        value = value.to_frame()  # a Series
    if hasattr(value, "__arrow_c_stream__") and not hasattr(value, "chunks"):
        return ("arrow", value.__arrow_c_stream__())
    return _dense(name, value)


def _list(name, names, values, level):
    if level == _MOST_LEVELS:
        raise UsageError(f"input {name[:name.find('[')]!r} contains itself, or has lists in lists more than "
                         f"{_MOST_LEVELS} levels deep")
    return ("list", names, [to_input(f"{name}[{i}]", value, level + 1) for i, value in enumerate(values)])


def _is_numbers(value, level=0):
    if isinstance(value, list) and level < _MOST_LEVELS:
        return bool(value) and all(_is_numbers(element, level + 1) for element in value)
    return isinstance(value, numbers.Real)


def _dense(name, value):
    import numpy
    array: Any
    if isinstance(value, (numpy.generic, numpy.ndarray)):
        array = value
        if numpy.ma.is_masked(array):
            raise UsageError(f"input {name!r} has masked cells; X.filled(0) or X.filled(numpy.nan) says what they are")
    elif hasattr(value, "__dlpack__"):
        try:
            array = numpy.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError) as error:
            raise UsageError(f"input {name!r}: NumPy cannot see its memory ({error}); "
                             "bring it to the memory of the host first, with .cpu() for example") from None
    elif isinstance(value, (list, range, memoryview, bytearray, typed_array)) or hasattr(value, "__array__") \
            or hasattr(value, "__array_interface__"):
        try:
            array = numpy.asarray(value)
        except ValueError as error:
            why = "its rows differ in length" if isinstance(value, list) else error
            raise UsageError(f"input {name!r}: {why}") from None
    else:
        kind = type(value).__name__
        remedy = {"NoneType": "; float('nan') is a missing number", "bytes": "; X.decode() is a text"}.get(kind, "")
        raise UsageError(f"input {name!r}: a {kind} is no scalar, matrix, frame or list{remedy}")
    if array.ndim == 0 and isinstance(array.item(), (bool, int, float, str)):
        return to_input(name, array.item())
    if array.ndim > 2:
        raise UsageError(f"input {name!r} has {array.ndim} dimensions, matrices have two; "
                         f"X.reshape({array.shape[0]}, -1) makes a row of each X[i]")
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        hint = "; X.astype(float) makes such of what stands for numbers" if array.dtype.kind == "O" else \
            "; a frame takes texts, e.g. a pandas DataFrame" if array.dtype.kind in "SUT" else ""
        raise UsageError(f"input {name!r} has cells of {array.dtype}, matrices have real numbers{hint}")
    single = array.dtype.kind == "f" and array.dtype.itemsize == 4
    # No copy of doubles and floats that lie row by row, in the byte order of the machine.
    array = numpy.ascontiguousarray(array, numpy.float32 if single else numpy.float64)
    if not array.flags.aligned:
        array = array.copy()
    columns = array.shape[-1] if array.ndim == 2 else 1
    return ("dense", array.ctypes.data if array.size else 0, len(array), columns, "f4" if single else "f8", array)


def _sparse(name, value):
    import numpy
    if value.ndim != 2:
        raise UsageError(f"input {name!r} has {value.ndim} dimensions, matrices have two")
    matrix = value.tocsr()
    if matrix.dtype.kind not in "fiub" or matrix.dtype.itemsize > 8:
        raise UsageError(f"input {name!r} has cells of {matrix.dtype}, matrices have real numbers")
    if matrix.shape[1] >= 2**31:
        raise UsageError(f"input {name!r} has {matrix.shape[1]} columns, a sparse matrix has fewer than 2^31")
    _check_offsets(name, matrix)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    single = matrix.dtype == numpy.float32
    values = numpy.ascontiguousarray(matrix.data, numpy.float32 if single else numpy.float64)
    if matrix.indices.dtype.itemsize > 4 and len(matrix.indices) and matrix.indices.max() >= 2**31:
        raise UsageError(f"input {name!r} is a damaged sparse matrix: column {matrix.indices.max()} of {matrix.shape[1]}")
    columns = numpy.ascontiguousarray(matrix.indices, numpy.int32)
    offsets = numpy.ascontiguousarray(matrix.indptr, numpy.int64)
    return ("csr", values.ctypes.data, columns.ctypes.data, offsets.ctypes.data, matrix.shape[0], matrix.shape[1],
            "f4" if single else "f8", (values, columns, offsets))


def _check_offsets(name, matrix):
    """What SciPy's own loops, and those of the engine, trust."""
    offsets = matrix.indptr
    if len(offsets) != matrix.shape[0] + 1 or offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any() \
            or offsets[-1] > min(len(matrix.indices), len(matrix.data)):
        raise UsageError(f"input {name!r} is a damaged sparse matrix: its indptr does not rise from 0 to at most the "
                         "number of its indices and data")


# --- outputs ---

def to_python(value):
    """Scalars as they are; matrices as NumPy arrays or scipy.sparse.csr_array over the engine's memory; frames as
    heddle.Frame; lists as dict (with names) or list."""
    if not isinstance(value, _engine.Value):
        return value
    kind = value.kind
    if kind == "dense":
        return view(value, value.buffers()[0], value.shape, f"<{value.element_type}", value.holds_cells_alone)
    if kind == "csr":
        return _sparse_to_python(value)
    if kind == "frame":
        return Frame(value)
    names, elements = value.elements()
    elements = [to_python(element) for element in elements]
    return elements if names is None else dict(zip(names, elements))


def _sparse_to_python(value):
    try:
        from scipy import sparse
    except ImportError:
        raise UsageError("an output is a sparse matrix, which needs SciPy: install scipy, or assign "
                         "as.matrix of dense cells in the script") from None
    rows, columns = value.shape
    cells, indexes, offsets, stored = value.buffers()
    data = view(value, cells, (stored,), f"<{value.element_type}")
    indices = view(value, indexes, (stored,), "<i4")
    indptr = view(value, offsets, (rows + 1,), "<i8")
    indptr = indptr - indptr[0] if rows else indptr.astype("<i8")
    if stored < 2**31:
        indptr = indptr.astype("<i4")  # SciPy wants both of one type: the short one is copied
    result = sparse.csr_array((data, indices, indptr), shape=(rows, columns), copy=False)
    result.has_canonical_format = True
    return result


