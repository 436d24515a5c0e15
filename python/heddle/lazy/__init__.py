# SPDX-License-Identifier: Apache-2.0
"""Lazy arrays: expressions of NumPy's kind that become one program (docs/python.md)."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from heddle._run import public
from heddle.lazy import _create as create
from heddle.lazy import _elementwise as elementwise
from heddle.lazy._array import Array, Lazy, dtype_of, to_node, to_operand, wrap, wrap_array
from heddle.lazy._compute import compute_nodes, result_of
from heddle.lazy._leaf import leaf
from heddle.lazy._node import ShapeError
from heddle.lazy._operators import At
from heddle.lazy._trace import cond, for_loop, function, gradient, while_loop

__all__ = ["Array", "At", "Lazy", "ShapeError", "arange", "array", "compute", "cond", "eye", "for_loop", "full", "function",
           "gradient", "linspace", "ones", "rand", "read", "seq", "where", "while_loop", "zeros"]


@public
def array(value: Any, dtype: Any = None, name: str = "") -> Array:
    """A lazy array of a NumPy array, a SciPy matrix, a pandas frame, numbers, or lists of numbers.

    Float64 that lies row by row is not copied. A pandas frame with texts becomes a lazy frame, which functions of the
    library take. `name` is that of the variable in the program; without it, that of your variable.

    >>> import heddle as hd
    >>> hd.array([[1, 2], [3, 4]])
    <heddle.Array 2x2 int64, lazy: an array, 32 B>
    """
    node = leaf(value, name) if name else to_node(value)
    if dtype is not None:
        node = elementwise.converted(node, dtype_of(dtype))
    return wrap(node)  # type: ignore[no-any-return]


@public
def read(path: Any, **options: Any) -> Array:
    """A lazy array of a file: csv, text, mm, binary and others. Options are those of read() in DML: format, header, sep,
    rows, cols, data_type ("frame" for texts). The shape is known where a file of that name and .mtd describes it."""
    return wrap(create.read(path, options))  # type: ignore[no-any-return]


@public
def rand(rows: int, cols: Optional[int] = None, *, min: float = 0.0, max: float = 1.0, sparsity: float = 1.0,
         pdf: str = "uniform", seed: Optional[int] = None, mean: float = 1.0) -> Array:
    """Random numbers: uniform between min and max, normal (mean 0, variance 1), or poisson with this mean. Without a
    seed one is drawn now, so that the array is the same however often it is computed.

    >>> import heddle as hd
    >>> hd.rand(2, 3, seed=7)
    <heddle.Array 2x3 float64, lazy: rand(rows=2, cols=3, min=0.0, max=1.0, seed=7), 48 B>
    """
    return wrap_array(create.rand(rows, cols, min, max, sparsity, pdf, seed, mean))


@public
def zeros(shape: Any, dtype: Any = float) -> Array:
    """An array of 0."""
    return wrap_array(create.full(shape, 0, dtype_of(dtype)))


@public
def ones(shape: Any, dtype: Any = float) -> Array:
    """An array of 1."""
    return wrap_array(create.full(shape, 1, dtype_of(dtype)))


@public
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Array:
    """An array of one number."""
    return wrap_array(create.full(shape, to_operand(fill_value), None if dtype is None else dtype_of(dtype)))


@public
def eye(N: int, M: Optional[int] = None, k: int = 0, dtype: Any = float) -> Array:
    """1 on a diagonal, 0 elsewhere."""
    return wrap_array(create.eye(N, M, k, dtype_of(dtype)))


@public
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    """Evenly spaced numbers, without the end, as numpy.arange.

    >>> import heddle as hd
    >>> hd.arange(2, 10, 3).compute()
    array([2, 5, 8])
    """
    return wrap_array(create.arange(start, stop, step, None if dtype is None else dtype_of(dtype)))


@public
def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True) -> Array:
    """So many numbers between two, as numpy.linspace."""
    return wrap_array(create.linspace(start, stop, num, endpoint))


@public
def seq(start: Any, stop: Any, step: Any = None) -> Array:
    """Evenly spaced numbers with both ends, as seq() of DML."""
    return wrap_array(create.sequence(start, stop, step))


@public
def where(condition: Any, x: Any, y: Any) -> Array:
    """Cells of x where the condition holds, of y elsewhere."""
    return wrap_array(elementwise.where(to_operand(condition), to_operand(x), to_operand(y)))


@public
def compute(*values: Any, **options: Any) -> Tuple[Any, ...]:
    """The values of several lazy arrays, by one program. Tuples, lists and dicts of arrays are taken as well; what is
    not lazy stays.

    >>> import heddle as hd
    >>> x = hd.arange(4)
    >>> hd.compute(x.sum(), (x ** 2).sum())
    (6, 14)
    """
    nodes: Any = []
    _collect(values, nodes)
    compute_nodes(nodes, options)
    return tuple(_resolved(value) for value in values)


def _collect(value: Any, nodes: Any) -> None:
    if isinstance(value, Lazy):
        nodes.append(value._node)
    elif isinstance(value, (list, tuple)):
        for element in value:
            _collect(element, nodes)
    elif isinstance(value, dict):
        for element in value.values():
            _collect(element, nodes)


def _resolved(value: Any) -> Any:
    if isinstance(value, Lazy):
        return result_of(value._node)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_resolved(element) for element in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_resolved(element) for element in value)
    if isinstance(value, dict):
        return {key: _resolved(element) for key, element in value.items()}
    return value
