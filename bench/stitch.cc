// SPDX-License-Identifier: Apache-2.0
#include "bench/stitch.h"

#include <optional>
#include <string_view>

#include "bench/hand/stitch.h"
#include "bench/matrices/random_matrices.h"
#include "bench/stitch_row.h"
#include "bench/stitch_sparse.h"

namespace heddle::bench {
namespace {

// How often a case must read or write a whole matrix, and a row of its width. Intermediate values stay in the
// cache, a pass over the rows for each value that all of them need: 2 reads for batch norm.
struct Traffic {
  double matrices = 0, rows = 0, columns = 0;
};

enum class Loop { kNone, kSoftmax, kLayerNorm };

struct Case {
  std::string_view name, code;
  std::vector<std::string> results;
  std::string_view inputs;  // X, Y and D are matrices, g and b rows.
  Traffic of_rows;          // Rows that stay in the cache while they are swept again.
  // Of a single row that no cache holds; nullopt where the case makes no sense for one.
  std::optional<Traffic> of_long_row;
  Loop loop = Loop::kNone;
};

const Case kCases[] = {
    {"softmax", "E = exp(X - rowMaxs(X))", {"E / rowSums(E)"}, "X", {2}, Traffic{5}, Loop::kSoftmax},
    {"log-softmax", "M = X - rowMaxs(X)", {"M - log(rowSums(exp(M)))"}, "X", {2}, Traffic{4}},
    {"layer norm",
     "C = X - rowMeans(X)",
     {"C / sqrt(rowMeans(C^2) + 1e-5) * g + b"},
     "Xgb",
     {2, 2},
     Traffic{4, 2},
     Loop::kLayerNorm},
    {"layer norm and residual",
     "T = X + D\nC = T - rowMeans(T)",
     {"C / sqrt(rowMeans(C^2) + 1e-5) * g + b", "T"},
     "XDgb",
     {4, 2},
     Traffic{6, 2}},
    {"batch norm",
     "n = nrow(X)",
     {"(X - colMeans(X)) / sqrt(colVars(X) * ((n - 1) / n) + 1e-5) * g + b"},
     "Xgb",
     {3, 2},
     std::nullopt},
    {"gelu and bias",
     "H = X + b",
     {"0.5 * H * (1 + tanh(0.7978845608028654 * (H + 0.044715 * H^3)))"},
     "Xb",
     {2, 1},
     Traffic{2, 1}},
    {"softmax backward", "", {"(D - rowSums(D * Y)) * Y"}, "YD", {3}, Traffic{5}},
    {"layer norm backward",
     "C = X - rowMeans(X)\nr = 1 / sqrt(rowMeans(C^2) + 1e-5)\nN = C * r\nG = D * g",
     {"(G - rowMeans(G) - N * rowMeans(G * N)) * r", "colSums(D * N)", "colSums(D)"},
     "XDg",
     {3, 3},
     Traffic{7, 4}},
    {"cosine rows", "", {"X / sqrt(rowSums(X^2))"}, "X", {2}, Traffic{3}},
    {"z-score and colMaxs",
     "Z = (X - colMeans(X)) / colSds(X)",
     {"Z", "colMaxs(Z)"},
     "X",
     {3, 1},
     std::nullopt},
    {"sinkhorn 3 steps",
     "A = exp(X)\nA = A / rowSums(A)\nA = A / colSums(A)\nA = A / rowSums(A)\nA = A / colSums(A)\nA = A / rowSums(A)",
     {"A / colSums(A)"},
     "X",
     {6},  // exp(X) is written once and read, with scales of rows and columns, after each step.
     std::nullopt},
    {"logsumexp", "h = rowMaxs(X)", {"h + log(rowSums(exp(X - h)))"}, "X", {1, 0, 1}, Traffic{2}},
};

constexpr Shape kShapes[] = {{8192, 1024}, {750000, 32}, {64, 30000}, {1, 10'000'000}};

StitchRow RowOf(const Case& one, const std::string& name, Shape shape, ElementType type,
                const Traffic& traffic, ops::Arena* arena) {
  StitchRow row{.name = name, .code = std::string(one.code), .results = one.results};
  for (const char input : one.inputs) {
    const bool is_row = input == 'g' || input == 'b';
    const Matrix cells =
        RandomDense(is_row ? 1 : shape.rows, shape.columns, static_cast<uint64_t>(input), arena);
    row.inputs[std::string(1, input)] = StitchMeter::InPrecision(cells, type);
  }
  row.least_bytes =
      static_cast<double>(BytesOf(type)) *
      (traffic.matrices * static_cast<double>(shape.Cells()) +
       traffic.rows * static_cast<double>(shape.columns) + traffic.columns * static_cast<double>(shape.rows));
  const auto matrix = [&](const char* input) { return row.inputs.at(input).matrix(); };
  if (one.loop == Loop::kSoftmax) row.hand = [x = matrix("X")](Matrix* out) { HandSoftmax(x, out); };
  if (one.loop == Loop::kLayerNorm)
    row.hand = [x = matrix("X"), g = matrix("g"), b = matrix("b")](Matrix* out) {
      HandLayerNorm(x, g, b, out);
    };
  return row;
}

}  // namespace

int RunStitch(const BenchOptions& options) {
  ops::Arena arena(options.threads);
  StitchMeter meter(options, &arena);
  for (const Case& one : kCases)
    for (const Shape& shape : kShapes) {
      const std::optional<Traffic> traffic =
          shape.rows == 1 ? one.of_long_row : std::optional<Traffic>(one.of_rows);
      if (!traffic) continue;
      for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
        const std::string name = fmt::format("{} {}x{} {}", one.name, shape.rows, shape.columns,
                                             type == ElementType::kFloat64 ? "double" : "single");
        if (!meter.Wants(name)) continue;
        meter.Measure(RowOf(one, name, shape, type, *traffic, &arena));
      }
    }
  MeasureSparse(&meter);
  return meter.all_agree() ? 0 : 1;
}

}  // namespace heddle::bench
