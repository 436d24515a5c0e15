# SPDX-License-Identifier: Apache-2.0
"""Frames: tables whose columns have types and names."""

from __future__ import annotations

from heddle import _engine
from heddle._errors import UsageError

_TYPES = {"FP64": "<f8", "FP32": "<f8", "INT64": "<i8", "INT32": "<i8", "BOOLEAN": "|b1"}


class Frame:
    """A frame that a script has made, in the engine's memory."""

    def __init__(self, value: _engine.Value):
        self._value = value
        self._names, self._columns = value.columns()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._value.shape

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

    def __repr__(self):
        columns = ", ".join(f"{name} {type}" for name, type in zip(self._names[:8], self.types))
        more = f", ... {len(self._names) - 8} more" if len(self._names) > 8 else ""
        return f"<heddle.Frame {self.shape[0]}x{self.shape[1]}: {columns}{more}>"

    def __getitem__(self, name: str):
        """A column as an array: numbers over the engine's memory, texts as objects, None where one is missing."""
        if name not in self._names:
            raise KeyError(name)
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
        return {name: self._column(index) for index, name in enumerate(self._names)}

    def to_pandas(self):
        """A pandas.DataFrame; numbers are not copied."""
        import pandas
        return pandas.DataFrame(self.to_dict(), copy=False)


def frame_of_pandas(name, value):
    """The input that a DataFrame, a Series or an Index is."""
    import numpy
    if not hasattr(value, "columns"):
        value = value.to_frame()
    columns = []
    for index in range(value.shape[1]):
        series = value.iloc[:, index]
        columns.append(_column_of(f"{name}[{value.columns[index]!r}]", series.to_numpy(), len(value), numpy))
    return ("frame", [str(column) for column in value.columns], columns)


def _column_of(name, cells, rows, numpy):
    kind = cells.dtype.kind
    if kind == "f":
        cells = numpy.ascontiguousarray(cells, numpy.float64)
        return ("FP64", rows, cells.ctypes.data, 0, 0, cells)
    if kind in "iu":
        if kind == "u" and cells.dtype.itemsize == 8 and rows and cells.max() >= 2**63:
            raise UsageError(f"input {name}: cells do not fit into 64 bits with a sign")
        cells = numpy.ascontiguousarray(cells, numpy.int64)
        return ("INT64", rows, cells.ctypes.data, 0, 0, cells)
    if kind == "b":
        cells = numpy.ascontiguousarray(cells)
        return ("BOOLEAN", rows, cells.ctypes.data, 0, 0, cells)
    return ("texts", [_text(name, cell) for cell in cells])


def _text(name, cell):
    if cell is None or cell != cell:  # NaN, NaT and pandas.NA are missing
        return None
    return cell if isinstance(cell, str) else str(cell)


def frame_of_arrow(name, value):
    """The input that a table with Arrow's PyCapsule interface is."""
    raise UsageError(f"input {name}: tables of {type(value).__module__} are not read yet")
