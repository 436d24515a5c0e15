# SPDX-License-Identifier: Apache-2.0
"""heddle.run and what surrounds it."""

import gc
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import warnings

import numpy
import pytest

import heddle


def python(code, *, timeout=120, **environment):
    """What a fresh interpreter prints for this code."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True,
                          timeout=timeout, env={**os.environ, **environment})


def test_outputs_are_those_that_were_asked_for():
    results = heddle.run("a = 1; b = TRUE; c = 2.5; d = 'x'; M = matrix(1, 2, 3)", outputs=["d", "a", "b", "c", "M"])
    assert list(results) == ["d", "a", "b", "c", "M"]
    assert (results.a, results.b, results.c, results.d) == (1, True, 2.5, "x")
    assert type(results.a) is int and type(results.b) is bool
    numpy.testing.assert_array_equal(results.M, numpy.ones((2, 3)))
    with pytest.raises(AttributeError, match="no output 'e'; it has d, a, b, c, M"):
        results.e


def test_one_output_may_be_a_name():
    assert heddle.run("s = 3", outputs="s").s == 3


def test_a_script_may_be_a_file(tmp_path):
    (tmp_path / "part.dml").write_text("f = function(double x) return (double y) { y = x + $step }")
    (tmp_path / "main.dml").write_text('source("part.dml") as part\ny = part::f(1)\nprint($1)')
    texts = []
    results = heddle.run(tmp_path / "main.dml", outputs="y", args={"step": 2, "1": "one"}, print=texts.append,
                         directory=tmp_path)
    assert results.y == 3 and "".join(texts) == "one\n"


def test_arguments_by_position():
    assert heddle.run("x = $1 + 1; t = $2", args=[4, "a"], outputs=["x", "t"]) == {"x": 5, "t": "a"}


@pytest.mark.parametrize("script, name, hint", [
    ("x = $1", "$1", "give it with args=[...], in order"),
    ("x = $path", "$path", 'give it with args={"path": ...}'),
    ("parfor (i in 1:3, mode=$path) { t = 1 }", "$path", 'give it with args={"path": ...}'),
])
def test_arguments_that_are_missing(script, name, hint):
    with pytest.raises(heddle.CompileError) as error:
        heddle.run(script)
    for text in (str(error.value), heddle.check(script)):
        assert f"the script's argument {name} is not given" in text and hint in text


def test_print_goes_to_standard_output(capsys):
    heddle.run("print('one'); print('two')")
    assert capsys.readouterr().out == "one\ntwo\n"


def test_statistics_say_what_ran():
    statistics = heddle.run("s = sum(rand(rows=10, cols=10, seed=7))", outputs="s").statistics
    assert statistics["rank"] == 0


def test_options():
    X = numpy.random.default_rng(1).random((50, 4))
    script = "B = t(X) %*% X; r = sum(rand(rows=5, cols=5))"
    one = heddle.run(script, {"X": X}, ["B", "r"], threads=1, fusion="off", seed=3, memory="100m")
    two = heddle.run(script, {"X": X}, ["B", "r"], threads=2, fusion="all", seed=3, cpu="avx2")
    assert one.B.tobytes() == two.B.tobytes() and one.r == two.r
    single = heddle.run(script, {"X": X}, "B", precision="single").B
    assert single.dtype == numpy.float32
    numpy.testing.assert_allclose(single, one.B, rtol=1e-5)


def test_devices_have_the_bytes_of_the_processor():
    script = "B = matrix(0, 3, 1)\nfor (i in 1:3) { B = B + t(X) %*% (X[,1] - X %*% B) * 0.01 }\ns = sum(exp(X))"
    X = numpy.random.default_rng(1).random((500, 3))
    here = heddle.run(script, {"X": X}, ["B", "s"])
    for devices in ("auto", "opencl:0"):  # Without such a device the processor computes.
        there = heddle.run(script, {"X": X}, ["B", "s"], devices=devices)
        assert there.B.tobytes() == here.B.tobytes() and there.s == here.s


@pytest.mark.parametrize("options, message", [
    ({"memory": "much"}, 'memory takes bytes or a text like "2g"'),
    ({"threads": 0}, "threads is a whole number of at least 1, not 0"),
    ({"precision": "half"}, "precision is 'double' or 'single', not 'half'"),
    ({"fusion": "some"}, "fusion takes off, all, no-redundancy or cost, not 'some'"),
    ({"cpu": "sse"}, "cpu takes auto, avx2 or avx512, not 'sse'"),
    ({"compress": "on"}, "compress takes auto or off, not 'on'"),
    ({"devices": "gpu"}, "devices takes cpu, auto, or opencl:0 to opencl:127, not 'gpu'"),
])
def test_options_that_are_none(options, message):
    with pytest.raises(heddle.UsageError, match=message.replace("(", r"\(")) as error:
        heddle.run("s = 1", outputs="s", **options)
    assert isinstance(error.value, ValueError) and error.value.exit_code == 2


def test_a_library_of_the_user(tmp_path):
    (tmp_path / "builtin").mkdir()
    (tmp_path / "builtin" / "twice.dml").write_text("m_twice = function(matrix[double] X) return (double y) { y = 2 * sum(X) }")
    assert heddle.run("y = twice(matrix(2, 1, 2))", outputs="y", library=tmp_path).y == 8
    with pytest.raises(heddle.DataError, match="library: there is no folder"):
        heddle.run("y = 1", outputs="y", library=tmp_path / "nowhere")


def test_errors_name_the_place_in_the_script():
    with pytest.raises(heddle.CompileError) as error:
        heddle.run("a = 1\nb = undefined_name + a", outputs="b")
    assert error.value.line == 2 and error.value.file == "script.dml" and "undefined_name" in error.value.message
    with pytest.raises(heddle.ScriptError) as error:
        heddle.run("x = 3\nstop('too ' + x)")
    assert error.value.line == 2 and error.value.message == "too 3"
    with pytest.raises(heddle.DataError) as error:
        heddle.run("X = read('nowhere.csv')\nprint(sum(X))")
    assert error.value.line == 1 and "nowhere.csv" in str(error.value) and isinstance(error.value, OSError)
    for run in (heddle.run, heddle.sim(1).run):  # hints are arguments of Python, not options of the command line
        with pytest.raises(heddle.ResourceError) as error:
            run("X = rand(rows=100000, cols=100000, seed=1)\nprint(sum(inv(X)))", memory="50m")
        assert "memory=" in str(error.value) and "--memory" not in str(error.value)
        assert "--memory" not in "".join(error.value.notes)
        with pytest.raises(heddle.CompileError, match=r'give it with args=\{"a": ...\}'):
            run("x = $a")
        with pytest.raises(heddle.CompileError, match=r"give it with args=\[...\], in order"):
            run("x = $1")
    with pytest.raises(heddle.CompileError, match="nothing assigns"):
        heddle.run("x = 3", outputs="y")


def test_a_script_that_is_not_there(tmp_path):
    with pytest.raises(heddle.DataError, match="cannot read the script 'no.dml': No such file"):
        heddle.run("no.dml")
    (tmp_path / "latin.dml").write_bytes(b"x = '\xe4'")
    with pytest.raises(heddle.DataError, match="is not UTF-8"):
        heddle.run(tmp_path / "latin.dml")
    with pytest.raises(heddle.UsageError, match="a script is a text or a path, not a int"):
        heddle.run(3)


def test_a_traceback_ends_in_the_line_of_the_user():
    try:
        heddle.run("x = ")
    except heddle.Error as error:
        frames = traceback.extract_tb(error.__traceback__)
    assert [frame.filename for frame in frames] == [__file__]
    assert frames[-1].line == 'heddle.run("x = ")'


def test_warnings_are_warnings_of_python():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        heddle.run("X = matrix(1, 2, 2)\nX[1, 1] = 'a' == 1\nif (FALSE) { y = 1 }\nprint(sum(X)); q = $z; print(q)",
                   args={"z": 1, "unused": 2}, print=lambda text: None)
    for warning in caught:
        assert warning.category is heddle.HeddleWarning and warning.filename == __file__


def test_an_exception_of_print_ends_the_run():
    class Stop(Exception):
        pass

    def stop(text):
        raise Stop(text)

    begin = time.monotonic()
    with pytest.raises(Stop, match="1"):
        heddle.run("for (i in 1:100000000) { print(i) }", print=stop)
    assert time.monotonic() - begin < 30


LONG = "i = 0; x = 0.5; while (i < 1000000000) { x = sin(x); i = i + 1 }"


def test_an_interrupt_ends_the_run_and_keeps_all():
    result = python(f"""
        import heddle, os, signal, threading, time, numpy
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells ignore for what runs in the background
        X = numpy.ones((3, 3))
        for _ in range(3):
            begin = []
            def interrupt():
                time.sleep(0.3)
                begin.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            thread = threading.Thread(target=interrupt)
            thread.start()
            try:
                heddle.run("{LONG}", inputs={{"X": X}})
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - begin[0] < 5)
            thread.join()
            assert heddle.run("s = sum(X)", {{"X": X}}, "s").s == 9
        """)
    assert result.stdout == "interrupted True\n" * 3, result.stderr


def test_threads_run_at_once():
    results = {}

    def work(number):
        X = numpy.full((20, 20), float(number))
        results[number] = [heddle.run("s = sum(X %*% X)", {"X": X}, "s", threads=1).s for _ in range(10)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [20.0**3 * number**2] * 10 for number in range(4)}


def test_other_threads_go_on_while_a_script_runs():
    result = python(f"""
        import heddle, threading, time, os, signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells ignore for what runs in the background
        counted = [0]
        def count():
            begin = time.monotonic()
            while time.monotonic() - begin < 0.5:
                counted[0] += 1
            os.kill(os.getpid(), signal.SIGINT)
        thread = threading.Thread(target=count)
        thread.start()
        try:
            heddle.run("{LONG}", threads=1)
        except KeyboardInterrupt:
            pass
        thread.join()
        print(counted[0] > 1000)
        """)
    assert result.stdout == "True\n", result.stderr


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_raises():
    result = python("""
        import os, heddle, warnings
        warnings.simplefilter("ignore")
        first = os.fork()   # before the first run: all is well in the child
        if first == 0:
            os._exit(0 if heddle.run("s = 2", outputs="s").s == 2 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]))
        heddle.run("s = 1", outputs="s")
        child = os.fork()
        if child == 0:
            try:
                heddle.run("s = 1", outputs="s")
            except heddle.ForkError as error:
                os._exit(7 if "spawn" in str(error) else 8)
            os._exit(9)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """)
    assert result.stdout == "0\n7\n", result.stderr


def test_importing_is_light():
    result = python("""
        import sys, os
        import heddle
        print(len(os.listdir("/proc/self/task")), "numpy" in sys.modules, "pandas" in sys.modules)
        """)
    assert result.stdout == "1 False False\n", result.stderr


def test_a_report_and_a_trace(tmp_path):
    import json
    heddle.run("X = rand(rows=500, cols=500, seed=1)\ns = sum(X %*% X)", outputs="s", report=tmp_path / "r.html",
               trace=tmp_path / "t.json", directory=tmp_path)
    page = (tmp_path / "r.html").read_text()
    assert page.startswith("<!") and "%*%" in page and page.rstrip().endswith("</html>")
    assert json.loads((tmp_path / "t.json").read_text())
    assert sorted(os.listdir(tmp_path)) == ["r.html", "t.json"]
    with pytest.raises(heddle.DataError, match="cannot write"):
        heddle.run("s = 1", report=tmp_path / "nowhere" / "r.html")


def test_check_and_explain():
    assert "undefined" in heddle.check("x = undefined + 1")
    assert heddle.check("x = 1 + 2; print(x)") == ""
    assert "sum" in heddle.explain("print(sum(rand(rows=3, cols=3)))")
    with pytest.raises(heddle.UsageError):
        heddle.explain("x = 1", level="nothing")
    assert "the processor computes" in heddle.explain("print(sum(rand(rows=3, cols=3)))", "placement", devices="cpu")
    with pytest.raises(heddle.UsageError):
        heddle.explain("x = 1", devices="gpu")


def test_memory_is_given_back():
    X = numpy.ones((1000, 1000))
    before = sys.getrefcount(X)
    Y = heddle.run("Y = X", {"X": X}, "Y").Y
    assert numpy.shares_memory(X, Y) and not Y.flags.writeable
    del Y
    gc.collect()
    heddle.run("s = 1")
    assert sys.getrefcount(X) == before


@pytest.mark.parametrize("before", ["pyarrow", "pandas", "polars", "scipy.sparse", "numpy"])
def test_importing_behind_others(before):
    pytest.importorskip(before)  # their libraries, and those of C++, are loaded before
    result = python(f"""
        import {before}, heddle, numpy
        class Tensor:  # as those of other libraries: memory by DLPack alone
            def __init__(self): self.cells = numpy.eye(3)
            def __dlpack__(self, **options): return self.cells.__dlpack__(**options)
            def __dlpack_device__(self): return self.cells.__dlpack_device__()
        print(heddle.run("s = sum(X * 2)", {{"X": Tensor()}}, "s").s)
        """)
    assert result.stdout == "6.0\n", result.stderr


def test_names_and_signatures_are_those_of_functions():
    import inspect
    assert heddle.run.__name__ == "run" and "Runs a DML script" in heddle.run.__doc__
    assert "outputs" in inspect.signature(heddle.run).parameters


def test_doctests():
    import doctest
    outcome = doctest.testmod(heddle, globs={"heddle": heddle})
    assert outcome.failed == 0 and outcome.attempted >= 6  # of heddle.run and heddle.Session
