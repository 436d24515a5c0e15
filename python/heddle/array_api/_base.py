# SPDX-License-Identifier: Apache-2.0
"""What all parts of the namespace need."""

from __future__ import annotations

from typing import Any

from heddle._errors import UsageError
from heddle.lazy import _elementwise
from heddle.lazy._array import Array, dtype_of, to_node, wrap_array
from heddle.lazy._node import Node


def node(x: Any) -> Node:
    return x._node if isinstance(x, Array) else to_node(x)


def typed(value: Node, dtype: Any) -> Array:
    return wrap_array(value if dtype is None else _elementwise.converted(value, dtype_of(dtype)))


def check_device(device: Any) -> None:
    if device not in (None, "cpu"):
        raise UsageError(f"the only device is 'cpu', not {device!r}")
