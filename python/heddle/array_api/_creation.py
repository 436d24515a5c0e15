# SPDX-License-Identifier: Apache-2.0
"""Arrays from nothing and from elsewhere, and dtypes, in the namespace of the Array API."""

from __future__ import annotations

import builtins
from typing import Any, Dict, List, NamedTuple, Optional

import numpy as _numpy

from heddle._errors import UsageError
from heddle._run import public as _public
from heddle.array_api._base import check_device as _check_device
from heddle.array_api._base import node as _node
from heddle.array_api._base import typed as _typed
from heddle.lazy import _create, _reshape
from heddle.lazy import _numpy as _protocols
from heddle.lazy._array import Array, dtype_of, wrap_array
from heddle.lazy._leaf import dtype_of_number as _dtype_of_number
from heddle.lazy._leaf import leaf as _leaf
from heddle.lazy._node import BOOL, FLOAT, INT


@_public
def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Optional[builtins.bool] = None) -> Array:
    _check_device(device)
    if copy and isinstance(obj, _numpy.ndarray):
        obj = obj.copy()
    node = _node(obj)
    return _typed(node, dtype)


@_public
def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    _check_device(device)
    return wrap_array(_create.full(shape, 0, dtype_of(dtype if dtype is not None else FLOAT)))


@_public
def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    _check_device(device)
    return wrap_array(_create.full(shape, 1, dtype_of(dtype if dtype is not None else FLOAT)))


@_public
def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    return zeros(shape, dtype=dtype, device=device)


@_public
def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    _check_device(device)
    value = fill_value._node if isinstance(fill_value, Array) else fill_value
    return wrap_array(_create.full(shape, value, None if dtype is None else dtype_of(dtype)))


@_public
def zeros_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    _check_device(device)
    return wrap_array(_protocols.FUNCTIONS["zeros_like"](_node(x), dtype=dtype))


@_public
def ones_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    _check_device(device)
    return wrap_array(_protocols.FUNCTIONS["ones_like"](_node(x), dtype=dtype))


@_public
def empty_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    return zeros_like(x, dtype=dtype, device=device)


@_public
def full_like(x: Array, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    _check_device(device)
    return wrap_array(_protocols.FUNCTIONS["full_like"](_node(x), fill_value, dtype=dtype))


@_public
def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Array:
    _check_device(device)
    return wrap_array(_create.arange(start, stop, step, None if dtype is None else dtype_of(dtype)))


@_public
def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None,
             endpoint: builtins.bool = True) -> Array:
    _check_device(device)
    return _typed(_create.linspace(start, stop, num, endpoint), dtype)


@_public
def eye(n_rows: int, n_cols: Optional[int] = None, /, *, k: int = 0, dtype: Any = None,
        device: Any = None) -> Array:
    _check_device(device)
    return wrap_array(_create.eye(n_rows, n_cols, k, dtype_of(dtype if dtype is not None else FLOAT)))


@_public
def tril(x: Array, /, *, k: int = 0) -> Array:
    return _typed(_reshape.triangle(_node(x), k, True), x.dtype)


@_public
def triu(x: Array, /, *, k: int = 0) -> Array:
    return _typed(_reshape.triangle(_node(x), k, False), x.dtype)


@_public
def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Array:
    _check_device(device)
    return wrap_array(_leaf(_numpy.from_dlpack(x)))


@_public
def astype(x: Array, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None) -> Array:
    _check_device(device)
    return _typed(_node(x), dtype)


def _dtype(value: Any) -> Any:
    return value.dtype if isinstance(value, Array) else value


_RANK = {BOOL: 0, INT: 1, FLOAT: 2}


@_public
def result_type(*arrays_and_dtypes: Any) -> Any:
    dtypes = [_dtype(one) for one in arrays_and_dtypes]
    kinds = [one if isinstance(one, _numpy.dtype) else
             _dtype_of_number(one) or dtype_of(one) for one in dtypes]
    return sorted(kinds, key=_RANK.__getitem__)[-1]


@_public
def can_cast(from_: Any, to: Any, /) -> Any:
    return _RANK[_dtype(from_)] <= _RANK[to]


@_public
def isdtype(dtype: Any, kind: Any) -> Any:
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        kinds = {"bool": (BOOL,), "signed integer": (INT,), "unsigned integer": (), "integral": (INT,),
                 "real floating": (FLOAT,), "complex floating": (), "numeric": (INT, FLOAT)}
        if kind not in kinds:
            raise UsageError(f"isdtype: there is no kind {kind!r}")
        return dtype in kinds[kind]
    return dtype == kind


class _Range(NamedTuple):
    bits: Any
    eps: Any
    max: Any
    min: Any
    smallest_normal: Any
    dtype: Any


class _IntegerRange(NamedTuple):
    bits: Any
    max: Any
    min: Any
    dtype: Any


@_public
def finfo(type: Any, /) -> Any:
    kind = _numpy.finfo(_dtype(type))
    return _Range(64, float(kind.eps), float(kind.max), float(kind.min), float(kind.tiny), FLOAT)


@_public
def iinfo(type: Any, /) -> Any:
    kind = _numpy.iinfo(_dtype(type))
    return _IntegerRange(64, int(kind.max), int(kind.min), INT)


class _Info:
    """What __array_namespace_info__() gives."""

    def capabilities(self) -> Dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 2}

    def default_device(self) -> str:
        return "cpu"

    def devices(self) -> List[str]:
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> Dict[str, Any]:
        _check_device(device)
        return {"real floating": FLOAT, "complex floating": None, "integral": INT, "indexing": INT}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> Dict[str, Any]:
        _check_device(device)
        known = {"bool": BOOL, "int64": INT, "float64": FLOAT}
        return known if kind is None else {name: dtype for name, dtype in known.items() if isdtype(dtype, kind)}


def __array_namespace_info__() -> _Info:
    return _Info()
