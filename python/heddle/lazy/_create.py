# SPDX-License-Identifier: Apache-2.0
"""Arrays that no input is needed for."""

from __future__ import annotations

import json
import math
import os
import random
from typing import Any, List, Optional

from heddle._errors import UsageError
from heddle.lazy._elementwise import binary
from heddle.lazy._leaf import constant, dtype_of_number, number_text, text_argument
from heddle.lazy._node import BOOL, FLOAT, INT, Argument, Node, ShapeError, Size

_PDFS = ("uniform", "normal", "poisson")


def sizes_of(shape: Any) -> "tuple[int, int, int]":
    """Rows, columns and dimensions of a shape."""
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if len(sizes) > 2:
        raise ShapeError(f"shape {sizes}: Heddle has two dimensions")
    numbers = []
    for size in sizes:
        number = int(size)
        if number < 0:
            raise ShapeError(f"shape {sizes}: a size is 0 or more")
        numbers.append(number)
    if not numbers:
        return 1, 1, 0
    return numbers[0], numbers[1] if len(numbers) == 2 else 1, len(numbers)


def full(shape: Any, value: Any, dtype: Any = None) -> Node:
    """A matrix of one number."""
    from heddle.lazy._elementwise import as_number, as_scalar, converted
    rows, columns, ndim = sizes_of(shape)
    if isinstance(value, Node):
        node = as_scalar(value)
    else:
        if dtype_of_number(value) is None:
            raise UsageError(f"full: a {type(value).__name__} is no number")
        if dtype is not None and dtype != BOOL and not (dtype == INT and dtype_of_number(value) == FLOAT):
            value = float(value) if dtype == FLOAT else int(value)
        node = constant(value)
    if dtype is not None:
        node = converted(node, dtype)
    if ndim == 0:
        return node
    number = as_number(node)
    assert isinstance(number, Node)
    text = {"TRUE": "1", "FALSE": "0"}.get(node.op, node.op) if not node.args and node.op != "input" else None
    return Node("matrix({0}, rows={1}, cols={2})", (text or number, str(rows), str(columns)), rows, columns, ndim,
                node.dtype)


def eye(rows: Any, columns: Any = None, offset: int = 0, dtype: Any = FLOAT) -> Node:
    rows = int(rows)
    columns = rows if columns is None else int(columns)
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    if length <= 0 or rows == 0 or columns == 0:
        return full((rows, columns), 0.0, dtype)
    if rows == columns and offset == 0 and rows > 1:
        ones = Node("matrix({0}, rows={1}, cols={2})", ("1", str(rows), "1"), rows, 1, 2, FLOAT)
        return Node("diag({0})", (ones,), rows, columns, 2, dtype)
    first_row, first_column = 1 + max(-offset, 0), 1 + max(offset, 0)
    return Node("table(seq({0}, {1}), seq({2}, {3}), {4}, {5})",
                (str(first_row), str(first_row + length - 1), str(first_column), str(first_column + length - 1),
                 str(rows), str(columns)), rows, columns, 2, dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Node:
    if stop is None:
        start, stop = 0, start
    for value in (start, stop, step):
        if dtype_of_number(value) is None:
            raise UsageError(f"arange takes numbers, not a {type(value).__name__}")
    if step == 0:
        raise UsageError("arange: the step is 0")
    is_whole = all(dtype_of_number(value) == INT for value in (start, stop, step))
    length = max(-(-(stop - start) // step) if is_whole else math.ceil((stop - start) / step), 0)
    kind = dtype if dtype is not None else INT if is_whole else FLOAT
    if length == 0:
        return full((0,), 0, kind)
    if is_whole:
        texts = (number_text(start), number_text(start + (length - 1) * step))
        if step == 1:
            return Node("seq({0}, {1})", texts, length, 1, 1, kind)
        return Node("seq({0}, {1}, {2})", (*texts, number_text(step)), length, 1, 1, kind)
    steps = Node("seq({0}, {1})", ("0", str(length - 1)), length, 1, 1, INT)
    scaled = binary("multiply", steps, step)
    result = binary("add", scaled, start) if start != 0 else scaled
    from heddle.lazy._elementwise import converted
    return converted(result, kind)


def linspace(start: Any, stop: Any, count: Any = 50, endpoint: bool = True) -> Node:
    count = int(count)
    if count < 0:
        raise UsageError(f"linspace: {count} numbers")
    if count == 0:
        return full((0,), 0.0)
    start, stop = float(start), float(stop)
    intervals = count - 1 if endpoint else count
    if intervals == 0:
        return full((1,), start)
    step = (stop - start) / intervals
    steps = Node("seq({0}, {1})", ("0", str(count - 1)), count, 1, 1, INT)
    numbers = binary("add", binary("multiply", steps, step), start)
    if not endpoint:
        return numbers
    from heddle.lazy._elementwise import where
    return where(binary("equal", steps, count - 1), stop, numbers)  # to the last bit


def sequence(start: Any, stop: Any, step: Any = None) -> Node:
    """As DML's seq(): both ends belong to it."""
    if step is None:
        step = 1 if stop >= start else -1
    count = math.floor((stop - start) / step + 1e-10) + 1 if step else 0
    if count <= 0:
        raise UsageError(f"seq: {step} does not lead from {start} to {stop}")
    kind = INT if all(dtype_of_number(value) == INT for value in (start, stop, step)) else FLOAT
    return Node("seq({0}, {1}, {2})", (number_text(start), number_text(stop), number_text(step)), count, 1, 1, kind)


def rand(rows: Any, columns: Any = None, low: float = 0.0, high: float = 1.0, sparsity: float = 1.0,
         pdf: str = "uniform", seed: Optional[int] = None, mean: float = 1.0) -> Node:
    if pdf not in _PDFS:
        raise UsageError(f"rand: pdf is one of {', '.join(_PDFS)}, not {pdf!r}")
    if not 0 <= sparsity <= 1:
        raise UsageError(f"rand: sparsity is the part of cells that are not 0, from 0 to 1, not {sparsity!r}")
    shape = (rows,) if columns is None else (rows, columns)
    row_count, column_count, ndim = sizes_of(shape)
    # A seed that is drawn now, so that the array is the same in every program that has it.
    number = random.getrandbits(31) if seed is None else int(seed)
    arguments = [f"rows={row_count}", f"cols={column_count}"]
    if pdf == "uniform":
        arguments += [f"min={number_text(low)}", f"max={number_text(high)}"]
    if sparsity != 1:
        arguments.append(f"sparsity={number_text(sparsity)}")
    if pdf != "uniform":
        arguments.append(f'pdf="{pdf}"')
    if pdf == "poisson":
        arguments.append(f"lambda={number_text(mean)}")
    arguments.append(f"seed={number}")
    return Node(f"rand({', '.join(arguments)})", (), row_count, column_count, ndim, FLOAT)


def read(path: Any, options: Any) -> Node:
    """What read() of DML gives: a matrix, or a frame with data_type="frame"."""
    text = os.fspath(path)
    kind = str(options.get("data_type", "matrix"))
    if kind not in ("matrix", "frame"):
        raise UsageError(f'read: data_type is "matrix" or "frame", not {kind!r}')
    rows: Size = options.get("rows")
    columns: Size = options.get("cols")
    try:
        with open(text + ".mtd", encoding="utf-8") as file:
            described = json.load(file)
        if isinstance(described, dict):
            kind = str(options.get("data_type", described.get("data_type", kind)))
            rows = rows if rows is not None else _positive(described.get("rows"))
            columns = columns if columns is not None else _positive(described.get("cols"))
    except (OSError, ValueError):
        pass  # without a description, or with one that the run complains about
    arguments: List[Argument] = [text_argument(text)]
    places = ["{0}"]
    for name, value in options.items():
        if isinstance(value, str):
            arguments.append(text_argument(value))
        elif dtype_of_number(value) is not None:
            arguments.append(number_text(value))
        else:
            raise UsageError(f"read: {name} is a number, a text, True or False, not a {type(value).__name__}")
        places.append(f"{name}={{{len(places)}}}")
    call = f"read({', '.join(places)})"
    if kind == "frame":
        return Node(call, tuple(arguments), rows, columns, -1, "frame")
    return Node(call, tuple(arguments), rows, columns, 2, FLOAT)


def _positive(value: Any) -> Size:
    return value if isinstance(value, int) and value >= 0 else None


__all__ = ["arange", "eye", "full", "linspace", "rand", "read", "sequence", "sizes_of"]
