# SPDX-License-Identifier: Apache-2.0
"""Heddle: a dataflow engine for linear algebra and machine learning (docs/python.md)."""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from heddle._cluster import Cluster, connect, sim
from heddle._errors import (Cancelled, CompileError, DataError, Error, ForkError, HeddleWarning, InternalError,
                            NotFoundError, ResourceError, ScriptError, UnreachableError, UsageError)
from heddle._frame import Frame
from heddle._run import Results, check, explain, run
from heddle._session import Session

__all__ = ["Cancelled", "Cluster", "CompileError", "DataError", "Error", "ForkError", "Frame", "HeddleWarning", "InternalError",
           "NotFoundError", "ResourceError", "Results", "ScriptError", "Session", "UnreachableError", "UsageError", "check", "connect", "explain",
           "run", "sim"]

for _name in __all__:
    globals()[_name].__module__ = "heddle"  # what tracebacks and help() call them by

if _TYPE_CHECKING:
    from heddle.lazy import Array as Array
    from heddle.lazy import Lazy as Lazy
    from heddle.lazy import ShapeError as ShapeError
    from heddle.lazy import arange as arange
    from heddle.lazy import array as array
    from heddle.lazy import compute as compute
    from heddle.lazy import cond as cond
    from heddle.lazy import eye as eye
    from heddle.lazy import for_loop as for_loop
    from heddle.lazy import full as full
    from heddle.lazy import function as function
    from heddle.lazy import gradient as gradient
    from heddle.lazy import linspace as linspace
    from heddle.lazy import ones as ones
    from heddle.lazy import rand as rand
    from heddle.lazy import read as read
    from heddle.lazy import seq as seq
    from heddle.lazy import where as where
    from heddle.lazy import while_loop as while_loop
    from heddle.lazy import zeros as zeros

# heddle.lazy needs NumPy, which takes longer to import than all of this: it comes with the first name of it.
_LAZY = frozenset({"Array", "Lazy", "ShapeError", "arange", "array", "compute", "cond", "eye", "for_loop", "full",
                   "function", "gradient", "linspace", "ones", "rand", "read", "seq", "where", "while_loop", "zeros"})
_MODULES = frozenset({"array_api", "lazy"})


def __getattr__(name: str) -> _Any:
    """Lazy arrays (heddle.lazy), and the functions of the library: heddle.lm(X, y)."""
    if name.startswith("__"):
        raise AttributeError(f"module 'heddle' has no attribute {name!r}")
    if name in _MODULES:
        return _importlib.import_module(f"heddle.{name}")
    if name in _LAZY:
        from heddle import lazy
        value = getattr(lazy, name)
    else:
        from heddle.lazy import _library
        if name not in _library.library_names():
            raise _library.unknown_name(name, __dir__())
        value = _library.library_function(name)
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    from heddle import _engine
    return sorted({*__all__, *_LAZY, *_MODULES, *_engine.library_functions()})
