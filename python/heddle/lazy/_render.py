# SPDX-License-Identifier: Apache-2.0
"""From nodes to the text of a program in DML.

Equal steps are one: nodes are compared by what they do and by their arguments. A step becomes part of the expression
that uses it where it is used once, by code of the same line of Python, and the line stays short; all others are
statements, so that each line of the program belongs to one line of Python (`Program.places`).
"""

from __future__ import annotations

import re
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple

from heddle._errors import UsageError
from heddle.lazy._node import Argument, Node, line_of

_LONGEST = 88
_LITERAL = re.compile(r"-?[\d.]+(?:[eE][+-]?\d+)?\Z|TRUE\Z|FALSE\Z|Inf\Z|NaN\Z|-Inf\Z")


def is_literal(op: str) -> bool:
    """Whether it is a number, TRUE or FALSE."""
    return _LITERAL.match(op) is not None


def _is_compound(op: str) -> bool:
    """Whether the expression needs brackets where it is an operand."""
    return op[0] in "{-!" and not op.startswith("{0}[")


class Program:
    """Text, and what it needs and gives."""

    def __init__(self) -> None:
        self.functions: List[str] = []
        self.lines: List[str] = []
        self.nodes: List[Optional[Node]] = []  # the node of each line
        self.inputs: Dict[str, Node] = {}
        self.outputs: Dict[int, str] = {}  # by id() of the node asked for
        self._names: set[str] = set()
        self._count = 0
        self._input_names: Dict[int, str] = {}
        self._function_names: Dict[int, str] = {}
        self._function_nodes: List[Optional[Node]] = []
        self.parameters: Dict[int, List[str]] = {}  # names of parameters by id() of a traced function

    @property
    def text(self) -> str:
        return "\n".join(self.functions + self.lines) + "\n"

    def node_at(self, line: int) -> Optional[Node]:
        """The node that a line of the text, counted from 1, computes."""
        nodes = self._function_nodes + self.nodes
        return nodes[line - 1] if 0 < line <= len(nodes) else None

    def fresh(self, wanted: str = "") -> str:
        if wanted and wanted not in self._names:
            self._names.add(wanted)
            return wanted
        while True:
            self._count += 1
            name = f"{wanted or 't'}{self._count}"
            if name not in self._names:
                self._names.add(name)
                return name

    def input_name(self, node: Node) -> str:
        """The variable of an input; the same for the same object."""
        held = node.value if node.value is not None else node.extra[1]
        name = self._input_names.get(id(held))
        if name is None:
            wanted = node.extra[0] if node.op == "input" and node.extra else ""
            name = self._input_names[id(held)] = self.fresh(wanted or "X" if node.ndim else wanted or "s")
            self.inputs[name] = node
        return name

    def function(self, function: Any) -> str:
        """The name of a traced function (`_trace.py`), which is written down the first time."""
        name = self._function_names.get(id(function))
        if name is None:
            name = self._function_names[id(function)] = self.fresh(function.name)
            lines, nodes = function.definition(self, name)
            self.functions += lines
            self._function_nodes += nodes
        return name


# Held while nodes are written down, and while they are given their values: another thread sees a node with its arguments
# or with its value.
nodes_lock = threading.RLock()


def render(roots: Sequence[Node]) -> Program:
    """The program that computes these nodes."""
    with nodes_lock:
        return _render(roots)


def _render(roots: Sequence[Node]) -> Program:
    program = Program()
    for node in topological(roots, {}):
        if node.op == "input" and node.value is None and node.extra[0]:
            program.input_name(node)  # so that inputs have the names that they have in Python
    scope = Scope(program, 0, {})
    names = scope.run(roots, ["result"] if len(roots) == 1 else [f"result{i + 1}" for i in range(len(roots))])
    for root, name in zip(roots, names):
        program.outputs[id(root)] = name
    program.lines, program.nodes = scope.lines, scope.nodes
    return program


def topological(roots: Sequence[Node], bound: Dict[int, str]) -> List[Node]:
    """All nodes that are needed, each behind its arguments."""
    order: List[Node] = []
    seen: set[int] = set()
    stack: List[Any] = [root for root in reversed(roots)]
    while stack:
        node = stack.pop()
        if node.__class__ is tuple:  # all arguments are there
            order.append(node[0])
            continue
        identity = id(node)
        if identity in seen:
            continue
        seen.add(identity)
        if identity in bound or node.value is not None or not node.args:
            order.append(node)
            continue
        stack.append((node,))
        for argument in reversed(node.args):
            if argument.__class__ is not str and id(argument) not in seen:
                stack.append(argument)
    return order


class Scope:
    """One block of statements: the program itself, the body of a loop, of a branch or of a function."""

    def __init__(self, program: Program, indent: int, bound: Dict[int, str]) -> None:
        self.program = program
        self.indent = "  " * indent
        self.depth = indent
        self.bound = bound  # names of variables by id() of the nodes that they are
        self.lines: List[str] = []
        self.nodes: List[Optional[Node]] = []
        self._text: Dict[int, str] = {}  # of the first of equal nodes
        self._compound: set[int] = set()
        self._first: Dict[int, Node] = {}  # of each node the first that is equal
        self._uses: Dict[int, int] = {}
        self._users: Dict[int, Node] = {}

    def emit(self, text: str, node: Optional[Node]) -> None:
        self.lines.append(self.indent + text)
        self.nodes.append(node)

    def run(self, roots: Sequence[Node], names: Sequence[str]) -> List[str]:
        """Writes what computes the roots. The variables that hold them: these names, or that of an equal root."""
        order = topological(roots, self.bound)
        unique = self._share(order)
        wanted: Dict[int, str] = {}
        result: List[str] = []
        for root, name in zip(roots, names):
            first = self._first[id(root)]
            if id(first) not in wanted:
                wanted[id(first)] = self.program.fresh(name) if not name.startswith("=") else name[1:]
            elif name.startswith("="):  # this very variable: a copy
                result.append(name[1:])
                continue
            result.append(wanted[id(first)])
        copies: List[Tuple[Node, str]] = []
        for node in unique:
            self._step(node, wanted.get(id(node)), copies)
        for node, name in copies:
            self.emit(f"{name} = {self._text[id(node)]}", node)
        done = set(wanted.values())
        for root, name in zip(roots, result):
            if name not in done:
                done.add(name)
                self.emit(f"{name} = {wanted[id(self._first[id(root)])]}", root)
        return result

    def _share(self, order: List[Node]) -> List[Node]:
        by_key: Dict[Any, Node] = {}
        unique: List[Node] = []
        first = self._first
        uses = self._uses
        for node in order:
            if node.op == "{0}" and node.value is None and id(node) not in self.bound:
                inner = node.args[0]
                assert isinstance(inner, Node)
                first[id(node)] = first[id(inner)]
                continue
            key: Any
            if id(node) in self.bound:
                key = self.bound[id(node)]
            elif node.value is not None:
                key = ("input", id(node.value))
            elif node.op == "input":
                key = ("input", id(node.extra[1]))
            else:
                # Scalars differ by type; the dtype of a matrix is not seen by the program.
                key = (node.op, tuple([argument if argument.__class__ is str else id(first[id(argument)])
                                       for argument in node.args]),
                       node.extra if node.extra.__class__ in (int, str) else id(node.extra) if node.extra else None,
                       node.ndim == 0)
            same = by_key.get(key)
            if same is None:
                by_key[key] = same = node
                unique.append(node)
                if node.value is None and id(node) not in self.bound:
                    for argument in node.args:
                        if argument.__class__ is not str:
                            identity = id(first[id(argument)])
                            uses[identity] = uses.get(identity, 0) + 1
                            self._users[identity] = node
            first[id(node)] = same
        return unique

    def argument(self, argument: Argument, in_operator: bool = False) -> str:
        if isinstance(argument, str):
            return f"({argument})" if in_operator and argument.startswith("-") else argument
        first = self._first[id(argument)]
        text = self._text[id(first)]
        return f"({text})" if in_operator and id(first) in self._compound else text

    def _step(self, node: Node, wanted: Optional[str], copies: List[Tuple[Node, str]]) -> None:
        identity = id(node)
        text, compound = self._expression(node)
        if text is None:  # a statement of its own, which has set the name
            if wanted is not None:
                copies.append((node, wanted))
            return
        is_name = not compound and text.isidentifier()
        if wanted is not None:
            if is_name:
                copies.append((node, wanted))
            else:
                self.emit(f"{wanted} = {text}", node)
                text, compound = wanted, False
        elif not is_name and not (_LITERAL.match(text) and not compound):
            user = self._users.get(identity)
            if (self._uses.get(identity, 0) != 1 or user is None or len(text) > _LONGEST - 20
                    or user.op.startswith("{0}[") and self._first[id(user.args[0])] is node or not user.op.count("{")
                    or not _same_line(node, user)):
                name = self.program.fresh()
                self.emit(f"{name} = {text}", node)
                text, compound = name, False
        self._text[identity] = text
        if compound:
            self._compound.add(identity)

    def _expression(self, node: Node) -> Tuple[Optional[str], bool]:
        """The text of a node; None where it has become a statement."""
        bound = self.bound.get(id(node))
        if bound is not None:
            return bound, False
        if node.value is not None or node.op == "input":
            return self.program.input_name(node), False
        if node.is_empty and node.ndim > 0 and node.has_known_shape and node.op != "item":
            return f"matrix(0, rows={node.rows}, cols={node.columns})", False
        op = node.op
        if op == "variable":
            raise UsageError("a value is asked for while a function is traced: hd.cond and hd.while_loop decide by values")
        if op.isalpha() and op in STATEMENTS:
            STATEMENTS[op](self, node)
            return None, False
        compound = _is_compound(op)
        if not node.args:
            return op, op.startswith("-")
        arguments = [self.argument(argument, compound) for argument in node.args]
        if op == "-{0} + {1}":
            return f"-{arguments[0]} + {arguments[1]}", True
        return op.format(*arguments), compound

    def set_name(self, node: Node, name: str) -> None:
        self._text[id(node)] = name


def _same_line(one: Node, other: Node) -> bool:
    if one.code is not other.code:
        return False
    return one.instruction == other.instruction or line_of(one) == line_of(other)


# --- statements ---

def _call(scope: Scope, node: Node) -> None:
    """A call of a function with several results, which its items have; extra: (expression, names of the results)."""
    expression, results = node.extra
    if not isinstance(expression, str):
        expression = expression(scope)
    text = expression.format(*(scope.argument(argument) for argument in node.args))
    names = [scope.program.fresh(f"{result}_" if len(result) == 1 else result) for result in results]
    scope.emit(f"[{', '.join(names)}] = {text}" if len(names) > 1 else f"{names[0]} = {text}" if names else text, node)
    scope.set_name(node, ",".join(names))


def _item(scope: Scope, node: Node) -> None:
    call = node.args[0]
    scope.set_name(node, scope.argument(call).split(",")[node.extra])


def _put(scope: Scope, node: Node) -> None:
    """An array with other cells at an index; extra: the index."""
    name = scope.program.fresh()
    scope.emit(f"{name} = {scope.argument(node.args[0])}", node)
    index = node.extra.format(*(scope.argument(argument) for argument in node.args))
    scope.emit(f"{name}{index} = {scope.argument(node.args[1])}", node)
    scope.set_name(node, name)


STATEMENTS: Dict[str, Any] = {"call": _call, "item": _item, "put": _put}


def origin(node: Node, depth: int = 3) -> str:
    """In a few words how a value is made: "lm(X, y)"."""
    if node.op == "input" or node.value is not None:
        return (node.extra[0] if node.op == "input" and node.extra else "") or (
            "an array" if node.ndim >= 0 else f"a {node.dtype}")
    if node.op == "{0}":
        return origin(node.args[0], depth)  # type: ignore[arg-type]
    if depth == 0:
        return "..."
    op = node.op
    if op == "item":
        return origin(node.args[0], depth)  # type: ignore[arg-type]
    if op in ("call", "put") or op in STATEMENTS:
        op = node.extra[0] if op == "call" and isinstance(node.extra[0], str) else f"{op} ..."
    parts = []
    for argument in node.args:
        text = argument if isinstance(argument, str) else origin(argument, depth - 1)
        parts.append(f"({text})" if " " in text and _is_compound(op) else text)
    try:
        text = op.format(*parts)
    except (IndexError, KeyError, ValueError):
        return "..."
    return text if len(text) <= 60 else text[:57] + "..."
