# SPDX-License-Identifier: Apache-2.0
"""Functions of the library on lazy arrays."""

import inspect
import pydoc

import numpy as np
import pytest

import heddle as hd

GENERATOR = np.random.default_rng(3)
X = GENERATOR.standard_normal((200, 4))
Y = X @ [1.0, -2.0, 0.5, 3.0] + 0.1 * GENERATOR.standard_normal(200)


def test_linear_regression():
    b = hd.lm(X, Y, reg=0, verbose=False)
    assert b.shape == (None, None)
    np.testing.assert_allclose(b.compute().ravel(), np.linalg.lstsq(X, Y, rcond=None)[0])
    assert b.shape == (4, 1)
    x = hd.array(X)
    b = hd.lm(x, Y, icpt=1, reg=1e-12, verbose=False)
    rest = x @ b[:4] + b[4] - Y[:, None]
    assert float((rest ** 2).mean()) < 0.02


def test_signature_and_help_are_those_of_the_library():
    signature = inspect.signature(hd.lm)
    assert list(signature.parameters) == ["X", "y", "icpt", "reg", "tol", "maxi", "verbose"]
    assert signature.parameters["icpt"].default == 0 and signature.parameters["verbose"].default is True
    assert signature.parameters["X"].default is inspect.Parameter.empty
    text = pydoc.render_doc(hd.lm, renderer=pydoc.plaintext)
    assert "function in module heddle" in text and "lm(X: heddle.Array, y: heddle.Array, icpt: int = 0" in text
    assert repr(hd.lm) == f"<function heddle.lm{signature}>" and repr(hd.run) == "<function heddle.run>"
    assert hd.lm.__name__ == "lm" and "linear regression" in hd.lm.__doc__ and "coefficients" in hd.lm.__doc__


def test_every_name_that_completion_offers_is_there():
    for name in dir(hd):
        assert getattr(hd, name).__name__.rpartition(".")[2] == name
        assert not isinstance(getattr(hd, name), type) or getattr(hd, name).__module__ == "heddle"
    with pytest.raises(AttributeError, match="no attribute 'linreg'"):
        hd.linreg


def test_several_results_have_names():
    centers = np.array([[0.0, 0.0], [10.0, 10.0], [0.0, 10.0]])
    points = np.repeat(centers, 50, 0) + GENERATOR.standard_normal((150, 2)) * 0.1
    result = hd.kmeans(points, k=3, seed=1)
    assert type(result).__name__ == "kmeans_results" and result._fields == ("C", "Y")
    found, labels = hd.compute(result.C, result.Y)
    assert sorted(map(tuple, np.round(found).tolist())) == sorted(map(tuple, centers.tolist()))
    assert len({labels[i, 0] for i in (0, 50, 100)}) == 3


def test_arguments_by_place_and_by_name():
    assert hd.lm(X, Y, 1).dml() == "result = lm(X, y=Y, icpt=1)\n"
    assert "verbose=FALSE" in hd.lm(X=X, y=Y, verbose=False).dml()
    with pytest.raises(TypeError, match=r"lm\(\): .*'icept'; did you mean 'icpt'\?"):
        hd.lm(X, Y, icept=1)
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        hd.lm(X)
    with pytest.raises(hd.UsageError, match="lm: reg is a number"):
        hd.lm(X, Y, reg="much")
    with pytest.raises(hd.UsageError, match="lm: X is a matrix"):
        hd.lm("X", Y)
    with pytest.raises(hd.UsageError, match="lm: icpt is a number"):
        hd.lm(X, Y, icpt=hd.array(X))


def test_what_the_function_refuses_names_the_line_of_python():
    b = hd.lm(X, Y[:50], verbose=False)  # too few responses
    with pytest.raises(hd.Error, match="one response for each of the 200 rows") as caught:
        (b + 1).compute()
    assert any("# too few responses" in note for note in caught.value.notes)


def test_steps_of_a_pipeline_are_one_program():
    x = hd.array(X)
    scaled = hd.scale(x, True, True)[0] if isinstance(hd.scale(x, True, True), tuple) else hd.scale(x, True, True)
    b = hd.lm(scaled, Y, verbose=False)
    program = b.dml()
    assert "scale(" in program and "lm(" in program
    expected = np.linalg.lstsq((X - X.mean(0)) / X.std(0, ddof=1), Y, rcond=None)[0]
    np.testing.assert_allclose(b.compute().ravel(), expected, rtol=1e-5)


def test_every_function_has_a_signature_and_a_text():
    from heddle.lazy._library import library_function, library_names
    assert len(library_names()) > 150
    for name in sorted(library_names()):
        function = library_function(name)
        assert function.__doc__ and inspect.signature(function) is not None
        assert getattr(hd, name) is not None


def test_beside_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    model = linear_model.Ridge(alpha=2.0, fit_intercept=True).fit(X, Y)
    b = hd.lm(X, Y, icpt=1, reg=2.0, verbose=False).compute().ravel()
    np.testing.assert_allclose(b[:4], model.coef_, rtol=1e-6)
    np.testing.assert_allclose(b[4], model.intercept_, rtol=1e-6)


def test_frames_and_lists():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"n": [1.0, 2.0], "s": ["a", "b"]})
    lazy = hd.array(frame)
    assert repr(lazy) == "<heddle.Lazy frame 2x2, lazy: a frame>"
