# SPDX-License-Identifier: Apache-2.0
"""Functions of the library, as functions of Python: hd.lm(X, y). Signature and help come from the header of the
file that has them."""

from __future__ import annotations

import difflib
import functools
import inspect
import keyword
from collections import namedtuple
from typing import Any, Dict, List, Tuple

from heddle import _engine
from heddle._errors import UsageError
from heddle._frame import Frame
from heddle._run import public
from heddle.lazy._array import Array, Lazy, to_node, wrap
from heddle.lazy._leaf import dtype_of_number, number_text, text_argument
from heddle.lazy._node import BOOL, FLOAT, INT, Argument, Node
from heddle.lazy._product import item
from heddle.lazy._reduce import flat

_SCALARS = {"double": FLOAT, "integer": INT, "boolean": BOOL}
_PYTHON_TYPES = {"matrix": Array, "double": float, "integer": int, "boolean": bool, "string": str, "list": list,
                 "frame": Frame}
_NO_DEFAULT = inspect.Parameter.empty


@functools.lru_cache(maxsize=1)
def library_names() -> "frozenset[str]":
    return frozenset(_engine.library_functions())


def _default(text: str, type_name: str) -> Any:
    """The default of a parameter as a value of Python."""
    if not text:
        return _NO_DEFAULT
    if text in ("TRUE", "FALSE"):
        return text == "TRUE"
    if text[:1] in "\"'" and text[-1:] == text[:1]:
        return text[1:-1]
    try:
        number = float(text)
    except ValueError:
        return _Expression(text)
    return int(number) if type_name == "integer" and number == int(number) else number


class _Expression:
    """A default that is an expression of DML: "as.matrix(0)"."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


@functools.lru_cache(maxsize=None)
def library_function(name: str) -> Any:
    """The function of the library with this name."""
    known = _engine.library_function(name)
    if known is None:
        raise unknown_name(name, ())
    help_text, parameters, results = known
    signature = inspect.Signature(
        [inspect.Parameter(_python_name(parameter), inspect.Parameter.POSITIONAL_OR_KEYWORD, default=_default(default, kind),
                           annotation=_PYTHON_TYPES.get(kind, kind))
         for parameter, kind, default in _ordered(parameters)])
    kinds = {_python_name(parameter): kind for parameter, kind, _ in parameters}
    result_names = [result for result, _, _ in results]
    result_type = namedtuple(f"{name}_results", result_names, rename=True) if len(results) > 1 else None

    def function(*arguments: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}{_nearest(named, kinds)}") from None
        texts: List[str] = []
        nodes: List[Argument] = []
        for parameter, value in bound.arguments.items():
            text = _argument(name, parameter, kinds[parameter], value, nodes)
            if text is not None:
                is_first = not texts and parameter == next(iter(kinds))
                texts.append(text if is_first else f"{parameter.rstrip('_')}={text}")
        expression = f"{name}({', '.join(texts)})"
        if len(results) == 1:
            return wrap(_result(expression, nodes, results[0][1]))
        call = Node("call", tuple(nodes), None, None, -1, "list", (expression, tuple(result_names)))
        if not results:
            return wrap(call)
        assert result_type is not None
        return result_type(*(wrap(_item(call, index, kind)) for index, (_, kind, _) in enumerate(results)))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "heddle"
    function.__doc__ = help_text
    made: Any = public(function)
    made.__signature__ = signature
    return made


def _python_name(parameter: str) -> str:
    """The name of a parameter; of one that is a word of Python with _ behind it."""
    return parameter + "_" if keyword.iskeyword(parameter) else parameter


def _ordered(parameters: List[Tuple[str, str, str]]) -> List[Tuple[str, str, str]]:
    """Parameters without a default first, where Python wants them: DML allows them anywhere."""
    needed = [parameter for parameter in parameters if not parameter[2]]
    first_with_default = next((i for i, parameter in enumerate(parameters) if parameter[2]), len(parameters))
    return parameters if first_with_default >= len(needed) else needed + [
        parameter for parameter in parameters if parameter[2]]


def _nearest(named: Dict[str, Any], kinds: Dict[str, str]) -> str:
    for name in named:
        if name not in kinds:
            near = difflib.get_close_matches(name, kinds, 1)
            return f"; did you mean {near[0]!r}?" if near else f"; it takes {', '.join(kinds)}"
    return ""


def _argument(function: str, parameter: str, kind: str, value: Any, nodes: List[Argument]) -> Any:
    """The text of an argument, with {0}, {1}, ... for nodes, which are added; None for the default."""
    if value is None:
        return None
    if isinstance(value, _Expression):
        return value.text
    if kind == "matrix":
        if isinstance(value, str):
            raise UsageError(f"{function}: {parameter} is a matrix, not the text {value!r}")
        node = to_node(value)
        if node.ndim == 0:
            node = flat(node)
        return _place(node, nodes)
    if isinstance(value, str):
        if kind in _SCALARS:
            raise UsageError(f"{function}: {parameter} is a number ({kind}), not the text {value!r}")
        return _place(text_argument(value), nodes)
    if isinstance(value, Lazy):
        if kind in _SCALARS and value._node.ndim != 0:
            raise UsageError(f"{function}: {parameter} is a number ({kind}), not an array of shape {value._node.shape}")
        return _place(value._node, nodes)
    if isinstance(value, dict):
        return "list(" + ", ".join(f"{name}={_argument(function, parameter, 'any', element, nodes)}"
                                   for name, element in value.items()) + ")"
    if dtype_of_number(value) is not None:
        return number_text(value)
    if isinstance(value, (list, tuple)) and (kind == "list" or any(isinstance(one, (str, Lazy)) for one in value)):
        return "list(" + ", ".join(_argument(function, parameter, "any", element, nodes) for element in value) + ")"
    if kind in _SCALARS:
        raise UsageError(f"{function}: {parameter} is a number ({kind}), not a {type(value).__name__}")
    return _place(to_node(value), nodes)


def _place(argument: Argument, nodes: List[Argument]) -> str:
    nodes.append(argument)
    return f"{{{len(nodes) - 1}}}"


def _result(expression: str, nodes: List[Argument], kind: str) -> Node:
    if kind == "matrix":
        return Node(expression, tuple(nodes), None, None, 2, FLOAT)
    if kind in _SCALARS:
        return Node(expression, tuple(nodes), 1, 1, 0, _SCALARS[kind])
    return Node(expression, tuple(nodes), None, None, -1, kind)


def _item(call: Node, index: int, kind: str) -> Node:
    if kind == "matrix":
        return item(call, index, None, None, 2, FLOAT)
    if kind in _SCALARS:
        return item(call, index, 1, 1, 0, _SCALARS[kind])
    return item(call, index, None, None, -1, kind)


def unknown_name(name: str, known: Any) -> AttributeError:
    near = difflib.get_close_matches(name, list(known) + sorted(library_names()), 1, 0.6)
    if not near:
        lower = {entry.lower(): entry for entry in library_names()}
        near = [lower[name.lower()]] if name.lower() in lower else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return AttributeError(f"module 'heddle' has no attribute {name!r}{hint}")
