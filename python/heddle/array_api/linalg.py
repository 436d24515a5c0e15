# SPDX-License-Identifier: Apache-2.0
"""The extension linalg of the Array API."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

from heddle._errors import UsageError
from heddle._run import public as _public
from heddle.array_api._base import node as _node
from heddle.array_api._creation import zeros as _zeros
from heddle.array_api._reductions import matmul as matmul
from heddle.array_api._reductions import sum as _sum
from heddle.array_api._reductions import tensordot as tensordot
from heddle.array_api._reductions import vecdot as vecdot
from heddle.array_api._shapes import matrix_transpose as matrix_transpose
from heddle.lazy import _elementwise, _index, _product, _reduce, _reshape
from heddle.lazy import _numpy as _protocols
from heddle.lazy._array import Array, wrap_array


class _Eigen(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class _Qr(NamedTuple):
    Q: Array
    R: Array


class _Slogdet(NamedTuple):
    sign: Array
    logabsdet: Array


class _Svd(NamedTuple):
    U: Array
    S: Array
    Vh: Array


@_public
def cholesky(x: Array, /, *, upper: builtins.bool = False) -> Array:
    return wrap_array(_product.cholesky(_node(x), upper))


@_public
def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    raise UsageError("linalg.cross is not built; its parts are slices: x[:, 1] * y[:, 2] - x[:, 2] * y[:, 1]")


@_public
def det(x: Array, /) -> Array:
    return wrap_array(_product.determinant(_node(x)))


@_public
def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    node = _node(x)
    if offset:
        node = _index.get(node, (slice(None), slice(offset, None)) if offset > 0 else slice(-offset, None))
        if node.is_empty:
            return _zeros((0,), dtype=node.dtype)
    return wrap_array(_product.diagonal(node))


@_public
def eigh(x: Array, /) -> Any:
    values, vectors = _product.symmetric_eigen(_node(x))
    return _Eigen(wrap_array(values), wrap_array(vectors))


@_public
def eigvalsh(x: Array, /) -> Array:
    return wrap_array(_product.symmetric_eigen(_node(x))[0])


@_public
def inv(x: Array, /) -> Array:
    return wrap_array(_product.inverse(_node(x)))


@_public
def matrix_norm(x: Array, /, *, keepdims: builtins.bool = False, ord: Any = "fro") -> Array:
    result = _product.norm(_node(x), ord)
    return wrap_array(_reshape.reshape(result, (1, 1)) if keepdims else result)


@_public
def matrix_power(x: Array, n: int, /) -> Array:
    return wrap_array(_product.matrix_power(_node(x), n))


@_public
def matrix_rank(x: Array, /, *, rtol: Any = None) -> Array:
    return wrap_array(_protocols.FUNCTIONS["linalg.matrix_rank"](_node(x)))


@_public
def outer(x1: Array, x2: Array, /) -> Array:
    return wrap_array(_product.outer(_node(x1), _node(x2)))


@_public
def pinv(x: Array, /, *, rtol: Any = None) -> Array:
    return wrap_array(_product.pseudo_inverse(_node(x), 1e-15 if rtol is None else float(rtol)))


@_public
def qr(x: Array, /, *, mode: str = "reduced") -> Any:
    if mode != "reduced":
        raise UsageError("linalg.qr gives the thin factors: mode='reduced'")
    return _Qr(*(wrap_array(node) for node in _product.orthogonal_factors(_node(x))))


@_public
def slogdet(x: Array, /) -> Any:
    return _Slogdet(*(wrap_array(node) for node in _product.sign_and_log_determinant(_node(x))))


@_public
def solve(x1: Array, x2: Array, /) -> Array:
    return wrap_array(_product.solve(_node(x1), _node(x2)))


@_public
def svd(x: Array, /, *, full_matrices: builtins.bool = True) -> Any:
    return _Svd(*(wrap_array(node) for node in _protocols.FUNCTIONS["linalg.svd"](_node(x), full_matrices)))


@_public
def svdvals(x: Array, /) -> Array:
    return wrap_array(_product.singular_values(_node(x))[1])


@_public
def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    return _sum(diagonal(x, offset=offset), dtype=dtype)


@_public
def vector_norm(x: Array, /, *, axis: Any = None, keepdims: builtins.bool = False,
                ord: Any = 2) -> Array:
    node = _elementwise.as_float(_node(x))
    if node.ndim == 0:
        return wrap_array(_elementwise.unary("absolute", node))
    if axis is None and node.ndim == 2:
        result = _product.norm(_reduce.flat(node), ord)
        return wrap_array(_reshape.reshape(result, (1, 1)) if keepdims else result)
    return wrap_array(_product.norm(node, ord, -1 if axis is None else axis, keepdims))
