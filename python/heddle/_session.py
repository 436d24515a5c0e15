# SPDX-License-Identifier: Apache-2.0
"""Statement by statement: variables and functions live on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from heddle._convert import to_input, to_python
from heddle._errors import HeddleWarning, NotFoundError, UsageError
from heddle._run import Arguments, engine, entering, listener, parameters_of, public


class Session:
    """Variables and functions that live on from one statement to the next, as in `heddle repl`.

    >>> session = heddle.Session()
    >>> session["X"] = [[1, 2], [3, 4]]
    >>> session.run("s = sum(X)")
    >>> session["s"]
    10.0

    A session is used by one thread at a time. `args`, `print` and options are those of heddle.run().
    """

    def __init__(self, *, args: Arguments = None, print: Callable[[str], object] | None = None, **options: Any):
        entering()
        self._print = listener(print)
        self._session = engine(**options).session(parameters_of(args))

    @public
    def run(self, statements: str, *, print: Callable[[str], object] | None = None,
            warn: Callable[[str], object] | None = None) -> None:
        """Runs statements one after the other; the first error ends it, and what ran before it stays."""
        entering()
        notes: list[str] = []
        self._session.run(_text("statements", statements), listener(print) if print else self._print, warn or notes.append)
        for note in notes:
            warnings.warn(note.rstrip("\n"), HeddleWarning, stacklevel=2)

    @public
    def __setitem__(self, name: str, value: Any) -> None:
        entering()
        self._session.set(_text("a name", name), to_input(name, value))

    @public
    def __getitem__(self, name: str) -> Any:
        entering()
        if name not in self._session.variables():
            names = ", ".join(self._session.variables())
            raise NotFoundError(f"the session has no variable {name!r}; it has {names or 'none'}")
        return to_python(self._session.get(name))

    def __contains__(self, name: str) -> bool:
        return name in self._session.variables()

    def __iter__(self):
        """The names of the variables."""
        return iter(self._session.variables())

    def __len__(self):
        return len(self._session.variables())

    def __repr__(self):
        return f"<heddle.Session: {', '.join(self._session.variables()) or 'no variables'}>"

    def __bool__(self):
        return True

    @property
    def variables(self) -> list[str]:
        """The names of the variables."""
        return self._session.variables()

    @public
    def type_of(self, expression: str) -> str:
        """Type and size of an expression, without running it: "matrix 10x3"."""
        return self._session.type_of(_text("an expression", expression))

    @public
    def explain(self, statements: str) -> str:
        """What the compiler makes of statements."""
        return self._session.explain(_text("statements", statements))

    @public
    def complete(self, text: str) -> tuple[int, list[str]]:
        """Where the word at the end of a text begins, and what it may become."""
        return self._session.complete(_text("the text", text))

    @public
    def clear(self) -> None:
        """Forgets variables and functions."""
        self._session.clear()


def _text(what, value):
    if not isinstance(value, str):
        raise UsageError(f"{what}: a text is needed, not a {type(value).__name__}")
    return value
