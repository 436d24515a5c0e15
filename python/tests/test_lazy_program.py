# SPDX-License-Identifier: Apache-2.0
"""Programs of lazy arrays: what is computed, when, and what it looks like."""

import gc
import sys
import threading
import time
import traceback
import warnings

import numpy as np
import pytest

import heddle as hd
from heddle.lazy import _compute


@pytest.fixture
def programs(monkeypatch):
    """The texts of all programs that run."""
    texts = []
    render = _compute.render

    def observed(nodes):
        program = render(nodes)
        texts.append(program.text)
        return program

    monkeypatch.setattr(_compute, "render", observed)
    return texts


def test_nothing_runs_before_it_is_asked_for(programs):
    x = hd.array(np.ones((1000, 5)))
    y = np.ones(1000)
    result = ((x - x.mean(0)) / (1 + x.std(0))).T @ y
    assert repr(result) == "<heddle.Array 5 float64, lazy: (t(... / ...)) %*% y, 40 B>"
    assert repr(hd.lm(x, y)) == "<heddle.Array ?x? float64, lazy: lm(an array, y=y), ? bytes>"
    result.dml(), len(x), result.shape, result.nbytes, x[2:4, 1], hd.read("no such file.csv")
    assert programs == []
    result.compute()
    assert len(programs) == 1


def test_repr_tells_shape_type_origin_and_bytes():
    X = np.zeros((1000, 5))
    x = hd.array(X)
    assert repr(x) == "<heddle.Array 1000x5 float64, lazy: X, 40 kB>"
    assert repr(x > 0) == "<heddle.Array 1000x5 bool, lazy: X > 0, 5 kB>"
    assert repr(x.sum()) == "<heddle.Array scalar float64, lazy: sum(X), 8 B>"
    total = x.sum()
    total.compute()
    assert repr(total) == "<heddle.Array scalar float64, computed: an array, 8 B>"
    assert str(hd.read("data.csv", header=True)) == (
        '<heddle.Array ?x? float64, lazy: read("data.csv", header=TRUE), ? bytes>')


def test_values_are_computed_once(programs):
    x = hd.array(np.arange(12.0).reshape(3, 4))
    squares = x ** 2
    squares.compute()
    squares.compute()
    assert len(programs) == 1
    assert (squares + 1).dml() == "result = X + 1\n"  # later programs begin with the value
    assert float((squares + 1).sum()) == float((np.arange(12.0) ** 2 + 1).sum())
    assert len(programs) == 2


def test_several_values_are_one_program(programs):
    X = np.arange(12.0).reshape(3, 4)
    x = hd.array(X)
    centered = x - x.mean(0)
    total, greatest, (nested, seven) = hd.compute(centered.sum(), centered.max(), [centered, 7])
    assert len(programs) == 1 and programs[0].count("colMeans") == 1
    assert (total, greatest, seven) == (0.0, 4.0, 7)
    np.testing.assert_array_equal(nested, X - X.mean(0))
    assert hd.compute({"a": x.sum()}) == ({"a": 66.0},)


def test_equal_expressions_are_one_step():
    x = hd.array(np.ones((3, 4)))
    twice = (np.exp(x) + 1) * (np.exp(x) + 1)
    assert twice.dml().count("exp") == 1
    assert (hd.array(x.compute()) + 0).dml().count("\n") == 1


def test_the_program_reads_as_the_python_does():
    X, y = np.ones((10, 3)), np.ones(10)
    x = hd.array(X)
    scaled = (x - x.mean(0)) / x.std(0)
    gram = scaled.T @ scaled
    w = np.linalg.solve(gram, scaled.T @ y)
    assert w.dml() == """\
t1 = (X - colMeans(X)) / sqrt(colVars(X) * 0.9)
t2 = t(t1)
t3 = t2 %*% t1
result = solve(t3, t2 %*% y)
"""


def test_names_of_variables_are_taken_for_inputs():
    weights, if_ = np.ones(3), np.ones(3)
    assert (hd.array(weights) + if_).dml() == "result = weights + if_\n"
    assert (hd.array(weights, name="w") + 1).dml() == "result = w + 1\n"
    function = np.ones(3)  # a word of DML
    assert (hd.array(function) + 1).dml() == "result = X + 1\n"


def test_ten_thousand_steps():
    X = np.ones((3, 4))
    z, expected = hd.array(X), X
    for _ in range(5000):
        z = z * 0.5 + 1
        expected = expected * 0.5 + 1
    np.testing.assert_array_equal(z.compute(), expected)
    z = hd.array(X)
    for _ in range(10000):
        z = z + z
        z = z / 2
    np.testing.assert_array_equal(z.compute(), X)
    del z
    gc.collect()


def test_making_a_step_is_quick():
    x = hd.array(np.ones((3, 4)))
    y = x.mean(0)
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(2000):
            x - y
        best = min(best, time.process_time() - start)
    assert best / 2000 < 20e-6  # 2 to 4 on a quiet machine


def test_explain_shows_the_stages_of_the_compiler():
    x = hd.array(np.ones((3, 4)))
    assert "colMeans" in (x - x.mean(0)).explain()
    assert "memo" in (x - x.mean(0)).explain("fusion")
    with pytest.raises(hd.UsageError, match="stages are"):
        x.sum().explain("nonsense")


def test_a_report_says_what_took_the_time(tmp_path):
    x = hd.array(np.ones((300, 40)))
    total = (x @ x.T).sum()
    total.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    assert "%*%" in page
    assert float(total) == 300 * 300 * 40
    (x + 1).compute(report=tmp_path / "second.html", trace=tmp_path / "trace.json")
    assert (tmp_path / "second.html").exists() and (tmp_path / "trace.json").read_text().startswith(("{", "["))
    with pytest.raises(hd.UsageError, match="in this process"):
        (x + 2).compute(on=hd.sim(workers=1), report=tmp_path / "third.html")


def test_options_of_the_run():
    x = hd.array(np.full((3, 4), 1 / 3))
    assert (x + 0).compute(threads=1)[0, 0] == 1 / 3
    assert (x + 0).compute(precision="single")[0, 0] == np.float32(1 / 3)
    with pytest.raises(hd.UsageError, match="memory"):
        (x + 1).compute(memory="a lot")


def test_worker_processes_compute_the_same():
    X = np.arange(12.0).reshape(4, 3)
    x = hd.array(X)
    workers = hd.sim(workers=2)
    np.testing.assert_array_equal((x - x.mean(0)).compute(on=workers), X - X.mean(0))
    assert (x > 3).sum().compute(on=workers) == 8
    with pytest.raises(hd.Error) as caught:
        np.linalg.inv(x[:3] - x[:3]).compute(on=workers)  # on workers
    assert any("# on workers" in note for note in caught.value.notes)


def test_threads_compute_at_once():
    x = hd.array(np.arange(1000.0))
    results = []
    threads = [threading.Thread(target=lambda i=i: results.append(float((x * i).sum()))) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [499500.0 * i for i in range(8)]


# --- errors ---

def failing_frames(error):
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def test_wrong_shapes_raise_in_the_line_that_has_them():
    x = hd.array(np.ones((3, 4)))
    for attempt, text in [
            (lambda: x @ x, "@: shapes 3x4 and 3x4 do not fit: 4 columns and 3 rows"),
            (lambda: x + np.ones(3), r"\+: shapes 3x4 and 3 do not fit; an array of 3 is a row beside one of two "
                                     r"dimensions: \[:, None\] makes a column of it"),
            (lambda: x.reshape(5, 5), r"reshape: 12 cells, shape 3x4, do not fit into \(5, 5\)"),
            (lambda: x[3], "index 3 is out of range for axis 0, which has 3"),
            (lambda: x[[0, 7]], "index 7 is out of range for axis 0, which has 3"),
            (lambda: np.concatenate([x, x.T]), "concatenate along axis 0: shapes 3x4, 4x3 do not fit"),
            (lambda: np.linalg.solve(x, np.ones(3)), "solve takes a square matrix, this one is 3x4"),
            (lambda: np.linalg.inv(x), "inv takes a square matrix, this one is 3x4"),
            (lambda: np.where(x > 0, np.ones(7), x), "where: shapes 3x4 and 7 and 3x4 do not fit"),
            (lambda: x.at[0].set(np.ones(3)), "assignment: an array of 1x3 does not fit into 1x4"),
            (lambda: np.squeeze(x, 0), "squeeze: axis 0 has 3 cells, not one")]:
        with pytest.raises(hd.ShapeError, match=text) as caught:
            attempt()
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, hd.UsageError)
        own = [name for name in failing_frames(caught.value) if "heddle" in name.rsplit("/", 3)[-3:] or "/lazy/" in name]
        assert not [name for name in own if name.endswith((".py",)) and "test_lazy" not in name]


def test_a_failure_at_run_time_names_the_line_of_python():
    values = hd.array(np.array([[1.0, 2.0], [2.0, 4.0]]))
    singular = np.linalg.inv(values - values)  # the line that is named
    with pytest.raises(hd.Error) as caught:
        (singular + 1).compute()
    text = "".join(traceback.format_exception(type(caught.value), caught.value, caught.value.__traceback__))
    assert "in Python: " in text and "np.linalg.inv(values - values)  # the line that is named" in text
    assert caught.value.line >= 1 and caught.value.file == "lazy.dml"


def test_shapes_that_only_the_run_tells():
    x = hd.array(np.arange(12.0).reshape(4, 3))
    kept = x[x[:, 0] > 2]
    assert kept.shape == (None, 3)
    assert (kept - kept.mean(0)).shape == (None, 3)
    np.testing.assert_array_equal((kept - kept.mean(0)).compute(), [[-3.0] * 3, [0.0] * 3, [3.0] * 3])
    with pytest.raises(TypeError, match="known once the array is computed"):
        len(x[x[:, 0] > 3])
    with pytest.raises(hd.Error) as caught:
        (kept + np.ones((2, 3))).compute()
    assert "3x3" in str(caught.value)
    assert kept.compute() is not None and kept.shape == (3, 3) and len(kept) == 3


def test_what_has_no_meaning_says_what_to_do():
    x = hd.array(np.ones((3, 4)))
    for attempt, kind, text in [
            (lambda: list(x), TypeError, "not iterated over"), (lambda: 1 in x, TypeError, r"\(x == value\).any\(\)"),
            (lambda: bool(x), ValueError, "ambiguous"), (lambda: float(x), TypeError, "one cell"),
            (lambda: len(x.sum()), TypeError, "len"), (lambda: x & 1.5, hd.UsageError, "compare first"),
            (lambda: ~x, hd.UsageError, "x == 0"), (lambda: -(x > 0), hd.UsageError, "~ inverts"),
            (lambda: hd.array("text"), hd.UsageError, "no number"),
            (lambda: hd.array(np.ones((2, 2, 2))), hd.UsageError, r"reshape\(2, -1\)"),
            (lambda: hd.array(np.array([1j])), hd.UsageError, "no real numbers"),
            (lambda: x.astype(complex), hd.UsageError, "no dtype of Heddle"), (lambda: x[1.5], hd.UsageError, "no index"),
            (lambda: np.nextafter(x, 1), hd.UsageError, "numpy.nextafter of lazy arrays is not built"),
            (lambda: np.fft.fft(x), hd.UsageError, "not built"), (lambda: x + "text", TypeError, "unsupported"),
            (lambda: hash(x) and {x: 1}[hd.array(1)], KeyError, "Array"),
            (lambda: hd.rand(2, 2, pdf="cauchy"), hd.UsageError, "pdf is one of"),
            (lambda: x.report("f.html"), hd.UsageError, "computed already"),
            (lambda: x.sum().report("/no such folder/f.html"), hd.Error, "no such folder"),
            (lambda: hd.compute(x.sum(), on="a"), hd.UsageError, "heddle.sim")]:
        with pytest.raises(kind, match=text):
            attempt()


def test_warnings_name_the_line_of_the_user():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hd.seq(0.05, 0.95, 0.05).compute()
    assert all(warning.filename == __file__ for warning in caught)


def test_a_backslash_in_a_text(tmp_path):
    path = tmp_path / "a\\new.csv"  # no literal of DML says it: the text is an input
    path.write_text("1,2\n3,4\n")
    assert hd.read(path).sum().compute() == 10
    assert "read(" in hd.read(path).explain()


def test_reading_files(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("1,2\n3,4\n")
    x = hd.read(path)
    assert x.shape == (None, None)
    np.testing.assert_array_equal((x + 1).compute(), [[2, 3], [4, 5]])
    (tmp_path / "x.csv.mtd").write_text('{"data_type": "matrix", "rows": 2, "cols": 2, "format": "csv", "header": false}')
    assert hd.read(path).shape == (2, 2)
    with pytest.raises(hd.ShapeError):
        hd.read(path) + np.ones((3, 3))
    with pytest.raises(hd.DataError, match="no such file"):
        hd.read(tmp_path / "none.csv").compute()
    with pytest.raises(hd.UsageError, match="data_type"):
        hd.read(path, data_type="tensor")


def test_names_of_the_module():
    with pytest.raises(AttributeError, match="did you mean 'kmeans'"):
        hd.kmeens
    with pytest.raises(AttributeError, match="did you mean 'zeros'"):
        hd.zeroes
    assert "lm" in dir(hd) and "array" in dir(hd)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="add_note")
def test_notes_of_errors():
    x = hd.array(np.zeros((2, 2)))
    with pytest.raises(hd.Error) as caught:
        np.linalg.inv(x).compute()
    assert any("in Python" in note for note in caught.value.__notes__)
