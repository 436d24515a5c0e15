# SPDX-License-Identifier: Apache-2.0
"""Frames and the libraries of tables."""

import datetime
import decimal

import numpy
import pytest

import heddle


def echo(table):
    return heddle.run("Y = X", {"X": table}, "Y").Y


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow")


def test_types_of_arrow(arrow):
    table = arrow.table({
        "i8": arrow.array([1, None, -3], arrow.int8()), "u16": arrow.array([1, 2, 65535], arrow.uint16()),
        "i32": arrow.array([1, 2, -2**31], arrow.int32()), "u32": arrow.array([0, 1, 2**32 - 1], arrow.uint32()),
        "i64": arrow.array([2**62, -1, 0], arrow.int64()), "u64": arrow.array([1, 2, 2**63 - 1], arrow.uint64()),
        "f16": arrow.array(numpy.array([0.5, 65504, 6e-8], "f2")), "f32": arrow.array([1.5, None, 2], arrow.float32()),
        "f64": arrow.array([1.1, float("nan"), float("inf")]), "flag": arrow.array([True, None, False]),
        "text": arrow.array(["a", None, "äöü"]), "large": arrow.array(["x", "", "z"], arrow.large_string()),
        "view": arrow.array(["short", None, "longer than twelve bytes"], arrow.string_view()),
        "kind": arrow.array(["b", None, "b"]).dictionary_encode(), "none": arrow.nulls(3),
        "money": arrow.array([decimal.Decimal("1.10"), None, decimal.Decimal("-2.35")], arrow.decimal128(10, 2)),
        "whole": arrow.array([decimal.Decimal(7), None, decimal.Decimal(-8)], arrow.decimal128(10, 0)),
        "bytes": arrow.array([b"q", None, b""], arrow.binary()),
    })
    frame = echo(table)
    assert dict(zip(frame.columns, frame.types)) == {
        "i8": "INT32", "u16": "INT32", "i32": "INT32", "u32": "INT64", "i64": "INT64", "u64": "INT64", "f16": "FP32",
        "f32": "FP32", "f64": "FP64", "flag": "BOOLEAN", "text": "STRING", "large": "STRING", "view": "STRING",
        "kind": "STRING", "none": "FP64", "money": "FP64", "whole": "INT64", "bytes": "STRING"}
    back = frame.to_arrow().to_pydict()
    for name, column in table.to_pydict().items():
        if name == "bytes":
            column = [None if cell is None else cell.decode() for cell in column]
        if name == "whole":
            column = [None if cell is None else int(cell) for cell in column]
        if name == "money":
            column = [None if cell is None else float(cell) for cell in column]
        assert repr(back[name]) == repr(column), name
    assert list(frame["i8"])[::2] == [1, -3] and numpy.isnan(frame["i8"][1])
    assert list(frame["flag"]) == [True, None, False]


def test_days_and_times(arrow):
    moment = datetime.datetime(1969, 12, 31, 23, 59, 58, 500000)
    day, day64 = [arrow.array([datetime.date(2024, 2, 29), datetime.date(1900, 3, 1)], kind)
                  for kind in (arrow.date32(), arrow.date64())]
    moments = {unit: arrow.array([moment, None]).cast(arrow.timestamp(unit), safe=False) for unit in ("s", "ms", "ns")}
    zoned = arrow.array([moment, None], arrow.timestamp("us", "UTC"))
    times = arrow.array([datetime.time(1, 2, 3, 4), None], arrow.time64("us"))
    table = arrow.table({"day": day, "day64": day64, **moments, "zoned": zoned, "time": times})
    rows = echo(table).to_arrow().to_pylist()
    assert rows[0] == {"day": "2024-02-29", "day64": "2024-02-29", "s": rows[0]["s"], "ms": "1969-12-31 23:59:58.500",
                       "ns": "1969-12-31 23:59:58.500000000", "zoned": "1969-12-31 23:59:58.500000Z",
                       "time": "01:02:03.000004"}
    assert rows[0]["s"].startswith("1969-12-31 23:59:5")
    assert rows[1]["day"] == "1900-03-01" and rows[1]["ms"] is None


def test_slices_and_chunks(arrow):
    table = arrow.table({"x": arrow.chunked_array([[1.0, 2.0], [3.0]]), "t": arrow.chunked_array([["a", "b"], ["c"]]),
                         "b": arrow.chunked_array([[True, False], [True]])})
    assert echo(table).to_arrow().to_pydict() == table.to_pydict()
    assert echo(table.slice(1, 2)).to_arrow().to_pydict() == table.slice(1, 2).to_pydict()
    long = arrow.table({"t": [str(i) for i in range(100)], "b": [i % 3 == 0 for i in range(100)],
                        "x": [None if i % 7 == 0 else i for i in range(100)]})
    assert echo(long.slice(13, 50)).to_arrow().to_pydict() == long.slice(13, 50).to_pydict()
    empty = table.slice(0, 0)
    assert echo(empty).to_arrow().to_pydict() == empty.to_pydict()


def test_what_is_not_copied(arrow):
    numbers = numpy.arange(1000.0)
    frame = echo(arrow.table({"x": arrow.array(numbers), "i": arrow.array(numpy.arange(1000))}))
    assert numpy.shares_memory(frame["x"], numbers)
    assert frame.to_arrow()["x"].chunk(0).buffers()[1].address == numbers.ctypes.data


def test_types_that_no_frame_has(arrow):
    with pytest.raises(ValueError, match="column 'l' has the type"):
        echo(arrow.table({"l": arrow.array([[1, 2], [3]])}))
    with pytest.raises(ValueError, match="column 'u' has integers that do not fit"):
        echo(arrow.table({"u": arrow.array([2**63], arrow.uint64())}))
    with pytest.raises(ValueError, match="column 'b' has bytes that are not UTF-8"):
        echo(arrow.table({"b": arrow.array([b"\xff"])}))


def test_a_stream_is_read_once(arrow):
    table = arrow.table({"x": [1]})

    class Used:
        def __arrow_c_stream__(self, requested_schema=None):
            capsule = table.__arrow_c_stream__()
            arrow.RecordBatchReader._import_from_c_capsule(capsule).read_all()
            return capsule

    with pytest.raises(ValueError, match="has been read already"):
        echo(Used())


def test_polars():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"x": [1.5, None], "t": ["a text that is longer than twelve", None], "i": [1, 2],
                              "c": polars.Series(["u", "v"], dtype=polars.Categorical),
                              "d": [datetime.date(2020, 1, 2), None]})
    frame = echo(table)
    assert frame.types == ["FP64", "STRING", "INT64", "STRING", "STRING"]
    back = polars.DataFrame(frame)
    assert back["x"].to_list() == [1.5, None] and back["t"].to_list() == table["t"].to_list()
    assert back["c"].to_list() == ["u", "v"] and back["d"].to_list() == ["2020-01-02", None]


def test_pandas_of_arrow_and_nullable_types():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"i": pandas.array([1, None, 3], "Int64"), "s": pandas.array(["a", None, "c"], "string"),
                              "c": pandas.Categorical(["x", "y", "x"])})
    frame = echo(table)
    back = frame.to_pandas()
    assert back["s"].isna().tolist() == [False, True, False] and back["s"][2] == "c" and back["c"].tolist() == ["x", "y", "x"]
    numpy.testing.assert_array_equal(back["i"].to_numpy(float), [1, numpy.nan, 3])
    assert frame.types[0] == "INT64"
