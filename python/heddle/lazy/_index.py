# SPDX-License-Identifier: Apache-2.0
"""Indexes as NumPy has them. DML has ranges of rows and columns; the rest is made of products with matrices of 0
and 1, and of removeEmpty."""

from __future__ import annotations

import numbers
from typing import Any, List, Optional, Tuple

import numpy

from heddle._errors import UsageError
from heddle.lazy._elementwise import as_number, as_scalar, binary, broadcast_shapes, node_of, scalar_as, spread, where
from heddle.lazy._leaf import leaf
from heddle.lazy._node import (
    BOOL,
    FLOAT,
    INT,
    Node,
    ShapeError,
    Size,
    as_ndim,
    rows_text,
    scalar,
    shape_text,
    transposed,
)
from heddle.lazy._reduce import flat


class _Range:
    """Cells start, start + 1, ... up to but without stop, counted from 0; `whole` where that is all of them."""

    def __init__(self, start: int, stop: Optional[int], size: Size, drops: bool) -> None:
        self.start = start
        self.stop = stop
        self.drops = drops  # a single position, so that the dimension is gone
        self.whole = not drops and start == 0 and stop == size

    @property
    def length(self) -> Size:
        return None if self.stop is None else max(self.stop - self.start, 0)


class _Steps:
    """A range with a step: the positions in it."""

    def __init__(self, positions: Node) -> None:
        self.positions = positions


def _is_whole_number(part: Any) -> bool:
    return isinstance(part, numbers.Integral) and not isinstance(part, (bool, numpy.bool_))


def _parts(node: Node, key: Any) -> Tuple[List[Any], List[int]]:
    """One part for each dimension, and where numpy.newaxis stands in the result."""
    parts = list(key) if isinstance(key, tuple) else [key]
    given = sum(1 for part in parts if part is not None and part is not Ellipsis)
    if any(part is Ellipsis for part in parts):
        at = next(i for i, part in enumerate(parts) if part is Ellipsis)
        parts[at:at + 1] = [slice(None)] * (node.ndim - given)
        if any(part is Ellipsis for part in parts):
            raise UsageError("an index may have one ellipsis (...)")
    elif given < node.ndim and not (len(parts) == 1 and _mask_dims(parts[0]) == 2):
        parts += [slice(None)] * (node.ndim - given)
    if given > node.ndim:
        raise UsageError(f"{given} indexes for an array of {node.ndim} dimensions")
    new_axes = []
    position = 0
    for part in parts:
        if part is None:
            new_axes.append(position)
            position += 1
        elif not _is_whole_number(part):
            position += 1
    return [part for part in parts if part is not None], new_axes


def _mask_dims(part: Any) -> int:
    if isinstance(part, Node):
        return part.ndim if part.dtype == BOOL else 0
    if isinstance(part, numpy.ndarray) and part.dtype.kind == "b":
        return part.ndim
    return 0


def _range_of(part: Any, size: Size, axis: int) -> Any:
    """A range; or the positions, as a node, of what is none."""
    if _is_whole_number(part):
        position = int(part)
        if size is None:
            if position < 0:
                raise UsageError("an index from the end needs a size that is known: x.compute() tells it")
        elif not -size <= position < size:
            raise ShapeError(f"index {position} is out of range for axis {axis}, which has {size}")
        elif position < 0:
            position += size
        return _Range(position, position + 1, size, True)
    if isinstance(part, slice):
        if size is None:
            if part.step not in (None, 1) or (part.start or 0) < 0 or (part.stop is not None and part.stop < 0):
                raise UsageError("a range with a step or from the end needs a size that is known: x.compute() tells it")
            return _Range(part.start or 0, part.stop, size, False)
        start, stop, step = part.indices(size)
        if step == 1:
            return _Range(start, max(start, stop), size, False)
        return _Steps(leaf(numpy.arange(start, stop, step), "positions"))
    if isinstance(part, Node) or isinstance(part, (numpy.ndarray, list, tuple, range)):
        if isinstance(part, (list, tuple, range)):
            part = numpy.asarray(part, None if len(part) else numpy.int64)
        positions = part if isinstance(part, Node) else _checked(part, size, axis)
        if positions.ndim > 1 and positions.dtype != BOOL:
            raise UsageError("an index array has one dimension here")
        return positions
    raise UsageError(f"a {type(part).__name__} is no index; whole numbers, ranges, arrays of whole numbers or of "
                     "booleans are")


def _checked(positions: Any, size: Size, axis: int) -> Node:
    """The node of an array of positions: none out of range, none from the end."""
    if positions.dtype.kind == "b":
        return leaf(positions, "mask")
    if positions.dtype.kind not in "iu":
        raise UsageError(f"index arrays have whole numbers or booleans, not {positions.dtype}")
    if positions.ndim == 0:
        return node_of(int(positions))
    if size is not None and positions.size:
        low, high = int(positions.min()), int(positions.max())
        if low < -size or high >= size:
            raise ShapeError(f"index {low if low < -size else high} is out of range for axis {axis}, which has {size}")
        if low < 0:
            positions = numpy.where(positions < 0, positions + size, positions)
    return leaf(positions, "positions")


def get(node: Node, key: Any) -> Node:
    if key.__class__ is slice and node.ndim and node.rows is not None and key.step is None:  # what is asked for most
        start, stop, _ = key.indices(node.rows)
        if start < stop and stop - start < node.rows:
            return Node(f"{{0}}[{start + 1}:{stop},]", (node,), stop - start, node.columns, node.ndim, node.dtype)
    parts, new_axes = _parts(node, key)
    if len(parts) == 1 and _mask_dims(parts[0]) == 2 and node.ndim == 2:
        mask = node_of(parts[0])
        broadcast_shapes("[mask]", node, mask)
        return selected(flat(node), flat(mask))
    ranges = [_range_of(part, size, axis) for axis, (part, size) in enumerate(zip(parts, node.shape))]
    result = _picked(node, ranges)
    for axis in new_axes:
        from heddle.lazy._reshape import expand_dims
        result = expand_dims(result, axis)
    return result


def _picked(node: Node, ranges: List[Any]) -> Node:
    arrays = [one for one in ranges if isinstance(one, Node) and one.ndim > 0]
    if len(arrays) == 2:
        return _pairs(node, arrays[0], arrays[1])
    dropped = []
    result = node
    bounds: List[Any] = [None, None]
    for axis, one in enumerate(ranges):
        if isinstance(one, _Range):
            bounds[axis] = None if one.whole else one
            if one.drops:
                dropped.append(axis)
        elif isinstance(one, Node) and one.ndim == 0:
            bounds[axis] = one
            dropped.append(axis)
    result = _sliced(result, bounds)
    for axis, one in enumerate(ranges):
        if isinstance(one, _Steps):
            result = take(result, one.positions, axis)
        if isinstance(one, Node) and one.ndim > 0:
            result = _masked(result, one, axis) if one.dtype == BOOL else take(result, one, axis)
    from heddle.lazy._reshape import without_axes
    return without_axes(result, dropped)


def _bound(one: Any, size: Size) -> Tuple[str, List[Any], Size]:
    """The text of one index of DML, its arguments, and how many cells it has."""
    if one is None:
        return "", [], size
    if isinstance(one, Node):  # a computed position
        return "{}", [binary("add", one, 1)], 1
    if one.drops:
        return str(one.start + 1), [], 1
    if one.stop is None:
        return f"{one.start + 1}:{{}}", [], None
    return f"{one.start + 1}:{one.stop}", [], one.length


def _index_of(node: Node, bounds: List[Any], arguments: List[Any]) -> Tuple[List[str], List[Size]]:
    """The texts of both indexes and how many cells they have; what the texts name joins the arguments."""
    texts: List[str] = []
    lengths: List[Size] = []
    for axis, one in enumerate(bounds):
        text, further, length = _bound(one, (node.rows, node.columns)[axis])
        if isinstance(one, _Range) and one.stop is None:
            further = [scalar("nrow({0})" if axis == 0 else "ncol({0})", (node,), INT)]
        for argument in further:
            text = text.replace("{}", f"{{{len(arguments)}}}", 1)
            arguments.append(argument)
        texts.append(text)
        lengths.append(length)
    return texts, lengths


def _sliced(node: Node, bounds: List[Any]) -> Node:
    if bounds[0] is None and bounds[1] is None:
        return node
    arguments: List[Any] = [node]
    texts, lengths = _index_of(node, bounds, arguments)
    if 0 in lengths:
        return Node("matrix(0, rows={0}, cols={1})", (str(lengths[0]), str(lengths[1])), lengths[0], lengths[1],
                    node.ndim, node.dtype)
    return Node(f"{{0}}[{texts[0]}, {texts[1]}]".replace("[, ", "[,"), tuple(arguments), lengths[0], lengths[1],
                node.ndim, node.dtype)


def selected(node: Node, mask: Node) -> Node:
    """The rows of a column at which the mask is true."""
    if mask.rows is not None and node.rows is not None and mask.rows != node.rows:
        raise ShapeError(f"a mask of {mask.rows} for an axis of {node.rows}")
    return Node('removeEmpty(target={0}, margin="rows", select={1}, empty.return=FALSE)', (node, mask), None,
                node.columns, node.ndim, node.dtype)


def _masked(node: Node, mask: Node, axis: int) -> Node:
    if mask.ndim != 1:
        raise UsageError("a mask of two dimensions stands alone: x[mask]")
    if axis == 0:
        return selected(node, mask)
    if mask.rows is not None and node.columns is not None and mask.rows != node.columns:
        raise ShapeError(f"a mask of {mask.rows} for an axis of {node.columns}")
    return Node('removeEmpty(target={0}, margin="cols", select=t({1}), empty.return=FALSE)', (node, mask), node.rows,
                None, node.ndim, node.dtype)


def take(node: Node, positions: Node, axis: int) -> Node:
    """Rows or columns by their numbers from 0: a product with a matrix that has one 1 in each row. Cells elsewhere are
    not read, so that none of them turns 0 into NaN."""
    if positions.ndim == 0:
        from heddle.lazy._reshape import without_axes
        bounds: List[Any] = [None, None]
        bounds[axis] = positions
        return without_axes(_sliced(node, bounds), [axis])
    count = positions.rows
    choice = _choice(positions, rows_text(node) if axis == 0 else _width(node), count)
    if axis == 0:
        return Node("{0} %*% {1}", (choice, node), count, node.columns, node.ndim, node.dtype)
    return Node("{0} %*% {1}", (node, transposed(choice)), node.rows, count, 2, node.dtype)


def _width(node: Node) -> Any:
    from heddle.lazy._node import columns_text
    return columns_text(node)


def _choice(positions: Node, size: Any, count: Size) -> Node:
    """A sparse matrix: row i has its 1 in column positions[i] + 1."""
    length = str(count) if count is not None else rows_text(positions)
    return Node("table(seq(1, {1}), {0} + 1, {1}, {2})", (positions, length, size), count,
                int(size) if isinstance(size, str) else None, 2, FLOAT)


def _pairs(node: Node, rows: Node, columns: Node) -> Node:
    """The cells (rows[k], columns[k])."""
    if rows.dtype == BOOL or columns.dtype == BOOL:
        raise UsageError("a mask together with another index array; take one after the other: x[mask][:, columns]")
    broadcast_shapes("[rows, columns]", rows, columns)
    cells = flat(node)
    width = _width(node)
    positions = binary("add", binary("multiply", rows, int(width) if isinstance(width, str) else width), columns)
    return take(cells, positions, 0)


# --- assignment ---

def put(node: Node, key: Any, value: Node) -> Node:
    """The array with other cells at an index."""
    if node.ndim == 0:
        if key is Ellipsis or key == ():
            return _cells(value, node.dtype) if value.ndim == 0 else _cells(as_scalar(value), node.dtype)
        raise UsageError("a scalar has one cell: x[...] = value")
    parts, new_axes = _parts(node, key)
    if new_axes:
        raise UsageError("numpy.newaxis in an assignment")
    if len(parts) == 1 and _mask_dims(parts[0]) == node.ndim:
        mask = node_of(parts[0])
        if value.ndim:
            raise UsageError("x[mask] = array assigns as many cells as the mask has; heddle.where(mask, array, x) takes "
                             "them from an array of the same shape")
        return _typed(where(mask, value, node), node)
    ranges = [_range_of(part, size, axis) for axis, (part, size) in enumerate(zip(parts, node.shape))]
    ranges = [one.positions if isinstance(one, _Steps) else one for one in ranges]
    if any(isinstance(one, Node) and one.ndim > 0 for one in ranges):
        return _put_at_positions(node, ranges, value)
    return _put_range(node, ranges, value)


def _typed(result: Node, node: Node) -> Node:
    from heddle.lazy._elementwise import converted
    return converted(result, node.dtype)


def _cells(value: Node, dtype: Any) -> Node:
    from heddle.lazy._elementwise import converted
    if value.ndim == 0 and dtype == FLOAT:
        number = as_number(value)
        assert isinstance(number, Node)
        return number
    return converted(value, dtype)


def _put_range(node: Node, ranges: List[Any], value: Node) -> Node:
    arguments: List[Any] = [node, _cells(value, node.dtype)]
    bounds = [None if isinstance(one, _Range) and one.whole else one for one in (*ranges, None)[:2]]
    texts, lengths = _index_of(node, bounds, arguments)
    if 0 in lengths:
        return node
    dropped = [axis for axis, one in enumerate(ranges) if isinstance(one, Node) or one.drops]
    arguments[1] = _fitted(arguments[1], lengths, dropped, node.ndim)
    return Node("put", tuple(arguments), node.rows, node.columns, node.ndim, node.dtype, f"[{texts[0]}, {texts[1]}]")


def _fitted(value: Node, lengths: List[Size], dropped: List[int], ndim: int) -> Node:
    """The value as the matrix of exactly the size of the target that DML wants."""
    rows, columns = lengths
    if value.ndim == 0:
        if rows == columns == 1:
            return value
        if rows is None or columns is None:
            raise UsageError("assigning one number to a range needs a size that is known: x.compute() tells it")
        return Node("matrix({0}, rows={1}, cols={2})", (as_number(value), str(rows), str(columns)), rows, columns, 2,
                    value.dtype)
    if ndim == 2 and (value.ndim == 1 and dropped != [1] or value.ndim == 2 and dropped == [1]):
        value = transposed(value)
    for size, target in ((value.rows, rows), (value.columns, columns)):
        if size not in (target, 1, None) and target is not None:
            raise ShapeError(f"assignment: an array of {shape_text(value.shape)} does not fit into "
                             f"{shape_text((rows, columns))}")
    if (value.rows, value.columns) != (rows, columns) and rows is not None and columns is not None \
            and value.has_known_shape:
        if value.rows == value.columns == 1:
            return Node("matrix(as.scalar({0}), rows={1}, cols={2})", (value, str(rows), str(columns)), rows, columns, 2,
                        value.dtype)
        return spread(value, str(rows), str(columns), rows, columns)
    return as_ndim(value, 2) if value.ndim == 1 else value


def _put_at_positions(node: Node, ranges: List[Any], value: Node) -> Node:
    """Rows or columns with numbers that an array has."""
    arrays = [axis for axis, one in enumerate(ranges) if isinstance(one, Node) and one.ndim > 0]
    others = [one for axis, one in enumerate(ranges) if axis not in arrays]
    if len(arrays) > 1 or any(not isinstance(one, _Range) or not one.whole for one in others):
        raise UsageError("assigning to an index array together with another index; heddle.where(mask, values, x) "
                         "chooses cell by cell")
    axis = arrays[0]
    positions = ranges[axis]
    if axis == 1:
        if value.ndim == 2:
            value = transposed(value)
        elif value.ndim == 1:
            value = as_ndim(value, 2)
            if value.rows != 1:
                value = Node("t({0})", (value,), value.columns, value.rows, 2, value.dtype)
                value = transposed(value)
        return transposed(_put_at_positions(transposed(node), [positions, _Range(0, node.rows, node.rows, False)], value))
    if positions.dtype == BOOL:
        if value.ndim and not (value.ndim == 1 and node.ndim == 2):
            raise UsageError("x[mask] = array assigns as many rows as the mask has; heddle.where(mask[:, None], array, x) "
                             "takes them from an array of the same shape")
        return _typed(where(as_ndim(positions, 2) if node.ndim == 2 else positions, value, node), node)
    return _put_rows(node, positions, value)


def _put_rows(node: Node, positions: Node, value: Node) -> Node:
    if positions.op != "input" or positions.extra is None:
        raise UsageError("assigning to positions that are not computed yet: positions.compute() first")
    numbers_ = numpy.asarray(positions.extra[1], numpy.int64)
    last = {int(position): index for index, position in enumerate(numbers_)}  # of equal positions the last counts
    kept = numpy.array(sorted(last), numpy.int64)
    size = rows_text(node)
    mask_node = binary("greater", Node("table({0} + 1, 1, {1}, 1)", (leaf(kept, "positions"), size), node.rows, 1, 2,
                                       FLOAT), 0)
    mask = as_ndim(mask_node, node.ndim)
    if value.ndim == 0 or value.rows == 1 and value.ndim == 2 or value.ndim == 1 and node.ndim == 2:
        return _typed(where(mask, value, node), node)
    if value.rows is not None and value.rows != len(numbers_):
        raise ShapeError(f"assignment: {value.rows} rows for {len(numbers_)} positions")
    if node.ndim == 2 and value.columns not in (1, node.columns, None):
        raise ShapeError(f"assignment: {value.columns} columns for {node.columns}")
    if len(kept) != len(numbers_):
        value = take(value, leaf(numpy.array([last[int(position)] for position in kept], numpy.int64), "last"), 0)
        choice = _choice(leaf(kept, "positions"), size, len(kept))
    else:
        choice = _choice(positions, size, len(numbers_))
    scattered = Node("t({0}) %*% {1}", (choice, value), node.rows, value.columns, node.ndim, FLOAT)
    return _typed(where(mask, scattered, node), node)


__all__ = ["INT", "get", "put", "scalar_as", "selected", "take"]
