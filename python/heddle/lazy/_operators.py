# SPDX-License-Identifier: Apache-2.0
"""The operators of lazy arrays, and changes at an index."""

from __future__ import annotations

from typing import Any, Tuple

import numpy

from heddle._run import public
from heddle.lazy import _elementwise as elementwise
from heddle.lazy import _index as index
from heddle.lazy import _product as product
from heddle.lazy._array import Array, Lazy, index_key, to_node, to_operand, wrap_array
from heddle.lazy._elementwise import binary
from heddle.lazy._leaf import dtype_of_number

# What an operator takes beside a lazy array without asking further.
_OPERANDS = (int, float, bool, numpy.ndarray, numpy.generic, list)


class At:
    """``x.at[i]``: where another array is to have other cells."""

    __slots__ = ("_array", "_key")

    def __init__(self, array: Array, key: Any = None) -> None:
        self._array = array
        self._key = key

    def __getitem__(self, key: Any) -> "At":
        return At(self._array, index_key(key))

    @public
    def set(self, value: Any) -> Array:
        """The array with these cells there."""
        return wrap_array(index.put(self._array._node, self._key, to_node(value)))

    @public
    def get(self) -> Array:
        return wrap_array(index.get(self._array._node, self._key))

    @public
    def add(self, value: Any) -> Array:
        return self._changed("add", value)

    @public
    def subtract(self, value: Any) -> Array:
        return self._changed("subtract", value)

    @public
    def multiply(self, value: Any) -> Array:
        return self._changed("multiply", value)

    @public
    def divide(self, value: Any) -> Array:
        return self._changed("divide", value)

    @public
    def min(self, value: Any) -> Array:
        return self._changed("minimum", value)

    @public
    def max(self, value: Any) -> Array:
        return self._changed("maximum", value)

    def _changed(self, name: str, value: Any) -> Array:
        node = self._array._node
        old = index.get(node, self._key)
        return wrap_array(index.put(node, self._key, binary(name, old, to_operand(value))))


# --- operators ---

def _operator(build: Any) -> Tuple[Any, Any]:
    """The methods of an operator, with the array on the left and on the right."""
    def forward(self: Array, other: Any) -> Any:
        if isinstance(other, Array):
            other = other._node
        elif not isinstance(other, _OPERANDS) and not _is_array(other):
            return NotImplemented
        result = _new(Array)
        result._node = build(self._node, other)
        return result

    def backward(self: Array, other: Any) -> Any:
        if not isinstance(other, _OPERANDS) and not _is_array(other):
            return NotImplemented
        result = _new(Array)
        result._node = build(other, self._node)
        return result
    return forward, backward


_new = Array.__new__


def _is_array(value: Any) -> bool:
    return not isinstance(value, (Lazy, str, bytes)) and (
        hasattr(value, "__array__") or hasattr(value, "tocsr") or hasattr(value, "__dlpack__")
        or dtype_of_number(value) is not None)


def _binary(name: str) -> Any:
    return lambda left, right: binary(name, left, right)


def _bits(name: str) -> Any:
    return lambda left, right: elementwise.bits(name, left, right)


_OPERATORS = {
    "add": _binary("add"), "sub": _binary("subtract"), "mul": _binary("multiply"), "truediv": _binary("divide"),
    "floordiv": elementwise.floor_divide, "mod": elementwise.remainder, "pow": _binary("power"),
    "matmul": product.matmul, "and": _bits("and"), "or": _bits("or"), "xor": _bits("xor"),
    "lshift": _binary("left_shift"), "rshift": _binary("right_shift"),
}
_COMPARISONS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
                "ge": "greater_equal"}


def _install(name: str, method: Any) -> None:
    method.__name__ = method.__qualname__ = name
    setattr(Array, name, public(method))


for _name, _build in _OPERATORS.items():
    _forward, _backward = _operator(_build)
    _install(f"__{_name}__", _forward)
    _install(f"__r{_name}__", _backward)
for _name, _ufunc in _COMPARISONS.items():
    _install(f"__{_name}__", _operator(_binary(_ufunc))[0])
for _name, _function in (("neg", lambda node: elementwise.unary("negative", node)), ("pos", lambda node: node),
                         ("abs", lambda node: elementwise.unary("absolute", node)), ("invert", elementwise.invert)):
    _install(f"__{_name}__", lambda self, _function=_function: wrap_array(_function(self._node)))
