# SPDX-License-Identifier: Apache-2.0
"""Nodes: what a lazy array stands for. A node never changes but for the value that it is given once computed."""

from __future__ import annotations

import itertools
import os
import sys
from types import CodeType
from typing import Any, Optional, Tuple, Union

import numpy

from heddle._errors import UsageError

FLOAT: "numpy.dtype[Any]" = numpy.dtype(numpy.float64)
INT: "numpy.dtype[Any]" = numpy.dtype(numpy.int64)
BOOL: "numpy.dtype[Any]" = numpy.dtype(numpy.bool_)

# Code whose file begins so is no line of the user.
_PACKAGE = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
            os.path.dirname(os.path.abspath(numpy.__file__)) + os.sep, "<__array_function__ internals>")
_get_frame = sys._getframe
next_serial = itertools.count().__next__

Size = Optional[int]  # None: known once the value is computed
Argument = Union["Node", str]  # a text stands in the program as it is: numbers, names, texts in quotes


class ShapeError(UsageError):
    """Arrays whose shapes do not fit each other."""

    __module__ = "heddle"


class Node:
    """One step of a program.

    `op` is the expression in DML, with {0}, {1}, ... where the arguments go, or the name of one of the statements
    that `_render.py` writes ("input", "call", "item", "put", "while", "for", "if", "variable"); `extra` is what such a
    statement needs beside its arguments.

    `ndim` is 0 (a scalar of DML), 1 (a matrix of one column) or 2; `dtype` is one of the three above. Values that are
    no arrays have ndim -1, and dtype is "frame", "list" or "string".
    """

    __slots__ = ("op", "args", "rows", "columns", "ndim", "dtype", "extra", "value", "serial", "code", "instruction")

    def __init__(self, op: str, args: Tuple[Argument, ...], rows: Size, columns: Size, ndim: int, dtype: Any,
                 extra: Any = None) -> None:
        self.op = op
        self.args = args
        self.rows = rows
        self.columns = columns
        self.ndim = ndim
        self.dtype = dtype
        self.extra = extra
        self.value: Any = None
        self.serial: int = next_serial()  # grows from node to node
        frame = _get_frame(1)
        while frame.f_code.co_filename.startswith(_PACKAGE):
            outer = frame.f_back
            if outer is None:
                break
            frame = outer
        self.code: CodeType = frame.f_code
        self.instruction: int = frame.f_lasti

    @property
    def shape(self) -> Tuple[Size, ...]:
        if self.ndim == 2:
            return (self.rows, self.columns)
        return (self.rows,) if self.ndim == 1 else ()

    @property
    def has_known_shape(self) -> bool:
        return self.rows is not None and self.columns is not None

    @property
    def is_empty(self) -> bool:
        return self.rows == 0 or self.columns == 0


_lines_of_code: "dict[CodeType, list[tuple[int, int, Optional[int]]]]" = {}


def line_of(node: Node) -> int:
    """The line of Python in which the node was made."""
    ranges = _lines_of_code.get(node.code)
    if ranges is None:
        if len(_lines_of_code) > 256:
            _lines_of_code.clear()
        ranges = _lines_of_code[node.code] = list(node.code.co_lines())
    for start, end, line in ranges:
        if start <= node.instruction < end and line is not None:
            return line
    return node.code.co_firstlineno


def place_of(node: Node) -> Tuple[str, int]:
    """File and line of Python in which the node was made."""
    return node.code.co_filename, line_of(node)


def is_user_frame(filename: str) -> bool:
    return not filename.startswith(_PACKAGE)


def shape_text(shape: Tuple[Size, ...]) -> str:
    """"1000x5", "?x5", "5", "scalar"."""
    return "x".join("?" if size is None else str(size) for size in shape) or "scalar"


def bytes_text(size: int) -> str:
    """"40 kB"."""
    number, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number /= 1000
    return f"{number:.0f} {unit}" if number >= 10 or number == int(number) else f"{number:.1f} {unit}"


# --- the smallest builders, which all others use ---

def scalar(op: str, args: Tuple[Argument, ...], dtype: Any) -> Node:
    return Node(op, args, 1, 1, 0, dtype)


def like(op: str, args: Tuple[Argument, ...], of: Node, dtype: Any) -> Node:
    """A node of the shape of another one."""
    return Node(op, args, of.rows, of.columns, of.ndim, dtype)


def as_dtype(node: Node, dtype: Any) -> Node:
    """The same cells under another dtype; nothing is computed."""
    if node.dtype == dtype:
        return node
    return _same(node, node.rows, node.columns, node.ndim, dtype)


def as_ndim(node: Node, ndim: int) -> Node:
    """A matrix of one column as an array of one dimension, and back."""
    if node.ndim == ndim:
        return node
    return _same(node, node.rows, 1, ndim, node.dtype)


def _same(node: Node, rows: Size, columns: Size, ndim: int, dtype: Any) -> Node:
    while node.op == "{0}" and node.value is None:
        inner = node.args[0]
        assert isinstance(inner, Node)
        node = inner
    return Node("{0}", (node,), rows, columns, ndim, dtype)


def transposed(node: Node) -> Node:
    """t(node) of two dimensions; of one dimension the row that it is."""
    base = node
    while base.op == "{0}" and base.value is None:
        base = base.args[0]  # type: ignore[assignment]
    if base.op == "t({0})" and base.value is None:
        inner = base.args[0]
        assert isinstance(inner, Node)
        return as_dtype(as_ndim(inner, 2), node.dtype)
    return Node("t({0})", (node,), node.columns, node.rows, 2, node.dtype)


def rows_text(node: Node) -> Argument:
    """The number of rows as it stands in a program."""
    return str(node.rows) if node.rows is not None else scalar("nrow({0})", (node,), INT)


def columns_text(node: Node) -> Argument:
    return str(node.columns) if node.columns is not None else scalar("ncol({0})", (node,), INT)


def cells_text(node: Node) -> Argument:
    if node.rows is not None and node.columns is not None:
        return str(node.rows * node.columns)
    return scalar("length({0})", (node,), INT)
