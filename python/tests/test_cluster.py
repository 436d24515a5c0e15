# SPDX-License-Identifier: Apache-2.0
"""The same scripts on worker processes."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy
import pytest

import heddle
from heddle._cluster import program

SCRIPT = "B = solve(t(X) %*% X, t(X) %*% y)\nS = colSums(X) * k; L = list(a=1, b='x', M=S)\nprint('done')"
NAMES = ["B", "S", "L", "k", "flag", "t"]


def inputs():
    random = numpy.random.default_rng(7)
    return {"X": random.random((200, 5)), "y": random.random((200, 1)), "k": 0.1, "flag": True,
            "t": "a 'quoted' \"text\"\nof two lines \\"}


def check_same(results, printed):
    expected = heddle.run(SCRIPT, inputs(), NAMES, print=lambda text: None)
    assert list(results) == NAMES
    for name in ("B", "S"):
        assert results[name].tobytes() == expected[name].tobytes()
    assert (results.k, results.flag, results.t) == (0.1, True, inputs()["t"])
    assert results.L["a"] == 1 and results.L["b"] == "x" and results.L["M"].tobytes() == expected.S.tobytes()
    assert "".join(printed) == "done\n"


@pytest.mark.parametrize("workers", [1, 3])
def test_the_same_bytes_on_workers_of_this_machine(workers):
    printed = []
    check_same(heddle.sim(workers, min_distributed_bytes=0).run(SCRIPT, inputs(), NAMES, print=printed.append), printed)


def test_values_of_all_kinds_travel():
    sparse = pytest.importorskip("scipy.sparse")
    given = {"S": sparse.random(40, 30, density=0.1, format="csr", random_state=1), "i": -2**63, "j": 2**62,
             "n": float("nan"), "inf": float("-inf"), "E": numpy.zeros((0, 3)), "empty": ""}
    results = heddle.sim(2).run("x = 1", given, list(given))
    assert abs(results.S - given["S"]).nnz == 0
    assert (results.i, results.j, results.inf, results.empty) == (-2**63, 2**62, float("-inf"), "")
    assert numpy.isnan(results.n) and results.E.shape == (0, 3)
    frame = heddle.run('F = frame(["a", "1", "b", "2"], rows=2, cols=2, schema=["STRING", "INT64"])', outputs="F").F
    assert list(heddle.sim(2).run("G = F", {"F": frame}, "G").G["C1"]) == ["a", "b"]


def test_errors_are_those_of_a_run(tmp_path):
    cluster = heddle.sim(2)
    with pytest.raises(heddle.CompileError) as error:
        cluster.run("Y = X + undefined_name", {"X": numpy.ones((2, 2))}, "Y")
    assert (error.value.line, error.value.column) == (1, 9)
    assert str(error.value).splitlines()[1:3] == ["    1 | Y = X + undefined_name", "      |         ^~~~~~~~~~~~~~"]
    with pytest.raises(heddle.ScriptError, match="script.dml:3:1: error: no") as error:
        cluster.run("a = 1\n\nstop('no')")
    assert error.value.line == 3 and error.value.message == "no"
    with pytest.raises(heddle.CompileError, match="'a b' is no name of a variable"):
        cluster.run("x = 1", {"a b": 1})
    with pytest.raises(heddle.UsageError, match="workers is a whole number"):
        heddle.sim(0)
    with pytest.raises(heddle.DataError, match="there is no folder"):
        heddle.connect("localhost:1", folder="/nowhere")
    token = tmp_path / "token"
    token.write_text("t" * 40)
    token.chmod(0o600)
    with pytest.raises(heddle.UnreachableError, match="no master at localhost:1"):
        heddle.connect("localhost:1", token_file=token).run("x = 1")
    assert "sim, 2 workers" in repr(cluster)


def test_nothing_is_left_behind(tmp_path):
    code = textwrap.dedent(f"""
        import heddle, os, signal, threading, time, numpy
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells ignore for what runs in the background
        def interrupt():
            time.sleep(1.5)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            heddle.sim(2).run("i = 0; while (i < 1000000000) {{ i = i + 1 }}", {{"X": numpy.ones((3, 3))}})
        except KeyboardInterrupt:
            print("interrupted")
        """)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                            env={**os.environ, "TMPDIR": str(tmp_path)})
    assert result.stdout == "interrupted\n", result.stderr
    assert [name for name in os.listdir(tmp_path) if name.startswith(".heddle-python-")] == []


def wait_for(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)  # looks again


def test_a_folder_that_no_script_can_name(tmp_path, monkeypatch):
    (tmp_path / "a\\b").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "a\\b"))
    with pytest.raises(heddle.UsageError, match="which no script can name"):
        heddle.sim(workers=1).run("y = x", {"x": [1, 2]}, "y")
    assert list((tmp_path / "a\\b").iterdir()) == []


def test_a_cluster(tmp_path, monkeypatch):
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "XDG_RUNTIME_DIR": str(tmp_path / "run"),
                   "HOME": str(tmp_path)}
    (tmp_path / "run").mkdir(mode=0o700)
    for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HOME"):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.chdir(tmp_path)
    daemons = []
    try:
        for words in (["master", "--dev"], ["worker"], ["worker"]):
            log = open(tmp_path / f"daemon{len(daemons)}.log", "wb")
            daemons.append(subprocess.Popen([program(), *words], env=environment, stdout=log, stderr=log))

        def workers():
            nodes = subprocess.run([program(), "admin", "nodes"], env=environment, capture_output=True, text=True)
            return nodes.returncode == 0 and nodes.stdout.count("ALIVE") >= 2

        wait_for(workers, "no two workers came")
        printed = []
        check_same(heddle.connect(workers=2).run(SCRIPT, inputs(), NAMES, print=printed.append), printed)
        with pytest.raises(heddle.ScriptError, match="no"):
            heddle.connect().run("stop('no')")

        def interrupt(text):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            heddle.connect(workers=1).run("print('begun'); i = 0; while (i < 1000000000) { i = i + 1 }", print=interrupt)

        def cancelled():
            jobs = subprocess.run([program(), "job", "list"], env=environment, capture_output=True, text=True).stdout
            return "CANCELLED" in jobs and "RUNNING" not in jobs

        wait_for(cancelled, "the job was not cancelled")
    finally:
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in daemons:
            daemon.wait(timeout=30)
    assert [name for name in os.listdir(tmp_path) if name.startswith(".heddle-python-")] == []
