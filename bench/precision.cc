// SPDX-License-Identifier: Apache-2.0
#include "bench/precision.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/base/expression.h"
#include "bench/base/probe.h"
#include "bench/blas.h"
#include "bench/matrices/random_matrices.h"
#include "ops/elementwise/single_precision.h"

namespace heddle::bench {
namespace {

constexpr int kRounds = 7;

Matrix OrStop(Result<Matrix> matrix) {
  if (matrix.ok()) return *std::move(matrix);
  std::fprintf(stderr, "heddle-bench: %s\n", matrix.status().ToString().c_str());
  std::exit(1);
}

// The largest difference of two results, in units of the largest cell of the exact one.
double ErrorOf(const Matrix& found, const Matrix& exact) {
  const Matrix cells = OrStop(ops::Widen(found));
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < exact.cells(); ++i) {
    worst = std::max(worst, std::abs(cells.data()[i] - exact.data()[i]));
    largest = std::max(largest, std::abs(exact.data()[i]));
  }
  return worst / largest;
}

// One expression; a product A %*% B of two of its inputs also by OpenBLAS.
struct Case {
  std::string name, code;
  std::map<std::string, Matrix> inputs;
  double flops = 0;
  std::string left, right;
};

class PrecisionMeter {
 public:
  PrecisionMeter(const BenchOptions& options, ops::Arena* arena)
      : options_(options), arena_(arena), blas_(options.threads) {}
  bool Wants(const std::string& name) const { return name.find(options_.only) != std::string::npos; }
  ops::Arena* arena() const { return arena_; }

  void Measure(const Case& one) {
    std::map<std::string, Value> doubles, singles;
    std::map<std::string, Matrix> narrow;
    arena_->Execute([&] {
      for (const auto& [name, matrix] : one.inputs) {
        // Doubles that are floats: both precisions have the same arguments.
        narrow[name] = OrStop(ops::Narrow(matrix));
        singles.emplace(name, narrow[name]);
        doubles.emplace(name, OrStop(ops::Widen(narrow[name])));
      }
    });
    Expression in_doubles = Compile(one, doubles), in_singles = Compile(one, singles);
    Value exact, found;
    double doubles_ms = 1e300, singles_ms = 1e300, blas_ms = 1e300;
    const bool has_blas = blas_.present() && !one.left.empty();
    Matrix peer;
    if (has_blas)
      peer = OrStop(Matrix::Dense(one.inputs.at(one.left).rows(), one.inputs.at(one.right).columns(),
                                  ElementType::kFloat32));
    for (int round = 0; round <= kRounds; ++round) {
      const double of_doubles = Time([&] { exact = in_doubles.Run()[0]; });
      const double of_singles = Time([&] { found = in_singles.Run()[0]; });
      if (has_blas) {
        const Matrix &a = narrow.at(one.left), &b = narrow.at(one.right);
        const double of_blas = Time([&] {
          blas_.Multiply(a.data<float>(), b.data<float>(), peer.mutable_data<float>(), a.rows(), a.columns(),
                         b.columns());
        });
        if (round > 0) blas_ms = std::min(blas_ms, of_blas);
      }
      if (round == 0) continue;  // The first run makes room.
      doubles_ms = std::min(doubles_ms, of_doubles);
      singles_ms = std::min(singles_ms, of_singles);
    }
    Print(one, doubles_ms, singles_ms, ErrorOf(found.matrix(), exact.matrix()), in_singles.Plan(),
          has_blas ? blas_ms : 0, has_blas ? ErrorOf(peer, exact.matrix()) : 0);
  }

 private:
  Expression Compile(const Case& one, const std::map<std::string, Value>& inputs) {
    Result<Expression> expression = Expression::Compile("", {one.code}, inputs, options_.plan, arena_);
    if (expression.ok()) return *std::move(expression);
    std::fprintf(stderr, "heddle-bench: %s: %s\n", one.name.c_str(), expression.status().ToString().c_str());
    std::exit(1);
  }

  void Print(const Case& one, double doubles_ms, double singles_ms, double error, const std::string& plan,
             double blas_ms, double blas_error) const {
    const auto rate = [&](double ms) { return ms == 0 ? 0.0 : one.flops / ms * 1e-6; };
    std::printf(
        options_.json
            ? "{\"bench\":\"precision\",\"case\":\"%s\",\"doubles_ms\":%.3f,\"singles_ms\":%.3f,\"ratio\":%.3f,"
              "\"doubles_gflops\":%.1f,\"singles_gflops\":%.1f,\"error\":%.3g,\"sgemm_ms\":%.3f,"
              "\"sgemm_gflops\":%.1f,\"sgemm_error\":%.3g,\"threads\":%d,\"plan_text\":\"%s\"}\n"
            : "%-44s %9.3f ms doubles %9.3f ms floats  %5.2fx  %6.1f / %6.1f GFLOP/s  error %.2e  "
              "sgemm %9.3f ms %6.1f GFLOP/s error %.2e  (%d threads; %s)\n",
        one.name.c_str(), doubles_ms, singles_ms, doubles_ms / singles_ms, rate(doubles_ms), rate(singles_ms),
        error, blas_ms, rate(blas_ms), blas_error, options_.threads, plan.c_str());
    std::fflush(stdout);
  }

  BenchOptions options_;
  ops::Arena* arena_;
  Blas blas_;
};

// Cells around zero: sums of products cancel, as those of real models do.
Matrix Centred(int64_t rows, int64_t columns, uint64_t seed, ops::Arena* arena) {
  Matrix cells = RandomDense(rows, columns, seed, arena);
  for (int64_t i = 0; i < cells.cells(); ++i) cells.mutable_data()[i] = 2 * cells.data()[i] - 1.2;
  return cells;
}

void RunProducts(PrecisionMeter& meter, int64_t cells) {
  const int64_t side = std::min<int64_t>(2000, std::llround(std::sqrt(static_cast<double>(cells)) / 5));
  const int64_t n = 100, m = cells / 2 / n;
  const std::string square = fmt::format("X%*%Y {0}x{0}x{0}", side), rows = fmt::format(" {}x{}", m, n);
  const auto flops = [](int64_t a, int64_t b, int64_t c) { return 2.0 * static_cast<double>(a * b * c); };
  if (meter.Wants(square))
    meter.Measure(
        {square,
         "X%*%Y",
         {{"X", Centred(side, side, 1, meter.arena())}, {"Y", Centred(side, side, 2, meter.arena())}},
         flops(side, side, side),
         "X",
         "Y"});
  const std::string product = "X%*%W" + rows + " by 100", layer = "sigmoid(X%*%W+b)" + rows,
                    gram = "t(X)%*%X" + rows, vector = "X%*%v" + rows, chain = "t(X)%*%(X%*%v)" + rows;
  const auto wants = [&](const std::string& name) { return meter.Wants(name); };
  if (!wants(product) && !wants(layer) && !wants(gram) && !wants(vector) && !wants(chain)) return;
  const Matrix x = Centred(m, n, 3, meter.arena()), w = Centred(n, 100, 4, meter.arena()),
               b = Centred(1, 100, 5, meter.arena()), v = Centred(n, 1, 6, meter.arena());
  if (wants(product)) meter.Measure({product, "X%*%W", {{"X", x}, {"W", w}}, flops(m, n, 100), "X", "W"});
  if (wants(layer))
    meter.Measure({layer, "sigmoid(X%*%W+b)", {{"X", x}, {"W", w}, {"b", b}}, flops(m, n, 100)});
  if (wants(gram)) meter.Measure({gram, "t(X)%*%X", {{"X", x}}, flops(m, n, n)});
  if (wants(vector)) meter.Measure({vector, "X%*%v", {{"X", x}, {"v", v}}, flops(m, n, 1)});
  if (wants(chain)) meter.Measure({chain, "t(X)%*%(X%*%v)", {{"X", x}, {"v", v}}, 2 * flops(m, n, 1)});
}

void RunCells(PrecisionMeter& meter, int64_t cells) {
  const int64_t n = 1000, m = cells / 2 / n;
  const struct {
    const char* name;
    const char* code;
  } kCases[] = {{"X*Y+X", "X*Y+X"},
                {"exp(X)", "exp(X)"},
                {"log(X)", "log(X)"},
                {"tanh(X)", "tanh(X)"},
                {"sigmoid(X)", "sigmoid(X)"},
                {"erf(X)", "erf(X)"},
                {"sum(exp(X)*Y)", "as.matrix(sum(exp(X)*Y))"},
                {"gelu", "X*0.5*(1+tanh(0.7978845608*(X+0.044715*X^3)))"},
                {"softmax", "exp(X-rowMaxs(X))/rowSums(exp(X-rowMaxs(X)))"},
                {"sum(X)", "as.matrix(sum(X))"},
                {"colSums(X)", "colSums(X)"},
                {"rowSums(X*Y)", "rowSums(X*Y)"}};
  const std::string size = fmt::format(" {}x{}", m, n);
  if (std::none_of(std::begin(kCases), std::end(kCases),
                   [&](const auto& one) { return meter.Wants(one.name + size); }))
    return;
  const Matrix x = RandomDense(m, n, 7, meter.arena()), y = RandomDense(m, n, 8, meter.arena());
  for (const auto& [name, code] : kCases) {
    if (!meter.Wants(name + size)) continue;
    std::map<std::string, Matrix> inputs = {{"X", x}};
    if (std::string(code).find('Y') != std::string::npos) inputs.emplace("Y", y);
    meter.Measure({name + size, code, inputs});
  }
}

}  // namespace

int RunPrecision(const BenchOptions& options) {
  ops::Arena arena(options.threads);
  PrecisionMeter meter(options, &arena);
  RunProducts(meter, options.cells);
  RunCells(meter, options.cells);
  return 0;
}

}  // namespace heddle::bench
