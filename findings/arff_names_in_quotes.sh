#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# liac-arff 2.5.0 writes names of attributes that hold blanks in double quotes. scipy.io.arff of SciPy 1.17.1 knows
# single quotes only there: it takes the name for what stands before the first blank, and the rest for the type. What
# writes ARFF for both has to use single quotes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet liac-arff==2.5.0 scipy==1.17.1
"$folder/venv/bin/python" - <<'PYTHON'
import io, arff, scipy
from scipy.io import arff as scipy_arff

text = arff.dumps({"relation": "r", "attributes": [("a name", "REAL")], "data": [[1.5]]})
attribute = text.splitlines()[2]
print("liac-arff", arff.__version__, "writes", attribute)
assert attribute == '@ATTRIBUTE "a name" REAL'
try:
    scipy_arff.loadarff(io.StringIO(text))
    raise SystemExit("SciPy reads it")
except scipy_arff.ParseArffError as error:
    print("SciPy", scipy.__version__, "says", error)
data, meta = scipy_arff.loadarff(io.StringIO(text.replace('"', "'")))
print("SciPy, single quotes", data.tolist(), meta.names())
assert data.tolist() == [(1.5,)]
PYTHON
# Seen on CPython 3.11 (liac-arff 2.5.0 tells 2.4.0 as its version):
#   liac-arff 2.4.0 writes @ATTRIBUTE "a name" REAL
#   SciPy 1.17.1 says unknown attribute name" REAL
#   SciPy, single quotes [(1.5,)] ['a name']
