# SPDX-License-Identifier: Apache-2.0
"""Values in and out of a script."""

import numpy
import pytest

import heddle


def echo(value, **options):
    return heddle.run("Y = X", {"X": value}, "Y", **options).Y


def scaled(value):
    """What the script sees, by another way than the one that shares memory."""
    return heddle.run("Y = X * 1", {"X": value}, "Y").Y


@pytest.mark.parametrize("value", [0, 1, -5, 2**62, -2**63, True, False, 1.5, float("inf"), -0.0, "", "text", "ä\n'\""])
def test_scalars(value):
    assert echo(value) == value and type(echo(value)) is type(value)


def test_scalars_of_numpy():
    assert echo(numpy.float64(2.5)) == 2.5
    assert echo(numpy.int32(3)) == 3 and type(echo(numpy.int32(3))) is int
    assert echo(numpy.bool_(True)) is True
    assert echo(numpy.array(4.0)) == 4.0
    assert numpy.isnan(echo(float("nan")))


def test_integers_that_are_too_large():
    with pytest.raises(heddle.UsageError, match=r"does not fit into 64 bits; pass float\(X\)"):
        echo(2**63)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", ">f8", ">i4"])
@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (5, 1), (1, 5), (0, 3), (3, 0)])
def test_arrays_of_all_types(dtype, shape):
    X = (numpy.arange(shape[0] * shape[1]) % 3).reshape(shape).astype(dtype)
    Y = scaled(X)
    assert Y.dtype == numpy.float64 and Y.shape == shape
    numpy.testing.assert_array_equal(Y, X.astype("f8"))


def test_layouts():
    X = numpy.arange(24.0).reshape(4, 6)
    for Y in (X, X.T, X[::2], X[:, ::-1], X[1:3, 2:5], numpy.asfortranarray(X)):
        numpy.testing.assert_array_equal(scaled(Y), Y)
    numpy.testing.assert_array_equal(scaled(numpy.arange(3.0)), [[0], [1], [2]])
    packed = numpy.zeros(3, dtype=[("a", "i1"), ("b", "f8")])
    packed["b"] = [1, 2, 3]
    numpy.testing.assert_array_equal(scaled(packed["b"]), [[1], [2], [3]])


def test_what_is_not_copied():
    for X in (numpy.arange(6.0).reshape(2, 3), numpy.arange(5.0)):
        assert numpy.shares_memory(echo(X), X)
    X = numpy.arange(6, dtype="f4").reshape(2, 3)
    assert numpy.shares_memory(echo(X, precision="single"), X)


def test_an_input_stays_as_it_is():
    X = numpy.zeros((3, 3))
    Y = heddle.run("X[1, 1] = 5; X = X + 1; Y = X", {"X": X}, "Y").Y
    assert Y[0, 0] == 6 and not X.any()


def test_an_output_may_be_written_to_where_it_is_alone():
    Y, Z, W = heddle.run("Y = X + 1; Z = X; W = Y", {"X": numpy.zeros((2, 2))}, ["Y", "Z", "W"]).values()
    assert not Z.flags.writeable and not Y.flags.writeable and not W.flags.writeable
    Y = heddle.run("Y = X + 1", {"X": numpy.zeros((2, 2))}, "Y").Y
    Y[0, 0] = 7
    assert heddle.run("s = sum(Y)", {"Y": Y}, "s").s == 10


def test_an_output_lives_longer_than_its_run():
    arrays = [heddle.run(f"Y = matrix({i}, 100, 100)", outputs="Y").Y for i in range(20)]
    for i, array in enumerate(arrays):
        assert (array == i).all()


@pytest.mark.parametrize("value, message", [
    (numpy.zeros((2, 2, 2)), r"has 3 dimensions, matrices have two; X.reshape\(2, -1\)"),
    (numpy.zeros((2, 2), complex), "has cells of complex128, matrices have real numbers"),
    (numpy.array(["a"]), "matrices have real numbers; a frame takes texts"),
    (numpy.array([object()]), "has cells of object"),
    (object(), "a object is no scalar, matrix, frame or list"),
    (None, "a NoneType is no scalar"),
    (1j, "a complex is no scalar"),
    ({1, 2}, "a set is no scalar"),
])
def test_what_is_no_value(value, message):
    with pytest.raises(heddle.UsageError, match=message):
        echo(value)


def test_lists_of_numbers_are_matrices():
    numpy.testing.assert_array_equal(echo([[1, 2], [3, 4]]), [[1, 2], [3, 4]])
    numpy.testing.assert_array_equal(echo([1, 2.5]), [[1], [2.5]])
    with pytest.raises(heddle.UsageError, match="input 'X'"):
        echo([[1, 2], [3]])


def test_lists_and_dicts():
    X = numpy.ones((2, 2))
    value = echo({"a": 1, "M": X, "inner": (True, "t")})
    assert list(value) == ["a", "M", "inner"] and value["a"] == 1 and value["inner"] == [True, "t"]
    assert numpy.shares_memory(value["M"], X)
    assert heddle.run("s = as.scalar(L[2]) + length(L)", {"L": (1, 2.5, "x")}, "s").s == 5.5
    assert heddle.run("s = as.scalar(L['b'])", {"L": {"a": 1, "b": 7}}, "s").s == 7
    with pytest.raises(heddle.UsageError, match=r"input 'X\[1\]'"):
        echo((1, None))


def test_what_is_like_an_array():
    import array
    numpy.testing.assert_array_equal(echo(memoryview(numpy.ones((2, 2)))), numpy.ones((2, 2)))

    class Tensor:
        def __init__(self, cells):
            self.cells = cells

        def __dlpack__(self, **arguments):
            return self.cells.__dlpack__()

        def __dlpack_device__(self):
            return self.cells.__dlpack_device__()

    cells = numpy.arange(6.0).reshape(2, 3)
    assert numpy.shares_memory(echo(Tensor(cells)), cells)

    class Elsewhere(Tensor):
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **arguments):
            raise BufferError("it is on a device")

    with pytest.raises(heddle.UsageError, match="cpu"):
        echo(Elsewhere(cells))


def test_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    S = sparse.random(50, 30, density=0.1, format="csr", random_state=1)
    assert heddle.run("s = sum(X)", {"X": S}, "s").s == pytest.approx(S.sum())
    Y = echo(S)
    assert sparse.issparse(Y) and Y.format == "csr" and (Y != S).nnz == 0
    assert numpy.shares_memory(Y.data, S.data) and numpy.shares_memory(Y.indices, S.indices)
    for other in (S.tocsc(), S.tocoo(), S.tolil(), S.astype("f4"), S.astype("i4"), S[10:20]):
        assert abs(echo(other) - sparse.csr_matrix(other).astype("f8")).sum() == pytest.approx(0)


def test_sparse_matrices_out_of_order():
    sparse = pytest.importorskip("scipy.sparse")
    twice = sparse.csr_matrix((numpy.array([1.0, 2, 4]), numpy.array([1, 0, 0]), numpy.array([0, 3, 3])), shape=(2, 2))
    numpy.testing.assert_array_equal(echo(twice).toarray(), [[6, 1], [0, 0]])
    assert list(twice.indices) == [1, 0, 0]  # the caller's stays as it is
    empty = sparse.csr_matrix((3, 4))
    assert echo(empty).shape == (3, 4) and echo(empty).nnz == 0
    wrong = sparse.csr_matrix((2, 2))
    wrong.indices, wrong.data, wrong.indptr = numpy.array([5], "i4"), numpy.array([1.0]), numpy.array([0, 1, 1], "i4")
    wrong.has_canonical_format = True
    with pytest.raises(ValueError):
        echo(wrong)


def test_frames_of_pandas():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"number": [1.5, 2.5, 3.5], "count": [1, 2, 3], "flag": [True, False, True],
                              "text": ["a", "ä", None], "day": pandas.to_datetime(["2020-01-01"] * 3)})
    frame = echo(table)
    assert isinstance(frame, heddle.Frame) and frame.shape == (3, 5)
    assert frame.columns == list(table.columns) and frame.types == ["FP64", "INT64", "BOOLEAN", "STRING", "STRING"]
    back = frame.to_pandas()
    for name in ("number", "count", "flag"):
        assert (back[name] == table[name]).all()
    assert list(back["text"][:2]) == ["a", "ä"] and back["text"].isna()[2]
    assert len(frame) == 3 and "number FP64" in repr(frame)
    with pytest.raises(KeyError):
        frame["nothing"]
    numpy.testing.assert_array_equal(scaled_matrix(table[["number", "count"]]), [[1.5, 1], [2.5, 2], [3.5, 3]])


def scaled_matrix(table):
    return heddle.run("Y = as.matrix(X) * 1", {"X": table}, "Y").Y


def test_frames_that_a_script_makes():
    frame = heddle.run('F = frame(["a", "1", "b", "2"], rows=2, cols=2, schema=["STRING", "INT64"])', outputs="F").F
    assert list(frame["C1"]) == ["a", "b"] and list(frame["C2"]) == [1, 2]
    again = heddle.run("n = nrow(F)", {"F": frame}, "n").n
    assert again == 2
