// SPDX-License-Identifier: Apache-2.0
#include "bench/fusion_shapes.h"

#include <cmath>
#include <string>
#include <utility>

#include "bench/matrices/random_matrices.h"
#include "ops/elementwise/single_precision.h"

namespace heddle::bench {
namespace {

struct Chain {
  const char* name;
  const char* code;
  const char* result;
  bool full = true;         ///< The result has the shape of X; else one column.
  bool scales = false;      ///< Row vectors g and b take part.
  bool by_column = false;   ///< One row.
  bool of_columns = false;  ///< Statistics of columns, which one row has none of.
};
constexpr Chain kChains[] = {
    {"softmax", "E = exp(X - rowMaxs(X))", "E / rowSums(E)"},
    {"logsoftmax", "D = X - rowMaxs(X)", "D - log(rowSums(exp(D)))"},
    {"layernorm", "D = X - rowMeans(X)", "D / sqrt(rowMeans(D^2) + 1e-5) * g + b", true, true},
    {"logsumexp", "m = rowMaxs(X)", "m + log(rowSums(exp(X - m)))", false},
    {"rowSums", "", "rowSums(X)", false},
    {"zscore", "D = X - colMeans(X)", "D / sqrt(colMeans(D^2) + 1e-5)", true, false, false, true},
    {"colSums", "", "colSums(X * X)", false, false, true, true},
};

void RunDense(FusionMeter& meter, int64_t rows, int64_t columns, bool single) {
  const std::string suffix = fmt::format(" {}x{}{}", rows, columns, single ? " single" : "");
  Matrix x, g, b;
  for (const Chain& chain : kChains) {
    const std::string name = chain.name + suffix;
    if (!meter.Wants(name) || (chain.of_columns && rows == 1)) continue;
    const auto make = [&](int64_t m, uint64_t seed) {
      const Matrix doubles = RandomDense(m, columns, seed, meter.arena());
      return single ? *ops::Narrow(doubles) : doubles;
    };
    if (x.cells() == 0) {
      x = make(rows, 81);
      g = make(1, 82);
      b = make(1, 83);
    }
    FusionRow row{name, chain.code, chain.result, {{"X", x}}};
    if (chain.scales) row.inputs.insert({{"g", g}, {"b", b}});
    row.shape = chain.full ? x.shape() : chain.by_column ? Shape{1, columns} : Shape{rows, 1};
    row.bytes = static_cast<double>(x.bytes()) +
                static_cast<double>(row.shape.Cells() *
                                    BytesOf(single ? ElementType::kFloat32 : ElementType::kFloat64));
    meter.Measure(row);
  }
}

void RunSparse(FusionMeter& meter, int64_t rows, int64_t columns) {
  for (const double density : {0.1, 0.01, 0.001}) {
    const std::string suffix = fmt::format(" {}x{} sparse {}", rows, columns, density);
    const std::string names[] = {"softmax" + suffix, "logsumexp" + suffix, "attention" + suffix};
    if (!meter.Wants(names[0]) && !meter.Wants(names[1]) && !meter.Wants(names[2])) continue;
    const Matrix x = RandomSparse(rows, columns, density, 91, meter.arena());
    const auto bytes = static_cast<double>(x.bytes());
    meter.Measure({names[0],
                   "E = exp(X - rowMaxs(X))",
                   "E / rowSums(E)",
                   {{"X", x}},
                   x.shape(),
                   bytes + 8.0 * static_cast<double>(x.cells())});
    meter.Measure({names[1], "m = rowMaxs(X)", "m + log(rowSums(exp(X - m)))", {{"X", x}}, {rows, 1}, bytes});
    if (!meter.Wants(names[2])) continue;
    constexpr int64_t kWidth = 64;
    const Matrix q = RandomDense(rows, kWidth, 92, meter.arena()),
                 k = RandomDense(columns, kWidth, 93, meter.arena()),
                 v = RandomDense(columns, kWidth, 94, meter.arena());
    meter.Measure({names[2],
                   "S = (Q %*% t(K)) * (X != 0) / 8\nE = exp(S - rowMaxs(S)) * (X != 0)\nP = E / rowSums(E)",
                   "P %*% V",
                   {{"X", x}, {"Q", q}, {"K", k}, {"V", v}},
                   {rows, kWidth},
                   bytes + static_cast<double>(q.bytes() + k.bytes() + v.bytes()) +
                       8.0 * kWidth * static_cast<double>(rows)});
  }
}

}  // namespace

void RunShapes(FusionMeter& meter) {
  // In parts of the cells of other cases: 8e8 bytes of X and of the result are what they read of three.
  const int64_t cells = meter.options().cells;
  const std::pair<int64_t, int64_t> shapes[] = {{cells / 12'800 * 96, 32},
                                                {64, cells / 3'200 / 64 * 60},
                                                {1, cells / 10},
                                                {2, cells / 20},
                                                {20, cells / 100}};
  for (const bool single : {false, true})
    for (const auto& [rows, columns] : shapes) RunDense(meter, rows, columns, single);
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(cells) / 4));
  RunSparse(meter, side, side);
}

}  // namespace heddle::bench
