# SPDX-License-Identifier: Apache-2.0
"""heddle.Array: an array that is computed when it is asked for."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Iterator, NoReturn, Optional, Tuple

import numpy

from heddle._errors import UsageError
from heddle._run import public
from heddle.lazy import _elementwise as elementwise
from heddle.lazy import _index as index
from heddle.lazy import _product as product
from heddle.lazy import _reduce as reduction
from heddle.lazy import _reshape as reshaping
from heddle.lazy._compute import compute_nodes, explain_nodes, result_of, sparse
from heddle.lazy._leaf import constant, dtype_of_number, leaf
from heddle.lazy._leaf import dtype_of as dtype_of
from heddle.lazy._node import INT, Node, bytes_text, shape_text, transposed
from heddle.lazy._render import origin, render
class Lazy:
    """What is computed when it is asked for: base of arrays, and what frames, lists and texts of a program are."""

    __module__ = "heddle"

    __slots__ = ("_node",)
    _node: Node

    @property
    def is_computed(self) -> bool:
        """Whether the value is there."""
        return self._node.value is not None or self._node.op == "input"

    @public
    def compute(self, **options: Any) -> Any:
        """The value: a number for a scalar, else a NumPy array. It stays with the lazy array: computing again costs
        nothing, and what is computed from it later begins there. The array cannot be written to; numpy.array() copies
        it. Options: on (heddle.sim() or heddle.connect()), and those of heddle.run: memory, threads, report and so on.

        >>> import heddle as hd
        >>> (hd.arange(5) ** 2).sum().compute()
        30
        """
        compute_nodes([self._node], options)
        return result_of(self._node)

    @public
    def dml(self) -> str:
        """The program in DML that computes the value.

        >>> import heddle as hd
        >>> print((hd.arange(3) + 1).dml(), end="")
        result = seq(0, 2) + 1
        """
        return render([self._node]).text

    @public
    def explain(self, level: str = "program", **options: Any) -> str:
        """What the compiler makes of the program: "program", "fusion", "cost", "codegen", "all" and others. Inputs
        are random matrices in it."""
        return explain_nodes([self._node], level, options)

    @public
    def report(self, path: Any, **options: Any) -> None:
        """Computes the value, and writes a page of HTML that says what took the time (docs/report.md)."""
        if self.is_computed:
            raise UsageError("the value is computed already, without a report; make the expression anew")
        compute_nodes([self._node], {**options, "report": path})

    def _origin(self) -> str:
        state = "computed" if self._node.value is not None else "lazy"
        return f"{state}: {origin(self._node)}"

    def __repr__(self) -> str:
        size = "" if self._node.rows is None else f" {self._node.rows}x{self._node.columns}"
        return f"<heddle.Lazy {self._node.dtype}{size}, {self._origin()}>"


def wrap(node: Node) -> Any:
    """The public value of a node."""
    if node.ndim < 0:
        value = Lazy.__new__(Lazy)
    else:
        value = Array.__new__(Array)
    value._node = node
    return value


def to_node(value: Any) -> Node:
    """The node of an argument: a lazy value, a number, or an array of another library."""
    if isinstance(value, Lazy):
        return value._node
    if dtype_of_number(value) is not None:
        return constant(value)
    return leaf(_with_computed_elements(value))


def _with_computed_elements(value: Any) -> Any:
    """A list in which lazy scalars stand is an array of their values."""
    if isinstance(value, (list, tuple)):
        return [result_of(_computed(element._node)) if isinstance(element, Array) else
                _with_computed_elements(element) for element in value]
    return value


def _computed(node: Node) -> Node:
    compute_nodes([node], {})
    return node


def to_operand(value: Any) -> Any:
    """As the builders take it: a node, or what they make one of."""
    return value._node if isinstance(value, Lazy) else value


class Array(Lazy):
    """An array of one or two dimensions, or a scalar, that is computed when it is asked for.

    Operators and functions of NumPy make further lazy arrays; ``compute()``, ``float()`` and ``numpy.asarray()`` give
    values. docs/python.md says what differs from NumPy.

    >>> import heddle as hd, numpy as np
    >>> x = hd.array([[1.0, 2.0], [3.0, 4.0]])
    >>> y = np.sqrt(x).sum(axis=0)
    >>> y
    <heddle.Array 2 float64, lazy: t(colSums(sqrt(an array))), 16 B>
    >>> y.compute()
    array([2.73205081, 3.41421356])
    """

    __module__ = "heddle"
    __slots__ = ()
    __array_priority__ = 1000.0
    __hash__ = object.__hash__

    def __init__(self, value: Any = 0.0, dtype: Any = None, name: str = "") -> None:
        node = to_node(value) if not name else leaf(value, name)
        self._node = elementwise.converted(node, dtype_of(dtype)) if dtype is not None else node

    # --- what is known without computing ---

    @property
    def shape(self) -> Tuple[Any, ...]:
        """As NumPy's; None for a size that only the computation tells."""
        return self._node.shape

    @property
    def ndim(self) -> int:
        return self._node.ndim

    @property
    def dtype(self) -> "numpy.dtype[Any]":
        return self._node.dtype  # type: ignore[no-any-return]

    @property
    def size(self) -> Optional[int]:
        node = self._node
        return None if node.rows is None or node.columns is None else node.rows * node.columns

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> Optional[int]:
        """Bytes as a NumPy array; None where the shape is not known."""
        return None if self.size is None else self.size * self.itemsize

    @property
    def T(self) -> "Array":
        return wrap_array(transposed(self._node) if self._node.ndim == 2 else self._node)

    @property
    def mT(self) -> "Array":
        return wrap_array(reshaping.matrix_transpose(self._node))

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def at(self) -> Any:
        """``x.at[i].set(v)`` is x with v at i; also add, multiply, min and max. x stays as it is."""
        from heddle.lazy._operators import At
        return At(self)

    def __repr__(self) -> str:
        size = self.nbytes
        text = "? bytes" if size is None else bytes_text(size)
        return f"<heddle.Array {shape_text(self.shape)} {self.dtype}, {self._origin()}, {text}>"

    @public
    def __len__(self) -> int:
        if not self._node.ndim:
            raise TypeError("len() of a scalar")
        if self._node.rows is None:
            raise TypeError("the number of rows is known once the array is computed: x.compute()")
        return self._node.rows

    # --- values ---

    @public
    def to_scipy(self, **options: Any) -> Any:
        """The value as a scipy.sparse.csr_array."""
        compute_nodes([self._node], options)
        return sparse(self._node)

    @public
    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        compute_nodes([self._node], {})
        result = numpy.asarray(result_of(self._node), dtype)
        return result.copy() if copy else result

    @public
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: Optional[bool] = None) -> Any:
        if stream is not None:
            raise UsageError("__dlpack__: memory of the host has no stream")
        compute_nodes([self._node], {})
        return numpy.array(result_of(self._node)).__dlpack__()

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)

    @public
    def item(self) -> Any:
        """The only cell as a number of Python."""
        return self._single("item()")

    @public
    def tolist(self) -> Any:
        compute_nodes([self._node], {})
        return numpy.asarray(result_of(self._node)).tolist()

    def _single(self, what: str) -> Any:
        node = self._node
        if node.ndim and node.has_known_shape and (node.rows, node.columns) != (1, 1):
            raise TypeError(f"{what} needs an array of one cell, this one is {shape_text(node.shape)}")
        compute_nodes([node], {})
        if node.ndim and (node.rows, node.columns) != (1, 1):
            raise TypeError(f"{what} needs an array of one cell, this one is {shape_text(node.shape)}")
        value = result_of(node)
        return value.item() if node.ndim else value

    @public
    def __float__(self) -> float:
        return float(self._single("float()"))

    @public
    def __int__(self) -> int:
        return int(self._single("int()"))

    @public
    def __complex__(self) -> complex:
        return complex(self._single("complex()"))

    @public
    def __index__(self) -> int:
        if self._node.dtype != INT or self._node.ndim:
            raise TypeError("only a scalar of int64 is an index")
        return int(self._single("an index"))

    @public
    def __bool__(self) -> bool:
        node = self._node
        if node.ndim and (node.rows, node.columns) != (1, 1):
            raise ValueError("The truth value of an array with more than one element is ambiguous. "
                             "Use a.any() or a.all()")
        return bool(self._single("bool()"))

    @public
    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a lazy array is not iterated over: use operators on the whole of it, or hd.for_loop; "
                        "`for row in x.compute()` computes it first")

    @public
    def __contains__(self, value: Any) -> NoReturn:
        raise TypeError("`in` would compute the array: (x == value).any() is a lazy scalar")

    # --- indexes ---

    @public
    def __getitem__(self, key: Any) -> "Array":
        return wrap_array(index.get(self._node, index_key(key)))

    @public
    def __setitem__(self, key: Any, value: Any) -> None:
        """The name stands for a new array from now on; what was made of it before keeps the old cells."""
        self._node = index.put(self._node, index_key(key), to_node(value))

    # --- NumPy's methods ---

    @public
    def astype(self, dtype: Any, copy: bool = True) -> "Array":
        return wrap_array(elementwise.converted(self._node, dtype_of(dtype)))

    @public
    def copy(self) -> "Array":
        return wrap_array(self._node)

    @public
    def reshape(self, *shape: Any, order: str = "C") -> "Array":
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return wrap_array(reshaping.reshape(self._node, sizes, order))

    @public
    def ravel(self, order: str = "C") -> "Array":
        return wrap_array(reshaping.reshape(self._node, (-1,), order))
    flatten = ravel

    @public
    def transpose(self, *axes: Any) -> "Array":
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        return wrap_array(reshaping.transpose(self._node, order))

    @public
    def squeeze(self, axis: Any = None) -> "Array":
        return wrap_array(reshaping.squeeze(self._node, axis))

    @public
    def sum(self, axis: Any = None, keepdims: bool = False) -> "Array":
        return wrap_array(reduction.reduce("sum", self._node, axis, keepdims))

    @public
    def prod(self, axis: Any = None, keepdims: bool = False) -> "Array":
        return wrap_array(reduction.reduce("prod", self._node, axis, keepdims))

    @public
    def mean(self, axis: Any = None, keepdims: bool = False) -> "Array":
        return wrap_array(reduction.reduce("mean", self._node, axis, keepdims))

    @public
    def min(self, axis: Any = None, keepdims: bool = False) -> "Array":
        return wrap_array(reduction.reduce("min", self._node, axis, keepdims))

    @public
    def max(self, axis: Any = None, keepdims: bool = False) -> "Array":
        return wrap_array(reduction.reduce("max", self._node, axis, keepdims))

    @public
    def std(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> "Array":
        return wrap_array(reduction.variance(self._node, axis, ddof, keepdims, root=True))

    @public
    def var(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> "Array":
        return wrap_array(reduction.variance(self._node, axis, ddof, keepdims))

    @public
    def any(self, axis: Any = None, keepdims: bool = False) -> "Array":
        return wrap_array(reduction.any_of(self._node, axis, keepdims))

    @public
    def all(self, axis: Any = None, keepdims: bool = False) -> "Array":
        return wrap_array(reduction.all_of(self._node, axis, keepdims))

    @public
    def argmin(self, axis: Any = None, keepdims: bool = False) -> "Array":
        return wrap_array(reduction.index_of_extreme("argmin", self._node, axis, keepdims))

    @public
    def argmax(self, axis: Any = None, keepdims: bool = False) -> "Array":
        return wrap_array(reduction.index_of_extreme("argmax", self._node, axis, keepdims))

    @public
    def cumsum(self, axis: Any = None) -> "Array":
        return wrap_array(reduction.cumulative("sum", self._node, axis))

    @public
    def cumprod(self, axis: Any = None) -> "Array":
        return wrap_array(reduction.cumulative("prod", self._node, axis))

    @public
    def median(self, axis: Any = None) -> "Array":
        return wrap_array(reduction.median(self._node, axis))

    @public
    def ptp(self, axis: Any = None) -> "Array":
        return wrap_array(reduction.peak_to_peak(self._node, axis))

    @public
    def clip(self, min: Any = None, max: Any = None) -> "Array":
        return wrap_array(elementwise.clip(self._node, to_operand(min), to_operand(max)))

    @public
    def round(self, decimals: int = 0) -> "Array":
        return wrap_array(elementwise.rounded(self._node, decimals))

    @public
    def dot(self, other: Any) -> "Array":
        return wrap_array(product.dot(self._node, to_node(other)))

    @public
    def argsort(self, axis: Any = -1, descending: bool = False) -> "Array":
        return wrap_array(reshaping.argsort(self._node, axis, descending))

    @public
    def sort(self, axis: Any = -1) -> "Array":
        """The sorted array; unlike NumPy's method it leaves this one as it is."""
        return wrap_array(reshaping.sort(self._node, axis))

    @public
    def trace(self) -> "Array":
        return wrap_array(product.trace(self._node))

    @public
    def diagonal(self) -> "Array":
        return wrap_array(product.diagonal(self._node))

    # --- operators, which _operators.py puts into the class ---

    if TYPE_CHECKING:
        def __add__(self, other: Any) -> "Array": ...
        def __radd__(self, other: Any) -> "Array": ...
        def __sub__(self, other: Any) -> "Array": ...
        def __rsub__(self, other: Any) -> "Array": ...
        def __mul__(self, other: Any) -> "Array": ...
        def __rmul__(self, other: Any) -> "Array": ...
        def __truediv__(self, other: Any) -> "Array": ...
        def __rtruediv__(self, other: Any) -> "Array": ...
        def __floordiv__(self, other: Any) -> "Array": ...
        def __rfloordiv__(self, other: Any) -> "Array": ...
        def __mod__(self, other: Any) -> "Array": ...
        def __rmod__(self, other: Any) -> "Array": ...
        def __pow__(self, other: Any) -> "Array": ...
        def __rpow__(self, other: Any) -> "Array": ...
        def __matmul__(self, other: Any) -> "Array": ...
        def __rmatmul__(self, other: Any) -> "Array": ...
        def __and__(self, other: Any) -> "Array": ...
        def __rand__(self, other: Any) -> "Array": ...
        def __or__(self, other: Any) -> "Array": ...
        def __ror__(self, other: Any) -> "Array": ...
        def __xor__(self, other: Any) -> "Array": ...
        def __rxor__(self, other: Any) -> "Array": ...
        def __lshift__(self, other: Any) -> "Array": ...
        def __rshift__(self, other: Any) -> "Array": ...
        def __eq__(self, other: Any) -> "Array": ...  # type: ignore[override]
        def __ne__(self, other: Any) -> "Array": ...  # type: ignore[override]
        def __lt__(self, other: Any) -> "Array": ...
        def __le__(self, other: Any) -> "Array": ...
        def __gt__(self, other: Any) -> "Array": ...
        def __ge__(self, other: Any) -> "Array": ...
        def __neg__(self) -> "Array": ...
        def __pos__(self) -> "Array": ...
        def __abs__(self) -> "Array": ...
        def __invert__(self) -> "Array": ...

    # --- protocols ---

    def __array_namespace__(self, api_version: Optional[str] = None) -> Any:
        from heddle import array_api
        return array_api

    @public
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from heddle.lazy._numpy import apply_ufunc
        return apply_ufunc(ufunc, method, inputs, options)

    @public
    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        from heddle.lazy._numpy import apply_function
        return apply_function(function, arguments, options)

    @public
    def to_device(self, device: Any, stream: Any = None) -> "Array":
        if device != "cpu":
            raise ValueError(f"the only device is 'cpu', not {device!r}")
        return self


def wrap_array(node: Node) -> Array:
    array = Array.__new__(Array)
    array._node = node
    return array


def _is_plain(key: slice) -> bool:
    return all(bound is None or bound.__class__ is int for bound in (key.start, key.stop, key.step))


def index_key(key: Any) -> Any:
    """An index with nodes in place of lazy arrays."""
    if isinstance(key, tuple):
        return tuple([index_key(part) for part in key])
    if isinstance(key, Array):
        return key._node
    if isinstance(key, slice) and not _is_plain(key):
        return slice(*(operator.index(bound) if bound is not None else None
                       for bound in (key.start, key.stop, key.step)))
    return key
