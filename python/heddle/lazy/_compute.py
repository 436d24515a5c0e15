# SPDX-License-Identifier: Apache-2.0
"""Running the program of lazy values, and what comes back."""

from __future__ import annotations

import linecache
import sys
import warnings
from typing import Any, Dict, List, Optional, Sequence

import numpy

from heddle import _run
from heddle._convert import to_input, to_python, view
from heddle._errors import Error, HeddleWarning, UsageError
from heddle.lazy._node import BOOL, FLOAT, INT, Node, is_user_frame, place_of
from heddle.lazy._render import Program, nodes_lock, render

PROGRAM_NAME = "lazy.dml"
_LARGE = 2**30


def compute_nodes(nodes: Sequence[Node], options: Dict[str, Any]) -> None:
    """Gives each node its value. One program computes all of them."""
    wanted = [node for node in nodes if node.value is None and node.op != "input"]
    if not wanted:
        return
    cluster = options.pop("on", None)
    if cluster is not None and not hasattr(cluster, "run"):
        raise UsageError(f"on is what heddle.sim() or heddle.connect() gives, not a {type(cluster).__name__}")
    files = [options.pop("report", None), options.pop("trace", None)]
    program = render(wanted)
    names = list(dict.fromkeys(program.outputs.values()))
    notes: List[str] = []
    try:
        if cluster is not None:
            if any(files):
                raise UsageError("report and trace are of a run in this process, not of one on workers")
            inputs = {name: node.value if node.value is not None else node.extra[1]
                      for name, node in program.inputs.items()}
            values = cluster.run(program.text, inputs=inputs, outputs=names, **options)
        else:
            _run.entering()
            with_options = _run.engine(**options, recorded=any(files))
            for path in files:
                if path is not None:
                    _run.check_writable(path)
            given = {name: input_of(name, node) for name, node in program.inputs.items()}
            values, _, record = with_options.run(program.text, PROGRAM_NAME, {}, given, names, _run.print_to_stdout,
                                                 notes.append)
            del given
            for path, text in zip(files, record or ()):
                if path is not None:
                    _run.write_whole(path, text)
    except Error as error:
        _tell_place(error, program)
        raise
    for note in notes:
        warnings.warn(note.rstrip("\n"), HeddleWarning, stacklevel=_user_level())
    with nodes_lock:
        for node in wanted:
            _take(node, values[program.outputs[id(node)]])


def _take(node: Node, value: Any) -> None:
    """The node has its value from now on, and no longer what it was made of."""
    if node.ndim > 0 and isinstance(value, (bool, int, float)):  # a scalar of DML where an array is promised
        value = numpy.full((1, 1), float(value))
    if node.ndim > 0:
        node.rows, node.columns = value.shape
    node.value = value
    node.args = ()


def input_of(name: str, node: Node) -> Any:
    value = node.value if node.value is not None else node.extra[1]
    if hasattr(value, "buffers") or isinstance(value, (bool, int, float, str)):
        return value
    return to_input(name, value)


def _user_level() -> int:
    """The stacklevel of warnings.warn() that names the user's line."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and not is_user_frame(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    return level - 1


def _tell_place(error: Error, program: Program) -> None:
    """Adds to an error of a line of the program the line of Python that made it."""
    node = program.node_at(error.line) if error.file in (PROGRAM_NAME, "script.dml") else None
    if node is None:
        return
    file, line = place_of(node)
    source = linecache.getline(file, line).strip()
    note = f"in Python: {file}:{line}" + (f": {source}" if source else "")
    error.notes.append(note)
    if hasattr(error, "add_note"):
        error.add_note(note)
    else:
        error.args = (f"{error.args[0]}\n{note}", *error.args[1:])


# --- results ---

def result_of(node: Node) -> Any:
    """The value of a computed node as Python has it: a number, an array that cannot be written to, a frame, a list."""
    value = node.value if node.value is not None else node.extra[1]
    if node.ndim == 0:
        return bool(value) if node.dtype == BOOL else int(value) if node.dtype == INT else float(value)
    if node.ndim < 0:
        return to_python(value) if hasattr(value, "buffers") else value
    array = dense(value)
    if node.ndim == 1 and array.ndim == 2:
        array = array.reshape(array.shape[0])
    if node.dtype != FLOAT and array.dtype != node.dtype:
        array = array.astype(node.dtype)
    elif array is value or array.flags.writeable:
        array = array.view()
    array.flags.writeable = False
    return array


def dense(value: Any) -> Any:
    """A matrix of the engine, or of another library, as a NumPy array."""
    if isinstance(value, numpy.ndarray):
        return value
    if not hasattr(value, "buffers"):
        return value.toarray()
    if value.kind == "dense":
        return view(value, value.buffers()[0], value.shape, "<" + value.element_type)
    rows, columns = value.shape
    if rows * columns * 8 > max(_LARGE, 10 * value.nbytes):
        raise UsageError(f"the result is a sparse matrix, {rows} x {columns} with {value.buffers()[3]} stored cells; as "
                         f"a NumPy array it takes {rows * columns * 8 / 2**30:.1f} GiB: take x.to_scipy()")
    cells, indexes, offsets, stored = value.buffers()
    ends = view(value, offsets, (rows + 1,), "<i8")
    result = numpy.zeros((rows, columns))
    if stored:
        row_of = numpy.repeat(numpy.arange(rows), numpy.diff(ends))
        result[row_of, view(value, indexes, (stored,), "<i4")] = view(value, cells, (stored,), "<" + value.element_type)
    return result


def sparse(node: Node) -> Any:
    """The value as a scipy.sparse.csr_array."""
    from scipy import sparse as scipy_sparse  # type: ignore[import-untyped,unused-ignore]
    value = node.value if node.value is not None else node.extra[1]
    if hasattr(value, "buffers"):
        value = to_python(value)
    if node.ndim == 0:
        value = numpy.full((1, 1), float(value))
    if isinstance(value, numpy.ndarray) and value.ndim == 1:
        value = value.reshape(-1, 1)
    return scipy_sparse.csr_array(value)


def explain_nodes(nodes: Sequence[Node], level: str, options: Dict[str, Any]) -> str:
    """What the compiler makes of the program. Inputs stand in it as random matrices of their sizes."""
    program = render(nodes)
    lines = []
    for name, node in program.inputs.items():
        lines.append(f"{name} = {_stand_in(node)}")
    lines.append(program.text)
    for name in dict.fromkeys(program.outputs.values()):
        lines.append(f"print(toString({name}))")
    _run.entering()
    text: str = _run.engine(**options).explain("\n".join(lines) + "\n", PROGRAM_NAME, {}, level)
    return text


def _stand_in(node: Node) -> str:
    if node.ndim == 0:
        return repr(node.value)
    if node.dtype == "string":
        return '"a"'
    if node.ndim < 0:
        return 'frame("a", rows={}, cols={})'.format(node.rows or 1, node.columns or 1)
    value = node.value if node.value is not None else node.extra[1]
    cells = max((node.rows or 0) * (node.columns or 0), 1)
    stored: Optional[int] = getattr(value, "nnz", None)
    if stored is None and getattr(value, "kind", "") == "csr":
        stored = value.buffers()[3]
    density = "" if stored is None else f", sparsity={stored / cells!r}"
    return f"rand(rows={node.rows}, cols={node.columns}{density}, seed=1)"
