# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy on lazy arrays, by its protocols."""

import numpy as np
import pytest

import heddle as hd

A = np.random.default_rng(5).standard_normal((6, 4))
SQUARE = A.T @ A + np.eye(4)
VECTOR = A[:, 0]
WITH_NAN = np.where(A > 1, np.nan, A)


def same(lazy, expected, **tolerance):
    if isinstance(expected, (tuple, list)):
        assert len(lazy) == len(expected)
        for one, other in zip(lazy, expected):
            same(one, other, **tolerance)
        return
    assert isinstance(lazy, hd.Array)
    value = np.asarray(lazy)
    expected = np.asarray(expected)
    assert value.shape == expected.shape and value.dtype == expected.dtype
    np.testing.assert_allclose(value, expected, **{"rtol": 1e-9, "atol": 1e-11, **tolerance})


@pytest.mark.parametrize("call", [
    lambda a, s, v: np.concatenate([a, a], axis=1), lambda a, s, v: np.concatenate([v, v]),
    lambda a, s, v: np.concatenate([a, a], axis=None), lambda a, s, v: np.stack([v, v], axis=1),
    lambda a, s, v: np.stack([v, v]), lambda a, s, v: np.vstack([a, a]), lambda a, s, v: np.vstack([v, v]),
    lambda a, s, v: np.hstack([a, a]), lambda a, s, v: np.hstack([v, v]), lambda a, s, v: np.column_stack([v, a]),
    lambda a, s, v: np.append(a, a, axis=0), lambda a, s, v: np.split(a, 2), lambda a, s, v: np.split(a, [1, 3], axis=1),
    lambda a, s, v: np.array_split(a, 4), lambda a, s, v: np.array_split(v, 8),
    lambda a, s, v: np.tile(a, (2, 3)), lambda a, s, v: np.tile(v, 2), lambda a, s, v: np.repeat(a, 2, axis=1),
    lambda a, s, v: np.repeat(v, 3), lambda a, s, v: np.flip(a), lambda a, s, v: np.flip(a, 1), lambda a, s, v: np.fliplr(a),
    lambda a, s, v: np.flipud(a), lambda a, s, v: np.roll(a, 2, axis=0), lambda a, s, v: np.roll(a, -1, axis=1),
    lambda a, s, v: np.roll(a, 3), lambda a, s, v: np.roll(v, 1), lambda a, s, v: np.sort(a), lambda a, s, v: np.sort(a, axis=0),
    lambda a, s, v: np.sort(a, axis=None), lambda a, s, v: np.argsort(a, axis=0), lambda a, s, v: np.argsort(v),
    lambda a, s, v: np.unique(v), lambda a, s, v: np.take(a, [2, 0], axis=0), lambda a, s, v: np.take(a, [2, 0], axis=1),
    lambda a, s, v: np.take(a, [2, 0, 7]), lambda a, s, v: np.compress(np.array([True, False] * 3), a, axis=0),
    lambda a, s, v: np.tril(a), lambda a, s, v: np.triu(a, 1), lambda a, s, v: np.tril(a, -1), lambda a, s, v: np.diag(s),
    lambda a, s, v: np.diag(v), lambda a, s, v: np.diagonal(a), lambda a, s, v: np.trace(s), lambda a, s, v: np.trace(a),
    lambda a, s, v: np.zeros_like(a), lambda a, s, v: np.ones_like(v, dtype=int), lambda a, s, v: np.full_like(a, 2.5),
    lambda a, s, v: np.nonzero(v > 0), lambda a, s, v: np.nonzero(a > 0), lambda a, s, v: np.where(a > 0),
    lambda a, s, v: np.flatnonzero(a > 0), lambda a, s, v: np.clip(a, -0.5, 0.5), lambda a, s, v: np.round(a, 1),
    lambda a, s, v: np.diff(a), lambda a, s, v: np.diff(a, axis=0), lambda a, s, v: np.diff(v, 2),
    lambda a, s, v: np.isclose(a, a + 1e-9), lambda a, s, v: np.allclose(a, a + 1e-9), lambda a, s, v: np.array_equal(a, a),
    lambda a, s, v: np.count_nonzero(a > 0), lambda a, s, v: np.ptp(a, axis=0), lambda a, s, v: np.median(a),
    lambda a, s, v: np.average(a, axis=0), lambda a, s, v: np.average(v, weights=np.arange(6.0)),
    lambda a, s, v: np.quantile(v, 0.3), lambda a, s, v: np.percentile(a, [5, 50, 99]), lambda a, s, v: np.cov(a, rowvar=False),
    lambda a, s, v: np.cov(a), lambda a, s, v: np.corrcoef(a, rowvar=False), lambda a, s, v: np.vdot(a, a),
    lambda a, s, v: np.expand_dims(v, 1), lambda a, s, v: np.atleast_2d(v), lambda a, s, v: np.transpose(a),
    lambda a, s, v: np.divmod(a, 0.3), lambda a, s, v: np.add.reduce(a), lambda a, s, v: np.maximum.reduce(a, axis=1),
    lambda a, s, v: np.add.accumulate(a, axis=1), lambda a, s, v: np.multiply.outer(v, v), lambda a, s, v: np.squeeze(a[:1]),
    lambda a, s, v: np.linalg.solve(s, v[:4]), lambda a, s, v: np.linalg.solve(s, a[:4]), lambda a, s, v: np.linalg.inv(s),
    lambda a, s, v: np.linalg.det(s), lambda a, s, v: tuple(np.linalg.slogdet(-s)), lambda a, s, v: np.linalg.cholesky(s),
    lambda a, s, v: np.linalg.eigvalsh(s), lambda a, s, v: np.linalg.svd(a, compute_uv=False),
    lambda a, s, v: np.linalg.pinv(a), lambda a, s, v: np.linalg.norm(a), lambda a, s, v: np.linalg.norm(v, 1),
    lambda a, s, v: np.linalg.norm(a, 2), lambda a, s, v: np.linalg.norm(a, axis=1), lambda a, s, v: np.linalg.norm(a, np.inf),
    lambda a, s, v: np.linalg.norm(a, "nuc"), lambda a, s, v: np.linalg.matrix_power(s, 5),
    lambda a, s, v: np.linalg.matrix_power(s, -1), lambda a, s, v: np.linalg.matrix_power(s, 0),
    lambda a, s, v: np.linalg.matrix_rank(a),
])
def test_functions(call):
    same(call(hd.array(A), hd.array(SQUARE), hd.array(VECTOR)), call(A, SQUARE, VECTOR))


def test_a_quantile_of_nan_is_nan():
    v = np.array([3.0, np.nan, 1.0, np.inf])
    for call in (lambda v: np.quantile(v, 0.0), lambda v: np.quantile(v, [0.1, 1.0]), lambda v: np.percentile(v, 50)):
        same(call(hd.array(v)), call(v))
    same(np.quantile(hd.array(v[2:]), 1.0), np.quantile(v[2:], 1.0))


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmin", "nanmax", "nanmean"])
def test_functions_that_pass_over_nan(name):
    for axis in (None, 0, 1):
        same(getattr(np, name)(hd.array(WITH_NAN), axis=axis), getattr(np, name)(WITH_NAN, axis=axis))
    same(np.nan_to_num(hd.array(WITH_NAN)), np.nan_to_num(WITH_NAN))


def test_factors_multiply_to_the_matrix():
    a = hd.array(A)
    q, r = np.linalg.qr(a)
    same(q @ r, A)
    same(q.T @ q, np.eye(4))
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    same((u * s) @ vt, A)
    values, vectors = np.linalg.eigh(hd.array(SQUARE))
    same((vectors * values) @ vectors.T, SQUARE)


def test_least_squares():
    solution, residuals, rank, values = np.linalg.lstsq(hd.array(A), VECTOR + 1, rcond=None)
    expected = np.linalg.lstsq(A, VECTOR + 1, rcond=None)
    same(solution, expected[0])
    same(residuals, expected[1])
    assert int(rank) == 4
    same(values, expected[3])


def test_numpy_arrays_on_the_left():
    same(A + hd.array(A), A + A)
    same(A @ hd.array(A).T, A @ A.T)
    same(np.float64(2) * hd.array(A), 2 * A)
    same(A > hd.array(VECTOR)[:, None], A > VECTOR[:, None])
    x = hd.array(A)
    x += 1
    same(x, A + 1)
    x -= A
    same(x, np.ones_like(A))


def test_ufuncs_of_scipy():
    special = pytest.importorskip("scipy.special")
    same(special.expit(hd.array(A)), special.expit(A))
    same(special.erf(hd.array(A)), special.erf(A))


def test_what_is_not_built_says_so():
    a = hd.array(A)
    for call, text in [(lambda: np.exp(a, out=np.empty((6, 4))), "out=a NumPy array"), (lambda: np.exp(a, where=A > 0), "where="),
                       (lambda: np.einsum("ij->i", a), "numpy.einsum of lazy arrays is not built"),
                       (lambda: np.add.at(a, 0, 1), "not built"), (lambda: np.median(a, axis=0), "not built"),
                       (lambda: np.linalg.svd(a), "full_matrices=False"), (lambda: np.linalg.eig(a), "not built"),
                       (lambda: np.take(a, [0], mode="clip"), "mode is 'raise'"), (lambda: np.quantile(a, -0.5), "q is from 0 to 1"),
                       (lambda: np.split(a, 4), "do not make 4 equal parts"), (lambda: np.split(a, 0), "at least one part")]:
        with pytest.raises(hd.UsageError, match=text):
            call()


# --- the Array API standard ---

def test_namespace_of_the_array_api():
    x = hd.array(A)
    xp = x.__array_namespace__()
    assert xp.__array_api_version__ == "2024.12"
    assert xp.asarray([1, 2]).dtype == xp.int64 and xp.zeros((2, 2)).dtype == xp.float64
    same(xp.matmul(x, xp.matrix_transpose(x)), A @ A.T)
    same(xp.concat([x, x], axis=0), np.concatenate([A, A]))
    same(xp.std(x, axis=0, correction=1), A.std(0, ddof=1))
    same(xp.permute_dims(x, (1, 0)), A.T)
    same(xp.linalg.solve(xp.asarray(SQUARE), xp.asarray(VECTOR[:4])), np.linalg.solve(SQUARE, VECTOR[:4]))
    same(xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1), np.sort(A))
    same(xp.searchsorted(xp.asarray([0.0, 1.0, 2.0]), xp.asarray([0.5, 2.0])), np.array([1, 2]))
    assert xp.isdtype(xp.int64, "integral") and not xp.isdtype(xp.bool, ("integral", "real floating"))
    assert xp.result_type(xp.int64, xp.float64) == xp.float64
