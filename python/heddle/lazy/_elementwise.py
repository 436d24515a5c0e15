# SPDX-License-Identifier: Apache-2.0
"""Operators and functions that work cell by cell, with NumPy's broadcasting and rules for dtypes.

In DML a vector is repeated only on the right of a matrix. Where NumPy's meaning needs more, the operands are swapped
(with the mirrored operator), or the vector is multiplied with a matrix of ones, which is never written to memory.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from heddle._errors import UsageError
from heddle.lazy._leaf import dtype_of_number, operand
from heddle.lazy._node import (
    BOOL,
    FLOAT,
    INT,
    Argument,
    Node,
    ShapeError,
    Size,
    as_dtype,
    columns_text,
    like,
    rows_text,
    scalar,
    shape_text,
    transposed,
)

_RANK = {BOOL: 0, INT: 1, FLOAT: 2}


def promoted(left: Any, right: Any) -> Any:
    """The dtype of both together: the wider of bool, int64, float64."""
    return left if _RANK[left] >= _RANK[right] else right


# name: (expression, kind of result, expression with operands swapped or "")
# Kinds: "number" the promoted dtype, at least int64; "any" the promoted dtype; "float"; "bool".
_BINARY: Dict[str, Tuple[str, str, str]] = {
    "add": ("{0} + {1}", "number", "{0} + {1}"),
    "subtract": ("{0} - {1}", "number", "-{0} + {1}"),
    "multiply": ("{0} * {1}", "number", "{0} * {1}"),
    "divide": ("{0} / {1}", "float", ""),
    "power": ("{0} ^ {1}", "number", ""),
    "fmod": ("{0} %% {1}", "number", ""),
    "equal": ("{0} == {1}", "bool", "{0} == {1}"),
    "not_equal": ("{0} != {1}", "bool", "{0} != {1}"),
    "less": ("{0} < {1}", "bool", "{0} > {1}"),
    "less_equal": ("{0} <= {1}", "bool", "{0} >= {1}"),
    "greater": ("{0} > {1}", "bool", "{0} < {1}"),
    "greater_equal": ("{0} >= {1}", "bool", "{0} <= {1}"),
    "maximum": ("max({0}, {1})", "any", "max({0}, {1})"),
    "minimum": ("min({0}, {1})", "any", "min({0}, {1})"),
    "and": ("{0} & {1}", "bool", "{0} & {1}"),
    "or": ("{0} | {1}", "bool", "{0} | {1}"),
    "xor": ("xor({0}, {1})", "bool", "xor({0}, {1})"),
    "bits_and": ("bitwAnd({0}, {1})", "any", "bitwAnd({0}, {1})"),
    "bits_or": ("bitwOr({0}, {1})", "any", "bitwOr({0}, {1})"),
    "bits_xor": ("bitwXor({0}, {1})", "any", "bitwXor({0}, {1})"),
    "left_shift": ("bitwShiftL({0}, {1})", "number", ""),
    "right_shift": ("bitwShiftR({0}, {1})", "number", ""),
}
_SYMBOLS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**", "equal": "==",
            "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "and": "&",
            "or": "|", "xor": "^", "bits_and": "&", "bits_or": "|", "bits_xor": "^"}


def _together(left: Size, right: Size) -> Size:
    """The size of a dimension in which two operands meet. -1: they do not fit."""
    if left == right or right == 1:
        return left
    if left == 1:
        return right
    if left is None or right is None:
        # One of them is known and not 1: the other has that size, or 1.
        return left if right is None else right
    return -1


def broadcast_shapes(name: str, *nodes: Node) -> Tuple[Size, Size, int]:
    """Rows, columns and dimensions of what nodes give cell by cell, as NumPy has it: of one dimension is a row where
    another one has two."""
    ndim = max(node.ndim for node in nodes)
    rows: Size = 1
    columns: Size = 1
    for node in nodes:
        if node.ndim == 0:
            continue
        node_rows, node_columns = (1, node.rows) if node.ndim == 1 and ndim == 2 else (node.rows, node.columns)
        rows, columns = _together(rows, node_rows), _together(columns, node_columns)
        if rows == -1 or columns == -1:
            raise ShapeError(_mismatch(name, nodes))
    return rows, columns, ndim


def _mismatch(name: str, nodes: Tuple[Node, ...]) -> str:
    shapes = [shape_text(node.shape) for node in nodes if node.ndim]
    text = f"{_SYMBOLS.get(name, name)}: shapes {' and '.join(shapes)} do not fit"
    first, last = nodes[0], nodes[-1]
    for one, other in ((first, last), (last, first)):
        if one.ndim == 1 and other.ndim == 2 and one.rows == other.rows:
            text += (f"; an array of {one.rows} is a row beside one of two dimensions: [:, None] makes a column of it")
            break
    return text


def is_vector(node: Node) -> bool:
    return node.rows == 1 or node.columns == 1


def spread(node: Node, rows: Argument, columns: Argument, row_count: Size, column_count: Size) -> Node:
    """A vector, repeated to a matrix of this size."""
    ones = Node("matrix({0}, rows={1}, cols={2})", ("1", rows, columns), row_count, column_count, 2, FLOAT)
    return Node("{0} * {1}", (ones, node), row_count, column_count, 2, node.dtype)


def as_row(node: Node) -> Node:
    """An array of one dimension as the row that it is beside one of two."""
    return transposed(node) if node.ndim == 1 else node


def as_scalar(node: Node) -> Node:
    """The only cell of a matrix."""
    if node.ndim == 0:
        return node
    value = scalar("as.scalar({0})", (node,), FLOAT)
    return value if node.dtype == FLOAT else scalar_as(value, node.dtype)


def scalar_as(node: Node, dtype: Any) -> Node:
    """A scalar of DML as one of the type that this dtype is."""
    if dtype == BOOL:
        return scalar("{0} != {1}", (node, "0"), BOOL)
    return scalar("as.integer({0})" if dtype == INT else "as.double({0})", (node,), dtype)


def result_dtype(name: str, kind: str, left: Any, right: Any) -> Any:
    if kind == "bool":
        return BOOL
    if kind == "float":
        return FLOAT
    dtype = promoted(left, right)
    if dtype == BOOL and kind == "number":
        return INT
    return dtype


def binary(name: str, left: Any, right: Any) -> Node:
    """`left op right`; each is a node, a number or an array of another library."""
    expression, kind, mirrored = _BINARY[name]
    if isinstance(left, Node):
        left_dtype = left.dtype
    else:
        left, left_dtype = operand(left)
    if isinstance(right, Node):
        right_dtype = right.dtype
    else:
        right, right_dtype = operand(right)
    if left_dtype == right_dtype == BOOL and kind == "number":
        return _of_booleans(name, left, right)
    try:
        dtype = result_dtype(name, kind, left_dtype, right_dtype)
    except KeyError:
        wrong = left_dtype if left_dtype not in _RANK else right_dtype
        raise UsageError(f"{_SYMBOLS.get(name, name)}: a {wrong} is no array") from None

    if isinstance(left, str) and isinstance(right, str):
        return scalar(expression, (left, right), dtype)
    if isinstance(right, str):
        return Node(expression, (left, right), left.rows, left.columns, left.ndim, dtype)
    if isinstance(left, str):
        return Node(expression, (left, right), right.rows, right.columns, right.ndim, dtype)
    if right.ndim == 0 or (left.ndim == right.ndim and left.rows == right.rows and left.columns == right.columns
                           and left.rows is not None and left.columns is not None):
        return Node(expression, (left, right), left.rows, left.columns, left.ndim, dtype)
    if left.ndim == 0:
        return Node(expression, (left, right), right.rows, right.columns, right.ndim, dtype)
    return _broadcast(name, expression, mirrored, left, right, dtype)


def _broadcast(name: str, expression: str, mirrored: str, left: Node, right: Node, dtype: Any) -> Node:
    rows, columns, ndim = broadcast_shapes(name, left, right)
    if ndim == 2:
        left, right = as_row(left), as_row(right)
    # What has one cell in a matrix is a scalar of DML on either side.
    if right.rows == right.columns == 1:
        return Node(expression, (left, as_scalar(right)), rows, columns, ndim, dtype)
    if left.rows == left.columns == 1:
        return Node(expression, (as_scalar(left), right), rows, columns, ndim, dtype)
    is_outer = left.columns == 1 and right.rows == 1
    fits = left.rows == rows and left.columns == columns and left.has_known_shape
    if fits or is_outer or not is_vector(left):
        return Node(expression, (left, right), rows, columns, ndim, dtype)
    # The vector stands on the left of what is wider, or may be.
    if mirrored:
        return Node(mirrored, (right, left), rows, columns, ndim, dtype)
    all_rows = str(rows) if rows is not None else rows_text(right if left.rows == 1 else left)
    all_columns = str(columns) if columns is not None else columns_text(right if left.columns == 1 else left)
    return Node(expression, (spread(left, all_rows, all_columns, rows, columns), right), rows, columns, ndim, dtype)


def _of_booleans(name: str, left: Argument, right: Argument) -> Node:
    """NumPy's + and * of booleans are "or" and "and"; it has no difference of them."""
    left, right = (Node(one, (), 1, 1, 0, BOOL) if isinstance(one, str) else one for one in (left, right))
    if name == "add":
        return binary("or", left, right)
    if name == "multiply":
        return binary("and", left, right)
    if name == "subtract":
        raise UsageError("-: booleans have no difference; ^ says where they differ, astype(int) makes numbers of them")
    return binary(name, as_number(left), as_number(right))


def as_number(node: Argument) -> Argument:
    """Booleans as 0 and 1."""
    if isinstance(node, str):
        return {"TRUE": "1", "FALSE": "0"}.get(node, node)
    if node.dtype != BOOL:
        return node
    return scalar_as(node, INT) if node.ndim == 0 else as_dtype(node, INT)


def as_boolean(value: Any) -> Node:
    """Whether each cell is other than 0."""
    node = node_of(value)
    return node if node.dtype == BOOL else binary("not_equal", node, 0)


def as_float(node: Node) -> Node:
    return scalar_as(node, FLOAT) if node.ndim == 0 and node.dtype != FLOAT else as_dtype(node, FLOAT)


def node_of(value: Any) -> Node:
    """The node of an argument: of a number a literal, of an array a leaf."""
    if isinstance(value, Node):
        return value
    argument, dtype = operand(value)
    return Node(argument, (), 1, 1, 0, dtype) if isinstance(argument, str) else argument


def converted(node: Node, dtype: Any) -> Node:
    """astype(): numbers are cut toward zero, what is not 0 is true."""
    if node.dtype == dtype:
        return node
    if node.ndim == 0:
        return scalar_as(node, dtype)
    if dtype == BOOL:
        return binary("not_equal", node, 0)
    if dtype == INT and node.dtype == FLOAT:
        return as_dtype(truncated(node), INT)
    return as_dtype(node, dtype)


# --- of one operand ---

# name: (expression, whether the dtype stays)
UNARY: Dict[str, Tuple[str, bool]] = {
    "exp": ("exp({0})", False), "log": ("log({0})", False), "sqrt": ("sqrt({0})", False),
    "sin": ("sin({0})", False), "cos": ("cos({0})", False), "tan": ("tan({0})", False),
    "arcsin": ("asin({0})", False), "arccos": ("acos({0})", False), "arctan": ("atan({0})", False),
    "sinh": ("sinh({0})", False), "cosh": ("cosh({0})", False), "tanh": ("tanh({0})", False),
    "erf": ("erf({0})", False),
    "absolute": ("abs({0})", True), "sign": ("sign({0})", True), "negative": ("-{0}", True),
}


def unary(name: str, value: Any) -> Node:
    expression, keeps = UNARY[name]
    node = node_of(value)
    if node.dtype == BOOL:
        if name == "negative":
            raise UsageError("-: booleans have no negative; ~ inverts them")
        if name == "absolute":
            return node
        number = as_number(node)
        assert isinstance(number, Node)
        node = number
    if keeps and node.ndim == 0 and node.dtype == INT and name != "negative":
        return scalar_as(like(expression, (node,), node, FLOAT), INT)
    return like(expression, (node,), node, node.dtype if keeps else FLOAT)


def invert(value: Any) -> Node:
    node = node_of(value)
    if node.dtype == BOOL:
        return like("!{0}", (node,), node, BOOL)
    if node.dtype == INT:
        return binary("subtract", like("-{0}", (node,), node, INT), 1)
    raise UsageError("~ inverts booleans and integers, not float64; x == 0 is true where a cell is 0")


def is_nan(value: Any) -> Node:
    return _test("is.nan({0})", value)


def is_infinite(value: Any) -> Node:
    return _test("is.infinite({0})", value)


def is_finite(value: Any) -> Node:
    node = node_of(value)
    return invert(binary("or", is_nan(node), is_infinite(node)))


def _test(expression: str, value: Any) -> Node:
    node = node_of(value)
    if node.ndim:
        return like(expression, (node,), node, BOOL)
    return scalar_as(scalar(expression, (node,), FLOAT), BOOL)


def floor(value: Any) -> Node:
    return _whole("floor({0})", value)


def ceil(value: Any) -> Node:
    return _whole("ceil({0})", value)


def truncated(value: Any) -> Node:
    node = node_of(value)
    if node.dtype != FLOAT:
        return node
    return binary("multiply", like("sign({0})", (node,), node, FLOAT),
                  like("floor({0})", (unary("absolute", node),), node, FLOAT))


def _whole(expression: str, value: Any) -> Node:
    node = node_of(value)
    return node if node.dtype != FLOAT else like(expression, (node,), node, FLOAT)


def rounded(value: Any, decimals: int = 0) -> Node:
    """To the nearest whole number, of two equally near ones the even one."""
    node = node_of(value)
    if decimals:
        scale = 10.0 ** abs(decimals)
        name, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
        result = binary(back, rounded(as_float(binary(name, node, scale))), scale)
        return result if node.dtype == FLOAT else converted(result, node.dtype)
    if node.dtype != FLOAT:
        return node
    below = floor(node)
    rest = binary("subtract", node, below)
    is_odd = binary("equal", binary("fmod", unary("absolute", below), 2), 1)
    up = binary("or", binary("greater", rest, 0.5), binary("and", binary("equal", rest, 0.5), is_odd))
    return as_dtype(binary("add", below, as_number(up)), FLOAT)


# --- made of others ---

def floor_divide(left: Any, right: Any) -> Node:
    left, right = node_of(left), node_of(right)
    dtype = promoted(promoted(left.dtype, right.dtype), INT)
    quotient = binary("divide", left, right)
    if quotient.ndim == 0 and dtype == INT:
        return scalar_as(floor(quotient), INT)
    return as_dtype(floor(quotient), dtype)


def remainder(left: Any, right: Any) -> Node:
    """left - floor(left / right) * right: it has the sign of the divisor."""
    left, right = node_of(left), node_of(right)
    rest = binary("subtract", left, binary("multiply", floor_divide(left, right), right))
    is_literal = right.value is None and not right.args and right.op not in ("input", "variable", "Inf", "-Inf")
    if right.dtype != FLOAT or is_literal and right.ndim == 0:
        return rest
    same_sign = binary("equal", binary("less", left, 0), binary("less", right, 0))
    of_infinite = where(binary("or", same_sign, binary("equal", left, 0)), left, right)
    return where(binary("and", is_infinite(right), is_finite(left)), of_infinite, rest)


def where(condition: Any, chosen: Any, other: Any) -> Node:
    nodes = [as_boolean(condition), node_of(chosen), node_of(other)]
    dtype = promoted(nodes[1].dtype, nodes[2].dtype)
    if all(node.ndim == 0 for node in nodes):
        return scalar("ifelse({0}, {1}, {2})",
                      (nodes[0], *(_promoted_scalar(node, dtype) for node in nodes[1:])), dtype)
    rows, columns, ndim = broadcast_shapes("where", *nodes)
    if ndim == 2:
        nodes = [as_row(node) for node in nodes]
    sized = next((node for node in nodes if node.ndim and not is_vector(node)), nodes[0])
    all_rows = str(rows) if rows is not None else rows_text(sized)
    all_columns = str(columns) if columns is not None else columns_text(sized)
    arguments = tuple(_filled(node, rows, columns, all_rows, all_columns, ndim) for node in nodes)
    return Node("ifelse({0}, {1}, {2})", arguments, rows, columns, ndim, dtype)


def _promoted_scalar(node: Node, dtype: Any) -> Node:
    return node if node.dtype == dtype or node.dtype not in _RANK else scalar_as(node, dtype)


def _filled(node: Node, rows: Size, columns: Size, all_rows: Argument, all_columns: Argument, ndim: int) -> Argument:
    """What DML's ifelse takes: a scalar, or a matrix of the size of the result."""
    if node.ndim == 0:
        return as_number(node)
    if node.rows == node.columns == 1 and not (rows == columns == 1):
        return as_number(as_scalar(node))
    if is_vector(node) and not (node.has_known_shape and node.rows == rows and node.columns == columns):
        return spread(node, all_rows, all_columns, rows, columns)
    return node


def clip(value: Any, low: Optional[Any], high: Optional[Any]) -> Node:
    node = node_of(value)
    if low is not None:
        node = binary("maximum", node, low)
    if high is not None:
        node = binary("minimum", node, high)
    return node


def logical(name: str) -> Callable[[Any, Any], Node]:
    return lambda left, right: binary(name, as_boolean(left), as_boolean(right))


def bits(name: str, left: Any, right: Any) -> Node:
    """& | ^ of booleans, and of integers bit by bit."""
    left_dtype = left.dtype if isinstance(left, Node) else dtype_of_number(left)
    right_dtype = right.dtype if isinstance(right, Node) else dtype_of_number(right)
    if left_dtype is None:
        left = node_of(left)
        left_dtype = left.dtype
    if right_dtype is None:
        right = node_of(right)
        right_dtype = right.dtype
    if left_dtype == right_dtype == BOOL:
        return binary(name, left, right)
    if FLOAT in (left_dtype, right_dtype):
        raise UsageError(f"{_SYMBOLS[name]} takes booleans and integers, not float64; compare first: "
                         f"(x > 0) {_SYMBOLS[name]} (y > 0)")
    return binary("bits_" + name, as_number(node_of(left)), as_number(node_of(right)))
