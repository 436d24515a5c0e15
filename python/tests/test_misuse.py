# SPDX-License-Identifier: Apache-2.0
"""What is no value, no name, no option; and what happens around a run: copies, processes, the end of the interpreter."""

import array
import copy
import fractions
import multiprocessing
import os
import pickle
import resource
import subprocess
import sys
import textwrap

import numpy
import pytest

import heddle

X = numpy.arange(6.0).reshape(3, 2)


def python(code, *, timeout=120, before=None, **environment):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=timeout,
                          preexec_fn=before, env={**os.environ, **environment})


@pytest.mark.parametrize("arguments, message", [
    ({"inputs": [1]}, "inputs is a dict of values by name, not a list"),
    ({"inputs": {1: 2}}, "names of inputs are texts, not 1"),
    ({"outputs": 5}, "outputs are names of variables, not 5"),
    ({"outputs": [None]}, "outputs are names of variables, not None"),
    ({"outputs": b"s"}, "outputs are names of variables, not b's'"),
    ({"args": "ab"}, "args is a dict, or a list of what"),
    ({"print": 5}, "print is a function that takes a text, not 5"),
    ({"memory": True}, "memory takes bytes or a text"),
    ({"memory": 10**30}, "memory takes bytes or a text"),
    ({"threads": True}, "threads is a whole number of at least 1, not True"),
    ({"threads": 10**6}, "threads is at most 4096, not 1000000"),
    ({"seed": "a"}, "seed is a whole number"),
    ({"seed": 2**70}, "seed is at most"),
    ({"fusion": 5}, "fusion is a text, not 5"),
    ({"compress": 5}, "compress is a text, not 5"),
    ({"library": 5}, "library is a path, not a int"),
    ({"directory": 5}, "directory is a path, not a int"),
    ({"report": "a\0b"}, "report: no path has a character of number 0"),
])
def test_arguments_that_are_none(arguments, message):
    with pytest.raises(heddle.UsageError, match=message):
        heddle.run("s = 1", **arguments)


def test_numbers_of_numpy_as_options():
    options = {"memory": numpy.int64(10**9), "threads": numpy.int32(1), "seed": numpy.uint8(7)}
    script = "r = sum(rand(rows=5, cols=5))"
    assert heddle.run(script, outputs="r", **options).r == heddle.run(script, outputs="r", seed=7).r


def test_a_report_needs_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", "nowhere/report.html"):
        with pytest.raises(heddle.DataError, match="cannot write"):
            heddle.run("s = 1", report=path)
    assert list(tmp_path.iterdir()) == []


def test_folders_that_are_not_there(tmp_path, monkeypatch):
    with pytest.raises(heddle.DataError, match="directory: there is no folder"):
        heddle.run("s = 1", directory=tmp_path / "nowhere")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(heddle.DataError, match="the current folder was removed; directory= names another one"):
        heddle.run("s = 1")
    assert heddle.run("s = 1", outputs="s", directory=tmp_path).s == 1


def test_paths_that_are_not_utf8(tmp_path):
    folder = os.path.join(os.fsencode(tmp_path), b"\xff\xfe")
    os.mkdir(folder)
    with open(os.path.join(folder, b"data.csv"), "w") as file:
        file.write("1,2\n")
    assert heddle.run("s = sum(read('data.csv'))", outputs="s", directory=os.fsdecode(folder)).s == 3
    assert heddle.run("s = sum(read('data.csv'))", outputs="s", directory=folder).s == 3


def damaged(**parts):
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix(numpy.eye(3))
    for name, (index, value) in parts.items():
        getattr(matrix, name)[index] = value
    return matrix


@pytest.mark.parametrize("value, message", [
    (numpy.longdouble(1), "cells of float128, matrices have real numbers"),
    (b"abc", r"a bytes is no scalar, matrix, frame or list; X.decode\(\) is a text"),
    (None, r"a NoneType is no scalar, matrix, frame or list; float\('nan'\) is a missing number"),
    ([1, 10**30], r"cells of object, matrices have real numbers; X.astype\(float\)"),
    ([fractions.Fraction(1, 3)], "cells of object"),
    ([[1, 2], [3]], "its rows differ in length"),
    ({1: 2, "1": 3}, "two keys have the same text"),
    (numpy.ma.array(X, mask=X > 3), r"has masked cells; X.filled\(0\)"),
    ("\udc80", "half of a surrogate pair"),
])
def test_values_that_are_none(value, message):
    with pytest.raises(heddle.UsageError, match=message):
        heddle.run("s = 1", {"x": value})


def test_lists_that_contain_themselves():
    values, names, deep = [], {}, ()
    values.append(values)
    names["a"] = names
    for _ in range(5000):
        deep = (deep,)
    for value in (values, names, deep):
        with pytest.raises(heddle.UsageError, match="input 'x' contains itself, or has lists in lists more than 200 levels deep"):
            heddle.run("s = 1", {"x": value})


def test_sequences_of_numbers():
    for value in (range(5), array.array("d", [4, 6]), bytearray([4, 6]), numpy.ma.array([4.0, 6.0])):
        assert heddle.run("s = sum(x)", {"x": value}, "s").s == 10


@pytest.mark.parametrize("parts", [{"indptr": (1, 77)}, {"indptr": (3, 77)}, {"indptr": (1, -5)}, {"indptr": (0, 1)}])
def test_damaged_sparse_matrices(parts):
    with pytest.raises(heddle.UsageError, match="damaged sparse matrix"):
        heddle.run("s = sum(x)", {"x": damaged(**parts)}, "s")


def test_columns_of_sparse_matrices_that_are_none():
    for column in (77, -1):
        with pytest.raises(heddle.UsageError, match="columns of row 1 are not ascending"):
            heddle.run("s = sum(x)", {"x": damaged(indices=(0, column))}, "s")


def test_columns_beyond_32_bits():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix(numpy.eye(3))
    matrix.indices = matrix.indices.astype(numpy.int64)
    assert heddle.run("s = sum(x)", {"x": matrix}, "s").s == 3
    matrix.indices[0] = 2**32
    with pytest.raises(heddle.UsageError, match="damaged sparse matrix: column 4294967296 of 3"):
        heddle.run("s = sum(x)", {"x": matrix}, "s")


def test_sparse_matrices_that_are_dicts():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.dok_matrix((3, 3))
    matrix[1, 2] = 5
    assert heddle.run("s = sum(x)", {"x": matrix}, "s").s == 5


def test_names_of_columns_may_come_twice():
    pandas = pytest.importorskip("pandas")
    frame = heddle.run("F = x", {"x": pandas.DataFrame([[1.0, 2.0]], columns=["a", "a"])}, "F").F
    assert frame.to_pandas().values.tolist() == [[1.0, 2.0]]
    with pytest.raises(heddle.UsageError, match="columns of the frame have the same name"):
        frame.to_dict()


def test_cells_of_objects_are_texts():
    pandas = pytest.importorskip("pandas")
    cells = [numpy.float64(1.5), 1j, numpy.array([1, 2]), None, float("nan"), pandas.NA, pandas.NaT, "a"]
    column = pandas.Series(cells, dtype=object, name="c")
    assert heddle.run("F = x", {"x": column}, "F").F["c"].tolist() == ["1.5", "1j", "[1 2]", None, None, None, None, "a"]
    for value in (pandas.NA, pandas.Timestamp(0)):
        with pytest.raises(heddle.UsageError, match="is no scalar, matrix, frame or list"):
            heddle.run("s = 1", {"x": value})
    with pytest.raises(heddle.UsageError, match="half of a surrogate pair"):
        heddle.run("s = 1", {"x": pandas.DataFrame({"a": ["\udc80"]}, dtype=object)})


def test_series_of_polars():
    polars = pytest.importorskip("polars")
    frame = heddle.run("F = x", {"x": polars.Series("a", [1, 2])}, "F").F
    assert frame.columns == ["a"] and frame["a"].tolist() == [1, 2]
    with pytest.raises(heddle.UsageError, match="which no column of a frame has"):
        heddle.run("s = 1", {"x": polars.DataFrame({"a": [[1], [2]]})})


def test_frames_are_pickled_and_copied():
    pandas = pytest.importorskip("pandas")
    frame = heddle.run("F = x", {"x": pandas.DataFrame({"n": [1.5, 2.5], "t": ["u", None]})}, "F").F
    again = pickle.loads(pickle.dumps(frame))
    assert again.columns == frame.columns and again.types == frame.types
    assert {name: list(column) for name, column in again.to_dict().items()} == {"n": [1.5, 2.5], "t": ["u", None]}
    assert copy.deepcopy(frame) is frame and copy.copy(frame) is frame
    assert list(frame) == frame.columns and frame.columns[0] in frame and "z" not in frame
    with pytest.raises(heddle.NotFoundError, match="the frame has no column 'z'; it has "):
        frame["z"]
    with pytest.raises(heddle.UsageError, match="a frame is no array"):
        numpy.asarray(frame)


def test_results_are_pickled():
    results = heddle.run("a = 1; M = matrix(2, 1, 2)", outputs=["a", "M"])
    again = pickle.loads(pickle.dumps(results))
    assert again.a == 1 and again.M.tolist() == [[2, 2]] and again.statistics == results.statistics
    assert {"a", "M"} <= set(dir(results))


@pytest.mark.parametrize("script", ["stop('x')", "x = yy", "X = read('nowhere.csv')\nprint(sum(X))",
                                    "X = rand(rows=1000000, cols=1000000, seed=1)\nprint(sum(inv(X)))"])
def test_errors_are_pickled(script):
    with pytest.raises(heddle.Error) as raised:
        heddle.run(script, memory="100m")
    error = raised.value
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error) and str(again) == str(error)
        assert (again.message, again.file, again.line, again.column, again.notes) == \
            (error.message, error.file, error.line, error.column, error.notes)


def test_functions_go_to_other_processes():
    assert pickle.loads(pickle.dumps(heddle.run)) is heddle.run and copy.deepcopy(heddle.sim) is heddle.sim
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(heddle.check, ["x = 1"]) == [""]
        with pytest.raises(heddle.CompileError, match="undefined variable 'yy'"):
            pool.map(heddle.run, ["x = yy"])


def test_sessions_are_like_dicts():
    session = heddle.Session()
    assert repr(session) == "<heddle.Session: no variables>" and session
    session["a"] = 1
    assert list(session) == ["a"] and len(session) == 1 and repr(session) == "<heddle.Session: a>"
    with pytest.raises(heddle.NotFoundError, match="the session has no variable 'b'; it has a"):
        session["b"]
    for wrong in (lambda: session.run(5), lambda: session.type_of(5), lambda: session.complete(5),
                  lambda: session.__setitem__(5, 1)):
        with pytest.raises(heddle.UsageError, match="a text is needed, not a int"):
            wrong()
    with pytest.raises(heddle.UsageError, match="this session runs a statement; it takes one at a time"):
        session.run("print(1)", print=lambda text: session.run("x = 1"))


def test_no_standard_output():
    ended = python("import sys; sys.stdout = None; import heddle; heddle.run('print(1)')")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("script, options", [
    ("s = 0.0\\nwhile (TRUE) s = s + 1", ""), ("while (TRUE) print(1)", ", print=lambda text: None")])
def test_python_ends_while_a_daemon_runs_a_script(script, options):
    ended = python(f"""
        import heddle, threading, time
        threading.excepthook = lambda hooked: None
        begun = threading.Event()
        def run():
            begun.set()
            heddle.run("{script}"{options})
        threading.Thread(target=run, daemon=True).start()
        begun.wait()
        time.sleep(0.2)
        print("bye")
        """, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "bye\n", "")


def test_the_system_gives_no_thread():
    stacks = 2**47  # none fits
    ended = python("""
        import heddle
        try:
            heddle.run("s = 1")
        except heddle.ResourceError as error:
            print(error)
        """, before=lambda: resource.setrlimit(resource.RLIMIT_STACK, (stacks, resource.RLIM_INFINITY)))
    assert (ended.returncode, ended.stdout) == (0, "the system gives no thread for the run\n"), ended.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become a user whose threads are few")
def test_the_system_gives_few_threads():
    ended = python("""
        import os, resource, sys
        import heddle
        script = "R = matrix(0, 8, 1); parfor (i in 1:8) { R[i, 1] = sum(rand(rows=100, cols=100, seed=i)) }; s = sum(R)"
        for threads in range(1, 13):
            child = os.fork()
            if child == 0:
                try:
                    os.setuid(60000 + os.getppid() % 5000)
                except OSError:  # A namespace in which there are no other users.
                    sys.exit(77)
                resource.setrlimit(resource.RLIMIT_NPROC, (threads, threads))
                try:
                    heddle.run(script, outputs="s", threads=4, fusion="off")
                except heddle.ResourceError as error:
                    assert "the system gives no thread for the run" in str(error)
                    sys.exit(5)
                sys.exit()
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """)
    codes = ended.stdout.split()
    if set(codes) == {"77"}:
        pytest.skip("nobody else can be here")
    assert len(codes) == 12 and set(codes) == {"5", "0"} and codes == sorted(codes, reverse=True), ended.stdout + ended.stderr


def test_the_address_space_has_no_room_for_threads():
    ended = python("""
        import heddle, resource
        heddle.run("s = 1", threads=1)
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, resource.RLIM_INFINITY))
        for run in (heddle.Session(threads=1).run, lambda script: heddle.run(script, threads=1)):
            try:
                run("s = 1")
            except heddle.ResourceError as error:
                print(error)
        """, before=lambda: resource.setrlimit(resource.RLIMIT_STACK, (2**23, resource.RLIM_INFINITY)))
    text = ("out of memory: a run with threads=1 takes 75497472 bytes of address space beside its values, and there are fewer\n"
            "allow more with ulimit -v, or use fewer threads\n")
    assert (ended.returncode, ended.stdout) == (0, 2 * text), ended.stderr


# What asks for memory, each with what is to be there before the limit is set.
SCARCE = {
    "first run": ("", "heddle.run('s = sum(rand(rows=10, cols=10, seed=1))')"),
    "later run": ("heddle.run('s = 1')", "heddle.run('s = sum(rand(rows=1000, cols=1000, seed=1) %*% matrix(1, 1000, 1000))')"),
    "engine": ("heddle.run('s = 1')", "heddle.run('s = 1', threads=3, seed=7)"),
    "parfor": ("heddle.run('s = 1')", "heddle.run('s = 0; parfor (i in 1:8) { s += sum(rand(rows=10, cols=10, seed=i)) }')"),
    "array in": ("X = numpy.ones((3000, 1000), order='F'); heddle.run('s = 1')", "heddle.run('s = sum(X)', {'X': X}, 's')"),
    "texts in": ("T = pandas.Series(['text'] * 300000, dtype=object); heddle.run('s = 1')",
                 "heddle.run('s = nrow(T)', {'T': T}, 's')"),
    "list in": ("L = [['a', 1, 2]] * 30000; heddle.run('s = 1')", "heddle.run('s = length(L)', {'L': L}, 's')"),
    "array out": ("heddle.run('s = 1')", "heddle.run('X = matrix(1, 3000, 1000)', outputs='X')"),
    "texts out": ("heddle.run('s = 1')", "heddle.run('F = as.frame(matrix(1, 300000, 1)); s = 1', outputs='F').F.to_dict()"),
    "session": ("heddle.run('s = 1')", "s = heddle.Session(); s['X'] = numpy.ones((1000, 1000)); s.run('Y = X %*% X'); s['Y']"),
}


@pytest.mark.parametrize("name", SCARCE)
def test_memory_is_scarce(name):
    if name == "texts in":
        pytest.importorskip("pandas")
    before, action = SCARCE[name]
    ended = python(f"""
        import os, resource, sys
        import heddle, numpy
        {"import pandas" if "pandas" in before else ""}
        for megabytes in (5, 10, 20, 50, 100, 200):
            child = os.fork()
            if child == 0:
                {before}
                with open("/proc/self/statm") as file:
                    used = int(file.read().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20), resource.RLIM_INFINITY))
                try:
                    {action}
                except heddle.ResourceError as error:
                    assert str(error)
                sys.exit()
            print(megabytes, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """)
    assert ended.stdout == "5 0\n10 0\n20 0\n50 0\n100 0\n200 0\n", ended.stdout + ended.stderr


def test_a_script_runs_when_python_ends():
    ended = python("""
        import atexit, heddle
        atexit.register(lambda: print(heddle.run("s = 1", outputs="s").s))
        heddle.run("s = 2")
        """)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1\n", "")


def test_sim_checks_names_and_arguments():
    cluster = heddle.sim(workers=1)
    with pytest.raises(heddle.CompileError, match="'if' is no name of a variable"):
        cluster.run("a = 1", {"if": 1})
    with pytest.raises(heddle.CompileError, match="there is no variable 'zz' at the end of the script\nit is asked for"):
        cluster.run("a = 1", outputs="zz")
    with pytest.raises(heddle.UsageError, match="a text with a character of number 0"):
        cluster.run("a = x", {"x": "a\0b"})
    with pytest.raises(heddle.UsageError, match="workers is a whole number of at least 1, not True"):
        heddle.sim(workers=True)
    assert cluster.run("x = $1; y = $2", args=["q", "-1"], outputs=["x", "y"]) == {"x": "q", "y": -1}
