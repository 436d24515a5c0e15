#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a csv file with another program and writes it again in the styles that the program has:

csv_interop.py TOOL IN.csv DUMP PREFIX

TOOL is csv (Python's own module), pandas or polars. The first line of IN.csv holds names; column "i" holds whole
numbers, column "d" others, and all others texts. DUMP gets a line "row column hexadecimal bytes" for each cell, a
missing one as "-" where the program tells it from an empty text. Files PREFIX0.csv, PREFIX1.csv ... are what it
writes. Ends with 77 where the program is absent.
"""
import sys

tool, source, dump, prefix = sys.argv[1:5]


def write_dump(names, rows):
    with open(dump, "w") as out:
        for i, row in enumerate([names] + rows):
            for j, cell in enumerate(row):
                text = "-" if cell is None else str(cell).encode("utf-8").hex()
                out.write(f"{i} {j} {text}\n")


def with_csv():
    import csv
    with open(source, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    write_dump(rows[0], rows[1:])
    for k, style in enumerate(({}, {"quoting": csv.QUOTE_ALL}, {"lineterminator": "\n"}, {"quoting": csv.QUOTE_NONNUMERIC})):
        with open(f"{prefix}{k}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file, **style).writerows(rows)


def with_pandas():
    import csv
    import pandas
    frame = pandas.read_csv(source, dtype=str, keep_default_na=False, na_values=[])
    typed = pandas.read_csv(source, dtype={n: str for n in frame.columns if n not in "id"}, keep_default_na=False)
    assert typed["i"].dtype.kind == "i" and typed["d"].dtype.kind == "f", typed.dtypes
    write_dump(list(frame.columns), frame.values.tolist())
    typed.to_csv(f"{prefix}0.csv", index=False)
    typed.to_csv(f"{prefix}1.csv", index=False, quoting=csv.QUOTE_ALL)
    typed.to_csv(f"{prefix}2.csv", index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")


def with_polars():
    import polars
    frame = polars.read_csv(source, infer_schema=False)
    write_dump(frame.columns, [list(row) for row in frame.iter_rows()])
    typed = frame.with_columns(polars.col("i").cast(polars.Int64), polars.col("d").cast(polars.Float64))
    for k, style in enumerate(("necessary", "always", "non_numeric")):
        typed.write_csv(f"{prefix}{k}.csv", quote_style=style)


try:
    {"csv": with_csv, "pandas": with_pandas, "polars": with_polars}[tool]()
except ModuleNotFoundError as absent:
    print(absent)
    sys.exit(77)
