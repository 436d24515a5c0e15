#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Polars 2.1.0, csv with quotes. Two things that a program which exchanges csv files with it has to know:
#   1. read_csv undoes doubled quotes in fields ("a ""cell""" is a "cell"), and leaves them in names of columns
#      ("a ""name""" stays a ""name""), where Python's csv module and RFC 4180 know no difference.
#   2. write_csv(quote_style="always") writes null and the empty text alike, as "": what is read again has no null.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet polars==2.1.0
"$folder/venv/bin/python" - <<'PYTHON'
import csv, io, polars

text = '"a ""name""","b"\n"a ""cell""",1\n'
table = polars.read_csv(io.StringIO(text))
print("polars", polars.__version__, "columns", table.columns, "first row", table.row(0))
print("csv of Python", next(csv.reader(io.StringIO(text))))
assert table.columns == ['a ""name""', "b"] and table.row(0) == ('a "cell"', 1)
assert next(csv.reader(io.StringIO(text))) == ['a "name"', "b"]

out = io.StringIO()
polars.DataFrame({"text": ["", None, "x"]}).write_csv(out, quote_style="always")
print("written", repr(out.getvalue()))
assert out.getvalue() == '"text"\n""\n""\n"x"\n'
assert polars.read_csv(io.StringIO(out.getvalue())).to_dict(as_series=False) == {"text": ["", "", "x"]}
PYTHON
# Seen with Polars 2.1.0 on CPython 3.11:
#   polars 2.1.0 columns ['a ""name""', 'b'] first row ('a "cell"', 1)
#   csv of Python ['a "name"', 'b']
#   written '"text"\n""\n""\n"x"\n'
