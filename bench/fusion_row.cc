// SPDX-License-Identifier: Apache-2.0
#include "bench/fusion_row.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "bench/base/expression.h"
#include "bench/base/probe.h"
#include "bench/hand/fusion.h"
#include "bench/matrices/random_matrices.h"
#include "ops/elementwise/single_precision.h"

namespace heddle::bench {
namespace {

constexpr double kTolerance = 1e-9;
// A neighbour on the other hyperthread of a core slows down products and not the probe of arithmetic, which
// needs registers only: the best of many rounds is that of its pauses.
constexpr int kLeastRoundsOfArithmetic = 16;
constexpr int64_t kGemmProbe = 1000;  // Rows and columns.

}  // namespace

FusionMeter::FusionMeter(const BenchOptions& options, ops::Arena* arena)
    : options_(options),
      arena_(arena),
      probe_(std::clamp<int64_t>(options.cells / 2, 3 * kGemmProbe * kGemmProbe, 50'000'000), options.threads,
             arena),
      probe_product_(TouchedDense(kGemmProbe, kGemmProbe, arena)),
      blas_(options.threads) {}

double FusionMeter::GemmProbe() {
  constexpr int64_t n = kGemmProbe;
  const double *a = probe_.data().data(), *b = a + n * n;
  double* const c = probe_product_.mutable_data();
  const auto multiply = [&] {
    blas_.present() ? blas_.Multiply(a, b, c, n, n, n)
                    : arena_->Execute([&] { EigenProduct(a, b, c, n, n, n); });
  };
  return 2.0 * n * n * n / Time(multiply) / 1e6;
}

void FusionMeter::PrintProbes() {
  constexpr double kMilliseconds = 30;
  double write = 0, gemm = 0;
  Matrix out = TouchedDense(1, probe_.data().cells(), arena_);
  for (int i = 0; i < 4; ++i) {
    write = std::max(write, WriteBandwidth(out.mutable_data(), out.cells(), options_.threads));
    gemm = std::max(gemm, GemmProbe());
  }
  const double read = probe_.Best(), peak = FmaPeak(options_.threads, kMilliseconds);
  const char* const library = blas_.present() ? "openblas" : "eigen";
  if (options_.json)
    std::printf(
        "{\"bench\":\"fusion\",\"case\":\"probes\",\"read_gb_per_s\":%.2f,\"write_gb_per_s\":%.2f,\"gemm_gflop_per_s\":%.2f,"
        "\"gemm_by\":\"%s\",\"fma_gflop_per_s\":%.2f,\"threads\":%d}\n",
        read, write, gemm, library, peak, options_.threads);
  else
    std::printf(
        "read %.2f GB/s, write %.2f GB/s, %dx%d product by %s %.2f GFLOP/s, FMA peak %.2f GFLOP/s, %d threads\n",
        read, write, static_cast<int>(kGemmProbe), static_cast<int>(kGemmProbe), library, gemm, peak,
        options_.threads);
  std::fflush(stdout);
}

void FusionMeter::Fail(const std::string& name, const Status& status) {
  std::fprintf(stderr, "heddle-bench: %s: %s\n", name.c_str(), status.ToString().c_str());
  all_agree_ = false;
}

void FusionMeter::Measure(const FusionRow& row) {
  if (!Wants(row.name)) return;
  Result<Expression> expression =
      Expression::Compile(row.code, {row.result}, row.inputs, options_.plan, arena_);
  if (!expression.ok()) return Fail(row.name, expression.status());
  Matrix out = TouchedDense(row.shape.rows, row.shape.columns, arena_);
  const auto hand = [&] {
    if (row.hand != nullptr) arena_->Execute([&] { row.hand(out.mutable_data()); });
  };
  const auto ours = [&] { expression->Run(); };
  hand();
  if (row.hand == nullptr) {
    Result<Expression> unfused = Expression::Compile(row.code, {row.result}, row.inputs, "off", arena_);
    if (!unfused.ok()) return Fail(row.name, unfused.status());
    const Value value = unfused->Run()[0];
    if (value.matrix().shape() != row.shape) return Fail(row.name, Internal("another shape"));
    out = *ops::Widen(*ToDense(value.matrix()));
  }
  double first_ms = 0;
  {
    Value value;
    first_ms = Time([&] { value = expression->Run()[0]; });
    Result<Matrix> matrix = value.IsMatrix() ? ToDense(value.matrix())
                                             : Result<Matrix>(FilledMatrix(1, 1, value.scalar().AsDouble()));
    if (matrix.ok()) matrix = ops::Widen(*matrix);
    const bool same_shape = matrix.ok() && matrix->shape() == row.shape;
    const double difference = same_shape ? Difference(matrix->data(), out.data(), out.cells()) : INFINITY;
    if (!(difference <= kTolerance)) {
      std::fprintf(stderr, "heddle-bench: %s: the result differs from the one it is compared with by %g\n",
                   row.name.c_str(), difference);
      all_agree_ = false;
    }
  }
  first_ms += Time(hand);
  const int least = row.flops > 0 ? kLeastRoundsOfArithmetic : 3;
  const int rounds = RoundsOf(first_ms, least);
  const bool bound_by_memory = row.flops == 0;
  const auto best = BestAttempt<Figures>(probe_, rounds, bound_by_memory, [&](Figures& now) {
    now.hand_ms = std::min(now.hand_ms, Time(hand));
    const double ms = Time(ours);
    now.ours_ms = std::min(now.ours_ms, ms);
    // Where arithmetic rules its probe takes turns too, for as long as we took.
    if (row.flops > 0) {
      now.peak = std::max(now.peak, FmaPeak(options_.threads, ms));
      now.gemm = std::max(now.gemm, GemmProbe());
    }
    if (row.blas != nullptr) now.blas_ms = std::min(now.blas_ms, Time([&] { row.blas(out.mutable_data()); }));
  });
  Print(row, best, expression->compile_ms(), expression->Plan());
}

void FusionMeter::Print(const FusionRow& row, const Figures& figures, double compile_ms,
                        const std::string& plan) const {
  double limit_ms = figures.hand_ms;
  if (row.flops > 0) limit_ms = std::max(row.flops / figures.peak, row.bytes / figures.probe) / 1e6;
  if (row.hand == nullptr && row.flops == 0) limit_ms = row.bytes / figures.probe / 1e6;
  PrintLine(row.name, options_.plan, figures.ours_ms, limit_ms, row, figures, compile_ms, plan);
  if (row.flops > 0 && row.hand != nullptr)
    PrintLine(row.name, "eigen", figures.hand_ms, limit_ms, row, figures, 0, "Eigen");
  if (row.blas != nullptr)
    PrintLine(row.name, "openblas", figures.blas_ms, limit_ms, row, figures, 0, "OpenBLAS");
}

void FusionMeter::PrintLine(const std::string& name, const std::string& plan, double ms, double limit_ms,
                            const FusionRow& row, const Figures& figures, double compile_ms,
                            const std::string& text) const {
  const double bandwidth = row.bytes / ms / 1e6;
  const double to_gemm = row.flops > 0 ? row.flops / ms / 1e6 / figures.gemm : 0;
  const double hand_to_probe = row.hand == nullptr ? 0
                               : row.flops > 0     ? row.flops / figures.hand_ms / 1e6 / figures.peak
                                                   : row.bytes / figures.hand_ms / 1e6 / figures.probe;
  if (options_.json) {
    std::printf(
        "{\"bench\":\"fusion\",\"case\":\"%s\",\"plan\":\"%s\",\"ms\":%.3f,\"limit_ms\":%.3f,\"ratio_to_limit\":%.3f,"
        "\"gb_per_s\":%.2f,\"probe_gb_per_s\":%.2f,\"compile_ms\":%.1f,\"threads\":%d,\"hand_to_probe\":%.3f,"
        "\"to_gemm_probe\":%.3f,\"plan_text\":\"%s\"}\n",
        name.c_str(), plan.c_str(), ms, limit_ms, ms / limit_ms, bandwidth, figures.probe, compile_ms,
        options_.threads, hand_to_probe, to_gemm, text.c_str());
  } else {
    std::printf(
        "%-46s %-5s %9.3f ms  limit %9.3f ms  ratio %6.3f  %6.2f of %6.2f GB/s  hand/probe %.2f  compile %5.1f ms  %s\n",
        name.c_str(), plan.c_str(), ms, limit_ms, ms / limit_ms, bandwidth, figures.probe, hand_to_probe,
        compile_ms, text.c_str());
  }
  std::fflush(stdout);
}

}  // namespace heddle::bench
