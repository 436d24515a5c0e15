# SPDX-License-Identifier: Apache-2.0
"""Loops, branches, functions and derivatives of lazy arrays."""

import numpy as np
import pytest

import heddle as hd

X = np.random.default_rng(7).standard_normal((30, 4))
Y = X @ [1.0, -2.0, 0.5, 3.0] + 0.1 * np.random.default_rng(8).standard_normal(30)


def test_while_loop_is_a_loop_of_the_program():
    root, rounds = hd.while_loop(lambda state: abs(state[0] ** 2 - 2) > 1e-12,
                                 lambda state: ((state[0] + 2 / state[0]) / 2, state[1] + 1), (1.0, 0))
    assert "while (" in root.dml()
    root, rounds = hd.compute(root, rounds)
    assert abs(root - 2**0.5) < 1e-12 and rounds == 5 and type(rounds) is int


def test_loops_carry_arrays_and_read_what_is_outside():
    x, y = hd.array(X), hd.array(Y)
    gram, right = x.T @ x, x.T @ y

    def step(state):
        w, residual, direction = state
        image = gram @ direction
        length = (residual @ residual) / (direction @ image)
        left = residual - length * image
        return w + length * direction, left, left + (left @ left) / (residual @ residual) * direction

    w, residual, _ = hd.while_loop(lambda state: state[1] @ state[1] > 1e-20, step,
                                   (hd.zeros(4), right, right))
    program = w.dml()
    assert program.index("t(x)" if "t(x)" in program else "t(X)") < program.index("while")  # outside of the loop
    np.testing.assert_allclose(w.compute(), np.linalg.lstsq(X, Y, rcond=None)[0], rtol=1e-8)


def test_for_loop_counts_from_0():
    total = hd.for_loop(4, lambda i, state: {"sum": state["sum"] + i, "power": state["power"] @ (X.T @ X) / 30},
                        {"sum": 0, "power": np.eye(4)})
    values = hd.compute(total)[0]
    assert values["sum"] == 6
    np.testing.assert_allclose(values["power"], np.linalg.matrix_power(X.T @ X / 30, 4))
    assert hd.for_loop(0, lambda i, state: state + 1, 5).compute() == 5
    assert hd.for_loop(hd.array([3, 4]).max(), lambda i, state: state + i, 0).compute() == 6


def test_loops_within_loops():
    nested = hd.for_loop(3, lambda i, s: hd.for_loop(i + 1, lambda j, t: t + 10 * i + j, s), 0)
    assert nested.compute() == sum(10 * i + j for i in range(3) for j in range(i + 1))
    both = hd.for_loop(6, lambda i, s: hd.cond(i % 2 == 0, lambda: s + i, lambda: s * 2), 1)
    expected = 1
    for i in range(6):
        expected = expected + i if i % 2 == 0 else expected * 2
    assert both.compute() == expected


def test_states_that_only_change_places():
    a, b = hd.for_loop(3, lambda i, state: (state[1], state[0]), (1.0, 2.0))
    assert hd.compute(a, b) == (2.0, 1.0)
    a, b = hd.for_loop(5, lambda i, state: (state[1], state[0] + state[1]), (0, 1))
    assert hd.compute(a, b) == (5, 8)


def test_a_loop_keeps_shapes_and_types():
    with pytest.raises(hd.ShapeError, match="begins as 4 and becomes 8"):
        hd.for_loop(3, lambda i, s: np.concatenate([s, s]), hd.zeros(4))
    with pytest.raises(hd.UsageError, match="begins as int64 and becomes float64"):
        hd.for_loop(3, lambda i, s: s + 0.5, 0)
    with pytest.raises(hd.UsageError, match="returns 1 values for 2"):
        hd.for_loop(3, lambda i, s: s[0], (0, 1))
    with pytest.raises(hd.ShapeError, match="not a scalar"):
        hd.while_loop(lambda s: s > 0, lambda s: s, hd.zeros(4))
    with pytest.raises(hd.UsageError, match="whole number"):
        hd.for_loop(2.5, lambda i, s: s, 0)


def test_values_are_not_there_while_tracing():
    with pytest.raises(hd.UsageError, match="while a function is traced"):
        hd.for_loop(3, lambda i, s: s + 1 if float(s) > 0 else s, 1.0)


def test_only_one_branch_runs():
    x = hd.array(np.zeros((2, 2)))
    chosen = hd.cond(np.abs(x).sum() > 0, lambda: np.linalg.inv(x), lambda: x + 1)
    np.testing.assert_array_equal(chosen.compute(), np.ones((2, 2)))
    value, text = hd.cond(hd.array(2) > 1, lambda a: (a + 1, a), lambda a: (a * 1.0, a), hd.array(3))
    assert hd.compute(value, text) == (4.0, 3)
    with pytest.raises(hd.ShapeError, match="in one branch"):
        hd.cond(x.sum() > 0, lambda: x, lambda: x.sum())


def test_functions_become_functions_of_the_program():
    calls = []

    @hd.function
    def distance(a, b, scale=1.0):
        """How far apart."""
        calls.append(a.shape)
        return np.sqrt(((a - b) ** 2).sum(axis=1)) * scale

    assert distance.__doc__ == "How far apart." and distance.__name__ == "distance"
    x, y = hd.array(X), hd.array(Y[:4])
    both = distance(x, y) + distance(x, X[0])
    assert both.dml().count("distance = function(") == 1 and both.dml().count("= distance(") == 2
    np.testing.assert_allclose(both.compute(), np.linalg.norm(X - Y[:4], axis=1) + np.linalg.norm(X - X[0], axis=1))
    assert calls == [(30, 4)]
    np.testing.assert_allclose(distance(x[:5], y, scale=2.0).compute(), 2 * np.linalg.norm(X[:5] - Y[:4], axis=1))
    assert len(calls) == 2


def test_constants_of_functions_are_told_apart():
    @hd.function
    def changed(a, by):
        return by(a)

    @hd.function
    def shifted(a, by):
        return a + by[0].sum()

    x = hd.array([1.0, 2.0])
    results = [changed(x, lambda a, number=number: a + number) for number in range(5)]  # each may lie where the last one lay
    assert [result.compute().tolist() for result in results] == [[1.0 + number, 2.0 + number] for number in range(5)]
    one, two = np.zeros(2000), np.zeros(2000)
    two[1000] = 5  # repr() of both is the same
    assert shifted(x, [one])[0].compute() == 1 and shifted(x, [two])[0].compute() == 6


def test_functions_call_functions_and_read_what_is_outside():
    weights = hd.array(Y[:4])

    @hd.function
    def weighted(a):
        return (a * weights).sum(axis=1)

    @hd.function
    def standardized(a):
        inner = weighted(a)
        return (inner - inner.mean()) / inner.std()

    expected = X @ Y[:4]
    np.testing.assert_allclose(standardized(hd.array(X)).compute(), (expected - expected.mean()) / expected.std())


def test_gradients():
    x, y = hd.array(X), hd.array(Y)

    def loss(w, b):
        return ((x @ w + b - y) ** 2).mean() + 0.1 * (w ** 2).sum()

    w, b = np.arange(4.0), 0.5
    rest = X @ w + b - Y
    slope = hd.gradient(loss)(w, b)
    assert slope.shape == (4,)
    np.testing.assert_allclose(slope.compute(), 2 * X.T @ rest / 30 + 0.2 * w)
    by_both = hd.gradient(loss, argnums=(0, 1), value=True)
    value, (by_w, by_b) = hd.compute(by_both(w, b))[0]
    np.testing.assert_allclose(value, (rest ** 2).mean() + 0.1 * (w ** 2).sum())
    np.testing.assert_allclose(by_w, 2 * X.T @ rest / 30 + 0.2 * w)
    np.testing.assert_allclose(by_b, 2 * rest.mean())


def test_gradients_in_loops():
    x, y = hd.array(X), hd.array(Y)
    slope = hd.gradient(lambda w: ((x @ w - y) ** 2).mean())
    w = hd.for_loop(300, lambda i, w: w - 0.1 * slope(w), hd.zeros(4))
    np.testing.assert_allclose(w.compute(), np.linalg.lstsq(X, Y, rcond=None)[0], rtol=1e-6)


def test_gradients_of_what_has_none():
    with pytest.raises(hd.UsageError, match="a derivative is of a float64 scalar"):
        hd.gradient(lambda w: w * 2)(np.ones(3))
    with pytest.raises(hd.UsageError, match="by an array of float64"):
        hd.gradient(lambda w: (w * 1.0).sum())(np.arange(3))
    with pytest.raises(hd.UsageError, match="argument 5"):
        hd.gradient(lambda w: w.sum(), argnums=5)(np.ones(3))


def test_an_error_in_a_function_names_its_line():
    @hd.function
    def broken(a):
        return np.linalg.inv(a - a)  # in the function

    with pytest.raises(hd.Error) as caught:
        broken(hd.array(np.eye(3))).compute()
    assert any("# in the function" in note for note in caught.value.notes)
