# SPDX-License-Identifier: Apache-2.0
"""Loops, branches and functions: Python code that is run once, on variables in place of values, to see what it does.
The operators that it calls become the body of a while, for, if or function of DML."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from heddle._errors import UsageError
from heddle._run import public
from heddle.lazy import _render
from heddle.lazy._array import Array, Lazy, to_node, wrap
from heddle.lazy._elementwise import as_scalar, converted
from heddle.lazy._node import BOOL, FLOAT, INT, Node, ShapeError, next_serial, shape_text
from heddle.lazy._product import item
from heddle.lazy._render import Program, Scope, is_literal


def _variable(like: Node, known: bool = True) -> Node:
    """A variable of the kind of a value."""
    node = Node("variable", (), like.rows if known else None, like.columns if known else None, like.ndim, like.dtype)
    if like.ndim == 1:
        node.columns = 1
    if like.ndim == 0:
        node.rows = node.columns = 1
    return node


class _Block:
    """The nodes of a body: what it gives, what it reads from outside, and its own variables."""

    def __init__(self, variables: Sequence[Node], results: Sequence[Node], since: Optional[int] = None) -> None:
        self.variables = list(variables)
        self.results = list(results)
        self.captures = _outside(self.variables, self.results, since)


def _outside(variables: Sequence[Node], results: Sequence[Node], since: Optional[int]) -> List[Node]:
    """Values that are needed beside the variables. The body of a loop is given what does not depend on its variables,
    so that no round computes that again; a branch and a function what was there before (nodes older than `since`)."""
    own = {id(variable) for variable in variables}
    order = _render.topological(results, {})
    depends: Set[int] = set(own)
    for node in order:
        if node.value is None and node.op != "input" and (
                since is not None and node.serial >= since
                or any(not isinstance(one, str) and id(one) in depends for one in node.args)):
            depends.add(id(node))
    captures: Dict[int, Node] = {}

    def outer(node: Node) -> None:
        if id(node) not in depends and not (node.value is None and is_literal(node.op)):
            captures.setdefault(id(node), node)

    for node in order:
        if id(node) in depends:
            for one in node.args:
                if not isinstance(one, str):
                    outer(one)
    for result in results:
        outer(result)
    return list(captures.values())


def _nodes_of(value: Any, what: str) -> Tuple[List[Node], Callable[[Sequence[Any]], Any]]:
    """The values of a tuple, a list, a dict or a single array; and what puts others into the same form."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        kind = type(value)
        return [to_node(one) for one in value], lambda nodes: kind(*(wrap(node) for node in nodes))
    if isinstance(value, (tuple, list)):
        make = type(value)
        return [to_node(one) for one in value], lambda nodes: make(wrap(node) for node in nodes)
    if isinstance(value, dict):
        keys = list(value)
        return [to_node(one) for one in value.values()], lambda nodes: dict(zip(keys, map(wrap, nodes)))
    if value is None:
        raise UsageError(f"{what} returns nothing")
    return [to_node(value)], lambda nodes: wrap(nodes[0])


def _matched(results: List[Node], carried: List[Node], what: str) -> List[Node]:
    """What a round gives, in the types with which the loop began."""
    if len(results) != len(carried):
        raise UsageError(f"{what} returns {len(results)} values for {len(carried)} that are carried")
    matched = []
    for index, (result, before) in enumerate(zip(results, carried)):
        if result.ndim != before.ndim or any(
                one is not None and other is not None and one != other for one, other in zip(result.shape, before.shape)):
            raise ShapeError(f"{what}: value {index + 1} begins as {shape_text(before.shape)} and becomes "
                             f"{shape_text(result.shape)}; what a loop carries keeps its shape")
        if result.ndim >= 0 and result.dtype != before.dtype:
            if before.dtype == INT and result.dtype == FLOAT:
                raise UsageError(f"{what}: value {index + 1} begins as int64 and becomes float64; begin with a float")
            result = converted(result, before.dtype)
        matched.append(result)
    return matched


@public
def while_loop(cond: Callable[..., Any], body: Callable[..., Any], init: Any) -> Any:
    """Runs `state = body(state)` as long as `cond(state)` holds; both are traced once and become a while of DML. The
    state is an array or a tuple, list or dict of arrays, which `cond` and `body` are given as it is.

    >>> import heddle as hd
    >>> hd.while_loop(lambda s: s[0] < 100, lambda s: (s[0] * 2, s[1] + 1), (1.0, 0))[1].compute()
    7
    """
    start, form = _nodes_of(init, "init")
    variables = [_variable(node) for node in start]
    state = form(variables)
    condition = _condition(cond(state), "while_loop: cond")
    results, _ = _nodes_of(body(state), "while_loop: body")
    results = _matched(results, start, "while_loop: body")
    block = _Block(variables, [condition, *results])
    return form(_statement("while", start, block, None))


@public
def for_loop(n: Any, body: Callable[..., Any], init: Any) -> Any:
    """Runs `state = body(i, state)` for i = 0, 1, ..., n - 1; traced once, a for of DML.

    >>> import heddle as hd
    >>> hd.for_loop(5, lambda i, total: total + i, 0).compute()
    10
    """
    start, form = _nodes_of(init, "init")
    count = to_node(n)
    if count.ndim or count.dtype != INT:
        raise UsageError("for_loop: n is a whole number")
    variables = [_variable(node) for node in start]
    round_number = Node("variable", (), 1, 1, 0, INT)
    results, _ = _nodes_of(body(wrap(round_number), form(variables)), "for_loop: body")
    results = _matched(results, start, "for_loop: body")
    block = _Block([*variables, round_number], results)
    return form(_statement("for", start, block, count))


@public
def cond(pred: Any, true_branch: Callable[..., Any], false_branch: Callable[..., Any], *operands: Any) -> Any:
    """`true_branch(*operands)` if the scalar `pred` holds, else `false_branch(*operands)`; only that one runs.

    >>> import heddle as hd
    >>> x = hd.array([3.0, 4.0])
    >>> hd.cond(x.sum() > 5, lambda: x / x.sum(), lambda: x).compute()
    array([0.42857143, 0.57142857])
    """
    condition = _condition(pred, "cond: pred")
    since = next_serial()
    results, form = _nodes_of(true_branch(*operands), "cond: the first branch")
    others, _ = _nodes_of(false_branch(*operands), "cond: the second branch")
    if len(results) != len(others):
        raise UsageError(f"cond: the branches give {len(results)} and {len(others)} values")
    merged = []
    for index, (one, other) in enumerate(zip(results, others)):
        if one.ndim != other.ndim:
            raise ShapeError(f"cond: value {index + 1} is {shape_text(one.shape)} in one branch and "
                             f"{shape_text(other.shape)} in the other")
        if one.ndim >= 0 and one.dtype != other.dtype:
            from heddle.lazy._elementwise import promoted
            dtype = promoted(one.dtype, other.dtype)
            results[index], others[index] = one, other = converted(one, dtype), converted(other, dtype)
        merged.append(one)
    first, second = _Block([], results, since), _Block([], others, since)
    captures = {id(node): node for node in [*first.captures, *second.captures]}
    call = Node("if", (condition, *captures.values()), None, None, -1, "list", (first, second, list(captures.values())))
    nodes = []
    for index, (one, other) in enumerate(zip(results, others)):
        rows = one.rows if one.rows == other.rows else None
        columns = one.columns if one.columns == other.columns else None
        nodes.append(item(call, index, rows, columns, one.ndim, one.dtype))
    return form(nodes)


def _condition(value: Any, what: str) -> Node:
    if isinstance(value, bool):
        raise UsageError(f"{what} is {value}, whatever the values are")
    node = to_node(value)
    if node.ndim and (node.rows, node.columns) != (1, 1):
        raise ShapeError(f"{what} gives an array of {shape_text(node.shape)}, not a scalar; .all() and .any() make one")
    return converted(as_scalar(node), BOOL)


def _statement(kind: str, start: List[Node], block: _Block, count: Optional[Node]) -> List[Node]:
    before = (count,) if count is not None else ()
    call = Node(kind, (*before, *start, *block.captures), None, None, -1, "list", (block, len(start)))
    return [item(call, index, node.rows, node.columns, node.ndim, node.dtype) for index, node in enumerate(start)]


# --- how they are written ---

def _bound_captures(scope: Scope, nodes: Sequence[Node]) -> Dict[int, str]:
    return {id(node): scope.argument(node) for node in nodes}


def _carried(scope: Scope, node: Node, start: Sequence[Any]) -> List[str]:
    """A variable for each value that a loop carries, which begins as it is outside."""
    names = []
    for value in start:
        name = scope.program.fresh()
        scope.emit(f"{name} = {scope.argument(value)}", node)
        names.append(name)
    return names


def _write_body(scope: Scope, bound: Dict[int, str], results: Sequence[Node], names: Sequence[str]) -> Scope:
    """The statements of a round. Values are computed first and then assigned, as all are those of the round before."""
    inner = Scope(scope.program, scope.depth + 1, bound)
    if len(names) == 1:
        computed = inner.run(results, ["next"]) if results[0].op != "variable" else [bound[id(results[0])]]
    else:
        computed = inner.run(results, ["next"] * len(names))
    for name, value in zip(names, computed):
        if name != value:
            inner.emit(f"{name} = {value}", results[names.index(name)])
    return inner


def _append(scope: Scope, inner: Scope) -> None:
    scope.lines += inner.lines
    scope.nodes += inner.nodes


def _write_while(scope: Scope, node: Node) -> None:
    block, count = node.extra
    names = _carried(scope, node, node.args[:count])
    bound = _bound_captures(scope, block.captures)
    bound.update({id(variable): name for variable, name in zip(block.variables, names)})
    test = scope.program.fresh("goes_on")
    before = Scope(scope.program, scope.depth, bound)
    before.run([block.results[0]], ["=" + test])
    _append(scope, before)
    scope.emit(f"while ({test}) {{", node)
    _append(scope, _write_body(scope, bound, block.results[1:], names))
    again = Scope(scope.program, scope.depth + 1, bound)
    again.run([block.results[0]], ["=" + test])
    _append(scope, again)
    scope.emit("}", node)
    scope.set_name(node, ",".join(names))


def _write_for(scope: Scope, node: Node) -> None:
    block, count = node.extra
    times = scope.argument(node.args[0])
    names = _carried(scope, node, node.args[1:1 + count])
    bound = _bound_captures(scope, block.captures)
    bound.update({id(variable): name for variable, name in zip(block.variables, names)})
    counter = scope.program.fresh("i")
    bound[id(block.variables[-1])] = counter
    last = str(int(times) - 1) if times.isdigit() else f"{times} - 1"
    scope.emit(f"for ({counter} in seq(0, {last}, 1)) {{", node)
    _append(scope, _write_body(scope, bound, block.results, names))
    scope.emit("}", node)
    scope.set_name(node, ",".join(names))


def _write_if(scope: Scope, node: Node) -> None:
    first, second, captures = node.extra
    bound = _bound_captures(scope, captures)
    names = [scope.program.fresh("chosen") for _ in first.results]
    scope.emit(f"if ({scope.argument(node.args[0])}) {{", node)
    _append(scope, _write_branch(scope, bound, first.results, names))
    scope.emit("} else {", node)
    _append(scope, _write_branch(scope, bound, second.results, names))
    scope.emit("}", node)
    scope.set_name(node, ",".join(names))


def _write_branch(scope: Scope, bound: Dict[int, str], results: Sequence[Node], names: Sequence[str]) -> Scope:
    inner = Scope(scope.program, scope.depth + 1, bound)
    computed = inner.run(results, ["=" + name for name in names])
    for name, value in zip(names, computed):
        if name != value:
            inner.emit(f"{name} = {value}", None)
    return inner


_render.STATEMENTS.update({"while": _write_while, "for": _write_for, "if": _write_if})


# --- functions ---

_TYPES = {FLOAT: "double", INT: "integer", BOOL: "boolean", "frame": "frame[unknown]", "list": "list[unknown]",
          "string": "string"}


def _declared(node: Node) -> str:
    return "matrix[double]" if node.ndim > 0 else _TYPES[node.dtype]


class _Traced:
    """A function of DML: parameters, what it reads from outside as further parameters, results."""

    def __init__(self, name: str, names: Sequence[str], variables: Sequence[Node], results: Sequence[Node],
                 since: int) -> None:
        self.name = name
        self.block = _Block(variables, results, since)
        self.names = list(names) + [node.extra[0] if node.op == "input" and node.extra[0] else "captured"
                                    for node in self.block.captures]

    def definition(self, program: Program, name: str) -> Tuple[List[str], List[Optional[Node]]]:
        inputs = self.block.variables + self.block.captures
        names = [program.fresh(one) for one in self.names]
        program.parameters[id(self)] = names
        outputs = [program.fresh("value") for _ in self.block.results]
        inner = Scope(program, 1, {id(node): one for node, one in zip(inputs, names)})
        computed = inner.run(self.block.results, ["=" + one for one in outputs])
        for output, value in zip(outputs, computed):
            if output != value:
                inner.emit(f"{output} = {value}", None)
        parameters = ", ".join(f"{_declared(node)} {one}" for node, one in zip(inputs, names))
        returned = ", ".join(f"{_declared(node)} {one}" for node, one in zip(self.block.results, outputs))
        return ([f"{name} = function({parameters}) return ({returned}) {{", *inner.lines, "}"],
                [None, *inner.nodes, None])


class _Written:
    """A function of DML whose text is given, with {name} where its name goes."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def definition(self, program: Program, name: str) -> Tuple[List[str], List[Optional[Node]]]:
        lines = self.text.replace("{name}", name).split("\n")
        return lines, [None] * len(lines)


@functools.lru_cache(maxsize=None)
def _written(name: str, text: str) -> _Written:
    return _Written(name, text)


def call_written(name: str, text: str, node: Node, dtype: Any) -> Node:
    """A call of a function whose text is given; its result has the shape of the argument."""
    function = _written(name, text)
    call = Node("call", (node,), None, None, -1, "list",
                (lambda scope: f"{scope.program.function(function)}({{0}})", ("sorted",)))
    return item(call, 0, node.rows, node.columns, node.ndim, dtype)


def _is_traced(value: Any) -> bool:
    return isinstance(value, Lazy) or hasattr(value, "__array__") or hasattr(value, "tocsr")


class _Itself:
    """An object as a key, equal to itself alone; it stays, so that no other one takes its place in memory."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _key_of(value: Any) -> Any:
    """Equal for values that are the same constants in a traced function."""
    if isinstance(value, (bool, int, float, complex, str, bytes)) or value is None:
        return type(value), repr(value)  # 1, 1.0, True and -0.0, 0.0 are equal and not the same
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(_key_of, value))
    if isinstance(value, dict):
        return type(value), tuple((_key_of(key), _key_of(one)) for key, one in value.items())
    return _Itself(value)


class _Tracer:
    """Traces a function of Python for each kind of arguments that it is called with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.signature = inspect.signature(function)
        self.traces: Dict[Any, Tuple[_Traced, Any]] = {}

    def trace(self, arguments: Tuple[Any, ...], named: Dict[str, Any]) -> Tuple[_Traced, Any, List[Node], List[str]]:
        """The function for these arguments, the form of its results, and the nodes of its arrays and their names."""
        bound = self.signature.bind(*arguments, **named)
        bound.apply_defaults()
        nodes: List[Node] = []
        names: List[str] = []
        key: List[Any] = []
        for name, value in bound.arguments.items():
            if _is_traced(value):
                node = to_node(value)
                nodes.append(node)
                names.append(name)
                key.append((name, node.rows, node.columns, node.ndim, str(node.dtype)))
            else:
                key.append((name, _key_of(value)))
        known = self.traces.get(tuple(key))
        if known is None:
            since = next_serial()
            variables = [_variable(node) for node in nodes]
            for name, variable in zip(names, variables):
                bound.arguments[name] = wrap(variable)
            results, form = _nodes_of(self.function(*bound.args, **bound.kwargs), self.function.__name__ + "()")
            label = self.function.__name__
            traced = _Traced(label if label.isidentifier() and label[0] != "_" else "f", names, variables, results, since)
            known = self.traces[tuple(key)] = (traced, form)
        return known[0], known[1], nodes, names


@public
def function(traced: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: calls become calls of one function of DML. The Python code runs once for each kind of arguments:
    shapes and dtypes of arrays, and the values of all others.

    >>> import heddle as hd
    >>> @hd.function
    ... def rmse(x, y):
    ...     return ((x - y) ** 2).mean() ** 0.5
    >>> rmse(hd.arange(4), hd.arange(4) + 3).compute()
    3.0
    """
    tracer = _Tracer(traced)

    def call(*arguments: Any, **named: Any) -> Any:
        known, form, nodes, _ = tracer.trace(arguments, named)
        results = known.block.results
        names = tuple(f"{known.name}_{i + 1}" for i in range(len(results)))
        step = Node("call", (*nodes, *known.block.captures), None, None, -1, "list",
                    (lambda scope: _call_text(scope.program.function(known), "", len(known.names)), names))
        return form([item(step, i, one.rows, one.columns, one.ndim, one.dtype) for i, one in enumerate(results)])

    return public(functools.update_wrapper(call, traced))


def _call_text(name: str, first: str, count: int) -> str:
    return f"{name}({first}{', '.join(f'{{{i}}}' for i in range(count))})"


@public
def gradient(traced: Callable[..., Any], argnums: Any = 0, value: bool = False) -> Callable[..., Any]:
    """The derivative of a function that gives a scalar, by the argument with this number, or by several: a function
    that gives an array of the shape of the argument, or a tuple. With `value=True` it gives (value, derivative).

    >>> import heddle as hd
    >>> slope = hd.gradient(lambda x: (x ** 3).sum())
    >>> slope(hd.array([1.0, 2.0])).compute()
    array([ 3., 12.])
    """
    tracer = _Tracer(traced)
    wanted = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)

    def derivative(*arguments: Any, **named: Any) -> Any:
        arguments = tuple(_as_array(argument) if i in wanted else argument for i, argument in enumerate(arguments))
        known, _, nodes, names = tracer.trace(arguments, named)
        results = known.block.results
        if results[0].ndim or results[0].dtype != FLOAT:
            raise UsageError(f"gradient: {known.name} gives {results[0].dtype} of shape {shape_text(results[0].shape)}, a "
                             "derivative is of a float64 scalar")
        positions = list(tracer.signature.parameters)
        chosen = []
        for number in wanted:
            if not 0 <= number < len(positions) or positions[number] not in names:
                raise UsageError(f"gradient: argument {number} of {known.name} is no array")
            chosen.append(names.index(positions[number]))
        if any(nodes[index].dtype != FLOAT for index in chosen):
            raise UsageError("gradient: the derivative is by an array of float64")
        outputs = tuple(f"{known.name}_{i + 1}" for i in range(len(results))) + tuple(
            f"d_{names[index]}" for index in chosen)

        def expression(scope: Scope) -> str:
            name = scope.program.function(known)
            parameters = ", ".join(f'"{scope.program.parameters[id(known)][index]}"' for index in chosen)
            return _call_text("gradient", f'"{name}", [{parameters}], ', len(known.names))

        call = Node("call", (*nodes, *known.block.captures), None, None, -1, "list", (expression, outputs))
        found = tuple(wrap(item(call, len(results) + i, nodes[index].rows, nodes[index].columns, nodes[index].ndim, FLOAT))
                      for i, index in enumerate(chosen))
        result = found if isinstance(argnums, (tuple, list)) else found[0]
        return (wrap(item(call, 0, 1, 1, 0, FLOAT)), result) if value else result

    return public(functools.update_wrapper(derivative, traced))


def _as_array(value: Any) -> Any:
    """A number by which a derivative is taken is a variable, not a constant."""
    return value if _is_traced(value) else Array(value)
