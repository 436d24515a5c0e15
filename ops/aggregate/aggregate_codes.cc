// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate/aggregate_codes.h"

#include <algorithm>

#include "ops/base/parallel.h"
#include "ops/compressed/arrange_groups.h"
#include "ops/compressed/exact.h"
#include "ops/compressed/fold_rows.h"
#include "ops/elementwise/single_precision.h"

namespace heddle::ops {
namespace {

using enum AggregateKind;
using enum AggregateScope;

// Whether the order of additions cannot be seen: over all cells, in rows or in columns.
bool IsOrderFree(AggregateScope scope, const Matrix& x) {
  ExactUnits all;
  for (const ColumnGroup& group : x.groups().groups) {
    if (scope != kColumn) {
      all = Joined(all, UnitsOf(group));
      continue;
    }
    for (int64_t k = 0; k < group.width(); ++k)
      if (!AddExactly(UnitsOfColumn(group, k), static_cast<double>(x.rows()))) return false;
  }
  const double terms =
      static_cast<double>(x.columns()) * (scope == kFull ? static_cast<double>(x.rows()) : 1);
  return scope == kColumn || AddExactly(all, terms);
}

bool FoldsCodes(const Aggregate& aggregate, const Matrix& x) {
  if (x.cells() == 0 || (aggregate.scope == kFull && x.columns() > kColumnChunk)) return false;
  for (const ColumnGroup& group : x.groups().groups)
    if (group.encoding == Encoding::kUncompressed) return false;
  if (!DictionariesPay(x)) return false;
  if (aggregate.kind == kMinimum || aggregate.kind == kMaximum) return true;
  return (aggregate.kind == kSum || aggregate.kind == kMean) && IsOrderFree(aggregate.scope, x);
}

Result<Value> RunRows(const KernelCall& call, AggregateKind kind) {
  constexpr int64_t kGrainCodes = int64_t{1} << 18, kLeastGrain = 4096;
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), 1));
  const auto compute = [&](const auto& rows) {
    const auto groups = static_cast<int64_t>(x.groups().groups.size());
    ParallelFor(x.rows(), std::max(kLeastGrain, kGrainCodes / groups), [&](int64_t begin, int64_t end) {
      if (IsCancelled(call.context.cancelled)) return;
      double* const out = result.mutable_data() + begin;
      rows.Compute(x.first_row() + begin, x.first_row() + end, out);
      if (kind == kMean)
        for (int64_t i = 0; i < end - begin; ++i) out[i] = out[i] / static_cast<double>(x.columns());
    });
  };
  if (FoldOf(kind) == simd::Fold::kAdd)
    compute(SumsOfRows(x.groups()));
  else
    compute(ExtremesOfRows(x.groups(), FoldOf(kind)));
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  if (x.element_type() == ElementType::kFloat32) {
    HEDDLE_ASSIGN_OR_RETURN(result, Narrow(result));
  }
  return Value(std::move(result));
}

}  // namespace

Result<std::optional<Value>> RunAggregateOfCodes(const KernelCall& call) {
  const Aggregate& aggregate = *FindAggregate(call.node.op);
  if (!FoldsCodes(aggregate, call.inputs[0]->matrix())) return std::optional<Value>();
  Result<Value> result = aggregate.scope == kRow    ? RunRows(call, aggregate.kind)
                         : aggregate.scope == kFull ? RunFullAggregate(call, aggregate.kind)
                                                    : RunColumnAggregate(call, aggregate.kind);
  if (!result.ok()) return result.status();
  return std::optional<Value>(*std::move(result));
}

CodedColumns::CodedColumns(AggregateKind kind, const Matrix& x) : x_(x), fold_(FoldOf(kind)) {
  for (const ColumnGroup& group : x.groups().groups) {
    if (fold_ == simd::Fold::kAdd)
      sums_.push_back(std::make_unique<const TupleSums>(group));
    else
      extremes_.push_back(std::make_unique<const TupleExtremes>(group, fold_));
  }
}

void CodedColumns::Fold(int64_t begin, int64_t end, int classes, double* totals) const {
  const int64_t n = x_.columns(), first = x_.first_row() + begin, last = x_.first_row() + end;
  std::fill_n(totals, classes * n, simd::StartOf(fold_));
  std::vector<double> of_group;
  for (size_t g = 0; g < x_.groups().groups.size(); ++g) {
    const ColumnGroup& group = x_.groups().groups[g];
    const int64_t width = group.width();
    of_group.assign(static_cast<size_t>(classes * width), simd::StartOf(fold_));
    if (fold_ == simd::Fold::kAdd)
      sums_[g]->Add(first, last, classes, of_group.data());
    else
      extremes_[g]->Fold(first, last, of_group.data());
    for (int64_t c = 0; c < classes; ++c)
      for (int64_t k = 0; k < width; ++k)
        totals[c * n + group.columns[static_cast<size_t>(k)]] = of_group[static_cast<size_t>(c * width + k)];
  }
}

}  // namespace heddle::ops
