// SPDX-License-Identifier: Apache-2.0
#include "bench/stitch_sparse.h"

#include <string_view>

#include "bench/matrices/random_matrices.h"

namespace heddle::bench {
namespace {

struct Case {
  std::string_view name, code;
  std::vector<std::string> results;
  std::string_view inputs;  // M: the sparse matrix; Q, K, V: dense, of 64 columns.
  double entries, width;    // Read and written: values at entries, matrices of 64 columns.
  double columns;           // Likewise: cells of a column.
};

// Results at entries count as entries.
const Case kCases[] = {
    {"sparse softmax", "E = exp(M - rowMaxs(M)) * (M != 0)", {"E / rowSums(E)"}, "M", 2, 0, 0},
    {"sparse logsumexp", "h = rowMaxs(M)", {"h + log(rowSums(exp(M - h)))"}, "M", 1, 0, 1},
    {"sparse statistics", "E = exp(M)", {"rowSums(M * E)", "colSums(M * E)"}, "M", 1, 0, 1},
    {"masked attention",
     "S = (Q %*% t(K)) * M / 8\nE = exp(S - rowMaxs(S)) * M",
     {"(E / rowSums(E)) %*% V"},
     "MQKV",
     1,
     4,
     0},
    {"hidden attention",
     "S = ifelse(M == 0, -1/0, (Q %*% t(K)) / 8)\nE = exp(S - rowMaxs(S))",
     {"(E / rowSums(E)) %*% V"},
     "MQKV",
     1,
     4,
     0},
};
constexpr int64_t kRows = 8192, kWidth = 64;
constexpr double kDensities[] = {1e-3, 1e-2, 1e-1};

}  // namespace

void MeasureSparse(StitchMeter* meter) {
  for (const Case& one : kCases)
    for (const double density : kDensities)
      for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
        const bool single = type == ElementType::kFloat32;
        const std::string name =
            fmt::format("{} {}x{} {:g} {}", one.name, kRows, kRows, density, single ? "single" : "double");
        if (!meter->Wants(name)) continue;
        StitchRow row{.name = name, .code = std::string(one.code), .results = one.results};
        int64_t stored = 0;
        for (const char input : one.inputs) {
          const auto seed = static_cast<uint64_t>(input);
          const Matrix cells = input == 'M' ? RandomSparse(kRows, kRows, density, seed, meter->arena())
                                            : RandomDense(kRows, kWidth, seed, meter->arena());
          if (input == 'M') stored = cells.stored();
          row.inputs[std::string(1, input)] = StitchMeter::InPrecision(cells, type);
        }
        const auto bytes = static_cast<double>(BytesOf(type));
        row.least_bytes = one.entries * static_cast<double>(stored) * (bytes + 4) +
                          bytes * static_cast<double>(kRows) * (one.width * kWidth + one.columns);
        meter->Measure(row);
      }
}

}  // namespace heddle::bench
