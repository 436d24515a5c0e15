# SPDX-License-Identifier: Apache-2.0
"""Statements one after the other."""

import numpy
import pytest

import heddle


def test_variables_and_functions_live_on():
    printed = []
    session = heddle.Session(print=printed.append)
    session["X"] = numpy.arange(6.0).reshape(2, 3)
    session.run("f = function(matrix[double] A) return (double s) { s = sum(A) }")
    session.run("y = f(X)\ny + 1")
    assert session["y"] == 15 and "".join(printed) == "16.0\n"
    assert session.variables == ["X", "y"] and "y" in session and "z" not in session
    assert session.type_of("X %*% t(X)") == "matrix 2x2"
    assert "sum" in session.explain("s = sum(X)")
    with pytest.raises(KeyError):
        session["z"]
    session.clear()
    assert session.variables == []


def test_an_error_leaves_all_as_it_was():
    session = heddle.Session()
    session.run("x = 1")
    with pytest.raises(heddle.ScriptError, match="input:2:8: error: no"):
        session.run("x = 2; stop('no')")
    assert session["x"] == 2  # a statement that ran stays
    with pytest.raises(heddle.CompileError):
        session.run("y = undefined_name")
    with pytest.raises(heddle.UsageError):
        session["x"] = object()


def test_arguments():
    session = heddle.Session(args={"step": 2})
    session.run("x = $step + 1")
    assert session["x"] == 3
    with pytest.raises(heddle.CompileError, match=r'give it with args={"stop": ...}'):
        session.run("y = $stop")


def test_sessions_are_apart():
    one, two = heddle.Session(threads=1), heddle.Session()
    one.run("x = 1")
    two.run("x = 2")
    assert (one["x"], two["x"]) == (1, 2)


def test_variables_larger_than_memory(tmp_path):
    script = "X = rand(rows=600000, cols=10, seed=1)\nY = X * 2 + 1\nwrite(X, 'x.bin', format='binary')\nZ = read('x.bin')"
    statements = script.split("\n") + ["s = sum(Y) + sum(Z * Y)"]

    def run_all(session):
        for statement in statements:
            session.run(statement)
        return session

    whole = run_all(heddle.Session(directory=tmp_path))
    s, y, z = whole["s"], numpy.array(whole["Y"]), numpy.array(whole["Z"])
    del whole  # What others of the process hold counts as well.
    panels = run_all(heddle.Session(memory="32m", spill_folder=tmp_path, directory=tmp_path))
    assert panels["s"] == s
    assert panels.type_of("Y") == "matrix 600000x10, in panels"
    with pytest.raises(heddle.ResourceError, match="does not fit"):
        panels["Y"]
    panels.run("h = Y[1:3,]")
    assert (panels["h"] == y[:3]).all()
    # Rows that do not fit at once come one range after the other.
    for begin in range(0, 600000, 100000):
        rows = f"{begin + 1}:{begin + 100000}"
        panels.run(f"y = Y[{rows},]\nz = Z[{rows},]")
        assert (panels["y"] == y[begin:begin + 100000]).all() and (panels["z"] == z[begin:begin + 100000]).all()
    # The limit was that of the session: another one has none.
    free = heddle.Session(directory=tmp_path)
    free.run("Z = read('x.bin')\nY = Z * 2 + 1")
    assert free.type_of("Y") == "matrix 600000x10"
    assert (free["Y"] == y).all()
    with pytest.raises(heddle.ResourceError, match="does not fit"):
        panels["Y"]


def test_a_spill_folder_that_is_not_there():
    with pytest.raises(heddle.DataError, match="spill_folder: there is no folder"):
        heddle.Session(spill_folder="nowhere")
