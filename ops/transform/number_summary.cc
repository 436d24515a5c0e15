// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/number_summary.h"

#include <algorithm>

namespace heddle::ops {
namespace {

constexpr int64_t kCells = 5;  // Of one that has no sum.

int64_t WidthOf(const ColumnSpec& spec) {
  if (!NeedsNumbers(spec)) return 0;
  return kCells + (HasMean(spec) ? ExactSum::kCells : 0);
}

}  // namespace

void NumberSummary::Append(const NumberSummary& next) {
  has_failed |= next.has_failed;
  if (range.count == 0) {
    range = next.range;
  } else if (next.range.count > 0) {
    range.low = std::min(range.low, next.range.low);
    range.high = std::max(range.high, next.range.high);
    range.count += next.range.count;
  }
  mean.sum.Add(next.mean.sum);
  mean.count += next.mean.count;
}

Result<Value> SummaryRow(const TransformSpec& spec, const std::vector<NumberSummary>& columns,
                         int64_t samples) {
  int64_t width = 1;
  for (const ColumnSpec& one : spec.columns) width += WidthOf(one);
  HEDDLE_ASSIGN_OR_RETURN(Matrix row, Matrix::Dense(1, width));
  double* out = row.mutable_data();
  *out++ = static_cast<double>(samples);
  for (size_t j = 0; j < columns.size(); ++j) {
    if (!NeedsNumbers(spec.columns[j])) continue;
    const NumberSummary& one = columns[j];
    *out++ = one.has_failed ? 1 : 0;
    *out++ = static_cast<double>(one.range.count);
    *out++ = one.range.low;
    *out++ = one.range.high;
    *out++ = static_cast<double>(one.mean.count);
    if (!HasMean(spec.columns[j])) continue;
    one.mean.sum.Write(out);
    out += ExactSum::kCells;
  }
  return Value(std::move(row));
}

int64_t SamplesOf(const Matrix& rows, int64_t rank) {
  return static_cast<int64_t>(rows.data()[rank * rows.columns()]);
}

std::vector<NumberSummary> SummariesOf(const TransformSpec& spec, const Matrix& rows, int64_t rank) {
  const double* in = rows.data() + rank * rows.columns() + 1;
  std::vector<NumberSummary> columns(spec.columns.size());
  for (size_t j = 0; j < columns.size(); ++j) {
    if (!NeedsNumbers(spec.columns[j])) continue;
    NumberSummary& one = columns[j];
    one.has_failed = *in++ != 0;
    one.range.count = static_cast<int64_t>(*in++);
    one.range.low = *in++;
    one.range.high = *in++;
    one.mean.count = static_cast<int64_t>(*in++);
    if (!HasMean(spec.columns[j])) continue;
    one.mean.sum = ExactSum::Read(in);
    in += ExactSum::kCells;
  }
  return columns;
}

std::vector<NumberSummary> SummariesOfAll(const TransformSpec& spec, const Matrix& rows) {
  std::vector<NumberSummary> columns = SummariesOf(spec, rows, 0);
  for (int64_t rank = 1; rank < rows.rows(); ++rank) {
    const std::vector<NumberSummary> next = SummariesOf(spec, rows, rank);
    for (size_t j = 0; j < columns.size(); ++j) columns[j].Append(next[j]);
  }
  return columns;
}

}  // namespace heddle::ops
