# SPDX-License-Identifier: Apache-2.0
"""What works cell by cell, in the namespace of the Array API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from heddle._run import public as _public
from heddle.array_api._base import node as _node
from heddle.array_api._base import typed as _typed
from heddle.array_api._creation import zeros_like
from heddle.lazy import _elementwise, _functions
from heddle.lazy._array import Array, wrap_array
from heddle.lazy._node import Node

_ONE = {
    "abs": "abs", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atanh": "arctanh", "bitwise_invert": "invert", "ceil": "ceil", "cos": "cos", "cosh": "cosh", "exp": "exp",
    "expm1": "expm1", "floor": "floor", "isfinite": "isfinite", "isinf": "isinf", "isnan": "isnan", "log": "log",
    "log1p": "log1p", "log2": "log2", "log10": "log10", "logical_not": "logical_not", "negative": "negative",
    "positive": "positive", "reciprocal": "reciprocal", "round": "rint", "sign": "sign", "sin": "sin", "sinh": "sinh",
    "square": "square", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh", "trunc": "trunc",
}
_TWO = {
    "add": "add", "atan2": "arctan2", "bitwise_and": "bitwise_and", "bitwise_left_shift": "left_shift",
    "bitwise_or": "bitwise_or", "bitwise_right_shift": "right_shift", "bitwise_xor": "bitwise_xor",
    "copysign": "copysign", "divide": "divide", "equal": "equal", "floor_divide": "floor_divide", "greater": "greater",
    "greater_equal": "greater_equal", "hypot": "hypot", "less": "less", "less_equal": "less_equal",
    "logaddexp": "logaddexp", "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
    "maximum": "maximum", "minimum": "minimum", "multiply": "multiply", "not_equal": "not_equal", "pow": "power",
    "remainder": "remainder", "subtract": "subtract",
}


def _of_one(name: str, build: Callable[..., Node]) -> Any:
    def function(x: Array, /) -> Array:
        return wrap_array(build(_node(x)))
    function.__name__ = function.__qualname__ = name
    return _public(function)


def _of_two(name: str, build: Callable[..., Node]) -> Any:
    def function(x1: Any, x2: Any, /) -> Array:
        return wrap_array(build(_node(x1), _node(x2)))
    function.__name__ = function.__qualname__ = name
    return _public(function)


if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...

for _name, _ufunc in _ONE.items():
    globals()[_name] = _of_one(_name, _functions.FUNCTIONS[_ufunc])
for _name, _ufunc in _TWO.items():
    globals()[_name] = _of_two(_name, _functions.FUNCTIONS[_ufunc])


@_public
def real(x: Array, /) -> Array:
    return x


@_public
def conj(x: Array, /) -> Array:
    return x


@_public
def imag(x: Array, /) -> Array:
    return zeros_like(x)


@_public
def signbit(x: Array, /) -> Array:
    return wrap_array(_functions.is_negative(_node(x)))


@_public
def clip(x: Array, /, min: Any = None, max: Any = None) -> Array:
    node = _node(x)
    bounds = [None if bound is None else _node(bound) for bound in (min, max)]
    return _typed(_elementwise.clip(node, *bounds), node.dtype)
