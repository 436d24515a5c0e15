# SPDX-License-Identifier: Apache-2.0
"""Other shapes and orders of the same cells, in the namespace of the Array API."""

from __future__ import annotations

import builtins
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as _numpy

from heddle._errors import UsageError
from heddle._run import public as _public
from heddle.array_api._base import node as _node
from heddle.array_api._base import typed as _typed
from heddle.array_api._creation import asarray, full
from heddle.lazy import _create, _elementwise, _index, _reduce, _reshape
from heddle.lazy._array import Array, wrap_array
from heddle.lazy._node import FLOAT, Node, ShapeError
from heddle.lazy._node import as_ndim as _as_ndim
from heddle.lazy._node import transposed as _transposed


@_public
def reshape(x: Array, /, shape: Tuple[int, ...], *, copy: Optional[builtins.bool] = None) -> Array:
    return wrap_array(_reshape.reshape(_node(x), shape))


@_public
def concat(arrays: Sequence[Array], /, *, axis: Optional[int] = 0) -> Array:
    return wrap_array(_reshape.concatenate([_node(one) for one in arrays], axis))


@_public
def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    return wrap_array(_reshape.stack([_node(one) for one in arrays], axis))


@_public
def unstack(x: Array, /, *, axis: int = 0) -> Tuple[Array, ...]:
    node = _node(x)
    along = axis % builtins.max(node.ndim, 1)
    size = node.shape[along]
    if size is None:
        raise UsageError("unstack: the shape is known once the array is computed: x.compute()")
    return tuple(wrap_array(_index.get(node, i if along == 0 else (slice(None), i))) for i in range(size))


@_public
def expand_dims(x: Array, /, axis: int = 0) -> Array:
    node = _node(x)
    if not -node.ndim - 1 <= axis <= node.ndim:
        raise IndexError(f"expand_dims: axis {axis} is none of {node.ndim + 1} dimensions")
    return wrap_array(_reshape.expand_dims(node, axis))


@_public
def squeeze(x: Array, /, axis: Any) -> Array:
    return wrap_array(_reshape.squeeze(_node(x), axis))


@_public
def flip(x: Array, /, *, axis: Any = None) -> Array:
    return wrap_array(_reshape.flip(_node(x), axis))


@_public
def roll(x: Array, /, shift: Any, *, axis: Any = None) -> Array:
    return wrap_array(_reshape.roll(_node(x), shift, axis))


@_public
def permute_dims(x: Array, /, axes: Tuple[int, ...]) -> Array:
    return wrap_array(_reshape.transpose(_node(x), axes))


@_public
def moveaxis(x: Array, source: Any, destination: Any, /) -> Array:
    node = _node(x)
    sources = source if isinstance(source, tuple) else (source,)
    targets = destination if isinstance(destination, tuple) else (destination,)
    moved = node.ndim == 2 and (sources[0] - targets[0]) % 2 == 1
    return wrap_array(_reshape.transpose(node) if moved else node)


@_public
def matrix_transpose(x: Array, /) -> Array:
    return x.mT


@_public
def repeat(x: Array, repeats: Any, /, *, axis: Optional[int] = None) -> Array:
    counts = _numpy.asarray(repeats) if isinstance(repeats, Array) else repeats
    return wrap_array(_reshape.repeat(_node(x), counts, axis))


@_public
def tile(x: Array, repetitions: Tuple[int, ...], /) -> Array:
    return wrap_array(_reshape.tile(_node(x), repetitions))


@_public
def broadcast_to(x: Array, /, shape: Tuple[int, ...]) -> Array:
    node = _node(x)
    like = _create.full(shape, 0, FLOAT)
    rows, columns, ndim = _elementwise.broadcast_shapes("broadcast_to", node, like)
    if (rows, columns, ndim) != (like.rows, like.columns, like.ndim):
        raise ShapeError(f"broadcast_to: an array of shape {x.shape} is not repeated to {tuple(shape)}")
    if node.shape == like.shape:
        return wrap_array(node)
    if node.ndim == 0:
        return full(shape, x)
    filled = _elementwise.where(_create.full(shape, True), node, 0)
    return _typed(filled, node.dtype)


@_public
def broadcast_arrays(*arrays: Array) -> List[Array]:
    shape = broadcast_shapes(*(one.shape for one in arrays))
    return [broadcast_to(one, shape) for one in arrays]


@_public
def broadcast_shapes(*shapes: Tuple[int, ...]) -> Tuple[int, ...]:
    try:
        return tuple(int(size) for size in _numpy.broadcast_shapes(*shapes))
    except ValueError as error:
        raise ShapeError(str(error)) from None


@_public
def where(condition: Array, x1: Any, x2: Any, /) -> Array:
    return wrap_array(_elementwise.where(_node(condition), _node(x1), _node(x2)))


@_public
def nonzero(x: Array, /) -> Tuple[Array, ...]:
    return tuple(wrap_array(node) for node in _reshape.nonzero(_node(x)))


@_public
def sort(x: Array, /, *, axis: int = -1, descending: builtins.bool = False,
         stable: builtins.bool = True) -> Array:
    return wrap_array(_reshape.sort(_node(x), axis, descending))


@_public
def argsort(x: Array, /, *, axis: int = -1, descending: builtins.bool = False,
            stable: builtins.bool = True) -> Array:
    return wrap_array(_reshape.argsort(_node(x), axis, descending))


@_public
def searchsorted(x1: Array, x2: Array, /, *, side: str = "left", sorter: Optional[Array] = None) -> Array:
    """How many of x1 lie before each of x2."""
    values, wanted = _node(x1), _node(x2)
    if sorter is not None:
        values = _index.take(values, _node(sorter), 0)
    column = _as_ndim(_reduce.flat(wanted), 2)
    before = _elementwise.binary("less" if side == "left" else "less_equal", values, column)
    counts = _reduce.reduce("sum", before, 1)
    return wrap_array(counts if wanted.ndim == 1 else _reshape.reshape(counts, wanted.shape))


@_public
def take(x: Array, indices: Array, /, *, axis: Optional[int] = None) -> Array:
    node = _node(x)
    if axis is None and node.ndim != 1:
        raise UsageError("take of two dimensions needs an axis")
    key: Any = indices._node if isinstance(indices, Array) else indices
    if isinstance(key, Node) and (key.value is not None or key.op == "input"):
        key = _numpy.asarray(indices)  # so that positions out of range are seen
    return wrap_array(_index.get(node, key if (axis or 0) % builtins.max(node.ndim, 1) == 0 else (slice(None), key)))


@_public
def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    node, positions = _node(x), _node(indices)
    if node.ndim == 1:
        return wrap_array(_index.take(node, _normalized(positions, node.rows), 0))
    along = axis % 2
    positions = _normalized(positions, node.shape[along])
    other = _reduce.as_ndim_2(_create.arange(positions.shape[1 - along]))
    if along == 0:
        other = _transposed(other)
    rows, columns = (positions, other) if along == 0 else (other, positions)
    if node.columns is None:
        raise UsageError("take_along_axis: the shape is known once the array is computed: x.compute()")
    flat = _elementwise.binary("add", _elementwise.binary("multiply", rows, node.columns), columns)
    cells = _index.take(_reduce.flat(node), _reduce.flat(flat), 0)
    return wrap_array(_reshape.reshape(cells, positions.shape))


def _normalized(positions: Node, size: Any) -> Node:
    return _elementwise.where(_elementwise.binary("less", positions, 0), _elementwise.binary("add", positions, size),
                              positions)


class _UniqueAll(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCounts(NamedTuple):
    values: Array
    counts: Array


class _UniqueInverse(NamedTuple):
    values: Array
    inverse_indices: Array


def _unique(x: Array) -> Any:
    """Values that differ; their numbers are known once they are computed, so they are."""
    cells = _numpy.asarray(x)
    values, indices, inverse, counts = _numpy.unique(cells, True, True, True, equal_nan=False)
    return values, indices, inverse.reshape(cells.shape), counts


@_public
def unique_values(x: Array, /) -> Array:
    return asarray(_unique(x)[0])


@_public
def unique_counts(x: Array, /) -> Any:
    values, _, _, counts = _unique(x)
    return _UniqueCounts(asarray(values), asarray(counts))


@_public
def unique_inverse(x: Array, /) -> Any:
    values, _, inverse, _ = _unique(x)
    return _UniqueInverse(asarray(values), asarray(inverse))


@_public
def unique_all(x: Array, /) -> Any:
    values, indices, inverse, counts = _unique(x)
    return _UniqueAll(asarray(values), asarray(indices), asarray(inverse), asarray(counts))


@_public
def meshgrid(*arrays: Array, indexing: str = "xy") -> List[Array]:
    if len(arrays) > 2:
        raise ShapeError("meshgrid of more than two arrays: Heddle has two dimensions")
    nodes = [_node(one) for one in arrays]
    if len(nodes) < 2:
        return [wrap_array(node) for node in nodes]
    first, second = nodes
    if indexing == "xy":
        first, second = _reshape.expand_dims(first, 0), _reshape.expand_dims(second, 1)
    else:
        first, second = _reshape.expand_dims(first, 1), _reshape.expand_dims(second, 0)
    return broadcast_arrays(wrap_array(first), wrap_array(second))
