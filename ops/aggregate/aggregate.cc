// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate/aggregate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/catalog.h"
#include "ops/cpu.h"

namespace heddle::ops {
namespace {

using enum AggregateKind;
using enum AggregateScope;

constexpr Aggregate kAggregates[] = {
    {"sum", kFull, kSum},
    {"mean", kFull, kMean},
    {"min", kFull, kMinimum},
    {"max", kFull, kMaximum},
    {"prod", kFull, kProduct},
    {"var", kFull, kVariance},
    {"sd", kFull, kDeviation},
    {"trace", kFull, kTrace},
    {"rowSums", kRow, kSum},
    {"rowMeans", kRow, kMean},
    {"rowMaxs", kRow, kMaximum},
    {"rowMins", kRow, kMinimum},
    {"rowProds", kRow, kProduct},
    {"rowVars", kRow, kVariance},
    {"rowSds", kRow, kDeviation},
    {"rowIndexMax", kRow, kIndexMax},
    {"rowIndexMin", kRow, kIndexMin},
    {"colSums", kColumn, kSum},
    {"colMeans", kColumn, kMean},
    {"colMaxs", kColumn, kMaximum},
    {"colMins", kColumn, kMinimum},
    {"colProds", kColumn, kProduct},
    {"colVars", kColumn, kVariance},
    {"colSds", kColumn, kDeviation},
};

Result<ValueInfo> InferAggregate(const InferContext& context) {
  const Aggregate& aggregate = *FindAggregate(context.node.op);
  const ValueInfo& x = context.inputs[0];
  if (x.data_type != DataType::kMatrix && x.data_type != DataType::kUnknown)
    return InvalidArgument("{}: needs a matrix, got a {}", context.node.op, Name(x.data_type))
        .WithNote("as.matrix(x) makes a 1x1 matrix of a scalar");
  if (aggregate.kind == kTrace && x.shape.IsKnown() && x.shape.rows != x.shape.columns)
    return InvalidArgument("trace: needs a square matrix, got {}", x.shape);
  switch (aggregate.scope) {
    case kFull: return ValueInfo::OfScalar(ValueType::kDouble);
    case kRow: return ValueInfo::OfMatrix({x.shape.rows, 1});
    case kColumn: break;
  }
  return ValueInfo::OfMatrix({1, x.shape.columns});
}

RowRule AggregateRowRule(const Node& node, std::span<const ValueInfo>) {
  return FindAggregate(node.op)->scope == kRow ? RowRule::kRowWise : RowRule::kReduce;
}

InputUse AggregateInputUse(const Node&, std::span<const ValueInfo>, int) { return InputUse::kRows; }

Cost AggregateCost(const Node& node, std::span<const ValueInfo> inputs) {
  const Aggregate& aggregate = *FindAggregate(node.op);
  if (!inputs[0].shape.IsKnown()) return {};
  const double rows = static_cast<double>(inputs[0].shape.rows),
               columns = static_cast<double>(inputs[0].shape.columns);
  if (aggregate.kind == kTrace) return {.flops = rows, .bytes = 64 * rows};
  const double results = aggregate.scope == kRow ? rows : aggregate.scope == kColumn ? columns : 1;
  return {.flops = rows * columns * (IsSpread(aggregate.kind) ? 4 : 1),
          .bytes = 8 * (rows * columns + results)};
}

Result<Value> RunAggregate(const KernelCall& call) {
  const Aggregate& aggregate = *FindAggregate(call.node.op);
  switch (aggregate.scope) {
    case kFull: return RunFullAggregate(call, aggregate.kind);
    case kRow: return RunRowAggregate(call, aggregate.kind);
    case kColumn: break;
  }
  return RunColumnAggregate(call, aggregate.kind);
}

}  // namespace

const Aggregate* FindAggregate(std::string_view name) {
  for (const Aggregate& aggregate : kAggregates)
    if (aggregate.name == name) return &aggregate;
  return nullptr;
}

simd::Fold FoldOf(AggregateKind kind) {
  switch (kind) {
    case kMinimum: return simd::Fold::kMinimum;
    case kMaximum: return simd::Fold::kMaximum;
    case kProduct: return simd::Fold::kMultiply;
    default: return simd::Fold::kAdd;
  }
}

Join JoinOf(AggregateKind kind) {
  switch (kind) {
    case kMinimum: return Join::kMinimum;
    case kMaximum: return Join::kMaximum;
    case kProduct: return Join::kProduct;
    case kVariance:
    case kDeviation: return Join::kMoments;
    default: return Join::kSum;
  }
}

double SpreadOf(AggregateKind kind, double count, double squares) {
  if (count < 1) return std::numeric_limits<double>::quiet_NaN();
  const double variance = count < 2 ? 0.0 : squares / (count - 1.0);
  return kind == kDeviation ? std::sqrt(variance) : variance;
}

EntryRange EntriesOf(const Matrix& sparse, int64_t row, int64_t column_begin, int64_t column_end) {
  const int32_t* columns = sparse.column_indexes();
  int64_t begin = sparse.row_offsets()[row], end = sparse.row_offsets()[row + 1];
  if (column_begin > 0) begin = std::lower_bound(columns + begin, columns + end, column_begin) - columns;
  if (column_end < sparse.columns())
    end = std::lower_bound(columns + begin, columns + end, column_end) - columns;
  return {begin, end};
}

const double* PanelCells::Get(int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) {
  if (!matrix_.IsSparse()) return matrix_.data() + row_begin * matrix_.columns() + column_begin;
  const int64_t width = column_end - column_begin, cells = (row_end - row_begin) * width;
  if (cells > capacity_) {
    scratch_ = AlignedArray(cells);
    capacity_ = cells;
  }
  std::fill_n(scratch_.data(), cells, 0.0);
  for (int64_t i = row_begin; i < row_end; ++i) {
    const EntryRange range = EntriesOf(matrix_, i, column_begin, column_end);
    double* row = scratch_.data() + (i - row_begin) * width - column_begin;
    for (int64_t e = range.begin; e < range.end; ++e) row[matrix_.column_indexes()[e]] = matrix_.values()[e];
  }
  return scratch_.data();
}

simd::From FromOf(const Matrix& x) {
  return !x.IsSparse() && x.bytes() >= kFetchedBytes ? simd::From::kMemory : simd::From::kCache;
}

RowSpan SpanOf(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  if (call.phase == Phase::kWhole) return {0, x.rows(), x.rows()};
  HEDDLE_CHECK(x.rows() == call.row_end - call.row_begin, "a partial call holds just its rows");
  HEDDLE_CHECK(call.row_begin % Granule(call.total_rows) == 0 || call.row_begin == call.row_end,
               "cuts are at granules");
  return {call.row_begin, call.row_end, call.total_rows};
}

std::span<const Operator> AggregateOperators() {
  static const std::vector<Operator> operators = [] {
    std::vector<Operator> list;
    for (const Aggregate& aggregate : kAggregates)
      list.push_back({.name = aggregate.name,
                      .min_inputs = 1,
                      .max_inputs = 1,
                      .infer = InferAggregate,
                      .row_rule = AggregateRowRule,
                      .input_use = AggregateInputUse,
                      .cost = AggregateCost,
                      .run = RunAggregate});
    return list;
  }();
  return operators;
}

}  // namespace heddle::ops
