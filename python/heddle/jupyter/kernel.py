# SPDX-License-Identifier: Apache-2.0
"""DML cells, run by a session of the engine in the process of the kernel."""

from __future__ import annotations

import base64
import html
import io
import re
import string

from ipykernel.kernelbase import Kernel

import heddle
from heddle import _engine
from heddle._session import Session

_SHOWN = "value_of_cell"  # the variable that holds what a cell shows
_MOST_ROWS, _MOST_COLUMNS = 20, 12
_NAME = re.compile(r"[A-Za-z]\w*")
_LETTERS = string.ascii_letters + string.digits + "_."
_MAGIC = re.compile(r"%(\w+)\s*(.*)", re.DOTALL)


class HeddleKernel(Kernel):
    implementation = "heddle"
    implementation_version = "0.1.0"
    banner = "Heddle: DML by cells. %help lists what a cell can do beside DML."
    language_info = {"name": "dml", "mimetype": "text/x-dml", "file_extension": ".dml", "pygments_lexer": "r",
                     "codemirror_mode": "r"}

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self._session = Session()
        self._magics = {"plot": self._plot, "type": self._type, "explain": self._explain, "help": self._help,
                        "who": self._who, "reset": self._reset}

    # --- cells ---

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **_):
        self._silent = silent
        try:
            magic = _MAGIC.match(code.strip())
            if magic:
                self._run_magic(magic[1], magic[2].strip())
            elif code.strip():
                self._run_cell(code)
        except KeyboardInterrupt:
            return self._failed("KeyboardInterrupt", "stopped; variables are as they were before the statement")
        except (heddle.Error, LookupError, ValueError, ImportError) as error:
            return self._failed(type(error).__name__, str(error))
        return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}

    def _failed(self, name, text):
        if not self._silent:
            self.send_response(self.iopub_socket, "error", {"ename": name, "evalue": text.splitlines()[0] if text else "",
                                                            "traceback": text.splitlines()})
        return {"status": "error", "execution_count": self.execution_count, "ename": name, "evalue": text,
                "traceback": text.splitlines()}

    def _run_cell(self, code):
        # A name in the last line is shown as if it had a cell of its own, unless the lines before go on in it.
        head, _, last = code.rstrip().rpartition("\n")
        if _NAME.fullmatch(last.strip()) and self._is_whole(head):
            self._run_cell(head)
            code = last
        if self._kind_of(code) in ("matrix", "frame"):
            self._session.run(f"{_SHOWN} = {code}", print=self._write, warn=self._write_warning)
            self._show(self._session[_SHOWN])
        else:
            self._session.run(code, print=self._write, warn=self._write_warning)

    def _is_whole(self, code):
        try:
            self._session.explain(code)
        except heddle.Error:
            return False
        return bool(code.strip())

    def _kind_of(self, code):
        """"matrix" of a cell that is an expression for one; "" of statements."""
        try:
            return self._session.type_of(code).partition(" ")[0]
        except heddle.Error:
            return ""

    def _write(self, text, name="stdout"):
        if not self._silent:
            self.send_response(self.iopub_socket, "stream", {"name": name, "text": text})

    def _write_warning(self, text):
        self._write(text, "stderr")

    def _display(self, data):
        if not self._silent:
            self.send_response(self.iopub_socket, "display_data", {"data": data, "metadata": {}})

    def _show(self, value):
        """A table of its first rows."""
        names, rows, shape = _head(value)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        size = f"{shape[0]} x {shape[1]}"
        text = "\n".join(" ".join(row) for row in [names, *rows])
        self._display({"text/html": f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{size}</p>",
                       "text/plain": f"{text}\n{size}"})

    # --- what begins with % ---

    def _run_magic(self, name, rest):
        if name not in self._magics:
            raise ValueError(f"there is no %{name}; %help lists what there is")
        self._magics[name](rest)

    def _plot(self, expression):
        """%plot EXPRESSION: one column as a line over its rows, two as points, more as an image"""
        try:
            import matplotlib
            matplotlib.use("Agg")
            from matplotlib import pyplot
        except ImportError:
            raise ImportError("%plot needs matplotlib: pip install matplotlib") from None
        if not expression:
            raise ValueError("%plot takes an expression: %plot X[, 1:2]")
        self._session.run(f"{_SHOWN} = as.matrix({expression})", print=self._write, warn=self._write_warning)
        cells = _dense(self._session[_SHOWN])
        figure, axes = pyplot.subplots(figsize=(6, 4))
        if min(cells.shape) == 1:
            axes.plot(cells.ravel())
        elif cells.shape[1] == 2:
            axes.plot(cells[:, 0], cells[:, 1], ".")
        else:
            figure.colorbar(axes.imshow(cells, aspect="auto"))
        axes.set_title(expression)
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=100, bbox_inches="tight")
        pyplot.close(figure)
        self._display({"image/png": base64.b64encode(picture.getvalue()).decode(),
                       "text/plain": f"<plot of {expression}, {cells.shape[0]} x {cells.shape[1]}>"})

    def _type(self, expression):
        """%type EXPRESSION: its type and size, without running it"""
        self._write(self._session.type_of(expression) + "\n")

    def _explain(self, statements):
        """%explain STATEMENTS: what the compiler makes of them"""
        self._write(self._session.explain(statements))

    def _help(self, name):
        """%help [FUNCTION]: these lines, or what a function does"""
        if not name:
            self._write("\n".join(magic.__doc__ or "" for magic in self._magics.values()) + "\n")
            return
        text = _engine.help_of(name)
        if not text:
            raise LookupError(f"there is no function {name}")
        self._write(text)

    def _who(self, _):
        """%who: the variables"""
        for name in self._session.variables:
            if name != _SHOWN:
                self._write(f"{name}: {self._session.type_of(name)}\n")

    def _reset(self, _):
        """%reset: forgets variables and functions"""
        self._session.clear()

    # --- while typing ---

    def do_complete(self, code, cursor_pos):
        begin, words = self._session.complete(code[:cursor_pos])
        return {"status": "ok", "matches": words, "cursor_start": begin, "cursor_end": cursor_pos, "metadata": {}}

    def do_inspect(self, code, cursor_pos, detail_level=0, omit_sections=()):
        before, behind = code[:cursor_pos], code[cursor_pos:]
        name = before[len(before.rstrip(_LETTERS)):] + behind[:len(behind) - len(behind.lstrip(_LETTERS))]
        text = _engine.help_of(name) if name else ""
        if not text and name in self._session:
            text = f"{name}: {self._session.type_of(name)}"
        return {"status": "ok", "found": bool(text), "data": {"text/plain": text} if text else {}, "metadata": {}}

    def do_is_complete(self, code):
        return {"status": "complete" if code.endswith("\n") or "{" not in code else "unknown"}


def _dense(value):
    return value.toarray() if hasattr(value, "toarray") else value


def _head(value):
    """Names, texts of the first rows, and the size of a matrix or frame."""
    rows, columns = value.shape
    if isinstance(value, heddle.Frame):
        names = value.columns[:_MOST_COLUMNS]
        cells = [[str(cell) for cell in value[name][:_MOST_ROWS]] for name in names]
        return names, [list(row) for row in zip(*cells)], (rows, columns)
    head = _dense(value[:_MOST_ROWS, :_MOST_COLUMNS] if not hasattr(value, "toarray") else value[:_MOST_ROWS])
    texts = [[f"{cell:.6g}" for cell in row[:_MOST_COLUMNS]] for row in head]
    return [f"[,{column + 1}]" for column in range(min(columns, _MOST_COLUMNS))], texts, (rows, columns)
