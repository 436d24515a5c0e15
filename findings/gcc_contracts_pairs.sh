#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# GCC 12.2 of Debian 12 makes fused multiply-adds with -ffp-contract=off: where a product and a difference stand beside a
# product and a sum, as in a complex multiplication, its vectorizer writes vfmaddsub, which rounds once instead of twice.
# So a program that must have the same bits whatever is inlined cannot rely on that option alone where code is
# vectorized; -fno-tree-slp-vectorize leaves the products rounded.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq cpp-12=12.2.0-14+deb12u1 libisl23=0.25-1.1 libmpc3=1.3.1-1 libmpfr6=4.2.0-1 >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" root; done
cat > multiply.c <<'C'
void Multiply(double *restrict r, const double *restrict a, const double *restrict b) {
  double real = a[0] * b[0] - a[1] * b[1];
  double imaginary = a[0] * b[1] + a[1] * b[0];
  r[0] = real;
  r[1] = imaginary;
}
C
compile() {
  LD_LIBRARY_PATH=root/usr/lib/x86_64-linux-gnu root/usr/lib/gcc/x86_64-linux-gnu/12/cc1 -quiet -O2 -mavx2 -mfma "$@" multiply.c -o multiply.s
  grep -oE 'vf[a-z0-9]+|vmul[a-z]+|vaddsub[a-z]+|vsub[a-z]+|vadd[a-z]+' multiply.s | sort | uniq -c | sed 's/^ *//' | paste -sd' '
}
off=$(compile -ffp-contract=off)
scalar=$(compile -ffp-contract=off -fno-tree-slp-vectorize)
echo "-ffp-contract=off: $off"
echo "-ffp-contract=off -fno-tree-slp-vectorize: $scalar"
[[ $off == *vfmaddsub* ]]
[[ $scalar != *vf* ]]
# Seen:
#   -ffp-contract=off: 1 vfmaddsub231pd 1 vmulpd
#   -ffp-contract=off -fno-tree-slp-vectorize: 1 vaddsd 4 vmulsd 1 vsubsd
