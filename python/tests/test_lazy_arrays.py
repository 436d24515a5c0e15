# SPDX-License-Identifier: Apache-2.0
"""Lazy arrays give what NumPy gives."""

import operator
import random

import numpy as np
import pytest

import heddle as hd


def assert_same(lazy, expected):
    """Value, shape and dtype are those of NumPy."""
    assert isinstance(lazy, hd.Array)
    expected = np.asarray(expected)
    assert lazy.dtype == expected.dtype
    announced = lazy.shape
    value = np.asarray(lazy)
    assert value.shape == expected.shape
    if None not in announced:
        assert announced == expected.shape
    assert value.dtype == expected.dtype
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12)


GENERATOR = np.random.default_rng(20261129)
FLOATS = GENERATOR.standard_normal((7, 5))
OTHERS = GENERATOR.standard_normal((7, 5))
INTEGERS = GENERATOR.integers(-9, 10, (7, 5))
BOOLEANS = GENERATOR.random((7, 5)) > 0.4
# Operands of every form that broadcasting knows.
OPERANDS = {
    "matrix": FLOATS, "row": FLOATS[:1], "column": FLOATS[:, :1], "cell": FLOATS[:1, :1], "flat": FLOATS[0],
    "one": FLOATS[0, :1], "number": 1.5, "integers": INTEGERS, "flat integers": INTEGERS[3], "integer": 3,
    "booleans": BOOLEANS, "boolean": True,
}
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
             operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, np.maximum, np.minimum,
             np.logical_and, np.logical_or, np.logical_xor, np.hypot, np.arctan2, np.logaddexp]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("operation", OPERATORS, ids=lambda operation: operation.__name__)
@pytest.mark.parametrize("left", OPERANDS)
def test_operators_broadcast_as_numpy(operation, left):
    expected, lazy = [], []
    for right in OPERANDS:
        for one, other in ((OPERANDS[left], OPERANDS[right]), (OPERANDS[right], OPERANDS[left])):
            if not isinstance(one, np.ndarray) and not isinstance(other, np.ndarray):
                continue
            # NumPy has no difference of booleans; whole numbers over 0 are anything.
            if operation in (operator.floordiv, operator.mod):
                other = np.where(np.asarray(other) == 0, 2, other) if isinstance(other, np.ndarray) else other
            try:
                value = operation(one, other)
            except TypeError:
                with pytest.raises(hd.UsageError):
                    operation(hd.array(one), hd.array(other))
                continue
            if value.dtype == np.int8:  # what NumPy has of two booleans
                value = value.astype(np.int64)
            if value.dtype == np.float16:
                continue
            expected.append(value)
            lazy.append(operation(hd.array(one) if isinstance(one, np.ndarray) else one,
                                  hd.array(other) if isinstance(other, np.ndarray) or not isinstance(one, np.ndarray)
                                  else other))
    hd.compute(lazy)
    for one, value in zip(lazy, expected):
        assert_same(one, value)


@pytest.mark.parametrize("name", [
    "exp", "sin", "cos", "tan", "tanh", "sinh", "cosh", "arctan", "arcsinh", "abs", "fabs", "sign", "negative", "positive",
    "floor", "ceil", "trunc", "rint", "square", "expm1", "exp2", "cbrt", "isnan", "isinf", "isfinite", "deg2rad",
    "rad2deg", "radians", "degrees", "logical_not", "reciprocal"])
def test_functions_of_one_array(name):
    function = getattr(np, name)
    assert_same(function(hd.array(FLOATS)), function(FLOATS))
    assert_same(function(hd.array(FLOATS)[0]), function(FLOATS[0]))
    assert_same(function(hd.array(FLOATS)[2, 3]), function(FLOATS[2, 3]))


@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p", "sqrt", "arcsin", "arccos", "arctanh"])
def test_functions_of_numbers_between_0_and_1(name):
    cells = np.abs(FLOATS) / 4
    assert_same(getattr(np, name)(hd.array(cells)), getattr(np, name)(cells))


def test_functions_at_their_edges():
    cells = np.array([0.0, 1e-300, 1e-17, 1e-9, 1.0, 709.0, np.inf])
    for name in ("log1p", "expm1", "arcsinh"):
        np.testing.assert_allclose(np.asarray(getattr(np, name)(hd.array(cells))), getattr(np, name)(cells), rtol=1e-14)
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999999999999994, np.inf, -np.inf, np.nan, 2.0**52 + 1])
    np.testing.assert_array_equal(np.asarray(np.round(hd.array(halves))), np.round(halves))
    assert_same(np.round(hd.array(FLOATS), 2), np.round(FLOATS, 2))
    assert_same(np.arccosh(hd.array(1 + np.abs(FLOATS))), np.arccosh(1 + np.abs(FLOATS)))
    assert_same(np.copysign(hd.array(FLOATS), OTHERS), np.copysign(FLOATS, OTHERS))


REDUCTIONS = ["sum", "prod", "mean", "min", "max", "std", "var", "any", "all", "argmin", "argmax"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("cells", [FLOATS, FLOATS[0], FLOATS[:1], FLOATS[:, :1], INTEGERS, BOOLEANS], ids=str)
def test_reductions(name, cells):
    if cells.dtype == bool and name in ("min", "max"):
        pytest.skip("min and max of booleans are all() and any()")
    lazy = hd.array(cells)
    axes = [None, *range(-cells.ndim, cells.ndim)]
    for axis in axes if name in ("argmin", "argmax") else [*axes, ()]:
        expected = getattr(cells, name)(axis=axis)
        assert_same(getattr(lazy, name)(axis=axis), expected)
        assert_same(getattr(np, name)(lazy, axis=axis), expected)
        if name not in ("argmin", "argmax"):
            assert_same(getattr(lazy, name)(axis=axis, keepdims=True), getattr(cells, name)(axis=axis, keepdims=True))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy says that no degree is left
def test_variances_with_other_degrees_of_freedom():
    for ddof in (0, 1, 2):
        for axis in (None, (), 0, 1):
            assert_same(hd.array(FLOATS).var(axis, ddof=ddof), FLOATS.var(axis, ddof=ddof))
            assert_same(np.std(hd.array(FLOATS), axis=axis, ddof=ddof), np.std(FLOATS, axis=axis, ddof=ddof))


def test_extremes_of_equal_cells_and_nan_are_the_first():
    cells = np.array([[1.0, 3, 3, 2], [np.nan, 5, np.nan, 7], [4, 4, 4, 4]])
    for name in ("argmax", "argmin"):
        for axis in (None, 0, 1):
            assert_same(getattr(hd.array(cells), name)(axis), getattr(cells, name)(axis))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_cumulative(name):
    for cells in (FLOATS, FLOATS[0], INTEGERS):
        for axis in (None, *range(cells.ndim)):
            assert_same(getattr(np, name)(hd.array(cells), axis=axis), getattr(np, name)(cells, axis=axis))


INDEXES = [
    np.s_[1], np.s_[-1], np.s_[1:4], np.s_[:2], np.s_[5:], np.s_[-3:-1], np.s_[::2], np.s_[::-1], np.s_[5:1:-2], np.s_[3:3],
    np.s_[:, 2], np.s_[:, -1], np.s_[2, :], np.s_[1:3, 2:4], np.s_[2, 1:3], np.s_[::2, ::-2], np.s_[4, 3], np.s_[..., 1],
    np.s_[1, ...], np.s_[...], np.s_[None, 1], np.s_[1, None], np.s_[:, 0, None], np.s_[[0, 2, 2]], np.s_[[-1, 0]],
    np.s_[:, [1, 0, 4]], np.s_[[1, 2], [0, 3]], np.s_[1:5, [0, 2]], np.s_[np.array([3, 1]), 2:4], np.s_[3, [1, 2]],
    np.s_[FLOATS > 0], np.s_[FLOATS[:, 0] > 0], np.s_[:, FLOATS[0] > 0], np.s_[FLOATS[:, 0] > 99], np.s_[np.int64(2)],
    np.s_[:, 4:1], np.s_[[0]], np.s_[range(2)],
]


@pytest.mark.parametrize("key", INDEXES, ids=str)
def test_indexes(key):
    assert_same(hd.array(FLOATS)[key], FLOATS[key])


def test_indexes_of_one_dimension():
    cells = FLOATS[:, 1]
    for key in (0, -1, slice(2, 5), slice(None, None, -1), [0, 2], cells > 0, Ellipsis, (None, slice(None)),
                (slice(None), None), slice(4, 2)):
        assert_same(hd.array(cells)[key], cells[key])


def test_lazy_arrays_are_indexes():
    x, order = hd.array(FLOATS), np.argsort(FLOATS[:, 0])
    assert_same(x[np.argsort(x[:, 0])], FLOATS[order])
    assert_same(x[x[:, 1] > 0], FLOATS[FLOATS[:, 1] > 0])
    assert_same(x[x[:, 0].argmax()], FLOATS[FLOATS[:, 0].argmax()])
    assert_same(x[x[:, 0].argmax(), 2], FLOATS[FLOATS[:, 0].argmax(), 2])


@pytest.mark.parametrize("key, value", [
    (np.s_[1], 7.0), (np.s_[1], FLOATS[0] * 2), (np.s_[:, 1], FLOATS[:, 0] * 2), (np.s_[2, 3], -1.0),
    (np.s_[1:3, 2:4], 5.0), (np.s_[1:3], FLOATS[:2]), (np.s_[1:3], FLOATS[0]), (np.s_[:, 1:3], FLOATS[:, :1]),
    (np.s_[...], 2.0), (np.s_[FLOATS > 0], 0.0), (np.s_[FLOATS[:, 0] > 0], 1.0), (np.s_[[0, 3]], 4.0),
    (np.s_[[3, 0]], FLOATS[:2]), (np.s_[[1, 1]], FLOATS[:2]), (np.s_[[0, 2]], FLOATS[1]), (np.s_[::2], 3.0),
    (np.s_[:, [1, 3]], 9.0), (np.s_[:, [3, 1]], FLOATS[:, :2]), (np.s_[3:3], 1.0), (np.s_[-1, -1], 8.0)], ids=str)
def test_assignment_makes_a_new_array(key, value):
    expected = FLOATS.copy()
    expected[key] = value
    x = hd.array(FLOATS)
    before = x + 0
    assert_same(x.at[key].set(value), expected)
    assert_same(x, FLOATS)
    x[key] = value
    assert_same(x, expected)
    assert_same(before, FLOATS)


def test_changes_at_an_index():
    for name, ufunc in (("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide),
                        ("min", np.minimum), ("max", np.maximum)):
        expected = FLOATS.copy()
        expected[1:3] = ufunc(expected[1:3], 0.5)
        assert_same(getattr(hd.array(FLOATS).at[1:3], name)(0.5), expected)
    assert_same(hd.array(FLOATS).at[1:3].get(), FLOATS[1:3])


def test_integers_stay_integers():
    x = hd.array(INTEGERS)
    expected = INTEGERS.copy()
    x[0] = 2.75
    expected[0] = 2.75
    assert_same(x, expected)
    assert_same(hd.array(FLOATS * 3).astype(int), (FLOATS * 3).astype(int))
    assert_same(hd.array(INTEGERS).astype(bool), INTEGERS.astype(bool))
    assert_same(hd.array(INTEGERS) & 6, INTEGERS & 6)
    assert_same(hd.array(INTEGERS) | BOOLEANS, INTEGERS | BOOLEANS)
    assert_same(~hd.array(INTEGERS), ~INTEGERS)
    assert_same(hd.array(INTEGERS) << 2, INTEGERS << 2)


def test_products():
    a, b, v, w = FLOATS, OTHERS.T, FLOATS[0], OTHERS[:, 0]
    x = hd.array(a)
    assert_same(x @ b, a @ b)
    assert_same(x @ v, a @ v)
    assert_same(w @ x, w @ a)
    assert_same(hd.array(v) @ v, v @ v)
    assert_same(np.dot(x, b), np.dot(a, b))
    assert_same(np.outer(hd.array(v), w), np.outer(v, w))
    assert_same(np.inner(x, a), np.inner(a, a))
    assert_same(np.kron(x, a[:2, :3]), np.kron(a, a[:2, :3]))
    assert_same(hd.array(INTEGERS) @ INTEGERS.T, INTEGERS @ INTEGERS.T)
    assert_same(hd.array(BOOLEANS) @ BOOLEANS.T, BOOLEANS @ BOOLEANS.T)


def test_arrays_from_nothing():
    assert_same(hd.zeros((2, 3)), np.zeros((2, 3)))
    assert_same(hd.ones(4, dtype=int), np.ones(4, dtype=int))
    assert_same(hd.full((2, 2), 2.5), np.full((2, 2), 2.5))
    assert_same(hd.full((2,), True), np.full((2,), True))
    assert_same(hd.eye(3), np.eye(3))
    assert_same(hd.eye(3, 4, k=1), np.eye(3, 4, k=1))
    assert_same(hd.eye(4, 3, k=-2), np.eye(4, 3, k=-2))
    assert_same(hd.eye(1), np.eye(1))
    assert_same(hd.arange(7), np.arange(7))
    assert_same(hd.arange(2, 11, 3), np.arange(2, 11, 3))
    assert_same(hd.arange(5, 0, -2), np.arange(5, 0, -2))
    assert_same(hd.arange(0.5, 2, 0.25), np.arange(0.5, 2, 0.25))
    assert_same(hd.arange(0), np.arange(0))
    assert_same(hd.linspace(0, 1, 7), np.linspace(0, 1, 7))
    assert_same(hd.linspace(0, 1, 4, endpoint=False), np.linspace(0, 1, 4, endpoint=False))
    assert_same(hd.seq(1, 9, 2), np.arange(1, 10, 2))


def test_random_numbers_stay_what_they_are():
    x = hd.rand(50, 3)
    assert_same(x - x, np.zeros((50, 3)))
    first = np.array((x + 0).compute())
    np.testing.assert_array_equal((x + 0).compute(), first)
    assert 0 <= first.min() and first.max() < 1
    np.testing.assert_array_equal(hd.rand(5, 2, seed=3).compute(), hd.rand(5, 2, seed=3).compute())
    normal = hd.rand(20000, pdf="normal", seed=1).compute()
    assert abs(normal.mean()) < 0.05 and abs(normal.std() - 1) < 0.05
    sparse = hd.rand(1000, 100, sparsity=0.01, seed=1)
    assert 500 < int((sparse != 0).sum()) < 1500


def test_shapes_change_as_in_numpy():
    x = hd.array(FLOATS)
    assert_same(x.T, FLOATS.T)
    assert_same(x.reshape(5, 7), FLOATS.reshape(5, 7))
    assert_same(x.reshape(-1), FLOATS.reshape(-1))
    assert_same(x.reshape((35, -1)), FLOATS.reshape((35, -1)))
    assert_same(np.reshape(x, (5, 7), order="F"), np.reshape(FLOATS, (5, 7), order="F"))
    assert_same(x.ravel(), FLOATS.ravel())
    assert_same(hd.array(FLOATS[0]).reshape(1, 5), FLOATS[0].reshape(1, 5))
    assert_same(hd.array(FLOATS[0]).reshape(5, 1), FLOATS[0].reshape(5, 1))
    assert_same(hd.array(FLOATS[:1]).squeeze(), FLOATS[:1].squeeze())
    assert_same(np.expand_dims(hd.array(FLOATS[0]), 0), FLOATS[:1])
    assert_same(x.transpose(1, 0), FLOATS.T)


def test_an_empty_array_has_a_shape_and_sums():
    x = hd.array(np.zeros((0, 3)))
    assert_same(x + 1, np.zeros((0, 3)))
    assert_same(x.sum(0), np.zeros(3))
    assert_same(x.sum(), 0.0)
    assert_same(x.sum(1), np.zeros(0))
    assert_same(x.T @ x, np.zeros((3, 3)))
    with pytest.raises(hd.ShapeError, match="no smallest or greatest"):
        x.min()


def random_expression(random_source, depth):
    """A function of (x, y, v), made of operators that stay among moderate numbers."""
    if depth == 0:
        return random_source.choice([lambda x, y, v: x, lambda x, y, v: y, lambda x, y, v: v, lambda x, y, v: x[2],
                                     lambda x, y, v: y[:, 1:2], lambda x, y, v: 0.5])
    one, other = (random_expression(random_source, depth - 1) for _ in range(2))
    return random_source.choice([
        lambda x, y, v: one(x, y, v) + other(x, y, v), lambda x, y, v: one(x, y, v) - other(x, y, v),
        lambda x, y, v: np.tanh(one(x, y, v)) * other(x, y, v),
        lambda x, y, v: one(x, y, v) / (1 + np.abs(other(x, y, v))),
        lambda x, y, v: np.where(one(x, y, v) > other(x, y, v), one(x, y, v), 0.25),
        lambda x, y, v: np.maximum(one(x, y, v), other(x, y, v)),
        lambda x, y, v: one(x, y, v) - np.mean(other(x, y, v)),
        lambda x, y, v: np.sqrt(np.abs(one(x, y, v))) - 2,
        lambda x, y, v: (one(x, y, v) < other(x, y, v)) * 1.5,
        lambda x, y, v: -np.minimum(one(x, y, v), other(x, y, v)) * np.exp(-np.abs(one(x, y, v)))])


@pytest.mark.parametrize("seed", range(40))
def test_random_expressions(seed):
    random_source = random.Random(seed)
    function = random_expression(random_source, random_source.randint(2, 4))
    expected = np.asarray(function(FLOATS, OTHERS, FLOATS[1]))
    lazy = function(hd.array(FLOATS), hd.array(OTHERS), hd.array(FLOATS[1]))
    if isinstance(lazy, hd.Array):
        assert_same(lazy, expected)


def test_sparse_matrices_and_frames():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.random(50, 20, 0.1, "csr", random_state=1)
    x = hd.array(matrix)
    assert x.shape == (50, 20)
    assert_same(x * 2, matrix.toarray() * 2)
    result = (x * 2).to_scipy()
    assert isinstance(result, sparse.csr_array) and result.nnz == matrix.nnz
    assert_same(hd.array(np.ones(50)) @ x, np.ones(50) @ matrix.toarray())
    assert_same(np.ones((3, 50)) @ x, np.ones((3, 50)) @ matrix.toarray())
    np.testing.assert_allclose(matrix @ hd.array(np.ones(20)), matrix @ np.ones(20))  # SciPy asks for the values
    with pytest.raises(hd.UsageError, match="to_scipy"):
        hd.rand(200000, 50000, sparsity=1e-9, seed=1).compute()
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    assert_same(hd.array(frame) + 1, frame.to_numpy() + 1)


def test_inputs_are_not_copied_and_results_are_not_written_to():
    x = np.ones((1000, 3))
    lazy = hd.array(x)
    assert np.shares_memory(lazy.compute(), x)
    result = (lazy + 1).compute()
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 0
    copy = np.array(lazy + 1)
    copy[0] = 0
    assert hd.array(x.T).compute().flags.c_contiguous


def test_values_of_python():
    x = hd.array(INTEGERS)
    assert float(x.sum()) == INTEGERS.sum() and int(x.max()) == INTEGERS.max() and bool((x > -10).all()) is True
    assert x.sum().item() == INTEGERS.sum() and [10, 20, 30][hd.array([0, 2]).max()] == 30
    assert x.tolist() == INTEGERS.tolist() and complex(x[0, 0]) == complex(INTEGERS[0, 0])
    assert len(x) == 7 and x.size == 35 and x.nbytes == 280 and x.ndim == 2
    assert type(x.sum().compute()) is int and type(x.mean().compute()) is float and type((x > 0).any().compute()) is bool
    assert hd.array(5).compute() == 5 and hd.array([x.sum(), x.max()]).tolist() == [INTEGERS.sum(), INTEGERS.max()]
    np.testing.assert_array_equal(np.from_dlpack(x * 1.0), INTEGERS * 1.0)
