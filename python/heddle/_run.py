# SPDX-License-Identifier: Apache-2.0
"""Running scripts."""

from __future__ import annotations

import functools
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, Union, cast

from heddle import _engine
from heddle._convert import to_input, to_python
from heddle._errors import DataError, ForkError, HeddleWarning, UsageError

Script = Union[str, "os.PathLike[str]"]
Arguments = Union[Mapping[str, object], Sequence[object], None]
Folders = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]], None]

_MOST_EVENTS = 200_000  # of a run that is recorded, as `heddle run --report` does

_has_run = False
_is_fork = False


def _after_fork():
    global _is_fork
    _is_fork = _has_run


os.register_at_fork(after_in_child=_after_fork)


_Function = TypeVar("_Function", bound=Callable[..., Any])


def public(function: _Function) -> _Function:
    """A function that users call: an exception's traceback ends in their line."""
    return cast(_Function, functools.update_wrapper(_engine.Boundary(function), function))


def entering():
    """To be called before the engine is: threads of the parent are missing in a fork."""
    global _has_run
    if _is_fork:
        raise ForkError("this process was forked from one that had used Heddle, and lacks its threads; start processes "
                        'with multiprocessing.get_context("spawn") or "forkserver", or fork before the first run')
    _has_run = True


def memory_bytes(memory) -> int:
    """Bytes of 2_000_000_000, "2g", "500m"."""
    if isinstance(memory, int) and memory > 0:
        return memory
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    text = str(memory).strip().lower()
    scale = units.get(text[-1:], 0)
    try:
        number = float(text[:-1] if scale else text)
        if not 0 < number * 2**scale < 2**63:
            raise ValueError
    except ValueError:
        raise UsageError(f'memory takes bytes or a text like "2g" or "500m", not {memory!r}') from None
    return int(number * 2**scale)


@functools.lru_cache(maxsize=64)
def _engine_of(*options):
    return _engine.Engine(dict(options))


def engine(*, library=None, memory=None, threads=None, fusion=None, seed=None, precision="double", cpu=None,
           directory=None, recorded=False):
    """The engine with these options; the same for the same options."""
    if precision not in ("double", "single"):
        raise UsageError(f"precision is 'double' or 'single', not {precision!r}")
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise UsageError(f"threads is a whole number of at least 1, not {threads!r}")
    libraries = [library] if isinstance(library, (str, os.PathLike)) else list(library or ())
    options = {
        "directory": os.path.abspath(os.fspath(directory) if directory is not None else os.curdir),
        "library": tuple(os.fspath(folder) for folder in libraries),
        "memory": memory_bytes(memory) if memory is not None else None,
        "threads": threads, "fusion": fusion, "seed": seed, "cpu": cpu,
        "single_precision": precision == "single",
        "recorded_events": _MOST_EVENTS if recorded else None,
    }
    return _engine_of(*((name, value) for name, value in options.items() if value is not None))


def read_script(script):
    """Text and name of a script that is given as text or as a path."""
    if isinstance(script, os.PathLike) or (isinstance(script, str) and script.endswith(".dml") and "\n" not in script):
        path = os.fspath(script)
        try:
            with open(path, encoding="utf-8") as file:
                return file.read(), path
        except OSError as error:
            raise DataError(f"cannot read the script {path!r}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise DataError(f"the script {path!r} is not UTF-8") from None
    if not isinstance(script, str):
        raise UsageError(f"a script is a text or a path, not a {type(script).__name__}")
    return script, "script.dml"


def parameters_of(args):
    """$1, $2 of a sequence; $NAME of a dict."""
    if args is None:
        return {}
    entries = args.items() if isinstance(args, dict) else enumerate(args, start=1)
    return {str(name): _parameter(value) for name, value in entries}


def _parameter(value):
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return str(value)


def check_writable(path):
    """Raises DataError before a run whose file could not be written."""
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    if os.path.isdir(path) or not os.access(folder, os.W_OK | os.X_OK):
        raise DataError(f"cannot write {os.fspath(path)!r}")


def write_whole(path, text):
    """The file appears whole, or stays as it was."""
    path = os.path.abspath(os.fspath(path))
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def print_to_stdout(text):
    sys.stdout.write(text)


class Results(dict[str, Any]):
    """The outputs of a run by name, in the order asked for; also as attributes: ``results.w``.

    ``results.statistics`` says what the run did, as ``heddle run --stats`` does.
    """

    statistics: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the run has no output {name!r}; it has {', '.join(self) or 'none'}") from None


@public
def run(script: Script, inputs: Mapping[str, Any] | None = None, outputs: str | Iterable[str] = (), *,
        args: Arguments = None, print: Callable[[str], object] | None = None, library: Folders = None,
        memory: int | str | None = None, threads: int | None = None, fusion: str | None = None, seed: int | None = None,
        precision: str = "double", cpu: str | None = None, directory: str | os.PathLike[str] | None = None,
        report: str | os.PathLike[str] | None = None, trace: str | os.PathLike[str] | None = None) -> Results:
    """Runs a DML script in this process.

    script: the text, or the path of a file that ends in .dml.
    inputs: variables that the script finds, by name: numbers, texts, NumPy arrays (one dimension: a column), SciPy
        sparse matrices, pandas frames, anything with DLPack or an Arrow stream, and lists and dicts of such.
    outputs: names of variables to return, or one name.
    args: $NAME by a dict, or $1, $2, ... by a sequence.
    print: called with each text that the script prints; without it, texts go to sys.stdout.
    library: a folder of functions in DML, or several. memory: the most that matrices take, bytes or "2g".
    threads: all cores without it. precision: "double" or "single". directory: where relative paths begin.
    report: a page that says what took the time is written there; trace: all events, for Perfetto (docs/report.md).

    >>> import heddle
    >>> heddle.run("s = sum(X) + 1", inputs={"X": [[1, 2], [3, 4]]}, outputs="s").s
    11.0
    """
    text, name = read_script(script)
    names = [outputs] if isinstance(outputs, str) else list(outputs)
    entering()
    with_options = engine(library=library, memory=memory, threads=threads, fusion=fusion, seed=seed,
                          precision=precision, cpu=cpu, directory=directory, recorded=bool(report or trace))
    for path in (report, trace):
        if path is not None:
            check_writable(path)
    given = {input: to_input(input, value) for input, value in (inputs or {}).items()}
    notes: list[str] = []
    values, statistics, record = with_options.run(text, name, parameters_of(args), given, names,
                                                  print or print_to_stdout, notes.append)
    del given
    for path, made in zip((report, trace), record or ()):
        if path is not None:
            write_whole(path, made)
    for note in notes:
        warnings.warn(note.rstrip("\n"), HeddleWarning, stacklevel=2)
    results = Results((output, to_python(values[output])) for output in values)
    results.__dict__["statistics"] = json.loads(statistics)
    return results


@public
def check(script: Script, inputs: Mapping[str, Any] | None = None, *, args: Arguments = None, library: Folders = None,
          directory: str | os.PathLike[str] | None = None) -> str:
    """All that is wrong with a script, or questionable, without running it; "" where nothing is."""
    text, name = read_script(script)
    entering()
    given = {input: to_input(input, value) for input, value in (inputs or {}).items()}
    errors, remarks = engine(library=library, directory=directory).check(text, name, parameters_of(args), given)
    return errors + remarks


@public
def explain(script: Script, level: str = "program", *, args: Arguments = None, library: Folders = None,
            directory: str | os.PathLike[str] | None = None) -> str:
    """What the compiler makes of a script: "program", "fusion", "cost", "codegen", "all" and others."""
    text, name = read_script(script)
    entering()
    return engine(library=library, directory=directory).explain(text, name, parameters_of(args), level)
