#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Integers of 128 bits between DuckDB, Polars and Arrow. What exchanges tables with them loses digits or the whole file:
#   1. DuckDB writes a HUGEINT to Parquet as a DOUBLE, without a word: 2^64 + 1 comes back as 2^64.
#   2. Polars writes an Int128 to an Arrow file in a type of its own, which pyarrow refuses to read.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet duckdb==2.0.1 polars==2.1.0 pyarrow==26.0.1
cd "$folder"
venv/bin/python - <<'PYTHON'
import duckdb, polars, pyarrow, pyarrow.feather, pyarrow.parquet

number = 2**64 + 1
duckdb.sql(f"copy (select {number}::hugeint as n) to 'huge.parquet'")
table = pyarrow.parquet.read_table("huge.parquet")
print("duckdb", duckdb.__version__, "writes", table.schema.field("n").type, "with", int(table["n"][0].as_py()))
assert table.schema.field("n").type == pyarrow.float64()
assert int(table["n"][0].as_py()) == 2**64

polars.DataFrame({"n": [number]}, schema={"n": polars.Int128}).write_ipc("wide.arrow")
assert polars.read_ipc("wide.arrow")["n"][0] == number
try:
    pyarrow.feather.read_table("wide.arrow", memory_map=False)
    raise SystemExit("pyarrow reads it")
except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid) as error:
    print("polars", polars.__version__, "read by pyarrow", pyarrow.__version__ + ":", str(error).splitlines()[0])
PYTHON
# Seen on CPython 3.11:
#   duckdb 2.0.1 writes double with 18446744073709551616
#   polars 2.1.0 read by pyarrow 26.0.1: Integers with more than 64 bits not implemented
