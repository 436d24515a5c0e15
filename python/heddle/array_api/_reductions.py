# SPDX-License-Identifier: Apache-2.0
"""Reductions and products, in the namespace of the Array API."""

from __future__ import annotations

import builtins
from typing import Any, Optional

from heddle._errors import UsageError
from heddle._run import public as _public
from heddle.array_api._base import node as _node
from heddle.lazy import _create, _elementwise, _product, _reduce, _reshape
from heddle.lazy import _numpy as _protocols
from heddle.lazy._array import Array, dtype_of, wrap_array
from heddle.lazy._node import ShapeError
from heddle.lazy._node import transposed as _transposed


def _reduced(name: str, x: Array, axis: Any, keepdims: Any, dtype: Any = None) -> Array:
    node = _node(x)
    if dtype is not None:
        node = _elementwise.converted(node, dtype_of(dtype))
    return wrap_array(_reduce.reduce(name, node, axis, keepdims))


@_public
def sum(x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False) -> Array:
    return _reduced("sum", x, axis, keepdims, dtype)


@_public
def prod(x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False) -> Array:
    return _reduced("prod", x, axis, keepdims, dtype)


@_public
def mean(x: Array, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    return _reduced("mean", x, axis, keepdims)


@_public
def min(x: Array, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    return _reduced("min", x, axis, keepdims)


@_public
def max(x: Array, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    return _reduced("max", x, axis, keepdims)


@_public
def std(x: Array, /, *, axis: Any = None, correction: Any = 0.0, keepdims: builtins.bool = False) -> Array:
    return wrap_array(_reduce.variance(_node(x), axis, correction, keepdims, root=True))


@_public
def var(x: Array, /, *, axis: Any = None, correction: Any = 0.0, keepdims: builtins.bool = False) -> Array:
    return wrap_array(_reduce.variance(_node(x), axis, correction, keepdims))


@_public
def all(x: Array, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    return wrap_array(_reduce.all_of(_node(x), axis, keepdims))


@_public
def any(x: Array, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    return wrap_array(_reduce.any_of(_node(x), axis, keepdims))


@_public
def argmax(x: Array, /, *, axis: Optional[int] = None, keepdims: builtins.bool = False) -> Array:
    return wrap_array(_reduce.index_of_extreme("argmax", _node(x), axis, keepdims))


@_public
def argmin(x: Array, /, *, axis: Optional[int] = None, keepdims: builtins.bool = False) -> Array:
    return wrap_array(_reduce.index_of_extreme("argmin", _node(x), axis, keepdims))


@_public
def count_nonzero(x: Array, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    return wrap_array(_reduce.count_nonzero(_node(x), axis, keepdims))


def _cumulative(name: str, x: Array, axis: Any, dtype: Any, initial: Any) -> Array:
    node = _node(x)
    if dtype is not None:
        node = _elementwise.converted(node, dtype_of(dtype))
    if axis is None:
        if node.ndim != 1:
            raise UsageError("of two dimensions an axis is needed")
        axis = 0
    result = _reduce.cumulative(name, node, axis)
    if not initial:
        return wrap_array(result)
    along = axis % node.ndim
    first = list(node.shape)
    first[along] = 1
    start = _create.full(tuple(first), 0 if name == "sum" else 1, result.dtype)
    return wrap_array(_reshape.bind([start, result], along, node.ndim))


@_public
def cumulative_sum(x: Array, /, *, axis: Optional[int] = None, dtype: Any = None,
                   include_initial: builtins.bool = False) -> Array:
    return _cumulative("sum", x, axis, dtype, include_initial)


@_public
def cumulative_prod(x: Array, /, *, axis: Optional[int] = None, dtype: Any = None,
                    include_initial: builtins.bool = False) -> Array:
    return _cumulative("prod", x, axis, dtype, include_initial)


@_public
def diff(x: Array, /, *, axis: int = -1, n: int = 1, prepend: Optional[Array] = None,
         append: Optional[Array] = None) -> Array:
    parts = [_node(one) for one in (prepend, x, append) if one is not None]
    return wrap_array(_protocols.FUNCTIONS["diff"](_reshape.concatenate(parts, axis), n=n, axis=axis))


@_public
def matmul(x1: Array, x2: Array, /) -> Array:
    return wrap_array(_product.matmul(_node(x1), _node(x2)))


@_public
def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    left, right = _node(x1), _node(x2)
    if left.ndim == right.ndim == 1:
        return wrap_array(_product.matmul(left, right))
    return wrap_array(_reduce.reduce("sum", _elementwise.binary("multiply", left, right), axis))


@_public
def tensordot(x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
    left, right = _node(x1), _node(x2)
    if isinstance(axes, tuple):
        first, second = (list(one) for one in axes)
    else:
        first, second = list(range(left.ndim - axes, left.ndim)), list(range(axes))
    first = [one % left.ndim for one in first]
    second = [one % right.ndim for one in second]
    if left.ndim + right.ndim - 2 * len(first) > 2:
        raise ShapeError("tensordot: the result has more than two dimensions")
    if not first:
        return wrap_array(_product.outer(left, right) if left.ndim == right.ndim == 1 else
                          _elementwise.binary("multiply", left, right))
    if len(first) == 1:
        if left.ndim == 2 and first[0] == 0:
            left = _transposed(left)
        if right.ndim == 2 and second[0] == 1:
            right = _transposed(right)
        return wrap_array(_product.matmul(left, right))
    if first != sorted(first):
        first, second = first[::-1], second[::-1]
    if second != [0, 1]:
        right = _transposed(right)
    return wrap_array(_product.matmul(_reduce.flat(left), _reduce.flat(right)))
