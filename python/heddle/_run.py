# SPDX-License-Identifier: Apache-2.0
"""Running scripts."""

from __future__ import annotations

import atexit
import copyreg
import functools
import json
import operator
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, Union, cast

from heddle import _engine
from heddle._convert import to_inputs, to_python
from heddle._errors import DataError, ForkError, HeddleWarning, UsageError

Script = Union[str, "os.PathLike[str]"]
Arguments = Union[Mapping[str, object], Sequence[object], None]
Folders = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]], None]

_MOST_THREADS = 4096
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


copyreg.pickle(_engine.Boundary, lambda function: getattr(function, "__qualname__"))  # by name, as functions are


@atexit.register
def _end_runs():
    if not _is_fork:
        _engine.end_runs()


def entering():
    """To be called before the engine is: threads of the parent are missing in a fork."""
    global _has_run
    if _is_fork:
        raise ForkError("this process was forked from one that had used Heddle, and lacks its threads; start processes "
                        'with multiprocessing.get_context("spawn") or "forkserver", or fork before the first run')
    _has_run = True


def memory_bytes(memory) -> int:
    """Bytes of 2_000_000_000, "2g", "500m"."""
    if not isinstance(memory, (str, bool)) and hasattr(memory, "__index__"):
        memory = operator.index(memory)
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    text = str(memory).strip().lower()
    scale = units.get(text[-1:], 0)
    try:
        number = float(text[:-1] if scale else text)
        if not isinstance(memory, (int, str)) or isinstance(memory, bool) or not 0 < number * 2**scale < 2**63:
            raise ValueError
    except ValueError:
        raise UsageError(f'memory takes bytes or a text like "2g" or "500m", not {memory!r}') from None
    return int(number * 2**scale)


@functools.lru_cache(maxsize=64)
def _engine_of(*options):
    return _engine.Engine(dict(options))


def engine(*, library=None, memory=None, threads=None, fusion=None, seed=None, precision="double", cpu=None,
           directory=None, recorded=False, spill_folder=None, compress=None, devices=None):
    """The engine with these options; the same for the same options."""
    if precision not in ("double", "single"):
        raise UsageError(f"precision is 'double' or 'single', not {precision!r}")
    for option, value in (("fusion", fusion), ("cpu", cpu), ("compress", compress), ("devices", devices)):
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{option} is a text, not {value!r}")
    folder = folder_of(directory)
    options = {
        "directory": folder,
        "library": folders_of(library),
        "memory": memory_bytes(memory) if memory is not None else None,
        "threads": whole_number("threads", threads, 1, _MOST_THREADS), "fusion": fusion,
        "seed": whole_number("seed", seed, -2**63, 2**63 - 1), "cpu": cpu, "compress": compress,
        "devices": devices,
        "single_precision": precision == "single",
        "recorded_events": _MOST_EVENTS if recorded else None,
        "spill_folder": folder_of(spill_folder, "spill_folder") if spill_folder is not None else None,
    }
    return _engine_of(*((name, value) for name, value in options.items() if value is not None))


def path_of(option, value) -> str:
    """A path as text."""
    try:
        path = os.fsdecode(value)
    except TypeError:
        raise UsageError(f"{option} is a path, not a {type(value).__name__}") from None
    if "\0" in path:
        raise UsageError(f"{option}: no path has a character of number 0")
    return path


def folder_of(directory, option="directory") -> str:
    """The whole path of a folder that exists; the current one of None."""
    try:
        folder = os.path.abspath(path_of(option, directory) if directory is not None else os.curdir)
    except FileNotFoundError:
        raise DataError(f"the current folder was removed; {option}= names another one") from None
    if directory is not None and not os.path.isdir(folder):
        raise DataError(f"{option}: there is no folder {folder!r}")
    return folder


def folders_of(library) -> tuple[str, ...]:
    """One folder, or several, as texts."""
    if library is None:
        return ()
    folders = library if isinstance(library, (list, tuple)) else [library]
    return tuple(path_of("library", folder) for folder in folders)


def whole_number(option, value, least, most):
    """A number of this range, None as it is."""
    if value is None:
        return None
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise UsageError(f"{option} is a whole number of at least {least}, not {value!r}")
    if number > most:
        raise UsageError(f"{option} is at most {most}, not {value!r}")
    return number


def names_of(outputs) -> list[str]:
    """The names of outputs, of one name or several."""
    if isinstance(outputs, str):
        return [outputs]
    if isinstance(outputs, bytes) or not isinstance(outputs, Iterable):
        raise UsageError(f"outputs are names of variables, not {outputs!r}")
    names = list(outputs)
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"outputs are names of variables, not {name!r}")
    return names


def listener(print):
    """What is called with printed texts."""
    if print is not None and not callable(print):
        raise UsageError(f"print is a function that takes a text, not {print!r}")
    return print or print_to_stdout


def read_script(script):
    """Text and name of a script that is given as text or as a path."""
    if isinstance(script, os.PathLike) or (isinstance(script, str) and script.endswith(".dml") and "\n" not in script):
        path = path_of("script", script)
        shown = os.fsencode(path).decode("utf-8", "replace")
        try:
            with open(path, encoding="utf-8") as file:
                return file.read(), shown
        except OSError as error:
            raise DataError(f"cannot read the script {shown!r}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise DataError(f"the script {shown!r} is not UTF-8") from None
    if not isinstance(script, str):
        raise UsageError(f"a script is a text or a path, not a {type(script).__name__}")
    if not script.isascii():
        try:
            script.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"character {error.start + 1} of the script is half of a surrogate pair, which UTF-8 does "
                             "not have") from None
    return script, "script.dml"


def parameters_of(args):
    """$1, $2 of a sequence; $NAME of a dict."""
    if args is None:
        return {}
    if isinstance(args, (str, bytes)) or not isinstance(args, Iterable):
        raise UsageError(f"args is a dict, or a list of what $1, $2, ... are, not {args!r}")
    entries = args.items() if isinstance(args, Mapping) else enumerate(args, start=1)
    return {str(name): _parameter(value) for name, value in entries}


def _parameter(value):
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return str(value)


def check_writable(path):
    """Raises DataError before a run whose file could not be written."""
    whole = os.path.abspath(path)
    folder = os.path.dirname(whole)
    if os.path.isdir(whole) or not os.access(folder, os.W_OK | os.X_OK):
        raise DataError(f"cannot write {path!r}")


def write_whole(path, text):
    """The file appears whole, or stays as it was."""
    path = os.path.abspath(path)
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
    if sys.stdout is not None:  # as the print() of Python
        sys.stdout.write(text)


class Results(dict[str, Any]):
    """The outputs of a run by name, in the order asked for; also as attributes: ``results.w``.

    ``results.statistics`` says what the run did, as ``heddle run --stats`` does.
    """

    statistics: dict[str, Any]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

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
        report: str | os.PathLike[str] | None = None, trace: str | os.PathLike[str] | None = None,
        spill_folder: str | os.PathLike[str] | None = None, compress: str | None = None,
        devices: str | None = None) -> Results:
    """Runs a DML script in this process.

    script: the text, or the path of a file that ends in .dml.
    inputs: variables that the script finds, by name: numbers, texts, NumPy arrays (one dimension: a column), SciPy
        sparse matrices, pandas frames, anything with DLPack or an Arrow stream, and lists and dicts of such.
    outputs: names of variables to return, or one name.
    args: $NAME by a dict, or $1, $2, ... by a sequence.
    print: called with each text that the script prints; without it, texts go to sys.stdout.
    library: a folder of functions in DML, or several. memory: the most that matrices take, bytes or "2g".
    spill_folder: where rows go that memory has no room for; the folder of temporary files without it.
    threads: all cores without it. precision: "double" or "single". directory: where relative paths begin.
    compress: "auto" stores what loops read by groups of columns where that pays, with the same results; "off" without it.
    devices: "auto" computes on the fastest device of this machine what is faster there, "opencl:0" all that this device
        can run, with the same results; "cpu" without it (docs/devices.md).
    report: a page that says what took the time is written there; trace: all events, for Perfetto (docs/report.md).

    >>> import heddle
    >>> heddle.run("s = sum(X) + 1", inputs={"X": [[1, 2], [3, 4]]}, outputs="s").s
    11.0
    """
    text, name = read_script(script)
    names = names_of(outputs)
    entering()
    report, trace = (path_of(option, path) if path is not None else None
                     for option, path in (("report", report), ("trace", trace)))
    with_options = engine(library=library, memory=memory, threads=threads, fusion=fusion, seed=seed,
                          precision=precision, cpu=cpu, directory=directory, recorded=report is not None or trace is not None,
                          spill_folder=spill_folder, compress=compress, devices=devices)
    for path in (report, trace):
        if path is not None:
            check_writable(path)
    given = to_inputs(inputs)
    notes: list[str] = []
    values, statistics, record = with_options.run(text, name, parameters_of(args), given, names, listener(print),
                                                  notes.append)
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
    errors, remarks = engine(library=library, directory=directory).check(text, name, parameters_of(args),
                                                                         to_inputs(inputs))
    return errors + remarks


@public
def explain(script: Script, level: str = "program", *, args: Arguments = None, library: Folders = None,
            directory: str | os.PathLike[str] | None = None, memory: int | str | None = None,
            devices: str | None = None) -> str:
    """What the compiler makes of a script: "program", "fusion", "cost", "codegen", "memory", "all" and others.

    memory: what plans may take, bytes or "2g", as of run().
    devices: on which device plans may compute, as of run(); "placement" tells what runs there.
    """
    text, name = read_script(script)
    if not isinstance(level, str):
        raise UsageError(f"level is a text, not {level!r}")
    entering()
    explained = engine(library=library, directory=directory, memory=memory, devices=devices)
    return explained.explain(text, name, parameters_of(args), level)
