# SPDX-License-Identifier: Apache-2.0
"""Reductions: of all cells to a scalar, along one axis to an array of one dimension."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from heddle._errors import UsageError
from heddle.lazy._elementwise import as_boolean, as_float, as_number, binary, converted, node_of, scalar_as, unary
from heddle.lazy._node import (
    BOOL,
    FLOAT,
    INT,
    Argument,
    Node,
    ShapeError,
    as_ndim,
    cells_text,
    columns_text,
    rows_text,
    scalar,
    transposed,
)

# name: (of all cells, of each column, of each row)
_EXPRESSIONS: Dict[str, Tuple[str, str, str]] = {
    "sum": ("sum({0})", "colSums({0})", "rowSums({0})"),
    "prod": ("prod({0})", "colProds({0})", "rowProds({0})"),
    "mean": ("mean({0})", "colMeans({0})", "rowMeans({0})"),
    "min": ("min({0})", "colMins({0})", "rowMins({0})"),
    "max": ("max({0})", "colMaxs({0})", "rowMaxs({0})"),
    "var": ("var({0})", "colVars({0})", "rowVars({0})"),
}


def normalized_axis(node: Node, axis: Any) -> Optional[int]:
    """0 or 1; None for all cells, which every axis of an array of one dimension means as well."""
    if axis is None:
        return None
    if isinstance(axis, tuple):
        if len({single % max(node.ndim, 1) for single in axis if -node.ndim <= single < node.ndim}) == len(axis):
            if len(axis) == node.ndim:
                return None
            if len(axis) == 1:
                return normalized_axis(node, axis[0])
        raise UsageError(f"axis {axis} is none of an array of {node.ndim} dimensions")
    axis = int(axis)
    if not -node.ndim <= axis < node.ndim:
        raise UsageError(f"axis {axis} is none of an array of {node.ndim} dimensions")
    return None if node.ndim < 2 else axis % 2


def _is_none(node: Node, axis: Any) -> bool:
    """Whether axis=() is asked for, along which each cell stays alone."""
    return isinstance(axis, tuple) and not axis and node.ndim > 0


def _kept(result: Node, node: Node, axis: Optional[int], keepdims: bool) -> Node:
    """The result in as many dimensions as NumPy gives it."""
    if axis is None:
        if not keepdims or node.ndim == 0:
            return result
        matrix = Node("as.matrix({0})", (as_number(result),), 1, 1, 2, result.dtype)
        return as_ndim(matrix, node.ndim)
    if axis == 0:
        return result if keepdims else as_ndim(transposed(result), 1)
    return result if keepdims else as_ndim(result, 1)


def reduce(name: str, value: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """"sum", "prod", "mean", "min" or "max"."""
    node = node_of(value)
    dtype = FLOAT if name == "mean" else node.dtype
    if dtype == BOOL and name in ("sum", "prod"):
        dtype = INT
    if _is_none(node, axis):
        return converted(node, dtype)
    along = normalized_axis(node, axis)
    if node.ndim == 0:
        number = as_number(node)
        assert isinstance(number, Node)
        return as_float(number) if dtype == FLOAT else number
    if name in ("min", "max") and (node.is_empty if along is None else (node.rows, node.columns)[along] == 0):
        raise ShapeError(f"{name}: there are no cells, and no smallest or greatest one of none")
    return _kept(_plain(name, node, along, dtype), node, along, keepdims)


def _plain(name: str, node: Node, along: Optional[int], dtype: Any) -> Node:
    """A row, a column or a scalar."""
    expression = _EXPRESSIONS[name][0 if along is None else along + 1]
    if along is None:
        result = scalar(expression, (node,), FLOAT)
        return result if dtype == FLOAT else scalar_as(result, dtype)
    if along == 0:
        return Node(expression, (node,), 1, node.columns, 2, dtype)
    return Node(expression, (node,), node.rows, 1, 2, dtype)


def _count(node: Node, along: Optional[int]) -> Argument:
    if along is None:
        return cells_text(node)
    return rows_text(node) if along == 0 else columns_text(node)


def variance(value: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False, root: bool = False) -> Node:
    """var() and std(): the sum of squares around the mean over n - ddof. DML has it for ddof = 1."""
    node = as_float(node_of(value))
    if node.ndim == 0:
        return binary("multiply", node, 0.0)
    if _is_none(node, axis):
        return binary("multiply", node, 0.0 if ddof < 1 else float("nan"))
    along = normalized_axis(node, axis)
    count = _count(node, along)
    if count == "1" and ddof == 0:  # 0, or NaN of NaN
        return reduce("sum", binary("multiply", node, 0.0), axis, keepdims)
    result = _plain("var", node, along, FLOAT)
    if ddof != 1:
        if isinstance(count, str):
            n = int(count)
            factor: Any = (n - 1) / (n - ddof) if n != ddof else float("nan")
        else:
            factor = binary("divide", binary("subtract", count, 1), binary("subtract", count, ddof))
        result = binary("multiply", result, factor)
    if root:
        result = unary("sqrt", result)
    return _kept(result, node, along, keepdims)


def any_of(value: Any, axis: Any = None, keepdims: bool = False) -> Node:
    return _quantifier(value, axis, keepdims, "sum", "greater")


def all_of(value: Any, axis: Any = None, keepdims: bool = False) -> Node:
    node = as_boolean(value)
    if node.ndim == 0:
        return node
    return _quantifier(binary("equal", node, 0), axis, keepdims, "sum", "equal")


def _quantifier(value: Any, axis: Any, keepdims: bool, name: str, compare: str) -> Node:
    node = as_boolean(value)
    if node.ndim == 0:
        return node
    if _is_none(node, axis):
        return binary(compare, node, 0)
    along = normalized_axis(node, axis)
    return _kept(binary(compare, _plain(name, node, along, FLOAT), 0), node, along, keepdims)


def index_of_extreme(name: str, value: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """argmin() and argmax(): the first of equal cells, or the first NaN. DML's own functions give the last one."""
    node = node_of(value)
    along = normalized_axis(node, axis)
    extreme = "max" if name == "argmax" else "min"
    if node.ndim == 0:
        return Node("0", (), 1, 1, 0, INT)
    if node.is_empty:
        raise ShapeError(f"{name}: there are no cells, and no smallest or greatest one of none")
    cells = flat(node) if along is None else node
    direction = 0 if along is None else along
    count = rows_text(cells) if direction == 0 else columns_text(cells)
    last = str(int(count) - 1) if isinstance(count, str) else binary("subtract", count, 1)
    positions = Node("seq(0, {0})", (last,), cells.rows if direction == 0 else cells.columns, 1, 2, INT)
    if direction == 1:
        positions = transposed(positions)
    best = _plain(extreme, cells, None if along is None else direction, cells.dtype)
    is_best = binary("equal", cells, best)
    if cells.dtype == FLOAT:
        is_best = binary("or", is_best, Node("is.nan({0})", (cells,), cells.rows, cells.columns, cells.ndim, BOOL))
    others = as_number(Node("!{0}", (is_best,), cells.rows, cells.columns, cells.ndim, BOOL))
    penalty = as_ndim_2(binary("multiply", others, int(count) if isinstance(count, str) else as_float(count)))
    index = binary("add", penalty, positions)
    return _kept(_plain("min", index, None if along is None else direction, INT), node, along, keepdims)


def as_ndim_2(node: Node) -> Node:
    return as_ndim(node, 2) if node.ndim == 1 else node


def flat(node: Node) -> Node:
    """All cells row by row, as an array of one dimension."""
    if node.ndim == 1:
        return node
    if node.ndim == 0:
        return Node("as.matrix({0})", (as_number(node),), 1, 1, 1, node.dtype)
    if node.columns == 1:
        return as_ndim(node, 1)
    cells = cells_text(node)
    return Node("matrix({0}, rows={1}, cols=1)", (node, cells), int(cells) if isinstance(cells, str) else None, 1, 1,
                node.dtype)


# name: (down each column, along each row or "")
_CUMULATIVE: Dict[str, Tuple[str, str]] = {
    "sum": ("cumsum({0})", "rowcumsum({0})"), "prod": ("cumprod({0})", ""),
    "max": ("cummax({0})", ""), "min": ("cummin({0})", ""),
}


def cumulative(name: str, value: Any, axis: Any = None) -> Node:
    node = node_of(value)
    dtype = INT if node.dtype == BOOL and name in ("sum", "prod") else node.dtype
    if axis is None or node.ndim < 2:
        if axis is not None:
            normalized_axis(node, axis)
        node, along = flat(node), 0
    else:
        along = normalized_axis(node, axis) or 0
    down, across = _CUMULATIVE[name]
    if along == 0:
        return Node(down, (node,), node.rows, node.columns, node.ndim, dtype)
    if across:
        return Node(across, (node,), node.rows, node.columns, 2, dtype)
    turned = transposed(node)
    return transposed(Node(down, (turned,), turned.rows, turned.columns, 2, dtype))


def count_nonzero(value: Any, axis: Any = None, keepdims: bool = False) -> Node:
    return reduce("sum", as_boolean(value), axis, keepdims)


def peak_to_peak(value: Any, axis: Any = None, keepdims: bool = False) -> Node:
    return binary("subtract", reduce("max", value, axis, keepdims), reduce("min", value, axis, keepdims))


def average(value: Any, axis: Any = None, weights: Any = None) -> Node:
    if weights is None:
        return reduce("mean", value, axis)
    node, weight = as_float(node_of(value)), node_of(weights)
    if node.ndim == 2 and weight.ndim == 1 and normalized_axis(node, axis) == 0:
        weight = as_ndim_2(weight)
    return binary("divide", reduce("sum", binary("multiply", node, weight), axis), reduce("sum", weight, None)
                  if weight.ndim < 2 or weight.columns == 1 else reduce("sum", weight, axis))


def without_nan(name: str, fill: float) -> Callable[..., Node]:
    """nansum(), nanmin() and so on: what is NaN counts as `fill`."""
    def reduced(value: Any, axis: Any = None, keepdims: bool = False) -> Node:
        node = node_of(value)
        if node.ndim == 0 or node.dtype != FLOAT:
            return reduce(name, node, axis, keepdims)
        from heddle.lazy._leaf import number_text
        clean = Node("replace(target={0}, pattern=NaN, replacement={1})", (node, number_text(fill)), node.rows,
                     node.columns, node.ndim, FLOAT)
        return reduce(name, clean, axis, keepdims)
    return reduced


def nan_mean(value: Any, axis: Any = None, keepdims: bool = False) -> Node:
    node = node_of(value)
    from heddle.lazy._elementwise import invert, is_nan
    return binary("divide", without_nan("sum", 0.0)(node, axis, keepdims),
                  reduce("sum", invert(is_nan(node)), axis, keepdims))


def median(value: Any, axis: Any = None) -> Node:
    node = as_float(node_of(value))
    if axis is not None and normalized_axis(node, axis) is not None:
        raise UsageError("median along an axis of two dimensions is not built; take it of one column: x[:, j].median()")
    return scalar("median({0})", (flat(node),), FLOAT) if node.ndim else node
