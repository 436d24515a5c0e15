# SPDX-License-Identifier: Apache-2.0
"""The exceptions that Heddle raises."""

from __future__ import annotations

import re

from heddle import _engine


class Error(Exception):
    """Base of all exceptions of Heddle.

    ``str(error)`` is what `heddle run` prints: what happened, where in the script, why, and what to do next.

    Attributes: ``message`` (what happened alone), ``file``, ``line`` and ``column`` (the place in the script; line 0
    where none is known), ``notes`` (further lines), ``exit_code`` (what `heddle run` would have ended with).
    """

    exit_code = 1

    def __init__(self, text: str, message: str = "", file: str = "", line: int = 0, column: int = 0, notes=()):
        super().__init__(text)
        self.message = message or text
        self.file = file
        self.line = line
        self.column = column
        self.notes = list(notes)


class ScriptError(Error):
    """A fault of the script that shows while it runs: shapes, bounds, values, stop()."""


class UsageError(Error, ValueError):
    """An argument that Heddle does not take."""

    exit_code = 2


class NotFoundError(UsageError, KeyError):
    """No variable, column or output has this name."""

    def __str__(self):
        return self.args[0]


class CompileError(Error):
    """The script is wrong, and that is known before anything runs."""

    exit_code = 3


class DataError(Error, OSError):
    """An input that does not exist or is malformed."""

    exit_code = 4

    def __str__(self):
        return self.args[0]


class ResourceError(Error, MemoryError):
    """Memory or disk does not suffice."""

    exit_code = 5


class UnreachableError(Error, ConnectionError):
    """A master or worker cannot be reached, or refuses."""

    exit_code = 6

    def __str__(self):
        return self.args[0]


class Cancelled(Error):
    """The run was stopped."""

    exit_code = 8


class InternalError(Error):
    """A fault of Heddle itself."""

    exit_code = 70


class ForkError(Error, RuntimeError):
    """The process is a fork of one that has used Heddle, whose threads it does not have."""


class HeddleWarning(UserWarning):
    """What is not wrong in a script, but questionable."""


_CLASSES = {kind.exit_code: kind for kind in
            (ScriptError, UsageError, CompileError, DataError, ResourceError, UnreachableError, Cancelled,
             InternalError)}
# Errors that are known before a script runs come as text, all of them together: "script.dml:3:5: error: ...".
_PLACE = re.compile(r"(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): error: (?P<message>[^\n]*)")

# What to do next, as an argument of a call in the place of an option of the command line.
_HINTS = [(re.compile(pattern), words) for pattern, words in (
    (r"give it with -nvargs (\w+)=value", r'give it with args={"\1": ...}'),
    ("give it after -args, in order", "give it with args=[...], in order"),
    (r"--memory (BYTES|SIZE)\b", r"memory=\1"),
    (r"\(--memory\)", "(memory=)"),
    (r"\ba smaller --memory of\b", "a smaller memory= of"),
)]


def _in_python(text):
    for pattern, words in _HINTS:
        text = pattern.sub(words, text)
    return text


def _make(exit_code, code, text, message, file, line, column, notes):
    kind = _CLASSES.get(exit_code, Error)
    text, notes = _in_python(text), [_in_python(note) for note in notes]
    shown = f"{file}:{line}:{column}: "
    if line > 0 and text.startswith(shown):
        text = f"{shown}error: {text[len(shown):]}"  # as the command line shows it
    place = _PLACE.match(text) if line == 0 else None
    if place:
        file, line, column = place["file"], int(place["line"]), int(place["column"])
        message = place["message"]
    return kind(text, message, file, line, column, notes)


_engine.set_error_maker(_make)
