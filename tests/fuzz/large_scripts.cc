// SPDX-License-Identifier: Apache-2.0
// Scripts about the size of the memory that the fuzzer promises.
#include <fmt/format.h>

#include <algorithm>

#include "tests/fuzz/fuzz_case.h"
#include "tests/fuzz/script_generator.h"

namespace heddle::fuzz {
namespace {

// Statements about X of rows x columns and its result R.
std::string LargeStatement(int64_t rows, int64_t columns, Chooser& choose) {
  switch (choose.Below(16)) {
    case 0: return "R = order(target=X, by=1, index.return=FALSE)";
    case 1: return "R = t(X)";
    case 2: return "R = X + X * 2";
    case 3: return fmt::format("R = {}(X, X)", choose.Pick({"rbind", "cbind"}));
    case 4: return "R = X\nR[1:2, ] = R[2:3, ]";
    case 5:
      return fmt::format("write(X, \"large\", format=\"{}\")\nR = X",
                         choose.Pick({"csv", "text", "mm", "libsvm"}));
    case 6: return fmt::format("s = toString(X, rows={}, cols={})\nR = X[1, ]", rows, columns);
    case 7: return "R = removeEmpty(target=X * (X > 0.5), margin=\"rows\")";
    case 8: return "R = cumsum(X)";
    case 9:
      return fmt::format("R = table(seq(1, {}), round(X[, 1] * {}) + 1)", rows,
                         choose.PickNumber({10, 100000}));
    case 10:
      return fmt::format("s = \"abcdefgh\"\nfor (i in 1:{}) s = s + s\nR = X[1, ]", choose.Between(10, 40));
    case 11:
      return fmt::format("n = {0}\nR = inv(X[1:n, 1:n] + diag(matrix(n, n, 1)))",
                         std::min({rows, columns, int64_t{400}}));
    case 12:
      return fmt::format("R = X %*% rand(rows={}, cols={}, seed=2)", columns,
                         choose.PickNumber({1, 50, 3000}));
    case 13: return "R = outer(X[, 1], t(X[, 1]), \"+\")";
    case 14:
      return fmt::format("R = rand(rows={}, cols={}, sparsity={}, seed=3)", rows,
                         choose.PickNumber({1000, 1000000, 1000000000}), choose.Pick({"0.1", "0.001", "1"}));
    default: return fmt::format("R = matrix(X, rows={}, cols={})", columns, rows);
  }
}

}  // namespace

std::string GenerateLargeScript(Chooser& choose) {
  // From an eighth of the promise to a little more than it.
  const int64_t cells = choose.Between(kMemoryPromise / 64, kMemoryPromise / 7);
  const int64_t columns = choose.PickNumber({1, 3, 10, 100, 1000, 4000});
  const int64_t rows = cells / columns;
  std::string script = fmt::format("X = rand(rows={}, cols={}, sparsity={}, seed=1)\n", rows, columns,
                                   choose.Pick({"1", "1", "0.1", "0.01"}));
  for (int64_t i = choose.Between(1, 3); i > 0; --i) {
    script += LargeStatement(rows, columns, choose) + "\n";
    if (choose.Chance(70)) script += "print(nrow(R) + \" \" + ncol(R) + \" \" + sum(R))\n";
  }
  if (choose.Chance(50)) script += "print(sum(X))\n";
  return script;
}

}  // namespace heddle::fuzz
