# SPDX-License-Identifier: Apache-2.0
"""Frames: tables whose columns have types and names."""

from __future__ import annotations

import os
import tempfile

from heddle import _engine
from heddle._errors import NotFoundError, UsageError

_TYPES = {"FP64": "<f8", "FP32": "<f8", "INT64": "<i8", "INT32": "<i8", "BOOLEAN": "|b1"}


class Frame:
    """A frame that a script has made, in the engine's memory."""

    def __init__(self, value: _engine.Value):
        self._value = value
        self._names, self._columns = value.columns()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self._value.shape
        return rows, columns

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._names)

    @property
    def types(self) -> list[str]:
        """The types of the columns, as DML calls them."""
        return [column[0] for column in self._columns]

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        """The names of the columns."""
        return iter(self._names)

    def __contains__(self, name):
        return name in self._names

    def __array__(self, dtype=None, copy=None):
        raise UsageError("a frame is no array: frame['column'] is one, and as.matrix(F) in the script makes a matrix of "
                         "its numbers")

    def __copy__(self):
        return self  # nobody can change it

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        from heddle._run import engine, entering
        entering()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "frame.bin")
            engine().run('write(F, $path, format="binary")', "frame.dml", {"path": path}, {"F": self._value}, [], None,
                         None)
            with open(path, "rb") as file:
                return _frame_of_bytes, (file.read(),)

    def __repr__(self):
        columns = ", ".join(f"{name} {type}" for name, type in zip(self._names[:8], self.types))
        more = f", ... {len(self._names) - 8} more" if len(self._names) > 8 else ""
        return f"<heddle.Frame {self.shape[0]}x{self.shape[1]}: {columns}{more}>"

    def __getitem__(self, name: str):
        """A column as an array: numbers over the engine's memory, texts as objects, None where one is missing."""
        if name not in self._names:
            shown = ", ".join(self._names[:8]) + (", ..." if len(self._names) > 8 else "")
            raise NotFoundError(f"the frame has no column {name!r}; it has {shown or 'none'}")
        return self._column(self._names.index(name))

    def _column(self, index):
        import numpy
        from heddle._convert import view
        type, cells, _, _, missing = self._columns[index]
        rows = self.shape[0]
        if type in ("STRING", "CHARACTER"):
            texts = numpy.empty(rows, object)
            texts[:] = self._value.texts(index)
            return texts
        column = view(self._value, cells, (rows,), _TYPES[type])
        if missing and rows:
            is_missing = view(self._value, missing, (rows,), "|b1")
            if is_missing.any():
                column = column.astype("<f8" if type != "BOOLEAN" else object)
                column[is_missing] = numpy.nan if type != "BOOLEAN" else None
        return column

    def to_dict(self) -> dict:
        """The columns by name."""
        if len(set(self._names)) < len(self._names):
            raise UsageError("columns of the frame have the same name; to_pandas() keeps all")
        return {name: self._column(index) for index, name in enumerate(self._names)}

    def __arrow_c_stream__(self, requested_schema=None):
        """For pyarrow.table(frame), polars.DataFrame(frame) and all that know Arrow's PyCapsule interface."""
        return self._value.arrow_stream()

    def to_arrow(self):
        """A pyarrow.Table; numbers and texts are not copied."""
        import pyarrow
        return pyarrow.table(self)

    def to_pandas(self):
        """A pandas.DataFrame; numbers are not copied."""
        import pandas
        frame = pandas.DataFrame({index: self._column(index) for index in range(len(self._names))}, copy=False)
        frame.columns = self._names
        return frame


def _frame_of_bytes(cells):
    """The frame of which these are the bytes of a binary file."""
    from heddle._run import engine, entering
    entering()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "frame.bin")
        with open(path, "wb") as file:
            file.write(cells)
        values, _, _ = engine().run('F = read($path, data_type="frame", format="binary")', "frame.dml", {"path": path}, {},
                                    ["F"], None, None)
        return Frame(values["F"])


def frame_of_pandas(name, value):
    """The input that a DataFrame, a Series or an Index is."""
    if not hasattr(value, "columns"):
        value = value.to_frame()
    columns = [_column_of(f"{name}[{value.columns[index]!r}]", value.iloc[:, index])
               for index in range(value.shape[1])]
    return ("frame", [str(column) for column in value.columns], columns)


def _column_of(name, series):
    import numpy
    rows = len(series)
    kind = getattr(series.dtype, "kind", "O")  # of types of pandas, too: "i" of Int64, whose cells may miss
    missing = None
    if kind in "iub" and not isinstance(series.dtype, numpy.dtype) and series.isna().any():
        missing = series.isna().to_numpy(numpy.uint8)
        series = series.fillna(False if kind == "b" else 0)
    address = missing.ctypes.data if missing is not None else 0
    if kind == "f" and isinstance(series.dtype, numpy.dtype):
        cells = numpy.ascontiguousarray(series.to_numpy(), numpy.float64)
        return ("FP64", rows, cells.ctypes.data, 0, 0, cells)
    if kind == "f":
        cells = series.to_numpy(numpy.float64, na_value=numpy.nan)
        return ("FP64", rows, cells.ctypes.data, 0, 0, cells)
    if kind in "iu":
        if kind == "u" and series.dtype.itemsize == 8 and rows and series.max() >= 2**63:
            raise UsageError(f"input {name}: cells do not fit into 64 bits with a sign")
        cells = numpy.ascontiguousarray(series.to_numpy(), numpy.int64)
        return ("INT64", rows, cells.ctypes.data, 0, address, (cells, missing))
    if kind == "b":
        cells = numpy.ascontiguousarray(series.to_numpy(), numpy.bool_)
        return ("BOOLEAN", rows, cells.ctypes.data, 0, address, (cells, missing))
    return ("texts", [_text(cell) for cell in series.array])


def _text(cell):
    if isinstance(cell, str):
        return cell
    try:
        is_missing = cell is None or bool(cell != cell)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA
        is_missing = True
    except ValueError:  # an array
        is_missing = False
    return None if is_missing else str(cell)
