# SPDX-License-Identifier: Apache-2.0
"""The same scripts on worker processes: of this machine (sim) or of a cluster (connect).

The program `heddle` runs them, which the package has beside it. Inputs and outputs are files in Heddle's binary format
in a folder that lives as long as the run; scalars stand in the script.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Union

from heddle._convert import to_inputs, to_python
from heddle._errors import CompileError, Error, HeddleWarning, UnreachableError, UsageError, _make
from heddle._run import (Arguments, Folders, Results, Script, engine, entering, folder_of, folders_of, listener,
                         memory_bytes, names_of, parameters_of, path_of, public, read_script, whole_number)

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_Path = Union[str, "os.PathLike[str]", None]
_MOST_WORKERS = 4096
_PREFIX = "-"  # what messages call a script that is read from standard input


def program() -> str:
    """The path of `heddle`: that of the package, else the one that the shell finds."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "heddle")
    found = own if os.path.exists(own) else shutil.which("heddle")
    if found is None:
        raise UnreachableError("the program heddle is neither part of this package nor on the PATH")
    return found


def main():
    """The command `heddle`."""
    path = program()
    os.execv(path, [path, *sys.argv[1:]])


class Cluster:
    """Worker processes that scripts run on: heddle.sim() and heddle.connect() make one."""

    def __init__(self, words, connection, description, folder):
        self._words = words
        self._connection = connection  # options that every verb about jobs takes; None: there are no jobs
        self._description = description
        self._folder = folder

    def __repr__(self):
        return f"<heddle.Cluster {self._description}>"

    @public
    def run(self, script: Script, inputs: Mapping[str, Any] | None = None, outputs: str | Iterable[str] = (), *,
            args: Arguments = None, print: Callable[[str], object] | None = None, library: Folders = None,
            memory: int | str | None = None, threads: int | None = None, fusion: str | None = None,
            seed: int | None = None, precision: str = "double", cpu: str | None = None,
            directory: str | os.PathLike[str] | None = None, compress: str | None = None) -> Results:
        """As heddle.run(), with the same bytes in its results."""
        text, name = read_script(script)
        names = names_of(outputs)
        given = to_inputs(inputs)
        for variable in names:
            if not _NAME.fullmatch(variable):
                raise _no_output(name, variable)
        entering()
        names_of_inputs = engine().session({})
        for variable in given:
            names_of_inputs.set(variable, 0)  # raises for what is no name
        directory = folder_of(directory)
        words = [program(), *self._words, *_options(library, memory, threads, fusion, seed, precision, cpu, compress)]
        if self._connection is not None:
            words += ["--request-id", f"python-{uuid.uuid4()}"]
        words.append("-")
        parameters = parameters_of(args)
        if list(parameters) == [str(i + 1) for i in range(len(parameters))]:
            words += ["-args", *parameters.values()] if parameters else []
        else:
            words += ["-nvargs", *(f"{key}={value}" for key, value in parameters.items())]
        with tempfile.TemporaryDirectory(prefix=".heddle-python-", dir=self._folder) as folder:
            if self._folder is not None:
                os.chmod(folder, 0o755)
            prologue = "".join(_given(variable, value, folder) for variable, value in given.items())
            results = os.path.join(folder, "results")
            epilogue = ""
            if names:
                epilogue = "\nwrite(list({}), {}, format=\"binary\")\n".format(
                    ", ".join(f"{output}={output}" for output in dict.fromkeys(names)), _quoted(results))
            try:
                _run_program(words, prologue, text, epilogue, name, directory, listener(print))
            except CompileError as error:
                output = re.match(r"undefined variable '(\w+)'", error.message)
                if error.line <= text.count("\n") + 1 or not output:
                    raise
                raise _no_output(name, output[1]) from None
            except KeyboardInterrupt:
                self._cancel(words, prologue + text + epilogue, directory)
                raise
            values = _read_results(results) if names else {}
        return Results((output, values[output]) for output in dict.fromkeys(names))

    def _cancel(self, words, script, directory):
        """Ends the job that was given to a master: the same request is the same job, whose id it tells."""
        if self._connection is None:
            return
        found = subprocess.run([*words[:-1], "--detach", "-"], input=script, cwd=directory, capture_output=True,
                               encoding="utf-8", start_new_session=True)
        if found.returncode == 0:
            subprocess.run([program(), "job", "cancel", *self._connection, found.stdout.strip()], capture_output=True,
                           start_new_session=True)


@public
def sim(workers: int = 2, *, min_distributed_bytes: int | None = None) -> Cluster:
    """Worker processes of this machine, as on a cluster: heddle.sim(workers=4).run(script, ...).

    min_distributed_bytes: smaller matrices stay on one worker; 0 splits everything.
    """
    workers = whole_number("workers", workers, 1, _MOST_WORKERS)
    words = ["sim", "--workers", str(workers)]
    if min_distributed_bytes is not None:
        least = whole_number("min_distributed_bytes", min_distributed_bytes, 0, 2**63 - 1)
        words += ["--min-distributed-bytes", str(least)]
    return Cluster(words, None, f"sim, {workers} workers", None)


@public
def connect(address: str | None = None, *, token_file: _Path = None, tls_ca: _Path = None,
            tls_certificate: _Path = None, tls_key: _Path = None, workers: int | None = None,
            folder: _Path = None) -> Cluster:
    """The workers of a master: heddle.connect("host:7070", token_file="anna.token").run(script, ...).

    address: host:port or unix:/path; without one, that of `heddle master --dev` of this user.
    workers: how many a job takes; all without it.
    folder: where inputs and results lie while a job runs. This machine and the workers see it by the same path; the
        current folder without it.
    """
    connection = []
    for option, value in (("--master", address), ("--token-file", token_file), ("--tls-ca", tls_ca),
                          ("--tls-certificate", tls_certificate), ("--tls-key", tls_key)):
        if value is not None:
            connection += [option, path_of(option[2:].replace("-", "_").replace("master", "address"), value)]
    words = ["job", "submit", *connection]
    if workers is not None:
        words += ["--workers", str(whole_number("workers", workers, 1, _MOST_WORKERS))]
    folder = folder_of(folder, "folder")
    return Cluster([*words, "--data-root", folder], connection, address or "the master of this user", folder)


def _options(library, memory, threads, fusion, seed, precision, cpu, compress):
    words = [word for folder in folders_of(library) for word in ("--library", os.path.abspath(folder))]
    for option, value in (("--memory", memory_bytes(memory) if memory is not None else None), ("--threads", threads),
                          ("--fusion", fusion), ("--seed", seed), ("--cpu", cpu),
                          ("--compress", compress)):
        if value is not None:
            words += [option, str(value)]
    if precision != "double":
        words += ["--precision", str(precision)]
    return words


def _no_output(script, name):
    return _make(CompileError.exit_code, "", f"{script}: error: there is no variable '{name}' at the end of the script\n"
                 "it is asked for as an output; nothing assigns it", "", "", 0, 0, ())


def _quoted(path):
    if "\\" in path:
        raise UsageError(f"the files of a run lie in {os.path.dirname(path)!r}, which no script can name: a text of DML has no "
                         "backslash alone; folder= of connect, or TMPDIR, names another folder")
    return '"' + path.replace("\n", "\\n").replace('"', '\\"') + '"'


def _given(name, given, folder):
    """The statement that gives the script this variable."""
    if isinstance(given, bool):
        return f"{name} = {'TRUE' if given else 'FALSE'}; "
    if isinstance(given, int):
        return f"{name} = {given}; " if given > -2**63 else f"{name} = -9223372036854775807 - 1; "
    if isinstance(given, float):
        if given != given:
            return f"{name} = 0.0 / 0.0; "
        if given in (float("inf"), float("-inf")):
            return f"{name} = {'-' if given < 0 else ''}1.0 / 0.0; "
        return f"{name} = {given!r}; "
    if isinstance(given, str):
        if "\0" in given:
            raise UsageError(f"input {name!r}: a text with a character of number 0 does not go to other processes")
        path = os.path.join(folder, f"{name}.txt")
        engine().run("write(X, $path)", "input.dml", {"path": path}, {"X": given}, [], None, None)
        return f"{name} = read({_quoted(path)}, data_type=\"scalar\", value_type=\"string\"); "
    path = os.path.join(folder, f"{name}.bin")
    engine().run('write(X, $path, format="binary")', "input.dml", {"path": path}, {"X": given}, [], None, None)
    return f"{name} = read({_quoted(path)}); "


def _read_results(path):
    values, _, _ = engine().run("L = read($path)", "results.dml", {"path": path}, {}, ["L"], None, None)
    return to_python(values["L"])


def _run_program(words, prologue, text, epilogue, name, directory, print):
    """Runs the script, with the prologue in its first line so that lines keep their numbers."""
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               cwd=directory, start_new_session=True, encoding="utf-8", errors="replace")
    assert process.stdin and process.stdout and process.stderr
    out, err = process.stdout, process.stderr
    messages: list[str] = []
    reader = threading.Thread(target=lambda: messages.append(err.read()), daemon=True)
    reader.start()
    try:
        try:
            process.stdin.write(prologue + text + epilogue)
            process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended, and says why
        for line in out:
            print(line)
        code = process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)  # it ends the job and its processes
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    finally:
        reader.join()
        out.close()
        err.close()
    message = _without_prologue("".join(messages).rstrip("\n"), prologue, name).removeprefix("heddle: error: ")
    if code == 0:
        if message:
            warnings.warn(message, HeddleWarning, stacklevel=3)
        return
    if code < 0:
        raise Error(f"the program heddle was ended by signal {-code}")
    if code == 8 and not message:
        message = "cancelled"
    raise _make(code, "", message, "", "", 0, 0, ())


def _without_prologue(message, prologue, name):
    """The messages of a script whose first line began with the prologue, as they are without it."""
    lines = message.split("\n")
    shown = re.compile(rf"^(\s*1 \| ){re.escape(prologue)}") if prologue else None
    for i, line in enumerate(lines):
        place = re.match(rf"{re.escape(_PREFIX)}:(\d+):(\d+): (.*)", line)
        if place:
            row, column = int(place[1]), int(place[2])
            if row == 1:
                column = max(1, column - len(prologue))
            lines[i] = f"{name}:{row}:{column}: {place[3]}"
        elif shown and shown.match(line):
            lines[i] = shown.sub(r"\1", line)
            if i + 1 < len(lines) and re.fullmatch(r"\s*\|\s*[\^~]*", lines[i + 1]):
                bar = lines[i + 1].index("|") + 2
                lines[i + 1] = lines[i + 1][:bar] + lines[i + 1][bar + len(prologue):]
    return "\n".join(lines)
