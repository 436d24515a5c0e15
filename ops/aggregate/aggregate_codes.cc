// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate/aggregate_codes.h"

#include <algorithm>

#include "ops/base/parallel.h"
#include "ops/compressed/arrange_groups.h"
#include "ops/compressed/exact.h"
#include "ops/compressed/fold_rows.h"
#include "ops/compressed/occurring_cells.h"
#include "ops/elementwise/single_precision.h"
#include "ops/simd/cellwise/elementwise.h"

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

constexpr int64_t kGrainCodes = int64_t{1} << 18, kLeastGrain = 4096;

Status RowsFromCodes(const KernelCall& call, AggregateKind kind, double* out) {
  const Matrix& x = call.inputs[0]->matrix();
  const auto compute = [&](const auto& rows) {
    const auto groups = static_cast<int64_t>(x.groups().groups.size());
    ParallelFor(x.rows(), std::max(kLeastGrain, kGrainCodes / groups), [&](int64_t begin, int64_t end) {
      if (IsCancelled(call.context.cancelled)) return;
      rows.Compute(x.first_row() + begin, x.first_row() + end, out + begin);
      if (kind == kMean)
        for (int64_t i = begin; i < end; ++i) out[i] = out[i] / static_cast<double>(x.columns());
    });
  };
  if (FoldOf(kind) == simd::Fold::kAdd)
    compute(SumsOfRows(x.groups()));
  else
    compute(ExtremesOfRows(x.groups(), FoldOf(kind)));
  return OkStatus();
}

Status RowsFromCells(const KernelCall& call, AggregateKind kind, double* out) {
  const Matrix& x = call.inputs[0]->matrix();
  const DecodedCells cells(x);
  ParallelFor(x.rows(), std::max<int64_t>(64, kGrainCodes / x.columns()), [&](int64_t begin, int64_t end) {
    if (IsCancelled(call.context.cancelled)) return;
    double* to = out + begin;
    cells.ForTiles(begin, end, [&](const double* rows, int64_t count) {
      AggregateDenseRows(kind, rows, count, x.columns(), to);
      to += count;
    });
  });
  return OkStatus();
}

Result<Value> RunRows(const KernelCall& call, const Aggregate& aggregate) {
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), 1));
  HEDDLE_RETURN_IF_ERROR(FoldsInAnyOrder(aggregate, x)
                             ? RowsFromCodes(call, aggregate.kind, result.mutable_data())
                             : RowsFromCells(call, aggregate.kind, result.mutable_data()));
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  if (x.element_type() == ElementType::kFloat32) {
    HEDDLE_ASSIGN_OR_RETURN(result, Narrow(result));
  }
  return Value(std::move(result));
}

// Folds columns from how many rows have which tuple: totals[j] of column j.
void FoldCounts(simd::Fold fold, const Matrix& x, std::vector<double>* totals) {
  totals->assign(static_cast<size_t>(x.columns()), simd::StartOf(fold));
  for (const ColumnGroup& group : x.groups().groups) {
    const std::vector<double> tuples = TuplesAsDoubles(group);
    std::vector<int64_t> counts = CountRowsOfTuples(group, x.first_row(), x.first_row() + x.rows());
    if (group.encoding == Encoding::kEmpty) counts.assign(1, x.rows());
    const auto* cell = tuples.data();
    for (const int64_t count : counts)
      for (int64_t k = 0; k < group.width(); ++k, ++cell) {
        double& total = (*totals)[static_cast<size_t>(group.columns[static_cast<size_t>(k)])];
        if (count == 0) continue;
        const double term = fold == simd::Fold::kAdd ? static_cast<double>(count) * *cell : *cell;
        total = simd::FoldTwo(fold, total, term);
      }
  }
}

// Of all rows at once, of cells that fold in any order.
Result<Value> RunCounts(const KernelCall& call, const Aggregate& aggregate) {
  const Matrix& x = call.inputs[0]->matrix();
  const simd::Fold fold = FoldOf(aggregate.kind);
  std::vector<double> totals;
  FoldCounts(fold, x, &totals);
  const auto rows = static_cast<double>(x.rows());
  if (aggregate.scope == kFull) {
    double total = simd::StartOf(fold);
    for (const double of_column : totals) total = simd::FoldTwo(fold, total, of_column);
    return Value(Scalar(aggregate.kind == kMean ? total / (rows * static_cast<double>(x.columns())) : total));
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(1, x.columns()));
  for (size_t j = 0; j < totals.size(); ++j)
    result.mutable_data()[j] = aggregate.kind == kMean ? totals[j] / rows : totals[j];
  if (x.element_type() == ElementType::kFloat32) {
    HEDDLE_ASSIGN_OR_RETURN(result, Narrow(result));
  }
  return Value(std::move(result));
}

// Whether that is as fast as reading codes: extremes read few of them.
bool FoldsByCounts(const KernelCall& call, const Aggregate& aggregate) {
  const Matrix& x = call.inputs[0]->matrix();
  if (aggregate.scope == kRow || call.phase != Phase::kWhole || !FoldsInAnyOrder(aggregate, x)) return false;
  if (FoldOf(aggregate.kind) != simd::Fold::kAdd) return KnowsCounts(x);
  return x.first_row() == 0 && x.rows() == x.groups().rows;
}

}  // namespace

bool FoldsInAnyOrder(const Aggregate& aggregate, const Matrix& x) {
  for (const ColumnGroup& group : x.groups().groups)
    if (group.encoding == Encoding::kUncompressed) return false;
  if (aggregate.kind == kMinimum || aggregate.kind == kMaximum) return true;
  return (aggregate.kind == kSum || aggregate.kind == kMean) && IsOrderFree(aggregate.scope, x);
}

Result<std::optional<Value>> RunAggregateOfCodes(const KernelCall& call) {
  const Aggregate& aggregate = *FindAggregate(call.node.op);
  const Matrix& x = call.inputs[0]->matrix();
  if (x.cells() == 0 || x.columns() > kColumnChunk || !DictionariesPay(x) || aggregate.kind == kTrace ||
      (aggregate.scope != kRow && IsSpread(aggregate.kind)))
    return std::optional<Value>();
  Result<Value> result = FoldsByCounts(call, aggregate) ? RunCounts(call, aggregate)
                         : aggregate.scope == kRow    ? RunRows(call, aggregate)
                         : aggregate.scope == kFull ? RunFullAggregate(call, aggregate.kind)
                                                    : RunColumnAggregate(call, aggregate.kind);
  if (!result.ok()) return result.status();
  return std::optional<Value>(*std::move(result));
}

DecodedCells::DecodedCells(const Matrix& x) : columns_(x.columns()) {
  if (x.element_type() == ElementType::kFloat64)
    doubles_.emplace(x);
  else
    floats_.emplace(x);
}

void DecodedCells::ForTiles(int64_t begin, int64_t end,
                            const std::function<void(const double* cells, int64_t rows)>& body) const {
  const int64_t height = TileDecoder<double>::RowsOfTile(columns_);
  AlignedArray cells(height * columns_);
  TileDecoder<double>::Cursor of_doubles;
  TileDecoder<float>::Cursor of_floats;
  std::vector<float> floats(floats_ ? static_cast<size_t>(height * columns_) : 0);
  for (int64_t row = begin; row < end; row += height) {
    const int64_t rows = std::min(end, row + height) - row;
    if (doubles_) {
      doubles_->Decode(&of_doubles, row, row + rows, cells.data());
    } else {
      floats_->Decode(&of_floats, row, row + rows, floats.data());
      SelectedElementwiseKernels().widen(floats.data(), cells.data(), rows * columns_);
    }
    body(cells.data(), rows);
  }
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
