# SPDX-License-Identifier: Apache-2.0
"""Products of matrices, and what linear algebra is made of them."""

from __future__ import annotations

from typing import Any, Tuple

from heddle._errors import UsageError
from heddle.lazy._elementwise import as_float, as_number, binary, node_of, promoted, result_dtype, scalar_as, unary
from heddle.lazy._node import BOOL, FLOAT, INT, Node, ShapeError, as_ndim, scalar, shape_text, transposed
from heddle.lazy._reduce import as_ndim_2, flat, reduce


def matmul(left: Any, right: Any) -> Node:
    """left @ right, as NumPy: of one dimension is a row on the left and a column on the right."""
    left, right = node_of(left), node_of(right)
    if left.ndim < 1 or right.ndim < 1:
        raise ShapeError("@ takes arrays of one or two dimensions, not scalars; * multiplies by one")
    inner_left = left.columns if left.ndim == 2 else left.rows
    inner_right = right.rows
    if inner_left is not None and inner_right is not None and inner_left != inner_right:
        raise ShapeError(f"@: shapes {shape_text(left.shape)} and {shape_text(right.shape)} do not fit: "
                         f"{inner_left} columns and {inner_right} rows")
    dtype = result_dtype("matmul", "any", left.dtype, right.dtype)
    counts = dtype == BOOL  # whether any pair of cells is true
    if left.ndim == right.ndim == 1:
        product = scalar("as.scalar(t({0}) %*% {1})", (left, right), FLOAT)
        return binary("greater", product, 0) if counts else product if dtype == FLOAT else scalar_as(product, dtype)
    if left.ndim == 1:
        result = _product(transposed(right), left, right.columns, 1, 1, dtype)
    elif right.ndim == 1:
        result = _product(left, right, left.rows, 1, 1, dtype)
    else:
        result = _product(left, right, left.rows, right.columns, 2, dtype)
    return binary("greater", result, 0) if counts else result


def _product(left: Node, right: Node, rows: Any, columns: Any, ndim: int, dtype: Any) -> Node:
    return Node("{0} %*% {1}", (left, right), rows, columns, ndim, INT if dtype == BOOL else dtype)


def dot(left: Any, right: Any) -> Node:
    left, right = node_of(left), node_of(right)
    return binary("multiply", left, right) if left.ndim == 0 or right.ndim == 0 else matmul(left, right)


def vdot(left: Any, right: Any) -> Node:
    return matmul(flat(node_of(left)), flat(node_of(right)))


def outer(left: Any, right: Any) -> Node:
    left, right = flat(node_of(left)), flat(node_of(right))
    return binary("multiply", as_ndim_2(left), transposed(right))


def inner(left: Any, right: Any) -> Node:
    left, right = node_of(left), node_of(right)
    if left.ndim == 0 or right.ndim == 0:
        return binary("multiply", left, right)
    return matmul(left, transposed(right) if right.ndim == 2 else right)


def kron(left: Any, right: Any) -> Node:
    """Each cell of the left times the right: rows and columns of both are repeated by products with 0 and 1."""
    left, right = as_float(node_of(left)), as_float(node_of(right))
    if left.ndim != 2 or right.ndim != 2 or not left.has_known_shape or not right.has_known_shape:
        raise UsageError("kron takes two arrays of two dimensions whose shapes are known")
    from heddle.lazy._reshape import repeat, tile
    one = repeat(repeat(left, right.rows, 0), right.columns, 1)
    return binary("multiply", one, tile(right, (left.rows, left.columns)))


def square(name: str, value: Any) -> Node:
    node = as_float(node_of(value))
    if node.ndim != 2:
        raise ShapeError(f"{name} takes a matrix, not an array of {node.ndim} dimensions")
    if node.has_known_shape and node.rows != node.columns:
        raise ShapeError(f"{name} takes a square matrix, this one is {shape_text(node.shape)}")
    return node


def trace(value: Any) -> Node:
    node = node_of(value)
    if node.ndim != 2:
        raise ShapeError("trace takes a matrix")
    if node.rows != node.columns:
        return reduce("sum", diagonal(node))
    result = scalar("trace({0})", (node,), FLOAT)
    return result if node.dtype == FLOAT else scalar_as(result, INT)


def diagonal(value: Any) -> Node:
    """The cells of a matrix whose row and column have the same number."""
    node = node_of(value)
    if node.ndim != 2:
        raise ShapeError("a diagonal has an array of two dimensions")
    if node.rows is None or node.columns is None:
        raise UsageError("diagonal: the shape is known once the array is computed: x.compute()")
    if node.rows == node.columns == 1:
        return as_ndim(node, 1)
    size = min(node.rows, node.columns)
    if node.rows != node.columns:
        node = Node(f"{{0}}[1:{size}, 1:{size}]", (node,), size, size, 2, node.dtype)
        if size == 1:
            return as_ndim(node, 1)
    return Node("diag({0})", (node,), size, 1, 1, node.dtype)


def diagonal_matrix(value: Any) -> Node:
    node = node_of(value)
    if node.ndim != 1:
        return diagonal(node)
    if node.rows == 1:
        return as_ndim(node, 2)
    return Node("diag({0})", (node,), node.rows, node.rows, 2, node.dtype)


# --- numpy.linalg ---

def solve(matrix: Any, right: Any) -> Node:
    matrix, right = square("solve", matrix), as_float(node_of(right))
    if right.ndim == 0:
        raise ShapeError("solve takes a vector or a matrix on the right")
    if matrix.rows is not None and right.rows is not None and matrix.rows != right.rows:
        raise ShapeError(f"solve: shapes {shape_text(matrix.shape)} and {shape_text(right.shape)} do not fit: "
                         f"{matrix.rows} equations and {right.rows} rows")
    return Node("solve({0}, {1})", (matrix, right), matrix.columns, right.columns, right.ndim, FLOAT)


def inverse(value: Any) -> Node:
    node = square("inv", value)
    return Node("inv({0})", (node,), node.rows, node.columns, 2, FLOAT)


def determinant(value: Any) -> Node:
    return scalar("det({0})", (square("det", value),), FLOAT)


def cholesky(value: Any, upper: bool = False) -> Node:
    node = square("cholesky", value)
    result = Node("cholesky({0})", (node,), node.rows, node.columns, 2, FLOAT)
    return transposed(result) if upper else result


def _call(expression: str, arguments: Tuple[Node, ...], names: Tuple[str, ...]) -> Node:
    return Node("call", arguments, None, None, -1, "list", (expression, names))


def item(call: Node, index: int, rows: Any, columns: Any, ndim: int, dtype: Any) -> Node:
    return Node("item", (call,), rows, columns, ndim, dtype, index)


def symmetric_eigen(value: Any) -> Tuple[Node, Node]:
    """Values, ascending, and vectors in columns."""
    node = square("eigh", value)
    call = _call("eigen({0})", (node,), ("values", "vectors"))
    return item(call, 0, node.rows, 1, 1, FLOAT), item(call, 1, node.rows, node.columns, 2, FLOAT)


def singular_values(value: Any) -> Tuple[Node, Node, Node]:
    """U, the singular values from the greatest on, and V transposed: the thin factors."""
    node = as_float(node_of(value))
    if node.ndim != 2:
        raise ShapeError("svd takes a matrix")
    size = min(node.rows, node.columns) if node.rows is not None and node.columns is not None else None
    call = _call("svd({0})", (node,), ("U", "S", "V"))
    left = item(call, 0, node.rows, size, 2, FLOAT)
    values = item(call, 1, size, size, 2, FLOAT)
    right = item(call, 2, node.columns, size, 2, FLOAT)
    return left, as_ndim(values, 1) if size == 1 else Node("diag({0})", (values,), size, 1, 1, FLOAT), transposed(right)


def sign_and_log_determinant(value: Any) -> Tuple[Node, Node]:
    """By the factors of P A = L U: the determinant of U is the product of its diagonal, that of P is 1 or -1."""
    node = square("slogdet", value)
    call = _call("lu({0})", (node,), ("P", "L", "U"))
    permutation, _, upper = (item(call, i, node.rows, node.columns, 2, FLOAT) for i in range(3))
    pivots = Node("diag({0})", (upper,), node.rows, 1, 1, FLOAT) if node.rows != 1 else as_ndim(upper, 1)
    sign = binary("multiply", scalar("det({0})", (permutation,), FLOAT), reduce("prod", unary("sign", pivots)))
    return sign, reduce("sum", unary("log", unary("absolute", pivots)))


_THIN_Q = """\
{name} = function(matrix[double] H) return (matrix[double] Q) {
  n = ncol(H)
  Q = diag(matrix(1, rows=n, cols=1))
  if (nrow(H) > n) Q = rbind(Q, matrix(0, rows=nrow(H) - n, cols=n))
  for (j in seq(n, 1, -1)) {
    v = H[, j]
    Q = Q - (2 / sum(v^2)) * (v %*% (t(v) %*% Q))
  }
}"""


def orthogonal_factors(value: Any) -> Tuple[Node, Node]:
    """Q and R of at least as many rows as columns, the thin ones. DML's qr() gives reflections, from which Q is made."""
    node = as_float(node_of(value))
    if node.ndim != 2 or not node.has_known_shape or node.rows < node.columns:  # type: ignore[operator]
        raise ShapeError(f"qr takes a matrix with at least as many rows as columns, not {shape_text(node.shape)}")
    call = _call("qr({0})", (node,), ("H", "R"))
    reflections = item(call, 0, node.rows, node.columns, 2, FLOAT)
    upper = item(call, 1, node.rows, node.columns, 2, FLOAT)
    from heddle.lazy._trace import call_written
    q = call_written("thinQ", _THIN_Q, reflections, FLOAT)
    if node.rows != node.columns:
        upper = Node(f"{{0}}[1:{node.columns},]", (upper,), node.columns, node.columns, 2, FLOAT)
    return q, upper


def pseudo_inverse(value: Any, rcond: float = 1e-15) -> Node:
    """V S^-1 t(U), where singular values below rcond times the greatest count as 0."""
    left, values, right = singular_values(value)
    least = binary("multiply", reduce("max", values), rcond)
    is_used = binary("greater", values, least)
    from heddle.lazy._elementwise import where
    inverted = where(is_used, binary("divide", 1.0, values), 0.0)
    return matmul(transposed(right), binary("multiply", as_ndim_2(inverted), transposed(left)))


def norm(value: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Node:
    node = as_float(node_of(value))
    if ord is None or ord == "fro" or ord == 2 and (node.ndim == 1 or axis is not None):
        return unary("sqrt", reduce("sum", binary("power", node, 2), axis, keepdims))
    magnitude = unary("absolute", node)
    infinite = float("inf")
    if node.ndim == 1 or axis is not None:
        if ord in (infinite, -infinite):
            return reduce("max" if ord > 0 else "min", magnitude, axis, keepdims)
        if ord == 0:
            return as_float(as_number(reduce("sum", binary("not_equal", node, 0), axis, keepdims)))  # type: ignore[arg-type]
        powers = reduce("sum", magnitude if ord == 1 else binary("power", magnitude, ord), axis, keepdims)
        return powers if ord == 1 else binary("power", powers, 1.0 / ord)
    if ord in (1, -1, infinite, -infinite):
        sums = reduce("sum", magnitude, 0 if abs(ord) == 1 else 1)
        return reduce("max" if ord > 0 else "min", sums)
    values = singular_values(node)[1]
    if ord in (2, -2):
        return reduce("max" if ord > 0 else "min", values)
    if ord == "nuc":
        return reduce("sum", values)
    raise UsageError(f"norm: a matrix has no norm {ord!r}")


def matrix_power(value: Any, power: int) -> Node:
    node = square("matrix_power", value)
    if power < 0:
        node, power = inverse(node), -power
    from heddle.lazy._create import eye
    if power == 0:
        return eye(node.rows)
    result = None
    while power:
        if power % 2:
            result = node if result is None else matmul(result, node)
        power //= 2
        if power:
            node = matmul(node, node)
    assert result is not None
    return result


def covariance(value: Any, rowvar: bool = True, ddof: int = 1) -> Node:
    """t(C) C / (n - ddof) of the centered variables."""
    node = as_float(node_of(value))
    if node.ndim == 1:
        from heddle.lazy._reduce import variance
        return variance(node, None, ddof)
    if rowvar:
        node = transposed(node)
    centered = binary("subtract", node, reduce("mean", node, 0))
    from heddle.lazy._node import rows_text
    count = rows_text(node)
    return binary("divide", matmul(transposed(centered), centered),
                  int(count) - ddof if isinstance(count, str) else binary("subtract", count, ddof))


def correlation(value: Any, rowvar: bool = True) -> Node:
    product = covariance(value, rowvar)
    deviations = unary("sqrt", diagonal(product))
    return binary("divide", product, outer(deviations, deviations))


def promoted_all(nodes: Any) -> Any:
    dtype = BOOL
    for node in nodes:
        dtype = promoted(dtype, node.dtype)
    return dtype
