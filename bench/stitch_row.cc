// SPDX-License-Identifier: Apache-2.0
#include "bench/stitch_row.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bench/base/probe.h"
#include "ops/elementwise/single_precision.h"

namespace heddle::bench {
namespace {

constexpr int64_t kProbeCells = 25'000'000;
constexpr int kLeastRounds = 3;

// What a loop and our operators may differ by, relative to the largest cell.
double Tolerance(ElementType type) { return type == ElementType::kFloat64 ? 1e-9 : 1e-5; }

}  // namespace

StitchMeter::StitchMeter(const BenchOptions& options, ops::Arena* arena)
    : options_(options), arena_(arena), probe_(kProbeCells, options.threads, arena) {}

Matrix StitchMeter::InPrecision(const Matrix& matrix, ElementType type) {
  if (type == ElementType::kFloat64) return matrix;
  Result<Matrix> narrow = ops::Narrow(matrix);
  if (!narrow.ok()) {
    std::fprintf(stderr, "heddle-bench: %s\n", narrow.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(narrow);
}

void StitchMeter::Fail(const std::string& name, const std::string& what) {
  std::fprintf(stderr, "heddle-bench: %s: %s\n", name.c_str(), what.c_str());
  all_agree_ = false;
}

void StitchMeter::Compare(const StitchRow& row, Expression& fused, Expression& unfused, Matrix* by_hand) {
  const std::vector<Value> ours = fused.Run(), expected = unfused.Run();
  for (size_t i = 0; i < ours.size(); ++i)
    if (!Matrix::SameCells(ours[i].matrix(), expected[i].matrix()))
      Fail(row.name, fmt::format("result {} is not that of the operators one by one", i + 1));
  if (row.hand == nullptr) return;
  const Matrix& first = ours[0].matrix();
  Result<Matrix> made = Matrix::Dense(first.rows(), first.columns(), first.element_type());
  if (!made.ok()) return Fail(row.name, made.status().ToString());
  *by_hand = *std::move(made);
  arena_->Execute([&] { row.hand(by_hand); });
  const Result<Matrix> a = ops::Widen(first), b = ops::Widen(*by_hand);
  if (!a.ok() || !b.ok()) return Fail(row.name, "not enough memory");
  const double difference = Difference(a->data(), b->data(), a->cells());
  if (!(difference <= Tolerance(first.element_type())))
    Fail(row.name, fmt::format("the result differs from the loop's by {:g}", difference));
}

void StitchMeter::Measure(const StitchRow& row) {
  if (!Wants(row.name)) return;
  Result<Expression> fused = Expression::Compile(row.code, row.results, row.inputs, options_.plan, arena_);
  if (!fused.ok()) return Fail(row.name, fused.status().ToString());
  Result<Expression> unfused = Expression::Compile(row.code, row.results, row.inputs, "off", arena_);
  if (!unfused.ok()) return Fail(row.name, unfused.status().ToString());
  Matrix by_hand;
  Compare(row, *fused, *unfused, &by_hand);
  const auto round = [&](Figures& now) {
    if (row.hand != nullptr)
      now.hand_ms = std::min(now.hand_ms, Time([&] { arena_->Execute([&] { row.hand(&by_hand); }); }));
    now.ours_ms = std::min(now.ours_ms, Time([&] { fused->Run(); }));
    now.off_ms = std::min(now.off_ms, Time([&] { unfused->Run(); }));
  };
  Figures first;
  const double first_ms = Time([&] { round(first); });
  const auto best =
      BestAttempt<Figures>(probe_, RoundsOf(first_ms, kLeastRounds), /*bound_by_memory=*/true, round);
  Print(row, best, *fused, *unfused);
}

void StitchMeter::Print(const StitchRow& row, const Figures& figures, const Expression& fused,
                        const Expression& unfused) const {
  const Expression::Operators operators = fused.CountOperators();
  const auto bytes = static_cast<double>(fused.BytesMoved());
  const double saved = static_cast<double>(unfused.BytesMoved()) - bytes;
  const double to_probe = row.least_bytes / figures.ours_ms / 1e6 / figures.probe;
  const double to_hand = row.hand == nullptr ? 0 : figures.ours_ms / figures.hand_ms;
  const double hand_ms = row.hand == nullptr ? 0 : figures.hand_ms;
  const double predicted = 1 + saved / (figures.probe * 1e6) / figures.ours_ms;
  const double faster = figures.off_ms / figures.ours_ms;
  if (options_.json) {
    std::printf(
        "{\"bench\":\"stitch\",\"case\":\"%s\",\"plan\":\"%s\",\"fused\":%d,\"others\":%d,\"mb_moved\":%.2f,"
        "\"least_mb\":%.2f,\"to_least\":%.3f,\"ms\":%.3f,\"hand_ms\":%.3f,\"ratio_to_hand\":%.3f,\"to_probe\":%.3f,"
        "\"probe_gb_per_s\":%.2f,\"off_ms\":%.3f,\"faster_than_off\":%.2f,\"predicted\":%.2f,\"compile_ms\":%.1f,"
        "\"threads\":%d,\"plan_text\":\"%s\"}\n",
        row.name.c_str(), options_.plan.c_str(), operators.fused, operators.others, bytes / 1e6,
        row.least_bytes / 1e6, bytes / row.least_bytes, figures.ours_ms, hand_ms, to_hand, to_probe,
        figures.probe, figures.off_ms, faster, predicted, fused.compile_ms(), options_.threads,
        fused.Plan().c_str());
  } else {
    std::printf(
        "%-38s %d fused %2d others  %8.1f of %8.1f MB  %9.3f ms  hand %9.3f (ratio %5.3f)  %.2f of probe %6.2f GB/s  off "
        "%9.3f (%5.2f times, predicted %5.2f)  compile %5.1f  %s\n",
        row.name.c_str(), operators.fused, operators.others, bytes / 1e6, row.least_bytes / 1e6,
        figures.ours_ms, hand_ms, to_hand, to_probe, figures.probe, figures.off_ms, faster, predicted,
        fused.compile_ms(), fused.Plan().c_str());
  }
  std::fflush(stdout);
}

}  // namespace heddle::bench
