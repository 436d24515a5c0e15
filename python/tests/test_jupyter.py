# SPDX-License-Identifier: Apache-2.0
"""The kernel for notebooks, driven by Jupyter's own client."""

import os
import pathlib
import shutil
import threading
import time

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

import heddle  # noqa: E402


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """The kernel as it is installed."""
    folder = tmp_path / "kernels" / "heddle"
    folder.mkdir(parents=True)
    shutil.copy(pathlib.Path(heddle.__file__).parent / "jupyter" / "kernel.json", folder)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    return tmp_path


def run(kernels, *cells, **options):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, kernel_name="heddle", timeout=120, resources={"metadata": {"path": str(kernels)}},
                            **options).execute()
    return [cell.outputs for cell in notebook.cells]


def text_of(outputs):
    return "".join(output.get("text", "") for output in outputs)


def test_cells_share_variables(kernels):
    outputs = run(kernels, "X = matrix(seq(1, 6), 2, 3)\nf = function(matrix[double] A) return (double s) { s = sum(A) }",
                  "print(f(X))", "s = f(X) + 1", "s", "%who", "%type t(X) %*% X")
    assert text_of(outputs[1]) == "21.0\n" and outputs[2] == [] and text_of(outputs[3]) == "22.0\n"
    assert "X: matrix 2x3" in text_of(outputs[4]) and "value_of_cell" not in text_of(outputs[4])
    assert text_of(outputs[5]) == "matrix 3x3\n"


def test_matrices_are_tables(kernels):
    outputs = run(kernels, "X = matrix(seq(1, 100), 50, 2)", "X", "as.frame(X)", "X[1:2, ] > 2",
                  "rand(rows=30, cols=40, sparsity=0.05, seed=1)")
    table = outputs[1][0]["data"]
    assert table["text/html"].count("<tr>") == 21 and "50 x 2" in table["text/html"]
    assert "99" not in table["text/plain"].split() and "50 x 2" in table["text/plain"]
    assert "C1" in outputs[2][0]["data"]["text/html"]
    assert outputs[4][0]["data"]["text/html"].count("<th>") == 12


def test_errors_stand_in_the_cell(kernels):
    outputs = run(kernels, "x = 1\ny = undefined_name", "x", "stop('no')", "%nothing", allow_errors=True)
    assert outputs[0][0]["output_type"] == "error" and "undefined_name" in "\n".join(outputs[0][0]["traceback"])
    assert outputs[2][0]["ename"] == "ScriptError" and outputs[2][0]["evalue"].endswith("error: no")
    assert outputs[3][0]["evalue"] == "there is no %nothing; %help lists what there is"


def test_plots(kernels):
    pytest.importorskip("matplotlib")
    outputs = run(kernels, "X = rand(rows=20, cols=2, seed=1)", "%plot X", "%plot X[, 1]", "%plot X %*% t(X)")
    for output in outputs[1:]:
        assert output[0]["data"]["image/png"].startswith("iVBOR")


def test_help(kernels):
    outputs = run(kernels, "%help lm", "%help", "%explain x = sum(rand(rows=3, cols=3))")
    assert "linear" in text_of(outputs[0]) and "%plot EXPRESSION" in text_of(outputs[1])
    assert "sum" in text_of(outputs[2])


def test_an_interrupt_ends_the_cell(kernels):
    from jupyter_client.manager import start_new_kernel
    manager, client = start_new_kernel(kernel_name="heddle", cwd=str(kernels))
    try:
        client.execute_interactive("k = 5", timeout=60)
        timer = threading.Timer(1.0, manager.interrupt_kernel)
        timer.start()
        reply = client.execute_interactive("i = 0; while (i < 1000000000) { i = i + 1 }", timeout=60,
                                           output_hook=lambda message: None)
        assert reply["content"]["status"] == "error" and reply["content"]["ename"] == "KeyboardInterrupt"
        said = []
        client.execute_interactive("print(k)", timeout=60, output_hook=lambda message: said.append(
            message["content"].get("text", "")))
        assert "5\n" in "".join(said)
        completion = client.complete("y = colMea", reply=True, timeout=60)["content"]
        assert "colMeans" in completion["matches"] and completion["cursor_start"] == 4
        found = client.inspect("lm(X)", 1, reply=True, timeout=60)["content"]
        assert found["found"] and "linear" in found["data"]["text/plain"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_notebook_of_the_examples(kernels):
    path = pathlib.Path(__file__).parents[2] / "examples" / "tour.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, kernel_name="heddle", timeout=120,
                            resources={"metadata": {"path": str(path.parent)}}).execute()
    assert any("text/html" in output.get("data", {}) for cell in notebook.cells if cell.cell_type == "code"
               for output in cell.outputs)
