#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An array of another library that sets __array_ufunc__ = None gets the operation from NumPy: ndarray @ x, + x and * x
# call its __rmatmul__, __radd__ and __rmul__. Sparse matrices and arrays of SciPy 1.17.1 do so for + alone. For @ and *
# they ask x for its cells by __array__ first, so that a lazy array is computed on the spot, without a word. Who wants
# it to stay lazy writes (x.T @ S.T).T, whose left operand is asked first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PYTHON'
import operator
import numpy
import scipy
from scipy import sparse


class Lazy:
    __array_ufunc__ = None
    __array_priority__ = 1e6
    shape, ndim, dtype = (2, 2), 2, numpy.dtype(float)
    asked = False

    def __array__(self, dtype=None, copy=None):
        self.asked = True
        return numpy.eye(2)

    def deferred(self, other):
        return "deferred"

    __rmatmul__ = __radd__ = __rmul__ = deferred


seen = {}
for left in (numpy.eye(2), sparse.csr_matrix(numpy.eye(2)), sparse.csr_array(numpy.eye(2))):
    for sign, apply in (("@", operator.matmul), ("+", operator.add), ("*", operator.mul)):
        lazy = Lazy()
        result = apply(left, lazy)
        seen[type(left).__name__, sign] = "computed" if lazy.asked else result
print("NumPy", numpy.__version__, "SciPy", scipy.__version__)
for (name, sign), what in seen.items():
    print(f"{name} {sign} lazy: {what}")
assert all(what == ("computed" if name != "ndarray" and sign != "+" else "deferred") for (name, sign), what in seen.items())
PYTHON
# Seen on CPython 3.11:
#   NumPy 2.4.6 SciPy 1.17.1
#   ndarray @ lazy: deferred
#   ndarray + lazy: deferred
#   ndarray * lazy: deferred
#   csr_matrix @ lazy: computed
#   csr_matrix + lazy: deferred
#   csr_matrix * lazy: computed
#   csr_array @ lazy: computed
#   csr_array + lazy: deferred
#   csr_array * lazy: computed
