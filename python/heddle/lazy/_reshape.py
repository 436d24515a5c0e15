# SPDX-License-Identifier: Apache-2.0
"""The same cells in another order or shape."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from heddle._errors import UsageError
from heddle.lazy._elementwise import as_number, binary, node_of
from heddle.lazy._node import BOOL, INT, Node, ShapeError, Size, as_ndim, cells_text, rows_text, shape_text, transposed
from heddle.lazy._product import promoted_all
from heddle.lazy._reduce import as_ndim_2, flat, normalized_axis


def reshape(value: Any, shape: Any, order: str = "C") -> Node:
    node = node_of(value)
    sizes = [int(size) for size in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    if order not in ("C", "F", "A", "K"):
        raise UsageError(f"reshape: order is 'C' or 'F', not {order!r}")
    if len(sizes) > 2:
        raise ShapeError(f"reshape to {tuple(sizes)}: Heddle has two dimensions")
    cells = None if node.rows is None or node.columns is None else node.rows * node.columns
    if sizes.count(-1) > 1:
        raise ShapeError("reshape: one size may be -1")
    known = 1
    for size in sizes:
        known *= size if size != -1 else 1
    if cells is not None:
        if -1 in sizes:
            if known == 0 or cells % known:
                raise ShapeError(f"reshape: {cells} cells, shape {shape_text(node.shape)}, do not fit into {tuple(sizes)}")
            sizes[sizes.index(-1)] = cells // known
        elif known != cells:
            raise ShapeError(f"reshape: {cells} cells, shape {shape_text(node.shape)}, do not fit into {tuple(sizes)}")
    if not sizes:
        from heddle.lazy._elementwise import as_scalar
        return as_scalar(node)
    if node.ndim == 0:
        node = flat(node)
    if len(sizes) == 1:
        if order == "F" and node.ndim == 2:
            node = transposed(node)
        return flat(node)
    return _matrix(node, sizes, known, order)


def _matrix(node: Node, sizes: List[int], known: int, order: str) -> Node:
    texts: List[Any] = []
    for size in sizes:
        if size == -1:
            cells = cells_text(node)
            assert isinstance(cells, Node)
            texts.append(binary("divide", cells, known))
        else:
            texts.append(str(size))
    rows, columns = (None if size == -1 else size for size in sizes)
    if node.ndim == 1 and columns == 1 and node.rows == rows or node.ndim == 2 and (node.rows, node.columns) == (
            rows, columns):
        return as_ndim(node, 2)
    column_wise = ", byrow=FALSE" if order == "F" else ""
    return Node("matrix({0}, rows={1}, cols={2}" + column_wise + ")", (node, *texts), rows, columns, 2, node.dtype)


def transpose(value: Any, axes: Any = None) -> Node:
    node = node_of(value)
    if axes:
        if axes == (None,):
            axes = None
        elif sorted(int(axis) % max(node.ndim, 1) for axis in axes) != list(range(node.ndim)):
            raise UsageError(f"axes {tuple(axes)} are none of an array of {node.ndim} dimensions")
        elif node.ndim == 2 and int(axes[0]) % 2 == 0:
            return node
    return transposed(node) if node.ndim == 2 else node


def matrix_transpose(node: Node) -> Node:
    if node.ndim != 2:
        raise UsageError(f"mT swaps the last two dimensions, of {node.ndim} there are none")
    return transposed(node)


def squeeze(value: Any, axis: Any = None) -> Node:
    node = node_of(value)
    axes = range(node.ndim) if axis is None else [
        int(single) % max(node.ndim, 1) for single in (axis if isinstance(axis, tuple) else (axis,))]
    dropped = []
    for one in axes:
        if node.shape[one] == 1:
            dropped.append(one)
        elif axis is not None:
            raise ShapeError(f"squeeze: axis {one} has {node.shape[one]} cells, not one")
    return without_axes(node, dropped)


def without_axes(node: Node, dropped: Sequence[int]) -> Node:
    if not dropped:
        return node
    if len(dropped) == node.ndim:
        from heddle.lazy._elementwise import as_scalar
        return as_scalar(node)
    return as_ndim(node if dropped[0] == 1 else transposed(node), 1)


def expand_dims(value: Any, axis: Any) -> Node:
    node = node_of(value)
    ndim = node.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    if ndim > 2:
        raise ShapeError(f"expand_dims: {ndim} dimensions; Heddle has two")
    axes = [int(single) for single in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if any(not -ndim <= single < ndim for single in axes):
        raise UsageError(f"expand_dims: axis {axis} is none of {ndim} dimensions")
    if node.ndim == 0:
        return as_ndim(flat(node), ndim)
    return as_ndim(node, 2) if axes[0] % 2 == 1 else transposed(node)


# --- put together ---

def concatenate(values: Sequence[Any], axis: Optional[int] = 0) -> Node:
    nodes = [node_of(value) for value in values]
    if not nodes:
        raise UsageError("concatenate: there is no array")
    if axis is None:
        nodes, axis = [flat(node) for node in nodes], 0
    ndim = nodes[0].ndim
    if any(node.ndim != ndim for node in nodes) or ndim == 0:
        shapes = ", ".join(shape_text(node.shape) for node in nodes)
        raise ShapeError(f"concatenate takes arrays of one or two dimensions, all of the same: {shapes}")
    along = normalized_axis(nodes[0], axis) or 0
    return bind(nodes, along, ndim)


def bind(nodes: List[Node], along: int, ndim: int) -> Node:
    """Below each other (0) or side by side (1)."""
    across = [node.columns if along == 0 else node.rows for node in nodes]
    sizes = {size for size in across if size is not None}
    if len(sizes) > 1:
        shapes = ", ".join(shape_text(node.shape) for node in nodes)
        raise ShapeError(f"concatenate along axis {along}: shapes {shapes} do not fit")
    lengths = [node.rows if along == 0 else node.columns for node in nodes]
    total: Size = None if None in lengths else sum(length for length in lengths if length is not None)
    other: Size = sizes.pop() if sizes else None
    dtype = promoted_all(nodes)
    filled = [node for node, length in zip(nodes, lengths) if length != 0] or nodes[:1]
    if len(filled) == 1 and filled[0].dtype == dtype:
        return filled[0]
    function = "rbind" if along == 0 else "cbind"
    if along == 1:
        function = "cbind"
    expression = f"{function}({', '.join(f'{{{i}}}' for i in range(len(filled)))})"
    rows, columns = (total, other) if along == 0 else (other, total)
    return Node(expression, tuple(filled), rows, columns, ndim, dtype)


def stack(values: Sequence[Any], axis: int = 0) -> Node:
    nodes = [node_of(value) for value in values]
    if not nodes:
        raise UsageError("stack: there is no array")
    if len({node.ndim for node in nodes}) > 1 or nodes[0].ndim > 1:
        raise ShapeError("stack takes scalars, or arrays of one dimension: the result has one more, at most two")
    if nodes[0].ndim == 0:
        return bind([flat(node) for node in nodes], 0, 1)
    if axis % 2:
        return bind([as_ndim_2(node) for node in nodes], 1, 2)
    return bind([transposed(node) for node in nodes], 0, 2)


def vstack(values: Sequence[Any]) -> Node:
    nodes = [node_of(value) for value in values]
    return bind([transposed(flat(node)) if node.ndim < 2 else node for node in nodes], 0, 2)


def hstack(values: Sequence[Any]) -> Node:
    nodes = [flat(node) if node.ndim == 0 else node for node in map(node_of, values)]
    return concatenate(nodes, 0 if nodes and nodes[0].ndim == 1 else 1)


def column_stack(values: Sequence[Any]) -> Node:
    nodes = [node_of(value) for value in values]
    return bind([as_ndim_2(flat(node)) if node.ndim < 2 else node for node in nodes], 1, 2)


def tile(value: Any, counts: Any) -> Node:
    node = node_of(value)
    repeats = tuple(int(count) for count in (counts if isinstance(counts, (tuple, list)) else (counts,)))
    if len(repeats) > 2:
        raise ShapeError("tile: Heddle has two dimensions")
    if node.ndim == 0:
        node = flat(node)
    if len(repeats) == 2 and node.ndim == 1:
        node = transposed(node)
    if len(repeats) == 1 and node.ndim == 2:
        repeats = (1, *repeats)
    for axis, count in enumerate(repeats):
        if count != 1:
            node = bind([node] * count, axis, node.ndim) if count else _none_of(node, axis)
    return node


def _none_of(node: Node, axis: int) -> Node:
    rows, columns = (0, node.columns) if axis == 0 else (node.rows, 0)
    return Node("matrix(0, rows={0}, cols={1})", (str(rows), str(columns)), rows, columns, node.ndim, node.dtype)


def repeat(value: Any, count: Any, axis: Any = None) -> Node:
    """Each row or column so many times: a product with a matrix of 0 and 1."""
    node = node_of(value)
    if axis is None:
        node, axis = flat(node), 0
    along = normalized_axis(node, axis) or 0
    size = node.shape[along]
    if size is None:
        raise UsageError("repeat: the shape is known once the array is computed: x.compute()")
    import numpy

    from heddle.lazy._index import take
    positions = numpy.repeat(numpy.arange(size), count)
    return take(node, node_of(positions), along)


def flip(value: Any, axis: Any = None) -> Node:
    node = node_of(value)
    if node.ndim == 0:
        return node
    axes = range(node.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for one in axes:
        along = normalized_axis(node, one) or 0
        if along == 0:
            node = Node("rev({0})", (node,), node.rows, node.columns, node.ndim, node.dtype)
        else:
            turned = transposed(node)
            node = transposed(Node("rev({0})", (turned,), turned.rows, turned.columns, 2, node.dtype))
    return node


def roll(value: Any, shift: Any, axis: Any = None) -> Node:
    node = node_of(value)
    if node.ndim == 0:
        return node
    if isinstance(shift, (tuple, list)) or isinstance(axis, (tuple, list)):
        axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,) * len(shift)
        shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
        for one, along in zip(shifts, axes):
            node = roll(node, one, along)
        return node
    if axis is None and node.ndim == 2:
        return _matrix(roll(flat(node), shift, 0), [node.rows or -1, node.columns or -1], 1, "C")
    if (normalized_axis(node, axis if axis is not None else 0) or 0) == 1:
        turned = transposed(node)
        return transposed(roll(turned, shift, 0))
    return Node("roll({0}, {1})", (node, str(int(shift))), node.rows, node.columns, node.ndim, node.dtype)


# --- sorted ---

def sort(value: Any, axis: Any = -1, descending: bool = False) -> Node:
    node = node_of(value)
    return _ordered(node, axis, descending, "FALSE", node.dtype)


def argsort(value: Any, axis: Any = -1, descending: bool = False) -> Node:
    """Positions, of equal cells in their order."""
    return binary("subtract", _ordered(node_of(value), axis, descending, "TRUE", INT), 1)


def _ordered(node: Node, axis: Any, descending: bool, index: str, dtype: Any) -> Node:
    if axis is None:
        node, axis = flat(node), 0
    if node.ndim == 0:
        raise UsageError("a scalar has no order")
    along = normalized_axis(node, axis) or 0
    options = f'decreasing={"TRUE" if descending else "FALSE"}, index.return={index}'
    if node.ndim == 1 or along == 0 and node.columns == 1:
        return Node("order(target={0}, " + options + ")", (node,), node.rows, 1, node.ndim, dtype)
    if along == 1:
        return transposed(_ordered(transposed(node), 0, descending, index, dtype))
    # Column by column, by a function that is part of the program.
    from heddle.lazy._trace import call_written
    return call_written("sortColumns" if index == "FALSE" else "orderColumns", f"""\
{{name}} = function(matrix[double] X) return (matrix[double] Y) {{
  Y = X
  parfor (j in 1:ncol(X)) Y[, j] = order(target=X[, j], {options})
}}""", node, dtype)


def unique(value: Any) -> Node:
    node = flat(node_of(value))
    return Node("unique({0})", (node,), None, 1, 1, node.dtype)


def nonzero(value: Any) -> Tuple[Node, ...]:
    """The positions of cells that are not 0."""
    node = node_of(value)
    if node.ndim == 0:
        raise UsageError("nonzero of a scalar")
    from heddle.lazy._index import selected
    cells = flat(node)
    last = rows_text(cells)
    end = str(int(last) - 1) if isinstance(last, str) else binary("subtract", last, 1)
    positions = Node("seq(0, {0})", (end,), cells.rows, 1, 1, INT)
    kept = selected(positions, binary("not_equal", cells, 0) if cells.dtype != BOOL else cells)
    if node.ndim == 1:
        return (kept,)
    from heddle.lazy._elementwise import floor_divide, remainder
    from heddle.lazy._node import columns_text
    width = columns_text(node)
    columns: Any = int(width) if isinstance(width, str) else width
    return floor_divide(kept, columns), remainder(kept, columns)


def triangle(value: Any, offset: int, lower: bool) -> Node:
    """The cells on one side of a diagonal, 0 on the other."""
    node = node_of(value)
    if node.ndim != 2:
        raise ShapeError("tril and triu take an array of two dimensions")
    if node.rows is None or node.columns is None:
        raise UsageError("tril, triu: the shape is known once the array is computed: x.compute()")
    from heddle.lazy._elementwise import where
    rows = Node("seq({0}, {1})", ("1", str(node.rows)), node.rows, 1, 2, INT)
    columns = transposed(Node("seq({0}, {1})", ("1", str(node.columns)), node.columns, 1, 2, INT))
    distance = binary("subtract", rows, columns)
    kept = binary("greater_equal" if lower else "less_equal", distance, -offset)
    return where(kept, as_number(node), 0)
